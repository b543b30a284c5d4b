//! HTML page of `git proq report --html`: one self-contained file that needs neither a script nor the
//! network.

use std::fmt::Write;

use proq_lib::swarm::status::batch_history::{BatchHistory, TaskAttempt};
use proq_store::base::clock::Moment;

use super::report_text::{cost_summary, criteria_lines, landed_summary, plan_mark_lines};
use crate::cli::terminal::{ui, usage};

/// Style sheet of the page.
const PAGE_CSS: &str = include_str!("report_page.css");

/// Width of the timeline without its label column, in SVG units. A row is [`TIMELINE_ROW_HEIGHT`] units high.
const TIMELINE_WIDTH: u64 = 1000;
const TIMELINE_ROW_HEIGHT: usize = 26;

/// Renders the report on a batch as an HTML document.
pub(crate) fn render_page(history: &BatchHistory) -> String {
    let progress = &history.progress;
    let title = format!("Batch {}", progress.batch);
    let mut out = String::new();
    let sections = [
        header_html(history),
        timeline_html(history),
        task_table_html(history),
        run_table_html(history),
        criteria_html(history),
        obstacles_html(history),
        landings_html(history),
        notes_html(history),
        plan_marks_html(history),
    ];
    push_html(
        &mut out,
        format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<title>{}</title>\n<style>\n{PAGE_CSS}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            escape_html(&title),
            sections.concat()
        ),
    );
    out
}

fn push_html(out: &mut String, markup: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _always_ok = out.write_fmt(markup);
}

/// Escapes untrusted text for HTML, in element content and in attributes. Control characters are neutralized
/// first.
fn escape_html(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in proq_base::terminal_text::escape_line(raw).chars() {
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

fn header_html(history: &BatchHistory) -> String {
    let progress = &history.progress;
    let reason_suffix =
        progress.reason.as_deref().map(|reason| format!(": {}", escape_html(reason))).unwrap_or_default();
    let mut out = format!(
        "<h1>Batch {}</h1>\n<p class=\"lead\">{}</p>\n<dl>\n",
        escape_html(progress.batch.as_str()),
        escape_html(&progress.summary)
    );
    let facts = [
        ("State", format!("{}{reason_suffix}", escape_html(progress.state))),
        ("Landed", landed_summary(history)),
        ("From", escape_html(&history.sources.join(" "))),
        (
            "Branches",
            format!(
                "<code>{}</code> for <code>{}</code>",
                escape_html(&progress.branch),
                escape_html(&progress.base)
            ),
        ),
        ("Began", history.began.to_string()),
        ("Took", ui::short_duration(history.last_event_at.duration_since(history.began))),
        ("Cost", cost_summary(history)),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        push_html(&mut out, format_args!("<dt>{name}</dt><dd>{value}</dd>\n"));
    }
    out + "</dl>\n"
}

/// Renders the timeline as SVG: a row per lane, a bar per run, a vertical line per landing.
fn timeline_html(history: &BatchHistory) -> String {
    let mut lanes: Vec<&str> = Vec::new();
    for run in &history.runs {
        if !lanes.contains(&run.lane.as_str()) {
            lanes.push(&run.lane);
        }
    }
    if lanes.is_empty() {
        return String::new();
    }
    let total_secs = history.last_event_at.duration_since(history.began).as_secs().max(1);
    let time_to_x = |moment: Moment| {
        moment.duration_since(history.began).as_secs().min(total_secs) * TIMELINE_WIDTH / total_secs
    };
    let height = lanes.len() * TIMELINE_ROW_HEIGHT;
    let mut out = format!(
        "<h2>Timeline</h2>\n<div class=\"scroll\"><svg viewBox=\"0 0 {} {height}\" role=\"img\" aria-label=\"Runs by lane\">\n",
        TIMELINE_WIDTH + 200
    );
    for (row, lane) in lanes.iter().enumerate() {
        let y = row * TIMELINE_ROW_HEIGHT;
        push_html(&mut out, format_args!("<text x=\"0\" y=\"{}\">{}</text>\n", y + 17, escape_html(lane)));
        for run in history.runs.iter().filter(|run| run.lane == *lane) {
            let (bar_start, bar_end) =
                (time_to_x(run.began), time_to_x(run.ended.unwrap_or(history.last_event_at)));
            push_html(
                &mut out,
                format_args!(
                    "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>\n",
                    run_css_class(run),
                    200 + bar_start,
                    y + 4,
                    (bar_end - bar_start.min(bar_end)).max(3),
                    TIMELINE_ROW_HEIGHT - 8,
                    escape_html(&describe_run(run))
                ),
            );
        }
    }
    for landing in &history.landings {
        let x = 200 + time_to_x(landing.at);
        push_html(
            &mut out,
            format_args!(
                "<line x1=\"{x}\" y1=\"0\" x2=\"{x}\" y2=\"{height}\"><title>landed: {}</title></line>\n",
                escape_html(&landing.tasks.join(", "))
            ),
        );
    }
    out + "</svg></div>\n"
}

/// Returns the CSS class of a run: `open`, `well` or `bad`.
fn run_css_class(run: &TaskAttempt) -> &'static str {
    match &run.end {
        None => "open",
        Some(end) if end.has_succeeded => "well",
        Some(_) => "bad",
    }
}

fn describe_run(run: &TaskAttempt) -> String {
    let outcome = run.end.as_ref().map_or("at work", |end| end.description.as_str());
    format!("{}, run {}: {outcome}", run.task, run.attempt)
}

/// Renders the table of tasks, each with the number of its wave.
fn task_table_html(history: &BatchHistory) -> String {
    let mut out = "<h2>Tasks</h2>\n<div class=\"scroll\"><table>\n<tr><th>Wave</th><th>Task</th><th>State</th><th>Title</th>\
                   <th>Runs</th><th>Why</th></tr>\n"
        .to_owned();
    for task in &history.progress.tasks {
        let wave = history.waves.iter().position(|wave| wave.contains(&task.name));
        push_html(
            &mut out,
            format_args!(
                "<tr><td>{}</td><td><code>{}</code></td><td class=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                wave.map(|wave| (wave + 1).to_string()).unwrap_or_default(),
                escape_html(&task.name),
                state_css_class(&task.state),
                escape_html(&task.state),
                escape_html(&task.title),
                task.attempts,
                escape_html(task.detail.as_deref().unwrap_or_default())
            ),
        );
    }
    out + "</table></div>\n"
}

/// Returns the CSS class of a task's state: `open`, `well` or `bad`.
fn state_css_class(state: &str) -> &'static str {
    match state {
        "landed" | "done before" => "well",
        "failed" | "conflict" | "check failed" | "set aside" | "no change" | "cut off" => "bad",
        _ => "open",
    }
}

fn run_table_html(history: &BatchHistory) -> String {
    if history.runs.is_empty() {
        return String::new();
    }
    let mut out = "<h2>Runs</h2>\n<div class=\"scroll\"><table>\n<tr><th>Task</th><th>Run</th><th>Agent</th><th>Lane</th><th>Began</th>\
                   <th>Took</th><th>End</th><th>Cost</th><th>Commits</th><th>More</th></tr>\n"
        .to_owned();
    for run in &history.runs {
        let outcome = run.end.as_ref().map_or("at work", |end| end.description.as_str());
        let took =
            run.ended.map(|ended| ui::short_duration(ended.duration_since(run.began))).unwrap_or_default();
        let model = run.model.as_deref().map(|model| format!(" {model}")).unwrap_or_default();
        let commits = match (run.from, run.to) {
            (Some(from), Some(to)) if from != to => format!("<code>{}..{}</code>", from.short(), to.short()),
            _ => String::new(),
        };
        push_html(
            &mut out,
            format_args!(
                "<tr><td><code>{}</code></td><td>{}</td><td>{}{}</td><td>{}</td><td>{}</td><td>{took}</td><td class=\"{}\">{}</td>\
             <td>{}</td><td>{commits}</td><td>{}</td></tr>\n",
                escape_html(&run.task),
                run.attempt,
                escape_html(&run.agent),
                escape_html(&model),
                escape_html(&run.lane),
                run.began,
                run_css_class(run),
                escape_html(outcome),
                run.cost.map(usage::cost_text).unwrap_or_default(),
                escape_html(run.detail.as_deref().unwrap_or_default())
            ),
        );
    }
    out + "</table></div>\n"
}

fn obstacles_html(history: &BatchHistory) -> String {
    let mut out = String::new();
    let (conflicts, checks): (Vec<_>, Vec<_>) =
        history.obstacles.iter().partition(|obstacle| obstacle.check.is_none());
    if !conflicts.is_empty() {
        out.push_str("<h2>Conflicts</h2>\n<ul>\n");
        for conflict in conflicts {
            let files: Vec<String> = conflict
                .files
                .iter()
                .map(|file| format!("<code>{}</code>", escape_html(&file.to_string())))
                .collect();
            push_html(
                &mut out,
                format_args!(
                    "<li><code>{}</code> ({}): {}</li>\n",
                    escape_html(&conflict.task),
                    conflict.status,
                    files.join(", ")
                ),
            );
        }
        out.push_str("</ul>\n");
    }
    if !checks.is_empty() {
        out.push_str("<h2>Checks that failed</h2>\n<ul>\n");
        for failed_check in checks {
            let check = failed_check.check.as_deref().unwrap_or_default();
            push_html(
                &mut out,
                format_args!(
                    "<li><code>{}</code>: <code>{}</code></li>\n",
                    escape_html(&failed_check.task),
                    escape_html(check)
                ),
            );
        }
        out.push_str("</ul>\n");
    }
    out
}

fn landings_html(history: &BatchHistory) -> String {
    if history.landings.is_empty() {
        return String::new();
    }
    let mut out = "<h2>Landings</h2>\n<ul>\n".to_owned();
    for landing in &history.landings {
        let tip = landing.tip.map(|tip| format!(", <code>{}</code>", tip.short())).unwrap_or_default();
        let checks: Vec<String> =
            landing.checks.iter().map(|check| format!("<code>{}</code>", escape_html(check))).collect();
        let passed =
            if checks.is_empty() { String::new() } else { format!("; passed {}", checks.join(", ")) };
        push_html(
            &mut out,
            format_args!(
                "<li>{}: {}{tip}{passed}</li>\n",
                landing.at,
                escape_html(&landing.tasks.join(", "))
            ),
        );
    }
    out + "</ul>\n"
}

fn notes_html(history: &BatchHistory) -> String {
    if history.notes.is_empty() {
        return String::new();
    }
    let mut out = "<h2>Remarks</h2>\n<ul>\n".to_owned();
    for note in &history.notes {
        let tasks_prefix =
            if note.tasks.is_empty() { String::new() } else { format!("{}: ", note.tasks.join(", ")) };
        push_html(
            &mut out,
            format_args!("<li>{} {}</li>\n", note.at, escape_html(&format!("{tasks_prefix}{}", note.text))),
        );
    }
    out + "</ul>\n"
}

fn criteria_html(history: &BatchHistory) -> String {
    let lines = criteria_lines(history);
    let items: Vec<String> =
        lines.iter().map(|line| format!("<li>{}</li>\n", escape_html(line.trim()))).collect();
    if items.is_empty() {
        String::new()
    } else {
        format!("<h2>Criteria</h2>\n<ul>\n{}</ul>\n", items.concat())
    }
}

fn plan_marks_html(history: &BatchHistory) -> String {
    let lines = plan_mark_lines(history);
    if lines.is_empty() {
        return String::new();
    }
    let mut out = "<h2>Noted in the plan</h2>\n<ul>\n".to_owned();
    for line in lines {
        push_html(&mut out, format_args!("<li>{}</li>\n", escape_html(&line)));
    }
    out.push_str("</ul>\n");
    for item in history
        .plan_marks
        .iter()
        .flat_map(|marks| &marks.unmarked)
        .filter(|unmarked| !unmarked.patch.is_empty())
    {
        let lines: Vec<String> = item.patch.lines().map(escape_html).collect();
        push_html(&mut out, format_args!("<pre>{}</pre>\n", lines.join("\n")));
    }
    out
}
