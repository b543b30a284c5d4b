//! Owns following a batch to its end: a line for each change, or on a terminal a view of its lanes.

use std::time::Duration;

use super::super::status::{criteria, when_paused};
use super::super::{Done, Session, ui};
use super::lines::Reader;
use super::{exit_of, view};
use crate::explain::Exit;
use crate::lane::Project;
use crate::swarm::{self, Batch, Line, LogTail, Outcome, Picture};

/// How often it is looked for changes: a person waits.
pub(super) const GLANCE: Duration = Duration::from_millis(100);

/// Follows a batch until it is over or paused.
pub(crate) fn follow(session: &Session, project: &Project, mut at: Follow) -> Done {
    let shown = ui::stderr_is_terminal() && !session.ui.json && !session.ui.quiet;
    if shown && std::env::var_os("TERM").is_none_or(|term| term != "dumb") {
        view::show(session, project, &mut at)?;
    } else {
        // From here on Ctrl-C leaves; the batch goes on by itself.
        crate::interrupt::disarm();
        while let Going::On = at.look(project, &mut |line| session.ui.say(line))? {
            std::thread::sleep(GLANCE);
        }
    }
    say_end(session, project, &at)
}

/// Whether a batch goes on.
pub(super) enum Going {
    On,
    /// It is over, paused, or nobody goes on with it.
    Ended,
}

/// A batch that is followed.
pub(crate) struct Follow {
    pub(super) reader: Reader,
    /// Where it is in the batch's log.
    log: LogTail,
    /// Whether a process goes on with it.
    scheduler: bool,
}

impl Follow {
    /// Says all that has happened to a batch, and what happens.
    ///
    /// # Errors
    /// When the batch cannot be read.
    pub(crate) fn from_the_start(project: &Project, id: &str) -> Result<Follow, swarm::Error> {
        let batch = Batch::load(project, id)?;
        let log = batch.log_tail(project);
        Ok(Follow { reader: Reader::new(batch), log, scheduler: true })
    }

    /// Says only what happens from now on.
    ///
    /// # Errors
    /// As [`Follow::from_the_start`], and when its log cannot be read.
    pub(crate) fn from_here(project: &Project, id: &str) -> Result<Follow, swarm::Error> {
        let mut at = Follow::from_the_start(project, id)?;
        for line in at.log.more()? {
            drop(at.reader.take(&line));
        }
        Ok(at)
    }

    /// Takes in what has been written since.
    pub(super) fn look(
        &mut self,
        project: &Project,
        say: &mut dyn FnMut(String),
    ) -> Result<Going, swarm::Error> {
        // Asked first: what it wrote before it ended is read then.
        self.scheduler = swarm::is_run(project, self.reader.batch.id())?;
        for line in self.log.more()? {
            for text in self.reader.take(&line) {
                say(format!("{}  {text}", at(&line)));
            }
        }
        let ended = self.reader.end().is_some() || !self.scheduler;
        // It lets go of its lock last, so that whatever comes next finds it free.
        Ok(if ended && !self.scheduler { Going::Ended } else { Going::On })
    }
}

fn at(line: &Line) -> String {
    line.at().on_the_wall()
}

fn say_end(session: &Session, project: &Project, at: &Follow) -> Done {
    let (batch, state) = (&at.reader.batch, &at.reader.state);
    let id = batch.id();
    let exit = exit_of(project, batch, state);
    if session.ui.json {
        session.ui.long_object(Picture::of(project, batch, &batch.log(project)?, at.scheduler));
        return Ok(exit);
    }
    let Some(end) = at.reader.end() else {
        session.ui.answer(format!("nobody goes on with batch {id}: its process is gone"));
        session.ui.hint(format!("go on with it: git proq resume {id}"));
        return Ok(Exit::Refused);
    };
    session.ui.answer(end);
    if let (Some(proof), Some(_)) = (batch.record.proof(project), state.outcome_if_over()) {
        for line in criteria(&proof) {
            session.ui.answer(line);
        }
    }
    let landed = at.reader.known.tips.len() > 1;
    match state.outcome_if_over() {
        None => {
            session.ui.hint(format!("look: git proq status {id}"));
            let picture = Picture::of(project, batch, &batch.log(project)?, at.scheduler);
            for hint in when_paused(&picture) {
                session.ui.hint(hint);
            }
        }
        Some(outcome) => {
            if batch.record.is_unproven(project) {
                session.ui.hint(format!("have its criteria looked at: git proq resume {id}"));
            }
            if outcome != Outcome::Complete {
                session.ui.hint(format!("see what became of each task: git proq status {id}"));
            }
            if matches!(outcome, Outcome::Aborted | Outcome::Stopped) {
                session.ui.hint(format!("go on with it all the same: git proq resume {id}"));
            }
            if landed && !batch.record.auto_merge {
                let what = format!("land it on {}", batch.record.base);
                session.ui.hint(swarm::how_to_land(project, &batch.record, &what));
            }
        }
    }
    Ok(exit)
}
