//! Owns noticing that the settings of git-proq changed while a run lasted. Its lane does not land by itself then: the checks that it
//! would have to pass may be what changed. Hooks that came run only once they are approved.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::Error;
use crate::config::{Key, Layers};
use crate::event;
use crate::git::Repo;
use crate::lane::{self, Project, changed_settings, shared_settings};
use crate::store::records::{FenceRecord, LaneRecord, OwnSettings};
use crate::store::{Layout, LockName, Record};

/// The settings of git-proq that are the user's own, its hooks, and those of git.
pub(super) fn own_settings(project: &Project, layers: &Layers) -> OwnSettings {
    let hash = |text: &str| {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    };
    let mut all: BTreeMap<String, String> =
        layers.own().map(|(key, text)| (format!("setting proq.{}", in_git(key)), hash(&text))).collect();
    all.extend(shared_settings(project).into_iter().filter(|(name, _)| name.starts_with("hook ")));
    for entry in std::fs::read_dir(project.store.layout().hooks()).into_iter().flatten().flatten() {
        if let Ok(meta) = entry.path().metadata() {
            let is = format!("{} {}.{} {:o}", meta.size(), meta.mtime(), meta.mtime_nsec(), meta.mode());
            all.insert(format!("hook proq/hooks/{}", entry.file_name().to_string_lossy()), is);
        }
    }
    // What is edited there counts at once.
    if let Ok(Some(edited)) = project.edited_settings_file() {
        all.insert("file proq.toml".to_owned(), hash(&String::from_utf8_lossy(&edited)));
    }
    OwnSettings { hook_lines: event::own_hook_lines(layers), all }
}

/// A key as git's configuration has it.
fn in_git(key: String) -> String {
    Key::find(&key).map_or(key, Key::in_git)
}

/// Draws the consequences of what changed since a run of lane `of`, whose fence this is, began, and since those began that go on beside
/// it: a run that began after a change knows nothing of it. Returns what there is to add to a sentence about the first.
///
/// # Errors
/// When that cannot be written: the fence has to stay until it is.
pub(super) fn hold_back(project: &Project, of: &str, fence: &Path) -> Result<Option<String>, Error> {
    let layers =
        Repo::discover(project.repo.home()).ok().and_then(|repo| Project::layers_of(Some(&repo)).ok());
    let now = layers.map(|layers| own_settings(project, &layers));
    let said = hold_back_since(project, of, fence, now.as_ref())?;
    let layout = project.store.layout();
    for name in layout.names_in("fences") {
        let Some((other, _)) = name.rsplit_once('-').filter(|(other, _)| *other != of) else { continue };
        if project.store.locks().is_held(&LockName::Run(other.to_owned()))? {
            drop(hold_back_since(project, other, &layout.folder_of("fences", &name), now.as_ref())?);
        }
    }
    Ok(said)
}

/// Draws the consequences of what changed since a run of lane `of`, whose fence this is, began: hooks that are new wait for an approval,
/// and lanes that would land by themselves for a person.
fn hold_back_since(
    project: &Project,
    of: &str,
    fence: &Path,
    now: Option<&OwnSettings>,
) -> Result<Option<String>, Error> {
    let record = FenceRecord::find(&Layout::fence_record(fence)).ok().flatten();
    let Some(before) = record.and_then(|record| record.own) else { return Ok(None) };
    let changed = match now {
        Some(now) => changed_settings(&before.all, &now.all),
        None => Some("settings, which cannot be read".to_owned()),
    };
    let Some(changed) = changed else { return Ok(None) };
    let mut lines = now.map_or_else(Vec::new, |now| now.hook_lines.clone());
    lines.retain(|line| !before.hook_lines.contains(line));
    let held = !lines.is_empty();
    if held {
        event::hold_hooks(&project.store, lines)?;
    }
    let waits = |lane: &LaneRecord| lane.refused.as_ref().is_some_and(|refused| refused.lasting);
    for lane in
        project.lanes()?.iter().filter(|lane| lane.auto_merge && !lane.state.is_over() && !waits(lane))
    {
        let (name, whose) =
            (&lane.name, if lane.name == of { "it".to_owned() } else { format!("lane '{of}'") });
        let why = format!(
            "while {whose} ran, it or somebody else changed {changed}; git proq merge {name} lands it"
        );
        lane::hold_landing(project, lane, &why)?;
    }
    Ok(held.then(|| "hooks that are new run once you allow it: git proq approve".to_owned()))
}
