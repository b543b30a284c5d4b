//! Owns the tests of the landing queue: who comes first, who waits for whom, and who leaves.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Stdio};

use super::support::{Output, Sandbox, names};

/// A check that says that it is there and is over when the test says so.
const BLOCKS: &str = "timeout 60 sh -c 'echo here > $ROOT/here'; timeout 60 cat $ROOT/go > /dev/null";

/// A landing in a process of its own, and what it has said so far.
struct Landing {
    child: Child,
    ear: BufReader<ChildStderr>,
    heard: String,
}

impl Landing {
    fn start(sandbox: &Sandbox, args: &[&str]) -> Landing {
        Landing::with(sandbox, args, &[])
    }

    fn with(sandbox: &Sandbox, args: &[&str], env: &[(&str, &str)]) -> Landing {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.envs(env.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let ear = BufReader::new(child.stderr.take().unwrap());
        Landing { child, ear, heard: String::new() }
    }

    /// Starts one that lands while the test lets it: it is in its check when this returns.
    fn in_its_check(sandbox: &Sandbox, lane: &str, env: &[(&str, &str)]) -> Landing {
        sandbox.pipe("here");
        sandbox.pipe("go");
        let landing = Landing::with(sandbox, &["merge", lane, "--verify", BLOCKS], env);
        assert_eq!(sandbox.hear("here"), "here\n");
        landing
    }

    /// Starts one that has to wait, and returns when it has said so.
    fn in_the_queue(sandbox: &Sandbox, args: &[&str]) -> Landing {
        let mut landing = Landing::start(sandbox, args);
        let said = landing.line();
        assert!(said.starts_with("waiting for "), "{said}");
        landing
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.ear.read_line(&mut line).unwrap();
        self.heard.push_str(&line);
        line
    }

    fn pid(&self) -> u64 {
        self.child.id().into()
    }

    fn signal(&self, sandbox: &Sandbox, name: &str) {
        let _ = sandbox.sh(&format!("kill -{name} {}", self.pid()));
    }

    /// What it said and how it ended.
    fn end(mut self, sandbox: &Sandbox) -> Output {
        use std::os::unix::process::ExitStatusExt;
        let mut stdout = Vec::new();
        self.child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
        self.ear.read_to_string(&mut self.heard).unwrap();
        let status = self.child.wait().unwrap();
        let code = status.code().or(status.signal().map(|s| 128 + s)).unwrap();
        Output { stdout: sandbox.plain(&stdout), stderr: sandbox.plain(self.heard.as_bytes()), code }
    }
}

fn sandbox_with(lanes: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    for name in lanes {
        sandbox.lane_of(name, &format!("echo {name} > {name}.txt"));
    }
    sandbox
}

/// The lanes in the queue with their states, as `git proq queue` has them.
#[track_caller]
fn queue(sandbox: &Sandbox) -> Vec<String> {
    let answer = sandbox.proq(&["queue", "--json"]).json();
    let rows = answer["queue"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            format!("{} {}", row["lanes"][0].as_str().unwrap_or("all"), row["state"].as_str().unwrap())
        })
        .collect()
}

/// The lanes that landed on main, oldest first.
fn landed(sandbox: &Sandbox) -> Vec<String> {
    let log = sandbox.git(&["log", "--first-parent", "--reverse", "--merges", "--format=%s", "main"]);
    let name = |line: &str| line.trim_start_matches("Merge lane ").split(':').next().unwrap().to_owned();
    log.lines().map(name).collect()
}

/// Nothing of anybody is left in the queue, and nothing is wrong.
#[track_caller]
fn nothing_left(sandbox: &Sandbox) {
    assert_eq!(queue(sandbox), [""; 0]);
    assert_eq!(names(&sandbox.repo.join(".git/proq/locks/tickets")), [""; 0]);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/pending"]), "");
    sandbox.assert_healthy();
}

#[test]
fn landings_come_in_the_order_of_their_arrival() {
    let sandbox = sandbox_with(&["one", "two", "three"]);
    let three = Landing::in_its_check(&sandbox, "three", &[]);
    let one = Landing::in_the_queue(&sandbox, &["merge", "one"]);
    let two = Landing::in_the_queue(&sandbox, &["merge", "two"]);
    assert_eq!(queue(&sandbox), ["three landing", "one waiting", "two waiting"]);
    assert_eq!(landed(&sandbox), [""; 0]);
    let waits = format!("waiting for the landing of three (process {}, since 03:04)", three.pid());
    assert_eq!(one.heard, format!("{waits}; Ctrl-C to leave the queue\n"));
    assert_eq!(two.heard, format!("{waits} and one more after it; Ctrl-C to leave the queue\n"));
    sandbox.tell("go");
    for landing in [three, one, two] {
        let out = landing.end(&sandbox);
        assert_eq!(out.code, 0, "{}", out.shown());
    }
    assert_eq!(landed(&sandbox), ["three", "one", "two"]);
    nothing_left(&sandbox);
}

#[test]
fn the_queue_tells_who_wants_what_and_since_when() {
    let sandbox = sandbox_with(&["one", "two", "three"]);
    let out = sandbox.proq(&["queue"]);
    assert_eq!(out.shown(), "--- stderr\nnobody is landing anything\n--- code 0\n");
    assert_eq!(sandbox.proq(&["queue", "--json"]).json()["queue"], serde_json::json!([]));
    let one = Landing::in_its_check(&sandbox, "one", &[]);
    let all = Landing::in_the_queue(&sandbox, &["merge", "--all", "--onto", "main"]);
    let both = Landing::in_the_queue(&sandbox, &["merge", "three", "proq/two"]);
    let answer = sandbox.proq(&["queue", "--json"]).json();
    let host = &answer["queue"][0]["host"];
    assert!(host.as_str().is_some_and(|h| !h.is_empty()));
    let row = |n: usize, landing: &Landing, lanes: &[&str], onto: Option<&str>, command: &str| {
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
    1  landing  one                [PID]    03:04  git proq merge one --verify 'timeout 60 sh -c 'echo here > $ROOT/here'; timeout 60 cat $ROOT/go > /dev/null'
    2  waiting  all lanes on main  [PID]    03:04  git proq merge --all --onto main
    3  waiting  three, two         [PID]    03:04  git proq merge three proq/two
    ");
    sandbox.tell("go");
    for (landing, code) in [(one, 0), (all, 0), (both, 0)] {
        let out = landing.end(&sandbox);
        assert_eq!(out.code, code, "{}", out.shown());
    }
    nothing_left(&sandbox);
}

#[test]
fn one_that_is_killed_while_it_waits_leaves_the_queue() {
    let sandbox = sandbox_with(&["one", "two", "three"]);
    let one = Landing::in_its_check(&sandbox, "one", &[]);
    let two = Landing::in_the_queue(&sandbox, &["merge", "two"]);
    let three = Landing::in_the_queue(&sandbox, &["merge", "three"]);
    two.signal(&sandbox, "KILL");
    assert_eq!(two.end(&sandbox).code, 137);
    // Who waited for it waits for the one before now.
    assert_eq!(queue(&sandbox), ["one landing", "three waiting"]);
    assert_eq!(landed(&sandbox), [""; 0]);
    sandbox.tell("go");
    for landing in [one, three] {
        let out = landing.end(&sandbox);
        assert_eq!(out.code, 0, "{}", out.shown());
    }
    assert_eq!(landed(&sandbox), ["one", "three"]);
    assert_eq!(sandbox.row("two")["state"], "idle");
    nothing_left(&sandbox);
}

#[test]
fn one_that_is_killed_while_it_lands_is_passed_by_the_next() {
    let sandbox = sandbox_with(&["one", "two"]);
    let one = Landing::in_its_check(&sandbox, "one", &[]);
    let two = Landing::in_the_queue(&sandbox, &["merge", "two"]);
    one.signal(&sandbox, "KILL");
    // Its check would have its ends of the pipes still.
    sandbox.tell("go");
    assert_eq!(one.end(&sandbox).code, 137);
    let out = two.end(&sandbox);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(out.stderr.contains("`git proq merge one --verify"), "{}", out.stderr);
    assert!(out.stderr.contains("was cut short"), "{}", out.stderr);
    assert_eq!(landed(&sandbox), ["two"]);
    assert_eq!(sandbox.row("one")["state"], "idle");
    nothing_left(&sandbox);
}

/// What a dead landing had begun is put right before the next one looks at anything.
#[cfg(debug_assertions)]
#[test]
fn one_that_dies_with_its_base_half_moved_is_finished_by_the_next() {
    for (point, lanes) in [("transition.staged", &["two"][..]), ("transition.moved", &["one", "two"])] {
        let sandbox = sandbox_with(&["one", "two"]);
        let one = Landing::in_its_check(&sandbox, "one", &[("PROQ_TEST_DIE_AT", point)]);
        let two = Landing::in_the_queue(&sandbox, &["merge", "two"]);
        sandbox.tell("go");
        assert_eq!(one.end(&sandbox).code, 137, "{point}");
        let out = two.end(&sandbox);
        assert_eq!(out.code, 0, "{point}: {}", out.shown());
        assert_eq!(landed(&sandbox), lanes, "{point}");
        assert_eq!(sandbox.git(&["status", "--porcelain"]), "", "{point}");
        let _ = sandbox.proq(&["merge", "one"]).ok();
        assert_eq!(landed(&sandbox).len(), 2, "{point}");
        nothing_left(&sandbox);
    }
}

#[test]
fn ctrl_c_leaves_the_queue_and_lands_nothing() {
    let sandbox = sandbox_with(&["one", "two"]);
    let one = Landing::in_its_check(&sandbox, "one", &[]);
    let before = sandbox.git(&["for-each-ref"]);
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let two = Landing::in_the_queue(&sandbox, &["merge", "two"]);
        two.signal(&sandbox, signal);
        let out = two.end(&sandbox);
        assert_eq!(out.code, code, "{}", out.shown());
        assert!(out.stderr.contains("interrupted; nothing was left half-done"), "{}", out.stderr);
        assert_eq!(queue(&sandbox), ["one landing"]);
    }
    assert_eq!(sandbox.git(&["for-each-ref"]), before);
    sandbox.tell("go");
    let _ = one.end(&sandbox).ok();
    assert_eq!(landed(&sandbox), ["one"]);
    nothing_left(&sandbox);
}

#[test]
fn a_limit_ends_the_wait_and_says_who_was_before() {
    let sandbox = sandbox_with(&["one", "two"]);
    let one = Landing::in_its_check(&sandbox, "one", &[]);
    let before = sandbox.git(&["for-each-ref"]);
    for seconds in ["0", "1"] {
        let out = sandbox.proq(&["merge", "two", "--lock-timeout", seconds]);
        let pid = one.pid();
        let text = out.fails(5);
        let error = format!(
            "error: gave up after {seconds} s in the landing queue, behind the landing of one (process {pid}, since 03:04); nothing was changed\n"
        );
        assert!(text.contains(&error), "{text}");
    }
    // What waits for other locks is no limit for the queue.
    let mut patient = sandbox.proq_command(&sandbox.repo, &["merge", "two", "--dry-run"]);
    patient.env("PROQ_LOCK_TIMEOUT", "0");
    let _ = sandbox.output(patient).ok();
    assert_eq!(sandbox.git(&["for-each-ref"]), before);
    assert_eq!(queue(&sandbox), ["one landing"]);
    sandbox.tell("go");
    let _ = one.end(&sandbox).ok();
    nothing_left(&sandbox);
}

#[test]
fn a_dry_run_and_a_wrong_name_wait_for_nobody() {
    let sandbox = sandbox_with(&["one", "two"]);
    let one = Landing::in_its_check(&sandbox, "one", &[]);
    let would = sandbox.proq(&["merge", "two", "--dry-run"]).ok();
    assert_eq!(would, "would land two on main\n");
    let text = sandbox.proq(&["merge", "too"]).fails(1);
    assert!(text.starts_with("error: there is no lane 'too'"), "{text}");
    assert_eq!(queue(&sandbox), ["one landing"]);
    sandbox.tell("go");
    let _ = one.end(&sandbox).ok();
    nothing_left(&sandbox);
}

#[test]
fn no_lane_lands_twice() {
    let sandbox = sandbox_with(&["one", "two", "three"]);
    let first = Landing::in_its_check(&sandbox, "one", &[]);
    let again = Landing::in_the_queue(&sandbox, &["merge", "one"]);
    let more = Landing::in_the_queue(&sandbox, &["merge", "one", "two"]);
    let all = Landing::in_the_queue(&sandbox, &["merge", "--all"]);
    let late = Landing::in_the_queue(&sandbox, &["merge", "--atomic", "two", "three"]);
    sandbox.tell("go");
    let _ = first.end(&sandbox).ok();
    let faster = |lane: &str| {
        format!("nothing to do {lane}: everything in it is on main already; another landing was faster\n")
    };
    assert_eq!(again.end(&sandbox).ok(), faster("one"));
    let out = more.end(&sandbox).ok();
    assert!(out.starts_with(&faster("one")) && out.contains("landed two on main"), "{out}");
    assert!(all.end(&sandbox).ok().starts_with("landed three on main"));
    assert_eq!(late.end(&sandbox).ok(), faster("two") + &faster("three"));
    assert_eq!(landed(&sandbox), ["one", "two", "three"]);
    nothing_left(&sandbox);
}

#[test]
fn a_lane_that_is_thrown_away_meanwhile_is_named() {
    let sandbox = sandbox_with(&["one", "two", "three"]);
    let one = Landing::in_its_check(&sandbox, "one", &[]);
    let two = Landing::in_the_queue(&sandbox, &["merge", "two", "three"]);
    let both = Landing::in_the_queue(&sandbox, &["merge", "--atomic", "two", "three"]);
    let _ = sandbox.proq(&["discard", "--force", "two"]).ok();
    sandbox.tell("go");
    let _ = one.end(&sandbox).ok();
    let out = two.end(&sandbox).fails(1);
    assert!(out.contains("refused two: it was removed before it could land"), "{out}");
    assert!(out.contains("landed three on main"), "{out}");
    let out = both.end(&sandbox).fails(1);
    assert!(out.contains("nothing to do three"), "{out}");
    assert_eq!(landed(&sandbox), ["one", "three"]);
    nothing_left(&sandbox);
}

#[test]
fn a_lane_that_is_thrown_away_while_it_is_checked_is_named() {
    let sandbox = sandbox_with(&["one", "two"]);
    sandbox.pipe("here");
    sandbox.pipe("go");
    let check = format!("test -e $ROOT/seen || {{ touch $ROOT/seen; {BLOCKS}; }}");
    let both = Landing::start(&sandbox, &["merge", "one", "two", "--verify", &check]);
    assert_eq!(sandbox.hear("here"), "here\n");
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    sandbox.tell("go");
    let out = both.end(&sandbox).fails(1);
    assert!(out.contains("refused one: it was removed before it could land"), "{out}");
    assert!(out.contains("landed two on main"), "{out}");
    assert_eq!(landed(&sandbox), ["two"]);
    nothing_left(&sandbox);
}

/// The one that waits finds what the one before it has done when its turn has come.
#[cfg(debug_assertions)]
#[test]
fn of_two_picks_from_one_group_at_once_the_second_is_refused() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "3", "-n", "pay"]).ok();
    for n in 1..=3 {
        sandbox.commit_in_lane(&format!("pay-{n}"), &format!("echo {n} > {n}.txt"));
    }
    sandbox.pipe("here");
    sandbox.pipe("go");
    // Before it discards the others, of which nobody could say more than that they are gone.
    let stands = [("PROQ_TEST_STAND_AT", "pick.landed")];
    let first = Landing::with(&sandbox, &["pick", "pay-1", "--verify", BLOCKS], &stands);
    assert_eq!(sandbox.hear("here"), "here\n");
    let second = Landing::in_the_queue(&sandbox, &["pick", "pay-2"]);
    sandbox.tell("go");
    let standing = sandbox.standing(first.pid());
    let out = second.end(&sandbox).fails(1);
    drop(standing);
    let _ = first.end(&sandbox).ok();
    assert!(out.contains("refused pay-2: another attempt of 'pay' was picked: 'pay-1' is on main"), "{out}");
    assert_eq!(landed(&sandbox), ["pay-1"]);
    assert_eq!(sandbox.row("pay-2@1")["state"], "discarded");
    nothing_left(&sandbox);
}

#[test]
fn a_landing_that_is_stopped_is_shown_as_such() {
    let sandbox = sandbox_with(&["one", "two"]);
    let one = Landing::in_its_check(&sandbox, "one", &[]);
    one.signal(&sandbox, "STOP");
    let two = Landing::in_the_queue(&sandbox, &["merge", "two"]);
    assert!(two.heard.contains("which is stopped (Ctrl-Z)"), "{}", two.heard);
    assert_eq!(sandbox.proq(&["queue", "--json"]).json()["queue"][0]["stopped"], true);
    assert!(sandbox.proq(&["queue"]).ok().contains("landing, stopped (Ctrl-Z)"));
    // One that was stopped itself while it waited goes on waiting.
    two.signal(&sandbox, "STOP");
    two.signal(&sandbox, "CONT");
    assert_eq!(queue(&sandbox), ["one landing", "two waiting"]);
    one.signal(&sandbox, "CONT");
    sandbox.tell("go");
    for landing in [one, two] {
        let out = landing.end(&sandbox);
        assert_eq!(out.code, 0, "{}", out.shown());
    }
    nothing_left(&sandbox);
}

#[test]
fn while_an_agent_resolves_nobody_waits_for_it() {
    let sandbox = super::resolve::conflicting();
    sandbox.lane_of("other", "echo other > other.txt");
    sandbox.lane_of("third", "echo third > third.txt");
    sandbox.pipe("here");
    sandbox.pipe("go");
    sandbox.program("slow", &format!("{BLOCKS}\n{}", super::resolve::GOOD));
    let mut clash = Landing::start(&sandbox, &["merge", "clash", "--conflict-agent", "slow"]);
    assert_eq!(sandbox.hear("here"), "here\n");
    assert_eq!(queue(&sandbox), [""; 0]);
    let _ = sandbox.proq(&["merge", "other"]).ok();
    assert!(clash.line().starts_with("slow resolves the conflict of clash"));
    // What it resolved lands when its turn comes.
    sandbox.pipe("third");
    let check = "timeout 60 cat $ROOT/third > /dev/null";
    let third = Landing::start(
        &sandbox,
        &["merge", "third", "--verify", &format!("timeout 60 sh -c 'echo here > $ROOT/here'; {check}")],
    );
    assert_eq!(sandbox.hear("here"), "here\n");
    sandbox.tell("go");
    let said = clash.line();
    assert!(said.starts_with("waiting for the landing of third"), "{said}");
    assert_eq!(queue(&sandbox), ["third landing", "clash waiting"]);
    sandbox.tell("third");
    for landing in [third, clash] {
        let out = landing.end(&sandbox);
        assert_eq!(out.code, 0, "{}", out.shown());
    }
    assert_eq!(landed(&sandbox), ["other", "third", "clash"]);
    nothing_left(&sandbox);
}

/// A ticket that was being made when its process died is in nobody's way, and goes.
#[cfg(debug_assertions)]
#[test]
fn one_that_dies_on_its_way_into_the_queue_leaves_nothing() {
    let sandbox = sandbox_with(&["one"]);
    let out =
        Landing::with(&sandbox, &["merge", "one"], &[("PROQ_TEST_DIE_AT", "ticket.drafted")]).end(&sandbox);
    assert_eq!(out.code, 137);
    assert_eq!(names(&sandbox.repo.join(".git/proq/locks/tickets")), ["new"]);
    nothing_left(&sandbox);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    nothing_left(&sandbox);
}

#[test]
fn a_landing_is_checked_as_the_base_wants_it_when_its_turn_has_come() {
    let file = |more: &str| format!("[verify]\ncommands = ['true'{more}]\n");
    for (approved, code, answer) in [
        (true, 4, "check failed two: `test ! -e two.txt` failed"),
        (false, 1, "commands that you have not approved: test ! -e two.txt; nothing was moved"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write("proq.toml", &file(", 'test ! -e two.txt'"));
        let _ = approved.then(|| sandbox.proq(&["approve", "--yes"]).ok());
        sandbox.write("proq.toml", &file(""));
        sandbox.commit_all("settings");
        let _ = sandbox.proq(&["approve", "--yes"]).ok();
        sandbox.write("more.toml", &file(", 'test ! -e two.txt'"));
        sandbox.lane_of("one", "mv $ROOT/repo/more.toml proq.toml");
        sandbox.lane_of("two", "echo two > two.txt");
        let one = Landing::in_its_check(&sandbox, "one", &[]);
        let two = Landing::in_the_queue(&sandbox, &["merge", "two"]);
        sandbox.tell("go");
        assert_eq!(one.end(&sandbox).code, 0);
        let out = two.end(&sandbox);
        assert!(out.code == code && out.shown().contains(answer), "{}", out.shown());
        assert_eq!(landed(&sandbox), ["one"]);
        nothing_left(&sandbox);
    }
}

/// An agent may have made it.
#[test]
fn an_edit_of_the_checks_while_a_landing_waits_does_not_count_for_it() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[verify]\ncommands = ['test ! -e two.txt']\n");
    sandbox.commit_all("settings");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    sandbox.lane_of("one", "echo one > one.txt");
    sandbox.lane_of("two", "echo two > two.txt");
    let one = Landing::in_its_check(&sandbox, "one", &[]);
    let two = Landing::in_the_queue(&sandbox, &["merge", "two"]);
    sandbox.write("proq.toml", "[verify]\ncommands = []\n");
    sandbox.tell("go");
    assert_eq!((one.end(&sandbox).code, two.end(&sandbox).code), (0, 4));
    assert_eq!(landed(&sandbox), ["one"]);
}
