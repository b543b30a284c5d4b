//! Worktrees for checks and hooks, outside of the repository. Later landings use them again; only one process
//! uses each at once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proq_base::lane_name::LaneName;
use proq_base::process::identity::is_same_process;
use proq_base::process::signals::stop_group;
use proq_base::process::strays::stop_marked_processes;
use proq_git::{CommitId, Repo};
use proq_store as store;
use proq_store::base::atomic;
use proq_store::base::atomic::create_private_dir;
use proq_store::base::file_tree::remove_tree;
use proq_store::base::record::Record;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::records::check::{CheckSetUpRecord, CheckWorktreeRecord};
use proq_store::records::ports::Ports;

use crate::lane::Project;
use crate::lane::worktree::checks_dir::{check_worktree_name, former_check_worktree_name};
use crate::lane::worktree::ports;
use crate::merge::Error;

/// Name of the file that identifies the folder's repository and excludes the folder from backups.
const TAG_FILE: &str = "CACHEDIR.TAG";

/// Time that processes of a crashed landing get to exit.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Worktree for checks or hooks that this process holds by a lock.
#[derive(Debug)]
#[must_use]
pub struct HeldWorktree {
    /// Top folder of the worktree.
    pub dir: PathBuf,
    _lock: LockGuard,
}

/// Numbered worktree for checks.
#[derive(Debug)]
#[must_use]
pub struct CheckWorktree {
    /// Number of the worktree.
    pub number: usize,
    /// Folder of the worktree, with the lock that keeps other processes out of it.
    pub worktree: HeldWorktree,
    /// Ports for servers that a check starts.
    pub ports: Option<Ports>,
}

impl CheckWorktree {
    /// Acquires the worktree of a number, and ends processes that a crashed landing left running in it.
    pub fn acquire(project: &Project, number: usize) -> Result<CheckWorktree, Error> {
        let name = check_worktree_name(number);
        let worktree = HeldWorktree::acquire(project, &LockName::CheckWorktree(number), &name)?;
        let record = project.store.layout().check_worktree_record(number);
        if let Ok(Some(previous)) = CheckWorktreeRecord::load_if_exists(&record)
            && is_same_process(previous.pid, previous.process_start_time.as_deref())
        {
            stop_group(previous.pid, STOP_GRACE);
        }
        worktree.remove_former(project, &former_check_worktree_name(number))?;
        Ok(CheckWorktree { number, worktree, ports: ports::extra_ports(project, number) })
    }

    /// Returns the process mark of this worktree: the value of an environment variable by which every process
    /// that a check starts here is found.
    pub(crate) fn process_mark(&self) -> String {
        format!("check-in-{}", self.worktree.dir.display())
    }

    /// Checks out a commit in the worktree. Processes that earlier checks left running, in any session or
    /// group, are ended first: they would write to files of the next check.
    ///
    /// The worktree is created again if it was set up with other commands, or if its set-up did not succeed.
    /// Returns whether the set-up commands have yet to be run.
    pub(crate) fn check_out(
        &self,
        project: &Project,
        commit: CommitId,
        set_up_commands: &[String],
    ) -> Result<bool, Error> {
        stop_marked_processes(&self.process_mark(), STOP_GRACE);
        let path = project.store.layout().check_set_up_record(self.number);
        let wanted = CheckSetUpRecord { commands: set_up_commands.to_vec(), is_complete: true };
        // An unreadable record is that of another set-up.
        let current =
            CheckSetUpRecord::load_if_exists(&path).unwrap_or_else(|_| Some(CheckSetUpRecord::default()));
        let is_current = match &current {
            Some(record) => *record == wanted,
            None => set_up_commands.is_empty(),
        };
        if !is_current {
            // The record stays incomplete until the set-up has succeeded, also after a crash.
            CheckSetUpRecord::default().save(&path)?;
            self.worktree.recreate(project, commit)?;
            if set_up_commands.is_empty() {
                remove_tree(&path)?;
            }
        }
        let checkout = self.worktree.check_out(project, commit)?;
        let needs_set_up = !set_up_commands.is_empty() && (!is_current || checkout == CheckoutKind::Created);
        if needs_set_up {
            CheckSetUpRecord::default().save(&path)?;
        }
        Ok(needs_set_up)
    }

    /// Restores the files of the commit after the set-up commands, which may have changed them, and ends
    /// processes that these left running. Ignored files stay.
    pub(crate) fn finish_set_up(
        &self,
        project: &Project,
        commit: CommitId,
        set_up_commands: &[String],
    ) -> Result<(), Error> {
        stop_marked_processes(&self.process_mark(), STOP_GRACE);
        let is_complete = self.worktree.check_out(project, commit)? == CheckoutKind::Reset;
        let record = CheckSetUpRecord { commands: set_up_commands.to_vec(), is_complete };
        Ok(record.save(&project.store.layout().check_set_up_record(self.number))?)
    }
}

/// How a commit was checked out in a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckoutKind {
    /// The worktree was reset, and its ignored files are still there.
    Reset,
    /// The worktree was created again.
    Created,
}

impl HeldWorktree {
    /// Acquires the worktree for the repository's hooks.
    pub(crate) fn acquire_for_hooks(project: &Project) -> Result<HeldWorktree, Error> {
        HeldWorktree::acquire(project, &LockName::HookWorktree, "hooks")
    }

    /// Locks the worktree called `name`, which need not exist yet.
    fn acquire(project: &Project, lock: &LockName, name: &str) -> Result<HeldWorktree, Error> {
        let lock = project.store.locks().acquire(lock)?;
        Ok(HeldWorktree { dir: ensure_worktrees_dir(project)?.join(name), _lock: lock })
    }

    /// Checks out a commit, with the files that a new worktree of the commit would have; ignored files stay.
    /// If that fails, or cannot be verified, the worktree is created again.
    pub(crate) fn check_out(&self, project: &Project, commit: CommitId) -> Result<CheckoutKind, Error> {
        let repo = &project.repo;
        if repo.is_intact_verify_worktree(&self.dir) && repo.reset_verify_worktree(&self.dir, commit).is_ok()
        {
            self.require_detached_at(repo, commit)?;
            return Ok(CheckoutKind::Reset);
        }
        self.recreate(project, commit)?;
        repo.reset_verify_worktree(&self.dir, commit)?;
        self.require_detached_at(repo, commit)?;
        Ok(CheckoutKind::Created)
    }

    /// Detaches HEAD of the worktree at `commit` if a command has switched to a branch. A branch that is
    /// checked out in this worktree could not be moved alone.
    pub fn detach_head(&self, repo: &Repo, commit: CommitId) -> Result<(), Error> {
        match repo.detached_head(&self.dir) {
            Ok(Some(_)) => Ok(()),
            _ => Ok(repo.detach_head(&self.dir, commit)?),
        }
    }

    /// Returns whether the folder is still this worktree. A command may have removed it, made it a mere
    /// folder, or let its `.git` name another worktree, which must not be changed then.
    pub fn is_intact(&self, repo: &Repo) -> bool {
        repo.is_verify_worktree(&self.dir)
    }

    /// Refuses a worktree that is no longer intact after a check of `lanes`.
    ///
    /// # Errors
    /// [`Error::CheckWorktreeGone`].
    pub(crate) fn require_intact(&self, repo: &Repo, lanes: &[LaneName]) -> Result<(), Error> {
        match self.is_intact(repo) {
            true => Ok(()),
            false => Err(Error::CheckWorktreeGone { dir: self.dir.clone(), lanes: lanes.to_vec() }),
        }
    }

    /// Refuses a worktree whose HEAD is not detached at `commit`.
    ///
    /// # Errors
    /// [`Error::CheckoutFailed`].
    fn require_detached_at(&self, repo: &Repo, commit: CommitId) -> Result<(), Error> {
        if repo.detached_head(&self.dir)? == Some(commit) {
            return Ok(());
        }
        Err(Error::CheckoutFailed { dir: self.dir.clone(), commit })
    }

    /// Removes the worktree with the name that this one had in earlier versions, if it still exists. All files
    /// below its folder were created by checks.
    fn remove_former(&self, project: &Project, name: &str) -> Result<(), Error> {
        let dir = self.dir.with_file_name(name);
        if dir.symlink_metadata().is_ok() {
            let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
            remove_tree(&dir)?;
            project.repo.forget_worktree(&dir)?;
        }
        Ok(())
    }

    /// Deletes the worktree's folder and adds the worktree again at a commit. All files below the folder were
    /// created by checks.
    fn recreate(&self, project: &Project, commit: CommitId) -> Result<(), Error> {
        let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
        if self.dir.symlink_metadata().is_ok() {
            remove_tree(&self.dir)?;
        }
        project.repo.forget_worktree(&self.dir)?;
        let added = project.repo.add_verify_worktree(&self.dir, commit);
        if added.is_err() {
            // A killed git may have left an unfinished worktree.
            drop(project.repo.remove_unfinished_worktree(&self.dir));
        }
        Ok(added?)
    }
}

/// Returns the folder of this repository's check worktrees, and creates it if it is missing.
///
/// # Errors
/// [`Error::NoHomeDir`], [`Error::CheckDirInsideRepo`] or [`Error::ForeignCheckDir`].
fn ensure_worktrees_dir(project: &Project) -> Result<PathBuf, Error> {
    let dir = project.checks_dir().ok_or(Error::NoHomeDir)?;
    let repo = project.repo.common_dir();
    create_private_dir(&dir)?;
    let dir = dir.canonicalize().map_err(store::Error::io("inspect", &dir))?;
    // Inside the repository, a check would find the modules and settings of the surrounding checkout, and
    // could pass for the wrong reason.
    if dir.starts_with(repo) || project.repo.main_worktree().is_some_and(|main| dir.starts_with(main)) {
        drop(std::fs::remove_dir(&dir));
        return Err(Error::CheckDirInsideRepo { dir: dir.parent().unwrap_or(&dir).to_owned() });
    }
    let tag_file = dir.join(TAG_FILE);
    let text = format!(
        "Signature: 8a477f597d28d172789f06886806bc55\n# git-proq checks what lands in {} here. It may be deleted.\n",
        repo.display()
    );
    match proq_base::regular_file::read_store_text(&tag_file) {
        Ok(content) if content == text => Ok(dir),
        Err(_) if is_empty_but_for_tag(&dir) => {
            atomic::write(&tag_file, text.as_bytes())?;
            Ok(dir)
        }
        Ok(_) | Err(_) => Err(Error::ForeignCheckDir { dir }),
    }
}

/// Returns whether a folder is empty, apart from an unfinished tag file of a killed process.
fn is_empty_but_for_tag(dir: &Path) -> bool {
    let is_relevant = |e: std::io::Result<std::fs::DirEntry>| {
        e.is_ok_and(|e| !e.file_name().to_string_lossy().starts_with(&format!(".{TAG_FILE}")))
    };
    std::fs::read_dir(dir).is_ok_and(|mut entries| !entries.any(is_relevant))
}
