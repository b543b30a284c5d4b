//! Side file that names the process holding a lock. It informs a user who waits; it never decides whether the
//! lock is free.

use std::path::{Path, PathBuf};

use proq_base::explain::shell_quote;
use proq_base::regular_file;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::base::clock::{Moment, now};
use crate::base::record::Record;

/// Process that acquired a lock last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// Process id on its host.
    pub pid: u32,
    /// Command line of the process.
    pub command: String,
    /// Time at which the process acquired the lock.
    pub since: Moment,
    /// Host name.
    pub host: String,
}

impl Record for LockHolder {
    const FORMAT: u32 = 1;
}

impl LockHolder {
    /// Returns a holder entry for this process with the current time.
    pub(crate) fn this_process() -> LockHolder {
        LockHolder {
            pid: std::process::id(),
            command: displayed_command(std::env::args_os().skip(1)),
            since: now(),
            host: host_name(),
        }
    }

    /// Returns the path of the file, next to a lock, that names the lock's holder.
    pub(crate) fn holder_file_of(lock: &Path) -> PathBuf {
        lock.with_extension("holder")
    }

    /// Records this process as the holder of a lock. An ordinary write failure is ignored: the lock is still
    /// valid.
    ///
    /// # Errors
    /// Fails where the side file is not a regular file: a write would follow a link, or block on a pipe.
    pub(crate) fn write_holder_file(lock: &Path) -> Result<(), Error> {
        let (holder, file) = (LockHolder::this_process(), LockHolder::holder_file_of(lock));
        let Ok(text) = toml::to_string(&holder) else { return Ok(()) };
        match regular_file::overwrite(&file, format!("format = {}\n{text}", LockHolder::FORMAT).as_bytes()) {
            Err(e) if e.kind() == std::io::ErrorKind::InvalidInput => Err(Error::io("write", &file)(e)),
            _ => Ok(()),
        }
    }

    /// Describes the process that acquired the lock last.
    pub(crate) fn describe_last_holder(lock: &Path) -> String {
        let Ok(Some(holder)) = LockHolder::load_if_exists(&LockHolder::holder_file_of(lock)) else {
            return "another process".to_owned();
        };
        format!("`{}` {}", holder.command, holder.process_text(&holder.since.to_string()))
    }

    /// Describes the process, and in local time since when it holds the lock, in parentheses.
    pub fn describe_process(&self) -> String {
        self.process_text(&self.since.to_local_text())
    }

    /// Returns whether the process runs on this machine.
    pub fn is_on_this_host(&self) -> bool {
        self.host == host_name()
    }

    /// Returns whether the process is stopped by job control. False where this is not known.
    pub fn is_suspended(&self) -> bool {
        self.is_on_this_host() && is_process_suspended(self.pid)
    }

    /// Describes the process in parentheses; `since` is the time from which it holds the lock.
    fn process_text(&self, since: &str) -> String {
        let on_host = if self.is_on_this_host() { String::new() } else { format!(" on {}", self.host) };
        let suspended_note =
            if self.is_suspended() { ", which is suspended (Ctrl-Z); continue it with `fg`" } else { "" };
        format!("(process {}{on_host}, since {since}{suspended_note})", self.pid)
    }
}

/// Returns the name of the internal command that this process runs; none for a command that users type.
pub(crate) fn internal_command() -> Option<String> {
    let name = std::env::args_os().nth(1)?.into_string().ok()?;
    name.starts_with('_').then_some(name)
}

/// Returns the command line as a user would type it, shortened. An internal command of git-proq is shown as
/// the equivalent user command, or by its role.
fn displayed_command(args: impl Iterator<Item = std::ffi::OsString>) -> String {
    const MAX_COMMAND_CHARS: usize = 160;
    let argv: Vec<String> = args.map(|a| a.to_string_lossy().into_owned()).collect();
    match argv.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["_swarm", "--batch", batch] => return format!("git proq batch resume {batch}"),
        ["_supervise", "--lane", lane, ..] => return format!("supervisor of lane {lane}"),
        _ => {}
    }
    let mut out = String::from("git proq");
    for word in argv {
        let needs_no_quotes = |c: char| c.is_alphanumeric() || "-_./@:=,+".contains(c);
        let word: String = word.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        match !word.is_empty() && word.chars().all(needs_no_quotes) {
            true => out.push_str(&format!(" {word}")),
            false => out.push_str(&format!(" {}", shell_quote(&word))),
        }
    }
    if out.chars().count() > MAX_COMMAND_CHARS {
        out = out.chars().take(MAX_COMMAND_CHARS - 1).chain(['…']).collect();
    }
    out
}

/// Returns the host name of this machine.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns whether a process is stopped by job control, read from `/proc`. False on systems without it.
fn is_process_suspended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, after_name)| after_name.trim_start().starts_with(['T', 't']))
}

/// Returns the id of this process's terminal session; none where it is unknown. In a container whose session
/// was started outside of it, the id is 0, which is no process id. rustix's `getsid` must not receive 0, so
/// the id is read from `/proc`.
#[cfg(target_os = "linux")]
pub fn terminal_session_id() -> Option<i32> {
    parse_session_id(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Returns the id of this process's terminal session; none where it is unknown.
#[cfg(not(target_os = "linux"))]
pub fn terminal_session_id() -> Option<i32> {
    rustix::process::getsid(None).ok().map(rustix::process::Pid::as_raw_nonzero).map(i32::from)
}

/// Parses the session id from `/proc/PID/stat`: the fourth field after the process name, which is in
/// parentheses and may contain anything.
#[cfg(target_os = "linux")]
fn parse_session_id(stat: &str) -> Option<i32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let session_id = after_name.split_whitespace().nth(3)?.parse().ok()?;
    (session_id != 0).then_some(session_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn session_zero_is_unknown() {
        assert_eq!(parse_session_id("7 (a) b) c) S 1 7 4711 0 -1 4194560"), Some(4711));
        assert_eq!(parse_session_id("2 (cat) R 1 0 0 0 -1 4194304"), None);
        assert_eq!(parse_session_id(""), None);
    }
}
