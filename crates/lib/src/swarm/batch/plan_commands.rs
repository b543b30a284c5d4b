//! Commands that a plan contains, and which of them come from a repository. The user may not have read those,
//! so they need an approval.

use std::path::{Path, PathBuf};

use proq_plan::plan_format::PlanFormat;
use proq_plan::plan_source::LoadedPlan;

use super::plan_tasks::task_file_path;
use crate::event::approval::{Approvals, ShellCommand};
use crate::lane::Project;
use crate::swarm::Error;

/// Kind of a command that checks a task.
const CHECK_KIND: &str = "plan-check";

/// Kind of a command that verifies a criterion of the plan.
const CRITERION_KIND: &str = "plan-criterion";

/// Prefix of a criterion that is a command.
const COMMAND_PREFIX: &str = "$";

/// Returns the command of a criterion such as `$ make docs`; none for a criterion in prose.
pub fn criterion_command(criterion: &str) -> Option<&str> {
    let after_prefix = criterion.trim().strip_prefix(COMMAND_PREFIX)?;
    Some(after_prefix.trim()).filter(|line| after_prefix.starts_with([' ', '\t']) && !line.is_empty())
}

/// Returns the commands that a plan would run, each once. Commands of a file in a repository need an
/// approval. A plan outside of any repository is the user's own, and a draft is approved as a unit, so their
/// commands need none. Relative paths of plan files start at `dir`.
///
/// # Errors
/// Fails when the approvals cannot be read.
pub fn collect_plan_commands(
    project: &Project,
    loaded: &LoadedPlan,
    dir: &Path,
) -> Result<Vec<ShellCommand>, Error> {
    let approvals = Approvals::load(&project.repo, &project.store)?;
    let top = project.repo.current_worktree().unwrap_or(project.repo.command_dir());
    let repository_file = |file: &str| match loaded.format {
        PlanFormat::Draft => None,
        format => file_in_repository(&dir.join(file), &task_file_path(format, Path::new(file), dir, top)),
    };
    let mut out: Vec<ShellCommand> = Vec::new();
    let mut add_command = |kind, line: &str, file: &str| {
        if !out.iter().any(|existing| existing.kind == kind && existing.line == line) {
            out.push(approvals.command_of_plan(kind, line, repository_file(file)));
        }
    };
    for task in loaded.plan.tasks().map(|position| position.task).filter(|task| !task.done) {
        task.checks.iter().for_each(|check| add_command(CHECK_KIND, check, &task.location.file));
    }
    let file = loaded.plan.tasks().next().map(|position| &position.task.location.file);
    for line in loaded.plan.criteria.iter().filter_map(|criterion| criterion_command(criterion)) {
        add_command(CRITERION_KIND, line, file.map_or("", |file| file));
    }
    Ok(out)
}

/// Returns `resolved`, the path of a plan's file, if the file lies in a repository by its given path or by
/// the path that links lead to, or if it is missing; none for a file outside of any repository.
fn file_in_repository(named: &Path, resolved: &Path) -> Option<PathBuf> {
    // A file that cannot be found under its path counts as in a repository, because its origin is unknown.
    let folder = named.parent().and_then(|folder| folder.canonicalize().ok());
    let named = folder.unwrap_or_default().join(named.file_name().unwrap_or_default());
    let is_in_repository =
        |path: &Path| path.ancestors().skip(1).any(|dir| dir.join(".git").symlink_metadata().is_ok());
    (!resolved.exists() || is_in_repository(&named) || is_in_repository(resolved))
        .then(|| resolved.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_criterion_command_after_dollar_and_space() {
        assert_eq!(criterion_command("$ make  docs "), Some("make  docs"));
        assert_eq!(criterion_command(" $\tx"), Some("x"));
        for text in ["make docs", "$5 are enough", "$", "$ ", "costs $ 5"] {
            assert_eq!(criterion_command(text), None, "{text}");
        }
    }

    #[test]
    fn finds_repository_of_plan_file() {
        let dir = tempfile::tempdir().unwrap();
        let (own, clone) = (dir.path().join("own.toml"), dir.path().join("clone/sub/plan.toml"));
        std::fs::create_dir_all(clone.parent().unwrap()).unwrap();
        std::fs::create_dir(dir.path().join("clone/.git")).unwrap();
        std::fs::write(&own, "").unwrap();
        std::fs::write(&clone, "").unwrap();
        assert_eq!(file_in_repository(&own, &own), None);
        for (named, found) in [(&clone, &clone), (&own, &clone), (&clone, &own)] {
            assert_eq!(file_in_repository(named, found).as_ref(), Some(found));
        }
        let gone = dir.path().join("gone.toml");
        assert_eq!(file_in_repository(&gone, &gone), Some(gone));
    }
}
