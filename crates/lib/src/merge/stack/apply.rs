//! Application of one lane on top of a stack: as a merge, commit by commit, or as one commit.

use std::path::Path;

use proq_base::explain::Explain;
use proq_base::hint;
use proq_base::hint::Hint;
use proq_base::lane_name::LaneName;
use proq_git::base::error;
use proq_git::history::commit::NewCommit;
use proq_git::merge::pick::{CommitWithParents, PickOutcome, PickedCommit};
use proq_git::merge::tree_merge::TreeMergeOutcome;
use proq_git::merge::uncommitted::UncommittedWorktree;
use proq_git::merge::{pick, tree_merge, uncommitted};
use proq_git::repository::objects::TempObjectStore;
use proq_git::{CommitId, CommitWithTree, TreeId};
use proq_store::records::lane::MergeStrategy;

use super::commit_hooks::PreMergeCommitHook;
use super::message::{LaneMessage, sign_off_line};
use super::{commit_hooks, git_options};
use crate::lane::Project;
use crate::merge::Error;
use crate::merge::types::candidate::{Candidate, PendingCommit};
use crate::merge::types::options::LandingOptions;

/// Context of building a stack: repository, base, strategy and temporary storage.
#[derive(Clone, Copy)]
pub struct StackContext<'a> {
    /// Repository, store and settings of the lanes in the stack.
    pub project: &'a Project,
    /// Branch that the lanes would land on.
    pub onto: &'a str,
    /// Strategy by which the lanes land.
    pub strategy: MergeStrategy,
    /// Options of the landing, for the messages of its commits.
    pub options: &'a LandingOptions,
    /// Whether the repository's hooks that can refuse a commit are run.
    pub(crate) run_hooks: bool,
    /// Whether each lane's tip needs a good signature.
    pub(crate) verify_signatures: bool,
    /// The repository's hook that inspects each merge.
    pub(crate) merge_hook: &'a PreMergeCommitHook,
    /// Folder for temporary files.
    pub scratch: &'a Path,
    /// Store for new objects; none to write them to the repository.
    pub temp_objects: Option<&'a TempObjectStore>,
}

impl<'a> StackContext<'a> {
    /// Returns the message source of the commit by which a candidate lands.
    fn message(
        self,
        candidate: &'a Candidate,
        commits: &'a dyn Fn() -> Result<Vec<CommitWithParents>, Error>,
    ) -> LaneMessage<'a> {
        LaneMessage {
            repo: &self.project.repo,
            listener: &self.project.listener,
            settings: &self.project.settings.messages,
            options: self.options,
            onto: self.onto,
            lane: &candidate.lane,
            commits,
        }
    }

    /// Returns the commits of a candidate that `since` does not contain, oldest first.
    fn new_commits(self, since: CommitId, candidate: &Candidate) -> Result<Vec<CommitWithParents>, Error> {
        Ok(self.project.repo.commits_since(since, candidate.tip, self.temp_objects)?)
    }
}

/// Outcome of applying a lane to a stack.
#[derive(Debug)]
pub(crate) enum ApplyOutcome {
    /// The lane lands with this commit.
    Applied(CommitWithTree),
    /// The stack already contains all changes of the lane.
    AlreadyApplied,
    /// The merge has conflicts.
    Conflict(TreeMergeOutcome),
    /// The lane cannot be applied with this strategy or these commits: reason and hints for the user.
    Refused(String, Vec<Hint>),
    /// A hook of the repository refused; it may accept later: reason, and the hint for the lane.
    Vetoed(String, fn(&LaneName) -> Hint),
}

/// Applies a lane on top of `ours`, the stack's topmost commit.
pub(crate) fn apply_lane(
    context: StackContext<'_>,
    ours: CommitWithTree,
    candidate: &Candidate,
) -> Result<ApplyOutcome, Error> {
    let repo = &context.project.repo;
    if context.verify_signatures
        && let Some(reason) = repo.signature_problem(candidate.tip)?
    {
        return Ok(ApplyOutcome::Refused(reason, git_options::missing_signature_hints(&candidate.lane)));
    }
    if let (Some(pending), Some(temp_objects)) = (&candidate.pending_commit, context.temp_objects) {
        return apply_with_uncommitted(context, ours, candidate, pending, temp_objects);
    }
    let part_start = separate_part_start(context, ours.commit, candidate)?;
    let merged = match part_start {
        None => {
            tree_merge::merge_commits(repo, ours.commit, candidate.tip, context.scratch, context.temp_objects)
        }
        Some(start) => {
            let trees = (repo.tree_of(start)?, ours.tree, repo.tree_of(candidate.tip)?);
            tree_merge::merge_trees(repo, trees, context.scratch, context.temp_objects)
        }
    };
    let merged = match merged {
        Ok(merged) => merged,
        // A merge that git refuses concerns only this lane; the others continue.
        Err(e) if e.is_git_failure() => {
            return Ok(ApplyOutcome::Refused(e.to_string(), e.hints()));
        }
        Err(e) => return Err(e.into()),
    };
    if !merged.is_clean {
        return Ok(ApplyOutcome::Conflict(merged));
    }
    if merged.tree == ours.tree {
        return Ok(ApplyOutcome::AlreadyApplied);
    }
    apply_by_strategy(context, ours, candidate, part_start, merged.tree)
}

/// Applies a lane whose merge is clean, as the strategy requires. `part_start` is the start of a part of the
/// lane if only the part's own commits land. `merged_tree` is the tree of the merge.
fn apply_by_strategy(
    context: StackContext<'_>,
    ours: CommitWithTree,
    candidate: &Candidate,
    part_start: Option<CommitId>,
    merged_tree: TreeId,
) -> Result<ApplyOutcome, Error> {
    let since = part_start.unwrap_or(ours.commit);
    let rebase_or_squash = || match apply_rebased(context, ours, candidate, part_start)? {
        ApplyOutcome::Refused(..) => apply_squashed(context, ours.commit, candidate, since, merged_tree),
        outcome => Ok(outcome),
    };
    match context.strategy {
        // A merge commit would record that the commits below the part have landed too.
        MergeStrategy::Merge if part_start.is_some() => rebase_or_squash(),
        // A resolved conflict is a merge, which a rebase cannot take, and no user is present to choose
        // another strategy.
        MergeStrategy::Rebase if candidate.part.is_some() => rebase_or_squash(),
        MergeStrategy::Merge => {
            let hook_result = if context.run_hooks && context.temp_objects.is_none() {
                context.merge_hook.run(context.project, ours, candidate, merged_tree)?
            } else {
                Ok(merged_tree)
            };
            let tree = match hook_result {
                Ok(tree) => tree,
                Err(reason) => {
                    return Ok(ApplyOutcome::Vetoed(reason, commit_hooks::no_verify_hint));
                }
            };
            let text = context.message(candidate, &|| context.new_commits(since, candidate)).for_merge()?;
            create_commit_with_hooks(context, tree, &[ours.commit, candidate.tip], &text, "merge")
        }
        MergeStrategy::Squash => apply_squashed(context, ours.commit, candidate, since, merged_tree),
        MergeStrategy::Rebase => apply_rebased(context, ours, candidate, None),
    }
}

/// Applies a lane including the uncommitted work that a landing would commit first, without committing it to
/// the lane.
fn apply_with_uncommitted(
    context: StackContext<'_>,
    ours: CommitWithTree,
    candidate: &Candidate,
    pending: &PendingCommit,
    temp_objects: &TempObjectStore,
) -> Result<ApplyOutcome, Error> {
    let (repo, dir) = (&context.project.repo, &candidate.lane.path);
    let worktree = UncommittedWorktree { dir, git_dir: repo.worktree_git_dir(dir)?, status: &pending.status };
    let theirs =
        uncommitted::write_uncommitted_trees(repo, temp_objects, context.scratch, &[worktree]).remove(0)?;
    let trees = (repo.tree_of(pending.common_ancestor)?, ours.tree, theirs);
    let merged = tree_merge::merge_trees(repo, trees, context.scratch, Some(temp_objects))?;
    if !merged.is_clean {
        return Ok(ApplyOutcome::Conflict(merged));
    }
    if merged.tree == ours.tree {
        return Ok(ApplyOutcome::AlreadyApplied);
    }
    let parents = [ours.commit, candidate.tip];
    let parents = if context.strategy == MergeStrategy::Merge { &parents[..] } else { &parents[..1] };
    let new_commits = || context.new_commits(ours.commit, candidate);
    let text = context.message(candidate, &new_commits).for_merge()?;
    create_commit_with_hooks(context, merged.tree, parents, &text, "merge")
}

/// Returns the commit that the candidate's part of a lane starts after, if the stack below does not contain
/// it. Only the part's own commits land then.
fn separate_part_start(
    context: StackContext<'_>,
    ours: CommitId,
    candidate: &Candidate,
) -> Result<Option<CommitId>, Error> {
    let Some(part) = &candidate.part else { return Ok(None) };
    let is_below =
        context.project.repo.is_ancestor_in_store(part.commit_before, ours, context.temp_objects)?;
    Ok((!is_below).then_some(part.commit_before))
}

/// Applies all commits of the lane after `since` as one commit with the given tree.
fn apply_squashed(
    context: StackContext<'_>,
    ours: CommitId,
    candidate: &Candidate,
    since: CommitId,
    tree: TreeId,
) -> Result<ApplyOutcome, Error> {
    let text = context.message(candidate, &|| context.new_commits(since, candidate)).for_squash()?;
    create_commit_with_hooks(context, tree, &[ours], &text, "squash")
}

/// Creates one commit; the repository's hooks may change its message `text` or refuse it. `kind` is the
/// message source that git passes to them: `merge` or `squash`.
fn create_commit_with_hooks(
    context: StackContext<'_>,
    tree: TreeId,
    parents: &[CommitId],
    text: &str,
    kind: &str,
) -> Result<ApplyOutcome, Error> {
    let repo = &context.project.repo;
    let hook_result = if context.temp_objects.is_some() {
        Ok(text.to_owned())
    } else {
        commit_hooks::run_message_hooks(repo, context.scratch, text, kind, context.run_hooks)?
    };
    let text = match hook_result {
        Ok(text) => text,
        Err(refusal) => return Ok(ApplyOutcome::Vetoed(refusal.reason, refusal.hint)),
    };
    let new_commit = NewCommit { tree, parents, message: &text };
    let commit = new_commit.write(repo, context.temp_objects)?;
    Ok(ApplyOutcome::Applied(CommitWithTree { commit, tree }))
}

/// Applies the lane's own commits one after the other, from `part_start` on if given. Commits that become
/// empty are dropped. Each is signed off if that is requested.
fn apply_rebased(
    context: StackContext<'_>,
    ours: CommitWithTree,
    candidate: &Candidate,
    part_start: Option<CommitId>,
) -> Result<ApplyOutcome, Error> {
    let repo = &context.project.repo;
    let lane_commits = context.new_commits(part_start.unwrap_or(ours.commit), candidate)?;
    // A lane with a merge is not a linear continuation of the base, even if the base is an ancestor of its
    // tip.
    let is_linear = lane_commits.iter().all(|lane_commit| lane_commit.parents.len() == 1);
    let sign_off = sign_off_line(repo, context.options, &context.project.settings.messages)?;
    if part_start.is_none()
        && sign_off.is_none()
        && is_linear
        && repo.is_ancestor_in_store(ours.commit, candidate.tip, context.temp_objects)?
    {
        let (commit, tree) = (candidate.tip, repo.tree_of(candidate.tip)?);
        return Ok(ApplyOutcome::Applied(CommitWithTree { commit, tree }));
    }
    let strategy_hints = || {
        let lane = &candidate.lane.name;
        vec![
            hint!("merge it as one commit: git proq merge --strategy squash {lane}"),
            hint!("or with a merge commit: git proq merge --strategy merge {lane}"),
        ]
    };
    let mut steps = Vec::new();
    for lane_commit in lane_commits {
        let id = lane_commit.id.short();
        let reason = match lane_commit.parents[..] {
            [parent] => {
                steps.push((parent, lane_commit.id));
                continue;
            }
            [] => format!("its commit {id} starts a separate history, which a rebase would lose"),
            _ => format!("it has a merge commit ({id}), which a rebase would lose"),
        };
        return Ok(ApplyOutcome::Refused(reason, strategy_hints()));
    }
    let mut top = ours;
    for (parent, source) in steps {
        proq_base::interrupt::require_no_signal()?;
        let picked = PickedCommit { parent, commit: source, sign_off: sign_off.as_deref() };
        match pick::pick(repo, picked, top, context.scratch, context.temp_objects)? {
            PickOutcome::Commit(picked) => top = picked,
            PickOutcome::Empty => {}
            PickOutcome::Conflict(paths) => {
                let reason = format!(
                    "its commit {} conflicts in {} when it is rebased onto {}, although the lane as a whole does not",
                    commit_label(context, source)?,
                    error::list_paths(&paths),
                    context.onto
                );
                return Ok(ApplyOutcome::Refused(reason, strategy_hints()));
            }
        }
    }
    Ok(if top == ours { ApplyOutcome::AlreadyApplied } else { ApplyOutcome::Applied(top) })
}

/// Returns a commit's short id and subject: `1a2b3c4d (Fix the parser)`.
fn commit_label(context: StackContext<'_>, commit: CommitId) -> Result<String, Error> {
    Ok(format!("{} ({})", commit.short(), context.project.repo.commit_subject(commit)?))
}
