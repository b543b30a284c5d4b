//! Owns telling a process from a later one that got the same number.

use std::path::Path;

/// What stays the same for as long as a process lives: its start time as the system counts it. None when it is gone.
pub(crate) fn birth_of(pid: u32) -> Option<String> {
    let stat = format!("/proc/{pid}/stat");
    if Path::new("/proc/self/stat").exists() {
        let text = std::fs::read_to_string(stat).ok()?;
        // The name in brackets may hold anything; the start time is the 20th field after it.
        let (_, rest) = text.rsplit_once(')')?;
        return rest.split_whitespace().nth(19).map(ToOwned::to_owned);
    }
    let out = std::process::Command::new("ps")
        .args(["-o", "lstart=", "-p", &pid.to_string()])
        .env("LC_ALL", "C")
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Whether a process with this number is still the one that had this birth.
pub(crate) fn is_same(pid: u32, birth: Option<&str>) -> bool {
    birth.is_some() && birth_of(pid).as_deref() == birth
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
    }
}
