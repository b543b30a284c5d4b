//! Owns a lane that checks put aside: what is kept of that, and how it is told.

use std::rc::Rc;

use super::Error;
use super::outcome::{Check, Outcome, Verdict};
use super::request::Candidate;
use super::runs::{AGAIN, Red};
use super::stack::Stack;
use crate::event;
use crate::git::Oid;
use crate::lane::Operation;
use crate::store::records::{CheckRecord, LaneRecord, LaneState, Step};
use crate::store::{self, Layout, Record, new_id, now};

/// How many of the last lines are shown.
const SHOWN: usize = 15;

/// A command, and whose it is.
#[derive(Debug, Clone)]
pub(super) struct Blame {
    /// The command line.
    pub(super) command: String,
    /// The lane to whose task it belongs; none when it is for every landing.
    pub(super) task_of: Option<String>,
}

/// A lane with which a command fails that succeeds without it, or that its own task asks for.
#[derive(Debug, Clone)]
pub(super) struct Failed {
    /// The lane.
    pub(super) candidate: Candidate,
    /// The lanes below it.
    pub(super) with: Vec<String>,
    /// The tree on which it fails.
    pub(super) tree: Oid,
    /// What fails.
    pub(super) blame: Blame,
    /// How it failed.
    pub(super) red: Rc<Red>,
    /// The name of the log.
    id: String,
}

impl Failed {
    /// A lane on top of others.
    pub(super) fn new(
        candidate: Candidate,
        with: Vec<String>,
        tree: Oid,
        blame: Blame,
        red: Rc<Red>,
    ) -> Failed {
        Failed { candidate, with, tree, blame, red, id: new_id() }
    }

    /// The steps that put the lane in state `check-failed`. What was written is kept at once: it is nobody's record.
    pub(super) fn steps(&self, op: &Operation<'_>, stack: &Stack) -> Result<Vec<Step>, Error> {
        let layout = op.project.store.layout();
        let lane = &self.candidate.lane;
        let log = Layout::check_log(&self.id);
        store::write_atomically(&layout.lane(&lane.name).join(&log), &self.red.log)?;
        let record = CheckRecord {
            lane: lane.name.clone(),
            onto: stack.onto.clone(),
            command: self.blame.command.clone(),
            task_of: self.blame.task_of.clone(),
            ended: self.red.ended.to_string(),
            with: self.with.clone(),
            tree: self.tree,
            base_tip: stack.tip(),
            theirs: self.candidate.tip,
            at: now(),
            log,
        };
        let path = layout.check(&lane.name);
        let mut steps = vec![op.record_step(&path, Some(record.text(&path)?))?];
        let detail = self.said();
        steps.extend(op.lane_step(&lane.name, |record| {
            record.state = LaneState::CheckFailed;
            record.detail = Some(detail);
        })?);
        Ok(steps)
    }

    /// Tells the event log.
    pub(super) fn tell(&self, op: &Operation<'_>) {
        let lane = LaneRecord { state: LaneState::CheckFailed, ..self.candidate.lane.clone() };
        let told = format!("lane '{}' was left out: {}", lane.name, self.said());
        op.tell(event::Name::MergeCheckFailed, Some(&lane), told);
    }

    /// Its line of the answer.
    pub(super) fn outcome(&self, op: &Operation<'_>, stack: &Stack) -> Outcome {
        let lane = &self.candidate.lane.name;
        let folder = op.project.store.layout().lane(lane);
        Outcome {
            message: Some(self.said()),
            part: self.candidate.key(),
            check: Some(Check {
                command: self.blame.command.clone(),
                task_of: self.blame.task_of.clone(),
                ended: self.red.ended,
                with: self.with.clone(),
                log: folder.join(Layout::check_log(&self.id)),
                tail: self.tail(),
            }),
            ..Outcome::new(lane, &stack.onto, Verdict::CheckFailed)
        }
    }

    /// The last lines of what was written.
    pub(super) fn tail(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.red.log);
        let last_try = text.lines().rev().take_while(|line| *line != AGAIN);
        let mut tail: Vec<String> = last_try.take(SHOWN).map(ToOwned::to_owned).collect();
        tail.reverse();
        tail
    }

    fn said(&self) -> String {
        let (Blame { command, task_of }, ended) = (&self.blame, self.red.ended);
        match task_of {
            None => format!("`{command}` failed ({ended})"),
            Some(lane) if *lane == self.candidate.lane.name => {
                format!("its own check `{command}` failed ({ended})")
            }
            Some(lane) => format!("`{command}`, a check of lane '{lane}', failed ({ended})"),
        }
    }
}

/// The steps that forget why the checks of a lane failed, now that it landed.
pub(super) fn forget(op: &Operation<'_>, lane: &str) -> Result<Option<Step>, Error> {
    let path = op.project.store.layout().check(lane);
    Ok(if path.exists() { Some(op.record_step(&path, None)?) } else { None })
}
