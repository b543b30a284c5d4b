//! Fingerprint of everything on disk at one moment. Two moments that recovery cannot distinguish have the
//! same fingerprint.
//!
//! It leaves out what no program here depends on and what differs between runs: process numbers, the random
//! parts of temporary names, the bytes of git's objects (their names identify them), and times. Of an index's
//! stat data it contains what git derives from it: which worktree's file an entry matches, and whether it is
//! racily clean. Of the time of a lock of git's it contains which steps had started by then.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, Metadata};
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Outcome;
use super::fixture::Fixture;
use super::index_stat::Index;

/// Prefixes of names whose next six characters are random.
const RANDOM_NAME_PREFIXES: &[&[u8]] = &[b"tmp_obj_", b".tmp"];

/// How much older the time of a file may be than the moment of its writing.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(20);

/// Fingerprint of a fixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint {
    /// Hash of everything.
    pub(super) all: u64,
    /// Hash of what only git reads: its folder without git-proq's part of it.
    pub(super) git: u64,
}

/// Process whose number may occur in names and contents: the command, or a recovery after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownProcess {
    /// The disturbed command.
    Command(i32),
    /// A recovery. Several are not distinguished: all have exited.
    Recovery(i32),
}

/// Computes the fingerprint of a fixture.
///
/// # Errors
/// Fails if a file cannot be read.
pub(super) fn take_fingerprint(fixture: &Fixture, processes: &[KnownProcess]) -> Outcome<Fingerprint> {
    let pids = processes.iter().map(|process| match process {
        KnownProcess::Command(pid) => (pid.to_string().into_bytes(), "<command>"),
        KnownProcess::Recovery(pid) => (pid.to_string().into_bytes(), "<recovery>"),
    });
    let (trees, step_starts) = (fixture.all_worktrees()?, step_start_times(&fixture.repo().join(".git"))?);
    let scanner = Scanner { top: fixture.root(), trees, step_starts, pids: pids.collect() };
    let mut parts = Vec::new();
    scanner.add_folder(&fixture.root(), &mut parts)?;
    parts.sort_unstable();
    let digest = |parts: &mut dyn Iterator<Item = u64>| {
        let mut hasher = DefaultHasher::new();
        parts.for_each(|part| part.hash(&mut hasher));
        hasher.finish()
    };
    let all = digest(&mut parts.iter().map(|p| p.0));
    Ok(Fingerprint { all, git: digest(&mut parts.iter().filter(|p| p.1).map(|p| p.0)) })
}

struct Scanner {
    top: PathBuf,
    trees: Vec<PathBuf>,
    step_starts: Vec<SystemTime>,
    pids: Vec<(Vec<u8>, &'static str)>,
}

impl Scanner {
    /// Adds the hash of each entry below a folder, and whether it belongs to git.
    fn add_folder(&self, dir: &Path, parts: &mut Vec<(u64, bool)>) -> Outcome<()> {
        let below = dir.strip_prefix(self.top.join("repo/.git")).ok();
        let objects = below.is_some_and(|dir| dir.starts_with("objects"));
        let git = below.is_some_and(|dir| !dir.starts_with("proq"));
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            let meta = path.symlink_metadata()?;
            // Folders of objects are created as needed and never removed.
            if objects && meta.is_dir() {
                self.add_folder(&path, parts)?;
                continue;
            }
            let mut hasher = DefaultHasher::new();
            let name = path.strip_prefix(&self.top)?.as_os_str().as_bytes();
            self.mask_pids(&without_random_parts(name)).hash(&mut hasher);
            meta.permissions().mode().hash(&mut hasher);
            if git && is_lock(&path) {
                steps_started_before(&meta, &self.step_starts)?.hash(&mut hasher);
            }
            (meta.is_file() && !objects).then(|| meta.nlink()).hash(&mut hasher);
            if meta.is_symlink() {
                fs::read_link(&path)?.hash(&mut hasher);
            } else if meta.is_dir() {
                self.add_folder(&path, parts)?;
            } else if !meta.is_file() || objects {
                meta.len().hash(&mut hasher);
            } else {
                self.file_content(&path, &meta)?.hash(&mut hasher);
            }
            parts.push((hasher.finish(), git));
        }
        Ok(())
    }

    /// Returns a file's content, as far as it matters.
    fn file_content(&self, path: &Path, meta: &Metadata) -> Outcome<Vec<u8>> {
        Ok(match Index::parse(fs::read(path)?) {
            Ok(index) => index.stat_meaning(&self.trees, meta),
            Err(bytes) => match noted_folder(path, &bytes, &self.top) {
                Some(folder) => folder.into_os_string().into_encoded_bytes(),
                None => self.mask_pids(&bytes),
            },
        })
    }

    /// Replaces each process number with a placeholder.
    fn mask_pids(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            match self.pids.iter().find(|(pid, _)| **pid == rest[..digits]) {
                Some((_, placeholder)) if digits > 0 => out.extend_from_slice(placeholder.as_bytes()),
                _ if digits > 0 => out.extend_from_slice(&rest[..digits]),
                _ => out.push(*first),
            }
            rest = &rest[digits.max(1)..];
        }
        out
    }
}

/// Returns the note in which a step records which folder it created.
pub(super) fn folder_note(folder: &Path) -> Option<String> {
    folder.symlink_metadata().ok().map(|m| format!("{} {}", m.dev(), m.ino()))
}

/// Returns the folder, below `top`, that a file is such a note of: one not yet moved to its place, or a
/// lane's.
pub(super) fn noted_folder(file: &Path, bytes: &[u8], top: &Path) -> Option<PathBuf> {
    if !file.starts_with(top.join("repo/.git/proq/work")) || bytes.is_empty() {
        return None;
    }
    let lanes = fs::read_dir(top.join("repo/.proq-worktrees")).into_iter().flatten().flatten();
    let mut all = lanes.map(|lane| lane.path()).chain([file.with_file_name("folder")]);
    let found = all.find(|folder| folder_note(folder).is_some_and(|note| note.as_bytes() == bytes))?;
    found.strip_prefix(top).ok().map(Path::to_owned)
}

/// Returns when each running step started, according to its folder. Recovery attributes a lock of git's to
/// the step only if the lock is younger.
pub(super) fn step_start_times(git_dir: &Path) -> Outcome<Vec<SystemTime>> {
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

/// Returns how many of the steps started before a file was written.
pub(super) fn steps_started_before(meta: &Metadata, step_starts: &[SystemTime]) -> Outcome<usize> {
    let time = meta.modified()? + CLOCK_TOLERANCE;
    Ok(step_starts.iter().filter(|start| **start <= time).count())
}

/// Returns whether a file is a lock of git's on something other than an index.
pub(super) fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "lock") && path.file_name().is_none_or(|name| name != "index.lock")
}

/// Returns a name without its random parts.
fn without_random_parts(name: &[u8]) -> Vec<u8> {
    let mut out = name.to_vec();
    for prefix in RANDOM_NAME_PREFIXES {
        let Some(at) = out.windows(prefix.len()).position(|w| w == *prefix) else { continue };
        let begin = at + prefix.len();
        if let Some(random_part) = out.get_mut(begin..begin + 6)
            && random_part.iter().all(u8::is_ascii_alphanumeric)
        {
            random_part.fill(b'?');
        }
    }
    out
}
