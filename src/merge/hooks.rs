//! Owns the repository's hooks that have a say in a landing's message, run as git would run them.

use super::Error;
use super::stack::Ground;
use crate::git::run_hook;

/// What the repository's `prepare-commit-msg` and `commit-msg` make of a message. The inner error is why the latter will
/// not have it. `kind` is what git tells them: `merge` or `squash`.
pub(super) fn message(ground: Ground<'_>, text: &str, kind: &str) -> Result<Result<String, String>, Error> {
    if ground.into.is_some() {
        return Ok(Ok(text.to_owned()));
    }
    let repo = &ground.project.repo;
    let file = ground.scratch.join("MERGE_MSG");
    let path = file.to_string_lossy().into_owned();
    let checks: &[(&str, &[&str])] = &[("prepare-commit-msg", &[&path, kind]), ("commit-msg", &[&path])];
    let asked = if ground.hooks { checks } else { &checks[..1] };
    if !asked.iter().any(|(name, _)| repo.may_have_hook(repo.home(), name)) {
        return Ok(Ok(text.to_owned()));
    }
    let io = |what, e| crate::git::Error::io(what, &file)(e);
    std::fs::write(&file, text).map_err(|e| io("write", e))?;
    for (name, args) in asked {
        if let Err(e) = run_hook(repo, repo.home(), name, args) {
            return Ok(Err(format!("the repository's {name} hook refused it: {e}")));
        }
    }
    let text = std::fs::read_to_string(&file).map_err(|e| io("read", e))?;
    Ok(if text.trim().is_empty() {
        Err("a hook of the repository left its message empty".into())
    } else {
        Ok(text)
    })
}
