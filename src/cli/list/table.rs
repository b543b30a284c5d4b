//! Owns the table of lanes, also while not all of it is known.

use super::super::conflicts::Conflicts;
use super::super::{account, table, ui};
use super::{Beside, is_shown, missing};
use crate::lane::View;
use crate::merge::{self, Forecast};
use crate::store::now;
use crate::store::records::{Account, AnyLane};

/// The place of the column of conflicts.
const CONFLICTS: usize = 5;

/// What is not known yet.
const OPEN: &str = "…";

/// What the rows of a table are made from.
pub(super) struct Rows<'a> {
    pub(super) views: &'a [View],
    pub(super) beside: &'a Beside,
    /// None when there is none, or not yet.
    pub(super) forecast: Option<&'a Forecast>,
    /// So many lanes have been compared with their bases, from the first on.
    pub(super) compared: usize,
    /// Into which of them somebody has looked; none when that is over.
    pub(super) looked: Option<&'a [bool]>,
}

impl Rows<'_> {
    /// Whether all is known that can be of what lies in the lane of this number.
    fn is_looked_at(&self, at: usize) -> bool {
        let has_tree = self.views[at].lane.branch().is_some();
        !has_tree || self.looked.is_none_or(|looked| looked.get(at) == Some(&true))
    }
}

/// The lines of the table.
pub(super) fn lines(known: &Rows<'_>) -> Vec<String> {
    let now = now();
    let mut rows = Vec::new();
    for (at, view) in known.views.iter().enumerate() {
        let above = at.checked_sub(1).map(|above| &known.views[above].lane);
        let mark = if is_shown(known.beside, &view.lane.name) { "*" } else { "" };
        rows.push(vec![
            format!("{}{mark}", view.lane.name),
            state(known.beside, view),
            view.lane.agent.clone().unwrap_or_else(|| "-".into()),
            if at < known.compared { commits(view) } else { OPEN.to_owned() },
            if known.is_looked_at(at) { changes(view) } else { OPEN.to_owned() },
            Conflicts::of(known.forecast, &view.lane.name).map_or_else(String::new, |found| found.in_words()),
            ui::span(now.since(view.lane.updated)),
            if above.is_some_and(|above| is_same_task(above, &view.lane)) {
                "\"".into()
            } else {
                title(&view.lane)
            },
        ]);
    }
    for (name, lane) in &known.beside.past {
        rows.push(vec![
            name.clone(),
            ui::state(lane.state),
            lane.agent.clone().unwrap_or_else(|| "-".into()),
            lane.purpose().map_or_else(|| "-".to_owned(), |purpose| purpose.to_string()),
            "-".into(),
            String::new(),
            ui::span(now.since(lane.updated)),
            title(lane),
        ]);
    }
    let mut head = vec!["LANE", "STATE", "AGENT", "COMMITS", "CHANGES", "CONFLICTS", "AGE", "TITLE"];
    // A column in which nothing is wrong anywhere takes room from the titles.
    let wrong = |p: &merge::Pair| p.result.is_conflict();
    if !known.forecast.is_some_and(|f| f.pairs.iter().any(wrong)) {
        head.remove(CONFLICTS);
        for row in &mut rows {
            row.remove(CONFLICTS);
        }
    }
    if let Some(accounts) = &known.beside.accounts {
        let names =
            known.views.iter().map(|view| &view.lane.name).chain(known.beside.past.iter().map(|(n, _)| n));
        widen(&mut head, &mut rows, &names.map(|name| accounts.get(name)).collect::<Vec<_>>());
    }
    table::lines(&head, rows)
}

/// Adds what the lanes' last runs used, before the titles.
fn widen(head: &mut Vec<&str>, rows: &mut [Vec<String>], accounts: &[Option<&Account>]) {
    let at = head.len() - 1;
    head.splice(at..at, ["TOOLS", "LAST", "CONTEXT", "COST"]);
    for (row, account) in rows.iter_mut().zip(accounts) {
        let none = || "-".to_owned();
        let known = |account: &Account| {
            [
                account.tool_calls.to_string(),
                account.last_tool.clone().unwrap_or_else(none),
                account.context.map_or_else(none, |percent| format!("{percent} %")),
                account.cost.map_or_else(none, account::money),
            ]
        };
        row.splice(at..at, account.map_or_else(|| [(); 4].map(|()| none()), known));
    }
}

/// A state, what the agent said last unless it works, how many boxes of its task are ticked, and how much of what was sent the agent has not been told.
fn state(beside: &Beside, view: &View) -> String {
    let mut state = ui::state(view.state);
    if let Some(task) = beside.tasks.get(&view.lane.name) {
        state = format!("{state} {}/{}", task.done, task.of);
    }
    state.extend(view.activity.and_then(ui::pause));
    if view.waiting == 0 { state } else { format!("{state}, {} to tell", view.waiting) }
}

fn changes(view: &View) -> String {
    match (missing(view).as_slice(), &view.dirt) {
        ([], None) if view.lane.purpose().is_some() => "-".to_owned(),
        ([], Some(dirt)) if dirt.is_clean() => "-".to_owned(),
        ([], Some(dirt)) => ui::count(dirt.entries.len(), "file"),
        ([], None) => "?".to_owned(),
        (missing, _) => console::style(format!("no {}", missing.join(", no "))).red().to_string(),
    }
}

/// Whether both are attempts of one group, called the same.
fn is_same_task(a: &AnyLane, b: &AnyLane) -> bool {
    a.group.is_some() && a.group == b.group && a.title == b.title
}

/// What a lane is about, where its name does not say it.
pub(super) fn title(lane: &AnyLane) -> String {
    if lane.title == lane.name { String::new() } else { lane.title.clone() }
}

/// How it and its base relate; for one that has nothing to land, what it is for.
fn commits(view: &View) -> String {
    if let Some(purpose) = view.lane.purpose() {
        return purpose.to_string();
    }
    match view.distance {
        None => "?".to_owned(),
        Some(d) if d.ahead == 0 && d.behind == 0 => "-".to_owned(),
        Some(d) if d.behind == 0 => format!("+{}", d.ahead),
        Some(d) => format!("+{} -{}", d.ahead, d.behind),
    }
}
