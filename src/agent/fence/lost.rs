//! Owns what becomes of branches, tags and the stash while a run lasts, whoever did it. Git asks no hook where it copies a branch or takes an
//! entry off the stash, and not this run's where a push or another program writes, so it is noticed afterwards.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use super::keep::called;
use super::sight::Beside;
use crate::event::{Certainty, Event, Name};
use crate::explain::word;
use crate::git::{Move, Oid, WorktreeList};
use crate::lane::{self, Error, Project};
use crate::store::records::{AnyLane, SightRecord};
use crate::store::{Layout, Record, new_id};

/// The list of what was there when the run began, each with what it led to.
const NOTED: &str = "refs";
/// The list of where HEAD of the user's worktrees was then.
const HEADS_AT: &str = "heads";
const HEADS: &str = "refs/heads/";
const TAGS: &str = "refs/tags/";
const STASH: &str = "refs/stash";

/// How many branches and tags are noted. Where there are more, none of them is compared.
const MOST: usize = 50_000;

/// Notes where branches and tags are, and what the stash has. What cannot be read is not compared later.
pub(super) fn note(project: &Project, fence: &Path) {
    let mut refs = branches_and_tags(project).unwrap_or_default();
    refs.truncate(if refs.len() > MOST { 0 } else { MOST });
    refs.extend(project.repo.stash_entries().into_iter().map(|entry| (STASH.to_owned(), entry)));
    let lines: Vec<String> = refs.iter().map(|(name, id)| format!("{id} {name}\n")).collect();
    let lines = lines.concat();
    // Without it nothing is compared, and without the other one nothing explained.
    drop(std::fs::write(Layout::fence_list(fence, NOTED), lines));
    let Ok(worktrees) = WorktreeList::read(&project.repo) else { return };
    let last = |dir: &&Path| Some(at(dir, project.repo.last_move(dir).ok()?.as_ref()?) + "\n");
    let heads: String = users(project, &worktrees).iter().filter_map(last).collect();
    drop(std::fs::write(Layout::fence_list(fence, HEADS_AT), heads));
}

fn branches_and_tags(project: &Project) -> Result<Vec<(String, Oid)>, Error> {
    let mut refs = project.repo.refs_below(HEADS)?;
    refs.extend(project.repo.refs_below(TAGS)?);
    Ok(refs)
}

/// Keeps what was on a branch, a tag or the stash when a run began and is below no ref any more, and tells of it; tells, too, where a
/// base or an idle lane's branch was moved by none of the ways that are known.
pub(super) fn keep(project: &Project, lane: &AnyLane, fence: &Path) -> Result<(), Error> {
    let text = std::fs::read_to_string(Layout::fence_list(fence, NOTED)).unwrap_or_default();
    let noted = text.lines().filter_map(|line| line.split_once(' '));
    let noted: Vec<(&str, Oid)> =
        noted.filter_map(|(id, name)| Some((name, Oid::from_hex(id.as_bytes())?))).collect();
    let now: HashMap<String, Oid> = branches_and_tags(project)?.into_iter().collect();
    let stash: HashSet<Oid> = project.repo.stash_entries().into_iter().collect();
    let own = lane.commits_to().map(|branch| format!("{HEADS}{branch}"));
    let differs = |(name, was): &(&str, Oid)| match *name {
        STASH => !stash.contains(was),
        name => now.get(name) != Some(was) && own.as_deref() != Some(name),
    };
    let changed: Vec<(&str, Oid)> = noted.into_iter().filter(differs).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let Some(known) = Known::of(project, lane, fence)? else { return Ok(()) };
    let ids: Vec<Oid> = changed.iter().map(|(_, was)| *was).collect();
    let alone = project.repo.unkept(&ids)?;
    let mut saved: HashMap<Oid, String> = HashMap::new();
    let mut failed = None;
    for (name, was) in changed {
        if known.moved.contains(name) {
            continue;
        }
        let now = now.get(name).copied();
        let is_lost = alone.contains(&was) && !known.leaves(was);
        let is_strange = known.watched.contains(name) && !known.brings(now);
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
        let to = if name == STASH { None } else { now };
        tell(project, lane, name, (was, to), saved.get(&was).map(String::as_str));
    }
    failed.map_or(Ok(()), |e| Err(e.into()))
}

/// What was done on purpose while a run lasted, which explains that a ref has moved or is gone.
struct Known<'a> {
    project: &'a Project,
    /// The worktree of the run, where it has one of its own.
    own: Option<&'a Path>,
    worktrees: WorktreeList,
    /// The branches that operations of git-proq moved since, and those of lanes that agents were at work in.
    moved: BTreeSet<String>,
    /// Bases, and the branches of the other lanes.
    watched: BTreeSet<String>,
    /// Where HEAD of the worktrees of the user's was when the run began.
    heads: String,
}

impl Known<'_> {
    fn of<'a>(project: &'a Project, lane: &'a AnyLane, fence: &Path) -> Result<Option<Known<'a>>, Error> {
        let Ok(Some(record)) = SightRecord::find(&Layout::fence_sight(fence)) else { return Ok(None) };
        let full = |branch: &str| format!("{HEADS}{branch}");
        let mut moved: BTreeSet<String> =
            lane::moved_since(project, record.operation).iter().map(|branch| full(branch)).collect();
        let beside = Beside::of(project, lane, &record);
        let mut watched = BTreeSet::from([full(&lane.base)]);
        for other in project.lanes()?.into_iter().filter(|other| other.name != lane.name) {
            watched.insert(full(&other.base));
            let branch = full(&other.place.branch);
            match beside.lanes.contains(&other.name) {
                true => moved.insert(branch),
                false => watched.insert(branch),
            };
        }
        Ok(Some(Known {
            project,
            own: lane.branch().filter(|_| !lane.works_in_place()).map(|_| lane.path.as_path()),
            worktrees: WorktreeList::read(&project.repo)?,
            moved,
            watched,
            heads: std::fs::read_to_string(Layout::fence_list(fence, HEADS_AT)).unwrap_or_default(),
        }))
    }

    /// Whether a branch that a worktree of the user's is on left this commit there since, as by an amend, a reset or a rebase: the log of
    /// its HEAD has the commit.
    fn leaves(&self, was: Oid) -> bool {
        users(self.project, &self.worktrees).into_iter().any(|dir| {
            let mut moves = self.project.repo.moves(dir, "HEAD").unwrap_or_default();
            let before = moves.iter().position(|step| self.heads.lines().any(|line| line == at(dir, step)));
            moves.truncate(before.map_or(moves.len(), |before| before + 1));
            moves.windows(2).any(|two| two[1].to == was && !two[0].switches())
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
fn users<'w>(project: &Project, worktrees: &'w WorktreeList) -> Vec<&'w Path> {
    let lanes = project.lanes().unwrap_or_default();
    let all = worktrees.iter().map(|worktree| worktree.path.as_path());
    all.filter(|path| lanes.iter().all(|lane| lane.path != **path)).collect()
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
        (_, now) => {
            let (does, force) = if now.is_some() { ("moved", " -f") } else { ("deleted", "") };
            let (kind, short) = called(name);
            format!("{does} {kind} {short}; what it was is there: git {kind}{force} {} {at}", word(short))
        }
    };
    let message = format!("while the agent of lane '{}' ran, it or somebody else {what}", lane.name);
    let mut event = Event::now(Name::LaneEscape, message);
    event.lane = Some(lane.name.clone());
    event.state = Some(lane.state.to_string());
    event.certainty = Some(Certainty::Possible);
    project.tell_event(event);
}
