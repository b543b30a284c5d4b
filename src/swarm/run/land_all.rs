//! Owns what becomes of a batch in the end: a lane by which all of it lands on its base, and tidying up.

use std::path::PathBuf;

use crate::git::{Oid, WorktreeList};
use crate::lane::{self, Base, Name, NewLane, Operation, Project, Why, effective_state, operate};
use crate::preview;
use crate::store::records::{Landed, LaneRecord, Tree};
use crate::store::{LockName, new_id, now};
use crate::swarm::batch::{Batch, BatchRecord, all as all_batches, runs};
use crate::swarm::schedule::{Fate, Outcome};
use crate::swarm::{BatchError, Error, Ledger};

use super::evidence::lanes_of;
use super::known::Known;

/// What the names of lanes by which batches land begin with.
const LANDING: &str = "swarm-";

/// The name of the lane by which a batch lands.
fn landing_name(id: &str) -> String {
    format!("{LANDING}{id}")
}

/// The lane by which a batch lands on its base, with all that has landed on the batch's own branch so far: an ordinary one, so
/// that it is checked, landed and, where it conflicts, resolved like any other; and whether it was made only now.
///
/// # Errors
/// [`BatchError::NothingToLand`].
pub(crate) fn landing_lane(project: &Project, batch: &BatchRecord) -> Result<(LaneRecord, bool), Error> {
    let tip = tip_to_land(project, batch)?;
    let (lane, is_new) = match project.lane(&landing_name(&batch.id)) {
        Ok(lane) => (bring_forward(project, batch, lane, tip)?, false),
        Err(lane::Error::Unknown { .. }) => match make(project, batch, tip) {
            // Somebody else wants to land it, too, and was faster.
            Err(Error::Lane(e)) if e.is_taken() => {
                (bring_forward(project, batch, project.lane(&landing_name(&batch.id))?, tip)?, false)
            }
            made => (made?, true),
        },
        Err(e) => return Err(e.into()),
    };
    if lane.start == batch.start {
        return Ok((lane, is_new));
    }
    // What is the batch's own begins there; also where whoever made the lane did not get as far as this.
    project.update_lane(&lane.name, |record| record.start = batch.start)?;
    Ok((project.lane(&lane.name)?, is_new))
}

/// The lane by which a batch would land.
#[derive(Debug)]
pub(crate) struct LandingAhead {
    /// The lane.
    pub(crate) lane: LaneRecord,
    /// Whether it is there, with all that has landed on the batch's branch.
    pub(crate) is_on_record: bool,
}

/// What [`landing_lane`] would make or find, without a change. A lane that is not there has the batch's own branch, and no
/// worktree.
///
/// # Errors
/// As those of [`landing_lane`].
pub(crate) fn landing_ahead(project: &Project, batch: &BatchRecord) -> Result<LandingAhead, Error> {
    let tip = tip_to_land(project, batch)?;
    let lane = match project.lane(&landing_name(&batch.id)) {
        Ok(lane) if !is_behind(project, batch, &lane, tip)? => {
            return Ok(LandingAhead { lane, is_on_record: true });
        }
        Ok(lane) => lane,
        Err(lane::Error::Unknown { .. }) => {
            let about = about(batch);
            let plan = lane::plan(project, new_lane(batch, &about, tip)?)?;
            let title = lane::plain_title(&about).unwrap_or_else(|| plan.name.to_string());
            let place = Tree { branch: plan.branch, worktree_id: plan.name.to_string() };
            let lane = LaneRecord::new(plan.name.as_str(), place, plan.path, batch.base.clone(), batch.start);
            LaneRecord { title, ..lane }
        }
        Err(e) => return Err(e.into()),
    };
    let place = Tree { branch: batch.branch.clone(), ..lane.place.clone() };
    let path = project.store.layout().lane(&lane.name).join("ahead");
    Ok(LandingAhead { lane: LaneRecord { place, path, start: batch.start, ..lane }, is_on_record: false })
}

/// The tip of a batch's branch, with what is to land.
fn tip_to_land(project: &Project, batch: &BatchRecord) -> Result<Oid, Error> {
    let nothing = |why: String| Error::from(BatchError::NothingToLand { why });
    if batch.auto_merge {
        return Err(nothing(format!("the tasks of batch {} land on {} themselves", batch.id, batch.base)));
    }
    if batch.cleaned.is_some() {
        return Err(BatchError::Cleaned { id: batch.id.clone() }.into());
    }
    let Some(tip) = project.repo.branch_tip(&batch.branch)? else {
        let (id, branch, tip) = (batch.id.clone(), batch.branch.clone(), last_tip(project, batch)?);
        return Err(BatchError::BranchGone { id, branch, tip: tip.map(Oid::short) }.into());
    };
    if tip == batch.start {
        return Err(nothing(format!("nothing of batch {} has landed on {} yet", batch.id, batch.branch)));
    }
    Ok(tip)
}

/// Removes such a lane again, which was made to see only whether it would land.
///
/// # Errors
/// As those of any removal.
pub(crate) fn drop_landing_lane(project: &Project, name: &str) -> Result<(), Error> {
    operate(project, "cleanup", |op| preview::retire(op, name, Why::Tidy, true).map(drop))?;
    Ok(())
}

fn make(project: &Project, batch: &BatchRecord, tip: Oid) -> Result<LaneRecord, Error> {
    let about = about(batch);
    Ok(lane::create(project, &lane::plan(project, new_lane(batch, &about, tip)?)?)?.lane)
}

/// What a batch is about, in a line.
fn about(batch: &BatchRecord) -> String {
    if batch.summary.is_empty() { batch.sources.join(" ") } else { batch.summary.clone() }
}

/// What the lane is made with by which a batch lands.
fn new_lane<'a>(batch: &BatchRecord, about: &'a str, tip: Oid) -> Result<NewLane<'a>, Error> {
    Ok(NewLane {
        name: Some(Name::parse(&landing_name(&batch.id))?),
        prompt: None,
        words: Some(about),
        agent: None,
        base: Base { branch: batch.base.clone(), start: tip },
        carry: None,
        checks: Vec::new(),
        scope: Vec::new(),
        sparse: false,
        auto_merge: false,
        group: None,
        batch: None,
        given: lane::Given::Nothing,
    })
}

/// Takes in what has landed on the batch's branch since the lane was made.
fn bring_forward(
    project: &Project,
    batch: &BatchRecord,
    lane: LaneRecord,
    tip: Oid,
) -> Result<LaneRecord, Error> {
    if !is_behind(project, batch, &lane, tip)? {
        return Ok(lane);
    }
    let (lane, _lock) = project.hold_idle(&lane.name)?;
    lane::put_back(project, &lane, tip, &format!("more of batch {} has landed", batch.id))?;
    Ok(project.lane(&lane.name)?)
}

/// Whether a landing lane lacks what has landed on the batch's branch since, up to `tip`.
///
/// # Errors
/// [`BatchError::NothingToLand`] when it has commits of its own besides.
fn is_behind(project: &Project, batch: &BatchRecord, lane: &LaneRecord, tip: Oid) -> Result<bool, Error> {
    let repo = &project.repo;
    let Some(own) = repo.branch_tip(&lane.place.branch)? else { return Ok(false) };
    if repo.is_ancestor(tip, own)? {
        return Ok(false);
    }
    if !repo.is_ancestor(own, tip)? {
        let why = format!(
            "more of batch {} has landed on {} since lane '{2}' was made, which has commits of its own: land that first with \
             git proq merge {2}",
            batch.id, batch.branch, lane.name
        );
        return Err(BatchError::NothingToLand { why }.into());
    }
    Ok(true)
}

/// A batch that nobody runs now and whose branch has what its base lacks.
#[derive(Debug)]
pub(crate) struct Unlanded {
    /// The batch.
    pub(crate) batch: BatchRecord,
    /// What became of it, in words that follow its name: [`OVER`], or why it can go on.
    pub(crate) state: &'static str,
}

/// What is said of a batch all of whose tasks have come to an end.
pub(crate) const OVER: &str = "is over";

/// Batches that nobody runs now and whose branches have what their bases lack. What cannot be read is not among them.
pub(crate) fn unlanded(project: &Project) -> Vec<Unlanded> {
    let mut all = all_batches(project, false);
    all.retain(|batch| !batch.auto_merge);
    let found = |batch: BatchRecord| {
        let state = state_if_unlanded(project, &batch).ok().flatten()?;
        Some(Unlanded { batch, state })
    };
    all.into_iter().filter_map(found).collect()
}

/// Where the branch of a batch is, or was by the log if somebody has deleted it. None where neither is known.
fn last_tip(project: &Project, batch: &BatchRecord) -> Result<Option<Oid>, Error> {
    if let Some(tip) = project.repo.branch_tip(&batch.branch)? {
        return Ok(Some(tip));
    }
    if batch.cleaned.is_some() {
        return Ok(None);
    }
    let read = Batch::load(project, &batch.id)?;
    let last = Known::of(&read, &read.log(project)?).tips.last().copied();
    Ok(last.filter(|last| project.repo.has_object(*last)))
}

/// How a batch gets to its base, as a hint: the command that brings its branch back if that is gone, or else the one that lands it, on
/// the branch that is checked out now if its base is gone. `what` is what the plain command does.
pub(crate) fn how_to_land(project: &Project, batch: &BatchRecord, what: &str) -> String {
    let BatchRecord { id, branch, base, .. } = batch;
    let is_there = |branch: &str| project.repo.branch_tip(branch).is_ok_and(|tip| tip.is_some());
    if !is_there(branch)
        && let Ok(Some(tip)) = last_tip(project, batch)
    {
        return format!("bring its branch back first: git branch {branch} {}", tip.short());
    }
    if is_there(base) {
        return format!("{what}: git proq merge --batch {id}");
    }
    let worktrees = WorktreeList::read(&project.repo).ok();
    let main = worktrees.as_ref().and_then(|all| all.at(project.repo.main_worktree()?)?.branch.clone());
    let now = main.filter(|now| !project.is_own_branch(now)).unwrap_or_else(|| "BRANCH".to_owned());
    format!("land it on {now}: git proq merge --batch {id} --onto {now}")
}

/// Refuses to land a batch on its base where that is gone.
///
/// # Errors
/// [`BatchError::BaseGone`].
pub(crate) fn require_base(project: &Project, batch: &BatchRecord) -> Result<(), Error> {
    if batch.auto_merge || project.repo.branch_tip(&batch.base)?.is_some() {
        return Ok(());
    }
    let (id, base, help) = (batch.id.clone(), batch.base.clone(), how_to_land(project, batch, "land it"));
    Err(BatchError::BaseGone { id, base, help }.into())
}

fn state_if_unlanded(project: &Project, batch: &BatchRecord) -> Result<Option<&'static str>, Error> {
    if last_tip(project, batch)?.is_none_or(|tip| tip == batch.start) || landed_on(project, batch)?.is_some()
    {
        return Ok(None);
    }
    let read = Batch::load(project, &batch.id)?;
    let state = read.state(&read.log(project)?);
    Ok(match state.outcome_if_over() {
        Some(Outcome::Complete | Outcome::Partly) => Some(OVER),
        _ if runs(project, &batch.id)? => None,
        Some(Outcome::Stopped) => Some("was stopped"),
        Some(Outcome::Aborted) => Some("was aborted"),
        None if state.pause_reason().is_some() => Some("is paused"),
        None => Some("was interrupted"),
    })
}

/// The branch that has all that landed on a batch's own branch: its base, or where that is gone, another one that it landed on.
///
/// # Errors
/// When the repository cannot be read.
pub(crate) fn landed_on(project: &Project, batch: &BatchRecord) -> Result<Option<String>, Error> {
    let repo = &project.repo;
    let tip = if batch.auto_merge { None } else { last_tip(project, batch)? };
    let Some(tip) = tip.filter(|tip| *tip != batch.start) else { return Ok(None) };
    let base = repo.branch_tip(&batch.base)?;
    if let Some(base) = base
        && repo.is_ancestor(tip, base)?
    {
        return Ok(Some(batch.base.clone()));
    }
    // A landing in one commit, or in new ones, leaves the branch beside its base.
    for landed in landings_anywhere(project, &batch.id) {
        if landed.tip == tip
            && (base.is_none() || landed.onto == batch.base)
            && let Some(tip) = repo.branch_tip(&landed.onto)?
            && repo.has_object(landed.commit)
            && repo.is_ancestor(landed.commit, tip)?
        {
            return Ok(Some(landed.onto));
        }
    }
    Ok(None)
}

/// The landings by the lane of a batch, on any branch.
fn landings_anywhere(project: &Project, id: &str) -> Vec<Landed> {
    let name = landing_name(id);
    let past = project.past_lanes().into_iter().map(|(_, lane)| lane).chain(project.lane(&name));
    past.filter(|lane| lane.name == name).filter_map(|lane| lane.landed).collect()
}

/// The name of the batch that lands by a lane of this name.
pub(super) fn landing_of(lane: &str) -> Option<&str> {
    lane.strip_prefix(LANDING)
}

/// The batch that lands by a lane of this name, and the tips of it that have landed.
pub(crate) fn landed_by(project: &Project, lane: &str) -> Option<(BatchRecord, Vec<Oid>)> {
    let id = landing_of(lane)?;
    let batch = all_batches(project, false).into_iter().find(|batch| batch.id == id)?;
    let tips = landings_anywhere(project, id).into_iter().map(|landed| landed.tip).collect();
    Some((batch, tips))
}

/// Refuses a strict batch of which it is not known that what is on its branch meets its criteria.
///
/// # Errors
/// [`BatchError::NotMet`].
pub(crate) fn require_met(project: &Project, batch: &BatchRecord) -> Result<(), Error> {
    if !batch.strict || batch.criteria.is_empty() {
        return Ok(());
    }
    let tip = project.repo.branch_tip(&batch.branch)?;
    let why = match batch.proof(project).filter(|proof| proof.done && Some(proof.tip) == tip) {
        Some(proof) if proof.is_met() => return Ok(()),
        Some(proof) => proof.in_words(),
        None => "its criteria were not looked at yet".to_owned(),
    };
    Err(BatchError::NotMet { id: batch.id.clone(), why }.into())
}

/// Refuses to have landings taken back of a batch that builds on them, by the records that they wrote: while it goes on, and, without
/// `force`, as long as it may.
///
/// # Errors
/// [`BatchError::BuiltOn`].
pub(crate) fn require_none_open(
    project: &Project,
    records: &[PathBuf],
    (force, forced): (bool, Option<String>),
) -> Result<(), Error> {
    match first_open(project, records, force)? {
        Some((id, runs)) => Err(BatchError::BuiltOn { id, runs, forced }.into()),
        None => Ok(()),
    }
}

/// The first batch that builds on landings, by the records that those wrote, and whether it goes on now. With `running`, one that does
/// not counts as none.
///
/// # Errors
/// When the log of a batch cannot be read.
pub(crate) fn first_open(
    project: &Project,
    records: &[PathBuf],
    running: bool,
) -> Result<Option<(String, bool)>, Error> {
    for id in records.iter().filter_map(|path| project.store.layout().batch_of(path)) {
        // One that is gone, or cannot be read any more, builds on nothing.
        let Ok(read) = Batch::load(project, &id) else { continue };
        let lines = read.log(project)?;
        let over = matches!(read.state(&lines).outcome_if_over(), Some(Outcome::Complete | Outcome::Partly));
        let runs = runs(project, &id)?;
        if runs || !(over || running || read.record.cleaned.is_some()) {
            return Ok(Some((id, runs)));
        }
    }
    Ok(None)
}

/// What is left of a batch that was cleaned up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tidied {
    /// The lanes that went.
    pub(crate) lanes: Vec<String>,
    /// The ref that keeps what had landed on its branch only.
    pub(crate) saved: Option<String>,
}

/// Refuses where a lane has work that would go with it.
fn refuse_work(project: &Project, id: &str, lanes: &[LaneRecord]) -> Result<(), Error> {
    let worktrees = WorktreeList::read(&project.repo)?;
    let mut kept = Vec::new();
    for lane in lanes {
        match lane::refuse(lane, &lane::gather_evidence(project, lane, &worktrees)?, false) {
            Ok(()) => {}
            Err(lane::Error::Kept { name, why, .. }) => kept.push(format!("'{name}' ({})", why.join("; "))),
            Err(e) => return Err(e.into()),
        }
    }
    match kept.is_empty() {
        true => Ok(()),
        false => Err(BatchError::Kept { id: id.to_owned(), lanes: kept }.into()),
    }
}

/// Removes the lanes of a batch, with everything in them saved, and its branch, as one operation. With `only_look` nothing is
/// changed.
///
/// # Errors
/// While it goes on; and without `force` where a lane has work that is nowhere else, or tasks have landed on its branch that its
/// base does not have.
pub(crate) fn clean_up(
    project: &Project,
    batch: &BatchRecord,
    force: bool,
    only_look: bool,
) -> Result<Tidied, Error> {
    let id = &batch.id;
    if batch.cleaned.is_some() {
        return Err(BatchError::Cleaned { id: id.clone() }.into());
    }
    let goes_on = |agents| BatchError::GoesOn { id: id.clone(), agents };
    let lock = project.store.locks().try_take(&LockName::Batch(id.clone()))?;
    let _lock = lock.ok_or_else(|| goes_on(false))?;
    let mut lanes: Vec<LaneRecord> = lanes_of(project, id)?.into_iter().map(|(_, lane)| lane).collect();
    lanes.extend(project.lane(&landing_name(id)).ok());
    for lane in &lanes {
        if effective_state(project, lane)?.0.is_busy() {
            return Err(goes_on(true).into());
        }
    }
    let tip = if batch.auto_merge { None } else { last_tip(project, batch)? };
    let open = match (tip, project.repo.branch_tip(&batch.base)?) {
        (Some(tip), Some(base)) => tip != batch.start && !lane::is_contained(project, tip, base)?,
        (Some(tip), None) => tip != batch.start && landed_on(project, batch)?.is_none(),
        (None, _) => false,
    };
    if !force {
        refuse_work(project, id, &lanes)?;
    }
    if open && !force {
        let read = Batch::load(project, id)?;
        let state = read.state(&read.log(project)?);
        let landed = |task: &usize| state.fate(*task) == Some(Fate::Landed);
        let count = (0..read.tasks.len()).filter(landed).count();
        let (id, base, help) = (id.clone(), batch.base.clone(), how_to_land(project, batch, "land them"));
        return Err(BatchError::NotLanded { id, count, base, help }.into());
    }
    let names: Vec<String> = lanes.into_iter().map(|lane| lane.name).collect();
    if only_look {
        return Ok(Tidied { lanes: names, saved: None });
    }
    let saved = operate(project, "cleanup", |op| {
        for name in &names {
            preview::retire(op, name, Why::Discard, true).map(drop)?;
        }
        let saved = tip.map(|tip| remove_branch(op, batch, tip, open)).transpose()?.flatten();
        let record = BatchRecord { cleaned: Some(now()), ..batch.clone() };
        op.save(&record, &project.store.layout().batch_record(id))?;
        Ok::<_, Error>(saved)
    })?;
    Ledger::release_all(project, id)?;
    Ok(Tidied { lanes: names, saved })
}

/// Removes the branch of a batch, which is or was at `tip`. Returns the ref that keeps that, where it is `open`: not on the base.
fn remove_branch(
    op: &Operation<'_>,
    batch: &BatchRecord,
    tip: Oid,
    open: bool,
) -> Result<Option<String>, Error> {
    let saved = open.then(|| format!("refs/proq/saved/batch-{}-{}", batch.id, new_id()));
    if let Some(name) = &saved {
        op.anchor(name, tip)?;
    }
    // Somebody may have deleted it before.
    if op.project.repo.branch_tip(&batch.branch)?.is_some() {
        op.delete_ref(&format!("refs/heads/{}", batch.branch), tip)?;
    }
    Ok(saved)
}
