//! Owns starting a supervisor for a lane.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::Error;
use super::afresh;
use super::catalogue::profile_of;
use super::job::{self, Asked, Job};
use super::on_screen;
use super::order::Order;
use super::outfit::{self, Errand, Outfit, new_session};
use super::packet;
use super::profile::{Permission, Strays};
use super::talk;
use crate::event;
use crate::fault;
use crate::git::Oid;
use crate::lane::{self, Inbox, Project, Taken, join_messages, state_after};
use crate::process::{Ended, MARK, OF_A_RUN, Start};
use crate::store::records::{Account, AnyLane, LaneState, Purpose, RunClass, RunRecord};
use crate::store::{Guard, Record, now};

/// What a supervisor says when its agent runs.
pub(super) const STARTED: &str = "started";

/// Starts the next run of a lane under a supervisor, `exe` being this program, and returns when the agent runs. `lock`
/// is the lane's run lock; it goes to the supervisor, without a gap.
///
/// # Errors
/// [`Error::NotStarted`] when the agent could not be started; the lane is `failed` then. [`Error::NotBegun`] when it had runs
/// before; it is as it was then.
pub(crate) fn launch(
    project: &Project,
    lane: &AnyLane,
    lock: Guard,
    job: &Job,
    exe: &Path,
) -> Result<AnyLane, Error> {
    start(project, lane, lock, job, exe, Errand::Task)
}

/// The same for a run that resolves the lane's conflict where it is laid out, told `prompt` instead of the lane's task.
///
/// # Errors
/// [`Error::NotStarted`] when the agent could not be started; the lane is in `conflict` as before then.
pub(crate) fn launch_to_resolve(
    project: &Project,
    lane: &AnyLane,
    lock: Guard,
    job: &Job,
    exe: &Path,
    prompt: &str,
) -> Result<AnyLane, Error> {
    start(project, lane, lock, job, exe, Errand::Conflict(prompt))
}

/// The same for a run that is asked `text` in place of the lane's task, in a new conversation.
///
/// # Errors
/// As [`launch`].
pub(crate) fn launch_again(
    project: &Project,
    lane: &AnyLane,
    lock: Guard,
    job: &Job,
    exe: &Path,
    text: Option<&str>,
) -> Result<AnyLane, Error> {
    start(project, lane, lock, job, exe, text.map_or(Errand::Task, Errand::Said))
}

/// The same for messages that were taken from the lane's inbox, in the conversation that they are for. They are told once the
/// agent has started, and wait as before when it cannot be.
pub(super) fn launch_message(
    project: &Project,
    lane: &AnyLane,
    lock: Guard,
    (job, taken): (Job, &Taken),
    exe: &Path,
) -> Result<AnyLane, Error> {
    let job = job.telling(taken.ids());
    start(project, lane, lock, &job, exe, Errand::Said(&join_messages(taken.texts())))
}

/// What waits for a conversation, for a supervisor that is there.
pub(super) fn order_of_messages(
    project: &Project,
    lane: &AnyLane,
    talk: u32,
    exe: &Path,
) -> Result<Order, Error> {
    let mut taken = Inbox::of(project, &lane.name).take(talk)?;
    let (job, fit) = job_for_messages(project, lane, talk, &taken.texts().collect::<Vec<_>>())?;
    taken.letters.truncate(fit);
    let job = job.telling(taken.ids());
    let order = order(project, lane, &job, exe, Errand::Said(&join_messages(taken.texts())))?;
    order.taken.set(Some(taken));
    Ok(order)
}

/// Whether what waits for a conversation could be told there.
///
/// # Errors
/// Why not.
pub(super) fn try_messages(project: &Project, lane: &AnyLane, talk: u32) -> Result<(), Error> {
    let taken = Inbox::of(project, &lane.name).take(talk)?;
    job_for_messages(project, lane, talk, &taken.texts().collect::<Vec<_>>()).map(drop)
}

/// The job that tells messages in the conversation that they are for, and how many of them: as many as can be handed over at
/// once, the others have to wait for the next turn.
///
/// # Errors
/// When not even the first can be told.
pub(super) fn job_for_messages(
    project: &Project,
    lane: &AnyLane,
    talk: u32,
    texts: &[&str],
) -> Result<(Job, usize), Error> {
    let none = || Error::NoSession { lane: lane.name.clone() };
    let run = talk::last_talk(project, lane, Some(talk))?.ok_or_else(none)?;
    let session = run.account.session.clone().ok_or_else(none)?;
    let mut fit = texts.len();
    loop {
        let text = join_messages(texts[..fit].iter().copied());
        match job_like(project, lane.purpose(), &run, &text, Some(session.clone())) {
            Err(Error::Prompt { .. }) if fit > 1 => fit -= 1,
            job => return Ok((job?, fit)),
        }
    }
}

/// What `run` was asked, once more, for a supervisor that is there; its tries have cost `spent`.
pub(super) fn order_again(
    project: &Project,
    lane: &AnyLane,
    run: &RunRecord,
    spent: u64,
    exe: &Path,
) -> Result<Order, Error> {
    let file = match run.said {
        true => project.store.layout().run_said(&lane.name, run.attempt),
        false => project.store.layout().task(&lane.name),
    };
    let text = crate::regular_file::record_text(&file).map_err(lane::Error::io("read", &file))?;
    // One that went on in a conversation does so again; else it begins another one.
    let job = job_like(project, lane.purpose(), run, &text, run.session.clone().filter(|_| run.resumed))?;
    let job = job.after_spending(spent);
    order(project, lane, &job, exe, if run.said { Errand::Said(&text) } else { Errand::Task })
}

/// What `first` was asked, in a new conversation, with what has come of it since, which has cost `spent`.
pub(super) fn order_afresh(
    project: &Project,
    lane: &AnyLane,
    first: &RunRecord,
    spent: u64,
    exe: &Path,
) -> Result<Order, Error> {
    let text = afresh::text(project, lane, first, afresh::TOO_LONG)?;
    let job = job_like(project, lane.purpose(), first, &text, None)?.after_spending(spent);
    order(project, lane, &job, exe, Errand::Said(&text))
}

pub(super) fn order(
    project: &Project,
    lane: &AnyLane,
    job: &Job,
    exe: &Path,
    errand: Errand<'_>,
) -> Result<Order, Error> {
    if lane.works_in_place() {
        lane::go_on_in_place(project, lane)?;
    }
    let (lane, outfit) = prepare(project, lane, job, exe, errand)?;
    Order::of(project, &lane, lane.attempt, outfit.words, outfit.env)
}

/// A job as that of `run` was.
fn job_like(
    project: &Project,
    purpose: Option<Purpose>,
    run: &RunRecord,
    text: &str,
    resume: Option<String>,
) -> Result<Job, Error> {
    let asked = Asked {
        permission: run.permission.as_deref().and_then(Permission::named),
        model: run.model.clone(),
        max_turns: run.max_turns,
        resume,
        purpose,
        limits: run.limits,
        own: run.own.iter().map(OsString::from).collect(),
        ..Asked::default()
    };
    let job = Job::agent(project, &run.agent, text, project.repo.home(), &asked)?;
    Ok(job.in_talk(run.talk()).for_task(run.batch.clone()).with_part(run.stint.clone()))
}

pub(super) fn start(
    project: &Project,
    before: &AnyLane,
    lock: Guard,
    job: &Job,
    exe: &Path,
    errand: Errand<'_>,
) -> Result<AnyLane, Error> {
    let layout = project.store.layout();
    let log = layout.supervisor_log(&before.name);
    // Whoever asked for an end of the runs before did not mean this one.
    drop(std::fs::remove_file(layout.wrap_up(&before.name)));
    // Held until it is written down that nothing has begun: it would seem to be the run of a dead supervisor meanwhile.
    let kept = lock.file().try_clone().map_err(lane::Error::io("keep the lock of", &log))?;
    let mark = new_session()?;
    let begun = match before.works_in_place() {
        true => Some(lane::begin_in_place(project, before, before.attempt + 1)?),
        false => None,
    };
    fault::point("launch.begun");
    let (lane, outfit) = prepare(project, before, job, exe, errand)?;
    drop(begun);
    fault::point("launch.prepared");
    let mut start = Start::new(exe, project.repo.home())
        .args(["_supervise", "--lane"])
        .args([lane.name.clone(), "--attempt".to_owned(), lane.attempt.to_string(), "--".to_owned()])
        .args(outfit.words)
        // Whichever run this process belongs to, the supervisor is of its own.
        .without(OF_A_RUN)
        .env(MARK, mark)
        .stdin(lock.into_file())
        .errors(File::create(&log).ok());
    for (key, value) in &outfit.env {
        start = start.env(key, value);
    }
    let heard = hear(start, &log, "supervisor");
    fault::point("launch.heard");
    let done = match heard {
        None => Ok(project.any_lane(&lane.name)?),
        Some(why) => Err(not_started(project, before, lane.attempt, why)?),
    };
    drop(kept);
    done
}

/// Writes the next run's record and what it is given, and that it is being started.
fn prepare(
    project: &Project,
    lane: &AnyLane,
    job: &Job,
    exe: &Path,
    errand: Errand<'_>,
) -> Result<(AnyLane, Outfit), Error> {
    if let Some(purpose) = lane.purpose()
        && job.purpose != Some(purpose)
    {
        return Err(Error::OnlyLooks { purpose: purpose.to_string(), why: "does nothing but look" });
    }
    if !errand.resolves() {
        lane::require_whole(project, lane)?;
    }
    let lane = &lane::keep_ports(project, lane)?;
    if lane.looks_apart() {
        lane::open_apart(project, lane)?;
    }
    let attempt = lane.attempt + 1;
    let resolves = errand.resolves();
    lane::exclude_patterns(project, &job.profile().leaves)?;
    let outfit = outfit::prepare(project, lane, job, attempt, exe, errand)?;
    on_screen::expect(project, lane, job, attempt)?;
    let said = matches!(errand, Errand::Said(_));
    let stint =
        job.stint.clone().map(|stint| packet::before_run(project, lane, attempt, stint)).transpose()?;
    let doing = stint.as_ref().map(|stint| packet::doing(stint, &job.agent));
    let reviews = stint.as_ref().is_some_and(|stint| stint.part.is_review());
    let run = RunRecord { said, stint, ..record_of(project, lane, job, &outfit, (attempt, resolves))? };
    run.save(&project.store.layout().run_record(&lane.name, attempt))?;
    let lane = project.update_lane(&lane.name, |record| {
        record.state = LaneState::Starting;
        record.attempt = attempt;
        if resolves {
            record.detail = Some("resolving its conflict".to_owned());
        } else {
            record.detail = doing;
            // Whoever reviews is not the one who works there.
            if !reviews {
                record.agent = Some(job.agent.clone());
            }
        }
    })?;
    Ok((lane, outfit))
}

/// Where the lane is before a run; for one that only looks, what it looks at.
fn tip_before(project: &Project, lane: &AnyLane) -> Result<Oid, Error> {
    Ok(match lane.branch() {
        Some(branch) => project.repo.require_commit(&format!("refs/heads/{branch}"))?,
        None => project.repo.head_of(&lane.path)?.unwrap_or(lane.start),
    })
}

/// The record of a run that is about to start.
fn record_of(
    project: &Project,
    lane: &AnyLane,
    job: &Job,
    outfit: &Outfit,
    (attempt, resolves): (u32, bool),
) -> Result<RunRecord, Error> {
    Ok(RunRecord {
        attempt,
        agent: job.agent.clone(),
        command: outfit.words.iter().map(|w| w.to_string_lossy().chars().take(400).collect()).collect(),
        prompt_on_stdin: job.prompt_on_stdin(),
        prompts_follow: job.prompts_follow(),
        dialect: (!job.in_window).then(|| job.dialect().to_string()),
        permission: job.level(),
        model: job.model.clone(),
        session: outfit.session.clone(),
        resumed: job.resume.is_some(),
        interactive: job.in_window,
        window: None,
        keeps_strays: job.strays() == Strays::None,
        max_turns: job.max_turns,
        said: false,
        talk: job.talk,
        tells: job.tells.clone(),
        told: 0,
        own: job.named_command(),
        resolves,
        tip_before: tip_before(project, lane)?,
        started: now(),
        mark: None,
        supervisor: None,
        pid: None,
        birth: None,
        ended: None,
        outcome: None,
        class: None,
        detail: None,
        exit_code: None,
        signal: None,
        tip_after: None,
        strays: 0,
        account: Account { session: outfit.session.clone(), model: job.model.clone(), ..Account::default() },
        totals: None,
        limits: job.limits,
        spent_before: job.spent_before,
        batch: job.batch.clone(),
        stint: None,
    })
}

/// Starts a process that goes on by itself and listens for its first line. Why it does not do what it is for, if it does not;
/// `who` it is and where it writes its errors is said then.
pub(crate) fn hear(start: Start, log: &Path, who: &str) -> Option<String> {
    let mut child = match start.spawn_talking() {
        Ok(child) => child,
        Err(e) => return Some(e.to_string()),
    };
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        drop(BufReader::new(stdout).read_line(&mut line));
    }
    match line.trim() {
        STARTED => None,
        // Its output ends with it.
        "" => {
            let how = child.wait().map(|status| format!("its {who} ended early, with {}", Ended::of(status)));
            let how = how.unwrap_or_else(|e| format!("its {who} ended early: {e}"));
            Some(lane::last_words(log).map_or_else(|| how.clone(), |said| format!("{how}: {said}")))
        }
        said => Some(said.to_owned()),
    }
}

/// Writes down that a run could not be started in a lane that was as in `before`. The first one leaves it failed; any other
/// leaves it as it was.
fn not_started(project: &Project, before: &AnyLane, attempt: u32, why: String) -> Result<Error, Error> {
    // The lane's own record counts.
    drop(note_not_started(project, &before.name, attempt, &why));
    let state = state_after(project, &before.name, LaneState::Failed);
    let resolves = state == LaneState::Conflict;
    let first = before.attempt == 0 && !resolves;
    let lane = project.update_lane(&before.name, |record| {
        // Nobody holds it any more: another run may have begun.
        if record.attempt != attempt || !record.state.is_claimed() {
            return;
        }
        if first || resolves {
            record.state = state;
            record.detail = Some(why.clone());
        } else {
            record.state = before.state;
            record.detail.clone_from(&before.detail);
            record.agent.clone_from(&before.agent);
        }
    })?;
    let name = lane.name.clone();
    if !first && !resolves {
        return Ok(Error::NotBegun { lane: name, why });
    }
    project.tell(event::Name::RunEnded, Some(&lane), format!("lane '{name}': {why}"));
    Ok(match first {
        true => Error::NotStarted { lane: name, why },
        false => Error::NotStartedThere { lane: name, why },
    })
}

/// Writes into a run's record that it never started, if it did not.
pub(super) fn note_not_started(project: &Project, lane: &str, attempt: u32, why: &str) -> Result<(), Error> {
    let path = project.store.layout().run_record(lane, attempt);
    let run = RunRecord::load(&path)?;
    if run.pid.is_some() || run.ended.is_some() {
        return Ok(());
    }
    let (outcome, class) = (Some(LaneState::Failed), Some(RunClass::Failed));
    let detail = Some(format!("it could not be started: {why}"));
    Ok(RunRecord { ended: Some(now()), outcome, class, detail, ..run }.save(&path)?)
}

/// Refuses an agent that is not installed, before anything is begun for it.
pub(crate) fn require(project: &Project, agent: &str, dir: &Path) -> Result<(), Error> {
    job::require(&profile_of(&project.layers, agent)?, agent, dir).map(drop)
}
