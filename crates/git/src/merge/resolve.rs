//! Merge in a separate worktree where conflicts are resolved: git itself starts it, so that rerere and merge
//! drivers act, and the result is read path by path.

use std::path::Path;

use super::tree_merge::{UnmergedStage, parse_stage};
use crate::base::path::nul_separated;
use crate::index::scratch_index;
use crate::repository::worktree_context::WorktreeContext;
use crate::status::status_query::status;
use crate::status::worktree_status::StatusKind;
use crate::{CommitId, Error, Oid, Repo, RepoPath, TreeId};

/// Current contents of a worktree, staged or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeContents {
    /// Tree of the contents. An unmerged path is in it as its file is on disk, with any conflict markers.
    pub tree: TreeId,
    /// Paths that are unmerged in the index.
    pub unmerged: Vec<RepoPath>,
    /// Nested repositories, which no tree can hold.
    pub nested_repos: Vec<RepoPath>,
}

/// Writes the contents of a worktree to a tree, through a copy of its index: the real index is not changed.
/// The paths are passed to git one by one; ignored files are not included.
pub fn capture_worktree_contents(tree: &WorktreeContext<'_>) -> Result<WorktreeContents, Error> {
    let index_copy = tree.scratch.join("index");
    scratch_index::copy_with_mtime(&tree.git_dir.join("index"), &index_copy)?;
    let worktree_status = status(tree.repo, tree.dir, true)?;
    let (mut paths, mut nested) = (Vec::new(), Vec::new());
    for entry in &worktree_status.entries {
        // Paths that are only staged are in the copy already.
        let to_add = match entry.kind {
            StatusKind::Unmerged => true,
            StatusKind::Untracked => !entry.is_nested_repo,
            StatusKind::Tracked { unstaged, .. } => unstaged && !entry.is_only_inside_submodule(),
        };
        if entry.is_nested_repo {
            nested.push(entry.path.clone());
        }
        if to_add {
            paths.push(entry.path.clone());
        }
    }
    let git_command = || tree.repo.git_in(tree.dir).use_index(&index_copy);
    if !paths.is_empty() {
        git_command()
            .args(["add", "--all", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"])
            .env("GIT_LITERAL_PATHSPECS", "1")
            .input(nul_separated(&paths))
            .mutating()
            .durable()
            .run()?;
    }
    let id = git_command().mutating().durable().run_write_tree()?;
    Ok(WorktreeContents { tree: id, unmerged: worktree_status.unmerged(), nested_repos: nested })
}

impl Repo {
    /// Merges `other_tip`, the tip of `branch`, into the commit of a clean worktree, and leaves the result
    /// there uncommitted. Returns git's message for each conflict.
    ///
    /// # Errors
    /// [`Error::UnexpectedOutput`] when git merged another commit or none.
    pub fn start_merge(&self, dir: &Path, branch: &str, other_tip: CommitId) -> Result<Vec<String>, Error> {
        // The branch name labels the conflict markers. A tag may have the same name.
        let is_branch_at_tip =
            self.require_commit(branch).is_ok_and(|id| id == other_tip) && !branch.starts_with('-');
        if is_branch_at_tip {
            let conflicts = self.merge_without_commit(dir, branch)?;
            if self.merge_head(dir)? == Some(other_tip) {
                return Ok(conflicts);
            }
            // The branch moved between the two reads.
            self.git_in(dir).args(["reset", "-q", "--merge"]).mutating().run()?;
        }
        let conflicts = self.merge_without_commit(dir, &other_tip.to_string())?;
        match self.merge_head(dir)? == Some(other_tip) {
            true => Ok(conflicts),
            false => Err(Error::UnexpectedOutput {
                args: format!("merge {other_tip}"),
                fault_or_output: "it merged something else, or nothing".into(),
            }),
        }
    }

    /// Runs `git merge` without a commit in the worktree `dir`, and returns git's message for each conflict.
    /// `commit` is a branch name or an id.
    fn merge_without_commit(&self, dir: &Path, commit: &str) -> Result<Vec<String>, Error> {
        let out = self
            .git_in(dir)
            .args(["merge", "--no-ff", "--no-commit", "--no-edit", "--no-stat", "--no-verify-signatures"])
            .args(["--no-autostash", "--no-squash", "--", commit])
            .accept_exit_codes(&[1])
            .mutating()
            .durable()
            .run()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        Ok(text.lines().filter(|l| l.starts_with("CONFLICT")).map(ToOwned::to_owned).collect())
    }

    /// Returns the commit in `MERGE_HEAD` of a worktree, which a started merge merges into it; none if no
    /// merge is in progress.
    pub fn merge_head(&self, dir: &Path) -> Result<Option<CommitId>, Error> {
        Ok(self.read_pseudo_ref(dir, "MERGE_HEAD")?.map(CommitId::from_oid))
    }

    /// Returns the tree that git's automatic merge created in a worktree, with conflict markers; the tree of
    /// its index when nothing conflicted.
    pub fn auto_merge_tree(&self, dir: &Path) -> Result<TreeId, Error> {
        if let Some(tree) = self.read_pseudo_ref(dir, "AUTO_MERGE")? {
            return Ok(TreeId::from_oid(tree));
        }
        self.git_in(dir).mutating().durable().run_write_tree()
    }

    fn read_pseudo_ref(&self, dir: &Path, name: &str) -> Result<Option<Oid>, Error> {
        let out = self
            .git_in(dir)
            .args(["rev-parse", "--verify", "--quiet", name])
            .accept_exit_codes(&[1])
            .run()?;
        Ok(Oid::from_hex(out.trimmed_stdout().as_bytes()))
    }

    /// Returns every stage of every unmerged path in a worktree's index.
    pub fn unmerged_stages(&self, dir: &Path) -> Result<Vec<UnmergedStage>, Error> {
        let out = self.git_in(dir).args(["ls-files", "--unmerged", "--full-name", "-z"]).run()?;
        Ok(out.nul_separated_fields().filter_map(parse_stage).collect())
    }

    /// Lets rerere record how the conflicts of a worktree were resolved, if rerere is enabled.
    pub fn record_resolution(&self, dir: &Path) -> Result<(), Error> {
        self.git_in(dir).arg("rerere").mutating().run().map(drop)
    }

    /// Runs the user's merge tool on the terminal. It leaves no backup files, which would count as new files.
    /// An interrupted tool leaves its temporary files too, so they are outside of the worktree.
    pub fn run_merge_tool(&self, dir: &Path, tool: Option<&str>) -> Result<(), Error> {
        let settings = ["-c", "mergetool.keepBackup=false", "-c", "mergetool.writeToTemp=true"];
        let command = self.git_in(dir).args(settings).arg("mergetool");
        match tool.filter(|tool| !tool.is_empty()) {
            Some(tool) => command.arg(format!("--tool={tool}")),
            None => command,
        }
        .run_on_terminal()
    }

    /// Returns at most `max_count` commits of `tip` that `excluded_tip` lacks and that touch one of `paths`,
    /// newest first, as `(id, subject, body)`.
    pub fn commits_touching(
        &self,
        tip: CommitId,
        excluded_tip: CommitId,
        paths: &[RepoPath],
        max_count: usize,
    ) -> Result<Vec<(String, String, String)>, Error> {
        use std::os::unix::ffi::OsStrExt;
        let path_args = paths.iter().map(|p| std::ffi::OsStr::from_bytes(p.as_bytes()).to_owned());
        let out = self
            .git()
            .args(["log", "--no-merges", "-z", "--format=%h%n%s%n%b", &format!("--max-count={max_count}")])
            .args([tip.to_string(), format!("^{excluded_tip}")])
            .arg("--")
            .args(path_args)
            .env("GIT_LITERAL_PATHSPECS", "1")
            .run()?;
        let parse_commit = |field: &[u8]| {
            let text = String::from_utf8_lossy(field).into_owned();
            let mut parts = text.splitn(3, '\n').map(|part| part.trim().to_owned());
            Some((parts.next()?, parts.next()?, parts.next().unwrap_or_default()))
        };
        Ok(out.nul_separated_fields().filter_map(parse_commit).collect())
    }
}
