//! Owns where lanes left their base, and from that the merge base of any two of them, without walking history for each pair.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use super::{Error, Oid, Repo};

/// How many commits are remembered of a lane, so that the file they are kept in stays small.
const LONG: usize = 200;

/// The commits that one tip has on top of a base, and the commits of the base that they stand on.
#[derive(Debug, Clone)]
pub(crate) struct Fork {
    tip: Oid,
    own: HashSet<Oid>,
    roots: Vec<Oid>,
}

impl Fork {
    /// How many commits the base lacks.
    pub(crate) fn commits(&self) -> usize {
        self.own.len()
    }

    /// In one line, to be remembered; none for one that is long.
    pub(crate) fn to_line(&self) -> Option<String> {
        let line =
            |ids: &mut dyn Iterator<Item = &Oid>| ids.map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let own = line(&mut self.own.iter());
        (self.own.len() + self.roots.len() <= LONG).then(|| format!("{own};{}", line(&mut self.roots.iter())))
    }

    /// What was remembered of this tip.
    pub(crate) fn from_line(tip: Oid, line: &str) -> Option<Fork> {
        let read = |ids: &str| {
            ids.split_ascii_whitespace().map(|id| Oid::from_hex(id.as_bytes())).collect::<Option<Vec<Oid>>>()
        };
        let (own, roots) = line.split_once(';')?;
        Some(Fork { tip, own: read(own)?.into_iter().collect(), roots: read(roots)? })
    }
}

/// What two commits have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Common {
    /// One best common ancestor.
    One(Oid),
    /// Several, or a history that only git sees.
    Several,
    /// Nothing.
    Nothing,
}

/// The merge bases of the tips of one base.
pub(crate) struct Cuts<'a> {
    repo: &'a Repo,
    base: Oid,
    made_up: bool,
    known: RefCell<HashMap<(Oid, Oid), Common>>,
}

impl<'a> Cuts<'a> {
    /// For lanes of the branch whose tip is `base`.
    pub(crate) fn new(repo: &'a Repo, base: Oid) -> Result<Cuts<'a>, Error> {
        Ok(Cuts { repo, base, made_up: repo.has_made_up_history()?, known: RefCell::default() })
    }

    /// The key under which may be remembered what a tip has on top of the base. None in a history that git may see in
    /// another way tomorrow, though both tips are where they were.
    pub(crate) fn key(&self, tip: Oid) -> Result<Option<Oid>, Error> {
        let key = || self.repo.fingerprint(&[b"fork", self.base.as_bytes(), tip.as_bytes()]);
        (!self.made_up).then(key).transpose()
    }

    /// What a tip has on top of the base.
    pub(crate) fn fork(&self, tip: Oid) -> Result<Fork, Error> {
        let what = || format!("history of {}", tip.short());
        let walk = self.repo.gix.rev_walk([tip.0]).with_hidden([self.base.0]).all();
        let mut own = HashSet::new();
        let mut parents = Vec::new();
        for step in walk.map_err(Error::object(what()))? {
            let step = step.map_err(Error::object(what()))?;
            own.insert(Oid(step.id));
            parents.extend(step.parent_ids.iter().map(|id| Oid(*id)));
        }
        let mut roots: Vec<Oid> = parents.into_iter().filter(|id| !own.contains(id)).collect();
        if own.is_empty() {
            roots.push(tip);
        }
        roots.sort();
        roots.dedup();
        Ok(Fork { tip, own, roots })
    }

    /// What a tip and its base have in common.
    pub(crate) fn with_base(&self, fork: &Fork) -> Result<Common, Error> {
        match fork.roots[..] {
            _ if self.made_up => Ok(Common::Several),
            // All that the tip shares with the base lies behind this one commit.
            [root] => Ok(Common::One(root)),
            _ => self.walk(self.base, fork.tip),
        }
    }

    /// What two tips have in common.
    pub(crate) fn between(&self, one: &Fork, other: &Fork) -> Result<Common, Error> {
        if self.made_up {
            return Ok(Common::Several);
        }
        // Neither leads to commits of the other that the base lacks, so what they share lies behind their roots.
        if let ([a], [b]) = (&one.roots[..], &other.roots[..])
            && one.own.is_disjoint(&other.own)
        {
            return if a == b { Ok(Common::One(*a)) } else { self.walk(*a, *b) };
        }
        self.walk(one.tip, other.tip)
    }

    fn walk(&self, one: Oid, other: Oid) -> Result<Common, Error> {
        let key = (one.min(other), one.max(other));
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(*known);
        }
        let what = format!("history of {}", other.short());
        let bases = self.repo.gix.merge_bases_many(one.0, &[other.0]).map_err(Error::object(what))?;
        let common = match bases[..] {
            [] => Common::Nothing,
            [base] => Common::One(Oid(base.detach())),
            _ => Common::Several,
        };
        self.known.borrow_mut().insert(key, common);
        Ok(common)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_comes_back_from_its_line() {
        let id = |n: usize| Oid::from_hex(format!("{n:040x}").as_bytes()).unwrap();
        for (own, roots) in [(vec![1, 2, 3], vec![4, 5]), (vec![], vec![9]), (vec![1], vec![])] {
            let own: HashSet<Oid> = own.into_iter().map(id).collect();
            let fork = Fork { tip: id(7), own, roots: roots.into_iter().map(id).collect() };
            let again = Fork::from_line(id(7), &fork.to_line().unwrap()).unwrap();
            assert_eq!((again.tip, &again.own, &again.roots), (fork.tip, &fork.own, &fork.roots));
        }
        assert!(Fork::from_line(id(7), "not a line").is_none());
        assert!(Fork::from_line(id(7), &format!("{};{}", id(1), "12")).is_none());
        let long = Fork { tip: id(1), own: (0..=LONG).map(id).collect(), roots: Vec::new() };
        assert_eq!(long.to_line(), None);
    }
}
