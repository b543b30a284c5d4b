//! Owns running one hook: what it is told, its time, and what it says.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::{Command, Event};
use crate::process::{Heard, Hearing, OF_A_RUN, Start};
use crate::store::records::{AnyLane, Ports};
use crate::store::{Record, Store, now};

/// So much of what a hook says is kept.
const WORDS: usize = 64 * 1024;

/// A log of this size is put aside.
const LOG: u64 = 1024 * 1024;

/// How long a hook may take to end once it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// One thing to run.
#[derive(Debug, Clone)]
pub(crate) enum Hook {
    /// A line for the shell, from the settings.
    Line(Command),
    /// An executable of `proq/hooks/`.
    File(PathBuf),
    /// A program with its arguments.
    Program(PathBuf, Vec<String>),
}

impl Hook {
    /// What it is called in the log.
    pub(crate) fn called(&self) -> String {
        match self {
            Hook::Line(command) => command.line.clone(),
            Hook::File(path) | Hook::Program(path, _) => path.display().to_string(),
        }
    }
}

/// What a hook is told, and where it runs.
#[derive(Debug, Clone)]
pub(crate) struct About {
    /// What is on its standard input, one line.
    pub(crate) json: Value,
    /// Its variables.
    pub(crate) env: Vec<(&'static str, String)>,
    /// Its folder.
    pub(crate) dir: PathBuf,
}

impl About {
    /// About an event.
    pub(super) fn event(store: &Store, event: &Event, dir: &Path) -> About {
        let mut env = vec![
            ("PROQ_EVENT", event.name.text()),
            ("PROQ_EVENT_N", event.n.to_string()),
            ("PROQ_MESSAGE", event.message.clone()),
        ];
        if let Some(lane) = &event.lane {
            env.push(("PROQ_LANE", lane.clone()));
            // One that is gone has none.
            let record = AnyLane::find(&store.layout().lane_record(lane)).ok().flatten();
            env.extend(record.and_then(|lane| lane.port).into_iter().flat_map(Ports::variables));
        }
        env.extend(event.state.clone().map(|state| ("PROQ_STATE", state)));
        env.extend(event.other.clone().map(|other| ("PROQ_OTHER", other)));
        About { json: as_json(event), env, dir: dir.to_owned() }
    }
}

/// An event as `events --follow --json` prints it.
pub(super) fn as_json(event: &Event) -> Value {
    let mut json = serde_json::to_value(event).unwrap_or_default();
    if let Some(map) = json.as_object_mut() {
        map.insert("schema".to_owned(), 1.into());
    }
    json
}

/// How a hook ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ran(Heard);

impl Ran {
    /// Whether it ended well.
    pub(crate) fn is_success(&self) -> bool {
        self.0.ended.as_ref().is_ok_and(|ended| ended.is_success())
    }

    /// How it ended, in words.
    pub(crate) fn end(&self) -> String {
        match &self.0.ended {
            Ok(ended) => ended.to_string(),
            Err(why) => why.clone(),
        }
    }

    /// The beginning of what it wrote.
    pub(crate) fn words(&self) -> &str {
        &self.0.words
    }
}

/// Runs a hook to its end, at most for `limit`, in a process group of its own; whatever it leaves running in that group ends
/// with it. It is ended early when `stop` says so.
pub(crate) fn run(hook: &Hook, about: &About, limit: Duration, stop: &dyn Fn() -> bool) -> Ran {
    let start = match hook {
        Hook::Line(command) => Start::new(Path::new("sh"), &about.dir).args(["-c", command.line.as_str()]),
        Hook::File(path) => Start::new(path, &about.dir),
        Hook::Program(path, args) => Start::new(path, &about.dir).args(args),
    };
    let mut start = start
        .without(OF_A_RUN)
        .env("PROQ_REPO", &about.dir)
        // What it does with git-proq runs no hooks in its turn, or it might never end.
        .env("PROQ_NO_HOOKS", "1");
    for (key, value) in &about.env {
        start = start.env(key, value.replace('\0', " "));
    }
    let line = format!("{}\n", about.json);
    Ran(start.hear(line.into_bytes(), Hearing { limit, grace: GRACE, most: WORDS }, stop))
}

/// Writes to the log of hooks: what was run, at what, and what came of it.
pub(crate) fn log(store: &Store, at: &str, what: &str, came_of_it: &str, words: &str) {
    let path = store.layout().hook_log();
    if path.metadata().is_ok_and(|meta| meta.len() > LOG) {
        drop(std::fs::rename(&path, path.with_extension("log.1")));
    }
    let mut text = format!("{} {at}: {what}: {came_of_it}\n", now());
    for line in words.lines() {
        text.push_str(&format!("    {line}\n"));
    }
    let file = File::options().append(true).create(true).open(&path);
    // It is for a person who looks for a reason; no event is held up because it cannot be written.
    drop(file.and_then(|mut file| file.write_all(text.as_bytes())));
}
