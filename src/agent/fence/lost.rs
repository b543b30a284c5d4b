//! Owns what becomes of branches, tags and the stash while a run lasts, whoever did it. Git asks no hook where it copies a branch or takes an
//! entry off the stash, and not this run's where a push or another program writes, so it is noticed afterwards.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::keep::{another_name, called, own_name};
use super::sight::Beside;
use crate::event::{Certainty, Event, Name};
use crate::explain::word;
use crate::git::{Move, Oid, WorktreeList};
use crate::lane::{self, BranchMoves, Error, Project};
use crate::store::records::{AnyLane, SightRecord};
use crate::store::{Layout, Record, new_id};

/// The list of what was there when the run began, each with what it led to.
const NOTED: &str = "refs";
/// The list of where HEAD of the worktrees was then.
const HEADS_AT: &str = "heads";
const HEADS: &str = "refs/heads/";
const TAGS: &str = "refs/tags/";
const NOTES: &str = "refs/notes/";
const STASH: &str = "refs/stash";
/// The start of the line in the list [`NOTED`] for a worktree whose HEAD is on no branch; its path follows.
const WORKTREE: &str = "worktree ";
/// The separator of entries in the lists that are kept of a run. A path may have line breaks, and none has this.
const END: &str = "\0";

/// How many branches, tags and notes are noted. Where there are more, none of them is compared.
const MOST: usize = 50_000;

/// Notes where branches, tags, notes and worktrees without a branch are, and what the stash has. What cannot be read is not compared later.
pub(super) fn note(project: &Project, fence: &Path) {
    let mut refs = users_refs(project).unwrap_or_default();
    refs.truncate(if refs.len() > MOST { 0 } else { MOST });
    refs.extend(project.repo.stash_entries().into_iter().map(|entry| (STASH.to_owned(), entry)));
    let worktrees = WorktreeList::read(&project.repo).ok();
    let detached = worktrees.iter().flat_map(WorktreeList::iter).filter(|worktree| worktree.branch.is_none());
    refs.extend(detached.filter_map(|worktree| {
        let head = worktree.head(&project.repo).ok().flatten()?;
        Some((format!("{WORKTREE}{}", worktree.path.display()), head))
    }));
    let lines: Vec<String> = refs.iter().map(|(name, id)| format!("{id} {name}{END}")).collect();
    let lines = lines.concat();
    // Without it nothing is compared, and without the other one nothing explained.
    drop(std::fs::write(Layout::fence_list(fence, NOTED), lines));
    let last = |dir: &Path| Some(at(dir, project.repo.last_move(dir).ok()?.as_ref()?) + END);
    let worktrees = worktrees.iter().flat_map(WorktreeList::iter);
    let heads: String = worktrees.filter_map(|worktree| last(&worktree.path)).collect();
    drop(std::fs::write(Layout::fence_list(fence, HEADS_AT), heads));
}

/// Branches, tags and notes. Those that git keeps of a remote come back with a fetch.
fn users_refs(project: &Project) -> Result<Vec<(String, Oid)>, Error> {
    Ok(project.repo.refs_below_any(&[HEADS, TAGS, NOTES])?)
}

/// Keeps what was on a branch, a tag, notes, the stash or in a worktree without a branch when a run began, or where an operation of
/// git-proq left a branch since, and is below no ref any more, and tells of it; tells, too, where a base or an idle lane's branch was moved
/// by none of the ways that are known.
pub(super) fn keep(project: &Project, lane: &AnyLane, fence: &Path) -> Result<(), Error> {
    let text = std::fs::read_to_string(Layout::fence_list(fence, NOTED)).unwrap_or_default();
    let whole = text.split_inclusive(END).filter_map(|line| line.strip_suffix(END));
    let noted = whole.filter_map(|line| line.split_once(' '));
    let noted: Vec<(&str, Oid)> =
        noted.filter_map(|(id, name)| Some((name, Oid::from_hex(id.as_bytes())?))).collect();
    let now: HashMap<String, Oid> = users_refs(project)?.into_iter().collect();
    let Some(known) = Known::of(project, lane, fence)? else { return Ok(()) };
    let changed = known.changed(&noted, &now, lane);
    if changed.is_empty() {
        return Ok(());
    }
    let ids: Vec<Oid> = changed.iter().map(|(_, was)| *was).collect();
    let alone = project.repo.unkept(&ids)?;
    let mut saved: HashMap<Oid, String> = HashMap::new();
    let mut failed = None;
    for (name, was) in changed {
        let now = now.get(name).copied();
        let is_lost = alone.contains(&was) && !known.leaves(name, was);
        let is_strange = known.watched.contains(name) && !known.is_moved(name) && !known.brings(now);
        if !is_lost && !is_strange {
            continue;
        }
        if is_lost && !saved.contains_key(&was) {
            let infix = if name == STASH { "stash-" } else { "" };
            let kept = format!("refs/proq/saved/{}-{infix}{}", lane.name, new_id());
            // One that cannot be kept is no reason to lose the others.
            if let Err(e) = project.repo.create_ref(&kept, was, "git-proq: gone while an agent ran") {
                failed = Some(e);
                continue;
            }
            saved.insert(was, kept);
        }
        tell(project, lane, name, (was, now), saved.get(&was).map(String::as_str));
    }
    failed.map_or(Ok(()), |e| Err(e.into()))
}

/// Reasons why a ref that moved or went while a run lasted is no loss: operations of git-proq, other agents and the user did it on
/// purpose.
struct Known<'a> {
    project: &'a Project,
    /// The worktree of the run, where it has one of its own.
    own: Option<&'a Path>,
    worktrees: WorktreeList,
    /// How operations of git-proq moved branches since, by their full names.
    moved: BTreeMap<String, BranchMoves>,
    /// The branches of lanes that agents were at work in.
    busy: BTreeSet<String>,
    /// Bases, and the branches of the other lanes.
    watched: BTreeSet<String>,
    /// The worktrees whose HEAD says what was done there on purpose: those of the user's, and of lanes that agents were at work in.
    logs: Vec<PathBuf>,
    /// Where HEAD of the worktrees was when the run began.
    heads: String,
}

impl Known<'_> {
    fn of<'a>(project: &'a Project, lane: &'a AnyLane, fence: &Path) -> Result<Option<Known<'a>>, Error> {
        let Ok(Some(record)) = SightRecord::find(&Layout::fence_sight(fence)) else { return Ok(None) };
        let full = |branch: &str| format!("{HEADS}{branch}");
        let moved = lane::moved_since(project, record.operation);
        let beside = Beside::of(project, lane, &record);
        let (mut busy, mut watched) = (BTreeSet::new(), BTreeSet::from([full(&lane.base)]));
        let worktrees = WorktreeList::read(&project.repo)?;
        let mut logs = users(project, &worktrees);
        for other in project.lanes()?.into_iter().filter(|other| other.name != lane.name) {
            watched.insert(full(&other.base));
            let branch = full(&other.place.branch);
            if beside.lanes.contains(&other.name) {
                busy.insert(branch);
                logs.push(other.path);
            } else {
                watched.insert(branch);
            }
        }
        let heads = std::fs::read_to_string(Layout::fence_list(fence, HEADS_AT)).unwrap_or_default();
        Ok(Some(Known {
            project,
            own: lane.branch().filter(|_| !lane.works_in_place()).map(|_| lane.path.as_path()),
            worktrees,
            moved: moved.into_iter().map(|(branch, moves)| (full(&branch), moves)).collect(),
            busy,
            watched,
            logs,
            heads,
        }))
    }

    /// The refs and worktrees, with what each led to, that do not lead there `now`: of those that were `noted` when the run began, and of
    /// branches that operations of git-proq left somewhere since. By name, each once.
    fn changed<'n>(
        &'n self,
        noted: &[(&'n str, Oid)],
        now: &HashMap<String, Oid>,
        lane: &AnyLane,
    ) -> Vec<(&'n str, Oid)> {
        let stash: HashSet<Oid> = self.project.repo.stash_entries().into_iter().collect();
        let own = lane.commits_to().map(|branch| format!("{HEADS}{branch}"));
        let differs = |(name, was): &(&str, Oid)| match *name {
            STASH => !stash.contains(was),
            name if name.starts_with(WORKTREE) => self
                .worktrees
                .iter()
                .all(|worktree| name[WORKTREE.len()..] != *worktree.path.to_string_lossy()),
            name => now.get(name) != Some(was) && own.as_deref() != Some(name),
        };
        // What an operation moved a branch away from is the operation's. What a lane's own agent did before it landed is that agent's.
        let is_explained = |(name, was): &(&str, Oid)| {
            let moves = self.moved.get(*name);
            moves.is_some_and(|moves| moves.from.contains(was) || moves.is_open || self.busy.contains(*name))
        };
        let left = self.moved.iter().filter(|(_, moves)| !moves.is_open);
        let left = left.filter_map(|(name, moves)| Some((name.as_str(), moves.to?)));
        let mut all: Vec<(&str, Oid)> = noted.iter().copied().filter(|one| !is_explained(one)).collect();
        all.extend(left);
        all.retain(differs);
        all.sort_unstable();
        all.dedup();
        all
    }

    fn is_moved(&self, name: &str) -> bool {
        self.moved.contains_key(name) || self.busy.contains(name)
    }

    /// Whether a branch that such a worktree is on left this commit there since, as by an amend, a reset or a rebase: the log of its HEAD
    /// has the commit, or the rebase of that branch.
    fn leaves(&self, name: &str, was: Oid) -> bool {
        self.logs.iter().any(|dir| {
            let mut moves = self.project.repo.moves(dir, "HEAD").unwrap_or_default();
            let before =
                moves.iter().position(|step| self.heads.split(END).any(|line| line == at(dir, step)));
            let since = before.unwrap_or(moves.len());
            moves.truncate(since + 1);
            moves.iter().take(since).any(|step| step.rebases(name))
                || moves.windows(2).any(|two| two[1].to == was && !two[0].switches())
        })
    }

    /// Whether HEAD of another worktree was brought where a branch is now. Where git keeps no logs that cannot be known.
    fn brings(&self, now: Option<Oid>) -> bool {
        let others = self.worktrees.iter().filter(|worktree| Some(worktree.path.as_path()) != self.own);
        let moves = others.filter_map(|worktree| self.project.repo.moves(&worktree.path, "HEAD").ok());
        let mut all = moves.flatten().peekable();
        all.peek().is_none() || all.any(|step| Some(step.to) == now)
    }
}

/// The worktrees that are no lanes' own.
fn users(project: &Project, worktrees: &WorktreeList) -> Vec<PathBuf> {
    let lanes = project.lanes().unwrap_or_default();
    let all = worktrees.iter().map(|worktree| worktree.path.clone());
    all.filter(|path| lanes.iter().all(|lane| lane.path != *path)).collect()
}

/// A move of HEAD in a worktree, as a line.
fn at(dir: &Path, step: &Move) -> String {
    format!("{} {} {}", step.to, step.at, dir.display())
}

fn tell(project: &Project, lane: &AnyLane, name: &str, (was, now): (Oid, Option<Oid>), saved: Option<&str>) {
    let at = saved.map_or_else(|| was.short(), ToOwned::to_owned);
    let what = match (name.strip_prefix(HEADS), now) {
        _ if name == STASH => format!("dropped an entry of the stash; it is kept: git stash apply {at}"),
        (Some(branch), Some(now)) => {
            let kept = if saved.is_some() { "what it was is kept" } else { "that was no landing" };
            format!("moved branch {branch} to {}; {kept}: git log {at}...{}", now.short(), word(branch))
        }
        _ if name.starts_with(WORKTREE) => {
            let (_, folder) = name.rsplit_once('/').unwrap_or_default();
            let back = another_name(project, &format!("{HEADS}{folder}"), &at);
            format!("removed the {name}, which was on no branch; what it was on is kept: {back}")
        }
        (_, now) => {
            let (does, back) = match now {
                Some(_) => ("moved", another_name(project, name, &at)),
                None => ("deleted", own_name(project, name, &at)),
            };
            let (kind, short) = called(name);
            format!("{does} {kind} {short}; what it was is there: {back}")
        }
    };
    let message = format!("while the agent of lane '{}' ran, it or somebody else {what}", lane.name);
    let mut event = Event::now(Name::LaneEscape, message);
    event.lane = Some(lane.name.clone());
    event.state = Some(lane.state.to_string());
    event.certainty = Some(Certainty::Possible);
    project.tell_event(event);
}
