//! Owns getting a new lane of a batch ready before anything is run in it: the commands of `lane.setup`, and those of
//! `swarm.pre_warm` that its tasks' files ask for.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::runner::{Heard, Runner};
use crate::git::Scope;
use crate::interrupt;
use crate::lane::{self, Project};
use crate::process::{OF_A_RUN, Start, birth_of, end_group};
use crate::store::records::{LaneRecord, Ports};
use crate::store::{Record, make_private};
use crate::swarm::Error;

/// What stands between the files that a command is for and the command.
const FOR: &str = " => ";

/// How often a command at work is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// One command of the setting.
#[derive(Debug, PartialEq, Eq)]
struct Warmer<'a> {
    /// The files whose tasks want it; for all, where there are none.
    globs: Vec<String>,
    command: &'a str,
}

impl Warmer<'_> {
    /// Reads `GLOB GLOB => COMMAND`, or a command alone.
    fn read(line: &str) -> Warmer<'_> {
        match line.split_once(FOR) {
            Some((globs, command)) => Warmer {
                globs: globs.split_whitespace().map(ToOwned::to_owned).collect(),
                command: command.trim(),
            },
            None => Warmer { globs: Vec::new(), command: line.trim() },
        }
    }

    /// Whether tasks about these files want it. What they are about is not known where they do not say so.
    fn is_for(&self, scope: &[String]) -> bool {
        if self.globs.is_empty() || scope.is_empty() {
            return true;
        }
        match (Scope::read(&self.globs), Scope::read(scope)) {
            (Ok(own), Ok(scope)) => own.meets(&scope).is_some(),
            _ => true,
        }
    }
}

/// A lane that is to be got ready.
struct Order {
    dir: PathBuf,
    lane: LaneRecord,
    commands: Vec<String>,
    log: PathBuf,
    /// Where it is written which process is at it.
    at_work: PathBuf,
    given_up: Arc<AtomicBool>,
}

/// The process of a command, which goes on when its scheduler is killed.
#[derive(Debug, Serialize, Deserialize)]
struct AtWork {
    /// Its number, which is also that of its group.
    pid: u32,
    /// What tells it from a later one of that number.
    birth: Option<String>,
}

impl Record for AtWork {
    const FORMAT: u32 = 1;
}

impl Runner<'_> {
    /// Has a lane got ready by a thread. Whether there is anything to do.
    pub(super) fn warm(&mut self, number: usize, lane: &LaneRecord) -> Result<bool, Error> {
        let scope = self.scope_of(lane);
        let lines = self.project.settings.swarm.pre_warm.iter().map(|line| Warmer::read(line));
        let wanted = lines.filter(|warmer| warmer.is_for(&scope) && !warmer.command.is_empty());
        let commands: Vec<String> = wanted.map(|warmer| warmer.command.to_owned()).collect();
        let set_up = &self.project.settings.set_up.commands;
        let all: Vec<&String> = set_up.iter().chain(&commands).collect();
        if all.is_empty() {
            return Ok(false);
        }
        self.note(&format!("lane '{}' is made ready by {}", lane.name, in_words(&all)), &[])?;
        let order = Order {
            dir: self.project.repo.home().to_owned(),
            lane: lane.clone(),
            commands,
            log: self.project.store.layout().batch_warm_log(self.batch.id(), number),
            at_work: self.project.store.layout().batch_warming(self.batch.id(), number),
            given_up: Arc::clone(&self.cold),
        };
        let tell = self.tell.clone();
        std::thread::spawn(move || drop(tell.send(Heard::Ready(number, order.run().err()))));
        Ok(true)
    }

    /// What the tasks are about that may be done in a lane: those that share files with its first one.
    fn scope_of(&self, lane: &LaneRecord) -> Vec<String> {
        let first = lane.batch.as_ref().map(|of| of.task.as_str()).unwrap_or_default();
        let Some(first) = self.batch.tasks.iter().position(|task| task.name == first) else {
            return Vec::new();
        };
        let with = self.batch.record.overlaps.iter().filter(|group| group.contains(&first)).flatten();
        let tasks: BTreeSet<usize> = with.copied().chain([first]).collect();
        let scopes = tasks.into_iter().map(|task| &self.batch.tasks[task].scope);
        // One that says nothing may be about anything.
        let all: Vec<&Vec<String>> = scopes.collect();
        match all.iter().any(|scope| scope.is_empty()) {
            true => Vec::new(),
            false => all.into_iter().flatten().cloned().collect(),
        }
    }
}

impl Order {
    /// Runs the commands one after the other; why the lane is not ready, if it is not.
    fn run(&self) -> Result<(), String> {
        let project = Project::open(&self.dir, crate::note::Listener::silent()).map_err(|e| e.to_string())?;
        make_private(self.log.parent().unwrap_or(Path::new("."))).map_err(|e| e.to_string())?;
        let log = File::options().create(true).append(true).open(&self.log).map_err(|e| e.to_string())?;
        self.end_former(&project);
        let stop = || self.given_up.load(Ordering::Relaxed);
        lane::run_later(&project, &self.lane, &stop).map_err(|e| e.to_string())?;
        for command in &self.commands {
            self.try_one(&project, command, &log)?;
        }
        drop(std::fs::remove_file(&self.at_work));
        Ok(())
    }

    /// Ends what a scheduler had begun that was killed: two at the same files would be in each other's way.
    fn end_former(&self, project: &Project) {
        if let Ok(Some(former)) = AtWork::find(&self.at_work)
            && former.birth.is_some()
            && birth_of(former.pid) == former.birth
        {
            end_group(former.pid, project.settings.stop_grace);
        }
    }

    fn try_one(&self, project: &Project, command: &str, log: &File) -> Result<(), String> {
        let (out, err) = (log.try_clone(), log.try_clone());
        let (out, err) = (out.map_err(|e| e.to_string())?, err.map_err(|e| e.to_string())?);
        let mut start = Start::new(Path::new("sh"), &self.lane.path)
            .args(["-c", command])
            .without(OF_A_RUN)
            .env("PROQ_LANE", &self.lane.name)
            .env("PROQ_ENV_FILE", project.store.layout().lane_env(&self.lane.name))
            .output(out, err);
        for (name, value) in self.lane.port.into_iter().flat_map(Ports::variables) {
            start = start.env(name, value);
        }
        let (limit, grace) = (project.settings.verify_timeout, project.settings.stop_grace);
        let mut watched = start.spawn_limited(limit, grace).map_err(|e| e.to_string())?;
        let at_work = AtWork { pid: watched.id(), birth: watched.birth() };
        at_work.save(&self.at_work).map_err(|e| e.to_string())?;
        loop {
            if let Some(ended) = watched.poll().map_err(|e| e.to_string())? {
                let wrote = crate::harmless::line(&self.log.display().to_string());
                return match ended.is_success() {
                    true => Ok(()),
                    false => Err(format!("`{command}` failed ({ended}); it wrote {wrote}")),
                };
            }
            // Whoever drops it ends it, and all that it has started.
            if self.given_up.load(Ordering::Relaxed) || interrupt::check().is_err() {
                return Err(format!("`{command}` was stopped"));
            }
            std::thread::sleep(GLANCE);
        }
    }
}

fn in_words(commands: &[&String]) -> String {
    let all: Vec<String> =
        commands.iter().map(|command| format!("`{}`", crate::harmless::line(command))).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_for_whoever_is_about_its_files() {
        let line = Warmer::read("web/ packages/*.json => npm ci");
        assert_eq!(line, Warmer { globs: vec!["web/".into(), "packages/*.json".into()], command: "npm ci" });
        let is_for = |scope: &[&str]| line.is_for(&scope.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        assert!(is_for(&["web/src/a.ts"]));
        assert!(is_for(&["docs/", "web/"]));
        assert!(!is_for(&["docs/", "website/"]));
        // Nobody knows.
        assert!(is_for(&[]));
        assert!(Warmer::read("make deps").is_for(&["docs/".to_owned()]));
    }
}
