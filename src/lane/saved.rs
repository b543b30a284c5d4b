//! Owns how long refs that saved a removed lane's commits stay: until other refs keep the same commits.

use std::collections::HashSet;

use super::expire::{Old, Spare, Stays, What};
use super::{Error, Project, trash};
use crate::git::Oid;
use crate::store::made_at;

const SAVED: &str = "refs/proq/saved/";

/// The saved refs that are older than the setting `op.keep` and whose commits other refs keep too.
pub(super) fn old(project: &Project) -> Result<Old, Error> {
    let mut old = Old::default();
    let mut candidates = Vec::new();
    for (name, tip) in project.repo.refs_below(SAVED)? {
        let help = Some(format!("git update-ref -d {name}"));
        match made_at(&name) {
            None => old.stays.push(Stays { name, why: "its name tells no time".to_owned(), help }),
            Some(at) if at.is_older_than(project.settings.op_keep) => candidates.push((name, tip, at)),
            Some(_) => {}
        }
    }
    if candidates.is_empty() {
        return Ok(old);
    }
    // Taking a lane out of the trash needs them.
    let needed: HashSet<String> = trash::saved_by(project)?.into_iter().collect();
    candidates.retain(|(name, _, _)| !needed.contains(name));
    let tips: Vec<Oid> = candidates.iter().map(|(_, tip, _)| *tip).collect();
    let alone = match project.repo.unreached(&tips) {
        Ok(alone) => alone,
        Err(e) => {
            old.stays.extend(candidates.into_iter().map(|(name, _, _)| Stays::unreadable(name, &e)));
            return Ok(old);
        }
    };
    candidates.sort_by_key(|(_, _, at)| *at);
    for (name, tip, at) in candidates {
        if holds_nothing(project, tip, &alone) {
            old.spare.push(Spare { name, at, what: What::Ref(tip) });
        } else {
            let help = Some(format!("git update-ref -d {name}"));
            let why = "no branch or tag has its commits".to_owned();
            old.stays.push(Stays { name, why, help });
        }
    }
    Ok(old)
}

/// Whether every commit that a saved ref leads to is on other refs. One that only ties several tips together counts as
/// those.
fn holds_nothing(project: &Project, tip: Oid, alone: &HashSet<Oid>) -> bool {
    if !alone.contains(&tip) {
        return true;
    }
    let parents = project.repo.kept_by(tip).ok().flatten();
    parents.is_some_and(|parents| parents.iter().all(|parent| !alone.contains(parent)))
}

/// Deletes one, unless it or what kept its commits has moved meanwhile.
pub(super) fn free(project: &Project, name: &str, tip: Oid) -> Result<bool, Error> {
    if !holds_nothing(project, tip, &project.repo.unreached(&[tip])?) {
        return Ok(false);
    }
    project.repo.delete_ref(name, tip, "git-proq: its commits are on other refs")?;
    Ok(true)
}
