//! Git guard of a run: a folder of hooks that the agent's git runs before the repository's hooks. Only an
//! environment variable makes git use the folder.

pub mod after_commit;
pub mod escape;
pub mod guarded_settings;
pub mod hook;
pub mod hook_call;
pub mod log_lines;
pub mod lost_refs;
pub mod post_commit_hook;
pub mod ref_policy;
pub mod ref_update;
pub mod save_refs;
pub mod shared_changes;
pub mod shims;
pub mod worktree_baseline;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_git::program::injected_config;
use proq_store::Store;
use proq_store::base::atomic::create_private_dir;
use proq_store::base::file_tree::remove_tree;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::records::git_guard::GitGuardRecord;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::RunRecord;

use super::Error;
use crate::agent::profiles::profile::permission::Permission;
use crate::lane::Project;

/// Git guard of one run. It exists until [`GitGuard::finish`], or until the lane's next run if its supervisor
/// was killed before that.
#[derive(Debug)]
#[must_use]
pub(crate) struct GitGuard {
    guard_dir: PathBuf,
}

impl GitGuard {
    /// Creates the git guard of a run of a lane; the run works in `dir`. The caller holds the run lock. The
    /// repository is not changed.
    ///
    /// # Errors
    /// Fails when the guard's folder cannot be created, or git cannot name the repository's hooks folder.
    pub fn prepare(
        project: &Project,
        lane: &AnyLane,
        run_number: RunNumber,
        work_dir: &Path,
    ) -> Result<GitGuard, Error> {
        remove_stale_guards(project, &lane.name)?;
        let layout = project.store.layout();
        let guard = GitGuard { guard_dir: layout.git_guard(&lane.name, run_number) };
        create_private_dir(&guard.guard_dir)?;
        let repository_hooks = project.repo.hook_names(work_dir)?;
        let record = GitGuardRecord {
            lane: lane.name.clone(),
            branch: lane.commit_branch().map(str::to_owned),
            works_in_place: lane.works_in_place(),
            is_read_only: is_read_only_run(&project.store, lane, run_number),
            git_dir: project.repo.worktree_git_dir(work_dir)?,
            repository_hooks,
            settings: Some(guarded_settings::read_guarded_settings(project, &project.layers)?),
        };
        // The baselines precede the guard's record, whose file time is the start of the run.
        worktree_baseline::save_baseline(project, lane, &guard.guard_dir);
        lost_refs::record_refs(&project.repo, &guard.guard_dir);
        record.save(&Layout::git_guard_record(&guard.guard_dir))?;
        shims::write_shims(&guard.guard_dir, project.git_proq_path()?, &record.repository_hooks)?;
        Ok(guard)
    }

    /// Returns the environment variable that makes the agent's git use the guard's hooks. The code that
    /// starts a program removes an inherited variable of this name, so its value need not be retained.
    pub fn hooks_env_var(&self) -> (&'static str, OsString) {
        (
            injected_config::CONFIG_VARIABLE,
            injected_config::hooks_path_parameter(&Layout::git_guard_hooks(&self.guard_dir)),
        )
    }

    /// Removes the git guard of a run whose agent has exited. Before that, it reports known changes outside
    /// the lane, and saves lost branches, tags and stash entries. Returns a note about shared changes for the
    /// lane's state.
    pub fn finish(project: &Project, lane: &AnyLane, run_number: RunNumber) -> Option<String> {
        let dir = project.store.layout().git_guard(&lane.name, run_number);
        save_refs::save_pending_refs(project, &dir);
        let hold_result = guarded_settings::hold_auto_merges_if_changed(project, &lane.name, &dir);
        let hook_note = hold_result.as_ref().ok().and_then(Option::as_deref);
        let state_note = shared_changes::report_shared_changes(project, lane, &dir, hook_note);
        let reported_files = escape::report_changed_files(project, lane, run_number, &dir);
        worktree_baseline::report_unexplained_changes(project, lane, &dir, &reported_files);
        if let Err(e) = lost_refs::save_lost_refs(project, lane, &dir) {
            project.listener.warn(format!("cannot save what was lost from branches or the stash: {e}"));
        }
        let result = hold_result.map(drop).and_then(|()| Ok(remove_tree(&dir)?));
        if let Err(e) = result {
            project.listener.warn(e.to_string());
        }
        state_note
    }
}

/// Returns whether a run is read-only. A run whose record cannot be read counts as one that may write.
fn is_read_only_run(store: &Store, lane: &AnyLane, run_number: RunNumber) -> bool {
    let run = RunRecord::load_if_exists(&store.layout().run_record(&lane.name, run_number)).ok().flatten();
    run.and_then(|run| run.permission).is_some_and(|level| level == Permission::Read.to_string())
}

/// Removes the git guards that a killed supervisor left: those of this lane, in which nothing runs, and those
/// of lanes without a record.
fn remove_stale_guards(project: &Project, lane: &LaneName) -> Result<(), Error> {
    let layout = project.store.layout();
    for name in Layout::entry_names(&layout.git_guards()) {
        let guarded_lane = name.rsplit_once('-').and_then(|(lane, _)| LaneName::parse(lane).ok());
        let Some(guarded_lane) = guarded_lane else { continue };
        if guarded_lane == *lane || !layout.has_lane_record(&guarded_lane) {
            let guard_dir = layout.git_guards().join(&name);
            save_refs::save_pending_refs(project, &guard_dir);
            guarded_settings::hold_auto_merges_if_changed(project, &guarded_lane, &guard_dir)?;
            remove_tree(&guard_dir)?;
        }
    }
    Ok(())
}
