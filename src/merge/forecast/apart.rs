//! Owns telling the merges of two sides that touched different paths: they need no look, and there are many of them.

use std::collections::HashMap;
use std::time::Instant;

use super::cache::Cache;
use crate::git::{Oid, Repo, Three, ThrowAway, Touched, touched};
use crate::merge::Error;

/// What a side has touched is worth to know when it is part of that many merges.
const OFTEN: usize = 4;

/// Which of `merges` are of two sides that touched different paths. Those of whom that is not known are not.
pub(super) fn apart(
    repo: &Repo,
    objects: Option<&ThrowAway>,
    merges: &[Three],
    until: Option<Instant>,
    cache: &mut Cache,
) -> Result<Vec<bool>, Error> {
    let mut sides = Sides::default();
    let pairs: Vec<[usize; 2]> = merges
        .iter()
        .map(|three| [three.ours, three.theirs].map(|side| sides.add(three.base, side)))
        .collect();
    let known = sides.touched(repo, objects, until, cache)?;
    let is_apart = |[ours, theirs]: [usize; 2]| match (&known[ours], &known[theirs]) {
        (Some(ours), Some(theirs)) => ours.is_apart(theirs),
        _ => false,
    };
    Ok(pairs.into_iter().map(is_apart).collect())
}

/// A tree of before and one of now.
type Side = (Oid, Oid);

/// The sides of many merges, each once.
#[derive(Default)]
struct Sides {
    places: HashMap<Side, usize>,
    /// How many merges each is part of.
    all: Vec<(Side, usize)>,
}

impl Sides {
    /// Counts a side, and returns its place.
    fn add(&mut self, base: Oid, now: Oid) -> usize {
        let next = self.all.len();
        let at = *self.places.entry((base, now)).or_insert(next);
        if at == next {
            self.all.push(((base, now), 0));
        }
        self.all[at].1 += 1;
        at
    }

    /// What each has touched, from memory where that is possible. None for those that are part of few merges.
    fn touched(
        &self,
        repo: &Repo,
        objects: Option<&ThrowAway>,
        until: Option<Instant>,
        cache: &mut Cache,
    ) -> Result<Vec<Option<Touched>>, Error> {
        let mut out = vec![None; self.all.len()];
        let mut missing = Vec::new();
        for (at, ((base, now), _)) in self.all.iter().enumerate().filter(|(_, (_, uses))| *uses >= OFTEN) {
            let key = repo.fingerprint(&[b"touched", base.as_bytes(), now.as_bytes()])?;
            out[at] = cache.find_line(key).and_then(Touched::from_line);
            if out[at].is_none() {
                missing.push((at, key, (*base, *now)));
            }
        }
        let sides: Vec<Side> = missing.iter().map(|(.., side)| *side).collect();
        for ((at, key, _), found) in missing.into_iter().zip(touched(repo, objects, &sides, until)?) {
            if let Some(line) = found.as_ref().and_then(Touched::to_line) {
                cache.add_line(key, line);
            }
            out[at] = found;
        }
        Ok(out)
    }
}
