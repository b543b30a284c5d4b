//! Owns what is known of all lanes at once, reconciled with git's own list of worktrees.

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use super::died::died;
use super::looks::Looks;
use super::{Error, Inbox, Project, became, conflict_now, said_last};
use crate::fault;
use crate::git::{Dirt, Distance, Missing, Oid, Sight, WorktreeList, sights as sights_of};
use crate::store::LockName;
use crate::store::records::{Activity, AnyLane, LaneRecord, LaneState};

/// One lane as a list shows it.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// Its record.
    pub(crate) lane: AnyLane,
    /// Its state now, which the record alone does not tell.
    pub(crate) state: LaneState,
    /// More about the state.
    pub(crate) detail: Option<String>,
    /// What its agent said last, while it runs.
    pub(crate) activity: Option<Activity>,
    /// Its branch's tip; none when the branch vanished.
    pub(crate) tip: Option<Oid>,
    /// Whether its folder vanished.
    pub(crate) folder_gone: bool,
    /// What its worktree lacks, if it is broken.
    pub(crate) broken: Option<Missing>,
    /// How its branch and its base relate; none when one of them is gone.
    pub(crate) distance: Option<Distance>,
    /// How many messages wait to be told to its agent.
    pub(crate) waiting: usize,
    /// What is uncommitted in it; none when that could not be found out.
    pub(crate) dirt: Option<Dirt>,
}

/// What there is to say of a run between its agent's end and its result, which a full disk may hold up.
const ENDED: &str = "its agent has ended; what came of it is being written";

/// The state of a lane, with what the locks say. `(state, detail)`.
pub(crate) fn effective_state<P>(
    project: &Project,
    lane: &LaneRecord<P>,
) -> Result<(LaneState, Option<String>), Error> {
    let claimed = lane.state.is_claimed();
    let locks = project.store.locks();
    if !claimed {
        // Something that its agent started is not over, though the agent is.
        if lane.attempt > 0 && locks.is_held(&LockName::Alive(lane.name.clone()))? {
            return Ok((LaneState::Orphaned, Some("a process of its agent lives on".into())));
        }
        return Ok((lane.state, lane.detail.clone()));
    }
    fault::point("state.claimed");
    let alive = LockName::Alive(lane.name.clone());
    if locks.is_held(&LockName::Run(lane.name.clone()))? {
        let detail = match lane.state == LaneState::Running && !locks.is_held(&alive)? {
            true => lane.detail.clone().or_else(|| Some(ENDED.to_owned())),
            false => super::activity::doing(project, lane).or_else(|| lane.detail.clone()),
        };
        return Ok((lane.state, detail));
    }
    fault::point("state.free");
    // The supervisor writes its last word before it lets go, so read that again.
    match became(project, lane) {
        Ok((_, now)) if !now.state.is_claimed() => return Ok((now.state, now.detail)),
        // That run is over, and another one has begun since the lock was looked at.
        Ok((_, now)) if now.attempt != lane.attempt => return effective_state(project, &now),
        _ => {}
    }
    if locks.is_held(&alive)? {
        return Ok((LaneState::Orphaned, Some("its supervisor is gone, its agent lives on".into())));
    }
    Ok((state_after(project, &lane.name, LaneState::Failed), Some(died(project, &lane.name))))
}

/// The state that a lane is in when a run has ended in `state`: one that was to resolve its conflict leaves it in conflict.
pub(crate) fn state_after(project: &Project, lane: &str, state: LaneState) -> LaneState {
    // One that cannot be read tells of a conflict all the same.
    if project.store.layout().resolve(lane).exists() { LaneState::Conflict } else { state }
}

/// What is known of lanes while the rest is found out.
pub(crate) struct Partly<'a, M> {
    /// The lanes.
    pub(crate) views: &'a [View],
    /// So many of them have been compared with their bases, from the first on.
    pub(crate) compared: usize,
    /// Into which of them somebody has looked.
    pub(crate) looked: &'a [bool],
    /// What else was asked for.
    pub(crate) other: Option<&'a M>,
}

/// How often is told what is known, at least.
const BEAT: Duration = Duration::from_millis(50);

/// Looks at every lane. In the checkout that others have, one that only looks has left nothing.
pub(crate) fn views(project: &Project, lanes: Vec<AnyLane>) -> Result<Vec<View>, Error> {
    views_while(project, lanes, &mut |_| {}, || ()).map(|(views, ())| views)
}

/// The same, and what `meanwhile` answers, while the disk is waited for. `tell` is told again and again what is known so far.
pub(crate) fn views_while<M>(
    project: &Project,
    lanes: Vec<AnyLane>,
    tell: &mut dyn FnMut(&Partly<'_, M>),
    meanwhile: impl FnOnce() -> M,
) -> Result<(Vec<View>, M), Error> {
    let own: Vec<usize> = (0..lanes.len()).filter(|at| lanes[*at].branch().is_some()).collect();
    let looks = Looks::of(project, own.iter().map(|at| &lanes[*at].name));
    let folders: Vec<PathBuf> = own.iter().map(|at| lanes[*at].path.clone()).collect();
    let (found, hear) = mpsc::channel();
    let each = |at: usize, dirt: Option<&Dirt>, left: Option<&[u8]>| {
        drop(found.send((own[at], dirt.cloned())));
        if let Some(bytes) = left {
            looks.keep(at, bytes);
        }
    };
    let sights = folders.iter().enumerate().map(|(at, dir)| Sight { dir, before: looks.read(at) });
    let others = || {
        let views: Result<Vec<View>, Error> = lanes.into_iter().map(|lane| view(project, lane)).collect();
        let mut rest = Rest { looked: vec![false; views.as_ref().map_or(0, Vec::len)], views: views?, hear };
        rest.compare(project, tell)?;
        let other = meanwhile();
        rest.wait(own.len(), &other, tell);
        Ok::<_, Error>((rest.views, other))
    };
    let (views, other) = sights_of(&project.repo, sights, each, others)?;
    let views = views.into_iter().map(|view| tell_rest(project, view)).collect::<Result<_, Error>>()?;
    Ok((views, other))
}

/// Lanes of which something is still to be found out.
struct Rest {
    views: Vec<View>,
    looked: Vec<bool>,
    /// What somebody found who looked into one.
    hear: mpsc::Receiver<(usize, Option<Dirt>)>,
}

impl Rest {
    /// Compares each with its base.
    fn compare<M>(&mut self, project: &Project, tell: &mut dyn FnMut(&Partly<'_, M>)) -> Result<(), Error> {
        for at in 0..self.views.len() {
            let view = &self.views[at];
            let base = view.tip.map(|_| project.repo.branch_tip(&view.lane.base)).transpose()?.flatten();
            if let (Some(tip), Some(base)) = (view.tip, base) {
                self.views[at].distance = Some(project.repo.distance(tip, base)?);
            }
            while let Ok(found) = self.hear.try_recv() {
                self.take(found);
            }
            tell(&Partly { views: &self.views, compared: at + 1, looked: &self.looked, other: None });
        }
        Ok(())
    }

    /// Waits until somebody has looked into so many of them.
    fn wait<M>(&mut self, own: usize, other: &M, tell: &mut dyn FnMut(&Partly<'_, M>)) {
        while self.looked.iter().filter(|looked| **looked).count() < own {
            match self.hear.recv_timeout(BEAT) {
                Ok(found) => self.take(found),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            let (views, looked) = (&self.views, &self.looked);
            tell(&Partly { views, compared: views.len(), looked, other: Some(other) });
        }
    }

    fn take(&mut self, (at, dirt): (usize, Option<Dirt>)) {
        self.views[at].dirt = dirt;
        self.looked[at] = true;
    }
}

/// A lane that rests is told to be done, and so is one whose conflict is over.
fn tell_rest(project: &Project, mut view: View) -> Result<View, Error> {
    (view.state, view.detail) = conflict_now::judged_anew(project, &view.lane, (view.state, view.detail));
    let Ok(lane) = view.lane.clone().with_tree() else { return Ok(view) };
    let rests = view.state == LaneState::Running
        && view.dirt.is_some()
        && super::is_idle(project, &lane)
        && super::has_work(project, &lane, view.dirt.clone())?;
    Ok(match rests {
        true => {
            View { state: LaneState::Done, detail: Some(super::RESTS.to_owned()), activity: None, ..view }
        }
        false => view,
    })
}

/// A lane without a look into its worktree, and not compared with its base.
fn view(project: &Project, lane: AnyLane) -> Result<View, Error> {
    let (state, detail) = effective_state(project, &lane)?;
    let tip = lane.branch().map(|branch| project.repo.branch_tip(branch)).transpose()?.flatten();
    let folder_gone = lane.branch().is_some() && !lane.path.exists();
    let waiting = Inbox::of(project, &lane.name).count();
    let runs = state == LaneState::Running && detail.as_deref() != Some(ENDED);
    let activity = said_last(project, &lane).filter(|_| runs);
    let broken = super::missing_in(project, &lane).ok().flatten();
    Ok(View { lane, state, detail, activity, tip, folder_gone, broken, distance: None, waiting, dirt: None })
}

/// Worktrees where lanes lie that no record knows: leftovers of a process that was killed while making one.
pub(crate) fn stray_worktrees(
    project: &Project,
    lanes: &[LaneRecord],
    worktrees: &WorktreeList,
) -> Result<Vec<PathBuf>, Error> {
    let mut out = Vec::new();
    for worktree in worktrees.iter().filter(|w| !lanes.iter().any(|l| l.path == w.path)) {
        if let Some(named) = project.name_at(&worktree.path, worktree.branch.as_deref())
            // While its name is held it is being made or removed. Its record is written before the name is let go, and so
            // looked for after that. One that cannot be read is a record all the same.
            && !project.store.locks().is_held(&LockName::Run(named.to_string()))?
            && !project.store.layout().has_lane_record(named.as_str())
        {
            out.push(worktree.path.clone());
        }
    }
    Ok(out)
}
