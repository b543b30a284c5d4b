//! Health checks of git objects: every commit and file reachable from git-proq's refs exists.

use proq_git::Oid;

use super::check_context::CheckContext;
use super::finding::Finding;

/// Maximum number of missing objects that are listed by id.
const MAX_OBJECTS_LISTED: usize = 3;

/// Checks for refs without a valid commit, and for missing objects that the other refs need.
pub(super) fn check(context: &CheckContext<'_>) -> Vec<Finding> {
    let repo = &context.project.repo;
    let lane_prefix = format!("refs/heads/{}/", context.project.settings.branch_prefix);
    let mut out: Vec<Finding> = repo
        .broken_refs(&[lane_prefix.clone(), "refs/proq".to_owned()])
        .into_iter()
        .map(|name| {
            let message = format!("{name} has no commit: its file is empty or broken, as after a power cut");
            Finding::error("ref", name.clone(), message)
                .with_help(format!("git reflog {name}"))
                .with_left_reason("only you can tell its commit")
        })
        .collect();
    let is_managed = |name: &str| name.starts_with(&lane_prefix) || name.starts_with("refs/proq/");
    let (mut tips, mut user_tips) = (Vec::new(), Vec::new());
    for (name, id) in &context.refs {
        match (is_managed(name), repo.has_object(*id)) {
            (true, true) => tips.push(*id),
            (false, true) => user_tips.push(*id),
            (true, false) => out.push(missing_commit_finding(name, *id)),
            // `git fsck` is for the user's own branches.
            (false, false) => {}
        }
    }
    if !repo.is_partial_clone() {
        out.extend(check_objects(context, &tips, &user_tips));
    }
    out
}

fn missing_commit_finding(name: &str, id: Oid) -> Finding {
    let message = format!("{name} names commit {}, which git has lost", id.short());
    Finding::error("objects", name, message)
        .with_help(format!("git fetch --all && git cat-file -t {id}"))
        .with_left_reason("another clone or a backup may have it")
}

/// Finds objects that git has lost and that `tips`, those of git-proq's refs, need. Objects that `user_tips`
/// reach are left out: they are for `git fsck`.
fn check_objects(context: &CheckContext<'_>, tips: &[Oid], user_tips: &[Oid]) -> Option<Finding> {
    let subject = "objects";
    let found = match context.project.repo.missing_objects(tips, user_tips) {
        Ok(missing) if missing.is_empty() => return None,
        Ok(missing) => missing,
        Err(e) => {
            let found = Finding::from_error("objects", subject, &e);
            return Some(
                found
                    .with_help("git fsck")
                    .with_left_reason("another clone or a backup may have what is missing"),
            );
        }
    };
    let short_id = |id: &String| id.chars().take(12).collect::<String>();
    let mut names = found.iter().take(MAX_OBJECTS_LISTED).map(short_id).collect::<Vec<_>>().join(", ");
    if found.len() > MAX_OBJECTS_LISTED {
        names.push_str(&format!(" and {} more", found.len() - MAX_OBJECTS_LISTED));
    }
    let message = format!("git has lost objects that lanes or snapshots need: {names}");
    Some(
        Finding::error("objects", subject, message)
            .with_help("git fsck --connectivity-only")
            .with_left_reason("another clone or a backup may have them"),
    )
}
