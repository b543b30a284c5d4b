//! Owns a lane's task that is a folder, while somebody works at it: taking each run into account once, and what comes next.

use super::super::Error;
use super::course::{self, Bounds, Came, Next};
use super::folder::{Folder, KeptOut, PROMPT, STATUS};
use super::judgement::judgement;
use super::review::{self, Cleared};
use super::status::{self, Status};
use crate::fault;
use crate::lane::{self, Project};
use crate::store::records::{
    AnyLane, Judgement, LaneRecord, PacketRecord, Part, Review, RunClass, RunRecord, Stint,
};
use crate::store::{Record, remove_drafts, write_atomically};

/// A task that is a folder, in its lane.
pub(crate) struct AtWork<'a> {
    project: &'a Project,
    lane: LaneRecord,
    folder: Folder,
    record: PacketRecord,
}

/// What is known of a run that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told<'a> {
    /// How.
    pub(crate) class: RunClass,
    /// Why, in a line.
    pub(crate) detail: Option<&'a str>,
    /// Its last words.
    pub(crate) answer: Option<&'a str>,
    /// Whether a review that came to nothing is a failure of the reviewer's, or is just asked for again.
    pub(crate) counts: bool,
}

impl<'a> AtWork<'a> {
    /// That of a lane, if it has one.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub(crate) fn find(project: &'a Project, lane: &AnyLane) -> Result<Option<AtWork<'a>>, Error> {
        let Some(record) = PacketRecord::find(&project.store.layout().packet(&lane.name))? else {
            return Ok(None);
        };
        let Ok(lane) = lane.clone().with_tree() else { return Ok(None) };
        let folder = Folder::new(&lane.path, &record.folder);
        Ok(Some(AtWork { project, lane, folder, record }))
    }

    /// The same of a lane that is known to have one.
    pub(super) fn of(
        project: &'a Project,
        lane: &AnyLane,
        record: PacketRecord,
    ) -> Result<AtWork<'a>, Error> {
        let lane = project.lane(&lane.name)?;
        let folder = Folder::new(&lane.path, &record.folder);
        Ok(AtWork { project, lane, folder, record })
    }

    /// What is known of it.
    pub(crate) fn record(&self) -> &PacketRecord {
        &self.record
    }

    pub(super) fn record_mut(&mut self) -> &mut PacketRecord {
        &mut self.record
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(super) fn save(&self) -> Result<(), Error> {
        Ok(self.record.save(&self.project.store.layout().packet(&self.lane.name))?)
    }

    /// How far STATUS.md says that it has come.
    pub(crate) fn status(&self) -> Result<Status, Error> {
        Ok(Status::read(&self.folder.text(STATUS)?.unwrap_or_default()))
    }

    /// Sees to it that the folder is as a run needs it: STATUS.md is there and has boxes, and what is to be in no commit comes into none.
    pub(super) fn lay_out(&self) -> Result<(), Error> {
        let status = self.lane.path.join(self.folder.name_of(STATUS));
        // What a killed process was writing.
        remove_drafts(&status).map_err(lane::Error::io("look beside", &status))?;
        self.folder.keep_out(self.project, self.kept_out())?;
        let there = self.folder.text(STATUS)?;
        if there.as_deref().is_some_and(|text| Status::read(text).of() > 0) {
            return Ok(());
        }
        let gone =
            || Error::TaskFolder { path: self.folder.name_of(PROMPT), why: "is not in the lane".to_owned() };
        let prompt = self.folder.text(PROMPT)?.ok_or_else(gone)?;
        let made = status::made(&self.record.title, &prompt);
        let text = match there.filter(|text| !text.trim().is_empty()) {
            Some(notes) => format!("{}\n\n{made}", notes.trim_end()),
            None => made,
        };
        self.folder.write_status(&text)
    }

    fn kept_out(&self) -> KeptOut {
        KeptOut { copied: self.record.copied, hidden: self.record.hidden }
    }

    /// Keeps what STATUS.md says before a run, and says what the lane is like then.
    pub(super) fn before_run(&self, attempt: u32, stint: Stint) -> Result<Stint, Error> {
        let path = self.project.store.layout().run_status(&self.lane.name, attempt);
        write_atomically(&path, self.folder.text(STATUS)?.unwrap_or_default().as_bytes())?;
        review::note_before(self.project, &self.lane, stint)
    }

    fn status_before(&self, attempt: u32) -> String {
        let path = self.project.store.layout().run_status(&self.lane.name, attempt);
        crate::regular_file::record_text(path).unwrap_or_default()
    }

    /// Brings STATUS.md back to what it said before a run whose work is taken back too; what it says now is kept beside the run.
    pub(crate) fn put_status_back(&self, attempt: u32) -> Result<(), Error> {
        let (before, now) = (self.status_before(attempt), self.folder.text(STATUS)?);
        if now.as_ref() == Some(&before) {
            return Ok(());
        }
        if let Some(now) = now {
            let kept = self.project.store.layout().run_status_left(&self.lane.name, attempt);
            write_atomically(&kept, now.as_bytes())?;
        }
        self.folder.write_status(&before)
    }

    /// Takes a run into account, once. Why the task is not gone on with, if that is so.
    ///
    /// # Errors
    /// When something cannot be read or written.
    pub(crate) fn take_in(&mut self, run: &RunRecord, told: Told<'_>) -> Result<Option<String>, Error> {
        let Some(stint) = run.stint.clone().filter(|_| run.attempt > self.record.taken) else {
            return Ok(None);
        };
        if stint.part.is_review() {
            return self.take_review(run, &stint, told);
        }
        if Status::read(&self.folder.text(STATUS)?.unwrap_or_default()).of() == 0 {
            // The agent lost it, and with it what it had noted in this run.
            self.put_status_back(run.attempt)?;
        }
        self.folder.keep_out(self.project, self.kept_out())?;
        let message = format!("{}\n\nTake the task's own files out of the branch again.\n", self.lane.title);
        // A commit elsewhere would be one on somebody else's branch.
        if lane::not_own_place(self.project, &self.lane)?.is_none() {
            self.folder.take_out(self.project, self.kept_out(), &message)?;
        }
        if told.class == RunClass::Done && stint.part == Part::Work {
            self.tick_only_box(run)?;
        }
        if is_iteration(told.class) {
            let wrote = self.folder.text(STATUS)?.unwrap_or_default() != self.status_before(run.attempt);
            self.note(run, &stint, wrote, Err(String::new()))?;
        }
        Ok(None)
    }

    /// Ticks the box of a task without steps after a good run that changed something: that box is git-proq's own, and agents do not
    /// always know of it.
    fn tick_only_box(&self, run: &RunRecord) -> Result<(), Error> {
        let kept_out = self.record.copied || self.record.hidden;
        let tip = self.project.repo.branch_tip(&self.lane.place.branch)?;
        let prompt = self.folder.text(PROMPT)?.unwrap_or_default();
        if !kept_out || tip.is_none_or(|tip| tip == run.tip_before) || !status::has_one_box(&prompt) {
            return Ok(());
        }
        let text = self.folder.text(STATUS)?.unwrap_or_default();
        let now = Status::read(&text);
        if (now.done(), now.of()) != (0, 1) {
            return Ok(());
        }
        self.folder.write_status(&status::tick(&text))
    }

    fn take_review(
        &mut self,
        run: &RunRecord,
        stint: &Stint,
        told: Told<'_>,
    ) -> Result<Option<String>, Error> {
        let subject = stint.part.subject();
        let cleared = match review::clear(self.project, &self.lane, run, stint)? {
            Cleared::Stands(why) => {
                self.note(run, stint, false, Err(why.clone()))?;
                return Ok(Some(why));
            }
            Cleared::PutBack(what) => Some(what),
            Cleared::Nothing
                if self.folder.text(STATUS)?.as_ref() != Some(&self.status_before(run.attempt)) =>
            {
                Some(format!("its {STATUS} is as it was before"))
            }
            Cleared::Nothing => None,
        };
        self.put_status_back(run.attempt)?;
        let judged = match (cleared, told.answer.and_then(judgement)) {
            (Some(what), _) => {
                let who = &run.agent;
                let text = format!(
                    "lane '{}': while {who} reviewed the {subject} of step {}, something changed in the lane, which was taken back: {what}",
                    self.lane.name, stint.step
                );
                self.project.tell(crate::event::Name::LaneEscape, Some(&self.lane), text);
                Err(format!(
                    "something changed in the lane while {who} looked, which was taken back ({what})"
                ))
            }
            (None, Some(judgement)) if told.class == RunClass::Done => Ok(judgement),
            (None, _) if told.class == RunClass::Done => {
                Err(format!("{} said neither APPROVE nor REVISE", run.agent))
            }
            (None, _) => {
                let why = told
                    .detail
                    .map_or_else(|| told.class.to_string(), |why| format!("{}, {why}", told.class));
                Err(format!("{} ended without a judgement ({why})", run.agent))
            }
        };
        if judged.is_err() && !told.counts {
            return Ok(None);
        }
        if judged.is_ok() {
            self.keep_review(run, stint, told.answer.unwrap_or_default())?;
        }
        self.note(run, stint, false, judged)?;
        Ok(None)
    }

    /// Keeps what a reviewer said: beside the run, and where the next one that works at the step finds it.
    fn keep_review(&self, run: &RunRecord, stint: &Stint, said: &str) -> Result<(), Error> {
        let path = self.project.store.layout().run_review(&self.lane.name, run.attempt);
        let text = format!("{}\n", said.trim());
        write_atomically(&path, text.as_bytes())?;
        let known = self.record.step(stint.step).cloned().unwrap_or_default();
        let count = if stint.part == Part::PlanReview { known.plan_reviews } else { known.code_reviews };
        self.folder
            .write_review(&format!("step-{}-{}-{}.md", stint.step, stint.part.subject(), count + 1), &text)
    }

    fn note(
        &mut self,
        run: &RunRecord,
        stint: &Stint,
        wrote: bool,
        judged: Result<Judgement, String>,
    ) -> Result<(), Error> {
        fault::point("step.ended");
        let tip = self.project.repo.branch_tip(&self.lane.place.branch)?.unwrap_or(run.tip_before);
        let came = Came { run: run.attempt, stint, before: run.tip_before, tip, wrote, judged };
        let status = self.status()?;
        course::take(&mut self.record, &came, &status);
        self.save()?;
        fault::point("step.taken");
        Ok(())
    }

    /// What comes next.
    pub(crate) fn next(&self) -> Result<Next, Error> {
        let settings = &self.project.settings;
        let bounds = Bounds { iterations: settings.swarm.max_iterations, idle: settings.swarm.max_idle };
        Ok(course::next(&self.record, &self.status()?, bounds))
    }

    /// How far it has come, in words.
    pub(crate) fn in_words(&self) -> Result<String, Error> {
        let status = self.status()?;
        let iterations = match self.record.iterations {
            1 => "1 iteration".to_owned(),
            n => format!("{n} iterations"),
        };
        let boxes = format!("{} of {} boxes in {iterations}", status.done(), status.of());
        Ok(std::iter::once(boxes).chain(course::remarks(&self.record)).collect::<Vec<_>>().join("; "))
    }

    /// What the last reviewer wants to be done anew of a step, for a run that does so.
    pub(super) fn review_for(&self, part: Part, number: u32) -> Option<String> {
        let step = self.record.step(number)?;
        let (state, of) = match part {
            Part::Plan => (step.plan, Part::PlanReview),
            Part::Work if step.code == Review::Revise => (step.code, Part::CodeReview),
            // It goes on with a plan that was not found good.
            Part::Work if step.plan == Review::WentOn && step.from.is_none() => {
                (Review::Revise, Part::PlanReview)
            }
            Part::Work | Part::PlanReview | Part::CodeReview => return None,
        };
        let last = self.record.last_review.as_ref().filter(|last| last.step == number && last.part == of)?;
        let path = self.project.store.layout().run_review(&self.lane.name, last.run);
        (state == Review::Revise).then(|| crate::regular_file::record_text(path).ok()).flatten()
    }
}

/// Whether a run of this end is one iteration, after which the next one comes.
pub(crate) fn is_iteration(class: RunClass) -> bool {
    matches!(class, RunClass::Done | RunClass::MaxTurns | RunClass::ContextFull)
}
