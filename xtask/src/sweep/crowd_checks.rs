//! Checks of a repository after a crowd has worked in it.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::crowd::Log;
use super::fixture::Fixture;
use super::image::{self, Image};
use super::{Outcome, lost_contents};

/// Prefix of the names of files that the user creates while the crowd works.
pub(super) const EDIT_PREFIX: &str = "edit-";

/// Prepares a repository whose user has uncommitted work in the main checkout.
pub(super) fn prepare(fixture: &Fixture) -> Outcome<()> {
    fixture.init()?;
    fixture.write_token("a.txt", "a, committed")?;
    fixture.sh("git add -A; git commit -qm first")?;
    fixture.write_token("a.txt", "a, changed by the user")?;
    fixture.write_token("notes.txt", "untracked, by the user")?;
    // The first command creates the store's folder; the crowd tests what follows.
    fixture.proq_ok(&["list"])
}

/// Returns the user's own changes in the main checkout.
pub(super) fn user_status(fixture: &Fixture) -> Outcome<String> {
    let args = ["status", "--porcelain=v2", "--branch", "--untracked-files=all"];
    let answer = fixture.output(fixture.command("git", &fixture.repo()).args(args))?.ok("git status")?;
    // The commit of main changes; the branch of the checkout does not.
    let text = String::from_utf8_lossy(&answer).into_owned();
    // Edits made while a lane was previewed are saved for its next preview.
    let is_edit = |line: &str| line.strip_prefix("? ").is_some_and(|path| path.starts_with(EDIT_PREFIX));
    let lines =
        text.lines().filter(|l| !l.starts_with("# branch.oid") && !l.contains(".gitignore") && !is_edit(l));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Runs all checks and adds each fault to the log.
pub(super) fn check(fixture: &Fixture, log: &mut Log, start_status: &str) -> Outcome<()> {
    let rows = list_lanes(fixture)?;
    if rows["preview"].is_string() {
        let back = fixture.proq(&["preview", "--back"])?;
        if back.code != 0 {
            log.faults.push(format!(
                "the last way back ended with {}: {}",
                back.code,
                back.first_error_line()
            ));
        }
    }
    let now = user_status(fixture)?;
    if now != start_status {
        log.faults.push(format!("the user's checkout was {start_status:?} and is {now:?}"));
    }
    let mut tokens = fixture.tokens();
    tokens.append(&mut log.tokens.clone());
    match lost_contents::find_lost(fixture, &tokens) {
        Ok(lost) => log.faults.extend(lost.into_iter().map(|what| format!("LOST {what}"))),
        Err(e) => log.faults.push(format!("LOST cannot be read: {e}")),
    }
    check_landed(fixture, log)?;
    check_lanes(fixture, log)?;
    check_leftovers(fixture, log)
}

fn list_lanes(fixture: &Fixture) -> Outcome<Value> {
    Ok(serde_json::from_slice(&fixture.proq(&["list", "--all", "--json"])?.ok("git proq list")?)?)
}

/// Checks that every reported landing is on the base; after an undo, that some ref reaches it.
fn check_landed(fixture: &Fixture, log: &mut Log) -> Outcome<()> {
    let args = ["rev-list", if log.undone { "--all" } else { "main" }];
    let all = fixture.output(fixture.command("git", &fixture.repo()).args(args))?.ok("git rev-list")?;
    let all = String::from_utf8_lossy(&all).into_owned();
    let on_base: BTreeSet<&str> = all.lines().collect();
    let missing = log.landed.iter().filter(|id| !on_base.contains(id.as_str()));
    let missing: Vec<String> = missing.map(|id| format!("reported landed, and not on main: {id}")).collect();
    log.faults.extend(missing);
    Ok(())
}

/// Checks that every created lane is live or in the history, and that branches, folders and registrations
/// belong to live lanes.
fn check_lanes(fixture: &Fixture, log: &mut Log) -> Outcome<()> {
    let rows = list_lanes(fixture)?;
    let names = rows["lanes"].as_array().into_iter().flatten().filter_map(|row| row["name"].as_str());
    let (past, live): (BTreeSet<String>, BTreeSet<String>) =
        names.map(str::to_owned).partition(|name| name.contains('@'));
    for lane in &log.lanes {
        if !live.contains(lane) && !past.contains(&format!("{lane}@1")) {
            log.faults.push(format!("lane {lane} was made, and is neither live nor in the history"));
        }
    }
    let repo = fixture.repo();
    for (what, found) in [
        ("branch", branches(fixture)?),
        ("folder", entry_names(&repo.join(".proq-worktrees"))),
        ("registration", entry_names(&repo.join(".git/worktrees"))),
        ("record", entry_names(&repo.join(".git/proq/lanes"))),
    ] {
        log.faults.extend(found.difference(&live).map(|name| format!("{what} {name} belongs to no lane")));
        log.faults.extend(live.difference(&found).map(|name| format!("lane {name} has no {what}")));
    }
    if rows["unrecorded"].as_array().is_some_and(|u| !u.is_empty()) {
        log.faults.push(format!("folders without a record: {}", rows["unrecorded"]));
    }
    Ok(())
}

fn branches(fixture: &Fixture) -> Outcome<BTreeSet<String>> {
    let args = ["for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/proq/"];
    let out = fixture.output(fixture.command("git", &fixture.repo()).args(args))?.ok("git for-each-ref")?;
    Ok(String::from_utf8_lossy(&out).lines().map(str::to_owned).collect())
}

fn entry_names(dir: &Path) -> BTreeSet<String> {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = names.map(|e| e.file_name().to_string_lossy().into_owned());
    names.filter(|name| name != ".gitignore").collect()
}

/// Checks that no lock of git's and no unfinished work remains, and that git finds the repository intact.
fn check_leftovers(fixture: &Fixture, log: &mut Log) -> Outcome<()> {
    let image: Image = image::read_image(fixture)?;
    let is_fault = |key: &&String| key.starts_with("lock ") || key.starts_with("leftover ") || *key == "fsck";
    let faults: Vec<String> = image.keys().filter(is_fault).map(|k| format!("{k}: {}", image[k])).collect();
    log.faults.extend(faults);
    Ok(())
}
