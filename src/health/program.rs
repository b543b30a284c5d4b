//! Owns checking git itself: its version, settings that are dangerous here, hooks that run for lanes.

use std::path::Path;

use super::finding::Finding;
use super::scene::Scene;
use crate::git;

/// The git program, wherever the user stands. Returns its version too.
pub(super) fn version(dir: &Path) -> (Option<String>, Vec<Finding>) {
    match git::installed(dir) {
        Ok((version, lacks)) => {
            let about = |what| Finding::info("git-version", "git", format!("git {version} lacks: {what}"));
            let found = lacks.into_iter().map(about).collect();
            (Some(version), found)
        }
        Err(e) => (None, vec![Finding::of_error("git-version", "git", &e)]),
    }
}

/// What the repository's configuration means for lanes.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    out.extend(expiry(scene));
    out.extend(mirrors(scene));
    out.extend(hooks(scene));
    out.extend(prefix(scene));
    out
}

fn expiry(scene: &Scene<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for (key, what) in [
        ("gc.pruneExpire", "every clean-up of git's takes what a command of an agent is just making"),
        ("gc.worktreePruneExpire", "every clean-up of git's forgets worktrees on a disk that is not there"),
    ] {
        let value = scene.project.repo.setting_text(key).unwrap_or_default();
        if matches!(value.as_str(), "now" | "immediate" | "all" | "0") {
            let message = format!("{key} is '{value}': {what}");
            out.push(Finding::warning("gc", key, message).help(format!("git config --unset-all {key}")));
        }
    }
    out
}

fn mirrors(scene: &Scene<'_>) -> Vec<Finding> {
    let found = scene.project.repo.mirrors().into_iter().map(|name| {
        let message =
            format!("a push to '{name}' uploads every ref, and with refs/proq/* your uncommitted work");
        Finding::warning("mirror", format!("remote '{name}'"), message).help(format!(
            "git config --unset remote.{name}.mirror; git config remote.{name}.push 'refs/heads/*'"
        ))
    });
    found.collect()
}

fn hooks(scene: &Scene<'_>) -> Option<Finding> {
    let hooks = scene.project.repo.hooks();
    if hooks.is_empty() {
        return None;
    }
    let message =
        format!("hooks of this repository that run for what happens in lanes: {}", hooks.join(", "));
    Some(Finding::info("hooks", "hooks", message))
}

fn prefix(scene: &Scene<'_>) -> Option<Finding> {
    let prefix = &scene.project.settings.prefix;
    scene.branch(prefix)?;
    let message =
        format!("a branch is called '{prefix}', so no branch '{prefix}/…' can be made: no lane at all");
    Some(
        Finding::error("prefix", prefix.clone(), message)
            .help(format!("git branch -m {prefix} NEW-NAME"))
            .left("it is a branch of yours"),
    )
}
