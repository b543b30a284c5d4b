//! Owns `git proq report`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::complete::batch_names;
use super::table::render;
use super::{Done, Failure, Session, account, report_page, status, ui};
use crate::explain::Exit;
use crate::harmless;
use crate::lane::Project;
use crate::store::records::Cost;
use crate::swarm::{self, Batch, BatchError, BatchRecord, History};

/// Report on a batch: what landed, what did not, and what it cost
///
/// Without a name it is the last batch that there was. The page of --html is one file that needs nothing else.
///
/// Examples:
///     git proq report
///     git proq report 20261121-1405 --json
///     git proq report --html > report.html
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Report {
    /// The batch, or the beginning of its name
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_names))]
    batch: Option<String>,
    /// Print a page for a browser
    #[arg(long, conflicts_with = "json")]
    html: bool,
}

pub(super) fn run(session: &Session, args: &Report) -> Done {
    let project = session.project()?;
    let record = wanted(&project, args.batch.as_deref())?;
    let scheduler = swarm::is_run(&project, &record.id)?;
    let batch = Batch::load(&project, &record.id)?;
    let history = History::of(&project, &batch, &batch.log(&project)?, scheduler);
    if session.ui.json {
        session.ui.long_object(&history);
    } else if args.html {
        session.ui.text(&report_page::page(&history));
    } else {
        for line in lines(&history) {
            session.ui.answer(line);
        }
    }
    Ok(Exit::Done)
}

/// The batch that is meant: without a name, the last one.
fn wanted(project: &Project, asked: Option<&str>) -> Result<BatchRecord, Failure> {
    if let Some(asked) = asked {
        return Ok(swarm::find_batch(project, asked)?);
    }
    let none = || swarm::Error::from(BatchError::NoneYet);
    Ok(swarm::batches(project, true).pop().ok_or_else(none)?)
}

/// The report for a terminal.
fn lines(history: &History) -> Vec<String> {
    let mut out = head(history);
    out.push(String::new());
    out.extend(tasks(history).lines().map(ToOwned::to_owned));
    section(&mut out, "criteria", criteria(history));
    section(&mut out, "did not land at once", obstacles(history));
    section(&mut out, "landings", landings(history));
    section(&mut out, "remarks", remarks(history));
    section(&mut out, "noted in the plan", noted(history));
    let left = history.noted.iter().flat_map(|noted| &noted.left).filter(|left| !left.patch.is_empty());
    for left in left {
        out.push(String::new());
        out.extend(harmless::lines(&left.patch));
    }
    out
}

fn section(out: &mut Vec<String>, title: &str, lines: Vec<String>) {
    if !lines.is_empty() {
        out.push(String::new());
        out.push(console::style(title).bold().to_string());
        out.extend(lines.into_iter().map(|line| format!("  {}", harmless::line(&line))));
    }
}

fn head(history: &History) -> Vec<String> {
    let picture = &history.picture;
    let why = picture.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    let mut out = vec![format!("batch {}  {}{}", picture.batch, picture.state, harmless::line(&why))];
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            out.push(format!("  {name:<8} {}", harmless::line(&value)));
        }
    };
    fact("plan", format!("{}{}", picture.summary, sources(history)));
    fact("landed", landed(history));
    let on_base =
        picture.landed_on.as_ref().map(|onto| format!("; all of it is on {onto}")).unwrap_or_default();
    fact("branch", format!("{} for {}{on_base}", picture.branch, picture.base));
    fact("took", format!("{}, since {}", ui::span(history.last.since(history.began)), history.began));
    fact("cost", cost(history));
    out
}

fn sources(history: &History) -> String {
    let names = history.sources.join(" ");
    if history.picture.summary.is_empty() { names } else { format!(" ({names})") }
}

/// How many tasks landed, and what became of the others.
pub(super) fn landed(history: &History) -> String {
    let counts = history.picture.counts;
    let others = [
        (counts.before, "done before"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.at_work, "at work"),
        (counts.landing, "landing"),
        (counts.waiting, "waiting"),
        (counts.left, "left"),
    ];
    let others: Vec<String> =
        others.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let rest = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
    format!("{} of {}{rest}", counts.landed, ui::count(counts.tasks, "task"))
}

/// Money and tokens of all runs, as far as agents tell.
pub(super) fn cost(history: &History) -> String {
    let tokens = history.tokens;
    let used = tokens.sent() + tokens.output > 0;
    let parts = history.cost.map(account::money).into_iter();
    parts.chain(used.then(|| account::tokens(tokens))).collect::<Vec<_>>().join(", ")
}

fn tasks(history: &History) -> String {
    let mut rows = Vec::new();
    for task in &history.picture.tasks {
        let wave = history.waves.iter().position(|wave| wave.contains(&task.name));
        let cost = history.runs.iter().filter(|run| run.task == task.name).filter_map(|run| run.cost);
        rows.push(vec![
            wave.map(|wave| (wave + 1).to_string()).unwrap_or_default(),
            harmless::line(&task.name),
            task.state.clone(),
            if task.attempts > 0 { task.attempts.to_string() } else { String::new() },
            cost.reduce(Cost::plus).map(account::money).unwrap_or_default(),
            harmless::line(task.detail.as_deref().unwrap_or(&task.title)),
        ]);
    }
    render(&["WAVE", "TASK", "STATE", "RUNS", "COST", "WHY, OR WHAT"], rows)
}

fn obstacles(history: &History) -> Vec<String> {
    let line = |it: &crate::swarm::Obstacle| {
        let files: Vec<String> = it.files.iter().map(ToString::to_string).collect();
        match (&it.check, &it.log) {
            (Some(check), Some(log)) => format!("{}  `{check}` failed; it wrote {}", it.task, log.display()),
            (Some(check), None) => format!("{}  `{check}` failed", it.task),
            (None, _) => format!("{}  conflict, {}: {}", it.task, it.became, files.join(", ")),
        }
    };
    history.obstacles.iter().map(line).collect()
}

fn landings(history: &History) -> Vec<String> {
    let line = |it: &crate::swarm::Landing| {
        let tip = it.tip.map(|tip| format!("  {}", tip.short())).unwrap_or_default();
        let checks = it.checks.iter().map(|check| format!("`{check}`")).collect::<Vec<_>>().join(", ");
        let passed = if checks.is_empty() { String::new() } else { format!("  passed {checks}") };
        format!("{}  {}{tip}{passed}", it.at, it.tasks.join(", "))
    };
    history.landings.iter().map(line).collect()
}

fn remarks(history: &History) -> Vec<String> {
    let line = |it: &crate::swarm::Remark| {
        let about = if it.tasks.is_empty() { String::new() } else { format!("{}: ", it.tasks.join(", ")) };
        format!("{}  {about}{}", it.at, it.text)
    };
    history.remarks.iter().map(line).collect()
}

/// What was found out of the criteria.
pub(super) fn criteria(history: &History) -> Vec<String> {
    history.picture.criteria.as_ref().map(status::criteria).unwrap_or_default()
}

/// What was noted in the files of the plan, and what was not.
pub(super) fn noted(history: &History) -> Vec<String> {
    let Some(noted) = &history.noted else { return Vec::new() };
    let commit = noted.commit.map(|commit| format!("commit {}", commit.short()));
    let written = noted.written.iter().map(|path| format!("{path}, which is yours to commit"));
    let left = noted.left.iter().map(|left| format!("not in {}: {}", left.path, left.why));
    commit.into_iter().chain(written).chain(left).collect()
}
