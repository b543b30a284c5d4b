//! Hostile input, over the commands that read it: no command in it runs, no escape sequence reaches the
//! terminal, no file outside is read, and no command waits or grows without end.

mod terminal_runs;

use std::os::unix::fs::symlink;
use std::path::Path;

use proq_test_kit::Sandbox;
pub use terminal_runs::run_on_terminals;

/// Escape sequences by what they change: the clipboard, the screen, hidden text, the direction, the line, the
/// title, links, and the same in one character each.
pub const ESCAPES: &[(&str, &str)] = &[
    ("clipboard", "\u{1b}]52;c;ZXZpbA==\u{7}"),
    ("screen", "\u{1b}[2J\u{1b}[3;4H\u{1b}[8m"),
    ("direction", "\u{202e}\u{2066}\u{61c}\u{200f}"),
    ("line", "\rover\u{8}\u{8}\u{b}\u{c}\u{7f}"),
    ("one-byte", "\u{9b}2J\u{9d}0;x\u{9c}\u{85}"),
    ("title", "\u{1b}]0;x\u{1b}\\\u{1b}]8;;http://x\u{7}\u{1b}Pq\u{1b}\\\u{1b}c"),
];

/// Commands that show text by agents and strangers. `E` stands for the escape sequences.
const SHOW_COMMANDS: &[&str] = &[
    "",
    "list",
    "list --wide",
    "list --all",
    "list --json",
    "show ours",
    "show theirs",
    "show theirs --json",
    "show ours --prompt",
    "show ran",
    "show ran --prompt",
    "show ran --json",
    "logs ran",
    "logs ran --errors",
    "logs ran --json",
    "diff ours --stat",
    "diff theirs --name-only",
    "diff theirs",
    "diff ours",
    "matrix",
    "matrix --json",
    "compare ours",
    "events",
    "events --json",
    "queue",
    "op log",
    "op log --json",
    "op show 1",
    "snap list",
    "snap list --json",
    "agents",
    "agents --json",
    "config list",
    "config list --show-origin",
    "config list --json",
    "doctor",
    "doctor --json",
    "hooks status",
    "plan plan.toml",
    "plan plan.toml --json",
    "plan road.md",
    "deps plan.toml",
    "deps plan.toml --dot",
    "swarm plan.toml --dry-run",
    "swarm road.md --dry-run",
    "status",
    "report",
    "cleanup --dry-run",
    "gc --dry-run",
    "approve",
    "merge ours --dry-run",
    "merge theirs --dry-run",
    "spawn --dry-run -n E --empty",
    "spawn --dry-run --base E --empty",
    "spawn --dry-run -f E",
    "spawn --empty --onto E",
    "show E",
    "show E --json",
    "merge E",
    "discard E",
    "logs E",
    "preview E",
    "edit E --title x",
    "E",
    "list --E",
    "plan E",
    "deps E",
    "wait E",
    "op show E",
    "snap show E",
    "resolve E --abort",
    "task E",
    "run E -- true",
    "edit ours --title E",
    "merge theirs",
    "resolve theirs",
    "list --wide --json",
    "show theirs --conflict",
];

/// Returns a repository in which everything that others can name or write contains these escapes, with two
/// lanes that conflict in a file whose name contains them, too.
pub fn sandbox_with_escapes(escapes: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let file = format!("f{escapes}");
    sandbox.write(&file, "1\n2\n3\n");
    sandbox.commit_all("first");
    for lane in ["ours", "theirs"] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", lane]).ok();
        sandbox.write_in(&sandbox.lane_path(lane), &file, &format!("{lane} {escapes}\n"));
        sandbox.commit_all_in(&sandbox.lane_path(lane), &format!("subject {escapes}"));
        let dir = sandbox.repo.join(".git/proq/lanes").join(lane);
        let title = format!("title {escapes}");
        let record = std::fs::read_to_string(dir.join("lane.toml")).unwrap();
        let record: Vec<&str> = record.lines().filter(|line| !line.starts_with("title = ")).collect();
        let title = toml_escaped(&title);
        std::fs::write(
            dir.join("lane.toml"),
            format!("{}\ntitle = \"{title}\"\n{}\n", record[0], record[1..].join("\n")),
        )
        .unwrap();
        std::fs::write(dir.join("task.md"), format!("task {escapes}\n{escapes}\n")).unwrap();
    }
    sandbox.write_in(&sandbox.root(), "said", escapes);
    let script = "cat \"$ROOT/said\"; cat \"$ROOT/said\" >&2; exit 3";
    let _ = sandbox.proq(&["spawn", "-n", "ran", "--wait", "--", "sh", "-c", script]).fails(4);
    let _ = sandbox.proq(&["merge", "ours"]).ok();
    let _ = sandbox.proq(&["merge", "theirs"]).fails(3);
    sandbox.lane_with_commit("ours", "echo new > new");
    let quoted = toml_escaped(escapes);
    std::fs::create_dir_all(sandbox.root().join("home/.config/git-proq")).unwrap();
    let agents = format!("[agents.\"x{quoted}\"]\nprogram = \"x{quoted}\"\nabout = \"about {quoted}\"\n");
    std::fs::write(sandbox.root().join("home/.config/git-proq/config.toml"), agents).unwrap();
    sandbox.write(
        "proq.toml",
        &format!("\"unknown{quoted}\" = 1\nhook = {{ \"no{quoted}.thing\" = [\"true\"] }}\n"),
    );
    let plan = format!(
        "format = 1\nsummary = \"s {quoted}\"\n[[phase]]\ntitle = \"p {quoted}\"\n[[phase.task]]\nid = \"a\"\ntitle = \"t {quoted}\"\nprompt = \"p {quoted}\"\nscope = [\"s{quoted}\"]\n[[phase.task]]\nid = \"b\"\ntitle = \"B\"\nneeds = [\"a\"]\n"
    );
    sandbox.write("plan.toml", &plan);
    sandbox.write(
        "road.md",
        &format!(
            "# Road {escapes}\n\n## Mile {escapes}\n\n- [ ] A-1: item {escapes}\n- [ ] \n- [ ] B-1: more\n"
        ),
    );
    // Otherwise all would be refused for the same reason.
    let _ = sandbox.proq(&["list"]).ok();
    sandbox
}

/// Returns the control sequences of an output that a terminal acts on, except the program's own: colors and
/// the progress line.
pub fn active_escapes(text: &[u8]) -> Vec<String> {
    const OWN_SEQUENCES: &[&str] = &[
        "m", "0m", "1m", "2m", "4m", "7m", "22m", "31m", "32m", "33m", "34m", "35m", "36m", "39m", "2K", "K",
        "J",
    ];
    let text = String::from_utf8_lossy(text);
    let mut rest = text.as_ref();
    let mut out = Vec::new();
    let marks = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}'];
    // A list that is printed again overwrites the previous one.
    let up = |text: &str| {
        let lines = text.strip_prefix("\u{1b}[")?.split_once('A')?.0;
        (!lines.is_empty() && lines.bytes().all(|b| b.is_ascii_digit())).then_some(lines.len() + 3)
    };
    while let Some(c) = rest.chars().next() {
        if let Some(length) = up(rest) {
            rest = &rest[length..];
            continue;
        }
        let after = &rest[c.len_utf8()..];
        let own =
            after.strip_prefix('[').and_then(|code| OWN_SEQUENCES.iter().find(|own| code.starts_with(**own)));
        match (c, own) {
            ('\u{1b}', Some(own)) => rest = &after[own.len() + 1..],
            // The terminal itself adds these to line ends; what clears the line follows at once.
            ('\r', _)
                if after.starts_with('\n')
                    || after.starts_with("\r\n")
                    || after.starts_with("\u{1b}[2K")
                    || up(after).is_some() =>
            {
                rest = after;
            }
            ('\n' | '\t', _) => rest = after,
            _ => {
                if c.is_control()
                    || c == '\u{61c}'
                    || c == '\u{feff}'
                    || marks.iter().any(|range| range.contains(&c))
                {
                    out.push(format!("{c:?} before {:?}", after.chars().take(20).collect::<String>()));
                }
                rest = after;
            }
        }
    }
    out
}

/// Returns the argument vector of a command line of the table.
pub fn argv(line: &str, escapes: &str) -> Vec<String> {
    let words = line.split_whitespace().map(|word| word.replace('E', escapes).replace('\0', ""));
    std::iter::once("git-proq".to_owned()).chain(words).collect()
}

/// Runs all commands that show text with one kind of escapes, and asserts that none reaches the terminal.
#[track_caller]
fn assert_no_escape_passes(kind: &str) {
    let escapes = ESCAPES.iter().find(|(name, _)| *name == kind).unwrap().1;
    let sandbox = sandbox_with_escapes(escapes);
    let commands: Vec<Vec<String>> = SHOW_COMMANDS.iter().map(|line| argv(line, escapes)).collect();
    let mut wrong = Vec::new();
    for (line, (code, text)) in SHOW_COMMANDS.iter().zip(run_on_terminals(&sandbox, &commands)) {
        let found = active_escapes(&text);
        if !found.is_empty() {
            wrong.push(format!("{line}: {}", found[..found.len().min(3)].join("; ")));
        }
        if !(0..=5).contains(&code) {
            wrong.push(format!(
                "{line}: ends with {code}: {}",
                String::from_utf8_lossy(&text[..text.len().min(300)])
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns how many pairs of a hostile input and a command that reads it are tried in this file.
pub fn pair_count() -> usize {
    let readers: usize = READ_FILES.iter().map(|(_, commands)| commands.len()).sum();
    ESCAPES.len() * SHOW_COMMANDS.len() + FILE_KINDS.len() * readers
}

/// Escapes a text for use between quotes in a TOML file.
fn toml_escaped(text: &str) -> String {
    text.chars().fold(String::new(), |all, c| format!("{all}\\U{:08x}", u32::from(c)))
}

/// Promise: strangers/terminal-escapes
#[test]
fn escapes_do_not_set_clipboard() {
    assert_no_escape_passes("clipboard");
}

/// Promise: strangers/terminal-escapes
#[test]
fn escapes_do_not_clear_screen_or_hide_text() {
    assert_no_escape_passes("screen");
}

/// Promise: strangers/terminal-escapes
#[test]
fn escapes_do_not_change_text_direction() {
    assert_no_escape_passes("direction");
}

/// Promise: strangers/terminal-escapes
#[test]
fn escapes_do_not_overwrite_lines() {
    assert_no_escape_passes("line");
}

/// Promise: strangers/terminal-escapes
#[test]
fn c1_control_characters_are_not_printed() {
    assert_no_escape_passes("one-byte");
}

/// Promise: strangers/terminal-escapes
#[test]
fn escapes_do_not_set_title_or_make_links() {
    assert_no_escape_passes("title");
}

/// Kinds of objects that are put in place of a file.
const FILE_KINDS: &[&str] = &["pipe", "device", "outside", "large", "folder", "dangling", "binary", "deep"];

/// Files that commands read, below the sandbox's folder, with these commands.
const READ_FILES: &[(&str, &[&str])] = &[
    ("repo/proq.toml", &["list", "config list", "show x", "spawn --empty -n y"]),
    ("home/.config/git-proq/config.toml", &["list", "agents", "config list", "spawn --empty -n y"]),
    (
        "repo/.git/proq/lanes/x/lane.toml",
        &["list", "show x", "undo", "doctor", "merge x", "spawn --empty -n y"],
    ),
    ("repo/.git/proq/lanes/x/task.md", &["show x", "run x -- true", "list"]),
    ("repo/.git/proq/ops/1.jsonl", &["op log", "undo", "doctor", "list", "op show 1"]),
    ("repo/.git/proq/ops/9.jsonl", &["op log", "undo", "doctor", "list"]),
    ("repo/.git/proq/locks/store.holder", &["spawn --empty -n y", "list"]),
    ("repo/.git/proq/events.jsonl", &["events", "list", "spawn --empty -n y"]),
    ("repo/.worktreeinclude", &["spawn --empty -n y"]),
    (
        "given",
        &[
            "spawn --empty -n y --attach ../given",
            "spawn -n y -f ../given claude",
            "plan ../given",
            "deps ../given",
            "swarm ../given --dry-run",
        ],
    ),
    ("given.md", &["plan ../given.md", "deps ../given.md"]),
];

/// Puts an object of a kind in place of a file.
fn replace_file(sandbox: &Sandbox, path: &Path, kind: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    drop(std::fs::remove_file(path));
    match kind {
        "pipe" => drop(sandbox.sh_in(&sandbox.root(), &format!("mkfifo '{}'", path.display()))),
        "device" => symlink("/dev/zero", path).unwrap(),
        "outside" => symlink(sandbox.root().join("secret"), path).unwrap(),
        "large" => drop(
            sandbox.sh_in(&sandbox.root(), &format!("yes 'a = 1' | head -c 20000000 > '{}'", path.display())),
        ),
        "folder" => std::fs::create_dir(path).unwrap(),
        "dangling" => symlink("nowhere", path).unwrap(),
        "binary" => std::fs::write(path, [0, 0xff, 0xfe, b'\n'].repeat(1000)).unwrap(),
        _ => std::fs::write(path, "[".repeat(100_000)).unwrap(),
    }
}

/// Removes a file or an empty folder.
fn remove_path(path: &Path) {
    if std::fs::remove_file(path).is_err() {
        drop(std::fs::remove_dir(path));
    }
}

/// Promise: strangers/irregular-files
#[test]
fn irregular_files_are_refused_without_waiting() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x");
    sandbox.agent("claude", "true");
    std::fs::write(sandbox.root().join("secret"), "SECRET-OF-MINE = 1\n").unwrap();
    let mut wrong = Vec::new();
    for (file, lines) in READ_FILES {
        let path = sandbox.root().join(file);
        let original = std::fs::read(&path).ok();
        for kind in FILE_KINDS {
            replace_file(&sandbox, &path, kind);
            let commands: Vec<Vec<String>> = lines.iter().map(|line| argv(line, "")).collect();
            for (line, (code, text)) in lines.iter().zip(run_on_terminals(&sandbox, &commands)) {
                let text = String::from_utf8_lossy(&text[..text.len().min(100_000)]).into_owned();
                // A prompt is printed, however long it is.
                if file.ends_with("task.md") && line.starts_with("show") && matches!(*kind, "large" | "deep")
                {
                    continue;
                }
                if !(0..=5).contains(&code) {
                    wrong.push(format!(
                        "{file}, {kind}, {line}: ends with {code}: {}",
                        text.chars().take(300).collect::<String>()
                    ));
                }
                // The user's own file may be a link, and a file that the user names is read.
                let is_own = file.starts_with("given") || file.starts_with("home");
                if text.contains("SECRET") && !is_own {
                    wrong.push(format!("{file}, {kind}, {line}: read what lies outside: {text}"));
                }
                if text.len() > 20_000 {
                    wrong.push(format!("{file}, {kind}, {line}: prints {} bytes", text.len()));
                }
            }
            remove_path(&path);
            if let Some(kept) = &original {
                std::fs::write(&path, kept).unwrap();
            }
            drop(sandbox.proq(&["discard", "--force", "y"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(std::fs::read_to_string(sandbox.root().join("secret")).unwrap(), "SECRET-OF-MINE = 1\n");
}

/// Promise: strangers/irregular-files
#[test]
fn symlinked_store_is_neither_read_nor_written() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x");
    let elsewhere = sandbox.root().join("elsewhere");
    for name in ["proq", "proq/lanes", "proq/ops", "proq/locks", "proq/cache"] {
        let path = sandbox.repo.join(".git").join(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::rename(&path, sandbox.root().join("kept")).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("passwd"), "").unwrap();
        symlink(&elsewhere, &path).unwrap();
        for args in [
            &["list"][..],
            &["show", "x"],
            &["spawn", "--empty", "-n", "y"],
            &["undo"],
            &["doctor"],
            &["merge", "x"],
            &["gc"],
        ] {
            let out = sandbox.proq(args).fails(1);
            assert!(out.contains("it is a symbolic link"), "{name} {args:?}: {out}");
            assert!(!out.contains("passwd"), "{name} {args:?}: {out}");
        }
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1, "{name}");
        std::fs::remove_dir_all(&elsewhere).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(sandbox.root().join("kept"), &path).unwrap();
    }
    sandbox.assert_healthy();
}

/// Promise: strangers/bounded-output
#[test]
fn repeated_warnings_are_limited() {
    let sandbox = Sandbox::new();
    let lines = |make: &dyn Fn(usize) -> String| (0..10_000).map(make).collect::<String>();
    sandbox.write("proq.toml", &lines(&|n| format!("key-{n} = 1\n")));
    let out = sandbox.proq(&["list"]);
    assert_eq!((out.code, out.stderr.matches("warning: ").count()), (0, 6), "{}", out.stderr);
    assert!(out.stderr.contains("warning: and 9995 more unknown settings"), "{}", out.stderr);
    sandbox.write("proq.toml", &format!("[hook]\n{}", lines(&|n| format!("'no.{n}' = 'x'\n"))));
    let out = sandbox.proq(&["list"]);
    assert_eq!((out.code, out.stderr.matches("warning: ").count()), (0, 6), "{}", out.stderr);
    std::fs::remove_file(sandbox.repo.join("proq.toml")).unwrap();
    sandbox.write(".worktreeinclude", &lines(&|n| format!("/no-{n}\n")));
    let out = sandbox.proq(&["spawn", "--empty", "-n", "x"]);
    assert!(out.code == 0 && out.stderr.lines().count() < 10, "{}", out.stderr);
    sandbox.write("road.md", &format!("# R\n- [ ] a\n{}", "- [ ] \n".repeat(3000)));
    let out = sandbox.proq(&["plan", "road.md"]);
    assert!(out.stderr.lines().count() < 30, "{}", out.stderr);
}

/// Promise: strangers/bounded-output
#[test]
fn large_dependency_tree_output_stays_small() {
    let sandbox = Sandbox::new();
    let needs =
        |n: usize| (n.saturating_sub(60)..n).map(|need| format!("'t{need}'")).collect::<Vec<_>>().join(", ");
    let task = |n: usize| format!("[[phase.task]]\nid = 't{n}'\ntitle = 'T'\nneeds = [{}]\n", needs(n));
    sandbox
        .write("plan.toml", &format!("format = 1\n[[phase]]\n{}", (0..1000).map(task).collect::<String>()));
    let out = sandbox.proq(&["deps", "plan.toml"]).ok();
    assert!(out.len() < 2_000_000, "{} bytes", out.len());
    assert!(out.contains("… and more that are shown above"));
}
