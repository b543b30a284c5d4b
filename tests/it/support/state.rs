//! Owns what a whole repository looks like at one moment: every worktree, ref, lane and snapshot, in a form that two
//! moments, also of two sandboxes, can be compared by.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Image, Sandbox};

/// Refs that keep something for a time, and whose names no two runs share.
const KEEPERS: [&str; 3] = ["refs/proq/saved/", "refs/proq/op/", "refs/proq/snap/"];

/// Everything an operation may change and undo brings back: what, and how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State(BTreeMap<String, String>);

impl State {
    /// Looks at everything, without the program's help: that would put right what is to be looked at.
    pub fn of(sandbox: &Sandbox) -> State {
        let mut all = BTreeMap::new();
        for dir in worktrees(sandbox) {
            let name = sandbox.plain(dir.display().to_string().as_bytes());
            let image = Image::of(sandbox, &dir);
            for (path, file) in image.files {
                all.insert(format!("{name}: file {path}"), file);
            }
            all.insert(format!("{name}: index"), image.index.join("\n"));
            all.insert(format!("{name}: status"), image.status.join("\n"));
            all.insert(format!("{name}: HEAD"), image.head);
        }
        let refs = sandbox.git(&["for-each-ref", "--format=%(refname) %(objectname) %(symref)"]);
        for line in refs.lines().filter(|line| !KEEPERS.iter().any(|keeper| line.starts_with(keeper))) {
            let (name, to) = line.split_once(' ').unwrap();
            all.insert(format!("ref {name}"), to.trim().to_owned());
        }
        let proq = sandbox.repo.join(".git/proq");
        for folder in names(&proq.join("lanes")) {
            for file in ["lane.toml", "task.md", "conflict.toml"] {
                record(sandbox, &proq.join("lanes").join(&folder).join(file), &mut all);
            }
        }
        record(sandbox, &proq.join("preview.toml"), &mut all);
        all.insert("snapshots that wait".to_owned(), waiting(&proq).to_string());
        for (what, dir) in [
            ("history", proq.join("history")),
            ("trash", proq.join("trash")),
            ("registered", sandbox.repo.join(".git/worktrees")),
            ("folders", sandbox.repo.join(".proq-worktrees")),
        ] {
            let mut names = names(&dir);
            names.retain(|name| name != ".gitignore");
            let names: Vec<String> = names.iter().map(|name| sandbox.plain(name.as_bytes())).collect();
            all.insert(what.to_owned(), names.join(" "));
        }
        State(all)
    }

    /// The same without what a removed lane leaves: to undo its making is to remove it.
    #[must_use]
    pub fn without_remains(mut self) -> State {
        self.0.retain(|what, _| !["history", "trash"].contains(&what.as_str()));
        self
    }

    /// Insists that another moment looks the same, and says what differs.
    #[track_caller]
    pub fn is(&self, wanted: &State, when: &str) {
        let mut wrong = Vec::new();
        for (what, how) in &self.0 {
            match wanted.0.get(what) {
                Some(other) if other == how => {}
                other => wrong.push(format!("{what}\n   is {how:?}\n  not {other:?}")),
            }
        }
        let gone = wanted.0.keys().filter(|what| !self.0.contains_key(*what));
        wrong.extend(gone.map(|what| format!("{what} is gone")));
        assert!(wrong.is_empty(), "{when}:\n{}", wrong.join("\n"));
    }
}

fn worktrees(sandbox: &Sandbox) -> Vec<PathBuf> {
    let list = sandbox.raw(&sandbox.repo, &["worktree", "list", "--porcelain"]);
    let list = String::from_utf8(list).unwrap();
    let paths = list.lines().filter_map(|line| line.strip_prefix("worktree "));
    let paths: Vec<PathBuf> = paths.map(PathBuf::from).filter(|path| path.exists()).collect();
    assert!(paths.contains(&sandbox.repo));
    paths
}

/// The names in a folder, in order; none when there is no folder.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn record(sandbox: &Sandbox, path: &Path, all: &mut BTreeMap<String, String>) {
    if let Ok(text) = std::fs::read(path) {
        all.insert(sandbox.plain(path.display().to_string().as_bytes()), sandbox.plain(&text));
    }
}

/// How many snapshots have not come back.
fn waiting(proq: &Path) -> usize {
    let snaps = proq.join("snaps");
    let records = names(&snaps).into_iter().map(|id| snaps.join(id).join("snap.toml"));
    let back = |text: &str| text.lines().any(|line| line.starts_with("restored = "));
    records.filter(|record| !back(&std::fs::read_to_string(record).unwrap())).count()
}
