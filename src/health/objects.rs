//! Owns checking that every commit and file that git-proq's refs lead to is there.

use super::finding::Finding;
use super::scene::Scene;
use crate::git::Oid;

/// How many missing objects are named.
const NAMED: usize = 3;

/// Refs that name nothing, and what is missing behind the others.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let repo = &scene.project.repo;
    let own = format!("refs/heads/{}/", scene.project.settings.prefix);
    let mut out: Vec<Finding> = repo
        .broken_refs(&[own.clone(), "refs/proq".to_owned()])
        .into_iter()
        .map(|name| {
            let message =
                format!("{name} holds no commit: its file is empty or broken, as a power cut leaves it");
            Finding::error("ref", name.clone(), message)
                .help(format!("git reflog {name}"))
                .left("which commit it was at is for a person to judge")
        })
        .collect();
    let is_own = |name: &str| name.starts_with(&own) || name.starts_with("refs/proq/");
    let (mut tips, mut known) = (Vec::new(), Vec::new());
    for (name, id) in &scene.refs {
        match (is_own(name), repo.has_object(*id)) {
            (true, true) => tips.push(*id),
            (false, true) => known.push(*id),
            (true, false) => out.push(gone(name, *id)),
            // The user's own branches are for git fsck.
            (false, false) => {}
        }
    }
    if !repo.is_partial() {
        out.extend(missing(scene, &tips, &known));
    }
    out
}

fn gone(name: &str, id: Oid) -> Finding {
    let message = format!("{name} names commit {}, which git has lost", id.short());
    Finding::error("objects", name, message)
        .help(format!("git fetch --all && git cat-file -t {id}"))
        .left("another clone or a backup may have it")
}

fn missing(scene: &Scene<'_>, tips: &[Oid], known: &[Oid]) -> Option<Finding> {
    let subject = "objects";
    let found = match scene.project.repo.missing_objects(tips, known) {
        Ok(missing) if missing.is_empty() => return None,
        Ok(missing) => missing,
        Err(e) => {
            let found = Finding::of_error("objects", subject, &e);
            return Some(found.help("git fsck").left("another clone or a backup may have what is missing"));
        }
    };
    let short = |id: &String| id.chars().take(12).collect::<String>();
    let mut names = found.iter().take(NAMED).map(short).collect::<Vec<_>>().join(", ");
    if found.len() > NAMED {
        names.push_str(&format!(" and {} more", found.len() - NAMED));
    }
    let message = format!("git has lost objects that lanes or snapshots need: {names}");
    Some(
        Finding::error("objects", subject, message)
            .help("git fsck --connectivity-only")
            .left("another clone or a backup may have them"),
    )
}
