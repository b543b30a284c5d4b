//! Owns the great trial of the scheduler: forty tasks in six waves, of which some share files, two fail, two conflict and one stalls,
//! while the process that goes on with them is killed twenty times; and a model that checks what was written of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::support::patience::{Beside, PATIENCE, wait_until, wait_within};
use super::support::{Sandbox, seed};
use super::swarm::{ran, worker};

/// How often it is killed.
const KILLS: usize = 20;
/// With how many failures a task is set aside here.
const MOST: u64 = 2;
/// How many runs there may be at the same time.
const PARALLEL: usize = 3;

/// A task as the plan has it.
struct Task {
    name: String,
    needs: Vec<usize>,
    scope: Option<String>,
}

/// Chance that is the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap()
    }
}

/// Forty tasks in six waves; the first two conflict, the third stalls once, `bad-…` fail.
fn tasks(dice: &mut Dice) -> Vec<Task> {
    let waves = [8, 8, 7, 7, 5, 5];
    let mut all: Vec<Task> = Vec::new();
    let mut before: Vec<usize> = Vec::new();
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
            if !before.is_empty() {
                // One of the wave right before, so that there are as many waves; not always of one that fails.
                needs.insert(before[dice.below(before.len())]);
                needs.insert(before[dice.below(before.len())]);
            }
            // Some of a wave are about the same files.
            let scope = (wave > 0 && n % 3 == 1).then(|| format!("shared-{wave}/"));
            all.push(Task { name, needs: needs.into_iter().collect(), scope });
        }
        before = (first..all.len()).collect();
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

/// What the agents do. The two that conflict wait for each other, so that neither begins on top of the other.
const WORK: &str = r#"
case "$PROQ_TASK" in
    clash-*)
        : > "$ROOT/at-$PROQ_TASK"
        while [ ! -e "$ROOT/at-clash-a" ] || [ ! -e "$ROOT/at-clash-b" ]; do echo waiting; sleep 0.05; done
        echo "$PROQ_TASK" >> clash.txt ;;
    stalls) if [ "$PROQ_TASK_ATTEMPT" = 1 ]; then exec sleep 600; fi ;;
    bad-*) echo half > half.txt; exit 7 ;;
esac
"#;

/// Takes the markers out and leaves both sides.
const SOLVE: &str = r"
echo solved >> $ROOT/solved
sed -i -e '/^|||||||/,/^=======/d' -e '/^<<<<<<< /d' -e '/^=======/d' -e '/^>>>>>>> /d' clash.txt
";

struct Trial {
    sandbox: Sandbox,
    tasks: Vec<Task>,
    dice: Dice,
    kills: usize,
}

impl Trial {
    fn new(seed: u64) -> Trial {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let tasks = tasks(&mut dice);
        let sandbox = Sandbox::new();
        sandbox.write("clash.txt", "start\n");
        sandbox.commit_all("a file to quarrel about");
        sandbox.write("plan.toml", &plan(&tasks));
        worker(&sandbox, WORK);
        sandbox.program("solver", SOLVE);
        for (key, value) in [
            ("merge.conflictAgent", "solver"),
            ("swarm.maxAttempts", "2"),
            ("agent.stall", "8s"),
            ("agent.stopGrace", "1"),
        ] {
            sandbox.git(&["config", &format!("proq.{key}"), value]);
        }
        Trial { sandbox, tasks, dice, kills: 0 }
    }

    fn folder(&self) -> PathBuf {
        self.sandbox.repo.join(".git/proq/batches/20260102-030405")
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder().join("log.jsonl")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn is_held(&self) -> bool {
        let lock = self.sandbox.repo.join(".git/proq/locks/batches/20260102-030405.lock");
        std::fs::File::open(lock).is_ok_and(|file| file.try_lock_shared().is_err())
    }

    /// Has it killed once: at a point that it comes to, or from outside at any moment.
    fn kill_once(&mut self) {
        let (begin, before) = (self.lines().len(), self.scheduler());
        let (point, most) = match self.dice.below(8) {
            0 => (Some("batch.event"), 9),
            1 => (Some("batch.written"), 9),
            2 => (Some("batch.action"), 9),
            3 => (Some("batch.launch"), 9),
            4 => (Some("launch.prepared"), 9),
            5 => (Some("launch.heard"), 9),
            _ => (None, self.dice.below(9)),
        };
        let time = 1 + self.dice.below(if point == Some("batch.action") { 20 } else { 4 });
        let mut command = self.sandbox.proq_command(&self.sandbox.repo, &["resume", "--detach"]);
        if let Some(point) = point.filter(|_| cfg!(debug_assertions)) {
            command.env("PROQ_TEST_DIE_AT", format!("{point}:{time}"));
        }
        // It would start another one that dies at the same place.
        let quiet = |command: &mut std::process::Command| {
            Beside(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
        };
        // The first one runs already.
        let resume = (self.kills > 0).then(|| {
            let resume = quiet(&mut command);
            wait_until("a scheduler", || self.scheduler() != before);
            resume
        });
        wait_until("its death, or enough to have happened", || {
            !self.is_held() || self.lines().len() >= begin + most
        });
        drop(resume);
        let kill = || {
            let pid = self.scheduler();
            let mut kill = self.sandbox.command("kill", &self.sandbox.root());
            kill.args(["-9", pid.trim_start_matches("pid = ")]);
            // It may just have ended.
            let _ = self.sandbox.output(kill);
        };
        wait_until("its death", || {
            let is_dead = !self.is_held();
            if !is_dead {
                kill();
            }
            is_dead
        });
        if !self.is_over() {
            self.kills += 1;
        }
    }

    /// The line that says which process goes on, or did last.
    fn scheduler(&self) -> String {
        let text = std::fs::read_to_string(self.folder().join("scheduler.toml")).unwrap_or_default();
        text.lines().find(|line| line.starts_with("pid = ")).unwrap_or_default().to_owned()
    }

    fn state(&self) -> String {
        self.sandbox.proq(&["status", "--json"]).json()["state"].as_str().unwrap().to_owned()
    }

    /// Who is killed in the middle of writing leaves a draft behind, and nothing else.
    fn is_healthy(&self) {
        let answer = self.sandbox.proq(&["doctor", "--json"]).json();
        let drafts = |found: &&Value| found["check"] == "half-written" || found["check"] == "disk-space";
        let findings = answer["findings"].as_array().unwrap().iter();
        let bad: Vec<&Value> =
            findings.filter(|found| found["severity"] != "info" && !drafts(found)).collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }

    fn is_over(&self) -> bool {
        self.state() == "over"
    }
}

#[test]
fn a_scheduler_that_is_killed_again_and_again_loses_nothing_and_runs_nothing_twice() {
    let seed = seed();
    println!("PROQ_TEST_SEED={seed}");
    let mut trial = Trial::new(seed);
    let out = trial.sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let begin = Instant::now();
    while trial.kills < KILLS && !trial.is_over() {
        trial.kill_once();
        assert!(begin.elapsed() < Duration::from_mins(4), "it takes too long");
    }
    println!("killed {} times in {:?}", trial.kills, begin.elapsed());
    if !trial.is_over() {
        let _ = trial.sandbox.proq(&["resume", "--detach"]).ok();
        let status = || trial.sandbox.proq(&["status"]).stdout;
        wait_within(PATIENCE * 2, status, || (!trial.is_held()).then_some(()));
    }
    assert!(trial.kills > KILLS / 2, "it was over after {} kills", trial.kills);
    Model::of(&trial).check();
    trial.is_healthy();
}

/// What has to be true of any batch, going by what was written of it.
struct Model<'a> {
    trial: &'a Trial,
    lines: Vec<Value>,
    /// By task: whether it has a result to build on.
    there: Vec<bool>,
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

impl<'a> Model<'a> {
    fn of(trial: &'a Trial) -> Model<'a> {
        let mut there: Vec<bool> = Vec::new();
        for task in &trial.tasks {
            // The plan's order is one in which each comes behind what it needs.
            let can = !task.name.starts_with("bad-") && task.needs.iter().all(|need| there[*need]);
            there.push(can);
        }
        Model { trial, lines: trial.lines(), there }
    }

    fn check(&self) {
        self.each_run_was_once();
        self.order_and_limits_were_kept();
        self.the_right_tasks_landed();
        self.the_branch_has_what_landed();
    }

    /// Agents noted that they ran; the log says the same.
    fn each_run_was_once(&self) {
        let ran = ran(&self.trial.sandbox);
        let once: BTreeSet<&String> = ran.iter().collect();
        assert_eq!(once.len(), ran.len(), "a run was started twice: {ran:?}");
        let name = |line: &Value| {
            format!("{} {}", self.trial.tasks[number(&line["task"])].name, number(&line["attempt"]))
        };
        let ended: Vec<String> = self.events("ended").map(name).collect();
        let ends: BTreeSet<&String> = ended.iter().collect();
        assert_eq!(ends.len(), ended.len(), "a run ended twice: {ended:?}");
        assert_eq!(ends, once);
        for (at, line) in self.lines.iter().enumerate() {
            assert_eq!(number(&line["n"]), at + 1);
        }
    }

    fn events(&self, event: &str) -> impl Iterator<Item = &Value> {
        self.lines.iter().filter(move |line| line["event"] == event)
    }

    /// Nothing before what it needs, nothing beside what is about the same files, never more than are allowed.
    fn order_and_limits_were_kept(&self) {
        let tasks = &self.trial.tasks;
        let (mut landed, mut at_work) = (BTreeSet::new(), BTreeMap::new());
        for line in &self.lines {
            match line["event"].as_str() {
                Some("started") => {
                    let task = number(&line["task"]);
                    for need in &tasks[task].needs {
                        assert!(landed.contains(need), "{} before {}", tasks[task].name, tasks[*need].name);
                    }
                    let scope = &tasks[task].scope;
                    let beside = at_work.keys().find(|other: &&usize| {
                        **other != task && scope.is_some() && tasks[**other].scope == *scope
                    });
                    assert_eq!(beside, None, "{} beside what shares its files", tasks[task].name);
                    at_work.insert(task, number(&line["attempt"]));
                    assert!(at_work.len() <= PARALLEL, "{at_work:?}");
                }
                Some("ended") => {
                    at_work.remove(&number(&line["task"]));
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

    fn the_right_tasks_landed(&self) {
        let landed: BTreeSet<usize> =
            self.events("landed").flat_map(|line| line["tasks"].as_array().unwrap()).map(number).collect();
        let wanted: BTreeSet<usize> = (0..self.there.len()).filter(|task| self.there[*task]).collect();
        assert_eq!(landed, wanted, "{:#?}", self.lines.iter().map(Value::to_string).collect::<Vec<_>>());
        let status = self.trial.sandbox.proq(&["status", "--json"]).json();
        for (at, task) in status["tasks"].as_array().unwrap().iter().enumerate() {
            let it = &self.trial.tasks[at];
            let blocked = it.needs.iter().any(|need| !self.there[*need]);
            let wanted = match it.name.as_str() {
                _ if self.there[at] => "landed",
                _ if blocked => "skipped",
                _ => "set aside",
            };
            assert_eq!(task["state"], wanted, "{task}");
            let attempts = match wanted {
                "skipped" => 0,
                "set aside" => MOST,
                _ => task["attempts"].as_u64().unwrap(),
            };
            assert_eq!(task["attempts"], attempts, "{task}");
        }
        assert_eq!(status["why"], "partly");
        // The one that stalled was tried once more, and both that conflicted are there.
        assert!(self.events("ended").any(|line| line["end"]["failed"] == "stalled"));
        assert_eq!(self.events("conflict-captured").count(), 1);
        assert_eq!(self.events("conflict-resolved").count(), 1);
    }

    fn the_branch_has_what_landed(&self) {
        let sandbox = &self.trial.sandbox;
        let branch = "proq/batch-20260102-030405";
        let files = sandbox.git(&["ls-tree", "--name-only", branch]);
        let mut wanted: Vec<String> = ["a.txt", "clash.txt"].map(ToOwned::to_owned).to_vec();
        for (at, task) in self.trial.tasks.iter().enumerate().filter(|(at, _)| self.there[*at]) {
            wanted.push(format!("{}.txt", task.name));
            let text = sandbox.git(&["show", &format!("{branch}:{}.txt", task.name)]);
            assert_eq!(text, format!("work of {}", self.trial.tasks[at].name));
        }
        wanted.sort();
        assert_eq!(files.lines().collect::<Vec<_>>(), wanted);
        let clash = sandbox.git(&["show", &format!("{branch}:clash.txt")]);
        let lines: BTreeSet<&str> = clash.lines().collect();
        assert_eq!(lines, BTreeSet::from(["start", "clash-a", "clash-b"]));
        assert_eq!(sandbox.git(&["log", "--oneline", "main"]).lines().count(), 2);
    }
}
