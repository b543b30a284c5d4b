//! Detection of changed git-proq settings during a run. After a change, no lane is merged automatically,
//! because the checks that lanes must pass may have changed. New hooks run only after approval.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use proq_base::config::key::Key;
use proq_base::config::layers::Layers;
use proq_base::lane_name::LaneName;
use proq_git::Repo;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::paths::layout::Layout;
use proq_store::records::git_guard::{GitGuardRecord, GuardedSettings};
use proq_store::records::lane::LaneRecord;

use crate::agent::Error;
use crate::event::withheld_hooks;
use crate::lane;
use crate::lane::Project;
use crate::lane::context::shared_state::{list_changed_settings, shared_settings};
use crate::run::auto_merge;

/// Prefixes of the setting keys that decide what may land, or which commands run during a landing.
const MERGE_KEY_PREFIXES: &[&str] = &["agent.gate", "agents", "hook.", "merge.", "verify."];

/// Returns the guarded settings: the user's settings that decide what may land, the `proq.toml` of the main
/// checkout, and the hooks of git-proq and of git.
///
/// # Errors
/// Fails when the commit of the main checkout cannot be read.
pub(super) fn read_guarded_settings(
    project: &Project,
    layers: &Layers,
) -> Result<GuardedSettings, lane::Error> {
    let hash = |text: &str| {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    };
    let affects_merging = |key: &str| MERGE_KEY_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
    let user_settings = layers.user_settings().filter(|(key, _)| affects_merging(key));
    let mut values: BTreeMap<String, String> = user_settings
        .map(|(key, text)| (format!("setting proq.{}", git_key_name(key)), hash(&text)))
        .collect();
    let is_hook_entry = |name: &str| name.starts_with("hook ") || name == "setting core.hookspath";
    values.extend(shared_settings(&project.repo).into_iter().filter(|(name, _)| is_hook_entry(name)));
    for entry in std::fs::read_dir(project.store.layout().user_hooks()).into_iter().flatten().flatten() {
        if let Ok(meta) = entry.path().metadata() {
            let fingerprint =
                format!("{} {}.{} {:o}", meta.size(), meta.mtime(), meta.mtime_nsec(), meta.mode());
            values.insert(format!("hook proq/hooks/{}", entry.file_name().to_string_lossy()), fingerprint);
        }
    }
    let settings_file = Some(project.settings_file_state(layers)?);
    Ok(GuardedSettings {
        hook_lines: withheld_hooks::user_hook_lines(layers),
        fingerprints: values,
        settings_file,
    })
}

/// Returns the name of a key in git's configuration.
fn git_key_name(key: String) -> String {
    Key::find(&key).map_or(key, Key::git_name)
}

/// Holds the automatic merges of all lanes, and new hooks, when guarded settings changed since a run of
/// `lane` started. The guard in `guard_dir` holds the settings at that start. The guards of all other lanes
/// are compared too, because a run that started after a change has no record of it. Returns a note about new
/// hooks in the first comparison.
///
/// # Errors
/// Fails when a hold cannot be written. The caller must not remove the guard then.
pub(super) fn hold_auto_merges_if_changed(
    project: &Project,
    lane: &LaneName,
    guard_dir: &Path,
) -> Result<Option<String>, Error> {
    let layers = Repo::discover(project.repo.command_dir())
        .ok()
        .and_then(|repo| Project::load_layers(Some(&repo)).ok());
    let current = layers.and_then(|layers| read_guarded_settings(project, &layers).ok());
    let (hook_note, _) = hold_if_changed_since_start(
        project,
        &GuardedRun { lane, is_supervisor_dead: false },
        guard_dir,
        current.as_ref(),
    )?;
    let layout = project.store.layout();
    for name in Layout::entry_names(&layout.git_guards()) {
        let guarded_lane = name.rsplit_once('-').and_then(|(other, _)| LaneName::parse(other).ok());
        let Some(other) = guarded_lane.filter(|other| other != lane) else { continue };
        let other_guard_dir = layout.git_guards().join(&name);
        let is_running = project.store.locks().is_held(&LockName::Run(other.clone()))?;
        let run = GuardedRun { lane: &other, is_supervisor_dead: !is_running };
        let (_, holds_merges) =
            hold_if_changed_since_start(project, &run, &other_guard_dir, current.as_ref())?;
        if let (false, true, Some(current)) = (is_running, holds_merges, &current) {
            update_recorded_settings(&other_guard_dir, current);
        }
    }
    Ok(hook_note)
}

/// Replaces the guarded settings in the record of a guard whose supervisor was killed, since no process
/// finishes its run. All changes until now have been handled, so they are not handled twice.
fn update_recorded_settings(guard_dir: &Path, current: &GuardedSettings) {
    let path = Layout::git_guard_record(guard_dir);
    if let Ok(Some(mut record)) = GitGuardRecord::load_if_exists(&path)
        && record.settings.as_ref().is_some_and(|before| before != current)
    {
        record.settings = Some(current.clone());
        // If this fails, the changes are handled once more.
        drop(record.save(&path));
    }
}

/// Run whose guarded settings are compared with the current ones.
struct GuardedRun<'a> {
    /// Name of the run's lane.
    lane: &'a LaneName,
    /// Whether the run's supervisor was killed, so that the run may have finished long ago.
    is_supervisor_dead: bool,
}

/// Withholds new hooks until approval, and holds the automatic merges of all lanes, if guarded settings
/// changed since the run's guard recorded them. `current` is none for unreadable settings. Returns a note
/// about new hooks, and whether any lane was newly held.
fn hold_if_changed_since_start(
    project: &Project,
    run: &GuardedRun<'_>,
    guard_dir: &Path,
    current: Option<&GuardedSettings>,
) -> Result<(Option<String>, bool), Error> {
    let record = GitGuardRecord::load_if_exists(&Layout::git_guard_record(guard_dir)).ok().flatten();
    let Some(before) = record.and_then(|record| record.settings) else { return Ok((None, false)) };
    let Some(changed) = describe_changes(project, &before, current) else { return Ok((None, false)) };
    let mut new_lines = current.map_or_else(Vec::new, |current| current.hook_lines.clone());
    new_lines.retain(|line| !before.hook_lines.contains(line));
    let mut holds_merges = false;
    let hook_note = (!new_lines.is_empty()).then(|| "new hooks run only after: git proq approve".to_owned());
    if hook_note.is_some() {
        withheld_hooks::withhold_hooks(&project.store, new_lines)?;
    }
    let is_held =
        |lane: &LaneRecord| lane.auto_merge_refusal.as_ref().is_some_and(|refused| refused.is_refusal_final);
    for lane in project
        .owned_lanes()?
        .iter()
        .filter(|lane| lane.auto_merge && !lane.status.landing.is_closed() && !is_held(lane))
    {
        let name = &lane.name;
        let run_label = if name == run.lane { "it".to_owned() } else { format!("lane '{}'", run.lane) };
        let period = if run.is_supervisor_dead {
            format!("since {run_label} began")
        } else {
            format!("while {run_label} ran")
        };
        let reason = format!(
            "{period}, the agent or someone else changed {changed}; to merge it: git proq merge {name}"
        );
        auto_merge::hold_auto_merge(project, lane, &reason)?;
        holds_merges = true;
    }
    Ok((hook_note, holds_merges))
}

/// Returns the list of settings, hooks and files that changed since a run started, as text for a message;
/// none when nothing changed. Unreadable settings count as changed.
fn describe_changes(
    project: &Project,
    before: &GuardedSettings,
    current: Option<&GuardedSettings>,
) -> Option<String> {
    let Some(current) = current else { return Some("settings, which cannot be read".to_owned()) };
    // A record of another version of git-proq contains other values.
    let (Some(old_file), Some(new_file)) = (&before.settings_file, &current.settings_file) else {
        return None;
    };
    let mut values = current.fingerprints.clone();
    if !project.is_same_settings_file(old_file, new_file).unwrap_or(false) {
        values.insert("file proq.toml".to_owned(), String::new());
    }
    list_changed_settings(&before.fingerprints, &values)
}
