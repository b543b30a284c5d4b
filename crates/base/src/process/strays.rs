//! Finding and stopping stray processes of a run. An agent's tools may move to new sessions, so stopping the
//! process group is not enough.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::identity::{process_ids, to_signalable_pid};

/// Environment variable that marks every process of a run; children inherit it.
pub const RUN_MARK_VAR: &str = "PROQ_RUN";

/// Variables that describe the context of a run, a hook or a check. Processes that belong to no run are
/// started without them, so that they do not count as part of one.
pub const RUN_CONTEXT_VARS: &[&str] = &[
    "PROQ_ATTEMPT",
    "PROQ_BASE",
    "PROQ_BATCH",
    "PROQ_BRANCH",
    "PROQ_ENV_FILE",
    "PROQ_EVENT",
    "PROQ_EVENT_N",
    "PROQ_LANE",
    "PROQ_LANES",
    "PROQ_MESSAGE",
    "PROQ_OTHER",
    "PROQ_PORT",
    "PROQ_PORT_1",
    "PROQ_PORT_2",
    "PROQ_PORT_3",
    "PROQ_PORT_4",
    "PROQ_PORT_5",
    "PROQ_PORT_6",
    "PROQ_PORT_7",
    "PROQ_PORT_8",
    "PROQ_PORT_9",
    "PROQ_PROGRAM",
    "PROQ_REPO",
    "PROQ_ROOT",
    "PROQ_STATE",
    "PROQ_TASK",
    "PROQ_TASK_ATTEMPT",
    "PROQ_TASK_FILE",
    "PROQ_VIA",
    "PROQ_WRAP_UP",
];

/// How long to wait for a process in the middle of `exec` to have an environment.
const EXEC_WAIT_LIMIT: Duration = Duration::from_secs(2);

/// Makes orphans among this process's descendants its own children, where the system supports it. Processes
/// that outlive their parents are then still found below this process.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    // Without this feature, their mark identifies them.
    let _result = rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1));
}

/// Stops every process of a run: those with `mark` in [`RUN_MARK_VAR`], their descendants, and unmarked
/// descendants of this process. Sends TERM, waits `grace`, sends KILL. Returns the number of processes found.
/// Needs `/proc`; finds none without it.
pub fn stop_stray_processes(mark: &str, grace: Duration) -> usize {
    stop_run_processes(mark, grace, Some(std::process::id()))
}

/// Stops every process of a run that another process started: those with `mark` and their descendants, except
/// this process.
pub fn stop_marked_processes(mark: &str, grace: Duration) {
    let _count = stop_run_processes(mark, grace, None);
}

/// Stops the processes of a run. Unmarked descendants of `root`, which is this process or none, belong to the
/// run too.
fn stop_run_processes(mark: &str, grace: Duration, root: Option<u32>) -> usize {
    let reap = || root.map_or((), |_| reap_orphans());
    reap();
    let count = stray_pids(mark, root).len();
    for (signal, timeout) in [(Signal::TERM, grace), (Signal::KILL, Duration::from_secs(5))] {
        let started = Instant::now();
        let mut signaled: Vec<u32> = Vec::new();
        loop {
            reap();
            let remaining = stray_pids(mark, root);
            if remaining.is_empty() {
                return count;
            }
            for process_id in remaining {
                // Each process is signaled once, including those that started since the last scan.
                if !signaled.contains(&process_id)
                    && let Some(id) = to_signalable_pid(process_id)
                {
                    // A process that is already gone needs no signal.
                    let _gone = kill_process(id, signal);
                    let _gone = kill_process(id, Signal::CONT);
                    signaled.push(process_id);
                }
            }
            if started.elapsed() >= timeout {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    count
}

/// Reaps orphans that have exited. The caller must already have waited for its own children.
fn reap_orphans() {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    while let Ok(Some(_)) = waitid(WaitId::All, options) {}
}

/// Returns the ids of the processes that belong to a run by mark or by `root`, without zombies.
fn stray_pids(mark: &str, root: Option<u32>) -> Vec<u32> {
    let own_pid = std::process::id();
    let mut processes: BTreeMap<u32, ProcessInfo> = BTreeMap::new();
    for process_id in process_ids().unwrap_or_default() {
        let Some(parent) = parent_of(process_id).filter(|_| process_id != own_pid) else { continue };
        processes.insert(process_id, ProcessInfo { parent, has_run_mark: matches_mark(process_id, mark) });
    }
    processes.keys().copied().filter(|number| belongs_to_run(*number, root, &processes)).collect()
}

/// Parent and mark of a process.
struct ProcessInfo {
    parent: u32,
    /// Whether the mark of the process is that of this run; none without a mark.
    has_run_mark: Option<bool>,
}

/// Returns whether a process belongs to the run: by its own mark, or by the mark of its closest marked
/// ancestor. An unmarked process below `root` has removed its mark. An agent may start its own lanes; those
/// have their own marks.
fn belongs_to_run(mut process_id: u32, root: Option<u32>, processes: &BTreeMap<u32, ProcessInfo>) -> bool {
    // The number of processes limits the depth, even if the tree changes during the scan.
    for _ in 0..=processes.len() {
        match processes.get(&process_id) {
            Some(ProcessInfo { has_run_mark: Some(is_of_run), .. }) => return *is_of_run,
            Some(ProcessInfo { parent, .. }) => process_id = *parent,
            None => return Some(process_id) == root,
        }
    }
    false
}

/// Returns the parent of a process; none if the process has exited or is a zombie.
fn parent_of(process_id: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat")).ok()?;
    // The name in brackets may contain any character; state and parent follow it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut field = fields.split_whitespace();
    match field.next() {
        Some("Z" | "X") | None => None,
        Some(_) => field.next()?.parse().ok(),
    }
}

/// Returns whether a process has this mark; none when it has no mark.
fn matches_mark(process_id: u32, mark: &str) -> Option<bool> {
    let read_environ = || std::fs::read(format!("/proc/{process_id}/environ")).ok();
    let mut environ = read_environ()?;
    // Between two programs, in the middle of exec(2), a process has no variables for a moment.
    let started = Instant::now();
    while environ.is_empty() && is_in_exec(process_id) && started.elapsed() < EXEC_WAIT_LIMIT {
        std::thread::sleep(Duration::from_millis(1));
        environ = read_environ()?;
    }
    let mut values = environ
        .split(|b| *b == 0)
        .filter_map(|var| var.strip_prefix(RUN_MARK_VAR.as_bytes())?.strip_prefix(b"="));
    values.next().map(|value| value == mark.as_bytes())
}

/// Returns whether a process has no memory for variables yet. A process with an empty environment has such
/// memory. Kernel threads never have it, but they have no executable either.
fn is_in_exec(process_id: u32) -> bool {
    let end_of_variables = |stat: String| {
        let (_, fields) = stat.rsplit_once(')')?;
        fields.split_whitespace().nth(48).map(ToOwned::to_owned)
    };
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat")).ok();
    stat.and_then(end_of_variables).is_some_and(|end| end == "0")
        && std::fs::read_link(format!("/proc/{process_id}/exe")).is_ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::process::command_builder::CommandBuilder;

    fn start_marked(script: &str, mark: &str) -> std::process::Child {
        let builder = CommandBuilder::new(Path::new("/bin/sh"), Path::new("/"))
            .args(["-c", script])
            .env(RUN_MARK_VAR, mark);
        builder.spawn_in_group().unwrap()
    }

    fn wait_until(condition: impl Fn() -> bool) {
        let started = Instant::now();
        while !condition() {
            assert!(started.elapsed() < Duration::from_mins(1));
            std::thread::yield_now();
        }
    }

    /// Promise: concurrency/independent-process
    #[test]
    fn lanes_started_by_agent_are_not_strays() {
        let info = |parent, marked| ProcessInfo { parent, has_run_mark: marked };
        // 1 is the supervisor; 2 the agent; 3 its tool; 4 has no mark; 5 is another run's supervisor, 6 the
        // tool of its agent.
        let processes = BTreeMap::from([
            (2, info(1, Some(true))),
            (3, info(9, Some(true))),
            (4, info(1, None)),
            (5, info(1, Some(false))),
            (6, info(5, None)),
            (7, info(8, None)),
            (8, info(7, None)),
        ]);
        let of_run: Vec<u32> =
            processes.keys().copied().filter(|number| belongs_to_run(*number, Some(1), &processes)).collect();
        assert_eq!(of_run, [2, 3, 4]);
    }

    #[test]
    fn does_not_wait_for_process_without_variables() {
        let mut command = std::process::Command::new("/bin/sleep");
        let mut child = command.arg("600").env_clear().spawn().unwrap();
        // By then the process has become the requested program.
        wait_until(|| std::fs::read(format!("/proc/{}/environ", child.id())).unwrap().is_empty());
        wait_until(|| !is_in_exec(child.id()));
        assert_eq!(matches_mark(child.id(), "any"), None);
        assert!(!is_in_exec(2), "that is one of the kernel's");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn finds_process_in_other_session_by_mark() {
        let mark = format!("test-{}", std::process::id());
        // The process writes its id after it has left the session; its parent is gone by then.
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!(
            "setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600' & exit 0",
            file.display()
        );
        start_marked(&script, &mark).wait().unwrap();
        wait_until(|| file.exists());
        let process_id: u32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        // The mark cannot be read while the process is in the middle of `exec`.
        wait_until(|| std::fs::read(format!("/proc/{process_id}/cmdline")).unwrap().starts_with(b"sleep\0"));
        wait_until(|| matches_mark(process_id, &mark).is_some());
        assert_eq!(
            (matches_mark(process_id, &mark), matches_mark(process_id, "another")),
            (Some(true), Some(false))
        );
        assert!(parent_of(process_id).is_some());
        let id = to_signalable_pid(process_id).unwrap();
        kill_process(id, Signal::KILL).unwrap();
        wait_until(|| parent_of(process_id).is_none());
    }
}
