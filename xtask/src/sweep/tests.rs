//! Owns the proof that the sweep is not always green: toys that lose something half-way must be caught.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Outcome;
use super::args::Args;
use super::disk::Disk;
use super::place::Place;
use super::points::{Share, sweep};
use super::report::{Tally, Violation};
use super::scene::{Scene, Stage};

/// A program that moves `a` to `b`: rightly by one rename, wrongly by removing it first, or with something left over.
const TOY: &str = r#"#!/bin/sh
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

/// Ends a test where nothing can be traced.
macro_rules! needs_tracing {
    () => {
        if !super::trace::is_possible() {
            eprintln!("skipped: this system does not let a process be traced");
            return;
        }
    };
}

fn toy(place: &Place) -> Outcome<()> {
    place.keep("a.txt", "toy")
}

fn args() -> Args {
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

/// A folder for one test, removed at its end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        drop(crate::copy::remove(&self.0));
    }
}

fn swept(test: &str, command: &'static [&'static str], args: &Args) -> Tally {
    let none = |_: &Path| None;
    swept_on(none, test, command, args)
}

/// The same on a file system that `disk` makes in a folder.
fn swept_on(
    disk: fn(&Path) -> Option<Disk>,
    test: &str,
    command: &'static [&'static str],
    args: &Args,
) -> Tally {
    let folder = Folder(std::env::temp_dir().join(format!("xtask-{}-{test}", std::process::id())));
    let bin = folder.0.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    // Written by a child: a descriptor of this process, open for writing while another test forks, makes it "busy".
    let mut sh = std::process::Command::new("sh");
    sh.args(["-c", "printf %s \"$1\" > \"$2\"; chmod +x \"$2\"", "sh", TOY]).arg(bin.join("git-proq"));
    assert!(sh.status().unwrap().success());
    let disk = disk(&folder.0);
    let within = disk.as_ref().map_or(&*folder.0, Disk::files).join("w");
    let place = Place::new(&within, Path::new(&bin.join("git-proq"))).unwrap();
    let scene = Scene { name: "toy", prepare: toy, command, ..super::table::PLAIN };
    let stage = Stage::new(&place, &scene).unwrap();
    match &disk {
        Some(disk) => super::power::sweep(&stage, disk, args, 1).unwrap(),
        None => sweep(&stage, args, 1, Share { part: 0, parts: 1 }).unwrap(),
    }
}

#[test]
fn one_rename_is_found_good_at_every_point() {
    needs_tracing!();
    let tally = swept("good", &["rename"], &args());
    assert_eq!((tally.points, tally.runs, tally.losses), (1, 1, 0));
    assert!(tally.violations.is_empty(), "{:?}", tally.violations);
}

#[test]
fn a_file_that_is_nowhere_half_way_is_a_loss() {
    needs_tracing!();
    let tally = swept("lose", &["lose"], &args());
    // Killed when the file is gone: before the new one is opened, and before it is written.
    assert_eq!((tally.points, tally.losses), (3, 2), "{:?}", tally.violations);
    let first = &tally.violations[0];
    assert!(first.faults[0].contains("LOST at once: precious 1 toy"), "{first:?}");
    assert_eq!(first.repeat, "cargo xtask crash-sweep --scenario toy --point 2");
}

#[test]
fn what_is_left_over_is_a_violation_but_no_loss() {
    needs_tracing!();
    let tally = swept("litter", &["litter"], &args());
    assert_eq!(tally.losses, 0);
    assert!(!tally.violations.is_empty());
    assert!(tally.violations.iter().any(|v| v.faults[0].contains("b.tmp")), "{:?}", tally.violations);
}

#[test]
fn a_call_that_fails_is_a_loss_too_when_nobody_notices() {
    needs_tracing!();
    let tally = swept("errors", &["lose"], &Args { errors: true, ..args() });
    assert!(tally.losses > 0);
    assert!(tally.violations.iter().any(|v| v.way == "disk full from"), "{:?}", tally.violations);
}

#[test]
fn a_signal_is_like_a_kill_to_who_does_not_care() {
    needs_tracing!();
    let tally = swept("signals", &["lose"], &Args { signals: true, ..args() });
    assert!(tally.losses > 0, "{:?}", tally.violations);
}

#[test]
fn a_recovery_that_can_be_killed_anywhere_is_good() {
    needs_tracing!();
    let tally = swept("journal", &["journal"], &args());
    assert!(tally.violations.is_empty(), "{:?}", tally.violations);
    assert_eq!((tally.points, tally.nested), (4, 4));
    // Each of its points is one at which the command had been killed before.
    assert_eq!((tally.known, tally.runs), (4, 4));
}

#[test]
fn a_still_shows_what_a_kill_at_its_call_shows() {
    needs_tracing!();
    let stills = swept("stills", &["careless"], &args());
    let kills = swept("kills", &["careless"], &Args { some_nested: Some(99), ..args() });
    let faults = |tally: &Tally| -> BTreeSet<String> {
        let nested = tally.violations.iter().filter(|v| v.nested.is_some());
        nested.flat_map(|v| v.faults.clone()).collect()
    };
    assert!(!faults(&kills).is_empty());
    assert_eq!(faults(&stills), faults(&kills));
    assert!(stills.runs < kills.runs, "{} and {}", stills.runs, kills.runs);
}

#[test]
fn a_recovery_that_loses_something_when_it_is_killed_is_caught() {
    needs_tracing!();
    let tally = swept("careless", &["careless"], &args());
    let caught = |v: &Violation| v.nested.is_some() && v.faults[0].contains("LOST");
    assert!(tally.violations.iter().any(caught), "{:?}", tally.violations);
    assert!(tally.violations.iter().all(|v| v.nested.is_some()), "{:?}", tally.violations);
}

#[test]
fn a_child_that_is_killed_is_noticed_by_who_started_it() {
    needs_tracing!();
    let children = Args { children: true, ..args() };
    let tally = swept("children", &["lose"], &children);
    // The shell removes the file by another program; what it writes itself is no point.
    assert_eq!((tally.points, tally.losses), (1, 0), "{:?}", tally.violations);
    let tally = swept("rename-child", &["rename"], &children);
    let found: Vec<&str> =
        tally.violations.iter().flat_map(|v| v.faults.iter().map(String::as_str)).collect();
    assert!(
        found.iter().any(|fault| fault.contains("without a word") || fault.contains("ended with 137")),
        "{found:?}"
    );
}

#[test]
fn each_call_fails_once_with_each_error_in_turn() {
    needs_tracing!();
    let errors = Args { one_error: true, ..args() };
    let tally = swept("one-error", &["lose"], &errors);
    assert_eq!((tally.points, tally.runs), (3, 3));
    assert!(tally.violations.iter().any(|v| v.way == "EIO" || v.way == "ENOSPC"), "{:?}", tally.violations);
    assert!(tally.violations[0].repeat.contains(" --one-error --seed 1 "), "{:?}", tally.violations);
}

#[test]
fn what_was_not_synced_is_gone_when_the_power_is_cut() {
    needs_tracing!();
    if !super::disk::is_possible() {
        eprintln!("skipped: this system does not let a file system be made and mounted");
        return;
    }
    let disk = |folder: &Path| Some(Disk::new(folder).unwrap());
    let swept = |test, command| swept_on(disk, test, command, &Args { power: true, ..args() });
    let tally = swept("power-durable", &["durable"]);
    assert!(tally.runs > 4 && tally.violations.is_empty(), "{:?}", tally.violations);
    let tally = swept("power-rewrite", &["rewrite"]);
    let ways: BTreeSet<&str> = tally.violations.iter().map(|v| v.way).collect();
    assert_eq!(ways, BTreeSet::from(["power cut after a commit, no heuristics"]), "{:?}", tally.violations);
    assert!(tally.losses > 0);
}
