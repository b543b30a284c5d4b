//! Rules about the sources: layers, which modules may print, start programs or exit, and length limits.

mod engine;
pub(crate) mod source_code;
mod store_paths;

use std::collections::BTreeSet;
use std::path::PathBuf;

use source_code::{all_sources, crate_paths, paths_after, product_folders, product_sources, root, sources};

/// Crates of the workspace that each crate may depend on. The compiler holds them to it.
const ALLOWED_CRATES: &[(&str, &[&str])] = &[
    ("crates/explain-derive", &[]),
    ("crates/base", &["proq-explain-derive"]),
    ("crates/git", &["proq-base"]),
    ("crates/store", &["proq-base", "proq-git"]),
    ("crates/stream", &["proq-base"]),
    ("crates/plan", &["proq-base", "proq-git"]),
    ("crates/lib", &["proq-base", "proq-git", "proq-store", "proq-stream", "proq-plan"]),
    (".", &["proq-base", "proq-stream", "proq-plan", "proq-lib"]),
];

/// Rooms of `crates/lib` below `lane`: each room that may name `lane` may name them too.
const ROOMS_BELOW_LANE: &[&str] = &["operation", "project", "errors"];

/// Rooms of `crates/lib` that each room may name.
const ALLOWED_ROOMS: &[(&str, &[&str])] = &[
    ("probe", &["ops"]),
    ("facade", &["board", "swarm", "ops", "merge", "lane"]),
    ("health", &["step_kinds", "swarm", "agent", "snapshot", "lane", "event"]),
    ("board", &["swarm", "ops", "merge", "agent", "preview", "session", "snapshot", "run", "lane", "event"]),
    ("swarm", &["ops", "merge", "agent", "preview", "session", "snapshot", "run", "watch", "lane", "event"]),
    ("ops", &["merge", "agent", "preview", "session", "snapshot", "run", "watch", "lane", "event"]),
    ("merge", &["agent", "preview", "run", "lane", "event"]),
    ("agent", &["session", "snapshot", "run", "watch", "lane", "event"]),
    ("preview", &["snapshot", "lane", "event"]),
    ("session", &["run", "lane", "event"]),
    ("snapshot", &["lane", "event"]),
    ("run", &["lane", "event"]),
    ("watch", &["lane", "event"]),
    ("step_kinds", &["session", "run", "lane"]),
    ("lane", &["operation", "project", "errors", "event"]),
    ("operation", &["project", "errors", "event"]),
    ("project", &["errors", "event"]),
    ("errors", &[]),
    ("event", &[]),
    ("types", &["swarm", "merge", "agent", "lane"]),
];

/// What records may name of git: plain types.
const GIT_TYPES_IN_STORE: &[&str] = &[
    "BlobId",
    "CommitId",
    "Oid",
    "RepoPath",
    "TreeId",
    "base::head",
    "snapshots::snapshot::Snapshot",
    "status::local_state::LocalState",
    "worktrees::misplaced::WorktreeId",
];

/// Returns every line of production code that contains a wanted text, as `file: line`, outside of allowed
/// files.
fn matching_lines(allowed: impl Fn(&str) -> bool, wanted: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    for source in product_sources().iter().filter(|s| !allowed(&s.relative_path())) {
        for line in source.production.lines() {
            if wanted.iter().any(|w| line.contains(w)) {
                out.push(format!("{}: {}", source.relative_path(), line.trim()));
            }
        }
    }
    out
}

#[test]
fn crates_depend_only_on_lower_crates() {
    let mut found = Vec::new();
    for folder in product_folders() {
        let member = folder.strip_suffix("/src").unwrap_or(".").to_owned();
        let manifest = std::fs::read_to_string(root().join(&member).join("Cargo.toml")).unwrap();
        let (_, allowed) = ALLOWED_CRATES.iter().find(|(name, _)| *name == member).expect(&member);
        let dependencies = manifest.lines().filter_map(|line| line.strip_suffix(".workspace = true"));
        for name in dependencies.filter(|name| name.starts_with("proq-")) {
            if !allowed.contains(&name) {
                found.push(format!("{member} depends on {name}"));
            }
        }
    }
    assert_eq!(found, [""; 0]);
}

#[test]
fn rooms_name_only_lower_rooms() {
    let mut wrong = Vec::new();
    // The repository for unit tests, `tests.rs`, stands beside the rooms and is used by all of them.
    let beside_rooms = ["lib.rs", "tests.rs"];
    let all = sources("crates/lib/src");
    for source in all.iter().filter(|source| !beside_rooms.contains(&source.path_in_crate().as_str())) {
        let room = source.top_module();
        let (_, allowed) = ALLOWED_ROOMS
            .iter()
            .find(|(name, _)| *name == room)
            .unwrap_or_else(|| panic!("no rule for {room}"));
        for path in crate_paths(&source.production) {
            let named = path.split("::").next().unwrap();
            let is_below_lane = allowed.contains(&"lane") && ROOMS_BELOW_LANE.contains(&named);
            if named != room && !allowed.contains(&named) && !is_below_lane {
                wrong.push(format!("{} names {path}", source.relative_path()));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn records_name_only_plain_types_of_git() {
    let mut wrong = Vec::new();
    for source in sources("crates/store/src") {
        for path in paths_after(&source.production, "proq_git::") {
            let is_plain =
                GIT_TYPES_IN_STORE.iter().any(|t| path == *t || path.starts_with(&format!("{t}::")));
            if !is_plain {
                wrong.push(format!("{} names {path}", source.relative_path()));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn only_git_uses_gix_or_starts_git() {
    let git = |path: &str| path.starts_with("crates/git/");
    assert_eq!(matching_lines(git, &["gix"]), [""; 0]);
    assert_eq!(matching_lines(git, &[" Program {", ":Program {", "(Program {", "&Program {"]), [""; 0]);
}

#[test]
fn command_line_names_neither_git_nor_store() {
    let is_below = |path: &str| !path.starts_with("src/");
    assert_eq!(matching_lines(is_below, &["proq_git", "proq_store"]), [""; 0]);
}

/// No code of the product is compiled only with debug assertions, or only without: a release, which tests do
/// not build, compiles nothing that they have not compiled. Where the two differ, `cfg!` chooses a branch.
#[test]
fn release_build_has_no_extra_code() {
    assert_eq!(matching_lines(|_| false, &["cfg(debug_assertions", "cfg(not(debug_assertions"]), [""; 0]);
}

#[test]
fn only_process_and_git_start_programs() {
    let both = |path: &str| {
        path.starts_with("crates/git/")
            || path.starts_with("crates/base/src/process/")
            // Only tests compile it.
            || ["crates/lib/src/tests.rs", "crates/lib/src/event/log/tests.rs"].contains(&path)
    };
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
    let hooks = |path: &str| path == "crates/git/src/program/hook_output.rs";
    // The supervisor reports to the process that started it on its standard output.
    let may_print = |path: &str| {
        path.starts_with("src/cli/")
            || path == "crates/lib/src/agent/supervise/supervisor_start.rs"
            || hooks(path)
    };
    assert_eq!(matching_lines(may_print, &["println!", "print!", "io::stdout", "io::stderr"]), [""; 0]);
    let cli = |path: &str| path.starts_with("src/cli/") || hooks(path);
    assert_eq!(
        matching_lines(cli, &["println!", "print!", "io::stderr", "process::exit", "process::abort"]),
        [""; 0]
    );
    // A lock's holder file contains the command line of its holder.
    let args = |path: &str| path.starts_with("src/cli/") || path == "crates/store/src/locks/holder.rs";
    assert_eq!(matching_lines(args, &["env::args"]), [""; 0]);
}

/// Promise: strangers/terminal-escapes
#[test]
fn raw_terminal_output_is_limited_to_few_files() {
    // Everything else goes through `ui`, which prints only `Printable`.
    let ui = |path: &str| {
        path == "src/cli/terminal/ui.rs" || path == "crates/lib/src/agent/supervise/supervisor_start.rs"
    };
    assert_eq!(matching_lines(ui, &["stdout().lock()", "stderr().lock()", "io::stdout(), "]), [""; 0]);
    // Logs and diffs, which have a view of their own, and `--raw`; and answers to other programs.
    let raw = ["cli/terminal/ui.rs", "cli/inspect/logs.rs", "cli/inspect/diff.rs", "cli/app/internal.rs"];
    assert_eq!(matching_lines(|path| raw.iter().any(|raw| path.ends_with(raw)), &[".raw("]), [""; 0]);
    // Programs that get the terminal: git with its pager or editor, a shell, editor or agent of the user's, tmux.
    let terminal = [
        "base/src/process/command_builder.rs",
        "git/src/program/command.rs",
        "git/src/status/diff.rs",
        "git/src/merge/resolve.rs",
        "git/src/repository/settings.rs",
        "agent/tmux/tmux_window.rs",
        "lib/src/ops/land/merge/messages.rs",
        "lib/src/ops/land/resolve.rs",
        "lib/src/ops/open.rs",
        "lib/src/ops/supervise.rs",
    ];
    let terminal = |path: &str| terminal.iter().any(|file| path.ends_with(file));
    assert_eq!(matching_lines(terminal, &["run_on_terminal(", "Stdio::inherit()"]), [""; 0]);
    // Hooks of the repository, whose output git passes on as well.
    let hooks =
        |path: &str| ["crates/git/src/program/command.rs", "crates/git/src/hooks/hook.rs"].contains(&path);
    assert_eq!(matching_lines(hooks, &["run_beside("]), [""; 0]);
}

/// `Layout` has a function for each file and folder below `proq/`. A name that is joined elsewhere, such as in
/// a worktree, is listed in `store_paths.rs`.
#[test]
fn only_store_joins_paths_below_proq() {
    assert_eq!(store_paths::misplaced_names(), [""; 0]);
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
        // A function of a trait may have no body.
        let ends_declaration = |l: &str| {
            let rest = l.strip_prefix(indent).filter(|rest| rest.ends_with(';'));
            rest.is_some_and(|rest| rest.starts_with("fn ") || rest.starts_with(')'))
        };
        let end = lines[at..]
            .iter()
            .position(|l| *l == format!("{indent}}}") || l.trim_end().ends_with("{}") || ends_declaration(l));
        let name = after.split(['(', '<']).next().unwrap();
        out.push((name.to_owned(), end.map_or(1, |n| n + 1)));
    }
    out
}

/// Folders of the test programs, which have a `main.rs` each.
fn test_programs() -> Vec<PathBuf> {
    let folders = std::fs::read_dir(root().join("tests")).unwrap().flatten().map(|entry| entry.path());
    folders.filter(|folder| folder.join("main.rs").is_file()).collect()
}

#[test]
fn every_test_file_is_declared() {
    for folder in test_programs() {
        let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
        let declared: BTreeSet<&str> =
            main.lines().filter_map(|l| l.strip_prefix("mod ")).map(|l| l.trim_end_matches(';')).collect();
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let module = name.strip_suffix(".rs").filter(|module| *module != "main");
            found.extend(module.or(entry.path().is_dir().then_some(&*name)).map(str::to_owned));
        }
        let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(declared, found, "{}", folder.display());
    }
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
        "read(",
        "read_",
        "metadata",
        "exists()",
        "is_file()",
        "is_dir()",
        "now()",
    ];
    let mut wrong = Vec::new();
    for source in product_sources() {
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
    for source in product_sources() {
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
    let is_module = |filter: &&str| {
        let file = filter.replace("::", "/");
        let mut paths = test_programs().into_iter().map(|folder| folder.join(&file));
        paths.any(|path| path.is_dir() || path.with_extension("rs").is_file())
    };
    let missing: Vec<&str> = filters.into_iter().filter(|name| !is_module(name)).collect();
    assert_eq!(missing, [""; 0]);
}
