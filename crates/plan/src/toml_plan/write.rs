//! Writer of plans in TOML.

use serde::Serialize;

use crate::plan::Plan;

/// Version of the format.
pub(crate) const FORMAT_VERSION: i64 = 1;

/// A plan with the version of the format, as it is written.
#[derive(Serialize)]
struct TomlPlan<'p> {
    format: i64,
    #[serde(flatten)]
    plan: &'p Plan,
}

/// Returns a plan as TOML that reads as the same plan. The format has no review level or progress of a task,
/// so those are omitted.
pub fn plan_to_toml(plan: &Plan) -> String {
    toml::to_string_pretty(&TomlPlan { format: FORMAT_VERSION, plan }).unwrap_or_default()
}
