//! Reads what attention depends on, as far as a lane's state calls for it.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::time::Duration;

use proq_base::config::settings::Settings;
use proq_base::lane_name::LaneName;
use proq_git::RepoPath;
use proq_plan::schedule::status_queries::TaskStatus;
use proq_plan::schedule::task_phase::TaskOutcome;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::agent::{Activity, ReportRecord};
use proq_store::records::lane_state::LaneState;
use proq_store::records::run::RunRecord;

use super::attention::{Attention, BatchFacts, LaneFacts, of_commands};
use super::cost;
use crate::event::approval::Approvals;
use crate::event::log::{Event, EventName};
use crate::event::reader::recent_events;
use crate::lane::Project;
use crate::lane::inspection::landing_checks;
use crate::lane::inspection::list::LaneView;
use crate::merge::comparison::forecast::changed_lines::LineCounting;
use crate::merge::comparison::forecast::compute::{ForecastRequest, forecast_lanes};
use crate::merge::comparison::forecast::report::{Forecast, PairResult};
use crate::swarm::batch::folded_batch::{FoldedBatch, ListedBatch};
use crate::swarm::batch::log::LogLine;
use crate::swarm::batch::scheduler;

/// Time limit of the forecast of one lane's overlaps. Those that are unknown by then are left out.
const OVERLAP_TIME_LIMIT: Duration = Duration::from_millis(150);

/// Reader of what needs a person in one repository. What cannot be read needs nobody.
pub struct AttentionReader<'a> {
    project: &'a Project,
    /// Recent events of lanes, read once.
    events: OnceCell<Vec<Event>>,
}

impl<'a> AttentionReader<'a> {
    /// Creates a reader. It reads nothing yet.
    #[must_use]
    pub fn new(project: &'a Project) -> AttentionReader<'a> {
        AttentionReader { project, events: OnceCell::new() }
    }

    /// Returns what needs a person in a lane. `forecast` has the conflicts of all lanes.
    #[must_use]
    pub fn of_lane(&self, view: &LaneView, forecast: Option<&Forecast>) -> Vec<Attention> {
        let (lane, layout) = (&view.lane, self.project.store.layout());
        if view.state().is_closed() {
            return Vec::new();
        }
        let records = &view.records;
        let with_usage = |run: &RunRecord| {
            let summary = cost::run_usage(&layout.lane(&lane.name), run);
            RunRecord { summary, ..run.clone() }
        };
        let is_waiting = view.activity == Some(Activity::NeedsApproval);
        let has_run = lane.last_run != RunNumber::NONE;
        let is_conflict = view.state() == LaneState::Conflict;
        let is_check_failed = view.state() == LaneState::CheckFailed;
        let facts = LaneFacts {
            view,
            is_scheduled: lane.batch.as_ref().is_some_and(|in_batch| {
                scheduler::is_running(&self.project.store, &in_batch.batch).unwrap_or(false)
            }),
            activity: is_waiting.then(|| records.activity.get()).flatten().cloned(),
            last_run: has_run.then(|| records.run.get()).flatten().map(with_usage),
            conflict: is_conflict.then(|| records.conflict.get()).flatten().cloned(),
            failed_check: is_check_failed.then(|| records.failed_check.get()).flatten().cloned(),
            report: ReportRecord::load_if_exists(&layout.lane_report(&lane.name)).ok().flatten(),
            base_conflict: forecast.map(|forecast| base_conflict(forecast, &lane.name)).unwrap_or_default(),
            overlaps: forecast.map(|forecast| forecast.conflicting_lanes(&lane.name)).unwrap_or_default(),
            events: self.events.get_or_init(|| {
                recent_events(&self.project.store, &[EventName::LaneEscape, EventName::LaneOverlap])
            }),
        };
        facts.attention()
    }

    /// Returns what needs a person in a lane, with a forecast of its overlaps alone.
    #[must_use]
    pub fn of_single_lane(&self, view: &LaneView) -> Vec<Attention> {
        let forecast_overlaps = || {
            // An unreadable record of another lane is no concern of this one.
            let lanes = self.project.load_lanes(&drop).ok()?.into_iter();
            let request = ForecastRequest {
                lanes: lanes.filter_map(|lane| lane.into_owned_lane().ok()).collect(),
                include_uncommitted: false,
                time_limit: Some(OVERLAP_TIME_LIMIT),
                // Whether the other lanes conflict with the base decides which of the pairs count.
                only_lane: None,
                line_counting: LineCounting::Skip,
            };
            forecast_lanes(self.project, request).ok()
        };
        let has_commits = view.distance.is_some_and(|distance| distance.ahead > 0);
        self.of_lane(view, has_commits.then(forecast_overlaps).flatten().as_ref())
    }

    /// Returns what needs a person beside the lanes: in `batches`, and commands to approve.
    #[must_use]
    pub fn of_repository(&self, batches: &[ListedBatch]) -> Vec<Attention> {
        let mut out = Vec::new();
        for listed in batches {
            let Some(FoldedBatch { batch, lines, state }) = listed.folded(&self.project.store) else {
                continue;
            };
            let is_set_aside =
                |task: &usize| state.task_status(*task) == TaskStatus::Settled(TaskOutcome::SetAside);
            let facts = BatchFacts {
                id: batch.id(),
                is_paused: state.pause_reason().is_some(),
                set_aside: (0..batch.tasks.len())
                    .filter(is_set_aside)
                    .map(|task| batch.task_name(task))
                    .collect(),
                since: lines.last().map(LogLine::time),
            };
            out.extend(facts.attention());
        }
        out.extend(of_commands(self.count_unapproved_commands().unwrap_or_default()));
        out
    }

    /// Returns the number of commands of the repository that nobody has approved.
    fn count_unapproved_commands(&self) -> Option<usize> {
        let approvals = Approvals::load(&self.project.repo, &self.project.store).ok()?;
        let layers = landing_checks::default_base_layers(self.project).ok()?;
        let commands = approvals.all_commands(&layers, &Settings::from_layers(&layers));
        Some(commands.iter().filter(|command| !command.approved).count())
    }
}

/// Returns the paths in which a lane's commits would conflict with its base by a forecast.
fn base_conflict(forecast: &Forecast, lane: &LaneName) -> Vec<RepoPath> {
    let Some(PairResult::Conflict { conflicts }) = forecast.base_result(lane) else {
        return Vec::new();
    };
    let paths: BTreeSet<&RepoPath> = conflicts.iter().map(|conflict| &conflict.path).collect();
    paths.into_iter().cloned().collect()
}
