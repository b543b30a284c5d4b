//! State of the main checkout: its HEAD, the record of an open preview, and how the two agree.

use std::path::Path;

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_git::base::head::Head;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, Repo};
use proq_store::Store;
use proq_store::base::clock::Moment;
use proq_store::base::record::Record;
use proq_store::records::preview::PreviewRecord;
use serde::Serialize;

use super::Error;
use crate::lane::Project;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::BoxedStep;

/// HEAD of the main checkout, and the commit that it is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MainCheckoutHead {
    /// Branch or commit that HEAD names.
    pub(super) head: Head,
    /// Commit that is checked out.
    pub(super) commit: CommitId,
}

impl MainCheckoutHead {
    /// Reads the state of the main checkout.
    pub(super) fn read(project: &Project, main: &Path) -> Result<MainCheckoutHead, Error> {
        loop {
            let head = project.repo.main_head();
            let current = MainCheckoutHead::read_once(project, main, head.clone());
            // Race: a preview that ends concurrently moves HEAD and then removes its branch. If HEAD is read
            // before that and the branch after it, HEAD seems to be on a branch without a commit.
            if project.repo.main_head() == head {
                return current;
            }
        }
    }

    /// Reads the commit of the main checkout once. `head` is the branch that HEAD names; none for a detached
    /// HEAD.
    ///
    /// # Errors
    /// [`Error::NoCommit`] or [`Error::OnUnbornBranch`] when no commit is checked out.
    fn read_once(project: &Project, main: &Path, head: Option<Head>) -> Result<MainCheckoutHead, Error> {
        let worktrees = WorktreeList::read(&project.repo)?;
        let worktree =
            worktrees.iter().next().filter(|w| w.path == main).or_else(|| worktrees.with_top_folder(main));
        let worktree = worktree.ok_or(Error::NoCommit)?;
        fail_points::hit("desk.head");
        let Some(commit) = worktree.head(&project.repo)? else {
            let Some(preview) = load_preview(&project.store)? else { return Err(Error::NoCommit) };
            let now = worktree.branch.clone().unwrap_or_default();
            return Err(Error::OnUnbornBranch {
                lane: preview.lane,
                current_branch: now,
                preview_branch: preview.branch,
            });
        };
        // The name is kept as HEAD has it, even if it is a symbolic ref, because leaving the preview switches
        // back to that name.
        Ok(MainCheckoutHead { head: head.unwrap_or(Head::Detached(commit)), commit })
    }
}

/// How an open preview and the main checkout agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PreviewState {
    /// The checkout shows the preview's branch.
    Shown,
    /// The checkout is where the preview was entered from: the user switched back by hand, or entering was
    /// interrupted.
    AtOrigin,
    /// The checkout is on another branch or commit.
    Elsewhere,
}

/// Returns whether HEAD of the main checkout is on the branch of an open preview, where the preview was entered
/// from, or elsewhere.
pub(super) fn preview_state(preview: &PreviewRecord, current: &MainCheckoutHead) -> PreviewState {
    if current.head == Head::Branch(preview.branch.clone()) {
        PreviewState::Shown
    } else if current.head == preview.previous_head {
        PreviewState::AtOrigin
    } else {
        PreviewState::Elsewhere
    }
}

/// Refuses a preview that the checkout no longer shows.
pub(super) fn require_shown(
    repo: &Repo,
    preview: &PreviewRecord,
    current: &MainCheckoutHead,
) -> Result<(), Error> {
    match preview_state(preview, current) {
        PreviewState::Shown => Ok(()),
        PreviewState::AtOrigin | PreviewState::Elsewhere => Err(switched_error(repo, preview, current)),
    }
}

/// Returns the error for a checkout that was switched by hand, with the branch or commit that the preview was
/// entered from. If that branch is missing, returns the error about it instead.
pub(super) fn switched_error(repo: &Repo, preview: &PreviewRecord, current: &MainCheckoutHead) -> Error {
    let (lane, came_from) = (preview.lane.clone(), preview.previous_head.clone());
    match origin_commit(repo, preview) {
        Ok(_) => {
            Error::SwitchedByHand { lane, current_head: current.head.to_string(), previous_head: came_from }
        }
        Err(error) => error,
    }
}

/// Returns the commit that the checkout returns to: its branch may have moved, for example by a landing.
pub(super) fn origin_commit(repo: &Repo, preview: &PreviewRecord) -> Result<CommitId, Error> {
    match &preview.previous_head {
        Head::Detached(id) => Ok(*id),
        Head::Branch(branch) => repo
            .branch_tip(branch)?
            .ok_or_else(|| Error::OriginGone { branch: branch.clone(), commit: preview.previous_commit }),
    }
}

/// Loads the record of the open preview, if any.
pub(super) fn load_preview(store: &Store) -> Result<Option<PreviewRecord>, Error> {
    Ok(PreviewRecord::load_if_exists(&store.layout().preview_record())?)
}

/// Status of the open preview, for lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PreviewStatus {
    /// Lane that is previewed.
    pub lane: LaneName,
    /// Time at which the preview was entered.
    pub since: Moment,
    /// Branch or commit that the preview was entered from.
    #[serde(rename = "came_from")]
    pub previous_head: String,
    /// Whether changes of the user are parked until the preview ends.
    #[serde(rename = "parked")]
    pub has_parked_changes: bool,
    /// Whether the checkout still shows the lane.
    #[serde(rename = "shown")]
    pub is_shown: bool,
    /// Whether commits were made in the preview.
    #[serde(rename = "commits")]
    pub has_commits: bool,
}

/// Returns the status of the open preview; none without one.
pub fn preview_status(project: &Project) -> Result<Option<PreviewStatus>, Error> {
    let Some(preview) = load_preview(&project.store)? else { return Ok(None) };
    let Some(main) = project.repo.main_worktree() else { return Ok(None) };
    let is_shown = match MainCheckoutHead::read(project, main) {
        Ok(current) => preview_state(&preview, &current) == PreviewState::Shown,
        Err(Error::OnUnbornBranch { .. }) => false,
        Err(e) => return Err(e),
    };
    let tip = project.repo.branch_tip(&preview.branch)?;
    Ok(Some(PreviewStatus {
        has_commits: tip.is_some_and(|tip| tip != preview.tip),
        lane: preview.lane.clone(),
        since: preview.since,
        previous_head: preview.previous_head.to_string(),
        has_parked_changes: preview.parked_snapshot.is_some(),
        is_shown,
    }))
}

/// Returns the work in the open preview of a lane that is not in the lane yet, one phrase each.
pub(super) fn work_only_in_preview(project: &Project, lane: &LaneName) -> Result<Vec<String>, Error> {
    let mut out = Vec::new();
    let (Some(preview), Some(main)) = (load_preview(&project.store)?, project.repo.main_worktree()) else {
        return Ok(out);
    };
    if preview.lane != *lane {
        return Ok(out);
    }
    let current = MainCheckoutHead::read(project, main)?;
    let is_shown = preview_state(&preview, &current) == PreviewState::Shown;
    // If the user switched back by hand, the preview's branch still has the commits.
    let tip = if is_shown { Some(current.commit) } else { project.repo.branch_tip(&preview.branch)? };
    if tip.is_some_and(|tip| tip != preview.tip) {
        out.push("commits made in its preview".to_owned());
    }
    if is_shown && !proq_git::status::status_query::status(&project.repo, main, true)?.is_clean() {
        out.push("uncommitted edits in its preview".to_owned());
    }
    Ok(out)
}

/// Saves the record of a preview, after the ref that keeps the commit to return to if no branch does.
pub(super) fn save_preview_record(op: &Operation<'_>, preview: &PreviewRecord) -> Result<(), Error> {
    if let Some((commit, name)) = preview.detached_origin()
        && op.project.repo.ref_tip(&name)? != Some(commit)
    {
        op.create_ref(&name, commit)?;
    }
    Ok(op.save_record(preview, &op.project.store.layout().preview_record())?)
}

/// Removes the record of a preview that has ended: the checkout is back at the commit that its ref kept.
pub(super) fn delete_preview_record(op: &Operation<'_>, preview: &PreviewRecord) -> Result<(), Error> {
    op.remove_record(&op.project.store.layout().preview_record())?;
    if let Some((commit, name)) = preview.detached_origin()
        && op.project.repo.ref_tip(&name)? == Some(commit)
    {
        op.delete_ref(&name, commit)?;
    }
    Ok(())
}

/// Returns the step that removes the record of a preview.
pub(super) fn delete_preview_record_step(op: &Operation<'_>) -> Result<BoxedStep, Error> {
    Ok(op.write_record_step(&op.project.store.layout().preview_record(), None)?)
}

/// Runs the repository's post-checkout hook as `git switch` would. A failing hook is only a warning, because
/// the switch is done.
pub(super) fn run_post_checkout_hook(project: &Project, main: &Path, from: CommitId, to: CommitId) {
    let args = [from.to_string(), to.to_string()];
    let result =
        proq_git::hooks::hook::run_hook(&project.repo, main, "post-checkout", &[&args[0], &args[1], "1"]);
    if let Err(e) = result {
        project.listener.warn(format!("the repository's post-checkout hook failed: {e}"));
    }
}
