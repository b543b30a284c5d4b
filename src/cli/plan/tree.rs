//! Owns a plan as a tree of phases, groups and tasks, for a person who is to agree to it: who does what, where, and which commands are run.

use std::fmt::Write as _;

use console::style;

use super::super::ui;
use super::{Look, lanes, list, shared};
use crate::harmless;
use crate::swarm::{Order, Spot};

/// The tree, with what is to be known before and after it.
pub(super) fn render(look: &Look<'_>, about: &[String]) -> String {
    let plan = look.plan();
    let mut out = String::new();
    let title = if plan.summary.is_empty() { "A plan" } else { &plan.summary };
    let _ = writeln!(out, "{}", style(harmless::line(title)).bold());
    for line in about {
        let _ = writeln!(out, "{}", harmless::line(line));
    }
    list(&mut out, "Before it is run:", &plan.warnings);
    out.push('\n');
    let waves = look.wave_of();
    let mut at = 0;
    for (n, phase) in plan.phases.iter().enumerate() {
        if plan.phases.len() > 1 || !phase.title.is_empty() || phase.order == Order::Serial {
            let title =
                if phase.title.is_empty() { "" } else { &format!(" {}", harmless::line(&phase.title)) };
            let order = if phase.order == Order::Serial { ", one task after the other" } else { "" };
            let _ = writeln!(out, "{}", style(format!("{}.{title}{order}", n + 1)).bold());
        }
        for (g, group) in phase.groups.iter().enumerate() {
            let has_head = !group.theme.is_empty();
            let is_last = g + 1 == phase.groups.len();
            if has_head {
                let branch = if is_last { "└─" } else { "├─" };
                let why = if group.rationale.is_empty() {
                    String::new()
                } else {
                    format!(": {}", flat(&group.rationale))
                };
                let _ = writeln!(out, "{branch} {}{}", harmless::line(&group.theme), style(why).dim());
            }
            let indent = match (has_head, is_last) {
                (false, _) => "",
                (true, true) => "   ",
                (true, false) => "│  ",
            };
            for t in 0..group.tasks.len() {
                let is_end = t + 1 == group.tasks.len() && (has_head || is_last);
                task(&mut out, look, (at, waves[at]), indent, is_end);
                at += 1;
            }
        }
    }
    list(&mut out, "In the end:", &plan.criteria);
    let _ = writeln!(out, "\n{}", ends(look));
    out.trim_end().to_owned()
}

/// A task, and below it what it needs, is about, and runs.
fn task(out: &mut String, look: &Look<'_>, (at, wave): (usize, Option<usize>), indent: &str, is_last: bool) {
    let spot: Spot<'_> = look.spots[at];
    let task = spot.task;
    let (branch, more) = if is_last { ("└─", "   ") } else { ("├─", "│  ") };
    let wave = wave.map_or_else(|| "done".to_owned(), |wave| format!("wave {wave}"));
    let mut notes = vec![wave, task.size.to_string()];
    notes.extend(look.plan().agent_of(spot).map(|agent| format!("by {}", harmless::line(agent))));
    notes.extend(look.plan().model_of(spot).map(|model| format!("model {}", harmless::line(model))));
    let _ = writeln!(
        out,
        "{indent}{branch} {} {} {}",
        style(harmless::line(&task.name())).bold(),
        harmless::line(&task.title),
        style(format!("({})", notes.join(", "))).dim()
    );
    let mut line = |head: &str, text: &str| {
        let _ = writeln!(out, "{indent}{more}  {head} {text}");
    };
    let needs = look.names(look.graph().needs(at));
    if !needs.is_empty() {
        line("after ", &needs.join(", "));
    }
    if !task.scope.is_empty() {
        line("about ", &task.scope.iter().map(|glob| harmless::line(glob)).collect::<Vec<_>>().join(", "));
    }
    for check in &task.checks {
        line("checks", &harmless::line(check));
    }
}

/// A text of several lines in one.
fn flat(text: &str) -> String {
    harmless::line(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// How much there is to do, and which way through takes longest.
fn ends(look: &Look<'_>) -> String {
    let mut out = format!(
        "{}, {}. {}\n",
        ui::count(look.spots.len(), "task"),
        ui::count(look.waves.len(), "wave"),
        lanes(look)
    );
    shared(&mut out, look);
    if !look.longest.tasks.is_empty() {
        let way = look.names(&look.longest.tasks).join(" -> ");
        let _ = write!(out, "Longest way: {way} ({} of {} by size)", look.longest.weight, look.work());
    }
    out
}
