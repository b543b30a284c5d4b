//! Owns who holds a lock, in a side file: for the person who waits, never for deciding whether the lock is free.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Error, Moment, Record, now};
use crate::regular_file;

/// The process that took a lock last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    /// Its process id, on its host.
    pub(crate) pid: u32,
    /// What it was started as.
    pub(crate) command: String,
    /// When it took the lock.
    pub(crate) since: Moment,
    /// The machine.
    pub(crate) host: String,
}

impl Record for Holder {
    const FORMAT: u32 = 1;
}

impl Holder {
    /// This process.
    pub(crate) fn me() -> Holder {
        Holder {
            pid: std::process::id(),
            command: typed(std::env::args_os().skip(1)),
            since: now(),
            host: host(),
        }
    }

    /// The side file of a lock.
    pub(super) fn file(lock: &Path) -> PathBuf {
        lock.with_extension("holder")
    }

    /// Notes this process as the holder. Failing to is no reason to give the lock up.
    ///
    /// # Errors
    /// Where something else than a regular file has the place of the side file: a link would be written through, a pipe waited for.
    pub(super) fn note(lock: &Path) -> Result<(), Error> {
        let (holder, file) = (Holder::me(), Holder::file(lock));
        let Ok(text) = toml::to_string(&holder) else { return Ok(()) };
        match regular_file::overwrite(&file, format!("format = {}\n{text}", Holder::FORMAT).as_bytes()) {
            Err(e) if e.kind() == std::io::ErrorKind::InvalidInput => Err(Error::io("write", &file)(e)),
            _ => Ok(()),
        }
    }

    /// Who took the lock last, in words.
    pub(super) fn describe(lock: &Path) -> String {
        let Ok(Some(holder)) = Holder::find(&Holder::file(lock)) else {
            return "another process".to_owned();
        };
        format!("`{}` {}", holder.command, holder.as_of(&holder.since.to_string()))
    }

    /// Which process it is, and since when by the clock on the wall, in brackets.
    pub(super) fn in_words(&self) -> String {
        self.as_of(&self.since.on_the_wall())
    }

    /// Whether it runs on this machine.
    pub(crate) fn is_here(&self) -> bool {
        self.host == host()
    }

    /// Whether it is stopped by job control, as far as that can be told from here.
    pub(crate) fn is_frozen(&self) -> bool {
        self.is_here() && is_stopped(self.pid)
    }

    fn as_of(&self, since: &str) -> String {
        let place = if self.is_here() { String::new() } else { format!(" on {}", self.host) };
        let frozen = if self.is_frozen() { ", which is stopped (Ctrl-Z); `fg` lets it go on" } else { "" };
        format!("(process {}{place}, since {since}{frozen})", self.pid)
    }
}

/// The command line as a person types it, shortened. What git-proq starts itself goes by the command that does the same, or by
/// what it is.
fn typed(args: impl Iterator<Item = std::ffi::OsString>) -> String {
    const LONGEST: usize = 160;
    let words: Vec<String> = args.map(|a| a.to_string_lossy().into_owned()).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["_swarm", "--batch", batch] => return format!("git proq resume {batch}"),
        ["_supervise", "--lane", lane, ..] => return format!("supervisor of lane {lane}"),
        _ => {}
    }
    let mut out = String::from("git proq");
    for word in words {
        let plain = |c: char| c.is_alphanumeric() || "-_./@:=,+".contains(c);
        let word: String = word.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        match !word.is_empty() && word.chars().all(plain) {
            true => out.push_str(&format!(" {word}")),
            false => out.push_str(&format!(" '{word}'")),
        }
    }
    if out.chars().count() > LONGEST {
        out = out.chars().take(LONGEST - 1).chain(['…']).collect();
    }
    out
}

/// The machine's name.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Whether a process is stopped by job control. `/proc` where there is one, elsewhere this is not known.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

/// The number of the session that this process belongs to. None where it cannot be told: a process in a container whose
/// session was begun outside of it is in session 0, which is no number of a process (and which rustix's `getsid` must
/// not meet), so it is read where the system shows it.
#[cfg(target_os = "linux")]
pub(super) fn terminal_session() -> Option<i32> {
    session_in(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn terminal_session() -> Option<i32> {
    rustix::process::getsid(None).ok().map(rustix::process::Pid::as_raw_nonzero).map(i32::from)
}

/// The session in a line of `/proc/PID/stat`: the fourth field after the name, which may hold anything, in brackets.
#[cfg(target_os = "linux")]
fn session_in(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    let number = rest.split_whitespace().nth(3)?.parse().ok()?;
    (number != 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_session_from_outside_of_a_container_is_none() {
        assert_eq!(session_in("7 (a) b) c) S 1 7 4711 0 -1 4194560"), Some(4711));
        assert_eq!(session_in("2 (cat) R 1 0 0 0 -1 4194304"), None);
        assert_eq!(session_in(""), None);
    }
}
