//! Owns the folder of a task in its lane: bringing it there, keeping it out of commits, and the files in it. Whatever is in the way of
//! that, a link for one, is refused by its name and never followed.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;

use super::super::Error;
use crate::git::RepoPath;
use crate::harmless;
use crate::lane::Project;
use crate::store::{make_private, write_there};

/// The file that tells a task.
pub(crate) const PROMPT: &str = "PROMPT.md";
/// The file that says how far it has come.
pub(crate) const STATUS: &str = "STATUS.md";
/// Where reviews lie.
pub(super) const REVIEWS: &str = ".reviews";
/// What keeps files out of commits.
const IGNORE: &str = ".gitignore";
/// The mark of a task that is done: nobody brings it along.
const DONE: &str = ".DONE";

/// The largest file that is read, in MiB.
const LARGEST: u64 = 8;
/// How many files a folder may have.
const MOST: usize = 1_000;
/// How much they may hold together, in MiB.
const ALL: u64 = 32;

/// What stands above the rules that keep a task's files out of commits.
const WHY: &str = "# Written by git-proq: what lies here is for this lane only.\n";

/// A file of a task's folder.
#[derive(Debug, Clone)]
pub(crate) struct Brought {
    path: PathBuf,
    bytes: Vec<u8>,
    is_program: bool,
}

impl Brought {
    /// Whether it says how far the task has come.
    pub(super) fn is_status(&self) -> bool {
        self.path == Path::new(STATUS)
    }
}

/// Reads a whole folder of a task, to be brought elsewhere.
///
/// # Errors
/// [`Error::TaskFolder`] for what is neither file nor folder, and for too much of them.
pub(crate) fn read_all(dir: &Path) -> Result<Vec<Brought>, Error> {
    let mut out = Vec::new();
    let mut left = ALL * 1024 * 1024;
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let here = dir.join(&folder);
        let unreadable = |source: std::io::Error| wrong(&here, format!("cannot be read: {source}"));
        for entry in std::fs::read_dir(&here).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let (name, path) = (entry.file_name(), entry.path());
            let inside = folder.join(&name);
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_dir() && name == ".git" {
                return Err(wrong(&here, "is a repository of its own".to_owned()));
            }
            if kind.is_dir() && inside != Path::new(REVIEWS) {
                folders.push(inside);
            } else if kind.is_file() && name != IGNORE && inside != Path::new(DONE) {
                let (bytes, meta) = read_file(&path, left)?;
                left = left.saturating_sub(bytes.len() as u64);
                out.push(Brought { path: inside, bytes, is_program: meta.permissions().mode() & 0o111 != 0 });
            } else if kind.is_symlink() {
                return Err(wrong(&path, "is a link, and is not followed".to_owned()));
            } else if !kind.is_file() && !kind.is_dir() {
                return Err(wrong(&path, "is neither a file nor a folder".to_owned()));
            }
            if out.len() + folders.len() > MOST {
                return Err(wrong(dir, format!("holds more than {MOST} files")));
            }
        }
    }
    Ok(out)
}

/// A task's folder in the worktree of its lane.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    /// The top of the worktree.
    top: PathBuf,
    /// The folder, from there.
    inside: String,
}

/// What of a task's folder is to be in no commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptOut {
    /// All of it.
    pub(crate) copied: bool,
    /// STATUS.md and the reviews.
    pub(crate) hidden: bool,
}

impl Folder {
    /// That of this name, from the top of a worktree.
    pub(crate) fn new(top: &Path, inside: &str) -> Folder {
        Folder { top: top.to_owned(), inside: inside.to_owned() }
    }

    /// A file in it, from the top of the worktree.
    pub(crate) fn name_of(&self, file: &str) -> String {
        format!("{}/{file}", self.inside)
    }

    fn repo_path(&self, file: &str) -> RepoPath {
        RepoPath::new(self.name_of(file))
    }

    /// Where it is, once it was made sure that no link leads elsewhere; none where it is not there and is not to be made.
    fn walk(&self, make: bool) -> Result<Option<PathBuf>, Error> {
        let mut at = self.top.clone();
        for part in Path::new(&self.inside).components() {
            let Component::Normal(name) = part else {
                return Err(wrong(Path::new(&self.inside), "is no folder of the repository".to_owned()));
            };
            at.push(name);
            match at.symlink_metadata() {
                Ok(meta) if meta.is_dir() => {}
                Ok(_) => return Err(wrong(&at, "is no folder in the lane".to_owned())),
                Err(e) if e.kind() == ErrorKind::NotFound && !make => return Ok(None),
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    std::fs::create_dir(&at).map_err(|e| wrong(&at, format!("cannot be made: {e}")))?;
                }
                Err(e) => return Err(wrong(&at, format!("cannot be looked at: {e}"))),
            }
        }
        Ok(Some(at))
    }

    fn made(&self) -> Result<PathBuf, Error> {
        Ok(self.walk(true)?.unwrap_or_else(|| self.top.join(&self.inside)))
    }

    /// The text of one of its files; none where it is not there.
    ///
    /// # Errors
    /// [`Error::TaskFolder`] for a file that is none, or is too large.
    pub(crate) fn text(&self, file: &str) -> Result<Option<String>, Error> {
        let Some(dir) = self.walk(false)? else { return Ok(None) };
        let path = dir.join(file);
        match path.symlink_metadata() {
            Ok(_) => {
                let (bytes, _) = read_file(&path, LARGEST * 1024 * 1024)?;
                Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
            }
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(wrong(&path, format!("cannot be looked at: {e}"))),
        }
    }

    /// Writes STATUS.md anew.
    pub(crate) fn write_status(&self, text: &str) -> Result<(), Error> {
        Ok(write_there(&self.made()?.join(STATUS), text.as_bytes())?)
    }

    /// Keeps what a reviewer said.
    pub(crate) fn write_review(&self, name: &str, text: &str) -> Result<(), Error> {
        let reviews = Folder::new(&self.top, &self.name_of(REVIEWS));
        Ok(write_there(&reviews.made()?.join(name), text.as_bytes())?)
    }

    /// Brings files into it that are not there yet.
    pub(crate) fn bring(&self, files: &[Brought]) -> Result<(), Error> {
        for file in files {
            let above = file.path.parent().filter(|above| *above != Path::new(""));
            let inside = match above {
                Some(above) => self.name_of(&above.to_string_lossy()),
                None => self.inside.clone(),
            };
            let Some(name) = file.path.file_name() else { continue };
            let path = Folder::new(&self.top, &inside).made()?.join(name);
            if path.symlink_metadata().is_ok() {
                continue;
            }
            write_there(&path, &file.bytes)?;
            if file.is_program {
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(&path, mode).map_err(|e| wrong(&path, e.to_string()))?;
            }
        }
        Ok(())
    }

    /// Moves away what was left of it by somebody whose work does not count: what differs from `files`, and STATUS.md where these have none.
    /// With `all` that is any of them, else STATUS.md alone. `keep` says where each goes.
    pub(crate) fn move_away(
        &self,
        files: &[Brought],
        all: bool,
        keep: &dyn Fn(&Path) -> PathBuf,
    ) -> Result<(), Error> {
        let mut names: Vec<&Path> = files.iter().filter(|_| all).map(|file| file.path.as_path()).collect();
        if !names.contains(&Path::new(STATUS)) {
            names.push(Path::new(STATUS));
        }
        for name in names {
            let brought = files.iter().find(|file| file.path == name);
            let above = name.parent().unwrap_or(Path::new("")).to_string_lossy();
            let Some(dir) = Folder::new(&self.top, &self.name_of(&above)).walk(false)? else { continue };
            let path = dir.join(name.file_name().unwrap_or_default());
            let Ok(meta) = path.symlink_metadata() else { continue };
            let is_same = meta.is_file()
                && brought.is_some_and(|file| std::fs::read(&path).is_ok_and(|now| now == file.bytes));
            if !is_same {
                let to = keep(name);
                make_private(to.parent().unwrap_or(Path::new("/")))?;
                move_there(&path, &to).map_err(|e| wrong(&path, format!("cannot be moved away: {e}")))?;
            }
        }
        Ok(())
    }

    /// Brings what is known of how far it has come.
    pub(crate) fn bring_status(&self, files: &[Brought]) -> Result<(), Error> {
        let status: Vec<Brought> = files.iter().filter(|file| file.is_status()).cloned().collect();
        self.bring(&status)
    }

    /// What of it is not tracked in the lane.
    pub(crate) fn kept_out(&self, project: &Project) -> Result<KeptOut, Error> {
        let tracked = project.repo.tracked_below(&self.top, &RepoPath::new(self.inside.clone()))?;
        let hidden = !tracked.contains(&self.repo_path(STATUS));
        Ok(KeptOut { copied: tracked.is_empty(), hidden })
    }

    /// Has every git leave out of commits what is to be in none. What a rule says already is not said again.
    ///
    /// # Errors
    /// [`Error::TaskFolder`] where a rule of the repository's own is in the way.
    pub(crate) fn keep_out(&self, project: &Project, what: KeptOut) -> Result<(), Error> {
        if !what.hidden && !what.copied {
            return Ok(());
        }
        let review = format!("{REVIEWS}/x");
        let probes: Vec<RepoPath> = [STATUS, PROMPT, &review]
            .into_iter()
            .filter(|file| what.copied || *file != PROMPT)
            .map(|file| self.repo_path(file))
            .collect();
        let all_are = || Ok::<_, Error>(project.repo.ignores(&self.top, &probes)?.len() == probes.len());
        if all_are()? {
            return Ok(());
        }
        let path = self.made()?.join(IGNORE);
        if path.symlink_metadata().is_err() {
            let rules = match what.copied {
                true => "*\n".to_owned(),
                false => format!("/{STATUS}\n/{REVIEWS}/\n/{IGNORE}\n"),
            };
            write_there(&path, format!("{WHY}{rules}").as_bytes())?;
        }
        if all_are()? {
            return Ok(());
        }
        Err(wrong(
            &path,
            format!("lets {STATUS} into commits, which is not tracked: track it, or have it ignored there"),
        ))
    }

    /// Takes out of the lane's branch what is to be in no commit and was put there by force. Whether there was anything.
    pub(crate) fn take_out(&self, project: &Project, what: KeptOut, message: &str) -> Result<bool, Error> {
        if !what.hidden && !what.copied {
            return Ok(false);
        }
        let mut tracked = project.repo.tracked_below(&self.top, &RepoPath::new(self.inside.clone()))?;
        let reviews = self.name_of(REVIEWS) + "/";
        let own = [self.repo_path(STATUS), self.repo_path(IGNORE)];
        tracked.retain(|path| {
            what.copied
                || own.contains(path) && self.is_ours(path)
                || path.as_bytes().starts_with(reviews.as_bytes())
        });
        if tracked.is_empty() {
            return Ok(false);
        }
        project.repo.untrack(&self.top, &tracked, message)?;
        Ok(true)
    }

    /// Whether a file that is there is one that was written for the lane only.
    fn is_ours(&self, path: &RepoPath) -> bool {
        !path.ends_with_name(IGNORE.as_bytes())
            || self.text(IGNORE).is_ok_and(|text| text.is_some_and(|text| text.starts_with(WHY)))
    }
}

/// Moves whatever there is, also to another file system as far as that is a file.
fn move_there(from: &Path, to: &Path) -> std::io::Result<()> {
    match std::fs::rename(from, to) {
        Err(e) if e.kind() == ErrorKind::CrossesDevices && from.symlink_metadata()?.is_file() => {
            std::fs::copy(from, to)?;
            File::open(to)?.sync_all()?;
            std::fs::remove_file(from)
        }
        done => done,
    }
}

/// Reads a file that is one, of no more than so many bytes.
fn read_file(path: &Path, most: u64) -> Result<(Vec<u8>, Metadata), Error> {
    let unreadable = |e: std::io::Error| wrong(path, format!("cannot be read: {e}"));
    let meta = path.symlink_metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err(wrong(path, "is no file".to_owned()));
    }
    // Something else may stand there by now: a link is not followed, and a pipe not waited for.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if !meta.is_file() || bytes.len() as u64 > most {
        return Err(wrong(path, "is too large".to_owned()));
    }
    Ok((bytes, meta))
}

fn wrong(path: &Path, why: String) -> Error {
    Error::TaskFolder { path: harmless::line(&path.to_string_lossy()), why }
}
