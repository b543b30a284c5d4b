//! Owns looking over what lies below `proq/`, for whoever checks it: names, half-written files, what the disk can do.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access as Rights, CWD, RenameFlags, access, renameat_with, statvfs};
use rustix::io::Errno;

use super::layout::new_id;
use super::{Error, Layout, LockName, Locks, Moment};

/// Where files that nobody finished writing are put. The point keeps it out of the trash's own entries.
const ASIDE: &str = ".unfinished";

/// The rights of everybody but the owner.
const OTHERS: u32 = 0o077;

/// What a file system can do, tried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// A second taker of a lock is refused.
    pub(crate) locks: bool,
    /// A rename can be told to replace nothing.
    pub(crate) careful_rename: bool,
    /// A file can have two names.
    pub(crate) hard_links: bool,
    /// `A` and `a` are one file.
    pub(crate) ignores_case: bool,
    /// An accent as a letter of its own is the same file as one that is not.
    pub(crate) merges_accents: bool,
}

/// Whether something is at `path`, or may be: only what is certain to be absent is not.
pub(crate) fn is_there(path: &Path) -> bool {
    let gone = |e: std::io::Error| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    !path.symlink_metadata().is_err_and(gone)
}

/// What keeps this user from reading the file or folder at `path`: the first folder above it that may not be entered, or it itself.
/// None where it may be read, or is certain to be absent.
pub(crate) fn closed(path: &Path) -> Option<PathBuf> {
    let is_dir = path.symlink_metadata().map_or(true, |meta| meta.is_dir());
    let wanted = if is_dir { Rights::READ_OK | Rights::EXEC_OK } else { Rights::READ_OK };
    if access(path, wanted) != Err(Errno::ACCESS) {
        return None;
    }
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    let shut = above.into_iter().rev().find(|dir| access(*dir, Rights::EXEC_OK) == Err(Errno::ACCESS));
    Some(shut.unwrap_or(path).to_owned())
}

/// Who may look at a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    /// Whether it is this user's.
    pub(crate) mine: bool,
    /// Whether nobody else may open it.
    pub(crate) private: bool,
}

impl Layout {
    /// The folders that hold one thing each, by name: `lanes`, `history`, `snaps`, `trash`, `work`. What begins with a
    /// point is on its way.
    pub(crate) fn names_in(&self, what: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root().join(what)).into_iter().flatten().flatten();
        let mut out: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        out.retain(|name| !name.starts_with('.'));
        out.sort();
        out
    }

    /// One of these folders.
    pub(crate) fn folder_of(&self, what: &str, name: &str) -> PathBuf {
        self.root().join(what).join(name)
    }

    /// Files beside records that were being written and never got their name: `.lane.toml.<id>`.
    pub(crate) fn half_written(&self) -> Vec<PathBuf> {
        let mut out = Vec::new();
        unfinished(self.root(), 0, &mut out);
        for (what, depth) in [
            ("lanes", 2),
            ("history", 2),
            ("snaps", 1),
            ("trash", 1),
            ("cache", 1),
            ("plans", 1),
            ("needs", 0),
            ("replaced", 0),
        ] {
            unfinished(&self.root().join(what), depth, &mut out);
        }
        out.sort();
        out
    }

    /// Moves a file that nobody finished writing out of the way. It stays readable.
    pub(crate) fn put_aside(&self, file: &Path) -> Result<(), Error> {
        std::fs::rename(file, self.place_aside(file)?).map_err(Error::io("move aside", file))
    }

    /// A free name for a file where what is out of the way stays readable for as long as the trash is kept.
    pub(crate) fn place_aside(&self, file: &Path) -> Result<PathBuf, Error> {
        let dir = self.trash().join(ASIDE);
        super::make_private(&dir)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        Ok(dir.join(format!("{}-{}", name.trim_start_matches('.'), new_id())))
    }

    /// What was put aside.
    pub(crate) fn put_aside_before(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.trash().join(ASIDE)).into_iter().flatten().flatten();
        let mut out: Vec<PathBuf> = entries.map(|e| e.path()).collect();
        out.sort();
        out
    }

    /// Lets nobody else look below `proq/`.
    pub(crate) fn close_to_others(&self) -> Result<(), Error> {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(self.root(), mode).map_err(Error::io("close to others", self.root()))
    }

    /// Who may look below `proq/`; none when there is nothing yet.
    pub(crate) fn access(&self) -> Option<Access> {
        let meta = std::fs::metadata(self.root()).ok()?;
        let mine = meta.uid() == rustix::process::geteuid().as_raw();
        Some(Access { mine, private: (meta.mode() & OTHERS) == 0 })
    }
}

fn unfinished(dir: &Path, depth: usize, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 && !name.starts_with('.') => {
                unfinished(&entry.path(), depth - 1, out);
            }
            Ok(kind) if kind.is_file() && name.starts_with('.') && maker_of(&name).is_some() => {
                out.push(entry.path());
            }
            _ => {}
        }
    }
}

/// The process that made an id, which ends `time-process-count`.
pub(crate) fn maker_of(id: &str) -> Option<u32> {
    origin(id).map(|(_, process)| process)
}

/// When an id was made.
pub(crate) fn made_at(id: &str) -> Option<Moment> {
    origin(id).map(|(at, _)| at)
}

fn origin(id: &str) -> Option<(Moment, u32)> {
    let mut parts = id.rsplitn(3, '-');
    parts.next()?.parse::<u32>().ok()?;
    let process = parts.next()?.parse().ok()?;
    let rest = parts.next()?;
    let time = rest.get(rest.len().checked_sub("20260102-030405".len())?..)?;
    Some((Moment::from_compact(time)?, process))
}

impl Locks {
    /// Whether some command is at work right now: it holds one of the locks that are held for a short time. Tickets
    /// are not asked: they are held for as long as a landing takes, and by those that only wait.
    pub(crate) fn anybody_at_work(&self) -> bool {
        let store = self.path(&LockName::Store);
        let dir = store.parent().unwrap_or(Path::new(""));
        std::fs::read_dir(dir).into_iter().flatten().flatten().any(|entry| {
            let path = entry.path();
            path.extension().is_some_and(|e| e == "lock") && is_locked(&path)
        })
    }
}

fn is_locked(path: &Path) -> bool {
    crate::regular_file::open_record(path)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Tries out what the file system of `dir` can do, in a folder that is gone afterwards.
pub(crate) fn try_out(dir: &Path) -> std::io::Result<Abilities> {
    let probe = dir.join(format!(".proq-probe-{}", new_id()));
    std::fs::create_dir(&probe)?;
    let found = try_in(&probe);
    std::fs::remove_dir_all(&probe)?;
    found
}

fn try_in(dir: &Path) -> std::io::Result<Abilities> {
    let (one, two) = (dir.join("a"), dir.join("b"));
    let first = File::create_new(&one)?;
    let second = File::open(&one)?;
    let locks = first.try_lock().is_ok() && matches!(second.try_lock(), Err(TryLockError::WouldBlock));
    let hard_links = std::fs::hard_link(&one, &two).is_ok();
    std::fs::write(&two, "")?;
    let careful_rename = renameat_with(CWD, &one, CWD, dir.join("c"), RenameFlags::NOREPLACE).is_ok()
        && renameat_with(CWD, &two, CWD, dir.join("c"), RenameFlags::NOREPLACE).is_err();
    std::fs::write(dir.join("e\u{301}"), "")?;
    Ok(Abilities {
        locks,
        careful_rename,
        hard_links,
        ignores_case: dir.join("B").exists(),
        merges_accents: dir.join("\u{e9}").exists(),
    })
}

/// Bytes that are free for this user on the disk of `dir`; none when that is not known.
pub(crate) fn free_space(dir: &Path) -> Option<u64> {
    statvfs(dir).ok().map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_which_process_made_it() {
        assert_eq!(maker_of(".lane.toml.20260102-030405-123-0"), Some(123));
        assert_eq!(maker_of(&new_id()), Some(std::process::id()));
        let made = made_at(&format!("some-lane-{}", new_id())).unwrap();
        assert!(super::super::now().since(made).as_secs() < 60);
        for text in ["", ".gitignore", "lane-1-2", "20260102-030405-x-0", "a-b-c"] {
            assert_eq!(maker_of(text), None, "{text}");
        }
    }

    #[test]
    fn trying_out_leaves_nothing_and_finds_what_any_local_disk_can() {
        let dir = tempfile::tempdir().unwrap();
        let found = try_out(dir.path()).unwrap();
        assert!(found.locks && found.hard_links, "{found:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(free_space(dir.path()).is_some());
    }
}
