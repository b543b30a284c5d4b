//! The repository's git hooks that may change or refuse the tree or the message of a commit that lands. They
//! are run as git would run them.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use proq_base::hint;
use proq_base::hint::Hint;
use proq_base::lane_name::LaneName;
use proq_git::history::commit::NewCommit;
use proq_git::hooks::hook::run_hook;
use proq_git::{CommitId, CommitWithTree, Repo, TreeId};
use proq_store::paths::layout::Layout;

use crate::lane::Project;
use crate::merge::Error;
use crate::merge::checks::check_worktree::HeldWorktree;
use crate::merge::types::candidate::Candidate;

/// Tree that a hook leaves of a merge, or the reason why it refuses the merge.
type MergeHookResult = Result<TreeId, String>;

/// The repository's `pre-merge-commit` hook. Results are cached by merge, because a lane may be stacked more
/// than once.
#[derive(Debug, Default)]
pub(crate) struct PreMergeCommitHook {
    /// Folder of the hooks, found once; the inner value is none if there is no such hook.
    hooks_folder: OnceCell<Option<PathBuf>>,
    /// Worktree that the hook runs in; none before its first run.
    worktree: RefCell<Option<HeldWorktree>>,
    /// Results by the tree of the stack, the merged tree and the lane's tip.
    results: RefCell<HashMap<(TreeId, TreeId, CommitId), MergeHookResult>>,
}

impl PreMergeCommitHook {
    /// Runs the repository's `pre-merge-commit` hook on the merge of a lane, and returns the tree to commit:
    /// the hook may change the staged files. The inner error is the reason of a refusal. Git runs the hook in
    /// the worktree that contains the merge. No checkout has been touched yet, so the hook runs in a separate
    /// worktree that no other process uses.
    pub fn run(
        &self,
        project: &Project,
        ours: CommitWithTree,
        candidate: &Candidate,
        merged: TreeId,
    ) -> Result<MergeHookResult, Error> {
        let repo = &project.repo;
        if self.hooks_folder.get().is_none() {
            let hooks_folder = repo.pre_merge_hook_folder()?;
            self.hooks_folder.get_or_init(|| hooks_folder);
        }
        let Some(Some(folder)) = self.hooks_folder.get() else { return Ok(Ok(merged)) };
        let key = (ours.tree, merged, candidate.tip);
        if let Some(known) = self.results.borrow().get(&key) {
            return Ok(known.clone());
        }
        let mut worktree = self.worktree.borrow_mut();
        let worktree = match &mut *worktree {
            Some(place) => place,
            none => none.insert(HeldWorktree::acquire_for_hooks(project)?),
        };
        let parents = [ours.commit, candidate.tip];
        let staged_merge = NewCommit { tree: merged, parents: &parents, message: "git-proq: before a merge" };
        let _ = worktree.check_out(project, staged_merge.write_as_proq(repo, None)?)?;
        repo.detach_head(&worktree.dir, ours.commit)?;
        let outcome =
            repo.run_pre_merge_hook(&worktree.dir, folder, (candidate.tip, &candidate.lane.kind.branch));
        let is_intact = worktree.is_intact(repo);
        if is_intact {
            worktree.detach_head(repo, ours.commit)?;
        }
        let result = match outcome {
            _ if !is_intact => {
                Err("the repository's pre-merge-commit hook removed the worktree that it ran in".to_owned())
            }
            Ok(tree) => Ok(tree),
            Err(e) if e.is_git_failure() => {
                Err(format!("the repository's pre-merge-commit hook refused it: {e}"))
            }
            Err(e) => return Err(e.into()),
        };
        self.results.borrow_mut().insert(key, result.clone());
        Ok(result)
    }
}

/// Name of the hook that `--no-verify` skips.
const COMMIT_MSG: &str = "commit-msg";

/// Returns the hint for landing without a hook that git's own flag skips.
pub(crate) fn no_verify_hint(lane: &LaneName) -> Hint {
    hint!("skip that hook: git proq merge --no-verify {lane}")
}

/// Refusal of a lane by a hook.
pub(crate) struct HookRefusal {
    /// Reason of the refusal.
    pub reason: String,
    /// Returns the hint for landing a lane without the hook.
    pub hint: fn(&LaneName) -> Hint,
}

impl HookRefusal {
    /// Creates the refusal by the hook of this name; `action` is what it did, as a verb phrase.
    fn from_hook(hook: &str, action: &str) -> HookRefusal {
        let hint = match hook {
            COMMIT_MSG => no_verify_hint,
            // No flag skips this hook alone.
            _ => |lane: &LaneName| {
                hint!("skip all git hooks: git -c core.hooksPath=/dev/null proq merge {lane}")
            },
        };
        HookRefusal { reason: format!("the repository's {hook} hook {action}"), hint }
    }
}

/// Runs the repository's `prepare-commit-msg` and `commit-msg` hooks, and returns the message that they
/// leave, or a refusal. `kind` is the message source that git passes to them: `merge` or `squash`. Without
/// `may_refuse`, `commit-msg` is skipped. `scratch` is a folder for the message.
pub(crate) fn run_message_hooks(
    repo: &Repo,
    scratch: &Path,
    text: &str,
    kind: &str,
    may_refuse: bool,
) -> Result<Result<String, HookRefusal>, Error> {
    let file = Layout::scratch_commit_message(scratch);
    let path = file.to_string_lossy().into_owned();
    let all_calls: &[(&str, &[&str])] = &[("prepare-commit-msg", &[&path, kind]), (COMMIT_MSG, &[&path])];
    let hook_calls = if may_refuse { all_calls } else { &all_calls[..1] };
    if !hook_calls.iter().any(|(name, _)| repo.may_have_hook(repo.command_dir(), name)) {
        return Ok(Ok(text.to_owned()));
    }
    let io = |what, e| proq_git::Error::io(what, &file)(e);
    std::fs::write(&file, text).map_err(|e| io("write", e))?;
    let mut text = text.to_owned();
    for (name, args) in hook_calls {
        if let Err(e) = run_hook(repo, repo.command_dir(), name, args) {
            return Ok(Err(HookRefusal::from_hook(name, &format!("refused it: {e}"))));
        }
        text = proq_base::regular_file::read_store_text(&file).map_err(|e| io("read", e))?;
        if text.trim().is_empty() {
            return Ok(Err(HookRefusal::from_hook(name, "left its message empty")));
        }
    }
    Ok(Ok(text))
}
