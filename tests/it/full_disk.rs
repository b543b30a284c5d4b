//! Owns the tests of supervisors that cannot write: no agent is left alone, and what came of a run is written once there is room.

use std::path::Path;
use std::process::Command;

use super::runs::with_claude;
use super::support::patience::wait_until;
use super::support::{Output, Sandbox};

/// What an agent does to take all room from its supervisor, which its own writes do not notice, once its start is on record.
const FULL: &str =
    "until grep -q 'state = \"running\"' \"$ROOT/repo/.git/proq/lanes/x/lane.toml\"; do :; done
    prlimit --pid $PPID --fsize=0:unlimited;";

/// Starts a lane under a supervisor that lives through writes that fail.
fn spawn(sandbox: &Sandbox) -> Output {
    let mut command = sandbox.command("sh", &sandbox.repo);
    // A limit on the size of files stands in for a full disk; the signal that comes with it does not.
    command.args(["-c", "trap '' XFSZ; exec git-proq spawn claude 'do it' -n x"]);
    sandbox.output(command)
}

/// The supervisor of lane `x`.
fn supervisor(sandbox: &Sandbox) -> String {
    let holder = std::fs::read_to_string(sandbox.lock("x", "run.holder")).unwrap();
    holder.lines().find_map(|l| l.strip_prefix("pid = ")).unwrap().to_owned()
}

fn make_room(sandbox: &Sandbox, supervisor: &str) {
    let mut command = Command::new("prlimit");
    command.args(["--pid", supervisor, "--fsize=unlimited:unlimited"]);
    let _ = sandbox.output(command).ok();
}

/// Whether a process has read a file to its end.
fn has_read(pid: &str, file: &Path) -> bool {
    let size = std::fs::metadata(file).unwrap().len();
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == file)).any(|fd| {
        let info = format!("/proc/{pid}/fdinfo/{}", fd.file_name().to_string_lossy());
        let info = std::fs::read_to_string(info).unwrap_or_default();
        let at =
            info.lines().find_map(|line| line.strip_prefix("pos:")).and_then(|at| at.trim().parse().ok());
        size > 0 && at == Some(size)
    })
}

#[test]
fn a_note_that_cannot_be_written_ends_no_run_and_is_written_later() {
    let sandbox = with_claude(&format!(
        "{FULL} begin; echo $$ > \"$ROOT/up\"; read -r _ < \"$ROOT/go\"; echo new > n; well"
    ));
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = spawn(&sandbox).ok();
    let agent = sandbox.hear("up");
    let supervisor = supervisor(&sandbox);
    let log = sandbox.repo.join(".git/proq/lanes/x/runs/1.log");
    wait_until("its supervisor reads", || has_read(&supervisor, &log) || !sandbox.lives(&supervisor));
    assert_eq!(sandbox.row("x")["state"], "running");
    assert_ne!(sandbox.last_run("x")["account"]["session"], "s-1");
    make_room(&sandbox, &supervisor);
    wait_until("the session is on record", || sandbox.last_run("x")["account"]["session"] == "s-1");
    assert!(sandbox.lives(agent.trim()) && sandbox.lives(&supervisor));
    sandbox.tell("go");
    assert!(sandbox.proq(&["wait", "x"]).ok().starts_with("x: done"));
    sandbox.assert_healthy();
}

#[test]
fn what_came_of_a_run_is_written_once_there_is_room() {
    let sandbox = with_claude(&format!("{FULL} begin; echo new > n; git add n; git commit -qm n; well"));
    let _ = spawn(&sandbox).ok();
    let supervisor = supervisor(&sandbox);
    wait_until("its agent has ended", || {
        let row = sandbox.row("x");
        assert_eq!(row["state"], "running", "{row}");
        row["detail"] == "its agent has ended; what came of it is being written"
    });
    make_room(&sandbox, &supervisor);
    assert!(sandbox.proq(&["wait", "x"]).ok().starts_with("x: done"));
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], &run["account"]["session"]), (&"done".into(), &"s-1".into()));
    let _ = sandbox.proq(&["merge", "x"]).ok();
}

#[test]
fn a_supervisor_that_waits_for_room_can_be_stopped_and_nothing_is_lost() {
    let sandbox = with_claude(&format!("{FULL} begin; echo new > n; git add n; git commit -qm n; well"));
    let _ = spawn(&sandbox).ok();
    wait_until("its agent has ended", || sandbox.row("x")["detail"].to_string().contains("has ended"));
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).shown(), @r"
    --- stderr
    x: failed (its supervisor ended without a word)
    --- code 0
    ");
    assert_eq!(sandbox.row("x")["state"], "failed");
    let _ = sandbox.proq(&["merge", "x"]).fails(1);
    let _ = sandbox.proq(&["merge", "x", "--force"]).ok();
    assert_eq!(sandbox.git(&["show", "main:n"]), "new");
}

#[test]
fn an_agent_that_is_stopped_while_there_is_no_room_is_not_waited_for() {
    let sandbox =
        with_claude(&format!("{FULL} begin; echo new > n; echo $$ > \"$ROOT/up\"; read -r _ < \"$ROOT/go\""));
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = spawn(&sandbox).ok();
    let agent = sandbox.hear("up");
    // Its supervisor hears the wish before there is anything to write.
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).shown(), @r"
    --- stderr
    x: failed (its supervisor ended without a word)
    --- code 0
    ");
    assert!(!sandbox.lives(agent.trim()));
    assert_eq!(std::fs::read_to_string(sandbox.lane("x").join("n")).unwrap(), "new\n");
}

#[test]
fn a_message_that_cannot_be_passed_on_says_so_in_the_lane_and_waits() {
    let sandbox = with_claude(
        "begin; echo $n > \"$ROOT/up\"; read -r _ < \"$ROOT/go\"; echo $n > n$n; git add .; git commit -qm $n; well",
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = spawn(&sandbox).ok();
    let _ = sandbox.hear("up");
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    // The record of the next run has no place.
    let taken = sandbox.repo.join(".git/proq/lanes/x/runs/2.toml");
    std::fs::create_dir_all(taken.join("in the way")).unwrap();
    sandbox.tell("go");
    // What its run came to stays.
    assert_eq!(sandbox.proq(&["wait", "x"]).code, 0);
    let row = sandbox.row("x");
    assert_eq!(row["state"], "done");
    let detail = row["detail"].as_str().unwrap();
    // Before that may stand how its agent ended, which has no time after its last word.
    assert!(detail.contains("what was sent could not be told: ") && detail.contains("2.toml"), "{detail}");
    std::fs::remove_dir_all(&taken).unwrap();
    let _ = sandbox.proq(&["send", "x"]).ok();
    assert_eq!(sandbox.hear("up"), "2\n");
    sandbox.tell("go");
    assert!(sandbox.proq(&["wait", "x"]).ok().starts_with("x: done"));
    assert_eq!(sandbox.git(&["show", "proq/x:n2"]), "2");
}
