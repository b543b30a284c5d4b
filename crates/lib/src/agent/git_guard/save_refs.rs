//! Saving of the user's branches and tags that an agent deletes or moves. The agent may do so, since no other
//! lane works on them, and the old value gets a ref first.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use proq_base::explain::shell_quote;
use proq_git::{CommitId, Oid, Repo};
use proq_store::base::id::new_id;
use proq_store::paths::layout::Layout;

use super::hook_call::HookCall;
use super::ref_update::RefUpdate;
use crate::event::log::{Certainty, Event, EventName};
use crate::lane::Project;

/// Name of the guard's list of branches and tags that the run has written, one line per write: the ref's name
/// and the new value.
const WRITTEN_REFS_LIST: &str = "made";
/// Name of the guard's list of refs whose old values were saved, each with the old value and the saving ref.
const SAVED_REFS_LIST: &str = "kept";
/// Name of the guard's list of objects that wait for a saving ref, each with that ref's name.
const PENDING_REFS_LIST: &str = "to-keep";
const SAVED_PREFIX: &str = "refs/proq/saved/";
/// Maximum number of characters of a ref's name in a restore command.
const MAX_RESTORED_NAME_CHARS: usize = 50;

/// Saves the old values of branches and tags, each given with its current object, and emits events about
/// them. Refs that the run itself has written are not saved, nor those that only move forward. Returns the
/// reason why a value cannot be saved, as the start of a sentence; the updates must be refused then.
pub(super) fn save_old_values(
    project: &Project,
    hook: &HookCall<'_>,
    updates: &[(&RefUpdate<'_>, Option<Oid>)],
) -> Option<String> {
    let mut saved_updates = Vec::new();
    for (update, current) in updates {
        match save_old_value(&project.repo, hook, update, *current) {
            Ok(saved_ref) => saved_updates.extend(saved_ref.map(|saved_ref| (update, saved_ref))),
            Err(e) => {
                return Some(format!("{} would be lost, because it could not be saved ({e})", update.name));
            }
        }
    }
    for (update, saved_ref) in saved_updates {
        emit_ref_change(project, hook, update, &saved_ref);
    }
    None
}

/// Saves the old value of a branch or tag and returns the saving ref; none where nothing must be saved or it
/// already is.
fn save_old_value(
    repo: &Repo,
    hook: &HookCall<'_>,
    update: &RefUpdate<'_>,
    current: Option<Oid>,
) -> std::io::Result<Option<String>> {
    let written_list = Layout::git_guard_list(&hook.guard_dir, WRITTEN_REFS_LIST);
    let new = Oid::from_hex(update.new).filter(|_| !update.is_deletion());
    let is_written_by_run =
        current.is_none_or(|current| is_last_written(&written_list, update.name, current));
    // If the line cannot be written, the value is saved once more than needed.
    if let (true, Some(new)) = (is_written_by_run, new) {
        drop(append_line(&written_list, &format!("{} {new}", update.name)));
    }
    let Some(current) = current.filter(|_| !is_written_by_run) else { return Ok(None) };
    let is_fast_forward = update.name.starts_with("refs/heads/")
        && new.is_some_and(|new| {
            let (old, new) = (CommitId::from_oid(current), CommitId::from_oid(new));
            repo.is_ancestor(old, new).unwrap_or(false)
        });
    let (saved_list, line) =
        (Layout::git_guard_list(&hook.guard_dir, SAVED_REFS_LIST), format!("{} {current} ", update.name));
    // Before version 2.46, git runs the hook for packed and loose refs one after the other.
    if is_fast_forward || is_saved(repo, hook, &saved_list, &line, current) {
        return Ok(None);
    }
    let saved_ref = format!("{SAVED_PREFIX}{}-{}", hook.record.lane, new_id());
    if repo.create_ref(&saved_ref, current, "git-proq: an agent deletes or moves it").is_err() {
        queue_save(hook, current, &saved_ref)?;
    }
    // If the line cannot be written, the value is saved once more than needed.
    drop(append_line(&saved_list, &format!("{line}{saved_ref}")));
    Ok(Some(saved_ref))
}

/// Queues an object for which the ref `saved_ref` is created once git has released the lock of `packed-refs`,
/// which all refs share.
pub(super) fn queue_save(hook: &HookCall<'_>, object: Oid, saved_ref: &str) -> std::io::Result<()> {
    append_line(&Layout::git_guard_list(&hook.guard_dir, PENDING_REFS_LIST), &format!("{object} {saved_ref}"))
}

/// Returns whether the run's last write of a branch or tag has the current value. If not, another process has
/// created a ref of that name since.
fn is_last_written(written_list: &Path, name: &str, current: Oid) -> bool {
    let text = std::fs::read_to_string(written_list).unwrap_or_default();
    let last_line = text
        .lines()
        .rev()
        .find_map(|line| line.split_once(' ').filter(|(written_name, _)| *written_name == name));
    last_line.is_some_and(|(_, id)| Oid::from_hex(id.as_bytes()) == Some(current))
}

/// Returns whether the list of saved refs has a line with this prefix whose saving ref exists with the value
/// `current`, or is queued.
fn is_saved(repo: &Repo, hook: &HookCall<'_>, saved_list: &Path, prefix: &str, current: Oid) -> bool {
    let text = std::fs::read_to_string(saved_list).unwrap_or_default();
    let Some(saved_ref) = text.lines().rev().find_map(|line| line.strip_prefix(prefix)) else { return false };
    let pending = std::fs::read_to_string(Layout::git_guard_list(&hook.guard_dir, PENDING_REFS_LIST))
        .unwrap_or_default();
    repo.ref_object(saved_ref).ok().flatten() == Some(current)
        || pending.lines().any(|line| line == format!("{current} {saved_ref}"))
}

/// Emits an event about a branch or tag that the agent deletes or moves, and whose value `saved_ref` keeps.
fn emit_ref_change(project: &Project, hook: &HookCall<'_>, update: &RefUpdate<'_>, saved_ref: &str) {
    let lane = &hook.record.lane;
    let (kind, name) = split_ref_name(update.name);
    let verb = if update.is_deletion() { "deletes" } else { "moves" };
    let command = alternate_restore_command(&project.repo, update.name, saved_ref);
    let message =
        format!("the agent of lane '{lane}' {verb} {kind} {name}; its earlier value is saved: {command}");
    let mut event = Event::new(EventName::LaneEscape, message);
    event.lane = Some(lane.to_string());
    event.state = project.any_lane(lane).ok().map(|lane| lane.state().to_string());
    event.certainty = Some(Certainty::Certain);
    project.emit_event(event);
}

/// Returns git's word for a full ref name (`branch`, `notes` or `tag`), and the name without its prefix.
pub(super) fn split_ref_name(name: &str) -> (&'static str, &str) {
    match name.strip_prefix("refs/heads/") {
        Some(branch) => ("branch", branch),
        None => match name.strip_prefix("refs/notes/") {
            Some(notes) => ("notes", notes),
            None => ("tag", name.trim_start_matches("refs/tags/")),
        },
    }
}

/// Returns the git command that restores a deleted ref, under its own name if that is free.
pub(super) fn restore_command(repo: &Repo, name: &str, target: &str) -> String {
    let is_free = |name: &str| repo.refs_with_prefix(name).is_ok_and(|refs| refs.is_empty());
    let parent_names = name.match_indices('/').map(|(end, _)| &name[..end]).skip(2);
    let exists = |name: &str| repo.ref_object(name).is_ok_and(|object| object.is_some());
    match split_ref_name(name) {
        ("notes", _) => format!("git update-ref {} {target}", shell_quote(name)),
        (kind, short) if is_free(name) && !parent_names.clone().any(exists) => {
            format!("git {kind} {} {target}", shell_quote(short))
        }
        _ => alternate_restore_command(repo, name, target),
    }
}

/// Returns the git command that restores the value of a branch, tag, notes or worktree under another, free
/// name. The ref's own name may be in use, conflict with a folder, or be checked out.
pub(super) fn alternate_restore_command(repo: &Repo, name: &str, target: &str) -> String {
    let (kind, short) = match split_ref_name(name) {
        ("tag", short) => ("tag", short),
        (_, short) => ("branch", short),
    };
    // The flat name holds no slash, so that no part of it is another ref's name.
    let flat_name: String = short
        .replace('/', "-")
        .trim_start_matches(['-', '.'])
        .chars()
        .take(MAX_RESTORED_NAME_CHARS)
        .collect();
    let names = (1..).map(|count: u32| match count {
        1 => format!("{flat_name}-kept"),
        count => format!("{flat_name}-kept-{count}"),
    });
    let is_free = |name: &String| {
        let full = format!("refs/{}/{name}", if kind == "tag" { "tags" } else { "heads" });
        repo.refs_with_prefix(&full).is_ok_and(|refs| refs.is_empty())
    };
    let free_name = names.take(100).find(is_free).filter(|name| Repo::is_valid_branch_name(name));
    free_name.map_or_else(
        || format!("git log {target}"),
        |free_name| format!("git {kind} {} {target}", shell_quote(&free_name)),
    )
}

fn append_line(file: &Path, line: &str) -> std::io::Result<()> {
    let mut file = File::options().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()
}

/// Returns whether objects wait for a ref that the hooks of a run could not create.
pub(super) fn has_pending_saves(guard_dir: &Path) -> bool {
    Layout::git_guard_list(guard_dir, PENDING_REFS_LIST).exists()
}

/// Creates the queued saving refs, which the hooks of a run could not create. Existing refs are not changed.
pub(super) fn save_pending_refs(project: &Project, guard_dir: &Path) {
    let text =
        std::fs::read_to_string(Layout::git_guard_list(guard_dir, PENDING_REFS_LIST)).unwrap_or_default();
    if text.is_empty() {
        return;
    }
    let existing = project.repo.refs_with_prefix(SAVED_PREFIX).unwrap_or_default();
    for (object, name) in text.lines().filter_map(|line| line.split_once(' ')) {
        let Some(object) = Oid::from_hex(object.as_bytes()) else { continue };
        if existing.iter().any(|(known, _)| known == name) {
            continue;
        }
        let created = project.repo.create_ref(name, object, "git-proq: an agent deleted or moved it");
        if let Err(e) = created
            // Another hook of the run may have created the ref first.
            && project.repo.ref_object(name).ok().flatten() != Some(object)
        {
            project.listener.warn(format!("{object} could not be saved as {name}: {e}"));
        }
    }
}
