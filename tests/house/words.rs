//! Rules about words: the glossary decides, and words it retired stay out of names and comments.

use super::guard::source_code::{Source, all_sources, sources, split_code_and_comments};

/// Words that name nothing a stranger could search for. They are refused as parts of identifiers.
const RETIRED_IN_NAMES: &[&str] = &[
    "said",
    "say",
    "says",
    "told",
    "tell",
    "tells",
    "heard",
    "hear",
    "hears",
    "ask",
    "asked",
    "asks",
    "looked",
    "errand",
    "outfit",
    "desk",
    "stint",
    "tenant",
    "greens",
    "rehearse",
    "rehearsal",
    "shut",
    "bring",
    "brings",
    "brought",
    "renumber",
    "people",
    "lore",
    "died",
    "unfit",
    "survey",
    "somebody",
    "standing",
];

/// Words that are refused in comments of the code, beside those.
const RETIRED_IN_COMMENTS: &[&str] = &["someone", "anew", "wish", "wishes", "meanwhile"];

/// Derives whose doc comments are texts on the screen or in a schema.
const SHOWN_DERIVES: &[&str] = &["Args", "Parser", "Subcommand", "ValueEnum", "JsonSchema"];

/// Returns the words of an identifier in snake or camel case, in lower case.
pub(crate) fn words_of(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in identifier.chars() {
        if c == '_' || (c.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        if c != '_'
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// Returns the lines of a source file whose doc comments are shown to users: items that derive one of
/// [`SHOWN_DERIVES`], with their fields and variants.
fn shown_lines(lines: &[&str]) -> Vec<bool> {
    let mut shown = vec![false; lines.len()];
    for (at, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        let is_derive = text.starts_with("#[derive(")
            || text.starts_with("#[command(")
            || text.starts_with("#[schemars(");
        if !is_derive || !SHOWN_DERIVES.iter().any(|derive| text.contains(derive)) {
            continue;
        }
        let first = (0..at).rev().take_while(|n| is_above_item(lines[*n])).last().unwrap_or(at);
        let indent = &line[..line.len() - text.len()];
        let end = format!("{indent}}}");
        let last = (at..lines.len()).find(|n| lines[*n] == end || lines[*n].ends_with(';')).unwrap_or(at);
        shown[first..=last].fill(true);
    }
    shown
}

fn is_above_item(line: &str) -> bool {
    let text = line.trim_start();
    text.starts_with("///") || text.starts_with("#[")
}

/// Names that items, fields, parameters and variables are introduced by on a line.
fn introduced(code: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = Vec::new();
    let mut previous = "";
    for word in code.split_inclusive(|c: char| !is_part(c)) {
        let name = word.trim_end_matches(|c: char| !is_part(c));
        let after = &code[word.as_ptr() as usize - code.as_ptr() as usize + name.len()..];
        let is_keyword = matches!(
            previous,
            "fn" | "struct" | "enum" | "const" | "static" | "let" | "mut" | "type" | "mod" | "trait"
        );
        let has_type = after.starts_with(':') && !after.starts_with("::");
        if !name.is_empty() && (is_keyword || has_type) {
            names.push(name);
        }
        if !name.is_empty() {
            previous = name;
        }
    }
    names
}

fn check_source(source: &Source, findings: &mut Vec<String>) {
    let lines: Vec<&str> = source.text.lines().collect();
    let shown = shown_lines(&lines);
    for (at, (code, comment)) in source.code.lines().zip(source.comments.lines()).enumerate() {
        if shown[at] {
            continue;
        }
        let place = || format!("{}:{}", source.relative_path(), at + 1);
        for name in introduced(code) {
            if words_of(name).iter().any(|word| RETIRED_IN_NAMES.contains(&word.as_str())) {
                findings.push(format!("{} names {name}", place()));
            }
        }
        // What stands in backticks is quoted: a key, a command, a text on the screen.
        let prose = comment.split('`').step_by(2);
        for word in prose.flat_map(|part| part.split(|c: char| !c.is_alphabetic())) {
            let word = word.to_lowercase();
            if RETIRED_IN_NAMES.contains(&word.as_str()) || RETIRED_IN_COMMENTS.contains(&word.as_str()) {
                findings.push(format!("{} has a comment with \"{word}\"", place()));
            }
        }
    }
}

#[test]
fn names_and_comments_avoid_retired_words() {
    let mut findings = Vec::new();
    for source in all_sources().into_iter().chain(sources("examples")) {
        check_source(source, &mut findings);
    }
    assert_eq!(findings, [""; 0]);
}

#[test]
fn test_names_are_short() {
    let mut long = Vec::new();
    for source in all_sources() {
        let mut is_test = false;
        for line in source.code.lines().map(str::trim) {
            let name = line.strip_prefix("fn ").and_then(|rest| rest.split(['(', '<']).next());
            long.extend(name.filter(|name| is_test && name.len() > 60).map(str::to_owned));
            is_test = line == "#[test]" || is_test && (line.starts_with("#[") || line.is_empty());
        }
    }
    assert_eq!(long, [""; 0]);
}

#[test]
fn splits_names_and_comments() {
    assert_eq!(words_of("told_by_Hook2Name"), ["told", "by", "hook2", "name"]);
    assert_eq!(
        introduced("pub fn told(said: u8) -> Desk { let heard = x::y(1); }"),
        ["told", "said", "heard"]
    );
    let (code, comments) = split_code_and_comments("let a = r#\"told \" // x\"#; // said\nlet b = '\"';\n");
    assert_eq!(code, "let a = ; \nlet b = ;\n");
    assert_eq!(comments, "// said\n\n");
}
