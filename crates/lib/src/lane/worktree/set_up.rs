//! Set-up of a new lane, besides the files of its commit: copies, links, ports, environment file and set-up
//! commands.

pub mod commands;
pub mod copy;
pub mod env;
pub mod files;

use std::path::Path;

use proq_base::config::choices::SubmoduleMode;
use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_git::RepoPath;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::records::ports::{Ports, SetUpRecord};

use super::ports;
use crate::lane::{Error, Project};
use commands::{CommandRunner, SetUpLevel};
use env::LaneEnv;

/// Set-up of a lane that is checked out and has no record yet.
pub struct LaneSetUp<'a> {
    /// Repository, store and settings that the set-up comes from.
    pub project: &'a Project,
    /// Name of the lane; the caller holds its lock.
    pub name: &'a LaneName,
    /// Branch of the lane.
    pub branch: &'a str,
    /// Branch that the lane lands on.
    pub base: &'a str,
    /// Worktree of the lane.
    pub dir: &'a Path,
    /// Paths retained from the lane that had the folder before.
    pub retained_paths: &'a [RepoPath],
}

impl LaneSetUp<'_> {
    /// Sets the lane up. The lane's folder in the store must exist.
    ///
    /// # Errors
    /// [`SetUpError::Failed`](crate::errors::set_up_error::SetUpError::Failed) if a command fails, or the
    /// error that prevents files from being copied. The set-up is incomplete in both cases.
    pub fn run(&self, level: SetUpLevel) -> Result<(), Error> {
        // A log left by an earlier lane of this name does not concern this lane.
        drop(std::fs::remove_file(self.project.store.layout().failed_set_up_log(self.name)));
        let port = self.reserve_ports()?;
        if level == SetUpLevel::PortsOnly {
            return Ok(());
        }
        self.copy_submodules()?;
        files::copy_and_link(self.project, self.name, self.dir, self.retained_paths)?;
        fail_points::hit("set-up.copied");
        let lane_env = LaneEnv {
            name: self.name,
            branch: Some(self.branch),
            base: self.base,
            ports: port,
            dir: Some(self.dir),
        };
        env::write_env_files(self.project, &lane_env);
        let lines = &self.project.settings.set_up.commands;
        if level == SetUpLevel::Full && !lines.is_empty() {
            let commands =
                CommandRunner { project: self.project, lane_env: &lane_env, dir: self.dir, is_new: true };
            let result = commands.run(&|| false);
            if result.is_err() {
                commands.save_log();
            }
            result?;
        }
        Ok(())
    }

    /// Copies the configured submodules, and warns about those that stay empty.
    fn copy_submodules(&self) -> Result<(), Error> {
        let wanted = self.project.settings.lane_checkout.submodules;
        if wanted == SubmoduleMode::Empty {
            return Ok(());
        }
        let (copied, empty) =
            self.project.repo.copy_submodules(self.dir, wanted == SubmoduleMode::Recursive)?;
        if !copied.is_empty() {
            self.project
                .listener
                .detail(format!("submodules copied from the main checkout: {}", copied.join(", ")));
        }
        for submodule in empty {
            self.project.listener.warn(format!(
                "submodule {} of lane '{}' is empty: {}",
                submodule.path, self.name, submodule.reason
            ));
        }
        fail_points::hit("set-up.submodules");
        Ok(proq_base::interrupt::require_no_signal()?)
    }

    /// Reserves ports for the lane. No other lane gets them concurrently, however long the other steps take.
    fn reserve_ports(&self) -> Result<Option<Ports>, Error> {
        let _lock = self.project.store.locks().acquire(&LockName::Store)?;
        let port = ports::choose_ports(self.project, self.name);
        if let (None, Some((from, to))) = (port, self.project.settings.port_range) {
            self.project.listener.warn(format!(
                "lane '{}' has no ports: other lanes have all of lane.ports ({from}-{to}), or another program uses them",
                self.name
            ));
        }
        let record = SetUpRecord { ports: port, ..SetUpRecord::default() };
        record.save_unsynced(&self.project.store.layout().set_up_record(self.name))?;
        Ok(port)
    }
}
