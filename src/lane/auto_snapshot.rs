//! Owns automatic snapshots: while agents are at work, what is uncommitted in the main checkout and in lanes is copied again and
//! again, so that what an agent's `git reset --hard`, `git clean -fdx` or `git worktree remove --force` deletes there can be
//! brought back. A lane whose own agent is at work is copied less often, and missed only when its folder is gone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::ignored_files::IgnoredFiles;
use super::in_place::at_work_in_place;
use super::{
    Checkout, Error, Project, changed_settings, effective_state, last_ended, recover, set_aside_since,
    shared_settings, snaps,
};
use crate::event::{Event, Name};
use crate::explain::quoted_path;
use crate::git::{Oid, WorktreeStamp, has_autostash};
use crate::store::records::{Automatic, LaneRecord, SnapRecord, Step};
use crate::store::{LockName, Moment, new_id, now};

/// How much of the time passes may take: one part in so many. A pass works in two threads at most, so that all of them together
/// take less than 2 % of a processor.
const SHARE: u32 = 100;

/// How long passes may take before that limit counts.
const BURST: Duration = Duration::from_secs(1);

/// How old the lock on an index may be.
const LOCKED: Duration = Duration::from_secs(5);

/// So many snapshots of a worktree are kept, whatever their age.
const NEWEST: usize = 5;

/// Of older ones, one for each span of this length is kept.
const SPAN: Duration = Duration::from_mins(10);

/// One pass in so many looks at lanes whose own agent is at work.
const SELDOM: usize = 3;

/// A lane whose agent writes all the time is copied at one look in so many.
const RESTLESS: usize = 4;

/// Those that no event names are deleted at this age.
const LONGEST: Duration = Duration::from_hours(24);

/// Takes automatic snapshots until no agent is at work, unless another process does so. `first_taken` is called once each worktree
/// has been looked at.
///
/// # Errors
/// When the lanes cannot be listed. What cannot be copied of one worktree is left out and tried again.
pub(crate) fn take_automatically(project: &Project, mut first_taken: impl FnMut()) -> Result<(), Error> {
    let mut snapshots = AutoSnapshots::default();
    let (start, mut spent) = (Instant::now(), Duration::ZERO);
    while let Some(lock) = project.store.locks().try_take(&LockName::Snapshots)? {
        loop {
            let begin = Instant::now();
            snapshots.pass(project)?;
            first_taken();
            if !agents_are_at_work(project)? {
                break;
            }
            let interval = project.settings.snapshot_interval.unwrap_or(SPAN);
            spent += begin.elapsed();
            std::thread::sleep(interval.max(pause_after(spent, start.elapsed())));
        }
        drop(lock);
        // A supervisor that began meanwhile saw that the lock was held.
        if !agents_are_at_work(project)? {
            break;
        }
    }
    Ok(())
}

/// How long to wait at least when passes took `spent` of the `elapsed` time.
fn pause_after(spent: Duration, elapsed: Duration) -> Duration {
    (spent.saturating_sub(BURST) * SHARE).saturating_sub(elapsed)
}

/// Whether an agent is at work in any lane.
///
/// # Errors
/// When the lanes cannot be listed.
pub(crate) fn agents_are_at_work(project: &Project) -> Result<bool, Error> {
    for lane in project.every_lane()? {
        if effective_state(project, &lane)?.0.is_busy() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether git is at work on the index of a worktree. A lock that is older is one that a killed git left, or waits for an editor.
fn is_locked(git_dir: &Path) -> bool {
    let made = git_dir.join("index.lock").symlink_metadata().and_then(|meta| meta.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age < LOCKED))
}

/// What is known of the worktrees since the first pass.
#[derive(Default)]
struct AutoSnapshots {
    /// By lane; none for the main checkout.
    worktrees: HashMap<Option<String>, Known>,
    /// By name, the lanes whose own agent is at work.
    at_work: HashMap<String, AtWork>,
    /// How many passes there have been.
    passes: usize,
    marks: Option<Marks>,
    /// What all worktrees share, as [`shared_settings`] gives it.
    shared: Option<BTreeMap<String, String>>,
    /// Lanes by name, and for how many passes their worktrees have been gone.
    gone: BTreeMap<String, usize>,
}

/// What is known of one worktree.
#[derive(Clone)]
struct Known {
    value: u64,
    /// The id of the snapshot that was taken of it; none when nothing was uncommitted.
    snapshot: Option<String>,
}

/// What is known of a lane whose own agent is at work.
#[derive(Default)]
struct AtWork {
    /// The value of the last look.
    seen: u64,
    /// How many looks since the last copy found something else each time.
    restless: usize,
    /// The last copy, and the value of the look that it was taken at.
    copied: Option<Known>,
}

/// What changes when somebody sets changes aside on purpose.
struct Marks {
    /// The number of git-proq's last operation that had ended.
    operation: u64,
    /// The entries of the stash.
    stash: Vec<Oid>,
}

impl Marks {
    /// Those of now, and the worktrees in which changes were set aside since `before`: by operations of git-proq, and by a stash
    /// on top of the commit that is checked out there.
    fn read(project: &Project, before: Option<&Marks>) -> Result<(Marks, SetAside), Error> {
        let last = match before {
            Some(marks) => marks.operation,
            None => last_ended(project),
        };
        let (worktrees, operation) = set_aside_since(project, last);
        let newest = project.repo.ref_tip("refs/stash")?;
        // One that was there before is the newest again once those above it are gone.
        let is_new = |stash: &Oid| before.is_some_and(|marks| !marks.stash.contains(stash));
        let on = newest.filter(is_new).map(|stash| project.repo.require_commit(&format!("{stash}^1")));
        let marks = Marks { operation, stash: project.repo.stash_entries() };
        Ok((marks, SetAside { worktrees, until: operation, stashed_on: on.and_then(Result::ok) }))
    }
}

/// Where changes were set aside on purpose.
struct SetAside {
    worktrees: BTreeSet<PathBuf>,
    /// The number of the last operation that it knows of.
    until: u64,
    /// The commit that was checked out when the newest stash was made.
    stashed_on: Option<Oid>,
}

impl SetAside {
    fn holds(&self, project: &Project, dir: &Path) -> Result<bool, Error> {
        let is_stashed = self.stashed_on.is_some() && project.repo.head_of(dir)? == self.stashed_on;
        // One that began since this was read, and ended since or has not yet: in this order, or it ends between the two.
        let is_since = || {
            recover::is_under_way(project, |step| match step {
                Step::Clear { dir: of, .. } | Step::Restore { dir: of, .. } => of == dir,
                _ => false,
            }) || set_aside_since(project, self.until).0.contains(dir)
        };
        Ok(is_stashed || self.worktrees.contains(dir) || is_since())
    }
}

/// A worktree that is looked at.
pub(super) struct Place<'a> {
    /// None for the main checkout.
    pub(super) lane: Option<&'a LaneRecord>,
    pub(super) dir: &'a Path,
    set_aside: &'a SetAside,
}

impl AutoSnapshots {
    /// Looks at the main checkout and at the lanes, and takes a snapshot of what has changed since the last pass.
    fn pass(&mut self, project: &Project) -> Result<(), Error> {
        let (marks, set_aside) = Marks::read(project, self.marks.as_ref())?;
        self.marks = Some(marks);
        if let Some(dir) = project.repo.main_worktree()
            && at_work_in_place(project, None)?.is_none()
        {
            self.try_worktree(project, &Place { lane: None, dir, set_aside: &set_aside });
        }
        self.report_shared(project);
        let lanes = project.lanes()?;
        for lane in &lanes {
            self.report_gone(project, lane, set_aside.worktrees.contains(&lane.path));
        }
        self.gone.retain(|name, _| lanes.iter().any(|lane| lane.name == *name));
        self.worktrees
            .retain(|lane, _| lane.as_ref().is_none_or(|lane| lanes.iter().any(|known| known.name == *lane)));
        self.at_work.retain(|name, _| lanes.iter().any(|lane| lane.name == *name));
        self.passes += 1;
        for lane in &lanes {
            let place = Place { lane: Some(lane), dir: &lane.path, set_aside: &set_aside };
            if place.is_gone() && place.is_being_removed(project) {
                continue;
            }
            if !effective_state(project, lane)?.0.is_busy() {
                self.try_worktree(project, &place);
                continue;
            }
            self.worktrees.remove(&Some(lane.name.clone()));
            if (place.is_gone() || self.passes.is_multiple_of(SELDOM))
                && let Err(e) = self.lane_at_work(project, &place, &lane.name)
            {
                project.listener.warn(e.to_string());
            }
        }
        Ok(())
    }

    /// Takes a snapshot of a lane whose own agent is at work, once it has left its files alone since the last look, or has not done so for
    /// long. What it deletes there is its own affair.
    fn lane_at_work(&mut self, project: &Project, place: &Place<'_>, name: &str) -> Result<(), Error> {
        if place.is_gone() {
            return self.report_gone_at_work(project, place, name);
        }
        let lane = self.at_work.entry(name.to_owned()).or_default();
        let Some(look) = place.look(project)? else { return Ok(()) };
        if lane.copied.as_ref().is_some_and(|known| known.value == look.value) {
            return Ok(());
        }
        if std::mem::replace(&mut lane.seen, look.value) != look.value {
            lane.restless += 1;
            if lane.restless < RESTLESS {
                return Ok(());
            }
        }
        lane.restless = 0;
        let newest = lane.copied.take().and_then(|known| known.snapshot);
        lane.copied = Some(place.take(project, &look, newest.as_deref())?);
        prune(project, Some(name))
    }

    /// Writes an event if the folder of a lane is gone with what was copied while its agent was at work.
    fn report_gone_at_work(&mut self, project: &Project, place: &Place<'_>, name: &str) -> Result<(), Error> {
        let known = self.at_work.remove(name).and_then(|lane| lane.copied);
        known.and_then(|known| known.snapshot).map_or(Ok(()), |id| place.report_loss(project, &id, None))
    }

    /// Writes an event if settings or hooks of the repository have changed since the last pass.
    fn report_shared(&mut self, project: &Project) {
        let now = shared_settings(project);
        let before = self.shared.replace(now.clone());
        if let Some(changed) = before.and_then(|before| changed_settings(&before, &now)) {
            let message = format!("{changed} of the repository changed while agents were at work");
            project.tell_event(Event::now(Name::RepositoryChanged, message));
        }
    }

    /// Writes an event if a lane's worktree has been gone for two passes, in which git-proq did nothing: what removes a lane takes
    /// a moment. What was uncommitted there has an event of its own.
    fn report_gone(&mut self, project: &Project, lane: &LaneRecord, on_purpose: bool) {
        let is_there = lane.path.join(".git").exists() && project.repo.is_own_worktree(&lane.path);
        let Some(passes) = self.gone.get_mut(&lane.name) else {
            if is_there {
                self.gone.insert(lane.name.clone(), 0);
            }
            return;
        };
        *passes = if is_there || on_purpose { 0 } else { *passes + 1 };
        if *passes == 2 {
            let (path, branch) = (quoted_path(&lane.path), &lane.place.branch);
            let message = format!(
                "the worktree of lane '{}' is gone; bring it back: git worktree add -f {path} {branch}",
                lane.name
            );
            let mut event = Event::now(Name::RepositoryChanged, message);
            event.lane = Some(lane.name.clone());
            project.tell_event(event);
        }
    }

    fn try_worktree(&mut self, project: &Project, place: &Place<'_>) {
        if let Err(e) = self.worktree(project, place) {
            project.listener.warn(e.to_string());
        }
    }

    fn worktree(&mut self, project: &Project, place: &Place<'_>) -> Result<(), Error> {
        let name = place.lane.map(|lane| lane.name.clone());
        if place.is_gone() {
            if let Some(id) = self.worktrees.remove(&name).and_then(|known| known.snapshot) {
                place.report_loss(project, &id, None)?;
            }
            return name.map_or(Ok(()), |name| self.report_gone_at_work(project, place, &name));
        }
        if let Some(name) = &name {
            self.at_work.remove(name);
        }
        let before = self.worktrees.get(&name).cloned();
        let Some(look) = place.look(project)? else { return Ok(()) };
        if before.as_ref().is_some_and(|known| known.value == look.value) {
            return Ok(());
        }
        let newest = before.and_then(|known| known.snapshot);
        if let Some(id) = &newest
            && !has_autostash(&look.git_dir)
            && !place.set_aside.holds(project, place.dir)?
        {
            place.report_loss(project, id, Some(&look.git_dir))?;
        }
        let known = place.take(project, &look, newest.as_deref())?;
        self.worktrees.insert(name, known);
        prune(project, place.lane.map(|lane| &*lane.name))
    }
}

/// How a worktree looks at one moment.
struct Look {
    git_dir: PathBuf,
    ignored: IgnoredFiles,
    /// Differs where anything that is copied does.
    value: u64,
}

impl Place<'_> {
    pub(super) fn in_words(&self) -> String {
        self.lane.map_or_else(|| "the main checkout".to_owned(), |lane| format!("lane '{}'", lane.name))
    }

    fn is_gone(&self) -> bool {
        self.dir.join(".git").symlink_metadata().is_err()
    }

    /// Whether git-proq itself removes the lane, or has done so.
    fn is_being_removed(&self, project: &Project) -> bool {
        let Some(lane) = self.lane else { return false };
        let moves = |step: &Step| matches!(step, Step::Move { from, .. } if *from == lane.path);
        let is_gone = project.lane(&lane.name).map_or(true, |now| now.created != lane.created);
        is_gone || recover::is_under_way(project, moves)
    }

    /// None where git is at work there: half of what it writes may be there.
    fn look(&self, project: &Project) -> Result<Option<Look>, Error> {
        let git_dir = project.repo.git_dir_of(self.dir)?;
        if is_locked(&git_dir) {
            return Ok(None);
        }
        let stamp = WorktreeStamp::read(&project.repo, self.dir, &git_dir)?;
        let limit = project.settings.snapshot_ignored;
        let ignored = IgnoredFiles::find(self.dir, &stamp.ignored, &project.lanes_dir(), limit);
        let value = stamp.value ^ ignored.value.rotate_left(1);
        Ok(Some(Look { git_dir, ignored, value }))
    }

    /// Takes a snapshot if anything is uncommitted. `before` is the one before it.
    fn take(&self, project: &Project, look: &Look, before: Option<&str>) -> Result<Known, Error> {
        let Look { ignored, value, .. } = look;
        let Some(head) = project.repo.head_of(self.dir)? else {
            return Ok(Known { value: *value, snapshot: None });
        };
        let layout = project.store.layout();
        let why = format!("uncommitted in {} while agents were at work", self.in_words());
        let checkout = Checkout::lock(project, self.dir)?;
        let id = new_id();
        let copies = before.map(|id| layout.snapshot_ignored(id));
        let copied = ignored.copy(self.dir, &layout.snapshot_ignored(&id), copies.as_deref())?;
        // What was written to at the same time is copied at the next pass.
        let value = if copied.len() == ignored.files.len() { *value } else { !*value };
        let nothing_ignored = copied.is_empty();
        let automatic = Automatic {
            lane: self.lane.map(|lane| lane.name.clone()),
            named: false,
            ignored: copied,
            too_large: ignored.too_large.clone(),
        };
        let keep = |snapshot, raw: &Path| {
            let record =
                SnapRecord { id: id.clone(), automatic: Some(automatic), ..SnapRecord::copy(&why, snapshot) };
            snaps::put(project, &record, raw)
        };
        let taken = checkout.describe_unmerged(head, &why, !nothing_ignored, keep)?;
        Ok(Known { value, snapshot: taken.map(|()| id) })
    }
}

/// Deletes automatic snapshots of a worktree that newer ones stand for, and those that are very old.
fn prune(project: &Project, lane: Option<&str>) -> Result<(), Error> {
    let mut all = Vec::new();
    for id in project.snap_ids()?.into_iter().rev() {
        let Ok(Some(record)) = project.find_any_snap(&id) else { continue };
        // One that came back to a worktree is kept like any other: an undo may want it.
        let is_own = |automatic: &Automatic| automatic.lane.as_deref() == lane && !automatic.named;
        if record.copy && record.automatic.as_ref().is_some_and(is_own) {
            all.push((id, record.at));
        }
    }
    let moments: Vec<Moment> = all.iter().map(|(_, at)| *at).collect();
    for ((id, _), stays) in all.iter().zip(which_stay(&moments, now())) {
        if !stays {
            snaps::delete_automatic(project, id)?;
        }
    }
    Ok(())
}

/// Which of the snapshots of these moments, the newest first, are kept.
fn which_stay(moments: &[Moment], now: Moment) -> Vec<bool> {
    let mut last: Option<Moment> = None;
    let decide = |(n, at): (usize, &Moment)| {
        let is_apart = last.is_none_or(|last| last.since(*at) >= SPAN);
        let stays = n < NEWEST || (is_apart && now.since(*at) < LONGEST);
        if stays {
            last = Some(*at);
        }
        stays
    };
    moments.iter().enumerate().map(decide).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_of_older_ones_one_for_each_span() {
        let now = now();
        let minutes = |ages: &[u64]| -> Vec<Moment> {
            ages.iter().map(|age| now.before(Duration::from_mins(*age))).collect()
        };
        let ages = [0, 0, 1, 1, 2, 3, 11, 12, 13, 22, 40, 24 * 60 - 1, 24 * 60 + 1];
        let kept = which_stay(&minutes(&ages), now);
        let kept: Vec<u64> = ages.iter().zip(kept).filter(|(_, stays)| *stays).map(|(age, _)| *age).collect();
        assert_eq!(kept, [0, 0, 1, 1, 2, 12, 22, 40, 24 * 60 - 1]);
    }

    #[test]
    fn all_passes_together_take_a_small_share_of_the_time() {
        let seconds = Duration::from_secs;
        assert_eq!(pause_after(seconds(1), seconds(1)), Duration::ZERO);
        assert_eq!(pause_after(seconds(3), seconds(20)), seconds(180));
        assert_eq!(pause_after(seconds(3), seconds(500)), Duration::ZERO);
    }
}
