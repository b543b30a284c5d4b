//! Owns ending processes: only by id, only groups that were started here.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use super::Error;

/// A process or group that may be signalled. The first process of a machine is nobody's to end, and its number names all
/// processes where it stands for a group.
pub(super) fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().filter(|number| *number > 1).and_then(Pid::from_raw)
}

/// Makes this process the first of a session of its own, without a terminal.
pub(crate) fn leave_session() {
    // One that was started by hand may be the first of its group already; then there is nothing to leave.
    let _already_leader = rustix::process::setsid();
}

/// Whether any process of a group is left. One that has ended and that nobody collects is not: in many containers the
/// first process never does, and waiting for it would be in vain.
pub(crate) fn group_lives(group: u32) -> bool {
    let is_there = || pid(group).is_some_and(|p| test_kill_process_group(p).is_ok());
    // The last of it may be collected while it is looked for: then nothing of it is seen.
    is_there() && !only_remains(group) && is_there()
}

/// Whether all that is left of a group has ended already. Known where there is a `/proc`.
fn only_remains(group: u32) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    let mut seen = false;
    for entry in entries.flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in brackets may hold anything; state, parent and group follow it.
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        let mut words = rest.split_whitespace();
        let (state, own) = (words.next(), words.nth(1));
        if own == Some(group.to_string().as_str()) {
            seen = true;
            if !matches!(state, Some("Z" | "X")) {
                return false;
            }
        }
    }
    seen
}

/// Asks one process to end.
pub(crate) fn signal_process(number: u32) -> Result<(), Error> {
    let failed = |source: std::io::Error| Error::Signal { pid: number, source };
    let pid = pid(number).ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
    kill_process(pid, Signal::TERM).map_err(|e| failed(e.into()))
}

/// Ends this process by a signal, as one that has not been caught. Returns only when that is not possible.
pub(crate) fn die_of(signal: i32) {
    drop(signal_hook::low_level::emulate_default_handler(signal));
}

/// Asks every process of a group to end.
pub(crate) fn ask_group(group: u32) {
    if let Some(pid) = pid(group) {
        // A group that is gone already needs no signal.
        let _gone = kill_process_group(pid, Signal::TERM);
        // A stopped process gets no TERM until it goes on.
        let _gone = kill_process_group(pid, Signal::CONT);
    }
}

/// Ends a group: TERM, a time of grace, KILL. Returns whether nothing of it is left.
pub(crate) fn end_group(group: u32, grace: Duration) -> bool {
    let Some(pid) = pid(group) else { return true };
    ask_group(group);
    let since = Instant::now();
    while since.elapsed() < grace {
        if !group_lives(group) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _gone = kill_process_group(pid, Signal::KILL);
    let since = Instant::now();
    while group_lives(group) && since.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(10));
    }
    !group_lives(group)
}

/// Processes that hold the lock on a file: an open file that carries it was handed down to them. Who only has the file open,
/// to ask or to wait, does not. Known where there is a `/proc`; elsewhere nobody is seen.
fn holders(file: &Path) -> Vec<u32> {
    let Ok(file) = file.canonicalize() else { return Vec::new() };
    let me = std::process::id();
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()))
        .filter(|number| *number != me)
        .filter(|number| {
            let open = std::fs::read_dir(format!("/proc/{number}/fd")).into_iter().flatten().flatten();
            open.into_iter().any(|fd| {
                std::fs::read_link(fd.path()).is_ok_and(|target| target == file)
                    && carries_lock(*number, &fd.file_name())
            })
        })
        .collect()
}

/// Whether an open file of a process carries a lock that nobody else can have.
fn carries_lock(number: u32, fd: &OsStr) -> bool {
    let path = Path::new("/proc").join(number.to_string()).join("fdinfo").join(fd);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().any(|line| {
        let mut words = line.strip_prefix("lock:").unwrap_or_default().split_whitespace();
        words.any(|word| word == "FLOCK") && words.any(|word| word == "WRITE")
    })
}

/// Ends every process that holds the lock on a file: TERM, a time of grace, KILL.
pub(crate) fn end_holders(file: &Path, grace: Duration) {
    for (signal, patience) in [(Signal::TERM, grace), (Signal::KILL, Duration::from_secs(5))] {
        for number in holders(file) {
            if let Some(pid) = pid(number) {
                // One that is gone already needs no signal.
                let _gone = kill_process(pid, signal);
            }
        }
        let since = Instant::now();
        while !holders(file).is_empty() && since.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;

    use super::super::Start;
    use super::*;

    #[test]
    fn nobody_is_asked_by_a_number_that_means_everybody() {
        assert_eq!([0, 1, u32::MAX, i32::MAX.unsigned_abs() + 1].map(pid), [None; 4]);
        assert!(pid(2).is_some());
    }

    #[test]
    fn who_holds_a_lock_is_ended_and_who_only_has_its_file_open_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = File::create_new(&path).unwrap();
        held.lock().unwrap();
        let with = |file: File| {
            let start = Start::new(Path::new("/bin/sleep"), Path::new("/")).args(["600"]).stdin(file);
            start.spawn_in_group().unwrap()
        };
        let mut holder = with(held);
        let mut asker = with(File::open(&path).unwrap());
        // What another test is just starting may have it for a moment still.
        while holders(&path) != [holder.id()] {
            std::thread::yield_now();
        }
        end_holders(&path, Duration::from_mins(1));
        assert!(!holder.wait().unwrap().success());
        assert_eq!(asker.try_wait().unwrap(), None);
        asker.kill().unwrap();
        asker.wait().unwrap();
    }
}
