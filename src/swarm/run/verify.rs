//! Owns finding out in the end of a batch whether what was to be true is: by commands, or by an agent that looks.

use std::path::Path;
use std::time::Duration;

use super::runner::Runner;
use crate::interrupt;
use crate::lane::effective_state;
use crate::merge::{self, Trial, Tried};
use crate::store::records::{AnyLane, LaneState, Purpose};
use crate::store::{self, write_atomically};
use crate::swarm::batch::{Met, Proof};
use crate::swarm::commands::command_of;
use crate::swarm::planner::{Asker, Judged, Judging, Verdict, close_judging};
use crate::swarm::schedule::{Fate, Outcome, Why};
use crate::swarm::{DraftError, Error};

/// How often an agent is asked in all that gives no answer that can be used.
const TRIES: usize = 3;

/// How often it is looked whether an agent has answered.
const GLANCE: Duration = Duration::from_millis(50);

impl Runner<'_> {
    /// Looks at the criteria of a batch that is over. What another process had found out counts, and what it had begun is gone on with.
    ///
    /// # Errors
    /// When this process is to end, or it cannot be written.
    pub(super) fn verify(&mut self, outcome: Outcome) -> Result<Option<Proof>, Error> {
        let record = &self.batch.record;
        if record.criteria.is_empty() {
            return Ok(None);
        }
        let tip = self.project.repo.branch_tip(&record.branch)?;
        let tip = tip.or(self.known.tips.last().copied()).unwrap_or(record.start);
        let path = self.project.store.layout().batch_criteria(self.batch.id());
        let known = record.proof(self.project).filter(|known| known.tip == tip && known.skipped.is_none());
        let mut proof = known.unwrap_or_else(|| Proof::new(tip, &record.criteria));
        if proof.done {
            return Ok(Some(proof));
        }
        proof.skipped = self.why_not(outcome);
        if proof.skipped.is_none() {
            self.note("its criteria are looked at", &[])?;
            self.try_commands(&mut proof, &path)?;
            self.ask_about_others(&mut proof, &path)?;
        }
        if let Some(lane) = &proof.lane {
            // It is in nobody's way.
            drop(close_judging(self.project, lane, proof.asked));
        }
        proof.done = true;
        crate::fault::point("criteria.known");
        proof.save(&path)?;
        crate::fault::point("criteria.written");
        self.note(&proof.in_words(), &[])?;
        Ok(Some(proof))
    }

    /// Why nobody looks, if that is so.
    fn why_not(&self, outcome: Outcome) -> Option<String> {
        let in_conflict = |task: &usize| self.state.fate(*task) == Some(Fate::Failed(Why::Conflict));
        if let Some(task) = (0..self.batch.tasks.len()).find(in_conflict) {
            return Some(format!("the conflict of {} is not resolved", self.batch.name(task)));
        }
        match outcome {
            Outcome::Aborted => Some("the batch was aborted".to_owned()),
            Outcome::Stopped => Some("a failure ended the batch".to_owned()),
            Outcome::Complete | Outcome::Partly => None,
        }
    }

    fn try_commands(&self, proof: &mut Proof, path: &Path) -> Result<(), Error> {
        let id = self.batch.id();
        for at in 0..proof.criteria.len() {
            let it = &proof.criteria[at];
            let Some(line) = command_of(&it.text).filter(|_| it.met.is_none()).map(ToOwned::to_owned) else {
                continue;
            };
            crate::fault::point("criteria.command");
            let name = format!("swarm-{id}");
            let trial =
                Trial { line: &line, commit: proof.tip, branch: &self.batch.record.branch, name: &name };
            match merge::try_command(self.project, &trial) {
                Ok(Tried::Well { at_last: false }) => proof.say(at, Met::Yes, "it succeeds"),
                Ok(Tried::Well { at_last: true }) => {
                    proof.say(at, Met::Yes, "it failed at first, and succeeds the second time");
                }
                Ok(Tried::Badly { how, log }) => {
                    let file = self.project.store.layout().batch_criterion_log(id, at + 1);
                    write_atomically(&file, &log)?;
                    proof.criteria[at].log = Some(file);
                    proof.say(at, Met::No, format!("it fails ({how})"));
                }
                Err(e) => {
                    interrupt::check().map_err(store::Error::from)?;
                    proof.say(at, Met::Unknown, format!("it could not be run: {e}"));
                }
            }
            proof.save(path)?;
        }
        Ok(())
    }

    fn ask_about_others(&self, proof: &mut Proof, path: &Path) -> Result<(), Error> {
        let open = |at: &usize| proof.criteria[*at].met.is_none();
        let open: Vec<usize> = (0..proof.criteria.len()).filter(open).collect();
        if open.is_empty() {
            return Ok(());
        }
        let Some(agent) = self.project.settings.swarm.verify_agent.clone() else {
            for at in open {
                proof.say(at, Met::NotVerified, "swarm.verify_agent names nobody who would look");
            }
            return Ok(());
        };
        let texts: Vec<String> = open.iter().map(|at| proof.criteria[*at].text.clone()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let tip = proof.tip.to_string();
        let asker = Asker {
            project: self.project,
            exe: &self.exe,
            agent: &agent,
            model: None,
            purpose: Purpose::Answer,
            at: Some(&tip),
        };
        let judging = Judging::of(asker, &self.batch.record.summary, &texts);
        let judged = match self.converse(&judging, proof, path) {
            Ok(judged) => judged,
            Err(e) => {
                interrupt::check().map_err(store::Error::from)?;
                Err(format!("it could not be asked: {e}"))
            }
        };
        match judged {
            Ok(all) => {
                for one in all {
                    proof.say(open[one.at], one.met, format!("{agent}: {}", one.evidence));
                }
            }
            Err(why) => {
                for at in open {
                    proof.say(at, Met::Unknown, format!("{agent}: {why}"));
                }
            }
        }
        Ok(proof.save(path)?)
    }

    /// Asks until there is an answer that can be used; why there is none.
    fn converse(
        &self,
        judging: &Judging<'_>,
        proof: &mut Proof,
        path: &Path,
    ) -> Result<Result<Vec<Judged>, String>, DraftError> {
        let before = match &proof.lane {
            Some(lane) => judging.find(lane, proof.asked)?,
            None => None,
        };
        let mut lane = match before {
            Some(lane) if lane.attempt > 0 => lane,
            Some(lane) => judging.once_more(&lane)?,
            None => judging.begin(|lane| {
                (proof.lane, proof.asked) = (Some(lane.name.clone()), Some(lane.created));
                Ok(proof.save(path)?)
            })?,
        };
        crate::fault::point("criteria.asked");
        let mut answer = Err(String::new());
        for tries in 1..=TRIES {
            let state = self.wait_for_answer(&mut lane)?;
            let last = tries == TRIES;
            match judging.heard(&lane, state)? {
                Verdict::Judged(all) => {
                    answer = Ok(all);
                    break;
                }
                Verdict::Wrong { why, answer: said } => {
                    if !last {
                        lane = judging.mistake(&lane, &said, &why)?;
                    }
                    answer = Err(why);
                }
                Verdict::Nothing { why } => {
                    if !last {
                        lane = judging.once_more(&lane)?;
                    }
                    answer = Err(why);
                }
            }
        }
        proof.cost = judging.cost(&lane)?;
        Ok(answer)
    }

    fn wait_for_answer(&self, lane: &mut AnyLane) -> Result<LaneState, DraftError> {
        loop {
            *lane = self.project.any_lane(&lane.name)?;
            let (state, detail) = effective_state(self.project, lane)?;
            if !state.is_busy() {
                lane.detail = detail;
                return Ok(state);
            }
            interrupt::check().map_err(store::Error::from)?;
            std::thread::sleep(GLANCE);
        }
    }
}
