//! Owns `git proq merge`: its arguments, and how its answer looks.

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal};
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::{batch_names, branch_names, lane_names};
use super::landing::Landing;
use super::{Done, Failure, Mistake, Session, approve, auto_merge, identity, merge_batch, table, ui};
use crate::agent;
use crate::config::{Key, Origin};
use crate::lane::{self, Project};
use crate::merge::{self, Line, Order, Outcome, Plan, Push, Pushed, Report, Request, Verdict};
use crate::store::records::{LaneRecord, Strategy};
use crate::store::{Limit, new_id};
use crate::swarm;

/// Land lanes on the branch they were cut from
///
/// Merges in memory: no checkout is touched before everything is decided, and then only files that change. Lanes are tried
/// in the order in which most of them land; one that conflicts is put aside with its conflict kept. Landed lanes are
/// cleaned up.
///
/// With verify.commands or --verify, what will land is checked first, in a worktree of its own. A lane with which a
/// check fails that succeeds without it is put aside, and the others land. So is one with which a check of its own fails
/// (`git proq spawn --check`); those of the lanes that land together are run last, whatever --verify says.
///
/// A lane whose agent runs is refused. With --stop its agent is stopped first, as `git proq stop` does it, when the landing's
/// turn has come, and the lane's commits land; what is left uncommitted counts as in any other lane (merge.uncommitted). A
/// lane that was stopped before lands with --stop too when it is named; --all takes those that this landing stops.
///
/// An agent in a window of tmux whose turn has ended may leave a lane that is done: there are commits, and nothing is uncommitted. On a
/// terminal you are asked whether to end its session; elsewhere --stop does.
///
/// Of several attempts at one task --all takes none; `git proq pick` lands one.
///
/// Landings queue up, first come, first served; `git proq queue` shows them.
///
/// With merge.push or --push, the base is pushed then. A push that is refused leaves the landing as it is.
///
/// Exits with 4 when checks failed, 3 when a conflict was captured, 1 when a lane or the push was refused.
///
/// Examples:
///     git proq merge payments
///     git proq merge --all
///     git proq merge --all --verify 'make test'
///     git proq merge --all --dry-run
///     git proq merge payments --stop
///     git proq merge --all --conflict-agent claude --conflict-retries 1
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["lanes", "all", "batch"]))]
#[command(
    override_usage = "git proq merge [OPTIONS] LANE...\n       git proq merge [OPTIONS] --all\n       git proq merge [OPTIONS] --batch BATCH"
)]
pub(crate) struct Merge {
    /// The lanes
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Every lane that is done
    #[arg(long)]
    pub(crate) all: bool,
    /// All that has landed on the branch of a batch so far, in one step; it lands through a lane of its own, `swarm-BATCH`
    #[arg(long, value_name = "BATCH", add = ArgValueCompleter::new(batch_names))]
    pub(crate) batch: Option<String>,
    /// In which order: best (most of them land), given, fewest-files, oldest
    #[arg(long, value_name = "ORDER", default_value = "best", hide_default_value = true,
          value_parser = ["best", "given", "fewest-files", "oldest"])]
    pub(crate) order: String,
    /// Land all of them or none
    #[arg(long, conflicts_with = "conflict_agent")]
    pub(crate) atomic: bool,
    /// Land on BRANCH instead of each lane's own base
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(branch_names))]
    pub(crate) onto: Option<String>,
    /// Also lanes that failed, were stopped, or bring conflict markers or submodule commits that no remote has, when named; a strict
    /// batch also where not all of its criteria are met
    #[arg(long, short, conflicts_with = "all")]
    pub(crate) force: bool,
    /// Also lanes that delete more than half of the files of their base, where that has at least ten
    #[arg(long)]
    pub(crate) allow_deletions: bool,
    /// Stop the agents that still run in these lanes first, and land what they have committed
    #[arg(long)]
    pub(crate) stop: bool,
    /// How they land
    #[command(flatten)]
    pub(crate) how: Landing,
    /// Say what would land and what would conflict, and land nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Land them as `spawn --auto-merge` does. Started by a supervisor, with the lane's lock, or by another landing
    #[arg(long, hide = true, value_name = "WHY", value_parser = ["run-ended", "retry"])]
    pub(crate) auto: Option<String>,
    /// Whether the lane is picked from several attempts.
    #[arg(skip)]
    pub(crate) pick: bool,
    /// The lane as it would be made, where it is only to be foreseen what would become of it.
    #[arg(skip)]
    pub(crate) unrecorded: Option<Box<LaneRecord>>,
}

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    report: &'a Report,
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Merge) -> Done {
    if let Some(why) = &args.auto {
        return auto_merge::run(session, args, why);
    }
    let mut project = session.project_to_change()?;
    let lanes = if args.all || args.batch.is_some() { &[] } else { &args.lanes[..] };
    identity::refuse_agent_for_others(lanes, args.dry_run)?;
    if let Some(asked) = &args.batch {
        project.together = Some(new_id());
        return merge_batch::run(session, &project, args, asked);
    }
    let report = land_and_go_on(session, &project, args)?;
    if !args.dry_run {
        merge_batch::note_all(session, &project, &report);
    }
    Ok(report.exit())
}

pub(super) fn land_and_go_on(session: &Session, project: &Project, args: &Merge) -> Result<Report, Failure> {
    let report = land(session, project, args, None)?;
    if !args.dry_run {
        let tried: Vec<String> = report.lanes.iter().map(|line| line.lane.clone()).collect();
        auto_merge::try_again(session, project, &auto_merge::bases_of(&report), &tried);
    }
    Ok(report)
}

/// Lands lanes and says what became of them; `by_itself` is the one that nobody asks for just now.
pub(super) fn land(
    session: &Session,
    project: &Project,
    args: &Merge,
    by_itself: Option<&LaneRecord>,
) -> Result<Report, Failure> {
    let (report, agent) = carry_out(session, project, args, by_itself)?;
    answer(session, project, args, agent, &report);
    Ok(report)
}

/// Prints what became of lanes, for a person or a program.
pub(super) fn answer(
    session: &Session,
    project: &Project,
    args: &Merge,
    agent: Option<&str>,
    report: &Report,
) {
    if session.ui.json {
        session.ui.object(Answer { report, dry_run: args.dry_run });
    } else {
        tell(session, project, args, agent, report);
    }
}

/// Lands lanes, and returns with the answer who is sent at conflicts.
pub(super) fn carry_out<'a>(
    session: &Session,
    project: &'a Project,
    args: &'a Merge,
    by_itself: Option<&'a LaneRecord>,
) -> Result<(Report, Option<&'a str>), Failure> {
    let agent = conflict_agent(session, project, args, by_itself)?;
    let exe = super::resolve::this_program()?;
    let leave = merge::Leave::default();
    let asked = agent::Asked::default();
    let ends = if by_itself.is_some() { Vec::new() } else { sessions_to_end(session, project, args)? };
    let request = Request {
        resolver: agent.map(|agent| merge::Resolver {
            agent,
            retries: args.how.conflict_retries.unwrap_or(project.settings.conflict_retries),
            leave: &leave,
            asked: &asked,
            exe: &exe,
            dir: &session.dir,
        }),
        lanes: &args.lanes,
        unrecorded: args.unrecorded.as_deref(),
        all: args.all,
        onto: args.onto.as_deref(),
        force: args.force,
        allow_deletions: args.allow_deletions,
        stop: args.stop.then_some(&[]),
        ends: &ends,
        pick: args.pick,
        by_itself: by_itself.is_some(),
        keep: args.how.no_cleanup,
        strategy: args.how.strategy.as_deref().and_then(Strategy::named),
        no_verify: args.how.no_verify,
        order: Order::named(&args.order).unwrap_or_default(),
        atomic: args.atomic,
        push: push(project, args),
        plan: &|plan| show(session, plan),
        dry_run: args.dry_run,
        verify: &args.how.verify,
        no_checks: args.how.no_checks,
        jobs: args.how.jobs.map(usize::from),
        patience: patience(args.how.lock_timeout),
    };
    Ok((merge::run(project, &request)?, agent))
}

/// Asks, where there is somebody to ask, about lanes that are done though their agents' sessions go on.
fn sessions_to_end(session: &Session, project: &Project, args: &Merge) -> Result<Vec<String>, Failure> {
    if args.stop || args.dry_run || approve::nobody_to_ask(session) {
        return Ok(Vec::new());
    }
    let lanes = match args.all {
        true => project.lanes()?,
        false => args.lanes.iter().map(|name| project.lane(name)).collect::<Result<_, _>>()?,
    };
    let mut out = Vec::new();
    for lane in lanes {
        if lane::rests(project, &lane)? {
            let name = lane.name;
            super::ui::part(&format!(
                "lane '{name}' is done, and {}: end its session and land it? [y/N] ",
                lane::RESTS
            ));
            let mut answer = String::new();
            drop(std::io::stdin().lock().read_line(&mut answer));
            out.extend(matches!(answer.trim(), "y" | "Y" | "yes").then_some(name));
        }
    }
    Ok(out)
}

/// Says what became of lanes.
pub(super) fn tell(session: &Session, project: &Project, args: &Merge, agent: Option<&str>, report: &Report) {
    let own = agent.is_none() || args.how.conflict_agent.as_deref() == agent;
    let approved = own || agent.is_none_or(|agent| merge::require_approved(project, agent).is_ok());
    let batches = if args.all { swarm::unlanded(project) } else { Vec::new() };
    print(session, args, (agent, if approved { "" } else { ", once it is approved" }), report);
    super::list::tell_unlanded(session, project, &batches);
}

/// Without a limit a landing waits for its turn for as long as it takes.
fn patience(seconds: Option<u64>) -> Limit {
    match seconds {
        None => Limit::Forever,
        Some(0) => Limit::Now,
        Some(seconds) => Limit::For(Duration::from_secs(seconds)),
    }
}

/// Who is sent at conflicts, if anybody. Asks for what has to be approved on the way.
fn conflict_agent<'a>(
    session: &Session,
    project: &'a Project,
    args: &'a Merge,
    by_itself: Option<&'a LaneRecord>,
) -> Result<Option<&'a str>, Failure> {
    let named = args.how.conflict_agent.as_deref();
    // One agent after the other is no way to land all or none.
    let by_settings = if named.is_some() || args.how.no_conflict_agent || args.atomic {
        None
    } else {
        project.settings.conflict_agent.as_deref()
    };
    let by_settings = by_settings.filter(|agent| {
        let found = agent::require(project, agent, &session.dir).is_ok();
        if !found {
            session.ui.warn(format!(
                "there is no program for merge.conflict_agent '{agent}'; conflicts are left to you"
            ));
        }
        found
    });
    if !args.dry_run {
        let bases = match args.how.no_checks || approve::nobody_to_ask(session) {
            true => BTreeSet::new(),
            false => merge::bases(project, &args.lanes, args.all, args.onto.as_deref())?,
        };
        approve::before_landing(session, project, bases, by_settings)?;
        by_settings.map_or(Ok(()), |agent| merge::require_approved(project, agent))?;
    }
    let named = named.filter(|agent| !agent.is_empty());
    if let Some(agent) = named {
        agent::require(project, agent, &session.dir)?;
    }
    let own = by_itself.and_then(|lane| own_agent(session, project, lane));
    let agent = named.or(by_settings).or(own);
    if agent.is_none() && args.how.conflict_retries.is_some() && project.settings.conflict_agent.is_none() {
        let what = "--conflict-retries is for an agent, and none is sent at conflicts";
        return Err(Mistake::Missing { what, example: "git proq merge --all --conflict-agent claude" }.into());
    }
    Ok(agent)
}

/// The agent of a lane that lands by itself, if it is one that can be sent at a conflict. Who has said anything in the
/// settings, if only that nobody is to be sent, has said it.
fn own_agent<'a>(session: &Session, project: &Project, lane: &'a LaneRecord) -> Option<&'a str> {
    let key = Key::find("merge.conflict_agent")?;
    let said = !matches!(project.layers.get(key).1, Origin::Default);
    let agent = lane.agent.as_deref().filter(|agent| *agent != "command" && !said)?;
    agent::require(project, agent, &session.dir).is_ok().then_some(agent)
}

fn push(project: &Project, args: &Merge) -> Push {
    if args.how.no_push || !(args.how.push || project.settings.push) {
        return Push::No;
    }
    if std::io::stdin().is_terminal() && ui::stderr_is_terminal() { Push::MayAsk } else { Push::Silently }
}

/// What will be tried, for a person at a terminal to read before anything moves.
fn show(session: &Session, plan: &Plan) {
    if session.ui.json || session.ui.quiet || plan.lanes.len() < 2 || !ui::stderr_is_terminal() {
        return;
    }
    let row = |line: &Line| {
        let (commits, files) =
            line.size.map_or_else(Default::default, |(c, f)| (c.to_string(), f.to_string()));
        let what = line.why.as_ref().map_or_else(|| plan.strategy.to_string(), |why| format!("not: {why}"));
        vec![line.lane.clone(), line.onto.clone(), commits, files, what]
    };
    let head = ["LANE", "ONTO", "COMMITS", "FILES", "PLAN"];
    session.ui.say(table::render(&head, plan.lanes.iter().map(row).collect()));
    session.ui.say("");
}

fn print(session: &Session, args: &Merge, (agent, once): (Option<&str>, &str), report: &Report) {
    for lane in report.stopped.iter().filter(|_| args.dry_run) {
        session.ui.answer(format!("{} the agent of {lane}", good("would stop")));
    }
    for line in &report.lanes {
        session.ui.answer(sentence(line, args.dry_run));
        for file in line.files.iter().filter(|_| line.result == Verdict::Conflict).take(10) {
            session.ui.answer(format!("    {file}"));
        }
        if let Some(check) = &line.check {
            for text in &check.tail {
                session.ui.answer(format!("    {}", console::strip_ansi_codes(text)));
            }
            session.ui.hint(format!("all that it wrote: git proq logs {} --check", line.lane));
        }
        if let (Verdict::Conflict, Some(why), Some(_)) = (line.result, &line.message, agent) {
            session.ui.warn(why);
        }
        for hint in &line.hints {
            session.ui.hint(hint);
        }
    }
    for why in &report.order {
        session.ui.say(format!("{}", console::style(format!("order: {why}")).dim().for_stderr()));
    }
    if args.dry_run {
        print_checks(session, report);
    }
    for line in &report.pushed {
        print_push(session, line, args.dry_run);
    }
    for (lane, why) in &report.left_out {
        session.ui.say(format!("{}", console::style(format!("left out {lane}: {why}")).dim().for_stderr()));
    }
    if report.lanes.is_empty() {
        session.ui.answer("nothing to land");
    }
    // One among lanes is over when they land one by one, and nothing of it is kept.
    let kept = |l: &&Outcome| l.result == Verdict::Conflict && l.with_lanes.is_empty();
    let conflict = report.lanes.iter().find(kept);
    let Some(line) = conflict.filter(|_| !args.dry_run) else {
        if let (Some(_), Some(agent)) = (conflict, agent) {
            session.ui.say(format!("{agent} would be sent at what conflicts{once}"));
        }
        return;
    };
    if agent.is_none() {
        session.ui.hint(format!(
            "resolve it: git proq resolve {}   see how it stands: git proq show {0}",
            line.lane
        ));
    }
}

/// Prints the commands that a landing would run as checks.
fn print_checks(session: &Session, report: &Report) {
    let Some(checks) = &report.checks else { return };
    for command in &checks.commands {
        let no = if checks.unapproved.contains(command) { ", once it is approved" } else { "" };
        session.ui.answer(format!("would check with: {command}{no}"));
    }
    for task in &checks.tasks {
        for command in &task.commands {
            session.ui.answer(format!("would check with: {command}, for {}", task.lane));
        }
    }
}

fn print_push(session: &Session, line: &Pushed, dry_run: bool) {
    let Pushed { branch, remote, message, said, hints, .. } = line;
    let to = remote.as_ref().map(|remote| format!(" to {remote}")).unwrap_or_default();
    match (message, dry_run) {
        (None, false) => session.ui.answer(format!("{} {branch}{to}", good("pushed"))),
        (None, true) => session.ui.answer(format!("{} {branch}{to}", good("would push"))),
        (Some(why), _) => {
            let (word, stands) =
                if dry_run { ("would not push", "") } else { ("not pushed", "; what landed stays landed") };
            session.ui.answer(format!("{} {branch}{to}: {why}{stands}", console::style(word).red()));
        }
    }
    for text in said {
        session.ui.answer(format!("    {}", console::strip_ansi_codes(text)));
    }
    for hint in hints {
        session.ui.hint(hint);
    }
}

/// One lane's outcome as a sentence.
fn sentence(line: &Outcome, dry_run: bool) -> String {
    let lane = &line.lane;
    match line.result {
        Verdict::Landed if dry_run => {
            let how =
                line.method.filter(|m| *m != Strategy::Merge).map(|m| format!(" ({m})")).unwrap_or_default();
            let first = line.message.as_ref().map(|first| format!("; {first}")).unwrap_or_default();
            format!("{} {lane} on {}{how}{first}", good("would land"), line.onto)
        }
        Verdict::Landed => {
            let commit = line.commit.map(|c| format!(" ({})", c.short())).unwrap_or_default();
            let kept = match (&line.message, line.cleaned_up) {
                (Some(why), false) => format!("; {why}"),
                _ => String::new(),
            };
            format!("{} {lane} on {}{commit}{kept}", good("landed"), line.onto)
        }
        Verdict::Resolved => {
            let commit = line.commit.map(|c| format!(" ({})", c.short())).unwrap_or_default();
            let files = ui::count(line.files.len(), "file");
            format!(
                "{} {lane} on {}{commit}; its conflict in {files} was resolved",
                good("landed"),
                line.onto
            )
        }
        Verdict::AlreadyLanded => {
            let kept = line.message.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
            format!("{} {lane}: everything in it is on {} already{kept}", good("nothing to do"), line.onto)
        }
        Verdict::Conflict => {
            let verb = if dry_run { "would conflict" } else { "conflict" };
            let verb = console::style(verb).yellow();
            let with =
                if line.with_lanes.is_empty() { line.onto.clone() } else { line.with_lanes.join(", ") };
            let files = ui::count(line.files.len(), "file");
            format!("{verb} {lane} with {with} in {files}; {} was not touched", line.onto)
        }
        Verdict::CheckFailed => check_failed(line),
        Verdict::Refused => {
            let why = line.message.as_deref().unwrap_or("it may not land");
            format!("{} {lane}: {why}", console::style("refused").red())
        }
    }
}

fn check_failed(line: &Outcome) -> String {
    let lane = &line.lane;
    let why = line.message.as_deref().unwrap_or("a check failed");
    let with = line.check.as_ref().map_or_else(String::new, |check| match check.with.as_slice() {
        [] => format!(" with it on {}", line.onto),
        [one] => format!(" with it on {} and {one}", line.onto),
        [.., last] => {
            let others = ui::count(check.with.len() - 1, "other lane");
            format!(" with it on {}, {last} and {others}", line.onto)
        }
    });
    let word = console::style("check failed").red();
    // Without the lane, nobody asks for what its own task has to achieve.
    let own = line.check.as_ref().is_some_and(|check| check.task_of.as_ref() == Some(lane));
    let without = if own { "" } else { ", but not without it" };
    format!("{word} {lane}: {why}{with}{without}; {} does not have it", line.onto)
}

fn good(word: &str) -> String {
    console::style(word).green().to_string()
}
