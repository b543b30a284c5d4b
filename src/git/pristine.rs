//! Owns making a worktree in which commands ran the same as a new one, but for what git ignores: what the commands left in its git
//! directory, and what git does not show of its files.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{DirEntry, FileType, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use gix::bstr::BStr;
use gix::index::File;
use gix::index::decode::Options;
use gix::index::entry::Mode;

use super::{Error, Oid, Repo, RepoPath, index};

/// The folder in the worktree's git directory with what is known of it from before any command ran.
const KEPT: &str = "proq-kept";
/// The files in the git directory of a worktree without which git does not know it, and [`KEPT`]. All else there is left by commands, or
/// made by git as it is needed.
const OWN: [&str; 4] = ["HEAD", "commondir", "gitdir", KEPT];
/// Where HEAD is in a repository whose refs are in reftable files, in place of a file, and what older gits find there.
const OWN_OF_REFTABLE: [&str; 2] = ["refs", "reftable"];
/// The settings that a worktree has for itself.
const SETTINGS: &str = "config.worktree";
/// The name of what [`Repo::form`] found.
const FORM: &str = "form";
/// The files with rules of a folder. Git reads them from the worktree wherever it goes.
const RULES: [&str; 2] = [".gitattributes", ".gitignore"];

/// The index of a worktree, with what git does not write as plain files listed apart.
pub(super) struct Named {
    index: File,
    /// Folders of submodules.
    submodules: Vec<RepoPath>,
    /// Each file with attributes, and its content's id.
    attributes: Vec<u8>,
}

impl Repo {
    /// Notes the settings that a new worktree has for itself.
    pub(super) fn note_settings(admin: &Path) -> Result<(), Error> {
        let kept = admin.join(KEPT);
        std::fs::create_dir(&kept).map_err(Error::io("create", &kept))?;
        copy_if_there(&admin.join(SETTINGS), &kept.join(SETTINGS))
    }

    /// Whether the git directory `admin` of the worktree at `dir` still has the index from before commands ran there, and commands can
    /// have left no refs in it.
    pub(super) fn is_known(&self, dir: &Path, admin: &Path) -> bool {
        admin.join(KEPT).join(index::INDEX).exists()
            && (!self.is_reftable() || self.has_no_refs_of_its_own(dir))
    }

    /// Where refs are no files, those of the worktree alone cannot be taken away as such.
    fn has_no_refs_of_its_own(&self, dir: &Path) -> bool {
        let call = self.git_in(dir).args(["for-each-ref", "--include-root-refs", "--format=%(refname)"]);
        let is_own = |name: &[u8]| {
            let of_worktree = ["refs/bisect/", "refs/rewritten/", "refs/worktree/"];
            of_worktree.iter().any(|start| name.starts_with(start.as_bytes()))
                || !(name.starts_with(b"refs/") || [&b"HEAD"[..], b"ORIG_HEAD"].contains(&name))
        };
        call.run()
            .is_ok_and(|out| !out.stdout.split(|b| *b == b'\n').any(|name| !name.is_empty() && is_own(name)))
    }

    /// Takes everything that commands left in a worktree's git directory away, and puts the index and the settings back that it had
    /// before: what a command told git of files (flags, patterns of a sparse checkout, times) counts no more, and each file that was
    /// written to since differs. The form in which files were written then; none in a new worktree, which has no index.
    pub(super) fn forget_state(&self, admin: &Path) -> Result<Option<Vec<u8>>, Error> {
        let kept = admin.join(KEPT);
        // No other folder is emptied here.
        kept.symlink_metadata().map_err(Error::io("look at", &kept))?;
        for entry in std::fs::read_dir(admin).map_err(Error::io("read", admin))? {
            let entry = entry.map_err(Error::io("read", admin))?;
            let name = entry.file_name();
            let is = |own: &[&str]| own.iter().any(|own| name == *own);
            if !(is(&OWN) || self.is_reftable() && is(&OWN_OF_REFTABLE)) {
                remove(&entry.path(), entry.file_type().ok())?;
            }
        }
        if !self.is_reftable() {
            let refs = admin.join("refs");
            std::fs::create_dir(&refs).map_err(Error::io("create", &refs))?;
        }
        copy_if_there(&kept.join(SETTINGS), &admin.join(SETTINGS))?;
        let index = admin.join(index::INDEX);
        match std::fs::rename(kept.join(index::INDEX), &index) {
            Ok(()) => Ok(Some(std::fs::read(kept.join(FORM)).unwrap_or_default())),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("put back", &index)(e)),
        }
    }

    /// Keeps the index as it is before commands run, and the form in which files were written.
    pub(super) fn keep_state(admin: &Path, form: &[u8]) -> Result<(), Error> {
        let (kept, index) = (admin.join(KEPT), admin.join(index::INDEX));
        let file = kept.join(FORM);
        std::fs::write(&file, form).map_err(Error::io("write", &file))?;
        let half = kept.join("index.new");
        index::copy(&index, &half)?;
        std::fs::rename(&half, kept.join(index::INDEX)).map_err(Error::io("write", &half))
    }

    /// Reads what the index of a worktree names.
    pub(super) fn named_in(&self, admin: &Path) -> Result<Named, Error> {
        let path = admin.join(index::INDEX);
        let read = File::at(&path, self.gix.object_hash(), true, Options::default());
        let read = read.map_err(Error::object(format!("{}", path.display())))?;
        let (mut submodules, mut attributes) = (Vec::new(), Vec::new());
        for entry in read.entries() {
            let entry_path = RepoPath::new(entry.path(&read).to_vec());
            if entry_path.ends_with_name(b".gitattributes") {
                attributes.extend_from_slice(entry.id.as_slice());
                attributes.extend_from_slice(entry_path.as_bytes());
                attributes.push(0);
            }
            if entry.mode == Mode::COMMIT {
                submodules.push(entry_path);
            }
        }
        Ok(Named { index: read, submodules, attributes })
    }

    /// Whether a commit has a folder at `path`. One that cannot be read counts as having none.
    pub(super) fn has_folder(&self, commit: Oid, path: &RepoPath) -> bool {
        let mut names = path.as_bytes().split(|b| *b == b'/');
        let top = self.reader().tree_of(commit).ok();
        let found = names.try_fold(top, |tree, name| {
            let item = self.reader().tree(tree?).ok()?.get(name)?;
            item.is_tree().then_some(Some(item.id))
        });
        found.is_some()
    }

    /// All that decides in which form git writes the files of a worktree: it writes none anew because that has changed.
    pub(super) fn form(&self, dir: &Path, named: &Named) -> Result<Vec<u8>, Error> {
        let mut form = self.form_outside_of_commits(dir)?;
        form.push(0);
        form.extend_from_slice(&named.attributes);
        Ok(form)
    }
}

impl Named {
    /// Takes away what would make git wait, or see other files than it is to see, in the folders of tracked files and in those that
    /// are `to_be`: what is neither file nor folder nor link, and files with rules that are not tracked. A pipe of that name is waited
    /// for, one with `*` in it ignores itself and all beside it, and attributes count for files that are written beside them.
    /// Returns the other folders in those.
    pub(super) fn clear_rules(
        &self,
        dir: &Path,
        to_be: &dyn Fn(&RepoPath) -> bool,
    ) -> Result<Vec<RepoPath>, Error> {
        let mut others = Vec::new();
        let mut folders: Vec<(PathBuf, Option<RepoPath>)> = vec![(dir.to_owned(), None)];
        while let Some((folder, path)) = folders.pop() {
            for entry in std::fs::read_dir(&folder).map_err(Error::io("read", &folder))? {
                let (name, kind, here) = parts(entry, &folder)?;
                let below = match &path {
                    None => RepoPath::new(name.as_bytes()),
                    Some(path) => path.join(name.as_bytes()),
                };
                if name == ".git" {
                    continue;
                }
                if kind.is_dir() {
                    match self.has_below(&below) || to_be(&below) {
                        true => folders.push((here, Some(below))),
                        false => others.push(below),
                    }
                } else if is_special(kind) || RULES.iter().any(|rules| name == *rules) && !self.has(&below) {
                    remove(&here, Some(kind))?;
                }
            }
        }
        Ok(others)
    }

    fn has(&self, path: &RepoPath) -> bool {
        self.index.entry_by_path(BStr::new(path.as_bytes())).is_some()
    }

    /// Whether there are tracked files below a folder.
    fn has_below(&self, folder: &RepoPath) -> bool {
        let start = [folder.as_bytes(), b"/"].concat();
        self.index.prefixed_entries(BStr::new(&start)).is_some_and(|entries| !entries.is_empty())
    }

    /// Gives the tracked files the permissions of new ones. Git notices only who may execute them, and not even a change of times
    /// within the second in which it wrote them.
    fn give_modes(&self, dir: &Path, modes: &Modes) -> Result<(), Error> {
        for entry in self.index.entries() {
            let mode = match entry.mode {
                Mode::FILE => modes.file,
                Mode::FILE_EXECUTABLE => modes.program,
                _ => continue,
            };
            let file = RepoPath::new(entry.path(&self.index).to_vec()).under(dir);
            give_mode(&file, mode)?;
        }
        Ok(())
    }

    /// Empties the folders of submodules: a new worktree has nothing in them.
    pub(super) fn empty_submodules(&self, dir: &Path) -> Result<(), Error> {
        for path in &self.submodules {
            let folder = path.under(dir);
            // A folder above it may be a link to somewhere else.
            if !folder.parent().is_some_and(is_real_folder)
                || !folder.symlink_metadata().is_ok_and(|meta| meta.is_dir())
            {
                continue;
            }
            let mut all = std::fs::read_dir(&folder).map_err(Error::io("read", &folder))?;
            if all.next().is_some() {
                std::fs::remove_dir_all(&folder).map_err(Error::io("remove", &folder))?;
                std::fs::create_dir(&folder).map_err(Error::io("create", &folder))?;
            }
        }
        Ok(())
    }

    /// Makes the folders of submodules that are missing. A link in place of a folder above one hides that from git.
    pub(super) fn make_submodules(&self, dir: &Path) -> Result<(), Error> {
        for path in &self.submodules {
            let folder = path.under(dir);
            if folder.symlink_metadata().is_err() {
                std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
            }
            if !folder.canonicalize().is_ok_and(|real| real == folder) {
                return Err(Error::io("look at", &folder)(ErrorKind::NotADirectory.into()));
            }
        }
        Ok(())
    }
}

/// Goes through all folders of a worktree but those that git ignores, and takes away what git passes over in them: repositories in
/// folders of tracked files, and what is neither file nor folder nor link. Gives those folders and the tracked files the permissions
/// of new ones.
pub(super) fn sweep(dir: &Path, ignored: &HashSet<RepoPath>, named: &Named) -> Result<(), Error> {
    let modes = Modes::of_new(dir)?;
    let mut folders: Vec<(PathBuf, Option<RepoPath>)> = vec![(dir.to_owned(), None)];
    while let Some((folder, path)) = folders.pop() {
        give_mode(&folder, modes.folder)?;
        for entry in std::fs::read_dir(&folder).map_err(Error::io("read", &folder))? {
            let (name, kind, here) = parts(entry, &folder)?;
            let below = match &path {
                None if name == ".git" => continue,
                None => RepoPath::new(name.as_bytes()),
                Some(path) => path.join(name.as_bytes()),
            };
            if name == ".git" || is_special(kind) {
                remove(&here, Some(kind))?;
            } else if kind.is_dir() && !ignored.contains(&below) {
                folders.push((here, Some(below)));
            }
        }
    }
    named.give_modes(dir, &modes)
}

/// Takes a pipe or the like away that is in place of a `.gitignore` in folders that git goes through, and would wait for.
pub(super) fn unblock(dir: &Path, folders: &[RepoPath]) -> Result<(), Error> {
    let mut folders: Vec<PathBuf> = folders.iter().map(|path| path.under(dir)).collect();
    while let Some(folder) = folders.pop() {
        // What cannot be read is closed to git, too.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let (name, kind, here) = parts(entry, &folder)?;
            if is_special(kind) && name == ".gitignore" {
                remove(&here, Some(kind))?;
            } else if kind.is_dir() && name != ".git" {
                folders.push(here);
            }
        }
    }
    Ok(())
}

/// Whether a git directory is that of a worktree of which it is known how it was.
pub(super) fn is_kept(admin: &Path) -> bool {
    admin.join(KEPT).symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

/// Whether there is a folder at `path`, and no link on the way to it.
pub(super) fn is_real_folder(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real == path) && path.is_dir()
}

fn is_special(kind: FileType) -> bool {
    !(kind.is_dir() || kind.is_file() || kind.is_symlink())
}

fn parts(entry: std::io::Result<DirEntry>, folder: &Path) -> Result<(OsString, FileType, PathBuf), Error> {
    let entry = entry.map_err(Error::io("read", folder))?;
    let kind = entry.file_type().map_err(Error::io("look at", folder))?;
    Ok((entry.file_name(), kind, entry.path()))
}

/// The permissions of what is newly made.
struct Modes {
    folder: u32,
    file: u32,
    program: u32,
}

impl Modes {
    /// The permission bits that a new folder, file and program get beside the worktree at `dir`.
    fn of_new(dir: &Path) -> Result<Modes, Error> {
        let probe = dir.with_extension("mode");
        // One that was killed here may have left it, or a check anything else.
        if let Ok(meta) = probe.symlink_metadata() {
            remove(&probe, Some(meta.file_type()))?;
        }
        std::fs::create_dir(&probe).map_err(Error::io("create", &probe))?;
        let mode_of = |path: &Path| path.symlink_metadata().map(|meta| meta.permissions().mode() & 0o7777);
        let of_file = |name: &str, mode: u32| {
            let path = probe.join(name);
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
            mode_of(&path)
        };
        let modes = || {
            Ok(Modes {
                folder: mode_of(&probe)?,
                file: of_file("file", 0o666)?,
                program: of_file("program", 0o777)?,
            })
        };
        let found = modes().map_err(Error::io("look at", &probe));
        drop(std::fs::remove_dir_all(&probe));
        found
    }
}

fn give_mode(path: &Path, mode: u32) -> Result<(), Error> {
    let meta = match path.symlink_metadata() {
        // Of two names that are one to the file system there is only one.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        meta => meta.map_err(Error::io("look at", path))?,
    };
    if meta.permissions().mode() & 0o7777 == mode || meta.is_symlink() {
        return Ok(());
    }
    let set = std::fs::set_permissions(path, Permissions::from_mode(mode));
    set.map_err(Error::io("set the permissions of", path))
}

fn copy_if_there(from: &Path, to: &Path) -> Result<(), Error> {
    match std::fs::copy(from, to) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io("copy", from)(e)),
        _ => Ok(()),
    }
}

fn remove(path: &Path, kind: Option<FileType>) -> Result<(), Error> {
    let removed = match kind.is_some_and(|kind| kind.is_dir()) {
        true => std::fs::remove_dir_all(path),
        false => std::fs::remove_file(path),
    };
    removed.map_err(Error::io("remove", path))
}
