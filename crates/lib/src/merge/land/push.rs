//! Push of the bases that lanes have landed on. A failed push does not undo the landing.

use proq_git::worktrees::push::PushFailure;

use crate::lane::Project;
use crate::merge::types::options::{Landing, PushMode};
use crate::merge::types::outcome::{LandingReport, PushReport, Verdict};

/// Pushes each base that a lane landed on; in a dry run, only determines the destination.
pub(crate) fn push_bases(project: &Project, landing: &Landing, report: &mut LandingReport) {
    if landing.push == PushMode::Never {
        return;
    }
    let landed = report.lanes.iter().filter(|l| matches!(l.result, Verdict::Landed | Verdict::Resolved));
    let mut branches: Vec<&String> = Vec::new();
    for outcome in landed {
        if !branches.contains(&&outcome.onto) {
            branches.push(&outcome.onto);
        }
    }
    report.pushed = branches.into_iter().map(|branch| push_branch(project, landing, branch)).collect();
}

/// Pushes a base; in a dry run, only determines the remote.
fn push_branch(project: &Project, landing: &Landing, branch: &str) -> PushReport {
    let report = PushReport { branch: branch.to_owned(), ..PushReport::default() };
    let failed = |report: PushReport, failure: PushFailure| PushReport {
        message: Some(failure.reason),
        output: failure.output,
        hints: vec![failure.hint],
        ..report
    };
    let destination = match project.repo.push_destination(branch) {
        Ok(to) => to,
        Err(failure) => return failed(report, failure),
    };
    let report = PushReport { remote: Some(destination.remote.clone()), ..report };
    if landing.dry_run {
        return report;
    }
    project.listener.progress(format!("pushing {branch} to {}", destination.remote));
    let result = project.repo.push(branch, &destination, landing.push == PushMode::MayPrompt);
    project.listener.progress("");
    match result {
        Ok(()) => PushReport { done: true, ..report },
        Err(failure) => failed(report, failure),
    }
}
