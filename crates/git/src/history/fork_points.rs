//! Fork points of lanes on their base, from which the merge base of any two lanes follows without walking
//! history for each pair.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use crate::{CommitId, Error, Oid, Repo};

/// Maximum number of commits of a lane that are saved, so that the cache file stays small.
const MAX_COMMITS_SAVED: usize = 200;

/// Commits that a tip has and its base lacks, and the tip's fork points: the commits of the base that they
/// build on.
#[derive(Debug, Clone)]
pub struct BranchFork {
    tip: CommitId,
    unique_commits: HashSet<CommitId>,
    fork_points: Vec<CommitId>,
}

impl BranchFork {
    /// Returns the number of commits that the base lacks.
    pub fn commit_count(&self) -> usize {
        self.unique_commits.len()
    }

    /// Formats the fork as one line for the cache; `None` for a long one.
    pub fn to_cache_line(&self) -> Option<String> {
        let join_ids = |ids: &mut dyn Iterator<Item = &CommitId>| {
            ids.map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let commits = join_ids(&mut self.unique_commits.iter());
        (self.unique_commits.len() + self.fork_points.len() <= MAX_COMMITS_SAVED)
            .then(|| format!("{commits};{}", join_ids(&mut self.fork_points.iter())))
    }

    /// Parses the cached line of this tip.
    pub fn from_cache_line(tip: CommitId, line: &str) -> Option<BranchFork> {
        let parse_ids = |ids: &str| {
            ids.split_ascii_whitespace()
                .map(|id| CommitId::from_hex(id.as_bytes()))
                .collect::<Option<Vec<CommitId>>>()
        };
        let (commits, roots) = line.split_once(';')?;
        Some(BranchFork {
            tip,
            unique_commits: parse_ids(commits)?.into_iter().collect(),
            fork_points: parse_ids(roots)?,
        })
    }
}

/// Common ancestor of two commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommonAncestor {
    /// One best common ancestor.
    Single(CommitId),
    /// More than one best common ancestor, or a history that only git can read.
    Ambiguous,
    /// No common ancestor.
    Unrelated,
}

/// Lookup of fork points and common ancestors for tips that share one base.
pub struct ForkPointLookup<'a> {
    repo: &'a Repo,
    base: CommitId,
    /// Whether git sees another history than the commits record; then git alone finds merge bases.
    has_altered_history: bool,
    /// Common ancestors found so far, by pair of commits.
    cached_ancestors: RefCell<HashMap<(CommitId, CommitId), CommonAncestor>>,
}

impl<'a> ForkPointLookup<'a> {
    /// Creates the lookup for lanes of the branch with tip `base`.
    pub fn new(repo: &'a Repo, base: CommitId) -> Result<ForkPointLookup<'a>, Error> {
        Ok(ForkPointLookup {
            repo,
            base,
            has_altered_history: repo.has_altered_history()?,
            cached_ancestors: RefCell::default(),
        })
    }

    /// Returns the key under which the fork of a tip can be cached. `None` in a history that git may read
    /// differently later although both tips are unchanged.
    pub fn cache_key(&self, tip: CommitId) -> Result<Option<Oid>, Error> {
        let compute_key = || self.repo.fingerprint(&[b"fork", self.base.as_bytes(), tip.as_bytes()]);
        (!self.has_altered_history).then(compute_key).transpose()
    }

    /// Walks the commits that a tip has and the base lacks, and returns them with the fork points.
    pub fn find_fork(&self, tip: CommitId) -> Result<BranchFork, Error> {
        let describe_object = || format!("history of {}", tip.short());
        let walk = self.repo.gix.rev_walk([tip.0]).with_hidden([self.base.0]).all();
        let mut unique_commits = HashSet::new();
        let mut parents = Vec::new();
        for step in walk.map_err(Error::object(describe_object()))? {
            let step = step.map_err(Error::object(describe_object()))?;
            unique_commits.insert(CommitId(step.id));
            parents.extend(step.parent_ids.iter().map(|id| CommitId(*id)));
        }
        let mut fork_points: Vec<CommitId> =
            parents.into_iter().filter(|id| !unique_commits.contains(id)).collect();
        if unique_commits.is_empty() {
            fork_points.push(tip);
        }
        fork_points.sort();
        fork_points.dedup();
        Ok(BranchFork { tip, unique_commits, fork_points })
    }

    /// Returns the common ancestor of a tip and the base.
    pub fn common_ancestor_with_base(&self, fork: &BranchFork) -> Result<CommonAncestor, Error> {
        match fork.fork_points[..] {
            _ if self.has_altered_history => Ok(CommonAncestor::Ambiguous),
            // Everything that the tip shares with the base is an ancestor of this commit.
            [root] => Ok(CommonAncestor::Single(root)),
            _ => self.find_merge_base(self.base, fork.tip),
        }
    }

    /// Returns the common ancestor of two tips.
    pub fn common_ancestor(&self, first: &BranchFork, second: &BranchFork) -> Result<CommonAncestor, Error> {
        if self.has_altered_history {
            return Ok(CommonAncestor::Ambiguous);
        }
        // Neither tip reaches commits of the other that the base lacks, so their shared history is behind
        // their fork points.
        if let ([a], [b]) = (&first.fork_points[..], &second.fork_points[..])
            && first.unique_commits.is_disjoint(&second.unique_commits)
        {
            return if a == b { Ok(CommonAncestor::Single(*a)) } else { self.find_merge_base(*a, *b) };
        }
        self.find_merge_base(first.tip, second.tip)
    }

    /// Walks the histories of two commits to their common ancestor, and caches it for the pair.
    fn find_merge_base(&self, first: CommitId, second: CommitId) -> Result<CommonAncestor, Error> {
        let key = (first.min(second), first.max(second));
        if let Some(cached) = self.cached_ancestors.borrow().get(&key) {
            return Ok(*cached);
        }
        let description = format!("history of {}", second.short());
        let bases =
            self.repo.gix.merge_bases_many(first.0, &[second.0]).map_err(Error::object(description))?;
        let common = match bases[..] {
            [] => CommonAncestor::Unrelated,
            [base] => CommonAncestor::Single(CommitId(base.detach())),
            _ => CommonAncestor::Ambiguous,
        };
        self.cached_ancestors.borrow_mut().insert(key, common);
        Ok(common)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_fork_from_its_line() {
        let id = |n: usize| CommitId::from_hex(format!("{n:040x}").as_bytes()).unwrap();
        for (own, roots) in [(vec![1, 2, 3], vec![4, 5]), (vec![], vec![9]), (vec![1], vec![])] {
            let own: HashSet<CommitId> = own.into_iter().map(id).collect();
            let fork = BranchFork {
                tip: id(7),
                unique_commits: own,
                fork_points: roots.into_iter().map(id).collect(),
            };
            let parsed = BranchFork::from_cache_line(id(7), &fork.to_cache_line().unwrap()).unwrap();
            assert_eq!(
                (parsed.tip, &parsed.unique_commits, &parsed.fork_points),
                (fork.tip, &fork.unique_commits, &fork.fork_points)
            );
        }
        assert!(BranchFork::from_cache_line(id(7), "not a line").is_none());
        assert!(BranchFork::from_cache_line(id(7), &format!("{};{}", id(1), "12")).is_none());
        let long = BranchFork {
            tip: id(1),
            unique_commits: (0..=MAX_COMMITS_SAVED).map(id).collect(),
            fork_points: Vec::new(),
        };
        assert_eq!(long.to_cache_line(), None);
    }
}
