//! Title and body of a lane's request.

use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::agent::ReportRecord;
use proq_store::records::lane::LaneRecord;

use crate::lane::Project;

/// Maximum length of a body, in bytes. GitHub takes 65,536 characters, Linux 131,072 bytes in an argument.
const MAX_BODY_BYTES: usize = 60_000;

/// Title and body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Title, one line.
    pub title: String,
    /// Body in Markdown; empty if there is nothing to write.
    pub body: String,
}

impl Description {
    /// Returns the description of a lane: its title, its task, what its agent reported, and the issue that it
    /// closes. `message` replaces title and text: its first line, and the rest.
    #[must_use]
    pub fn of_lane(project: &Project, lane: &LaneRecord, message: Option<&str>) -> Description {
        let closes = lane.issue.as_ref().map(|issue| format!("Closes #{}", issue.number));
        let (title, mut parts) = match message.map(str::trim).filter(|text| !text.is_empty()) {
            Some(text) => {
                let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
                (title.trim().to_owned(), vec![rest.trim().to_owned()])
            }
            None => (lane.title.clone(), lane_texts(project, lane)),
        };
        parts.retain(|part| !part.is_empty());
        let mut body = parts.join("\n\n");
        body.truncate(body.floor_char_boundary(MAX_BODY_BYTES));
        let parts: Vec<String> =
            Some(body).filter(|body| !body.is_empty()).into_iter().chain(closes).collect();
        Description { title, body: parts.join("\n\n") }
    }
}

/// Returns the task of a lane, unless it is in an issue, and the report of its agent.
fn lane_texts(project: &Project, lane: &LaneRecord) -> Vec<String> {
    let folder = project.store.layout().lane(&lane.name);
    let task = proq_base::regular_file::read_store_text(Layout::task_prompt_in(&folder)).unwrap_or_default();
    let task = task.trim();
    let rest = task.strip_prefix(&lane.title).filter(|rest| rest.is_empty() || rest.starts_with('\n'));
    let task = Some(rest.unwrap_or(task).trim()).filter(|_| lane.issue.is_none());
    let report = ReportRecord::load_if_exists(&Layout::lane_report_in(&folder)).ok().flatten();
    let mut parts: Vec<String> = task.map(ToOwned::to_owned).into_iter().collect();
    if let Some(report) = report {
        parts.extend(section("Findings", &report.findings));
        parts.extend(section("Left to do", &report.human_steps));
    }
    parts
}

/// Formats items as a list with a heading; none without items.
fn section(heading: &str, items: &[String]) -> Option<String> {
    let lines: Vec<String> =
        items.iter().map(|item| format!("- {}", item.trim().replace('\n', "\n  "))).collect();
    (!lines.is_empty()).then(|| format!("## {heading}\n\n{}", lines.join("\n")))
}
