//! Supervisors that cannot write: no agent is left unsupervised, and the result of a run is written once
//! there is space.

use std::path::Path;
use std::process::Command;

use proq_test_kit::claude::sandbox_with_claude;
use proq_test_kit::waiting::wait_until;
use proq_test_kit::{Output, Sandbox};

/// Script of an agent that takes all disk space from its supervisor once its start is recorded; its own
/// writes do not notice.
const FILL_DISK: &str =
    "until grep -q 'state = \"running\"' \"$ROOT/repo/.git/proq/lanes/x/lane.toml\"; do :; done
    prlimit --pid $PPID --fsize=0:unlimited;";

/// Starts lane `x` under a supervisor that survives failing writes.
fn spawn(sandbox: &Sandbox) -> Output {
    let mut command = sandbox.command("sh", &sandbox.repo);
    // A limit on the size of files stands in for a full disk, which sends no such signal.
    command.args(["-c", "trap '' XFSZ; exec git-proq spawn claude 'do it' -n x"]);
    sandbox.output(command)
}

/// Returns the process id of the supervisor of lane `x`.
fn supervisor_pid(sandbox: &Sandbox) -> String {
    let holder = std::fs::read_to_string(sandbox.lane_lock("x", "run.holder")).unwrap();
    holder.lines().find_map(|l| l.strip_prefix("pid = ")).unwrap().to_owned()
}

fn free_space(sandbox: &Sandbox, supervisor: &str) {
    let mut command = Command::new("prlimit");
    command.args(["--pid", supervisor, "--fsize=unlimited:unlimited"]);
    let _ = sandbox.output(command).ok();
}

/// Returns whether a process has read a file to its end.
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

/// Promise: operations/supervisor-full-disk
#[test]
fn retries_failed_record_write_during_run() {
    let sandbox = sandbox_with_claude(&format!(
        "{FILL_DISK} begin; echo $$ > \"$ROOT/up\"; read -r _ < \"$ROOT/go\"; echo new > n; well"
    ));
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = spawn(&sandbox).ok();
    let agent = sandbox.read_pipe("up");
    let supervisor = supervisor_pid(&sandbox);
    let log = sandbox.repo.join(".git/proq/lanes/x/runs/1.log");
    wait_until("its supervisor reads", || has_read(&supervisor, &log) || !sandbox.is_alive(&supervisor));
    assert_eq!(sandbox.row("x")["state"], "running");
    assert_ne!(sandbox.last_run("x")["account"]["session"], "s-1");
    free_space(&sandbox, &supervisor);
    wait_until("the session is on record", || sandbox.last_run("x")["account"]["session"] == "s-1");
    assert!(sandbox.is_alive(agent.trim()) && sandbox.is_alive(&supervisor));
    sandbox.write_pipe("go");
    assert!(sandbox.proq(&["wait", "x"]).ok().starts_with("x: done"));
    sandbox.assert_healthy();
}

/// Promise: operations/supervisor-full-disk
#[test]
fn writes_run_result_once_space_is_free() {
    let sandbox =
        sandbox_with_claude(&format!("{FILL_DISK} begin; echo new > n; git add n; git commit -qm n; well"));
    let _ = spawn(&sandbox).ok();
    let supervisor = supervisor_pid(&sandbox);
    wait_until("its agent has ended", || {
        let row = sandbox.row("x");
        assert_eq!(row["state"], "running", "{row}");
        row["detail"] == "its agent has ended; its result is being saved"
    });
    free_space(&sandbox, &supervisor);
    assert!(sandbox.proq(&["wait", "x"]).ok().starts_with("x: done"));
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], &run["account"]["session"]), (&"done".into(), &"s-1".into()));
    let _ = sandbox.proq(&["merge", "x"]).ok();
}

/// Promise: operations/supervisor-full-disk
#[test]
fn stop_ends_supervisor_waiting_for_space() {
    let sandbox =
        sandbox_with_claude(&format!("{FILL_DISK} begin; echo new > n; git add n; git commit -qm n; well"));
    let _ = spawn(&sandbox).ok();
    wait_until("its agent has ended", || sandbox.row("x")["detail"].to_string().contains("has ended"));
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).to_text(), @r"
    --- stderr
    x: failed (its supervisor crashed)
    --- code 0
    ");
    assert_eq!(sandbox.row("x")["state"], "failed");
    let _ = sandbox.proq(&["merge", "x"]).fails(1);
    let _ = sandbox.proq(&["merge", "x", "--force"]).ok();
    assert_eq!(sandbox.git(&["show", "main:n"]), "new");
}

#[test]
fn stop_does_not_wait_for_agent_on_full_disk() {
    let sandbox = sandbox_with_claude(&format!(
        "{FILL_DISK} begin; echo new > n; echo $$ > \"$ROOT/up\"; read -r _ < \"$ROOT/go\""
    ));
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = spawn(&sandbox).ok();
    let agent = sandbox.read_pipe("up");
    // The supervisor receives the stop request before there is anything to write.
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).to_text(), @r"
    --- stderr
    x: failed (its supervisor crashed)
    --- code 0
    ");
    assert!(!sandbox.is_alive(agent.trim()));
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("x").join("n")).unwrap(), "new\n");
}

/// Promise: operations/supervisor-full-disk
#[test]
fn undelivered_message_is_reported_and_kept() {
    let sandbox = sandbox_with_claude(
        "begin; echo $n > \"$ROOT/up\"; read -r _ < \"$ROOT/go\"; echo $n > n$n; git add .; git commit -qm $n; well",
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = spawn(&sandbox).ok();
    let _ = sandbox.read_pipe("up");
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    // The record of the next run cannot be written.
    let blocked_record = sandbox.repo.join(".git/proq/lanes/x/runs/2.toml");
    std::fs::create_dir_all(blocked_record.join("in the way")).unwrap();
    sandbox.write_pipe("go");
    // The result of the first run stays.
    assert_eq!(sandbox.proq(&["wait", "x"]).code, 0);
    let row = sandbox.row("x");
    assert_eq!(row["state"], "done");
    let detail = row["detail"].as_str().unwrap();
    // How the agent ended may come first: it gets no time after its last output.
    assert!(detail.contains("cannot send the queued messages: ") && detail.contains("2.toml"), "{detail}");
    std::fs::remove_dir_all(&blocked_record).unwrap();
    let _ = sandbox.proq(&["send", "x"]).ok();
    assert_eq!(sandbox.read_pipe("up"), "2\n");
    sandbox.write_pipe("go");
    assert!(sandbox.proq(&["wait", "x"]).ok().starts_with("x: done"));
    assert_eq!(sandbox.git(&["show", "proq/x:n2"]), "2");
}
