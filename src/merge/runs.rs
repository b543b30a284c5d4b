//! Owns running the commands of a check: on one commit after the other, several beside each other, each red one once more.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::Error;
use super::commands::Numbers;
use super::greens;
use super::search::{Colour, is_moot};
use super::slot::Slot;
use crate::git::Oid;
use crate::lane::Project;
use crate::process::{Ended, MARK, Start, Watched};
use crate::store::records::{Ports, SlotRecord};
use crate::store::{self, Record};

/// How often those at work are looked at.
const GLANCE: Duration = Duration::from_millis(5);
/// How often a person is told how long it has been.
const TELL: Duration = Duration::from_millis(500);
/// What stands in a log between the first try and the second.
pub(super) const AGAIN: &str = "--- once more";
/// How much of what a failed command wrote is kept: its end.
const KEPT: u64 = 1024 * 1024;

/// What to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    /// The command lines, by number.
    pub(super) lines: &'a [String],
    /// Those that may fail, by number.
    pub(super) tolerated: &'a [usize],
    /// How long one may take.
    pub(super) limit: Duration,
}

/// A commit to run it on.
#[derive(Debug, Clone)]
pub(super) struct Task {
    /// The commit.
    pub(super) commit: Oid,
    /// The lanes in it.
    pub(super) lanes: Vec<String>,
    /// The branch it is to land on.
    pub(super) onto: String,
    /// Which of the commands, in order.
    pub(super) commands: Numbers,
}

/// A command that failed twice.
#[derive(Debug)]
pub(super) struct Red {
    /// Its number.
    pub(super) command: usize,
    /// How it ended.
    pub(super) ended: Ended,
    /// The end of what it and those before it wrote.
    pub(super) log: Vec<u8>,
}

/// What came of a commit.
#[derive(Debug)]
pub(super) enum Found {
    /// Everything succeeded. A command may have failed the first time.
    Green { flaky: Option<usize> },
    /// One did not.
    Red(Red),
}

impl Found {
    fn colour(&self) -> Colour {
        match self {
            Found::Green { .. } => Colour::Green,
            Found::Red(red) => Colour::Red(red.command),
        }
    }
}

/// The worktrees for checks, and how often something was run in them.
#[derive(Debug, Default)]
pub(super) struct Runs {
    slots: Vec<Slot>,
    /// How often the commands were begun on a commit.
    pub(super) count: usize,
}

/// A commit that is being looked at.
struct Active {
    task: usize,
    slot: usize,
    /// Which of the task's commands.
    at: usize,
    /// The number of the command that failed the first time.
    failed: Option<usize>,
    watched: Watched,
}

impl Runs {
    /// Runs the commands on every task, up to `jobs` of them beside each other. Tasks are by `prefixes` of one stack; one
    /// that cannot matter any more, given the others, is not begun, or ended, and has no answer.
    pub(super) fn run(
        &mut self,
        project: &Project,
        rules: Rules<'_>,
        tasks: &[Task],
        prefixes: &[usize],
        jobs: usize,
    ) -> Result<Vec<Option<Found>>, Error> {
        let mut round = Round { runs: self, project, rules, tasks, active: Vec::new(), told: None };
        let done = round.play(prefixes, jobs);
        // Whoever is still at work when something went wrong is ended.
        round.active.clear();
        project.listener.progress("");
        let mut slots = self.slots.iter().zip(tasks.iter().cycle());
        let let_go = slots.try_for_each(|(slot, task)| {
            slot.place.require_there(project, &task.lanes)?;
            slot.place.let_go(project, task.commit)
        });
        let let_go = let_go.and_then(|()| Ok(project.repo.require_same_checkout()?));
        // Why it ended comes before what could not be tidied after that.
        done.and_then(|found| let_go.map(|()| found))
    }
}

struct Round<'a> {
    runs: &'a mut Runs,
    project: &'a Project,
    rules: Rules<'a>,
    tasks: &'a [Task],
    active: Vec<Active>,
    told: Option<Instant>,
}

impl Round<'_> {
    fn play(&mut self, prefixes: &[usize], jobs: usize) -> Result<Vec<Option<Found>>, Error> {
        let mut found: Vec<Option<Found>> = self.tasks.iter().map(|_| None).collect();
        // The whole stack first: when it is green, nothing else matters.
        let mut waiting: Vec<usize> = (0..self.tasks.len()).collect();
        loop {
            crate::interrupt::check()?;
            while self.active.len() < jobs
                && let Some(task) = waiting.pop()
            {
                let begun = self.begin(task)?;
                self.active.push(begun);
            }
            if self.active.is_empty() {
                return Ok(found);
            }
            for at in (0..self.active.len()).rev() {
                let Some(ended) = self.active[at].watched.poll()? else { continue };
                let task = self.active[at].task;
                if let Some(result) = self.go_on(at, ended)? {
                    drop(self.active.swap_remove(at));
                    found[task] = Some(result);
                }
            }
            let known: Vec<Option<Colour>> = found.iter().map(|f| f.as_ref().map(Found::colour)).collect();
            self.active.retain(|a| !is_moot(a.task, prefixes, &known));
            waiting.retain(|task| !is_moot(*task, prefixes, &known));
            if !self.active.is_empty() {
                self.tell();
                std::thread::sleep(GLANCE);
            }
        }
    }

    /// Begins with a commit in a worktree that is free.
    fn begin(&mut self, task: usize) -> Result<Active, Error> {
        let free = |n: &usize| self.active.iter().all(|a| a.slot != *n);
        let slot = (0..self.active.len()).find(free).unwrap_or(self.active.len());
        if slot == self.runs.slots.len() {
            self.runs.slots.push(Slot::take(self.project, slot)?);
        }
        let watched = self.begin_in(task, slot, false)?;
        Ok(Active { task, slot, at: 0, failed: None, watched })
    }

    fn begin_in(&mut self, task: usize, slot: usize, again: bool) -> Result<Watched, Error> {
        self.runs.slots[slot].bring_to(self.project, self.tasks[task].commit)?;
        self.runs.count += 1;
        let log = self.project.store.layout().slot_log(self.runs.slots[slot].number);
        if again {
            add_to(&log, AGAIN)?;
        } else {
            store::write_atomically(&log, b"")?;
        }
        let watched = self.start(task, slot, 0)?;
        self.told = None;
        Ok(watched)
    }

    fn start(&self, task: usize, slot: usize, at: usize) -> Result<Watched, Error> {
        let (project, task, slot) = (self.project, &self.tasks[task], &self.runs.slots[slot]);
        let line = &self.rules.lines[task.commands[at]];
        let layout = project.store.layout();
        let log = add_to(&layout.slot_log(slot.number), &format!("$ {line}"))?;
        let second = log.try_clone().map_err(store::Error::io("open", &layout.slot_log(slot.number)))?;
        let mut start = Start::new(Path::new("sh"), &slot.place.dir)
            .args(["-c", line.as_str()])
            .with_nothing_else()
            .envs(greens::environment())
            .env(MARK, slot.mark())
            .env("PROQ_VERIFY", "1")
            .env("PROQ_LANES", task.lanes.join(" "))
            .env("PROQ_BASE", &task.onto)
            .output(log, second);
        for (name, value) in slot.ports.into_iter().flat_map(Ports::variables) {
            start = start.env(name, value);
        }
        let watched = start.spawn_limited(self.rules.limit, project.settings.stop_grace)?;
        // Should this process be killed, the next landing ends what it finds there.
        let record = SlotRecord { pid: watched.id(), birth: watched.birth() };
        record.save(&layout.slot(slot.number))?;
        Ok(watched)
    }

    /// The next command of a commit, or what came of it.
    fn go_on(&mut self, one: usize, ended: Ended) -> Result<Option<Found>, Error> {
        let Active { task, slot, at, failed, .. } = self.active[one];
        let command = self.tasks[task].commands[at];
        if ended.is_success() || self.rules.tolerated.contains(&command) {
            if at + 1 == self.tasks[task].commands.len() {
                return Ok(Some(Found::Green { flaky: failed }));
            }
            self.active[one].watched = self.start(task, slot, at + 1)?;
            self.active[one].at += 1;
            return Ok(None);
        }
        if failed.is_none() {
            self.active[one].watched = self.begin_in(task, slot, true)?;
            self.active[one].at = 0;
            self.active[one].failed = Some(command);
            return Ok(None);
        }
        let log = end_of(&self.project.store.layout().slot_log(self.runs.slots[slot].number))?;
        Ok(Some(Found::Red(Red { command, ended, log })))
    }

    /// Says what is being looked at, and for how long.
    fn tell(&mut self) {
        if self.told.is_some_and(|told| told.elapsed() < TELL) {
            return;
        }
        self.told = Some(Instant::now());
        let Some(first) = self.active.first() else { return };
        let task = &self.tasks[first.task];
        let more = match self.active.len() {
            1 => String::new(),
            n => format!(" (and {} more beside it)", n - 1),
        };
        let again = if first.failed.is_some() { ", once more" } else { "" };
        self.project.listener.progress(format!(
            "checking {}{again}: {} {}s{more}",
            called(&task.onto, &task.lanes),
            self.rules.lines[task.commands[first.at]],
            first.watched.elapsed().as_secs()
        ));
    }
}

/// A state in words: `main`, `main with a, b`, `main with a, b and 7 more`.
pub(super) fn called(onto: &str, lanes: &[String]) -> String {
    match lanes {
        [] => onto.to_owned(),
        [first, second, third, more @ ..] if !more.is_empty() => {
            format!("{onto} with {first}, {second}, {third} and {} more", more.len())
        }
        some => format!("{onto} with {}", some.join(", ")),
    }
}

/// Adds a line to a log, to which more can be added then.
fn add_to(path: &Path, line: &str) -> Result<File, Error> {
    let open = || {
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(file)
    };
    Ok(open().map_err(store::Error::io("write", path))?)
}

fn end_of(path: &Path) -> Result<Vec<u8>, Error> {
    let read = || {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(KEPT)))?;
        let mut bytes = Vec::new();
        file.take(KEPT).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    Ok(read().map_err(store::Error::io("read", path))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_named_by_its_first_lanes() {
        let lanes = |n: usize| (0..n).map(|i| format!("l{i}")).collect::<Vec<_>>();
        assert_eq!(called("main", &lanes(0)), "main");
        assert_eq!(called("main", &lanes(3)), "main with l0, l1, l2");
        assert_eq!(called("main", &lanes(30)), "main with l0, l1, l2 and 27 more");
    }

    #[test]
    fn of_a_long_log_the_end_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let kept = usize::try_from(KEPT).unwrap();
        std::fs::write(&path, [vec![b'a'; 10], vec![b'b'; kept]].concat()).unwrap();
        assert_eq!(end_of(&path).unwrap(), vec![b'b'; kept]);
    }
}
