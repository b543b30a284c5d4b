//! Kinds of steps that operations have: the one place that names all of them.

use std::path::Path;

use proq_base::config::layers::InvalidValues;
use proq_base::diagnostics::Listener;

use crate::lane::creation::create_worktree::CreateWorktree;
use crate::lane::parking::clear_worktree::ClearWorktree;
use crate::lane::parking::restore_snapshot::RestoreSnapshot;
use crate::lane::parking::take_snapshot::TakeSnapshot;
use crate::lane::recovery;
use crate::lane::steps::checkout::Checkout;
use crate::lane::steps::keep_ref::KeepRef;
use crate::lane::steps::move_ref::MoveRef;
use crate::lane::steps::write_record::WriteRecord;
use crate::lane::worktree::checks_dir;
use crate::lane::worktree::move_path::MovePath;
use crate::lane::worktree::pool::recreate_trash::RecreateTrash;
use crate::lane::worktree::pool::reuse_trash::ReuseTrash;
use crate::lane::worktree::rename_worktree::RenameWorktree;
use crate::lane::worktree::resolve_worktree::create_resolve_worktree::CreateResolveWorktree;
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::step::{Registry, StepKind, register};
use crate::run::auto_merge;
use crate::session::record_agent_commits::RecordAgentCommits;

/// What the features provide to the engine of operations. The tag of a kind never changes.
static REGISTRY: Registry = Registry {
    kinds: &[
        StepKind::new::<MoveRef>("ref"),
        StepKind::new::<KeepRef>("anchor"),
        StepKind::new::<Checkout>("tree"),
        StepKind::new::<RecordAgentCommits>("worked"),
        StepKind::new::<TakeSnapshot>("snap"),
        StepKind::new::<ClearWorktree>("clear"),
        StepKind::new::<RestoreSnapshot>("restore"),
        StepKind::new::<WriteRecord>("file"),
        StepKind::new::<MovePath>("move"),
        StepKind::new::<RenameWorktree>("rename"),
        StepKind::new::<CreateWorktree>("worktree"),
        StepKind::new::<ReuseTrash>("reuse"),
        StepKind::new::<RecreateTrash>("regrow"),
        StepKind::new::<CreateResolveWorktree>("resolve"),
    ],
    remove_leftovers: checks_dir::remove_unfinished_check_worktrees,
    command_for_user: auto_merge::command_for_user,
};

/// Makes the kinds of steps known to the engine of operations, which reads them from journals. Opening a
/// repository does it.
pub fn register_step_kinds() {
    register(&REGISTRY);
}

impl Project {
    /// Opens the repository that contains `dir`.
    ///
    /// # Errors
    /// Fails where there is no repository, its settings are invalid, or git is too old.
    pub fn open(dir: &Path, listener: Listener) -> Result<Project, Error> {
        register_step_kinds();
        Project::discover(dir, listener, InvalidValues::Refuse)
    }

    /// Opens the repository that contains `dir` for reading only. A setting with an invalid value has its default,
    /// with a warning; so have all settings of a `proq.toml` that is not TOML.
    ///
    /// # Errors
    /// As [`Project::open`], except for invalid values.
    pub fn open_to_read(dir: &Path, listener: Listener) -> Result<Project, Error> {
        register_step_kinds();
        Project::discover(dir, listener, InvalidValues::Ignore)
    }

    /// Opens the repository that contains `dir` for a command that needs no settings of the repository, such as an
    /// undo: an invalid `proq.toml` is only a warning. Recovers what crashed processes left there.
    ///
    /// # Errors
    /// As [`Project::open_recovered`], except for the repository's own settings.
    pub fn open_to_recover(dir: &Path, listener: Listener) -> Result<Project, Error> {
        register_step_kinds();
        let project = Project::discover(dir, listener, InvalidValues::IgnoreRepository)?;
        recovery::recover(&project)?;
        Ok(project)
    }

    /// Opens the repository that contains `dir`, and recovers what crashed processes left there.
    ///
    /// # Errors
    /// As [`Project::open`]; also fails if an operation can be neither completed nor undone.
    pub fn open_recovered(dir: &Path, listener: Listener) -> Result<Project, Error> {
        let project = Project::open(dir, listener)?;
        recovery::recover(&project)?;
        Ok(project)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proq_store::operations::operation_entry::JournalStep;

    use super::*;
    use crate::operation::journaled_operation::step::BoxedStep;

    const A: &str = "1111111111111111111111111111111111111111";
    const B: &str = "2222222222222222222222222222222222222222";

    /// Returns a line of each kind as journals have it, without optional fields and with all of them.
    fn lines() -> Vec<String> {
        let lines = [
            r#"{"do":"ref","name":"refs/heads/a","old":"A","new":"B"}"#,
            r#"{"do":"ref","name":"refs/proq/pending/1","new":"B"}"#,
            r#"{"do":"anchor","name":"refs/proq/op/1-0","new":"B"}"#,
            r#"{"do":"tree","dir":"/r/w","from":"A","to":"B","move":"nothing"}"#,
            r#"{"do":"tree","dir":"/r/w","from":"A","to":"B","move":{"branch":"a"},"drops":{"empty_dirs":["e"]},"brings":{"assumed":["f"]}}"#,
            r#"{"do":"tree","dir":"/r","from":"A","to":"B","move":{"switch":{"from":{"branch":"a"},"to":{"detached":"B"}}}}"#,
            r#"{"do":"worked","dir":"/r","branch":"a","from":"A","to":"B"}"#,
            r#"{"do":"snap","id":"1"}"#,
            r#"{"do":"snap","id":"1","anew":true}"#,
            r#"{"do":"clear","dir":"/r","snap":"1"}"#,
            r#"{"do":"restore","dir":"/r","snap":"1","head":"A"}"#,
            r#"{"do":"restore","dir":"/r","snap":"1","head":"A","before":{"snap":"2","empty_dirs":["e"],"ignored":["i"]}}"#,
            r#"{"do":"file","path":"lanes/a/lane.toml","new":"x = 1\n"}"#,
            r#"{"do":"file","path":"preview.toml","old":"x"}"#,
            r#"{"do":"move","from":"/r/a","to":"/r/b"}"#,
            r#"{"do":"rename","lane":"a","new_lane":"b","worktree_id":"a","from":"/r/a","to":"/r/b","old_branch":"proq/a","new_branch":"proq/b"}"#,
            r#"{"do":"worktree","dir":"/r/w","lane":"a","start":"A"}"#,
            r#"{"do":"reuse","entry":"/r/t","dir":"/r/w"}"#,
            r#"{"do":"regrow","entry":"/r/t","tip":"A"}"#,
            r#"{"do":"resolve","dir":"/r/w","lane":"a","start":"A"}"#,
        ];
        lines
            .map(|line| line.replace("\"A\"", &format!("{A:?}")).replace("\"B\"", &format!("{B:?}")))
            .to_vec()
    }

    fn read(line: &str) -> serde_json::Result<BoxedStep> {
        register_step_kinds();
        serde_json::from_str(line)
    }

    #[test]
    fn each_kind_reads_and_writes_its_line() {
        for line in lines() {
            assert_eq!(serde_json::to_string(&read(&line).unwrap()).unwrap(), line);
        }
        let has_line = |tag: &str| lines().iter().any(|line| line.starts_with(&format!("{{\"do\":{tag:?},")));
        assert!(REGISTRY.kinds.iter().all(|kind| has_line(kind.tag)));
    }

    #[test]
    fn undo_of_creation_covers_its_branch_and_all_that_follows() {
        let steps: Vec<BoxedStep> = [
            r#"{"do":"move","from":"/r/a","to":"/r/b"}"#,
            r#"{"do":"ref","name":"refs/heads/proq/a","new":"A"}"#,
            r#"{"do":"ref","name":"refs/heads/proq/b","new":"A"}"#,
            r#"{"do":"worktree","dir":"/r/a","lane":"a","start":"A"}"#,
            r#"{"do":"file","path":"lanes/a/lane.toml","new":"x = 1\n"}"#,
        ]
        .map(|line| read(&line.replace("\"A\"", &format!("{A:?}"))).unwrap())
        .to_vec();
        let steps: Vec<&BoxedStep> = steps.iter().collect();
        let covered: Vec<_> = (0..steps.len()).map(|n| steps[n].first_covered_step(&steps[..n])).collect();
        assert_eq!(covered, [None, None, None, Some(1), None]);
    }

    #[test]
    fn unknown_kind_is_an_error_that_lists_the_known_ones() {
        let e = read(r#"{"do":"fly"}"#).unwrap_err().to_string();
        assert!(e.starts_with("unknown variant `fly`, expected one of `ref`, `anchor`, `tree`"), "{e}");
        assert!(
            read(r#"{"name":"refs/heads/a"}"#).unwrap_err().to_string().starts_with("missing field `do`")
        );
    }

    #[test]
    fn moved_repository_moves_all_absolute_paths() {
        for line in lines() {
            let mut step = read(&line).unwrap();
            step.relocate(Path::new("/r"), Path::new("/s"));
            assert_eq!(serde_json::to_string(&step).unwrap(), line.replace("\"/r", "\"/s"));
        }
    }
}
