//! Status of worktrees, by a stat scan where its result is certain and otherwise by git.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gix::index::decode::Options;

use super::stat_scan::StatScan;
use super::worktree_status::{StatusEntry, StatusKind, WorktreeStatus};
use crate::base::head::BRANCH_PREFIX;
use crate::base::parallel::parallel_map_with;
use crate::history::tree_diff::{TreeChange, tree_changes};
use crate::index::full_index::FullIndex;
use crate::index::{full_index, index_flags};
use crate::program::command::Program;
use crate::repository::head_file::read_head;
use crate::{CommitId, Error, Oid, Repo, RepoPath};

/// Returns the status of one worktree. `untracked` is whether untracked files are included. git is started
/// unless a stat scan proves that nothing differs.
pub fn status(repo: &Repo, dir: &Path, untracked: bool) -> Result<WorktreeStatus, Error> {
    match is_surely_clean(repo, dir, untracked) {
        true => Ok(WorktreeStatus::default()),
        false => query_git_status(repo.program(), dir, untracked),
    }
}

/// Returns whether a stat scan proves that nothing differs in a worktree, and with `untracked` also that it
/// has no untracked files and that this user may read all of its folders.
pub fn is_surely_clean(repo: &Repo, dir: &Path, untracked: bool) -> bool {
    StatScan::open(repo, dir).is_some_and(|scan| scan.is_clean(untracked, true))
}

/// Returns the status that git reports of one worktree, untracked files included.
///
/// # Errors
/// Fails if git cannot be run.
pub fn status_by_git(repo: &Repo, dir: &Path) -> Result<WorktreeStatus, Error> {
    query_git_status(repo.program(), dir, true)
}

/// Returns whether the index certainly holds a commit's tree, and the files of `changes` match the index.
/// HEAD is not considered.
pub(crate) fn index_certainly_at(
    repo: &Repo,
    dir: &Path,
    git_dir: &Path,
    commit: CommitId,
    changes: &[TreeChange],
) -> bool {
    let scan = StatScan::with_commit(repo, dir, git_dir, commit);
    scan.is_some_and(|scan| scan.are_unchanged_from_head(changes.iter().map(|change| &change.path)))
}

/// Returns the statuses of many worktrees, untracked files included; none if the folder is missing or git
/// fails. Also returns the result of `concurrent`, which runs at the same time and does not have to wait for
/// the disk.
pub fn query_statuses<M>(
    repo: &Repo,
    dirs: &[PathBuf],
    concurrent: impl FnOnce() -> M,
) -> (Vec<Option<WorktreeStatus>>, M) {
    let program = repo.program();
    let is_single = dirs.len() == 1;
    let scans = dirs.iter().map(|dir| (dir, StatScan::open(repo, dir)));
    let check = |(dir, scan): (&PathBuf, Option<StatScan>)| {
        if scan.as_ref().is_some_and(|scan| scan.is_clean(true, is_single)) {
            return Some(WorktreeStatus::default());
        }
        dir.exists().then(|| query_git_status(program, dir, true).ok()).flatten()
    };
    parallel_map_with(scans, check, concurrent)
}

/// Request to scan one worktree, with the cache of its previous scan.
pub struct ScanRequest<'a> {
    /// Top of the worktree.
    pub dir: &'a Path,
    /// Cache data that an earlier scan returned.
    pub cached_scan: Option<Vec<u8>>,
}

/// Scans many worktrees for display. Unlike [`query_statuses`], it lists differences without git where they
/// are certain, so git is run less often. `on_status` receives the position of each worktree in `requests`,
/// its status, and the cache data for the next scan. Returns the result of `concurrent`, which runs at the
/// same time.
pub fn scan_statuses<'a, M>(
    repo: &Repo,
    requests: impl ExactSizeIterator<Item = ScanRequest<'a>>,
    on_status: impl Fn(usize, Option<&WorktreeStatus>, Option<&[u8]>) + Sync,
    concurrent: impl FnOnce() -> M,
) -> M {
    let program = repo.program();
    let scans = requests.enumerate().map(|(at, request)| (at, StatScan::open(repo, request.dir), request));
    let check = |(at, scan, ScanRequest { dir, cached_scan }): (usize, Option<StatScan>, ScanRequest<'a>)| {
        // The caller waits for each status. If a scan panics, git provides the status.
        let run_scan = || scan.map(|scan| scan.find_changes(cached_scan, SystemTime::now()));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run_scan));
        let (found, new_cache) = result.ok().flatten().unwrap_or_default();
        let query_git = || dir.exists().then(|| query_git_status(program, dir, true).ok()).flatten();
        let query_git = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(query_git)).ok().flatten();
        on_status(
            at,
            found.map(|entries| WorktreeStatus { entries }).or_else(query_git).as_ref(),
            new_cache.as_deref(),
        );
    };
    parallel_map_with(scans, check, concurrent).1
}

/// Runs `git status` in a worktree and parses its output.
pub(crate) fn query_git_status(
    program: &Program,
    dir: &Path,
    untracked: bool,
) -> Result<WorktreeStatus, Error> {
    let out = program
        .command_in(dir)
        .args(["-c", "status.relativePaths=false", "status", "--porcelain=v2", "-z", "--no-renames"])
        .arg(if untracked { "--untracked-files=all" } else { "--untracked-files=no" })
        .args(["--ignore-submodules=none", "--no-ahead-behind"])
        .run()?;
    Ok(WorktreeStatus { entries: out.nul_separated_fields().filter_map(parse_status_line).collect() })
}

fn parse_status_line(field: &[u8]) -> Option<StatusEntry> {
    let (path_at, kind) = match field.first()? {
        b'1' => {
            let (staged, worktree) = (field.get(2)? != &b'.', *field.get(3)?);
            let (unstaged, deleted) = (worktree != b'.', worktree == b'D');
            (8, StatusKind::Tracked { staged, unstaged, deleted })
        }
        b'u' => (10, StatusKind::Unmerged),
        b'?' => (1, StatusKind::Untracked),
        _ => return None,
    };
    let path = field.splitn(path_at + 1, |b| *b == b' ').nth(path_at)?;
    let nested = kind == StatusKind::Untracked && path.ends_with(b"/");
    Some(StatusEntry {
        kind,
        path: RepoPath::new(path.strip_suffix(b"/").unwrap_or(path)),
        is_nested_repo: nested,
        is_submodule: kind != StatusKind::Untracked && field.get(5) == Some(&b'S'),
    })
}

/// Returns tracked paths at which the index differs from `commit`, or the worktree differs from the index.
/// HEAD is not considered.
pub(crate) fn changed_paths_since(repo: &Repo, dir: &Path, commit: CommitId) -> Result<Vec<RepoPath>, Error> {
    let options = ["-z", "--name-only", "--no-renames", "--ignore-submodules=none"];
    let staged = repo
        .git_in(dir)
        .args(["diff-index", "--cached"])
        .args(options)
        .arg(commit.to_string())
        .arg("--")
        .run()?;
    // Unlike `diff-files`, this reads a file again whose times alone are different.
    let unstaged = repo.git_in(dir).args(["diff", "--no-ext-diff"]).args(options).arg("--").run()?;
    Ok(staged.nul_separated_fields().chain(unstaged.nul_separated_fields()).map(RepoPath::new).collect())
}

/// Returns the edited files whose index entry is flagged, split by `dirty` into two lists. The first has
/// files that git shows anyway, as files of a sparse checkout that exist against its patterns. The second has
/// files that git does not show.
///
/// # Errors
/// Fails if the index cannot be read, or if git cannot compare the files.
pub fn split_flagged_edits(
    repo: &Repo,
    dir: &Path,
    scratch: &Path,
    dirty: &WorktreeStatus,
) -> Result<(Vec<RepoPath>, Vec<RepoPath>), Error> {
    let edits = index_flags::hidden_edits(repo, dir, &repo.worktree_git_dir(dir)?, scratch)?;
    let is_shown = |entry: &&StatusEntry| matches!(entry.kind, StatusKind::Tracked { unstaged: true, .. });
    let shown: HashSet<&RepoPath> = dirty.tracked().filter(is_shown).map(|entry| &entry.path).collect();
    Ok(edits.into_iter().partition(|path| shown.contains(path)))
}

impl Repo {
    /// Returns the commit of a worktree's HEAD; none on an unborn branch.
    pub fn head_commit(&self, dir: &Path) -> Result<Option<CommitId>, Error> {
        if let Some(commit) = self.read_head_commit(dir).filter(|commit| self.tree_of(*commit).is_ok()) {
            return Ok(Some(commit));
        }
        let out = self
            .git_in(dir)
            .args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .accept_exit_codes(&[1])
            .run()?;
        Ok(CommitId::from_hex(out.trimmed_stdout().as_bytes()))
    }

    /// Reads the commit of a worktree's HEAD from files; none when only git can read them, or HEAD is at no
    /// commit.
    pub(crate) fn read_head_commit(&self, dir: &Path) -> Option<CommitId> {
        self.read_head_commit_in(dir, &self.worktree_git_dir(dir).ok()?)
    }

    /// Reads the commit of HEAD as [`Repo::read_head_commit`] does. `git_dir` is the git directory of the
    /// worktree.
    pub(crate) fn read_head_commit_in(&self, dir: &Path, git_dir: &Path) -> Option<CommitId> {
        if self.is_reftable() {
            return None;
        }
        match self.head_branch(dir, git_dir).ok()? {
            Some(branch) => self.branch_tip(&branch).ok()?,
            None => CommitId::from_hex(read_head(git_dir).ok()?.as_bytes()),
        }
    }

    /// Returns whether the index of a worktree equals the tree of `commit`, which may also be a tree.
    /// Intent-to-add entries (`git add -N`) are ignored.
    pub fn index_matches(&self, dir: &Path, commit: impl Into<Oid>) -> Result<bool, Error> {
        let commit = commit.into();
        let facts = FullIndex::read(self, &self.worktree_git_dir(dir)?.join("index"));
        if let Some(tree) = facts.and_then(|facts| facts.cached_tree(self))
            && (tree.oid() == commit || self.tree_of(commit).is_ok_and(|wanted| wanted == tree))
        {
            return Ok(true);
        }
        let out = self
            .git_in(dir)
            .args(["diff-index", "--cached", "--quiet", "--ita-invisible-in-index"])
            .arg(commit.to_string())
            .arg("--")
            .accept_exit_codes(&[1])
            .run()?;
        Ok(out.code == 0)
    }

    /// Returns whether the index of a worktree matches `to` at every path where `to` differs from `from`,
    /// whatever else is staged.
    pub fn index_includes(&self, dir: &Path, from: CommitId, to: CommitId) -> Result<bool, Error> {
        if self.index_matches(dir, to)? {
            return Ok(true);
        }
        let changed: HashSet<RepoPath> =
            tree_changes(self, from, to)?.into_iter().map(|change| change.path).collect();
        let command = self.git_in(dir).args(["diff-index", "--cached", "-z", "--name-only", "--no-renames"]);
        let command =
            command.args(["--ignore-submodules=none", "--ita-invisible-in-index"]).arg(to.to_string());
        Ok(!command
            .arg("--")
            .run()?
            .nul_separated_fields()
            .any(|path| changed.contains(&RepoPath::new(path))))
    }

    /// Returns the paths with an intent-to-add entry (`git add -N`) in `index`, or in the index of the
    /// worktree at `dir` without it. The files need not exist. If gitoxide cannot read the index, git lists
    /// only those that exist.
    pub fn intent_to_add_paths(&self, dir: &Path, index: Option<&Path>) -> Result<Vec<RepoPath>, Error> {
        let file = match index {
            Some(index) => index.to_owned(),
            None => self.worktree_git_dir(dir)?.join("index"),
        };
        if let Some(facts) = FullIndex::read(self, &file) {
            return Ok(facts.intent_to_add_paths());
        }
        if let Ok(index_file) = gix::index::File::at(&file, self.gix.object_hash(), true, Options::default())
        {
            return Ok(full_index::list_intent_to_add(&index_file));
        }
        // Only an intent-to-add file is an addition between index and worktree.
        let command =
            self.git_in(dir).args(["diff-files", "-z", "--name-only", "--diff-filter=A", "--no-renames"]);
        Ok(command.use_index(&file).run()?.nul_separated_fields().map(RepoPath::new).collect())
    }

    /// Returns commits that a worktree refers to apart from its branch: HEAD and its reflog, ORIG_HEAD, and
    /// the autostash of a rebase or merge. `git_dir` is the worktree's private git directory. Ids of missing
    /// commits are left out.
    pub fn worktree_referenced_commits(&self, dir: &Path, git_dir: &Path) -> Vec<CommitId> {
        let mut found = self.logged_ids(dir, "HEAD", &git_dir.join("logs/HEAD"));
        for name in ["HEAD", "ORIG_HEAD", "rebase-merge/autostash", "MERGE_AUTOSTASH"] {
            let text = std::fs::read(git_dir.join(name)).unwrap_or_default();
            found.extend(CommitId::from_hex(text.trim_ascii()));
        }
        self.retain_commits(found)
    }

    /// Returns the commits in the log of a branch, newest first. git deletes the log with the branch. `dir` is a folder
    /// in which git finds the repository. Ids of missing commits are left out.
    pub fn logged_branch_commits(&self, dir: &Path, branch: &str) -> Vec<CommitId> {
        let name = format!("{BRANCH_PREFIX}{branch}");
        self.retain_commits(self.logged_ids(dir, &name, &self.common_dir().join("logs").join(&name)))
    }

    /// Returns the new values in the log of a ref, newest first; `file` has the log unless refs are in reftable files.
    fn logged_ids(&self, dir: &Path, name: &str, file: &Path) -> Vec<CommitId> {
        let mut found = Vec::new();
        if self.is_reftable() {
            let log = self.git_in(dir).args(["reflog", "show", "--format=%H", name, "--"]).run();
            let log = log.map(|out| out.stdout).unwrap_or_default();
            found.extend(log.split(|b| *b == b'\n').filter_map(CommitId::from_hex));
        }
        for line in std::fs::read(file).unwrap_or_default().split(|b| *b == b'\n').rev() {
            found.extend(line.splitn(3, |b| *b == b' ').nth(1).and_then(CommitId::from_hex));
        }
        found
    }

    /// Returns the ids of existing commits, each once.
    fn retain_commits(&self, mut ids: Vec<CommitId>) -> Vec<CommitId> {
        let mut unique = HashSet::new();
        ids.retain(|id| !id.is_null() && unique.insert(*id) && self.tree_of(*id).is_ok());
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_each_kind_of_status_line() {
        let id = "0".repeat(40);
        let tracked =
            parse_status_line(format!("1 .M N... 100644 100644 100644 {id} {id} a b").as_bytes()).unwrap();
        assert_eq!(tracked.kind, StatusKind::Tracked { staged: false, unstaged: true, deleted: false });
        assert_eq!(tracked.path, RepoPath::new("a b"));
        let unmerged = parse_status_line(format!("u UU N... 1 2 3 4 {id} {id} {id} x y").as_bytes()).unwrap();
        assert_eq!((unmerged.kind, unmerged.path), (StatusKind::Unmerged, RepoPath::new("x y")));
        let nested = parse_status_line(b"? sub repo/").unwrap();
        assert!(nested.is_nested_repo);
        assert_eq!(nested.path, RepoPath::new("sub repo"));
        assert!(
            parse_status_line(format!("1 .M SC.. 160000 160000 160000 {id} {id} sub").as_bytes())
                .unwrap()
                .is_submodule
        );
    }
}
