//! Owns one moment of a repository as the model knows it: all that can be seen, and what git-proq keeps out of sight.

use std::collections::{BTreeMap, BTreeSet};

use super::parts::{Files, Kind, Snap, Tree};
use super::step::MAIN;

/// A lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lane {
    /// What its record calls its state.
    pub(super) state: String,
    /// The branch it lands on.
    pub(super) base: String,
    /// The commit it was cut from.
    pub(super) start: String,
    /// Whether it has landed.
    pub(super) landed: bool,
    /// Edits made in its previews that wait for the next one.
    pub(super) edits: Vec<Snap>,
    /// The tips of lane and base when it last conflicted.
    pub(super) conflict: Option<(String, String)>,
}

/// An open preview.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Open {
    /// The lane.
    pub(super) lane: String,
    /// The commit that it was brought to.
    pub(super) tip: String,
    /// What HEAD named before.
    pub(super) came_from: String,
    /// The user's changes that wait.
    pub(super) waiting: Option<Snap>,
}

/// A moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Model {
    /// Worktrees: the main checkout, and lanes by name.
    pub(super) trees: BTreeMap<String, Tree>,
    /// Refs by their full names, those of git-proq's own left out.
    pub(super) refs: BTreeMap<String, String>,
    /// Lanes by name.
    pub(super) lanes: BTreeMap<String, Lane>,
    /// The open preview.
    pub(super) open: Option<Open>,
}

/// A moment, in a form that says what differs.
pub(super) type Image = BTreeMap<String, String>;

/// How many differences are named.
const MOST: usize = 8;

/// The branch of a lane.
pub(super) fn branch(lane: &str) -> String {
    format!("refs/heads/proq/{lane}")
}

/// The branch that a preview of a lane is on.
pub(super) fn preview_branch(lane: &str) -> String {
    format!("refs/heads/proq/{lane}-preview")
}

impl Model {
    /// The main checkout.
    pub(super) fn main(&self) -> Tree {
        self.trees.get(MAIN).cloned().unwrap_or_default()
    }

    /// The commit that something called `head` is at.
    pub(super) fn tip(&self, head: &str) -> Option<String> {
        if head.starts_with("refs/") { self.refs.get(head).cloned() } else { Some(head.to_owned()) }
    }

    /// The commit that a worktree is at.
    pub(super) fn commit_of(&self, tree: &str) -> Option<String> {
        self.tip(&self.trees.get(tree)?.head)
    }

    /// All that can be seen, but for the worktrees in `blind`.
    pub(super) fn image(&self, blind: &BTreeSet<String>) -> Image {
        let mut out = Image::new();
        for (name, tree) in &self.trees {
            out.insert(format!("{name} HEAD"), tree.head.clone());
            if !blind.contains(name) {
                tell(&mut out, &format!("{name} file"), &tree.files);
                tell(&mut out, &format!("{name} index"), &tree.index);
            }
        }
        for (name, id) in &self.refs {
            out.insert(name.clone(), id.clone());
        }
        for (name, lane) in &self.lanes {
            out.insert(format!("lane {name} state"), lane.state.clone());
            out.insert(format!("lane {name} base"), lane.base.clone());
            out.insert(format!("lane {name} start"), lane.start.clone());
            if !blind.contains(MAIN) {
                out.insert(format!("lane {name} preview edits"), lane.edits.len().to_string());
            }
        }
        if let Some(open) = &self.open {
            let waits = if open.waiting.is_some() && !blind.contains(MAIN) { ", changes wait" } else { "" };
            let text = format!("{} at {} from {}{waits}", open.lane, open.tip, open.came_from);
            out.insert("preview".to_owned(), text);
        }
        out
    }

    /// Every token in what is there, seen or set aside. `commit` gives a commit's files.
    pub(super) fn tokens(&self, commits: impl Iterator<Item = Files>) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        for tree in self.trees.values() {
            collect(&tree.files, &mut out);
            collect(&tree.index, &mut out);
        }
        let waiting = self.open.iter().filter_map(|open| open.waiting.as_ref());
        for snap in self.lanes.values().flat_map(|lane| &lane.edits).chain(waiting) {
            collect(&snap.files, &mut out);
            collect(&snap.index, &mut out);
        }
        commits.for_each(|files| collect(&files, &mut out));
        out
    }

    /// Calls a commit that the model made by the name that it really has.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
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
            swap(&mut lane.start);
            for snap in &mut lane.edits {
                swap(&mut snap.base);
            }
            if let Some((theirs, base)) = &mut lane.conflict {
                swap(theirs);
                swap(base);
            }
        }
        if let Some(open) = &mut self.open {
            swap(&mut open.tip);
            swap(&mut open.came_from);
            if let Some(snap) = &mut open.waiting {
                swap(&mut snap.base);
            }
        }
    }
}

/// Finds tokens: words that begin and end with a `w`.
pub(super) fn tokens_in(text: &str, out: &mut BTreeSet<String>) {
    let is_token = |line: &&str| {
        line.strip_prefix('w')
            .and_then(|rest| rest.strip_suffix('w'))
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    out.extend(text.lines().filter(is_token).map(str::to_owned));
}

fn collect(files: &Files, out: &mut BTreeSet<String>) {
    for file in files.values() {
        tokens_in(&file.text, out);
    }
}

fn tell(out: &mut Image, what: &str, files: &Files) {
    for (path, file) in files {
        let kind = match file.kind {
            Kind::Plain => "",
            Kind::Program => "x ",
            Kind::Link => "link ",
            Kind::Intent => "intended ",
        };
        out.insert(format!("{what} {path}"), format!("{kind}{}", file.text.replace('\n', "/")));
    }
}

/// How two images differ, in a few words; None when they do not.
pub(super) fn difference(found: &Image, wanted: &Image) -> Option<String> {
    let mut parts = Vec::new();
    for (key, value) in found {
        match wanted.get(key) {
            None => parts.push(format!("+ {key} = {value}")),
            Some(other) if other != value => parts.push(format!("{key} = {value}\n      not {other}")),
            Some(_) => {}
        }
    }
    let gone = wanted.iter().filter(|(key, _)| !found.contains_key(*key));
    parts.extend(gone.map(|(key, value)| format!("- {key} = {value}")));
    let more = parts.len().saturating_sub(MOST);
    parts.truncate(MOST);
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    (!parts.is_empty()).then(|| parts.join("\n    "))
}
