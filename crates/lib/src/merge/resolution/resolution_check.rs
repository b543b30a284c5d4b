//! Check of a conflict's resolution: conflicts left undecided, changes outside of the conflict, and sides
//! that were dropped.

use std::collections::BTreeSet;

use proq_git::history::tree_diff::{TreeChange, TreeFile, tree_changes, tree_files};
use proq_git::merge::resolve::WorktreeContents;
use proq_git::merge::tree_merge;
use proq_git::merge::tree_merge::TreeMergeOutcome;
use proq_git::{Repo, RepoPath};
use proq_store::records::conflict::{ConflictedPath, ResolutionRecord};

use super::conflict_regions::{LeftoverMarkers, MarkedText, MergeSide, split_lines};
use crate::merge::Error;
use crate::merge::types::resolve_error::Refusal;
use crate::merge::types::resolver::Allowance;

/// Maximum number of characters of a line that a refusal quotes.
const MAX_QUOTED_CHARS: usize = 60;

/// Kind of a path's conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConflictKind {
    /// Two texts with marked regions.
    Text,
    /// A conflict that cannot be resolved line by line, with a phrase that describes it.
    NotText(&'static str),
}

/// Returns the kind of a path's conflict. `has_regions` is whether git could mark regions in it.
pub(crate) fn conflict_kind(path: &ConflictedPath, has_regions: bool) -> ConflictKind {
    match (path.stages.as_slice(), path.all_regular) {
        ([1, 2, 3] | [2, 3], true) if has_regions => ConflictKind::Text,
        ([1, 2, 3] | [2, 3], true) => ConflictKind::NotText("is binary, or has its own merge driver"),
        ([1, 2, 3] | [2, 3], false) => ConflictKind::NotText("is not a regular file on both sides"),
        ([1, 2], _) => ConflictKind::NotText("was changed by the lane and deleted on the other side"),
        ([1, 3], _) => ConflictKind::NotText("was deleted by the lane and changed on the other side"),
        _ => ConflictKind::NotText("was moved or created differently on both sides"),
    }
}

/// Git's own merge of both sides, to compare a resolution with.
#[derive(Debug)]
pub struct ReferenceMerge {
    /// Id of the lane's tip, which labels the lane's side in the markers.
    tip: String,
    /// Id of the base's tip, which labels the other side in the markers.
    base: String,
    /// Outcome of git's merge.
    merged: TreeMergeOutcome,
    /// Conflicted paths, each with the file that git's merge left: a text has markers.
    conflicted_files: Vec<(RepoPath, TreeFile)>,
}

impl ReferenceMerge {
    /// Merges both sides again, in memory.
    pub fn compute(
        repo: &Repo,
        resolution: &ResolutionRecord,
        scratch: &std::path::Path,
    ) -> Result<ReferenceMerge, Error> {
        let merged =
            tree_merge::merge_with_diff3_markers(repo, resolution.lane_tip, resolution.onto_tip, scratch)?;
        let files = tree_files(repo, merged.tree, &conflicted_paths(resolution))?;
        Ok(ReferenceMerge {
            tip: resolution.lane_tip.to_string(),
            base: resolution.onto_tip.to_string(),
            merged,
            conflicted_files: files,
        })
    }

    /// Returns the text of a conflicted file with markers; none if the path is no file.
    pub fn conflicted_text(&self, repo: &Repo, path: &RepoPath) -> Result<Option<Vec<u8>>, Error> {
        let side = self.conflicted_files.iter().find(|(p, side)| p == path && !side.is_gitlink());
        Ok(side.map(|(_, side)| repo.blob(side.blob())).transpose()?)
    }

    /// Parses the regions of a conflicted text.
    pub(crate) fn parse_regions<'t>(&self, text: &'t [u8]) -> Option<MarkedText<'t>> {
        MarkedText::parse(text, &self.tip, &self.base)
    }

    /// Returns the texts of a path on both sides, the lane's first; without a side that has no file there.
    fn side_texts(&self, repo: &Repo, path: &RepoPath) -> Result<Vec<Vec<u8>>, Error> {
        let is_of_path =
            |s: &&tree_merge::UnmergedStage| s.path == *path && s.stage_number > 1 && !s.side.is_gitlink();
        let blobs = self.merged.stages.iter().filter(is_of_path).map(|s| repo.blob(s.side.blob()));
        Ok(blobs.collect::<Result<_, _>>()?)
    }
}

/// Returns the paths in conflict as a sorted set.
fn conflicted_paths(resolution: &ResolutionRecord) -> BTreeSet<RepoPath> {
    resolution.conflicted_paths().into_iter().collect()
}

/// Check of a conflict's resolution against git's own merge of both sides.
pub(crate) struct ResolutionCheck<'a> {
    pub repo: &'a Repo,
    pub resolution: &'a ResolutionRecord,
    pub reference: &'a ReferenceMerge,
    pub allowance: &'a Allowance,
    /// Current contents of the worktree.
    pub(crate) worktree_contents: &'a WorktreeContents,
    /// Whether an agent resolved the conflict. An agent may only resolve line by line and must not drop a
    /// side; other decisions are the user's.
    pub(crate) is_by_agent: bool,
}

impl ResolutionCheck<'_> {
    /// Returns the reasons to refuse the resolution, one phrase each; empty if it is accepted.
    pub(crate) fn find_refusals(&self) -> Result<Vec<Refusal>, Error> {
        let mut out = Vec::new();
        for path in &self.worktree_contents.nested_repos {
            out.push(Refusal::final_because(format!("{path} is a separate repository; move it away")));
        }
        let changes = tree_changes(self.repo, self.resolution.merged_tree, self.worktree_contents.tree)?;
        let names = conflicted_paths(self.resolution);
        for change in changes.iter().filter(|c| !names.contains(&c.path)) {
            out.extend(self.check_unconflicted(change));
        }
        let current_files = tree_files(self.repo, self.worktree_contents.tree, &names)?;
        for path in &self.resolution.paths {
            let side = current_files.iter().find(|(p, _)| *p == path.path).map(|(_, side)| *side);
            let change = changes.iter().find(|c| c.path == path.path);
            out.extend(self.check_conflicted(path, side, change)?);
        }
        Ok(out)
    }

    /// Returns the reason to refuse a change of a path that git had merged without a conflict.
    fn check_unconflicted(&self, change: &TreeChange) -> Option<Refusal> {
        let path = &change.path;
        if self.allowance.other_files || self.allowance.covers(path) {
            return None;
        }
        let description = match change.status_letter() {
            'A' => "is new",
            'D' => "was deleted",
            _ => "was changed",
        };
        Some(Refusal::unless_allowed(path, format!("{path} {description} and is not in conflict")))
    }

    /// Returns the reason to refuse how a conflicted path was resolved. `current` is its file in the
    /// worktree, and `change` the difference from git's merge.
    fn check_conflicted(
        &self,
        path: &ConflictedPath,
        current: Option<TreeFile>,
        change: Option<&TreeChange>,
    ) -> Result<Option<Refusal>, Error> {
        let name = &path.path;
        let text = self.reference.conflicted_text(self.repo, name)?;
        let regions = text.as_deref().and_then(|text| self.reference.parse_regions(text));
        let marker_size = regions.as_ref().map_or(7, |m| m.marker_size);
        let bytes = match current.filter(|side| !side.is_gitlink()) {
            Some(side) => Some(self.repo.blob(side.blob())?),
            None => None,
        };
        if let Some(bytes) = &bytes {
            let sides = self.reference.side_texts(self.repo, name)?;
            let sides: Vec<&[u8]> = sides.iter().map(Vec::as_slice).collect();
            if let Some(reason) = self.check_markers(
                name,
                MarkedText::find_leftover_markers(marker_size, &split_lines(bytes), &sides),
            ) {
                return Ok(Some(reason));
            }
        } else if current.is_none() && is_on_both_sides(path) && !self.allowance.covers(name) {
            let reason = format!("{name} was deleted, although neither side deleted it");
            return Ok(Some(Refusal::unless_allowed(name, reason)));
        }
        let is_undecided = change.is_none() && self.worktree_contents.unmerged.contains(name);
        let (marked, bytes) = match (conflict_kind(path, regions.is_some()), regions, bytes) {
            (ConflictKind::NotText(description), ..) => {
                return Ok(self.check_non_text_conflict(name, description, is_undecided));
            }
            _ if is_undecided => {
                return Ok(Some(Refusal::final_because(format!("{name} still has its conflict"))));
            }
            _ if self.allowance.covers(name) => return Ok(None),
            (ConflictKind::Text, Some(marked), Some(bytes)) => (marked, bytes),
            (ConflictKind::Text, ..) => {
                return Ok(Some(Refusal::unless_allowed(name, format!("{name} is no longer a file"))));
            }
        };
        let is_mode_changed = |c: &TreeChange| c.old.map(|s| s.mode) != c.new.map(|s| s.mode);
        if change.is_some_and(is_mode_changed) {
            return Ok(Some(Refusal::unless_allowed(name, format!("{name} has a different mode"))));
        }
        Ok(self.check_text(name, &marked, &split_lines(&bytes)))
    }

    /// Refuses lines that resemble conflict markers. An allowance for the file accepts them as text, except
    /// for a full conflict that an agent left.
    fn check_markers(&self, name: &RepoPath, leftover: Option<LeftoverMarkers<'_>>) -> Option<Refusal> {
        let LeftoverMarkers { line_number: line, line_text: text, is_full_conflict: whole } = leftover?;
        let is_final = self.is_by_agent && whole;
        if !is_final && self.allowance.covers(name) {
            return None;
        }
        let reason = format!("{name}:{line}: a conflict marker is left: {}", quote_line(text));
        Some(if is_final { Refusal::final_because(reason) } else { Refusal::unless_allowed(name, reason) })
    }

    /// Returns the reason to refuse the decision of a conflict that cannot be resolved line by line: an agent
    /// made it, or nobody has.
    fn check_non_text_conflict(
        &self,
        name: &RepoPath,
        description: &str,
        is_undecided: bool,
    ) -> Option<Refusal> {
        if self.is_by_agent && !self.allowance.covers(name) {
            let reason = format!("{name} {description}, which a person has to decide");
            return Some(Refusal::unless_allowed(name, reason));
        }
        is_undecided.then(|| Refusal::final_because(format!("{name} {description}, and is not decided: `git add {name}` keeps the file in the worktree, `git rm {name}` deletes it")))
    }

    /// Returns the reason to refuse a resolved text: lines outside of the conflicts were changed, or an agent
    /// dropped a side.
    fn check_text(
        &self,
        name: &RepoPath,
        regions: &MarkedText<'_>,
        current_lines: &[&[u8]],
    ) -> Option<Refusal> {
        let locations = match regions.locate_resolved_regions(current_lines) {
            Ok(places) => places,
            Err(line) => {
                let reason = format!("{name} was changed outside of the conflict, at {}", quote_line(line));
                return Some(Refusal::unless_allowed(name, reason));
            }
        };
        if !self.is_by_agent {
            return None;
        }
        let (n, side) = regions.dropped_sides(current_lines, &locations).into_iter().next()?;
        let side_name = match side {
            MergeSide::Ours => "the lane",
            MergeSide::Theirs => &self.resolution.onto,
        };
        let line = locations[n].start + 1;
        let reason = format!("{name}:{line}: the changes of {side_name} are missing");
        Some(Refusal::unless_allowed(name, reason))
    }
}

/// Returns whether both sides of a conflict have the path.
fn is_on_both_sides(path: &ConflictedPath) -> bool {
    [2, 3].iter().all(|side| path.stages.contains(side))
}

/// Quotes a line for a message, truncated to [`MAX_QUOTED_CHARS`].
fn quote_line(text_line: &[u8]) -> String {
    let text = RepoPath::new(text_line.trim_ascii()).to_string();
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("'{}…'", &text[..end]),
        None if text.is_empty() => "an empty line".to_owned(),
        None => format!("'{text}'"),
    }
}
