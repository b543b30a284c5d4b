//! Owns the page on which a batch is reported: one file that needs nothing else, neither a script nor the network.

use std::fmt::Write;

use super::report_batch::{cost, criteria, landed, noted};
use super::{account, ui};
use crate::store::Moment;
use crate::swarm::{History, Run};

const STYLE: &str = include_str!("report_page.css");

/// How wide the timeline is, and how high one of its rows.
const WIDTH: u64 = 1000;
const ROW: usize = 26;

/// The page.
pub(super) fn page(history: &History) -> String {
    let picture = &history.picture;
    let title = format!("Batch {}", picture.batch);
    let mut out = String::new();
    let parts = [
        head(history),
        timeline(history),
        waves(history),
        runs(history),
        in_the_end(history),
        obstacles(history),
        landings(history),
        remarks(history),
        in_the_plan(history),
    ];
    push(
        &mut out,
        format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            text(&title),
            parts.concat()
        ),
    );
    out
}

fn push(out: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _always_ok = out.write_fmt(what);
}

/// A text of others, as it is shown: nothing in it is a mark of the page.
fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in crate::harmless::line(raw).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn head(history: &History) -> String {
    let picture = &history.picture;
    let why = picture.why.as_deref().map(|why| format!(": {}", text(why))).unwrap_or_default();
    let mut out = format!(
        "<h1>Batch {}</h1>\n<p class=\"lead\">{}</p>\n<dl>\n",
        text(&picture.batch),
        text(&picture.summary)
    );
    let facts = [
        ("State", format!("{}{why}", text(picture.state))),
        ("Landed", landed(history)),
        ("From", text(&history.sources.join(" "))),
        (
            "Branches",
            format!("<code>{}</code> for <code>{}</code>", text(&picture.branch), text(&picture.base)),
        ),
        ("Began", history.began.to_string()),
        ("Took", ui::span(history.last.since(history.began))),
        ("Cost", cost(history)),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        push(&mut out, format_args!("<dt>{name}</dt><dd>{value}</dd>\n"));
    }
    out + "</dl>\n"
}

/// A row for each lane, a bar for each of its runs, a line for each landing.
fn timeline(history: &History) -> String {
    let mut lanes: Vec<&str> = Vec::new();
    for run in &history.runs {
        if !lanes.contains(&run.lane.as_str()) {
            lanes.push(&run.lane);
        }
    }
    if lanes.is_empty() {
        return String::new();
    }
    let whole = history.last.since(history.began).as_secs().max(1);
    let at = |moment: Moment| moment.since(history.began).as_secs().min(whole) * WIDTH / whole;
    let height = lanes.len() * ROW;
    let mut out = format!(
        "<h2>Timeline</h2>\n<div class=\"scroll\"><svg viewBox=\"0 0 {} {height}\" role=\"img\" aria-label=\"Runs by lane\">\n",
        WIDTH + 200
    );
    for (row, lane) in lanes.iter().enumerate() {
        let y = row * ROW;
        push(&mut out, format_args!("<text x=\"0\" y=\"{}\">{}</text>\n", y + 17, text(lane)));
        for run in history.runs.iter().filter(|run| run.lane == *lane) {
            let (from, to) = (at(run.began), at(run.ended.unwrap_or(history.last)));
            push(
                &mut out,
                format_args!(
                    "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>\n",
                    class(run),
                    200 + from,
                    y + 4,
                    (to - from.min(to)).max(3),
                    ROW - 8,
                    text(&in_a_line(run))
                ),
            );
        }
    }
    for landing in &history.landings {
        let x = 200 + at(landing.at);
        push(
            &mut out,
            format_args!(
                "<line x1=\"{x}\" y1=\"0\" x2=\"{x}\" y2=\"{height}\"><title>landed: {}</title></line>\n",
                text(&landing.tasks.join(", "))
            ),
        );
    }
    out + "</svg></div>\n"
}

fn class(run: &Run) -> &'static str {
    match &run.end {
        None => "open",
        Some(end) if end.well => "well",
        Some(_) => "bad",
    }
}

fn in_a_line(run: &Run) -> String {
    let end = run.end.as_ref().map_or("at work", |end| end.how.as_str());
    format!("{}, run {}: {end}", run.task, run.attempt)
}

/// Tasks, wave by wave.
fn waves(history: &History) -> String {
    let mut out = "<h2>Tasks</h2>\n<div class=\"scroll\"><table>\n<tr><th>Wave</th><th>Task</th><th>State</th><th>Title</th>\
                   <th>Runs</th><th>Why</th></tr>\n"
        .to_owned();
    for task in &history.picture.tasks {
        let wave = history.waves.iter().position(|wave| wave.contains(&task.name));
        push(
            &mut out,
            format_args!(
                "<tr><td>{}</td><td><code>{}</code></td><td class=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                wave.map(|wave| (wave + 1).to_string()).unwrap_or_default(),
                text(&task.name),
                class_of_state(&task.state),
                text(&task.state),
                text(&task.title),
                task.attempts,
                text(task.detail.as_deref().unwrap_or_default())
            ),
        );
    }
    out + "</table></div>\n"
}

fn class_of_state(state: &str) -> &'static str {
    match state {
        "landed" | "done before" => "well",
        "failed" | "conflict" | "check failed" | "set aside" | "no change" | "cut off" => "bad",
        _ => "open",
    }
}

fn runs(history: &History) -> String {
    if history.runs.is_empty() {
        return String::new();
    }
    let mut out = "<h2>Runs</h2>\n<div class=\"scroll\"><table>\n<tr><th>Task</th><th>Run</th><th>Agent</th><th>Lane</th><th>Began</th>\
                   <th>Took</th><th>End</th><th>Cost</th><th>Commits</th><th>More</th></tr>\n"
        .to_owned();
    for run in &history.runs {
        let end = run.end.as_ref().map_or("at work", |end| end.how.as_str());
        let took = run.ended.map(|ended| ui::span(ended.since(run.began))).unwrap_or_default();
        let model = run.model.as_deref().map(|model| format!(" {model}")).unwrap_or_default();
        let commits = match (run.from, run.to) {
            (Some(from), Some(to)) if from != to => format!("<code>{}..{}</code>", from.short(), to.short()),
            _ => String::new(),
        };
        push(
            &mut out,
            format_args!(
                "<tr><td><code>{}</code></td><td>{}</td><td>{}{}</td><td>{}</td><td>{}</td><td>{took}</td><td class=\"{}\">{}</td>\
             <td>{}</td><td>{commits}</td><td>{}</td></tr>\n",
                text(&run.task),
                run.attempt,
                text(&run.agent),
                text(&model),
                text(&run.lane),
                run.began,
                class(run),
                text(end),
                run.cost.map(account::money).unwrap_or_default(),
                text(run.detail.as_deref().unwrap_or_default())
            ),
        );
    }
    out + "</table></div>\n"
}

fn obstacles(history: &History) -> String {
    let mut out = String::new();
    let (conflicts, checks): (Vec<_>, Vec<_>) =
        history.obstacles.iter().partition(|obstacle| obstacle.check.is_none());
    if !conflicts.is_empty() {
        out.push_str("<h2>Conflicts</h2>\n<ul>\n");
        for it in conflicts {
            let files: Vec<String> =
                it.files.iter().map(|file| format!("<code>{}</code>", text(&file.to_string()))).collect();
            push(
                &mut out,
                format_args!(
                    "<li><code>{}</code> ({}): {}</li>\n",
                    text(&it.task),
                    it.became,
                    files.join(", ")
                ),
            );
        }
        out.push_str("</ul>\n");
    }
    if !checks.is_empty() {
        out.push_str("<h2>Checks that failed</h2>\n<ul>\n");
        for it in checks {
            let check = it.check.as_deref().unwrap_or_default();
            push(
                &mut out,
                format_args!("<li><code>{}</code>: <code>{}</code></li>\n", text(&it.task), text(check)),
            );
        }
        out.push_str("</ul>\n");
    }
    out
}

fn landings(history: &History) -> String {
    if history.landings.is_empty() {
        return String::new();
    }
    let mut out = "<h2>Landings</h2>\n<ul>\n".to_owned();
    for landing in &history.landings {
        let tip = landing.tip.map(|tip| format!(", <code>{}</code>", tip.short())).unwrap_or_default();
        let checks: Vec<String> =
            landing.checks.iter().map(|check| format!("<code>{}</code>", text(check))).collect();
        let passed =
            if checks.is_empty() { String::new() } else { format!("; passed {}", checks.join(", ")) };
        push(
            &mut out,
            format_args!("<li>{}: {}{tip}{passed}</li>\n", landing.at, text(&landing.tasks.join(", "))),
        );
    }
    out + "</ul>\n"
}

fn remarks(history: &History) -> String {
    if history.remarks.is_empty() {
        return String::new();
    }
    let mut out = "<h2>Remarks</h2>\n<ul>\n".to_owned();
    for remark in &history.remarks {
        let about =
            if remark.tasks.is_empty() { String::new() } else { format!("{}: ", remark.tasks.join(", ")) };
        push(&mut out, format_args!("<li>{} {}</li>\n", remark.at, text(&format!("{about}{}", remark.text))));
    }
    out + "</ul>\n"
}

fn in_the_end(history: &History) -> String {
    let lines = criteria(history);
    let items: Vec<String> = lines.iter().map(|line| format!("<li>{}</li>\n", text(line.trim()))).collect();
    if items.is_empty() {
        String::new()
    } else {
        format!("<h2>Criteria</h2>\n<ul>\n{}</ul>\n", items.concat())
    }
}

fn in_the_plan(history: &History) -> String {
    let lines = noted(history);
    if lines.is_empty() {
        return String::new();
    }
    let mut out = "<h2>Noted in the plan</h2>\n<ul>\n".to_owned();
    for line in lines {
        push(&mut out, format_args!("<li>{}</li>\n", text(&line)));
    }
    out.push_str("</ul>\n");
    for left in history.noted.iter().flat_map(|noted| &noted.left).filter(|left| !left.patch.is_empty()) {
        let lines: Vec<String> = left.patch.lines().map(text).collect();
        push(&mut out, format_args!("<pre>{}</pre>\n", lines.join("\n")));
    }
    out
}
