//! Roff, the source of man pages: escaped text, entries of lists, the arguments of a command, and Markdown.

use clap::{Arg, Command};

/// Escapes text for roff: no line is read as a request, and commands can be copied from the rendered page.
pub(super) fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    let lines: Vec<String> = text
        .lines()
        .map(|line| if line.starts_with('.') { format!("\\&{line}") } else { line.to_owned() })
        .collect();
    lines.join("\n")
}

/// Returns the first lines of a page, up to its name.
pub(super) fn title(name: &str, section: u8, about: &str) -> String {
    format!(
        ".TH {} {section} \"\" \"git\\-proq {}\" \"git\\-proq Manual\"\n.SH NAME\n{} \\- {}\n",
        escape(&name.to_uppercase()),
        env!("CARGO_PKG_VERSION"),
        escape(name),
        escape(about.trim_end_matches('.')),
    )
}

/// Returns a section of paragraphs, which a blank line separates; nothing without text.
pub(super) fn paragraphs(heading: &str, text: &str) -> String {
    let paragraphs: Vec<String> =
        text.split("\n\n").map(str::trim).filter(|p| !p.is_empty()).map(escape).collect();
    match paragraphs.is_empty() {
        true => String::new(),
        false => format!(".SH {heading}\n{}\n", paragraphs.join("\n.PP\n")),
    }
}

/// Returns an entry of a list: a term in bold, and its text.
pub(super) fn entry(term: &str, text: &str) -> String {
    format!(".TP\n\\fB{}\\fR\n{}\n", escape(term), escape(text))
}

/// Returns a section of entries; nothing without entries.
pub(super) fn entries(heading: &str, list: &[(&str, &str)]) -> String {
    let entries: String = list.iter().map(|(term, text)| entry(term, text)).collect();
    if entries.is_empty() { entries } else { format!(".SH {heading}\n{entries}") }
}

/// Returns the last section of a page: other pages, as `(name, section)`.
pub(super) fn see_also(pages: &[(String, u8)]) -> String {
    let pages: Vec<String> =
        pages.iter().map(|(name, section)| format!("\\fB{}\\fR({section})", escape(name))).collect();
    format!(".SH SEE ALSO\n{}\n", pages.join(", "))
}

/// Returns the list of those arguments of a command that `is_listed` accepts, with a heading; nothing without
/// any.
pub(super) fn arguments(heading: &str, command: &Command, is_listed: fn(&Arg) -> bool) -> String {
    let listed = command.get_arguments().filter(|arg| !arg.is_hide_set() && is_listed(arg));
    let entries: String = listed.map(argument).collect();
    if entries.is_empty() { entries } else { format!("{heading}\n{entries}") }
}

/// Returns the entry of an argument: its names and value, then its text, default and possible values.
fn argument(arg: &Arg) -> String {
    let bold = |name: String| format!("\\fB{}\\fR", escape(&name));
    let short = arg.get_short().map(|short| bold(format!("-{short}")));
    let long = arg.get_long().map(|long| bold(format!("--{long}")));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let takes_values = arg.get_action().takes_values();
    let value = arg.get_value_names().unwrap_or_default().iter();
    let value: Vec<String> = value.map(|name| format!("\\fI{}\\fR", escape(&format!("<{name}>")))).collect();
    let is_optional = arg.get_num_args().is_some_and(|count| count.min_values() == 0);
    let value = match (takes_values, arg.is_positional(), is_optional) {
        (false, ..) => String::new(),
        (_, true, _) => value.join(" "),
        (_, false, true) => format!("[={}]", value.join(" ")),
        (_, false, false) => format!(" {}", value.join(" ")),
    };
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut body: Vec<String> = help.split("\n\n").map(escape).collect();
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if let Some(first) = body.first_mut().filter(|_| takes_values && !defaults.is_empty()) {
        first.push_str(&escape(&format!(" [default: {}]", defaults.join(" "))));
    }
    let values = arg.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
    let values: Vec<String> = values
        .map(|value| match value.get_help() {
            Some(help) => format!("\\fB{}\\fR ({})", escape(value.get_name()), escape(&help.to_string())),
            None => format!("\\fB{}\\fR", escape(value.get_name())),
        })
        .collect();
    if takes_values && !values.is_empty() && !arg.is_hide_possible_values_set() {
        body.push(format!("Possible values: {}", values.join(", ")));
    }
    format!(".TP\n{}{value}\n{}\n", names.join(", "), body.join("\n.IP\n"))
}

/// Converts a page of the guide, without its first heading: headings, paragraphs, lists, tables and blocks of
/// code.
pub(super) fn from_markdown(markdown: &str) -> String {
    let mut out = String::new();
    let (mut in_code, mut in_comment) = (false, false);
    for line in markdown.lines().skip_while(|line| line.starts_with("# ")) {
        if line.starts_with("<!--") || in_comment {
            in_comment = !line.contains("-->");
        } else if line.starts_with("```") {
            out.push_str(if in_code { ".fi\n.RE\n" } else { ".PP\n.RS 4\n.nf\n" });
            in_code = !in_code;
        } else if in_code {
            out.push_str(&format!("{}\n", escape(line)));
        } else if let Some(heading) = line.strip_prefix("## ") {
            out.push_str(&format!(".SH {}\n", escape(&heading.to_uppercase())));
        } else if let Some(item) = line.strip_prefix("- ") {
            out.push_str(&format!(".IP \\(bu 2\n{}\n", inline(item)));
        } else if let Some(cells) = line.strip_prefix("| ") {
            let cells: Vec<&str> = cells.trim_end_matches('|').split('|').map(str::trim).collect();
            out.push_str(&format!(".TP\n{}\n{}\n", inline(cells[0]), inline(&cells[1..].join(" "))));
        } else if line.is_empty() && !out.ends_with(".PP\n") {
            out.push_str(".PP\n");
        } else if !line.starts_with("|-") {
            out.push_str(&format!("{}\n", inline(line.trim_start())));
        }
    }
    out.replace(".PP\n.SH", ".SH")
        .replace(".PP\n.PP", ".PP")
        .replace(".PP\n.IP", ".IP")
        .replace(".PP\n.TP", ".TP")
}

/// Converts a line of Markdown: code becomes bold, emphasis italic, and a link its text.
fn inline(line: &str) -> String {
    let line = without_links(line);
    let parts = line.split('`').enumerate().map(|(n, part)| {
        if n % 2 == 1 {
            return format!("\\fB{}\\fR", escape(part));
        }
        let words = part.split('*').enumerate();
        let word = |(n, word)| if n % 2 == 1 { format!("\\fI{}\\fR", escape(word)) } else { escape(word) };
        words.map(word).collect()
    });
    let text: String = parts.collect();
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

/// Replaces each link by its text.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, (label, after))) = rest.split_once('[').and_then(|(before, link)| {
        let (label, target) = link.split_once("](")?;
        Some((before, (label, target.split_once(')')?.1)))
    }) {
        out.push_str(before);
        out.push_str(label);
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_roff() {
        let page = "# Title\n\n<!-- exit 3\n-->\n## Part\n\nSee [the `x` page](x.md), *now*:\n\n```sh\n.x 'y'\n```\n\n\
                    | a | b |\n|---|---|\n| `c` | d |\n\n- one\n  more\n";
        let expected = ".SH PART\n.PP\nSee the \\fBx\\fR page, \\fInow\\fR:\n.PP\n.RS 4\n.nf\n\\&.x \\(aqy\\(aq\n.fi\n.RE\n\
                        .TP\na\nb\n.TP\n\\fBc\\fR\nd\n.IP \\(bu 2\none\nmore\n";
        assert_eq!(from_markdown(page), expected);
    }
}
