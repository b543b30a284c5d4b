//! Owns the tests of input that others wrote to do harm, over the commands that read it: no command of it runs, nothing that a
//! terminal obeys comes out, no file outside is read, and no command waits or grows without end.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use super::support::Sandbox;

/// Runs commands one after the other, each on a terminal of its own that is 200 columns wide, with little memory, and ends those
/// that take long. Prints `[exit code or -1, output in hex, KiB of memory, seconds of processor]` for each, its children included.
const TERMINALS: &str = r#"
import fcntl, json, os, pty, resource, select, signal, struct, sys, termios, time
MOST, LONG = 2 << 20, float(sys.argv[1])
out = []
for argv in json.load(sys.stdin):
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.execvp(argv[0], argv)
    text, end, done = b"", time.monotonic() + LONG, False
    while time.monotonic() < end and len(text) < MOST:
        if not select.select([fd], [], [], 0.5)[0]: continue
        try: part = os.read(fd, 65536)
        except OSError: part = b""
        if not part:
            done = True
            break
        text += part
    if not done: os.kill(pid, signal.SIGKILL)
    os.close(fd)
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status) if done else -1
    out.append([code, text.hex(), used.ru_maxrss, used.ru_utime + used.ru_stime])
print(json.dumps(out))
"#;

/// How long a command may take, in seconds. Each takes a small part of it, on an idle machine.
const LONG: &str = "20";

/// What acts on a terminal, by name: the clipboard, the screen, hidden text, the direction, the line, the title, links, and the
/// same in one character each.
pub const ESCAPES: &[(&str, &str)] = &[
    ("clipboard", "\u{1b}]52;c;ZXZpbA==\u{7}"),
    ("screen", "\u{1b}[2J\u{1b}[3;4H\u{1b}[8m"),
    ("direction", "\u{202e}\u{2066}\u{61c}\u{200f}"),
    ("line", "\rover\u{8}\u{8}\u{b}\u{c}\u{7f}"),
    ("one-byte", "\u{9b}2J\u{9d}0;x\u{9c}\u{85}"),
    ("title", "\u{1b}]0;x\u{1b}\\\u{1b}]8;;http://x\u{7}\u{1b}Pq\u{1b}\\\u{1b}c"),
];

/// Commands that show what agents and strangers wrote. `E` stands for the escapes.
const SHOWN: &[&str] = &[
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

/// A repository in which everything that others can name or write holds these escapes, with two lanes that conflict in a file
/// whose name has them, too.
pub fn scene(escapes: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let file = format!("f{escapes}");
    sandbox.write(&file, "1\n2\n3\n");
    sandbox.commit_all("first");
    for lane in ["ours", "theirs"] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", lane]).ok();
        sandbox.write_in(&sandbox.lane(lane), &file, &format!("{lane} {escapes}\n"));
        sandbox.commit_all_in(&sandbox.lane(lane), &format!("subject {escapes}"));
        let dir = sandbox.repo.join(".git/proq/lanes").join(lane);
        let title = format!("title {escapes}");
        let record = std::fs::read_to_string(dir.join("lane.toml")).unwrap();
        let record: Vec<&str> = record.lines().filter(|line| !line.starts_with("title = ")).collect();
        let title = in_toml(&title);
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
    sandbox.lane_of("ours", "echo new > new");
    let quoted = in_toml(escapes);
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
    // Else all would be refused for the same reason.
    let _ = sandbox.proq(&["list"]).ok();
    sandbox
}

/// What in the output of a program is obeyed by a terminal and is not the program's own: colours, and the line of progress.
pub fn obeyed(text: &[u8]) -> Vec<String> {
    const OWN: &[&str] = &[
        "m", "0m", "1m", "2m", "4m", "7m", "22m", "31m", "32m", "33m", "34m", "35m", "36m", "39m", "2K", "K",
        "J",
    ];
    let text = String::from_utf8_lossy(text);
    let mut rest = text.as_ref();
    let mut out = Vec::new();
    let marks = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}'];
    // A list that is shown once more is written over the former.
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
        let own = after.strip_prefix('[').and_then(|code| OWN.iter().find(|own| code.starts_with(**own)));
        match (c, own) {
            ('\u{1b}', Some(own)) => rest = &after[own.len() + 1..],
            // The terminal itself makes these of line ends; what clears the line follows at once.
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

/// How much memory a command may take, in KiB, and how many seconds of processor: both far more than an ordinary run.
const MOST_MEMORY: i64 = 130 << 10;
const MOST_TIME: f64 = 3.0;

/// Runs them all, each within bounds of memory and time; returns the exit code and the output of each.
pub fn on_terminals(sandbox: &Sandbox, commands: &[Vec<String>]) -> Vec<(i64, Vec<u8>)> {
    let mut command = sandbox.command("python3", &sandbox.repo);
    command
        .args(["-c", TERMINALS, LONG])
        .env("TERM", "xterm-256color")
        .env("PAGER", "cat")
        .stdout(Stdio::piped());
    let asked = serde_json::to_vec(&json!(commands)).unwrap();
    let out = sandbox.output_with(command, &asked).ok();
    let all: Vec<(i64, String, i64, f64)> = serde_json::from_str(&out).unwrap();
    for (line, (_, _, memory, time)) in commands.iter().zip(&all) {
        assert!(*memory <= MOST_MEMORY && *time <= MOST_TIME, "{line:?} took {memory} KiB and {time} s");
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    all.into_iter().map(|(code, hex, ..)| (code, hex.as_bytes().chunks(2).map(byte).collect())).collect()
}

/// The words of a command line of the table.
pub fn words(line: &str, escapes: &str) -> Vec<String> {
    let words = line.split_whitespace().map(|word| word.replace('E', escapes).replace('\0', ""));
    std::iter::once("git-proq".to_owned()).chain(words).collect()
}

/// One table for one kind of escapes.
#[track_caller]
fn nothing_gets_through(kind: &str) {
    let escapes = ESCAPES.iter().find(|(name, _)| *name == kind).unwrap().1;
    let sandbox = scene(escapes);
    let commands: Vec<Vec<String>> = SHOWN.iter().map(|line| words(line, escapes)).collect();
    let mut wrong = Vec::new();
    for (line, (code, text)) in SHOWN.iter().zip(on_terminals(&sandbox, &commands)) {
        let found = obeyed(&text);
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

/// How many pairs of a hostile input and a command that meets it are tried in this file.
pub fn pairs() -> usize {
    let readers: usize = FILES.iter().map(|(_, commands)| commands.len()).sum();
    ESCAPES.len() * SHOWN.len() + KINDS.len() * readers
}

/// A text as it may stand between quotes in a TOML file.
fn in_toml(text: &str) -> String {
    text.chars().fold(String::new(), |all, c| format!("{all}\\U{:08x}", u32::from(c)))
}

#[test]
fn nothing_sets_the_clipboard() {
    nothing_gets_through("clipboard");
}

#[test]
fn nothing_clears_the_screen_or_hides_text() {
    nothing_gets_through("screen");
}

#[test]
fn nothing_turns_a_line_around() {
    nothing_gets_through("direction");
}

#[test]
fn nothing_writes_over_a_line() {
    nothing_gets_through("line");
}

#[test]
fn nothing_of_the_upper_control_characters_comes_out() {
    nothing_gets_through("one-byte");
}

#[test]
fn nothing_names_the_window_or_makes_links() {
    nothing_gets_through("title");
}

/// What may stand in the place of a file.
const KINDS: &[&str] = &["pipe", "device", "outside", "large", "folder", "dangling", "binary", "deep"];

/// Files that are read, below the sandbox's folder, and the commands that read them.
const FILES: &[(&str, &[&str])] = &[
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

/// Puts something of a kind in the place of a file.
fn put(sandbox: &Sandbox, place: &Path, kind: &str) {
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    drop(std::fs::remove_file(place));
    match kind {
        "pipe" => drop(sandbox.sh_in(&sandbox.root(), &format!("mkfifo '{}'", place.display()))),
        "device" => symlink("/dev/zero", place).unwrap(),
        "outside" => symlink(sandbox.root().join("secret"), place).unwrap(),
        "large" => drop(
            sandbox
                .sh_in(&sandbox.root(), &format!("yes 'a = 1' | head -c 20000000 > '{}'", place.display())),
        ),
        "folder" => std::fs::create_dir(place).unwrap(),
        "dangling" => symlink("nowhere", place).unwrap(),
        "binary" => std::fs::write(place, [0, 0xff, 0xfe, b'\n'].repeat(1000)).unwrap(),
        _ => std::fs::write(place, "[".repeat(100_000)).unwrap(),
    }
}

/// Takes it away again.
fn clear(place: &Path) {
    if std::fs::remove_file(place).is_err() {
        drop(std::fs::remove_dir(place));
    }
}

#[test]
fn what_stands_in_the_place_of_a_file_is_refused_and_not_waited_for() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo x > x");
    sandbox.agent("claude", "true");
    std::fs::write(sandbox.root().join("secret"), "SECRET-OF-MINE = 1\n").unwrap();
    let mut wrong = Vec::new();
    for (file, lines) in FILES {
        let place = sandbox.root().join(file);
        let kept = std::fs::read(&place).ok();
        for kind in KINDS {
            put(&sandbox, &place, kind);
            let commands: Vec<Vec<String>> = lines.iter().map(|line| words(line, "")).collect();
            for (line, (code, text)) in lines.iter().zip(on_terminals(&sandbox, &commands)) {
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
                // The user's own file may be a link, and what the user names is read.
                let is_own = file.starts_with("given") || file.starts_with("home");
                if text.contains("SECRET") && !is_own {
                    wrong.push(format!("{file}, {kind}, {line}: read what lies outside: {text}"));
                }
                if text.len() > 20_000 {
                    wrong.push(format!("{file}, {kind}, {line}: prints {} bytes", text.len()));
                }
            }
            clear(&place);
            if let Some(kept) = &kept {
                std::fs::write(&place, kept).unwrap();
            }
            drop(sandbox.proq(&["discard", "--force", "y"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(std::fs::read_to_string(sandbox.root().join("secret")).unwrap(), "SECRET-OF-MINE = 1\n");
}

#[test]
fn a_store_that_leads_elsewhere_is_neither_read_nor_written() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo x > x");
    let elsewhere = sandbox.root().join("elsewhere");
    for name in ["proq", "proq/lanes", "proq/ops", "proq/locks", "proq/cache"] {
        let place = sandbox.repo.join(".git").join(name);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::rename(&place, sandbox.root().join("kept")).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("passwd"), "").unwrap();
        symlink(&elsewhere, &place).unwrap();
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
        std::fs::remove_file(&place).unwrap();
        std::fs::rename(sandbox.root().join("kept"), &place).unwrap();
    }
    sandbox.assert_healthy();
}

#[test]
fn what_counts_for_nothing_is_named_a_few_times() {
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

#[test]
fn a_tree_of_many_tasks_with_many_needs_stays_small() {
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
