//! The `git proq doctor` command: its arguments, and the text of findings.

use clap::Args;
use console::style;
use proq_base::explain::Exit;
use proq_base::hint;
use proq_base::hint::Hint;
use proq_lib::health::examine::{Report, examine};
use proq_lib::health::finding::{Finding, Severity};
use serde::Serialize;

use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui;
use crate::cli::terminal::ui::Ui;

/// Check repository health
///
/// Checks records, branches, worktrees, snapshots, the trash, stale locks, the disk, git and agents. Each
/// finding is one line: the problem, its effect, and the command that helps. With --fix, git-proq repairs
/// what is safe to repair; nothing that holds data is deleted. Notes list the folders of landed lanes in
/// the trash that new lanes may reuse, and why the next lane would not reuse one.
///
/// Exits with 1 if a problem was found and not repaired. Warnings do not count.
///
/// Examples:
///     git proq doctor
///     git proq doctor --fix
///     git proq doctor --json | jq '.findings[] | select(.severity == "error")'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Doctor {
    /// Repair what is safe to repair
    #[arg(long)]
    pub(crate) fix: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct DoctorOutput<'a> {
    ok: bool,
    findings: &'a [Finding],
    checked: &'a proq_lib::health::examine::CheckedItems,
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Doctor) -> CommandResult {
    context.apply_color_settings();
    let fix = args.fix && !args.dry_run;
    if fix {
        proq_base::interrupt::defer_signals();
    }
    let report = examine(&context.dir, fix);
    let exit = if report.is_ok() { Exit::Success } else { Exit::Refused };
    let Report { findings, checked, .. } = &report;
    let output = DoctorOutput { ok: report.is_ok(), findings, checked, dry_run: args.dry_run };
    context.show(output, |context, _| print_report(context.ui, &report, args)).and(Ok(exit))
}

fn print_report(ui: Ui, report: &Report, args: &Doctor) {
    let (problems, notes): (Vec<&Finding>, Vec<&Finding>) =
        report.findings.iter().partition(|finding| finding.is_problem());
    for finding in problems {
        for line in finding_lines(finding, args) {
            ui.print_line(line);
        }
        if let Some(hint) = open_help(finding, args) {
            ui.print_hint_line(hint);
        }
    }
    ui.print_line(summary_line(report));
    for finding in notes {
        for line in finding_lines(finding, args) {
            ui.status(line);
        }
        if let Some(hint) = open_help(finding, args) {
            ui.hint(hint);
        }
    }
    match report.findings.iter().filter(|f| f.fixable && !f.fixed).count() {
        0 => {}
        _ if args.fix || args.dry_run => {}
        1 => ui.hint(hint!("repair one of them: git proq doctor --fix")),
        fixable => ui.hint(hint!("repair {fixable} of them: git proq doctor --fix")),
    }
}

/// Returns the message of a finding, and the reason why `--fix` left a problem as it is.
fn finding_lines(finding: &Finding, args: &Doctor) -> Vec<String> {
    let label = match (finding.fixed, finding.severity) {
        (true, _) => style("fixed:").green(),
        (_, Severity::Error) => style("error:").red().bold(),
        (_, Severity::Warning) => style("warning:").yellow(),
        (_, Severity::Info) => style("note:").dim(),
    };
    let would = if args.dry_run && finding.fixable { "; would be repaired" } else { "" };
    let is_left = !finding.fixed && (args.fix || args.dry_run) && finding.is_problem();
    let left_reason = finding.left_reason.as_ref().filter(|_| is_left);
    let left = left_reason.map(|reason| format!("  left as it is: {reason}"));
    std::iter::once(format!("{label} {}{would}", finding.message)).chain(left).collect()
}

/// Returns the hint of a finding that is not repaired and would not be.
fn open_help(finding: &Finding, args: &Doctor) -> Option<Hint> {
    finding.hint().filter(|_| !(finding.fixed || args.dry_run && finding.fixable))
}

/// Formats the counts of problems and of checked items in one line.
fn summary_line(report: &Report) -> String {
    let problems = |severity| {
        report.findings.iter().filter(|f| f.severity == severity && f.is_problem() && !f.fixed).count()
    };
    let fixed = report.findings.iter().filter(|f| f.fixed).count();
    let mut state = vec![match problems(Severity::Error) {
        0 => style("all well".to_owned()).green().to_string(),
        errors => style(ui::pluralize(errors, "error")).red().to_string(),
    }];
    state.extend((fixed > 0).then(|| format!("{fixed} repaired")));
    let warnings = problems(Severity::Warning);
    state.extend((warnings > 0).then(|| ui::pluralize(warnings, "warning")));
    format!("{}; checked {}", state.join(", "), checked_items_text(report))
}

fn checked_items_text(report: &Report) -> String {
    let counts = &report.checked;
    let mut out = Vec::new();
    if counts.repository {
        out.push(ui::pluralize(counts.lanes, "lane"));
        let others = [
            (counts.snapshots, "snapshot"),
            (counts.conflicts, "conflict"),
            (counts.removed_lanes, "removed lane"),
            (counts.saved_refs, "saved ref"),
            (counts.operations, "operation"),
        ];
        out.extend(others.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| ui::pluralize(n, noun)));
        out.extend((counts.trash > 0).then(|| format!("{} in the trash", counts.trash)));
        out.extend(counts.is_preview_open.then(|| "the open preview".to_owned()));
        out.push("locks and disk".to_owned());
    }
    out.extend(counts.git_version.as_ref().map(|version| format!("git {version}")));
    out.push(match counts.agents.as_slice() {
        [] => "settings".to_owned(),
        agents => format!("settings, {} ({})", ui::pluralize(agents.len(), "agent"), agents.join(", ")),
    });
    out.join(", ")
}
