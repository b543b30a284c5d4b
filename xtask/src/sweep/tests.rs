//! Tests that the sweep detects faults: test programs that lose a content half-way must be caught.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Outcome;
use super::args::Args;
use super::fixture::Fixture;
use super::loop_disk::LoopDisk;
use super::point_sweep::{Share, sweep};
use super::report::{Tally, Violation};
use super::scenario::{PreparedScenario, Scenario};

/// Program that moves `a` to `b`: correctly by one rename, incorrectly by removing it first, or with a file
/// left behind.
const TEST_PROGRAM: &str = r#"#!/bin/sh
case $1 in
list) if test -e a.tmp; then rm a.tmp; fi
  if test -e undo; then
    if test -e b.txt; then
      if grep -q careless undo; then text=$(cat b.txt); rm b.txt; printf '%s\n' "$text" > a.txt
      else mv b.txt a.txt; fi
    fi
    rm undo
  fi
  echo '{}' ;;
rename) mv a.txt b.txt ;;
lose) text=$(cat a.txt); rm a.txt; printf '%s\n' "$text" > b.txt ;;
journal|careless) echo $1 > undo; mv a.txt b.txt; rm undo ;;
rewrite) cp a.txt a.tmp; mv a.tmp a.txt ;;
durable) cp a.txt a.tmp; sync a.tmp; mv a.tmp a.txt ;;
litter) cp a.txt b.tmp; mv a.txt b.txt; rm b.tmp ;;
esac
"#;

/// Returns from a test where nothing can be traced.
macro_rules! needs_tracing {
    () => {
        if !super::trace::can_trace() {
            eprintln!("skipped: this system does not let a process be traced");
            return;
        }
    };
}

fn prepare_one_file(fixture: &Fixture) -> Outcome<()> {
    fixture.write_token("a.txt", "toy")
}

fn default_args() -> Args {
    Args {
        scenario: Vec::new(),
        list: false,
        short: false,
        seed: None,
        point: None,
        nested: None,
        some_nested: None,
        no_nested: false,
        errors: false,
        one_error: false,
        signals: false,
        children: false,
        power: false,
        crowd: None,
        kills: false,
        processes: 1,
        jobs: Some(1),
        proq: None,
    }
}

/// Folder of one test, removed at its end.
struct TestFolder(PathBuf);

impl Drop for TestFolder {
    fn drop(&mut self) {
        drop(crate::copy::remove(&self.0));
    }
}

fn sweep_program(test: &str, command: &'static [&'static str], args: &Args) -> Tally {
    let none = |_: &Path| None;
    sweep_program_on(none, test, command, args)
}

/// Sweeps over a test program on a file system that `disk` creates in a folder.
fn sweep_program_on(
    disk: fn(&Path) -> Option<LoopDisk>,
    test: &str,
    command: &'static [&'static str],
    args: &Args,
) -> Tally {
    let folder = TestFolder(std::env::temp_dir().join(format!("xtask-{}-{test}", std::process::id())));
    let bin = folder.0.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    // A child process writes the file: a descriptor of this process, open for writing while another test
    // forks, makes it "busy".
    let mut sh = std::process::Command::new("sh");
    sh.args(["-c", "printf %s \"$1\" > \"$2\"; chmod +x \"$2\"", "sh", TEST_PROGRAM])
        .arg(bin.join("git-proq"));
    assert!(sh.status().unwrap().success());
    let disk = disk(&folder.0);
    let within = disk.as_ref().map_or(&*folder.0, LoopDisk::files).join("w");
    let fixture = Fixture::new(&within, Path::new(&bin.join("git-proq"))).unwrap();
    let scenario =
        Scenario { name: "toy", prepare: prepare_one_file, command, ..super::scenarios::DEFAULT_SCENARIO };
    let prepared = PreparedScenario::new(&fixture, &scenario).unwrap();
    match &disk {
        Some(disk) => super::power_sweep::sweep(&prepared, disk, args, 1).unwrap(),
        None => sweep(&prepared, args, 1, Share { part: 0, parts: 1 }).unwrap(),
    }
}

#[test]
fn accepts_rename_at_every_point() {
    needs_tracing!();
    let tally = sweep_program("good", &["rename"], &default_args());
    assert_eq!((tally.points, tally.runs, tally.losses), (1, 1, 0));
    assert!(tally.violations.is_empty(), "{:?}", tally.violations);
}

#[test]
fn reports_a_file_missing_half_way_as_lost() {
    needs_tracing!();
    let tally = sweep_program("lose", &["lose"], &default_args());
    // Killed when the file is gone: before the new one is opened, and before it is written.
    assert_eq!((tally.points, tally.losses), (3, 2), "{:?}", tally.violations);
    let first = &tally.violations[0];
    assert!(first.faults[0].contains("LOST at once: precious 1 toy"), "{first:?}");
    assert_eq!(first.repeat_command, "cargo xtask crash-sweep --scenario toy --point 2");
}

#[test]
fn reports_leftover_file_as_violation_without_loss() {
    needs_tracing!();
    let tally = sweep_program("litter", &["litter"], &default_args());
    assert_eq!(tally.losses, 0);
    assert!(!tally.violations.is_empty());
    assert!(tally.violations.iter().any(|v| v.faults[0].contains("b.tmp")), "{:?}", tally.violations);
}

#[test]
fn reports_loss_after_an_unnoticed_failing_call() {
    needs_tracing!();
    let tally = sweep_program("errors", &["lose"], &Args { errors: true, ..default_args() });
    assert!(tally.losses > 0);
    assert!(tally.violations.iter().any(|v| v.disturbance == "disk full from"), "{:?}", tally.violations);
}

#[test]
fn reports_loss_after_an_unhandled_signal() {
    needs_tracing!();
    let tally = sweep_program("signals", &["lose"], &Args { signals: true, ..default_args() });
    assert!(tally.losses > 0, "{:?}", tally.violations);
}

#[test]
fn accepts_recovery_that_survives_every_kill() {
    needs_tracing!();
    let tally = sweep_program("journal", &["journal"], &default_args());
    assert!(tally.violations.is_empty(), "{:?}", tally.violations);
    assert_eq!((tally.points, tally.nested), (4, 4));
    // At each of these points the command had been killed before.
    assert_eq!((tally.known, tally.runs), (4, 4));
}

#[test]
fn checkpoint_finds_the_same_faults_as_a_kill() {
    needs_tracing!();
    let from_checkpoints = sweep_program("stills", &["careless"], &default_args());
    let from_kills = sweep_program("kills", &["careless"], &Args { some_nested: Some(99), ..default_args() });
    let faults = |tally: &Tally| -> BTreeSet<String> {
        let nested = tally.violations.iter().filter(|v| v.nested.is_some());
        nested.flat_map(|v| v.faults.clone()).collect()
    };
    assert!(!faults(&from_kills).is_empty());
    assert_eq!(faults(&from_checkpoints), faults(&from_kills));
    assert!(from_checkpoints.runs < from_kills.runs, "{} and {}", from_checkpoints.runs, from_kills.runs);
}

#[test]
fn reports_loss_when_recovery_is_killed() {
    needs_tracing!();
    let tally = sweep_program("careless", &["careless"], &default_args());
    let caught = |v: &Violation| v.nested.is_some() && v.faults[0].contains("LOST");
    assert!(tally.violations.iter().any(caught), "{:?}", tally.violations);
    assert!(tally.violations.iter().all(|v| v.nested.is_some()), "{:?}", tally.violations);
}

#[test]
fn children_mode_kills_only_child_processes() {
    needs_tracing!();
    let children = Args { children: true, ..default_args() };
    let tally = sweep_program("children", &["lose"], &children);
    // The shell removes the file by another program; its own writes are no points.
    assert_eq!((tally.points, tally.losses), (1, 0), "{:?}", tally.violations);
    let tally = sweep_program("rename-child", &["rename"], &children);
    let found: Vec<&str> =
        tally.violations.iter().flat_map(|v| v.faults.iter().map(String::as_str)).collect();
    assert!(
        found.iter().any(|fault| fault.contains("without a word") || fault.contains("ended with 137")),
        "{found:?}"
    );
}

#[test]
fn one_error_mode_fails_each_call_once() {
    needs_tracing!();
    let errors = Args { one_error: true, ..default_args() };
    let tally = sweep_program("one-error", &["lose"], &errors);
    assert_eq!((tally.points, tally.runs), (3, 3));
    assert!(
        tally.violations.iter().any(|v| v.disturbance == "EIO" || v.disturbance == "ENOSPC"),
        "{:?}",
        tally.violations
    );
    assert!(tally.violations[0].repeat_command.contains(" --one-error --seed 1 "), "{:?}", tally.violations);
}

#[test]
fn power_cut_loses_unsynced_contents() {
    needs_tracing!();
    if !super::loop_disk::is_supported() {
        eprintln!("skipped: this system does not let a file system be made and mounted");
        return;
    }
    let disk = |folder: &Path| Some(LoopDisk::new(folder).unwrap());
    let swept =
        |test, command| sweep_program_on(disk, test, command, &Args { power: true, ..default_args() });
    let tally = swept("power-durable", &["durable"]);
    assert!(tally.runs > 4 && tally.violations.is_empty(), "{:?}", tally.violations);
    let tally = swept("power-rewrite", &["rewrite"]);
    let ways: BTreeSet<&str> = tally.violations.iter().map(|v| v.disturbance).collect();
    assert_eq!(ways, BTreeSet::from(["power cut after a commit, no heuristics"]), "{:?}", tally.violations);
    assert!(tally.losses > 0);
}
