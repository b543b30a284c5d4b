//! Execution of one hook: its input, its timeout and its output.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proq_base::lane_name::LaneName;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::run_captured::{CaptureOptions, CaptureResult};
use proq_base::process::strays::RUN_CONTEXT_VARS;
use proq_store::Store;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::records::lane::AnyLane;
use proq_store::records::ports::Ports;
use serde_json::Value;

use super::approval::ShellCommand;
use super::log::Event;

/// Maximum number of bytes kept of a hook's output.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// Size in bytes at which the log is rotated.
const MAX_LOG_BYTES: u64 = 1024 * 1024;

/// Time that a hook gets to exit after it was requested to stop.
const TERMINATION_GRACE: Duration = Duration::from_secs(2);

/// Program that git-proq runs as a hook of its own, for an event or before an action that it may refuse. Not a
/// hook of git or of an agent.
#[derive(Debug, Clone)]
pub enum Hook {
    /// Command line for the shell, from the settings.
    Shell(ShellCommand),
    /// Executable in `proq/hooks/`.
    Executable(PathBuf),
    /// Program with its arguments, such as a desktop notifier.
    Program(PathBuf, Vec<String>),
}

impl Hook {
    /// Returns how the hook log names the hook: by its command line or its path.
    pub fn label(&self) -> String {
        match self {
            Hook::Shell(command) => command.line.clone(),
            Hook::Executable(path) | Hook::Program(path, _) => path.display().to_string(),
        }
    }
}

/// Input and working folder of a hook.
#[derive(Debug, Clone)]
pub struct HookContext {
    /// JSON for standard input, written as one line.
    pub json: Value,
    /// Environment variables.
    pub env: Vec<(&'static str, String)>,
    /// Working folder.
    pub dir: PathBuf,
}

impl HookContext {
    /// Creates the context of a hook for an event.
    pub(super) fn for_event(store: &Store, event: &Event, dir: &Path) -> HookContext {
        let mut env = vec![
            ("PROQ_EVENT", event.name.to_text()),
            ("PROQ_EVENT_N", event.n.to_string()),
            ("PROQ_MESSAGE", event.message.clone()),
        ];
        if let Some(lane) = &event.lane {
            env.push(("PROQ_LANE", lane.clone()));
            // A removed lane has no ports.
            let name = LaneName::parse(lane).ok();
            let record = name
                .and_then(|name| AnyLane::load_if_exists(&store.layout().lane_record(&name)).ok().flatten());
            env.extend(record.and_then(|lane| lane.ports).into_iter().flat_map(Ports::variables));
        }
        env.extend(event.state.clone().map(|state| ("PROQ_STATE", state)));
        env.extend(event.other.clone().map(|other| ("PROQ_OTHER", other)));
        HookContext { json: event_json(event), env, dir: dir.to_owned() }
    }
}

/// Returns an event as `events --follow --json` prints it.
pub(super) fn event_json(event: &Event) -> Value {
    let mut json = serde_json::to_value(event).unwrap_or_default();
    if let Some(map) = json.as_object_mut() {
        map.insert("schema".to_owned(), 1.into());
    }
    json
}

/// Exit and output of a hook.
#[derive(Debug)]
pub struct HookResult(CaptureResult);

impl HookResult {
    /// Returns whether the hook succeeded.
    pub fn is_success(&self) -> bool {
        self.0.outcome.as_ref().is_ok_and(|ended| ended.is_success())
    }

    /// Describes how the hook exited.
    pub fn exit_text(&self) -> String {
        match &self.0.outcome {
            Ok(ended) => ended.to_string(),
            Err(why) => why.clone(),
        }
    }

    /// Returns the start of the hook's output.
    pub fn output(&self) -> &str {
        &self.0.output
    }
}

/// Runs a hook in a separate process group, for `limit` at most. When the hook exits, all other processes of
/// the group are terminated. The hook is terminated early when `should_stop` returns true.
pub fn run(
    hook: &Hook,
    context: &HookContext,
    limit: Duration,
    should_stop: &dyn Fn() -> bool,
) -> HookResult {
    let start = match hook {
        Hook::Shell(command) => {
            CommandBuilder::new(Path::new("sh"), &context.dir).args(["-c", command.line.as_str()])
        }
        Hook::Executable(path) => CommandBuilder::new(path, &context.dir),
        Hook::Program(path, args) => CommandBuilder::new(path, &context.dir).args(args),
    };
    let mut start = start
        .without_vars(RUN_CONTEXT_VARS)
        .env("PROQ_REPO", &context.dir)
        // Its git-proq commands run no hooks, because the chain might never end.
        .env("PROQ_NO_HOOKS", "1");
    for (key, value) in &context.env {
        start = start.env(key, value.replace('\0', " "));
    }
    let input = format!("{}\n", context.json);
    HookResult(start.run_captured(
        input.into_bytes(),
        CaptureOptions { limit, grace: TERMINATION_GRACE, max_output_bytes: MAX_OUTPUT_BYTES },
        should_stop,
    ))
}

/// Appends an entry to the log of hooks: the event, the hook, the outcome and the output.
pub fn log(store: &Store, event_label: &str, hook_label: &str, outcome: &str, output: &str) {
    let path = store.layout().hook_log();
    if path.metadata().is_ok_and(|meta| meta.len() > MAX_LOG_BYTES) {
        drop(std::fs::rename(&path, store.layout().previous_hook_log()));
    }
    let mut text = format!("{} {event_label}: {hook_label}: {outcome}\n", now());
    for line in output.lines() {
        text.push_str(&format!("    {line}\n"));
    }
    let file = File::options().append(true).create(true).open(&path);
    // The log only helps the user to find a reason; a failed write must not delay an event.
    drop(file.and_then(|mut file| file.write_all(text.as_bytes())));
}

/// Returns whether a file exists and is executable.
pub(super) fn is_executable_file(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
