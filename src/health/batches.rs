//! Owns checking batches: each was finished when it was made, and whatever says that it belongs to one finds it.

use super::finding::Finding;
use super::scene::{Scene, quoted};
use crate::lane::effective_state;
use crate::store::LockName;
use crate::swarm::{self, Batch};

/// Folders, lanes and branches of batches.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let mut out = half_made(scene);
    out.extend(lanes(scene));
    out.extend(branches(scene));
    out.extend(interrupted(scene));
    out
}

fn is_known(scene: &Scene<'_>, id: &str) -> bool {
    let layout = scene.project.store.layout();
    let held = scene.project.store.locks().is_held(&LockName::Batch(id.to_owned())).unwrap_or(true);
    held || layout.batch_record(id).exists()
}

/// Whoever made it was killed: the record is written last.
fn half_made(scene: &Scene<'_>) -> Vec<Finding> {
    let layout = scene.project.store.layout();
    let half = layout.names_in("batches").into_iter().filter(|id| !is_known(scene, id));
    half.map(|id| {
        let dir = layout.batch(&id);
        let message = format!("{} belongs to a batch that was never finished", dir.display());
        Finding::warning("batch-record", format!("batch {id}"), message)
            .help(format!("rm -r {}", quoted(&dir)))
            .left("it holds a copy of a plan, and nothing that was done")
    })
    .collect()
}

fn lanes(scene: &Scene<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for lane in &scene.lanes {
        let Some(of) = lane.batch.as_ref().filter(|of| !is_known(scene, &of.batch)) else { continue };
        let name = &lane.name;
        let busy = effective_state(scene.project, lane).is_ok_and(|(state, _)| state.is_busy());
        let (what, help) = match busy {
            true => ("its agent is at work, and nobody waits for it", format!("git proq stop {name}")),
            false => ("nobody goes on with it", format!("git proq show {name}")),
        };
        let message = format!(
            "lane '{name}' is for {} of batch {}, of which nothing is known: {what}",
            of.task, of.batch
        );
        out.push(Finding::warning("batch-lane", format!("lane '{name}'"), message).help(help));
    }
    out
}

/// Batches that are neither over nor paused, and whose schedulers were killed.
fn interrupted(scene: &Scene<'_>) -> Vec<Finding> {
    let project = scene.project;
    let is_interrupted = |id: &str| {
        if swarm::is_run(project, id).unwrap_or(true) {
            return false;
        }
        let Ok(batch) = Batch::load(project, id) else { return false };
        let Ok(lines) = batch.log(project) else { return false };
        let state = batch.state(&lines);
        batch.record.cleaned.is_none() && state.outcome_if_over().is_none() && state.pause_reason().is_none()
    };
    let ids = swarm::batches(project, false).into_iter().map(|batch| batch.id);
    ids.filter(|id| is_interrupted(id))
        .map(|id| {
            let message = format!("batch {id} is interrupted: nobody goes on with it");
            Finding::warning("batch-interrupted", format!("batch {id}"), message)
                .help(format!("git proq resume {id}"))
                .left("what its agents do next is for a person to decide")
        })
        .collect()
}

fn branches(scene: &Scene<'_>) -> Vec<Finding> {
    let prefix = format!("refs/heads/{}/batch-", scene.project.settings.prefix);
    let mut out = Vec::new();
    for (id, _) in scene.below(&prefix).filter(|(id, _)| !is_known(scene, id)) {
        let branch = format!("{}/batch-{id}", scene.project.settings.prefix);
        let message = format!("{branch} is the branch of a batch of which nothing is known");
        out.push(
            Finding::warning("batch-branch", format!("branch {branch}"), message)
                .help(format!("git log {branch}"))
                .left("what landed on it may be nowhere else"),
        );
    }
    out
}
