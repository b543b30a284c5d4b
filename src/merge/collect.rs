//! Owns which lanes may land, and why the others may not.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::attempts::refuse_second_pick;
use super::outcome::{Outcome, Verdict};
use super::request::{Candidate, Request, WouldCommit};
use super::turn::{became, is_whole};
use super::unfit::{apart, brings_markers, deletes_too_much};
use super::{Error, leftover_hints};
use crate::config::Uncommitted;
use crate::explain::Explain;
use crate::git::{self, Dirt, Oid, RepoPath, WorktreeList};
use crate::lane::{
    self, Evidence, Operation, Project, RESTS, commit_leftovers, effective_state, leftovers_to_commit,
    look_at, rests,
};
use crate::store::records::{CheckRecord, ConflictRecord, LaneRecord, LaneState};
use crate::store::{self, Record};

/// Lanes sorted by what may be done with them.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// They may land, in this order.
    pub(super) ready: Vec<Candidate>,
    /// They were asked for by name and may not.
    pub(super) decided: Vec<Outcome>,
    /// `--all` passes them over: `(lane, why)`.
    pub(super) left_out: Vec<(String, String)>,
}

impl Collected {
    /// Adds lanes of which is known what becomes of them, whatever was found here.
    pub(super) fn settle(&mut self, known: &[Outcome]) {
        let is_known = |lane: &str| known.iter().any(|outcome| outcome.lane == lane);
        self.ready.retain(|candidate| !is_known(&candidate.lane.name));
        self.decided.retain(|outcome| !is_known(&outcome.lane));
        self.left_out.retain(|(lane, _)| !is_known(lane));
        self.decided.extend_from_slice(known);
    }
}

/// Sorts the lanes that are asked for.
pub(super) fn collect(op: &Operation<'_>, request: &Request<'_>) -> Result<Collected, Error> {
    let project = op.project;
    let mut out = Collected::default();
    let mut lanes = Vec::new();
    if request.all {
        lanes = project.lanes()?;
        lanes.sort_by(|a, b| a.created.cmp(&b.created).then_with(|| a.name.cmp(&b.name)));
    } else if let Some(lane) = request.unrecorded {
        lanes.push(lane.clone());
    } else {
        for name in request.lanes {
            let lane = project.lane(name)?;
            if !lanes.iter().any(|l: &LaneRecord| l.name == lane.name) {
                lanes.push(lane);
            }
        }
    }
    if request.all {
        leave_rivals_out(&mut lanes, &mut out);
        leave_batches_out(&mut lanes, &mut out);
    }
    let worktrees = WorktreeList::read(&project.repo)?;
    let mut looks = Vec::new();
    for lane in lanes {
        let onto = request.onto.map_or_else(|| lane.base.clone(), ToOwned::to_owned);
        let look =
            Look { op, project, request, lane, onto, worktrees: &worktrees, met_half: AtomicBool::default() };
        match look.not_by_state()? {
            None => looks.push(look),
            Some(why) if request.all => out.left_out.push((look.lane.name, why)),
            Some(why) => out
                .decided
                .push(Outcome { hints: look.hints()?, ..Outcome::refused(&look.lane.name, &look.onto, why) }),
        }
    }
    let folders: Vec<PathBuf> = looks.iter().map(|look| look.lane.path.clone()).collect();
    let as_clean = || looks.iter().map(|look| look.sort(Some(Dirt::default()))).collect::<Vec<_>>();
    let (dirts, as_clean) = git::statuses(&project.repo, &folders, as_clean);
    for ((look, dirt), as_clean) in looks.iter().zip(dirts).zip(as_clean) {
        let clean = dirt.as_ref().is_some_and(Dirt::is_clean);
        let mut sorted = if clean { as_clean } else { look.sort(dirt) };
        let is_doubtful =
            || sorted.is_err() || look.met_half.load(Ordering::Relaxed) || !is_whole(project, &look.lane);
        if !matches!(sorted, Ok(Ok(_))) && request.unrecorded.is_none() && is_doubtful() {
            let Some(now) = look.again()? else {
                out.decided.extend((!request.all).then(|| became(project, &look.lane, request)));
                continue;
            };
            sorted = Ok(now);
        }
        match sorted? {
            Ok(candidate) => out.ready.push(candidate),
            Err(outcome) => out.decided.push(*outcome),
        }
    }
    Ok(out)
}

/// Leaves out attempts at one task of which there are several: one of them is to land, and somebody has to say which.
fn leave_rivals_out(lanes: &mut Vec<LaneRecord>, out: &mut Collected) {
    let all = lanes.clone();
    lanes.retain(|lane| {
        let rivals = all.iter().filter(|other| lane.group.is_some() && other.group == lane.group).count();
        if rivals > 1 {
            let why = format!("it is one of {rivals} attempts; git proq pick {} lands it", lane.name);
            out.left_out.push((lane.name.clone(), why));
        }
        rivals < 2
    });
}

/// Leaves out what a batch lands by itself, in its own order.
fn leave_batches_out(lanes: &mut Vec<LaneRecord>, out: &mut Collected) {
    lanes.retain(|lane| {
        if let Some(of) = &lane.batch {
            out.left_out.push((lane.name.clone(), format!("batch {} lands it", of.batch)));
        }
        lane.batch.is_none()
    });
}

struct Look<'a, 'p> {
    op: &'a Operation<'p>,
    project: &'p Project,
    request: &'a Request<'a>,
    lane: LaneRecord,
    onto: String,
    worktrees: &'a WorktreeList,
    /// Whether the lane's branch or worktree was missing or damaged: another process may be removing the lane or bringing it back.
    met_half: AtomicBool,
}

impl Look<'_, '_> {
    /// Judges the lane anew once nobody removes it or brings it back any more; none when it is gone by then.
    fn again(&self) -> Result<Option<Result<Candidate, Box<Outcome>>>, Error> {
        let project = self.project;
        match project.hold_idle(&self.lane.name).map(drop) {
            Err(lane::Error::Unknown { .. }) => Ok(None),
            Err(lane::Error::Store(store::Error::Locked { what, holder, .. })) => {
                Ok(Some(Err(self.half(format!("{what} is held by {holder}")))))
            }
            _ => {
                let worktrees = &WorktreeList::read(&project.repo)?;
                let (op, request, met_half) = (self.op, self.request, AtomicBool::default());
                let (lane, onto) = (self.lane.clone(), self.onto.clone());
                Look { op, project, request, lane, onto, worktrees, met_half }.sort(None).map(Some)
            }
        }
    }

    /// The lane as one that may land, or why it may not. `dirt` is what differs in its worktree.
    fn sort(&self, dirt: Option<Dirt>) -> Result<Result<Candidate, Box<Outcome>>, Error> {
        match self.examine(dirt)? {
            Ok(found) => self.measure(found),
            Err(outcome) => Ok(Err(outcome)),
        }
    }

    /// The lane with its size; or why what it changes is not fit to land.
    fn measure(&self, found: Examined) -> Result<Result<Candidate, Box<Outcome>>, Error> {
        let (repo, lane) = (&self.project.repo, &self.lane);
        let Examined { tip, base, ancestor: from, would_commit } = found;
        let changes = git::tree_changes(repo, from, tip)?;
        if !self.request.force
            && let Some(path) = changes.iter().find(|c| brings_markers(repo, c)).map(|c| c.path.clone())
        {
            let why = format!("{path} holds conflict markers; land it all the same by name with --force");
            let files = vec![path];
            return Ok(Err(Box::new(Outcome { files, ..Outcome::refused(&lane.name, &self.onto, why) })));
        }
        if !self.request.allow_deletions
            && let Some(refused) = deletes_too_much(repo, &lane.name, (&self.onto, base), &changes)?
        {
            return Ok(Err(Box::new(refused)));
        }
        let record = ConflictRecord::find(&self.project.store.layout().conflict(&lane.name))?;
        Ok(Ok(Candidate {
            lane: lane.clone(),
            tip,
            onto: self.onto.clone(),
            waited: record.map_or(0, |r| r.attempts),
            commits: repo.ahead(tip, base)?,
            files: changes.len(),
            part: None,
            uncommitted: would_commit.map(|dirt| WouldCommit { dirt, ancestor: from }),
        }))
    }

    /// Why the lane's state keeps it from landing.
    fn not_by_state(&self) -> Result<Option<String>, Error> {
        let lane = &self.lane;
        let (state, detail) = effective_state(self.project, lane)?;
        let more = detail.map(|d| format!(": {d}")).unwrap_or_default();
        Ok(match state {
            // As it would be found now; its agent goes on.
            state if state.is_busy() && self.request.would_stop() => None,
            LaneState::Running if rests(self.project, lane)? => {
                let how = format!("; git proq merge {} --stop ends its session and lands it", lane.name);
                let how = if self.request.all { how.as_str() } else { "" };
                Some(format!("it is done, and {RESTS}{how}"))
            }
            LaneState::Starting | LaneState::Running => Some("its agent is running".into()),
            LaneState::Orphaned => {
                Some(format!("its agent lives on without a supervisor; git proq stop {} ends it", lane.name))
            }
            LaneState::Stopped if self.is_to_be_stopped() => {
                let left_out = self.request.all && !self.has_commits()? && !self.has_uncommitted()?;
                left_out.then(|| "it has no commits yet".into())
            }
            LaneState::Failed | LaneState::Stalled | LaneState::Stopped
                if self.request.all || !self.request.force =>
            {
                Some(format!("it {}{more}; land it all the same by name with --force", past(state)))
            }
            LaneState::NoChange => Some("it changed nothing".into()),
            LaneState::Idle if self.request.all && !self.has_commits()? => {
                Some("it has no commits yet".into())
            }
            LaneState::Conflict
                if self.request.all && self.request.resolver.is_none() && self.conflict_stands()? =>
            {
                Some("it conflicts, and neither it nor its base has moved since".into())
            }
            LaneState::CheckFailed if self.request.all && !self.moved_since_check()? => {
                Some("its checks failed, and neither it nor its base has moved since".into())
            }
            _ => None,
        })
    }

    /// What helps a lane that its state keeps from landing.
    fn hints(&self) -> Result<Vec<String>, Error> {
        let (state, _) = effective_state(self.project, &self.lane)?;
        let what = match rests(self.project, &self.lane)? {
            true => "end its session and land it",
            false => "stop it and land what it has committed",
        };
        let stop = format!("{what}: git proq merge {} --stop", self.lane.name);
        Ok(state.is_busy().then_some(stop).into_iter().collect())
    }

    /// Whether it is what somebody wants that its agent was stopped and that it lands.
    fn is_to_be_stopped(&self) -> bool {
        self.request.stop.is_some_and(|stopped| !self.request.all || stopped.contains(&self.lane.name))
    }

    fn has_uncommitted(&self) -> Result<bool, Error> {
        let there = self.project.repo.is_own_worktree(&self.lane.path);
        Ok(there && !git::status(&self.project.repo, &self.lane.path, true)?.is_clean())
    }

    fn has_commits(&self) -> Result<bool, Error> {
        let tip = self.project.repo.branch_tip(&self.lane.place.branch)?;
        Ok(tip.is_some_and(|tip| tip != self.lane.start))
    }

    /// Whether the same sides would meet again as in the conflict on record.
    fn conflict_stands(&self) -> Result<bool, Error> {
        let path = self.project.store.layout().conflict(&self.lane.name);
        let Some(found) = ConflictRecord::find(&path)? else { return Ok(false) };
        Ok(self.onto == found.onto && lane::conflict_stands(self.project, &self.lane.place.branch, &found)?)
    }

    /// Whether what the check failed on has moved, or it is none of the checks any more.
    fn moved_since_check(&self) -> Result<bool, Error> {
        let path = self.project.store.layout().check(&self.lane.name);
        let Some(found) = CheckRecord::find(&path)? else { return Ok(true) };
        if found.task_of.is_none() {
            let of_base = match self.request.no_checks {
                true => Vec::new(),
                false => self.project.checks_on(&self.onto)?.commands,
            };
            if !of_base.iter().chain(self.request.verify).any(|line| *line == found.command) {
                return Ok(true);
            }
        }
        self.moved_since(found.theirs, found.base_tip, &found.onto)
    }

    fn moved_since(&self, tip: Oid, base: Oid, onto: &str) -> Result<bool, Error> {
        let repo = &self.project.repo;
        Ok(self.onto != onto
            || repo.branch_tip(&self.lane.place.branch)? != Some(tip)
            || repo.branch_tip(&self.onto)? != Some(base))
    }

    /// The refusal of a lane that is not whole.
    fn half(&self, why: String) -> Box<Outcome> {
        self.met_half.store(true, Ordering::Relaxed);
        Box::new(Outcome::refused(&self.lane.name, &self.onto, why))
    }

    /// What may land, or the outcome that says why nothing may.
    fn examine(&self, dirt: Option<Dirt>) -> Result<Result<Examined, Box<Outcome>>, Error> {
        let (project, lane) = (self.project, &self.lane);
        let refused = |why: String| Ok(Err(Box::new(Outcome::refused(&lane.name, &self.onto, why))));
        let Some(base) = project.repo.branch_tip(&self.onto)? else {
            return refused(format!("its base '{}' is gone; --onto BRANCH lands it elsewhere", self.onto));
        };
        if self.request.pick
            && let Some(refused) = refuse_second_pick(project, lane, &self.onto)?
        {
            let land = format!("land it as well: git proq merge {}", lane.name);
            return Ok(Err(Box::new(Outcome { hints: vec![land], ..refused })));
        }
        let found = look_at(project, lane, self.worktrees, dirt)?;
        if found.tip.is_none() {
            return Ok(Err(self.half(format!("its branch {} is gone", lane.place.branch))));
        }
        if let Some(why) = found.broken.clone().or_else(|| found.mismatch.clone()) {
            let help = found.repair.map(|command| format!("make it whole: {command}"));
            return Ok(Err(Box::new(Outcome { hints: help.into_iter().collect(), ..*self.half(why) })));
        }
        if let Some((place, _)) = &found.elsewhere {
            return refused(format!("its worktree has commits on {place}, not on {}", lane.place.branch));
        }
        if let Some(what) = found.open {
            return refused(format!("a {what} is under way in it"));
        }
        if let (Some(name), false) = (found.submodules.first(), self.request.force) {
            return refused(format!(
                "its submodule {name} has commits that no remote has; push them, or land it by name with --force"
            ));
        }
        let mut would_commit = None;
        if !found.dirt.is_clean() {
            match self.settle_uncommitted(&found)? {
                Ok(later) => would_commit = later.then(|| found.dirt.clone()),
                Err(outcome) => return Ok(Err(outcome)),
            }
        }
        self.compare_with_base(base, would_commit)
    }

    /// Judges what the lane has on top of its base, whose tip is `base`, once uncommitted work has been dealt with.
    fn compare_with_base(
        &self,
        base: Oid,
        would_commit: Option<Dirt>,
    ) -> Result<Result<Examined, Box<Outcome>>, Error> {
        let (project, lane) = (self.project, &self.lane);
        let refused = |why: String| Ok(Err(Box::new(Outcome::refused(&lane.name, &self.onto, why))));
        let Some(tip) = project.repo.branch_tip(&lane.place.branch)? else {
            return Ok(Err(self.half(format!("its branch {} is gone", lane.place.branch))));
        };
        let Some(ancestor) = project.repo.merge_base(base, tip)? else {
            return Ok(Err(Box::new(apart(lane, &self.onto))));
        };
        if would_commit.is_some() {
            return Ok(Ok(Examined { tip, base, ancestor, would_commit }));
        }
        if lane.landed_on(&project.repo, tip, base)? {
            let outcome = Outcome::new(&lane.name, &self.onto, Verdict::AlreadyLanded);
            if tip != lane.start || lane.landed.is_some() {
                return Ok(Err(Box::new(outcome)));
            }
            if lane.already && lane.state == LaneState::Done {
                let message = Some("its task had been done before".to_owned());
                return Ok(Err(Box::new(Outcome { message, ..outcome })));
            }
            return refused("it has no commits".to_owned());
        }
        if project.repo.has_by_hand(base, tip)? {
            let message = Some("in other commits, by patch id".to_owned());
            let outcome = Outcome::new(&lane.name, &self.onto, Verdict::AlreadyLanded);
            return Ok(Err(Box::new(Outcome { message, ..outcome })));
        }
        Ok(Ok(Examined { tip, base, ancestor, would_commit }))
    }

    /// Deals with uncommitted work as `merge.uncommitted` says. Returns whether a landing would commit it, which a dry run does not.
    fn settle_uncommitted(&self, found: &Evidence) -> Result<Result<bool, Box<Outcome>>, Error> {
        let (project, lane) = (self.project, &self.lane);
        let paths: Vec<RepoPath> = found.dirt.paths();
        let names = git::names(&paths);
        let refused = |why: String, hints: Vec<String>| {
            let outcome =
                Outcome { files: paths.clone(), hints, ..Outcome::refused(&lane.name, &self.onto, why) };
            Ok(Err(Box::new(outcome)))
        };
        let by_error =
            |e: lane::Error| refused(e.to_string(), e.hints().iter().map(ToString::to_string).collect());
        let is_committed = project.settings.uncommitted != Uncommitted::Snapshot;
        if let Some(e) = project.repo.index_lock(&lane.path).filter(|_| is_committed) {
            let hints = e.hints().iter().map(ToString::to_string).collect();
            return refused(format!("it has uncommitted work: {names}; {e}"), hints);
        }
        if is_committed && let Some((why, hint)) = self.why_no_commit(&found.dirt)? {
            return refused(format!("it has uncommitted work: {names}; {why}"), vec![hint]);
        }
        match project.settings.uncommitted {
            Uncommitted::Commit if self.request.dry_run => {
                match leftovers_to_commit(project, lane, self.request.allow_deletions) {
                    Ok(paths) => Ok(Ok(!paths.is_empty())),
                    Err(e) => by_error(e),
                }
            }
            Uncommitted::Snapshot if self.request.dry_run => Ok(Ok(false)),
            Uncommitted::Refuse => refused(
                format!("it has uncommitted work: {names}"),
                leftover_hints::hints(&project.repo, lane, &found.dirt),
            ),
            // Of a lane that was refused before, the landing then has committed what its run left.
            Uncommitted::Commit if self.request.by_itself && lane.refused.is_some() => refused(
                format!("it has uncommitted work that may not be its agent's: {names}"),
                vec![format!("commit it and land the lane: git proq merge {}", lane.name)],
            ),
            Uncommitted::Commit => match self.commit_leftovers()? {
                Ok(None) => Ok(Ok(false)),
                Ok(Some(why)) => refused(why, Vec::new()),
                Err(e) => by_error(e),
            },
            Uncommitted::Snapshot => {
                let head = project.repo.head_of(&lane.path)?;
                let why = format!("uncommitted work of lane {} when it landed", lane.name);
                let snap = head.map(|h| self.op.snapshot(&lane.path, h, &why, &[])).transpose()?.flatten();
                if let Some(snap) = snap {
                    project.listener.warn(format!(
                        "uncommitted work of lane '{}' stays behind; it is kept: git stash apply {}",
                        lane.name,
                        snap.snapshot.commit.short()
                    ));
                }
                Ok(Ok(false))
            }
        }
    }

    /// Commits what is uncommitted in the lane, to its branch. Returns why that branch could not follow, if so.
    fn commit_leftovers(&self) -> Result<Result<Option<String>, lane::Error>, Error> {
        let (project, lane) = (self.project, &self.lane);
        let before = project.repo.branch_tip(&lane.place.branch)?;
        let message = format!("{}\n\nLeft uncommitted in lane {}.\n", lane.title, lane.name);
        if let Err(e) = commit_leftovers(project, lane, &message, self.request.allow_deletions) {
            return Ok(Err(e));
        }
        // Where HEAD is detached, the branch follows.
        if let Some(why) = lane::follow_head(project, lane)? {
            return Ok(Ok(Some(why)));
        }
        let after = project.repo.branch_tip(&lane.place.branch)?;
        if let (true, Some(before), Some(after)) = (self.request.by_itself, before, after) {
            lane::extend_run(project, lane, before, after)?;
        }
        Ok(Ok(None))
    }

    /// Why nobody is to commit what is uncommitted, where and as it is, and what to do first. A commit on another branch would land
    /// nothing of the lane, and one on its base would be there without a check; of an embedded repository git commits a bare link.
    fn why_no_commit(&self, dirt: &Dirt) -> Result<Option<(String, String)>, Error> {
        let (project, lane) = (self.project, &self.lane);
        if let Some(embedded) = dirt.entries.iter().find(|entry| entry.nested) {
            let command = lane::move_out(project, lane, &embedded.path, self.worktrees);
            let why = format!("{} is a repository of its own", embedded.path);
            return Ok(Some((why, format!("move it out of the lane first: {command}"))));
        }
        let commits = project.settings.uncommitted == Uncommitted::Commit;
        let off = lane::off_branch(project, lane)?.filter(|off| !(commits && off.may_commit));
        Ok(off.map(|off| {
            let why = format!("its worktree is on {}, not on {}", off.place, lane.place.branch);
            (why, format!("bring it back to its branch first: {}", off.back))
        }))
    }
}

/// A lane that may land.
struct Examined {
    /// Its tip.
    tip: Oid,
    /// The base's.
    base: Oid,
    /// Their common ancestor.
    ancestor: Oid,
    /// What a landing would commit first.
    would_commit: Option<Dirt>,
}

fn past(state: LaneState) -> &'static str {
    match state {
        LaneState::Stopped => "was stopped",
        _ => "failed",
    }
}
