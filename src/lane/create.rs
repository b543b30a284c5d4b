//! Owns making a lane: name, branch, worktree, files, record; a failure at any step takes back all before it.

use std::path::{Path, PathBuf};

use super::{Base, Checkout, Error, Name, Project, place};
use crate::event;
use crate::git::{NewCommit, Oid, merge_trees, run_hook};
use crate::store::records::{LaneRecord, LaneState};
use crate::store::{Guard, LockName, Record, make_private, now, write_atomically};

/// How often a name made from a prompt is numbered up before giving up.
const TRIES: u32 = 1000;

/// What a lane is asked for with.
#[derive(Debug, Clone)]
pub(crate) struct NewLane<'a> {
    /// Its name; made from the prompt when none is given.
    pub(crate) name: Option<Name>,
    /// What its agent will be asked.
    pub(crate) prompt: Option<&'a str>,
    /// What it is called after, and titled, where there is no prompt.
    pub(crate) words: Option<&'a str>,
    /// The agent that will work in it.
    pub(crate) agent: Option<String>,
    /// Where it starts and lands.
    pub(crate) base: Base,
    /// Uncommitted changes of tracked files at this worktree become its first commit.
    pub(crate) carry: Option<PathBuf>,
}

impl NewLane<'_> {
    /// What name and title are made from.
    fn called(&self) -> &str {
        self.prompt.or(self.words).unwrap_or_default()
    }
}

/// What will be made.
#[derive(Debug, Clone)]
pub(crate) struct Plan<'a> {
    /// Its name, free when this was planned.
    pub(crate) name: Name,
    /// Its branch.
    pub(crate) branch: String,
    /// Its worktree.
    pub(crate) path: PathBuf,
    asked: NewLane<'a>,
}

/// A lane that was made, its name still held.
#[derive(Debug)]
#[must_use]
pub(crate) struct Created {
    /// Its record.
    pub(crate) lane: LaneRecord,
    /// The run lock of its name.
    pub(crate) lock: Guard,
}

/// Checks what is asked for and chooses the name, without making anything.
pub(crate) fn plan<'a>(project: &Project, asked: NewLane<'a>) -> Result<Plan<'a>, Error> {
    let prefix = &project.settings.prefix;
    if project.repo.branch_tip(prefix)?.is_some() {
        return Err(Error::PrefixTaken { prefix: prefix.clone() });
    }
    let name = match &asked.name {
        Some(name) => {
            // What stands there while the name is held belongs to a lane that is being made or removed.
            if project.store.locks().is_held(&LockName::Run(name.to_string()))? {
                return Err(Error::Taken { name: name.to_string() });
            }
            require_free(project, name)?;
            name.clone()
        }
        None => free_name(project, &Name::from_prompt(asked.called()))?,
    };
    Ok(Plan::new(project, name, asked))
}

impl<'a> Plan<'a> {
    fn new(project: &Project, name: Name, asked: NewLane<'a>) -> Plan<'a> {
        let branch = project.branch_of(&name);
        let path = project.lanes_dir().join(name.as_str());
        Plan { name, branch, path, asked }
    }

    /// Where it starts and lands.
    pub(crate) fn base(&self) -> &Base {
        &self.asked.base
    }
}

fn require_free(project: &Project, name: &Name) -> Result<(), Error> {
    if project.store.layout().lane(name.as_str()).exists() {
        return Err(Error::Taken { name: name.to_string() });
    }
    let branch = project.branch_of(name);
    if project.repo.branch_tip(&branch)?.is_some() {
        return Err(Error::BranchTaken { branch });
    }
    let path = project.lanes_dir().join(name.as_str());
    if path.symlink_metadata().is_ok() {
        return Err(Error::PathTaken { path });
    }
    Ok(())
}

fn free_name(project: &Project, wish: &Name) -> Result<Name, Error> {
    for n in 1..TRIES {
        let name = wish.numbered(n);
        let held = project.store.locks().is_held(&LockName::Run(name.to_string()))?;
        if !held && require_free(project, &name).is_ok() {
            return Ok(name);
        }
    }
    Err(Error::Taken { name: wish.to_string() })
}

/// Makes the lane. When another process takes a name that was not asked for by name, the next one is used.
pub(crate) fn create(project: &Project, plan: &Plan<'_>) -> Result<Created, Error> {
    make_private(project.store.layout().root())?;
    let (plan, lock) = hold_name(project, plan)?;
    let mut steps = Steps { project, plan: &plan, made: Vec::new(), start: plan.asked.base.start };
    match steps.make() {
        Ok(lane) => {
            project.tell(
                event::Name::LaneCreated,
                Some(&lane),
                format!("lane '{}' made from {}", lane.name, lane.base),
            );
            Ok(Created { lane, lock })
        }
        Err(e) => {
            steps.take_back();
            Err(e)
        }
    }
}

fn hold_name<'a>(project: &Project, plan: &Plan<'a>) -> Result<(Plan<'a>, Guard), Error> {
    let mut plan = plan.clone();
    for _ in 0..TRIES {
        let lock = LockName::Run(plan.name.to_string());
        let held = project.store.locks().try_take(&lock)?;
        let free = require_free(project, &plan.name);
        match (held, free, &plan.asked.name) {
            (Some(guard), Ok(()), _) => return Ok((plan, guard)),
            (None, _, Some(name)) => return Err(Error::Taken { name: name.to_string() }),
            (Some(_), Err(e), Some(_)) => return Err(e),
            _ => {}
        }
        let wish = Name::from_prompt(plan.asked.called());
        let name = free_name(project, &wish)?;
        plan = Plan::new(project, name, plan.asked);
    }
    Err(Error::Taken { name: plan.name.to_string() })
}

/// What exists so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Branch,
    Folder,
    Record,
}

struct Steps<'a> {
    project: &'a Project,
    plan: &'a Plan<'a>,
    made: Vec<Made>,
    /// What the branch was made at.
    start: Oid,
}

impl Steps<'_> {
    fn make(&mut self) -> Result<LaneRecord, Error> {
        let (project, plan) = (self.project, self.plan);
        let start = match &plan.asked.carry {
            None => plan.asked.base.start,
            Some(from) => self.carried(from)?,
        };
        self.start = start;
        {
            let _lock = project.store.locks().take(&LockName::Worktrees)?;
            place::prepare(project)?;
            // Again, right before: what exists now was not made here and must not be taken back.
            require_free(project, &plan.name)?;
            self.add_worktree(start)?;
        }
        crate::interrupt::check()?;
        project.repo.fill_worktree(&plan.path)?;
        crate::interrupt::check()?;
        let lane = self.record(start)?;
        let (zero, tip) = (start.null().to_string(), start.to_string());
        if let Err(e) = run_hook(&project.repo, &plan.path, "post-checkout", &[&zero, &tip, "1"]) {
            project.listener.warn(format!("the repository's post-checkout hook failed: {e}"));
        }
        Ok(lane)
    }

    /// Makes branch and folder in ways that fail where somebody else was faster, and notes each once it is ours.
    fn add_worktree(&mut self, start: Oid) -> Result<(), Error> {
        let (repo, plan) = (&self.project.repo, self.plan);
        repo.create_ref(&format!("refs/heads/{}", plan.branch), start, "git-proq: lane made")
            .map_err(|e| self.blocked(e))?;
        self.made.push(Made::Branch);
        match std::fs::create_dir(&plan.path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(Error::PathTaken { path: plan.path.clone() });
            }
            other => other.map_err(Error::io("create", &plan.path))?,
        }
        self.made.push(Made::Folder);
        Ok(repo.add_worktree(&plan.path, &plan.branch)?)
    }

    /// Why no branch could be made: one `proq/x/y` makes `proq/x` impossible, which git says at length.
    fn blocked(&self, e: crate::git::Error) -> Error {
        if let Ok(Some(_)) = self.project.repo.branch_tip(&self.plan.branch) {
            return Error::BranchTaken { branch: self.plan.branch.clone() };
        }
        let below = self.project.repo.refs_below(&format!("refs/heads/{}/", self.plan.branch));
        match below.ok().and_then(|refs| refs.into_iter().next()) {
            Some((name, _)) => {
                Error::BranchTaken { branch: name.trim_start_matches("refs/heads/").to_owned() }
            }
            None => e.into(),
        }
    }

    /// A commit of the uncommitted changes at `from`, on top of the starting point, which may be another commit than the
    /// one they were made on.
    fn carried(&self, from: &Path) -> Result<Oid, Error> {
        let (start, repo) = (self.plan.asked.base.start, &self.project.repo);
        let checkout = Checkout::lock(self.project, from)?;
        let Some(head) = repo.head_of(from)? else { return Ok(start) };
        let (before, ours, after) = (repo.tree_of(head)?, repo.tree_of(start)?, checkout.tracked_tree()?);
        let mut tree = after;
        if before != ours {
            let scratch = self.project.store.layout().scratch()?;
            let merged = merge_trees(repo, before, ours, after, scratch.path())?;
            if !merged.clean {
                let base = self.plan.asked.base.branch.clone();
                return Err(Error::Carry { base, paths: merged.paths() });
            }
            tree = merged.tree;
        }
        if tree == ours {
            return Ok(start);
        }
        let message = "Carry uncommitted changes over\n";
        let commit = NewCommit { tree, parents: &[start], message };
        Ok(commit.write(repo, None)?)
    }

    fn record(&mut self, start: Oid) -> Result<LaneRecord, Error> {
        let (project, plan) = (self.project, self.plan);
        let layout = project.store.layout();
        let git_dir = project.repo.git_dir_of(&plan.path)?;
        let prompt = plan.asked.prompt.unwrap_or_default();
        let lane = LaneRecord {
            name: plan.name.to_string(),
            title: title_of(plan.asked.called()).unwrap_or_else(|| plan.name.to_string()),
            branch: plan.branch.clone(),
            path: plan.path.clone(),
            worktree_id: git_dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned()),
            base: plan.asked.base.branch.clone(),
            // What is carried over is the lane's own work.
            start: plan.asked.base.start,
            state: LaneState::Idle,
            detail: None,
            agent: plan.asked.agent.clone(),
            attempt: 0,
            created: now(),
            updated: now(),
            preview_edits: Vec::new(),
            landed: None,
        };
        debug_assert!(start == lane.start || plan.asked.carry.is_some());
        self.made.push(Made::Record);
        write_atomically(&layout.task(&lane.name), prompt.as_bytes())?;
        lane.save(&layout.lane_record(&lane.name))?;
        Ok(lane)
    }

    /// Removes what this process made, newest first. The name's lock is still held, so nobody else is in it.
    fn take_back(&mut self) {
        let (project, plan) = (self.project, self.plan);
        while let Some(made) = self.made.pop() {
            match made {
                Made::Record => {
                    drop(std::fs::remove_dir_all(project.store.layout().lane(plan.name.as_str())));
                }
                Made::Folder => {
                    let _lock = project.store.locks().take(&LockName::Worktrees);
                    drop(std::fs::remove_dir_all(&plan.path));
                    drop(project.repo.forget_worktree(&plan.path));
                }
                Made::Branch => {
                    let name = format!("refs/heads/{}", plan.branch);
                    // Only where it still is where it was made.
                    drop(project.repo.delete_ref(&name, self.start, "git-proq: taken back"));
                }
            }
        }
    }
}

/// The first line of a prompt that says something, at most 120 characters.
fn title_of(prompt: &str) -> Option<String> {
    let line = prompt.lines().map(str::trim).find(|l| !l.is_empty())?;
    let line = line.trim_start_matches('#').trim();
    Some(line.chars().filter(|c| !c.is_control()).take(120).collect()).filter(|t: &String| !t.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_one_plain_line() {
        assert_eq!(title_of("\n  # Pay\x1b[31m ments \nmore"), Some("Pay[31m ments".into()));
        assert_eq!(title_of(" \n\n"), None);
        assert_eq!(title_of(&"x".repeat(500)).unwrap().len(), 120);
    }
}
