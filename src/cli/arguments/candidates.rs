//! Completion candidates for arguments: lanes, groups, batches, agents, branches and snapshots.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap_complete::engine::CompletionCandidate;
use proq_base::config::keys::KEYS;
use proq_base::diagnostics::Listener;
use proq_base::process::find_executable::find_executable;
use proq_lib::agent::profiles::profile_catalog::load_profiles;
use proq_lib::lane::Project;
use proq_lib::lane::inspection::commit_subject::title_to_choose_by;
use proq_lib::ops::operation_log;
use proq_lib::types::{AnyLane, LaneRecord};

/// Most operations that are offered, the newest ones.
const MAX_OPERATIONS_OFFERED: usize = 50;

/// Completes the ids of batches, newest first.
pub(crate) fn batch_ids(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let batches = open_project_of_typed_line()
        .map(|project| proq_lib::swarm::batch::create::list_batches(&project, false))
        .unwrap_or_default();
    let matching = batches.into_iter().rev().filter(|batch| batch.id.as_str().starts_with(typed.as_ref()));
    matching
        .map(|batch| CompletionCandidate::new(batch.id.to_string()).help(Some(batch.summary.into())))
        .collect()
}

/// Completes the names of owned lanes, which can land.
pub(crate) fn owned_lane_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(project) = open_project_of_typed_line() else { return Vec::new() };
    let lanes = project.owned_lanes().unwrap_or_default();
    lane_candidates(&project, lanes.into_iter().map(LaneRecord::into_any), typed)
}

/// Completes the names of all lanes.
pub(crate) fn any_lane_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(project) = open_project_of_typed_line() else { return Vec::new() };
    let lanes = project.all_lanes().unwrap_or_default();
    lane_candidates(&project, lanes.into_iter(), typed)
}

/// Returns the lanes whose names start with `typed` as candidates, with their titles as help.
fn lane_candidates(
    project: &Project,
    lanes: impl Iterator<Item = AnyLane>,
    typed: &OsStr,
) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    lanes
        .filter(|lane| lane.name.as_str().starts_with(typed.as_ref()))
        .map(|lane| {
            let title = (lane.name != lane.title.as_str()).then(|| title_to_choose_by(project, &lane).into());
            CompletionCandidate::new(lane.name.as_str()).help(title)
        })
        .collect()
}

/// Completes the names of owned lanes, which can land, and of groups.
pub(crate) fn owned_lane_and_group_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    group_names(typed).into_iter().chain(owned_lane_names(typed)).collect()
}

/// Completes the names of all lanes, and of groups.
pub(crate) fn any_lane_and_group_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    group_names(typed).into_iter().chain(any_lane_names(typed)).collect()
}

/// Completes the names of groups, with the title of one of their lanes as help.
fn group_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let lanes =
        open_project_of_typed_line().and_then(|project| project.owned_lanes().ok()).unwrap_or_default();
    let groups: BTreeMap<_, _> =
        lanes.into_iter().filter_map(|lane| Some((lane.group?, lane.title))).collect();
    let groups = groups.into_iter().filter(|(group, _)| group.starts_with(&*typed.to_string_lossy()));
    groups.map(|(group, title)| CompletionCandidate::new(group).help(Some(title.into()))).collect()
}

/// Completes the names of settings, with what they do as help.
pub(crate) fn setting_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let keys = KEYS.iter().filter(|key| key.name.starts_with(typed.as_ref()));
    keys.map(|key| CompletionCandidate::new(key.name).help(Some(key.summary.into()))).collect()
}

/// Completes the ids of snapshots, newest first.
pub(crate) fn snap_ids(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(project) = open_project_of_typed_line() else { return Vec::new() };
    let typed = typed.to_string_lossy();
    let ids = project.snap_ids().unwrap_or_default();
    ids.into_iter()
        .rev()
        .filter(|id| id.starts_with(typed.as_ref()))
        .filter_map(|id| project.load_snap(&id).ok())
        .map(|snap| CompletionCandidate::new(snap.id).help(Some(snap.reason.into())))
        .collect()
}

/// Completes the numbers of operations, newest first, with their commands.
pub(crate) fn operation_numbers(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(project) = open_project_of_typed_line() else { return Vec::new() };
    let typed = typed.to_string_lossy();
    let list = operation_log::list(&project, Some(MAX_OPERATIONS_OFFERED));
    let candidates = list
        .operations
        .into_iter()
        .map(|row| CompletionCandidate::new(row.operation.to_string()).help(Some(row.command.into())));
    candidates.filter(|candidate| candidate.get_value().to_string_lossy().starts_with(&*typed)).collect()
}

/// Completes the names of known agents that are installed.
pub(crate) fn installed_agent_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Ok(dir) = std::env::current_dir() else { return Vec::new() };
    let typed = typed.to_string_lossy();
    let layers = Project::load_layers(None).unwrap_or_default();
    load_profiles(&layers)
        .unwrap_or_default()
        .into_iter()
        .filter(|(name, profile)| {
            name.starts_with(typed.as_ref()) && find_executable(&profile.program, &dir).is_ok()
        })
        .map(|(name, profile)| CompletionCandidate::new(name).help(Some(profile.about.into())))
        .collect()
}

/// Returns the name of an agent for an example: of one that is installed, if there is one.
pub(crate) fn agent_for_hint() -> String {
    let installed = installed_agent_names(OsStr::new("")).into_iter().next();
    installed.map_or_else(|| "claude".to_owned(), |agent| agent.get_value().to_string_lossy().into_owned())
}

/// Returns whether a word names an agent: a known one, or a program on `PATH`.
pub(crate) fn is_agent(word: &str) -> bool {
    let layers = Project::load_layers(None).unwrap_or_default();
    let is_program = |dir: PathBuf| find_executable(word, &dir).is_ok();
    load_profiles(&layers).unwrap_or_default().contains_key(word)
        || std::env::current_dir().is_ok_and(is_program)
}

/// Completes the names of the user's branches, without the branches of lanes.
pub(crate) fn user_branch_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(project) = open_project_of_typed_line() else { return Vec::new() };
    let typed = typed.to_string_lossy();
    let refs = project.repo.refs_with_prefix("refs/heads/").unwrap_or_default();
    refs.iter()
        .filter_map(|(name, _)| name.strip_prefix("refs/heads/"))
        .filter(|name| name.starts_with(typed.as_ref()) && !project.is_managed_branch(name))
        .map(CompletionCandidate::new)
        .collect()
}

/// Opens the repository that the command line to complete refers to: that of the shell's folder, or of its
/// `-C` options; `None` if there is none.
fn open_project_of_typed_line() -> Option<Project> {
    let typed: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").collect();
    let typed_dirs = typed.windows(2).filter(|pair| pair[0] == "-C").map(|pair| PathBuf::from(&pair[1]));
    let dir = typed_dirs.fold(std::env::current_dir().ok()?, |dir, next| dir.join(next));
    Project::open(&dir, Listener::silent()).ok()
}
