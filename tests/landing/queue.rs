//! Merge queue: order of landings, waiting, and leaving the queue.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Stdio};

use proq_test_kit::{Output, Sandbox, file_names};

/// Check that reports that it runs and then blocks until the test releases it.
const BLOCKING_CHECK: &str = "timeout 60 sh -c 'echo here > $ROOT/here'; timeout 60 cat $ROOT/go > /dev/null";

/// Landing that runs as a child process, and what it has written to standard error so far.
struct RunningLanding {
    child: Child,
    stderr: BufReader<ChildStderr>,
    stderr_text: String,
}

impl RunningLanding {
    fn start(sandbox: &Sandbox, args: &[&str]) -> RunningLanding {
        RunningLanding::start_with_env(sandbox, args, &[])
    }

    fn start_with_env(sandbox: &Sandbox, args: &[&str], env: &[(&str, &str)]) -> RunningLanding {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.envs(env.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        RunningLanding { child, stderr, stderr_text: String::new() }
    }

    /// Starts a landing and returns when it runs its check, which blocks until the test releases it.
    fn start_in_check(sandbox: &Sandbox, lane: &str, env: &[(&str, &str)]) -> RunningLanding {
        sandbox.pipe("here");
        sandbox.pipe("go");
        let landing =
            RunningLanding::start_with_env(sandbox, &["merge", lane, "--verify", BLOCKING_CHECK], env);
        assert_eq!(sandbox.read_pipe("here"), "here\n");
        landing
    }

    /// Starts a landing that has to wait, and returns when it has reported so.
    fn start_queued(sandbox: &Sandbox, args: &[&str]) -> RunningLanding {
        let mut landing = RunningLanding::start(sandbox, args);
        let line = landing.read_line();
        assert!(line.starts_with("waiting for "), "{line}");
        landing
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        self.stderr_text.push_str(&line);
        line
    }

    fn pid(&self) -> u64 {
        self.child.id().into()
    }

    fn signal(&self, sandbox: &Sandbox, name: &str) {
        let _ = sandbox.sh(&format!("kill -{name} {}", self.pid()));
    }

    /// Waits for the process and returns its output and exit code.
    fn wait(mut self, sandbox: &Sandbox) -> Output {
        use std::os::unix::process::ExitStatusExt;
        let mut stdout = Vec::new();
        self.child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut self.stderr_text).unwrap();
        let status = self.child.wait().unwrap();
        let code = status.code().or(status.signal().map(|s| 128 + s)).unwrap();
        Output {
            stdout: sandbox.normalize(&stdout),
            stderr: sandbox.normalize(self.stderr_text.as_bytes()),
            code,
        }
    }
}

fn sandbox_with_lanes(lanes: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    for name in lanes {
        sandbox.lane_with_commit(name, &format!("echo {name} > {name}.txt"));
    }
    sandbox
}

/// Returns the lanes in the queue with their states, as `git proq queue --json` lists them.
#[track_caller]
fn queue_rows(sandbox: &Sandbox) -> Vec<String> {
    let answer = sandbox.proq(&["queue", "--json"]).json();
    let rows = answer["queue"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            format!("{} {}", row["lanes"][0].as_str().unwrap_or("all"), row["state"].as_str().unwrap())
        })
        .collect()
}

/// Returns the lanes that landed on main, oldest first.
fn landed_lanes(sandbox: &Sandbox) -> Vec<String> {
    let log = sandbox.git(&["log", "--first-parent", "--reverse", "--merges", "--format=%s", "main"]);
    let name = |line: &str| line.trim_start_matches("Merge lane ").split(':').next().unwrap().to_owned();
    log.lines().map(name).collect()
}

/// Asserts that the queue, its tickets and pending refs are empty and that the repository is healthy.
#[track_caller]
fn assert_queue_empty(sandbox: &Sandbox) {
    assert_eq!(queue_rows(sandbox), [""; 0]);
    assert_eq!(file_names(&sandbox.repo.join(".git/proq/locks/tickets")), [""; 0]);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/pending"]), "");
    sandbox.assert_healthy();
}

/// Promise: concurrency/queue-order
#[test]
fn landings_run_in_order_of_arrival() {
    let sandbox = sandbox_with_lanes(&["one", "two", "three"]);
    let three = RunningLanding::start_in_check(&sandbox, "three", &[]);
    let one = RunningLanding::start_queued(&sandbox, &["merge", "one"]);
    let two = RunningLanding::start_queued(&sandbox, &["merge", "two"]);
    assert_eq!(queue_rows(&sandbox), ["three landing", "one waiting", "two waiting"]);
    assert_eq!(landed_lanes(&sandbox), [""; 0]);
    let waiting_text = format!("waiting for the landing of three (process {}, since 03:04)", three.pid());
    assert_eq!(one.stderr_text, format!("{waiting_text}; Ctrl-C to leave the queue\n"));
    assert_eq!(two.stderr_text, format!("{waiting_text} and one more after it; Ctrl-C to leave the queue\n"));
    sandbox.write_pipe("go");
    for landing in [three, one, two] {
        let _ = landing.wait(&sandbox).ok();
    }
    assert_eq!(landed_lanes(&sandbox), ["three", "one", "two"]);
    assert_queue_empty(&sandbox);
}

#[test]
fn queue_lists_waiting_landings() {
    let sandbox = sandbox_with_lanes(&["one", "two", "three"]);
    let out = sandbox.proq(&["queue"]);
    assert_eq!(out.to_text(), "--- stderr\nthe merge queue is empty\n--- code 0\n");
    assert_eq!(sandbox.proq(&["queue", "--json"]).json()["queue"], serde_json::json!([]));
    let one = RunningLanding::start_in_check(&sandbox, "one", &[]);
    let all = RunningLanding::start_queued(&sandbox, &["merge", "--all", "--onto", "main"]);
    let both = RunningLanding::start_queued(&sandbox, &["merge", "three", "proq/two"]);
    let answer = sandbox.proq(&["queue", "--json"]).json();
    let host = &answer["queue"][0]["host"];
    assert!(host.as_str().is_some_and(|h| !h.is_empty()));
    let row = |n: usize, landing: &RunningLanding, lanes: &[&str], onto: Option<&str>, command: &str| {
        serde_json::json!({
            "position": n, "state": if n == 1 { "landing" } else { "waiting" }, "stopped": false, "all": lanes.is_empty(),
            "lanes": lanes, "onto": onto, "pid": landing.pid(), "host": host, "command": command,
            "since": "2026-01-02T03:04:05Z",
        })
    };
    assert_eq!(answer["queue"][0]["lanes"], serde_json::json!(["one"]));
    assert_eq!(answer["queue"][1], row(2, &all, &[], Some("main"), "git proq merge --all --onto main"));
    assert_eq!(answer["queue"][2], row(3, &both, &["three", "two"], None, "git proq merge three proq/two"));
    let table = sandbox.proq(&["queue"]).ok();
    let table = [&one, &all, &both]
        .iter()
        .fold(table, |table, landing| table.replace(&format!("{:<7}", landing.pid()), "[PID]  "));
    insta::assert_snapshot!(table, @r"
    #  STATE    LANDS              PROCESS  SINCE  COMMAND
    1  landing  one                [PID]    03:04  git proq merge one --verify 'timeout 60 sh -c '\''echo here > $ROOT/here'\''; timeout 60 cat $ROOT/go > /dev/null'
    2  waiting  all lanes on main  [PID]    03:04  git proq merge --all --onto main
    3  waiting  three, two         [PID]    03:04  git proq merge three proq/two
    ");
    sandbox.write_pipe("go");
    for (landing, code) in [(one, 0), (all, 0), (both, 0)] {
        let out = landing.wait(&sandbox);
        assert_eq!(out.code, code, "{}", out.to_text());
    }
    assert_queue_empty(&sandbox);
}

/// Promise: concurrency/ended-landing
#[test]
fn killed_waiting_landing_leaves_queue() {
    let sandbox = sandbox_with_lanes(&["one", "two", "three"]);
    let one = RunningLanding::start_in_check(&sandbox, "one", &[]);
    let two = RunningLanding::start_queued(&sandbox, &["merge", "two"]);
    let three = RunningLanding::start_queued(&sandbox, &["merge", "three"]);
    two.signal(&sandbox, "KILL");
    assert_eq!(two.wait(&sandbox).code, 137);
    // Landings queued behind the killed one wait for the one before it now.
    assert_eq!(queue_rows(&sandbox), ["one landing", "three waiting"]);
    assert_eq!(landed_lanes(&sandbox), [""; 0]);
    sandbox.write_pipe("go");
    for landing in [one, three] {
        let _ = landing.wait(&sandbox).ok();
    }
    assert_eq!(landed_lanes(&sandbox), ["one", "three"]);
    assert_eq!(sandbox.row("two")["state"], "idle");
    assert_queue_empty(&sandbox);
}

/// Promise: concurrency/ended-landing
#[test]
fn killed_running_landing_is_skipped() {
    let sandbox = sandbox_with_lanes(&["one", "two"]);
    let one = RunningLanding::start_in_check(&sandbox, "one", &[]);
    let two = RunningLanding::start_queued(&sandbox, &["merge", "two"]);
    one.signal(&sandbox, "KILL");
    // The check of the killed landing still holds its ends of the pipes.
    sandbox.write_pipe("go");
    assert_eq!(one.wait(&sandbox).code, 137);
    let out = two.wait(&sandbox);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(out.stderr.contains("`git proq merge one --verify"), "{}", out.stderr);
    assert!(out.stderr.contains("was interrupted"), "{}", out.stderr);
    assert_eq!(landed_lanes(&sandbox), ["two"]);
    assert_eq!(sandbox.row("one")["state"], "idle");
    assert_queue_empty(&sandbox);
}

/// What a killed landing had started is recovered before the next one reads anything.
/// Promise: concurrency/ended-landing
#[cfg(debug_assertions)]
#[test]
fn next_landing_recovers_half_moved_base() {
    for (point, lanes) in [("transition.staged", &["two"][..]), ("transition.moved", &["one", "two"])] {
        let sandbox = sandbox_with_lanes(&["one", "two"]);
        let one = RunningLanding::start_in_check(&sandbox, "one", &[("PROQ_TEST_DIE_AT", point)]);
        let two = RunningLanding::start_queued(&sandbox, &["merge", "two"]);
        sandbox.write_pipe("go");
        assert_eq!(one.wait(&sandbox).code, 137, "{point}");
        let out = two.wait(&sandbox);
        assert_eq!(out.code, 0, "{point}: {}", out.to_text());
        assert_eq!(landed_lanes(&sandbox), lanes, "{point}");
        assert_eq!(sandbox.git(&["status", "--porcelain"]), "", "{point}");
        let _ = sandbox.proq(&["merge", "one"]).ok();
        assert_eq!(landed_lanes(&sandbox).len(), 2, "{point}");
        assert_queue_empty(&sandbox);
    }
}

/// Promise: concurrency/queue-interrupt
#[test]
fn signal_leaves_queue_without_landing() {
    let sandbox = sandbox_with_lanes(&["one", "two"]);
    let one = RunningLanding::start_in_check(&sandbox, "one", &[]);
    let before = sandbox.git(&["for-each-ref"]);
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let two = RunningLanding::start_queued(&sandbox, &["merge", "two"]);
        two.signal(&sandbox, signal);
        let out = two.wait(&sandbox);
        assert_eq!(out.code, code, "{}", out.to_text());
        assert!(out.stderr.contains("interrupted; nothing was left unfinished"), "{}", out.stderr);
        assert_eq!(queue_rows(&sandbox), ["one landing"]);
    }
    assert_eq!(sandbox.git(&["for-each-ref"]), before);
    sandbox.write_pipe("go");
    let _ = one.wait(&sandbox).ok();
    assert_eq!(landed_lanes(&sandbox), ["one"]);
    assert_queue_empty(&sandbox);
}

#[test]
fn lock_timeout_ends_wait_and_names_holder() {
    let sandbox = sandbox_with_lanes(&["one", "two"]);
    let one = RunningLanding::start_in_check(&sandbox, "one", &[]);
    let before = sandbox.git(&["for-each-ref"]);
    for seconds in ["0", "1"] {
        let out = sandbox.proq(&["merge", "two", "--lock-timeout", seconds]);
        let pid = one.pid();
        let text = out.fails(5);
        let error = format!(
            "error: gave up after {seconds} s in the merge queue, behind the landing of one (process {pid}, since 03:04); nothing was changed\n"
        );
        assert!(text.contains(&error), "{text}");
    }
    // The timeout for other locks is no limit for the queue.
    let mut dry_run = sandbox.proq_command(&sandbox.repo, &["merge", "two", "--dry-run"]);
    dry_run.env("PROQ_LOCK_TIMEOUT", "0");
    let _ = sandbox.output(dry_run).ok();
    assert_eq!(sandbox.git(&["for-each-ref"]), before);
    assert_eq!(queue_rows(&sandbox), ["one landing"]);
    sandbox.write_pipe("go");
    let _ = one.wait(&sandbox).ok();
    assert_queue_empty(&sandbox);
}

#[test]
fn dry_run_and_unknown_lane_do_not_wait() {
    let sandbox = sandbox_with_lanes(&["one", "two"]);
    let one = RunningLanding::start_in_check(&sandbox, "one", &[]);
    let stdout = sandbox.proq(&["merge", "two", "--dry-run"]).ok();
    assert_eq!(stdout, "would land two on main\n1 file changed, 1 insertion(+)\n");
    let text = sandbox.proq(&["merge", "too"]).fails(1);
    assert!(text.starts_with("error: there is no lane 'too'"), "{text}");
    assert_eq!(queue_rows(&sandbox), ["one landing"]);
    sandbox.write_pipe("go");
    let _ = one.wait(&sandbox).ok();
    assert_queue_empty(&sandbox);
}

/// Promise: concurrency/no-double-landing
#[test]
fn no_lane_lands_twice() {
    let sandbox = sandbox_with_lanes(&["one", "two", "three"]);
    let first = RunningLanding::start_in_check(&sandbox, "one", &[]);
    let again = RunningLanding::start_queued(&sandbox, &["merge", "one"]);
    let more = RunningLanding::start_queued(&sandbox, &["merge", "one", "two"]);
    let all = RunningLanding::start_queued(&sandbox, &["merge", "--all"]);
    let late = RunningLanding::start_queued(&sandbox, &["merge", "--atomic", "two", "three"]);
    sandbox.write_pipe("go");
    let _ = first.wait(&sandbox).ok();
    let already_landed = |lane: &str| {
        format!("nothing to do {lane}: everything in it is on main already; another merge was faster\n")
    };
    assert_eq!(again.wait(&sandbox).ok(), already_landed("one"));
    let out = more.wait(&sandbox).ok();
    assert!(out.starts_with(&already_landed("one")) && out.contains("landed two on main"), "{out}");
    assert!(all.wait(&sandbox).ok().starts_with("landed three on main"));
    assert_eq!(late.wait(&sandbox).ok(), already_landed("two") + &already_landed("three"));
    assert_eq!(landed_lanes(&sandbox), ["one", "two", "three"]);
    assert_queue_empty(&sandbox);
}

/// Promise: concurrency/no-double-landing
#[test]
fn names_lane_discarded_while_waiting() {
    let sandbox = sandbox_with_lanes(&["one", "two", "three"]);
    let one = RunningLanding::start_in_check(&sandbox, "one", &[]);
    let two = RunningLanding::start_queued(&sandbox, &["merge", "two", "three"]);
    let both = RunningLanding::start_queued(&sandbox, &["merge", "--atomic", "two", "three"]);
    let _ = sandbox.proq(&["discard", "--force", "two"]).ok();
    sandbox.write_pipe("go");
    let _ = one.wait(&sandbox).ok();
    let out = two.wait(&sandbox).fails(1);
    assert!(out.contains("refused two: it was removed before it could be merged"), "{out}");
    assert!(out.contains("landed three on main"), "{out}");
    let out = both.wait(&sandbox).fails(1);
    assert!(out.contains("nothing to do three"), "{out}");
    assert_eq!(landed_lanes(&sandbox), ["one", "three"]);
    assert_queue_empty(&sandbox);
}

#[test]
fn names_lane_discarded_while_checked() {
    let sandbox = sandbox_with_lanes(&["one", "two"]);
    sandbox.pipe("here");
    sandbox.pipe("go");
    let check = format!("test -e $ROOT/seen || {{ touch $ROOT/seen; {BLOCKING_CHECK}; }}");
    let both = RunningLanding::start(&sandbox, &["merge", "one", "two", "--verify", &check]);
    assert_eq!(sandbox.read_pipe("here"), "here\n");
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    sandbox.write_pipe("go");
    let out = both.wait(&sandbox).fails(1);
    assert!(out.contains("refused one: it was removed before it could be merged"), "{out}");
    assert!(out.contains("landed two on main"), "{out}");
    assert_eq!(landed_lanes(&sandbox), ["two"]);
    assert_queue_empty(&sandbox);
}

/// The queued pick sees what the first one did when its turn comes.
/// Promise: concurrency/pick
#[cfg(debug_assertions)]
#[test]
fn second_pick_of_a_group_is_refused() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "3", "-n", "pay"]).ok();
    for n in 1..=3 {
        sandbox.commit_in_lane(&format!("pay-{n}"), &format!("echo {n} > {n}.txt"));
    }
    sandbox.pipe("here");
    sandbox.pipe("go");
    // Before the first pick discards the other attempts: afterwards they are only known to be gone.
    let stop_point = [("PROQ_TEST_STAND_AT", "pick.landed")];
    let first =
        RunningLanding::start_with_env(&sandbox, &["pick", "pay-1", "--verify", BLOCKING_CHECK], &stop_point);
    assert_eq!(sandbox.read_pipe("here"), "here\n");
    let second = RunningLanding::start_queued(&sandbox, &["pick", "pay-2"]);
    sandbox.write_pipe("go");
    let stopped = sandbox.wait_until_stopped(first.pid());
    let out = second.wait(&sandbox).fails(1);
    drop(stopped);
    let _ = first.wait(&sandbox).ok();
    assert!(out.contains("refused pay-2: another attempt of 'pay' was picked: 'pay-1' is on main"), "{out}");
    assert_eq!(landed_lanes(&sandbox), ["pay-1"]);
    assert_eq!(sandbox.row("pay-2@1")["state"], "discarded");
    assert_queue_empty(&sandbox);
}

#[test]
fn shows_stopped_landing() {
    let sandbox = sandbox_with_lanes(&["one", "two"]);
    let one = RunningLanding::start_in_check(&sandbox, "one", &[]);
    one.signal(&sandbox, "STOP");
    let two = RunningLanding::start_queued(&sandbox, &["merge", "two"]);
    assert!(two.stderr_text.contains("which is suspended (Ctrl-Z)"), "{}", two.stderr_text);
    assert_eq!(sandbox.proq(&["queue", "--json"]).json()["queue"][0]["stopped"], true);
    assert!(sandbox.proq(&["queue"]).ok().contains("landing, stopped (Ctrl-Z)"));
    // A landing that was stopped and continued while it waited keeps waiting.
    two.signal(&sandbox, "STOP");
    two.signal(&sandbox, "CONT");
    assert_eq!(queue_rows(&sandbox), ["one landing", "two waiting"]);
    one.signal(&sandbox, "CONT");
    sandbox.write_pipe("go");
    for landing in [one, two] {
        let _ = landing.wait(&sandbox).ok();
    }
    assert_queue_empty(&sandbox);
}

/// Promise: concurrency/resolver-blocks-nobody
#[test]
fn resolving_agent_does_not_block_the_queue() {
    let sandbox = proq_test_kit::conflict::sandbox_with_conflict();
    sandbox.lane_with_commit("other", "echo other > other.txt");
    sandbox.lane_with_commit("third", "echo third > third.txt");
    sandbox.pipe("here");
    sandbox.pipe("go");
    sandbox.program("slow", &format!("{BLOCKING_CHECK}\n{}", proq_test_kit::conflict::GOOD_SCRIPT));
    let mut resolving = RunningLanding::start(&sandbox, &["merge", "clash", "--conflict-agent", "slow"]);
    assert_eq!(sandbox.read_pipe("here"), "here\n");
    assert_eq!(queue_rows(&sandbox), [""; 0]);
    let _ = sandbox.proq(&["merge", "other"]).ok();
    assert!(resolving.read_line().starts_with("slow resolves the conflict of clash"));
    // The resolved lane lands when its turn comes.
    sandbox.pipe("third");
    let check = "timeout 60 cat $ROOT/third > /dev/null";
    let third = RunningLanding::start(
        &sandbox,
        &["merge", "third", "--verify", &format!("timeout 60 sh -c 'echo here > $ROOT/here'; {check}")],
    );
    assert_eq!(sandbox.read_pipe("here"), "here\n");
    sandbox.write_pipe("go");
    let line = resolving.read_line();
    assert!(line.starts_with("waiting for the landing of third"), "{line}");
    assert_eq!(queue_rows(&sandbox), ["third landing", "clash waiting"]);
    sandbox.write_pipe("third");
    for landing in [third, resolving] {
        let _ = landing.wait(&sandbox).ok();
    }
    assert_eq!(landed_lanes(&sandbox), ["other", "third", "clash"]);
    assert_queue_empty(&sandbox);
}

/// A ticket that was being created when its process was killed blocks nobody and is removed.
#[cfg(debug_assertions)]
#[test]
fn killed_while_queuing_leaves_nothing() {
    let sandbox = sandbox_with_lanes(&["one"]);
    let fail_point = [("PROQ_TEST_DIE_AT", "ticket.drafted")];
    let out = RunningLanding::start_with_env(&sandbox, &["merge", "one"], &fail_point).wait(&sandbox);
    assert_eq!(out.code, 137);
    assert_eq!(file_names(&sandbox.repo.join(".git/proq/locks/tickets")), ["new"]);
    assert_queue_empty(&sandbox);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_queue_empty(&sandbox);
}

/// Promise: checks/base-checks
#[test]
fn queued_landing_uses_checks_of_moved_base() {
    let file = |more: &str| format!("[verify]\ncommands = ['true'{more}]\n");
    for (approved, code, answer) in [
        (true, 4, "check failed on two: `test ! -e two.txt` failed"),
        (false, 1, "you have not approved these checks of"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write("proq.toml", &file(", 'test ! -e two.txt'"));
        let _ = approved.then(|| sandbox.proq(&["approve", "--yes"]).ok());
        sandbox.write("proq.toml", &file(""));
        sandbox.commit_all("settings");
        let _ = sandbox.proq(&["approve", "--yes"]).ok();
        sandbox.write("more.toml", &file(", 'test ! -e two.txt'"));
        sandbox.lane_with_commit("one", "mv $ROOT/repo/more.toml proq.toml");
        sandbox.lane_with_commit("two", "echo two > two.txt");
        let one = RunningLanding::start_in_check(&sandbox, "one", &[]);
        let two = RunningLanding::start_queued(&sandbox, &["merge", "two"]);
        sandbox.write_pipe("go");
        assert_eq!(one.wait(&sandbox).code, 0);
        let out = two.wait(&sandbox);
        assert!(out.code == code && out.to_text().contains(answer), "{}", out.to_text());
        assert_eq!(landed_lanes(&sandbox), ["one"]);
        assert_queue_empty(&sandbox);
    }
}

/// An agent may have made the edit.
/// Promise: checks/base-checks
#[test]
fn edited_checks_do_not_apply_to_queued_landing() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[verify]\ncommands = ['test ! -e two.txt']\n");
    sandbox.commit_all("settings");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.lane_with_commit("two", "echo two > two.txt");
    let one = RunningLanding::start_in_check(&sandbox, "one", &[]);
    let two = RunningLanding::start_queued(&sandbox, &["merge", "two"]);
    sandbox.write("proq.toml", "[verify]\ncommands = []\n");
    sandbox.write_pipe("go");
    assert_eq!((one.wait(&sandbox).code, two.wait(&sandbox).code), (0, 4));
    assert_eq!(landed_lanes(&sandbox), ["one"]);
}
