//! Effects of previews on the model: enter, switch, refresh, leave.

use super::Outcome;
use super::model::{Model, OpenPreview, branch, preview_branch};
use super::oracle::{Expectation, ExpectedState, Oracle};
use super::step::MAIN;
use super::worktree::{Files, Kind, Snapshot, Worktree, is_obstructed};

/// Position of the main checkout while a preview is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadPosition {
    InPreview,
    AtOrigin,
    Elsewhere,
}

fn head_position(model: &Model, open: &OpenPreview) -> HeadPosition {
    let head = model.main().head;
    if head == preview_branch(&open.lane) {
        HeadPosition::InPreview
    } else if head == open.came_from {
        HeadPosition::AtOrigin
    } else {
        HeadPosition::Elsewhere
    }
}

/// Outcome of leaving a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaveOutcome {
    /// The preview was not left.
    Refused,
    /// Everything was restored.
    Restored,
    /// The parked changes conflict and stay saved.
    Conflict,
}

/// Outcome of restoring a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RestoreOutcome {
    Done,
    Conflict,
    Refused,
}

impl Oracle<'_> {
    /// Predicts `git proq preview LANE`.
    pub(super) fn preview(&self, now: &Model, lane: &str) -> Outcome<Expectation> {
        let mut then = self.start_from(now);
        if !now.lanes.contains_key(lane) {
            return Ok(Expectation::refused());
        }
        if let Some(open) = now.preview.clone() {
            match head_position(now, &open) {
                HeadPosition::InPreview if open.lane == lane => return Ok(Expectation::done(then)),
                HeadPosition::InPreview => {
                    let came_from = open.came_from.clone();
                    self.save_preview_edits(&mut then, &open)?;
                    let next =
                        OpenPreview { lane: lane.to_owned(), came_from, tip: String::new(), ..open.clone() };
                    if !self.show(&mut then, next)? {
                        return Ok(Expectation::refused());
                    }
                    then.model.refs.remove(&preview_branch(&open.lane));
                    self.restore_edits(&mut then, lane)?;
                    return Ok(Expectation::done(then));
                }
                HeadPosition::AtOrigin => {
                    if self.close_left_preview(&mut then, &open)? == LeaveOutcome::Refused {
                        return Ok(Expectation::refused());
                    }
                }
                HeadPosition::Elsewhere => return Ok(Expectation::refused()),
            }
        }
        let came_from = then.model.main().head;
        let Some(base) = then.model.tip(&came_from) else { return Ok(Expectation::refused()) };
        let waiting = self.park_changes(&mut then, &base)?;
        let is_uncertain = then.unchecked_worktrees.contains(MAIN);
        let open = OpenPreview { lane: lane.to_owned(), tip: String::new(), came_from, parked: waiting };
        if !self.show(&mut then, open)? {
            return Ok(Expectation::refused());
        }
        self.restore_edits(&mut then, lane)?;
        Ok(if is_uncertain { Expectation::done_or_refused(then) } else { Expectation::done(then) })
    }

    /// Predicts `git proq preview --refresh`.
    pub(super) fn refresh(&self, now: &Model) -> Outcome<Expectation> {
        let mut then = self.start_from(now);
        let Some(mut open) = now.preview.clone() else { return Ok(Expectation::refused()) };
        if head_position(now, &open) != HeadPosition::InPreview {
            return Ok(Expectation::refused());
        }
        let (Some(from), Some(tip)) = (now.head_commit(MAIN), now.tip(&branch(&open.lane))) else {
            return Ok(Expectation::refused());
        };
        if from == tip {
            return Ok(Expectation::done(then));
        }
        if from != open.tip && !self.objects.is_ancestor(&from, &tip)? {
            return Ok(Expectation::refused());
        }
        let (before, after) = (self.objects.files(&from)?, self.objects.files(&tip)?);
        let mut main = now.main();
        if main.blocks_checkout(&before, &after) {
            return Ok(Expectation::refused());
        }
        main.checkout(&before, &after);
        then.model.trees.insert(MAIN.to_owned(), main);
        then.model.refs.insert(preview_branch(&open.lane), tip.clone());
        open.tip = tip;
        then.model.preview = Some(open);
        Ok(Expectation::done(then))
    }

    /// Predicts `git proq preview --back`.
    pub(super) fn preview_back(&self, now: &Model) -> Outcome<Expectation> {
        let mut then = self.start_from(now);
        Ok(match self.leave_preview(&mut then)? {
            LeaveOutcome::Refused => Expectation::refused(),
            LeaveOutcome::Restored => Expectation::done(then),
            LeaveOutcome::Conflict => Expectation::done(then).with_failure_exit(),
        })
    }

    /// Leaves the open preview.
    pub(super) fn leave_preview(&self, then: &mut ExpectedState) -> Outcome<LeaveOutcome> {
        let Some(open) = then.model.preview.clone() else { return Ok(LeaveOutcome::Refused) };
        match head_position(&then.model, &open) {
            HeadPosition::Elsewhere => Ok(LeaveOutcome::Refused),
            HeadPosition::AtOrigin => self.close_left_preview(then, &open),
            HeadPosition::InPreview => {
                let Some(home) = then.model.tip(&open.came_from) else { return Ok(LeaveOutcome::Refused) };
                self.save_preview_edits(then, &open)?;
                if !self.switch(then, &open.came_from, &home)? {
                    return Ok(LeaveOutcome::Refused);
                }
                then.model.refs.remove(&preview_branch(&open.lane));
                self.restore_parked(then, &open)
            }
        }
    }

    /// Returns whether the open preview shows the lane and contains new work.
    pub(super) fn has_preview_work(&self, now: &Model, lane: &str) -> Outcome<bool> {
        let Some(open) = now.preview.as_ref().filter(|o| o.lane == lane) else { return Ok(false) };
        let Some(at) = now.head_commit(MAIN) else { return Ok(false) };
        Ok(match head_position(now, open) {
            HeadPosition::InPreview => at != open.tip || !now.main().is_clean(&*self.objects.files(&at)?),
            _ => now.refs.get(&preview_branch(lane)).is_some_and(|tip| *tip != open.tip),
        })
    }

    fn close_left_preview(&self, then: &mut ExpectedState, open: &OpenPreview) -> Outcome<LeaveOutcome> {
        if let Some(tip) = then.model.refs.get(&preview_branch(&open.lane)).cloned() {
            if tip != open.tip {
                self.carry_commits(then, open, &tip)?;
            }
            then.model.refs.remove(&preview_branch(&open.lane));
        }
        self.restore_parked(then, open)
    }

    fn restore_parked(&self, then: &mut ExpectedState, open: &OpenPreview) -> Outcome<LeaveOutcome> {
        let done = match &open.parked {
            Some(snap) => self.restore_snapshot(then, snap)?,
            None => RestoreOutcome::Done,
        };
        if done == RestoreOutcome::Refused {
            return Ok(LeaveOutcome::Refused);
        }
        then.model.preview = None;
        Ok(if done == RestoreOutcome::Conflict { LeaveOutcome::Conflict } else { LeaveOutcome::Restored })
    }

    /// Moves commits made in the preview to the lane, and saves all other edits for the lane's next preview.
    fn save_preview_edits(&self, then: &mut ExpectedState, open: &OpenPreview) -> Outcome<()> {
        let Some(at) = then.model.head_commit(MAIN) else { return Ok(()) };
        if at != open.tip {
            self.carry_commits(then, open, &at)?;
        }
        let snap = self.park_changes(then, &at)?;
        if let (Some(snap), Some(lane)) = (snap, then.model.lanes.get_mut(&open.lane)) {
            lane.preview_edits.push(snap);
        }
        Ok(())
    }

    fn carry_commits(&self, then: &mut ExpectedState, open: &OpenPreview, preview_tip: &str) -> Outcome<()> {
        if let Some(home) = then.model.refs.get(&open.came_from).cloned()
            && self.objects.is_ancestor(preview_tip, &home)?
        {
            // No commit was made: the preview was reset to a commit of its base.
            return Ok(());
        }
        let name = branch(&open.lane);
        let (Some(tip), Some(tree)) = (then.model.tip(&name), then.model.trees.get_mut(&open.lane)) else {
            return Ok(());
        };
        if self.objects.is_ancestor(preview_tip, &tip)? || !self.objects.is_ancestor(&tip, preview_tip)? {
            return Ok(());
        }
        let (from, to) = (self.objects.files(&tip)?, self.objects.files(preview_tip)?);
        if !tree.blocks_checkout(&from, &to) {
            tree.checkout(&from, &to);
            then.model.refs.insert(name, preview_tip.to_owned());
        }
        Ok(())
    }

    /// Parks everything in the main checkout that is not ignored and differs from `base`.
    fn park_changes(&self, then: &mut ExpectedState, base: &str) -> Outcome<Option<Snapshot>> {
        let files = self.objects.files(base)?;
        let mut main = then.model.main();
        if main.is_clean(&files) {
            return Ok(None);
        }
        let ignored = main.ignored_files();
        let mut snap = Snapshot {
            base: base.to_owned(),
            files: main.visible_files(),
            index: main.index.clone(),
            is_uncertain: false,
        };
        if is_obstructed(&ignored, &Files::new(), &files) {
            then.may_refuse = true;
        }
        // An ignored file where the commit has a file or a folder: if the preview is not refused, it is
        // restored with the changes.
        let (blocking, kept_files): (Files, Files) = ignored.into_iter().partition(|(path, file)| {
            is_obstructed(&Files::from([(path.clone(), file.clone())]), &Files::new(), &files)
        });
        snap.files.extend(blocking);
        main.files = kept_files;
        main.files.extend(files.iter().map(|(p, f)| (p.clone(), f.clone())));
        main.index = Files::clone(&files);
        then.model.trees.insert(MAIN.to_owned(), main);
        Ok(Some(snap))
    }

    /// Moves the clean main checkout to another branch.
    fn switch(&self, then: &mut ExpectedState, head: &str, to: &str) -> Outcome<bool> {
        let Some(from) = then.model.head_commit(MAIN) else { return Ok(false) };
        let (before, after) = (self.objects.files(&from)?, self.objects.files(to)?);
        let mut main = then.model.main();
        if main.blocks_checkout(&before, &after) {
            return Ok(false);
        }
        main.checkout(&before, &after);
        head.clone_into(&mut main.head);
        then.model.trees.insert(MAIN.to_owned(), main);
        Ok(true)
    }

    fn show(&self, then: &mut ExpectedState, mut open: OpenPreview) -> Outcome<bool> {
        let Some(tip) = then.model.tip(&branch(&open.lane)) else { return Ok(false) };
        let name = preview_branch(&open.lane);
        then.model.refs.insert(name.clone(), tip.clone());
        if !self.switch(then, &name, &tip)? {
            return Ok(false);
        }
        open.tip = tip;
        then.model.preview = Some(open);
        Ok(true)
    }

    /// Restores edits of earlier previews, as far as they apply.
    fn restore_edits(&self, then: &mut ExpectedState, lane: &str) -> Outcome<()> {
        let edits = then.model.lanes.get(lane).map(|l| l.preview_edits.clone()).unwrap_or_default();
        let mut unrestored = Vec::new();
        for snap in edits {
            if self.restore_snapshot(then, &snap)? != RestoreOutcome::Done {
                unrestored.push(snap);
            }
        }
        if let Some(lane) = then.model.lanes.get_mut(lane) {
            lane.preview_edits = unrestored;
        }
        Ok(())
    }

    /// Restores a snapshot in the main checkout.
    fn restore_snapshot(&self, then: &mut ExpectedState, snap: &Snapshot) -> Outcome<RestoreOutcome> {
        let Some(now) = then.model.head_commit(MAIN) else { return Ok(RestoreOutcome::Refused) };
        let (base, now) = (self.objects.files(&snap.base)?, self.objects.files(&now)?);
        let mut main = then.model.main();
        if snap.is_uncertain || !main.is_clean(&now) {
            // When two sets of changes overlap, git-proq decides what applies. Nothing may be lost.
            then.unchecked_worktrees.insert(MAIN.to_owned());
            then.may_refuse = true;
            return Ok(RestoreOutcome::Done);
        }
        if base == now {
            let ignored = main.ignored_files();
            if is_obstructed(&ignored, &Files::new(), &snap.files) {
                return Ok(RestoreOutcome::Refused);
            }
            main.files = ignored;
            main.files.extend(snap.files.clone());
            main.index.clone_from(&snap.index);
            then.model.trees.insert(MAIN.to_owned(), main);
            return Ok(RestoreOutcome::Done);
        }
        self.merge_snapshot(then, snap, &base, &now, main)
    }

    fn merge_snapshot(
        &self,
        then: &mut ExpectedState,
        snap: &Snapshot,
        base: &Files,
        now: &Files,
        mut main: Worktree,
    ) -> Outcome<RestoreOutcome> {
        let untracked = snap.untracked();
        let has_intent_to_add = snap.index.values().any(|file| file.kind == Kind::IntentToAdd);
        if has_intent_to_add || untracked.keys().any(|p| base.contains_key(p)) {
            // A file that is staged as deleted but present, or intended to be added: a merge of trees cannot
            // express both.
            then.unchecked_worktrees.insert(MAIN.to_owned());
            then.may_refuse = true;
            return Ok(RestoreOutcome::Done);
        }
        let work = self.objects.merge_files(base, now, &snap.tracked())?;
        let staged = self.objects.merge_files(base, now, &snap.index)?;
        let (Some(work), Some(staged)) = (work, staged) else { return Ok(RestoreOutcome::Conflict) };
        let mut all = work.clone();
        all.extend(untracked.clone());
        let fits = !is_obstructed(&main.files, now, &all)
            && untracked.keys().all(|p| !main.files.contains_key(p) && !work.contains_key(p));
        if !fits {
            return Ok(RestoreOutcome::Conflict);
        }
        main.checkout(now, &work);
        main.files.extend(untracked);
        main.index = staged;
        then.model.trees.insert(MAIN.to_owned(), main);
        Ok(RestoreOutcome::Done)
    }
}
