//! Owns the terminal: answers on stdout, talk on stderr, colours only where they are wanted, a closed pipe no error.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use console::{Style, style};
use serde::Serialize;

use crate::event::{self, Event};
use crate::harmless::{self, Printable};
use crate::lane::Project;
use crate::note::{Listener, Note};
use crate::store::records::{Activity, LaneState};

/// Whether the last line on stderr is one that the next remark takes the place of.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// How many remarks on one input are printed.
const WARNED: usize = 20;

/// How one command talks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ui {
    /// Answers are JSON.
    pub(crate) json: bool,
    /// Nothing but answers and errors.
    pub(crate) quiet: bool,
    /// Also how things were done.
    pub(crate) verbose: bool,
}

/// Decides about colours once, for both streams. `NO_COLOR` counts when it is set and not empty.
pub(crate) fn set_up_colours() {
    let wanted = |tty: bool| {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|v| !v.is_empty() && v != "0");
        !refused && (tty || forced)
    };
    console::set_colors_enabled(wanted(std::io::stdout().is_terminal()));
    console::set_colors_enabled_stderr(wanted(std::io::stderr().is_terminal()));
}

/// Whether a person looks at stderr.
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

impl Ui {
    /// One line of the answer.
    pub(crate) fn answer(self, line: impl AsRef<str>) {
        put(&mut std::io::stdout().lock(), &Printable::of(line.as_ref(), console::colors_enabled()));
    }

    /// Text of the answer: to a terminal line by line and printable, to a file or a pipe as it is.
    pub(crate) fn text(self, text: &str) {
        match std::io::stdout().is_terminal() {
            true => harmless::lines(text).for_each(|line| self.answer(line)),
            false => self.raw(text.as_bytes()),
        }
    }

    /// Bytes of the answer, as they are. Whoever calls it sees to what a terminal would obey.
    pub(crate) fn raw(self, bytes: &[u8]) {
        let mut out = std::io::stdout().lock();
        end_on_closed_pipe(out.write_all(bytes).and_then(|()| out.flush()));
    }

    /// The whole answer as one JSON object; `schema` is added.
    pub(crate) fn object(self, body: impl Serialize) {
        let mut value = serde_json::to_value(body).unwrap_or_default();
        if let Some(map) = value.as_object_mut() {
            map.insert("schema".to_owned(), 1.into());
        }
        put_json(&serde_json::to_string_pretty(&value).unwrap_or_default());
    }

    /// The same for an answer that may be long: its fields come in their own order, and `schema` last.
    pub(crate) fn long_object(self, body: impl Serialize) {
        #[derive(Serialize)]
        struct Whole<T> {
            #[serde(flatten)]
            body: T,
            schema: u32,
        }
        put_json(&serde_json::to_string_pretty(&Whole { body, schema: 1 }).unwrap_or_default());
    }

    /// One JSON object on one line, for streams.
    pub(crate) fn object_line(self, body: impl Serialize) {
        let mut value = serde_json::to_value(body).unwrap_or_default();
        if let Some(map) = value.as_object_mut() {
            map.insert("schema".to_owned(), 1.into());
        }
        put_json(&value.to_string());
    }

    /// A line of talk.
    pub(crate) fn say(self, line: impl AsRef<str>) {
        if !self.quiet {
            put(&mut std::io::stderr().lock(), &to_stderr(line.as_ref()));
        }
    }

    /// A warning, always said.
    pub(crate) fn warn(self, line: impl AsRef<str>) {
        warn(line.as_ref());
    }

    /// Warns of the first of these, and of how many more there are.
    pub(crate) fn warn_of(self, remarks: &[impl ToString]) {
        remarks.iter().take(WARNED).for_each(|remark| self.warn(remark.to_string()));
        if remarks.len() > WARNED {
            self.warn(format!("and {} more like these", remarks.len() - WARNED));
        }
    }

    /// Has the terminal tell of an event, if this process has one and the settings want it.
    pub(crate) fn signal(self, project: &Project, event: &Event) {
        if stderr_is_terminal() {
            let told = event::signal(&project.settings.notify, event, project.repo.home());
            let mut out = std::io::stderr().lock();
            drop(out.write_all(told.as_bytes()).and_then(|()| out.flush()));
        }
    }

    /// What can be done next.
    pub(crate) fn hint(self, line: impl AsRef<str>) {
        if !self.json {
            self.say(format!("{} {}", style("hint:").cyan().for_stderr(), line.as_ref()));
        }
    }

    /// The listener that the domain talks to.
    pub(crate) fn listener(self) -> Listener {
        Listener::new(move |note| {
            clear_progress();
            match note {
                Note::Warning(text) => warn(text),
                Note::Waiting(text) => self.say(format!("{}", style(text).dim().for_stderr())),
                Note::Step(text) => self.say(text),
                Note::Detail(text) if self.verbose => self.say(text),
                Note::Detail(_) => {}
                Note::Progress(text) => self.progress(text),
            }
        })
    }

    /// One line that the next remark takes the place of. Only for a person who looks.
    fn progress(self, text: &str) {
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        if self.quiet || self.json || dumb || text.is_empty() || !stderr_is_terminal() {
            return;
        }
        let width = usize::from(console::Term::stderr().size().1).saturating_sub(1);
        let text = harmless::line(text);
        let line = console::truncate_str(&text, width, "…");
        let mut out = std::io::stderr().lock();
        drop(write!(out, "{}", style(line).dim().for_stderr()).and_then(|()| out.flush()));
        SHOWN.store(true, Ordering::Relaxed);
    }
}

/// Takes away the line of progress, if one is shown.
fn clear_progress() {
    if SHOWN.swap(false, Ordering::Relaxed) {
        drop(write!(std::io::stderr().lock(), "\r\x1b[2K"));
    }
}

/// A warning on stderr.
pub(crate) fn warn(text: &str) {
    let line = format!("{} {text}", style("warning:").yellow().for_stderr());
    put(&mut std::io::stderr().lock(), &to_stderr(&line));
}

/// An error line on stderr.
pub(crate) fn error_line(head: &str, text: &str, colour: bool) {
    // Whoever showed it may have ended with this very error.
    clear_progress();
    let head = if colour { style(head).red().bold().for_stderr().to_string() } else { head.to_owned() };
    put(&mut std::io::stderr().lock(), &to_stderr(&format!("{head} {text}")));
}

/// Text on stderr that has its own line ends, or none where the cursor is to stay behind it.
pub(crate) fn part(text: &str) {
    let mut out = std::io::stderr().lock();
    drop(out.write_all(to_stderr(text).as_str().as_bytes()).and_then(|()| out.flush()));
}

/// A line of the answer, where nobody reading any more must not end the program.
pub(crate) fn show(line: &str) {
    let line = Printable::of(line, console::colors_enabled());
    drop(writeln!(std::io::stdout(), "{}", line.as_str()));
}

/// Makes a text printable on stderr, with its colors where stderr shows colors.
fn to_stderr(text: &str) -> Printable {
    Printable::of(text, console::colors_enabled_stderr())
}

fn put(out: &mut impl Write, line: &Printable) {
    let line = line.as_str().as_bytes();
    let written = out.write_all(line).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    end_on_closed_pipe(written);
}

fn put_json(text: &str) {
    put(&mut std::io::stdout().lock(), &Printable::json(text));
}

/// `git proq list | head -1` must be quiet about the pipe that `head` closed: what was asked for is done.
fn end_on_closed_pipe(written: std::io::Result<()>) {
    if written.is_err_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

/// Text without what would act on a terminal: colours, and every control character but tabs.
pub(crate) fn printable(text: &str) -> String {
    let plain = console::strip_ansi_codes(text);
    plain.chars().filter(|c| *c == '\t' || !c.is_control()).collect()
}

/// What is told beside a state of an agent that does not work.
pub(super) fn pause(activity: Activity) -> Option<&'static str> {
    match activity {
        Activity::NeedsApproval => Some(", needs approval"),
        Activity::Idle => Some(", idle"),
        Activity::Working | Activity::Unknown => None,
    }
}

/// A state in its colour; the word alone says it too.
pub(crate) fn state(state: LaneState) -> String {
    let colour = match state {
        LaneState::Running | LaneState::Starting => Style::new().blue(),
        LaneState::Done | LaneState::Landed => Style::new().green(),
        LaneState::Failed | LaneState::Stalled | LaneState::Orphaned | LaneState::CheckFailed => {
            Style::new().red()
        }
        LaneState::Conflict => Style::new().yellow(),
        LaneState::Idle | LaneState::NoChange | LaneState::Stopped | LaneState::Discarded => {
            Style::new().dim()
        }
    };
    colour.apply_to(state.to_string()).to_string()
}

/// `n file`, `n files`.
pub(crate) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// A time span as one short word: `12s`, `5m`, `3h`, `2d`.
pub(crate) fn span(time: std::time::Duration) -> String {
    match time.as_secs() {
        s @ 0..60 => format!("{s}s"),
        s @ 60..3600 => format!("{}m", s / 60),
        s @ 3600..86400 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86400),
    }
}

/// A number of bytes as a person reads it: `512 B`, `20 kB`, `1.4 MB`.
pub(crate) fn size(bytes: u64) -> String {
    let mut unit = 1_000;
    if bytes < unit {
        return format!("{bytes} B");
    }
    for name in ["kB", "MB", "GB"] {
        let tenths = bytes / (unit / 10);
        if tenths < 100 {
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
        if tenths < 10_000 {
            return format!("{} {name}", tenths / 10);
        }
        unit *= 1_000;
    }
    format!("{} TB", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (4096, "4.0 kB"),
            (20_480, "20 kB"),
            (999_999, "999 kB"),
            (1_400_000, "1.4 MB"),
            (3_000_000_000, "3.0 GB"),
            (5_000_000_000_000, "5 TB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn spans_are_short() {
        for (seconds, text) in [(0, "0s"), (59, "59s"), (60, "1m"), (7200, "2h"), (86400 * 3, "3d")] {
            assert_eq!(span(Duration::from_secs(seconds)), text);
        }
    }
}
