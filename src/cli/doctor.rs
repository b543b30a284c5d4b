//! Owns `git proq doctor`: its arguments, and how findings look.

use clap::Args;
use console::style;
use serde::Serialize;

use super::{Done, Session, ui};
use crate::explain::Exit;
use crate::health::{Finding, Report, Severity, examine};

/// Check that nothing is lost or wrong
///
/// Looks at records, branches, worktrees, snapshots, the trash, left-over locks, the disk, git and agents. Each finding is
/// one line: what is wrong, what that means, and the command that helps. With --fix, what is safe to repair is repaired;
/// nothing that holds data is deleted. Notes say which folders of landed lanes wait in the trash for new ones, and why the next
/// lane would not get one of them.
///
/// Exits with 1 when something is wrong and was not repaired. Warnings do not count.
///
/// Examples:
///     git proq doctor
///     git proq doctor --fix
///     git proq doctor --json | jq '.findings[] | select(.severity == "error")'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Doctor {
    /// Repair what is safe to repair, and say why the rest is left
    #[arg(long)]
    pub(crate) fix: bool,
    /// Say what --fix would repair, and repair nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    findings: &'a [Finding],
    checked: &'a crate::health::Checked,
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Doctor) -> Done {
    let fix = args.fix && !args.dry_run;
    if fix {
        crate::interrupt::arm();
    }
    let report = examine(&session.dir, fix);
    let exit = if report.is_ok() { Exit::Done } else { Exit::Refused };
    if session.ui.json {
        let (findings, checked) = (&report.findings, &report.checked);
        session.ui.object(Answer { ok: report.is_ok(), findings, checked, dry_run: args.dry_run });
        return Ok(exit);
    }
    let problems = report.findings.iter().filter(|f| f.is_problem());
    for finding in problems {
        session.ui.answer(line(finding, args));
    }
    session.ui.answer(summary(&report));
    for finding in report.findings.iter().filter(|f| !f.is_problem()) {
        session.ui.say(line(finding, args));
    }
    let fixable = report.findings.iter().filter(|f| f.fixable && !f.fixed).count();
    if fixable > 0 && !args.fix && !args.dry_run {
        let what = if fixable == 1 { "one of them".to_owned() } else { format!("{fixable} of them") };
        session.ui.hint(format!("repair {what}: git proq doctor --fix"));
    }
    Ok(exit)
}

fn line(finding: &Finding, args: &Doctor) -> String {
    let word = match (finding.fixed, finding.severity) {
        (true, _) => style("fixed:").green(),
        (_, Severity::Error) => style("error:").red().bold(),
        (_, Severity::Warning) => style("warning:").yellow(),
        (_, Severity::Info) => style("note:").dim(),
    };
    let mut out = format!("{word} {}", finding.message);
    if finding.fixed {
        return out;
    }
    let planned = args.dry_run && finding.fixable;
    if planned {
        out.push_str("; would be repaired");
    } else if let Some(help) = &finding.help {
        out.push_str(&format!(": {help}"));
    }
    if let Some(left) = finding.left.as_ref().filter(|_| (args.fix || args.dry_run) && finding.is_problem()) {
        out.push_str(&format!("\n  left as it is: {left}"));
    }
    out
}

/// What was looked at, and how it stands, in one line.
fn summary(report: &Report) -> String {
    let problems = |severity| {
        report.findings.iter().filter(|f| f.severity == severity && f.is_problem() && !f.fixed).count()
    };
    let (errors, warnings) = (problems(Severity::Error), problems(Severity::Warning));
    let fixed = report.findings.iter().filter(|f| f.fixed).count();
    let mut state = Vec::new();
    if errors > 0 {
        state.push(style(format!("{errors} wrong")).red().to_string());
    }
    if fixed > 0 {
        state.push(format!("{fixed} repaired"));
    }
    if warnings > 0 {
        state.push(ui::count(warnings, "warning"));
    }
    if errors == 0 {
        state.insert(0, style("all well").green().to_string());
    }
    format!("{}; checked {}", state.join(", "), checked(report))
}

fn checked(report: &Report) -> String {
    let found = &report.checked;
    let mut out = Vec::new();
    if found.repository {
        out.push(ui::count(found.lanes, "lane"));
        for (n, what) in [
            (found.snapshots, "snapshot"),
            (found.conflicts, "conflict"),
            (found.history, "removed lane"),
            (found.saved, "saved ref"),
            (found.operations, "operation"),
        ] {
            if n > 0 {
                out.push(ui::count(n, what));
            }
        }
        if found.trash > 0 {
            out.push(format!("{} in the trash", found.trash));
        }
        if found.preview {
            out.push("the open preview".to_owned());
        }
        out.push("locks and disk".to_owned());
    }
    out.extend(found.git.as_ref().map(|version| format!("git {version}")));
    out.push(match found.agents.as_slice() {
        [] => "settings".to_owned(),
        agents => format!("settings, {} ({})", ui::count(agents.len(), "agent"), agents.join(", ")),
    });
    out.join(", ")
}
