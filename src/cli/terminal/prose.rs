//! Sentences on a terminal: wrapped at words, with a command to paste on a line of its own.

use console::{Term, measure_text_width};

use super::table::columns_variable;

/// Number of blanks before the lines that continue a line.
const HANGING_INDENT: usize = 4;

/// Programs of the commands that hints have behind their purpose.
const PROGRAMS: [&str; 24] = [
    "brew",
    "cargo",
    "cat",
    "cd",
    "chattr",
    "chmod",
    "chown",
    "curl",
    "df",
    "echo",
    "export",
    "git",
    "head",
    "kill",
    "ls",
    "lsof",
    "mkdir",
    "mv",
    "npm",
    "rm",
    "sudo",
    "tmux",
    "unset",
    "PROQ_TRASH_KEEP=0",
];

/// Returns the number of characters that a line on this terminal may have; none for a file or a pipe, where lines
/// are not wrapped. The last column stays free: some terminals wrap a line that ends there.
pub(crate) fn line_width(terminal: &Term) -> Option<usize> {
    let size = || terminal.size_checked().map(|(_, width)| usize::from(width));
    Some(terminal.is_term().then(|| columns_variable().or_else(size))??.saturating_sub(1))
}

/// Wraps each line of a text to at most `width` characters, at blanks. What continues a line is indented further
/// than its begin. A longer word is left whole, so that a path can be copied. So is a command to paste: it moves
/// to a line of its own where it does not fit behind its purpose.
pub(crate) fn wrap(text: &str, width: usize) -> String {
    // Other sentences speak of programs too: an argument distinguishes a command from them.
    let is_command = |words: &str| {
        ["git proq ", "git config "].iter().any(|command| words.starts_with(command))
            || program_arguments(words).is_some_and(|arguments| arguments.starts_with(['-', '/', '\'', '"']))
    };
    wrap_lines(text, width, is_command)
}

/// Wraps the text of a hint as [`wrap`] does. It ends in a command of any program.
pub(crate) fn wrap_hint(text: &str, width: usize) -> String {
    wrap_lines(text, width, |words| program_arguments(words).is_some())
}

fn wrap_lines(text: &str, width: usize, is_command: impl Fn(&str) -> bool) -> String {
    // A prompt can have millions of lines, so they are not collected.
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        push_wrapped(&mut out, line, width, &is_command);
    }
    out
}

/// Adds one line, wrapped.
fn push_wrapped(out: &mut String, line: &str, width: usize, is_command: &impl Fn(&str) -> bool) {
    let margin = line.len() - line.trim_start_matches(' ').len();
    // No character is wider than it has bytes.
    if line.len() <= width || measure_text_width(line) <= width || is_command(&line[margin..]) {
        return out.push_str(line);
    }
    let line_break = format!("\n{:1$}", "", margin + HANGING_INDENT);
    let behind_colons = line.match_indices(": ").map(|(at, colon)| at + colon.len());
    let command_start = behind_colons.into_iter().find(|start| is_command(&line[*start..]));
    let (sentence, command) = line.split_at(command_start.unwrap_or(line.len()));
    out.push_str(&line[..margin]);
    let mut used = margin;
    let mut gap = "";
    for word in unbroken_words(sentence.trim()) {
        let word_width = measure_text_width(word);
        if !gap.is_empty() && used + gap.len() + word_width > width {
            out.push_str(&line_break);
            (used, gap) = (line_break.len() - 1, "");
        }
        out.push_str(gap);
        out.push_str(word);
        used += gap.len() + word_width;
        gap = " ";
    }
    if !command.is_empty() {
        out.push_str(&line_break);
        out.push_str(command);
    }
}

/// Splits a sentence at blanks, except for those between backticks.
fn unbroken_words(sentence: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    sentence.split(move |c| {
        is_quoted ^= c == '`';
        c == ' ' && !is_quoted
    })
}

/// Returns what follows the program that a text begins with; none if it begins with another word.
fn program_arguments(text: &str) -> Option<&str> {
    let (program, arguments) = text.split_once(' ').unwrap_or((text, ""));
    PROGRAMS.contains(&program).then_some(arguments)
}

/// Returns a reason that is about "it", one lane, as one that is about each of `count` lanes.
pub(crate) fn reason_of_lanes(reason: &str, count: usize) -> String {
    match (reason.strip_prefix("it "), reason.strip_prefix("its ")) {
        _ if count < 2 => reason.to_owned(),
        (Some(predicate), _) => format!("each {predicate}"),
        (_, Some(possession)) => format!("each one's {possession}"),
        (None, None) => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_words() {
        let text = "warning: the branch has moved\n  to another commit";
        assert_eq!(wrap(text, 80), text);
        assert_eq!(wrap(text, 20), "warning: the branch\n    has moved\n  to another commit");
        assert_eq!(
            wrap(text, 12),
            "warning: the\n    branch\n    has\n    moved\n  to another\n      commit"
        );
    }

    #[test]
    fn commands_have_lines_of_their_own() {
        let hint = "hint: remove it: mv 'a folder' /elsewhere";
        assert_eq!(wrap_hint(hint, 41), hint);
        assert_eq!(wrap_hint(hint, 20), "hint: remove it:\n    mv 'a folder' /elsewhere");
        let warning = "warning: 'a' conflicts: git proq resolve a --shell";
        assert_eq!(wrap(warning, 30), "warning: 'a' conflicts:\n    git proq resolve a --shell");
        let command = "  git proq send lane 'a long text'";
        assert_eq!(wrap(command, 20), command);
        let quoted = "or run `git proq list` later";
        assert_eq!(wrap(quoted, 18), "or run\n    `git proq list`\n    later");
        assert_eq!(
            wrap("error: cannot merge: git is too old", 22),
            "error: cannot merge:\n    git is too old"
        );
    }

    #[test]
    fn long_words_stay_whole() {
        assert_eq!(
            wrap("see /a/long/path/of/a/file there", 12),
            "see\n    /a/long/path/of/a/file\n    there"
        );
        assert_eq!(wrap("columns    and  gaps", 18), "columns    and \n    gaps");
    }
}
