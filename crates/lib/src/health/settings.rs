//! Health checks of the user's choices: unknown settings, missing notification programs, and installed
//! agents.

use std::path::Path;

use proq_base::config::layers::Layers;
use proq_base::config::settings::NotifySettings;
use proq_base::process::find_executable;

use super::finding::Finding;
use crate::agent::profiles::installed_programs::find_installed_without_start;
use crate::agent::profiles::profile::Profile;
use crate::agent::profiles::profile_catalog::load_profiles;
use crate::event::notify;
use crate::lane::Project;

/// Reports settings that are unknown and have no effect.
pub(super) fn unknown_settings(layers: &Layers) -> Vec<Finding> {
    let found = layers.listed_unknown_keys().iter().map(|key| {
        let message = format!("setting {key} is unknown and has no effect");
        Finding::warning("setting", key.clone(), message).with_help("git proq config list")
    });
    found.collect()
}

/// Reports notifications and sounds that are enabled but for which no program is installed.
pub(super) fn missing_notifiers(notify: &NotifySettings, dir: &Path) -> Vec<Finding> {
    let missing = notify::settings_without_program(notify, dir).into_iter().map(|(setting, wanted)| {
        let message = format!("{setting} is set, and no program for it is installed: {wanted}");
        Finding::warning("setting", setting, message)
    });
    missing.collect()
}

/// Returns the known agents on `PATH`, and findings: there is none, the user's agent profiles are invalid, or
/// a profile was not tested with the installed version, as far as that is known without starting an agent.
pub(super) fn installed_agents(dir: &Path) -> (Vec<String>, Vec<Finding>) {
    // Only the user's own file may define agents.
    let layers = Project::load_layers(None).unwrap_or_default();
    let agent_profiles = match load_profiles(&layers) {
        Ok(known) => known,
        Err(e) => return (Vec::new(), vec![Finding::warning("agents", "agents", e.to_string())]),
    };
    let is_installed = |profile: &Profile| find_executable::find_executable(&profile.program, dir).is_ok();
    let installed: Vec<(&String, &Profile)> =
        agent_profiles.iter().filter(|(_, profile)| is_installed(profile)).collect();
    let mut findings: Vec<Finding> =
        installed.iter().filter_map(|(name, profile)| untested_version(name, profile, dir)).collect();
    findings.extend(installed.is_empty().then(|| {
        let message = "no known agent is on PATH; any other program works too";
        Finding::info("agents", "agents", message).with_help("git proq agents")
    }));
    (installed.into_iter().map(|(name, _)| name.clone()).collect(), findings)
}

/// Reports that a profile was tested with other versions than the installed one.
fn untested_version(name: &str, profile: &Profile, dir: &Path) -> Option<Finding> {
    let version = find_installed_without_start(profile, dir)?.version?;
    let tested = &profile.tested_versions;
    if tested.is_empty() || tested.contains(&version) {
        return None;
    }
    let message = format!("{name} {version} is installed; git-proq was tested with {}", tested.join(", "));
    Some(Finding::info("agents", name, message).with_help("git proq agents"))
}
