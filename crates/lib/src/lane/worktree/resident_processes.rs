//! Processes whose working directory is in a folder.

use std::path::Path;

/// Number of ancestors of a process that are checked for being this program.
const MAX_ANCESTORS_CHECKED: u32 = 3;

/// Lists other processes whose working directory is in `dir`, from `/proc`; empty on systems without it.
pub(crate) fn processes_in_dir(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let own_pid = std::process::id();
    let mut out = Vec::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let is_inside = std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(dir));
        if is_inside && pid != own_pid && !is_own_process(pid) {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            // A process without a name has exited since, such as a git that another command started.
            if !name.trim().is_empty() {
                out.push(format!("{} (process {pid})", name.trim()));
            }
        }
    }
    out
}

/// Returns whether a process is git-proq, or a git that git-proq started. Both lock a lane before they change
/// files there.
fn is_own_process(pid: u32) -> bool {
    let read_exe = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let read_stat = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let own_exe = read_exe(std::process::id());
    if read_exe(pid) == own_exe {
        return true;
    }
    let is_git = read_stat(pid).split_once(' ').is_some_and(|(_, rest)| rest.starts_with("(git)"));
    let mut ancestor = pid;
    for _ in 0..MAX_ANCESTORS_CHECKED {
        let text = read_stat(ancestor);
        let parent = text.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        let Some(parent) = parent.filter(|_| is_git) else { return false };
        ancestor = parent;
        if read_exe(ancestor) == own_exe {
            return true;
        }
    }
    // The process may have exited since it was listed.
    read_exe(pid).is_none()
}
