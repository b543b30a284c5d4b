//! Owns noticing that a merge, rebase, cherry-pick, revert, am or bisect is under way.

use std::path::Path;

use super::Error;

/// Something that git has begun and not finished in one worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenOperation {
    /// Its git command: `merge`, `rebase` …
    pub(crate) what: &'static str,
    /// Branches it will move when it ends, without `refs/heads/`.
    pub(crate) branches: Vec<String>,
}

/// What marks each operation below a worktree's git directory, most telling first.
const MARKS: &[(&str, &str)] = &[
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
const HEAD_NAMES: &[&str] = &["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"];

/// Files that name the commit with the changes that git has set aside for the operation, and puts back after it.
pub(super) const AUTOSTASHES: [&str; 3] =
    ["rebase-merge/autostash", "rebase-apply/autostash", "MERGE_AUTOSTASH"];

/// Whether git will put changes back into a worktree once it has done what is under way there.
pub(crate) fn has_autostash(git_dir: &Path) -> bool {
    AUTOSTASHES.iter().any(|name| git_dir.join(name).exists())
}

/// Looks into the git directory of one worktree.
pub(crate) fn open_operation(git_dir: &Path) -> Option<OpenOperation> {
    let what = MARKS.iter().find(|(mark, _)| git_dir.join(mark).exists()).map(|(_, what)| *what)?;
    let mut branches: Vec<String> = HEAD_NAMES
        .iter()
        .filter_map(|name| std::fs::read_to_string(git_dir.join(name)).ok())
        .map(|text| text.trim().trim_start_matches("refs/heads/").to_owned())
        .collect();
    // Lines come in threes: ref, old id, new id.
    if let Ok(text) = std::fs::read_to_string(git_dir.join("rebase-merge/update-refs")) {
        branches
            .extend(text.lines().step_by(3).map(|l| l.trim().trim_start_matches("refs/heads/").to_owned()));
    }
    Some(OpenOperation { what, branches })
}

/// Refuses when something is under way.
pub(super) fn refuse_open(dir: &Path, git_dir: &Path) -> Result<(), Error> {
    match open_operation(git_dir) {
        None => Ok(()),
        Some(open) => Err(Error::OpenOperation { what: open.what, dir: dir.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebase_names_every_branch_it_will_move() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(open_operation(dir.path()), None);
        let state = dir.path().join("rebase-merge");
        std::fs::create_dir(&state).unwrap();
        std::fs::write(state.join("head-name"), "refs/heads/main\n").unwrap();
        std::fs::write(state.join("update-refs"), "refs/heads/a\n1\n2\nrefs/heads/b\n3\n4\n").unwrap();
        let open = open_operation(dir.path()).unwrap();
        assert_eq!((open.what, open.branches), ("rebase", vec!["main".into(), "a".into(), "b".into()]));
    }
}
