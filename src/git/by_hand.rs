//! Owns whether a branch's changes came to its base by hand: picked, rebased or squashed, commit for commit or as one.
//!
//! Unlike `git cherry`, which says of a change that was picked and then taken back that it is there, this says that it is
//! not: a base that gave a change up may be the last place where somebody looks for it.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::patch_id::{inverse_id, patch_id};
use super::{Change, Error, Oid, Repo, RepoPath, Side, tree_changes};

/// How many commits are looked at on either side. Each costs a comparison of two trees, and nobody should wait for more than
/// about a second; a branch that is further from its base is one of which nothing is known.
const LOOKED_AT: usize = 1000;

/// How the message of a commit begins that `git revert` makes, before the id of what it takes back.
const REVERTS: &str = "This reverts commit ";

/// Paths, and how much longer each becomes.
type Shape = Vec<(RepoPath, u64)>;

/// A change, and what would take it back.
struct Patch {
    id: Oid,
    inverse: Oid,
}

/// What is known of the base's own line since the branch left it, newest first.
#[derive(Default)]
struct Line {
    /// Where each change is, newest first.
    places: HashMap<Oid, Vec<usize>>,
    /// The commits, in order.
    commits: Vec<Oid>,
    /// The commits that a newer one says it reverts, and where that says so.
    reverted: HashMap<Oid, usize>,
}

impl Repo {
    /// Whether `base` has all changes of `tip` under other ids: each of its commits, or all of them in one, is on the base's
    /// own line (first parents; a merge counts as what it brought), to the last white space, and was not taken back since.
    /// What cannot be told counts as not there: a history that is cut, too long, or has merges on the branch.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub(crate) fn has_by_hand(&self, base: Oid, tip: Oid) -> Result<bool, Error> {
        if self.has_made_up_history()? {
            return Ok(false);
        }
        let Some(from) = self.merge_base(base, tip)? else { return Ok(false) };
        let touched: HashSet<RepoPath> =
            tree_changes(self, from, base)?.into_iter().map(|change| change.path).collect();
        if touched.is_empty() {
            return Ok(false);
        }
        let all = tree_changes(self, from, tip)?;
        // A file that is on the base as it was before has nothing of the branch, or nothing any more.
        if all.is_empty() || !all.iter().all(|change| touched.contains(&change.path)) {
            return Ok(false);
        }
        let (Some(own), Some(line)) = (self.walk(tip, base)?, self.walk(base, tip)?) else {
            return Ok(false);
        };
        let mut shapes = BTreeSet::from(self.shapes(&all));
        let Some(whole) = self.patch(&all) else { return Ok(false) };
        let (mut parts, mut straight) = (Vec::new(), true);
        for (commit, parents) in &own {
            let [parent] = parents.as_slice() else {
                straight = false;
                continue;
            };
            let changes = tree_changes(self, *parent, *commit)?;
            shapes.extend(self.shapes(&changes));
            parts.extend(self.patch(&changes));
        }
        let (whole, line) = ([whole], self.read_line(base, &line, &shapes)?);
        Ok(line.has(&whole, &parts) || (straight && line.has(&parts, &whole)))
    }

    /// The commits of `tip` that `hidden` lacks, with their parents; none when there are too many.
    fn walk(&self, tip: Oid, hidden: Oid) -> Result<Option<HashMap<Oid, Vec<Oid>>>, Error> {
        let what = || format!("history of {}", tip.short());
        let walk = self.gix.rev_walk([tip.0]).with_hidden([hidden.0]).all().map_err(Error::object(what()))?;
        let mut out = HashMap::new();
        for step in walk {
            let info = step.map_err(Error::object(what()))?;
            if out.len() == LOOKED_AT {
                return Ok(None);
            }
            out.insert(Oid(info.id), info.parent_ids.iter().map(|id| Oid(*id)).collect());
        }
        Ok(Some(out))
    }

    fn patch(&self, changes: &[Change]) -> Option<Patch> {
        Some(Patch { id: patch_id(self, changes)?, inverse: inverse_id(self, changes)? })
    }

    /// How much longer each file becomes by a change, and by what takes that back: a small part of what a patch id is made
    /// of, and quickly known.
    fn shapes(&self, changes: &[Change]) -> [Shape; 2] {
        let size = |side: Option<Side>| side.map_or(0, |s| self.size_of(s.oid).unwrap_or_default());
        let growth = |c: &Change| size(c.new).wrapping_sub(size(c.old));
        let shape = |sign: fn(u64) -> u64| -> Shape {
            changes.iter().map(|c| (c.path.clone(), sign(growth(c)))).collect()
        };
        [shape(|n| n), shape(u64::wrapping_neg)]
    }

    /// Reads the base's own line. Only changes that may be one of those that are looked for are compared line by line.
    fn read_line(
        &self,
        base: Oid,
        known: &HashMap<Oid, Vec<Oid>>,
        wanted: &BTreeSet<Shape>,
    ) -> Result<Line, Error> {
        let paths: HashSet<Vec<&RepoPath>> =
            wanted.iter().map(|shape| shape.iter().map(|(path, _)| path).collect()).collect();
        let mut line = Line::default();
        let mut at = base;
        while let Some(parent) = known.get(&at).and_then(|parents| parents.first()) {
            let place = line.commits.len();
            line.commits.push(at);
            for named in reverts(&self.text_of(at)?.message) {
                line.reverted.entry(named).or_insert(place);
            }
            let changes = tree_changes(self, *parent, at)?;
            if paths.contains(&changes.iter().map(|c| &c.path).collect::<Vec<_>>())
                && wanted.contains(&self.shapes(&changes)[0])
                && let Some(id) = patch_id(self, &changes)
            {
                line.places.entry(id).or_default().push(place);
            }
            at = *parent;
        }
        Ok(line)
    }
}

impl Line {
    /// Whether it has all of these changes, none of them taken back since, neither by itself nor with the others of them.
    fn has(&self, wanted: &[Patch], others: &[Patch]) -> bool {
        let mut used: HashMap<Oid, usize> = HashMap::new();
        let mut oldest = None;
        for patch in wanted {
            let nth = used.entry(patch.id).or_default();
            let Some(place) = self.places.get(&patch.id).and_then(|all| all.get(*nth)).copied() else {
                return false;
            };
            *nth += 1;
            let revert = self.reverted.get(&self.commits[place]);
            if self.is_newer(patch.inverse, place) || revert.is_some_and(|at| *at < place) {
                return false;
            }
            oldest = oldest.max(Some(place));
        }
        let Some(oldest) = oldest else { return false };
        !others.iter().any(|other| self.is_newer(other.inverse, oldest))
    }

    /// Whether a change came after a place.
    fn is_newer(&self, id: Oid, place: usize) -> bool {
        self.places.get(&id).and_then(|all| all.first()).is_some_and(|first| *first < place)
    }
}

/// The commits that a message says it reverts.
fn reverts(message: &str) -> impl Iterator<Item = Oid> {
    message.split(REVERTS).skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        Oid::from_hex(&rest.as_bytes()[..end])
    })
}
