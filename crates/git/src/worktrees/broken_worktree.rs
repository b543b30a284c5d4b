//! Detection of broken worktrees: HEAD, the index or all files are missing, so that git cannot see changes in
//! them.

use std::path::Path;

use gix::index::File;
use gix::index::entry::{Flags, Mode, Stage};
use proq_base::explain::{rename_command, shell_quote_path};

use crate::base::unusable::UnusableRepoError;
use crate::history::deletions::MIN_FILES_FOR_MASS_DELETION;
use crate::repository::head_file::read_head_lossy;
use crate::{Error, Oid, Repo, RepoPath};

/// Part that a worktree lacks. Git reports every file of such a worktree as deleted, so a commit there would
/// delete them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorktreeDefect {
    /// HEAD names neither a branch nor a commit, as after a power failure.
    NoValidHead,
    /// The index is missing or truncated.
    NoIndex,
    /// The index is empty, although the commit has files.
    EmptyIndex,
    /// The index has files, and none of them exists.
    NoFiles,
}

impl WorktreeDefect {
    /// Describes the defect in words that follow "lane 'x':".
    pub fn describe(self) -> &'static str {
        match self {
            WorktreeDefect::NoValidHead => "its worktree is broken: HEAD names neither a branch nor a commit",
            WorktreeDefect::NoIndex => "its worktree is broken: it has no index that git can read",
            WorktreeDefect::EmptyIndex => "its worktree is broken: its index is empty and its commit is not",
            WorktreeDefect::NoFiles => "its worktree is broken: all of its files are missing",
        }
    }

    /// Returns the command that repairs the worktree at `dir`, which is on `branch`. The command does not
    /// change existing files.
    pub fn repair_command(self, repo: &Repo, dir: &Path, branch: &str) -> String {
        let dir_shown = shell_quote_path(dir);
        match self {
            WorktreeDefect::NoValidHead => {
                let head = repo.worktree_git_dir(dir).map(|git_dir| git_dir.join("HEAD")).unwrap_or_default();
                format!("echo 'ref: refs/heads/{branch}' > {}", shell_quote_path(&head))
            }
            WorktreeDefect::NoIndex | WorktreeDefect::EmptyIndex => {
                let how = if has_files(dir) { "reset" } else { "reset --hard" };
                let reset = format!("git -C {dir_shown} {how}");
                let index =
                    repo.worktree_git_dir(dir).map(|git_dir| git_dir.join("index")).unwrap_or_default();
                match self == WorktreeDefect::NoIndex && index.exists() {
                    // An unreadable index prevents git from writing a new one.
                    true => format!("{} && {reset}", rename_command(&index, "unreadable")),
                    false => reset,
                }
            }
            WorktreeDefect::NoFiles => format!("git -C {dir_shown} checkout-index --all"),
        }
    }
}

/// Returns whether a worktree contains anything besides its `.git`.
fn has_files(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|all| all.flatten().any(|entry| entry.file_name() != ".git"))
}

impl Repo {
    /// Returns the defect of the worktree at `dir`, if any. A worktree without a commit, or with a commit
    /// without files, has no defect. A worktree that git does not know is not reported here.
    ///
    /// # Errors
    /// Fails if the commit cannot be read.
    pub fn find_worktree_defect(&self, dir: &Path) -> Result<Option<WorktreeDefect>, Error> {
        let Some(git_dir) = self.worktree_git_dir(dir).ok().filter(|git_dir| git_dir.is_dir()) else {
            return Ok(None);
        };
        if !self.is_reftable() {
            let head = read_head_lossy(&git_dir);
            if !head.starts_with("ref: ") && Oid::from_hex(head.as_bytes()).is_none() {
                return Ok(Some(WorktreeDefect::NoValidHead));
            }
        }
        let commit = match self.is_reftable() {
            true => self.head_commit(dir)?,
            false => self.read_head_commit_in(dir, &git_dir),
        };
        let Some(commit) = commit else { return Ok(None) };
        let root = self.tree_reader().tree(self.tree_of(commit)?.0)?;
        if root.iter().next().is_none() {
            return Ok(None);
        }
        let file = git_dir.join("index");
        let Some(entries) = count_entries(&file) else { return Ok(Some(WorktreeDefect::NoIndex)) };
        if entries == 0 {
            return Ok(Some(WorktreeDefect::EmptyIndex));
        }
        // One existing file is enough; most commits have one at the top.
        let exists_at_top = |(name, item): (&gix::bstr::BStr, crate::repository::tree_reader::TreeItem)| {
            item.mode.is_blob_or_symlink()
                && RepoPath::new(name.to_vec()).to_fs_path(dir).symlink_metadata().is_ok()
        };
        if root.iter().any(exists_at_top) {
            return Ok(None);
        }
        let options = gix::index::decode::Options::default();
        let Ok(index) = File::at(&file, self.gix.object_hash(), true, options) else {
            return Ok(Some(WorktreeDefect::NoIndex));
        };
        Ok((index.link().is_none() && lacks_all_files(&index, dir)).then_some(WorktreeDefect::NoFiles))
    }
}

impl Repo {
    /// Refuses the worktree at `dir` if its index is missing or truncated.
    ///
    /// # Errors
    /// Returns [`UnusableRepoError::NoIndex`].
    pub fn require_index(&self, dir: &Path) -> Result<(), Error> {
        if count_entries(&self.worktree_git_dir(dir)?.join("index")).is_some() {
            return Ok(());
        }
        let repair = WorktreeDefect::NoIndex.repair_command(self, dir, "");
        Err(Error::Unusable(UnusableRepoError::NoIndex { dir: dir.to_owned(), repair_command: repair }))
    }
}

/// Returns the number of entries in the index at `file`; `None` if the file is not an index. A split index
/// counts as one entry if only its shared index has entries.
fn count_entries(file: &Path) -> Option<u32> {
    use std::io::Read;
    let mut index_file = std::fs::File::open(file).ok()?;
    let mut header = [0; 12];
    index_file.read_exact(&mut header).ok()?;
    let count = u32::from_be_bytes(header[8..12].try_into().ok()?);
    if !header.starts_with(b"DIRC") {
        return None;
    }
    if count == 0 {
        let mut body = Vec::new();
        index_file.read_to_end(&mut body).ok()?;
        return Some(u32::from(body.starts_with(b"link")));
    }
    Some(count)
}

/// Returns whether none of the files that an index records exists in the worktree at `dir`. Returns false for
/// an index of only a few files if the worktree contains anything else: their absence may be intended.
fn lacks_all_files(index: &File, dir: &Path) -> bool {
    let mut tracked = 0;
    for entry in index.entries() {
        let is_file = matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE | Mode::SYMLINK);
        if !is_file || entry.flags.contains(Flags::SKIP_WORKTREE) || entry.stage() != Stage::Unconflicted {
            continue;
        }
        if RepoPath::new(entry.path(index).to_vec()).to_fs_path(dir).symlink_metadata().is_ok() {
            return false;
        }
        tracked += 1;
    }
    tracked > 0 && (tracked >= MIN_FILES_FOR_MASS_DELETION || !has_files(dir))
}
