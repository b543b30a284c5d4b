//! Owns what must be true of a repository after a crowd was at work in it.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::Outcome;
use super::crowd::Log;
use super::image::{self, Image};
use super::place::Place;
use super::precious;

/// Beginning of the names of files that the user makes meanwhile.
pub(super) const EDITS: &str = "edit-";

/// A repository whose user has uncommitted work in the main checkout.
pub(super) fn prepare(place: &Place) -> Outcome<()> {
    place.begin()?;
    place.keep("a.txt", "a, committed")?;
    place.sh("git add -A; git commit -qm first")?;
    place.keep("a.txt", "a, changed by the user")?;
    place.keep("notes.txt", "untracked, by the user")?;
    // The store's folder is made by the first command; the crowd is about what comes afterwards.
    place.proq_ok(&["list"])
}

/// The user's own changes in the main checkout.
pub(super) fn status(place: &Place) -> Outcome<String> {
    let args = ["status", "--porcelain=v2", "--branch", "--untracked-files=all"];
    let answer = place.answer(place.command("git", &place.repo()).args(args))?.ok("git status")?;
    // Where main is has changed; that it is main has not.
    let text = String::from_utf8_lossy(&answer).into_owned();
    // Those that were made while a lane was shown wait for its next preview.
    let is_edit = |line: &str| line.strip_prefix("? ").is_some_and(|path| path.starts_with(EDITS));
    let lines =
        text.lines().filter(|l| !l.starts_with("# branch.oid") && !l.contains(".gitignore") && !is_edit(l));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Checks everything; what is wrong is added to the log.
pub(super) fn check(place: &Place, log: &mut Log, start: &str) -> Outcome<()> {
    let rows = list(place)?;
    if rows["preview"].is_string() {
        let back = place.proq(&["preview", "--back"])?;
        if back.code != 0 {
            log.faults.push(format!("the last way back ended with {}: {}", back.code, back.complaint()));
        }
    }
    let now = status(place)?;
    if now != start {
        log.faults.push(format!("the user's checkout was {start:?} and is {now:?}"));
    }
    let mut tokens = place.tokens();
    tokens.append(&mut log.tokens.clone());
    match precious::lost(place, &tokens) {
        Ok(lost) => log.faults.extend(lost.into_iter().map(|what| format!("LOST {what}"))),
        Err(e) => log.faults.push(format!("LOST cannot be read: {e}")),
    }
    landed(place, log)?;
    lanes(place, log)?;
    left_over(place, log)
}

fn list(place: &Place) -> Outcome<Value> {
    Ok(serde_json::from_slice(&place.proq(&["list", "--all", "--json"])?.ok("git proq list")?)?)
}

/// What was reported landed is on the base; where landings were undone, at least within reach of some ref.
fn landed(place: &Place, log: &mut Log) -> Outcome<()> {
    let args = ["rev-list", if log.undone { "--all" } else { "main" }];
    let all = place.answer(place.command("git", &place.repo()).args(args))?.ok("git rev-list")?;
    let all = String::from_utf8_lossy(&all).into_owned();
    let on_base: BTreeSet<&str> = all.lines().collect();
    let missing = log.landed.iter().filter(|id| !on_base.contains(id.as_str()));
    let missing: Vec<String> = missing.map(|id| format!("reported landed, and not on main: {id}")).collect();
    log.faults.extend(missing);
    Ok(())
}

/// Every lane that was made is live or in the history, and branches, folders and registrations are those of live lanes.
fn lanes(place: &Place, log: &mut Log) -> Outcome<()> {
    let rows = list(place)?;
    let names = rows["lanes"].as_array().into_iter().flatten().filter_map(|row| row["name"].as_str());
    let (past, live): (BTreeSet<String>, BTreeSet<String>) =
        names.map(str::to_owned).partition(|name| name.contains('@'));
    for lane in &log.lanes {
        if !live.contains(lane) && !past.contains(&format!("{lane}@1")) {
            log.faults.push(format!("lane {lane} was made, and is neither live nor in the history"));
        }
    }
    let repo = place.repo();
    for (what, found) in [
        ("branch", branches(place)?),
        ("folder", names_in(&repo.join(".proq-worktrees"))),
        ("registration", names_in(&repo.join(".git/worktrees"))),
        ("record", names_in(&repo.join(".git/proq/lanes"))),
    ] {
        log.faults.extend(found.difference(&live).map(|name| format!("{what} {name} belongs to no lane")));
        log.faults.extend(live.difference(&found).map(|name| format!("lane {name} has no {what}")));
    }
    if rows["unrecorded"].as_array().is_some_and(|u| !u.is_empty()) {
        log.faults.push(format!("folders without a record: {}", rows["unrecorded"]));
    }
    Ok(())
}

fn branches(place: &Place) -> Outcome<BTreeSet<String>> {
    let args = ["for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/proq/"];
    let out = place.answer(place.command("git", &place.repo()).args(args))?.ok("git for-each-ref")?;
    Ok(String::from_utf8_lossy(&out).lines().map(str::to_owned).collect())
}

fn names_in(dir: &Path) -> BTreeSet<String> {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = names.map(|e| e.file_name().to_string_lossy().into_owned());
    names.filter(|name| name != ".gitignore").collect()
}

/// No lock of git's, no work in progress, and a repository that git finds whole.
fn left_over(place: &Place, log: &mut Log) -> Outcome<()> {
    let image: Image = image::look(place)?;
    let wrong = |key: &&String| key.starts_with("lock ") || key.starts_with("leftover ") || *key == "fsck";
    let wrong: Vec<String> = image.keys().filter(wrong).map(|k| format!("{k}: {}", image[k])).collect();
    log.faults.extend(wrong);
    Ok(())
}
