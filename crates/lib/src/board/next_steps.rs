//! Next steps with the lanes and batches of a repository, each with a command.

use proq_base::hint;
use proq_base::hint::Hint;
use proq_base::lane_name::LaneName;
use proq_git::status::worktree_status::WorktreeStatus;
use proq_store::records::agent::Activity;
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::LaneState;

use super::rows::lane_conflicts::LaneConflicts;
use super::rows::lane_list::{LaneList, missing_parts};
use crate::lane::Project;
use crate::lane::inspection::list::LaneView;
use crate::merge::comparison::forecast::report::PairResult;
use crate::merge::land::sure_landing;
use crate::swarm::batch::record::BatchRecord;
use crate::swarm::batch::scheduler;
use crate::swarm::landing::batch_landing::UnlandedBatch;

/// Maximum number of next steps.
const MAX_NEXT_STEPS: usize = 2;

/// Returns the most useful next steps with the lanes and batches of a list, each as what it does and its
/// command. What needs the user comes first, then what can go on; one step of each kind comes before a
/// second of the same.
#[must_use]
pub fn next_steps(project: &Project, lane_list: &LaneList) -> Vec<Hint> {
    let mut needs_user = problem_steps(project, lane_list).into_iter();
    let mut possible = batch_steps(project, &lane_list.unlanded_batches)
        .into_iter()
        .chain(progress_steps(project, lane_list))
        .collect::<Vec<_>>()
        .into_iter();
    let mut steps: Vec<Hint> = needs_user.next().into_iter().chain(possible.next()).collect();
    steps.extend(needs_user.chain(possible));
    steps.truncate(MAX_NEXT_STEPS);
    steps
}

/// Returns the commands that continue or land batches whose work is not on their bases, for two at most.
#[must_use]
pub fn batch_steps(project: &Project, batches: &[UnlandedBatch]) -> Vec<Hint> {
    let steps_of = |unlanded: &UnlandedBatch| {
        let BatchRecord { id, base, .. } = &unlanded.batch;
        if unlanded.is_over() {
            return vec![unlanded.landing_hint(project, &format!("land it on {base}"))];
        }
        let land_part = unlanded.landing_hint(project, &format!("or land what is done on {base}"));
        vec![hint!("resume it: git proq batch resume {id}"), land_part]
    };
    batches.iter().flat_map(steps_of).take(MAX_NEXT_STEPS).collect()
}

/// Returns the lanes of a list in `state` that have lost neither branch nor worktree.
fn intact_lanes(lane_list: &LaneList, state: LaneState) -> impl Iterator<Item = &LaneView> {
    let is_intact = |view: &&LaneView| missing_parts(view).is_empty() && view.worktree_defect.is_none();
    lane_list.views.iter().filter(move |view| view.state() == state).filter(is_intact)
}

/// Returns the steps about lanes that wait for the user, most urgent first, one for each kind. The scheduler
/// of a running batch deals with its lanes itself.
fn problem_steps(project: &Project, lane_list: &LaneList) -> Vec<Hint> {
    let is_scheduled = |view: &LaneView| {
        let batch = view.lane.batch.as_ref().map(|in_batch| &in_batch.batch);
        batch.is_some_and(|batch| scheduler::is_running(&project.store, batch).unwrap_or(false))
    };
    let first = |state| intact_lanes(lane_list, state).find(|view| !is_scheduled(view));
    let conflicts_with_base = |view: &&LaneView| {
        let forecast = lane_list.forecast.as_ref();
        let result = forecast.and_then(|forecast| forecast.base_result(&view.lane.name));
        !is_scheduled(view) && result.is_some_and(PairResult::is_conflict)
    };
    let in_conflict = first(LaneState::Conflict)
        .or_else(|| intact_lanes(lane_list, LaneState::Done).find(conflicts_with_base));
    let step = |view: Option<&LaneView>, purpose: &str, command: &str, flags: &str| {
        let name = &view?.lane.name;
        Some(hint!("{purpose} '{name}': git proq {command} {name}{flags}"))
    };
    let asking = lane_list.views.iter().find(|view| view.activity == Some(Activity::NeedsApproval));
    let failed = first(LaneState::Failed).or_else(|| first(LaneState::Stalled));
    let steps = [
        step(asking, "answer the agent of", "open", ""),
        step(in_conflict, "resolve the conflict of", "resolve", ""),
        step(first(LaneState::CheckFailed), "show the check that failed for", "logs", " --checks"),
        step(failed, "show what went wrong in", "show", ""),
        step(first(LaneState::Orphaned), "stop what is left of the run of", "stop", ""),
    ];
    steps.into_iter().flatten().collect()
}

/// Returns the steps that go on with lanes, the most useful first.
fn progress_steps(project: &Project, lane_list: &LaneList) -> Vec<Hint> {
    let views = &lane_list.views;
    let done = done_lanes(lane_list);
    let mut out = Vec::new();
    if !done.is_empty() {
        let (count, are) = match done.len() {
            1 => ("1 lane".to_owned(), "is"),
            n => (format!("{n} lanes"), "are"),
        };
        out.push(match is_sure_all_land(project, lane_list, &done) {
            true => hint!("land {count}: git proq merge --all"),
            false => hint!("{count} {are} done; see what would land: git proq merge --all --dry-run"),
        });
    }
    let finished_rival = views.iter().find(|view| is_rival(views, view) && !view.state().is_busy());
    if let Some(group) = finished_rival.and_then(|v| v.lane.group.as_ref()) {
        out.push(hint!("compare the attempts at '{group}': git proq compare {group}"));
    }
    if let Some(view) = views.iter().find(|v| v.state() == LaneState::Done && v.lane.is_read_only()) {
        out.push(hint!("read the answer of '{0}': git proq show {0}", view.lane.name));
    }
    if let (Some(first), None) = (done.first(), &lane_list.stored.preview) {
        out.push(hint!("see '{0}' in your checkout: git proq preview {0}", first.lane.name));
    }
    let mut running =
        intact_lanes(lane_list, LaneState::Running).chain(intact_lanes(lane_list, LaneState::Starting));
    if let Some(first) = running.next() {
        out.push(hint!("follow the agent of '{0}': git proq logs -f {0}", first.lane.name));
    }
    if intact_lanes(lane_list, LaneState::Landed).next().is_some() {
        out.push(hint!("remove lanes that have landed: git proq cleanup"));
    }
    out
}

/// Returns how many lanes `git proq merge --all` is known to land; none if that is not known.
#[must_use]
pub fn sure_landing_count(project: &Project, lane_list: &LaneList) -> Option<usize> {
    let done = done_lanes(lane_list);
    (!done.is_empty() && is_sure_all_land(project, lane_list, &done)).then_some(done.len())
}

/// Returns whether a lane is one of two or more attempts at its task.
fn is_rival(views: &[LaneView], view: &LaneView) -> bool {
    let group = view.lane.group.as_ref();
    group.is_some() && views.iter().filter(|other| other.lane.group.as_ref() == group).count() > 1
}

/// Returns the lanes that are done, land by themselves, and are not attempts of which one is picked.
fn done_lanes(lane_list: &LaneList) -> Vec<&LaneView> {
    let lands_alone = |view: &&LaneView| {
        !is_rival(&lane_list.views, view) && view.lane.branch().is_some() && view.lane.batch.is_none()
    };
    intact_lanes(lane_list, LaneState::Done).filter(lands_alone).collect()
}

/// Returns whether `git proq merge --all` is known to land exactly `lanes`. All their work must be committed,
/// none may conflict with its base or with another of them, and nothing else may block the landing.
fn is_sure_all_land(project: &Project, lane_list: &LaneList, lanes: &[&LaneView]) -> bool {
    let has_commits = |view: &LaneView| view.distance.is_some_and(|distance| distance.ahead > 0);
    let may_also_land = |view: &LaneView| {
        matches!(view.state(), LaneState::Idle | LaneState::Conflict | LaneState::CheckFailed)
            && has_commits(view)
    };
    let names: Vec<&LaneName> = lanes.iter().map(|view| &view.lane.name).collect();
    let is_ready = |view: &&LaneView| {
        let conflicts = LaneConflicts::from_forecast(lane_list.forecast.as_ref(), &view.lane.name);
        view.dirty.as_ref().is_some_and(WorktreeStatus::is_clean)
            && has_commits(view)
            && view.lane.batch.is_none()
            && conflicts.is_some_and(|conflicts| conflicts.is_compatible_with(&names))
    };
    let records = || -> Vec<LaneRecord> {
        lanes.iter().filter_map(|view| view.lane.clone().into_owned_lane().ok()).collect()
    };
    !lane_list.views.iter().any(may_also_land)
        && lanes.iter().all(is_ready)
        && sure_landing::is_sure_to_land(project, &records())
}
