//! Hints that the program printed in a sandbox: their commands, what they do, and a record of both for
//! `cargo xtask hints`.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};

use super::{Output, Sandbox};

/// Folder for the records of `cargo xtask hints`; none outside of `.ci/run`.
static RECORD_DIR: LazyLock<Option<PathBuf>> =
    LazyLock::new(|| std::env::var_os("PROQ_TEST_HINTS").map(PathBuf::from));

/// Lines that this process has recorded.
static RECORDED: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// Hints printed in one sandbox, as a test sees them (paths and ids replaced), each as it was printed.
#[derive(Default)]
pub(crate) struct PrintedHints(Mutex<BTreeMap<String, String>>);

impl Sandbox {
    /// Runs the command of a printed hint as it was printed, in the main checkout. `purpose` is how the hint
    /// begins.
    #[track_caller]
    pub fn follow_hint(&self, printed: &str, purpose: &str) -> Output {
        self.follow_hint_in(&self.repo, printed, purpose)
    }

    /// Runs the command of a printed hint as it was printed, in a folder. `purpose` is how the hint begins.
    #[track_caller]
    pub fn follow_hint_in(&self, dir: &Path, printed: &str, purpose: &str) -> Output {
        let mut command = self.command("sh", dir);
        command.args(["-c", &self.hint_command(printed, purpose)]);
        self.output(command)
    }

    /// Returns the command of a printed hint as it was printed. `purpose` is how the hint begins.
    #[track_caller]
    pub fn hint_command(&self, printed: &str, purpose: &str) -> String {
        let hints = self.hints_as_printed(printed);
        let hint = hints.iter().find(|hint| hint.starts_with(purpose));
        let wanted = hint.and_then(|hint| command_of(hint)).map(ToOwned::to_owned);
        wanted.unwrap_or_else(|| panic!("no hint '{purpose}' with a command:\n{printed}"))
    }

    /// Returns the commands of the hints in a printed text, as they were printed.
    #[track_caller]
    pub fn hint_commands(&self, printed: &str) -> Vec<String> {
        let command = |hint: &String| command_of(hint).map(ToOwned::to_owned);
        self.hints_as_printed(printed)
            .iter()
            .map(|hint| command(hint).unwrap_or_else(|| panic!("no command: {hint}")))
            .collect()
    }

    /// Returns the hints in a printed text, with paths and ids as the program printed them.
    fn hints_as_printed(&self, printed: &str) -> Vec<String> {
        let verbatim = self.printed_hints.0.lock().unwrap();
        hints_in(printed).into_iter().map(|hint| verbatim.get(&hint).cloned().unwrap_or(hint)).collect()
    }

    /// Notes which hints a command printed, and whether the command is one that a hint named before.
    pub(crate) fn note_hints(&self, command: &Command, out: &std::process::Output) {
        let mut printed_hints = self.printed_hints.0.lock().unwrap();
        let code = out.status.code().unwrap_or(-1);
        for hint in printed_hints.values().filter(|hint| runs_hint(command, hint)) {
            record(hint, Some(code));
        }
        for stream in [&out.stdout, &out.stderr] {
            for hint in hints_in(&String::from_utf8_lossy(stream)) {
                record(&hint, None);
                printed_hints.insert(self.normalize(hint.as_bytes()), hint);
            }
        }
    }
}

/// Returns the command of a hint: all after the first `: `.
fn command_of(hint: &str) -> Option<&str> {
    hint.split_once(": ").map(|(_, command)| command)
}

/// Returns the hints of a text or of a JSON document, in the order in which they were printed.
fn hints_in(printed: &str) -> Vec<String> {
    let of_line = |line: &str| line.strip_prefix("hint: ").map(str::to_owned);
    let mut out: Vec<String> = printed.lines().filter_map(of_line).collect();
    if printed.starts_with('{') && printed.contains("\"hints\"") {
        let json = serde_json::Deserializer::from_str(printed).into_iter().next();
        collect_hints(&json.and_then(Result::ok).unwrap_or_default(), &mut out);
    }
    out
}

/// Adds what a JSON document has below keys `hints`.
fn collect_hints(value: &serde_json::Value, out: &mut Vec<String>) {
    for value in value.as_array().into_iter().flatten() {
        collect_hints(value, out);
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        match value.as_array().filter(|_| key == "hints") {
            Some(hints) => out.extend(hints.iter().filter_map(|hint| hint.as_str().map(str::to_owned))),
            None => collect_hints(value, out),
        }
    }
}

/// Returns whether a command is that of a hint: its words, or a shell script with it.
fn runs_hint(command: &Command, hint: &str) -> bool {
    let Some(wanted) = command_of(hint).map(str::trim) else { return false };
    let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    let program = Path::new(command.get_program());
    if program == Path::new("sh") {
        let script = arguments.get(1).map_or("", |script| script.trim());
        return script == wanted || (wanted.contains(' ') && script.contains(wanted));
    }
    let mut words = match program {
        program if program == crate::program() => vec!["git", "proq"],
        _ => vec![command.get_program().to_str().unwrap_or_default()],
    };
    words.extend(arguments.iter().map(AsRef::as_ref));
    shell_words(wanted) == words
}

/// Splits a simple command into words as a shell does, with quotes but without variables.
fn shell_words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (_, Some(q)) if c == q => quote = None,
            ('\\', None) => word.get_or_insert_default().extend(chars.next()),
            ('\'' | '"', None) => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (' ', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Appends a hint to the record: that it was printed, or the exit code with which its command ended.
fn record(hint: &str, exit: Option<i32>) {
    let Some(dir) = RECORD_DIR.as_ref() else { return };
    let line = format!("{}\n", serde_json::json!({ "hint": hint, "exit": exit }));
    if RECORDED.lock().unwrap().insert(line.clone()) {
        std::fs::create_dir_all(dir).unwrap();
        let path = dir.join(format!("{}.jsonl", std::process::id()));
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_commands_of_hints_however_they_are_run() {
        let hint = "show it: git proq show 'a b'";
        let mut proq = Command::new(std::env::current_exe().unwrap());
        assert!(!runs_hint(proq.args(["show", "a b"]), hint));
        let mut shell = Command::new("sh");
        assert!(runs_hint(shell.args(["-ec", "cd x && git proq show 'a b'"]), hint));
        let mut git = Command::new("git");
        assert!(runs_hint(git.args(["commit", "-m", "it's"]), r"commit it: git commit -m 'it'\''s'"));
    }

    #[test]
    fn finds_hints_in_lines_and_in_json() {
        assert_eq!(hints_in("error: no\nhint: a: b\n"), ["a: b"]);
        assert_eq!(hints_in(r#"{"lanes": [{"hints": ["a: b"]}], "hints": ["c"]}"#), ["c", "a: b"]);
    }
}
