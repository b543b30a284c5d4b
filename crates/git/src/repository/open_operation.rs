//! Detection of a merge, rebase, cherry-pick, revert, am or bisect in progress.

use std::path::Path;

use crate::Error;

/// Operation that git has started and not finished in one worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenGitOperation {
    /// Name of the operation's git command: `merge`, `rebase` …
    pub command: &'static str,
    /// Branches that the operation will move when it finishes, without `refs/heads/`.
    pub branches: Vec<String>,
}

/// Files below a worktree's git directory and the operation that each of them marks, most specific first.
const GIT_OPERATION_MARKERS: &[(&str, &str)] = &[
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_START", "bisect"),
    ("sequencer", "cherry-pick"),
];

/// Files that name a branch which the operation moves later.
const OPERATION_BRANCH_FILES: &[&str] = &["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"];

/// Files that name the autostash commit of an operation: the changes that git restores after it.
pub(crate) const AUTOSTASH_FILES: [&str; 3] =
    ["rebase-merge/autostash", "rebase-apply/autostash", "MERGE_AUTOSTASH"];

/// Returns whether git will restore autostashed changes to a worktree after the operation in progress there.
pub fn has_autostash(git_dir: &Path) -> bool {
    AUTOSTASH_FILES.iter().any(|name| git_dir.join(name).exists())
}

/// Returns the operation in progress in the worktree with the git directory `git_dir`, if there is one.
pub fn find_open_git_operation(git_dir: &Path) -> Option<OpenGitOperation> {
    let command = GIT_OPERATION_MARKERS
        .iter()
        .find(|(mark, _)| git_dir.join(mark).exists())
        .map(|(_, command)| *command)?;
    let mut branches: Vec<String> = OPERATION_BRANCH_FILES
        .iter()
        .filter_map(|name| std::fs::read_to_string(git_dir.join(name)).ok())
        .map(|text| text.trim().trim_start_matches("refs/heads/").to_owned())
        .collect();
    // The lines form groups of three: ref, old id, new id.
    if let Ok(text) = std::fs::read_to_string(git_dir.join("rebase-merge/update-refs")) {
        branches
            .extend(text.lines().step_by(3).map(|l| l.trim().trim_start_matches("refs/heads/").to_owned()));
    }
    Some(OpenGitOperation { command, branches })
}

/// Fails with [`Error::OperationInProgress`] if an operation is in progress in the worktree at `dir`.
pub(crate) fn require_no_git_operation(dir: &Path, git_dir: &Path) -> Result<(), Error> {
    match find_open_git_operation(git_dir) {
        None => Ok(()),
        Some(open) => Err(Error::OperationInProgress { git_operation: open.command, dir: dir.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_all_branches_of_rebase() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(find_open_git_operation(dir.path()), None);
        let state = dir.path().join("rebase-merge");
        std::fs::create_dir(&state).unwrap();
        std::fs::write(state.join("head-name"), "refs/heads/main\n").unwrap();
        std::fs::write(state.join("update-refs"), "refs/heads/a\n1\n2\nrefs/heads/b\n3\n4\n").unwrap();
        let open = find_open_git_operation(dir.path()).unwrap();
        assert_eq!((open.command, open.branches), ("rebase", vec!["main".into(), "a".into(), "b".into()]));
    }
}
