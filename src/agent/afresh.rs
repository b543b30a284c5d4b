//! Owns what a run is told that goes on in a new conversation, because the one before became too long.

use super::Error;
use super::prompt::attachments;
use crate::lane::{self, Project, told_at_work};
use crate::store::Record;
use crate::store::records::{AnyLane, RunRecord};

/// How many commits are named.
const COMMITS: usize = 50;

/// How many more runs a task may get.
#[derive(Debug, Default)]
pub(super) struct Afresh {
    /// The run with which it began.
    first: Option<u32>,
    /// How many there have been.
    runs: u32,
}

impl Afresh {
    /// Notes that this run was ended because of its context. The run with which it began, if there may be one more.
    pub(super) fn after(&mut self, attempt: u32, most: u32) -> Option<u32> {
        self.runs += 1;
        let first = *self.first.get_or_insert(attempt);
        (self.runs < most).then_some(first)
    }
}

/// Why a conversation is not gone on with: it had to be ended.
pub(super) const TOO_LONG: &str = "became too long";

/// Why a conversation is not gone on with: the agent cannot.
pub(super) const CLOSED: &str = "cannot be gone on with";

/// The run with which the conversation of `run` began.
pub(super) fn beginning(project: &Project, lane: &AnyLane, run: RunRecord) -> Result<RunRecord, Error> {
    let mut first = run;
    while first.resumed {
        match before(project, lane, &first)? {
            Some(before) => first = before,
            None => break,
        }
    }
    Ok(first)
}

/// The run before this one in its conversation.
fn before(project: &Project, lane: &AnyLane, run: &RunRecord) -> Result<Option<RunRecord>, Error> {
    for attempt in (1..run.attempt).rev() {
        let before = RunRecord::find(&project.store.layout().run_record(&lane.name, attempt))?;
        if let Some(before) = before.filter(|before| !before.resolves && before.talk() == run.talk()) {
            return Ok(Some(before));
        }
    }
    Ok(None)
}

/// The runs of the conversation that `first` began, it included.
fn runs_of(project: &Project, lane: &AnyLane, first: &RunRecord) -> Result<Vec<RunRecord>, Error> {
    let layout = project.store.layout();
    let mut out = Vec::new();
    for attempt in first.attempt..=lane.attempt {
        let run = RunRecord::find(&layout.run_record(&lane.name, attempt))?;
        out.extend(run.filter(|run| !run.resolves && run.talk() == first.talk()));
    }
    Ok(out)
}

/// What somebody told the agent after `first` had begun, in the order in which it was said.
fn later(project: &Project, lane: &AnyLane, first: &RunRecord) -> Result<Vec<String>, Error> {
    let layout = project.store.layout();
    let mut out = Vec::new();
    for run in runs_of(project, lane, first)? {
        if run.said && run.resumed {
            let said = layout.run_said(&lane.name, run.attempt);
            out.push(crate::regular_file::record_text(&said).map_err(lane::Error::io("read", &said))?);
        }
        out.extend(told_at_work(&layout.lane(&lane.name), run.attempt)?);
    }
    Ok(out)
}

/// What `first` was asked, and what has come of it since. `why` says what is the matter with the conversation that there was.
pub(super) fn text(project: &Project, lane: &AnyLane, first: &RunRecord, why: &str) -> Result<String, Error> {
    let layout = project.store.layout();
    let read = |path: std::path::PathBuf| {
        crate::regular_file::record_text(&path).map_err(|e| lane::Error::io("read", &path)(e))
    };
    let mut out = read(layout.task(&lane.name))?.trim_end().to_owned();
    out.push_str(&attachments(project, &lane.name)?);
    if first.said && !first.resumed {
        // A run that was asked anew has the task in its words already.
        out = read(layout.run_said(&lane.name, first.attempt))?;
    }
    for said in later(project, lane, first)? {
        out.push_str(&format!("\n\nLater you were told:\n\n{}", said.trim_end()));
    }
    out.push_str(&format!(
        "\n\n# What has been done\n\nThis was begun in another conversation, which {why}. "
    ));
    match lane.commits_to() {
        Some(branch) => out.push_str(&in_its_tree(project, lane, branch)?),
        None => out.push_str(&what_was_answered(project, lane, first)?),
    }
    Ok(out)
}

/// What has come of it in the worktree, and on its branch.
fn in_its_tree(project: &Project, lane: &AnyLane, branch: &str) -> Result<String, Error> {
    let mut out = "What it came to is in this worktree. Go on from there, and do nothing twice.\n".to_owned();
    let tip = project.repo.branch_tip(branch)?.unwrap_or(lane.start);
    let mut commits = project.repo.commits_on(tip, lane.start, &[], COMMITS)?;
    commits.reverse();
    if !commits.is_empty() {
        let lines: Vec<String> =
            commits.iter().map(|(id, subject, _)| format!("- {id} {subject}\n")).collect();
        out.push_str(&format!("\nCommits on this branch, the oldest first:\n\n{}", lines.concat()));
    }
    if !crate::git::status(&project.repo, &lane.path, true)?.is_clean() {
        out.push_str("\nThere are changes that are not committed; `git status` names them.\n");
    }
    if lane.path.join("STATUS.md").is_file() {
        out.push_str("\n`STATUS.md` may say how far it had come: read it first.\n");
    }
    Ok(out)
}

/// What the runs of a conversation that only looked came to, from `first` on.
fn what_was_answered(project: &Project, look: &AnyLane, first: &RunRecord) -> Result<String, Error> {
    let mut out = String::new();
    for run in runs_of(project, look, first)? {
        let file = project.store.layout().run_answer(&look.name, run.attempt);
        match crate::regular_file::record_text(&file) {
            Ok(answer) => out.push_str(&format!("\nYou said:\n\n{}\n", answer.trim_end())),
            // It was ended before it said anything.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(lane::Error::io("read", &file)(e).into()),
        }
    }
    if out.is_empty() {
        out.push_str("What was found out in it is not known any more: look again.\n");
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_runs_as_may_be() {
        let mut afresh = Afresh::default();
        assert_eq!([3, 5, 6].map(|attempt| afresh.after(attempt, 3)), [Some(3), Some(3), None]);
        assert_eq!(Afresh::default().after(1, 0), None);
    }
}
