//! Owns what is known of several attempts at one task, side by side: size, checks, and whom each would be in the way of.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Error;
use super::forecast::{Ask, LeftOut, Pair, forecast};
use super::outcome::Checked;
use super::rehearse;
use crate::git::{FileLines, Oid, RepoPath};
use crate::lane::{self, Project, View};
use crate::store::records::{Costs, LaneRecord, LaneState};

/// One of them.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Attempt {
    /// Its lane.
    pub(crate) lane: String,
    /// The first line of its task.
    pub(crate) title: String,
    /// The group that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    /// Its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// What it is doing.
    pub(crate) state: LaneState,
    /// More about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// The branch it lands on.
    pub(crate) base: String,
    /// The commit it was cut from.
    pub(crate) start: Oid,
    /// The tip of its branch; none when that is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tip: Option<Oid>,
    /// Commits that its base lacks; none when one of the two is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) commits: Option<usize>,
    /// Uncommitted files, which are in nothing that follows; none when that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uncommitted: Option<usize>,
    /// What its commits change.
    pub(crate) files: Vec<FileLines>,
    /// Files that it alone changes.
    pub(crate) only: Vec<RepoPath>,
    /// What came of checking what would land.
    pub(crate) checks: Checked,
    /// What its runs took.
    #[serde(flatten)]
    pub(crate) spent: Costs,
}

/// All of them.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Comparison {
    /// One after the other, as they were asked for.
    pub(crate) attempts: Vec<Attempt>,
    /// Each with its base, and with every other of the same base.
    pub(crate) pairs: Vec<Pair>,
    /// Those about which a forecast has nothing to say.
    pub(crate) left_out: Vec<LeftOut>,
}

/// How the checks become known.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Checking<'a> {
    /// By what was found before.
    Remembered,
    /// By running them now, with these after the settings' own and this many states beside each other.
    Now {
        /// More command lines.
        more: &'a [String],
        /// How many at the same time, if not as the settings say.
        jobs: Option<usize>,
    },
}

/// Looks at lanes side by side. Nothing lands, and no lane changes.
///
/// # Errors
/// When one of them cannot be looked at; when commands are to be run that nobody has approved.
pub(crate) fn compare(
    project: &Project,
    lanes: &[LaneRecord],
    checking: Checking<'_>,
) -> Result<Comparison, Error> {
    let checks = match checking {
        Checking::Remembered => rehearse::remembered(project, lanes)?,
        Checking::Now { more, jobs } => rehearse::run_now(project, lanes, more, jobs)?,
    };
    let mut attempts = Vec::new();
    for (view, checks) in
        lane::views(project, lanes.iter().cloned().map(LaneRecord::any).collect())?.into_iter().zip(checks)
    {
        attempts.push(attempt(project, view, checks)?);
    }
    for at in 0..attempts.len() {
        attempts[at].only = only(&attempts, at);
    }
    let ask = Ask { lanes: lanes.to_vec(), uncommitted: false, within: None, about: None };
    let found = forecast(project, ask)?;
    Ok(Comparison { attempts, pairs: found.pairs, left_out: found.left_out })
}

fn attempt(project: &Project, view: View, checks: Checked) -> Result<Attempt, Error> {
    let (repo, lane) = (&project.repo, view.lane);
    let files = match view.tip {
        None => Vec::new(),
        Some(tip) => {
            // Where it left its base by now: the base may have been merged into it since.
            let base = repo.branch_tip(&lane.base)?;
            let from = base.map(|base| repo.merge_base(tip, base)).transpose()?.flatten();
            repo.line_counts(from.unwrap_or(lane.start), tip)?
        }
    };
    Ok(Attempt {
        spent: lane::spent(project, &lane)?,
        lane: lane.name,
        title: lane.title,
        group: lane.group,
        agent: lane.agent,
        state: view.state,
        detail: view.detail,
        base: lane.base,
        start: lane.start,
        tip: view.tip,
        commits: view.distance.map(|distance| distance.ahead),
        uncommitted: view.dirt.map(|dirt| dirt.entries.len()),
        files,
        only: Vec::new(),
        checks,
    })
}

/// The files that one attempt changes and no other.
fn only(all: &[Attempt], at: usize) -> Vec<RepoPath> {
    let others = all.iter().enumerate().filter(|(other, _)| *other != at);
    let theirs: BTreeSet<&RepoPath> =
        others.flat_map(|(_, other)| &other.files).map(|file| &file.path).collect();
    let mine = all[at].files.iter().map(|file| &file.path);
    mine.filter(|path| !theirs.contains(path)).cloned().collect()
}
