//! Health check of the lane pool: which folders of landed lanes in the trash can be reused, and why others
//! cannot.

use proq_base::lane_name::LaneName;
use proq_store::paths::layout::Layout;

use super::check_context::CheckContext;
use super::finding::Finding;
use crate::lane::removal::trash_contents::describe_waiting_folders;
use crate::lane::worktree::pool::{PoolForecast, pool_forecast};

/// Returns the lanes whose folders can be reused, and findings about the pool and the trash. Does not measure
/// the trash: that would read the metadata of each file in it.
pub(super) fn check_pool(context: &CheckContext<'_>) -> (Vec<LaneName>, Vec<Finding>) {
    let mut out = Vec::new();
    let PoolForecast { available: waiting, unavailable: unfit, disabled: unused } =
        pool_forecast(context.project).unwrap_or_else(|e| {
            out.push(Finding::info("pool", "trash", format!("no folder can be reused: {e}")));
            PoolForecast::default()
        });
    if !unused.is_empty() {
        let folders = match unused.as_slice() {
            [name] => format!("the folder of merged lane '{name}' is"),
            all => format!("the folders of {} merged lanes are", all.len()),
        };
        let message = format!("{folders} not reused, because pool.size is 0");
        let help = "git config proq.pool.size 2";
        out.push(Finding::info("pool", "pool.size", message).with_help(help));
    }
    for (lane, reason) in &unfit {
        let message = format!("the next lane cannot reuse the folder of merged lane '{lane}': {reason}");
        out.push(Finding::info("pool", format!("lane '{lane}'"), message));
    }
    let count = Layout::entry_names(&context.project.store.layout().trash()).len();
    if count > 0 {
        let lanes = if count == 1 { "1 removed lane".to_owned() } else { format!("{count} removed lanes") };
        let message = format!("in the trash: {lanes}{}", describe_waiting_folders(&waiting));
        out.push(Finding::info("trash-held", "trash", message).with_help("git proq gc --dry-run"));
    }
    (waiting, out)
}
