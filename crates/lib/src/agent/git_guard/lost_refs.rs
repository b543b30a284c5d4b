//! Detection of branches, tags and stash entries that were lost while a run lasted, whoever removed them. Git
//! runs no hook when it copies a branch or drops a stash entry, and not the hooks of this run when a push or
//! another program writes, so losses are detected afterwards.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use proq_base::explain::shell_quote;
use proq_base::time_form::unix_seconds;
use proq_git::references::reflog::ReflogEntry;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, Oid, Repo};
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::baseline::WorktreeBaselineRecord;
use proq_store::records::lane::AnyLane;

use super::save_refs::{alternate_restore_command, restore_command, split_ref_name};
use super::worktree_baseline::ConcurrentRuns;
use crate::event::log::{Certainty, Event, EventName};
use crate::lane::{Error, Project};
use crate::operation::op_log_view;
use crate::operation::op_log_view::BranchMoves;

/// Name of the guard's list of refs that existed when the run started, each with its value.
const REFS_LIST: &str = "refs";
/// Name of the guard's list of the last HEAD move in each worktree when the run started.
const HEAD_MOVES_LIST: &str = "heads";
const HEADS_PREFIX: &str = "refs/heads/";
const TAGS_PREFIX: &str = "refs/tags/";
const NOTES_PREFIX: &str = "refs/notes/";
const STASH_REF: &str = "refs/stash";
/// Prefix of the entry in [`REFS_LIST`] for a worktree whose HEAD is detached; its path follows.
const WORKTREE_PREFIX: &str = "worktree ";
/// Separator of entries in the lists of a run. A path may contain line breaks, but never this byte.
const ENTRY_SEPARATOR: &str = "\0";

/// Maximum number of branches, tags and notes that are recorded. If a repository has more, none of them is
/// compared.
const MAX_RECORDED_REFS: usize = 50_000;

/// Records the branches, tags, notes, stash entries and detached worktrees with their values. Refs that
/// cannot be read are not compared later.
pub(super) fn record_refs(repo: &Repo, guard_dir: &Path) {
    let mut refs = user_refs(repo).unwrap_or_default();
    refs.truncate(if refs.len() > MAX_RECORDED_REFS { 0 } else { MAX_RECORDED_REFS });
    refs.extend(repo.stash_entries().into_iter().map(|entry| (STASH_REF.to_owned(), entry.oid())));
    let worktrees = WorktreeList::read(repo).ok();
    let detached = worktrees.iter().flat_map(WorktreeList::iter).filter(|worktree| worktree.branch.is_none());
    refs.extend(detached.filter_map(|worktree| {
        let head = worktree.head(repo).ok().flatten()?;
        Some((format!("{WORKTREE_PREFIX}{}", worktree.path.display()), head.oid()))
    }));
    let lines: Vec<String> = refs.iter().map(|(name, id)| format!("{id} {name}{ENTRY_SEPARATOR}")).collect();
    let lines = lines.concat();
    // Without the first list nothing is compared, and without the second list no move is explained.
    drop(std::fs::write(Layout::git_guard_list(guard_dir, REFS_LIST), lines));
    let last_head_move =
        |dir: &Path| Some(head_move_line(dir, repo.last_head_move(dir).ok()?.as_ref()?) + ENTRY_SEPARATOR);
    let worktrees = worktrees.iter().flat_map(WorktreeList::iter);
    let heads: String = worktrees.filter_map(|worktree| last_head_move(&worktree.path)).collect();
    drop(std::fs::write(Layout::git_guard_list(guard_dir, HEAD_MOVES_LIST), heads));
}

/// Returns branches, tags and notes with their values. Remote-tracking refs are left out: a fetch restores
/// them.
fn user_refs(repo: &Repo) -> Result<Vec<(String, Oid)>, Error> {
    Ok(repo.refs_with_prefixes(&[HEADS_PREFIX, TAGS_PREFIX, NOTES_PREFIX])?)
}

/// Saves lost values of branches, tags, notes, stash entries and detached worktrees, and emits an event about
/// each. A value is lost when no ref reaches it any more. Values are those at the start of the run, and those
/// to which operations of git-proq moved branches since. An event is also emitted for a base or an idle
/// lane's branch that no known operation moved.
pub(super) fn save_lost_refs(project: &Project, lane: &AnyLane, guard_dir: &Path) -> Result<(), Error> {
    let text = std::fs::read_to_string(Layout::git_guard_list(guard_dir, REFS_LIST)).unwrap_or_default();
    let complete_entries =
        text.split_inclusive(ENTRY_SEPARATOR).filter_map(|line| line.strip_suffix(ENTRY_SEPARATOR));
    let id_name_pairs = complete_entries.filter_map(|line| line.split_once(' '));
    let recorded: Vec<(&str, Oid)> =
        id_name_pairs.filter_map(|(id, name)| Some((name, Oid::from_hex(id.as_bytes())?))).collect();
    let current_refs: HashMap<String, Oid> = user_refs(&project.repo)?.into_iter().collect();
    let Some(known) = KnownMoves::load(project, lane, guard_dir)? else { return Ok(()) };
    let changed_refs = known.changed_refs(&recorded, &current_refs, lane);
    if changed_refs.is_empty() {
        return Ok(());
    }
    let ids: Vec<Oid> = changed_refs.iter().map(|(_, old)| *old).collect();
    let unreferenced = project.repo.unreferenced_objects(&ids)?;
    let mut saved: HashMap<Oid, String> = HashMap::new();
    let mut failed = None;
    for (name, old) in changed_refs {
        let current = current_refs.get(name).copied();
        let is_lost = unreferenced.contains(&old) && !known.is_left_on_purpose(name, old);
        let is_unexplained = known.watched_branches.contains(name)
            && !known.has_known_move(name)
            && !known.matches_head_move(current);
        if !is_lost && !is_unexplained {
            continue;
        }
        if is_lost && !saved.contains_key(&old) {
            let infix = if name == STASH_REF { "stash-" } else { "" };
            let saved_ref = format!("refs/proq/saved/{}-{infix}{}", lane.name, new_id());
            // A value that cannot be saved must not prevent saving the others.
            if let Err(e) = project.repo.create_ref(&saved_ref, old, "git-proq: gone while an agent ran") {
                failed = Some(e);
                continue;
            }
            saved.insert(old, saved_ref);
        }
        emit_ref_loss(project, lane, name, (old, current), saved.get(&old).map(String::as_str));
    }
    failed.map_or(Ok(()), |e| Err(e.into()))
}

/// Known reasons for refs that moved or were deleted while a run lasted: operations of git-proq, other
/// agents, and intended changes by the user.
struct KnownMoves<'a> {
    repo: &'a Repo,
    /// The run's worktree, where it has one.
    own_worktree: Option<&'a Path>,
    worktrees: WorktreeList,
    /// Moves of branches by operations of git-proq since the run started, by full name.
    operation_moves: BTreeMap<String, BranchMoves>,
    /// Full names of the branches of lanes in which agents were running.
    busy_branches: BTreeSet<String>,
    /// Full names of bases, and of the branches of the other lanes.
    watched_branches: BTreeSet<String>,
    /// Worktrees whose HEAD reflogs show intended moves: those that belong to no lane, and those of lanes in
    /// which agents were running.
    trusted_worktrees: Vec<PathBuf>,
    /// Last HEAD move of each worktree at the start of the run, in the format of [`HEAD_MOVES_LIST`].
    initial_head_moves: String,
}

impl KnownMoves<'_> {
    fn load<'a>(
        project: &'a Project,
        lane: &'a AnyLane,
        guard_dir: &Path,
    ) -> Result<Option<KnownMoves<'a>>, Error> {
        let Ok(Some(record)) = WorktreeBaselineRecord::load_if_exists(&Layout::git_guard_baseline(guard_dir))
        else {
            return Ok(None);
        };
        let full_name = |branch: &str| format!("{HEADS_PREFIX}{branch}");
        let operation_moves = op_log_view::branches_moved_since(&project.store, record.last_operation);
        let concurrent_runs = ConcurrentRuns::detect(project, lane, &record);
        let (mut busy_branches, mut watched_branches) =
            (BTreeSet::new(), BTreeSet::from([full_name(&lane.base)]));
        let worktrees = WorktreeList::read(&project.repo)?;
        let mut trusted_worktrees = user_worktrees(project, &worktrees);
        for other in project.owned_lanes()?.into_iter().filter(|other| other.name != lane.name) {
            watched_branches.insert(full_name(&other.base));
            let branch = full_name(&other.kind.branch);
            if concurrent_runs.lanes.contains(&other.name) {
                busy_branches.insert(branch);
                trusted_worktrees.push(other.path);
            } else {
                watched_branches.insert(branch);
            }
        }
        let initial_heads =
            std::fs::read_to_string(Layout::git_guard_list(guard_dir, HEAD_MOVES_LIST)).unwrap_or_default();
        Ok(Some(KnownMoves {
            repo: &project.repo,
            own_worktree: lane.branch().filter(|_| !lane.works_in_place()).map(|_| lane.path.as_path()),
            worktrees,
            operation_moves: operation_moves
                .into_iter()
                .map(|(branch, moves)| (full_name(&branch), moves))
                .collect(),
            busy_branches,
            watched_branches,
            trusted_worktrees,
            initial_head_moves: initial_heads,
        }))
    }

    /// Returns the names of the refs and worktrees that no longer have an earlier value, each with that
    /// value, sorted and without duplicates. Earlier values are those in `recorded`, and those to which
    /// operations of git-proq moved branches since.
    fn changed_refs<'n>(
        &'n self,
        recorded: &[(&'n str, Oid)],
        current_refs: &HashMap<String, Oid>,
        lane: &AnyLane,
    ) -> Vec<(&'n str, Oid)> {
        let stash_entries: HashSet<Oid> = self.repo.stash_entries().into_iter().map(Oid::from).collect();
        let own_branch = lane.commit_branch().map(|branch| format!("{HEADS_PREFIX}{branch}"));
        let differs = |(name, old): &(&str, Oid)| match *name {
            STASH_REF => !stash_entries.contains(old),
            name if name.starts_with(WORKTREE_PREFIX) => self
                .worktrees
                .iter()
                .all(|worktree| name[WORKTREE_PREFIX.len()..] != *worktree.path.to_string_lossy()),
            name => current_refs.get(name) != Some(old) && own_branch.as_deref() != Some(name),
        };
        // A value from which an operation moved a branch is explained by the operation. A move by a lane's
        // own agent before its landing is explained by that agent.
        let is_explained = |(name, old): &(&str, Oid)| {
            let moves = self.operation_moves.get(*name);
            moves.is_some_and(|moves| {
                moves.old_tips.contains(&CommitId::from_oid(*old))
                    || moves.is_pending
                    || self.busy_branches.contains(*name)
            })
        };
        let settled_moves = self.operation_moves.iter().filter(|(_, moves)| !moves.is_pending);
        let settled_tips =
            settled_moves.filter_map(|(name, moves)| Some((name.as_str(), moves.new_tip?.oid())));
        let mut entries: Vec<(&str, Oid)> =
            recorded.iter().copied().filter(|entry| !is_explained(entry)).collect();
        entries.extend(settled_tips);
        entries.retain(differs);
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    /// Returns whether an operation, or an agent that was running, may have moved the branch `name`.
    fn has_known_move(&self, name: &str) -> bool {
        self.operation_moves.contains_key(name) || self.busy_branches.contains(name)
    }

    /// Returns whether a trusted worktree moved the branch `name` away from the commit `old` on purpose, as
    /// by an amend, a reset or a rebase. Its HEAD reflog since the start of the run then shows the move away
    /// from that commit, or the rebase of the branch.
    fn is_left_on_purpose(&self, name: &str, old: Oid) -> bool {
        self.trusted_worktrees.iter().any(|dir| {
            let mut moves = self.repo.reflog(dir, "HEAD").unwrap_or_default();
            let first_old = moves.iter().position(|step| {
                self.initial_head_moves.split(ENTRY_SEPARATOR).any(|line| line == head_move_line(dir, step))
            });
            let new_count = first_old.unwrap_or(moves.len());
            moves.truncate(new_count + 1);
            moves.iter().take(new_count).any(|step| step.finishes_rebase_of(name))
                || moves.windows(2).any(|pair| pair[1].new_id.oid() == old && !pair[0].is_checkout())
        })
    }

    /// Returns whether HEAD of a worktree other than the run's own was moved to the commit `current`. Where
    /// git has no reflogs this is unknown, and counts as true.
    fn matches_head_move(&self, current: Option<Oid>) -> bool {
        let other_worktrees =
            self.worktrees.iter().filter(|worktree| Some(worktree.path.as_path()) != self.own_worktree);
        let moves = other_worktrees.filter_map(|worktree| self.repo.reflog(&worktree.path, "HEAD").ok());
        let mut head_moves = moves.flatten().peekable();
        head_moves.peek().is_none() || head_moves.any(|step| Some(step.new_id.oid()) == current)
    }
}

/// Returns the worktrees that belong to no lane.
fn user_worktrees(project: &Project, worktrees: &WorktreeList) -> Vec<PathBuf> {
    let lanes = project.owned_lanes().unwrap_or_default();
    let all = worktrees.iter().map(|worktree| worktree.path.clone());
    all.filter(|path| lanes.iter().all(|lane| lane.path != *path)).collect()
}

/// Returns a move of HEAD in a worktree as an entry of [`HEAD_MOVES_LIST`].
fn head_move_line(dir: &Path, step: &ReflogEntry) -> String {
    format!("{} {} {}", step.new_id, unix_seconds::from_time(step.time), dir.display())
}

/// Emits an event about a ref that was lost or moved during a run, from the value `old` to `current`; none if
/// it was deleted. `saved_ref` keeps the old value.
fn emit_ref_loss(
    project: &Project,
    lane: &AnyLane,
    name: &str,
    (old, current): (Oid, Option<Oid>),
    saved_ref: Option<&str>,
) {
    let target = saved_ref.map_or_else(|| old.short_in_command(), ToOwned::to_owned);
    let change = match (name.strip_prefix(HEADS_PREFIX), current) {
        _ if name == STASH_REF => {
            format!("dropped an entry of the stash; it is saved: git stash apply {target}")
        }
        (Some(branch), Some(current)) => {
            let note =
                if saved_ref.is_some() { "the earlier commits are saved" } else { "that was no landing" };
            format!(
                "moved branch {branch} to {}; {note}: git log {target}...{}",
                current.short(),
                shell_quote(branch)
            )
        }
        _ if name.starts_with(WORKTREE_PREFIX) => {
            let (_, folder) = name.rsplit_once('/').unwrap_or_default();
            let command =
                alternate_restore_command(&project.repo, &format!("{HEADS_PREFIX}{folder}"), &target);
            format!("removed the {name}, which was on no branch; its commit is saved: {command}")
        }
        (_, current) => {
            let (verb, command) = match current {
                Some(_) => ("moved", alternate_restore_command(&project.repo, name, &target)),
                None => ("deleted", restore_command(&project.repo, name, &target)),
            };
            let (kind, short) = split_ref_name(name);
            format!("{verb} {kind} {short}; its earlier value: {command}")
        }
    };
    let message = format!("while the agent of lane '{}' ran, the agent or someone else {change}", lane.name);
    let mut event = Event::new(EventName::LaneEscape, message);
    event.lane = Some(lane.name.to_string());
    event.state = Some(lane.state().to_string());
    event.certainty = Some(Certainty::Possible);
    project.emit_event(event);
}
