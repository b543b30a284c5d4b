//! Owns checking each lane: record, branch, folder and git's registration name each other, and its state is true.

use super::finding::Finding;
use super::repair::Repair;
use super::scene::{Scene, quoted};
use crate::git::{Oid, Registration};
use crate::lane::{
    Misplaced, alias, branch_again, command_to_remove, effective_state, last_commit, misplaced, off_branch,
    renamed_to, way_back_to_folder,
};
use crate::store::Record;
use crate::store::records::{AnyLane, LaneRecord, LaneState, RunRecord, Strategy};

/// Every lane on record, and the history.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for lane in &scene.lanes {
        out.extend(name(scene, lane));
        if !scene.is_in_flux(lane) {
            out.extend(branch(scene, lane));
            out.extend(folder(scene, lane));
            out.extend(state(scene, lane));
            out.extend(runs(scene, lane));
            out.extend(edits(scene, lane));
            out.extend(landed(scene, lane));
        }
    }
    for look in &scene.looks {
        out.extend(state(scene, look));
        out.extend(runs(scene, look));
    }
    out.extend(half_made(scene));
    out.extend(history(scene));
    out
}

fn of<P>(lane: &LaneRecord<P>) -> String {
    format!("lane '{}'", lane.name)
}

fn name(scene: &Scene<'_>, lane: &LaneRecord) -> Vec<Finding> {
    let mut out = Vec::new();
    if !scene.has_lane(&lane.name) {
        let message = format!("the record of lane '{}' lies in a folder of another name", lane.name);
        out.push(Finding::error("lane-record", of(lane), message).left("it may be a copy made by hand"));
    }
    let twins = |other: &&LaneRecord| other.path == lane.path || other.place.branch == lane.place.branch;
    if let Some(other) = scene.lanes.iter().filter(|o| o.name < lane.name).find(twins) {
        let message = format!("lanes '{}' and '{}' claim the same branch or folder", other.name, lane.name);
        let why = "which of the two is right is for a person to judge";
        out.push(
            Finding::error("lane-record", of(lane), message)
                .left(why)
                .help(format!("git proq show {}", lane.name)),
        );
    }
    out
}

fn branch(scene: &Scene<'_>, lane: &LaneRecord) -> Vec<Finding> {
    let mut out = Vec::new();
    let LaneRecord { name, base, .. } = lane;
    let branch = &lane.place.branch;
    if scene.branch(branch).is_none() {
        let fate = match (renamed_to(scene.project, lane), last_commit(scene.project, lane)) {
            (Some(now), _) => format!("it was renamed to '{now}'"),
            (None, Some(id)) => format!("its last commit {} is still there", id.short()),
            (None, None) => "git has no log of where it was".to_owned(),
        };
        let help = branch_again(scene.project, lane);
        let help = help.unwrap_or_else(|| command_to_remove(scene.project, lane));
        let message = format!("lane '{name}' has no branch any more; {fate}");
        out.push(
            Finding::error("lane-branch", of(lane), message)
                .help(help)
                .left("somebody may have deleted it on purpose"),
        );
    }
    if let Ok(Some(found)) = alias(scene.project, lane) {
        let message = format!("lane '{name}': {}; nothing is committed or landed there", found.in_words());
        out.push(Finding::error("lane-branch", of(lane), message).help(found.help()));
    }
    if scene.branch(base).is_none() {
        let message = format!("'{base}', which lane '{name}' was to land on, is gone; it cannot land there");
        out.push(
            Finding::warning("lane-base", of(lane), message)
                .help(format!("git proq merge {name} --onto BRANCH")),
        );
    }
    out
}

fn folder(scene: &Scene<'_>, lane: &LaneRecord) -> Vec<Finding> {
    let name = &lane.name;
    let misplaced = misplaced(scene.project, lane);
    if let Some(found) = misplaced.as_ref().filter(|found| **found != Misplaced::Absent) {
        return vec![misplaced_folder(scene, lane, found)];
    }
    if !lane.path.exists() {
        let message = match misplaced {
            Some(found) => format!("lane '{name}': {}", found.in_words(lane)),
            None => format!("the folder of lane '{name}' is gone, and what was uncommitted in it"),
        };
        if let Some(back) = way_back_to_folder(scene.project, lane) {
            let message =
                format!("the folder of lane '{name}' is gone; what was uncommitted in it is in a snapshot");
            return vec![Finding::error("lane-folder", of(lane), message).help(back)];
        }
        let found = Finding::error("lane-folder", of(lane), message);
        let found = match scene.branch(&lane.place.branch) {
            // Its commits are safe, so a new folder makes it whole.
            Some(_) => {
                found.help(format!("git worktree add -f {} {}", quoted(&lane.path), lane.place.branch))
            }
            None => found.help(command_to_remove(scene.project, lane)),
        };
        return vec![found.left("it may be on a disk that is not there now")];
    }
    let Some(found) = scene.registrations.iter().find(|r| r.path == lane.path) else {
        // It was just made, or is just being removed.
        return Vec::new();
    };
    if let Ok(Some(missing)) = scene.project.repo.missing_in(&lane.path) {
        let message =
            format!("lane '{name}': {}; nothing is run, committed or landed there", missing.in_words());
        let help = missing.repair(&scene.project.repo, &lane.path, &lane.place.branch);
        let found = Finding::error("lane-worktree", of(lane), message).help(help);
        return vec![found.left(format!("or remove it: git proq discard --force {name}"))];
    }
    registration(scene, lane, found)
}

fn misplaced_folder(scene: &Scene<'_>, lane: &LaneRecord, found: &Misplaced) -> Finding {
    let message = format!("lane '{}': {}", lane.name, found.in_words(lane));
    let left = match found {
        Misplaced::Foreign { .. } => "the folder is another repository's",
        Misplaced::NoFolder(_) | Misplaced::Unrecorded(_) => "what is there is somebody's",
        Misplaced::Closed(_) => "who may read it is for its owner to say",
        _ => "git's own command puts this right, or refuses",
    };
    let finding = Finding::error("lane-worktree", of(lane), message).left(left);
    match found.help(scene.project, lane) {
        Some(help) => finding.help(help),
        None => finding,
    }
}

fn registration(scene: &Scene<'_>, lane: &LaneRecord, found: &Registration) -> Vec<Finding> {
    let mut out = Vec::new();
    let name = &lane.name;
    if found.id != lane.place.worktree_id {
        let message = format!(
            "git has lane '{name}' on record as '{}', the lane says '{}'",
            found.id, lane.place.worktree_id
        );
        out.push(
            Finding::error("lane-worktree", of(lane), message)
                .help(format!("git proq show {name}"))
                .left("somebody has made its worktree anew"),
        );
    }
    // Where its branch is gone there is nothing that it could go back to.
    let has_branch = scene.branch(&lane.place.branch).is_some() && !scene.is_held(name);
    if let Some(on) = found.branch.as_ref().filter(|on| **on != lane.place.branch && has_branch) {
        let message =
            format!("lane '{name}' has '{on}' checked out, so what is committed there does not land");
        let plain = || format!("git -C {} switch {}", quoted(&lane.path), lane.place.branch);
        let found = off_branch(scene.project, lane).ok().flatten();
        let back = found.map_or_else(plain, |off| off.back);
        out.push(Finding::warning("lane-head", of(lane), message).help(back));
    }
    out
}

fn state<P>(scene: &Scene<'_>, lane: &LaneRecord<P>) -> Option<Finding> {
    let name = &lane.name;
    match effective_state(scene.project, lane) {
        Err(e) => Some(Finding::of_error("lane-state", of(lane), &e)),
        Ok((LaneState::Orphaned, detail)) => {
            let detail = detail.unwrap_or_default();
            let message = format!("lane '{name}' is orphaned: {detail}; it can neither land nor go");
            let stop = format!("git proq stop {name}");
            Some(
                Finding::warning("lane-orphan", of(lane), message)
                    .help(stop)
                    .left("its agent may be at work"),
            )
        }
        Ok((now, detail)) if now != lane.state => {
            let why = detail.unwrap_or_else(|| "its run is over".to_owned());
            let message = format!("lane '{name}' claims to be {}, but {why}", lane.state);
            Some(
                Finding::error("lane-state", of(lane), message)
                    .help(format!("git proq logs {name}"))
                    .repair(Repair::EndRun(name.clone())),
            )
        }
        Ok(_) => None,
    }
}

fn runs<P>(scene: &Scene<'_>, lane: &LaneRecord<P>) -> Vec<Finding> {
    let layout = scene.project.store.layout();
    let mut out = Vec::new();
    for attempt in 1..=lane.attempt {
        match RunRecord::find(&layout.run_record(&lane.name, attempt)) {
            Ok(Some(_)) => {}
            // Written when the agent starts: one that is just being started has none yet.
            Ok(None) if scene.is_held(&lane.name) => {}
            Ok(None) => {
                let message = format!("the record of run {attempt} of lane '{}' is gone", lane.name);
                out.push(Finding::warning("run-record", of(lane), message));
            }
            Err(e) => {
                out.push(Finding::of_error("run-record", of(lane), &e).left("it tells how the run ended"));
            }
        }
    }
    out
}

fn edits(scene: &Scene<'_>, lane: &LaneRecord) -> Vec<Finding> {
    let gone = lane.preview_edits.iter().filter(|id| !scene.has_snap(id));
    gone.map(|id| {
        let message = format!(
            "lane '{}' waits for edits of a preview ({id}) that are nowhere: neither record nor ref is left",
            lane.name
        );
        let (lane_name, snap) = (lane.name.clone(), id.clone());
        Finding::error("lane-edits", of(lane), message)
            .help("git proq doctor --fix")
            .repair(Repair::ForgetEdits { lane: lane_name, snap })
    })
    .collect()
}

fn landed(scene: &Scene<'_>, lane: &LaneRecord) -> Option<Finding> {
    let landed = lane.landed.as_ref()?;
    let repo = &scene.project.repo;
    let base = scene.branch(&landed.onto)?;
    let on_base = |id: Oid| repo.has_object(id) && repo.is_ancestor(id, base).unwrap_or(false);
    if on_base(landed.commit) && (landed.method != Strategy::Merge || on_base(landed.tip)) {
        return None;
    }
    let message = format!(
        "lane '{}' landed on {} as {}, which is not on it any more: the branch was set back or rewritten",
        lane.name,
        landed.onto,
        landed.commit.short()
    );
    let help = match scene.branch(&lane.place.branch) {
        Some(_) => format!("git proq merge {}", lane.name),
        None => format!("git branch {} {}", lane.place.branch, landed.tip.short()),
    };
    Some(
        Finding::error("lane-landed", of(lane), message)
            .help(help)
            .left("somebody may have taken it back on purpose"),
    )
}

/// Folders of lanes without a record: a process was killed while making one, before or after the rest.
fn half_made(scene: &Scene<'_>) -> Vec<Finding> {
    let layout = scene.project.store.layout();
    let bare = |name: &&String| !scene.is_held(name) && !layout.has_lane_record(name);
    let half = scene.lane_names.iter().filter(bare);
    half.map(|name| {
        let dir = layout.lane(name);
        let message = format!("{} belongs to a lane that was never finished", dir.display());
        Finding::warning("lane-record", format!("lane '{name}'"), message)
            .help(format!("ls -R {}", quoted(&dir)))
            .left("it may hold what an agent was asked")
    })
    .collect()
}

fn history(scene: &Scene<'_>) -> Vec<Finding> {
    let layout = scene.project.store.layout();
    let mut out = Vec::new();
    for past in layout.names_in("history") {
        let (subject, file) = (format!("removed lane {past}"), layout.folder_of("history", &past));
        match AnyLane::find(&file.join("lane.toml")) {
            Ok(Some(_)) => {}
            Ok(None) => {
                let message = format!("the record of removed lane {past} is gone; nothing shows it any more");
                out.push(
                    Finding::warning("history-record", subject, message)
                        .help(format!("ls -R {}", quoted(&file))),
                );
            }
            Err(e) => out.push(
                Finding::of_error("history-record", subject, &e)
                    .left("what it held is for a person to judge"),
            ),
        }
    }
    out
}
