//! Owns the worktrees that checks and hooks run in: outside of the repository, kept from one landing to the next, each for
//! one run at a time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Error;
use crate::git::Oid;
use crate::lane::{self, Project};
use crate::process::{end_group, end_marked, is_same};
use crate::store::records::{Ports, SlotRecord};
use crate::store::{self, Guard, LockName, Record, make_private, remove_tree};

/// What says whose folder it is, and keeps it out of backups.
const MARK: &str = "CACHEDIR.TAG";

/// How long what a dead landing left running may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// One worktree, held by this process.
#[derive(Debug)]
#[must_use]
pub(super) struct Place {
    /// Its top folder.
    pub(super) dir: PathBuf,
    _lock: Guard,
}

/// One worktree for checks.
#[derive(Debug)]
#[must_use]
pub(super) struct Slot {
    /// Its number.
    pub(super) number: usize,
    /// The worktree.
    pub(super) place: Place,
    /// Where servers that are started there are to listen.
    pub(super) ports: Option<Ports>,
}

impl Slot {
    /// Takes the worktree of a number. What a dead landing left running in it is ended.
    pub(super) fn take(project: &Project, number: usize) -> Result<Slot, Error> {
        let place = Place::take(project, &LockName::Slot(number), &format!("slot-{number}"))?;
        let record = project.store.layout().slot(number);
        if let Ok(Some(last)) = SlotRecord::find(&record)
            && is_same(last.pid, last.birth.as_deref())
        {
            end_group(last.pid, GRACE);
        }
        Ok(Slot { number, place, ports: lane::ports_beside(project, number) })
    }

    /// What marks whatever a check starts here.
    pub(super) fn mark(&self) -> String {
        format!("check-in-{}", self.place.dir.display())
    }

    /// Brings the worktree to a commit. What earlier checks left running, in whatever session or group, is ended first: it would
    /// write to files of the next.
    pub(super) fn bring_to(&self, project: &Project, commit: Oid) -> Result<(), Error> {
        end_marked(&self.mark(), GRACE);
        self.place.bring_to(project, commit)
    }
}

impl Place {
    /// Takes the worktree for the repository's hooks.
    pub(super) fn for_hooks(project: &Project) -> Result<Place, Error> {
        Place::take(project, &LockName::Hooks, "hooks")
    }

    fn take(project: &Project, lock: &LockName, name: &str) -> Result<Place, Error> {
        let lock = project.store.locks().take(lock)?;
        Ok(Place { dir: home(project)?.join(name), _lock: lock })
    }

    /// Brings it to a commit, as a new one of that commit would be, what is ignored as it was left. Where that cannot be done, or
    /// told, it is made anew.
    pub(super) fn bring_to(&self, project: &Project, commit: Oid) -> Result<(), Error> {
        let repo = &project.repo;
        if repo.is_sound_worktree(&self.dir) && repo.bring_to(&self.dir, commit).is_ok() {
            return self.require_at(project, commit);
        }
        self.build(project, commit)?;
        repo.bring_to(&self.dir, commit)?;
        self.require_at(project, commit)
    }

    /// Takes it off whatever branch a command has switched to: a branch that is checked out here could not move alone.
    pub(super) fn let_go(&self, project: &Project, commit: Oid) -> Result<(), Error> {
        match project.repo.detached_head(&self.dir) {
            Ok(Some(_)) => Ok(()),
            _ => Ok(project.repo.detach(&self.dir, commit)?),
        }
    }

    /// Whether the folder is still this worktree: a command may have removed it, made it a mere folder, or had its `.git` name another
    /// worktree, of which nothing may be changed then.
    pub(super) fn is_there(&self, project: &Project) -> bool {
        project.repo.is_kept_worktree(&self.dir)
    }

    /// Refuses a worktree that is not there any more after a check of `lanes`.
    ///
    /// # Errors
    /// [`Error::WorktreeGone`].
    pub(super) fn require_there(&self, project: &Project, lanes: &[String]) -> Result<(), Error> {
        match self.is_there(project) {
            true => Ok(()),
            false => Err(Error::WorktreeGone { dir: self.dir.clone(), lanes: lanes.to_vec() }),
        }
    }

    fn require_at(&self, project: &Project, commit: Oid) -> Result<(), Error> {
        if project.repo.detached_head(&self.dir)? == Some(commit) {
            return Ok(());
        }
        Err(Error::NotThere { dir: self.dir.clone(), commit })
    }

    /// Makes it anew. All below its folder was made by checks.
    fn build(&self, project: &Project, commit: Oid) -> Result<(), Error> {
        let _lock = project.store.locks().take(&LockName::Worktrees)?;
        if self.dir.symlink_metadata().is_ok() {
            remove_tree(&self.dir)?;
        }
        project.repo.forget_worktree(&self.dir)?;
        let added = project.repo.add_warm(&self.dir, commit);
        if added.is_err() {
            // A git that was killed over it.
            drop(project.repo.forget_half_added(&self.dir));
        }
        Ok(added?)
    }
}

/// The folder of this repository's worktrees for checks, made when it is missing.
fn home(project: &Project) -> Result<PathBuf, Error> {
    let dir = project.checks_dir().ok_or(Error::NoHome)?;
    let repo = project.repo.common_dir();
    make_private(&dir)?;
    let dir = dir.canonicalize().map_err(store::Error::io("look at", &dir))?;
    // Inside, a check would find the modules and settings of the checkout around it, and be green for the wrong reason.
    if dir.starts_with(repo) || project.repo.main_worktree().is_some_and(|main| dir.starts_with(main)) {
        drop(std::fs::remove_dir(&dir));
        return Err(Error::Inside { dir: dir.parent().unwrap_or(&dir).to_owned() });
    }
    let mark = dir.join(MARK);
    let text = format!(
        "Signature: 8a477f597d28d172789f06886806bc55\n# git-proq checks what lands in {} here. It may be deleted.\n",
        repo.display()
    );
    match crate::regular_file::record_text(&mark) {
        Ok(found) if found == text => Ok(dir),
        Err(_) if is_empty(&dir) => {
            store::write_atomically(&mark, text.as_bytes())?;
            Ok(dir)
        }
        Ok(_) | Err(_) => Err(Error::NotOurs { dir }),
    }
}

/// What a killed process had begun to write there does not count.
fn is_empty(dir: &Path) -> bool {
    let visible = |e: std::io::Result<std::fs::DirEntry>| {
        e.is_ok_and(|e| !e.file_name().to_string_lossy().starts_with(&format!(".{MARK}")))
    };
    std::fs::read_dir(dir).is_ok_and(|mut entries| !entries.any(visible))
}
