//! Terminal output: results on stdout, messages on stderr, colors only if supported. A closed pipe is no
//! error.

use std::borrow::Borrow;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use console::{Style, style};
use proq_base::diagnostics::{Listener, Note};
use proq_base::explain::without_os_codes;
use proq_base::hint::Hint;
use proq_base::terminal_text;
use proq_base::terminal_text::Printable;
pub(crate) use proq_base::time_form::short_duration;
use proq_lib::board::pager::show_in_pager;
use proq_lib::event::log::Event;
use proq_lib::event::terminal;
use proq_lib::lane::Project;
use proq_lib::types::{Activity, LaneState, Moment, now};
use serde::Serialize;
use serde_json::Value;

use super::page::{Held, Stream};
use super::table::{Column, output_width};
use super::{page, prose, table};

/// Whether the last line on stderr is a progress line, which the next message replaces.
static IS_PROGRESS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Maximum number of warnings that [`Ui::warn_each`] prints; the others are only counted.
const MAX_WARNINGS_PRINTED: usize = 20;

/// Output options of one command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ui {
    /// Whether the result of the command is printed as JSON.
    pub(crate) json: bool,
    /// Whether only results, warnings and errors are printed.
    pub(crate) quiet: bool,
    /// Whether details of the work are printed too.
    pub(crate) verbose: bool,
}

/// When output is colored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// In files and pipes too.
    Always,
    /// Only on terminals.
    Auto,
    /// Nowhere.
    Never,
}

/// Whether the command line or the environment has decided about colors, so that git's settings do not count.
static ARE_COLORS_DECIDED: AtomicBool = AtomicBool::new(false);

/// Decides about colors, for stdout and stderr, by the environment. `NO_COLOR` counts if it is set and not empty.
pub(crate) fn set_up_colors() {
    let is_disabled = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
        || std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    let is_forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|v| !v.is_empty() && v != "0");
    ARE_COLORS_DECIDED.store(is_disabled || is_forced, Ordering::Relaxed);
    choose_colors(match (is_disabled, is_forced) {
        (true, _) => ColorChoice::Never,
        (false, true) => ColorChoice::Always,
        (false, false) => ColorChoice::Auto,
    });
}

/// Applies `--color`, which counts more than the environment and git's settings.
pub(crate) fn apply_color_option(choice: ColorChoice) {
    ARE_COLORS_DECIDED.store(true, Ordering::Relaxed);
    choose_colors(choice);
}

/// Applies git's setting `color.ui`, if nothing else has decided about colors.
pub(crate) fn apply_color_setting(value: Option<&str>) {
    let choice = match value {
        Some("always") => ColorChoice::Always,
        Some("never" | "false" | "no" | "off" | "0") => ColorChoice::Never,
        _ => return,
    };
    if !ARE_COLORS_DECIDED.load(Ordering::Relaxed) {
        choose_colors(choice);
    }
}

fn choose_colors(choice: ColorChoice) {
    let is_colored =
        |is_terminal: bool| choice == ColorChoice::Always || choice == ColorChoice::Auto && is_terminal;
    console::set_colors_enabled(is_colored(std::io::stdout().is_terminal()));
    console::set_colors_enabled_stderr(is_colored(std::io::stderr().is_terminal()));
}

/// Returns whether stderr is a terminal, which a user may be watching.
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

impl Ui {
    /// Prints one line of the command's result to stdout, with control characters neutralized. A terminal gets it
    /// wrapped at words.
    pub(crate) fn print_line(self, line: impl AsRef<str>) {
        write_wrapped(Stream::Out, line.as_ref(), prose::wrap);
    }

    /// Prints a hint as a line of the command's result.
    pub(crate) fn print_hint_line(self, hint: impl Display) {
        write_wrapped(Stream::Out, &format!("{} {hint}", style("hint:").cyan()), prose::wrap_hint);
    }

    /// Prints one line that is to be copied, or that another program wrote, as [`Ui::print_line`] without wrapping.
    pub(crate) fn print_verbatim(self, line: impl AsRef<str>) {
        write_line(Stream::Out, &Printable::escape(line.as_ref(), console::colors_enabled()));
    }

    /// Prints a table as the result of the command, or the status `if_empty` if it has no rows.
    pub(crate) fn print_table(self, columns: &[Column], rows: Vec<Vec<String>>, if_empty: &str) {
        match rows.is_empty() {
            true => self.status(if_empty),
            false => self.print_line(table::render(columns, rows)),
        }
    }

    /// Prints a sentence of the command's result, wrapped at words to the width that tables are fitted to.
    pub(crate) fn print_wrapped(self, text: &str) {
        let text = Printable::escape(text, console::colors_enabled());
        match output_width() {
            Some(width) => self.print_verbatim(prose::wrap(text.as_str(), width.saturating_sub(1))),
            None => self.print_verbatim(text.as_str()),
        }
    }

    /// Prints a text, wrapped at words; lines after the first are indented by `indent` blanks.
    fn print_hanging(self, text: &str, indent: usize) {
        let text = Printable::escape(text, console::colors_enabled());
        match output_width() {
            Some(width) => {
                self.print_line(table::wrap_hanging(text.as_str(), width.saturating_sub(1), indent));
            }
            None => self.print_line(text.as_str()),
        }
    }

    /// Prints a field of the command's result behind its label. A field without a label continues the one before.
    pub(crate) fn print_field(self, label: &str, value: impl Display) {
        self.print_hanging(&format!("{} {value}", style(format!("{label:<10}")).dim()), 11);
    }

    /// Prints each item on a line of the command's result, behind `indent`.
    pub(crate) fn print_each(self, indent: &str, items: impl IntoIterator<Item = impl Display>) {
        items.into_iter().for_each(|item| self.print_line(format!("{indent}{item}")));
    }

    /// Prints the last lines of another program's output, without colors and indented.
    pub(crate) fn print_tail(self, lines: &[String]) {
        for line in lines {
            self.print_verbatim(format!("    {}", console::strip_ansi_codes(line)));
        }
    }

    /// Prints text of the command's result: to a terminal line by line with control characters neutralized,
    /// to a file or a pipe unchanged.
    pub(crate) fn print_text(self, text: &str) {
        match std::io::stdout().is_terminal() {
            true => terminal_text::escape_lines(text).for_each(|line| self.print_verbatim(line)),
            false => self.print_bytes(text.as_bytes()),
        }
    }

    /// Prints bytes of the command's result unchanged. The caller is responsible for control sequences that a
    /// terminal would obey.
    pub(crate) fn print_bytes(self, bytes: &[u8]) {
        write_bytes(Stream::Out, bytes);
    }

    /// Prints the entire result of the command as one JSON object; adds the key `schema`.
    pub(crate) fn print_json(self, body: impl Serialize) {
        write_json(&json_text(body));
    }

    /// Prints a long result as one JSON object: its fields keep their order, and `schema` comes last.
    pub(crate) fn print_ordered_json(self, body: impl Serialize) {
        write_json(&ordered_json_text(body));
    }

    /// Prints one JSON object on one line, for streams; adds the key `schema`.
    pub(crate) fn print_json_line(self, body: impl Serialize) {
        write_json(&Printable::escape_json(&json_value(body).to_string()));
    }

    /// Prints a status message to stderr, unless `--quiet` is given.
    pub(crate) fn status(self, line: impl AsRef<str>) {
        if !self.quiet {
            write_wrapped(Stream::Err, &without_os_codes(line.as_ref()), prose::wrap);
        }
    }

    /// Prints a status message of little importance, dimmed.
    pub(crate) fn dim_status(self, line: impl Display) {
        self.status(style(line).dim().for_stderr().to_string());
    }

    /// Prints a warning to stderr, even with `--quiet`.
    pub(crate) fn warn(self, line: impl AsRef<str>) {
        warn(line.as_ref());
    }

    /// Prints the first [`MAX_WARNINGS_PRINTED`] warnings, and how many more there are.
    pub(crate) fn warn_each(self, warnings: &[impl ToString]) {
        warnings.iter().take(MAX_WARNINGS_PRINTED).for_each(|warning| self.warn(warning.to_string()));
        if warnings.len() > MAX_WARNINGS_PRINTED {
            self.warn(format!("and {} more like these", warnings.len() - MAX_WARNINGS_PRINTED));
        }
    }

    /// Makes the terminal notify the user of an event, if stderr is a terminal and the settings enable it.
    pub(crate) fn notify_terminal(self, project: &Project, event: &Event) {
        if stderr_is_terminal() {
            let sequence =
                terminal::terminal_sequences(&project.settings.notify, event, project.repo.command_dir());
            let mut out = std::io::stderr().lock();
            drop(out.write_all(sequence.as_bytes()).and_then(|()| out.flush()));
        }
    }

    /// Prints a hint about what can be done next; not with `--json` or `--quiet`.
    pub(crate) fn hint(self, hint: impl Borrow<Hint>) {
        if !self.json && !self.quiet {
            let hint: &Hint = hint.borrow();
            print_hint(hint);
        }
    }

    /// Returns the listener that receives warnings and progress from the other modules and prints them.
    pub(crate) fn listener(self) -> Listener {
        Listener::new(move |note| {
            clear_progress();
            match note {
                Note::Warning(text) => warn(text),
                Note::Waiting(text) => self.dim_status(text),
                Note::StepDone(text) => self.status(text),
                Note::Detail(text) if self.verbose => self.status(text),
                Note::Detail(_) => {}
                Note::Progress(text) => self.show_progress(text),
            }
        })
    }

    /// Shows a progress line that the next message replaces. Only if stderr is a terminal.
    fn show_progress(self, text: &str) {
        let is_dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        if self.quiet || self.json || is_dumb || text.is_empty() || !stderr_is_terminal() {
            return;
        }
        let width = usize::from(console::Term::stderr().size().1).saturating_sub(1);
        let text = terminal_text::escape_line(text);
        let line = console::truncate_str(&text, width, "…");
        let mut out = std::io::stderr().lock();
        drop(write!(out, "{}", style(line).dim().for_stderr()).and_then(|()| out.flush()));
        IS_PROGRESS_SHOWN.store(true, Ordering::Relaxed);
    }
}

/// Erases the progress line, if one is shown.
fn clear_progress() {
    if IS_PROGRESS_SHOWN.swap(false, Ordering::Relaxed) {
        drop(write!(std::io::stderr().lock(), "\r\x1b[2K"));
    }
}

/// Prints a warning to stderr.
pub(crate) fn warn(text: &str) {
    let line = format!("{} {}", style("warning:").yellow().for_stderr(), without_os_codes(text));
    write_wrapped(Stream::Err, &line, prose::wrap);
}

/// Prints a hint to stderr.
pub(crate) fn print_hint(text: &str) {
    let line = format!("{} {text}", style("hint:").cyan().for_stderr());
    write_wrapped(Stream::Err, &line, prose::wrap_hint);
}

/// Prints an error line to stderr.
pub(crate) fn print_error(prefix: &str, text: &str, with_color: bool) {
    // The operation that showed the progress line may have failed with this very error.
    clear_progress();
    let styled_prefix =
        if with_color { style(prefix).red().bold().for_stderr().to_string() } else { prefix.to_owned() };
    write_wrapped(Stream::Err, &format!("{styled_prefix} {text}"), prose::wrap);
}

/// Prints text to stderr without adding a line end, so that the cursor can stay behind a question.
pub(crate) fn print_inline(text: &str) {
    let mut out = std::io::stderr().lock();
    drop(out.write_all(printable_for_stderr(text).as_str().as_bytes()).and_then(|()| out.flush()));
}

/// Prints a line to stdout. Unlike [`Ui::print_line`], a closed pipe does not end the program.
pub(crate) fn try_print_line(line: &str) {
    let line = Printable::escape(line, console::colors_enabled());
    drop(writeln!(std::io::stdout(), "{}", line.as_str()));
}

/// Neutralizes control characters in a text for stderr; colors stay if stderr shows colors.
fn printable_for_stderr(text: &str) -> Printable {
    Printable::escape(text, console::colors_enabled_stderr())
}

/// Prints a text with control characters neutralized. A terminal gets it wrapped to its width by `wrap`.
fn write_wrapped(stream: Stream, text: &str, wrap: impl Fn(&str, usize) -> String) {
    let (text, terminal) = match stream {
        Stream::Out => (Printable::escape(text, console::colors_enabled()), console::Term::stdout()),
        Stream::Err => (printable_for_stderr(text), console::Term::stderr()),
    };
    let wrapped = prose::line_width(&terminal).map(|width| wrap(text.as_str(), width));
    write_bytes(stream, format!("{}\n", wrapped.as_deref().unwrap_or(text.as_str())).as_bytes());
}

fn write_line(stream: Stream, line: &Printable) {
    write_bytes(stream, format!("{}\n", line.as_str()).as_bytes());
}

fn write_bytes(stream: Stream, bytes: &[u8]) {
    fn write_to(mut out: impl Write, bytes: &[u8]) -> std::io::Result<()> {
        out.write_all(bytes).and_then(|()| out.flush())
    }
    match page::hold(stream, bytes) {
        Held::Back => return,
        Held::Not => {}
        Held::TooMuch(page) => page.parts.iter().for_each(|(stream, bytes)| write_bytes(*stream, bytes)),
    }
    match stream {
        Stream::Out => exit_on_failed_output(write_to(std::io::stdout().lock(), bytes)),
        // There is no place to report a failure.
        Stream::Err => exit_on_closed_pipe(&write_to(std::io::stderr().lock(), bytes)),
    }
}

/// Writes the output that was held back: in the user's pager if it is longer than the screen. `dir` is the folder
/// whose settings of git choose the pager.
pub(crate) fn end_page(dir: &Path) {
    let Some(page) = page::end() else { return };
    let is_paged =
        page.is_longer_than(console::Term::stdout().size()) && show_in_pager(dir, &page.text(Stream::Out));
    for (stream, bytes) in page.parts.iter().filter(|part| !is_paged || part.0 == Stream::Err) {
        write_bytes(*stream, bytes);
    }
}

/// Converts a result to JSON; adds the key `schema`.
pub(crate) fn json_value(body: impl Serialize) -> Value {
    let mut value = serde_json::to_value(body).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.insert("schema".to_owned(), 1.into());
    }
    value
}

/// Returns the text of a result as one JSON object with the key `schema`, with control characters escaped.
pub(crate) fn json_text(body: impl Serialize) -> Printable {
    Printable::escape_json(&serde_json::to_string_pretty(&json_value(body)).unwrap_or_default())
}

/// Returns the text of a long result as one JSON object, with control characters escaped: its fields keep
/// their order, and `schema` comes last.
pub(crate) fn ordered_json_text(body: impl Serialize) -> Printable {
    #[derive(Serialize)]
    struct WithSchema<T> {
        #[serde(flatten)]
        body: T,
        schema: u32,
    }
    let text = serde_json::to_string_pretty(&WithSchema { body, schema: 1 });
    Printable::escape_json(&text.unwrap_or_default())
}

fn write_json(text: &Printable) {
    write_line(Stream::Out, text);
}

/// Exits with code 0 if the pipe is closed: `git proq list | head -1` must not report an error, because the
/// request is fulfilled.
fn exit_on_closed_pipe(result: &std::io::Result<()>) {
    if result.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

/// Exits with an error if the result of the command could not be written, for example because the disk is full.
/// A closed pipe is none.
pub(crate) fn exit_on_failed_output(result: std::io::Result<()>) {
    exit_on_closed_pipe(&result);
    if let Err(e) = result {
        let reason = e.to_string();
        // The number adds nothing to the words.
        let reason = reason.split(" (os error").next().unwrap_or_default();
        print_error("error:", &format!("cannot write the output: {reason}"), true);
        std::process::exit(1);
    }
}

/// Removes colors and all control characters except tabs from a text.
pub(crate) fn strip_control_chars(text: &str) -> String {
    let without_ansi = console::strip_ansi_codes(text);
    without_ansi.chars().filter(|c| *c == '\t' || !c.is_control()).collect()
}

/// Returns the suffix for the state of a lane whose agent waits; none if the agent works or its activity is
/// unknown.
pub(crate) fn activity_suffix(activity: Activity) -> Option<&'static str> {
    match activity {
        Activity::NeedsApproval => Some(", needs approval"),
        Activity::Idle => Some(", idle"),
        Activity::Working | Activity::Unknown => None,
    }
}

/// Formats a lane state in its color. The word is clear without the color.
pub(crate) fn styled_state(state: LaneState) -> String {
    let color = match state {
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
    color.apply_to(state.to_string()).to_string()
}

/// Formats a count with its noun: `1 file`, `2 files`.
pub(crate) fn pluralize(n: impl Display, noun: &str) -> String {
    let n = n.to_string();
    if n == "1" { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Formats how long ago something happened: `4m ago`.
pub(crate) fn age(at: Moment) -> String {
    format!("{} ago", short_duration(now().duration_since(at)))
}

/// Formats the size of a difference: `+30 -1`, with the parts that are not zero; `0` for neither.
pub(crate) fn changed_lines(added: usize, removed: usize) -> String {
    let parts = [(added, Style::new().green(), '+'), (removed, Style::new().red(), '-')];
    let shown = parts.iter().filter(|(count, ..)| *count > 0);
    let parts: Vec<String> =
        shown.map(|(count, color, sign)| color.apply_to(format!("{sign}{count}")).to_string()).collect();
    if parts.is_empty() { "0".to_owned() } else { parts.join(" ") }
}

/// Returns the dimmed sign of a cell that has nothing to show.
pub(crate) fn none_sign() -> String {
    style("-").dim().to_string()
}

/// Formats a count in one short word: `999`, `97k`, `1.4M`.
pub(crate) fn short_count(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..10_000 if count % 1_000 >= 100 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn counts_and_changed_lines_are_short() {
        let counts = [(999, "999"), (1_000, "1k"), (1_200, "1.2k"), (97_000, "97k"), (1_450_000, "1.4M")];
        for (count, text) in counts {
            assert_eq!(short_count(count), text);
        }
        for (lines, text) in [((30, 1), "+30 -1"), ((0, 2), "-2"), ((4, 0), "+4"), ((0, 0), "0")] {
            assert_eq!(console::strip_ansi_codes(&changed_lines(lines.0, lines.1)), text);
        }
    }

    #[test]
    fn durations_are_short() {
        for (seconds, text) in [(0, "0s"), (59, "59s"), (60, "1m"), (7200, "2h"), (86400 * 3, "3d")] {
            assert_eq!(short_duration(Duration::from_secs(seconds)), text);
        }
    }
}
