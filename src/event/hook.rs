//! Owns running one hook: what it is told, its time, and what it says.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use serde_json::Value;

use super::trigger::OF_THE_RUN;
use super::{Command, Event};
use crate::process::{Ended, Start};
use crate::store::{Store, now};

/// So much of what a hook says is kept.
const WORDS: u64 = 64 * 1024;

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
    pub(super) fn event(event: &Event, dir: &Path) -> About {
        let mut env = vec![
            ("PROQ_EVENT", event.name.text()),
            ("PROQ_EVENT_N", event.n.to_string()),
            ("PROQ_MESSAGE", event.message.clone()),
        ];
        env.extend(event.lane.clone().map(|lane| ("PROQ_LANE", lane)));
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
pub(crate) struct Ran {
    /// How it ended; an error when it could not be started.
    pub(crate) ended: Result<Ended, String>,
    /// The beginning of what it wrote.
    pub(crate) words: String,
}

impl Ran {
    /// Whether it ended well.
    pub(crate) fn is_success(&self) -> bool {
        self.ended.as_ref().is_ok_and(|ended| ended.is_success())
    }

    /// How it ended, in words.
    pub(crate) fn end(&self) -> String {
        match &self.ended {
            Ok(ended) => ended.to_string(),
            Err(why) => why.clone(),
        }
    }
}

/// Runs a hook to its end, at most for `limit`, in a process group of its own; whatever it leaves running in that group ends
/// with it. It is ended early when `stop` says so.
pub(crate) fn run(hook: &Hook, about: &About, limit: Duration, stop: &dyn Fn() -> bool) -> Ran {
    match try_run(hook, about, limit, stop) {
        Ok(ran) => ran,
        Err(e) => Ran { ended: Err(e), words: String::new() },
    }
}

fn try_run(hook: &Hook, about: &About, limit: Duration, stop: &dyn Fn() -> bool) -> Result<Ran, String> {
    let failed = |e: std::io::Error| e.to_string();
    let (stdin, mut tell) = std::io::pipe().map_err(failed)?;
    let (hear, stdout) = std::io::pipe().map_err(failed)?;
    let stderr = stdout.try_clone().map_err(failed)?;
    let file = |end: OwnedFd| File::from(end);
    let start = match hook {
        Hook::Line(command) => Start::new(Path::new("sh"), &about.dir).args(["-c", command.line.as_str()]),
        Hook::File(path) => Start::new(path, &about.dir),
        Hook::Program(path, args) => Start::new(path, &about.dir).args(args),
    };
    let mut start = start
        .without(OF_THE_RUN)
        .env("PROQ_REPO", &about.dir)
        // What it does with git-proq runs no hooks in its turn, or it might never end.
        .env("PROQ_NO_HOOKS", "1")
        .stdin(file(stdin.into()))
        .output(file(stdout.into()), file(stderr.into()));
    for (key, value) in &about.env {
        start = start.env(key, value.replace('\0', " "));
    }
    let mut watched = start.spawn_limited(limit, GRACE).map_err(|e| e.to_string())?;
    let line = format!("{}\n", about.json);
    // It need not read it, so nobody waits until it has.
    std::thread::spawn(move || drop(tell.write_all(line.as_bytes())));
    let words = Words::listen(hear);
    let mut pause = Duration::from_millis(1);
    let ended = loop {
        match watched.poll() {
            Ok(Some(ended)) => break Ok(ended),
            Ok(None) if stop() => break Err("interrupted".to_owned()),
            Ok(None) => {}
            Err(e) => break Err(e.to_string()),
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(40));
    };
    drop(watched);
    Ok(Ran { ended, words: words.so_far() })
}

/// What a hook says, while it says it.
struct Words {
    said: Arc<Mutex<Vec<u8>>>,
    over: mpsc::Receiver<()>,
}

impl Words {
    fn listen(mut from: std::io::PipeReader) -> Words {
        let said = Arc::new(Mutex::new(Vec::new()));
        let (tell, over) = mpsc::channel::<()>();
        let keep = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut some) {
                let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
                let left = usize::try_from(WORDS).unwrap_or(usize::MAX).saturating_sub(kept.len());
                kept.extend_from_slice(&some[..count.min(left)]);
            }
            drop(tell);
        });
        Words { said, over }
    }

    /// All of it, or what there is when a process that left the group still holds the pipe.
    fn so_far(&self) -> String {
        let _over = self.over.recv_timeout(GRACE);
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).trim_end().to_owned()
    }
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
