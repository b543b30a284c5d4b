//! Tree of a worktree's uncommitted content, written without changing the repository, the index or a file.

use std::path::Path;

use crate::base::parallel::parallel_map;
use crate::base::path::nul_separated;
use crate::index::scratch_index;
use crate::program::command::Program;
use crate::repository::objects::TempObjectStore;
use crate::status::worktree_status::{StatusKind, WorktreeStatus};
use crate::{Error, Repo, RepoPath, TreeId};

/// Worktree whose uncommitted content is to be written to a tree.
#[derive(Debug)]
pub struct UncommittedWorktree<'a> {
    /// Top of the worktree.
    pub dir: &'a Path,
    /// Private git directory of the worktree.
    pub git_dir: std::path::PathBuf,
    /// Differences from HEAD.
    pub status: &'a WorktreeStatus,
}

/// Writes one tree for each worktree: HEAD's content with all uncommitted changes. Objects are written to
/// `temp_objects`, and copies of the indexes to `scratch`. The results are in the order of `worktrees`.
pub fn write_uncommitted_trees(
    repo: &Repo,
    temp_objects: &TempObjectStore,
    scratch: &Path,
    worktrees: &[UncommittedWorktree<'_>],
) -> Vec<Result<TreeId, Error>> {
    let program = repo.program();
    let numbered: Vec<(usize, &UncommittedWorktree<'_>)> = worktrees.iter().enumerate().collect();
    parallel_map(&numbered, |(at, worktree)| {
        let index = scratch.join(format!("index-{at}"));
        write_uncommitted_tree(program, temp_objects, &index, worktree)
    })
}

fn write_uncommitted_tree(
    program: &Program,
    temp_objects: &TempObjectStore,
    index: &Path,
    worktree: &UncommittedWorktree<'_>,
) -> Result<TreeId, Error> {
    scratch_index::copy_with_mtime(&worktree.git_dir.join("index"), index)?;
    let git_command = || {
        // A split index would write its shared file next to the real index.
        let command = program.command_in(worktree.dir).args([
            "-c",
            "core.splitIndex=false",
            "-c",
            "core.fsmonitor=false",
        ]);
        TempObjectStore::redirect_writes(Some(temp_objects), command).use_index(index)
    };
    let paths = unstaged_paths(worktree.status);
    if !paths.is_empty() {
        git_command()
            .args(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"])
            .input(nul_separated(&paths))
            .run()?;
    }
    let tree_id = git_command().run_write_tree();
    drop(std::fs::remove_file(index));
    tree_id
}

/// Returns the paths whose files differ from the index. Nested repositories are left out, as in a commit.
fn unstaged_paths(status: &WorktreeStatus) -> Vec<RepoPath> {
    let differs = status.entries.iter().filter(|entry| match entry.kind {
        StatusKind::Tracked { unstaged, deleted, .. } => (unstaged || deleted) && !entry.is_submodule,
        StatusKind::Unmerged => !entry.is_submodule,
        StatusKind::Untracked => !entry.is_nested_repo,
    });
    differs.map(|entry| entry.path.clone()).collect()
}

impl Repo {
    /// Returns whether HEAD of the worktree at `dir` names this branch.
    pub fn is_head_on_branch(&self, dir: &Path, branch: &str) -> bool {
        let git_dir = self.worktree_git_dir(dir);
        git_dir
            .and_then(|git_dir| self.head_branch(dir, &git_dir))
            .is_ok_and(|b| b.as_deref() == Some(branch))
    }
}
