//! Owns telling a process from a later one that got the same number.

use std::path::Path;

/// What stays the same for as long as a process lives: its start time as the system counts it. None when it is gone.
pub(crate) fn birth_of(pid: u32) -> Option<String> {
    // The 20th field after the name.
    field(pid, 19, "lstart=")
}

/// Whether a process with this number is still the one that had this birth. One that has ended and that nobody has collected is.
pub(crate) fn is_same(pid: u32, birth: Option<&str>) -> bool {
    birth.is_some() && birth_of(pid).as_deref() == birth
}

/// The same of one that has not ended: in many containers the first process collects nobody.
pub(crate) fn lives(pid: u32, birth: Option<&str>) -> bool {
    !has_ended(pid) && is_same(pid, birth)
}

/// Whether no process with this number runs, or only one that has ended and that nobody has collected.
pub(crate) fn has_ended(pid: u32) -> bool {
    field(pid, 0, "stat=").is_none_or(|state| state.starts_with(['Z', 'X']))
}

/// How many processes are followed up to the one that started them all.
const DEEPEST: usize = 1000;

/// Whether the process with this number started this one, directly or through others that still run.
pub(crate) fn is_ancestor(pid: u32) -> bool {
    let parent = |pid: &u32| field(*pid, 1, "ppid=")?.parse().ok();
    std::iter::successors(Some(std::process::id()), parent).skip(1).take(DEEPEST).any(|above| above == pid)
}

/// What the system says of a process: a field after its name where there is a `/proc`, what `ps` calls so elsewhere.
fn field(pid: u32, number: usize, name: &str) -> Option<String> {
    if Path::new("/proc/self/stat").exists() {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in brackets may hold anything.
        let (_, rest) = text.rsplit_once(')')?;
        return rest.split_whitespace().nth(number).map(ToOwned::to_owned);
    }
    let mut ps = std::process::Command::new("ps");
    let out = ps.args(["-o", name, "-p", &pid.to_string()]).env("LC_ALL", "C").output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_itself_and_nobody_else() {
        let me = std::process::id();
        let birth = birth_of(me);
        assert!(birth.is_some());
        assert!(is_same(me, birth.as_deref()));
        assert!(!is_same(me, Some("long ago")));
        assert!(!is_same(u32::MAX - 1, birth.as_deref()));
        assert!(lives(me, birth.as_deref()) && !lives(me, Some("long ago")));
        assert!(!has_ended(me) && has_ended(u32::MAX - 1));
    }

    #[test]
    fn who_started_this_process_is_above_it_and_it_is_not_above_itself() {
        assert!(is_ancestor(std::os::unix::process::parent_id()));
        assert!(!is_ancestor(std::process::id()) && !is_ancestor(u32::MAX - 1));
    }

    #[test]
    fn one_that_has_ended_and_is_not_collected_lives_no_more() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let birth = birth_of(child.id());
        assert!(lives(child.id(), birth.as_deref()));
        drop(child.stdin.take());
        while lives(child.id(), birth.as_deref()) {
            std::thread::yield_now();
        }
        assert!(is_same(child.id(), birth.as_deref()));
        child.wait().unwrap();
        assert!(!is_same(child.id(), birth.as_deref()));
    }
}
