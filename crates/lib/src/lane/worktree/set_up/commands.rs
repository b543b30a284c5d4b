//! Runner of the set-up commands of a lane. They run one after the other in the lane's folder, under a time
//! limit. If one fails, all processes that they started are stopped.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::identity::is_same_process;
use proq_base::process::limited_process::ExitOutcome;
use proq_base::process::signals::stop_group;
use proq_base::process::strays;
use proq_base::process::strays::{RUN_CONTEXT_VARS, stop_marked_processes};
use proq_store as store;
use proq_store::Store;
use proq_store::base::atomic::create_private_dir;
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::locks::lock::{LockGuard, LockName, WaitLimit};
use proq_store::records::lane::LaneRecord;
use proq_store::records::ports::SetUpRecord;

use super::env::{LaneEnv, refresh_env_file};
use crate::errors::set_up_error::SetUpError;
use crate::event::approval::Approvals;
use crate::lane::{Error, Project};

/// Extent of a lane's set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetUpLevel {
    /// Ports, files, environment file and commands.
    #[default]
    Full,
    /// Everything except the commands.
    NoCommands,
    /// Ports only, for a lane in which no agent works.
    PortsOnly,
}

/// Intervals at which a running command is polled and its progress line is renewed.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Time limit of commands without a configured limit: 100 years.
const NO_LIMIT: Duration = Duration::from_hours(24 * 365 * 100);

/// Length of the end of the log that is read for an error message, in bytes, and of the output line that is
/// shown, in characters.
const LOG_TAIL_BYTES: usize = 4096;
const MAX_LINE_CHARS: usize = 200;

/// Time that commands left running by a crashed process get to exit.
const LEFTOVER_STOP_GRACE: Duration = Duration::from_secs(2);

/// Refuses unapproved commands that came with the repository, if a set-up of this `level` runs commands.
///
/// # Errors
/// [`SetUpError::Unapproved`].
pub fn require_set_up_approved(project: &Project, level: SetUpLevel) -> Result<(), Error> {
    if level != SetUpLevel::Full || project.settings.set_up.commands.is_empty() {
        return Ok(());
    }
    let approvals = Approvals::load(&project.repo, &project.store)?;
    let all = approvals.set_up_commands(&project.layers, &project.settings);
    let unapproved: Vec<_> = all.into_iter().filter(|command| !command.approved).collect();
    match unapproved.first().and_then(|command| command.source_file.clone()) {
        Some(path) => {
            let commands = unapproved.into_iter().map(|command| command.line).collect();
            Err(SetUpError::Unapproved { settings_file: path, commands }.into())
        }
        None => Ok(()),
    }
}

/// Runs the commands in a lane that was created without them, after it has refreshed the lane's environment
/// file. The commands are stopped as soon as `should_stop` returns true.
///
/// # Errors
/// [`SetUpError::Failed`].
pub(crate) fn run_skipped_commands(
    project: &Project,
    lane: &LaneRecord,
    should_stop: &dyn Fn() -> bool,
) -> Result<(), Error> {
    drop(refresh_env_file(project, &lane.clone().into_any()));
    if project.settings.set_up.commands.is_empty() {
        return Ok(());
    }
    require_set_up_approved(project, SetUpLevel::Full)?;
    stop_leftover_commands(&project.store, &lane.name);
    let lane_env = LaneEnv {
        name: &lane.name,
        branch: Some(&lane.kind.branch),
        base: &lane.base,
        ports: lane.ports,
        dir: Some(&lane.path),
    };
    let commands = CommandRunner { project, lane_env: &lane_env, dir: &lane.path, is_new: false };
    let result = commands.run(should_stop);
    if result.is_err() {
        commands.save_log();
    }
    result
}

/// Stops the set-up commands that a crashed process had started in a lane that it was creating.
pub(crate) fn stop_leftover_commands(store: &Store, name: &LaneName) {
    let Ok(Some(record)) = SetUpRecord::load_if_exists(&store.layout().set_up_record(name)) else {
        return;
    };
    if let Some(mark) = &record.process_mark {
        stop_marked_processes(mark, LEFTOVER_STOP_GRACE);
    }
    if let Some(pid) =
        record.command_pid.filter(|pid| is_same_process(*pid, record.command_start_time.as_deref()))
    {
        stop_group(pid, LEFTOVER_STOP_GRACE);
    }
}

/// Runner of the set-up commands of one lane.
pub(crate) struct CommandRunner<'a> {
    /// Project whose settings name the commands.
    pub project: &'a Project,
    /// Environment variables of the lane.
    pub(crate) lane_env: &'a LaneEnv<'a>,
    /// Working directory of the commands.
    pub dir: &'a Path,
    /// Whether the lane is being created, so that its creation is rolled back if a command fails.
    pub is_new: bool,
}

impl CommandRunner<'_> {
    /// Runs the commands. If one fails or is stopped, no process that they started keeps running.
    pub fn run(&self, should_stop: &dyn Fn() -> bool) -> Result<(), Error> {
        let (project, name) = (self.project, self.lane_env.name);
        let path = project.store.layout().set_up_log(name);
        let mut log = open_log(&path)?;
        let _turn = self.acquire_lock()?;
        let deadline = Instant::now() + project.settings.set_up.time_limit.unwrap_or(NO_LIMIT);
        let mark = format!("set-up-{}", new_id());
        let record = project.store.layout().set_up_record(name);
        let previous = match SetUpRecord::load_if_exists(&record) {
            // After a power cut the file may hold anything.
            Err(store::Error::Broken { .. }) => None,
            found => found?,
        };
        let previous = previous.unwrap_or_default();
        let started = SetUpRecord { process_mark: Some(mark.clone()), ..previous };
        started.save_unsynced(&record)?;
        let run_line =
            |line: &String| self.run_command(line, &mut log, (&started, &mark), deadline, should_stop);
        let result = project.settings.set_up.commands.iter().try_for_each(run_line);
        if result.is_err() {
            // Processes that left the process group still carry the mark.
            stop_marked_processes(&mark, project.settings.stop_grace);
        }
        project.listener.progress("");
        result
    }

    /// Waits until no other lane runs its set-up under the same configured lock.
    fn acquire_lock(&self) -> Result<Option<LockGuard>, Error> {
        let Some(name) = &self.project.settings.set_up.lock_name else { return Ok(None) };
        let lock = LockName::SetUp(name.clone());
        Ok(Some(self.project.store.locks().acquire_within(&lock, WaitLimit::Forever)?))
    }

    /// Runs one command line, with its output in `log`, until `deadline` or until `should_stop` returns true.
    ///
    /// # Errors
    /// [`SetUpError::Failed`] when it fails or is stopped.
    fn run_command(
        &self,
        line: &str,
        log: &mut File,
        (started, mark): (&SetUpRecord, &str),
        deadline: Instant,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let (project, name) = (self.project, self.lane_env.name);
        let layout = project.store.layout();
        let path = layout.set_up_log(name);
        let write_error = || store::Error::io("write", &path);
        writeln!(log, "$ {line}").map_err(write_error())?;
        let (out, err) = (log.try_clone().map_err(write_error())?, log.try_clone().map_err(write_error())?);
        let mut start = CommandBuilder::new(Path::new("sh"), self.dir)
            .args(["-c", line])
            .without_vars(RUN_CONTEXT_VARS)
            .env("PROQ_ENV_FILE", layout.lane_env_file(name))
            .env(strays::RUN_MARK_VAR, mark)
            .with_output_files(out, err);
        for (name, value) in self.lane_env.variables(&project.repo) {
            start = start.env(name, value);
        }
        let limit = deadline.saturating_duration_since(Instant::now());
        let mut child = start.spawn_limited(limit, project.settings.stop_grace)?;
        // If this process is killed, recovery stops the command by this record.
        let running = SetUpRecord {
            command_pid: Some(child.id()),
            command_start_time: child.start_time(),
            ..started.clone()
        };
        running.save_unsynced(&layout.set_up_record(name))?;
        fail_points::hit("set-up.command");
        let mut last_progress = Instant::now();
        loop {
            if let Some(ended) = child.poll()? {
                let seconds = child.elapsed().as_secs_f64();
                project.listener.detail(format!("set-up: '{line}' took {seconds:.1} s"));
                return self.check_exit(line, ended);
            }
            // Dropping `child` stops its entire process group.
            if should_stop() {
                return Err(proq_base::interrupt::Interrupted::current().into());
            }
            proq_base::interrupt::require_no_signal()?;
            if last_progress.elapsed() >= PROGRESS_INTERVAL {
                last_progress = Instant::now();
                let seconds = child.elapsed().as_secs();
                project.listener.progress(format!("setting up lane '{name}': {line} {seconds}s"));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Refuses the exit of a command that failed or timed out, with the last line of its output.
    fn check_exit(&self, line: &str, ended: ExitOutcome) -> Result<(), Error> {
        let ended = match ended {
            // The limit is reported in full, since the remaining time of the last command would mean nothing
            // to the user.
            ExitOutcome::TimedOut(_) => {
                ExitOutcome::TimedOut(self.project.settings.set_up.time_limit.unwrap_or(NO_LIMIT))
            }
            other => other,
        };
        if ended.is_success() {
            return Ok(());
        }
        let (name, command) = (self.lane_env.name.clone(), proq_base::terminal_text::escape_line(line));
        let last_output = last_line(&self.project.store.layout().set_up_log(&name), line);
        Err(SetUpError::Failed { name, command, ended, last_output, is_rolled_back: self.is_new }.into())
    }

    /// Moves the log to a place where it outlasts the lane.
    pub(crate) fn save_log(&self) {
        let layout = self.project.store.layout();
        let (from, to) =
            (layout.set_up_log(self.lane_env.name), layout.failed_set_up_log(self.lane_env.name));
        let folder: PathBuf = to.parent().unwrap_or(Path::new(".")).to_owned();
        let saved = create_private_dir(&folder).is_ok() && std::fs::rename(&from, &to).is_ok();
        if !saved && from.exists() {
            self.project.listener.warn(format!("cannot save the output of the set-up: {}", to.display()));
        }
    }
}

/// Returns the last line of output of a command, shortened and escaped for display; empty if it wrote none.
fn last_line(log: &Path, command: &str) -> String {
    let text = proq_base::regular_file::read_store_file(log).unwrap_or_default();
    let text =
        String::from_utf8_lossy(text.get(text.len().saturating_sub(LOG_TAIL_BYTES)..).unwrap_or_default());
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if line == format!("$ {command}") {
        return String::new();
    }
    proq_base::terminal_text::escape_line(line.trim()).chars().take(MAX_LINE_CHARS).collect()
}

/// Opens the log for appending, since commands may run in a lane more than once.
fn open_log(path: &Path) -> Result<File, Error> {
    create_private_dir(path.parent().unwrap_or(Path::new(".")))?;
    let opened = OpenOptions::new().create(true).append(true).open(path);
    Ok(opened.map_err(store::Error::io("open", path))?)
}
