//! Owns running the commands that get a lane ready: one after the other, in its folder, for so long at most, and all that they
//! have started with them when they fail.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::env::{Whose, env_file};
use super::{Given, SetUpError};
use crate::event::Approvals;
use crate::fault;
use crate::lane::{Error, Project};
use crate::process::{self, Ended, OF_A_RUN, Start, end_group, end_marked, is_same};
use crate::store::records::{LaneRecord, SetUpRecord};
use crate::store::{self, Guard, Limit, LockName, Record, make_private, new_id};

/// How often a command at work is looked at, and how often it is said what it is.
const GLANCE: Duration = Duration::from_millis(20);
const TELL: Duration = Duration::from_secs(1);

/// No limit: longer than any machine runs.
const FOREVER: Duration = Duration::from_hours(24 * 365 * 100);

/// How much of the end of what they wrote is looked at, and how much of its last line is shown.
const LAST: usize = 4096;
const LAST_SHOWN: usize = 200;

/// How long what a dead process left at work may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// Refuses commands that came with the repository and that nobody has approved, if they are to run.
///
/// # Errors
/// [`SetUpError::Unapproved`].
pub(crate) fn require_approved(project: &Project, given: Given) -> Result<(), Error> {
    if given != Given::Whole || project.settings.set_up.commands.is_empty() {
        return Ok(());
    }
    let approvals = Approvals::read(&project.repo, &project.store)?;
    let all = approvals.of_set_up(&project.layers, &project.settings);
    let open: Vec<_> = all.into_iter().filter(|command| !command.approved).collect();
    match open.first().and_then(|command| command.from.clone()) {
        Some(path) => {
            let commands = open.into_iter().map(|command| command.line).collect();
            Err(SetUpError::Unapproved { path, commands }.into())
        }
        None => Ok(()),
    }
}

/// Runs the commands in a lane that was made without, whose file of names is as it should be then. Whoever says `stop` ends them.
///
/// # Errors
/// [`SetUpError::Failed`].
pub(crate) fn run_later(project: &Project, lane: &LaneRecord, stop: &dyn Fn() -> bool) -> Result<(), Error> {
    drop(env_file(project, &lane.clone().any()));
    if project.settings.set_up.commands.is_empty() {
        return Ok(());
    }
    require_approved(project, Given::Whole)?;
    end_left(project, &lane.name);
    let whose = Whose {
        name: &lane.name,
        branch: Some(&lane.place.branch),
        base: &lane.base,
        port: lane.port,
        dir: Some(&lane.path),
    };
    let commands = Commands { project, whose: &whose, dir: &lane.path, is_new: false };
    let done = commands.run(stop);
    if done.is_err() {
        commands.save_log();
    }
    done
}

/// Ends what a dead process had begun in a lane that it was making.
pub(in crate::lane) fn end_left(project: &Project, name: &str) {
    let Ok(Some(record)) = SetUpRecord::find(&project.store.layout().set_up(name)) else { return };
    if let Some(mark) = &record.mark {
        end_marked(mark, GRACE);
    }
    if let Some(pid) = record.pid.filter(|pid| is_same(*pid, record.birth.as_deref())) {
        end_group(pid, GRACE);
    }
}

/// The commands of one lane.
pub(super) struct Commands<'a> {
    /// The repository, whose settings name them.
    pub(super) project: &'a Project,
    /// The lane.
    pub(super) whose: &'a Whose<'a>,
    /// Where they run.
    pub(super) dir: &'a Path,
    /// Whether the lane is just being made, and is taken back when they fail.
    pub(super) is_new: bool,
}

impl Commands<'_> {
    /// Runs them. Nothing that they have started is left when they fail or are stopped.
    pub(super) fn run(&self, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        let (project, name) = (self.project, self.whose.name);
        let path = project.store.layout().set_up_log(name);
        let mut log = open_log(&path)?;
        let _turn = self.take_turn()?;
        let until = Instant::now() + project.settings.set_up.limit.unwrap_or(FOREVER);
        let mark = format!("set-up-{}", new_id());
        let record = project.store.layout().set_up(name);
        let known = match SetUpRecord::find(&record) {
            // A power cut may have left anything in its place.
            Err(store::Error::Broken { .. }) => None,
            found => found?,
        };
        let known = known.unwrap_or_default();
        let begun = SetUpRecord { mark: Some(mark.clone()), ..known };
        begun.note(&record)?;
        let run = |line: &String| self.one(line, &mut log, (&begun, &mark), until, stop);
        let done = project.settings.set_up.commands.iter().try_for_each(run);
        if done.is_err() {
            // Some may have left the group.
            end_marked(&mark, project.settings.stop_grace);
        }
        project.listener.progress("");
        done
    }

    /// Waits until no other lane of the same name for it runs its commands.
    fn take_turn(&self) -> Result<Option<Guard>, Error> {
        let Some(name) = &self.project.settings.set_up.lock else { return Ok(None) };
        let lock = LockName::SetUp(name.clone());
        Ok(Some(self.project.store.locks().take_within(&lock, Limit::Forever)?))
    }

    fn one(
        &self,
        line: &str,
        log: &mut File,
        (begun, mark): (&SetUpRecord, &str),
        until: Instant,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let (project, name) = (self.project, self.whose.name);
        let layout = project.store.layout();
        let path = layout.set_up_log(name);
        let failed = || store::Error::io("write", &path);
        writeln!(log, "$ {line}").map_err(failed())?;
        let (out, err) = (log.try_clone().map_err(failed())?, log.try_clone().map_err(failed())?);
        let mut start = Start::new(Path::new("sh"), self.dir)
            .args(["-c", line])
            .without(OF_A_RUN)
            .env("PROQ_ENV_FILE", layout.lane_env(name))
            .env(process::MARK, mark)
            .output(out, err);
        for (name, value) in self.whose.variables(project) {
            start = start.env(name, value);
        }
        let limit = until.saturating_duration_since(Instant::now());
        let mut watched = start.spawn_limited(limit, project.settings.stop_grace)?;
        // Should this process be killed, whoever puts that right ends what it finds there.
        let at_work = SetUpRecord { pid: Some(watched.id()), birth: watched.birth(), ..begun.clone() };
        at_work.note(&layout.set_up(name))?;
        fault::point("set-up.command");
        let mut told = Instant::now();
        loop {
            if let Some(ended) = watched.poll()? {
                let seconds = watched.elapsed().as_secs_f64();
                project.listener.detail(format!("set-up: '{line}' took {seconds:.1} s"));
                return self.judge(line, ended);
            }
            // Whoever drops it ends it, and all of its group.
            if stop() {
                return Err(crate::interrupt::Interrupted.into());
            }
            crate::interrupt::check()?;
            if told.elapsed() >= TELL {
                told = Instant::now();
                let seconds = watched.elapsed().as_secs();
                project.listener.progress(format!("getting lane '{name}' ready: {line} {seconds}s"));
            }
            std::thread::sleep(GLANCE);
        }
    }

    fn judge(&self, line: &str, ended: Ended) -> Result<(), Error> {
        let ended = match ended {
            // What was left of the time says nothing to anybody.
            Ended::TimedOut(_) => {
                Ended::TimedOut(self.project.settings.set_up.limit.unwrap_or(FOREVER).as_secs())
            }
            other => other,
        };
        if ended.is_success() {
            return Ok(());
        }
        let (name, command) = (self.whose.name.to_owned(), crate::harmless::line(line));
        let last = last_line(&self.project.store.layout().set_up_log(&name), line);
        Err(SetUpError::Failed { name, command, ended, last, taken_back: self.is_new }.into())
    }

    /// Puts what they wrote where it outlasts the lane.
    pub(super) fn save_log(&self) {
        let layout = self.project.store.layout();
        let (from, to) = (layout.set_up_log(self.whose.name), layout.failed_set_up_log(self.whose.name));
        let folder: PathBuf = to.parent().unwrap_or(Path::new(".")).to_owned();
        let saved = make_private(&folder).is_ok() && std::fs::rename(&from, &to).is_ok();
        if !saved && from.exists() {
            self.project.listener.warn(format!("what the set-up wrote could not be kept: {}", to.display()));
        }
    }
}

/// The last line that a command has written, as far as it can be shown; empty where it has written none.
fn last_line(log: &Path, command: &str) -> String {
    let text = crate::regular_file::record(log).unwrap_or_default();
    let text = String::from_utf8_lossy(text.get(text.len().saturating_sub(LAST)..).unwrap_or_default());
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if line == format!("$ {command}") {
        return String::new();
    }
    crate::harmless::line(line.trim()).chars().take(LAST_SHOWN).collect()
}

/// Opens the log to add to it: commands may run in a lane more than once.
fn open_log(path: &Path) -> Result<File, Error> {
    make_private(path.parent().unwrap_or(Path::new(".")))?;
    let opened = OpenOptions::new().create(true).append(true).open(path);
    Ok(opened.map_err(store::Error::io("open", path))?)
}
