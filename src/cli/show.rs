//! Owns `git proq show`.

use std::path::{Path, PathBuf};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::any_lane_names;
use super::{Done, Failure, Session, account, logs, looking, show_prompt, task, ui};
use crate::agent::{self, PacketShown};
use crate::explain::Exit;
use crate::git::RepoPath;
use crate::harmless;
use crate::lane::{self, Due, Project, RESTS, View};
use crate::store::records::{
    Activity, AnyLane, CheckRecord, ConflictRecord, LaneState, MessageRecord, Part, ReportRecord,
    ResolveRecord, RunClass, RunRecord,
};
use crate::store::{Layout, LockName, Record, path_form};

/// Show all about one lane
///
/// A removed lane is called NAME@N, as `git proq list --all` shows it.
///
/// Examples:
///     git proq show payments
///     git proq show payments --prompt
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Show {
    /// The lane, or NAME@N for a removed one
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: String,
    /// Print what its last run was told, and nothing else
    #[arg(long)]
    pub(crate) prompt: bool,
}

/// The answer for programs: the records as they are, and what only looking tells.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    lane: AnyLane,
    /// The state now; the record's may be older.
    current_state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<usize>,
    uncommitted: Vec<RepoPath>,
    task: String,
    /// What it came to, where it has nothing to land.
    #[serde(rename = "answer", skip_serializing_if = "Option::is_none")]
    said: Option<String>,
    /// The file that holds it.
    #[serde(rename = "answer_file", skip_serializing_if = "Option::is_none")]
    said_in: Option<String>,
    runs: Vec<RunRecord>,
    /// How far its task is, where that is a folder with steps.
    #[serde(rename = "steps", skip_serializing_if = "Option::is_none")]
    packet: Option<PacketShown>,
    /// What was sent to its agent and that it has not been told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<MessageRecord>,
    /// What its agent reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<ReportRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflict: Option<ConflictRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<CheckRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolving: Option<ResolveRecord>,
    /// Whether its base has the same changes in other commits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    landed_by_hand: bool,
    #[serde(with = "path_form")]
    records: PathBuf,
}

pub(super) fn run(session: &Session, args: &Show) -> Done {
    let project = session.project()?;
    let (lane, dir) = logs::find(&project, &args.lane)?;
    if args.prompt {
        return show_prompt::print(session, &lane, &dir);
    }
    let past = args.lane.contains('@');
    let view = if past { None } else { lane::views(&project, vec![lane.clone()])?.pop() };
    // What is on record of a conflict or a failed check that is over says nothing of the lane any more.
    let in_conflict =
        view.as_ref().is_none_or(|view| view.state == LaneState::Conflict || view.state == lane.state);
    let in_check = lane.state == LaneState::CheckFailed
        && view.as_ref().is_none_or(|view| view.state == LaneState::CheckFailed);
    let about = About {
        task: crate::regular_file::record_text(dir.join("task.md")).unwrap_or_default(),
        runs: runs(&dir, lane.attempt)?,
        packet: agent::shown_packet(&dir, &lane)?,
        waiting: lane::waiting_in(&dir)?.into_iter().map(|letter| letter.message).collect(),
        report: ReportRecord::find(&dir.join(Layout::REPORT))?,
        conflict: ConflictRecord::find(&dir.join("conflict.toml"))?.filter(|_| in_conflict),
        check: CheckRecord::find(&dir.join("check.toml"))?.filter(|_| in_check),
        resolving: ResolveRecord::find(&dir.join("resolve.toml"))?,
        said: looking::last_answer(&dir, &lane)?,
        by_hand: view.as_ref().map_or(Ok(false), |view| by_hand(&project, view))?,
        dir,
    };
    if session.ui.json {
        session.ui.object(answer(lane, view.as_ref(), about));
    } else {
        print(session, &project, &lane, view.as_ref(), &about);
    }
    Ok(Exit::Done)
}

struct About {
    task: String,
    runs: Vec<RunRecord>,
    packet: Option<PacketShown>,
    waiting: Vec<MessageRecord>,
    report: Option<ReportRecord>,
    conflict: Option<ConflictRecord>,
    check: Option<CheckRecord>,
    resolving: Option<ResolveRecord>,
    by_hand: bool,
    /// Its last answer, and the file that holds it.
    said: Option<(String, PathBuf)>,
    dir: PathBuf,
}

impl About {
    /// What the landing wrote that followed a run, if one did.
    fn landing_log(&self, run: &RunRecord) -> PathBuf {
        self.dir.join(Layout::landing_log_in_lane(run.attempt))
    }
}

/// Whether a lane that git-proq has not landed is on its base all the same.
fn by_hand(project: &Project, view: &View) -> Result<bool, Failure> {
    let (Some(tip), None) = (view.tip, &view.lane.landed) else { return Ok(false) };
    let Some(base) = project.repo.branch_tip(&view.lane.base)? else { return Ok(false) };
    Ok(project.repo.has_by_hand(base, tip)?)
}

fn runs(dir: &Path, last: u32) -> Result<Vec<RunRecord>, Failure> {
    let mut out = Vec::new();
    for n in 1..=last {
        let run = RunRecord::find(&dir.join(format!("runs/{n}.toml")))?;
        out.extend(run.map(|run| RunRecord { account: account::of(dir, &run), ..run }));
    }
    Ok(out)
}

fn answer(lane: AnyLane, view: Option<&View>, about: About) -> Answer {
    let (said, said_in) = about.said.map(|(text, file)| (text, path_form::text(&file))).unzip();
    Answer {
        said,
        said_in,
        current_state: view.map_or(lane.state, |v| v.state).to_string(),
        current_detail: view.and_then(|v| v.detail.clone()).or_else(|| lane.detail.clone()),
        tip: view.and_then(|v| v.tip).map(|t| t.to_string()),
        ahead: view.and_then(|v| v.distance).map(|d| d.ahead),
        behind: view.and_then(|v| v.distance).map(|d| d.behind),
        uncommitted: view.and_then(|v| v.dirt.as_ref()).map(crate::git::Dirt::paths).unwrap_or_default(),
        task: about.task,
        runs: about.runs,
        packet: about.packet,
        waiting: about.waiting,
        report: about.report,
        conflict: about.conflict,
        check: about.check,
        resolving: about.resolving,
        landed_by_hand: about.by_hand,
        records: about.dir,
        lane,
    }
}

fn print(session: &Session, project: &Project, lane: &AnyLane, view: Option<&View>, about: &About) {
    let line = |key: &str, value: &str| {
        session.ui.answer(format!("{} {value}", console::style(format!("{key:<10}")).dim()));
    };
    let state = view.map_or(lane.state, |v| v.state);
    let detail = view.map_or(lane.detail.as_deref(), |v| v.detail.as_deref());
    // A removed lane goes by its name in the history, which is what its folder of records is called.
    let past = about.dir.file_name().map(|n| n.to_string_lossy().into_owned());
    line("lane", past.as_deref().unwrap_or(&lane.name));
    if lane.title != lane.name {
        line("title", &lane.title);
    }
    if let Some(of) = &lane.batch {
        line("batch", &format!("{}, for {}: git proq status {0}", of.batch, of.task));
    }
    if let Some(group) = &lane.group {
        line("group", &format!("{group}: git proq compare {group}"));
    }
    line("state", &format!("{}{}", ui::state(state), detail.map(|d| format!(" ({d})")).unwrap_or_default()));
    print_place(&line, project, lane, view);
    if let Some(landed) = &lane.landed {
        line("landed", &format!("on {} as {}, {}", landed.onto, landed.commit.short(), landed.at));
    }
    for (n, what) in by_itself(project, lane, state, about, past.as_deref()).iter().enumerate() {
        line(if n == 0 { "by itself" } else { "" }, what);
    }
    if about.by_hand {
        line("landed", &format!("by hand: {} has the same changes in other commits", lane.base));
    }
    if let Some(packet) = &about.packet {
        print_steps(&line, packet);
    }
    let said = lane::said_last(project, lane);
    print_runs(&line, about, state.is_busy() || detail == Some(RESTS), said);
    if let Some(run) = about.runs.last() {
        line("log", &about.dir.join(format!("runs/{}.log", run.attempt)).display().to_string());
        if run.resolves {
            line("prompt", &about.dir.join(format!("runs/{}.md", run.attempt)).display().to_string());
        }
    }
    print_trouble(&line, lane, about);
    if let Some(report) = &about.report {
        task::print(session, report);
    }
    let task = about.task.trim();
    if !task.is_empty() {
        session.ui.answer("");
        session.ui.answer(task);
    }
    if let (Some((text, _)), Some(purpose)) = (&about.said, lane.purpose()) {
        session.ui.answer("");
        session.ui.answer(console::style(format!("its {purpose}")).dim().to_string());
        session.ui.answer("");
        looking::print(session, text);
    }
}

/// Where it works, what it has there, and what is to become of that.
fn print_place(line: &dyn Fn(&str, &str), project: &Project, lane: &AnyLane, view: Option<&View>) {
    if lane.works_in_place() {
        line("mode", "in-place: it works in the main checkout, there is nothing to land");
        line("works on", &looking::seen(lane));
    } else if let Some(purpose) = lane.purpose() {
        line("mode", &format!("{purpose}: it only looks, there is nothing to land"));
        line("looks at", &looking::seen(lane));
    } else {
        line("branch", &branch(project, lane, view));
        line("base", &format!("{}, from {}", lane.base, lane.start.short()));
    }
    if let Some(ports) = lane.port {
        line("ports", &format!("{}-{}", ports.first, ports.last()));
    }
    for check in &lane.checks {
        line("lands if", &format!("`{check}` succeeds"));
    }
    for glob in &lane.scope {
        line("scope", glob);
    }
    if let Some(view) = view {
        let (key, more) = match lane.purpose() {
            None => ("worktree", if view.folder_gone { " (gone)" } else { "" }),
            Some(_) => ("in", if lane.looks_apart() { ", while it runs" } else { "" }),
        };
        line(key, &format!("{}{more}", lane.path.display()));
        let cut = lane.branch().and_then(|_| project.repo.cut_of(&lane.path));
        match cut.as_deref() {
            Some([]) => line("checkout", "a part: the files at its top"),
            Some(parts) => line("checkout", &format!("a part: {}", parts.join(", "))),
            None => {}
        }
    }
    if let Some(dirt) = view.and_then(|v| v.dirt.as_ref()).filter(|d| !d.is_clean()) {
        line("changes", &format!("{} uncommitted", ui::count(dirt.entries.len(), "file")));
        for path in dirt.paths().iter().take(10) {
            line("", &path.to_string());
        }
    }
}

/// How far its task is that is a folder.
fn print_steps(line: &dyn Fn(&str, &str), packet: &PacketShown) {
    let by = match (&packet.reviewer, packet.level) {
        (None, _) => String::new(),
        (Some(who), 1) => format!("; {who} reviews plans"),
        (Some(who), _) => format!("; {who} reviews plans and code"),
    };
    line("task", &format!("{}{by}", harmless::line(&packet.folder)));
    let at = packet.step.as_ref().map(|step| format!(", at {step}")).unwrap_or_default();
    let iterations = ui::count(usize::try_from(packet.iterations).unwrap_or(usize::MAX), "iteration");
    line("boxes", &format!("{} of {}{at}, after {iterations}", packet.done, packet.of));
    if let Some(last) = &packet.review {
        line(
            "review",
            &format!("the {} of step {}: {}, in run {}", last.of, last.step, last.judgement, last.run),
        );
    }
}

/// How each run ended, why, and what it used; then what is still to be told.
fn print_runs(line: &dyn Fn(&str, &str), about: &About, busy: bool, said: Option<Activity>) {
    for run in &about.runs {
        let how = describe(run, busy && Some(run) == about.runs.last(), said);
        line(&format!("run {}", run.attempt), &how);
        if run.told > 0 {
            let times = if run.told == 1 { "once".to_owned() } else { format!("{} times", run.told) };
            line("", &format!("told more {times} while it was at work"));
        }
        let why = run.detail.iter().filter(|why| !how.contains(why.as_str())).cloned();
        for more in why.chain(account::phrases(&run.account)) {
            line("", &more);
        }
    }
    let in_all = account::in_all(&about.runs).join(", ");
    if !in_all.is_empty() {
        line("in all", &in_all);
    }
    print_waiting(line, about);
}

/// What its agent has not been told, in full: nobody has read it yet.
fn print_waiting(line: &dyn Fn(&str, &str), about: &About) {
    for message in &about.waiting {
        let MessageRecord { agent, talk, at, text, .. } = message;
        line("waits", &format!("to be told to {agent}, in the conversation of run {talk}; sent at {at}"));
        for part in text.trim_end().lines() {
            line("", &format!("  {}", ui::printable(part)));
        }
    }
}

/// What keeps a lane from landing, and where that is being resolved.
fn print_trouble(line: &dyn Fn(&str, &str), lane: &AnyLane, about: &About) {
    if let Some(conflict) = &about.conflict {
        line("conflict", &format!("with {} in {}", conflict.onto, ui::count(conflict.paths.len(), "file")));
        for message in &conflict.messages {
            line("", message);
        }
    }
    if let Some(check) = &about.check {
        let own = if check.task_of.as_ref() == Some(&check.lane) { "its own " } else { "" };
        line("check", &format!("{own}`{}` failed with it on {}: {}", check.command, check.onto, check.ended));
        line("", &format!("git proq logs {} --check", lane.name));
    }
    if let Some(open) = &about.resolving {
        line("laid out", &format!("in {}", open.path.display()));
    }
}

fn branch(project: &Project, lane: &AnyLane, view: Option<&View>) -> String {
    let name = lane.branch().unwrap_or_default();
    let Some(view) = view else { return name.to_owned() };
    let Some(tip) = view.tip else { return format!("{name} (gone)") };
    let subject = project.repo.subject_of(tip).unwrap_or_default();
    let distance =
        view.distance.map(|d| format!(", {} ahead, {} behind", d.ahead, d.behind)).unwrap_or_default();
    format!("{name} at {} \"{subject}\"{distance}", tip.short())
}

/// What there is to say of a lane that lands by itself, and where its landing said more.
fn by_itself(
    project: &Project,
    lane: &AnyLane,
    state: LaneState,
    about: &About,
    past: Option<&str>,
) -> Vec<String> {
    let mut out = Vec::new();
    if lane.auto_merge {
        out.push(prospect(project, lane, state, about));
    }
    if let Some(run) = about.runs.iter().rev().find(|run| about.landing_log(run).exists()) {
        out.push(format!("git proq logs {} --merge --run {}", past.unwrap_or(&lane.name), run.attempt));
    }
    out
}

/// When a lane lands that is to land by itself; or why it does not, and what helps.
fn prospect(project: &Project, lane: &AnyLane, state: LaneState, about: &About) -> String {
    let (name, base) = (&lane.name, &lane.base);
    let by_force = |how: &str| format!("no: its run {how}; git proq merge {name} --force lands it");
    match state {
        LaneState::Idle | LaneState::Starting | LaneState::Running => {
            format!("lands on {base} when its run is done")
        }
        LaneState::Orphaned => {
            format!("no: a process of its agent lives on; git proq stop {name} ends it")
        }
        LaneState::Done => once_done(project, lane, about),
        LaneState::Landed => "it landed".to_owned(),
        LaneState::Conflict => format!("no: it conflicts; git proq resolve {name} shows what helps"),
        LaneState::CheckFailed => {
            format!("no: a check failed with it; git proq merge {name} tries again")
        }
        LaneState::Failed => by_force("failed"),
        LaneState::Stalled => by_force("stalled"),
        LaneState::Stopped => by_force("was stopped"),
        LaneState::NoChange => "no: it changed nothing".to_owned(),
        LaneState::Discarded => "no: it was discarded".to_owned(),
    }
}

/// The same of a lane whose run is done.
fn once_done(project: &Project, lane: &AnyLane, about: &About) -> String {
    let (name, base) = (&lane.name, &lane.base);
    let lock = LockName::Landing(name.clone());
    if project.store.locks().is_held(&lock).unwrap_or(false) {
        return format!("is landing on {base}: git proq queue");
    }
    let due = lane.clone().with_tree().ok().and_then(|lane| lane::due(project, &lane).ok());
    let again = format!("tried again after the next landing on {base}");
    match (due, &lane.refused) {
        (Some(Due::Kept(why) | Due::Moved(why)), _) => format!("refused: {why}"),
        (_, Some(refused)) if !about.waiting.is_empty() => format!("refused: {}", refused.message),
        (_, Some(refused)) => format!("refused: {}; {again}", refused.message),
        (_, None) => format!("its landing was cut short; {again}; git proq merge {name} lands it now"),
    }
}

/// Whether how a run ended is more than the state and the exit code say.
fn says_more(run: &RunRecord, state: LaneState) -> bool {
    run.class.is_some_and(|class| class.to_string() != state.to_string())
        && !matches!(run.class, Some(RunClass::Failed | RunClass::Done))
}

/// What an agent in a window does, as far as it has said so.
fn doing(said: Option<Activity>) -> &'static str {
    match said {
        Some(Activity::Working) => "at work, ",
        Some(Activity::NeedsApproval) => "waits for you, ",
        Some(Activity::Idle) => "idle, ",
        Some(Activity::Unknown) | None => "",
    }
}

fn describe(run: &RunRecord, lasts: bool, said: Option<Activity>) -> String {
    let how = match (run.outcome, run.exit_code, run.signal) {
        (None, ..) if !lasts => "nobody has written how it ended".to_owned(),
        (None, ..) if run.window.is_some() => format!("{}in a window of tmux", doing(said)),
        (None, ..) => "at work".to_owned(),
        // How an agent that was ended for a reason ended says nothing more.
        (Some(state), ..) if says_more(run, state) => {
            format!("{state}, {}", run.class.map(|class| class.to_string()).unwrap_or_default())
        }
        (Some(state), _, Some(signal)) => format!("{state}, signal {signal}"),
        (Some(state), Some(code), _) => format!("{state}, exit code {code}"),
        (Some(state), None, None) => state.to_string(),
    };
    let time = run.ended.map(|end| format!(", {}", ui::span(end.since(run.started)))).unwrap_or_default();
    let errand = match &run.stint {
        _ if run.resolves => ", on the conflict".to_owned(),
        None => String::new(),
        Some(stint) => match stint.part {
            Part::Plan => format!(", the plan of step {}", stint.step),
            Part::Work => format!(", step {}", stint.step),
            Part::PlanReview | Part::CodeReview => {
                format!(", a review of the {} of step {}", stint.part.subject(), stint.step)
            }
        },
    };
    let strays = match run.strays {
        0 => String::new(),
        n => format!(", {} that it had left were ended", ui::count(n, "process")),
    };
    format!("{}{errand}: {how}{time}{strays}", run.agent)
}
