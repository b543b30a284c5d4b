//! Owns keeping branches and tags of the user's that an agent deletes or moves away from where they were. It may do so: nobody else
//! works on them, and what they led to gets a ref first.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::guard::Update;
use super::hook::Hook;
use crate::event::{Certainty, Event, Name};
use crate::git::Oid;
use crate::lane::Project;
use crate::store::{Layout, new_id};

/// The branches and tags that the run has made.
const MADE: &str = "made";
/// Those that were kept, each with what it led to.
pub(super) const KEPT: &str = "kept";
/// Objects, and the refs that they are to have.
const TO_KEEP: &str = "to-keep";

/// Keeps what a branch or tag led to, unless the run has made it or the branch only goes forward. Why it cannot be kept, as the
/// beginning of a sentence; the update is to be refused then.
pub(super) fn before_it_goes(
    project: &Project,
    hook: &Hook<'_>,
    update: &Update<'_>,
    now: Option<Oid>,
) -> Option<String> {
    let made = Layout::fence_list(&hook.fence, MADE);
    let Some(now) = now else {
        // One that is not noted is kept once too often.
        drop(add_line(&made, update.name));
        return None;
    };
    let is_own =
        std::fs::read_to_string(&made).is_ok_and(|made| made.lines().any(|name| name == update.name));
    let new = Oid::from_hex(update.new).filter(|_| !update.removes());
    let goes_forward = update.name.starts_with("refs/heads/")
        && new.is_some_and(|new| project.repo.is_ancestor(now, new).unwrap_or(false));
    if is_own || goes_forward {
        return None;
    }
    // Before 2.46 git asks about packed and loose refs one after the other.
    let (list, line) = (Layout::fence_list(&hook.fence, KEPT), format!("{} {now}", update.name));
    if std::fs::read_to_string(&list).is_ok_and(|kept| kept.lines().any(|kept| kept == line)) {
        return None;
    }
    let lane = &hook.record.lane;
    let kept = format!("refs/proq/saved/{lane}-{}", new_id());
    if project.repo.create_ref(&kept, now, "git-proq: an agent deletes or moves it").is_err() {
        // Where all refs have one lock, git holds it just now.
        let noted = add_line(&Layout::fence_list(&hook.fence, TO_KEEP), &format!("{now} {kept}"));
        if let Err(e) = noted {
            return Some(format!("{} would be lost, since it could not be kept ({e})", update.name));
        }
    }
    // One that is not noted is kept once too often.
    drop(add_line(&list, &line));
    tell(project, hook, update, &kept);
    None
}

fn tell(project: &Project, hook: &Hook<'_>, update: &Update<'_>, kept: &str) {
    let lane = &hook.record.lane;
    let (command, name) = called(update.name);
    let (does, force) = if update.removes() { ("deletes", "") } else { ("moves", " -f") };
    let what = format!("the agent of lane '{lane}' {does} {command} {name}");
    let back = format!("what it was is kept: git {command}{force} {name} {kept}");
    let mut event = Event::now(Name::LaneEscape, format!("{what}; {back}"));
    event.lane = Some(lane.clone());
    event.state = project.any_lane(lane).ok().map(|lane| lane.state.to_string());
    event.certainty = Some(Certainty::Certain);
    project.tell_event(event);
}

/// The command of git for a branch or tag, and its short name.
pub(super) fn called(name: &str) -> (&'static str, &str) {
    match name.strip_prefix("refs/heads/") {
        Some(branch) => ("branch", branch),
        None => ("tag", name.trim_start_matches("refs/tags/")),
    }
}

fn add_line(file: &Path, line: &str) -> std::io::Result<()> {
    let mut file = File::options().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()
}

/// Gives refs to what the hooks of a run could give none.
pub(super) fn keep_noted(project: &Project, fence: &Path) {
    let text = std::fs::read_to_string(Layout::fence_list(fence, TO_KEEP)).unwrap_or_default();
    for (object, name) in text.lines().filter_map(|line| line.split_once(' ')) {
        let Some(object) = Oid::from_hex(object.as_bytes()) else { continue };
        if let Err(e) = project.repo.create_ref(name, object, "git-proq: an agent deleted or moved it") {
            project.listener.warn(format!("{object} could not be kept as {name}: {e}"));
        }
    }
}
