//! State of a repository at one moment: every worktree, ref, lane and snapshot, in a form that two moments,
//! also of two sandboxes, can be compared by.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Sandbox, WorktreeState};

/// Refs that are kept for a limited time and whose names differ between runs.
const TEMPORARY_REFS: [&str; 3] = ["refs/proq/saved/", "refs/proq/op/", "refs/proq/snap/"];

/// Everything that an operation may change and undo restores: values by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoState(BTreeMap<String, String>);

impl RepoState {
    /// Captures everything without the program's help, because the program would repair what it reads.
    pub fn capture(sandbox: &Sandbox) -> RepoState {
        let mut all = BTreeMap::new();
        for dir in worktrees(sandbox) {
            let name = sandbox.normalize(dir.display().to_string().as_bytes());
            let image = WorktreeState::capture(sandbox, &dir);
            for (path, file) in image.files {
                all.insert(format!("{name}: file {path}"), file);
            }
            all.insert(format!("{name}: index"), image.index.join("\n"));
            all.insert(format!("{name}: status"), image.status.join("\n"));
            all.insert(format!("{name}: HEAD"), image.head);
        }
        let refs = sandbox.git(&["for-each-ref", "--format=%(refname) %(objectname) %(symref)"]);
        for line in refs.lines().filter(|line| !TEMPORARY_REFS.iter().any(|keeper| line.starts_with(keeper)))
        {
            let (name, target) = line.split_once(' ').unwrap();
            all.insert(format!("ref {name}"), target.trim().to_owned());
        }
        let proq = sandbox.repo.join(".git/proq");
        for folder in file_names(&proq.join("lanes")) {
            for file in ["lane.toml", "task.md", "conflict.toml"] {
                add_record(sandbox, &proq.join("lanes").join(&folder).join(file), &mut all);
            }
        }
        add_record(sandbox, &proq.join("preview.toml"), &mut all);
        all.insert("snapshots that wait".to_owned(), unrestored_snapshots(&proq).to_string());
        for (label, dir) in [
            ("history", proq.join("history")),
            ("trash", proq.join("trash")),
            ("registered", sandbox.repo.join(".git/worktrees")),
            ("folders", sandbox.repo.join(".proq-worktrees")),
        ] {
            let mut names = file_names(&dir);
            names.retain(|name| name != ".gitignore");
            let names: Vec<String> = names.iter().map(|name| sandbox.normalize(name.as_bytes())).collect();
            all.insert(label.to_owned(), names.join(" "));
        }
        RepoState(all)
    }

    /// Drops what a removed lane leaves in history and trash, because undoing its creation removes it.
    #[must_use]
    pub fn without_removed_lanes(mut self) -> RepoState {
        self.0.retain(|name, _| !["history", "trash"].contains(&name.as_str()));
        self
    }

    /// Drops the states of lanes' runs and landings, which records of older versions lack. Their word, `state`,
    /// stays.
    #[must_use]
    pub fn without_run_and_landing(mut self) -> RepoState {
        for (_, text) in self.0.iter_mut().filter(|(name, _)| name.ends_with("/lane.toml")) {
            *text = without_run_and_landing(text);
        }
        self
    }

    /// Asserts that another moment is the same, and lists the differences.
    #[track_caller]
    pub fn assert_same(&self, expected: &RepoState, moment: &str) {
        let mut differences = Vec::new();
        for (name, value) in &self.0 {
            match expected.0.get(name) {
                Some(other) if other == value => {}
                other => differences.push(format!("{name}\n   is {value:?}\n  not {other:?}")),
            }
        }
        let missing = expected.0.keys().filter(|name| !self.0.contains_key(*name));
        differences.extend(missing.map(|what| format!("{what} is gone")));
        assert!(differences.is_empty(), "{moment}:\n{}", differences.join("\n"));
    }
}

/// Returns the record of a lane as older versions wrote it.
pub fn without_run_and_landing(record: &str) -> String {
    let is_newer = |line: &&str| line.starts_with("run = ") || line.starts_with("landing = ");
    record.split_inclusive('\n').filter(|line| !is_newer(line)).collect()
}

fn worktrees(sandbox: &Sandbox) -> Vec<PathBuf> {
    let list = sandbox.git_bytes(&sandbox.repo, &["worktree", "list", "--porcelain"]);
    let list = String::from_utf8(list).unwrap();
    let paths = list.lines().filter_map(|line| line.strip_prefix("worktree "));
    let paths: Vec<PathBuf> = paths.map(PathBuf::from).filter(|path| path.exists()).collect();
    assert!(paths.contains(&sandbox.repo));
    paths
}

/// Returns the names in a folder, sorted; none when there is no folder.
pub fn file_names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn add_record(sandbox: &Sandbox, path: &Path, all: &mut BTreeMap<String, String>) {
    if let Ok(text) = std::fs::read(path) {
        all.insert(sandbox.normalize(path.display().to_string().as_bytes()), sandbox.normalize(&text));
    }
}

/// Counts the snapshots that were not restored.
fn unrestored_snapshots(proq: &Path) -> usize {
    let snaps = proq.join("snaps");
    let records = file_names(&snaps).into_iter().map(|id| snaps.join(id).join("snap.toml"));
    let is_restored = |text: &str| text.lines().any(|line| line.starts_with("restored = "));
    records.filter(|record| !is_restored(&std::fs::read_to_string(record).unwrap())).count()
}
