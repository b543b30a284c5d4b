//! Tests of the command line itself: help, aliases, old spellings, and errors in how a command was typed.

use std::io::{BufRead, BufReader};

use proq_test_kit::Sandbox;
use proq_test_kit::waiting::KilledOnDrop;

/// Runs each command line, which fails with 2, and returns the command lines with their answers.
fn answers(command_lines: &[&[&str]]) -> String {
    let sandbox = Sandbox::new();
    sandbox.program("claude", "true");
    let answer = |args: &&[&str]| format!("$ {}\n{}", args.join(" "), sandbox.proq(args).fails(2));
    command_lines.iter().map(answer).collect()
}

#[test]
fn unknown_words_are_answered_with_a_corrected_command() {
    let answers = answers(&[
        &["lst", "--json=x"],
        &["lst"],
        &["delete", "pay"],
        &["op", "lgo"],
        &["nothing"],
        &["merge", "--sqash"],
        &["merge", "--strategi=squash", "pay"],
        &["merge", "--all", "pay"],
        &["show"],
        &["preview", "a", "b"],
        &["task"],
        &["compare", "pay", "--jobs", "2"],
    ]);
    insta::assert_snapshot!(answers, @"
    $ lst --json=x
    error: unknown command 'lst'
    hint: did you mean: git proq list --json=x
    $ lst
    error: unknown command 'lst'
    hint: did you mean: git proq list
    $ delete pay
    error: unknown command 'delete'
    hint: did you mean: git proq discard pay
    $ op lgo
    error: unknown subcommand 'lgo' of git proq op
    hint: see the help: git proq help op
    $ nothing
    error: unknown command 'nothing'
    hint: see all commands: git proq help --all
    $ merge --sqash
    error: unknown option '--sqash' for git proq merge
    hint: did you mean: git proq merge --squash
    $ merge --strategi=squash pay
    error: unknown option '--strategi' for git proq merge
    hint: did you mean: git proq merge --strategy=squash pay
    $ merge --all pay
    error: cannot combine --all with LANE
    hint: see the help: git proq help merge
    $ show
    error: no lane given, and the current folder is not in a lane's worktree
    hint: see all lanes: git proq list
    $ preview a b
    error: unexpected argument 'b' for git proq preview
    hint: see the help: git proq help preview
    $ task
    error: missing subcommand: read or update
    hint: for example: git proq task read
    $ compare pay --jobs 2
    error: missing argument for git proq compare: --checks
    hint: add it: git proq compare pay --jobs 2 --checks
    ");
}

#[test]
fn words_of_other_programs_are_answered_with_a_command() {
    let answers = answers(&[
        &["merge", "-n", "pay"],
        &["diff", "one", "two"],
        &["shell", "pay"],
        &["continue"],
        &["dashboard"],
        &["inspect", "pay"],
        &["config", "merge.strategy"],
        &["config", "merge.strategy", "squash"],
        &["attach", "a", "b"],
        &["edit", "pay", "--title", "one\ntwo"],
    ]);
    insta::assert_snapshot!(answers, @r#"
    $ merge -n pay
    error: unknown option '-n' for git proq merge
    hint: did you mean: git proq merge --dry-run pay
    $ diff one two
    error: git proq diff takes one lane, and 'two' is another
    hint: compare lanes: git proq compare one two
    $ shell pay
    error: unknown command 'shell'
    hint: did you mean: git proq open pay --shell
    $ continue
    error: unknown command 'continue'
    hint: did you mean: git proq resolve --continue
    $ dashboard
    error: unknown command 'dashboard'
    hint: did you mean: git proq list --watch
    $ inspect pay
    error: unknown command 'inspect'
    hint: did you mean: git proq show pay
    $ config merge.strategy
    error: missing subcommand of git proq config
    hint: show it: git proq config get merge.strategy
    $ config merge.strategy squash
    error: missing subcommand of git proq config
    hint: set it: git proq config set merge.strategy squash
    $ attach a b
    error: unexpected argument 'b' for git proq attach
    hint: see all commands: git proq help --all
    $ edit pay --title one
    two
    error: the title has more than one line
    hint: for example: git proq edit payments --title "Payments by card"
    "#);
}

#[test]
fn invalid_values_are_answered_with_what_is_expected() {
    let answers = answers(&[
        &["events", "--last", "x"],
        &["undo", "abc"],
        &["spawn", "claude", "x", "--count", "0"],
        &["spawn", "claude", "x", "--permission", "ful"],
        &["spawn", "claude", "x", "--max-time", "soon"],
        &["spawn", "claude", "x", "--count"],
        &["queue", "extra"],
        &["help", "mrge"],
        &["man", "nothing"],
    ]);
    insta::assert_snapshot!(answers, @"
    $ events --last x
    error: invalid value 'x' for --last: expected a whole number
    hint: see the help: git proq help events
    $ undo abc
    error: invalid value 'abc' for OP: expected a whole number
    hint: see the help: git proq help undo
    $ spawn claude x --count 0
    error: invalid value '0' for --count: expected a number from 1 to 99
    hint: see the help: git proq help spawn
    $ spawn claude x --permission ful
    error: invalid value 'ful' for --permission: expected read, edit or full
    hint: did you mean: git proq spawn claude x --permission full
    $ spawn claude x --max-time soon
    error: invalid value 'soon' for --max-time: expected a duration, such as 90s, 30m or 2h
    hint: see the help: git proq help spawn
    $ spawn claude x --count
    error: missing value for --count
    hint: see the help: git proq help spawn
    $ queue extra
    error: unexpected argument 'extra' for git proq queue
    hint: see the help: git proq help queue
    $ help mrge
    error: unknown command 'mrge'
    hint: did you mean: git proq help merge
    $ man nothing
    error: unknown command 'nothing'
    hint: see all commands: git proq help --all
    ");
}

#[test]
fn unquoted_text_is_answered_with_the_quoted_command() {
    let answers = answers(&[
        &["spawn", "claude", "implement", "the", "payments"],
        &["spawn", "-n", "pay", "claude", "don't", "break", "it", "--count", "2"],
        &["new", "implement", "the", "payments"],
        &["run", "pay", "claude", "fix", "it"],
        &["send", "pay", "also", "handle", "refunds", "--wait"],
        &["spawn", "claude"],
    ]);
    insta::assert_snapshot!(answers, @r#"
    $ spawn claude implement the payments
    error: unexpected argument 'the' for git proq spawn
    hint: quote the prompt: git proq spawn claude 'implement the payments'
    $ spawn -n pay claude don't break it --count 2
    error: unexpected argument 'break' for git proq spawn
    hint: quote the prompt: git proq spawn -n pay --count 2 claude 'don'\''t break it'
    $ new implement the payments
    error: unexpected argument 'payments' for git proq spawn
    hint: quote the prompt: git proq new claude 'implement the payments'
    $ run pay claude fix it
    error: unexpected argument 'it' for git proq run
    hint: quote the prompt: git proq run pay claude 'fix it'
    $ send pay also handle refunds --wait
    error: unexpected argument 'handle' for git proq send
    hint: quote the message: git proq send --wait pay 'also handle refunds'
    $ spawn claude
    error: no prompt given for the agent
    hint: for example: git proq spawn claude "implement payments"
    "#);
}

#[test]
fn typing_errors_are_json_with_json() {
    let out = Sandbox::new().proq(&["merge", "--sqash", "--json"]);
    assert_eq!((out.code, &out.stderr[..]), (2, ""));
    let answer = out.json();
    assert_eq!(answer["error"], "unknown option '--sqash' for git proq merge");
    assert_eq!(answer["exit"], 2);
}

#[test]
fn hidden_commands_are_never_suggested() {
    let sandbox = Sandbox::new();
    for word in ["_dispatch", "dispatch", "moved", "supervis", "snapshots", "acp", "pane"] {
        let text = sandbox.proq(&[word, "--bad"]).fails(2);
        assert!(!text.contains(" _"), "{text}");
    }
    assert!(!sandbox.proq(&["help", "--all"]).ok().contains(" _"));
    let text = sandbox.proq(&["help", "_dispatch"]).fails(2);
    assert!(text.starts_with("error: unknown command '_dispatch'\n"), "{text}");
}

/// Every `-h` is read on a terminal of 80 columns without scrolling much.
#[test]
fn short_help_of_every_command_fits_forty_lines() {
    let sandbox = Sandbox::new();
    let help = |args: &[&str]| {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.env("COLUMNS", "80");
        sandbox.output(command).ok()
    };
    let all = help(&["help", "--all"]);
    assert!(all.lines().all(|line| line.chars().count() <= 80), "{all}");
    let names = all.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names: Vec<&str> = names.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    assert!(names.contains(&"spawn") && names.contains(&"version"), "{all}");
    for name in names {
        let text = help(&[name, "-h"]);
        assert!(text.lines().count() <= 40, "{name}:\n{text}");
    }
    assert!(help(&["-h"]).lines().count() <= 24);
}

#[test]
fn help_shows_overview_all_commands_or_one() {
    let sandbox = Sandbox::new();
    let overview = sandbox.proq(&["help"]).ok();
    assert_eq!(overview, sandbox.proq(&["-h"]).ok());
    assert!(overview.lines().count() <= 24 && overview.contains("git proq help --all"), "{overview}");
    let all = sandbox.proq(&["help", "--all"]).ok();
    for line in ["Merge:", "  gc           Delete expired snapshots, operations, and trash", "  -q, --quiet"]
    {
        assert!(all.contains(&format!("\n{line}")), "{line}\n{all}");
    }
    let merge = sandbox.proq(&["help", "merge"]).ok();
    assert!(
        merge.contains("--lock-timeout <SECONDS>") && merge.contains("Merges wait in a queue"),
        "{merge}"
    );
    assert!(!sandbox.proq(&["merge", "-h"]).ok().contains("--lock-timeout"));
    assert!(sandbox.proq(&["help", "op", "restore"]).ok().contains("Restore the state after an operation"));
    assert_eq!(sandbox.proq(&["help", "land"]).ok(), merge);
}

#[test]
fn version_is_a_command() {
    let sandbox = Sandbox::empty();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(sandbox.proq(&["version"]).ok(), format!("git-proq {version}\n"));
    assert_eq!(sandbox.proq(&["version", "--json"]).json()["version"], version);
}

#[test]
fn common_names_of_other_programs_are_aliases() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&[
        "new",
        "-n",
        "one",
        "--wait",
        "--",
        "sh",
        "-c",
        "echo x > b; git add b; git commit -qm b",
    ]);
    assert!(sandbox.proq(&["ls"]).ok().contains("one"));
    let _ = sandbox.proq(&["land", "one"]).ok();
    assert!(sandbox.git(&["log", "--format=%s", "main"]).lines().any(|subject| subject == "b"));
    let _ = sandbox.proq(&["new", "--empty", "-n", "two"]).ok();
    let _ = sandbox.proq(&["rm", "two"]).ok();
    assert!(!sandbox.proq(&["ls"]).ok().contains("two"));
}

#[test]
fn commands_without_subcommand_show_their_list() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    for (bare, full) in
        [("op", &["op", "log"][..]), ("snap", &["snap", "list"]), ("hooks", &["hooks", "status"])]
    {
        assert_eq!(sandbox.proq(&[bare]).to_text(), sandbox.proq(full).to_text(), "{bare}");
    }
    assert!(sandbox.proq(&["config"]).stderr.ends_with("hint: see all settings: git proq config list\n"));
}

#[test]
fn bare_merge_shows_what_could_merge_and_merges_nothing() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo x > b");
    let before = sandbox.git(&["rev-parse", "main"]);
    let text = sandbox.proq(&["merge"]).fails(2);
    assert!(text.contains("would land one"), "{text}");
    assert!(text.contains("error: no lane was named; nothing was merged\n"), "{text}");
    assert!(text.contains("hint: merge all that can be merged: git proq merge --all\n"), "{text}");
    assert!(text.contains("hint: or one of them: git proq merge one\n"), "{text}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(sandbox.proq(&["merge", "--json"]).json()["exit"], 2);
}

#[test]
fn old_spellings_of_options_still_work() {
    let sandbox = Sandbox::new();
    sandbox.program("robot", "echo x > made; git add made; git commit -qm made");
    sandbox.write("task.md", "the task");
    sandbox.commit_all("task");
    for (name, file) in [("old", "-f"), ("new", "-F"), ("long", "--file")] {
        let args = ["spawn", "robot", "-n", name, file, "task.md", "--wait", "--max-minutes", "5"];
        let _ = sandbox.proq(&args).ok();
        assert_eq!(sandbox.proq(&["show", name, "--json"]).json()["task"], "the task");
    }
    for option in ["--attach", "--attachment"] {
        let out = sandbox.proq(&["run", "old", "robot", "again", option, "task.md", "--dry-run"]);
        assert!(out.clone().ok().contains("would start"), "{out:?}");
        let out = sandbox.proq(&["spawn", "robot", "again", option, "task.md", "--dry-run"]);
        assert_eq!(out.code, 0, "{out:?}");
    }
    for option in ["--verify", "--check"] {
        let text = sandbox.proq(&["merge", "old", option, "test 1 = 1", "--dry-run"]).ok();
        assert!(text.contains("test 1 = 1"), "{text}");
    }
    for option in ["--check", "--checks"] {
        let text = sandbox.proq(&["compare", "old", "new", option]).ok();
        assert!(!text.contains("run the checks"), "{text}");
        let _ = sandbox.proq(&["logs", option, "old"]).fails(1);
    }
    for option in ["-f", "--force"] {
        let name = if option == "-f" { "old" } else { "new" };
        let _ = sandbox.proq(&["discard", option, name]).ok();
    }
    for (command, option) in [("cleanup", "-f"), ("merge", "-f"), ("pick", "-f")] {
        let out = sandbox.proq(&[command, option, "long", "--dry-run"]);
        assert!(!out.stderr.contains("unknown option"), "{out:?}");
    }
    assert_eq!(sandbox.proq(&["undo", "-f", "--dry-run"]).code, 0);
    assert_eq!(sandbox.proq(&["op", "restore", "0", "-f", "--dry-run"]).code, 0);
}

#[test]
fn corrected_commands_do_what_was_meant() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("pay-cards", "echo one > one");
    sandbox.lane_with_commit("other", "echo two > two");
    let follow = |output: String| {
        let hint = output.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
        let (_, command) = hint.split_once(": git proq ").unwrap();
        let args: Vec<&str> = command.split(' ').collect();
        sandbox.proq(&args).ok()
    };
    assert!(follow(sandbox.proq(&["merge", "-n", "other"]).fails(2)).contains("would land other"));
    assert!(follow(sandbox.proq(&["diff", "pay-cards", "other"]).fails(2)).contains("pay-cards"));
    assert!(follow(sandbox.proq(&["inspect", "other"]).fails(2)).contains("proq/other"));
    let _ = follow(sandbox.proq(&["config", "merge.strategy", "squash"]).fails(2));
    assert_eq!(follow(sandbox.proq(&["config", "merge.strategy"]).fails(2)), "squash\n");
    let unknown = sandbox.proq(&["show", "cards"]).fails(1);
    assert!(unknown.contains("hint: did you mean 'pay-cards'?\n"), "{unknown}");
    let long = "x".repeat(121);
    let refused = sandbox.proq(&["edit", "other", "--title", &long]).fails(2);
    assert!(refused.contains("error: the title has more than 120 characters\n"), "{refused}");
}

#[test]
#[cfg(target_os = "linux")]
fn failed_write_of_the_output_is_an_error() {
    let sandbox = Sandbox::new();
    for args in [&["list", "--json"][..], &["list"], &["--help"], &["list", "-h"], &["man"], &["--version"]] {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
        let out = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        if args != ["list"] {
            assert!(stderr.contains("error: cannot write the output: No space left on device\n"), "{stderr}");
            assert_eq!(out.status.code(), Some(1), "{args:?}");
        }
    }
}

#[test]
fn watching_ends_with_its_reader() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    for args in [&["list", "--watch"][..], &["matrix", "--watch"], &["events", "--follow", "--last", "1"]] {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        let mut child = KilledOnDrop(command.stdout(std::process::Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_ne!(line, "");
        assert_eq!(child.exit_code(), Some(0), "{args:?}");
    }
}
