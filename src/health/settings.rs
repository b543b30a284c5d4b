//! Owns checking what the user chose: settings that nobody knows, and which agents are installed.

use std::path::Path;

use super::finding::Finding;
use crate::agent::profiles;
use crate::config::{Layers, Notify};
use crate::event;
use crate::lane::Project;
use crate::process;

/// Settings that have no effect.
pub(super) fn unknown(layers: &Layers) -> Vec<Finding> {
    let found = layers.unknown().iter().map(|key| {
        let message = format!("setting {key} is unknown and has no effect");
        Finding::warning("setting", key.clone(), message).help("git proq config list")
    });
    found.collect()
}

/// Notices and sounds that were asked for and that nothing here can make.
pub(super) fn silent(notify: &Notify, dir: &Path) -> Vec<Finding> {
    let missing = event::without_program(notify, dir).into_iter().map(|(setting, wanted)| {
        let message = format!("{setting} is set, and no program for it is installed: {wanted}");
        Finding::warning("setting", setting, message)
    });
    missing.collect()
}

/// The known agents that are on `PATH`, and a remark when none is, or when what the user says of them cannot be used.
pub(super) fn agents(dir: &Path) -> (Vec<String>, Option<Finding>) {
    // Only the user's own file may say which agents there are.
    let layers = Project::layers_of(None).unwrap_or_default();
    let known = match profiles(&layers) {
        Ok(known) => known,
        Err(e) => return (Vec::new(), Some(Finding::warning("agents", "agents", e.to_string()))),
    };
    let installed: Vec<String> = known
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
