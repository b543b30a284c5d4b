//! Hints on the first steps in a repository without lanes.

use proq_base::hint;
use proq_base::hint::Hint;
use proq_lib::lane::Project;

use crate::cli::invocation::context::CommandContext;
use crate::cli::terminal::ui;

/// Hint on the first lane of a repository.
pub(crate) fn first_lane_hint() -> Hint {
    hint!("start an agent in a lane of its own: git proq spawn claude \"implement payments\"")
}

/// Hint on a repository without commits.
pub(crate) fn first_commit_hint() -> Hint {
    hint!("make a commit to start lanes from: git commit --allow-empty -m 'Start'")
}

/// Returns the hint on the first lane of a repository, or on the commit that it needs before.
pub(crate) fn first_hint(project: &Project) -> Hint {
    if is_without_commits(project) { first_commit_hint() } else { first_lane_hint() }
}

/// Prints how to see the lanes that landed and were removed, if there are any.
pub(crate) fn hint_at_landed_lanes(context: &CommandContext, project: &Project) {
    let past_lanes = project.all_past_lanes();
    let landed_count = past_lanes.iter().filter(|(_, lane)| lane.landed.is_some()).count();
    if landed_count > 0 {
        let landed = ui::pluralize(landed_count, "lane");
        context.ui.hint(hint!("see {landed} that landed: git proq list --all"));
    }
}

/// Returns whether the branch of the checkout has no commit that a lane could start from. A bare repository
/// has no checkout to make one in.
pub(crate) fn is_without_commits(project: &Project) -> bool {
    if project.repo.main_worktree().is_none() {
        return false;
    }
    let branch = project.repo.current_head_name().ok().flatten();
    branch.is_some_and(|branch| project.repo.branch_tip(&branch).is_ok_and(|tip| tip.is_none()))
}
