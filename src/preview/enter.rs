//! Owns showing a lane: from the user's own branch, or from another lane's preview.

use std::path::Path;

use super::desk::{self, Desk, Reality};
use super::{Error, leave};
use crate::event;
use crate::git::{Head, Oid, RefMove, RepoPath, Restored};
use crate::lane::{Checkout, Project};
use crate::store::records::{LaneRecord, PreviewRecord, SnapRecord};
use crate::store::{Record, new_id, now};

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
    let lane = project.lane(name)?;
    let checkout = Checkout::lock(project, &main)?;
    let desk = Desk::look(project, &main)?;
    let tip = tip_of(project, &lane)?;
    let step = Step { project, main: &main, checkout: &checkout, lane: &lane, tip };
    let entered = step.run(&desk)?;
    // Hooks run once no lock is held.
    drop(checkout);
    if !entered.already {
        desk::after_checkout(project, &main, desk.commit, tip);
    }
    Ok(entered)
}

pub(super) fn tip_of(project: &Project, lane: &LaneRecord) -> Result<Oid, Error> {
    project.repo.branch_tip(&lane.branch)?.ok_or_else(|| Error::NoTip { lane: lane.name.clone() })
}

/// A switch that did not come about.
struct Stopped {
    /// Why.
    why: Error,
    /// Whether the user's changes are where they were.
    undisturbed: bool,
}

struct Step<'a> {
    project: &'a Project,
    main: &'a Path,
    checkout: &'a Checkout<'a>,
    lane: &'a LaneRecord,
    tip: Oid,
}

impl Step<'_> {
    fn run(&self, desk: &Desk) -> Result<Entered, Error> {
        let Some(open) = desk::open_preview(self.project)? else { return self.start_from_own_branch(desk) };
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
                leave::finish_at_home(self.project, self.checkout, &open, desk)?.tell_conflict(self.project);
                self.start_from_own_branch(desk)
            }
            Reality::Elsewhere => {
                Err(Error::ByHand { lane: open.lane, now: desk.head.to_string(), came_from: open.came_from })
            }
        }
    }

    fn start_from_own_branch(&self, desk: &Desk) -> Result<Entered, Error> {
        let why = format!("changes on {} before the preview of {}", desk.head, self.lane.name);
        let ignored = self.checkout.ignored()?;
        let snap = self.checkout.snapshot(desk.commit, &why)?;
        let waiting = snap.as_ref().map(|s| s.id.clone());
        let mut record = self.record(desk.head.clone(), desk.commit, waiting, ignored);
        if snap.is_none() {
            record.empty_dirs = self.checkout.empty_folders()?;
        }
        // Before anything moves: whoever comes after a crash finds where the changes are.
        record.save(&self.project.store.layout().preview())?;
        let mut snap = snap;
        match self.switch(desk, snap.as_mut()) {
            Ok(()) => self.finish(record),
            Err(Stopped { why, undisturbed }) => {
                // Only when the changes are where they were may their snapshot go.
                if undisturbed {
                    if let Some(snap) = &snap {
                        self.project.drop_snap(snap)?;
                    }
                    desk::close(self.project)?;
                }
                Err(why)
            }
        }
    }

    fn start_from_preview(&self, open: &PreviewRecord, desk: &Desk) -> Result<Entered, Error> {
        let edits = leave::set_edits_aside(self.project, self.checkout, open, desk)?;
        let mut ignored = self.checkout.ignored()?;
        ignored.extend(open.ignored.iter().cloned());
        ignored.sort();
        ignored.dedup();
        let mut record =
            self.record(open.came_from.clone(), open.came_from_commit, open.snapshot.clone(), ignored);
        record.empty_dirs.clone_from(&open.empty_dirs);
        if let Err(e) = self.switch_head(desk) {
            leave::put_edits_back(self.project, self.checkout, &open.lane, edits, desk.commit)?;
            return Err(e);
        }
        record.save(&self.project.store.layout().preview())?;
        leave::drop_preview_branch(self.project, open, desk.commit)?;
        self.finish(record)
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
            lane: self.lane.name.clone(),
            branch: self.project.preview_branch_of(&self.lane.name),
            tip: self.tip,
            since: now(),
            came_from,
            came_from_commit: commit,
            snapshot,
        }
    }

    fn switch(&self, desk: &Desk, snap: Option<&mut SnapRecord>) -> Result<(), Stopped> {
        let Some(snap) = snap else {
            return self.switch_head(desk).map_err(|why| Stopped { why, undisturbed: true });
        };
        if let Err(e) = self.checkout.clear(snap) {
            // Clearing puts everything back itself; where it could not, the record leads to what is missing.
            let undisturbed = !matches!(&e, crate::lane::Error::Git(crate::git::Error::Stuck { .. }));
            return Err(Stopped { why: e.into(), undisturbed });
        }
        self.switch_head(desk).map_err(|why| {
            // Somebody may have committed while the checkout was clean: the changes go back onto what HEAD is now.
            let restored = Desk::look(self.project, self.main)
                .and_then(|now| Ok(self.checkout.restore(snap, now.commit)?));
            let undisturbed = matches!(restored, Ok(Restored::Exactly | Restored::Merged));
            Stopped { why, undisturbed }
        })
    }

    /// Makes the hidden branch and brings the checkout to it.
    fn switch_head(&self, desk: &Desk) -> Result<(), Error> {
        let branch = self.project.preview_branch_of(&self.lane.name);
        let full = format!("refs/heads/{branch}");
        if let Some(old) = self.project.repo.branch_tip(&branch)? {
            self.save_old_branch(&full, old)?;
        }
        let repo = &self.project.repo;
        repo.create_ref(&full, self.tip, "git-proq: preview")?;
        let mv = RefMove::Switch { from: desk.head.clone(), to: Head::Branch(branch.clone()) };
        let why = format!("checkout: moving from {} to {branch}", desk.head);
        let done = self.checkout.transition(desk.commit, self.tip, &mv, &why);
        // Whatever went wrong, a branch that HEAD is on stays.
        if done.is_err() && Desk::look(self.project, self.main)?.head == desk.head {
            repo.delete_ref(&full, self.tip, "git-proq: preview taken back")?;
        }
        Ok(done?)
    }

    /// A hidden branch that was left over: commits that only it has are kept.
    fn save_old_branch(&self, full: &str, old: Oid) -> Result<(), Error> {
        let repo = &self.project.repo;
        if !repo.is_ancestor(old, self.tip)? {
            let saved = format!("refs/proq/saved/{}-preview-{}", self.lane.name, new_id());
            repo.create_ref(&saved, old, "git-proq: saved")?;
            self.project.listener.warn(format!("commits of an earlier preview are kept as {saved}"));
        }
        Ok(repo.delete_ref(full, old, "git-proq: old preview")?)
    }

    fn finish(&self, record: PreviewRecord) -> Result<Entered, Error> {
        let edits = self.bring_edits()?;
        self.project.tell(
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
        let mut left = Vec::new();
        for id in &self.lane.preview_edits {
            let mut snap = self.project.snap(id)?;
            match self.checkout.restore(&mut snap, self.tip) {
                Ok(Restored::Exactly | Restored::Merged) => {
                    self.project.drop_snap(&snap)?;
                    back += 1;
                }
                Ok(Restored::Conflict(_)) | Err(_) => {
                    self.project.listener.warn(format!(
                        "edits of an earlier preview do not fit any more; they are kept: git stash apply {}",
                        snap.snapshot.commit.short()
                    ));
                    left.push(id.clone());
                }
            }
        }
        if left.len() != self.lane.preview_edits.len() {
            self.project.update_lane(&self.lane.name, |lane| lane.preview_edits = left)?;
        }
        Ok(back)
    }
}
