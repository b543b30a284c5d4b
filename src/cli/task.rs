//! Owns `git proq task`: what a lane's agent is asked, and what it reports, without any protocol.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{Done, Failure, Mistake, Session, identity, spawn, ui};
use crate::explain::Exit;
use crate::harmless;
use crate::lane::{self, Own, Project, Said};
use crate::store::records::{ReportRecord, RunRecord};
use crate::store::{Record, path_form};

/// Read a lane's task and report on it, from inside the lane
///
/// For agents: which lane it is goes by the worktree that they stand in, and PROQ_LANE has to name the same one. The `git
/// proq mcp` server has the same two as tools. Everybody else reads `git proq show LANE`.
///
/// Examples:
///     git proq task read
///     git proq task update --finding "the parser never sees tabs" --human-step "rotate the API key"
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Task {
    /// What to do
    #[command(subcommand)]
    pub(crate) what: What,
}

/// Its two halves.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// Print the task of this lane, and what was reported last
    Read,
    /// Report on it, in place of what was reported before
    Update(Update),
}

/// What is reported.
#[derive(Debug, Args)]
pub(crate) struct Update {
    /// Where you are with the task, in one line
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    pub(crate) status: Option<String>,
    /// Something that was found; may be given again
    #[arg(long = "finding", value_name = "TEXT", conflicts_with = "file")]
    pub(crate) findings: Vec<String>,
    /// Something that only a person can do; may be given again
    #[arg(long = "human-step", value_name = "TEXT", conflicts_with = "file")]
    pub(crate) human_steps: Vec<String>,
    /// Read the report from FILE, or from standard input with '-': JSON with these three, or plain text as one finding
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Say what would be kept, and keep nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What an agent is told of its lane.
#[derive(Serialize)]
struct Shown {
    lane: String,
    title: String,
    /// What the run is for: `task`, or `conflict` where the lane's conflict is laid out.
    errand: &'static str,
    /// What it is to come to: `build`, which means commits in a lane, `in-place`, `plan` or `answer`.
    mode: String,
    prompt: String,
    /// None when there is nothing to land.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    base: String,
    #[serde(with = "path_form")]
    worktree: PathBuf,
    scope: Vec<String>,
    checks: Vec<String>,
    /// The files that were given along, to be read where they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<ReportRecord>,
}

#[derive(Serialize)]
struct Kept {
    lane: String,
    report: ReportRecord,
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Task) -> Done {
    match &args.what {
        What::Read => read(session),
        What::Update(update) => keep(session, update),
    }
}

fn read(session: &Session) -> Done {
    let project = session.project()?;
    let own = identity::own_lane(&project)?;
    let shown = look(&project, own)?;
    if session.ui.json {
        session.ui.object(shown);
        return Ok(Exit::Done);
    }
    let line = |key: &str, value: &str| {
        session.ui.answer(format!(
            "{} {}",
            console::style(format!("{key:<10}")).dim(),
            harmless::line(value)
        ));
    };
    line("lane", &shown.lane);
    match &shown.branch {
        Some(branch) if shown.mode == "build" => {
            line("branch", &format!("{branch}, lands on {}", shown.base));
        }
        Some(branch) => line("branch", &format!("{branch}, in the main checkout")),
        None => line("mode", &format!("{}: look only; your last message is what is kept", shown.mode)),
    }
    for glob in &shown.scope {
        line("scope", glob);
    }
    for check in &shown.checks {
        line("lands if", &format!("`{check}` succeeds"));
    }
    for file in &shown.files {
        line("file", file);
    }
    if let Some(report) = &shown.report {
        print(session, report);
    }
    session.ui.answer("");
    session.ui.answer(shown.prompt.trim());
    Ok(Exit::Done)
}

fn look(project: &Project, own: Own) -> Result<Shown, Failure> {
    let Own { lane, resolves } = own;
    let layout = project.store.layout();
    let run = RunRecord::find(&layout.run_record(&lane.name, lane.attempt))?;
    let told = match run {
        Some(run) if resolves && run.resolves => layout.run_prompt(&lane.name, run.attempt),
        _ => layout.task(&lane.name),
    };
    Ok(Shown {
        errand: if resolves { "conflict" } else { "task" },
        prompt: crate::regular_file::record_text(told).unwrap_or_default(),
        worktree: project.repo.here().unwrap_or(&lane.path).to_owned(),
        report: ReportRecord::find(&layout.report(&lane.name))?,
        files: lane::attachments(project, &lane.name)?.iter().map(|file| path_form::text(file)).collect(),
        mode: lane.purpose().map_or_else(|| "build".to_owned(), |purpose| purpose.to_string()),
        branch: lane.commits_to().map(str::to_owned),
        lane: lane.name,
        title: lane.title,
        base: lane.base,
        scope: lane.scope,
        checks: lane.checks,
    })
}

fn keep(session: &Session, args: &Update) -> Done {
    let project = session.project_to_change()?;
    let own = identity::own_lane(&project)?;
    let said = match &args.file {
        Some(file) => from_file(file)?,
        None => Said {
            status: args.status.clone(),
            findings: args.findings.clone(),
            human_steps: args.human_steps.clone(),
        },
    };
    let report = if args.dry_run {
        let Said { status, findings, human_steps } = lane::check_report(said)?;
        ReportRecord { run: own.lane.attempt, at: crate::store::now(), status, findings, human_steps }
    } else {
        lane::keep_report(&project, &own.lane.name, said)?
    };
    if session.ui.json {
        session.ui.object(Kept { lane: own.lane.name, report, dry_run: args.dry_run });
        return Ok(Exit::Done);
    }
    let verb = if args.dry_run { "would report" } else { "reported" };
    session.ui.answer(format!(
        "{verb} on lane '{}': {}, {} for a person",
        own.lane.name,
        ui::count(report.findings.len(), "finding"),
        ui::count(report.human_steps.len(), "step")
    ));
    Ok(Exit::Done)
}

/// Reads a report that somebody wrote down.
fn from_file(file: &Path) -> Result<Said, Failure> {
    let text = spawn::read_prompt(file)?;
    if !text.trim_start().starts_with('{') {
        return Ok(Said { findings: vec![text], ..Said::default() });
    }
    serde_json::from_str(&text).map_err(|e| Mistake::Report { why: e.to_string() }.into())
}

/// The lines of a report.
pub(super) fn print(session: &Session, report: &ReportRecord) {
    let line = |key: &str, value: &str| {
        session.ui.answer(format!("{} {value}", console::style(format!("{key:<10}")).dim()));
    };
    let part = |key: &str, texts: &[String]| {
        for text in texts {
            for (n, text) in harmless::lines(text).enumerate() {
                line(if n == 0 { key } else { "" }, &text);
            }
        }
    };
    part("reported", report.status.as_slice());
    part("found", &report.findings);
    part("to do", &report.human_steps);
    let run = if report.run == 0 { String::new() } else { format!(", in run {}", report.run) };
    line("", &format!("said {}{run}", report.at.on_the_wall()));
}
