//! Tables and pages at each width of a terminal: no row is wider, and no word is cut without a sign.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use proq_test_kit::plans::repo_with_plan;
use proq_test_kit::{PTY_SCRIPT, Sandbox};

/// Widths of terminals, in characters.
const WIDTHS: [usize; 5] = [40, 60, 80, 100, 140];

/// Returns a repository with lanes of all kinds: long and numbered names, conflicts, attempts and landed ones.
fn sandbox_with_lanes() -> Sandbox {
    let sandbox = Sandbox::new();
    let _ = sandbox.sh("seq 29 > numbers.txt");
    sandbox.write("guide.md", "A guide.\n");
    sandbox.commit_all("numbers and a guide");
    sandbox.program("robot", "sed -i 's/^5$/five/' numbers.txt; seq 20 > table.txt");
    let prompt = "Accept payments by invoice, with reminders and a table of rates";
    let name = "accept-payments-by-invoice-and-card";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", name, "robot", prompt]).ok();
    sandbox.run_lane("lane-2", "sed -i s/^5$/cinq/ numbers.txt");
    sandbox.run_lane("lane-10", "echo more >> guide.md");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "bad", "--", "sh", "-c", "exit 3"]).fails(4);
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "2", "-n", "pay"]).ok();
    sandbox.commit_in_lane("pay-2", "echo two > two.txt");
    sandbox.run_lane("docs", "echo docs > docs.txt");
    let _ = sandbox.proq(&["merge", "docs"]).ok();
    sandbox.write("guide.md", "A guide of mine.\n");
    let _ = sandbox.proq(&["preview", "lane-2"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.git(&["checkout", "guide.md"]);
    sandbox
}

/// Returns what a command prints on standard output of a terminal with this width.
fn screen(sandbox: &Sandbox, args: &[&str], width: usize) -> String {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("COLUMNS", width.to_string());
    sandbox.output(command).stdout
}

/// Returns the words of a text that are not cut.
fn whole_words(text: &str) -> BTreeSet<String> {
    let trimmed = |word: &str| word.trim_matches([';', ',', ':']).to_owned();
    text.split_whitespace().filter(|word| !word.contains('…')).map(trimmed).collect()
}

/// Returns the screens of a command at all widths, each below its width, after a check of every row and word.
fn screens(sandbox: &Sandbox, args: &[&str]) -> String {
    let mut known = whole_words(&screen(sandbox, args, 1000));
    // The note on hidden columns, and the sign between a setting and its value.
    known.extend(["column", "columns", "hidden", "="].map(str::to_owned));
    let mut out = String::new();
    for width in WIDTHS {
        let text = screen(sandbox, args, width);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{args:?} at {width}: {line:?}");
        }
        let is_cut = |word: &&String| !known.contains(*word) && word.parse::<u32>().is_err();
        let words = whole_words(&text);
        let cut: Vec<&String> = words.iter().filter(is_cut).collect();
        assert!(cut.is_empty(), "{args:?} at {width}: {cut:?} in\n{text}");
        out.push_str(&format!("---- {width}\n{text}"));
    }
    out
}

#[test]
fn every_screen_fits_every_width() {
    let sandbox = sandbox_with_lanes();
    let long = "accept-payments-by-invoice-and-card";
    for (name, args) in [
        ("overview", &[][..]),
        ("list", &["list", "--all", "--wide"]),
        ("op log", &["op", "log"]),
        ("show", &["show", long]),
        ("merge --dry-run", &["merge", "--all", "--dry-run"]),
        ("matrix", &["matrix"]),
        ("snap list", &["snap", "list"]),
        ("config list", &["config", "list"]),
        ("agents", &["agents"]),
    ] {
        let text = screens(&sandbox, args);
        if !["snap list", "config list", "agents"].contains(&name) {
            insta::with_settings!({ snapshot_suffix => name.replace(' ', "-") }, {
                insta::assert_snapshot!("screen", text);
            });
        }
    }
}

#[test]
fn batch_screens_fit_every_width() {
    let plan = "format = 1\nsummary = \"A shop with invoices and a table of rates\"\nagent = \"worker\"\n\
        [[task]]\nid = \"invoices\"\ntitle = \"Send invoices and reminders by mail, with a log\"\n\
        [[task]]\nid = \"rates-of-exchange-by-country\"\ntitle = \"Rates\"\nneeds = [\"invoices\"]\n";
    let sandbox = repo_with_plan(plan);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    for (name, args) in [("status", &["status", "--all"][..]), ("report", &["report"])] {
        let text = screens(&sandbox, args);
        if name == "status" {
            insta::with_settings!({ snapshot_suffix => name }, {
                insta::assert_snapshot!("screen", text);
            });
        }
    }
    let batch = sandbox.proq(&["status", "--all", "--json"]).json()["batches"][0]["batch"].clone();
    let text = screens(&sandbox, &["status", batch.as_str().unwrap()]);
    insta::with_settings!({ snapshot_suffix => "batch" }, {
        insta::assert_snapshot!("screen", text);
    });
}

#[test]
fn piped_tables_are_not_cut() {
    let sandbox = sandbox_with_lanes();
    let list = sandbox.proq(&["list"]).ok();
    assert!(list.contains("accept-payments-by-invoice-and-card") && !list.contains('…'), "{list}");
    assert!(!list.contains("would land"), "the footer is for terminals: {list}");
    let log = sandbox.proq(&["op", "log"]).ok();
    let command = "git proq spawn --wait -n lane-2 -- sh -ec 'sed -i s/^5$/cinq/ numbers.txt'";
    assert!(log.contains(command) && !log.contains('…'), "{log}");
}

#[test]
fn logged_commands_are_words_of_a_shell() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "-n", "quoted", "--wait", "--", "true", "don't \"stop\" $HOME"]).ok();
    let command = sandbox.proq(&["op", "log", "--json"]).json()["operations"][0]["command"].clone();
    let echo = "printf '%s\\n'";
    let start = "git proq spawn -n quoted --wait -- true";
    let echoed = sandbox.sh(&command.as_str().unwrap().replacen(start, echo, 1));
    assert!(echoed.lines().any(|line| line == "don't \"stop\" $HOME"), "{echoed}");
}

#[test]
fn list_is_filtered() {
    let sandbox = sandbox_with_lanes();
    let names = |args: &[&str]| -> Vec<String> {
        let list = sandbox.proq(&[&["list", "--json"], args].concat()).json();
        let lanes = list["lanes"].as_array().unwrap();
        lanes.iter().map(|lane| lane["name"].as_str().unwrap().to_owned()).collect()
    };
    let long = "accept-payments-by-invoice-and-card";
    assert_eq!(names(&[]), [long, "bad", "lane-2", "lane-10", "pay-1", "pay-2"]);
    assert_eq!(names(&["--agent", "robot"]), [long]);
    assert_eq!(names(&["--state", "failed"]), ["bad"]);
    assert_eq!(names(&["--state", "failed", "--state", "idle"]), ["bad", "pay-1", "pay-2"]);
    assert_eq!(names(&["pay", "lane-10"]), ["pay-1", "pay-2", "lane-10"]);
    assert_eq!(names(&["lane-2", "--state", "failed"]), [""; 0]);
    let unknown = sandbox.proq(&["list", "nowhere"]).fails(1);
    assert!(unknown.contains("nowhere"), "{unknown}");
    let wrong = sandbox.proq(&["list", "--state", "sleepy"]).fails(2);
    assert!(wrong.contains("done, running"), "{wrong}");
}

#[test]
fn watched_list_follows_changes() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("first", "echo 1 > one.txt");
    let mut command = sandbox.proq_command(&sandbox.repo, &["list", "--watch", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lists = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| {
        let list: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        list["lanes"].as_array().unwrap().len()
    });
    assert_eq!(lists.next(), Some(1));
    sandbox.lane_with_commit("second", "echo 2 > two.txt");
    assert!(lists.any(|count| count == 2));
    sandbox.sh(&format!("kill -INT {}", child.id()));
    lists.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn color_follows_option_environment_and_git() {
    let sandbox = sandbox_with_lanes();
    let is_colored = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.env("TERM", "xterm").envs(variables.iter().copied());
        command.output().unwrap().stdout.contains(&0x1b)
    };
    assert!(!is_colored(&["list"], &[]));
    assert!(is_colored(&["list"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!is_colored(&["list"], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(is_colored(&["list", "--color=always"], &[("NO_COLOR", "1")]));
    sandbox.git(&["config", "color.ui", "always"]);
    assert!(is_colored(&["list"], &[]));
    assert!(!is_colored(&["list"], &[("NO_COLOR", "1")]));
    assert!(!is_colored(&["list", "--color", "never"], &[]));
    sandbox.git(&["config", "color.ui", "never"]);
    assert!(is_colored(&["list", "--color", "always"], &[]));
}

#[test]
fn pager_shows_only_what_is_longer_than_screen() {
    let sandbox = sandbox_with_lanes();
    sandbox.program("pager", "echo PAGED; cat");
    let paged = |rows: u16, args: &str, pager: &str| {
        let size = format!("stty rows {rows} columns 80");
        let script = format!("{size}; TERM=xterm GIT_PAGER='{pager}' git-proq {args}");
        let mut command = sandbox.command("python3", &sandbox.repo);
        command.args(["-c", PTY_SCRIPT, "sh", "-c", &script]);
        sandbox.output(command).stdout.contains("PAGED")
    };
    assert!(paged(8, "list", "pager"));
    assert!(!paged(40, "list", "pager"));
    assert!(!paged(8, "list --no-pager", "pager"));
    assert!(!paged(8, "list", "cat"));
    assert!(!paged(8, "list --json", "pager"));
    assert!(!sandbox.proq(&["list"]).ok().contains("PAGED"));
}
