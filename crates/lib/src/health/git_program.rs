//! Health checks of git itself: its version, dangerous configuration, and hooks that run for lanes.

use std::path::Path;

use proq_git::worktrees::health_probe;

use super::check_context::CheckContext;
use super::finding::Finding;

/// Returns the version of git in `dir`, and findings about missing features. Needs no repository.
pub(super) fn installed_version(dir: &Path) -> (Option<String>, Vec<Finding>) {
    match health_probe::installed_git(dir) {
        Ok((version, missing_features)) => {
            let to_finding =
                |feature| Finding::info("git-version", "git", format!("git {version} lacks: {feature}"));
            let found = missing_features.into_iter().map(to_finding).collect();
            (Some(version), found)
        }
        Err(e) => (None, vec![Finding::from_error("git-version", "git", &e)]),
    }
}

/// Checks what the repository's git configuration means for lanes.
pub(super) fn check(context: &CheckContext<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    out.extend(check_gc_expiry(context));
    out.extend(check_mirror_remotes(context));
    out.extend(lane_hooks_note(context));
    out.extend(check_lane_prefix(context));
    out
}

/// Finds settings by which `git gc` deletes new objects or worktrees of absent disks at once.
fn check_gc_expiry(context: &CheckContext<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for (key, effect) in [
        ("gc.pruneExpire", "each cleanup of git deletes objects that an agent is creating"),
        ("gc.worktreePruneExpire", "each cleanup of git forgets worktrees on disks that are not mounted"),
    ] {
        let value = context.project.repo.setting_text(key).unwrap_or_default();
        if matches!(value.as_str(), "now" | "immediate" | "all" | "0") {
            let message = format!("{key} is '{value}': {effect}");
            out.push(Finding::warning("gc", key, message).with_help(format!("git config --unset-all {key}")));
        }
    }
    out
}

/// Finds mirror remotes, to which a push would upload git-proq's refs with uncommitted work.
fn check_mirror_remotes(context: &CheckContext<'_>) -> Vec<Finding> {
    let found = context.project.repo.mirror_remotes().into_iter().map(|name| {
        let message =
            format!("a push to '{name}' uploads every ref, and with refs/proq/* your uncommitted work");
        Finding::warning("mirror", format!("remote '{name}'"), message).with_help(format!(
            "git config --unset remote.{name}.mirror; git config remote.{name}.push 'refs/heads/*'"
        ))
    });
    found.collect()
}

/// Notes which hooks of the repository run for actions in lanes; none without any.
fn lane_hooks_note(context: &CheckContext<'_>) -> Option<Finding> {
    let hooks = context.project.repo.lane_hooks();
    if hooks.is_empty() {
        return None;
    }
    let message = format!("hooks of this repository that also run in lanes: {}", hooks.join(", "));
    Some(Finding::info("hooks", "hooks", message))
}

/// Finds a branch with the name of the lane prefix, which prevents the branches of all lanes.
fn check_lane_prefix(context: &CheckContext<'_>) -> Option<Finding> {
    let prefix = &context.project.settings.branch_prefix;
    context.branch_tip(prefix)?;
    let message = format!("a branch named '{prefix}' exists, so no lane branch '{prefix}/…' can be created");
    Some(
        Finding::error("prefix", prefix.clone(), message)
            .with_help(format!("git branch -m {prefix} {prefix}-old"))
            .with_left_reason("the branch is yours"),
    )
}
