//! Owns landings that nobody asks for just now (`spawn --auto-merge`): of a lane whose run has ended, and once more of those
//! that were refused before.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use super::merge::Merge;
use super::{Done, Failure, Mistake, Session, merge, report, resolve};
use crate::agent::{self, Because};
use crate::explain::Exit;
use crate::fault;
use crate::lane::{self, Due, Project};
use crate::merge::{Report, Verdict};
use crate::store::records::{AnyLane, LaneRecord, LaneState, RunRecord};
use crate::store::{Guard, Layout, LockName, Record};

/// How often it is looked whether a supervisor has ended that may land its lane yet.
const GLANCE: Duration = Duration::from_millis(20);

/// Lands lanes one after the other, each for itself, in a process that is nobody's. What it says goes beside the lane's run.
pub(super) fn run(session: &Session, args: &Merge, why: &str) -> Done {
    crate::process::leave_session();
    crate::interrupt::arm();
    let project = Project::open(&session.dir, session.ui.listener())?;
    let first = why == "run-ended";
    let (mut exit, mut bases) = (Exit::Done, BTreeSet::new());
    for name in &args.lanes {
        let lock =
            if first { Some(adopt_lock(&project, name)?) } else { agent::take_landing(&project, name)? };
        // Without it, somebody else is landing it.
        let (Some(_lock), Ok(lane)) = (lock, project.lane(name)) else { continue };
        let kept = match begin(&project, &lane) {
            Ok(Due::Now) => None,
            Ok(Due::No) => continue,
            Ok(Due::Kept(why) | Due::Moved(why)) => Some(why),
            Err(e) => Some(e.0.to_string()),
        };
        if let Some(why) = kept {
            // Whoever waits for the landing hears why there is none. One that is tried again has its word.
            if first {
                lane::refuse_landing(&project, &lane, &why, Exit::Refused);
            }
            continue;
        }
        if first {
            // Before it lands, while there is another lane to be in the way of. No landing fails for that.
            drop(crate::merge::look_for_overlaps(&project, &lane.name));
        }
        exit = land(session, &project, args, &lane);
        bases.insert(lane.base);
    }
    if first {
        let bases = bases.iter().map(String::as_str).collect();
        fault::point("landing.over");
        try_again(session, &project, &bases, &args.lanes);
    }
    Ok(exit)
}

/// Sees whether a lane lands now, and if so has all that is said from now on go to a file beside its run.
fn begin(project: &Project, lane: &LaneRecord) -> Result<Due, Failure> {
    let due = lane::due(project, lane)?;
    if due == Due::Now {
        log_to(&project.store.layout().landing_log(&lane.name, lane.attempt))?;
    }
    Ok(due)
}

/// Takes the lane's lock over from standard input, which becomes empty.
fn adopt_lock(project: &Project, lane: &str) -> Result<Guard, Failure> {
    let failed = |source| Mistake::Unreadable { path: "standard input".into(), source };
    let lock = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let null = File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&null).map_err(|e| failed(e.into()))?;
    Ok(project.store.locks().adopt(&LockName::Landing(lane.to_owned()), File::from(lock)))
}

/// Sends all that is said from now on to the end of a file.
fn log_to(path: &std::path::Path) -> Result<(), Failure> {
    let failed = |source| Mistake::Unwritable { path: path.to_owned(), source };
    let log = File::options().append(true).create(true).open(path).map_err(failed)?;
    rustix::stdio::dup2_stdout(&log).map_err(|e| failed(e.into()))?;
    rustix::stdio::dup2_stderr(&log).map_err(|e| failed(e.into()))?;
    Ok(())
}

/// Lands one lane, and writes down why it did not land if it was refused.
fn land(session: &Session, project: &Project, args: &Merge, lane: &LaneRecord) -> Exit {
    let args = Merge { lanes: vec![lane.name.clone()], auto: None, ..args.clone() };
    let landed = lane::recover(project)
        .map_err(Failure::from)
        .and_then(|()| merge::land(session, project, &args, Some(lane)));
    match landed {
        Ok(report) => {
            for line in report.lanes.iter().filter(|line| line.result == Verdict::Refused) {
                let why = line.message.as_deref().unwrap_or("it may not land");
                lane::refuse_landing(project, lane, why, line.exit.unwrap_or(Exit::Refused));
            }
            report.exit()
        }
        Err(failure) => {
            let exit = report::show(&failure, false);
            // Who ends it refuses nothing: the next landing finds it as a killed one.
            if !matches!(exit, Exit::Signal(_)) {
                lane::refuse_landing(project, lane, &failure.0.to_string(), exit);
            }
            exit
        }
    }
}

/// The bases of a landing.
pub(super) fn bases_of(report: &Report) -> BTreeSet<&str> {
    report.lanes.iter().map(|line| line.onto.as_str()).collect()
}

/// Once a landing has ended: has a process of its own try those lanes again that are to land by themselves on one of these
/// bases and have not, and warns of those that will not any more. Not what this landing has just tried. That process does not do
/// so in its turn.
pub(super) fn try_again(session: &Session, project: &Project, bases: &BTreeSet<&str>, tried: &[String]) {
    for what in lane::refuse_moved(project, bases, tried) {
        session.ui.warn(what);
    }
    let waiting = lane::waiting_to_land(project, bases).into_iter().map(|lane| lane.name);
    let lanes: Vec<String> = waiting.filter(|name| !tried.contains(name)).collect();
    if lanes.is_empty() {
        return;
    }
    let begun = resolve::this_program()
        .and_then(|exe| Ok(agent::land_by_itself(project, &exe, Because::Landing, &lanes)?));
    if let Err(e) = begun {
        session.ui.warn(format!("{} could not be tried again: {}", lanes.join(", "), e.0));
    }
}

/// What became of a lane that was to land by itself.
pub(super) struct Landing {
    /// The lane as it is now, or as it was when it went.
    pub(super) lane: AnyLane,
    /// How its run ended.
    pub(super) run: Option<LaneState>,
    /// What its landing wrote.
    pub(super) log: PathBuf,
    /// The exit code of its landing.
    pub(super) exit: Exit,
    /// Whether it did not land and nobody says why: it was killed.
    pub(super) unsaid: bool,
}

/// Waits until the landing of a lane whose run has ended is over.
pub(super) fn wait(project: &Project, lane: &AnyLane) -> Result<Landing, Failure> {
    let locks = project.store.locks();
    let mut last = false;
    loop {
        locks.wait_until_free(&LockName::Landing(lane.name.clone()))?;
        // It may have been killed in the middle of it.
        lane::recover(project)?;
        let landing = look(project, lane)?;
        fault::point("landing.looked");
        if !landing.unsaid || last {
            return Ok(landing);
        }
        // One that was going on when the run ended had the lock until now. The supervisor takes it next, as long as it lives.
        last = !agent::is_watched(project, &landing.lane)?;
        if !last {
            std::thread::sleep(GLANCE);
        }
    }
}

/// What has become of the landing.
fn look(project: &Project, lane: &AnyLane) -> Result<Landing, Failure> {
    let gone = project.lane(&lane.name).is_err();
    let (dir, now) = lane::became(project, lane)?;
    let exit = match now.state {
        LaneState::Conflict => Exit::Conflicts,
        LaneState::CheckFailed => Exit::Agent,
        LaneState::Landed => Exit::Done,
        LaneState::Discarded => Exit::Refused,
        // All of it was there before.
        _ if gone => Exit::Done,
        _ => now.refused.as_ref().map_or(Exit::Refused, |refused| Exit::of_code(refused.exit)),
    };
    let run = RunRecord::find(&dir.join(format!("runs/{}.toml", lane.attempt)))?;
    Ok(Landing {
        run: run.and_then(|run| run.outcome),
        log: dir.join(Layout::landing_log_in_lane(lane.attempt)),
        exit,
        unsaid: !gone && now.auto_merge && now.state == LaneState::Done && now.refused.is_none(),
        lane: now,
    })
}
