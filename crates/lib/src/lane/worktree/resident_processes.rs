//! Processes whose working directory is in a folder.

use std::path::Path;

/// Number of ancestors of a process that are checked for being this program.
const MAX_ANCESTORS_CHECKED: usize = 3;

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

/// Returns whether a process is git-proq, a git that git-proq started, or the git that started this process. Those
/// that change files of a lane lock it first.
fn is_own_process(pid: u32) -> bool {
    let read_exe = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let read_stat = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let parent_of = |pid: u32| -> Option<u32> {
        read_stat(pid).rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok())
    };
    let ancestors = |pid: u32| std::iter::successors(parent_of(pid), |parent| parent_of(*parent));
    let own_exe = read_exe(std::process::id());
    if read_exe(pid) == own_exe {
        return true;
    }
    let is_git = read_stat(pid).split_once(' ').is_some_and(|(_, rest)| rest.starts_with("(git)"));
    let has_own_ancestor =
        || ancestors(pid).take(MAX_ANCESTORS_CHECKED).any(|ancestor| read_exe(ancestor) == own_exe);
    // `git proq` is a git that waits for this process.
    let is_own_ancestor =
        || ancestors(std::process::id()).take(MAX_ANCESTORS_CHECKED).any(|ancestor| ancestor == pid);
    if is_git && (has_own_ancestor() || is_own_ancestor()) {
        return true;
    }
    // The process may have exited since it was listed.
    read_exe(pid).is_none()
}
