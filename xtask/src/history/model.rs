//! State of a repository as the model knows it: everything visible, and what git-proq has parked.

use std::collections::{BTreeMap, BTreeSet};

use super::step::MAIN;
use super::worktree::{Files, Kind, Snapshot, Worktree};

/// Lane of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lane {
    /// State as written in the lane's record.
    pub(super) state: String,
    /// Branch that the lane lands on.
    pub(super) base: String,
    /// Fork point of the lane.
    pub(super) fork_point: String,
    /// Whether the lane has landed.
    pub(super) landed: bool,
    /// Edits made in the lane's previews, saved for its next preview.
    pub(super) preview_edits: Vec<Snapshot>,
    /// Tips of lane and base at the last conflict.
    pub(super) conflict: Option<(String, String)>,
}

/// Open preview.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OpenPreview {
    /// Lane that is previewed.
    pub(super) lane: String,
    /// Commit that the preview shows.
    pub(super) tip: String,
    /// Ref or commit that HEAD had before the preview.
    pub(super) came_from: String,
    /// The user's parked changes.
    pub(super) parked: Option<Snapshot>,
}

/// State of the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Model {
    /// Worktrees by name: the main checkout and the lanes.
    pub(super) trees: BTreeMap<String, Worktree>,
    /// Refs by their full names, without git-proq's own.
    pub(super) refs: BTreeMap<String, String>,
    /// Lanes by name.
    pub(super) lanes: BTreeMap<String, Lane>,
    /// Open preview.
    pub(super) preview: Option<OpenPreview>,
}

/// State of the repository as comparable lines of text.
pub(super) type Image = BTreeMap<String, String>;

/// Number of differences that are printed.
const MAX_DIFFERENCES_LISTED: usize = 8;

/// Returns the branch of a lane.
pub(super) fn branch(lane: &str) -> String {
    format!("refs/heads/proq/{lane}")
}

/// Returns the branch of a lane's preview.
pub(super) fn preview_branch(lane: &str) -> String {
    format!("refs/heads/proq/{lane}-preview")
}

impl Model {
    /// Returns the main checkout.
    pub(super) fn main(&self) -> Worktree {
        self.trees.get(MAIN).cloned().unwrap_or_default()
    }

    /// Returns the commit that `head` is at: a full ref name or a commit id.
    pub(super) fn tip(&self, head: &str) -> Option<String> {
        if head.starts_with("refs/") { self.refs.get(head).cloned() } else { Some(head.to_owned()) }
    }

    /// Returns the commit that a worktree is at.
    pub(super) fn head_commit(&self, tree: &str) -> Option<String> {
        self.tip(&self.trees.get(tree)?.head)
    }

    /// Returns everything visible, except the files of the unchecked worktrees.
    pub(super) fn image(&self, unchecked: &BTreeSet<String>) -> Image {
        let mut out = Image::new();
        for (name, tree) in &self.trees {
            out.insert(format!("{name} HEAD"), tree.head.clone());
            if !unchecked.contains(name) {
                insert_files(&mut out, &format!("{name} file"), &tree.files);
                insert_files(&mut out, &format!("{name} index"), &tree.index);
            }
        }
        for (name, id) in &self.refs {
            out.insert(name.clone(), id.clone());
        }
        for (name, lane) in &self.lanes {
            out.insert(format!("lane {name} state"), lane.state.clone());
            out.insert(format!("lane {name} base"), lane.base.clone());
            out.insert(format!("lane {name} start"), lane.fork_point.clone());
            if !unchecked.contains(MAIN) {
                out.insert(format!("lane {name} preview edits"), lane.preview_edits.len().to_string());
            }
        }
        if let Some(open) = &self.preview {
            let parked_note =
                if open.parked.is_some() && !unchecked.contains(MAIN) { ", changes wait" } else { "" };
            let text = format!("{} at {} from {}{parked_note}", open.lane, open.tip, open.came_from);
            out.insert("preview".to_owned(), text);
        }
        out
    }

    /// Returns every token in files, indexes, snapshots and the given commits.
    pub(super) fn tokens(&self, commits: impl Iterator<Item = Files>) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        for tree in self.trees.values() {
            collect_file_tokens(&tree.files, &mut out);
            collect_file_tokens(&tree.index, &mut out);
        }
        let waiting = self.preview.iter().filter_map(|open| open.parked.as_ref());
        for snap in self.lanes.values().flat_map(|lane| &lane.preview_edits).chain(waiting) {
            collect_file_tokens(&snap.files, &mut out);
            collect_file_tokens(&snap.index, &mut out);
        }
        commits.for_each(|files| collect_file_tokens(&files, &mut out));
        out
    }

    /// Replaces the id of a commit that the model created with the id of the real commit.
    pub(super) fn replace_id(&mut self, from: &str, to: &str) {
        let swap = |id: &mut String| {
            if id == from {
                to.clone_into(id);
            }
        };
        self.refs.values_mut().for_each(swap);
        for tree in self.trees.values_mut() {
            swap(&mut tree.head);
        }
        for lane in self.lanes.values_mut() {
            swap(&mut lane.fork_point);
            for snap in &mut lane.preview_edits {
                swap(&mut snap.base);
            }
            if let Some((theirs, base)) = &mut lane.conflict {
                swap(theirs);
                swap(base);
            }
        }
        if let Some(open) = &mut self.preview {
            swap(&mut open.tip);
            swap(&mut open.came_from);
            if let Some(snap) = &mut open.parked {
                swap(&mut snap.base);
            }
        }
    }
}

/// Collects tokens: lines that are a number between two `w`.
pub(super) fn collect_tokens(text: &str, out: &mut BTreeSet<String>) {
    let is_token = |line: &&str| {
        line.strip_prefix('w')
            .and_then(|rest| rest.strip_suffix('w'))
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    out.extend(text.lines().filter(is_token).map(str::to_owned));
}

fn collect_file_tokens(files: &Files, out: &mut BTreeSet<String>) {
    for file in files.values() {
        collect_tokens(&file.text, out);
    }
}

fn insert_files(out: &mut Image, label: &str, files: &Files) {
    for (path, file) in files {
        let kind = match file.kind {
            Kind::Regular => "",
            Kind::Executable => "x ",
            Kind::Symlink => "link ",
            Kind::IntentToAdd => "intended ",
        };
        out.insert(format!("{label} {path}"), format!("{kind}{}", file.text.replace('\n', "/")));
    }
}

/// Describes how two images differ; none if they are equal.
pub(super) fn difference(found: &Image, wanted: &Image) -> Option<String> {
    let mut parts = Vec::new();
    for (key, value) in found {
        match wanted.get(key) {
            None => parts.push(format!("+ {key} = {value}")),
            Some(other) if other != value => parts.push(format!("{key} = {value}\n      not {other}")),
            Some(_) => {}
        }
    }
    let missing = wanted.iter().filter(|(key, _)| !found.contains_key(*key));
    parts.extend(missing.map(|(key, value)| format!("- {key} = {value}")));
    let more = parts.len().saturating_sub(MAX_DIFFERENCES_LISTED);
    parts.truncate(MAX_DIFFERENCES_LISTED);
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    (!parts.is_empty()).then(|| parts.join("\n    "))
}
