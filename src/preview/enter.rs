//! Owns showing a lane: from the user's own branch, or from another lane's preview.

use std::path::Path;

use super::desk::{self, Desk, Reality};
use super::{Error, leave};
use crate::event;
use crate::git::{Head, LocalState, Oid, RefMove, RepoPath, Restored};
use crate::lane::{self, Checkout, Operation, Project, operate};
use crate::store::records::{AnyLane, LaneRecord, PreviewRecord};
use crate::store::{new_id, now};

/// What entering did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) struct Entered {
    /// The lane's commit that is shown.
    pub(crate) tip: Oid,
    /// What the preview was entered from.
    pub(crate) came_from: Head,
    /// The user's own changes were set aside.
    pub(crate) kept: bool,
    /// Edits of an earlier preview of this lane are back.
    pub(crate) edits: usize,
    /// The lane is shown already; nothing was done.
    pub(crate) already: bool,
}

/// Shows a lane in the main checkout.
pub(crate) fn enter(project: &Project, name: &str) -> Result<Entered, Error> {
    let main = project.repo.require_main()?.to_owned();
    project.lane(name)?;
    operate(project, "preview", |op| {
        let checkout = op.checkout(&main)?;
        lane::refuse_beside_in_place(project)?;
        // As it is under the lock.
        let lane = project.lane(name)?;
        let desk = Desk::look(project, &main)?;
        project.repo.require_index(&main)?;
        let tip = tip_of(project, &lane)?;
        Step { op, main: &main, checkout: &checkout, lane: &lane, tip }.run(&desk)
    })
}

pub(super) fn tip_of(project: &Project, lane: &LaneRecord) -> Result<Oid, Error> {
    project.repo.branch_tip(&lane.place.branch)?.ok_or_else(|| Error::NoTip { lane: lane.name.clone() })
}

struct Step<'a, 'p> {
    op: &'a Operation<'p>,
    main: &'a Path,
    checkout: &'a Checkout<'p>,
    lane: &'a LaneRecord,
    tip: Oid,
}

impl Step<'_, '_> {
    fn run(&self, desk: &Desk) -> Result<Entered, Error> {
        let Some(open) = desk::open_preview(self.op.project)? else {
            return self.start_from_own_branch(desk);
        };
        match desk::reality(&open, desk) {
            Reality::Shown if open.lane == self.lane.name => Ok(Entered {
                tip: open.tip,
                came_from: open.came_from,
                kept: open.snapshot.is_some(),
                edits: 0,
                already: true,
            }),
            Reality::Shown => self.start_from_preview(&open, desk),
            Reality::Home => {
                leave::finish_at_home(self.op, self.checkout, &open, desk)?.tell_conflict(self.op.project);
                // Commits made in that preview may just have gone to the lane.
                let tip = tip_of(self.op.project, self.lane)?;
                Step { tip, ..*self }.start_from_own_branch(desk)
            }
            Reality::Elsewhere => Err(desk::by_hand(self.op.project, &open, desk)),
        }
    }

    fn start_from_own_branch(&self, desk: &Desk) -> Result<Entered, Error> {
        let why = format!("changes on {} before the preview of {}", desk.head, self.lane.name);
        let seen = self.checkout.seen();
        let ignored = self.checkout.bystanders(&seen)?;
        let snap = match self.op.snapshot_of_all(self.main, desk.commit, &why, &[], &seen)? {
            None if self.checkout.is_flagged()? => {
                Some(self.op.snapshot_of_index(self.main, desk.commit, &why, &[], &seen)?)
            }
            snap => snap,
        };
        let waiting = snap.as_ref().map(|s| s.id.clone());
        let mut record = self.record(desk.head.clone(), desk.commit, waiting, ignored);
        record.drops.note_modes(&self.op.project.repo, self.main, desk.commit, self.tip)?;
        if let Head::Branch(branch) = &desk.head {
            record.is_shared = lane::other_worktree(self.op.project, branch, Some(self.main))?.is_some();
        }
        if snap.is_none() {
            record.empty_dirs = self.checkout.empty_folders(&seen)?;
        }
        // Before anything moves: whoever comes after a crash finds where the changes are.
        self.op.save(&record, &self.op.project.store.layout().preview())?;
        if let Some(snap) = snap {
            self.op.clear(self.main, &snap.id)?;
        }
        let brings = record.drops.clone().with_flags(self.checkout.flags(None)?);
        self.switch_head(desk, &brings, &[])?;
        self.finish(record, desk)
    }

    fn start_from_preview(&self, open: &PreviewRecord, desk: &Desk) -> Result<Entered, Error> {
        let edits = leave::set_edits_aside(self.op, open, desk)?;
        let mut ignored = self.checkout.bystanders(&self.checkout.seen())?;
        ignored.extend(open.ignored.iter().cloned());
        ignored.sort();
        ignored.dedup();
        let mut record =
            self.record(open.came_from.clone(), open.came_from_commit, open.snapshot.clone(), ignored);
        record.empty_dirs.clone_from(&open.empty_dirs);
        record.drops.clone_from(&open.drops);
        record.is_shared = open.is_shared;
        record.drops.note_modes(&self.op.project.repo, self.main, desk.commit, self.tip)?;
        let brings = leave::brings(self.op.project, self.checkout, &record)?;
        self.switch_head(desk, &brings, &edits.folders)?;
        self.op.save(&record, &self.op.project.store.layout().preview())?;
        leave::drop_preview_branch(self.op, open, desk.commit)?;
        self.finish(record, desk)
    }

    fn record(
        &self,
        came_from: Head,
        commit: Oid,
        snapshot: Option<String>,
        ignored: Vec<RepoPath>,
    ) -> PreviewRecord {
        PreviewRecord {
            ignored,
            empty_dirs: Vec::new(),
            drops: LocalState::default(),
            lane: self.lane.name.clone(),
            branch: self.op.project.preview_branch_of(&self.lane.name),
            tip: self.tip,
            since: now(),
            came_from,
            came_from_commit: commit,
            is_shared: false,
            snapshot,
        }
    }

    /// Makes the hidden branch and brings the checkout to it, where files get the permission bits and flags that `brings` names; the
    /// empty folders that `leaves` names go.
    fn switch_head(&self, desk: &Desk, brings: &LocalState, leaves: &[RepoPath]) -> Result<(), Error> {
        let branch = self.op.project.preview_branch_of(&self.lane.name);
        let full = format!("refs/heads/{branch}");
        if let Some(old) = self.op.project.repo.branch_tip(&branch)? {
            self.save_old_branch(&full, old)?;
        }
        self.op.create_ref(&full, self.tip)?;
        let mv = RefMove::Switch { from: desk.head.clone(), to: Head::Branch(branch) };
        Ok(self.op.transition_back(self.main, (desk.commit, self.tip), mv, brings, leaves)?)
    }

    /// A hidden branch that was left over: commits that only it has are kept.
    fn save_old_branch(&self, full: &str, old: Oid) -> Result<(), Error> {
        let project = self.op.project;
        if !project.repo.is_ancestor(old, self.tip)? {
            let saved = format!("refs/proq/saved/{}-preview-{}", self.lane.name, new_id());
            self.op.anchor(&saved, old)?;
            project.listener.warn(format!("commits of an earlier preview are kept as {saved}"));
        }
        Ok(self.op.delete_ref(full, old)?)
    }

    fn finish(&self, record: PreviewRecord, desk: &Desk) -> Result<Entered, Error> {
        let edits = self.bring_edits()?;
        let (main, from, tip) = (self.main.to_owned(), desk.commit, self.tip);
        self.op.after(move |project| desk::after_checkout(project, &main, from, tip));
        self.op.tell(
            event::Name::PreviewEntered,
            Some(self.lane),
            format!("the main checkout shows lane '{}'", self.lane.name),
        );
        Ok(Entered {
            tip: self.tip,
            came_from: record.came_from,
            kept: record.snapshot.is_some(),
            edits,
            already: false,
        })
    }

    /// Edits made during earlier previews of this lane come back; those that conflict stay in their snapshots.
    fn bring_edits(&self) -> Result<usize, Error> {
        let mut back = 0;
        for id in &self.lane.preview_edits {
            // One that is back already was brought by somebody who was cut off before he could note it.
            let Some(snap) = self.op.project.find_snap(id)? else {
                if let Some(kept) = self.op.project.snap_without_record(id)? {
                    self.op.project.listener.warn(format!(
                        "the record of edits of an earlier preview is gone; bring them back: git stash apply {}",
                        kept.short()
                    ));
                }
                self.op.update_lane(&self.lane.name, |lane| lane.preview_edits.retain(|edit| edit != id))?;
                continue;
            };
            match self.bring(id) {
                Ok((Restored::Exactly | Restored::Merged, _)) => back += 1,
                Ok((Restored::Conflict(paths), commit)) => self.tell_kept(commit, &paths),
                Err(_) => self.tell_kept(snap.snapshot.commit, &[]),
            }
        }
        Ok(back)
    }

    fn tell_kept(&self, commit: Oid, conflicts: &[RepoPath]) {
        self.op.project.listener.warn(format!(
            "edits of an earlier preview do not fit any more; they are kept: {} {}",
            lane::way_back(self.op.project, Some(commit), conflicts).command(),
            commit.short()
        ));
    }

    fn bring(&self, id: &String) -> Result<(Restored, Oid), lane::Error> {
        let forget = |lane: &mut AnyLane| lane.preview_edits.retain(|edit| edit != id);
        let rest = self.op.lane_step(&self.lane.name, forget)?.into_iter().collect();
        self.op.restore_for_good(self.main, id, self.tip, rest)
    }
}
