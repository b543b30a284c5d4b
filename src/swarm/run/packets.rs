//! Owns the tasks of a batch that are folders: how their work is begun and gone on with, step by step.

use std::path::Path;

use super::agents::{Launched, Starting};
use super::evidence::Chain;
use super::runner::Runner;
use crate::agent::{self, Begun, Job, Packet};
use crate::git::Oid;
use crate::lane::Project;
use crate::store::Guard;
use crate::store::records::{ForTask, LaneRecord};
use crate::swarm::Error;
use crate::swarm::batch::BatchTask;

/// The file of a task that is a folder.
const PROMPT: &str = "PROMPT.md";

/// How often one attempt is gone on with whose supervisor has died.
const MOST: usize = 3;

/// Reads the folder of a task; none where it is not one. `lane` is where it is worked at: what nobody has in the checkout any
/// more may be there.
///
/// # Errors
/// When it cannot be brought into a lane.
pub(crate) fn packet_of(
    project: &Project,
    task: &BatchTask,
    lane: Option<&Path>,
) -> Result<Option<Packet>, agent::Error> {
    let (Some(folder), Some(dir)) = (&task.folder, task.file.parent()) else { return Ok(None) };
    let inside = lane.map(|lane| lane.join(folder)).filter(|_| !dir.join(PROMPT).is_file());
    let dir = inside.as_deref().unwrap_or(dir);
    let level = task.review.unwrap_or_default();
    Packet::read(project, dir, &folder.to_string_lossy(), &task.title, level, None).map(Some)
}

impl Runner<'_> {
    /// Starts the work at a task in its lane, which is held and clean: all of its steps one after the other, where it has some.
    /// `work` is what stopped runs of it have committed there: then it goes on at the step where those were.
    pub(super) fn begin_work(
        &self,
        it: Starting,
        (lane, lock): (LaneRecord, Guard),
        job: Job,
        work: Option<(Oid, Oid)>,
    ) -> Result<Launched, Error> {
        let task = &self.batch.tasks[it.task];
        let of = ForTask {
            batch: self.batch.id().to_owned(),
            number: it.task,
            task: task.name.clone(),
            attempt: it.attempt,
        };
        crate::fault::point("batch.launch");
        let packet = packet_of(self.project, task, Some(&lane.path))?;
        let lane = lane.any();
        let before = lane.attempt;
        let goes_on = work.is_some() && agent::has_packet(self.project, &lane)?;
        let started = if packet.is_some() && goes_on {
            match agent::resume_packet_as(self.project, &lane, lock, &self.exe, Some(&job), of)? {
                Begun::Runs(lane) | Begun::Over(lane) => lane,
            }
        } else if let Some(packet) = packet {
            let packet = packet.for_task(of, super::agents::told(&self.batch, it.task));
            agent::launch_packet(self.project, &lane, lock, &job, &self.exe, &packet)?
        } else {
            agent::launch(self.project, &lane, lock, &job.for_task(Some(of)), &self.exe)?
        };
        let work = work.filter(|(from, to)| from != to);
        Ok(Launched { lane: started.name, runs: started.attempt > before, work })
    }

    /// Goes on with the steps of a task whose supervisor has died, unless that has happened too often, or somebody is to stop it.
    /// Says whether it goes on, or why it could not.
    pub(super) fn go_on_with_steps(
        &self,
        task: usize,
        chain: &Chain,
    ) -> Result<Option<Result<(), String>>, Error> {
        if !chain.died() || chain.deaths() > MOST || self.state.is_stopping(task) {
            return Ok(None);
        }
        let held = self.project.hold_idle(&chain.lane.name);
        let (lane, lock) = match held {
            Ok(held) => held,
            Err(e) => return Ok(Some(Err(e.to_string()))),
        };
        match agent::resume_packet(self.project, &lane.any(), lock, &self.exe, None) {
            Ok(Begun::Runs(_) | Begun::Over(_)) => Ok(Some(Ok(()))),
            Err(e) => {
                crate::interrupt::check().map_err(crate::store::Error::from)?;
                Ok(Some(Err(e.to_string())))
            }
        }
    }
}
