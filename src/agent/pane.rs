//! Owns one run in a window while it lasts, as its supervisor sees it: what its first process says, and its limits.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};

use super::Error;
use super::activity;
use super::fence::Fence;
use super::limits::Cause;
use super::order::account;
use super::stream::Exit;
use super::tenant::{DOOR, Lease, SCREEN, Word};
use super::watch::{Ended, Hint, KILLED, Watch, until};
use super::window;
use super::wishes::Wishes;
use crate::lane;
use crate::process;
use crate::store::records::{RunRecord, Window};
use crate::store::{Record, write_atomically};

/// How long the first process of a window may take until it says something.
const PATIENCE: Duration = Duration::from_secs(30);

/// The first process of a window.
struct Tenant {
    /// It, and the group that it leads.
    pid: u32,
    lines: Lines<BufReader<OwnedReadHalf>>,
}

/// Has the agent started in a window, tells `started` its group, and waits for its end, or for a reason to end it. Whatever it left
/// running is ended too.
///
/// # Errors
/// When there is no window to be had, or the agent cannot be started in it.
pub(super) async fn run(
    watch: &Watch<'_>,
    wishes: &mut Wishes,
    started: impl FnOnce(u32) -> Result<(), Error>,
) -> Result<Ended, Error> {
    let listener = listen(watch)?;
    let lease = lease(watch)?;
    let window = window::open(watch.project, watch.lane, watch.attempt, watch.exe)?;
    let moved = async { greet(&listener, &lease).await };
    let late = || Err(Error::Window { why: "nothing was heard of it".to_owned() });
    let moved = tokio::time::timeout(PATIENCE, moved).await.unwrap_or_else(|_| late());
    drop(listener);
    // Nobody else is let in.
    drop(std::fs::remove_file(door(watch).join(DOOR)));
    let mut tenant = match moved {
        Ok(tenant) => tenant,
        Err(e) => {
            // It may have started the agent, and not been heard.
            watch.end_all(0);
            return Err(e);
        }
    };
    let group = tenant.pid;
    if let Err(e) = note(watch, &window).and_then(|()| started(group)) {
        watch.end_all(group);
        window::close(&window, group);
        return Err(e);
    }
    activity::tell_expected(watch.project, watch.lane, watch.attempt);
    let (status, cause) = attend(watch, &mut tenant, wishes).await;
    let strays = watch.end_all(group);
    window::close(&window, group);
    let hint = write_end(watch).map(Hint::Screen);
    let mut reader = watch.order.reader();
    let exit = Exit { code: status.code(), signal: status.signal() };
    let summary = reader.finish(exit, &mut Vec::new());
    let account = account(reader.progress(), &summary, None);
    Ok(Ended { status, cause, strays, summary, account, lost: None, hint })
}

/// Waits for the window's first process at a door in the run's own folder.
fn listen(watch: &Watch<'_>) -> Result<UnixListener, Error> {
    let dir = door(watch);
    let failed = |what| lane::Error::io(what, &dir);
    // A socket's name may be short only, so it is one without folders.
    std::env::set_current_dir(&dir).map_err(failed("enter"))?;
    let bound = UnixListener::bind(DOOR).map_err(failed("make a socket in"));
    std::env::set_current_dir(watch.project.repo.home()).map_err(failed("leave"))?;
    Ok(bound?)
}

/// The folder of the socket.
fn door(watch: &Watch<'_>) -> PathBuf {
    watch.project.store.layout().run_dir(&watch.lane.name, watch.attempt)
}

/// What the window's first process is to start.
fn lease(watch: &Watch<'_>) -> Result<Vec<u8>, Error> {
    let order = watch.order;
    let fence = Fence::prepare(watch.project, watch.lane, watch.attempt, &order.dir, watch.exe)?;
    let (variable, hooks) = fence.env();
    let mut env = Lease::variables();
    env.extend(order.env.iter().map(|(key, value)| (key.into(), value.clone())));
    env.push((variable.into(), hooks));
    env.push((process::MARK.into(), watch.mark.into()));
    let lease = Lease { words: order.words.clone(), env, dir: order.dir.clone().into() };
    serde_json::to_vec(&lease).map_err(|e| Error::Window { why: e.to_string() })
}

/// Lets the first process in, hands over what it is to start, and hears whether it has.
async fn greet(listener: &UnixListener, lease: &[u8]) -> Result<Tenant, Error> {
    let lost = |e: std::io::Error| Error::Window { why: e.to_string() };
    let (line, _) = listener.accept().await.map_err(lost)?;
    let (heard, mut said) = UnixStream::into_split(line);
    said.write_all(lease).await.map_err(lost)?;
    said.shutdown().await.map_err(lost)?;
    let mut tenant = Tenant { pid: 0, lines: BufReader::new(heard).lines() };
    match tenant.word().await {
        Some(Word::Started(pid)) => Ok(Tenant { pid, ..tenant }),
        Some(Word::Failed(why)) => Err(Error::Window { why }),
        _ => Err(Error::Window { why: "it was closed at once".to_owned() }),
    }
}

impl Tenant {
    /// The next thing that it says; none when it is gone.
    async fn word(&mut self) -> Option<Word> {
        let line = self.lines.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    /// How the agent ended, once it has.
    async fn end(&mut self) -> ExitStatus {
        loop {
            match self.word().await {
                Some(Word::Ended(raw)) => return ExitStatus::from_raw(raw),
                Some(_) => {}
                None => return ExitStatus::from_raw(KILLED),
            }
        }
    }
}

async fn attend(watch: &Watch<'_>, tenant: &mut Tenant, wishes: &mut Wishes) -> (ExitStatus, Option<Cause>) {
    let limit = watch.limits.time.and_then(|time| Instant::now().checked_add(time));
    process::let_go_of_code();
    let cause = tokio::select! {
        biased;
        () = wishes.any() => Cause::Asked,
        word = tenant.word() => match word {
            Some(Word::Ended(raw)) => return (ExitStatus::from_raw(raw), None),
            _ => Cause::Closed,
        },
        () = until(limit) => Cause::Time,
    };
    process::ask_group(tenant.pid);
    tokio::select! {
        status = tenant.end() => return (status, Some(cause)),
        () = watch.patience(wishes) => {}
    }
    process::end_group(tenant.pid, Duration::ZERO);
    (tenant.end().await, Some(cause))
}

/// Writes into the run's log what its window showed last, instead of how to go there. Returns the window's last words, if they were kept.
fn write_end(watch: &Watch<'_>) -> Option<String> {
    let kept = crate::regular_file::record(door(watch).join(SCREEN)).ok();
    let mut text = b"This run was in a window of tmux".to_vec();
    match &kept {
        Some(screen) => text.extend([b", which ended with:\n\n", screen.as_slice()].concat()),
        None => text.extend(b"; what stood there last was not kept.\n"),
    }
    let log = watch.project.store.layout().run_log(&watch.lane.name, watch.attempt);
    // It is for a person's eyes: how the run ended does not depend on it.
    drop(write_atomically(&log, &text));
    kept.and_then(|_| lane::last_words(&door(watch).join(SCREEN)))
}

/// Writes where the run can be looked at, also for whoever looks for its log.
fn note(watch: &Watch<'_>, window: &Window) -> Result<(), Error> {
    let (layout, lane) = (watch.project.store.layout(), &watch.lane.name);
    let path = layout.run_record(lane, watch.attempt);
    let mut run = RunRecord::load(&path)?;
    run.window = Some(window.clone());
    run.save(&path)?;
    let log: &Path = &layout.run_log(lane, watch.attempt);
    let text = format!("This run is in a window of tmux: git proq attach {lane}\n");
    Ok(std::fs::write(log, text).map_err(lane::Error::io("write", log))?)
}
