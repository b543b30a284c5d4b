//! Owns the evidence for removing a lane: what would be lost, who is in it, and whether it is what it claims to be.

use std::path::{Path, PathBuf};

use super::{Checkout, Error, Misplaced, Project, effective_state, last_commit, misplaced};
use crate::explain::quoted_path;
use crate::git::{
    Dirt, Oid, Repo, RepoPath, ThrowAway, Worktree, WorktreeList, merge_commits, merge_exactly,
    open_operation, status,
};
use crate::store::records::{LaneRecord, LaneState};

/// What is known of one lane at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    /// Its branch's tip; none when the branch vanished.
    pub(crate) tip: Option<Oid>,
    /// The last commit of its branch, where that vanished and the commit is not on its base.
    pub(crate) lost: Option<Oid>,
    /// Whether its folder vanished.
    pub(crate) folder_gone: bool,
    /// What differs from HEAD in its worktree.
    pub(crate) dirt: Dirt,
    /// Commits on its branch that are not on its base, neither as such nor as content.
    pub(crate) unlanded: usize,
    /// Commits its worktree is at that are neither on its branch nor on its base: `(where, commit)`.
    pub(crate) elsewhere: Option<(String, Oid)>,
    /// Why `git worktree lock` holds it.
    pub(crate) locked: Option<String>,
    /// How folder and registration disagree.
    pub(crate) mismatch: Option<String>,
    /// Another worktree that is on its branch, which git does not delete then.
    pub(crate) in_use: Option<PathBuf>,
    /// A merge, rebase … under way in it.
    pub(crate) open: Option<&'static str>,
    /// What its agent is doing.
    pub(crate) busy: Option<LaneState>,
    /// Processes that stand in it.
    pub(crate) residents: Vec<String>,
    /// Edits made in its previews that wait for the next one, as commits that `git stash apply` reads.
    pub(crate) preview_edits: Vec<Oid>,
    /// Why its folder is no worktree any more, or none that git could tell changes in.
    pub(crate) broken: Option<String>,
    /// The command that helps then.
    pub(crate) repair: Option<String>,
    /// Why its folder, which is absent, may come back.
    pub(crate) absent: Option<String>,
    /// Whether its folder is another repository's, and stays.
    pub(crate) stays: bool,
    /// Submodules with commits that are nowhere else.
    pub(crate) submodules: Vec<String>,
    /// Other worktrees of this repository that lie in its folder.
    pub(crate) worktrees: Vec<PathBuf>,
    /// Untracked files and folders that cannot be read, so that no snapshot has them.
    pub(crate) unread: Vec<RepoPath>,
    /// Edited files that git was told not to look at.
    pub(crate) hidden: Vec<RepoPath>,
    /// Where its conflict is laid out to be resolved.
    pub(crate) resolving: Option<PathBuf>,
}

impl Evidence {
    /// Whether the worktree is there and is the lane's.
    pub(super) fn stands(&self) -> bool {
        !self.folder_gone && self.broken.is_none() && self.mismatch.is_none()
    }

    /// Takes down what is wrong with the lane's folder.
    fn note(&mut self, project: &Project, lane: &LaneRecord, found: &Misplaced) {
        let words = Some(found.in_words(lane));
        self.repair = found.help(project, lane);
        self.stays = matches!(found, Misplaced::Foreign { .. });
        match found {
            Misplaced::Absent => self.absent = words,
            found if found.is_veto() => self.mismatch = words,
            _ => self.broken = words,
        }
    }

    /// Uncommitted paths, counted for a person.
    fn uncommitted(&self) -> Option<String> {
        match self.dirt.entries.as_slice() {
            [] => None,
            [one] => Some(format!("1 uncommitted file ({})", one.path)),
            [first, rest @ ..] => Some(format!("{} uncommitted files ({}, …)", rest.len() + 1, first.path)),
        }
    }

    /// What forbids removal even with force: it could not be saved, or it is somebody else's.
    pub(crate) fn vetoes(&self) -> Vec<String> {
        let mut out = Vec::new();
        if let Some(reason) = &self.locked {
            let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            out.push(format!("its worktree is locked{reason}; git worktree unlock lets it go"));
        }
        out.extend(self.mismatch.clone());
        out.extend(self.worktrees.iter().map(|path| {
            format!(
                "the worktree {} lies in its folder; git worktree move takes it elsewhere",
                path.display()
            )
        }));
        out.extend(self.in_use.as_ref().map(|dir| format!("{} is on its branch", dir.display())));
        out
    }

    /// What helps with that, as a hint.
    pub(crate) fn help(&self) -> Option<String> {
        let whole = self.repair.as_ref().map(|command| format!("make it whole: {command}"));
        let leave = |dir: &PathBuf| format!("leave its branch: git -C {} switch --detach", quoted_path(dir));
        whole.or_else(|| self.in_use.as_ref().map(leave))
    }

    /// What would be lost or disturbed by removal; with force it is saved or ended first.
    pub(crate) fn objections(&self, base: &str) -> Vec<String> {
        let mut out = Vec::new();
        match self.busy {
            Some(LaneState::Orphaned) => out.push("its agent lives on without a supervisor".into()),
            Some(_) => out.push("its agent is running".into()),
            None => {}
        }
        out.extend(self.absent.clone());
        out.extend(self.broken.clone());
        out.extend(self.uncommitted());
        // Git takes a folder that it cannot read for an empty one.
        let dirty = self.dirt.paths();
        out.extend(
            self.unread
                .iter()
                .filter(|path| !dirty.contains(path))
                .map(|path| format!("{path}, which cannot be read")),
        );
        if let Some(first) = self.hidden.first() {
            out.push(format!("edits that git was told not to look at ({first})"));
        }
        out.extend(
            self.submodules.iter().map(|name| format!("commits in its submodule {name} that no remote has")),
        );
        match self.unlanded {
            0 => {}
            1 => out.push(format!("1 commit that is not on {base}")),
            n => out.push(format!("{n} commits that are not on {base}")),
        }
        if let Some((place, _)) = &self.elsewhere {
            out.push(format!("commits on {place}"));
        }
        out.extend(self.open.map(|what| format!("a {what} is under way in it")));
        let resolving = self.resolving.as_ref();
        out.extend(resolving.map(|dir| format!("its conflict is being resolved in {}", dir.display())));
        out.extend(self.preview_edits.iter().map(|id| {
            format!("edits made in its preview (git stash apply {} brings them here)", id.short())
        }));
        // While an agent runs they are its own.
        let strangers = if self.busy.is_none() { self.residents.as_slice() } else { &[] };
        out.extend(strangers.iter().map(|who| format!("{who} is in its folder")));
        out
    }
}

/// Looks at a lane from all sides.
pub(crate) fn gather(
    project: &Project,
    lane: &LaneRecord,
    worktrees: &WorktreeList,
) -> Result<Evidence, Error> {
    let repo = &project.repo;
    let mut evidence = look(project, lane, worktrees, None)?;
    evidence.in_use = elsewhere_on_branch(lane, worktrees);
    evidence.resolving = project.resolving(&lane.name)?.map(|open| open.path);
    let snaps = lane.preview_edits.iter().filter_map(|id| project.find_snap(id).ok().flatten());
    evidence.preview_edits = snaps.map(|snap| snap.snapshot.commit).collect();
    if evidence.stands() {
        evidence.residents = residents(&lane.path);
        evidence.unread = repo.unreadable_in(&lane.path, &evidence.dirt)?;
        if repo.has_flags(&lane.path, &repo.git_dir_of(&lane.path)?)? {
            evidence.hidden = Checkout::lock(project, &lane.path)?.hidden_edits()?;
        }
    }
    let base = lane.landed.as_ref().map_or(&lane.base, |landed| &landed.onto);
    evidence.unlanded = match (evidence.tip, project.repo.branch_tip(base)?) {
        (Some(tip), Some(base)) if lane.landed_on(&project.repo, tip, base)? => 0,
        (Some(tip), Some(base)) => unlanded(project, tip, base)?,
        (Some(tip), None) => project.repo.ahead(tip, lane.start)?,
        (None, _) => 0,
    };
    if evidence.tip.is_none() {
        evidence.lost = lost_commit(project, lane)?;
    }
    Ok(evidence)
}

/// The last commit of a lane's branch that is gone, unless its base has it.
///
/// # Errors
/// When the base cannot be read.
pub(crate) fn lost_commit(project: &Project, lane: &LaneRecord) -> Result<Option<Oid>, Error> {
    let Some(last) = last_commit(project, lane) else { return Ok(None) };
    let base = lane.landed.as_ref().map_or(&lane.base, |landed| &landed.onto);
    match project.repo.branch_tip(base)? {
        Some(base) if lane.landed_on(&project.repo, last, base)? => Ok(None),
        _ => Ok(Some(last)),
    }
}

/// The part of it that says whether the lane's branch and worktree are fit to be worked with. `dirt` is what differs in the
/// worktree, where that was looked at just now.
pub(crate) fn look(
    project: &Project,
    lane: &LaneRecord,
    worktrees: &WorktreeList,
    dirt: Option<Dirt>,
) -> Result<Evidence, Error> {
    let repo = &project.repo;
    let state = effective_state(project, lane)?.0;
    let busy = state.is_busy();
    let mut evidence = Evidence {
        tip: repo.branch_tip(&lane.place.branch)?,
        folder_gone: !lane.path.exists(),
        busy: busy.then_some(state),
        ..Evidence::default()
    };
    let worktree = worktrees.at(&lane.path);
    evidence.locked = worktree.and_then(|worktree| worktree.locked.clone());
    let is_below = |path: &PathBuf| path.starts_with(&lane.path) && *path != *lane.path && path.exists();
    evidence.worktrees = worktrees.iter().map(|other| other.path.clone()).filter(is_below).collect();
    if let Some(found) = misplaced(project, lane) {
        evidence.note(project, lane, &found);
        return Ok(evidence);
    }
    if evidence.folder_gone {
        return Ok(evidence);
    }
    let Some(worktree) = worktree else {
        // Somebody is making or removing it just now.
        evidence.note(project, lane, &Misplaced::Unrecorded(false));
        return Ok(evidence);
    };
    if let Some(found) = super::alias(project, lane)? {
        evidence.mismatch = Some(found.in_words());
        evidence.repair = Some(found.help());
        return Ok(evidence);
    }
    let git_dir = repo.git_dir_of(&lane.path)?;
    if let Some(missing) = repo.missing_in(&lane.path)? {
        evidence.broken = Some(missing.in_words().to_owned());
        evidence.repair = Some(missing.repair(repo, &lane.path, &lane.place.branch));
        return Ok(evidence);
    }
    evidence.open = open_operation(&git_dir).map(|open| open.what);
    evidence.dirt = dirt.map_or_else(|| status(repo, &lane.path, true), Ok)?;
    evidence.elsewhere = elsewhere(project, lane, worktree, evidence.tip)?;
    evidence.submodules = repo.own_submodule_commits(&git_dir);
    Ok(evidence)
}

/// A worktree that is not the lane's and is on its branch.
fn elsewhere_on_branch(lane: &LaneRecord, worktrees: &WorktreeList) -> Option<PathBuf> {
    let mut all = worktrees.on_branch(&lane.place.branch);
    all.find(|worktree| worktree.path != lane.path).map(|worktree| worktree.path.clone())
}

impl LaneRecord {
    /// Whether all of `tip` is on `base`: as such, or because that is how the lane landed there.
    pub(crate) fn landed_on(&self, repo: &Repo, tip: Oid, base: Oid) -> Result<bool, Error> {
        if repo.is_ancestor(tip, base)? {
            return Ok(true);
        }
        Ok(match &self.landed {
            Some(landed) if landed.tip == tip => repo.is_ancestor(landed.commit, base)?,
            _ => false,
        })
    }
}

/// The commit that a lane's worktree is at, where that is on neither its branch nor its base.
fn elsewhere(
    project: &Project,
    lane: &LaneRecord,
    worktree: &Worktree,
    tip: Option<Oid>,
) -> Result<Option<(String, Oid)>, Error> {
    if worktree.is_on(&lane.place.branch) {
        return Ok(None);
    }
    let Some(head) = worktree.head(&project.repo)? else { return Ok(None) };
    let base = lane.landed.as_ref().map_or(&lane.base, |landed| &landed.onto);
    for known in tip.into_iter().chain(project.repo.branch_tip(base)?) {
        if project.repo.is_ancestor(head, known)? {
            return Ok(None);
        }
    }
    let place = worktree.branch.clone().unwrap_or_else(|| format!("a detached HEAD ({})", head.short()));
    Ok(Some((place, head)))
}

/// Commits of `tip` that are not contained in `base`: zero when it is an ancestor, when merging it would change nothing,
/// exactly and to the last white space (squashed and rebased landings look like that), or when the base had the same
/// changes before it went on in the same lines.
pub(super) fn unlanded(project: &Project, tip: Oid, base: Oid) -> Result<usize, Error> {
    let repo = &project.repo;
    let ahead = repo.ahead(tip, base)?;
    if ahead == 0 {
        return Ok(0);
    }
    let merged = match merge_exactly(repo, base, tip) {
        Ok(Some(tree)) => Some(tree),
        // A decision is git's, and so is what cannot be read here.
        Ok(None) | Err(_) => merged_by_git(project, tip, base)?,
    };
    let contained = merged == Some(repo.tree_of(base)?) || repo.has_by_hand(base, tip)?;
    Ok(if contained { 0 } else { ahead })
}

/// Whether all that `tip` has is on `base`, as such or in other commits.
///
/// # Errors
/// When that cannot be found out.
pub(crate) fn is_contained(project: &Project, tip: Oid, base: Oid) -> Result<bool, Error> {
    Ok(unlanded(project, tip, base)? == 0)
}

/// The tree that git makes of `tip` merged into `base`; none when it conflicts, or cannot be merged at all, as histories
/// without a common commit cannot: then it has not landed.
fn merged_by_git(project: &Project, tip: Oid, base: Oid) -> Result<Option<Oid>, Error> {
    let scratch = project.store.layout().scratch()?;
    let aside = ThrowAway::new(&project.repo, &scratch.path().join("objects"))?;
    let merged = merge_commits(&project.repo, base, tip, scratch.path(), Some(&aside));
    Ok(merged.ok().filter(|merged| merged.clean).map(|merged| merged.tree))
}

/// How far above a process this program is looked for.
const GENERATIONS: u32 = 3;

/// Whether a process is this program looking at a lane, or a git that it asked. What it changes there it locks first.
fn is_own(pid: u32) -> bool {
    let exe = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let stat = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let me = exe(std::process::id());
    if exe(pid) == me {
        return true;
    }
    let git = stat(pid).split_once(' ').is_some_and(|(_, rest)| rest.starts_with("(git)"));
    let mut above = pid;
    for _ in 0..GENERATIONS {
        let text = stat(above);
        let parent = text.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        let Some(parent) = parent.filter(|_| git) else { return false };
        above = parent;
        if exe(above) == me {
            return true;
        }
    }
    // It may have ended since it was seen.
    exe(pid).is_none()
}

/// Other processes whose working folder lies in `dir`. Known where there is a `/proc`; elsewhere nobody is seen.
pub(super) fn residents(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let me = std::process::id();
    let mut out = Vec::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let inside = std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(dir));
        if inside && pid != me && !is_own(pid) {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            // Without a name it has ended since: a git that another command had sent to look.
            if !name.trim().is_empty() {
                out.push(format!("{} (process {pid})", name.trim()));
            }
        }
    }
    out
}
