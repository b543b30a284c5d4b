//! Rules about the sources: layers, which modules may print, start programs or exit, and length limits.

pub(crate) mod source_code;

use std::collections::BTreeSet;

use source_code::{all_sources, crate_paths, root, sources};

/// Modules that each top-level module may name. All modules may name `copy`, `explain`, `diagnostics`,
/// `fail_points`, `terminal_text`, `markdown`, `regular_file`, `lane_name`, `usage` and `run_class`; `store` may use
/// git's plain types in its records, and `interrupt` and `store` know each other's errors.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "swarm",
            "health",
            "merge",
            "agent",
            "preview",
            "undo",
            "session",
            "snapshot",
            "run",
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
        &[
            "merge",
            "agent",
            "preview",
            "undo",
            "session",
            "snapshot",
            "run",
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
        "facade",
        &[
            "merge",
            "agent",
            "preview",
            "undo",
            "session",
            "snapshot",
            "run",
            "lane",
            "event",
            "config",
            "store",
            "git",
            "process",
            "interrupt",
        ],
    ),
    ("probe", &["facade", "git"]),
    ("health", &["swarm", "agent", "snapshot", "lane", "event", "config", "store", "git", "process"]),
    (
        "merge",
        &["agent", "preview", "run", "lane", "event", "config", "store", "git", "process", "interrupt"],
    ),
    (
        "agent",
        &["session", "snapshot", "run", "lane", "event", "config", "store", "git", "process", "interrupt"],
    ),
    ("preview", &["undo", "snapshot", "lane", "event", "config", "store", "git", "process", "interrupt"]),
    ("undo", &["run", "snapshot", "lane", "event", "config", "store", "git", "process", "interrupt"]),
    ("session", &["run", "lane", "event", "config", "store", "git", "process", "interrupt"]),
    ("snapshot", &["lane", "event", "config", "store", "git", "process", "interrupt"]),
    ("run", &["lane", "event", "config", "store", "git", "process", "interrupt"]),
    ("lane", &["event", "config", "store", "git", "process", "interrupt"]),
    ("event", &["config", "store", "git", "process"]),
    ("config", &[]),
    (
        "store",
        &[
            "interrupt",
            "git::Oid",
            "git::base::head",
            "git::status::local_state::LocalState",
            "git::worktrees::misplaced::WorktreeId",
            "git::RepoPath",
            "git::snapshots::snapshot::Snapshot",
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
    ("lane_name", &[]),
    ("usage", &[]),
    ("run_class", &[]),
    ("interrupt", &[]),
];

/// Returns every line of production code below `src/` that contains a wanted text, as `file: line`, outside
/// of allowed files.
fn matching_lines(allowed: impl Fn(&str) -> bool, wanted: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    for source in sources("src").iter().filter(|s| !allowed(&s.relative_path())) {
        for line in source.production.lines() {
            if wanted.iter().any(|w| line.contains(w)) {
                out.push(format!("{}: {}", source.relative_path(), line.trim()));
            }
        }
    }
    out
}

#[test]
fn modules_name_only_lower_layers() {
    let mut wrong = Vec::new();
    for source in sources("src").iter().filter(|s| !["lib", "main"].contains(&s.top_module().as_str())) {
        let module = source.top_module();
        let (_, allowed) = ALLOWED_DEPENDENCIES
            .iter()
            .find(|(name, _)| *name == module)
            .unwrap_or_else(|| panic!("no rule for {module}"));
        for path in crate_paths(&source.production) {
            let first = path.split("::").next().unwrap();
            let is_open_to_all = first == module
                || [
                    "copy",
                    "explain",
                    "diagnostics",
                    "fail_points",
                    "terminal_text",
                    "markdown",
                    "regular_file",
                    "lane_name",
                    "usage",
                    "run_class",
                ]
                .contains(&first);
            let is_allowed = allowed.iter().any(|b| path == *b || path.starts_with(&format!("{b}::")));
            if !is_open_to_all && !is_allowed {
                wrong.push(format!("{} names {path}", source.relative_path()));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn only_git_uses_gix_or_starts_git() {
    let git = |path: &str| path.starts_with("src/git/");
    assert_eq!(matching_lines(git, &["gix"]), [""; 0]);
    assert_eq!(matching_lines(git, &[" Program {", ":Program {", "(Program {", "&Program {"]), [""; 0]);
}

/// No code of the product is compiled only with debug assertions, or only without: a release, which tests do
/// not build, compiles nothing that they have not compiled. Where the two differ, `cfg!` chooses a branch.
#[test]
fn release_build_has_no_extra_code() {
    assert_eq!(matching_lines(|_| false, &["cfg(debug_assertions", "cfg(not(debug_assertions"]), [""; 0]);
}

#[test]
fn only_process_and_git_start_programs() {
    let both = |path: &str| path.starts_with("src/git/") || path.starts_with("src/process/");
    assert_eq!(
        matching_lines(
            both,
            &[
                "std::process::Command",
                "process::Command;",
                "process::Command,",
                "process::Command}",
                "process::Command ",
                "process::Command::",
                "Command::new("
            ]
        ),
        [""; 0]
    );
}

#[test]
fn only_cli_prints_reads_arguments_or_exits() {
    // Output of hooks is forwarded while they run, and made printable there.
    let hooks = |path: &str| path == "src/git/program/hook_output.rs";
    // The supervisor reports to the process that started it on its standard output.
    let may_print = |path: &str| {
        path.starts_with("src/cli/") || path == "src/agent/supervise/supervisor_start.rs" || hooks(path)
    };
    assert_eq!(matching_lines(may_print, &["println!", "print!", "io::stdout", "io::stderr"]), [""; 0]);
    let cli = |path: &str| path.starts_with("src/cli/") || hooks(path);
    assert_eq!(
        matching_lines(cli, &["println!", "print!", "io::stderr", "process::exit", "process::abort"]),
        [""; 0]
    );
    // A lock's holder file contains the command line of its holder.
    let args = |path: &str| path.starts_with("src/cli/") || path == "src/store/locks/holder.rs";
    assert_eq!(matching_lines(args, &["env::args"]), [""; 0]);
}

/// Promise: strangers/terminal-escapes
#[test]
fn raw_terminal_output_is_limited_to_few_files() {
    // Everything else goes through `ui`, which prints only `Printable`.
    let ui =
        |path: &str| path == "src/cli/terminal/ui.rs" || path == "src/agent/supervise/supervisor_start.rs";
    assert_eq!(matching_lines(ui, &["stdout().lock()", "stderr().lock()", "io::stdout(), "]), [""; 0]);
    // Logs and diffs, which have a view of their own, and `--raw`; and answers to other programs.
    let raw = ["cli/terminal/ui.rs", "cli/inspect/logs.rs", "cli/inspect/diff.rs", "cli/app/internal.rs"];
    assert_eq!(matching_lines(|path| raw.iter().any(|raw| path.ends_with(raw)), &[".raw("]), [""; 0]);
    // Programs that get the terminal: git with its pager, a shell or an agent of the user's, tmux.
    let terminal = [
        "process/command_builder.rs",
        "git/program/command.rs",
        "git/status/diff.rs",
        "git/merge/resolve.rs",
        "agent/tmux/tmux_window.rs",
        "cli/land/resolve.rs",
        "cli/set_up/oversee/command.rs",
    ];
    let terminal = |path: &str| terminal.iter().any(|file| path.ends_with(file));
    assert_eq!(matching_lines(terminal, &["run_on_terminal(", "Stdio::inherit()"]), [""; 0]);
    // Hooks of the repository, whose output git passes on as well.
    let hooks = |path: &str| ["src/git/program/command.rs", "src/git/hooks/hook.rs"].contains(&path);
    assert_eq!(matching_lines(hooks, &["run_beside("]), [""; 0]);
}

#[test]
fn sources_have_no_unfinished_markers() {
    let mut wrong = Vec::new();
    for source in all_sources() {
        // A test that needs more than every machine has is ignored, with a reason that names what it needs;
        // .ci/run reads that.
        let with_needs = |word: &str| word == "#[ignore" && !source.code.contains("#[ignore]");
        for word in ["todo!", "unimplemented!", "#[ignore", "dbg!"] {
            if source.code.contains(word) && !with_needs(word) {
                wrong.push(format!("{} has {word}", source.relative_path()));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn files_are_short_and_have_module_docs() {
    let mut wrong = Vec::new();
    for source in all_sources() {
        let lines = source.text.lines().count();
        if lines > 500 {
            wrong.push(format!("{} has {lines} lines", source.relative_path()));
        }
        if !source.text.starts_with("//! ") {
            wrong.push(format!("{} does not begin with what it owns", source.relative_path()));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn functions_are_short() {
    let mut wrong = Vec::new();
    for source in all_sources() {
        for (name, lines) in functions(&source.code) {
            if lines > 60 {
                wrong.push(format!("{}: {name} has {lines} lines", source.relative_path()));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// Returns functions with their lengths in lines. The formatter aligns a function's last brace with its first
/// letter.
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

/// Returns the text from the opening parenthesis of a call, with which `rest` begins, up to the closing one.
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

/// State that others may change concurrently has no order: a sort that reads it in each comparison panics.
#[test]
fn comparators_read_no_changing_state() {
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
        let code = &source.production;
        for call in COMPARES {
            for (at, found) in code.match_indices(&format!(".{call}(")) {
                let closure = arguments(&code[at + found.len() - 1..]);
                if let Some(read) = READS.iter().find(|read| closure.contains(**read)) {
                    wrong.push(format!("{}: {call} compares by {read}", source.relative_path()));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// A path that is quoted by hand breaks the shell command once it contains an apostrophe.
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
        let lines = source.text.lines().zip(source.code.lines().zip(source.production.lines()));
        for (at, (line, (code, production))) in lines.enumerate() {
            let is_test = code != production;
            if !is_test && COMMANDS.iter().any(|command| line.contains(command)) {
                wrong.push(format!("{}:{}", source.relative_path(), at + 1));
            }
        }
    }
    assert_eq!(wrong, [""; 0], "explain::quoted_path() does it");
}

/// A filter of the test program that matches nothing passes in silence.
#[test]
fn test_filters_of_ci_name_modules_that_exist() {
    let script = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    let filters: Vec<&str> = script.split_whitespace().filter_map(|word| word.strip_suffix("::")).collect();
    assert!(filters.len() > 20, "{filters:?}");
    let is_module = |folder: &str, filter: &str| {
        let path = root().join(folder).join(filter.replace("::", "/"));
        path.is_dir() || path.with_extension("rs").is_file()
    };
    let missing: Vec<&str> =
        filters.into_iter().filter(|name| !is_module("tests/it", name) && !is_module("src", name)).collect();
    assert_eq!(missing, [""; 0]);
}
