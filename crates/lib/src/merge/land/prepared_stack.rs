//! Stack of the lanes of one base, checked and ready to land.

use std::sync::atomic::AtomicBool;

use proq_git::CommitId;
use proq_git::repository::objects::TempObjectStore;
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::paths::layout::Layout;

use super::base_forecast::forecast_base;
use super::{autostash, branch_move, local_changes};
use crate::lane;
use crate::lane::state::{in_place_guard, lane_state};
use crate::merge::Error;
use crate::merge::selection::lane_examination::{LaneExamination, tip_to_land};
use crate::merge::selection::lane_refusal::removed_lane_outcome;
use crate::merge::stack::apply::StackContext;
use crate::merge::stack::commit_hooks::PreMergeCommitHook;
use crate::merge::stack::lane_stack::Stack;
use crate::merge::stack::stack_order::OrderedStack;
use crate::merge::stack::{git_options, stack_order};
use crate::merge::types::candidate::Candidate;
use crate::merge::types::options::{Landing, LandingOptions, StackOrder};
use crate::merge::types::outcome::{BaseForecast, LaneOutcome};
use crate::merge::verify::checked_stack::{PendingRef, VerifiedStack};
use crate::merge::verify::verifier::Verifier;
use crate::operation::journaled_operation::Operation;
use crate::run::auto_merge;

/// Context of a landing within one operation: what the landings of its bases share.
pub(crate) struct LandingContext<'w, 'p> {
    pub op: &'w Operation<'p>,
    /// Requested lanes, and options of the landing.
    pub landing: &'w Landing,
    /// Checks and their results so far.
    pub(crate) verifier: &'w mut Verifier,
    /// The repository's hook that inspects each merge.
    pub(crate) merge_hook: PreMergeCommitHook,
    /// Whether the lanes were examined just now, so that the record of an unmoved lane is not read again.
    pub(crate) has_fresh_records: bool,
}

/// Lanes of one base, stacked and checked.
pub(crate) struct PreparedStack {
    /// Stack, without the lanes with which a check failed.
    pub(crate) verified: VerifiedStack,
    /// Notes for the user on the order of the lanes.
    pub order_notes: Vec<String>,
    /// What the base would have; none unless this is a dry run in which a lane lands.
    pub forecast: Option<BaseForecast>,
}

impl LandingContext<'_, '_> {
    /// Stacks the lanes that may still land on the current tip of their base, and checks what would land.
    pub(crate) fn prepare_stack(
        &mut self,
        onto: &str,
        group: &[Candidate],
        pending: &mut PendingRef,
        change_check: LocalChangeCheck,
    ) -> Result<PreparedStack, Error> {
        let (request, project) = (&self.landing.options, self.op.project);
        in_place_guard::require_branch_not_in_place(project, onto)?;
        let scratch = project.store.layout().create_scratch()?;
        let temp_objects = match self.landing.dry_run {
            true => Some(TempObjectStore::new(&project.repo, &Layout::scratch_objects(scratch.path()))?),
            false => None,
        };
        let tip = project.repo.branch_tip(onto)?;
        let base = tip.ok_or_else(|| lane::Error::NoOntoBranch { branch: onto.to_owned() })?;
        if let Some(pinned) = &self.landing.pinned_tips {
            pinned.require_base(onto, base)?;
        }
        let strategy = request.strategy(&project.settings);
        let verify_signatures = git_options::requires_signatures(&project.repo, onto, strategy)?;
        let has_fresh_records = std::mem::take(&mut self.has_fresh_records);
        let mut candidates = refresh_candidates(self.op, group, self.landing, has_fresh_records)?;
        let context = StackContext {
            project,
            onto,
            strategy,
            options: request,
            verify_signatures,
            run_hooks: !request.skip_hooks,
            merge_hook: &self.merge_hook,
            scratch: scratch.path(),
            temp_objects: temp_objects.as_ref(),
        };
        let has_alternatives = group.len() > 1 || request.atomic;
        let change_check = change_check.for_stack(has_alternatives, self.landing.dry_run);
        let OrderedStack { mut stack, lanes, order_notes: why } = stack_in_order(
            self.op,
            self.verifier,
            context,
            base,
            request.order,
            &mut candidates,
            change_check,
        )?;
        let dropped = candidates.dropped;
        stack.decided.extend(dropped.iter().cloned());
        if self.landing.dry_run {
            let temp_objects = temp_objects.as_ref();
            check_checkouts(self.op, &stack, request, temp_objects, has_alternatives)?;
            return prepare_dry_run(self.op, self.verifier, stack, why, temp_objects);
        }
        let rebuild = |lanes: &[Candidate]| {
            let mut stack = Stack::build(context, base, lanes)?;
            stack.decided.extend(dropped.iter().cloned());
            Ok::<_, Error>(stack)
        };
        let verified = self.verifier.verify(self.op, stack, &lanes, pending, &rebuild)?;
        Ok(PreparedStack { verified, order_notes: why, forecast: None })
    }
}

/// Condition under which a stack is checked for lanes that touch local changes in a checkout of their base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalChangeCheck {
    /// Never: with a single lane, no other lane could land without it.
    Never,
    /// Before commands check a stack; without commands, moving the base finds the obstacle.
    BeforeChecks,
    /// Always: a base could not be moved because of local changes.
    Always,
    /// Always, and no change counts as one that can be saved, since saving has failed.
    WithoutAutostash,
}

impl LocalChangeCheck {
    /// Returns when to check a stack: never without alternatives, always in a dry run with alternatives, and
    /// otherwise unchanged.
    fn for_stack(self, has_alternatives: bool, dry_run: bool) -> LocalChangeCheck {
        match has_alternatives {
            true if dry_run => LocalChangeCheck::Always,
            true => self,
            false => LocalChangeCheck::Never,
        }
    }

    /// Returns whether to retry a failed move without the lanes that touch local changes, which may have
    /// appeared while commands ran. Switches to [`LocalChangeCheck::Always`] then; and if `autostash` has failed
    /// even so, to [`LocalChangeCheck::WithoutAutostash`].
    pub(crate) fn should_retry<T>(
        &mut self,
        moved: &Result<T, Error>,
        has_alternatives: bool,
        autostash: bool,
    ) -> bool {
        if !has_alternatives || !moved.as_ref().is_err_and(local_changes::is_file_obstacle) {
            return false;
        }
        *self = match self {
            LocalChangeCheck::BeforeChecks => LocalChangeCheck::Always,
            LocalChangeCheck::Always if autostash => LocalChangeCheck::WithoutAutostash,
            _ => return false,
        };
        true
    }
}

/// Stacks the lanes that may still land on top of `base`. Where `change_check` requires it, lanes that touch
/// local changes in a checkout of the base are moved to the dropped ones.
fn stack_in_order(
    op: &Operation<'_>,
    verifier: &mut Verifier,
    context: StackContext<'_>,
    base: CommitId,
    order: StackOrder,
    candidates: &mut CurrentCandidates,
    change_check: LocalChangeCheck,
) -> Result<OrderedStack, Error> {
    loop {
        let arranged = stack_order::build_ordered(context, base, &candidates.lanes, order)?;
        let stack = &arranged.stack;
        let is_checked = match change_check {
            LocalChangeCheck::Never => false,
            LocalChangeCheck::BeforeChecks => verifier.has_commands_on(op.project, stack)?,
            LocalChangeCheck::Always | LocalChangeCheck::WithoutAutostash => true,
        };
        if stack.applied_lanes.is_empty() || !is_checked {
            return Ok(arranged);
        }
        let autostash = change_check != LocalChangeCheck::WithoutAutostash
            && context.options.uses_autostash(&op.project.settings);
        match local_changes::lowest_obstructed_lane(op, stack, context.temp_objects, autostash)? {
            None => return Ok(arranged),
            Some((candidate, refused)) => {
                candidates.lanes.retain(|lane| !lane.is_same_part(&candidate));
                candidates.dropped.push(refused);
            }
        }
    }
}

/// Fails if the checkouts of the base could not follow the landing that a dry run shows, unless the stack was made
/// for that among alternatives. Reports the changes that would be saved.
fn check_checkouts(
    op: &Operation<'_>,
    stack: &Stack,
    options: &LandingOptions,
    temp_objects: Option<&TempObjectStore>,
    has_alternatives: bool,
) -> Result<(), Error> {
    let autostash = options.uses_autostash(&op.project.settings);
    if !has_alternatives && !stack.applied_lanes.is_empty() {
        branch_move::preflight(op, stack, stack.applied_lanes.len(), temp_objects, autostash)?;
    }
    if autostash { autostash::forecast(op, stack, temp_objects) } else { Ok(()) }
}

/// Returns the stack that a dry run reports; its checks are not run.
fn prepare_dry_run(
    op: &Operation<'_>,
    verifier: &mut Verifier,
    stack: Stack,
    order_notes: Vec<String>,
    temp_objects: Option<&TempObjectStore>,
) -> Result<PreparedStack, Error> {
    verifier.add_tasks_to_summary(&stack);
    let forecast = forecast_base(op.project, verifier, &stack, temp_objects)?;
    let verified = VerifiedStack { stack, failed_lanes: Vec::new() };
    Ok(PreparedStack { verified, order_notes, forecast })
}

/// Candidates of a landing after their lanes were read again.
#[derive(Default)]
struct CurrentCandidates {
    /// Candidates that may still land.
    lanes: Vec<Candidate>,
    /// Outcomes of lanes that were removed or started again concurrently, or may no longer land automatically.
    dropped: Vec<LaneOutcome>,
}

/// Returns the candidates with their current tips, without lanes whose agent has been started again. Such a
/// lane is refused if a person named it.
fn refresh_candidates(
    op: &Operation<'_>,
    candidates: &[Candidate],
    landing: &Landing,
    has_fresh_records: bool,
) -> Result<CurrentCandidates, Error> {
    let (project, mut out) = (op.project, CurrentCandidates::default());
    let is_named = !landing.options.all && !landing.options.is_automatic;
    for candidate in candidates {
        if candidate.part.is_some() || landing.is_simulated {
            out.lanes.push(candidate.clone());
            continue;
        }
        let is_current =
            has_fresh_records && project.repo.branch_tip(&candidate.lane.kind.branch)? == Some(candidate.tip);
        let current = match is_current {
            true => Some(candidate.lane.clone()),
            false => branch_move::find_current_record(project, &candidate.lane)?,
        };
        let Some(lane) = current else {
            out.dropped.push(removed_lane_outcome(project, &candidate.lane, &landing.options));
            continue;
        };
        if lane.base != candidate.lane.base && landing.options.onto.is_none() {
            let reason =
                format!("its base was changed to {} while it was being merged; merge it again", lane.base);
            out.dropped.push(LaneOutcome::refused(&lane.name, &candidate.onto, reason));
            continue;
        }
        if lane_state::effective_state(project, &lane)?.0.is_busy() && !landing.would_stop() {
            if !is_named {
                continue;
            }
            let worktrees = &WorktreeList::read(&project.repo)?;
            let (onto, was_incomplete) = (candidate.onto.clone(), AtomicBool::default());
            let lane = lane.clone();
            let examination = LaneExamination { op, project, landing, lane, onto, worktrees, was_incomplete };
            // Without a refusal the run has ended since, and the lane may land.
            if let Some(reason) = examination.state_refusal()? {
                out.dropped.push(examination.refuse_state(reason)?);
                continue;
            }
        }
        let tip = tip_to_land(project, &lane, landing.dry_run)?;
        if landing.options.is_automatic
            && let Some(reason) = auto_merge::moved_since_run_reason(&project.store, &lane, tip)?
        {
            out.dropped.push(LaneOutcome::refused(&lane.name, &candidate.onto, reason));
        } else if let Some(tip) = tip {
            if let Some(pinned) = &landing.pinned_tips {
                pinned.require_lane(&lane.name, candidate.tip, tip)?;
            }
            out.lanes.push(Candidate { lane, tip, ..candidate.clone() });
        }
    }
    Ok(out)
}
