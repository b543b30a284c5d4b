//! Hints for a lane that may not land because of uncommitted work.

use std::path::Path;

use crate::explain::shell_quote_path;
use crate::git::{self, LocalChangesHint, Repo, WorktreeStatus};
use crate::store::records::LaneRecord;

/// Returns the hints for a lane with uncommitted work. `git add -A` adds nothing that is inside of a
/// submodule, so each submodule gets its own command.
pub(super) fn commit_hints(repo: &Repo, lane: &LaneRecord, status: &WorktreeStatus) -> Vec<String> {
    if let Some(first) = git::unreadable_paths(&lane.path, &status.paths()).first() {
        return vec![format!(
            "make it readable for you first: chmod u+r {}",
            shell_quote_path(&first.to_fs_path(&lane.path))
        )];
    }
    let sparse_flag = if repo.has_sparse_patterns(&lane.path) { " --sparse" } else { "" };
    let commit_command =
        |dir: &Path| format!("git -C {0} add -A{sparse_flag} && git -C {0} commit", shell_quote_path(dir));
    let lane_commit = commit_command(&lane.path);
    if let LocalChangesHint::StashInSubmodules(submodules) =
        LocalChangesHint::detect(repo, &lane.path, &status.paths())
    {
        let commands: Vec<String> =
            submodules.iter().map(|path| commit_command(&path.to_fs_path(&lane.path))).collect();
        return vec![format!("commit it there: {} && {lane_commit}", commands.join(" && "))];
    }
    let merge_hint =
        format!("or let merge do it: git -c proq.merge.uncommitted=commit proq merge {}", lane.name);
    vec![format!("commit it there: {lane_commit}"), merge_hint]
}
