//! Identity of a process: telling it from a later process that got the same id.

use std::path::Path;

use rustix::process::Pid;

/// Converts a number to the id of a process or group that may be signaled. Returns none for 1: the first
/// process must not be stopped, and as a group its number means all processes.
pub(super) fn to_signalable_pid(process_id: u32) -> Option<Pid> {
    i32::try_from(process_id).ok().filter(|process_id| *process_id > 1).and_then(Pid::from_raw)
}

/// Returns the start time of a process as the system counts it, which stays the same for its lifetime. None
/// when the process is gone.
pub fn start_time_of(pid: u32) -> Option<String> {
    // The 20th field after the name.
    process_field(pid, 19, "lstart=")
}

/// Returns whether the process with this id is still the one with this start time. True for a zombie.
pub fn is_same_process(pid: u32, start_time: Option<&str>) -> bool {
    start_time.is_some() && start_time_of(pid).as_deref() == start_time
}

/// Returns whether the process with this id and start time is still running. False for a zombie: in many
/// containers the first process never reaps them.
pub fn is_process_running(pid: u32, start_time: Option<&str>) -> bool {
    !has_process_exited(pid) && is_same_process(pid, start_time)
}

/// Returns whether no process with this id is running. True for a zombie.
pub fn has_process_exited(pid: u32) -> bool {
    process_field(pid, 0, "stat=").is_none_or(|state| state.starts_with(['Z', 'X']))
}

/// Lists the ids of all processes, as far as the system shows them to this one. `None` without `/proc`.
pub fn process_ids() -> Option<Vec<u32>> {
    // A system may have an empty folder of that name.
    Path::new("/proc/self/stat").exists().then_some(())?;
    let entries = std::fs::read_dir("/proc").ok()?.flatten();
    Some(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Maximum number of ancestors that are followed.
const MAX_ANCESTORS: usize = 1000;

/// Returns whether the process with this id started this process, directly or through others that are still
/// running.
pub fn is_ancestor_process(pid: u32) -> bool {
    let parent = |pid: &u32| process_field(*pid, 1, "ppid=")?.parse().ok();
    std::iter::successors(Some(std::process::id()), parent)
        .skip(1)
        .take(MAX_ANCESTORS)
        .any(|ancestor| ancestor == pid)
}

/// Returns a property of a process: field `index` after its name in `/proc`, or the column `ps_column` of
/// `ps` without `/proc`.
fn process_field(pid: u32, index: usize, ps_column: &str) -> Option<String> {
    if Path::new("/proc/self/stat").exists() {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in brackets may contain any character.
        let (_, fields) = text.rsplit_once(')')?;
        return fields.split_whitespace().nth(index).map(ToOwned::to_owned);
    }
    let mut ps = std::process::Command::new("ps");
    let out = ps.args(["-o", ps_column, "-p", &pid.to_string()]).env("LC_ALL", "C").output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifies_own_process() {
        let own_pid = std::process::id();
        let start_time = start_time_of(own_pid);
        assert!(start_time.is_some());
        assert!(is_same_process(own_pid, start_time.as_deref()));
        assert!(!is_same_process(own_pid, Some("long ago")));
        assert!(!is_same_process(u32::MAX - 1, start_time.as_deref()));
        assert!(
            is_process_running(own_pid, start_time.as_deref())
                && !is_process_running(own_pid, Some("long ago"))
        );
        assert!(!has_process_exited(own_pid) && has_process_exited(u32::MAX - 1));
    }

    #[test]
    fn parent_is_ancestor_but_self_is_not() {
        assert!(is_ancestor_process(std::os::unix::process::parent_id()));
        assert!(!is_ancestor_process(std::process::id()) && !is_ancestor_process(u32::MAX - 1));
    }

    #[test]
    fn zombie_is_not_running() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let start_time = start_time_of(child.id());
        assert!(is_process_running(child.id(), start_time.as_deref()));
        drop(child.stdin.take());
        while is_process_running(child.id(), start_time.as_deref()) {
            std::thread::yield_now();
        }
        assert!(is_same_process(child.id(), start_time.as_deref()));
        child.wait().unwrap();
        assert!(!is_same_process(child.id(), start_time.as_deref()));
    }
}
