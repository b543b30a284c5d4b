//! Owns the tests of repositories that are not the user's own: refused as git refuses them, before anything of them is read or run.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::{Output, Sandbox};

/// Commands with arguments with which each would get to the repository's settings.
const COMMANDS: &[&str] = &[
    "",
    "list",
    "list --wide --json",
    "list --all",
    "spawn --empty -n z",
    "spawn -n z --wait -- true",
    "run l2 -- true",
    "send l2 x",
    "attach l2",
    "wait l2",
    "edit l2 --title x",
    "stop l2",
    "discard l2",
    "discard l2 --force",
    "redispatch l2",
    "cleanup",
    "cleanup --all",
    "show l2",
    "show l2 --prompt",
    "diff l2",
    "logs l2",
    "preview l2",
    "preview --back",
    "matrix",
    "compare l2",
    "events",
    "merge l2",
    "merge --all",
    "pick l2",
    "queue",
    "resolve l2",
    "plan plan.toml",
    "deps plan.toml",
    "swarm plan.toml",
    "sync l2",
    "status",
    "report",
    "pause",
    "resume",
    "abort",
    "undo",
    "op log",
    "snap list",
    "gc",
    "doctor",
    "doctor --fix",
    "agents",
    "approve",
    "config list",
    "config list --show-origin",
    "hooks install",
    "hooks status",
    "supervise",
    "mcp",
    "task read",
    "completions bash",
    "man",
    "_dispatch",
    "_moved --lane l2",
    "_overlaps --lane l2",
    "_supervise --lane l2 --attempt 1 -- evil",
    "_swarm --batch x",
    "_agent-event",
    "_pane --lane l2 --attempt 1",
    "_acp --lane l2 --attempt 1 -- evil",
    "_snapshots",
    "_hook pre-commit",
    "setup --dry-run",
    "op redo",
    "op restore 1",
    "snap show x",
    "snap restore x",
    "task update --status x",
    "plan --ai x",
    "approve --list",
];

/// Those that work anywhere, and so answer here too.
const ANYWHERE: &[&str] = &["agents", "completions", "man", "mcp", "setup", "_agent-event"];

/// A repository of another user's with a lane in it, in which whatever is run leaves a mark.
fn trap() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program_as_it_is("evil", "echo \"$0 $*\" >> \"$ROOT/ran\"");
    sandbox.lane_of("l2", "echo 2 > two");
    let evil = sandbox.root().join("bin/evil");
    let evil = evil.to_str().unwrap();
    for key in [
        "proq.hook.pre-spawn",
        "proq.hook.pre-merge",
        "proq.hook.pre-remove",
        "proq.hook.lane.created",
        "proq.lane.setup",
        "proq.merge.check",
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "diff.external",
    ] {
        sandbox.git(&["config", key, evil]);
    }
    for hook in ["post-checkout", "reference-transaction", "pre-commit", "post-index-change"] {
        std::fs::copy(evil, sandbox.repo.join(".git/hooks").join(hook)).unwrap();
    }
    sandbox.write("proq.toml", "canary-of-mine = 1\n");
    sandbox.write("plan.toml", "[[tasks]]\nid = 'a'\ntitle = 'a'\n");
    if is_root(&sandbox) {
        sandbox.sh_in(&sandbox.root(), "chown -R 12345:12345 repo");
    }
    drop(std::fs::remove_file(sandbox.root().join("ran")));
    sandbox
}

fn is_root(sandbox: &Sandbox) -> bool {
    sandbox.root().join("home").metadata().unwrap().uid() == 0
}

/// The program in a repository of another user's. Where this process may not give files away, git's own switch has git and
/// git-proq take every file for another user's.
fn stranger(sandbox: &Sandbox, mut command: Command) -> Output {
    if !is_root(sandbox) {
        command.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
    }
    sandbox.output(command)
}

fn list(sandbox: &Sandbox) -> Output {
    stranger(sandbox, sandbox.proq_command(&sandbox.repo, &["list"]))
}

/// Every file below a folder with its content.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut out = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => out.extend(contents(&entry.path())),
            false => drop(out.insert(entry.path(), std::fs::read(entry.path()).unwrap_or_default())),
        }
    }
    out
}

#[test]
fn nothing_of_another_users_repository_is_read_or_run() {
    let sandbox = trap();
    let before = contents(&sandbox.repo);
    for line in COMMANDS {
        let args: Vec<&str> = line.split_whitespace().collect();
        for dir in [sandbox.repo.clone(), sandbox.lane("l2"), sandbox.repo.join(".git")] {
            let out = stranger(&sandbox, sandbox.proq_command(&dir, &args));
            let said = format!("{}{}", out.stdout, out.stderr);
            assert!(!sandbox.root().join("ran").exists(), "{line}: a program ran");
            assert!(!said.contains("canary-of-mine"), "{line}: settings were read: {said}");
            let anywhere = args.first().is_some_and(|first| ANYWHERE.contains(first));
            if !anywhere {
                assert!(out.code != 0 && said.contains("dubious ownership"), "{line}: {} {said}", out.code);
            }
        }
    }
    assert_eq!(contents(&sandbox.repo), before);
}

#[test]
fn a_refusal_names_the_command_that_makes_an_exception() {
    let sandbox = trap();
    let out = list(&sandbox);
    insta::assert_snapshot!(out.shown(), @r"
    --- stderr
    error: cannot use the repository at [ROOT]/repo: git detected dubious ownership; nothing of it was read or run
    hint: if you trust who owns it: git config --global --add safe.directory [ROOT]/repo
    --- code 1
    ");
    let hint = out.stderr.lines().nth(1).unwrap().split_once("it: ").unwrap().1;
    sandbox.sh_in(&sandbox.root(), &hint.replace("[ROOT]", sandbox.root().to_str().unwrap()));
    let out = list(&sandbox);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("canary-of-mine"), "its settings count now: {}", out.stderr);
}

#[test]
fn the_exceptions_are_those_of_git() {
    let sandbox = trap();
    let root = sandbox.root();
    let (root, repo) = (root.to_str().unwrap(), sandbox.repo.to_str().unwrap());
    std::os::unix::fs::symlink(repo, format!("{root}/home/link")).unwrap();
    let all: [&[&str]; 12] = [
        &["*"],
        &[repo],
        &[&format!("{root}/*")],
        &["~/link"],
        &["*", ""],
        &[repo, ""],
        &["", repo],
        &[root],
        &["/nowhere/*"],
        &["repo"],
        &[&format!("{repo}/")],
        &[&format!("{repo}/.git")],
    ];
    let mut trusted = 0;
    for values in all {
        let lines: Vec<String> =
            values.iter().map(|value| format!("[safe]\ndirectory = \"{value}\"\n")).collect();
        let file = lines.concat();
        std::fs::write(sandbox.root().join("home/.gitconfig"), file).unwrap();
        let git = stranger(&sandbox, {
            let mut git = sandbox.command("git", &sandbox.repo);
            git.args(["rev-parse", "--git-dir"]);
            git
        });
        assert_eq!(list(&sandbox).code == 0, git.code == 0, "{values:?}: {}", git.stderr);
        trusted += usize::from(git.code == 0);
    }
    // Before 2.46 git knows no patterns.
    assert!(trusted > if sandbox.git_version() < (2, 46) { 1 } else { 3 }, "some of them are exceptions");
    std::fs::write(sandbox.root().join("home/.gitconfig"), "").unwrap();
    // What is said on the command line, or by variables, counts, and what the repository says does not.
    for (key, value) in
        [("GIT_CONFIG_PARAMETERS", "'safe.directory=*'"), ("GIT_CONFIG_PARAMETERS", "'safe.directory'='*'")]
    {
        let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
        command.env(key, value);
        assert_eq!(stranger(&sandbox, command).code, 0, "{value}");
    }
    let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
    command
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*");
    assert_eq!(stranger(&sandbox, command).code, 0);
    sandbox.sh_in(&sandbox.root(), "git config --file repo/.git/config safe.directory '*'");
    assert_eq!(list(&sandbox).code, 1);
}

#[test]
fn who_called_sudo_is_no_stranger_to_root() {
    let sandbox = trap();
    if !is_root(&sandbox) {
        // Without root there is nobody to call sudo: the variable changes nothing.
        let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
        command.env("SUDO_UID", "0").env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
        assert_eq!(sandbox.output(command).code, 1);
        return;
    }
    for (uid, code) in [("12345", 0), ("12346", 1), ("x", 1), ("", 1)] {
        let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
        command.env("SUDO_UID", uid);
        assert_eq!(sandbox.output(command).code, code, "{uid}");
    }
}

#[test]
fn a_bare_repository_has_to_be_named_where_git_wants_that() {
    let sandbox = Sandbox::new();
    sandbox.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    let bare = sandbox.root().join("bare.git");
    let _ = sandbox.proq_in(&bare, &["spawn", "--empty", "-n", "x"]).ok();
    sandbox.git(&["config", "--global", "safe.bareRepository", "explicit"]);
    insta::assert_snapshot!(sandbox.proq_in(&bare, &["list"]).shown(), @r"
    --- stderr
    error: cannot use the bare repository at [ROOT]/bare.git: safe.bareRepository is 'explicit'; nothing of it was read or run
    hint: name it, if you trust it: git --git-dir='[ROOT]/bare.git' proq
    --- code 1
    ");
    let mut command = sandbox.command("git", &sandbox.root().join("home"));
    command.arg(format!("--git-dir={}", bare.display())).args(["proq", "spawn", "--empty", "-n", "y"]);
    let _ = sandbox.output(command).ok();
    // A lane's own `.git` leads to it.
    let lane = sandbox.root().join("bare.proq-worktrees/x");
    let seen = sandbox.proq_in(&lane, &["list", "--json"]).json();
    assert_eq!(seen["lanes"].as_array().unwrap().len(), 2);
    // What lies inside of a worktree's own git directory is no bare repository.
    let _ = sandbox.proq_in(&sandbox.repo.join(".git"), &["list"]).ok();
}
