//! Owns the commands that a plan brings, and which of them come with a repository: whoever runs the plan may not have read them.

use std::path::{Path, PathBuf};

use super::batch::file_of;
use super::{Error, Format, Found};
use crate::event::{Approvals, Command};
use crate::lane::Project;

/// What a check of a task is for.
const CHECK: &str = "plan-check";

/// What a command is for that is to succeed in the end.
const CRITERION: &str = "plan-criterion";

/// What stands before a criterion that is a command.
const PROMPT: &str = "$";

/// The command that a criterion is, if it is one: `$ make docs`.
pub(crate) fn command_of(criterion: &str) -> Option<&str> {
    let rest = criterion.trim().strip_prefix(PROMPT)?;
    Some(rest.trim()).filter(|line| rest.starts_with([' ', '\t']) && !line.is_empty())
}

/// The commands that a plan would have run, each once. Those of a file in a repository need an approval; a plan of nobody's
/// repository is the user's own words, and so is a draft, which is approved as a whole. `dir` is where the plan was named.
///
/// # Errors
/// When what was approved cannot be read.
pub(crate) fn commands_of(project: &Project, found: &Found, dir: &Path) -> Result<Vec<Command>, Error> {
    let approvals = Approvals::read(&project.repo, &project.store)?;
    let top = project.repo.here().unwrap_or(project.repo.home());
    let from = |file: &str| match found.format {
        Format::Draft => None,
        format => in_repository(&dir.join(file), &file_of(format, Path::new(file), dir, top)),
    };
    let mut out: Vec<Command> = Vec::new();
    let mut add = |kind, line: &str, file: &str| {
        if !out.iter().any(|known| known.kind == kind && known.line == line) {
            out.push(approvals.of_plan(kind, line, from(file)));
        }
    };
    for task in found.plan.spots().map(|spot| spot.task).filter(|task| !task.done) {
        task.checks.iter().for_each(|check| add(CHECK, check, &task.from.file));
    }
    let file = found.plan.spots().next().map(|spot| &spot.task.from.file);
    for line in found.plan.criteria.iter().filter_map(|criterion| command_of(criterion)) {
        add(CRITERION, line, file.map_or("", |file| file));
    }
    Ok(out)
}

/// A plan's file, if it lies in a repository, by the way that it was named or by where that leads.
fn in_repository(named: &Path, found: &Path) -> Option<PathBuf> {
    // One that cannot be found again by its name is nobody's that is known.
    let folder = named.parent().and_then(|folder| folder.canonicalize().ok());
    let named = folder.unwrap_or_default().join(named.file_name().unwrap_or_default());
    let lies = |path: &Path| path.ancestors().skip(1).any(|dir| dir.join(".git").symlink_metadata().is_ok());
    (!found.exists() || lies(&named) || lies(found)).then(|| found.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_criterion_is_a_command_with_a_sign_and_a_space_before_it() {
        assert_eq!(command_of("$ make  docs "), Some("make  docs"));
        assert_eq!(command_of(" $\tx"), Some("x"));
        for text in ["make docs", "$5 are enough", "$", "$ ", "costs $ 5"] {
            assert_eq!(command_of(text), None, "{text}");
        }
    }

    #[test]
    fn what_lies_in_a_repository_comes_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let (own, clone) = (dir.path().join("own.toml"), dir.path().join("clone/sub/plan.toml"));
        std::fs::create_dir_all(clone.parent().unwrap()).unwrap();
        std::fs::create_dir(dir.path().join("clone/.git")).unwrap();
        std::fs::write(&own, "").unwrap();
        std::fs::write(&clone, "").unwrap();
        assert_eq!(in_repository(&own, &own), None);
        for (named, found) in [(&clone, &clone), (&own, &clone), (&clone, &own)] {
            assert_eq!(in_repository(named, found).as_ref(), Some(found));
        }
        let gone = dir.path().join("gone.toml");
        assert_eq!(in_repository(&gone, &gone), Some(gone));
    }
}
