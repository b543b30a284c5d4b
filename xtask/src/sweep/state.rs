//! Owns the fingerprint of everything on disk at one moment, by which two moments that recovery cannot tell apart are known.
//!
//! Left out is what no program here decides anything by, and what differs from run to run: the numbers of the processes, the
//! random parts of temporary names, the bytes of git's objects (their names say them), and times. Of an index's stat data the
//! fingerprint has what git takes from it: which worktree's file an entry agrees with, and whether it is too young to tell.
//! Of the time of a lock of git's it has which steps had begun by then.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, Metadata};
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Outcome;
use super::place::Place;
use super::stat::Index;

/// Beginnings of names whose next six characters are drawn by lot.
const DRAWN: &[&[u8]] = &[b"tmp_obj_", b".tmp"];

/// By how much the time of a file may be older than the moment at which it was written.
const TICK: Duration = Duration::from_millis(20);

/// What is on disk, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// All of it.
    pub(super) all: u64,
    /// What git alone reads: its folder without this program's part of it.
    pub(super) git: u64,
}

/// The processes that may have left their numbers in names and contents: the command, and whatever recovered after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// By the command that was disturbed.
    Command(i32),
    /// By a recovery. Which one of several says nothing: all are gone.
    Recovery(i32),
}

/// The fingerprint of a place.
///
/// # Errors
/// When something cannot be read.
pub(super) fn state(place: &Place, left: &[Left]) -> Outcome<State> {
    let pids = left.iter().map(|left| match left {
        Left::Command(pid) => (pid.to_string().into_bytes(), "<command>"),
        Left::Recovery(pid) => (pid.to_string().into_bytes(), "<recovery>"),
    });
    let (trees, begun) = (place.trees()?, begun(&place.repo().join(".git"))?);
    let look = Look { top: place.top(), trees, begun, pids: pids.collect() };
    let mut parts = Vec::new();
    look.folder(&place.top(), &mut parts)?;
    parts.sort_unstable();
    let digest = |parts: &mut dyn Iterator<Item = u64>| {
        let mut hasher = DefaultHasher::new();
        parts.for_each(|part| part.hash(&mut hasher));
        hasher.finish()
    };
    let all = digest(&mut parts.iter().map(|p| p.0));
    Ok(State { all, git: digest(&mut parts.iter().filter(|p| p.1).map(|p| p.0)) })
}

struct Look {
    top: PathBuf,
    trees: Vec<PathBuf>,
    begun: Vec<SystemTime>,
    pids: Vec<(Vec<u8>, &'static str)>,
}

impl Look {
    /// Adds each thing below a folder, and whether it is git's.
    fn folder(&self, dir: &Path, parts: &mut Vec<(u64, bool)>) -> Outcome<()> {
        let below = dir.strip_prefix(self.top.join("repo/.git")).ok();
        let objects = below.is_some_and(|dir| dir.starts_with("objects"));
        let git = below.is_some_and(|dir| !dir.starts_with("proq"));
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            let meta = path.symlink_metadata()?;
            // The folders that objects are in are made as they are needed and never removed.
            if objects && meta.is_dir() {
                self.folder(&path, parts)?;
                continue;
            }
            let mut hasher = DefaultHasher::new();
            let name = path.strip_prefix(&self.top)?.as_os_str().as_bytes();
            self.masked(&without_lots(name)).hash(&mut hasher);
            meta.permissions().mode().hash(&mut hasher);
            if git && is_lock(&path) {
                since(&meta, &self.begun)?.hash(&mut hasher);
            }
            (meta.is_file() && !objects).then(|| meta.nlink()).hash(&mut hasher);
            if meta.is_symlink() {
                fs::read_link(&path)?.hash(&mut hasher);
            } else if meta.is_dir() {
                self.folder(&path, parts)?;
            } else if !meta.is_file() || objects {
                meta.len().hash(&mut hasher);
            } else {
                self.file(&path, &meta)?.hash(&mut hasher);
            }
            parts.push((hasher.finish(), git));
        }
        Ok(())
    }

    /// A file's content, as far as it counts.
    fn file(&self, path: &Path, meta: &Metadata) -> Outcome<Vec<u8>> {
        Ok(match Index::of(fs::read(path)?) {
            Ok(index) => index.meaning(&self.trees, meta),
            Err(bytes) => match folder_noted(path, &bytes, &self.top) {
                Some(folder) => folder.into_os_string().into_encoded_bytes(),
                None => self.masked(&bytes),
            },
        })
    }

    /// Bytes with a sign in place of each process's number.
    fn masked(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            match self.pids.iter().find(|(pid, _)| **pid == rest[..digits]) {
                Some((_, who)) if digits > 0 => out.extend_from_slice(who.as_bytes()),
                _ if digits > 0 => out.extend_from_slice(&rest[..digits]),
                _ => out.push(*first),
            }
            rest = &rest[digits.max(1)..];
        }
        out
    }
}

/// What a note of a step says of a folder that it has made: which one it is.
pub(super) fn note_of(folder: &Path) -> Option<String> {
    folder.symlink_metadata().ok().map(|m| format!("{} {}", m.dev(), m.ino()))
}

/// The folder, below `top`, that a file is such a note of; it has not got its place yet, or is a lane's.
pub(super) fn folder_noted(file: &Path, bytes: &[u8], top: &Path) -> Option<PathBuf> {
    if !file.starts_with(top.join("repo/.git/proq/work")) || bytes.is_empty() {
        return None;
    }
    let lanes = fs::read_dir(top.join("repo/.proq-worktrees")).into_iter().flatten().flatten();
    let mut all = lanes.map(|lane| lane.path()).chain([file.with_file_name("folder")]);
    let found = all.find(|folder| note_of(folder).is_some_and(|note| note.as_bytes() == bytes))?;
    found.strip_prefix(top).ok().map(Path::to_owned)
}

/// When each step began that is under way: its folder tells. Recovery takes a lock that git has left for the step's own only
/// when it is younger.
pub(super) fn begun(git_dir: &Path) -> Outcome<Vec<SystemTime>> {
    let mut out = Vec::new();
    for operation in fs::read_dir(git_dir.join("proq/work")).into_iter().flatten() {
        for step in fs::read_dir(operation?.path())? {
            let meta = step?.metadata()?;
            if meta.is_dir() {
                out.push(meta.created().or_else(|_| meta.modified())?);
            }
        }
    }
    Ok(out)
}

/// How many of the steps began before a file was written.
pub(super) fn since(meta: &Metadata, begun: &[SystemTime]) -> Outcome<usize> {
    let time = meta.modified()? + TICK;
    Ok(begun.iter().filter(|began| **began <= time).count())
}

/// Whether a file is a lock of git's on something other than an index.
pub(super) fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "lock") && path.file_name().is_none_or(|name| name != "index.lock")
}

/// A name without the parts of it that are drawn by lot.
fn without_lots(name: &[u8]) -> Vec<u8> {
    let mut out = name.to_vec();
    for drawn in DRAWN {
        let Some(at) = out.windows(drawn.len()).position(|w| w == *drawn) else { continue };
        let begin = at + drawn.len();
        if let Some(lot) = out.get_mut(begin..begin + 6)
            && lot.iter().all(u8::is_ascii_alphanumeric)
        {
            lot.fill(b'?');
        }
    }
    out
}
