//! Start and stop of a run's agent process.

use std::fs::File;
use std::io::PipeWriter;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use proq_base::process;
use proq_base::process::command_builder::{AsyncChild, CommandBuilder};
use proq_base::process::{signals, strays};
use proq_store::locks::lock::LockName;
use rustix::io::{FdFlags, fcntl_setfd};

use super::watch::{RunWatcher, SIGKILL_WAIT_STATUS};
use crate::agent::Error;
use crate::agent::base::shutdown_signals::ShutdownSignals;
use crate::agent::git_guard::GitGuard;
use crate::agent::launch::launcher::Launcher;
use crate::lane;

impl RunWatcher<'_> {
    /// Starts the agent's process, and returns it with the open pipe to its input, if its launcher has one.
    pub fn start_agent(&self) -> Result<(AsyncChild, Option<PipeWriter>), Error> {
        let (name, spec) = (&self.lane.name, self.spec);
        let layout = self.project.store.layout();
        let open = |path: &PathBuf| {
            let opened = File::options().append(true).create(true).open(path);
            opened.map_err(lane::Error::io("write", path))
        };
        // Half a line of one stream inside a line of the other would break a machine-readable log.
        let log = open(&layout.run_log(name, self.run_number))?;
        let stderr = match spec.dialect.is_machine_readable() {
            true => open(&layout.run_stderr(name, self.run_number))?,
            false => open(&layout.run_log(name, self.run_number))?,
        };
        let git_guard = GitGuard::prepare(self.project, self.lane, self.run_number, &spec.work_dir)?;
        let (variable, guard_value) = git_guard.hooks_env_var();
        let mut command = self.build_command()?.env(variable, guard_value).with_output_files(log, stderr);
        for (key, value) in &spec.env {
            command = command.env(key, value);
        }
        command = command.env(strays::RUN_MARK_VAR, self.process_mark);
        if let Some(file) = spec.stdin_file.as_ref().filter(|_| spec.launcher != Launcher::OpenStdin) {
            command = command.stdin(File::open(file).map_err(lane::Error::io("read", file))?);
        }
        let (command, stdin_pipe) = spec.launcher.attach_stdin_pipe(command)?;
        let alive_lock = self.project.store.locks().acquire(&LockName::AgentAlive(name.clone()))?;
        // Inherited on purpose: while one of the agent's processes holds the lock file open, the run has not
        // finished. This process has one thread, so nothing else can be started while the flag is off.
        let failed = |e: rustix::io::Errno| process::Error::NotStarted {
            program: "the agent".into(),
            source: e.into(),
        };
        fcntl_setfd(alive_lock.file(), FdFlags::empty()).map_err(failed)?;
        Ok((command.spawn_in_group_async()?, stdin_pipe))
    }

    /// Builds the command that starts the agent. With the protocol launcher, git-proq's client is in front of
    /// it.
    fn build_command(&self) -> Result<CommandBuilder, Error> {
        let spec = self.spec;
        let (program, args) = spec.argv.split_first().ok_or(Error::NoCommand)?;
        Ok(match spec.launcher {
            Launcher::Pipe | Launcher::OpenStdin | Launcher::Window => {
                CommandBuilder::new(program.as_ref(), &spec.work_dir).args(args)
            }
            Launcher::Protocol => CommandBuilder::new(self.project.git_proq_path()?, &spec.work_dir)
                .args(["_acp", "--lane", self.lane.name.as_str(), "--attempt"])
                .args([self.run_number.to_string(), "--".to_owned()])
                .args(spec.argv.iter().cloned()),
        })
    }

    /// Stops the agent: SIGTERM, a grace period, SIGKILL. A shutdown signal ends the grace period.
    pub(crate) async fn stop_agent(
        &self,
        child: &mut AsyncChild,
        process_group: u32,
        shutdown_signals: &mut ShutdownSignals,
    ) -> ExitStatus {
        self.spec.launcher.request_stop(process_group);
        let status = tokio::select! {
            status = child.wait() => status,
            () = self.wait_stop_grace(shutdown_signals) => {
                signals::stop_group(process_group, Duration::ZERO);
                child.wait().await
            }
        };
        // The exit status is unknown of a process that cannot be waited for.
        status.unwrap_or_else(|_| ExitStatus::from_raw(SIGKILL_WAIT_STATUS))
    }

    /// Waits until the grace period after a stop request has passed or a shutdown signal arrives.
    pub(crate) async fn wait_stop_grace(&self, shutdown_signals: &mut ShutdownSignals) {
        tokio::select! {
            () = tokio::time::sleep(self.project.settings.stop_grace) => {}
            () = shutdown_signals.wait() => {}
        }
    }

    /// Ends the remaining processes of the agent's group. Also ends processes that escaped from the group,
    /// unless the profile leaves them running. Returns the number of escaped processes.
    pub(crate) fn end_all_processes(&self, process_group: u32) -> usize {
        let grace = self.project.settings.stop_grace;
        if signals::is_group_alive(process_group) {
            signals::stop_group(process_group, grace);
        }
        if self.spec.keeps_strays { 0 } else { strays::stop_stray_processes(self.process_mark, grace) }
    }
}
