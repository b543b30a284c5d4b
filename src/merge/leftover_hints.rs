//! Owns the commands that help with uncommitted work in a lane, which keeps it from landing.

use std::path::Path;

use crate::explain::quoted_path;
use crate::git::{self, Dirt, Remedy, Repo};
use crate::store::records::LaneRecord;

/// The hints for a lane with uncommitted work. `git add -A` takes nothing of what is inside of a submodule.
pub(super) fn hints(repo: &Repo, lane: &LaneRecord, dirt: &Dirt) -> Vec<String> {
    if let Some(first) = git::unreadable(&lane.path, &dirt.paths()).first() {
        return vec![format!(
            "make it readable for you first: chmod u+r {}",
            quoted_path(&first.under(&lane.path))
        )];
    }
    let sparse = if repo.has_sparse_patterns(&lane.path) { " --sparse" } else { "" };
    let commit = |dir: &Path| format!("git -C {0} add -A{sparse} && git -C {0} commit", quoted_path(dir));
    let all = commit(&lane.path);
    if let Remedy::InSubmodules(inside) = Remedy::of(repo, &lane.path, &dirt.paths()) {
        let calls: Vec<String> = inside.iter().map(|path| commit(&path.under(&lane.path))).collect();
        return vec![format!("commit it there: {} && {all}", calls.join(" && "))];
    }
    let by_merge =
        format!("or let merge do it: git -c proq.merge.uncommitted=commit proq merge {}", lane.name);
    vec![format!("commit it there: {all}"), by_merge]
}
