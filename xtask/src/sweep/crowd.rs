//! Concurrency stress test: many processes work in one repository, some with clocks that are hours off;
//! optionally some of them are killed.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::args::Args;
use super::fixture::{CommandOutput, Fixture};
use super::{Outcome, crowd_checks, sys};
use fastrand::Rng;

use crate::dice;

/// One worker of the crowd.
struct Member<'a> {
    crowd: &'a Crowd,
    number: usize,
    rng: Rng,
    /// Clock of the member; none for the machine's own.
    clock: Option<String>,
    /// Lanes of the member that it knows to exist.
    lanes: Vec<String>,
    write_count: usize,
    /// Last command, with its exit code.
    last: String,
}

/// Observations of all members, for the final checks.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Lanes whose creation was reported.
    pub(super) lanes: Vec<String>,
    /// Contents that were written to a lane.
    pub(super) tokens: Vec<String>,
    /// Commits of lanes whose landing was reported afterwards, and merge commits that were reported.
    pub(super) landed: Vec<String>,
    /// Number of runs of each command, by exit code and reasons without names and numbers.
    pub(super) outcomes: BTreeMap<(String, i32, String), usize>,
    /// Whether an undo ran.
    pub(super) undone: bool,
    /// Violations: outputs and exit codes that no command may have.
    pub(super) faults: Vec<String>,
}

/// Repository with all its members.
pub(super) struct Crowd {
    /// Starts programs; a copy for each member would work as well.
    fixture: Mutex<Fixture>,
    proq: std::path::PathBuf,
    deadline: Instant,
    /// Whether commands are killed.
    kills: bool,
    /// Whether there is only one member, so that each of its steps can be checked.
    is_single: bool,
    /// The user's own changes in the main checkout.
    start_status: String,
    log: Mutex<Log>,
}

/// Exit code of a killed command, as a shell reports it.
const KILLED_EXIT_CODE: i32 = 128 + 9;

/// Maximum lifetime of a command to be killed, in microseconds. Most commands take less.
const MAX_LIFETIME_MICROS: usize = 60_000;

/// Reasons for which a command may be refused: what other processes did, never what a killed one left behind.
const ALLOWED_REFUSALS: &[&str] = &[
    "there is no lane",
    "no preview is open",
    "is shown by a preview",
    "it has uncommitted work",
    "nothing to land",
    "cannot be undone",
    "is not the last",
    "could not be moved",
    // Another process discarded the lane.
    "it was removed before it could be merged",
];

/// Lets `processes` processes work for the requested time, and checks the repository afterwards. Returns
/// whether there was no violation.
pub(super) fn run_crowd(folder: &Path, proq: &Path, seed: u64, args: &Args) -> Outcome<bool> {
    let (time, processes) = (args.crowd.unwrap_or_default(), args.processes);
    let fixture = Fixture::new(&folder.join("crowd"), proq)?;
    crowd_checks::prepare(&fixture)?;
    let start_status = crowd_checks::user_status(&fixture)?;
    println!("{processes} processes for {} s, half of them with clocks that are hours off", time.as_secs());
    let crowd = Crowd {
        fixture: Mutex::new(fixture),
        proq: proq.to_owned(),
        deadline: Instant::now() + time,
        kills: args.kills,
        is_single: processes == 1,
        start_status,
        log: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for number in 0..processes {
            let member = Member::new(&crowd, number, seed);
            scope.spawn(move || member.run());
        }
    });
    let fixture = crowd.fixture.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut log = crowd.log.into_inner().unwrap_or_else(PoisonError::into_inner);
    crowd_checks::check(&fixture, &mut log, &crowd.start_status)?;
    print_report(&log, seed);
    Ok(log.faults.is_empty())
}

fn print_report(log: &Log, seed: u64) {
    for ((command, code, said), count) in &log.outcomes {
        println!("  {command:<12} ended with {code:<3} {count:>6} times  {said}");
    }
    for fault in &log.faults {
        println!("  {fault}");
    }
    let runs: usize = log.outcomes.values().sum();
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
        let fixture = self.fixture.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = dir.map_or_else(|| fixture.repo(), |lane| fixture.lane(lane));
        let mut command = fixture.command(program, &dir);
        command.env("PROQ_LOCK_TIMEOUT", "60");
        command
    }

    fn lane(&self, name: &str) -> std::path::PathBuf {
        self.fixture.lock().unwrap_or_else(PoisonError::into_inner).lane(name)
    }
}

impl Member<'_> {
    fn new(crowd: &Crowd, number: usize, seed: u64) -> Member<'_> {
        let day = number / 2 % 20 + 1;
        let clock = (number % 2 == 1).then(|| format!("2026-06-{day:02}T{:02}:00:00Z", number * 7 % 24));
        let rng = dice::seeded(seed, &format!("member {number}"));
        Member { crowd, number, rng, clock, lanes: Vec::new(), write_count: 0, last: String::new() }
    }

    fn run(mut self) {
        while Instant::now() < self.crowd.deadline {
            let next = self
                .run_random_command()
                .and_then(|()| if self.crowd.is_single { self.is_checkout_intact() } else { Ok(true) });
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

    /// Returns whether the main checkout is as its user left it; true while a lane is previewed.
    fn is_checkout_intact(&mut self) -> Outcome<bool> {
        let last = self.last.clone();
        if self.proq(&["list"])?.code != 0 {
            return Ok(true);
        }
        let now =
            crowd_checks::user_status(&self.crowd.fixture.lock().unwrap_or_else(PoisonError::into_inner))?;
        let is_intact = now == self.crowd.start_status || !now.contains("# branch.head main");
        if !is_intact {
            self.crowd.log().faults.push(format!("after {last}: the checkout is {now:?}"));
        }
        Ok(is_intact)
    }

    fn run_random_command(&mut self) -> Outcome<()> {
        let Some(lane) = self.rng.choice(&self.lanes).cloned() else {
            return self.spawn();
        };
        match self.rng.usize(..22) {
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

    /// Runs git-proq with this member's clock.
    fn proq(&mut self, args: &[&str]) -> Outcome<CommandOutput> {
        let mut command = self.crowd.command(&self.crowd.proq, None);
        match &self.clock {
            Some(clock) => command.env("PROQ_TEST_NOW", clock),
            None => command.env_remove("PROQ_TEST_NOW"),
        };
        let lifetime =
            (self.crowd.kills && self.rng.usize(..5) == 0).then(|| self.rng.usize(..MAX_LIFETIME_MICROS));
        let answer = match lifetime {
            Some(micros) => run_killed_after(command.args(args), Duration::from_micros(micros as u64))?,
            None => CommandOutput::run(command.args(args))?,
        };
        let reasons =
            if matches!(answer.code, 0 | KILLED_EXIT_CODE) { Vec::new() } else { refusal_reasons(&answer) };
        let is_allowed = match answer.code {
            0 => true,
            KILLED_EXIT_CODE => lifetime.is_some(),
            1 | 3 | 5 => {
                !reasons.is_empty()
                    && reasons.iter().all(|reason| ALLOWED_REFUSALS.contains(&reason.as_str()))
            }
            _ => false,
        };
        let mut log = self.crowd.log();
        if !is_allowed {
            log.faults.push(format!(
                "{} ended with {}: {} {}",
                args.join(" "),
                answer.code,
                String::from_utf8_lossy(&answer.stdout),
                answer.stderr
            ));
        }
        self.last = format!("{} ({})", args.join(" "), answer.code);
        *log.outcomes.entry((args[0].to_owned(), answer.code, reasons.join("; "))).or_default() += 1;
        Ok(answer)
    }

    /// Undoes the last operation, whichever member ran it. What landed with it is no longer on its base.
    fn undo(&mut self) -> Outcome<()> {
        let answer = self.proq(&["undo"])?;
        self.crowd.log().undone |= matches!(answer.code, 0 | KILLED_EXIT_CODE);
        Ok(())
    }

    /// Writes a file of the user to the main checkout, whichever lane is previewed there.
    fn edit(&mut self) -> Outcome<()> {
        self.write_count += 1;
        let token = format!("precious edit {} {}\n", self.number, self.write_count);
        let repo = self.crowd.fixture.lock().unwrap_or_else(PoisonError::into_inner).repo();
        std::fs::write(
            repo.join(format!("{}{}-{}", crowd_checks::EDIT_PREFIX, self.number, self.write_count)),
            &token,
        )?;
        self.crowd.log().tokens.push(token);
        Ok(())
    }

    fn spawn(&mut self) -> Outcome<()> {
        self.write_count += 1;
        let name = format!("m{}-{}", self.number, self.write_count);
        if self.proq(&["spawn", "--empty", "-n", &name])?.code == 0 {
            self.crowd.log().lanes.push(name.clone());
            self.lanes.push(name);
        }
        Ok(())
    }

    /// Writes a new file to a lane; none if the lane no longer exists.
    fn write(&mut self, lane: &str, kind: &str) -> Option<String> {
        self.write_count += 1;
        let path = format!("{lane}-{}.{kind}", self.write_count);
        let token = format!("precious {lane} {}\n", self.write_count);
        std::fs::write(self.crowd.lane(lane).join(&path), &token).ok()?;
        self.crowd.log().tokens.push(token);
        Some(path)
    }

    /// Commits a file in a lane, as an agent would. Returns none if another member has just landed the lane.
    fn commit(&mut self, lane: &str) -> Outcome<Option<String>> {
        let dir = self.crowd.lane(lane);
        let Some(path) = self.write(lane, "txt").filter(|_| dir.is_dir()) else {
            self.lanes.retain(|l| l != lane);
            return Ok(None);
        };
        let script = "git add \"$1\" && git commit -qm \"$1\" && git rev-parse HEAD";
        let mut sh = self.crowd.command(Path::new("sh"), Some(lane));
        let Ok(answer) = CommandOutput::run(sh.args(["-c", script, "sh", &path])) else { return Ok(None) };
        let id = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        Ok((answer.code == 0).then_some(id))
    }

    /// Leaves an uncommitted file in a lane. It blocks nothing but must be kept.
    fn note(&mut self, lane: &str) -> Outcome<()> {
        let _ = self.write(lane, "note");
        Ok(())
    }

    fn merge(&mut self, lane: &str) -> Outcome<()> {
        let last = self.commit(lane)?;
        let answer = self.proq(&["merge", "--json", lane])?;
        for (landed, commit) in landed_lanes(&answer) {
            let own = last.clone().filter(|_| landed == *lane);
            self.crowd.log().landed.extend(own.into_iter().chain([commit]));
        }
        Ok(())
    }

    fn merge_all(&mut self) -> Outcome<()> {
        let answer = self.proq(&["merge", "--all", "--json"])?;
        self.crowd.log().landed.extend(landed_lanes(&answer).into_iter().map(|(_, commit)| commit));
        Ok(())
    }

    fn discard(&mut self, lane: &str) -> Outcome<()> {
        if self.proq(&["discard", "--force", lane])?.code == 0 {
            self.lanes.retain(|l| l != lane);
        }
        Ok(())
    }
}

/// Runs a command, and kills it and its children if it takes longer than this.
fn run_killed_after(command: &mut Command, lifetime: Duration) -> Outcome<CommandOutput> {
    let child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let group = libc::pid_t::try_from(child.id())?;
    let (done, wait) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if wait.recv_timeout(lifetime) == Err(mpsc::RecvTimeoutError::Timeout) {
                sys::signal(-group, libc::SIGKILL);
            }
        });
        let answer = CommandOutput::wait_for(child);
        drop(done);
        answer
    })
}

/// Returns the reasons of a refusal, without names of lanes and files; for a landing, of each lane that did
/// not land.
fn refusal_reasons(answer: &CommandOutput) -> Vec<String> {
    let value: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
    let lanes = value["lanes"].as_array().into_iter().flatten();
    let lanes = lanes.filter(|lane| !matches!(lane["result"].as_str(), Some("landed" | "already-landed")));
    let mut messages: Vec<String> =
        lanes.filter_map(|lane| lane["message"].as_str().map(str::to_owned)).collect();
    messages.extend(value["error"].as_str().map(str::to_owned));
    if messages.is_empty() {
        let errors = answer.stderr.lines().filter_map(|line| line.strip_prefix("error: "));
        messages.extend(errors.map(str::to_owned));
    }
    let normalized = |reason: String| {
        ALLOWED_REFUSALS.iter().find(|fair| reason.contains(**fair)).map_or(reason, |fair| (*fair).to_owned())
    };
    let mut out: Vec<String> = messages.into_iter().map(normalized).collect();
    out.sort();
    out.dedup();
    out
}

/// Returns the lanes that a `merge` reports as landed, with their merge commits.
fn landed_lanes(answer: &CommandOutput) -> Vec<(String, String)> {
    let value: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
    let lanes = value["lanes"].as_array().cloned().unwrap_or_default();
    let landed = lanes.iter().filter(|l| l["result"] == "landed");
    let pair = |l: &Value| Some((l["lane"].as_str()?.to_owned(), l["commit"].as_str()?.to_owned()));
    landed.filter_map(pair).collect()
}
