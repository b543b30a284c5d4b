//! Owns windows of tmux: how one is made for an agent, how it goes away again, the way into it, and what it showed last.
//! While an agent lives, nothing is read from its window.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Error;
use super::profile::Profile;
use super::template::mentions;
use crate::lane::{Project, effective_state};
use crate::process::{self, Hearing, MARK, OF_A_RUN, Start};
use crate::store::Record;
use crate::store::records::{AnyLane, RunRecord, Window};

/// How large a window is that nobody looks at yet.
const SIZE: [&str; 4] = ["-x", "120", "-y", "40"];

/// What tmux says of a new window.
const SAID: &str = "#{pane_id} #{socket_path}";

/// The first line of a window that is kept, counted from the top of its screen.
const LINES_ABOVE: &str = "-200";

/// How tmux is asked for that: an agent's end waits for it.
const HEARING: Hearing =
    Hearing { limit: Duration::from_secs(2), grace: Duration::from_millis(200), most: 1 << 20 };

/// Finds tmux.
///
/// # Errors
/// [`Error::NoTmux`] without it.
pub(super) fn find_tmux() -> Result<PathBuf, Error> {
    process::find("tmux", Path::new("/")).map_err(|_| Error::NoTmux)
}

/// Refuses what cannot be in a window, before anything is made for it.
pub(super) fn require(profile: &Profile, agent: &str, prompt: &str) -> Result<(), Error> {
    find_tmux()?;
    if !profile.bare && profile.args.interactive.is_empty() {
        return Err(Error::NoScreen { agent: agent.to_owned() });
    }
    let takes_prompt =
        |word: &String| ["prompt", "prompt_file"].iter().any(|name| mentions(word.as_ref(), name));
    if !profile.bare && !profile.args.interactive.iter().any(takes_prompt) {
        return Err(Error::NoPromptThere { agent: agent.to_owned() });
    }
    profile.check_prompt_on_screen(prompt)
}

/// Makes a window in the background, in which this program, `exe`, starts what the run is to be.
pub(super) fn open(project: &Project, lane: &AnyLane, attempt: u32, exe: &Path) -> Result<Window, Error> {
    let home = project.repo.home();
    let session = session_of(home);
    let into = format!("={session}:");
    let attempt = attempt.to_string();
    // More than one word is never given to a shell.
    let rest = |start: Start, at: &Path| {
        start
            .args(["-d", "-P", "-F", SAID, "-n", &lane.name, "-c"])
            .args([folder(at), word(exe.as_os_str()), "-C".into(), word(home.as_os_str())])
            .args(["_pane", "--lane", &lane.name, "--attempt", &attempt])
    };
    let tmux = find_tmux()?;
    // The first window's folder becomes the session's, which is that of every lane: the main checkout.
    let begin = || rest(tmux_in(&tmux, home).args(["new-session", "-s", &session]).args(SIZE), home);
    let join = || rest(tmux_in(&tmux, home).args(["new-window", "-t", &into]), &lane.path);
    let mut why = String::new();
    // Somebody else may begin or end the session in between.
    for start in [join(), begin(), join()] {
        let (status, out) = start.run()?;
        let said = String::from_utf8_lossy(&out).trim().to_owned();
        match said.split_once(' ').filter(|_| status.success()) {
            Some((pane, socket)) => return Ok(Window { pane: pane.to_owned(), socket: socket.to_owned() }),
            None => why = said,
        }
    }
    Err(Error::Window { why })
}

/// Takes away what is left of a window whose first process, `pid`, has ended: with tmux's remain-on-exit it stays.
pub(super) fn close(window: &Window, pid: u32) {
    let Ok(tmux) = find_tmux() else { return };
    let at = || tmux_in(&tmux, Path::new("/")).args(["-S", &window.socket]);
    let asked = at().args(["display-message", "-p", "-t", &window.pane, "#{pane_pid}"]).run();
    // The next server begins to count panes anew.
    if asked.is_ok_and(|(_, out)| String::from_utf8_lossy(&out).trim() == pid.to_string()) {
        drop(at().args(["kill-pane", "-t", &window.pane]).run());
    }
}

/// What this process's own window shows, with the lines above that tmux still has. None without a window, when it was closed, or when
/// it is empty.
pub(super) fn shown_here() -> Option<String> {
    let (server, pane) = (std::env::var("TMUX").ok()?, std::env::var("TMUX_PANE").ok()?);
    let (socket, tmux) = (server.split(',').next()?, find_tmux().ok()?);
    let ask = |words: &[&str]| {
        let start = tmux_in(&tmux, Path::new("/")).args(["-S", socket]).args(words.iter().copied());
        let heard = start.hear(Vec::new(), HEARING, &|| false);
        heard.ended.is_ok_and(process::Ended::is_success).then_some(heard.words)
    };
    // The next server begins to count panes anew.
    let pid = ask(&["display-message", "-p", "-t", &pane, "#{pane_pid}"])?;
    let is_own = pid == std::process::id().to_string();
    let shown =
        is_own.then(|| ask(&["capture-pane", "-p", "-J", "-S", LINES_ABOVE, "-t", &pane])).flatten()?;
    (!shown.is_empty()).then(|| format!("{shown}\n"))
}

/// The way into a lane's window.
pub(crate) struct Way(Vec<Start>);

/// Finds the way into the window of a lane's agent.
///
/// # Errors
/// [`Error::NoWindow`] when there is none.
pub(crate) fn way_in(project: &Project, lane: &AnyLane) -> Result<Way, Error> {
    let none = || Error::NoWindow { lane: lane.name.clone() };
    let (state, _) = effective_state(project, lane)?;
    if !state.is_claimed() && state != crate::store::records::LaneState::Orphaned {
        return Err(none());
    }
    let run = RunRecord::find(&project.store.layout().run_record(&lane.name, lane.attempt))?;
    let window = run.and_then(|run| run.window).ok_or_else(none)?;
    let tmux = find_tmux()?;
    let at = |words: &[&str]| {
        let start = tmux_in(&tmux, project.repo.home()).args(["-S", &window.socket]);
        start.args(words.iter().copied())
    };
    let pane = window.pane.as_str();
    let inside = std::env::var("TMUX").is_ok_and(|there| there.split(',').next() == Some(&window.socket));
    let last = match inside {
        true => at(&["switch-client", "-t", pane]),
        false => at(&["attach-session", "-t", pane]).without(&["TMUX", "TMUX_PANE"]),
    };
    Ok(Way(vec![at(&["select-window", "-t", pane]), at(&["select-pane", "-t", pane]), last]))
}

impl Way {
    /// Goes there, on this process's terminal if it has one, and returns when the person has left.
    ///
    /// # Errors
    /// [`Error::NoTerminal`] without one, [`Error::Window`] when tmux refuses.
    pub(crate) fn go(self, has_terminal: bool) -> Result<(), Error> {
        if !has_terminal {
            return Err(Error::NoTerminal);
        }
        let mut steps = self.0;
        let last = steps.pop();
        for step in steps {
            let (status, out) = step.run()?;
            if !status.success() {
                return Err(Error::Window { why: String::from_utf8_lossy(&out).trim().to_owned() });
            }
        }
        match last.map(Start::run_on_terminal).transpose()? {
            Some(status) if !status.success() => Err(Error::Window { why: "tmux refused".to_owned() }),
            _ => Ok(()),
        }
    }
}

/// A call of tmux. Its server, which the first call leaves behind, belongs to no run.
fn tmux_in(tmux: &Path, dir: &Path) -> Start {
    Start::new(tmux, dir).env(MARK, "").without(OF_A_RUN)
}

/// The session of a repository, in letters that mean nothing to tmux.
fn session_of(home: &Path) -> String {
    let name = home.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_alphanumeric() || c == '-' { c } else { '_' };
    format!("proq-{}", name.chars().map(plain).collect::<String>())
}

/// A folder for tmux, which fills in what follows a '#'.
fn folder(path: &Path) -> OsString {
    let doubled = path.as_os_str().as_bytes().iter().flat_map(|b| match b {
        b'#' => vec![b'#', b'#'],
        b => vec![*b],
    });
    word(&OsString::from_vec(doubled.collect()))
}

/// A word for tmux, which takes a ';' at the end of one for the end of its command.
fn word(text: &OsStr) -> OsString {
    let mut bytes = text.as_bytes().to_vec();
    if bytes.last() == Some(&b';') {
        bytes.insert(bytes.len() - 1, b'\\');
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_means_anything_to_tmux() {
        assert_eq!(session_of(Path::new("/a/my.repo:x")), "proq-my_repo_x");
        assert_eq!(folder(Path::new("/a #{b};")), "/a ##{b}\\;");
        assert_eq!(word(OsStr::new("a;b")), "a;b");
    }
}
