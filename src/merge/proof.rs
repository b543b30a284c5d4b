//! Owns the proof that a conflict was resolved: what is left undecided, what was changed beside it, what was dropped.

use std::collections::BTreeSet;

use super::Error;
use super::regions::{LeftOver, Marked, Party, lines};
use crate::git::{self, Change, Laid, Merged, Repo, RepoPath, Side, tree_changes, tree_files};
use crate::store::records::{ResolvePath, ResolveRecord};

/// The longest part of a line that a refusal quotes.
const QUOTED: usize = 60;

/// What the user allows beyond the proof.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leave {
    /// These paths, and what lies below them, may be as they are.
    pub(crate) paths: Vec<RepoPath>,
    /// Other files than those of the conflict may be changed.
    pub(crate) others: bool,
}

impl Leave {
    /// Whether a path may be as it is.
    pub(super) fn covers(&self, path: &RepoPath) -> bool {
        self.paths.iter().any(|p| p == path || path.parents().any(|up| up == *p))
    }
}

/// What kind of conflict a path has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Two texts, with marked regions.
    Text,
    /// Anything that is not decided line by line, in words.
    Other(&'static str),
}

/// The kind of a path's conflict; `marked` says whether git could mark regions in it.
pub(super) fn kind_of(path: &ResolvePath, marked: bool) -> Kind {
    match (path.stages.as_slice(), path.plain) {
        ([1, 2, 3] | [2, 3], true) if marked => Kind::Text,
        ([1, 2, 3] | [2, 3], true) => Kind::Other("is binary, or is merged by a driver of its own"),
        ([1, 2, 3] | [2, 3], false) => Kind::Other("is no plain file on both sides"),
        ([1, 2], _) => Kind::Other("was changed by the lane and deleted on the other side"),
        ([1, 3], _) => Kind::Other("was deleted by the lane and changed on the other side"),
        _ => Kind::Other("was moved, or made, in different ways"),
    }
}

/// The conflict as git's merge tells it, in a form that can be taken apart.
#[derive(Debug)]
pub(super) struct Reference {
    tip: String,
    base: String,
    merged: Merged,
    files: Vec<(RepoPath, Side)>,
}

impl Reference {
    /// Merges both sides again, in memory.
    pub(super) fn read(
        repo: &Repo,
        open: &ResolveRecord,
        scratch: &std::path::Path,
    ) -> Result<Reference, Error> {
        let merged = git::merge_with_base(repo, open.tip, open.base, scratch)?;
        let files = tree_files(repo, merged.tree, &only(open))?;
        Ok(Reference { tip: open.tip.to_string(), base: open.base.to_string(), merged, files })
    }

    /// The text of a conflicted file, with markers; none where there is no file.
    pub(super) fn text(&self, repo: &Repo, path: &RepoPath) -> Result<Option<Vec<u8>>, Error> {
        let side = self.files.iter().find(|(p, side)| p == path && !side.is_gitlink());
        Ok(side.map(|(_, side)| repo.blob(side.oid)).transpose()?)
    }

    /// A conflicted text, taken apart.
    pub(super) fn marked<'t>(&self, text: &'t [u8]) -> Option<Marked<'t>> {
        Marked::parse(text, &self.tip, &self.base)
    }

    /// The text of each side of a path.
    fn sides(&self, repo: &Repo, path: &RepoPath) -> Result<Vec<Vec<u8>>, Error> {
        let of_path = |s: &&git::Stage| s.path == *path && s.number > 1 && !s.side.is_gitlink();
        let blobs = self.merged.stages.iter().filter(of_path).map(|s| repo.blob(s.side.oid));
        Ok(blobs.collect::<Result<_, _>>()?)
    }
}

fn only(open: &ResolveRecord) -> BTreeSet<RepoPath> {
    open.names().into_iter().collect()
}

/// What is judged.
pub(super) struct Case<'a> {
    pub(super) repo: &'a Repo,
    pub(super) open: &'a ResolveRecord,
    pub(super) reference: &'a Reference,
    pub(super) leave: &'a Leave,
    /// What the worktree holds now.
    pub(super) laid: &'a Laid,
    /// An agent decides line by line only, and drops no side; the rest is for a person.
    pub(super) strict: bool,
}

impl Case<'_> {
    /// Everything that speaks against the result, one phrase each. None: it is proved.
    pub(super) fn refusals(&self) -> Result<Vec<String>, Error> {
        let mut out = Vec::new();
        for path in &self.laid.nested {
            out.push(format!("{path} is a repository of its own; move it away"));
        }
        let changes = tree_changes(self.repo, self.open.merged, self.laid.tree)?;
        let names = only(self.open);
        for change in changes.iter().filter(|c| !names.contains(&c.path)) {
            out.extend(self.beside(change));
        }
        let now = tree_files(self.repo, self.laid.tree, &names)?;
        for path in &self.open.paths {
            let side = now.iter().find(|(p, _)| *p == path.path).map(|(_, side)| *side);
            let changed = changes.iter().find(|c| c.path == path.path);
            out.extend(self.conflicted(path, side, changed)?);
        }
        Ok(out)
    }

    /// A change of a path that git had merged without a conflict.
    fn beside(&self, change: &Change) -> Option<String> {
        let path = &change.path;
        if self.leave.others || self.leave.covers(path) {
            return None;
        }
        let what = match change.letter() {
            'A' => "is new",
            'D' => "was deleted",
            _ => "was changed",
        };
        Some(format!("{path} {what} and is not in conflict; --allow {path} gives leave"))
    }

    fn conflicted(
        &self,
        path: &ResolvePath,
        now: Option<Side>,
        changed: Option<&Change>,
    ) -> Result<Option<String>, Error> {
        let name = &path.path;
        let text = self.reference.text(self.repo, name)?;
        let marked = text.as_deref().and_then(|text| self.reference.marked(text));
        let size = marked.as_ref().map_or(7, |m| m.size);
        let bytes = match now.filter(|side| !side.is_gitlink()) {
            Some(side) => Some(self.repo.blob(side.oid)?),
            None => None,
        };
        if let Some(bytes) = &bytes {
            let sides = self.reference.sides(self.repo, name)?;
            let sides: Vec<&[u8]> = sides.iter().map(Vec::as_slice).collect();
            if let Some(why) = self.left_over(name, Marked::left_over(size, &lines(bytes), &sides)) {
                return Ok(Some(why));
            }
        } else if now.is_none() && has_both(path) && !self.leave.covers(name) {
            return Ok(Some(format!(
                "{name} was deleted, and neither side did that; --allow {name} gives leave"
            )));
        }
        let undecided = changed.is_none() && self.laid.unmerged.contains(name);
        let (marked, bytes) = match (kind_of(path, marked.is_some()), marked, bytes) {
            (Kind::Other(what), ..) => {
                return Ok(self.other(name, what, undecided));
            }
            _ if undecided => return Ok(Some(format!("{name} is as git left it, with its conflict"))),
            _ if self.leave.covers(name) => return Ok(None),
            (Kind::Text, Some(marked), Some(bytes)) => (marked, bytes),
            (Kind::Text, ..) => {
                return Ok(Some(format!("{name} is no file any more; --allow {name} gives leave")));
            }
        };
        let mode = |c: &Change| c.old.map(|s| s.mode) != c.new.map(|s| s.mode);
        if changed.is_some_and(mode) {
            return Ok(Some(format!("{name} has another mode now; --allow {name} gives leave")));
        }
        Ok(self.compared(name, &marked, &lines(&bytes)))
    }

    /// Lines of a file that look like markers. Leave for the file takes them for text; a whole conflict of them, from an agent,
    /// for what it is.
    fn left_over(&self, name: &RepoPath, found: Option<LeftOver<'_>>) -> Option<String> {
        let LeftOver { line, text, whole } = found?;
        let is_final = self.strict && whole;
        if !is_final && self.leave.covers(name) {
            return None;
        }
        let leave =
            if is_final { String::new() } else { format!("; if it is text, --allow {name} gives leave") };
        Some(format!("{name}:{line}: a conflict marker is left: {}{leave}", quoted(text)))
    }

    /// A conflict that is not decided line by line.
    fn other(&self, name: &RepoPath, what: &str, undecided: bool) -> Option<String> {
        if self.strict && !self.leave.covers(name) {
            return Some(format!(
                "{name} {what}, which is for a person to decide; --allow {name} gives leave"
            ));
        }
        undecided.then(|| {
            format!("{name} {what}, and is not decided: `git add {name}` keeps it as it is there, `git rm {name}` deletes it")
        })
    }

    fn compared(&self, name: &RepoPath, marked: &Marked<'_>, now: &[&[u8]]) -> Option<String> {
        let places = match marked.fit(now) {
            Ok(places) => places,
            Err(line) => {
                return Some(format!(
                    "{name}: outside of the conflict something was changed, at {}; --allow {name} gives leave",
                    quoted(line)
                ));
            }
        };
        if !self.strict {
            return None;
        }
        let (n, party) = marked.dropped(now, &places).into_iter().next()?;
        let whose = match party {
            Party::Ours => "the lane",
            Party::Theirs => &self.open.onto,
        };
        let line = places[n].start + 1;
        Some(format!("{name}:{line}: nothing is left of what {whose} did there; --allow {name} gives leave"))
    }
}

/// Whether both sides of a conflict have the path.
fn has_both(path: &ResolvePath) -> bool {
    [2, 3].iter().all(|side| path.stages.contains(side))
}

fn quoted(line: &[u8]) -> String {
    let text = RepoPath::new(line.trim_ascii()).to_string();
    match text.char_indices().nth(QUOTED) {
        Some((at, _)) => format!("'{}…'", &text[..at]),
        None if text.is_empty() => "an empty line".to_owned(),
        None => format!("'{text}'"),
    }
}
