//! Fingerprint of a planned landing: it changes with everything that the landing depends on.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use proq_base::config::choices::UncommittedPolicy;
use proq_base::lane_name::LaneName;
use proq_git::status::status_query;
use proq_git::{CommitId, Repo};
use proq_store::records::lane::LaneRecord;

use crate::lane;
use crate::lane::Project;
use crate::merge;
use crate::merge::types::options::{Landing, LandingOptions, PinnedTips, StackOrder};
use crate::merge::types::outcome::LandingReport;
use crate::preview::leave::carried_tip;

/// Hash that is equal for two plans of a landing only if the same would land with the same effects: it covers
/// lanes and bases with their tips, uncommitted work that would land, settings, checks, remotes, the order of
/// the lanes, the result for each of them, and the tree that each base would have. It is the same in every
/// process of one version of git-proq.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MergeFingerprint(String);

impl MergeFingerprint {
    /// Returns the fingerprint of a landing from the state of the repository before and after its forecast. A
    /// state that changed in between matches no later fingerprint.
    pub(crate) fn new(
        repo: &Repo,
        landing: &Landing,
        before: &RepoState,
        after: &RepoState,
        forecast: &LandingReport,
    ) -> MergeFingerprint {
        let Landing { options, stopped_lanes, resolver, push, .. } = landing;
        // How the lanes were selected and ordered shows in the rows.
        let options = LandingOptions { all: false, order: StackOrder::Given, ..options.clone() };
        let settings = (&before.settings, &after.settings);
        let mut text = format!("{options:?} {stopped_lanes:?} {resolver:?} {push:?} {settings:?}\n");
        for row in &forecast.lanes {
            let states = (before.lanes.get(&row.lane), after.lanes.get(&row.lane));
            let result = (&row.onto, row.result, row.strategy, &row.message);
            let _ = writeln!(text, "{:?} {states:?} {result:?}", row.lane);
        }
        // Whether a check ran or its result was cached does not belong to the plan, and neither do the checks of
        // bases on which nothing lands.
        let tasks = forecast.checks.iter().flat_map(|checks| &checks.tasks).collect::<Vec<_>>();
        let bases: Vec<_> =
            forecast.forecasts.iter().map(|base| (&base.onto, base.tree, &base.check_commands)).collect();
        let _ = writeln!(text, "{tasks:?} {:?} {:?} {bases:?}", forecast.pushed, forecast.stopped);
        MergeFingerprint(repo.blob_id(text.as_bytes()).map_or(text, |id| id.to_string()))
    }

    /// Returns the hash in hex.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// State of the repository that a landing depends on and that its forecast does not show.
pub(crate) struct RepoState {
    lanes: BTreeMap<LaneName, LaneTips>,
    /// Settings of git-proq, and the URLs that git pushes to.
    settings: String,
}

/// Tips and uncommitted files of a lane and its base: the state that a landing of the lane depends on.
#[derive(Debug)]
struct LaneTips {
    tip: Option<CommitId>,
    /// Tip that the lane gets when its preview is left; none if that does not move it.
    carried_tip: Option<CommitId>,
    /// Branch that the lane lands on, without `refs/heads/`.
    onto: String,
    base_tip: Option<CommitId>,
    /// Files that a landing would commit, with their stat data.
    uncommitted_files: String,
}

impl RepoState {
    /// Reads the state of a repository and of the lanes that a landing may take.
    ///
    /// # Errors
    /// Fails when lanes or branches cannot be read.
    pub(crate) fn read(project: &Project, landing: &Landing) -> Result<RepoState, merge::Error> {
        let repo = &project.repo;
        let recorded = if landing.options.all { project.owned_lanes()? } else { landing.lanes.clone() };
        let mut lanes = BTreeMap::new();
        for LaneRecord { name, kind, path, base, .. } in recorded {
            let onto = landing.options.onto.as_ref().map(|onto| repo.resolve_symbolic_branch(onto));
            let onto = onto.unwrap_or(base);
            let tips = LaneTips {
                tip: repo.branch_tip(&kind.branch)?,
                carried_tip: carried_tip(project, &name)?,
                base_tip: repo.branch_tip(&onto)?,
                onto,
                // A lane whose worktree cannot be read counts as unchanged as long as it stays unreadable.
                uncommitted_files: uncommitted_state(project, &path).unwrap_or_else(|e| e.to_string()),
            };
            lanes.insert(name, tips);
        }
        let settings = format!("{:?} {:?}", project.layers, repo.remote_push_settings());
        Ok(RepoState { lanes, settings })
    }

    /// Returns the tips that a landing of this state is bound to.
    pub(crate) fn pinned_tips(&self) -> PinnedTips {
        let mut out = PinnedTips::default();
        for (name, lane) in &self.lanes {
            out.bases.extend(lane.base_tip.map(|tip| (lane.onto.clone(), tip)));
            if lane.uncommitted_files.is_empty() {
                out.lanes.extend(lane.carried_tip.or(lane.tip).map(|tip| (name.clone(), tip)));
            }
        }
        out
    }
}

/// Returns the uncommitted files of a worktree with their stat data. With `merge.uncommitted = commit` a
/// landing may commit them; otherwise the result is empty.
fn uncommitted_state(project: &Project, dir: &Path) -> Result<String, lane::Error> {
    let mut out = String::new();
    if project.settings.uncommitted != UncommittedPolicy::Commit || !dir.is_dir() {
        return Ok(out);
    }
    for path in status_query::status(&project.repo, dir, true)?.paths() {
        let metadata = path.to_fs_path(dir).symlink_metadata().ok();
        let file_stamp = metadata.map(|m| (m.ino(), m.size(), m.mode(), m.ctime(), m.ctime_nsec()));
        let _ = write!(out, "{path} {file_stamp:?};");
    }
    Ok(out)
}
