//! Owns what a run is told that goes on in a new conversation, because the one before became too long.

use super::Error;
use super::prompt::attachments;
use crate::lane::{self, Project};
use crate::store::records::{LaneRecord, RunRecord};

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

/// What `first` was asked, and what has come of it since.
pub(super) fn text(project: &Project, lane: &LaneRecord, first: &RunRecord) -> Result<String, Error> {
    let layout = project.store.layout();
    let read = |path: std::path::PathBuf| {
        std::fs::read_to_string(&path).map_err(|e| lane::Error::io("read", &path)(e))
    };
    let mut out = read(layout.task(&lane.name))?.trim_end().to_owned();
    out.push_str(&attachments(project, &lane.name)?);
    if first.said {
        let said = read(layout.run_said(&lane.name, first.attempt))?;
        // A run that was asked anew has the task in its words already.
        out = if first.resumed { format!("{out}\n\nLater you were told:\n\n{said}") } else { said };
    }
    out.push_str(
        "\n\n# What has been done\n\nThis was begun in another conversation, which became too long. What it came to is in this \
         worktree. Go on from there, and do nothing twice.\n",
    );
    let tip = project.repo.branch_tip(&lane.place.branch)?.unwrap_or(lane.start);
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
