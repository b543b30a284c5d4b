//! Owns pushing bases that lanes have landed on. The landing stands, whatever comes of it.

use super::outcome::{Pushed, Report, Verdict};
use super::request::Request;
use crate::git::NotPushed;
use crate::lane::Project;

/// Whether bases are pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Push {
    /// They are not.
    No,
    /// They are; git may not ask anybody.
    Silently,
    /// They are; git may ask at the terminal, as for a password.
    MayAsk,
}

/// Pushes each base that something landed on; in a dry run, only finds out where to.
pub(super) fn bases(project: &Project, request: &Request<'_>, report: &mut Report) {
    if request.push == Push::No {
        return;
    }
    let landed = report.lanes.iter().filter(|l| matches!(l.result, Verdict::Landed | Verdict::Resolved));
    let mut branches: Vec<&String> = Vec::new();
    for line in landed {
        if !branches.contains(&&line.onto) {
            branches.push(&line.onto);
        }
    }
    report.pushed = branches.into_iter().map(|branch| push(project, request, branch)).collect();
}

fn push(project: &Project, request: &Request<'_>, branch: &str) -> Pushed {
    let line = Pushed { branch: branch.to_owned(), ..Pushed::default() };
    let refused = |line: Pushed, no: NotPushed| Pushed {
        message: Some(no.why),
        said: no.said,
        hints: vec![no.help],
        ..line
    };
    let to = match project.repo.push_destination(branch) {
        Ok(to) => to,
        Err(no) => return refused(line, no),
    };
    let line = Pushed { remote: Some(to.remote.clone()), ..line };
    if request.dry_run {
        return line;
    }
    project.listener.progress(format!("pushing {branch} to {}", to.remote));
    let done = project.repo.push(branch, &to, request.push == Push::MayAsk);
    project.listener.progress("");
    match done {
        Ok(()) => Pushed { done: true, ..line },
        Err(no) => refused(line, no),
    }
}
