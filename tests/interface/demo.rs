//! Tests of `git proq demo`: accurate output, and no leftovers however it ends.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proq_test_kit::Sandbox;
use rustix::process::{Pid, Signal, kill_process_group};

/// Returns the demo command and its private folder for temporary files.
fn demo_command(sandbox: &Sandbox, args: &[&str]) -> (Command, PathBuf) {
    let tmp = sandbox.root().join("tmp");
    std::fs::create_dir_all(&tmp).unwrap();
    let mut command = sandbox.proq_command(&sandbox.root(), &[&["demo"], args].concat());
    command.env("TMPDIR", &tmp);
    (command, tmp)
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn tour_lands_two_lanes_and_leaves_nothing() {
    let sandbox = Sandbox::empty();
    let (mut command, tmp) = demo_command(&sandbox, &[]);
    // Neither settings nor unusual git configuration of the user affect the tour.
    command.env("PROQ_LANE_PREFIX", "mine").env("PROQ_MERGE_UNCOMMITTED", "no such thing");
    sandbox.write_in(
        &sandbox.root(),
        "home/.gitconfig",
        "[commit]\n\tgpgSign = true\n[status]\n\tbranch = true\n",
    );
    let out = sandbox.output(command).ok();
    let commands: Vec<&str> = out.lines().filter_map(|l| l.strip_prefix("$ ")).collect();
    assert_eq!(
        commands,
        [
            "git proq spawn -q demo-agent \"Add payments\"",
            "git proq spawn -q demo-agent \"Add search\"",
            "git proq spawn -q demo-agent \"Rename the shop\"",
            "git proq wait add-payments add-search rename-shop",
            "git proq list",
            "git status --short",
            "git proq preview add-payments",
            "git ls-files",
            "git proq preview --back",
            "git status --short",
            "git proq merge --all",
            "git proq list",
            "git log --oneline --graph",
            "git status --short",
        ]
    );
    assert!(!out.contains("warning"), "{out}");
    for shown in
        ["landed add-payments on main", "landed add-search on main", "rename-shop conflicts with main"]
    {
        assert!(out.contains(shown), "{shown}\n{out}");
    }
    assert!(is_empty(&tmp));
}

/// Output of the tour.
const TRANSCRIPT: &str = r#"Three agents, each in a lane of its own. They work at the same time.
$ git proq spawn -q demo-agent "Add payments"
  lane 'add-payments' on branch proq/add-payments, from main
    [ROOT]/tmp/proq-demo-[PID]/shop/.proq-worktrees/add-payments
$ git proq spawn -q demo-agent "Add search"
  lane 'add-search' on branch proq/add-search, from main
    [ROOT]/tmp/proq-demo-[PID]/shop/.proq-worktrees/add-search
$ git proq spawn -q demo-agent "Rename the shop"
  lane 'rename-shop' on branch proq/rename-shop, from main
    [ROOT]/tmp/proq-demo-[PID]/shop/.proq-worktrees/rename-shop
$ git proq wait add-payments add-search rename-shop
  add-payments: done
  add-search: done
  rename-shop: done
$ git proq list
  LANE          STATE  LINES  COMMITS  CHANGES  CONFLICTS  AGENT       UPDATED  TITLE
  add-payments  done   +1     ↑1       -        -          demo-agent  0s ago
  add-search    done   +1 -1  ↑1       -        1 lane     demo-agent  0s ago
  rename-shop   done   +1 -1  ↑1       -        1 lane     demo-agent  0s ago   Rename the shop

Look at one in your own checkout, in the middle of your own work.
$ git status --short
   M main.rs
  ?? notes.txt
$ git proq preview add-payments
  the main checkout shows 'add-payments' (005d50e7)
  saved your uncommitted changes on main; --back restores them
  hint: return: git proq preview --back
$ git ls-files
  main.rs
  payments.rs
  shop.toml
$ git proq preview --back
  the main checkout is on main again
  restored your uncommitted changes exactly
$ git status --short
   M main.rs
  ?? notes.txt

Land what fits together. What conflicts is put aside and stays as it is.
$ git proq merge --all
  landed add-payments on main (b9137a5f)
  landed add-search on main (606c3e39)
  rename-shop conflicts with main in 1 file
      shop.toml
  hint: resolve the conflict: git proq resolve rename-shop
$ git proq list
  LANE         STATE     LINES  COMMITS  CHANGES  CONFLICTS  AGENT       UPDATED  TITLE
  rename-shop  conflict  +1 -1  ↑1 ↓4    -        base       demo-agent  0s ago   Rename the shop
$ git log --oneline --graph
  *   606c3e3 Merge lane add-search: Add search
  |\
  | * 9485e78 Add search
  * |   b9137a5 Merge lane add-payments: Add payments
  |\ \
  | |/
  |/|
  | * 005d50e Add payments
  |/
  * eb65d66 Open the shop
$ git status --short
   M main.rs
  ?? notes.txt

That was the tour; its repository was removed. In one of yours:
  git proq agents                              which agents are installed
  git proq spawn claude "implement payments"   start one in a lane of its own
  git proq                                     the lanes, and what to do next
--- code 0"#;

#[test]
fn transcript_is_calm_and_complete() {
    let sandbox = Sandbox::empty();
    let (command, _) = demo_command(&sandbox, &[]);
    let out = sandbox.output(command).to_text();
    let folder = out.split("/tmp/").find_map(|text| text.strip_prefix("proq-demo-")?.split('/').next());
    let out = out.replace(&format!("proq-demo-{}", folder.unwrap()), "proq-demo-[PID]");
    let text = out.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(text, TRANSCRIPT);
}

#[test]
fn json_lists_commands_and_exit_codes() {
    let sandbox = Sandbox::empty();
    let (command, tmp) = demo_command(&sandbox, &["--json"]);
    let answer = sandbox.output(command).json();
    let steps = answer["steps"].as_array().unwrap();
    let merge = steps.iter().find(|s| s["command"] == "git proq merge --all").unwrap();
    assert_eq!(merge["exit"], 3);
    assert!(is_empty(&tmp));
}

#[test]
fn keep_leaves_the_repository_of_the_tour() {
    let sandbox = Sandbox::empty();
    let (command, _) = demo_command(&sandbox, &["--keep"]);
    let out = sandbox.output(command).ok();
    let path = out.lines().find_map(|l| l.strip_prefix("kept: [ROOT]/")).unwrap();
    let repo = sandbox.root().join(path);
    assert_eq!(sandbox.git_in(&repo, &["log", "--format=%s", "-1"]), "Merge lane add-search: Add search");
    assert_eq!(sandbox.git_in(&repo, &["branch", "--format=%(refname:short)"]), "main\nproq/rename-shop");
}

#[test]
fn failed_tour_reports_error_and_leaves_nothing() {
    let sandbox = Sandbox::empty();
    let (mut command, tmp) = demo_command(&sandbox, &[]);
    // A git that fails only for `git log`.
    let bin = sandbox.root().join("bin");
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    let script = format!("#!/bin/sh\n[ \"$1\" = log ] && exit 7\nexec '{}' \"$@\"\n", real.display());
    sandbox.write_in(&bin, "git", &script);
    let mut chmod = Command::new("chmod");
    assert!(chmod.arg("+x").arg(bin.join("git")).status().unwrap().success());
    let folders = [bin].into_iter().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders).unwrap());
    let output = sandbox.output(command).fails(1);
    assert!(
        output.contains("error: the demo stopped: `git log --oneline --graph` ended with exit status: 7"),
        "{output}"
    );
    assert!(is_empty(&tmp));
}

#[test]
fn tour_without_reader_leaves_nothing() {
    let sandbox = Sandbox::empty();
    let (mut command, tmp) = demo_command(&sandbox, &[]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert!(command.stdout(writer).status().unwrap().success());
    assert!(is_empty(&tmp));
}

#[test]
fn interrupted_tour_leaves_nothing() {
    let sandbox = Sandbox::empty();
    let (mut command, tmp) = demo_command(&sandbox, &[]);
    let mut child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("$ git proq wait") {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "the demo ended early");
    }
    assert!(!is_empty(&tmp));
    // A terminal sends the signal to the foreground process group in the same way.
    let group = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process_group(group, Signal::INT).unwrap();
    let mut later_output = String::new();
    out.read_to_string(&mut later_output).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{later_output}");
    assert!(!later_output.contains("That was the tour"), "{later_output}");
    assert!(is_empty(&tmp), "{:?}", std::fs::read_dir(&tmp).unwrap().collect::<Vec<_>>());
}
