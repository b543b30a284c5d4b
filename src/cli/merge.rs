//! Owns `git proq merge`.

use std::time::Duration;

use serde::Serialize;

use super::args::Merge;
use super::{Done, Session, table, ui};
use crate::merge::{self, Line, Order, Outcome, Plan, Report, Request, Verdict};
use crate::store::Limit;
use crate::store::records::Strategy;

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    report: &'a Report,
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Merge) -> Done {
    let project = session.project_to_change()?;
    let request = Request {
        lanes: &args.lanes,
        all: args.all,
        onto: args.onto.as_deref(),
        force: args.force,
        keep: args.no_cleanup,
        strategy: args.strategy.as_deref().and_then(Strategy::named),
        no_verify: args.no_verify,
        order: Order::named(&args.order).unwrap_or_default(),
        atomic: args.atomic,
        plan: &|plan| show(session, plan),
        dry_run: args.dry_run,
        patience: args.lock_timeout.map_or(Limit::Forever, |s| Limit::For(Duration::from_secs(s))),
    };
    let report = merge::run(&project, &request)?;
    if session.ui.json {
        session.ui.object(Answer { report: &report, dry_run: args.dry_run });
    } else {
        print(session, args, &report);
    }
    Ok(report.exit())
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

fn print(session: &Session, args: &Merge, report: &Report) {
    for line in &report.lanes {
        session.ui.answer(sentence(line, args.dry_run));
        for file in line.files.iter().filter(|_| line.result == Verdict::Conflict).take(10) {
            session.ui.answer(format!("    {file}"));
        }
        for hint in &line.hints {
            session.ui.hint(hint);
        }
    }
    for why in &report.order {
        session.ui.say(format!("{}", console::style(format!("order: {why}")).dim().for_stderr()));
    }
    for (lane, why) in &report.left_out {
        session.ui.say(format!("{}", console::style(format!("left out {lane}: {why}")).dim().for_stderr()));
    }
    if report.lanes.is_empty() {
        session.ui.answer("nothing to land");
    }
    let conflict = report.lanes.iter().find(|l| l.result == Verdict::Conflict);
    if let (Some(line), false) = (conflict, args.dry_run) {
        session.ui.hint(format!(
            "look at it: git proq show {0}   then rebase or merge {1} in its worktree and try again: git proq merge {0}",
            line.lane, line.onto
        ));
    }
}

/// One lane's outcome as a sentence.
fn sentence(line: &Outcome, dry_run: bool) -> String {
    let lane = &line.lane;
    match line.result {
        Verdict::Landed if dry_run => {
            let how =
                line.method.filter(|m| *m != Strategy::Merge).map(|m| format!(" ({m})")).unwrap_or_default();
            format!("{} {lane} on {}{how}", good("would land"), line.onto)
        }
        Verdict::Landed => {
            let commit = line.commit.map(|c| format!(" ({})", c.short())).unwrap_or_default();
            let kept = match (&line.message, line.cleaned_up) {
                (Some(why), false) => format!("; {why}"),
                _ => String::new(),
            };
            format!("{} {lane} on {}{commit}{kept}", good("landed"), line.onto)
        }
        Verdict::AlreadyLanded => {
            let kept = line.message.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
            format!("{} {lane}: everything in it is on {} already{kept}", good("nothing to do"), line.onto)
        }
        Verdict::Conflict => {
            let verb = if dry_run { "would conflict" } else { "conflict" };
            let verb = console::style(verb).yellow();
            format!(
                "{verb} {lane} with {} in {}; {} was not touched",
                line.onto,
                ui::count(line.files.len(), "file"),
                line.onto
            )
        }
        Verdict::Refused => {
            let why = line.message.as_deref().unwrap_or("it may not land");
            format!("{} {lane}: {why}", console::style("refused").red())
        }
    }
}

fn good(word: &str) -> String {
    console::style(word).green().to_string()
}
