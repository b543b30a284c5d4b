//! Tests of repositories that another user owns: git-proq refuses them as git does, before it reads or runs
//! anything of them.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use proq_test_kit::{Output, Sandbox};

/// Command lines that would each read the repository's settings.
const COMMAND_LINES: &[&str] = &[
    "",
    "list",
    "list --wide --json",
    "list --all",
    "spawn --empty -n z",
    "spawn -n z --wait -- true",
    "run l2 -- true",
    "send l2 x",
    "open l2",
    "open l2 --path",
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
    "batch",
    "batch status",
    "report",
    "pause",
    "resume",
    "abort",
    "undo",
    "redo",
    "config",
    "config get lock.timeout",
    "config set lock.timeout 3",
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
    "help",
    "version",
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

/// Commands that need no repository and therefore succeed in a foreign one.
const COMMANDS_WITHOUT_REPOSITORY: &[&str] =
    &["agents", "completions", "help", "man", "mcp", "setup", "version", "_agent-event"];

/// Creates a repository of another user with a lane, in which any program that runs leaves a mark.
fn foreign_repository() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program_verbatim("evil", "echo \"$0 $*\" >> \"$ROOT/ran\"");
    sandbox.lane_with_commit("l2", "echo 2 > two");
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
    if runs_as_root(&sandbox) {
        sandbox.sh_in(&sandbox.root(), "chown -R 12345:12345 repo");
    }
    drop(std::fs::remove_file(sandbox.root().join("ran")));
    sandbox
}

fn runs_as_root(sandbox: &Sandbox) -> bool {
    sandbox.root().join("home").metadata().unwrap().uid() == 0
}

/// Runs a command in a repository of another user. Where this process may not change the owner of files,
/// git's own test variable makes git and git-proq treat each file as another user's.
fn run_as_other_user(sandbox: &Sandbox, mut command: Command) -> Output {
    if !runs_as_root(sandbox) {
        command.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
    }
    sandbox.output(command)
}

fn run_list(sandbox: &Sandbox) -> Output {
    run_as_other_user(sandbox, sandbox.proq_command(&sandbox.repo, &["list"]))
}

/// Returns all files below a folder with their contents.
fn read_all_files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut out = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => out.extend(read_all_files(&entry.path())),
            false => drop(out.insert(entry.path(), std::fs::read(entry.path()).unwrap_or_default())),
        }
    }
    out
}

/// Promise: strangers/foreign-repository
#[test]
fn reads_and_runs_nothing_of_a_foreign_repository() {
    let sandbox = foreign_repository();
    let before = read_all_files(&sandbox.repo);
    for line in COMMAND_LINES {
        let args: Vec<&str> = line.split_whitespace().collect();
        for dir in [sandbox.repo.clone(), sandbox.lane_path("l2"), sandbox.repo.join(".git")] {
            let out = run_as_other_user(&sandbox, sandbox.proq_command(&dir, &args));
            let text = format!("{}{}", out.stdout, out.stderr);
            assert!(!sandbox.root().join("ran").exists(), "{line}: a program ran");
            assert!(!text.contains("canary-of-mine"), "{line}: settings were read: {text}");
            let is_exempt = args.first().is_some_and(|first| COMMANDS_WITHOUT_REPOSITORY.contains(first));
            if !is_exempt {
                assert!(out.code != 0 && text.contains("dubious ownership"), "{line}: {} {text}", out.code);
            }
        }
    }
    assert_eq!(read_all_files(&sandbox.repo), before);
}

#[test]
fn refusal_names_the_safe_directory_command() {
    let sandbox = foreign_repository();
    let out = run_list(&sandbox);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: cannot use the repository at [ROOT]/repo: git detected dubious ownership; nothing was read or run
    hint: if you trust its owner: git config --global --add safe.directory [ROOT]/repo
    --- code 1
    ");
    let hint = out.stderr.lines().nth(1).unwrap().split_once("owner: ").unwrap().1;
    sandbox.sh_in(&sandbox.root(), &hint.replace("[ROOT]", sandbox.root().to_str().unwrap()));
    let out = run_list(&sandbox);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("canary-of-mine"), "its settings count now: {}", out.stderr);
}

/// Promise: strangers/foreign-repository
#[test]
fn accepts_the_exceptions_that_git_accepts() {
    let sandbox = foreign_repository();
    let root = sandbox.root();
    let (root, repo) = (root.to_str().unwrap(), sandbox.repo.to_str().unwrap());
    std::os::unix::fs::symlink(repo, format!("{root}/home/link")).unwrap();
    let cases: [&[&str]; 12] = [
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
    for values in cases {
        let lines: Vec<String> =
            values.iter().map(|value| format!("[safe]\ndirectory = \"{value}\"\n")).collect();
        let file = lines.concat();
        std::fs::write(sandbox.root().join("home/.gitconfig"), file).unwrap();
        let git = run_as_other_user(&sandbox, {
            let mut git = sandbox.command("git", &sandbox.repo);
            git.args(["rev-parse", "--git-dir"]);
            git
        });
        assert_eq!(run_list(&sandbox).code == 0, git.code == 0, "{values:?}: {}", git.stderr);
        trusted += usize::from(git.code == 0);
    }
    // git before 2.46 does not support patterns.
    assert!(trusted > if sandbox.git_version() < (2, 46) { 1 } else { 3 }, "some of them are exceptions");
    std::fs::write(sandbox.root().join("home/.gitconfig"), "").unwrap();
    // Values from the command line or from environment variables count; values from the repository do not.
    for (key, value) in
        [("GIT_CONFIG_PARAMETERS", "'safe.directory=*'"), ("GIT_CONFIG_PARAMETERS", "'safe.directory'='*'")]
    {
        let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
        command.env(key, value);
        assert_eq!(run_as_other_user(&sandbox, command).code, 0, "{value}");
    }
    let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
    command
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*");
    assert_eq!(run_as_other_user(&sandbox, command).code, 0);
    sandbox.sh_in(&sandbox.root(), "git config --file repo/.git/config safe.directory '*'");
    assert_eq!(run_list(&sandbox).code, 1);
}

/// Promise: strangers/foreign-repository
#[test]
fn root_trusts_repositories_of_the_sudo_caller() {
    let sandbox = foreign_repository();
    if !runs_as_root(&sandbox) {
        // Only root trusts the caller of sudo: for other users the variable changes nothing.
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

/// Promise: strangers/foreign-repository
#[test]
fn requires_naming_a_bare_repository_if_configured() {
    let sandbox = Sandbox::new();
    sandbox.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    let bare = sandbox.root().join("bare.git");
    let _ = sandbox.proq_in(&bare, &["spawn", "--empty", "-n", "x"]).ok();
    sandbox.git(&["config", "--global", "safe.bareRepository", "explicit"]);
    insta::assert_snapshot!(sandbox.proq_in(&bare, &["list"]).to_text(), @r"
    --- stderr
    error: cannot use the bare repository at [ROOT]/bare.git: safe.bareRepository is 'explicit'; nothing was read or run
    hint: if you trust it, name it: git --git-dir='[ROOT]/bare.git' proq
    --- code 1
    ");
    let mut command = sandbox.command("git", &sandbox.root().join("home"));
    command.arg(format!("--git-dir={}", bare.display())).args(["proq", "spawn", "--empty", "-n", "y"]);
    let _ = sandbox.output(command).ok();
    // A lane's own `.git` file names its repository.
    let lane = sandbox.root().join("bare.proq-worktrees/x");
    let listed = sandbox.proq_in(&lane, &["list", "--json"]).json();
    assert_eq!(listed["lanes"].as_array().unwrap().len(), 2);
    // The git directory of a repository with a worktree is not a bare repository.
    let _ = sandbox.proq_in(&sandbox.repo.join(".git"), &["list"]).ok();
}
