//! Owns the crowd: many processes at work in one repository at once, some with a clock that is hours off, and where that is
//! wanted some of them killed.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Outcome;
use super::args::Args;
use super::crowd_model;
use super::place::{Answer, Place};
use super::sys;
use crate::dice::Dice;

/// What one member of the crowd needs to work.
struct Member<'a> {
    crowd: &'a Crowd,
    number: usize,
    dice: Dice,
    /// Its clock; None for the machine's own.
    clock: Option<String>,
    /// Its lanes, as far as it knows.
    lanes: Vec<String>,
    made: usize,
    /// What it ran last, and how that ended.
    last: String,
}

/// What all members know together, for the model to check.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Every lane whose making was reported.
    pub(super) lanes: Vec<String>,
    /// Every content that was written to a lane.
    pub(super) tokens: Vec<String>,
    /// Every commit made in a lane whose landing was reported afterwards, and every merge that was reported.
    pub(super) landed: Vec<String>,
    /// How often each command was run, how it ended, and what it said of that, without names and numbers.
    pub(super) ends: BTreeMap<(String, i32, String), usize>,
    /// Whether anything was undone.
    pub(super) undone: bool,
    /// What no command may say or do.
    pub(super) faults: Vec<String>,
}

/// One repository, and everybody in it.
pub(super) struct Crowd {
    /// How programs are started; a copy for each member would do as well.
    place: Mutex<Place>,
    proq: std::path::PathBuf,
    until: Instant,
    /// Whether commands are killed.
    kills: bool,
    /// Whether there is one member only, whose every step can be looked at.
    alone: bool,
    /// The user's own changes in the main checkout.
    start: String,
    log: Mutex<Log>,
}

/// How a command ended that was killed, as a shell has it.
const KILLED: i32 = 128 + 9;

/// How long a command that is to be killed has at most, in microseconds: most take less.
const LONGEST_LIFE: usize = 60_000;

/// What a command may be refused for while others are at work: what they did, never what a killed one has left.
const FAIR: &[&str] = &[
    "there is no lane",
    "no preview is open",
    "is shown by a preview",
    "it has uncommitted work",
    "nothing to land",
    "cannot be undone",
    "is not the last",
    "could not be moved",
    // Another process discarded it meanwhile.
    "it was removed before it could land",
];

/// Lets `processes` processes work for `seconds`, and checks what is there afterwards. Returns whether all was well.
pub(super) fn crowd(folder: &Path, proq: &Path, seed: u64, args: &Args) -> Outcome<bool> {
    let (seconds, processes) = (args.crowd.unwrap_or_default(), args.processes);
    let place = Place::new(&folder.join("crowd"), proq)?;
    crowd_model::prepare(&place)?;
    let start = crowd_model::status(&place)?;
    println!("{processes} processes for {seconds} s, half of them with clocks that are hours off");
    let crowd = Crowd {
        place: Mutex::new(place),
        proq: proq.to_owned(),
        until: Instant::now() + Duration::from_secs(seconds),
        kills: args.kills,
        alone: processes == 1,
        start,
        log: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for number in 0..processes {
            let member = Member::new(&crowd, number, seed);
            scope.spawn(move || member.work());
        }
    });
    let place = crowd.place.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut log = crowd.log.into_inner().unwrap_or_else(PoisonError::into_inner);
    crowd_model::check(&place, &mut log, &crowd.start)?;
    tell(&log, seed);
    Ok(log.faults.is_empty())
}

fn tell(log: &Log, seed: u64) {
    for ((command, code, said), count) in &log.ends {
        println!("  {command:<12} ended with {code:<3} {count:>6} times  {said}");
    }
    for fault in &log.faults {
        println!("  {fault}");
    }
    let runs: usize = log.ends.values().sum();
    println!(
        "{runs} commands, {} lanes, {} contents, {} landed commits: {} losses, {} violations (seed {seed})",
        log.lanes.len(),
        log.tokens.len(),
        log.landed.len(),
        log.faults.iter().filter(|f| f.starts_with("LOST")).count(),
        log.faults.len()
    );
}

impl Crowd {
    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn command(&self, program: &Path, dir: Option<&str>) -> Command {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = dir.map_or_else(|| place.repo(), |lane| place.lane(lane));
        let mut command = place.command(program, &dir);
        command.env("PROQ_LOCK_TIMEOUT", "60");
        command
    }

    fn lane(&self, name: &str) -> std::path::PathBuf {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).lane(name)
    }
}

impl Member<'_> {
    fn new(crowd: &Crowd, number: usize, seed: u64) -> Member<'_> {
        let day = number / 2 % 20 + 1;
        let clock = (number % 2 == 1).then(|| format!("2026-06-{day:02}T{:02}:00:00Z", number * 7 % 24));
        let dice = Dice::new(seed, &format!("member {number}"));
        Member { crowd, number, dice, clock, lanes: Vec::new(), made: 0, last: String::new() }
    }

    fn work(mut self) {
        while Instant::now() < self.crowd.until {
            let next = self.act().and_then(|()| if self.crowd.alone { self.is_whole() } else { Ok(true) });
            match next {
                Ok(true) => {}
                Ok(false) => return,
                Err(e) => {
                    self.crowd.log().faults.push(format!("the harness failed: {e}"));
                    return;
                }
            }
        }
    }

    /// Whether the main checkout is as its user left it, where nobody else is at work and no lane is shown.
    fn is_whole(&mut self) -> Outcome<bool> {
        let last = self.last.clone();
        if self.proq(&["list"])?.code != 0 {
            return Ok(true);
        }
        let now = crowd_model::status(&self.crowd.place.lock().unwrap_or_else(PoisonError::into_inner))?;
        let is_whole = now == self.crowd.start || !now.contains("# branch.head main");
        if !is_whole {
            self.crowd.log().faults.push(format!("after {last}: the checkout is {now:?}"));
        }
        Ok(is_whole)
    }

    fn act(&mut self) -> Outcome<()> {
        let Some(lane) = self.lanes.get(self.dice.below(self.lanes.len())).cloned() else {
            return self.spawn();
        };
        match self.dice.below(22) {
            20 => self.edit(),
            21 => self.undo(),
            0..=3 => self.spawn(),
            4..=9 => self.commit(&lane).map(drop),
            10 => self.note(&lane),
            11 => self.proq(&["preview", &lane]).map(drop),
            12 => self.proq(&["preview", "--back"]).map(drop),
            13..=15 => self.merge(&lane),
            16 => self.merge_all(),
            17 => self.proq(&["cleanup"]).map(drop),
            18 => self.discard(&lane),
            _ => self.proq(&["list"]).map(drop),
        }
    }

    /// Runs the program with this member's clock.
    fn proq(&mut self, args: &[&str]) -> Outcome<Answer> {
        let mut command = self.crowd.command(&self.crowd.proq, None);
        match &self.clock {
            Some(clock) => command.env("PROQ_TEST_NOW", clock),
            None => command.env_remove("PROQ_TEST_NOW"),
        };
        let life = (self.crowd.kills && self.dice.below(5) == 0).then(|| self.dice.below(LONGEST_LIFE));
        let answer = match life {
            Some(micros) => killed(command.args(args), Duration::from_micros(micros as u64))?,
            None => Answer::of(command.args(args))?,
        };
        let reasons = if matches!(answer.code, 0 | KILLED) { Vec::new() } else { reasons(&answer) };
        let is_fair = match answer.code {
            0 => true,
            KILLED => life.is_some(),
            1 | 3 | 5 => !reasons.is_empty() && reasons.iter().all(|why| FAIR.contains(&why.as_str())),
            _ => false,
        };
        let mut log = self.crowd.log();
        if !is_fair {
            log.faults.push(format!(
                "{} ended with {}: {} {}",
                args.join(" "),
                answer.code,
                String::from_utf8_lossy(&answer.stdout),
                answer.stderr
            ));
        }
        self.last = format!("{} ({})", args.join(" "), answer.code);
        *log.ends.entry((args[0].to_owned(), answer.code, reasons.join("; "))).or_default() += 1;
        Ok(answer)
    }

    /// Takes back what was done last, by whomever. What landed with it is not on its base any more.
    fn undo(&mut self) -> Outcome<()> {
        let answer = self.proq(&["undo"])?;
        self.crowd.log().undone |= matches!(answer.code, 0 | KILLED);
        Ok(())
    }

    /// Writes a file of the user's to the main checkout, whichever lane is shown there.
    fn edit(&mut self) -> Outcome<()> {
        self.made += 1;
        let token = format!("precious edit {} {}\n", self.number, self.made);
        let repo = self.crowd.place.lock().unwrap_or_else(PoisonError::into_inner).repo();
        std::fs::write(repo.join(format!("{}{}-{}", crowd_model::EDITS, self.number, self.made)), &token)?;
        self.crowd.log().tokens.push(token);
        Ok(())
    }

    fn spawn(&mut self) -> Outcome<()> {
        self.made += 1;
        let name = format!("m{}-{}", self.number, self.made);
        if self.proq(&["spawn", "--empty", "-n", &name])?.code == 0 {
            self.crowd.log().lanes.push(name.clone());
            self.lanes.push(name);
        }
        Ok(())
    }

    /// Writes a file of its own to a lane; None when the lane is no longer there.
    fn write(&mut self, lane: &str, kind: &str) -> Option<String> {
        self.made += 1;
        let path = format!("{lane}-{}.{kind}", self.made);
        let token = format!("precious {lane} {}\n", self.made);
        std::fs::write(self.crowd.lane(lane).join(&path), &token).ok()?;
        self.crowd.log().tokens.push(token);
        Some(path)
    }

    /// Commits a file in a lane, as an agent would. Nothing comes of it when somebody has just landed the lane.
    fn commit(&mut self, lane: &str) -> Outcome<Option<String>> {
        let dir = self.crowd.lane(lane);
        let Some(path) = self.write(lane, "txt").filter(|_| dir.is_dir()) else {
            self.lanes.retain(|l| l != lane);
            return Ok(None);
        };
        let script = "git add \"$1\" && git commit -qm \"$1\" && git rev-parse HEAD";
        let mut sh = self.crowd.command(Path::new("sh"), Some(lane));
        let Ok(answer) = Answer::of(sh.args(["-c", script, "sh", &path])) else { return Ok(None) };
        let id = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        Ok((answer.code == 0).then_some(id))
    }

    /// Leaves something uncommitted in a lane, which is then in nobody's way but must stay.
    fn note(&mut self, lane: &str) -> Outcome<()> {
        let _ = self.write(lane, "note");
        Ok(())
    }

    fn merge(&mut self, lane: &str) -> Outcome<()> {
        let last = self.commit(lane)?;
        let answer = self.proq(&["merge", "--json", lane])?;
        for (landed, commit) in landed(&answer) {
            let own = last.clone().filter(|_| landed == *lane);
            self.crowd.log().landed.extend(own.into_iter().chain([commit]));
        }
        Ok(())
    }

    fn merge_all(&mut self) -> Outcome<()> {
        let answer = self.proq(&["merge", "--all", "--json"])?;
        self.crowd.log().landed.extend(landed(&answer).into_iter().map(|(_, commit)| commit));
        Ok(())
    }

    fn discard(&mut self, lane: &str) -> Outcome<()> {
        if self.proq(&["discard", "--force", lane])?.code == 0 {
            self.lanes.retain(|l| l != lane);
        }
        Ok(())
    }
}

/// Runs a command that is killed, with what it started, if it takes longer than this.
fn killed(command: &mut Command, life: Duration) -> Outcome<Answer> {
    let child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let group = libc::pid_t::try_from(child.id())?;
    let (done, wait) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if wait.recv_timeout(life) == Err(mpsc::RecvTimeoutError::Timeout) {
                sys::signal(-group, libc::SIGKILL);
            }
        });
        let answer = Answer::of_child(child);
        drop(done);
        answer
    })
}

/// Why something was refused, without the names of lanes and files; of a landing, each lane that did not land.
fn reasons(answer: &Answer) -> Vec<String> {
    let value: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
    let lanes = value["lanes"].as_array().into_iter().flatten();
    let lanes = lanes.filter(|lane| !matches!(lane["result"].as_str(), Some("landed" | "already-landed")));
    let mut said: Vec<String> =
        lanes.filter_map(|lane| lane["message"].as_str().map(str::to_owned)).collect();
    said.extend(value["error"].as_str().map(str::to_owned));
    if said.is_empty() {
        let errors = answer.stderr.lines().filter_map(|line| line.strip_prefix("error: "));
        said.extend(errors.map(str::to_owned));
    }
    let known =
        |why: String| FAIR.iter().find(|fair| why.contains(**fair)).map_or(why, |fair| (*fair).to_owned());
    let mut out: Vec<String> = said.into_iter().map(known).collect();
    out.sort();
    out.dedup();
    out
}

/// Lanes that an answer of `merge` calls landed, with the merge commit.
fn landed(answer: &Answer) -> Vec<(String, String)> {
    let value: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
    let lanes = value["lanes"].as_array().cloned().unwrap_or_default();
    let landed = lanes.iter().filter(|l| l["result"] == "landed");
    let pair = |l: &Value| Some((l["lane"].as_str()?.to_owned(), l["commit"].as_str()?.to_owned()));
    landed.filter_map(pair).collect()
}
