//! Owns the tree that a worktree would commit as it lies there, made without a change to the repository, the index or a file.

use std::path::Path;

use super::path::nul_separated;
use super::status::{Dirt, Kind};
use super::threads::in_threads;
use super::{Error, Oid, Program, Repo, RepoPath, ThrowAway, index};

/// A worktree with uncommitted work.
#[derive(Debug)]
pub(crate) struct Uncommitted<'a> {
    /// Its top.
    pub(crate) dir: &'a Path,
    /// Its own git directory.
    pub(crate) git_dir: std::path::PathBuf,
    /// What differs from HEAD in it.
    pub(crate) dirt: &'a Dirt,
}

/// The trees of many worktrees. Objects go to `into`, copies of their indexes to `scratch`.
pub(crate) fn trees_of(
    repo: &Repo,
    into: &ThrowAway,
    scratch: &Path,
    all: &[Uncommitted<'_>],
) -> Vec<Result<Oid, Error>> {
    let program = repo.program();
    let numbered: Vec<(usize, &Uncommitted<'_>)> = all.iter().enumerate().collect();
    in_threads(&numbered, |(at, one)| {
        let index = scratch.join(format!("index-{at}"));
        tree_of(program, into, &index, one)
    })
}

fn tree_of(program: &Program, into: &ThrowAway, index: &Path, one: &Uncommitted<'_>) -> Result<Oid, Error> {
    index::copy(&one.git_dir.join("index"), index)?;
    let call = |args: &[&str]| {
        // A shared index would be written beside the real one.
        let call =
            program.in_dir(one.dir).args(["-c", "core.splitIndex=false", "-c", "core.fsmonitor=false"]);
        ThrowAway::apply(Some(into), call).args(args).index(index)
    };
    let paths = changed(one.dirt);
    if !paths.is_empty() {
        call(&["update-index", "--add", "--remove", "--replace", "-z", "--stdin"])
            .input(nul_separated(&paths))
            .run()?;
    }
    let made = call(&["write-tree"]).run_for_id();
    drop(std::fs::remove_file(index));
    made
}

/// The paths whose files are not in the index as they lie there. Repositories of their own stay out, as with a commit.
fn changed(dirt: &Dirt) -> Vec<RepoPath> {
    let differs = dirt.entries.iter().filter(|entry| match entry.kind {
        Kind::Tracked { unstaged, deleted, .. } => (unstaged || deleted) && !entry.submodule,
        Kind::Unmerged => !entry.submodule,
        Kind::Untracked => !entry.nested,
    });
    differs.map(|entry| entry.path.clone()).collect()
}

impl Repo {
    /// Whether HEAD of the worktree at `dir` names this branch.
    pub(crate) fn is_on(&self, dir: &Path, branch: &str) -> bool {
        let git_dir = self.git_dir_of(dir);
        git_dir
            .and_then(|git_dir| self.head_branch(dir, &git_dir))
            .is_ok_and(|b| b.as_deref() == Some(branch))
    }
}
