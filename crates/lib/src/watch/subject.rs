//! What can be watched, and the folders in which it changes.

use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_git::references::branch_files::BranchFiles;
use proq_git::status::worktree_scan::WorktreeScan;
use proq_store::base::batch_id::BatchId;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;

use super::target::{Names, Target, WHOLE_TREE};
use crate::lane::Project;

/// Kind of state that a follower shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The event log.
    Events,
    /// Records of all lanes.
    Lanes,
    /// One lane: the records in its folder, among them its conflict and its report.
    Lane(LaneName),
    /// Runs of a lane: their records, logs and live views.
    Runs(LaneName),
    /// The activity that the hooks of a lane's agent report.
    Activity(LaneName),
    /// One batch: its log and its scheduler.
    Batch(BatchId),
    /// Branches.
    Refs,
    /// Files of the worktree at this path that git does not ignore, its index and its HEAD.
    Worktree(PathBuf),
}

impl Subject {
    /// Returns the folders in which the subject changes.
    pub(super) fn targets(&self, project: &Project) -> Vec<Target> {
        let (layout, all) = (project.store.layout(), Names::All);
        vec![match self {
            Subject::Events => Target::new(layout.root().to_owned(), Names::StartingWith("events."), 0),
            Subject::Lanes => {
                let record = Layout::lane_record_in(Path::new(""));
                Target::new(layout.lanes(), only_name_of(&record), 1)
            }
            Subject::Lane(name) => Target::new(layout.lane(name), all, 0),
            Subject::Runs(name) => Target::new(folder_of(&layout.run_log(name, RunNumber::first())), all, 0),
            Subject::Activity(name) => {
                let activity = layout.run_activity(name, RunNumber::first());
                Target::new(folder_of(&layout.run_log(name, RunNumber::first())), only_name_of(&activity), 1)
            }
            Subject::Batch(id) => Target::new(layout.batch(id), all, 0),
            Subject::Refs => return branch_targets(&project.repo.branch_files()),
            Subject::Worktree(dir) => return worktree_targets(project, dir),
        }]
    }
}

fn only_name_of(path: &Path) -> Names {
    Names::Only(path.file_name().unwrap_or_default().to_owned())
}

fn folder_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

fn branch_targets(files: &BranchFiles) -> Vec<Target> {
    vec![
        Target::new(files.loose.clone(), Names::ExceptLocks, WHOLE_TREE),
        Target::new(folder_of(&files.packed), only_name_of(&files.packed), 0),
        Target::new(files.tables.clone(), Names::ExceptLocks, 0),
    ]
}

/// Returns the targets of a worktree. Where its ignored files cannot be listed, they are watched too.
fn worktree_targets(project: &Project, dir: &Path) -> Vec<Target> {
    let mut files = Target::new(dir.to_owned(), Names::All, WHOLE_TREE);
    let Ok(git_dir) = project.repo.worktree_git_dir(dir) else { return vec![files] };
    let ignored = WorktreeScan::scan(&project.repo, dir, &git_dir).ignored_paths(&project.repo, dir);
    files.skipped = ignored.into_iter().flatten().map(|path| path.to_fs_path(dir)).collect();
    vec![files, Target::new(git_dir, Names::ExceptLocks, 0)]
}
