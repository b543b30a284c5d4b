//! Stress test of the scheduler: forty tasks in six waves, of which some share files, two fail, two conflict
//! and one stalls, while their scheduler is killed twenty times; and a model that checks its log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fastrand::Rng;
use proq_test_kit::plans::install_worker;
use proq_test_kit::waiting::{KilledOnDrop, WAIT_LIMIT, wait_until, wait_within};
use proq_test_kit::{Sandbox, random_seed};
use serde_json::Value;

use super::swarm::recorded_runs;

/// Number of kills.
const KILLS: usize = 20;
/// Number of failures after which a task is set aside here.
const MAX_FAILURES: u64 = 2;
/// Number of runs allowed at the same time.
const MAX_PARALLEL: usize = 3;

/// A task of the plan.
struct Task {
    name: String,
    needs: Vec<usize>,
    scope: Option<String>,
}

/// Forty tasks in six waves; the first two conflict, the third stalls once, `bad-…` fail.
fn tasks(rng: &mut Rng) -> Vec<Task> {
    let waves = [8, 8, 7, 7, 5, 5];
    let mut all: Vec<Task> = Vec::new();
    let mut previous_wave: Vec<usize> = Vec::new();
    for (wave, count) in waves.into_iter().enumerate() {
        let first = all.len();
        for n in 0..count {
            let name = match (wave, n) {
                (0, 0) => "clash-a".to_owned(),
                (0, 1) => "clash-b".to_owned(),
                (0, 2) => "stalls".to_owned(),
                (1, 7) | (3, 6) => format!("bad-{wave}"),
                _ => format!("t{wave}{n}"),
            };
            let mut needs = BTreeSet::new();
            if !previous_wave.is_empty() {
                // One or two tasks of the previous wave, so that there are as many waves; not always one that
                // fails.
                needs.insert(previous_wave[rng.usize(..previous_wave.len())]);
                needs.insert(previous_wave[rng.usize(..previous_wave.len())]);
            }
            // Some tasks of a wave share files.
            let scope = (wave > 0 && n % 3 == 1).then(|| format!("shared-{wave}/"));
            all.push(Task { name, needs: needs.into_iter().collect(), scope });
        }
        previous_wave = (first..all.len()).collect();
    }
    all
}

fn plan(tasks: &[Task]) -> String {
    let mut out = "format = 1\nsummary = \"Forty tasks\"\nagent = \"worker\"\n".to_owned();
    for task in tasks {
        let needs: Vec<&str> = task.needs.iter().map(|need| tasks[*need].name.as_str()).collect();
        out.push_str(&format!("[[task]]\nid = \"{0}\"\ntitle = \"{0}\"\nneeds = {needs:?}\n", task.name));
        if let Some(scope) = &task.scope {
            out.push_str(&format!("scope = [\"{scope}\"]\n"));
        }
    }
    out
}

/// Script of the agents. The two that conflict wait for each other, so that neither starts on top of the
/// other.
const WORK_SCRIPT: &str = r#"
case "$PROQ_TASK" in
    clash-*)
        : > "$ROOT/at-$PROQ_TASK"
        while [ ! -e "$ROOT/at-clash-a" ] || [ ! -e "$ROOT/at-clash-b" ]; do echo waiting; sleep 0.05; done
        echo "$PROQ_TASK" >> clash.txt ;;
    stalls) if [ "$PROQ_TASK_ATTEMPT" = 1 ]; then exec sleep 600; fi ;;
    bad-*) echo half > half.txt; exit 7 ;;
esac
"#;

/// Script that removes the conflict markers and keeps both sides.
const SOLVE_SCRIPT: &str = r"
echo solved >> $ROOT/solved
sed -i -e '/^|||||||/,/^=======/d' -e '/^<<<<<<< /d' -e '/^=======/d' -e '/^>>>>>>> /d' clash.txt
";

struct StressRun {
    sandbox: Sandbox,
    tasks: Vec<Task>,
    rng: Rng,
    kills: usize,
}

impl StressRun {
    fn new(seed: u64) -> StressRun {
        let mut rng = Rng::with_seed(seed);
        let tasks = tasks(&mut rng);
        let sandbox = Sandbox::new();
        sandbox.write("clash.txt", "start\n");
        sandbox.commit_all("a file to quarrel about");
        sandbox.write("plan.toml", &plan(&tasks));
        install_worker(&sandbox, WORK_SCRIPT);
        sandbox.program("solver", SOLVE_SCRIPT);
        for (key, value) in [
            ("merge.conflictAgent", "solver"),
            ("swarm.maxAttempts", "2"),
            ("agent.stall", "8s"),
            ("agent.stopGrace", "1"),
        ] {
            sandbox.git(&["config", &format!("proq.{key}"), value]);
        }
        StressRun { sandbox, tasks, rng, kills: 0 }
    }

    fn folder(&self) -> PathBuf {
        self.sandbox.repo.join(".git/proq/batches/20260102-030405")
    }

    fn lines(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.folder().join("log.jsonl")).unwrap_or_default();
        let complete = log.rfind('\n').map_or("", |end| &log[..end]);
        complete.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn is_held(&self) -> bool {
        let lock = self.sandbox.repo.join(".git/proq/locks/batches/20260102-030405.lock");
        std::fs::File::open(lock).is_ok_and(|file| file.try_lock_shared().is_err())
    }

    /// Kills the scheduler once: at a fault point, or from outside at any moment.
    fn kill_once(&mut self) {
        let (first_line, old_scheduler) = (self.lines().len(), self.scheduler_line());
        let (point, max_lines) = match self.rng.usize(..8) {
            0 => (Some("batch.event"), 9),
            1 => (Some("batch.written"), 9),
            2 => (Some("batch.action"), 9),
            3 => (Some("batch.launch"), 9),
            4 => (Some("launch.prepared"), 9),
            5 => (Some("launch.heard"), 9),
            _ => (None, self.rng.usize(..9)),
        };
        let hit = 1 + self.rng.usize(..if point == Some("batch.action") { 20 } else { 4 });
        let mut command = self.sandbox.proq_command(&self.sandbox.repo, &["resume", "--detach"]);
        if let Some(point) = point.filter(|_| cfg!(debug_assertions)) {
            command.env("PROQ_TEST_DIE_AT", format!("{point}:{hit}"));
        }
        // `resume --detach` would start another scheduler that exits at the same point.
        let spawn_quietly = |command: &mut std::process::Command| {
            KilledOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
        };
        // The first scheduler runs already.
        let resume = (self.kills > 0).then(|| {
            let resume = spawn_quietly(&mut command);
            wait_until("a scheduler", || self.scheduler_line() != old_scheduler);
            resume
        });
        wait_until("its death, or enough to have happened", || {
            !self.is_held() || self.lines().len() >= first_line + max_lines
        });
        drop(resume);
        let kill = || {
            let pid = self.scheduler_line();
            let mut kill = self.sandbox.command("kill", &self.sandbox.root());
            kill.args(["-9", pid.trim_start_matches("pid = ")]);
            // It may have exited already.
            let _ = self.sandbox.output(kill);
        };
        wait_until("its death", || {
            let is_dead = !self.is_held();
            if !is_dead {
                kill();
            }
            is_dead
        });
        if !self.batch_is_over() {
            self.kills += 1;
        }
    }

    /// Returns the line that holds the process id of the current or last scheduler.
    fn scheduler_line(&self) -> String {
        let text = std::fs::read_to_string(self.folder().join("scheduler.toml")).unwrap_or_default();
        text.lines().find(|line| line.starts_with("pid = ")).unwrap_or_default().to_owned()
    }

    fn state(&self) -> String {
        self.sandbox.proq(&["status", "--json"]).json()["state"].as_str().unwrap().to_owned()
    }

    /// Asserts that `doctor` finds nothing but half-written drafts, which a process killed in the middle of
    /// writing leaves.
    fn assert_healthy_except_drafts(&self) {
        let report = self.sandbox.proq(&["doctor", "--json"]).json();
        let is_expected =
            |finding: &&Value| finding["check"] == "half-written" || finding["check"] == "disk-space";
        let findings = report["findings"].as_array().unwrap().iter();
        let bad: Vec<&Value> =
            findings.filter(|found| found["severity"] != "info" && !is_expected(found)).collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }

    fn batch_is_over(&self) -> bool {
        self.state() == "over"
    }
}

/// Promise: operations/killed-scheduler
#[test]
fn repeatedly_killed_scheduler_loses_and_repeats_nothing() {
    let seed = random_seed();
    println!("PROQ_TEST_SEED={seed}");
    let mut stress = StressRun::new(seed);
    let out = stress.sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let started = Instant::now();
    while stress.kills < KILLS && !stress.batch_is_over() {
        stress.kill_once();
        assert!(started.elapsed() < Duration::from_mins(4), "it takes too long");
    }
    println!("killed {} times in {:?}", stress.kills, started.elapsed());
    if !stress.batch_is_over() {
        let _ = stress.sandbox.proq(&["resume", "--detach"]).ok();
        let status = || stress.sandbox.proq(&["batch", "status"]).stdout;
        wait_within(WAIT_LIMIT * 2, status, || (!stress.is_held()).then_some(()));
    }
    assert!(stress.kills > KILLS / 2, "it was over after {} kills", stress.kills);
    Model::from_run(&stress).check();
    stress.assert_healthy_except_drafts();
}

/// Conditions that hold for any batch, checked on its log.
struct Model<'a> {
    stress: &'a StressRun,
    lines: Vec<Value>,
    /// By task: whether it can have a result to build on.
    can_land: Vec<bool>,
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

impl<'a> Model<'a> {
    fn from_run(stress: &'a StressRun) -> Model<'a> {
        let mut can_land: Vec<bool> = Vec::new();
        for task in &stress.tasks {
            // In the plan's order each task follows its dependencies.
            let possible = !task.name.starts_with("bad-") && task.needs.iter().all(|need| can_land[*need]);
            can_land.push(possible);
        }
        Model { stress, lines: stress.lines(), can_land }
    }

    fn check(&self) {
        self.assert_each_run_happened_once();
        self.assert_order_and_limits();
        self.assert_right_tasks_landed();
        self.assert_branch_has_landed_work();
    }

    /// The runs that agents recorded are those in the log.
    fn assert_each_run_happened_once(&self) {
        let runs = recorded_runs(&self.stress.sandbox);
        let unique_runs: BTreeSet<&String> = runs.iter().collect();
        assert_eq!(unique_runs.len(), runs.len(), "a run was started twice: {runs:?}");
        let name = |line: &Value| {
            format!("{} {}", self.stress.tasks[number(&line["task"])].name, number(&line["attempt"]))
        };
        let ended: Vec<String> = self.events("ended").map(name).collect();
        let unique_ends: BTreeSet<&String> = ended.iter().collect();
        assert_eq!(unique_ends.len(), ended.len(), "a run ended twice: {ended:?}");
        assert_eq!(unique_ends, unique_runs);
        for (at, line) in self.lines.iter().enumerate() {
            assert_eq!(number(&line["n"]), at + 1);
        }
    }

    fn events(&self, event: &str) -> impl Iterator<Item = &Value> {
        self.lines.iter().filter(move |line| line["event"] == event)
    }

    /// No task starts before its dependencies or next to one that shares its files, and never more run than
    /// are allowed.
    fn assert_order_and_limits(&self) {
        let tasks = &self.stress.tasks;
        let (mut landed, mut running) = (BTreeSet::new(), BTreeMap::new());
        for line in &self.lines {
            match line["event"].as_str() {
                Some("started") => {
                    let task = number(&line["task"]);
                    for need in &tasks[task].needs {
                        assert!(landed.contains(need), "{} before {}", tasks[task].name, tasks[*need].name);
                    }
                    let scope = &tasks[task].scope;
                    let sharing = running.keys().find(|other: &&usize| {
                        **other != task && scope.is_some() && tasks[**other].scope == *scope
                    });
                    assert_eq!(sharing, None, "{} beside what shares its files", tasks[task].name);
                    running.insert(task, number(&line["attempt"]));
                    assert!(running.len() <= MAX_PARALLEL, "{running:?}");
                }
                Some("ended") => {
                    running.remove(&number(&line["task"]));
                }
                Some("landed") => {
                    for task in line["tasks"].as_array().unwrap() {
                        assert!(landed.insert(number(task)), "landed twice: {line}");
                    }
                }
                _ => {}
            }
        }
    }

    fn assert_right_tasks_landed(&self) {
        let landed: BTreeSet<usize> =
            self.events("landed").flat_map(|line| line["tasks"].as_array().unwrap()).map(number).collect();
        let expected: BTreeSet<usize> =
            (0..self.can_land.len()).filter(|task| self.can_land[*task]).collect();
        assert_eq!(landed, expected, "{:#?}", self.lines.iter().map(Value::to_string).collect::<Vec<_>>());
        let status = self.stress.sandbox.proq(&["status", "--json"]).json();
        for (at, task) in status["tasks"].as_array().unwrap().iter().enumerate() {
            let planned = &self.stress.tasks[at];
            let blocked = planned.needs.iter().any(|need| !self.can_land[*need]);
            let state = match planned.name.as_str() {
                _ if self.can_land[at] => "landed",
                _ if blocked => "skipped",
                _ => "set aside",
            };
            assert_eq!(task["state"], state, "{task}");
            let attempts = match state {
                "skipped" => 0,
                "set aside" => MAX_FAILURES,
                _ => task["attempts"].as_u64().unwrap(),
            };
            assert_eq!(task["attempts"], attempts, "{task}");
        }
        assert_eq!(status["why"], "partly");
        // The task that stalled was retried, and both tasks that conflicted landed.
        assert!(self.events("ended").any(|line| line["end"]["failed"] == "stalled"));
        assert_eq!(self.events("conflict-captured").count(), 1);
        assert_eq!(self.events("conflict-resolved").count(), 1);
    }

    fn assert_branch_has_landed_work(&self) {
        let sandbox = &self.stress.sandbox;
        let branch = "proq/batch-20260102-030405";
        let files = sandbox.git(&["ls-tree", "--name-only", branch]);
        let mut expected: Vec<String> = ["a.txt", "clash.txt"].map(ToOwned::to_owned).to_vec();
        for (at, task) in self.stress.tasks.iter().enumerate().filter(|(at, _)| self.can_land[*at]) {
            expected.push(format!("{}.txt", task.name));
            let text = sandbox.git(&["show", &format!("{branch}:{}.txt", task.name)]);
            assert_eq!(text, format!("work of {}", self.stress.tasks[at].name));
        }
        expected.sort();
        assert_eq!(files.lines().collect::<Vec<_>>(), expected);
        let clash = sandbox.git(&["show", &format!("{branch}:clash.txt")]);
        let lines: BTreeSet<&str> = clash.lines().collect();
        assert_eq!(lines, BTreeSet::from(["start", "clash-a", "clash-b"]));
        assert_eq!(sandbox.git(&["log", "--oneline", "main"]).lines().count(), 2);
    }
}
