//! Owns following a run that this command has started, to its end, with one line of progress.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::auto_merge::{self, Landing};
use super::{Done, Failure, Session, logs, looking, send, spawn, ui, wait};
use crate::agent::Job;
use crate::explain::Exit;
use crate::harmless;
use crate::lane::Project;
use crate::store::records::{AnyLane, LaneState};

/// The run's end and its landing's, and the exit code of that.
fn say_landing(session: &Session, lane: &AnyLane, job: Option<&Job>, landing: &Landing) -> Exit {
    if session.ui.json {
        say_json(session, &landing.lane, job, landing.lane.state);
    } else {
        session.ui.answer(wait::line(lane, LaneState::Done));
        let text = crate::regular_file::record(&landing.log).unwrap_or_default();
        session.ui.text(&String::from_utf8_lossy(&text));
    }
    if landing.unsaid {
        session.ui.warn("its landing ended without a word; it is tried again after the next landing");
    }
    landing.exit
}

/// One line of progress, where somebody looks.
fn bar(session: &Session, lane: &AnyLane) -> ProgressBar {
    if session.ui.quiet || session.ui.json || !ui::stderr_is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg:.dim}") {
        bar.set_style(style);
    }
    bar.set_prefix(lane.name.clone());
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Watches the run to its end, with its last line beside.
fn watch(project: &Project, lane: &AnyLane, bar: &ProgressBar) -> Result<(AnyLane, LaneState), Failure> {
    // From here on Ctrl-C leaves; the agent goes on under its supervisor.
    crate::interrupt::disarm();
    let log = project.store.layout().run_log(&lane.name, lane.attempt);
    let ended = logs::watch(project, lane, &log, &mut |line| bar.set_message(harmless::line(line)))?;
    wait::settle(project, lane)?;
    Ok(ended)
}

/// Follows the run with one line of progress, and says nothing of its result.
pub(super) fn to_end(
    session: &Session,
    project: &Project,
    lane: &AnyLane,
) -> Result<(AnyLane, LaneState), Failure> {
    let bar = bar(session, lane);
    let (now, state) = watch(project, lane, &bar)?;
    bar.finish_and_clear();
    wait::signal(session, project, &now, state);
    Ok((now, state))
}

/// Follows the run with one line of progress, and passes its result on.
pub(super) fn follow(session: &Session, project: &Project, lane: &AnyLane, job: Option<&Job>) -> Done {
    let bar = bar(session, lane);
    let (now, state) = watch(project, lane, &bar)?;
    if lane.auto_merge {
        bar.set_message("landing");
    }
    let landing = lane.auto_merge.then(|| auto_merge::wait(project, lane)).transpose()?;
    bar.finish_and_clear();
    wait::signal(session, project, &now, state);
    if let Some(landing) = landing.filter(|landing| landing.run == Some(LaneState::Done)) {
        return Ok(say_landing(session, lane, job, &landing));
    }
    let lane = now;
    if lane.only_looks() {
        return looking::say_end(session, project, &lane, job, state);
    }
    if session.ui.json {
        say_json(session, &lane, job, state);
    } else {
        session.ui.answer(wait::line(&lane, state));
        send::say_what_waits(session, project, &lane.name);
    }
    Ok(wait::exit_of(state))
}

/// Says to programs what became of a lane that was to land.
fn say_json(session: &Session, lane: &AnyLane, job: Option<&Job>, state: LaneState) {
    match lane.clone().with_tree() {
        Ok(lane) => spawn::say_json(session, &lane, job, state),
        Err(_) => looking::say_json(session, lane, job, state, None),
    }
}
