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

/// The beginnings of keys that say what may land, or what runs then.
const OF_LANDINGS: &[&str] = &["agent.gate", "agents", "hook.", "merge.", "verify."];

/// The settings of git-proq that are the user's own and say what may land, the `proq.toml` of the main checkout, the hooks of git-proq,
/// and those of git.
///
/// # Errors
/// When the commit of the main checkout cannot be read.
pub(super) fn own_settings(project: &Project, layers: &Layers) -> Result<OwnSettings, lane::Error> {
    let hash = |text: &str| {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    };
    let says = |key: &str| OF_LANDINGS.iter().any(|begin| key.starts_with(begin));
    let own = layers.own().filter(|(key, _)| says(key));
    let mut all: BTreeMap<String, String> =
        own.map(|(key, text)| (format!("setting proq.{}", in_git(key)), hash(&text))).collect();
    let of_hooks = |name: &str| name.starts_with("hook ") || name == "setting core.hookspath";
    all.extend(shared_settings(project).into_iter().filter(|(name, _)| of_hooks(name)));
    for entry in std::fs::read_dir(project.store.layout().hooks()).into_iter().flatten().flatten() {
        if let Ok(meta) = entry.path().metadata() {
            let is = format!("{} {}.{} {:o}", meta.size(), meta.mtime(), meta.mtime_nsec(), meta.mode());
            all.insert(format!("hook proq/hooks/{}", entry.file_name().to_string_lossy()), is);
        }
    }
    let file = Some(project.settings_file(layers)?);
    Ok(OwnSettings { hook_lines: event::own_hook_lines(layers), all, file })
}

/// A key as git's configuration has it.
fn in_git(key: String) -> String {
    Key::find(&key).map_or(key, Key::in_git)
}

/// Draws the consequences of what changed since a run of lane `of`, whose fence this is, began, and since those began whose fences
/// are there beside it: a run that began after a change knows nothing of it. Returns what there is to add to a sentence about the first.
///
/// # Errors
/// When that cannot be written: the fence has to stay until it is.
pub(super) fn hold_back(project: &Project, of: &str, fence: &Path) -> Result<Option<String>, Error> {
    let layers =
        Repo::discover(project.repo.home()).ok().and_then(|repo| Project::layers_of(Some(&repo)).ok());
    let now = layers.and_then(|layers| own_settings(project, &layers).ok());
    let (said, _) = hold_back_since(project, &Run { of, is_dead: false }, fence, now.as_ref())?;
    let layout = project.store.layout();
    for name in layout.names_in("fences") {
        let Some((other, _)) = name.rsplit_once('-').filter(|(other, _)| *other != of) else { continue };
        let fence = layout.folder_of("fences", &name);
        let runs = project.store.locks().is_held(&LockName::Run(other.to_owned()))?;
        let run = Run { of: other, is_dead: !runs };
        let (_, held) = hold_back_since(project, &run, &fence, now.as_ref())?;
        if let (false, true, Some(now)) = (runs, held, &now) {
            forget_before(&fence, now);
        }
    }
    Ok(said)
}

/// Nobody ends the run of a fence whose supervisor was killed: what changed until now has had its consequences.
fn forget_before(fence: &Path, now: &OwnSettings) {
    let path = Layout::fence_record(fence);
    if let Ok(Some(mut record)) = FenceRecord::find(&path)
        && record.own.as_ref().is_some_and(|before| before != now)
    {
        record.own = Some(now.clone());
        // Without it they are drawn once more.
        drop(record.save(&path));
    }
}

/// A run since whose beginning settings are compared.
struct Run<'a> {
    /// Its lane.
    of: &'a str,
    /// Whether its supervisor was killed, so that it may have ended long ago.
    is_dead: bool,
}

/// Draws the consequences of what changed since a run, whose fence this is, began: hooks that are new wait for an approval, and lanes
/// that would land by themselves for a person. Returns what there is to add to a sentence about the run, and whether a lane waits by
/// that.
fn hold_back_since(
    project: &Project,
    run: &Run<'_>,
    fence: &Path,
    now: Option<&OwnSettings>,
) -> Result<(Option<String>, bool), Error> {
    let record = FenceRecord::find(&Layout::fence_record(fence)).ok().flatten();
    let Some(before) = record.and_then(|record| record.own) else { return Ok((None, false)) };
    let Some(changed) = changed(project, &before, now) else { return Ok((None, false)) };
    let mut lines = now.map_or_else(Vec::new, |now| now.hook_lines.clone());
    lines.retain(|line| !before.hook_lines.contains(line));
    let mut holds = false;
    let said =
        (!lines.is_empty()).then(|| "hooks that are new run once you allow it: git proq approve".to_owned());
    if said.is_some() {
        event::hold_hooks(&project.store, lines)?;
    }
    let waits = |lane: &LaneRecord| lane.refused.as_ref().is_some_and(|refused| refused.lasting);
    for lane in
        project.lanes()?.iter().filter(|lane| lane.auto_merge && !lane.state.is_over() && !waits(lane))
    {
        let name = &lane.name;
        let whose = if name == run.of { "it".to_owned() } else { format!("lane '{}'", run.of) };
        let since = if run.is_dead { format!("since {whose} began") } else { format!("while {whose} ran") };
        let why = format!("{since}, it or somebody else changed {changed}; git proq merge {name} lands it");
        lane::hold_landing(project, lane, &why)?;
        holds = true;
    }
    Ok((said, holds))
}

/// Names the settings, hooks and files that differ between the beginning of a run and now, as a list in a sentence; none when nothing
/// does. Settings that cannot be read now count as changed.
fn changed(project: &Project, before: &OwnSettings, now: Option<&OwnSettings>) -> Option<String> {
    let Some(now) = now else { return Some("settings, which cannot be read".to_owned()) };
    // Another program has noted other things.
    let (Some(then), Some(file)) = (&before.file, &now.file) else { return None };
    let mut all = now.all.clone();
    if !project.is_same_settings_file(then, file).unwrap_or(false) {
        all.insert("file proq.toml".to_owned(), String::new());
    }
    changed_settings(&before.all, &all)
}
