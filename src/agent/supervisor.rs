//! Owns the process that watches one run: it holds the run lock for as long as the agent lives, and writes how it ended.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Error;
use super::follow_up::FollowUp;
use super::launch::STARTED;
use super::outfit::desk;
use crate::config::Autocommit;
use crate::lane::{self, Leftovers, Project, commit_leftovers, copy_leftovers};
use crate::process::{self, Spawned, Start};
use crate::store::records::{LaneRecord, LaneState, RunRecord};
use crate::store::{Guard, LockName, Record, now};
use crate::{event, git};

/// Supervises one run to its end, and starts what follows it; `exe` is this program. Standard input carries the run lock; on
/// standard output the starter waits for a word.
pub(crate) fn supervise(
    project: &Project,
    name: &str,
    attempt: u32,
    words: &[OsString],
    exe: &Path,
) -> Result<(), Error> {
    process::leave_session();
    let lock = adopt_lock(project, name)?;
    let lane = project.lane(name)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| process::Error::Start { program: "the event loop".into(), source })?;
    let run = RunRecord::load(&project.store.layout().run_record(name, attempt))?;
    let follow_up = FollowUp::default();
    let mut watch = Watch { project, lane, attempt, resolves: run.resolves, follow_up };
    let done = runtime.block_on(watch.run(words));
    let done = match done {
        Ok(ended) => watch.settle(&ended),
        Err(e) => {
            // The starter still listens: this is its answer.
            say(&with_causes(&e));
            Err(e)
        }
    };
    drop(lock);
    watch.follow_up.begin(project, &watch.lane, exe);
    done
}

/// Takes the lock over from standard input, which becomes empty: the agent must not inherit it.
fn adopt_lock(project: &Project, name: &str) -> Result<Guard, Error> {
    let failed = |source| process::Error::Start { program: "the supervisor".into(), source };
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let null = File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&null).map_err(|e| failed(e.into()))?;
    Ok(project.store.locks().adopt(&LockName::Run(name.to_owned()), File::from(stdin)))
}

/// Answers the starter and lets go of the pipe, so that it does not wait for the agent's end.
fn say(line: &str) {
    let line = line.replace('\n', " ");
    let mut out = std::io::stdout();
    drop(writeln!(out, "{line}").and_then(|()| out.flush()));
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _stays_open = rustix::stdio::dup2_stdout(&null);
    }
}

/// An error and its causes on one line.
fn with_causes(e: &dyn std::error::Error) -> String {
    let mut out = e.to_string();
    let mut next = e.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !out.contains(&text) {
            out.push_str(&format!(": {text}"));
        }
        next = cause.source();
    }
    out
}

/// How the agent's process ended.
struct Ended {
    status: ExitStatus,
    stopped: bool,
    group: u32,
}

struct Watch<'a> {
    project: &'a Project,
    lane: LaneRecord,
    attempt: u32,
    /// Whether it resolves the lane's conflict, rather than does its task.
    resolves: bool,
    /// What is to follow once the run lock is free.
    follow_up: FollowUp,
}

impl Watch<'_> {
    /// Starts the agent and waits for its end, or for a wish to stop it.
    async fn run(&mut self, words: &[OsString]) -> Result<Ended, Error> {
        // Before the agent exists, so that no early signal is missed.
        let mut wishes = Wishes::listen()?;
        let mut child = self.start(words)?;
        let group = child.id().unwrap_or_default();
        if let Err(e) = self.note_start(group) {
            process::end_group(group, self.project.settings.stop_grace);
            return Err(e);
        }
        say(STARTED);
        let failed = |source| process::Error::Start { program: "the agent".into(), source };
        let mut stopped = false;
        let status = tokio::select! {
            status = child.wait() => status.map_err(failed)?,
            () = wishes.any() => {
                stopped = true;
                self.stop(&mut child, group, &mut wishes).await.map_err(failed)?
            }
        };
        Ok(Ended { status, stopped, group })
    }

    fn start(&self, words: &[OsString]) -> Result<Spawned, Error> {
        let layout = self.project.store.layout();
        let name = &self.lane.name;
        let (program, args) = words.split_first().ok_or(Error::NoCommand)?;
        let (dir, task) = desk(self.project, &self.lane, self.attempt, self.resolves);
        let path = layout.run_log(name, self.attempt);
        let opened = File::options().append(true).create(true).open(&path);
        let log = opened.map_err(lane::Error::io("write", &path))?;
        let second = log.try_clone().map_err(lane::Error::io("write", &path))?;
        let mut start = Start::new(program.as_ref(), &dir).args(args).output(log, second);
        if RunRecord::load(&layout.run_record(name, self.attempt))?.prompt_on_stdin {
            start = start.stdin(File::open(&task).map_err(lane::Error::io("read", &task))?);
        }
        let alive = self.project.store.locks().take(&LockName::Alive(name.clone()))?;
        // Inherited on purpose: as long as one of the agent's processes keeps it open, the run is not over. This process
        // has one thread, so nothing else can be started while the flag is off.
        let failed =
            |e: rustix::io::Errno| process::Error::Start { program: "the agent".into(), source: e.into() };
        fcntl_setfd(alive.file(), FdFlags::empty()).map_err(failed)?;
        Ok(start.spawn_watched()?)
    }

    fn note_start(&mut self, group: u32) -> Result<(), Error> {
        let path = self.project.store.layout().run_record(&self.lane.name, self.attempt);
        let mut run = RunRecord::load(&path)?;
        run.pid = Some(group);
        run.birth = process::birth_of(group);
        run.save(&path)?;
        self.lane = self.project.update_lane(&self.lane.name, |record| {
            record.state = LaneState::Running;
        })?;
        let agent = &run.agent;
        self.project.tell(
            event::Name::RunStarted,
            Some(&self.lane),
            format!("lane '{}': {agent} started", self.lane.name),
        );
        Ok(())
    }

    /// TERM, a time of grace, KILL; a second wish ends the grace.
    async fn stop(
        &self,
        child: &mut Spawned,
        group: u32,
        wishes: &mut Wishes,
    ) -> std::io::Result<ExitStatus> {
        process::ask_group(group);
        tokio::select! {
            status = child.wait() => return status,
            () = tokio::time::sleep(self.project.settings.stop_grace) => {}
            () = wishes.any() => {}
        }
        process::end_group(group, Duration::ZERO);
        child.wait().await
    }

    /// Ends what the agent left running, keeps what it left uncommitted, and writes how it went.
    fn settle(&mut self, ended: &Ended) -> Result<(), Error> {
        if process::group_lives(ended.group) {
            process::end_group(ended.group, self.project.settings.stop_grace);
        }
        let judged = if self.resolves { Ok(Watch::how_it_ended(ended)) } else { self.judge(ended) };
        let (state, mut detail) = match judged {
            Ok(verdict) => verdict,
            Err(e) => (LaneState::Failed, Some(format!("its result could not be looked at: {e}"))),
        };
        if let Some(e) = self.keep_leftovers() {
            let uncopied =
                format!("what it left uncommitted is in the lane only, it could not be copied: {e}");
            detail = Some(detail.map_or_else(|| uncopied.clone(), |d| format!("{d}; {uncopied}")));
        }
        let path = self.project.store.layout().run_record(&self.lane.name, self.attempt);
        let mut run = RunRecord::load(&path)?;
        run.ended = Some(now());
        run.outcome = Some(state);
        run.exit_code = ended.status.code();
        run.signal = ended.status.signal();
        run.tip_after = self.project.repo.branch_tip(&self.lane.branch)?;
        run.save(&path)?;
        let then = if self.resolves { LaneState::Conflict } else { state };
        let moved = !self.resolves && run.tip_after.is_some_and(|tip| tip != run.tip_before);
        self.follow_up = FollowUp::prepare(self.project, &self.lane, then, moved);
        self.lane = self.project.update_lane(&self.lane.name, |record| {
            record.state = then;
            record.detail.clone_from(&detail);
        })?;
        let more = detail.map(|d| format!(" ({d})")).unwrap_or_default();
        self.project.tell(
            event::Name::RunEnded,
            Some(&self.lane),
            format!("lane '{}': {state}{more}", self.lane.name),
        );
        Ok(())
    }

    /// Copies what is left uncommitted in the lane to a second place. A conflict has to do without: no snapshot can hold it.
    fn keep_leftovers(&self) -> Option<Error> {
        if self.resolves || !self.project.repo.is_own_worktree(&self.lane.path) {
            return None;
        }
        let why = format!("left uncommitted in lane {} by its run {}", self.lane.name, self.attempt);
        match copy_leftovers(self.project, &self.lane, &why) {
            Ok(_) | Err(lane::Error::Git(git::Error::Unmerged { .. })) => None,
            Err(e) => Some(e.into()),
        }
    }

    /// How the process ended, and nothing else: what a run made of a conflict is judged by who sent it.
    fn how_it_ended(ended: &Ended) -> (LaneState, Option<String>) {
        match (ended.stopped, ended.status.code(), ended.status.signal()) {
            (true, ..) => (LaneState::Stopped, None),
            (_, Some(0), _) => (LaneState::Done, None),
            (_, Some(code), _) => (LaneState::Failed, Some(format!("exit code {code}"))),
            (_, None, signal) => {
                (LaneState::Failed, Some(format!("killed by signal {}", signal.unwrap_or_default())))
            }
        }
    }

    /// The state and why. `done` needs evidence: the agent ended well and there is something to show.
    fn judge(&self, ended: &Ended) -> Result<(LaneState, Option<String>), Error> {
        let (how, mut detail) = Watch::how_it_ended(ended);
        let well = how == LaneState::Done;
        if !self.project.repo.is_own_worktree(&self.lane.path) {
            return Ok((LaneState::Failed, Some("its folder is no worktree any more".to_owned())));
        }
        if let Some(astray) = self.follow_head()? {
            return Ok((LaneState::Failed, Some(astray)));
        }
        let wanted = match self.project.settings.autocommit {
            Autocommit::Always => true,
            Autocommit::Success => well,
            Autocommit::Never => false,
        };
        let mut uncommitted = false;
        if wanted {
            let message =
                format!("{}\n\nLeft uncommitted by the agent of lane {}.\n", self.lane.title, self.lane.name);
            match commit_leftovers(self.project, &self.lane, &message) {
                Ok(Leftovers::Nothing) => {}
                // HEAD may have left the branch before.
                Ok(Leftovers::Committed(_)) => {
                    self.follow_head()?;
                }
                Err(e) => {
                    uncommitted = true;
                    detail = detail.or(Some(format!("uncommitted work: {e}")));
                }
            }
        } else {
            uncommitted = !crate::git::status(&self.project.repo, &self.lane.path, true)?.is_clean();
        }
        let tip = self.project.repo.branch_tip(&self.lane.branch)?;
        let moved = match tip {
            Some(tip) => tip != self.lane.start,
            None => return Ok((LaneState::Failed, Some(format!("branch {} is gone", self.lane.branch)))),
        };
        let state = match (ended.stopped, well, moved || uncommitted) {
            (true, ..) => LaneState::Stopped,
            (_, false, _) => LaneState::Failed,
            (_, true, true) => LaneState::Done,
            (_, true, false) => LaneState::NoChange,
        };
        Ok((state, detail))
    }

    /// What a lane did is its worktree's HEAD. Where HEAD left the lane's branch and descends from it, the branch
    /// follows; else the commits elsewhere are named.
    fn follow_head(&self) -> Result<Option<String>, Error> {
        let repo = &self.project.repo;
        let worktrees = crate::git::WorktreeList::read(repo)?;
        let Some(worktree) = worktrees.at(&self.lane.path).filter(|_| self.lane.path.exists()) else {
            return Ok(Some("its worktree is gone".to_owned()));
        };
        let (Some(head), Some(tip)) = (worktree.head(repo)?, repo.branch_tip(&self.lane.branch)?) else {
            return Ok(None);
        };
        if worktree.branch.as_deref() == Some(self.lane.branch.as_str()) || repo.is_ancestor(head, tip)? {
            return Ok(None);
        }
        if repo.is_ancestor(tip, head)? {
            let name = format!("refs/heads/{}", self.lane.branch);
            repo.swap_ref(&name, head, tip, "git-proq: follow HEAD")?;
            return Ok(None);
        }
        let place = worktree.branch.clone().unwrap_or_else(|| format!("a detached HEAD ({})", head.short()));
        Ok(Some(format!("commits on {place}, not on {}", self.lane.branch)))
    }
}

/// The signals that ask a supervisor to stop its agent.
struct Wishes([Signal; 3]);

impl Wishes {
    fn listen() -> Result<Wishes, Error> {
        let listen = |kind| {
            signal(kind).map_err(|source| process::Error::Start { program: "the supervisor".into(), source })
        };
        Ok(Wishes([
            listen(SignalKind::terminate())?,
            listen(SignalKind::interrupt())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    async fn any(&mut self) {
        let [a, b, c] = &mut self.0;
        tokio::select! {
            _ = a.recv() => {}
            _ = b.recv() => {}
            _ = c.recv() => {}
        }
    }
}
