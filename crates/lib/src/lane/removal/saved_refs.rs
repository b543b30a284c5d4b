//! Expiry of the refs that saved the commits of removed lanes. They stay until other refs keep the same
//! commits.

use std::collections::HashSet;

use proq_git::{Oid, Repo};
use proq_store::base::id::id_created_at;

use crate::lane::context::expiry_item::{ExpiredItem, ExpiryScan, ItemSource, RetainedItem};
use crate::lane::worktree::trash;
use crate::lane::{Error, Project};

/// Prefix of the refs that keep commits which a command would otherwise lose.
const SAVED_REF_PREFIX: &str = "refs/proq/saved/";

/// Finds the saved refs that are older than the setting `op.keep` and whose commits other refs also keep.
pub fn find_expired(project: &Project) -> Result<ExpiryScan, Error> {
    let mut expired = ExpiryScan::default();
    let mut candidates = Vec::new();
    for (name, tip) in project.repo.refs_with_prefix(SAVED_REF_PREFIX)? {
        let help = Some(format!("git update-ref -d {name}"));
        match id_created_at(&name) {
            None => expired.retained.push(RetainedItem {
                name,
                reason: "its name has no time".to_owned(),
                remedy_command: help,
            }),
            Some(at) if at.is_older_than(project.settings.op_keep) => candidates.push((name, tip, at)),
            Some(_) => {}
        }
    }
    if candidates.is_empty() {
        return Ok(expired);
    }
    // Restoring a lane from the trash needs these refs.
    let needed: HashSet<String> = trash::saved_refs_in_use(project)?.into_iter().collect();
    candidates.retain(|(name, _, _)| !needed.contains(name));
    let tips: Vec<Oid> = candidates.iter().map(|(_, tip, _)| *tip).collect();
    let unreached = match project.repo.unreferenced_commits(&tips) {
        Ok(commits) => commits,
        Err(e) => {
            expired
                .retained
                .extend(candidates.into_iter().map(|(name, _, _)| RetainedItem::unreadable(name, &e)));
            return Ok(expired);
        }
    };
    candidates.sort_by_key(|(_, _, at)| *at);
    for (name, tip, at) in candidates {
        if is_redundant(&project.repo, tip, &unreached) {
            expired.expired.push(ExpiredItem { name, age_start: at, source: ItemSource::SavedRef(tip) });
        } else {
            let help = Some(format!("git update-ref -d {name}"));
            let reason = "no branch or tag has its commits".to_owned();
            expired.retained.push(RetainedItem { name, reason, remedy_command: help });
        }
    }
    Ok(expired)
}

/// Returns whether other refs reach every commit that a saved ref keeps. `unreached` are the commits that no
/// other ref reaches. For a commit that only ties commits together, its parents count.
fn is_redundant(repo: &Repo, tip: Oid, unreached: &HashSet<Oid>) -> bool {
    if !unreached.contains(&tip) {
        return true;
    }
    let parents = repo.keeper_parents(tip).ok().flatten();
    parents.is_some_and(|parents| parents.iter().all(|parent| !unreached.contains(&parent.oid())))
}

/// Deletes a saved ref, unless the ref or another ref that kept its commits has moved concurrently. Returns
/// whether it was deleted.
pub(crate) fn delete_if_redundant(repo: &Repo, name: &str, tip: Oid) -> Result<bool, Error> {
    if !is_redundant(repo, tip, &repo.unreferenced_commits(&[tip])?) {
        return Ok(false);
    }
    repo.delete_ref(name, tip, "git-proq: its commits are on other refs")?;
    Ok(true)
}
