//! Owns the rules about the sources themselves: layers, who may print, start programs or exit, and how long things get.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What each part may name. `copy`, `explain`, `diagnostics`, `fail_points`, `terminal_text`, `markdown` and `regular_file` are for everybody; `store` may use git's plain types in its records, and
/// `interrupt` and `store` know each other's errors.
const MAY_NAME: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "swarm",
            "health",
            "merge",
            "agent",
            "preview",
            "lane",
            "event",
            "config",
            "store",
            "git",
            "process",
            "interrupt",
        ],
    ),
    (
        "swarm",
        &["merge", "agent", "preview", "lane", "event", "config", "store", "git", "process", "interrupt"],
    ),
    (
        "facade",
        &["merge", "agent", "preview", "lane", "event", "config", "store", "git", "process", "interrupt"],
    ),
    ("probe", &["facade", "git"]),
    ("health", &["swarm", "agent", "lane", "event", "config", "store", "git", "process"]),
    ("merge", &["agent", "preview", "lane", "event", "config", "store", "git", "process", "interrupt"]),
    ("agent", &["lane", "event", "config", "store", "git", "process", "interrupt"]),
    ("preview", &["lane", "event", "config", "store", "git", "process", "interrupt"]),
    ("lane", &["event", "config", "store", "git", "process", "interrupt"]),
    ("event", &["config", "store", "git", "process"]),
    ("config", &[]),
    (
        "store",
        &[
            "interrupt",
            "git::Oid",
            "git::Head",
            "git::LocalState",
            "git::RefMove",
            "git::WorktreeId",
            "git::RepoPath",
            "git::Snapshot",
        ],
    ),
    ("git", &[]),
    ("process", &[]),
    ("copy", &[]),
    ("explain", &[]),
    ("diagnostics", &[]),
    ("fail_points", &[]),
    ("terminal_text", &[]),
    ("markdown", &[]),
    ("regular_file", &[]),
    ("interrupt", &[]),
];

struct Source {
    path: PathBuf,
    text: String,
    /// The text without comments and string contents.
    code: String,
}

impl Source {
    fn shown(&self) -> String {
        self.path.strip_prefix(root()).unwrap().display().to_string()
    }

    /// The part of the program it belongs to: `cli` for `src/cli/list.rs`, `interrupt` for `src/interrupt.rs`.
    fn part(&self) -> String {
        let inside = self.path.strip_prefix(root().join("src")).unwrap();
        let first = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        first.trim_end_matches(".rs").to_owned()
    }

    /// The code without its unit tests.
    fn production(&self) -> &str {
        self.code.split("#[cfg(test)]").next().unwrap()
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(below: &str) -> Vec<Source> {
    let mut out = Vec::new();
    let mut folders = vec![root().join(below)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = bare(&text);
                out.push(Source { path, text, code });
            }
        }
    }
    assert!(!out.is_empty());
    out.sort_by(|a, b| a.path.cmp(&b.path));
    out
}

/// The program, its tests, and the repository's own tasks.
fn everything() -> Vec<Source> {
    ["src", "tests", "xtask/src"].into_iter().flat_map(sources).collect()
}

/// Takes comments and the contents of strings out, so that only code is searched. Lines stay lines.
fn bare(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(inner) = raw_string(rest) {
            inner
        } else if rest.starts_with('"') {
            string_end(rest)
        } else if rest.starts_with("'\"'") || rest.starts_with("b'\"'") {
            rest.find("'\"'").unwrap() + 3
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        out.extend(rest[..skip].chars().filter(|c| *c == '\n'));
        rest = &rest[skip..];
    }
    out
}

fn raw_string(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('r')?;
    let hashes = inner.len() - inner.trim_start_matches('#').len();
    let body = inner[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(1 + hashes + 1 + body.find(&end)? + end.len())
}

fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Everything a file names by `crate::`, groups taken apart: `git::Oid`, `lane::Project` …
fn named(code: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        collect(&code[at + "crate::".len()..], "", &mut out);
    }
    out
}

/// Reads one path, or a `{…}` group of paths, and returns what is left.
fn collect<'a>(mut text: &'a str, prefix: &str, out: &mut BTreeSet<String>) -> &'a str {
    if let Some(inner) = text.strip_prefix('{') {
        text = inner;
        loop {
            text = collect(text.trim_start(), prefix, out).trim_start();
            match text.strip_prefix(',') {
                Some(rest) if !rest.trim_start().starts_with('}') => text = rest,
                other => return other.unwrap_or(text).trim_start().strip_prefix('}').unwrap_or(text),
            }
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let path = if prefix.is_empty() { word.to_owned() } else { format!("{prefix}::{word}") };
    if let Some(rest) = rest.strip_prefix("::") {
        return collect(rest, &path, out);
    }
    out.insert(path);
    rest
}

/// Every place in the production code below `src/` that matches, as `file: line`.
fn places(allowed: impl Fn(&str) -> bool, wanted: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    for source in sources("src").iter().filter(|s| !allowed(&s.shown())) {
        for line in source.production().lines() {
            if wanted.iter().any(|w| line.contains(w)) {
                out.push(format!("{}: {}", source.shown(), line.trim()));
            }
        }
    }
    out
}

#[test]
fn every_part_names_only_what_lies_below_it() {
    let mut wrong = Vec::new();
    for source in sources("src").iter().filter(|s| !["lib", "main"].contains(&s.part().as_str())) {
        let part = source.part();
        let (_, below) =
            MAY_NAME.iter().find(|(name, _)| *name == part).unwrap_or_else(|| panic!("no rule for {part}"));
        for path in named(source.production()) {
            let first = path.split("::").next().unwrap();
            let own = first == part
                || [
                    "copy",
                    "explain",
                    "diagnostics",
                    "fail_points",
                    "terminal_text",
                    "markdown",
                    "regular_file",
                ]
                .contains(&first);
            let fits = below.iter().any(|b| path == *b || path.starts_with(&format!("{b}::")));
            if !own && !fits {
                wrong.push(format!("{} names {path}", source.shown()));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn imports_are_taken_apart() {
    let code = bare(
        "use crate::git::{self, Oid, a::{B, c::D}};\nuse crate::note; // crate::cli\nlet x = crate::lane::f(\"crate::cli\");",
    );
    let found: Vec<String> = named(&code).into_iter().collect();
    assert_eq!(found, ["git::Oid", "git::a::B", "git::a::c::D", "git::self", "lane::f", "note"]);
}

#[test]
fn only_git_names_the_library_or_starts_git() {
    let git = |path: &str| path.starts_with("src/git/");
    assert_eq!(places(git, &["gix"]), [""; 0]);
    assert_eq!(places(git, &[" Program {"]), [""; 0]);
}

/// No code of the product is compiled only with debug assertions, or only without: a release, which tests do not build, compiles nothing
/// that they have not compiled. Where both differ, `cfg!` chooses a branch.
#[test]
fn a_release_has_no_code_of_its_own() {
    assert_eq!(places(|_| false, &["cfg(debug_assertions", "cfg(not(debug_assertions"]), [""; 0]);
}

#[test]
fn only_process_and_git_start_programs() {
    let both = |path: &str| path.starts_with("src/git/") || path.starts_with("src/process/");
    assert_eq!(places(both, &["std::process::Command", "Command::new("]), [""; 0]);
}

#[test]
fn only_the_command_line_prints_reads_arguments_and_exits() {
    // The output of hooks is forwarded while they run, made printable there.
    let hooks = |path: &str| path == "src/git/hook_output.rs";
    // The supervisor answers the process that started it on its standard output.
    let loud =
        |path: &str| path.starts_with("src/cli/") || path == "src/agent/supervisor_start.rs" || hooks(path);
    assert_eq!(places(loud, &["println!", "print!", "io::stdout", "io::stderr"]), [""; 0]);
    let cli = |path: &str| path.starts_with("src/cli/") || hooks(path);
    assert_eq!(
        places(cli, &["println!", "print!", "io::stderr", "process::exit", "process::abort"]),
        [""; 0]
    );
    // A lock's side file says what its holder was started as.
    let args = |path: &str| path.starts_with("src/cli/") || path == "src/store/holder.rs";
    assert_eq!(places(args, &["env::args"]), [""; 0]);
}

#[test]
fn only_a_few_places_give_a_terminal_text_as_it_is() {
    // Everything else goes through `ui`, which prints nothing but `Printable`.
    let ui = |path: &str| path == "src/cli/ui.rs" || path == "src/agent/supervisor_start.rs";
    assert_eq!(places(ui, &["stdout().lock()", "stderr().lock()", "io::stdout(), "]), [""; 0]);
    // Logs and differences, which have a view of their own, and `--raw`; and answers to programs that are no people.
    let raw = ["cli/ui.rs", "cli/logs.rs", "cli/diff.rs", "cli/acp.rs", "cli/agent_event.rs"];
    assert_eq!(places(|path| raw.iter().any(|raw| path.ends_with(raw)), &[".raw("]), [""; 0]);
    // Programs that have the terminal: git with its pager, a shell or an agent of the user's, tmux.
    let terminal = [
        "process/command_builder.rs",
        "git/command.rs",
        "git/diff.rs",
        "git/resolve.rs",
        "agent/tmux_window.rs",
        "cli/resolve.rs",
        "cli/oversee/command.rs",
    ];
    let terminal = |path: &str| terminal.iter().any(|file| path.ends_with(file));
    assert_eq!(places(terminal, &["run_on_terminal(", "Stdio::inherit()"]), [""; 0]);
    // Hooks of the repository, whose words git passes on as well.
    let hooks = |path: &str| ["src/git/command.rs", "src/git/hook.rs"].contains(&path);
    assert_eq!(places(hooks, &["run_beside("]), [""; 0]);
}

#[test]
fn nothing_is_left_undone() {
    let mut wrong = Vec::new();
    for source in everything() {
        // A test that needs more than every machine has is ignored, and says what it needs; .ci/run looks for that.
        let with_needs = |word: &str| word == "#[ignore" && !source.code.contains("#[ignore]");
        for word in ["todo!", "unimplemented!", "#[ignore", "dbg!"] {
            if source.code.contains(word) && !with_needs(word) {
                wrong.push(format!("{} has {word}", source.shown()));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn files_are_short_and_say_what_they_own() {
    let mut wrong = Vec::new();
    for source in everything() {
        let lines = source.text.lines().count();
        if lines > 700 {
            wrong.push(format!("{} has {lines} lines", source.shown()));
        }
        if !source.text.starts_with("//! ") {
            wrong.push(format!("{} does not begin with what it owns", source.shown()));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn functions_are_short() {
    let mut wrong = Vec::new();
    for source in everything() {
        for (name, lines) in functions(&source.code) {
            if lines > 80 {
                wrong.push(format!("{}: {name} has {lines} lines", source.shown()));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// Functions and their lengths. The formatter puts a function's last brace under its first letter.
fn functions(code: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut out = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((_, after)) = line.split_once("fn ").filter(|(head, _)| {
            head.split_whitespace()
                .all(|w| ["pub", "pub(crate)", "pub(super)", "const", "async"].contains(&w))
        }) else {
            continue;
        };
        let indent = &line[..line.len() - line.trim_start().len()];
        let end =
            lines[at..].iter().position(|l| *l == format!("{indent}}}") || l.trim_end().ends_with("{}"));
        let name = after.split(['(', '<']).next().unwrap();
        out.push((name.to_owned(), end.map_or(1, |n| n + 1)));
    }
    out
}

#[test]
fn every_test_file_is_declared() {
    let main = std::fs::read_to_string(root().join("tests/it/main.rs")).unwrap();
    let declared: BTreeSet<&str> =
        main.lines().filter_map(|l| l.strip_prefix("mod ")).map(|l| l.trim_end_matches(';')).collect();
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("tests/it")).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().trim_end_matches(".rs").to_owned();
        if !name.starts_with('.') && name != "main" {
            found.insert(name);
        }
    }
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(declared, found);
}

/// The text between a call's parentheses, of which `rest` begins with the first.
fn arguments(rest: &str) -> &str {
    let mut open = 0;
    for (at, c) in rest.char_indices() {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return &rest[..at];
        }
    }
    rest
}

/// What others may change meanwhile has no order: a sort that reads it anew for each comparison panics.
#[test]
fn nothing_is_read_while_it_is_compared() {
    const COMPARES: &[&str] = &[
        "sort_by",
        "sort_by_key",
        "sort_unstable_by",
        "sort_unstable_by_key",
        "max_by",
        "min_by",
        "binary_search_by",
    ];
    const READS: &[&str] = &[
        ".head(",
        "_tip(",
        "head_of(",
        "find(&",
        "load(",
        "read",
        "metadata",
        "exists()",
        "is_file()",
        "is_dir()",
        "now()",
    ];
    let mut wrong = Vec::new();
    for source in sources("src") {
        let code = source.production();
        for call in COMPARES {
            for (at, found) in code.match_indices(&format!(".{call}(")) {
                let closure = arguments(&code[at + found.len() - 1..]);
                if let Some(read) = READS.iter().find(|read| closure.contains(**read)) {
                    wrong.push(format!("{}: {call} compares by {read}", source.shown()));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// A path in quotes made by hand is none for a shell once it has an apostrophe.
#[test]
fn paths_in_commands_are_quoted_by_one_function() {
    const COMMANDS: &[&str] = &[
        "-C '{",
        "--git-dir='{",
        "rm '{",
        "rm -r '{",
        "rm -rf '{",
        "mv '{",
        "cat '{",
        "ls '{",
        "ls -l '{",
        "ls -la '{",
        "ls -R '{",
        "lsof '{",
        "cd '{",
        "worktree add '{",
        "add -f '{",
        "chmod u+r '{",
        "chmod u+rwx '{",
        "chattr -i '{",
        "> '{",
    ];
    let mut wrong = Vec::new();
    for source in sources("src") {
        let text = source.text.split("#[cfg(test)]").next().unwrap();
        for (at, line) in text.lines().enumerate() {
            if COMMANDS.iter().any(|command| line.contains(command)) {
                wrong.push(format!("{}:{}", source.shown(), at + 1));
            }
        }
    }
    assert_eq!(wrong, [""; 0], "explain::quoted_path() does it");
}
