//! HTML page of `git proq batch report --html`: one self-contained file that needs neither a script nor the
//! network.

use proq_lib::swarm::status::batch_history::{
    BatchHistory, HistoryNote, LandingEvent, Obstacle, TaskAttempt,
};
use proq_lib::swarm::status::progress::TaskProgress;
use proq_lib::types::Moment;

use super::report_text::{cost_summary, criteria_lines, landed_summary, plan_mark_lines, unmarked_patches};
use super::text_parts::{clause, comma_list};
use crate::cli::terminal::{ui, usage};

/// Style sheet of the page.
const PAGE_CSS: &str = include_str!("report_page.css");

/// Width of the timeline without its label column, in SVG units. A row is [`TIMELINE_ROW_HEIGHT`] units high.
const TIMELINE_WIDTH: u64 = 1000;
const TIMELINE_ROW_HEIGHT: usize = 26;

/// Renders the report on a batch as an HTML document.
pub(crate) fn render_page(history: &BatchHistory) -> String {
    let title = escape_html(&page_title(history));
    let criteria = history.progress.criteria.as_ref().map(criteria_lines).unwrap_or_default();
    let sections = [
        header_html(history),
        timeline_html(history),
        task_table_html(history),
        run_table_html(history),
        list_html("Criteria", criteria.iter().map(|line| escape_html(line.trim()))),
        obstacles_html(history),
        list_html("Landings", history.landings.iter().map(landing_html)),
        list_html("Remarks", history.notes.iter().map(note_html)),
        list_html("Noted in the plan", plan_mark_lines(history).iter().map(|line| escape_html(line))),
        unmarked_patches(history).map(patch_html).collect(),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<title>{title}</title>\n<style>\n{PAGE_CSS}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
        sections.concat()
    )
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

/// Formats text as code, escaped.
fn code(text: &str) -> String {
    format!("<code>{}</code>", escape_html(text))
}

/// Renders a heading and a list of items in HTML; empty if there are no items.
fn list_html(title: &str, items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.map(|item| format!("<li>{item}</li>\n")).collect();
    clause(&format!("<h2>{title}</h2>\n<ul>\n"), &items.concat(), "</ul>\n")
}

/// Renders a heading and a table. Each row is the HTML of its cells, with their tags.
fn table_html(title: &str, columns: &[&str], rows: impl Iterator<Item = String>) -> String {
    let head: Vec<String> = columns.iter().map(|column| format!("<th>{column}</th>")).collect();
    let rows: Vec<String> = rows.map(|cells| format!("<tr>{cells}</tr>\n")).collect();
    let (head, rows) = (head.concat(), rows.concat());
    format!("<h2>{title}</h2>\n<div class=\"scroll\"><table>\n<tr>{head}</tr>\n{rows}</table></div>\n")
}

/// Returns the title of the plan; of a plan without one, the id of the batch.
fn page_title(history: &BatchHistory) -> String {
    match history.progress.summary.as_str() {
        "" => format!("Batch {}", history.progress.batch),
        summary => summary.to_owned(),
    }
}

fn header_html(history: &BatchHistory) -> String {
    let progress = &history.progress;
    let reason = progress.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let facts = [
        ("Batch", escape_html(progress.batch.as_str())),
        ("State", escape_html(&format!("{}{reason}", progress.state))),
        ("Landed", landed_summary(history)),
        ("From", escape_html(&history.sources.join(" "))),
        ("Branches", format!("{} for {}", code(&progress.branch), code(&progress.base))),
        ("Started", history.began.to_local_date_time()),
        ("Took", ui::short_duration(history.duration())),
        ("Cost", cost_summary(history)),
    ];
    let rows = facts.iter().filter(|(_, value)| !value.is_empty());
    let rows: Vec<String> = rows.map(|(name, value)| format!("<dt>{name}</dt><dd>{value}</dd>\n")).collect();
    format!("<h1>{}</h1>\n<dl>\n{}</dl>\n", escape_html(&page_title(history)), rows.concat())
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
    let bar = |run: &TaskAttempt, y: usize| {
        let (start, end) = (time_to_x(run.began), time_to_x(run.ended.unwrap_or(history.last_event_at)));
        let (class, x, y) = (run_css_class(run), 200 + start, y + 4);
        let (width, height) = ((end - start.min(end)).max(3), TIMELINE_ROW_HEIGHT - 8);
        let title = escape_html(&format!("{}, run {}: {}", run.task, run.attempt, run_end_text(run)));
        format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"><title>{title}</title></rect>\n"
        )
    };
    let lane_row = |(row, lane): (usize, &&str)| {
        let y = row * TIMELINE_ROW_HEIGHT;
        let bars = history.runs.iter().filter(|run| run.lane == *lane).map(|run| bar(run, y));
        format!("<text x=\"0\" y=\"{}\">{}</text>\n{}", y + 17, escape_html(lane), bars.collect::<String>())
    };
    let height = lanes.len() * TIMELINE_ROW_HEIGHT;
    let landing_line = |landing: &LandingEvent| {
        let (x, tasks) = (200 + time_to_x(landing.at), escape_html(&landing.tasks.join(", ")));
        format!(
            "<line x1=\"{x}\" y1=\"0\" x2=\"{x}\" y2=\"{height}\"><title>landed: {tasks}</title></line>\n"
        )
    };
    format!(
        "<h2>Timeline</h2>\n<div class=\"scroll\"><svg viewBox=\"0 0 {} {height}\" role=\"img\" aria-label=\"Runs by lane\">\n{}{}</svg></div>\n",
        TIMELINE_WIDTH + 200,
        lanes.iter().enumerate().map(lane_row).collect::<String>(),
        history.landings.iter().map(landing_line).collect::<String>()
    )
}

/// Returns the CSS class of a run: `open`, `well` or `bad`.
fn run_css_class(run: &TaskAttempt) -> &'static str {
    match &run.end {
        None => "open",
        Some(end) if end.has_succeeded => "well",
        Some(_) => "bad",
    }
}

fn run_end_text(run: &TaskAttempt) -> &str {
    run.end.as_ref().map_or("at work", |end| end.description.as_str())
}

/// Renders the table of tasks, each with the number of its wave.
fn task_table_html(history: &BatchHistory) -> String {
    let row = |task: &TaskProgress| {
        format!(
            "<td>{}</td><td>{}</td><td class=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td>",
            history.wave_of(&task.name).map(|wave| wave.to_string()).unwrap_or_default(),
            code(&task.name),
            state_css_class(&task.state),
            escape_html(&task.state),
            escape_html(&task.title),
            task.attempts,
            escape_html(task.detail.as_deref().unwrap_or_default())
        )
    };
    let columns = ["Wave", "Task", "State", "Title", "Runs", "Reason"];
    table_html("Tasks", &columns, history.progress.tasks.iter().map(row))
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
    let row = |run: &TaskAttempt| {
        let took = run.ended.map(|ended| ui::short_duration(ended.duration_since(run.began)));
        let model = clause(" ", run.model.as_deref().unwrap_or_default(), "");
        let commits = match (run.from, run.to) {
            (Some(from), Some(to)) if from != to => code(&format!("{}..{}", from.short(), to.short())),
            _ => String::new(),
        };
        format!(
            "<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{}\">{}</td>\
             <td>{}</td><td>{commits}</td><td>{}</td>",
            code(&run.task),
            run.attempt,
            escape_html(&format!("{}{model}", run.agent)),
            escape_html(&run.lane),
            run.began.to_local_date_time(),
            took.unwrap_or_default(),
            run_css_class(run),
            escape_html(run_end_text(run)),
            run.cost.map(usage::cost_text).unwrap_or_default(),
            escape_html(run.detail.as_deref().unwrap_or_default())
        )
    };
    let columns = ["Task", "Run", "Agent", "Lane", "Started", "Took", "End", "Cost", "Commits", "More"];
    table_html("Runs", &columns, history.runs.iter().map(row))
}

fn obstacles_html(history: &BatchHistory) -> String {
    let (conflicts, checks): (Vec<&Obstacle>, Vec<&Obstacle>) =
        history.obstacles.iter().partition(|obstacle| obstacle.check.is_none());
    let conflict_item = |conflict: &Obstacle| {
        let files = comma_list(conflict.files.iter().map(|file| code(&file.to_string())));
        format!("{} ({}): {files}", code(&conflict.task), conflict.status)
    };
    let check_item = |failed: &Obstacle| {
        format!("{}: {}", code(&failed.task), code(failed.check.as_deref().unwrap_or_default()))
    };
    list_html("Conflicts", conflicts.into_iter().map(conflict_item))
        + &list_html("Checks that failed", checks.into_iter().map(check_item))
}

fn landing_html(landing: &LandingEvent) -> String {
    let tip = landing.tip.map(|tip| format!(", {}", code(&tip.short()))).unwrap_or_default();
    let checks = comma_list(landing.checks.iter().map(|check| code(check)));
    let tasks = escape_html(&landing.tasks.join(", "));
    let at = landing.at.to_local_date_time();
    format!("{at}: {tasks}{tip}{}", clause("; passed ", &checks, ""))
}

fn note_html(note: &HistoryNote) -> String {
    format!("{} {}", note.at.to_local_date_time(), escape_html(&note.describe()))
}

fn patch_html(patch: &str) -> String {
    let lines: Vec<String> = patch.lines().map(escape_html).collect();
    format!("<pre>{}</pre>\n", lines.join("\n"))
}
