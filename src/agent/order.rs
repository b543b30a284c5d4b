//! Owns what a supervisor is to run: one command line, where it runs, how its output is read, and what it may take.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::Error;
use super::catalogue;
use super::launcher::Launcher;
use super::limits::Limits;
use super::outfit::desk;
use super::stream::{Cost, Dialect, Prices, Progress, SessionTotals, Summary};
use crate::git;
use crate::lane::{Project, Taken};
use crate::store::Record;
use crate::store::records::{Account, AnyLane, RunRecord, Stint};

/// One run, ready to start. Its record is on disk.
pub(super) struct Order {
    /// The run's number.
    pub(super) attempt: u32,
    /// The command line.
    pub(super) words: Vec<OsString>,
    /// Variables beyond those that this process has.
    pub(super) env: Vec<(String, OsString)>,
    /// Where it runs.
    pub(super) dir: PathBuf,
    /// What it reads.
    pub(super) stdin: Option<PathBuf>,
    /// What its output is written in.
    pub(super) dialect: Dialect,
    /// What it may take.
    pub(super) limits: Limits,
    /// Whether it resolves the lane's conflict, rather than works at its task.
    pub(super) resolves: bool,
    /// Which part it has in a task that is a folder.
    pub(super) stint: Option<Stint>,
    /// Whether what it leaves running outside of its group is left alone.
    pub(super) keeps_strays: bool,
    /// How it is started.
    pub(super) launcher: Launcher,
    /// Whether it can be told more in the same session.
    pub(super) can_be_sent_to: bool,
    /// Whether it may be brought back to where it began, and tried again.
    pub(super) may_try_again: bool,
    /// Whether it is for a task of a batch, which has its own way with failures.
    pub(super) of_batch: bool,
    /// How a prompt begins that the agent would take for a command of its own.
    pub(super) commands: Vec<String>,
    /// The conversation that it belongs to.
    pub(super) talk: u32,
    /// The messages that it tells: nobody else may until it has started.
    pub(super) taken: Cell<Option<Taken>>,
    /// What its session had counted before.
    pub(super) before: SessionTotals,
    model: Option<String>,
    prices: Prices,
}

impl Order {
    /// The run of this number, whose record says how it is to be.
    pub(super) fn of(
        project: &Project,
        lane: &AnyLane,
        attempt: u32,
        words: Vec<OsString>,
        env: Vec<(String, OsString)>,
    ) -> Result<Order, Error> {
        let run = RunRecord::load(&project.store.layout().run_record(&lane.name, attempt))?;
        let (dir, prompt) = desk(project, lane, attempt, run.resolves);
        let dialect = run.dialect.as_deref().and_then(Dialect::named).unwrap_or_default();
        // What was there before the run is not the run's to lose. One that only looks leaves it alone.
        let may_try_again = dialect.judges_its_end()
            && !run.resolves
            && (lane.purpose().is_some()
                || git::status(&project.repo, &dir, true).is_ok_and(|dirt| dirt.is_clean()));
        let profile = catalogue::profile_of(&project.layers, &run.agent);
        let can_be_sent_to = profile.as_ref().is_ok_and(super::profile::Profile::goes_on);
        let commands = profile.map(|profile| profile.commands).unwrap_or_default();
        let seconds = |limit: Option<u64>| limit.map(Duration::from_secs);
        Ok(Order {
            attempt,
            words,
            env,
            dir,
            stdin: run.prompt_on_stdin.then_some(prompt),
            dialect,
            limits: Limits {
                time: seconds(run.limits.time),
                stall: seconds(run.limits.stall),
                budget: run.budget_left(),
                linger: project.settings.linger,
            },
            resolves: run.resolves,
            stint: run.stint.clone(),
            keeps_strays: run.keeps_strays,
            launcher: Launcher::of(&run, dialect),
            can_be_sent_to,
            may_try_again,
            of_batch: run.batch.is_some(),
            commands,
            talk: run.talk(),
            taken: Cell::default(),
            before: counted_before(project, lane, &run)?,
            model: run.model.clone(),
            prices: catalogue::prices(&project.layers)?,
        })
    }

    /// Whether it only judges what others do in the lane.
    pub(super) fn reviews(&self) -> bool {
        self.stint.as_ref().is_some_and(|stint| stint.part.is_review())
    }

    /// A reader for its output.
    pub(super) fn reader(&self) -> super::stream::Reader {
        super::stream::Reader::new(self.dialect, &self.before)
            .expecting(self.prices.clone(), self.model.clone())
    }
}

/// What the session of a run had counted when its last run ended.
fn counted_before(project: &Project, lane: &AnyLane, run: &RunRecord) -> Result<SessionTotals, Error> {
    let layout = project.store.layout();
    for attempt in (1..run.attempt).rev().filter(|_| run.resumed) {
        let Some(former) = RunRecord::find(&layout.run_record(&lane.name, attempt))? else { continue };
        if former.account.session.is_some() && former.account.session == run.session {
            let totals = former.totals.unwrap_or_default();
            // Nothing is read of what a session uses in a window.
            return Ok(match former.interactive {
                true => SessionTotals { session: run.session.clone(), is_behind: true, ..totals },
                false => totals,
            });
        }
    }
    Ok(SessionTotals::default())
}

/// What a run that lasts has said of itself.
pub(super) fn account_so_far(progress: &Progress) -> Account {
    Account {
        session: progress.session.clone(),
        model: progress.model.clone(),
        tokens: Some(progress.tokens).filter(|tokens| !tokens.is_none()),
        cost: progress.cost,
        turns: progress.turns,
        tool_calls: progress.tool_calls,
        last_tool: progress.last_tool.clone(),
        context: progress.context_percent().and_then(|percent| u8::try_from(percent).ok()),
        answer: None,
    }
}

/// What a run that has ended has said of itself. One that ended before it named its session has the one `chosen` for it.
pub(super) fn account(progress: &Progress, summary: &Summary, chosen: Option<String>) -> Account {
    let so_far = account_so_far(progress);
    Account {
        session: summary.session.clone().or(chosen),
        cost: summary.cost.or(so_far.cost),
        answer: summary.answer.clone(),
        ..so_far
    }
}

/// What a run has cost so far, in 1e-9 USD.
pub(super) fn spent(progress: &Progress) -> Option<u64> {
    progress.cost.map(|cost: Cost| cost.nanos)
}
