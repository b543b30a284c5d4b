//! Creation of a lane: name, branch, worktree, files, record; a failure at any step rolls back all steps
//! before it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::history::commit::NewCommit;
use proq_git::hooks::hook::run_hook;
use proq_git::merge::tree_merge::merge_trees;
use proq_store::base::atomic::create_private_dir;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::records::batched::BatchLane;
use proq_store::records::lane::{LaneRecord, LaneWorktree};
use proq_store::records::pull_request::IssueLink;

use super::create_worktree::{CreateWorktree, WorktreeRequest, remove_created};
use super::free_name::{branch_taken_error, choose_name, lock_name, require_free_name};
use crate::event::log;
use crate::lane::inspection::base::Base;
use crate::lane::removal::remove_lane::{RemovalReason, RemovedLane, remove_locked};
use crate::lane::worktree::populate::EmptyWorktree;
use crate::lane::worktree::populate_lanes::PopulateOutcome;
use crate::lane::worktree::ports::reserved_ports;
use crate::lane::worktree::set_up::LaneSetUp;
use crate::lane::worktree::set_up::commands::{SetUpLevel, require_set_up_approved};
use crate::lane::worktree::{lanes_folder, populate_lanes};
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::Operation;
use crate::operation::locked_worktree::LockedWorktree;
use crate::operation::run_operation::operate;

/// Request for a new lane.
#[derive(Debug, Clone)]
pub struct NewLane<'a> {
    /// Name of the lane; made from the prompt when none is given.
    pub name: Option<LaneName>,
    /// Prompt that the agent will get.
    pub prompt: Option<&'a str>,
    /// Text from which name and title are made where there is no prompt.
    pub name_hint: Option<Cow<'a, str>>,
    /// Agent that will work in the lane.
    pub agent: Option<String>,
    /// Start commit and target branch.
    pub base: Base,
    /// Worktree whose uncommitted changes of tracked files become the lane's first commit.
    pub carry_from: Option<PathBuf>,
    /// Shell command lines that must succeed on the lane before it lands.
    pub checks: Vec<String>,
    /// Globs of the files that the lane is expected to change.
    pub scope: Vec<String>,
    /// Whether only the folders of the files in `scope` are checked out.
    pub sparse: bool,
    /// Whether the lane lands automatically when its run is done.
    pub auto_merge: bool,
    /// Group of which the lane is one attempt.
    pub group: Option<String>,
    /// Position of the lane in a batch.
    pub batch: Option<BatchLane>,
    /// Issue that the lane is for.
    pub issue: Option<IssueLink>,
    /// How much of the configured set-up the lane gets, besides the files of its commit.
    pub set_up: SetUpLevel,
}

impl<'a> NewLane<'a> {
    /// Creates the request for a lane on `base` without a name, a prompt or an agent, with the full set-up.
    pub fn new(base: Base) -> NewLane<'a> {
        NewLane {
            name: None,
            prompt: None,
            name_hint: None,
            agent: None,
            base,
            carry_from: None,
            checks: Vec::new(),
            scope: Vec::new(),
            sparse: false,
            auto_merge: false,
            group: None,
            batch: None,
            issue: None,
            set_up: SetUpLevel::Full,
        }
    }

    /// Returns the text from which name and title are made.
    pub(crate) fn name_source(&self) -> &str {
        self.prompt.or(self.name_hint.as_deref()).unwrap_or_default()
    }
}

/// A lane that is planned and not created yet.
#[derive(Debug, Clone)]
pub struct LanePlan<'a> {
    /// Name of the lane, free when it was planned.
    pub name: LaneName,
    /// Name of the lane's branch.
    pub branch: String,
    /// Path of the lane's worktree.
    pub path: PathBuf,
    /// Request that the plan fulfills.
    pub request: NewLane<'a>,
}

/// A new lane whose name is still locked.
#[derive(Debug)]
#[must_use]
pub struct CreatedLane {
    /// Record of the lane.
    pub lane: LaneRecord,
    /// Run lock of the new lane, held since before its creation.
    pub run_lock: LockGuard,
    /// A checkout that was found, while the lane was created, to have no uncommitted changes of tracked
    /// files.
    pub unchanged_checkout: Option<PathBuf>,
}

/// Checks a request for a lane and chooses its name, without creating anything.
pub fn plan_lane<'a>(project: &Project, request: NewLane<'a>) -> Result<LanePlan<'a>, Error> {
    let prefix = &project.settings.branch_prefix;
    if project.repo.branch_tip(prefix)?.is_some() {
        return Err(Error::PrefixTaken { prefix: prefix.clone() });
    }
    let name = choose_name(project, request.name.as_ref(), request.name_source())?;
    LanePlan::new(project, name, request)
}

impl<'a> LanePlan<'a> {
    /// Plans a lane of this name: derives branch and path, and applies the setting for sparse checkouts.
    fn new(project: &Project, name: LaneName, mut request: NewLane<'a>) -> Result<LanePlan<'a>, Error> {
        request.sparse |= project.settings.lane_checkout.sparse && !request.scope.is_empty();
        let branch = project.lane_branch(&name);
        let path = project.require_location()?.worktree_path(&name);
        Ok(LanePlan { name, branch, path, request })
    }

    /// Returns the start commit and target branch.
    pub fn base(&self) -> &Base {
        &self.request.base
    }

    /// Returns the checks that must succeed on the lane before it lands.
    pub fn checks(&self) -> &[String] {
        &self.request.checks
    }

    /// Returns the globs of the files that the lane is expected to change.
    pub fn scope(&self) -> &[String] {
        &self.request.scope
    }

    /// Returns whether only the folders of the files in scope are checked out.
    pub fn is_sparse(&self) -> bool {
        self.request.sparse
    }

    /// Returns the group of which the lane is one attempt.
    pub fn group(&self) -> Option<&str> {
        self.request.group.as_deref()
    }

    /// Returns whether the lane lands automatically when its run is done.
    pub fn has_auto_merge(&self) -> bool {
        self.request.auto_merge
    }
}

/// Creates the lane. When another process takes a name that the user did not request, the next free one is
/// used.
pub fn create_lane(project: &Project, plan: &LanePlan<'_>) -> Result<CreatedLane, Error> {
    require_set_up_approved(project, plan.request.set_up)?;
    project.run_pre_spawn_hooks(&plan.name, &plan.request.base.branch)?;
    create_private_dir(project.store.layout().root())?;
    let (plan, lock) = lock_plan_name(project, plan)?;
    let (lane, unchanged) = operate(project, "spawn", |op| create_one_lane(op, &plan))?;
    Ok(CreatedLane { lane, run_lock: lock, unchanged_checkout: unchanged })
}

/// Removes a lane, with everything in it saved, and creates it again as requested, under its name and in one
/// operation. The caller holds its run lock.
pub fn recreate_lane(
    op: &Operation<'_>,
    old: &LaneRecord,
    request: NewLane<'_>,
) -> Result<(RemovedLane, LaneRecord), Error> {
    require_set_up_approved(op.project, request.set_up)?;
    let removed = remove_locked(op, old, RemovalReason::Discard, true)?;
    let plan = LanePlan::new(op.project, old.name.clone(), request)?;
    op.expect_recreated_ref(&format!("refs/heads/{}", plan.branch));
    Ok((removed, create_one_lane(op, &plan)?.0))
}

/// Takes the run lock of a planned lane. Returns the plan with another name where the planned one was taken
/// and the user did not request it.
pub(crate) fn lock_plan_name<'a>(
    project: &Project,
    plan: &LanePlan<'a>,
) -> Result<(LanePlan<'a>, LockGuard), Error> {
    let request = &plan.request;
    let (name, lock) = lock_name(project, &plan.name, request.name.as_ref(), request.name_source())?;
    let plan = if name == plan.name { plan.clone() } else { LanePlan::new(project, name, request.clone())? };
    Ok((plan, lock))
}

/// Creates one planned lane. Returns its record, and a checkout that was found without uncommitted changes.
fn create_one_lane(op: &Operation<'_>, plan: &LanePlan<'_>) -> Result<(LaneRecord, Option<PathBuf>), Error> {
    let steps = LaneCreation { op, plan };
    let start = steps.create_branch_and_worktree()?;
    let unchanged = prepare_worktrees(op, &[(plan, start)])?;
    Ok((steps.finish_creation(start)?, unchanged))
}

/// Creates the planned lanes together; their files are written in one pass. Returns their records, and a
/// checkout that was found without uncommitted changes.
pub(crate) fn create_planned_lanes(
    op: &Operation<'_>,
    plans: &[LanePlan<'_>],
) -> Result<(Vec<LaneRecord>, Option<PathBuf>), Error> {
    let create_worktree = |plan| Ok((plan, LaneCreation { op, plan }.create_branch_and_worktree()?));
    let started = plans.iter().map(create_worktree).collect::<Result<Vec<_>, Error>>()?;
    let unchanged = prepare_worktrees(op, &started)?;
    let save_lane = |(plan, start)| LaneCreation { op, plan }.finish_creation(start);
    Ok((started.into_iter().map(save_lane).collect::<Result<_, _>>()?, unchanged))
}

/// Writes the files of lanes whose worktrees exist, and runs their set-up. Returns a checkout that was found
/// without changes. A failure removes all of the lanes.
fn prepare_worktrees(
    op: &Operation<'_>,
    started: &[(&LanePlan<'_>, CommitId)],
) -> Result<Option<PathBuf>, Error> {
    let project = op.project;
    let mut worktrees = Vec::with_capacity(started.len());
    for (plan, start) in started {
        worktrees.push(EmptyWorktree { name: &plan.name, dir: &plan.path, start: *start });
    }
    let prepared = populate_lanes::populate_lanes(op, &worktrees).and_then(
        |PopulateOutcome { retained_paths: kept, unchanged_checkout: unchanged }| {
            for ((plan, _), kept) in started.iter().zip(&kept) {
                let (name, base) = (&plan.name, plan.request.base.branch.as_str());
                LaneSetUp {
                    project,
                    name,
                    branch: &plan.branch,
                    base,
                    dir: &plan.path,
                    retained_paths: kept,
                }
                .run(plan.request.set_up)?;
            }
            Ok(unchanged)
        },
    );
    if prepared.is_err() {
        for (plan, _) in started {
            remove_created(project, &plan.name, &plan.path);
        }
    }
    prepared
}

/// Creation of one planned lane, as part of an operation.
struct LaneCreation<'a, 'p> {
    op: &'a Operation<'p>,
    plan: &'a LanePlan<'a>,
}

impl LaneCreation<'_, '_> {
    /// Creates the branch and a worktree of it without files; returns the commit that both are at.
    fn create_branch_and_worktree(&self) -> Result<CommitId, Error> {
        let (project, plan) = (self.op.project, self.plan);
        let start = match &plan.request.carry_from {
            None => plan.request.base.start,
            Some(dir) => self.commit_carried_changes(dir)?,
        };
        {
            let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
            lanes_folder::create_parent_folder(project, &plan.path)?;
            // Checked again right before the creation: what exists now was not created here, and a rollback
            // must not remove it.
            require_free_name(project, &plan.name)?;
            self.op
                .create_lane_branch(&plan.name, &plan.branch, start)
                .map_err(|e| self.explain_blocked_branch(e))?;
        }
        let request = WorktreeRequest {
            branch: plan.branch.clone(),
            sparse_scope: plan.request.sparse.then(|| plan.scope().to_vec()),
            prompt: plan.request.prompt.unwrap_or_default().to_owned(),
        };
        drop(self.op.perform(CreateWorktree {
            dir: plan.path.clone(),
            lane: plan.name.clone(),
            start,
            request: Some(Arc::new(request)),
        })?);
        Ok(start)
    }

    /// Saves the record of a lane whose worktree has its files; schedules the post-checkout hook and emits
    /// the event.
    fn finish_creation(&self, start: CommitId) -> Result<LaneRecord, Error> {
        let plan = self.plan;
        let lane = self.save_record()?;
        let (path, zero, tip) = (plan.path.clone(), start.null().to_string(), start.to_string());
        self.op.defer(move |project| {
            if let Err(e) = run_hook(&project.repo, &path, "post-checkout", &[&zero, &tip, "1"]) {
                project.listener.warn(format!("the repository's post-checkout hook failed: {e}"));
            }
        });
        let message = format!("created lane '{}' from {}", lane.name, lane.base);
        self.op.emit(log::EventName::LaneCreated, Some(&lane), message);
        Ok(lane)
    }

    /// Returns a short error for a branch that git could not create: a branch `proq/x/y` makes `proq/x`
    /// impossible, for which git's own message is long.
    fn explain_blocked_branch(&self, e: Error) -> Error {
        let project = self.op.project;
        if let Ok(Some(_)) = project.repo.branch_tip(&self.plan.branch) {
            return branch_taken_error(&project.repo, self.plan.branch.clone());
        }
        let below = project.repo.refs_with_prefix(&format!("refs/heads/{}/", self.plan.branch));
        match below.ok().and_then(|refs| refs.into_iter().next()) {
            Some((name, _)) => {
                branch_taken_error(&project.repo, name.trim_start_matches("refs/heads/").to_owned())
            }
            None => e,
        }
    }

    /// Commits the uncommitted changes of the worktree at `dir` on top of the start commit, which may differ
    /// from the commit on which they were made.
    fn commit_carried_changes(&self, dir: &Path) -> Result<CommitId, Error> {
        let (start, project) = (self.plan.request.base.start, self.op.project);
        let repo = &project.repo;
        let checkout = LockedWorktree::lock(project, dir)?;
        let Some(head) = repo.head_commit(dir)? else { return Ok(start) };
        let (head_tree, start_tree, changed_tree) =
            (repo.tree_of(head)?, repo.tree_of(start)?, checkout.write_tracked_tree()?);
        let mut tree = changed_tree;
        if head_tree != start_tree {
            let scratch = project.store.layout().create_scratch()?;
            let merged = merge_trees(repo, (head_tree, start_tree, changed_tree), scratch.path(), None)?;
            if !merged.is_clean {
                let base = self.plan.request.base.branch.clone();
                return Err(Error::CarryConflict { base, paths: merged.conflicted_paths() });
            }
            tree = merged.tree;
        }
        if tree == start_tree {
            return Ok(start);
        }
        let message = "Carry uncommitted changes over\n";
        let commit = NewCommit { tree, parents: &[start], message };
        Ok(commit.write(repo, None)?)
    }

    /// Writes the first record of the lane, and removes the temporary one of its set-up.
    fn save_record(&self) -> Result<LaneRecord, Error> {
        let (project, plan) = (self.op.project, self.plan);
        let git_dir = project.repo.worktree_git_dir(&plan.path)?;
        let (name, request) = (&plan.name, &plan.request);
        let worktree_id = git_dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let place = LaneWorktree { branch: plan.branch.clone(), worktree_id };
        // Carried changes are the lane's own work, so the recorded start is without them.
        let Base { branch: base, start } = request.base.clone();
        let lane = LaneRecord {
            title: title_from_prompt(request.name_source()).unwrap_or_else(|| name.to_string()),
            agent: request.agent.clone(),
            checks: request.checks.clone(),
            issue: request.issue.clone(),
            scope: request.scope.clone(),
            auto_merge: request.auto_merge,
            group: request.group.clone(),
            batch: request.batch.clone(),
            ports: reserved_ports(&project.store.layout().set_up_record(name)),
            ..LaneRecord::new(name, place, plan.path.clone(), base, start)
        };
        self.op.save_record(&lane, &project.store.layout().lane_record(&lane.name))?;
        // The lane's record now holds the set-up result.
        drop(std::fs::remove_file(project.store.layout().set_up_record(name)));
        Ok(lane)
    }
}

/// Maximum number of characters of a lane's title; a longer one ends in `…`.
pub const MAX_TITLE_CHARS: usize = 120;

/// Returns the first line of a prompt that is not empty, as a title of at most [`MAX_TITLE_CHARS`] characters.
pub(crate) fn title_from_prompt(prompt: &str) -> Option<String> {
    let line = prompt.lines().map(str::trim).find(|l| !l.is_empty())?;
    clean_title(line.trim_start_matches('#'))
}

/// Cleans a title: one line without control characters, of at most [`MAX_TITLE_CHARS`] characters; none when nothing is left.
pub fn clean_title(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line: String = lines.join(" ").chars().filter(|c| !c.is_control()).collect();
    let title = match line.trim() {
        long if long.chars().count() > MAX_TITLE_CHARS => {
            long.chars().take(MAX_TITLE_CHARS - 1).chain(['…']).collect()
        }
        title => title.to_owned(),
    };
    Some(title).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_one_line() {
        assert_eq!(title_from_prompt("\n  # Pay\x1b[31m ments \nmore"), Some("Pay[31m ments".into()));
        assert_eq!(title_from_prompt(" \n\n"), None);
        assert_eq!(title_from_prompt(&"x".repeat(120)).unwrap(), "x".repeat(120));
        assert_eq!(title_from_prompt(&"x".repeat(500)).unwrap(), format!("{}…", "x".repeat(119)));
    }
}
