//! Error about a location of lanes that cannot be used, with its hints.

use std::path::PathBuf;

use proq_base::config::lane_location::DEFAULT_LANE_LOCATION;
use proq_base::explain::Explain;

/// Error about a setting `lane.location` that cannot be used.
#[derive(Debug, thiserror::Error, Explain)]
#[hint("put lanes beside the main checkout: git config proq.lane.location '../{{repo}}.{{lane}}'")]
#[hint("or inside it, where git ignores them: git config proq.lane.location '{DEFAULT_LANE_LOCATION}'")]
pub enum LocationError {
    /// The location is in a git directory.
    #[error("cannot create lanes in {}: lane.location is inside a git directory", folder.display())]
    InGitDirectory {
        /// Folder that would contain the lanes.
        folder: PathBuf,
    },
    /// The location is in a checkout, where git would take lanes for its own files.
    #[error("cannot create lanes in {}: lane.location is inside the checkout {}", folder.display(), checkout.display())]
    InCheckout {
        /// Folder that would contain the lanes.
        folder: PathBuf,
        /// Top folder of the checkout.
        checkout: PathBuf,
    },
    /// The location starts with `~`, and the home folder is unknown.
    #[error("cannot use lane.location: it begins with ~, and HOME is not set")]
    NoHome,
}
