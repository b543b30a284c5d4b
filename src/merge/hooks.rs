//! Owns the repository's hooks that have a say in a landing's message, run as git would run them.

use super::Error;
use super::stack::Ground;
use crate::git::run_hook;

/// The hook that can be left out.
const COMMIT_MSG: &str = "commit-msg";

/// Why a hook keeps a lane from landing.
pub(super) struct Refusal {
    /// What it did.
    pub(super) why: String,
    /// How to land without it.
    pub(super) help: String,
}

impl Refusal {
    fn of(hook: &str, did: &str) -> Refusal {
        let help = match hook {
            COMMIT_MSG => "to land it without that hook: --no-verify",
            // Nothing skips this one alone.
            _ => "to land it without any hook: git -c core.hooksPath=/dev/null proq merge …",
        };
        Refusal { why: format!("the repository's {hook} hook {did}"), help: help.to_owned() }
    }
}

/// What the repository's `prepare-commit-msg` and `commit-msg` make of a message, or why one of them will not have it.
/// `kind` is what git tells them: `merge` or `squash`.
pub(super) fn message(ground: Ground<'_>, text: &str, kind: &str) -> Result<Result<String, Refusal>, Error> {
    if ground.into.is_some() {
        return Ok(Ok(text.to_owned()));
    }
    let repo = &ground.project.repo;
    let file = ground.scratch.join("MERGE_MSG");
    let path = file.to_string_lossy().into_owned();
    let checks: &[(&str, &[&str])] = &[("prepare-commit-msg", &[&path, kind]), (COMMIT_MSG, &[&path])];
    let asked = if ground.hooks { checks } else { &checks[..1] };
    if !asked.iter().any(|(name, _)| repo.may_have_hook(repo.home(), name)) {
        return Ok(Ok(text.to_owned()));
    }
    let io = |what, e| crate::git::Error::io(what, &file)(e);
    std::fs::write(&file, text).map_err(|e| io("write", e))?;
    let mut text = text.to_owned();
    for (name, args) in asked {
        if let Err(e) = run_hook(repo, repo.home(), name, args) {
            return Ok(Err(Refusal::of(name, &format!("refused it: {e}"))));
        }
        text = std::fs::read_to_string(&file).map_err(|e| io("read", e))?;
        if text.trim().is_empty() {
            return Ok(Err(Refusal::of(name, "left its message empty")));
        }
    }
    Ok(Ok(text))
}
