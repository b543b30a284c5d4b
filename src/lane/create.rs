//! Owns making a lane: name, branch, worktree, files, record; a failure at any step takes back all before it.

use std::path::{Path, PathBuf};

use super::files::{self, Filled, Folder};
use super::remove::remove_held;
use super::set_up::{SetUp, reserved_ports};
use super::{
    Base, Checkout, Error, Given, Name, Operation, Project, Removed, Why, half_made, kind, operate, place,
    require_approved,
};
use crate::event;
use crate::explain::word;
use crate::fault;
use crate::git::{Head, NewCommit, Oid, merge_trees, ref_removal, run_hook};
use crate::store::records::{InBatch, LaneRecord, Step, Tree};
use crate::store::{Guard, LockName, make_private, remove_tree, write_first};

/// How often a name made from a prompt is numbered up before giving up.
pub(super) const TRIES: u32 = 1000;

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
    /// Shell command lines that must succeed with it before it lands.
    pub(crate) checks: Vec<String>,
    /// The files that it is expected to touch, as globs.
    pub(crate) scope: Vec<String>,
    /// Only the folders of those files are checked out.
    pub(crate) sparse: bool,
    /// It lands by itself when its run is done.
    pub(crate) auto_merge: bool,
    /// The group that it is one attempt of.
    pub(crate) group: Option<String>,
    /// Its place in a batch.
    pub(crate) batch: Option<InBatch>,
    /// What it is given besides the files of its commit.
    pub(crate) given: Given,
}

impl NewLane<'_> {
    /// What name and title are made from.
    pub(super) fn called(&self) -> &str {
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
    pub(super) asked: NewLane<'a>,
}

/// A lane that was made, its name still held.
#[derive(Debug)]
#[must_use]
pub(crate) struct Created {
    /// Its record.
    pub(crate) lane: LaneRecord,
    /// The run lock of its name.
    pub(crate) lock: Guard,
    /// A checkout that was seen, on the way, to have no uncommitted changes of tracked files.
    pub(crate) unchanged: Option<PathBuf>,
}

/// Checks what is asked for and chooses the name, without making anything.
pub(crate) fn plan<'a>(project: &Project, asked: NewLane<'a>) -> Result<Plan<'a>, Error> {
    let prefix = &project.settings.prefix;
    if project.repo.branch_tip(prefix)?.is_some() {
        return Err(Error::PrefixTaken { prefix: prefix.clone() });
    }
    let name = choose_name(project, asked.name.as_ref(), asked.called())?;
    Plan::new(project, name, asked)
}

/// The name that was asked for, which has to be free, or one made from what the lane is called.
pub(super) fn choose_name(project: &Project, asked: Option<&Name>, called: &str) -> Result<Name, Error> {
    let Some(name) = asked else { return free_name(project, &Name::from_prompt(called)) };
    // What stands there while the name is held belongs to a lane that is being made or removed. Another spawn can take the name
    // between two of these looks: a branch or folder of no lane is only one that is there with the name free after it.
    let taken = || Error::Taken { name: name.to_string() };
    let is_held = || project.store.locks().is_held(&LockName::Run(name.to_string()));
    if is_held()? {
        return Err(taken());
    }
    if let Err(e) = require_free(project, name) {
        let is_lane = is_held()? || project.store.layout().lane(name.as_str()).exists();
        return Err(if is_lane { taken() } else { e });
    }
    Ok(name.clone())
}

impl<'a> Plan<'a> {
    fn new(project: &Project, name: Name, mut asked: NewLane<'a>) -> Result<Plan<'a>, Error> {
        asked.sparse |= project.settings.checkouts.sparse && !asked.scope.is_empty();
        let branch = project.branch_of(&name);
        let path = project.require_location()?.place_of(&name);
        Ok(Plan { name, branch, path, asked })
    }

    /// Where it starts and lands.
    pub(crate) fn base(&self) -> &Base {
        &self.asked.base
    }

    /// What must succeed with it before it lands.
    pub(crate) fn checks(&self) -> &[String] {
        &self.asked.checks
    }

    /// The globs of files that it is expected to touch.
    pub(crate) fn scope(&self) -> &[String] {
        &self.asked.scope
    }

    /// Whether only the folders of those are checked out.
    pub(crate) fn is_sparse(&self) -> bool {
        self.asked.sparse
    }

    /// The group that it is one attempt of.
    pub(crate) fn group(&self) -> Option<&str> {
        self.asked.group.as_deref()
    }

    /// Whether it lands when its run is done, without anybody asking for it.
    pub(crate) fn lands_by_itself(&self) -> bool {
        self.asked.auto_merge
    }
}

fn require_free(project: &Project, name: &Name) -> Result<(), Error> {
    if project.store.layout().lane(name.as_str()).exists() {
        return Err(Error::Taken { name: name.to_string() });
    }
    let branch = project.branch_of(name);
    if project.repo.branch_tip(&branch)?.is_some() || project.repo.is_broken(&branch) {
        return Err(taken(project, branch));
    }
    let path = project.location()?.place_of(name);
    if path.symlink_metadata().is_ok() {
        return Err(Error::PathTaken { path });
    }
    Ok(())
}

/// The error of a branch that is there already, with the command that frees its name.
fn taken(project: &Project, branch: String) -> Error {
    let name = format!("refs/heads/{branch}");
    let free = if project.repo.alias_of(&branch).is_ok_and(|alias| alias.is_some()) {
        format!("remove the symbolic ref: git symbolic-ref -d {}", word(&name))
    } else if project.repo.is_broken(&branch) {
        format!("remove its file, which holds no commit: {}", ref_removal(&name))
    } else {
        format!("rename the branch: git branch -m {} NEW-NAME", word(&branch))
    };
    Error::BranchTaken { branch, free }
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
    require_approved(project, plan.asked.given)?;
    project.ask_to_spawn(plan.name.as_str(), &plan.asked.base.branch)?;
    make_private(project.store.layout().root())?;
    let (plan, lock) = hold_plan(project, plan)?;
    let (lane, unchanged) = operate(project, "spawn", |op| make_one(op, &plan))?;
    Ok(Created { lane, lock, unchanged })
}

/// Removes a lane, with everything in it saved, and makes it anew as `asked`, under its name and in one operation. `lock` is
/// its run lock.
pub(crate) fn make_anew(
    op: &Operation<'_>,
    old: &LaneRecord,
    asked: NewLane<'_>,
) -> Result<(Removed, LaneRecord), Error> {
    require_approved(op.project, asked.given)?;
    let removed = remove_held(op, old, Why::Discard, true)?;
    let plan = Plan::new(op.project, Name::parse(&old.name)?, asked)?;
    Ok((removed, make_one(op, &plan)?.0))
}

pub(super) fn hold_plan<'a>(project: &Project, plan: &Plan<'a>) -> Result<(Plan<'a>, Guard), Error> {
    let asked = &plan.asked;
    let (name, lock) = hold_name(project, &plan.name, asked.name.as_ref(), asked.called())?;
    let plan = if name == plan.name { plan.clone() } else { Plan::new(project, name, asked.clone())? };
    Ok((plan, lock))
}

/// Takes the run lock of a name that was free a moment ago, or of another one where none was asked for.
pub(super) fn hold_name(
    project: &Project,
    name: &Name,
    asked: Option<&Name>,
    called: &str,
) -> Result<(Name, Guard), Error> {
    let mut name = name.clone();
    for _ in 0..TRIES {
        let held = project.store.locks().try_take(&LockName::Run(name.to_string()))?;
        let free = require_free(project, &name);
        match (held, free, asked) {
            (Some(guard), Ok(()), _) => return Ok((name, guard)),
            (None, _, Some(name)) => return Err(Error::Taken { name: name.to_string() }),
            (Some(_), Err(e), Some(_)) => return Err(e),
            _ => {}
        }
        name = free_name(project, &Name::from_prompt(called))?;
    }
    Err(Error::Taken { name: name.to_string() })
}

fn make_one(op: &Operation<'_>, plan: &Plan<'_>) -> Result<(LaneRecord, Option<PathBuf>), Error> {
    let steps = Steps { op, plan };
    let start = steps.begin()?;
    let unchanged = make_ready(op, &[(plan, start)])?;
    Ok((steps.finish(start)?, unchanged))
}

/// Makes several lanes, whose files are made all at once.
pub(super) fn make_all(
    op: &Operation<'_>,
    plans: &[Plan<'_>],
) -> Result<(Vec<LaneRecord>, Option<PathBuf>), Error> {
    let begin = |plan| Ok((plan, Steps { op, plan }.begin()?));
    let begun = plans.iter().map(begin).collect::<Result<Vec<_>, Error>>()?;
    let unchanged = make_ready(op, &begun)?;
    let finish = |(plan, start)| Steps { op, plan }.finish(start);
    Ok((begun.into_iter().map(finish).collect::<Result<_, _>>()?, unchanged))
}

/// Gives lanes that were begun their files, and what else a new lane gets: a checkout that was seen to be unchanged. A failure
/// takes all of them back.
fn make_ready(op: &Operation<'_>, begun: &[(&Plan<'_>, Oid)]) -> Result<Option<PathBuf>, Error> {
    let project = op.project;
    let mut folders = Vec::with_capacity(begun.len());
    for (plan, start) in begun {
        folders.push(Folder { name: plan.name.as_str(), dir: &plan.path, start: *start });
    }
    let made = files::fill(op, &folders).and_then(|Filled { kept, unchanged }| {
        for ((plan, _), kept) in begun.iter().zip(&kept) {
            let (name, base) = (plan.name.as_str(), plan.asked.base.branch.as_str());
            SetUp { project, name, branch: &plan.branch, base, dir: &plan.path, kept }
                .run(plan.asked.given)?;
        }
        Ok(unchanged)
    });
    if made.is_err() {
        for (plan, _) in begun {
            remove(project, plan);
        }
    }
    made
}

/// Removes what was made of a lane. The name's lock is held, so nobody else is in it.
fn remove(project: &Project, plan: &Plan<'_>) {
    let _lock = project.store.locks().take(&LockName::Worktrees);
    drop(std::fs::remove_dir_all(project.store.layout().lane(plan.name.as_str())));
    // Copies and commands may have left folders that are closed to writing.
    drop(remove_tree(&plan.path));
    drop(project.repo.forget_worktree(&plan.path));
}

struct Steps<'a, 'p> {
    op: &'a Operation<'p>,
    plan: &'a Plan<'a>,
}

impl Steps<'_, '_> {
    /// Makes the branch, and a worktree of it without files; the commit that they are at.
    fn begin(&self) -> Result<Oid, Error> {
        let (project, plan) = (self.op.project, self.plan);
        let start = match &plan.asked.carry {
            None => plan.asked.base.start,
            Some(from) => self.carried(from)?,
        };
        {
            let _lock = project.store.locks().take(&LockName::Worktrees)?;
            place::prepare_for(project, &plan.path)?;
            // Again, right before: what exists now was not made here and must not be taken back.
            require_free(project, &plan.name)?;
            self.op.create_ref(&format!("refs/heads/{}", plan.branch), start).map_err(|e| self.blocked(e))?;
        }
        let step = Step::Worktree { dir: plan.path.clone(), lane: plan.name.to_string(), start };
        self.op.perform_by(step, |scratch| self.make_worktree(scratch, start))?;
        Ok(start)
    }

    /// Makes the lane of a worktree that has its files.
    fn finish(&self, start: Oid) -> Result<LaneRecord, Error> {
        let plan = self.plan;
        let lane = self.record()?;
        let (path, zero, tip) = (plan.path.clone(), start.null().to_string(), start.to_string());
        self.op.after(move |project| {
            if let Err(e) = run_hook(&project.repo, &path, "post-checkout", &[&zero, &tip, "1"]) {
                project.listener.warn(format!("the repository's post-checkout hook failed: {e}"));
            }
        });
        let message = format!("lane '{}' made from {}", lane.name, lane.base);
        self.op.tell(event::Name::LaneCreated, Some(&lane), message);
        Ok(lane)
    }

    /// Makes the folder in a way that fails where somebody else was faster. A failure takes it back.
    fn make_worktree(&self, scratch: &Path, start: Oid) -> Result<(), Error> {
        let (project, plan) = (self.op.project, self.plan);
        half_made::make_folder(&plan.path, scratch)?;
        let made = self.add_worktree(start);
        if made.is_err() {
            remove(project, plan);
        }
        made
    }

    fn add_worktree(&self, start: Oid) -> Result<(), Error> {
        let (project, plan) = (self.op.project, self.plan);
        {
            let _lock = project.store.locks().take(&LockName::Worktrees)?;
            project.repo.add_worktree(&plan.path, &Head::Branch(plan.branch.clone()))?;
            let cut = plan.asked.sparse.then_some(plan.scope());
            kind::settle(project, &plan.path, start, cut)?;
        }
        fault::point("worktree.added");
        let prompt = plan.asked.prompt.unwrap_or_default();
        // The lane's record follows, in the same folder.
        write_first(&project.store.layout().task(plan.name.as_str()), prompt.as_bytes())?;
        Ok(())
    }

    /// Why no branch could be made: one `proq/x/y` makes `proq/x` impossible, which git says at length.
    fn blocked(&self, e: Error) -> Error {
        let project = self.op.project;
        if let Ok(Some(_)) = project.repo.branch_tip(&self.plan.branch) {
            return taken(project, self.plan.branch.clone());
        }
        let below = project.repo.refs_below(&format!("refs/heads/{}/", self.plan.branch));
        match below.ok().and_then(|refs| refs.into_iter().next()) {
            Some((name, _)) => taken(project, name.trim_start_matches("refs/heads/").to_owned()),
            None => e,
        }
    }

    /// A commit of the uncommitted changes at `from`, on top of the starting point, which may be another commit than the
    /// one they were made on.
    fn carried(&self, from: &Path) -> Result<Oid, Error> {
        let (start, project) = (self.plan.asked.base.start, self.op.project);
        let repo = &project.repo;
        let checkout = Checkout::lock(project, from)?;
        let Some(head) = repo.head_of(from)? else { return Ok(start) };
        let (before, ours, after) = (repo.tree_of(head)?, repo.tree_of(start)?, checkout.tracked_tree()?);
        let mut tree = after;
        if before != ours {
            let scratch = project.store.layout().scratch()?;
            let merged = merge_trees(repo, (before, ours, after), scratch.path(), None)?;
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

    fn record(&self) -> Result<LaneRecord, Error> {
        let (project, plan) = (self.op.project, self.plan);
        let git_dir = project.repo.git_dir_of(&plan.path)?;
        let (name, asked) = (plan.name.as_str(), &plan.asked);
        let id = git_dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let place = Tree { branch: plan.branch.clone(), worktree_id: id };
        // What is carried over is the lane's own work.
        let Base { branch: base, start } = asked.base.clone();
        let lane = LaneRecord {
            title: title_of(asked.called()).unwrap_or_else(|| name.to_owned()),
            agent: asked.agent.clone(),
            checks: asked.checks.clone(),
            scope: asked.scope.clone(),
            auto_merge: asked.auto_merge,
            group: asked.group.clone(),
            batch: asked.batch.clone(),
            port: reserved_ports(project, name),
            ..LaneRecord::new(name, place, plan.path.clone(), base, start)
        };
        self.op.save(&lane, &project.store.layout().lane_record(&lane.name))?;
        // What it said stands in the record now.
        drop(std::fs::remove_file(project.store.layout().set_up(name)));
        Ok(lane)
    }
}

/// The first line of a prompt that says something, at most 120 characters.
pub(super) fn title_of(prompt: &str) -> Option<String> {
    let line = prompt.lines().map(str::trim).find(|l| !l.is_empty())?;
    plain_title(line.trim_start_matches('#'))
}

/// A title as it is kept: one line without control characters, of at most 120; none when nothing is left.
pub(crate) fn plain_title(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line: String = lines.join(" ").chars().filter(|c| !c.is_control()).take(120).collect();
    Some(line.trim().to_owned()).filter(|title| !title.is_empty())
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
