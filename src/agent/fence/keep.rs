//! Owns keeping branches and tags of the user's that an agent deletes or moves away from where they were. It may do so: nobody else
//! works on them, and what they led to gets a ref first.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::guard::Update;
use super::hook::Hook;
use crate::event::{Certainty, Event, Name};
use crate::explain::word;
use crate::git::{Oid, Repo};
use crate::lane::Project;
use crate::store::{Layout, new_id};

/// The branches and tags that the run has made, a line each time that it wrote one: the name and what it led to then.
const MADE: &str = "made";
/// Those that were kept, each with what it led to and the ref that keeps it.
const KEPT: &str = "kept";
/// Objects, and the refs that they are to have.
const TO_KEEP: &str = "to-keep";
const SAVED: &str = "refs/proq/saved/";
/// How many characters of a name are in the one that a command makes out of it.
const LONGEST: usize = 50;

/// Keeps what branches and tags led to, each given with what it leads to now, and tells of it: those that the run has made are not kept,
/// nor those that only go forward. Why one cannot be kept, as the beginning of a sentence; the updates are to be refused then.
pub(super) fn before_they_go(
    project: &Project,
    hook: &Hook<'_>,
    updates: &[(&Update<'_>, Option<Oid>)],
) -> Option<String> {
    let mut kept = Vec::new();
    for (update, now) in updates {
        match before_it_goes(project, hook, update, *now) {
            Ok(saved) => kept.extend(saved.map(|saved| (update, saved))),
            Err(e) => {
                return Some(format!("{} would be lost, since it could not be kept ({e})", update.name));
            }
        }
    }
    for (update, saved) in kept {
        tell(project, hook, update, &saved);
    }
    None
}

/// The ref that keeps what a branch or tag led to; none where nothing has to be kept, or is kept already.
fn before_it_goes(
    project: &Project,
    hook: &Hook<'_>,
    update: &Update<'_>,
    now: Option<Oid>,
) -> std::io::Result<Option<String>> {
    let made = Layout::fence_list(&hook.fence, MADE);
    let new = Oid::from_hex(update.new).filter(|_| !update.removes());
    let is_own = now.is_none_or(|now| is_at(&made, update.name, now));
    // One that is not noted is kept once too often.
    if let (true, Some(new)) = (is_own, new) {
        drop(add_line(&made, &format!("{} {new}", update.name)));
    }
    let Some(now) = now.filter(|_| !is_own) else { return Ok(None) };
    let goes_forward = update.name.starts_with("refs/heads/")
        && new.is_some_and(|new| project.repo.is_ancestor(now, new).unwrap_or(false));
    let (list, line) = (Layout::fence_list(&hook.fence, KEPT), format!("{} {now} ", update.name));
    // Before 2.46 git asks about packed and loose refs one after the other.
    if goes_forward || is_kept(project, hook, &list, &line, now) {
        return Ok(None);
    }
    let saved = format!("{SAVED}{}-{}", hook.record.lane, new_id());
    if project.repo.create_ref(&saved, now, "git-proq: an agent deletes or moves it").is_err() {
        keep_later(hook, now, &saved)?;
    }
    // One that is not noted is kept once too often.
    drop(add_line(&list, &format!("{line}{saved}")));
    Ok(Some(saved))
}

/// Notes an object that gets its ref once git has let go of the lock that all refs have in common.
pub(super) fn keep_later(hook: &Hook<'_>, object: Oid, saved: &str) -> std::io::Result<()> {
    add_line(&Layout::fence_list(&hook.fence, TO_KEEP), &format!("{object} {saved}"))
}

/// Whether the run wrote a branch or tag last, as a list has it: one of the same name may be somebody else's by now.
fn is_at(made: &Path, name: &str, now: Oid) -> bool {
    let text = std::fs::read_to_string(made).unwrap_or_default();
    let last = text.lines().rev().find_map(|line| line.split_once(' ').filter(|(made, _)| *made == name));
    last.is_some_and(|(_, id)| Oid::from_hex(id.as_bytes()) == Some(now))
}

/// Whether the ref is there still, or will be, that a list has for what begins with `start`.
fn is_kept(project: &Project, hook: &Hook<'_>, list: &Path, start: &str, now: Oid) -> bool {
    let text = std::fs::read_to_string(list).unwrap_or_default();
    let Some(saved) = text.lines().rev().find_map(|line| line.strip_prefix(start)) else { return false };
    let to_keep = std::fs::read_to_string(Layout::fence_list(&hook.fence, TO_KEEP)).unwrap_or_default();
    project.repo.ref_object(saved).ok().flatten() == Some(now)
        || to_keep.lines().any(|line| line == format!("{now} {saved}"))
}

fn tell(project: &Project, hook: &Hook<'_>, update: &Update<'_>, saved: &str) {
    let lane = &hook.record.lane;
    let (kind, name) = called(update.name);
    let does = if update.removes() { "deletes" } else { "moves" };
    let back = another_name(project, update.name, saved);
    let what = format!("the agent of lane '{lane}' {does} {kind} {name}; what it was is kept: {back}");
    let mut event = Event::now(Name::LaneEscape, what);
    event.lane = Some(lane.clone());
    event.state = project.any_lane(lane).ok().map(|lane| lane.state.to_string());
    event.certainty = Some(Certainty::Certain);
    project.tell_event(event);
}

/// The kind of a fully named ref in git's word (`branch`, `notes` or `tag`), and its name without what begins those.
pub(super) fn called(name: &str) -> (&'static str, &str) {
    match name.strip_prefix("refs/heads/") {
        Some(branch) => ("branch", branch),
        None => match name.strip_prefix("refs/notes/") {
            Some(notes) => ("notes", notes),
            None => ("tag", name.trim_start_matches("refs/tags/")),
        },
    }
}

/// The command that brings a ref back which is gone, by its own name where that is free.
pub(super) fn own_name(project: &Project, name: &str, at: &str) -> String {
    let is_free = |name: &str| project.repo.refs_below(name).is_ok_and(|refs| refs.is_empty());
    let above = name.match_indices('/').map(|(end, _)| &name[..end]).skip(2);
    let exists = |name: &str| project.repo.ref_object(name).is_ok_and(|found| found.is_some());
    match called(name) {
        ("notes", _) => format!("git update-ref {} {at}", word(name)),
        (kind, short) if is_free(name) && !above.clone().any(exists) => {
            format!("git {kind} {} {at}", word(short))
        }
        _ => another_name(project, name, at),
    }
}

/// The command that gives what a branch, a tag, notes or a worktree led to another, free name: its own may be taken again, be in a
/// folder's place, or be checked out.
pub(super) fn another_name(project: &Project, name: &str, at: &str) -> String {
    let (kind, short) = match called(name) {
        ("tag", short) => ("tag", short),
        (_, short) => ("branch", short),
    };
    // No part of it is another ref's name.
    let flat: String = short.replace('/', "-").trim_start_matches(['-', '.']).chars().take(LONGEST).collect();
    let names = (1..).map(|count: u32| match count {
        1 => format!("{flat}-kept"),
        count => format!("{flat}-kept-{count}"),
    });
    let is_free = |name: &String| {
        let full = format!("refs/{}/{name}", if kind == "tag" { "tags" } else { "heads" });
        project.repo.refs_below(&full).is_ok_and(|refs| refs.is_empty())
    };
    let free = names.take(100).find(is_free).filter(|name| Repo::is_branch_name(name));
    free.map_or_else(|| format!("git log {at}"), |free| format!("git {kind} {} {at}", word(&free)))
}

fn add_line(file: &Path, line: &str) -> std::io::Result<()> {
    let mut file = File::options().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()
}

/// Whether something waits for its ref that the hooks of a run could give none.
pub(super) fn has_noted(fence: &Path) -> bool {
    Layout::fence_list(fence, TO_KEEP).exists()
}

/// Gives refs to what the hooks of a run could give none. What has one already keeps it.
pub(super) fn keep_noted(project: &Project, fence: &Path) {
    let text = std::fs::read_to_string(Layout::fence_list(fence, TO_KEEP)).unwrap_or_default();
    if text.is_empty() {
        return;
    }
    let there = project.repo.refs_below(SAVED).unwrap_or_default();
    for (object, name) in text.lines().filter_map(|line| line.split_once(' ')) {
        let Some(object) = Oid::from_hex(object.as_bytes()) else { continue };
        if there.iter().any(|(known, _)| known == name) {
            continue;
        }
        let made = project.repo.create_ref(name, object, "git-proq: an agent deleted or moved it");
        if let Err(e) = made
            // Another hook of the run may have been faster.
            && project.repo.ref_object(name).ok().flatten() != Some(object)
        {
            project.listener.warn(format!("{object} could not be kept as {name}: {e}"));
        }
    }
}
