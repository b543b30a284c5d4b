//! Tmux windows of agents: opening, closing, attaching to a window, and capturing its last screen. The screen
//! of a running agent is never read.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::run_captured::CaptureOptions;
use proq_base::process::strays::{RUN_CONTEXT_VARS, RUN_MARK_VAR};
use proq_base::process::{find_executable, limited_process};
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::{RunRecord, TmuxWindow};

use crate::agent::Error;
use crate::agent::profiles::profile::Profile;
use crate::agent::profiles::template::has_placeholder;
use crate::lane::Project;
use crate::lane::state::lane_state::effective_state;

/// Arguments for the size of a window to which no terminal is attached yet.
const INITIAL_WINDOW_SIZE: [&str; 4] = ["-x", "120", "-y", "40"];

/// Format in which tmux reports a new window: the id of its pane and the path of its socket.
const NEW_WINDOW_FORMAT: &str = "#{pane_id} #{socket_path}";

/// Number of the first line that is captured. It is negative, and so in the scrollback above the screen.
const CAPTURE_START_LINE: &str = "-200";

/// Limits for reading tmux's output. They are small because the end of a run is delayed by it.
const TMUX_READ_LIMITS: CaptureOptions = CaptureOptions {
    limit: Duration::from_secs(2),
    grace: Duration::from_millis(200),
    max_output_bytes: 1 << 20,
};

/// Finds the tmux program.
///
/// # Errors
/// Returns [`Error::NoTmux`] when tmux is not installed.
pub(crate) fn find_tmux() -> Result<PathBuf, Error> {
    find_executable::find_executable("tmux", Path::new("/")).map_err(|_| Error::NoTmux)
}

/// Refuses an agent or prompt that cannot run in a window, before anything is created for it.
pub(crate) fn check_can_open(profile: &Profile, agent: &str, prompt: &str) -> Result<(), Error> {
    find_tmux()?;
    if !profile.prompt_only && profile.args.interactive.is_empty() {
        return Err(Error::NoInteractiveMode { agent: agent.to_owned() });
    }
    let takes_prompt =
        |arg: &String| ["prompt", "prompt_file"].iter().any(|name| has_placeholder(arg.as_ref(), name));
    if !profile.prompt_only && !profile.args.interactive.iter().any(takes_prompt) {
        return Err(Error::NoInteractivePrompt { agent: agent.to_owned() });
    }
    profile.check_interactive_prompt(prompt)
}

/// Opens a window in the background, in which git-proq runs as the pane process that starts the run's agent.
pub(crate) fn open_window(
    project: &Project,
    lane: &AnyLane,
    run_number: RunNumber,
) -> Result<TmuxWindow, Error> {
    let main_checkout = project.repo.command_dir();
    let program_path = project.git_proq_path()?;
    let session_name = session_name_of(main_checkout);
    let session_target = format!("={session_name}:");
    let run_text = run_number.to_string();
    // tmux runs a command of more than one argument without a shell.
    let add_window_args = |command: CommandBuilder, dir: &Path| {
        command
            .args(["-d", "-P", "-F", NEW_WINDOW_FORMAT, "-n", lane.name.as_str(), "-c"])
            .args([
                escape_dir(dir),
                escape_arg(program_path.as_os_str()),
                "-C".into(),
                escape_arg(main_checkout.as_os_str()),
            ])
            .args(["_pane", "--lane", lane.name.as_str(), "--attempt", &run_text])
    };
    let tmux = find_tmux()?;
    // The folder of the first window becomes the session's folder, which all lanes share: the main checkout.
    let create_session = || {
        add_window_args(
            tmux_call(&tmux, main_checkout)
                .args(["new-session", "-s", &session_name])
                .args(INITIAL_WINDOW_SIZE),
            main_checkout,
        )
    };
    let add_window = || {
        add_window_args(
            tmux_call(&tmux, main_checkout).args(["new-window", "-t", &session_target]),
            &lane.path,
        )
    };
    let mut reason = String::new();
    // Another process may create or end the session in between.
    for command in [add_window(), create_session(), add_window()] {
        let (status, out) = command.run_with_output()?;
        let output = String::from_utf8_lossy(&out).trim().to_owned();
        match output.split_once(' ').filter(|_| status.success()) {
            Some((pane, socket)) => {
                return Ok(TmuxWindow { pane: pane.to_owned(), socket: socket.to_owned() });
            }
            None => reason = output,
        }
    }
    Err(Error::WindowFailed { reason })
}

/// Closes a window whose pane process `pid` has exited, since tmux's option `remain-on-exit` leaves such a
/// window open.
pub(crate) fn close_window(window: &TmuxWindow, pid: u32) {
    let Ok(tmux) = find_tmux() else { return };
    let tmux_on_socket = || tmux_call(&tmux, Path::new("/")).args(["-S", &window.socket]);
    let pane_pid =
        tmux_on_socket().args(["display-message", "-p", "-t", &window.pane, "#{pane_pid}"]).run_with_output();
    // A new tmux server numbers its panes from the start, so the pane may be another one.
    if pane_pid.is_ok_and(|(_, out)| String::from_utf8_lossy(&out).trim() == pid.to_string()) {
        drop(tmux_on_socket().args(["kill-pane", "-t", &window.pane]).run_with_output());
    }
}

/// Captures the screen of the tmux pane that this process runs in, with some lines of its scrollback. `None`
/// without a pane, or when it was closed or is empty.
pub(crate) fn capture_own_window() -> Option<String> {
    let (server, pane) = (std::env::var("TMUX").ok()?, std::env::var("TMUX_PANE").ok()?);
    let (socket, tmux) = (server.split(',').next()?, find_tmux().ok()?);
    let query_tmux = |args: &[&str]| {
        let command = tmux_call(&tmux, Path::new("/")).args(["-S", socket]).args(args.iter().copied());
        let output = command.run_captured(Vec::new(), TMUX_READ_LIMITS, &|| false);
        output.outcome.is_ok_and(limited_process::ExitOutcome::is_success).then_some(output.output)
    };
    // A new tmux server numbers its panes from the start, so the pane may be another one.
    let pid = query_tmux(&["display-message", "-p", "-t", &pane, "#{pane_pid}"])?;
    let is_own = pid == std::process::id().to_string();
    let screen = is_own
        .then(|| query_tmux(&["capture-pane", "-p", "-J", "-S", CAPTURE_START_LINE, "-t", &pane]))
        .flatten()?;
    (!screen.is_empty()).then(|| format!("{screen}\n"))
}

/// Commands that attach a terminal to a lane's window.
pub struct AttachCommands(Vec<CommandBuilder>);

/// Returns the commands that attach to the window of a lane's agent.
///
/// # Errors
/// Returns [`Error::NoWindow`] when there is no window.
pub fn attach_commands(project: &Project, lane: &AnyLane) -> Result<AttachCommands, Error> {
    let no_window = || Error::NoWindow { lane: lane.name.clone() };
    let (state, _) = effective_state(project, lane)?;
    if !state.is_claimed() && state != proq_store::records::lane_state::LaneState::Orphaned {
        return Err(no_window());
    }
    let run = RunRecord::load_if_exists(&project.store.layout().run_record(&lane.name, lane.last_run))?;
    let window = run.and_then(|run| run.window).ok_or_else(no_window)?;
    let tmux = find_tmux()?;
    let tmux_command = |args: &[&str]| {
        let command = tmux_call(&tmux, project.repo.command_dir()).args(["-S", &window.socket]);
        command.args(args.iter().copied())
    };
    let pane = window.pane.as_str();
    let is_same_server =
        std::env::var("TMUX").is_ok_and(|there| there.split(',').next() == Some(&window.socket));
    let last = match is_same_server {
        true => tmux_command(&["switch-client", "-t", pane]),
        false => tmux_command(&["attach-session", "-t", pane]).without_vars(&["TMUX", "TMUX_PANE"]),
    };
    Ok(AttachCommands(vec![
        tmux_command(&["select-window", "-t", pane]),
        tmux_command(&["select-pane", "-t", pane]),
        last,
    ]))
}

impl AttachCommands {
    /// Attaches this process's terminal to the window, and returns when the user has detached it.
    ///
    /// # Errors
    /// Returns [`Error::NoTerminal`] without a terminal, and [`Error::WindowFailed`] when tmux refuses.
    pub fn attach(self, has_terminal: bool) -> Result<(), Error> {
        if !has_terminal {
            return Err(Error::NoTerminal);
        }
        let mut commands = self.0;
        let last = commands.pop();
        for command in commands {
            let (status, out) = command.run_with_output()?;
            if !status.success() {
                return Err(Error::WindowFailed { reason: String::from_utf8_lossy(&out).trim().to_owned() });
            }
        }
        match last.map(CommandBuilder::run_on_terminal).transpose()? {
            Some(status) if !status.success() => {
                Err(Error::WindowFailed { reason: "tmux refused".to_owned() })
            }
            _ => Ok(()),
        }
    }
}

/// Prepares a call of tmux. The call may start a tmux server that outlives the run, so it has no process
/// mark.
fn tmux_call(tmux: &Path, dir: &Path) -> CommandBuilder {
    CommandBuilder::new(tmux, dir).env(RUN_MARK_VAR, "").without_vars(RUN_CONTEXT_VARS)
}

/// Returns the name of a repository's tmux session, with characters that have no special meaning to tmux.
fn session_name_of(main_checkout: &Path) -> String {
    let name = main_checkout.file_name().unwrap_or_default().to_string_lossy();
    let replace_special = |c: char| if c.is_alphanumeric() || c == '-' { c } else { '_' };
    format!("proq-{}", name.chars().map(replace_special).collect::<String>())
}

/// Escapes a folder for tmux, which expands the text after a `#`.
fn escape_dir(path: &Path) -> OsString {
    let doubled = path.as_os_str().as_bytes().iter().flat_map(|b| match b {
        b'#' => vec![b'#', b'#'],
        b => vec![*b],
    });
    escape_arg(&OsString::from_vec(doubled.collect()))
}

/// Escapes an argument for tmux, which takes a `;` at the end of one for the end of its command.
fn escape_arg(text: &OsStr) -> OsString {
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
    fn escapes_names_for_tmux() {
        assert_eq!(session_name_of(Path::new("/a/my.repo:x")), "proq-my_repo_x");
        assert_eq!(escape_dir(Path::new("/a #{b};")), "/a ##{b}\\;");
        assert_eq!(escape_arg(OsStr::new("a;b")), "a;b");
    }
}
