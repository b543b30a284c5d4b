//! Stopping processes: only by id, and only groups that git-proq started.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process, kill_process_group, test_kill_process_group};

use super::Error;
use super::identity::to_signalable_pid;

/// Makes this process the leader of a new session, without a terminal.
pub fn start_process_session() {
    // A process started by hand may already lead its group; then there is no session to leave.
    let _already_leader = rustix::process::setsid();
}

/// Returns whether a group has a running process. Zombies do not count: in many containers the first process
/// never reaps them, so waiting would never end.
pub fn is_group_alive(group: u32) -> bool {
    let exists = || to_signalable_pid(group).is_some_and(|p| test_kill_process_group(p).is_ok());
    // The last process may be reaped during the scan, which then finds no process of the group.
    exists() && !has_only_zombies(group) && exists()
}

/// Returns whether only zombies are left of a group. Needs `/proc`; false without it.
fn has_only_zombies(group: u32) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    let mut has_member = false;
    for entry in entries.flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in brackets may contain any character; state, parent and group follow it.
        let Some((_, fields)) = stat.rsplit_once(')') else { continue };
        let mut field = fields.split_whitespace();
        let (state, process_group) = (field.next(), field.nth(1));
        if process_group == Some(group.to_string().as_str()) {
            has_member = true;
            if !matches!(state, Some("Z" | "X")) {
                return false;
            }
        }
    }
    has_member
}

/// Sends TERM to one process.
pub fn terminate_process(process_id: u32) -> Result<(), Error> {
    let signal_error = |source: std::io::Error| Error::NotSignaled { pid: process_id, source };
    let pid =
        to_signalable_pid(process_id).ok_or_else(|| signal_error(std::io::ErrorKind::InvalidInput.into()))?;
    kill_process(pid, Signal::TERM).map_err(|e| signal_error(e.into()))
}

/// Ends this process by the default action of a signal. Returns only when that is not possible.
pub fn exit_by_signal(signal: i32) {
    drop(signal_hook::low_level::emulate_default_handler(signal));
}

/// Sends TERM to every process of a group.
pub fn terminate_group(group: u32) {
    if let Some(pid) = to_signalable_pid(group) {
        // A group that is already gone needs no signal.
        let _gone = kill_process_group(pid, Signal::TERM);
        // A stopped process does not receive TERM until CONT.
        let _gone = kill_process_group(pid, Signal::CONT);
    }
}

/// Stops a group: TERM, a grace period, KILL. Returns whether no process of it is left.
pub fn stop_group(group: u32, grace: Duration) -> bool {
    let Some(pid) = to_signalable_pid(group) else { return true };
    terminate_group(group);
    let started = Instant::now();
    while started.elapsed() < grace {
        if !is_group_alive(group) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _gone = kill_process_group(pid, Signal::KILL);
    let started = Instant::now();
    while is_group_alive(group) && started.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(10));
    }
    !is_group_alive(group)
}

/// Returns the processes that hold the lock on a file, because they inherited a locked file descriptor.
/// Processes that only have the file open, to query or wait for the lock, do not count. Needs `/proc`; empty
/// without it.
fn lock_holders(file: &Path) -> Vec<u32> {
    let Ok(file) = file.canonicalize() else { return Vec::new() };
    let own_pid = std::process::id();
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()))
        .filter(|process_id| *process_id != own_pid)
        .filter(|process_id| {
            let fds = std::fs::read_dir(format!("/proc/{process_id}/fd")).into_iter().flatten().flatten();
            fds.into_iter().any(|fd| {
                std::fs::read_link(fd.path()).is_ok_and(|target| target == file)
                    && has_exclusive_lock(*process_id, &fd.file_name())
            })
        })
        .collect()
}

/// Returns whether a file descriptor of a process carries an exclusive lock.
fn has_exclusive_lock(process_id: u32, fd: &OsStr) -> bool {
    let path = Path::new("/proc").join(process_id.to_string()).join("fdinfo").join(fd);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().any(|line| {
        let mut words = line.strip_prefix("lock:").unwrap_or_default().split_whitespace();
        words.any(|word| word == "FLOCK") && words.any(|word| word == "WRITE")
    })
}

/// Stops every process that holds the lock on a file: TERM, a grace period, KILL.
pub fn stop_lock_holders(file: &Path, grace: Duration) {
    for (signal, timeout) in [(Signal::TERM, grace), (Signal::KILL, Duration::from_secs(5))] {
        for process_id in lock_holders(file) {
            if let Some(pid) = to_signalable_pid(process_id) {
                // A process that is already gone needs no signal.
                let _gone = kill_process(pid, signal);
            }
        }
        let started = Instant::now();
        while !lock_holders(file).is_empty() && started.elapsed() < timeout {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::process::command_builder::CommandBuilder;

    #[test]
    fn rejects_pids_that_mean_all_processes() {
        assert_eq!([0, 1, u32::MAX, i32::MAX.unsigned_abs() + 1].map(to_signalable_pid), [None; 4]);
        assert!(to_signalable_pid(2).is_some());
    }

    /// Promise: concurrency/lock-openers
    #[test]
    fn stops_lock_holders_but_not_openers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let locked = File::create_new(&path).unwrap();
        locked.lock().unwrap();
        let sleep_with_stdin = |file: File| {
            let builder =
                CommandBuilder::new(Path::new("/bin/sleep"), Path::new("/")).args(["600"]).stdin(file);
            builder.spawn_in_group().unwrap()
        };
        let mut holder = sleep_with_stdin(locked);
        let mut opener = sleep_with_stdin(File::open(&path).unwrap());
        // A process that another test is just starting may still have the file for a moment.
        while lock_holders(&path) != [holder.id()] {
            std::thread::yield_now();
        }
        stop_lock_holders(&path, Duration::from_mins(1));
        assert!(!holder.wait().unwrap().success());
        assert_eq!(opener.try_wait().unwrap(), None);
        opener.kill().unwrap();
        opener.wait().unwrap();
    }
}
