//! Owns what a new lane is given besides the files of its commit: copies, links, its ports and names, and what its commands make.

mod commands;
mod copy;
mod env;
mod error;
mod files;
mod sync;

use std::path::Path;

pub(super) use commands::end_left;
pub(crate) use commands::{require_approved, run_later};
pub(crate) use env::env_file;
pub use error::SetUpError;
pub(crate) use sync::{Sync, plan as plan_sync, sync};

use self::commands::Commands;
use self::env::Whose;
use super::{Error, Project, ports};
use crate::config::Submodules;
use crate::fault;
use crate::git::RepoPath;
use crate::store::records::{Ports, SetUpRecord};
use crate::store::{LockName, Record};

/// How much of that a lane is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Given {
    /// All of it.
    #[default]
    Whole,
    /// All but what commands make.
    NoCommands,
    /// Its ports only: nobody is to work there.
    Nothing,
}

/// A lane whose files are there, and that has no record yet.
pub(super) struct SetUp<'a> {
    /// The repository.
    pub(super) project: &'a Project,
    /// Its name, which is held.
    pub(super) name: &'a str,
    /// Its branch.
    pub(super) branch: &'a str,
    /// Where it lands.
    pub(super) base: &'a str,
    /// Its worktree.
    pub(super) dir: &'a Path,
    /// What was kept in it from the lane that had the folder before.
    pub(super) kept: &'a [RepoPath],
}

impl SetUp<'_> {
    /// Gets the lane ready. Its folder in the store is there.
    ///
    /// # Errors
    /// [`SetUpError::Failed`] when a command fails; whatever keeps files from being copied. The lane is half ready then.
    pub(super) fn run(&self, given: Given) -> Result<(), Error> {
        // What is left of an earlier lane of this name says nothing of this one.
        drop(std::fs::remove_file(self.project.store.layout().failed_set_up_log(self.name)));
        let port = self.reserve_ports()?;
        if given == Given::Nothing {
            return Ok(());
        }
        self.copy_submodules()?;
        files::give(self.project, self.name, self.dir, self.kept)?;
        fault::point("set-up.copied");
        let whose =
            Whose { name: self.name, branch: Some(self.branch), base: self.base, port, dir: Some(self.dir) };
        env::write_new(self.project, &whose);
        let lines = &self.project.settings.set_up.commands;
        if given == Given::Whole && !lines.is_empty() {
            let commands = Commands { project: self.project, whose: &whose, dir: self.dir, is_new: true };
            let done = commands.run(&|| false);
            if done.is_err() {
                commands.save_log();
            }
            done?;
        }
        Ok(())
    }

    /// Gives it the submodules that are wanted, and names those that stay empty.
    fn copy_submodules(&self) -> Result<(), Error> {
        let wanted = self.project.settings.checkouts.submodules;
        if wanted == Submodules::Empty {
            return Ok(());
        }
        let (given, left) = self.project.repo.copy_submodules(self.dir, wanted == Submodules::All)?;
        if !given.is_empty() {
            self.project
                .listener
                .detail(format!("submodules copied from the main checkout: {}", given.join(", ")));
        }
        for left in left {
            self.project
                .listener
                .warn(format!("submodule {} of lane '{}' is empty: {}", left.path, self.name, left.why));
        }
        fault::point("set-up.submodules");
        Ok(crate::interrupt::check()?)
    }

    /// Chooses ports that nobody else gets meanwhile, however long the rest takes.
    fn reserve_ports(&self) -> Result<Option<Ports>, Error> {
        let _lock = self.project.store.locks().take(&LockName::Store)?;
        let port = ports::choose(self.project, self.name);
        if let (None, Some((from, to))) = (port, self.project.settings.ports) {
            self.project.listener.warn(format!(
                "lane '{}' has no ports: other lanes have all of lane.ports ({from}-{to}), or somebody listens there",
                self.name
            ));
        }
        let record = SetUpRecord { port, ..SetUpRecord::default() };
        record.note(&self.project.store.layout().set_up(self.name))?;
        Ok(port)
    }
}

/// The ports that were chosen for a lane which has no record yet.
pub(super) fn reserved_ports(project: &Project, name: &str) -> Option<Ports> {
    SetUpRecord::find(&project.store.layout().set_up(name)).ok().flatten()?.port
}
