//! Owns the crowd: many processes at work in one repository at once, some with a clock that is hours off.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Outcome;
use super::crowd_model;
use super::place::{Answer, Place};
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
    /// How often each command was run and how it ended.
    pub(super) ends: BTreeMap<(String, i32), usize>,
    /// One example of what each of those said.
    pub(super) said: BTreeMap<(String, i32), String>,
    /// What no command may say or do.
    pub(super) faults: Vec<String>,
}

/// One repository, and everybody in it.
pub(super) struct Crowd {
    /// How programs are started; a copy for each member would do as well.
    place: Mutex<Place>,
    proq: std::path::PathBuf,
    until: Instant,
    log: Mutex<Log>,
}

/// Lets `processes` processes work for `seconds`, and checks what is there afterwards. Returns whether all was well.
pub(super) fn crowd(folder: &Path, proq: &Path, seed: u64, seconds: u64, processes: usize) -> Outcome<bool> {
    let place = Place::new(&folder.join("crowd"), proq)?;
    crowd_model::prepare(&place)?;
    let start = crowd_model::status(&place)?;
    println!("{processes} processes for {seconds} s, half of them with clocks that are hours off");
    let crowd = Crowd {
        place: Mutex::new(place),
        proq: proq.to_owned(),
        until: Instant::now() + Duration::from_secs(seconds),
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
    crowd_model::check(&place, &mut log, &start)?;
    tell(&log, seed);
    Ok(log.faults.is_empty())
}

fn tell(log: &Log, seed: u64) {
    for (end @ (command, code), count) in &log.ends {
        let said = log.said.get(end).map(String::as_str).unwrap_or_default();
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
        Member { crowd, number, dice, clock, lanes: Vec::new(), made: 0 }
    }

    fn work(mut self) {
        while Instant::now() < self.crowd.until {
            if let Err(e) = self.act() {
                self.crowd.log().faults.push(format!("the harness failed: {e}"));
                return;
            }
        }
    }

    fn act(&mut self) -> Outcome<()> {
        let Some(lane) = self.lanes.get(self.dice.below(self.lanes.len())).cloned() else {
            return self.spawn();
        };
        match self.dice.below(20) {
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
    fn proq(&self, args: &[&str]) -> Outcome<Answer> {
        let mut command = self.crowd.command(&self.crowd.proq, None);
        match &self.clock {
            Some(clock) => command.env("PROQ_TEST_NOW", clock),
            None => command.env_remove("PROQ_TEST_NOW"),
        };
        let answer = Answer::of(command.args(args))?;
        let mut log = self.crowd.log();
        let end = (args[0].to_owned(), answer.code);
        *log.ends.entry(end.clone()).or_default() += 1;
        if answer.code != 0 {
            log.said.insert(end, example(&answer));
        }
        if ![0, 1, 3, 5].contains(&answer.code) {
            log.faults.push(format!("{} ended with {}: {}", args.join(" "), answer.code, answer.stderr));
        }
        Ok(answer)
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

/// Why something was refused, in a line.
fn example(answer: &Answer) -> String {
    let value: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
    let mut lanes = value["lanes"].as_array().into_iter().flatten();
    let why = lanes.find_map(|l| l["message"].as_str()).map(str::to_owned);
    why.or_else(|| value["error"]["message"].as_str().map(str::to_owned))
        .unwrap_or_else(|| answer.complaint())
}

/// Lanes that an answer of `merge` calls landed, with the merge commit.
fn landed(answer: &Answer) -> Vec<(String, String)> {
    let value: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
    let lanes = value["lanes"].as_array().cloned().unwrap_or_default();
    let landed = lanes.iter().filter(|l| l["result"] == "landed");
    let pair = |l: &Value| Some((l["lane"].as_str()?.to_owned(), l["commit"].as_str()?.to_owned()));
    landed.filter_map(pair).collect()
}
