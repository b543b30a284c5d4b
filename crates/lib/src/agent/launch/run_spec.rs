//! Run specification for a supervisor: command line, working folder, output format and limits.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::PathBuf;

use proq_base::money::NanoDollars;
use proq_base::usage::{Cost, SessionTotals};
use proq_git::status::status_query;
use proq_store::Store;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::{RunRecord, RunSummary};
use proq_store::records::step_run::StepRun;
use proq_stream::base::price::Prices;
use proq_stream::base::progress::Progress;
use proq_stream::reader::Dialect;
use proq_stream::summary::Summary;

use super::launcher::Launcher;
use crate::agent::Error;
use crate::agent::base::limits::Limits;
use crate::agent::profiles::profile_catalog;
use crate::lane::Project;
use crate::lane::messages::inbox::ClaimedMessages;

/// Specification of one run that is ready to start. The run's record is on disk.
pub struct RunSpec {
    /// Number of the run.
    pub run_number: RunNumber,
    /// Argument vector, program first.
    pub argv: Vec<OsString>,
    /// Environment variables in addition to those of this process.
    pub env: Vec<(String, OsString)>,
    /// Working folder.
    pub work_dir: PathBuf,
    /// File that the agent reads as standard input.
    pub stdin_file: Option<PathBuf>,
    /// Format of the agent's output.
    pub dialect: Dialect,
    /// Limits of the run.
    pub limits: Limits,
    /// Whether the run resolves the lane's conflict instead of working at its task.
    pub resolves_conflict: bool,
    /// Step of a task folder that the run executes.
    pub step_run: Option<StepRun>,
    /// Whether processes that the agent leaves running outside of its process group are left alone.
    pub keeps_strays: bool,
    /// Launcher that starts the agent.
    pub(crate) launcher: Launcher,
    /// Whether more messages can be sent to the agent in the same session.
    pub(crate) accepts_messages: bool,
    /// Whether the worktree may be reset to the start of the run for a retry.
    pub(crate) may_retry: bool,
    /// Whether the run is for a task of a batch. The batch, not the supervisor, then retries a crashed run.
    pub(crate) is_batch_task: bool,
    /// Prefixes of prompts that the agent would take for one of its own commands.
    pub(crate) command_prefixes: Vec<String>,
    /// Conversation of the run, by the number of its first run.
    pub conversation: RunNumber,
    /// Inbox messages in the prompt. Other processes cannot send them until the run has started.
    pub(crate) claimed_messages: Cell<Option<ClaimedMessages>>,
    /// Totals of the session before the run.
    pub(crate) totals_before: SessionTotals,
    model: Option<String>,
    prices: Prices,
}

impl RunSpec {
    /// Loads the specification of a run from its record.
    pub fn load(
        project: &Project,
        lane: &AnyLane,
        run_number: RunNumber,
        argv: Vec<OsString>,
        env: Vec<(String, OsString)>,
    ) -> Result<RunSpec, Error> {
        let run = RunRecord::load(&project.store.layout().run_record(&lane.name, run_number))?;
        let (dir, prompt_file) = work_dir_and_prompt_file(project, lane, run_number, run.resolves_conflict);
        let dialect = run.dialect.as_deref().and_then(Dialect::from_name).unwrap_or_default();
        // A run must not lose changes that precede it. A read-only run does not change them.
        let may_retry = dialect.reports_outcome()
            && !run.resolves_conflict
            && (lane.purpose().is_some()
                || status_query::status(&project.repo, &dir, true).is_ok_and(|status| status.is_clean()));
        let profile = profile_catalog::find_profile(&project.layers, &run.agent);
        let accepts_messages =
            profile.as_ref().is_ok_and(crate::agent::profiles::profile::Profile::can_resume);
        let command_prefixes = profile.map(|profile| profile.command_prefixes).unwrap_or_default();
        Ok(RunSpec {
            run_number,
            argv,
            env,
            work_dir: dir,
            stdin_file: run.prompt_on_stdin.then_some(prompt_file),
            dialect,
            limits: Limits {
                time: run.limits.max_duration,
                stall: run.limits.max_stall,
                budget: run.budget_left_at_start(),
                linger: project.settings.linger,
            },
            resolves_conflict: run.resolves_conflict,
            step_run: run.step_run.clone(),
            keeps_strays: run.keeps_strays,
            launcher: Launcher::select(&run, dialect),
            accepts_messages,
            may_retry,
            is_batch_task: run.batch.is_some(),
            command_prefixes,
            conversation: run.conversation_number(),
            claimed_messages: Cell::default(),
            totals_before: load_totals_before_run(&project.store, lane, &run)?,
            model: run.model.clone(),
            prices: profile_catalog::load_prices(&project.layers)?,
        })
    }

    /// Returns whether the run only reviews the work of others in the lane.
    pub fn is_review(&self) -> bool {
        self.step_run.as_ref().is_some_and(|step_run| step_run.phase.is_review())
    }

    /// Returns a reader for the agent's output.
    pub(crate) fn new_output_reader(&self) -> proq_stream::reader::OutputReader {
        proq_stream::reader::OutputReader::new(self.dialect, &self.totals_before)
            .with_prices(self.prices.clone(), self.model.clone())
    }
}

/// Returns the working folder of a run and the file with its prompt.
pub(crate) fn work_dir_and_prompt_file(
    project: &Project,
    lane: &AnyLane,
    run_number: RunNumber,
    resolves_conflict: bool,
) -> (PathBuf, PathBuf) {
    let dir = if resolves_conflict { project.resolution_dir(&lane.name) } else { lane.path.clone() };
    (dir, project.store.layout().run_prompt(&lane.name, run_number))
}

/// Returns the totals of a run's session at the end of the session's previous run.
fn load_totals_before_run(store: &Store, lane: &AnyLane, run: &RunRecord) -> Result<SessionTotals, Error> {
    let layout = store.layout();
    for run_number in RunNumber::first().through(run.number.previous()).rev().filter(|_| run.resumes_session)
    {
        let Some(earlier_run) = RunRecord::load_if_exists(&layout.run_record(&lane.name, run_number))? else {
            continue;
        };
        if earlier_run.summary.session.is_some() && earlier_run.summary.session == run.chosen_session {
            let totals = earlier_run.session_totals.unwrap_or_default();
            // The usage of a session in a window is not read.
            return Ok(match earlier_run.interactive {
                true => SessionTotals { session: run.chosen_session.clone(), is_outdated: true, ..totals },
                false => totals,
            });
        }
    }
    Ok(SessionTotals::default())
}

/// Returns the summary of a run in progress, as far as its agent has reported it.
pub(crate) fn live_summary(progress: &Progress) -> RunSummary {
    RunSummary {
        session: progress.session.clone(),
        model: progress.model.clone(),
        tokens: Some(progress.tokens).filter(|tokens| !tokens.is_zero()),
        cost: progress.cost,
        turns: progress.turns,
        tool_calls: progress.tool_calls,
        denied: progress.denied,
        denied_commands: progress.denied_commands.clone(),
        last_tool: progress.last_tool.clone(),
        last_command: progress.last_command.clone(),
        context_percent: progress.context_percent().and_then(|percent| u8::try_from(percent).ok()),
        answer: None,
    }
}

/// Returns the summary of a finished run. A run that ended before its agent reported the session id gets
/// `chosen_session`.
pub(crate) fn final_summary(
    progress: &Progress,
    summary: &Summary,
    chosen_session: Option<String>,
) -> RunSummary {
    let current = live_summary(progress);
    RunSummary {
        session: summary.session.clone().or(chosen_session),
        cost: summary.cost.or(current.cost),
        answer: summary.answer.clone(),
        ..current
    }
}

/// Returns the cost of a run so far.
pub(crate) fn cost_so_far(progress: &Progress) -> Option<NanoDollars> {
    progress.cost.map(|cost: Cost| cost.amount)
}
