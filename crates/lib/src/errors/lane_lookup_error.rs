//! Errors of a text that names no present lane.

use proq_base::explain::Explain;
use proq_base::lane_name::LaneName;

/// Maximum number of lanes that a message names.
const MAX_LANES_LISTED: usize = 8;

/// Reason why a text names no present lane, where more is known than that there is none.
#[derive(Debug, thiserror::Error, Explain)]
pub enum LaneLookupError {
    /// The names of several lanes begin with the text.
    #[error("lane '{name}' is ambiguous; it can be {}", list_lanes(lanes))]
    #[hint("see all lanes: git proq list")]
    Ambiguous {
        /// The given text.
        name: String,
        /// The lanes whose names begin with it, sorted.
        lanes: Vec<LaneName>,
    },
}

/// Lists the names of lanes, without those beyond [`MAX_LANES_LISTED`].
fn list_lanes(lanes: &[LaneName]) -> String {
    let listed = lanes.iter().take(MAX_LANES_LISTED).map(LaneName::as_str).collect::<Vec<_>>().join(", ");
    match lanes.len().saturating_sub(MAX_LANES_LISTED) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}
