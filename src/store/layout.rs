//! Owns where each thing lies below `proq/`. The only place that joins these paths.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Error, now};

/// The name of a repository's store.
pub(super) const ROOT: &str = "proq";

/// The paths of one repository's store.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout below a common git directory.
    pub(super) fn new(common_dir: &Path) -> Layout {
        Layout { root: common_dir.join(ROOT) }
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// All lanes.
    pub(crate) fn lanes(&self) -> PathBuf {
        self.root.join("lanes")
    }

    /// One lane: its record, its task, its runs.
    pub(crate) fn lane(&self, name: &str) -> PathBuf {
        self.lanes().join(name)
    }

    /// A lane's record.
    pub(crate) fn lane_record(&self, name: &str) -> PathBuf {
        self.lane(name).join("lane.toml")
    }

    /// Whether a lane of this name is on record, also where this user may not look.
    pub(crate) fn has_lane_record(&self, name: &str) -> bool {
        super::is_there(&self.lane_record(name))
    }

    /// What a lane's agent was asked.
    pub(crate) fn task(&self, name: &str) -> PathBuf {
        self.lane(name).join("task.md")
    }

    /// The folder, in a lane's, of what was sent to it and that its agent has not been told yet.
    pub(crate) const INBOX: &str = "inbox";

    /// The record beside it of what was told and may be there still.
    pub(crate) const TOLD: &str = "told.toml";

    /// The record of a lane's `attempt`-th run.
    pub(crate) fn run_record(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.toml"))
    }

    /// What the supervisor of a lane's last runs wrote: nothing, if all is well with it.
    pub(crate) fn supervisor_log(&self, name: &str) -> PathBuf {
        self.lane(name).join("supervisor.log")
    }

    /// What a lane's `attempt`-th run wrote.
    pub(crate) fn run_log(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.log"))
    }

    /// What a run wrote to its standard error, where its output is for machines and has a log of its own.
    pub(crate) fn run_errors(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.err"))
    }

    /// What a run was asked in place of the lane's task, in the words of whoever asked.
    pub(crate) fn run_said(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.said.md"))
    }

    /// What a run was told more while it lasted, a folder for each time, below a lane's folder, which may be that of a removed one.
    pub(crate) fn run_told_in_lane(attempt: u32) -> PathBuf {
        Path::new("runs").join(format!("{attempt}.told"))
    }

    /// What a run is told in place of its prompt when its agent cannot go on in the conversation that there was.
    pub(crate) fn run_anew(&self, name: &str, attempt: u32) -> PathBuf {
        self.run_dir(name, attempt).join("anew.md")
    }

    /// What is shown of a run while it lasts.
    pub(crate) fn run_live(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.live.json"))
    }

    /// What the landing of a lane wrote that landed by itself after its `attempt`-th run.
    pub(crate) fn landing_log(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(Layout::landing_log_in_lane(attempt))
    }

    /// The same below a lane's folder, which may be that of a removed one.
    pub(crate) fn landing_log_in_lane(attempt: u32) -> PathBuf {
        Path::new("runs").join(format!("{attempt}.merge.log"))
    }

    /// What a lane's agent reported.
    pub(crate) fn report(&self, name: &str) -> PathBuf {
        self.lane(name).join(Layout::REPORT)
    }

    /// Its name in a lane's folder, which may be that of a removed one.
    pub(crate) const REPORT: &str = "report.toml";

    /// The agent that supervised last.
    pub(crate) fn overseer(&self) -> PathBuf {
        self.root.join("supervisor/session.toml")
    }

    /// Settings for an agent that reads them from a file.
    pub(crate) fn overseer_settings(&self) -> PathBuf {
        self.root.join("supervisor/settings.json")
    }

    /// Removed lanes, as `name@N`.
    pub(crate) fn history(&self) -> PathBuf {
        self.root.join("history")
    }

    /// What is known of a lane's conflict.
    pub(crate) fn conflict(&self, name: &str) -> PathBuf {
        self.lane(name).join("conflict.toml")
    }

    /// Why a lane's checks failed.
    pub(crate) fn check(&self, name: &str) -> PathBuf {
        self.lane(name).join("check.toml")
    }

    /// What a failed check wrote, below a lane's folder.
    pub(crate) fn check_log(id: &str) -> PathBuf {
        Path::new("checks").join(format!("{id}.log"))
    }

    /// What was found good by checks, a file for each.
    pub(crate) fn greens(&self) -> PathBuf {
        self.root.join("cache/verify")
    }

    /// Who is at work in the `n`-th worktree for checks.
    pub(crate) fn slot(&self, n: usize) -> PathBuf {
        self.root.join(format!("cache/slot-{n}.toml"))
    }

    /// What is written there.
    pub(crate) fn slot_log(&self, n: usize) -> PathBuf {
        self.root.join(format!("cache/slot-{n}.log"))
    }

    /// The commands of the repository's that the user has approved.
    pub(crate) fn approvals(&self) -> PathBuf {
        self.root.join("approved.toml")
    }

    /// The conflict of a lane that is being resolved.
    pub(crate) fn resolve(&self, name: &str) -> PathBuf {
        self.lane(name).join("resolve.toml")
    }

    /// What a lane's `attempt`-th run was told.
    pub(crate) fn run_prompt(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(Layout::run_prompt_in_lane(attempt))
    }

    /// The same below a lane's folder, which may be that of a removed one.
    pub(crate) fn run_prompt_in_lane(attempt: u32) -> PathBuf {
        Path::new("runs").join(format!("{attempt}.md"))
    }

    /// What a lane's `attempt`-th run answered, where it only looked.
    pub(crate) fn run_answer(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(Layout::run_answer_in_lane(attempt))
    }

    /// The same below a lane's folder, which may be that of a removed one.
    pub(crate) fn run_answer_in_lane(attempt: u32) -> PathBuf {
        Path::new("runs").join(format!("{attempt}.answer.md"))
    }

    /// The rules that a lane's `attempt`-th run was told apart from that.
    pub(crate) fn run_rules(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(Layout::run_rules_in_lane(attempt))
    }

    /// The same below a lane's folder, which may be that of a removed one.
    pub(crate) fn run_rules_in_lane(attempt: u32) -> PathBuf {
        Path::new("runs").join(format!("{attempt}.rules.md"))
    }

    /// What belongs to a lane's `attempt`-th run only: settings for its agent, and what that notes.
    pub(crate) fn run_dir(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.d"))
    }

    /// What the agent of a run does, by its own hooks.
    pub(crate) fn run_activity(&self, name: &str, attempt: u32) -> PathBuf {
        self.run_dir(name, attempt).join("activity.toml")
    }

    /// What the last check wrote that was run when the agent wanted to end.
    pub(crate) fn gate_log(&self, name: &str, attempt: u32) -> PathBuf {
        self.run_dir(name, attempt).join("gate.log")
    }

    /// There once the run is to come to its end by itself.
    pub(crate) fn run_wrap_up(&self, name: &str, attempt: u32) -> PathBuf {
        self.run_dir(name, attempt).join("wrap-up")
    }

    /// What STATUS.md of a task that is a folder said before a run of it.
    pub(crate) fn run_status(&self, name: &str, attempt: u32) -> PathBuf {
        self.run_dir(name, attempt).join("status.md")
    }

    /// What it said after a run whose work was taken back.
    pub(crate) fn run_status_left(&self, name: &str, attempt: u32) -> PathBuf {
        self.run_dir(name, attempt).join("status-left.md")
    }

    /// What is left of the files of a task that is begun anew after a run, below a folder of this name.
    pub(crate) fn run_left(&self, name: &str, attempt: u32, folder: &str, file: &Path) -> PathBuf {
        self.run_dir(name, attempt).join("left").join(folder).join(file)
    }

    /// What a lane's `attempt`-th run said that was a review.
    pub(crate) fn run_review(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.review.md"))
    }

    /// How far a lane's task has come that is a folder.
    pub(crate) fn packet(&self, name: &str) -> PathBuf {
        self.lane(name).join(Layout::PACKET)
    }

    /// Its name in a lane's folder, which may be that of a removed one.
    pub(crate) const PACKET: &str = "packet.toml";

    /// There once a lane's runs are to come to their end by themselves.
    pub(crate) fn wrap_up(&self, name: &str) -> PathBuf {
        self.lane(name).join("wrap-up")
    }

    /// What a lane's agent keeps from run to run.
    pub(crate) fn agent_dir(&self, name: &str) -> PathBuf {
        self.lane(name).join("agent")
    }

    /// The files that belong to a lane's task.
    pub(crate) fn attachments(&self, name: &str) -> PathBuf {
        self.lane(name).join("attachments")
    }

    /// Below a lane's record: the files that belong to what its agent was told later, a folder for each time.
    pub(crate) const SAID_FILES: &'static str = "said-files";

    /// The same of a removed lane, by its name in the history.
    pub(crate) fn past_attachments(&self, past: &str) -> PathBuf {
        self.history().join(past).join("attachments")
    }

    /// What is known of the main checkout from before a run worked there.
    pub(crate) fn run_before(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.before.toml"))
    }

    /// The name of the lane whose agent worked in the main checkout last.
    pub(crate) fn in_place(&self) -> PathBuf {
        self.root.join("in-place")
    }

    /// Plans that agents made and nobody has run, a folder for each.
    pub(crate) fn drafts(&self) -> PathBuf {
        self.root.join("plans")
    }

    /// One of them.
    pub(crate) fn draft(&self, name: &str) -> PathBuf {
        self.drafts().join(name)
    }

    /// The record in its folder.
    pub(crate) fn draft_record(folder: &Path) -> PathBuf {
        folder.join("draft.toml")
    }

    /// The plan of this number in its folder.
    pub(crate) fn draft_plan(folder: &Path, number: u64) -> PathBuf {
        folder.join(format!("{number}.toml"))
    }

    /// What its agent was asked first, in its folder.
    pub(crate) fn draft_prompt(folder: &Path) -> PathBuf {
        folder.join("prompt.md")
    }

    /// A file of the user's that a plan was written over.
    pub(crate) fn replaced(&self, id: &str) -> PathBuf {
        self.root.join(format!("replaced/{id}"))
    }

    /// What agents found missing among tasks of this hash.
    pub(crate) fn proposals(&self, hash: &str) -> PathBuf {
        self.root.join(format!("needs/{hash}.toml"))
    }

    /// The open preview, if one is open.
    pub(crate) fn preview(&self) -> PathBuf {
        self.root.join("preview.toml")
    }

    /// A snapshot's folder: its record, the raw index, the files that were set aside.
    pub(crate) fn snapshot(&self, id: &str) -> PathBuf {
        self.snapshots().join(id)
    }

    /// The copies of ignored files that belong to an automatic snapshot.
    pub(crate) fn snapshot_ignored(&self, id: &str) -> PathBuf {
        self.snapshot(id).join("ignored")
    }

    /// What was removed and is kept for a time.
    pub(crate) fn trash(&self) -> PathBuf {
        self.root.join("trash")
    }

    /// What fences in the git of agents: a folder for each run.
    pub(crate) fn fences(&self) -> PathBuf {
        self.root.join("fences")
    }

    /// That of a lane's `attempt`-th run.
    pub(crate) fn fence(&self, name: &str, attempt: u32) -> PathBuf {
        self.fences().join(format!("{name}-{attempt}"))
    }

    /// The folder of hooks in it, which git is told to use.
    pub(crate) fn fence_hooks(fence: &Path) -> PathBuf {
        fence.join("hooks")
    }

    /// The program that these hooks start.
    pub(crate) fn fence_program(fence: &Path) -> PathBuf {
        fence.join("program")
    }

    /// What it knows of the run.
    pub(crate) fn fence_record(fence: &Path) -> PathBuf {
        fence.join("fence.toml")
    }

    /// What other worktrees were like when the run began.
    pub(crate) fn fence_sight(fence: &Path) -> PathBuf {
        fence.join("sight.toml")
    }

    /// Made once it was told that the run moved HEAD in this other worktree.
    pub(crate) fn fence_told(fence: &Path, tree: &str) -> PathBuf {
        fence.join(format!("told-{tree}"))
    }

    /// A list of the fence's, a line each: `refs`, what there was when the run began; and of its hooks: `made`, the branches and tags that
    /// the run has made; `kept`, those that were kept; `to-keep`, objects that could not be given a ref, and the refs that they are to have.
    pub(crate) fn fence_list(fence: &Path, name: &str) -> PathBuf {
        fence.join(name)
    }

    /// The fence that one of its hooks belongs to, and the common git directory that this is below.
    pub(crate) fn fence_of_hook(hook: &Path) -> Option<(PathBuf, PathBuf)> {
        let fence = hook.parent()?.parent()?;
        let root = fence.parent()?.parent()?;
        Some((fence.to_owned(), root.parent()?.to_owned()))
    }

    /// Made when a lane got a commit that nobody has looked at yet.
    pub(crate) fn moved(&self, name: &str) -> PathBuf {
        self.lane(name).join("moved")
    }

    /// What is known of the time.
    pub(crate) fn clock(&self) -> PathBuf {
        self.root.join("clock.toml")
    }

    /// Which git program was found good.
    pub(crate) fn git_version(&self) -> PathBuf {
        self.root.join("cache/git.toml")
    }

    /// What merges were looked ahead at, and what came of it.
    pub(crate) fn forecasts(&self) -> PathBuf {
        self.root.join("cache/forecast")
    }

    /// Which lanes were in each other's way when that was last looked at.
    pub(crate) fn overlaps(&self) -> PathBuf {
        self.root.join("cache/overlaps")
    }

    /// When git was last asked for a graph of commits.
    pub(crate) fn graph_tried(&self) -> PathBuf {
        self.root.join("cache/commit-graph")
    }

    /// Which blobs were found to be as long as their files.
    pub(crate) fn sizes(&self) -> PathBuf {
        self.root.join("cache/sizes")
    }

    /// What the last looks into lanes' worktrees found out about their folders.
    pub(crate) fn looks(&self) -> PathBuf {
        self.root.join("cache/looks")
    }

    /// The same for one lane.
    pub(crate) fn look(&self, name: &str) -> PathBuf {
        self.looks().join(name)
    }

    /// Lock files.
    pub(super) fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }

    /// What is under way: a folder for each process at work.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Where a folder of `work/` goes that a person has to look at.
    pub(crate) fn aside(&self, id: &str) -> PathBuf {
        self.root.join(format!("aside-{id}"))
    }

    /// The operation log: one file for each operation, by its number.
    pub(crate) fn operations(&self) -> PathBuf {
        self.root.join("ops")
    }

    /// One operation of the log.
    pub(crate) fn operation(&self, number: u64) -> PathBuf {
        self.operations().join(format!("{number}.jsonl"))
    }

    /// All snapshots.
    pub(crate) fn snapshots(&self) -> PathBuf {
        self.root.join("snaps")
    }
}

/// Makes a folder that only its owner may look into: logs, prompts and set-aside files are nobody else's business.
/// What is above it is made too, but never a repository: whoever still has something to write when one was removed fails.
pub(crate) fn make_private(dir: &Path) -> Result<(), Error> {
    use std::os::unix::fs::DirBuilderExt;
    let make = || std::fs::DirBuilder::new().mode(0o700).create(dir);
    let made = match make() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && dir.file_name() != Some(OsStr::new(ROOT)) => {
            if let Some(parent) = dir.parent() {
                make_private(parent)?;
            }
            make()
        }
        made => made,
    };
    match made {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        made => made.map_err(Error::io("create", dir)),
    }
}

/// An id that sorts by time and that no other process makes: time, process, count.
pub(crate) fn new_id() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{count}", now().compact(), std::process::id())
}

#[cfg(test)]
mod tests;
