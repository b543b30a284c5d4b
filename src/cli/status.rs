//! Owns `git proq status`: how far batches are.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use console::style;
use serde::Serialize;

use super::complete::batch_names;
use super::{Done, Failure, Session, control, table, ui};
use crate::explain::Exit;
use crate::harmless;
use crate::lane::Project;
use crate::swarm::{self, Batch, BatchRecord, Picture, Proof, TaskAt};

/// Show how far a batch is
///
/// Without BATCH, the one that is open; where several are, or none is, a line for each.
///
/// Examples:
///     git proq status
///     git proq status --all
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Status {
    /// The batch
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_names))]
    batch: Option<String>,
    /// A line for every batch, also those that are over
    #[arg(long, conflicts_with = "batch")]
    all: bool,
}

#[derive(Serialize)]
struct All {
    batches: Vec<Picture>,
}

pub(super) fn run(session: &Session, args: &Status) -> Done {
    let project = session.project()?;
    if let Some(asked) = &args.batch {
        return one(session, &project, &swarm::find_batch(&project, asked)?);
    }
    let open = control::open(&project);
    if let ([(batch, _)], false) = (open.as_slice(), args.all) {
        return one(session, &project, batch);
    }
    let batches = swarm::batches(&project, true);
    if let ([batch], false) = (batches.as_slice(), args.all) {
        return one(session, &project, batch);
    }
    let mut pictures = Vec::new();
    for batch in &batches {
        pictures.push(picture(&project, batch)?);
    }
    if session.ui.json {
        session.ui.object(All { batches: pictures });
    } else if pictures.is_empty() {
        session.ui.say("no plan was run here yet");
        session.ui.hint("begin: git proq swarm PLAN");
    } else {
        let rows = pictures.iter().map(row).collect();
        session.ui.answer(table::render(&["BATCH", "STATE", "LANDED", "TASKS", "COST", "ABOUT"], rows));
    }
    Ok(Exit::Done)
}

pub(super) fn picture(project: &Project, batch: &BatchRecord) -> Result<Picture, Failure> {
    let scheduler = swarm::is_run(project, &batch.id)?;
    let read = Batch::load(project, &batch.id)?;
    Ok(Picture::of(project, &read, &read.log(project)?, scheduler))
}

fn state_of(picture: &Picture) -> String {
    let rests = matches!(picture.state, "over" | "paused");
    match (&picture.why, picture.scheduler || rests) {
        (Some(why), _) if picture.state == "over" => why.clone(),
        (_, true) => picture.state.to_owned(),
        // It says that it goes on, and nobody does.
        (_, false) => "interrupted".to_owned(),
    }
}

fn row(picture: &Picture) -> Vec<String> {
    vec![
        picture.batch.clone(),
        state_of(picture),
        picture.counts.landed.to_string(),
        picture.counts.tasks.to_string(),
        picture.cost_usd.map_or_else(|| "-".to_owned(), |usd| format!("${usd:.2}")),
        harmless::line(&picture.summary),
    ]
}

fn one(session: &Session, project: &Project, batch: &BatchRecord) -> Done {
    let picture = picture(project, batch)?;
    if session.ui.json {
        session.ui.long_object(&picture);
        return Ok(Exit::Done);
    }
    let about = if picture.summary.is_empty() { String::new() } else { format!("  {}", picture.summary) };
    session.ui.answer(format!("batch {}{}", style(&picture.batch).bold(), harmless::line(&about)));
    let counts = picture.counts;
    let mut parts = vec![format!("{} of {} landed", counts.landed, ui::count(counts.tasks, "task"))];
    for (count, what) in [
        (counts.before, "done before"),
        (counts.at_work, "at work"),
        (counts.landing, "landing"),
        (counts.waiting, "waiting"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.left, "left over"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    parts.extend(picture.cost_usd.map(|usd| format!("${usd:.2}")));
    let why = picture.why.as_ref().filter(|_| picture.state == "paused").map(|why| format!(" ({why})"));
    session.ui.answer(format!("{}{}: {}", state_of(&picture), why.unwrap_or_default(), parts.join(", ")));
    let on_base =
        picture.landed_on.as_ref().map(|onto| format!("; all of that is on {onto}")).unwrap_or_default();
    session.ui.answer(format!("from {}, lands on {}{on_base}", picture.base, picture.branch));
    session.ui.answer("");
    session.ui.answer(tasks(&picture));
    if let Some(proof) = &picture.criteria {
        session.ui.answer("");
        for line in criteria(proof) {
            session.ui.answer(line);
        }
    }
    if state_of(&picture) == "complete" && !picture.scheduler && batch.is_unproven(project) {
        session.ui.hint(format!("have its criteria looked at: git proq resume {}", batch.id));
    }
    hints(session, project, batch, &picture);
    Ok(Exit::Done)
}

/// What was found out of the criteria of a batch: in a line, and one for each.
pub(super) fn criteria(proof: &Proof) -> Vec<String> {
    let each = proof.criteria.iter().filter(|_| proof.skipped.is_none()).map(|it| {
        let met = it.met.map_or_else(|| "looked at".to_owned(), |met| met.to_string());
        let why = it.evidence.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let log = it.log.as_ref().map(|log| format!("; it wrote {}", log.display())).unwrap_or_default();
        harmless::line(&format!("  {met:<13} {}{why}{log}", it.text))
    });
    std::iter::once(harmless::line(&proof.in_words())).chain(each).collect()
}

fn tasks(picture: &Picture) -> String {
    let dash = || "-".to_owned();
    let row = |task: &TaskAt| {
        let at = picture.lanes.iter().find(|lane| lane.task == task.name);
        let step = at.map(|lane| {
            let step = lane.step.as_ref().map(|step| format!(", {step}")).unwrap_or_default();
            format!("for {}{step}", ui::span(std::time::Duration::from_secs(lane.seconds)))
        });
        let detail = task.detail.clone().or(step).unwrap_or_else(|| task.title.clone());
        vec![
            task.name.clone(),
            format!(
                "{}{}",
                task.state,
                task.boxes.map(|boxes| format!(" {}/{}", boxes.done, boxes.of)).unwrap_or_default()
            ),
            task.attempts.to_string(),
            task.lane.clone().unwrap_or_else(dash),
            harmless::line(&detail),
        ]
    };
    let rows = picture.tasks.iter().map(row).collect();
    table::render(&["TASK", "STATE", "RUNS", "LANE", "MORE"], rows)
}

fn hints(session: &Session, project: &Project, batch: &BatchRecord, picture: &Picture) {
    let id = &batch.id;
    if batch.cleaned.is_some() {
        return session.ui.hint("it was cleaned up: its lanes and its branch are gone");
    }
    if state_of(picture) == "partly"
        && let Some(hint) = when_partly(picture)
    {
        session.ui.hint(hint);
    }
    match (state_of(picture).as_str(), picture.counts.landed) {
        ("running" | "pausing" | "stopping", _) => {
            session.ui.hint(format!("follow it: git proq resume {id}"));
        }
        ("complete" | "partly", _) if picture.on_base => {
            session.ui.hint(format!("tidy up: git proq cleanup --batch {id}"));
        }
        ("complete" | "partly", landed) if landed > 0 && !batch.auto_merge => {
            session.ui.hint(swarm::how_to_land(project, batch, &format!("land it on {}", batch.base)));
        }
        ("complete" | "partly", _) => {}
        ("paused", _) => {
            for hint in when_paused(picture) {
                session.ui.hint(hint);
            }
        }
        _ => session.ui.hint(format!("go on with it: git proq resume {id}")),
    }
}

/// The most tasks that a command to try tasks again names.
const MOST_NAMED: usize = 5;

/// The lane of the first task in this state that nobody has repaired yet.
fn lane_of_stuck<'a>(picture: &'a Picture, state: &str) -> Option<&'a String> {
    let is_stuck = |task: &&TaskAt| task.state == state && !task.is_repaired;
    picture.tasks.iter().find(is_stuck).and_then(|task| task.lane.as_ref())
}

/// The command that helps with a batch that is over though not all of it landed.
fn when_partly(picture: &Picture) -> Option<String> {
    let id = &picture.batch;
    let in_state = |state: &str| lane_of_stuck(picture, state);
    let go_on = format!("and go on with git proq resume {id}");
    match (in_state("conflict"), in_state("check failed")) {
        (Some(lane), _) => Some(format!("resolve its conflict, {go_on}: git proq resolve {lane}")),
        (None, Some(lane)) => {
            Some(format!("repair what failed in the lane, {go_on}; see it: git proq logs {lane} --check"))
        }
        (None, None) if picture.tasks.iter().any(|task| task.is_repaired) => {
            Some(format!("go on with it: git proq resume {id}"))
        }
        (None, None) => try_again(picture),
    }
}

/// The command that tries the tasks again that failed or brought nothing.
pub(super) fn try_again(picture: &Picture) -> Option<String> {
    let failed = |task: &&TaskAt| {
        !task.is_repaired && matches!(task.state.as_str(), "failed" | "set aside" | "no change")
    };
    let names = picture.tasks.iter().filter(failed).map(|task| crate::explain::word(&task.name));
    let words: Vec<String> = names.take(MOST_NAMED).map(|name| format!(" --retry {name}")).collect();
    let what = if words.len() == 1 { "it" } else { "them" };
    (!words.is_empty())
        .then(|| format!("try {what} again: git proq resume {}{}", picture.batch, words.concat()))
}

/// The commands that help with a batch that is paused.
pub(super) fn when_paused(picture: &Picture) -> Vec<String> {
    let id = &picture.batch;
    if picture.why.as_deref() == Some(swarm::SPENT) {
        // Twice as much as so far, in whole dollars: with as much as before it pauses again at once.
        let more = (picture.cost_usd.unwrap_or(0.0) * 2.0).ceil().max(1.0);
        return vec![format!("let it cost more in all: git proq resume {id} --budget {more}")];
    }
    let stuck = |state: &str| lane_of_stuck(picture, state);
    let go_on = |when: &str| format!("{when}: git proq resume {id}");
    match (stuck("conflict"), stuck("check failed")) {
        (Some(lane), _) => vec![
            format!("resolve its conflict: git proq resolve {lane}"),
            go_on("once that is done, go on with it"),
        ],
        (None, Some(lane)) => vec![
            format!("see what failed: git proq logs {lane} --check"),
            go_on("once you have repaired it in the lane, go on with it"),
        ],
        (None, None) => vec![go_on("go on with it")],
    }
}
