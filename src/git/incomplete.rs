//! Owns the question whether a worktree has what git needs to tell what was changed in it: HEAD, an index, files.

use std::path::Path;

use gix::index::File;
use gix::index::entry::{Flags, Mode, Stage};

use super::head_file::head_lossy;
use super::{Error, LEAST_FILES, Oid, Repo, RepoPath, Unusable};
use crate::explain::{quoted_path, set_aside};

/// What a worktree lacks. Git takes every file of such a one for deleted, so a commit there would delete them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// HEAD names neither a branch nor a commit, as after a power cut.
    Head,
    /// There is no index, or only the beginning of one.
    Index,
    /// The index names no file, though the commit has some.
    Entries,
    /// The index names files, and none of them is there.
    Files,
}

impl Missing {
    /// What is wrong with the worktree, in words that follow "lane 'x':".
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Missing::Head => "its worktree is broken: HEAD names neither a branch nor a commit",
            Missing::Index => "its worktree is broken: it has no index that git can read",
            Missing::Entries => "its worktree is broken: its index is empty and its commit is not",
            Missing::Files => "its worktree is broken: none of its files is there",
        }
    }

    /// The command that makes the worktree at `dir`, which is on `branch`, whole again. It leaves every file that is there as it is,
    /// where there is any.
    pub(crate) fn repair(self, repo: &Repo, dir: &Path, branch: &str) -> String {
        let dir_shown = quoted_path(dir);
        match self {
            Missing::Head => {
                let head = repo.git_dir_of(dir).map(|git_dir| git_dir.join("HEAD")).unwrap_or_default();
                format!("echo 'ref: refs/heads/{branch}' > {}", quoted_path(&head))
            }
            Missing::Index | Missing::Entries => {
                let how = if has_files(dir) { "reset" } else { "reset --hard" };
                let reset = format!("git -C {dir_shown} {how}");
                let index = repo.git_dir_of(dir).map(|git_dir| git_dir.join("index")).unwrap_or_default();
                match self == Missing::Index && index.exists() {
                    // What cannot be read is in the way of a new one.
                    true => format!("{} && {reset}", set_aside(&index, "unreadable")),
                    false => reset,
                }
            }
            Missing::Files => format!("git -C {dir_shown} checkout-index --all"),
        }
    }
}

/// Whether anything is in a worktree but its `.git`.
fn has_files(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|all| all.flatten().any(|entry| entry.file_name() != ".git"))
}

impl Repo {
    /// What the worktree at `dir` lacks, if anything. Without a commit, or where the commit has no files, it lacks nothing. A
    /// worktree that git does not know is for others to name.
    ///
    /// # Errors
    /// When the commit cannot be read.
    pub(crate) fn missing_in(&self, dir: &Path) -> Result<Option<Missing>, Error> {
        let Some(git_dir) = self.git_dir_of(dir).ok().filter(|git_dir| git_dir.is_dir()) else {
            return Ok(None);
        };
        if !self.is_reftable() {
            let head = head_lossy(&git_dir);
            if !head.starts_with("ref: ") && Oid::from_hex(head.as_bytes()).is_none() {
                return Ok(Some(Missing::Head));
            }
        }
        let commit = if self.is_reftable() { self.head_of(dir)? } else { self.head_read(dir) };
        let Some(commit) = commit else { return Ok(None) };
        let root = self.reader().tree(self.tree_of(commit)?.0)?;
        if root.iter().next().is_none() {
            return Ok(None);
        }
        let file = git_dir.join("index");
        let Some(entries) = entries_of(&file) else { return Ok(Some(Missing::Index)) };
        if entries == 0 {
            return Ok(Some(Missing::Entries));
        }
        // The first file that is there answers it; most commits have one at their top.
        let at_top = |(name, item): (&gix::bstr::BStr, super::trees::Item)| {
            item.mode.is_blob_or_symlink()
                && RepoPath::new(name.to_vec()).under(dir).symlink_metadata().is_ok()
        };
        if root.iter().any(at_top) {
            return Ok(None);
        }
        let options = gix::index::decode::Options::default();
        let Ok(index) = File::at(&file, self.gix.object_hash(), true, options) else {
            return Ok(Some(Missing::Index));
        };
        Ok((index.link().is_none() && has_none_of(&index, dir)).then_some(Missing::Files))
    }
}

impl Repo {
    /// Refuses the worktree at `dir` if it has no index, or only the beginning of one.
    ///
    /// # Errors
    /// [`Unusable::NoIndex`].
    pub(crate) fn require_index(&self, dir: &Path) -> Result<(), Error> {
        if entries_of(&self.git_dir_of(dir)?.join("index")).is_some() {
            return Ok(());
        }
        let repair = Missing::Index.repair(self, dir, "");
        Err(Error::Unusable(Unusable::NoIndex { dir: dir.to_owned(), repair }))
    }
}

/// How many entries the index at `file` has; none where it is no index. One in parts has as many as its parts.
fn entries_of(file: &Path) -> Option<u32> {
    use std::io::Read;
    let mut open = std::fs::File::open(file).ok()?;
    let mut head = [0; 12];
    open.read_exact(&mut head).ok()?;
    let count = u32::from_be_bytes(head[8..12].try_into().ok()?);
    if !head.starts_with(b"DIRC") {
        return None;
    }
    if count == 0 {
        let mut rest = Vec::new();
        open.read_to_end(&mut rest).ok()?;
        return Some(u32::from(rest.starts_with(b"link")));
    }
    Some(count)
}

/// Whether of all files that an index has in a worktree none is there. Of a few that may be what somebody wants, as long as anything
/// else is there.
fn has_none_of(index: &File, dir: &Path) -> bool {
    let mut tracked = 0;
    for entry in index.entries() {
        let is_file = matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE | Mode::SYMLINK);
        if !is_file || entry.flags.contains(Flags::SKIP_WORKTREE) || entry.stage() != Stage::Unconflicted {
            continue;
        }
        if RepoPath::new(entry.path(index).to_vec()).under(dir).symlink_metadata().is_ok() {
            return false;
        }
        tracked += 1;
    }
    tracked > 0 && (tracked >= LEAST_FILES || !has_files(dir))
}
