//! Owns checking what the user chose: settings that nobody knows, and which agents are installed.

use std::path::Path;

use super::finding::Finding;
use crate::agent::profiles;
use crate::config::Layers;
use crate::process;

/// Settings that have no effect.
pub(super) fn unknown(layers: &Layers) -> Vec<Finding> {
    let found = layers.unknown().iter().map(|key| {
        let message = format!("setting {key} is unknown and has no effect");
        Finding::warning("setting", key.clone(), message).help("git proq config list")
    });
    found.collect()
}

/// The known agents that are on `PATH`, and a remark when none is.
pub(super) fn agents(dir: &Path) -> (Vec<String>, Option<Finding>) {
    let installed: Vec<String> = profiles()
        .into_iter()
        .filter(|(_, profile)| process::find(&profile.program, dir).is_ok())
        .map(|(name, _)| name)
        .collect();
    let none = installed.is_empty().then(|| {
        let message = "no known agent is on PATH; any other program works too";
        Finding::info("agents", "agents", message).help("git proq agents")
    });
    (installed, none)
}
