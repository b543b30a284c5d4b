//! Owns finding repositories inside a folder that hold work which is in no other place: git knows nothing of them where their folder is
//! ignored, and their commits go with it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::index::File;
use gix::index::decode::Options;
use gix::index::entry::Mode;
use gix::index::entry::stat::Options as StatOptions;
use gix::index::entry::{Flags, Stat};
use gix::index::fs::Metadata;

use super::{Error, Repo};

/// A repository in a folder of somebody else's.
pub(crate) struct Nested {
    /// The folder that it lies in.
    pub(crate) folder: PathBuf,
    /// Its own git directory.
    pub(crate) git_dir: PathBuf,
    /// The folder of its files; none for a bare one.
    files: Option<PathBuf>,
}

impl Repo {
    /// The first repository below the worktree `top`, whose git directory is `admin`, that has work of its own, see
    /// [`Repo::work_in`].
    pub(crate) fn nested_work(&self, top: &Path, admin: &Path) -> Option<Nested> {
        let mut folders = vec![top.to_owned()];
        while let Some(folder) = folders.pop() {
            let names: Vec<PathBuf> = std::fs::read_dir(&folder)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect();
            if folder != top
                && let Some(found) = self.work_in(&folder, admin)
            {
                return Some(found);
            }
            if !is_bare(&folder) {
                let is_folder = |path: &PathBuf| {
                    path.file_name() != Some(OsStr::new(".git"))
                        && path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
                };
                folders.extend(names.into_iter().filter(is_folder));
            }
        }
        None
    }

    /// The repository in a folder of the worktree whose git directory is `admin`, if it has commits which none of its remotes has, or
    /// changes that are in none of its commits. One that cannot be read counts as such. Nothing that its settings name is run.
    pub(crate) fn work_in(&self, folder: &Path, admin: &Path) -> Option<Nested> {
        let nested = if is_bare(folder) {
            Nested { folder: folder.to_owned(), git_dir: folder.to_owned(), files: None }
        } else if folder.join(".git").symlink_metadata().is_ok() {
            Nested::at(folder, admin)
        } else {
            return None;
        };
        self.has_work(&nested).unwrap_or(true).then_some(nested)
    }

    fn has_work(&self, nested: &Nested) -> Result<bool, Error> {
        let dir = nested.files.as_ref().unwrap_or(&nested.git_dir);
        let call = || {
            let call = self.git_in(dir).env("GIT_DIR", &nested.git_dir).env("GIT_WORK_TREE", dir);
            // A commit that is not there would be fetched, by a command of theirs.
            let off = ["protocol.allow=never", "core.fsmonitor=false", "core.hooksPath=/dev/null"];
            call.env("GIT_NO_LAZY_FETCH", "1").args(off.iter().flat_map(|set| ["-c", set]))
        };
        let says = |args: &[&str]| Ok::<_, Error>(!call().args(args).accept(&[1]).run()?.stdout.is_empty());
        // A linked worktree shares its commits, but for those that only it is at; a submodule of a lane is a copy.
        let is_linked = nested.git_dir.join("commondir").is_file();
        let is_born = says(&["rev-parse", "--verify", "--quiet", "HEAD"])?;
        let own: &[&str] = if is_linked && is_born {
            &["rev-list", "--max-count=1", "HEAD", "--not", "--branches", "--tags", "--remotes"]
        } else {
            &[
                "rev-list",
                "--max-count=1",
                "--all",
                "--reflog",
                "--not",
                "--remotes",
                "--glob=refs/proq/start*",
            ]
        };
        // A clone of one tag has no other ref that says where its commits are from; a mirror has none.
        let is_shallow = nested.git_dir.join("shallow").is_file();
        let own: Vec<&str> = own.iter().copied().chain(is_shallow.then_some("--tags")).collect();
        if says(&["config", "--type=bool", "--get-regexp", r"^remote\..*\.mirror$", "^true$"])? {
            return Ok(false);
        }
        if (is_born || !is_linked) && says(&own)? {
            return Ok(true);
        }
        let Some(files) = &nested.files else { return Ok(false) };
        let staged =
            if is_born { &["diff-index", "--cached", "--name-only", "HEAD"][..] } else { &["ls-files"] };
        let others = ["ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory"];
        Ok(says(staged)? || has_changes(self, &nested.git_dir, files) || says(&others)?)
    }
}

impl Nested {
    /// The repository whose files are in `folder`; that of a submodule may have moved with the worktree around it, to `admin`.
    fn at(folder: &Path, admin: &Path) -> Nested {
        let dot = folder.join(".git");
        let files = Some(folder.to_owned());
        let Ok(text) = crate::regular_file::record(&dot) else {
            return Nested { folder: folder.to_owned(), git_dir: dot, files };
        };
        let text = text.strip_prefix(b"gitdir: ").unwrap_or(&text);
        let named = folder.join(OsStr::from_bytes(text.trim_ascii_end()));
        let mut parts = named.components();
        let below = parts
            .by_ref()
            .find(|part| part.as_os_str() == "modules")
            .map(|_| admin.join("modules").join(parts));
        let moved = below.filter(|moved| !named.exists() && moved.join("HEAD").is_file());
        Nested { folder: folder.to_owned(), git_dir: moved.unwrap_or(named), files }
    }
}

/// Whether a folder is a repository without files of its own.
fn is_bare(folder: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).symlink_metadata().is_ok())
}

/// Whether a file of an index differs in length or time from what the index notes of it. Git would run filters to know more.
fn has_changes(repo: &Repo, git_dir: &Path, files: &Path) -> bool {
    let path = git_dir.join("index");
    if !path.exists() {
        return false;
    }
    let Ok(index) = File::at(&path, repo.gix.object_hash(), true, Options::default()) else { return true };
    let same = StatOptions { trust_ctime: false, check_stat: false, use_nsec: true, use_stdev: false };
    index.entries().iter().any(|entry| {
        if entry.mode == Mode::COMMIT || entry.flags.contains(Flags::SKIP_WORKTREE) {
            return false;
        }
        let file = files.join(OsStr::from_bytes(entry.path(&index)));
        let meta = Metadata::from_path_no_follow(&file).ok();
        let stat = meta.and_then(|meta| Stat::from_fs(&meta).ok());
        !stat.is_some_and(|stat| entry.stat.matches(&stat, same))
    })
}
