//! Effects of landings and lane removals on the model.

use super::Outcome;
use super::model::{Model, branch, preview_branch};
use super::oracle::{Expectation, ExpectedExit, ExpectedState, Oracle};
use super::preview::LeaveOutcome;
use super::step::MAIN;

/// Result of landing one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LandingVerdict {
    Landed,
    AlreadyLanded,
    Conflict,
    Refused,
}

/// Reason for removing a lane; it decides how much work may be in the lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemovalReason {
    /// The lane has landed, or is discarded without force: a lane with work that exists nowhere else stays.
    Unforced,
    /// The spawn of the lane is undone: a lane with work that exists nowhere else stays. Commits that another
    /// branch has exist elsewhere.
    UndoSpawn,
    /// The lane is discarded with force, whatever it contains.
    Force,
}

/// Result of stacking lanes on a branch: each lane with its verdict, and each lane that lands with the id of
/// its merge commit.
type StackResult<'n> = (Vec<(&'n str, LandingVerdict)>, Vec<(&'n str, String)>);

impl Oracle<'_> {
    /// Predicts `git proq merge`; all lanes if none is named.
    pub(super) fn merge(&self, now: &Model, named: Option<&[&str]>) -> Outcome<Expectation> {
        let mut then = self.start_from(now);
        if named.is_some_and(|names| names.iter().any(|n| !now.lanes.contains_key(*n))) {
            return Ok(Expectation::refused());
        }
        let every = || now.lanes.keys().map(String::as_str).collect();
        let names: Vec<&str> = named.map_or_else(every, <[&str]>::to_vec);
        let commits = |o: &&super::model::OpenPreview| {
            now.refs.get(&preview_branch(&o.lane)).is_some_and(|t| *t != o.tip)
        };
        let has_preview_commits =
            now.preview.as_ref().filter(commits).is_some_and(|o| names.contains(&o.lane.as_str()));
        if has_preview_commits && self.leave_preview(&mut then)? == LeaveOutcome::Refused {
            return Ok(Expectation::refused());
        }
        let mut verdicts = Vec::new();
        let mut ready: Vec<(String, Vec<&str>)> = Vec::new();
        for name in names {
            match self.landing_verdict(&then.model, name, named.is_none())? {
                Some(LandingVerdict::Landed) => {
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
        let shown = then.model.preview.as_ref().map(|open| open.lane.clone());
        let will_be_removed = |shown: &String| {
            let already = verdicts.iter().any(|(n, v)| n == shown && *v == LandingVerdict::AlreadyLanded);
            already || ready.iter().any(|(_, group)| group.contains(&shown.as_str()))
        };
        if shown.as_ref().is_some_and(will_be_removed)
            && self.leave_preview(&mut then)? == LeaveOutcome::Refused
        {
            return Ok(Expectation::refused());
        }
        let (forecast, needs_user) = self.land_all(&then, &verdicts, &ready, &[])?;
        let mut forecast = Expectation::done(forecast);
        // When the model does not know what was restored to the checkout, any lane may touch it and be
        // skipped.
        if then.unchecked_worktrees.contains(MAIN) {
            let names: Vec<&str> = ready.iter().flat_map(|(_, group)| group).copied().collect();
            for chosen in 1..1_usize << names.len() {
                let skipped = names.iter().enumerate().filter(|(n, _)| chosen >> n & 1 == 1);
                let skipped: Vec<&str> = skipped.map(|(_, name)| *name).collect();
                forecast.states.push(self.land_all(&then, &verdicts, &ready, &skipped)?.0);
            }
        }
        Ok(if needs_user { forecast.with_failure_exit() } else { forecast })
    }

    /// Lands every group except the lanes in `skipped`, and removes what has landed. Returns whether a lane
    /// needs the user.
    fn land_all<'n>(
        &self,
        now: &ExpectedState,
        sorted: &[(&'n str, LandingVerdict)],
        ready: &[(String, Vec<&'n str>)],
        skipped: &[&'n str],
    ) -> Outcome<(ExpectedState, bool)> {
        let mut then = now.clone();
        let mut verdicts = sorted.to_vec();
        for (onto, group) in ready {
            verdicts.extend(self.land(&mut then, onto, group, skipped)?);
        }
        for (name, verdict) in &verdicts {
            if matches!(verdict, LandingVerdict::Landed | LandingVerdict::AlreadyLanded) {
                self.remove_lane(&mut then, name, RemovalReason::Unforced)?;
            }
        }
        let needs_user =
            verdicts.iter().any(|(_, v)| matches!(v, LandingVerdict::Conflict | LandingVerdict::Refused));
        Ok((then, needs_user))
    }

    /// Returns whether a lane may land; none if it is passed over.
    fn landing_verdict(&self, now: &Model, name: &str, all: bool) -> Outcome<Option<LandingVerdict>> {
        let lane = &now.lanes[name];
        let Some(base) = now.refs.get(&format!("refs/heads/{}", lane.base)) else {
            return Ok(Some(LandingVerdict::Refused));
        };
        let Some(tip) = now.refs.get(&branch(name)) else { return Ok(Some(LandingVerdict::Refused)) };
        if all && lane.state == "idle" && *tip == lane.fork_point {
            return Ok(None);
        }
        let known = lane.conflict.as_ref().is_some_and(|(theirs, ours)| theirs == tip && ours == base);
        if all && lane.state == "conflict" && known {
            return Ok(None);
        }
        if !now.trees[name].is_clean(&*self.objects.files(tip)?) {
            return Ok(Some(LandingVerdict::Refused));
        }
        let is_below = self.objects.is_ancestor(tip, base)?;
        Ok(Some(if !is_below && !self.objects.has_same_patch(base, tip)? {
            LandingVerdict::Landed
        } else if is_below && *tip == lane.fork_point && !lane.landed {
            LandingVerdict::Refused
        } else {
            LandingVerdict::AlreadyLanded
        }))
    }

    /// Lands lanes on one branch: all that merge and that do not touch local changes of its checkout.
    fn land<'n>(
        &self,
        then: &mut ExpectedState,
        onto: &str,
        group: &[&'n str],
        skipped: &[&'n str],
    ) -> Outcome<Vec<(&'n str, LandingVerdict)>> {
        let full = format!("refs/heads/{onto}");
        let base = then.model.refs[&full].clone();
        let is_checked_out = then.model.main().head == full;
        let mut skipped = skipped.to_vec();
        let (verdicts, top) = loop {
            let (verdicts, tops) = self.stack(then, &base, group, &skipped)?;
            let Some((_, top)) = tops.last().filter(|_| is_checked_out) else {
                break (verdicts, tops.last().map_or_else(|| base.clone(), |(_, top)| top.clone()));
            };
            let from = self.objects.files(&base)?;
            let mut main = then.model.main();
            if !main.blocks_checkout(&from, &*self.objects.files(top)?) {
                main.checkout(&from, &*self.objects.files(top)?);
                then.model.trees.insert(MAIN.to_owned(), main);
                break (verdicts, top.clone());
            }
            // The first lane that blocks is skipped; the others are merged again.
            for (name, top) in &tops {
                if main.blocks_checkout(&from, &*self.objects.files(top)?) {
                    skipped.push(name);
                    break;
                }
            }
        };
        then.model.refs.insert(full, top.clone());
        for (name, verdict) in &verdicts {
            let tip = then.model.refs[&branch(name)].clone();
            let Some(lane) = then.model.lanes.get_mut(*name) else { continue };
            match verdict {
                LandingVerdict::Landed => {
                    "landed".clone_into(&mut lane.state);
                    lane.landed = true;
                    lane.conflict = None;
                }
                LandingVerdict::Conflict => {
                    "conflict".clone_into(&mut lane.state);
                    // The base is recorded as it is after the landing: the lane is tried again only when the
                    // base moves.
                    lane.conflict = Some((tip, top.clone()));
                }
                _ => {}
            }
        }
        Ok(verdicts)
    }

    /// Merges lanes one after the other on top of `base`, except the skipped ones. Returns the verdict of
    /// each lane, and the merge commit of each lane that lands.
    fn stack<'n>(
        &self,
        now: &ExpectedState,
        base: &str,
        group: &[&'n str],
        skipped: &[&str],
    ) -> Outcome<StackResult<'n>> {
        let mut top = base.to_owned();
        let (mut verdicts, mut tops) = (Vec::new(), Vec::new());
        for name in group {
            let tip = now.model.refs[&branch(name)].clone();
            let verdict = match self.objects.merge(&top, &tip)? {
                _ if skipped.contains(name) => LandingVerdict::Refused,
                None => LandingVerdict::Conflict,
                Some(tree) if tree == self.objects.commit(&top)?.tree => LandingVerdict::AlreadyLanded,
                Some(tree) => {
                    top = self.objects.write_commit(&tree, &[&top, &tip])?;
                    tops.push((*name, top.clone()));
                    LandingVerdict::Landed
                }
            };
            verdicts.push((*name, verdict));
        }
        Ok((verdicts, tops))
    }

    /// Returns whether removing a lane would lose work.
    fn has_unsaved_work(&self, now: &Model, name: &str, reason: RemovalReason) -> Outcome<bool> {
        let lane = &now.lanes[name];
        let Some(tip) = now.refs.get(&branch(name)) else { return Ok(true) };
        if !lane.preview_edits.is_empty() || !now.trees[name].is_clean(&*self.objects.files(tip)?) {
            return Ok(true);
        }
        let Some(base) = now.refs.get(&format!("refs/heads/{}", lane.base)) else {
            return Ok(*tip != lane.fork_point);
        };
        if self.objects.is_ancestor(tip, base)? || self.objects.has_same_patch(base, tip)? {
            return Ok(false);
        }
        if reason == RemovalReason::UndoSpawn && *tip == lane.fork_point {
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

    /// Removes a lane. Returns whether it was removed.
    fn remove_lane(&self, then: &mut ExpectedState, name: &str, reason: RemovalReason) -> Outcome<bool> {
        if reason != RemovalReason::Force
            && (self.has_unsaved_work(&then.model, name, reason)?
                || self.has_preview_work(&then.model, name)?)
        {
            return Ok(false);
        }
        if then.model.preview.as_ref().is_some_and(|open| open.lane == name) {
            let before = then.clone();
            if self.leave_preview(then)? == LeaveOutcome::Refused {
                *then = before;
                return Ok(false);
            }
        }
        then.model.lanes.remove(name);
        then.model.trees.remove(name);
        then.model.refs.remove(&branch(name));
        Ok(true)
    }

    /// Predicts `git proq discard`.
    pub(super) fn discard(&self, now: &Model, name: &str, reason: RemovalReason) -> Outcome<Expectation> {
        let mut then = self.start_from(now);
        if !now.lanes.contains_key(name) || !self.remove_lane(&mut then, name, reason)? {
            return Ok(Expectation::refused());
        }
        Ok(Expectation::done(then))
    }

    /// Predicts `git proq cleanup`.
    pub(super) fn cleanup(&self, now: &Model) -> Outcome<Expectation> {
        let mut then = self.start_from(now);
        for (name, lane) in &now.lanes {
            if lane.state == "landed" {
                self.remove_lane(&mut then, name, RemovalReason::Unforced)?;
            }
        }
        let is_uncertain = !then.unchecked_worktrees.is_empty();
        let forecast = Expectation::done(then);
        Ok(if is_uncertain { Expectation { exit: ExpectedExit::Any, ..forecast } } else { forecast })
    }
}
