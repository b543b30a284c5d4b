//! Owns saying which folders of landed lanes wait in the trash for new ones, and why the next lane can get one of them not.

use super::finding::Finding;
use super::scene::Scene;
use crate::lane::{Prospects, prospects, whose};

/// The folders that wait. How much room the trash takes is not looked for: each file of it would have to be looked at.
pub(super) fn look(scene: &Scene<'_>) -> (Vec<String>, Vec<Finding>) {
    let mut out = Vec::new();
    let Prospects { waiting, unfit, unused } = prospects(scene.project).unwrap_or_else(|e| {
        out.push(Finding::info("pool", "trash", format!("no folder can be used again: {e}")));
        Prospects::default()
    });
    if !unused.is_empty() {
        let folders = match unused.as_slice() {
            [one] => format!("the folder of landed lane '{one}' is"),
            all => format!("the folders of {} landed lanes are", all.len()),
        };
        let message = format!("{folders} not used again, since pool.size is 0");
        let help = "git config proq.pool.size 2";
        out.push(Finding::info("pool", "pool.size", message).help(help));
    }
    for (lane, why) in &unfit {
        let message = format!("the next lane cannot be given the folder of landed lane '{lane}': {why}");
        out.push(Finding::info("pool", format!("lane '{lane}'"), message));
    }
    let count = scene.project.store.layout().names_in("trash").len();
    if count > 0 {
        let lanes = if count == 1 { "1 removed lane".to_owned() } else { format!("{count} removed lanes") };
        let message = format!("in the trash for now: {lanes}{}; how much room that takes", whose(&waiting));
        out.push(Finding::info("trash-held", "trash", message).help("git proq gc --dry-run"));
    }
    (waiting, out)
}
