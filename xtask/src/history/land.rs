//! Owns what landings and removals do to the model.

use super::Outcome;
use super::expect::{Ending, Forecast, Fork, Oracle};
use super::model::{Model, branch, preview_branch};
use super::step::MAIN;
use super::visit::Back;

/// What becomes of a lane that is to land.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Landed,
    Already,
    Conflict,
    Refused,
}

/// Why a lane goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The lane has landed, or a command discards it without force: a lane with work that is nowhere else stays.
    Asked,
    /// The spawn of the lane is undone: a lane with work that is nowhere else stays, and what another branch has counts as elsewhere.
    MakingUndone,
    /// A command discards the lane by force, whatever is in it.
    Forced,
}

/// The result of stacking lanes on a branch: each lane with its verdict, and each lane that lands with the id of its merge commit.
type Stacked<'n> = (Vec<(&'n str, Verdict)>, Vec<(&'n str, String)>);

impl Oracle<'_> {
    /// `git proq merge`; every lane when none is named.
    pub(super) fn merge(&self, now: &Model, named: Option<&[&str]>) -> Outcome<Forecast> {
        let mut then = self.fork(now);
        if named.is_some_and(|names| names.iter().any(|n| !now.lanes.contains_key(*n))) {
            return Ok(Forecast::refused());
        }
        let every = || now.lanes.keys().map(String::as_str).collect();
        let names: Vec<&str> = named.map_or_else(every, <[&str]>::to_vec);
        let commits =
            |o: &&super::model::Open| now.refs.get(&preview_branch(&o.lane)).is_some_and(|t| *t != o.tip);
        let made = now.open.as_ref().filter(commits).is_some_and(|o| names.contains(&o.lane.as_str()));
        if made && self.leave(&mut then)? == Back::Refused {
            return Ok(Forecast::refused());
        }
        let mut verdicts = Vec::new();
        let mut ready: Vec<(String, Vec<&str>)> = Vec::new();
        for name in names {
            match self.sort(&then.model, name, named.is_none())? {
                Some(Verdict::Landed) => {
                    let onto = then.model.lanes[name].base.clone();
                    match ready.iter_mut().find(|(base, _)| *base == onto) {
                        Some((_, group)) => group.push(name),
                        None => ready.push((onto, vec![name])),
                    }
                }
                Some(verdict) => verdicts.push((name, verdict)),
                None => {}
            }
        }
        let shown = then.model.open.as_ref().map(|open| open.lane.clone());
        let goes = |shown: &String| {
            let already = verdicts.iter().any(|(n, v)| n == shown && *v == Verdict::Already);
            already || ready.iter().any(|(_, group)| group.contains(&shown.as_str()))
        };
        if shown.as_ref().is_some_and(goes) && self.leave(&mut then)? == Back::Refused {
            return Ok(Forecast::refused());
        }
        let (forecast, bad) = self.land_all(&then, &verdicts, &ready, &[])?;
        let mut forecast = Forecast::done(forecast);
        // Where nobody knows what came back to the checkout, any of them may touch it, and is put aside.
        if then.blind.contains(MAIN) {
            let names: Vec<&str> = ready.iter().flat_map(|(_, group)| group).copied().collect();
            for chosen in 1..1_usize << names.len() {
                let aside = names.iter().enumerate().filter(|(n, _)| chosen >> n & 1 == 1);
                let aside: Vec<&str> = aside.map(|(_, name)| *name).collect();
                forecast.then.push(self.land_all(&then, &verdicts, &ready, &aside)?.0);
            }
        }
        Ok(if bad { forecast.complaining() } else { forecast })
    }

    /// Lands every group but for the lanes in `aside`, and removes what has landed. Says whether a lane needs a person.
    fn land_all<'n>(
        &self,
        now: &Fork,
        sorted: &[(&'n str, Verdict)],
        ready: &[(String, Vec<&'n str>)],
        aside: &[&'n str],
    ) -> Outcome<(Fork, bool)> {
        let mut then = now.clone();
        let mut verdicts = sorted.to_vec();
        for (onto, group) in ready {
            verdicts.extend(self.land(&mut then, onto, group, aside)?);
        }
        for (name, verdict) in &verdicts {
            if matches!(verdict, Verdict::Landed | Verdict::Already) {
                self.retire(&mut then, name, Why::Asked)?;
            }
        }
        let bad = verdicts.iter().any(|(_, v)| matches!(v, Verdict::Conflict | Verdict::Refused));
        Ok((then, bad))
    }

    /// Whether a lane may land; none when it is passed over.
    fn sort(&self, now: &Model, name: &str, all: bool) -> Outcome<Option<Verdict>> {
        let lane = &now.lanes[name];
        let Some(base) = now.refs.get(&format!("refs/heads/{}", lane.base)) else {
            return Ok(Some(Verdict::Refused));
        };
        let Some(tip) = now.refs.get(&branch(name)) else { return Ok(Some(Verdict::Refused)) };
        if all && lane.state == "idle" && *tip == lane.start {
            return Ok(None);
        }
        let known = lane.conflict.as_ref().is_some_and(|(theirs, ours)| theirs == tip && ours == base);
        if all && lane.state == "conflict" && known {
            return Ok(None);
        }
        if !now.trees[name].is_clean(&*self.objects.files(tip)?) {
            return Ok(Some(Verdict::Refused));
        }
        let is_below = self.objects.is_ancestor(tip, base)?;
        Ok(Some(if !is_below && !self.objects.has_by_hand(base, tip)? {
            Verdict::Landed
        } else if is_below && *tip == lane.start && !lane.landed {
            Verdict::Refused
        } else {
            Verdict::Already
        }))
    }

    /// Lands lanes on one branch, all that fit and that do not touch what its checkout has otherwise.
    fn land<'n>(
        &self,
        then: &mut Fork,
        onto: &str,
        group: &[&'n str],
        aside: &[&'n str],
    ) -> Outcome<Vec<(&'n str, Verdict)>> {
        let full = format!("refs/heads/{onto}");
        let base = then.model.refs[&full].clone();
        let here = then.model.main().head == full;
        let mut aside = aside.to_vec();
        let (verdicts, top) = loop {
            let (verdicts, tops) = self.stack(then, &base, group, &aside)?;
            let Some((_, top)) = tops.last().filter(|_| here) else {
                break (verdicts, tops.last().map_or_else(|| base.clone(), |(_, top)| top.clone()));
            };
            let from = self.objects.files(&base)?;
            let mut main = then.model.main();
            if !main.refuses(&from, &*self.objects.files(top)?) {
                main.bring(&from, &*self.objects.files(top)?);
                then.model.trees.insert(MAIN.to_owned(), main);
                break (verdicts, top.clone());
            }
            // The first with which it is in the way stays; the others are merged anew.
            for (name, top) in &tops {
                if main.refuses(&from, &*self.objects.files(top)?) {
                    aside.push(name);
                    break;
                }
            }
        };
        then.model.refs.insert(full, top.clone());
        for (name, verdict) in &verdicts {
            let tip = then.model.refs[&branch(name)].clone();
            let Some(lane) = then.model.lanes.get_mut(*name) else { continue };
            match verdict {
                Verdict::Landed => {
                    "landed".clone_into(&mut lane.state);
                    lane.landed = true;
                    lane.conflict = None;
                }
                Verdict::Conflict => {
                    "conflict".clone_into(&mut lane.state);
                    // With the base as it is once all that fits has landed: only when that moves is the lane tried again.
                    lane.conflict = Some((tip, top.clone()));
                }
                _ => {}
            }
        }
        Ok(verdicts)
    }

    /// Merges lanes one after the other on top of `base`, but for those that were put aside. Returns what comes of each, and of those
    /// that land the commit that is made.
    fn stack<'n>(&self, now: &Fork, base: &str, group: &[&'n str], aside: &[&str]) -> Outcome<Stacked<'n>> {
        let mut top = base.to_owned();
        let (mut verdicts, mut tops) = (Vec::new(), Vec::new());
        for name in group {
            let tip = now.model.refs[&branch(name)].clone();
            let verdict = match self.objects.merge(&top, &tip)? {
                _ if aside.contains(name) => Verdict::Refused,
                None => Verdict::Conflict,
                Some(tree) if tree == self.objects.commit(&top)?.tree => Verdict::Already,
                Some(tree) => {
                    top = self.objects.make(&tree, &[&top, &tip])?;
                    tops.push((*name, top.clone()));
                    Verdict::Landed
                }
            };
            verdicts.push((*name, verdict));
        }
        Ok((verdicts, tops))
    }

    /// Whether anything in a lane would be missed.
    fn missed(&self, now: &Model, name: &str, why: Why) -> Outcome<bool> {
        let lane = &now.lanes[name];
        let Some(tip) = now.refs.get(&branch(name)) else { return Ok(true) };
        if !lane.edits.is_empty() || !now.trees[name].is_clean(&*self.objects.files(tip)?) {
            return Ok(true);
        }
        let Some(base) = now.refs.get(&format!("refs/heads/{}", lane.base)) else {
            return Ok(*tip != lane.start);
        };
        if self.objects.is_ancestor(tip, base)? || self.objects.has_by_hand(base, tip)? {
            return Ok(false);
        }
        if why == Why::MakingUndone && *tip == lane.start {
            for (_, other) in now.refs.iter().filter(|(other, _)| **other != branch(name)) {
                if self.objects.is_ancestor(tip, other)? {
                    return Ok(false);
                }
            }
        }
        Ok(self
            .objects
            .merge(base, tip)?
            .is_none_or(|tree| self.objects.commit(base).is_ok_and(|commit| commit.tree != tree)))
    }

    /// Removes a lane, and says whether it went.
    fn retire(&self, then: &mut Fork, name: &str, why: Why) -> Outcome<bool> {
        if why != Why::Forced
            && (self.missed(&then.model, name, why)? || self.made_in_preview(&then.model, name)?)
        {
            return Ok(false);
        }
        if then.model.open.as_ref().is_some_and(|open| open.lane == name) {
            let before = then.clone();
            if self.leave(then)? == Back::Refused {
                *then = before;
                return Ok(false);
            }
        }
        then.model.lanes.remove(name);
        then.model.trees.remove(name);
        then.model.refs.remove(&branch(name));
        Ok(true)
    }

    /// `git proq discard`.
    pub(super) fn discard(&self, now: &Model, name: &str, why: Why) -> Outcome<Forecast> {
        let mut then = self.fork(now);
        if !now.lanes.contains_key(name) || !self.retire(&mut then, name, why)? {
            return Ok(Forecast::refused());
        }
        Ok(Forecast::done(then))
    }

    /// `git proq cleanup`.
    pub(super) fn cleanup(&self, now: &Model) -> Outcome<Forecast> {
        let mut then = self.fork(now);
        for (name, lane) in &now.lanes {
            if lane.state == "landed" {
                self.retire(&mut then, name, Why::Asked)?;
            }
        }
        let unsure = !then.blind.is_empty();
        let forecast = Forecast::done(then);
        Ok(if unsure { Forecast { ending: Ending::Any, ..forecast } } else { forecast })
    }
}
