//! Owns what a list says of a lane's conflicts: as words for people, as fields for programs.

use serde::Serialize;

use super::ui;
use crate::merge::Forecast;

/// What a lane's committed work would conflict with, as far as that is known without git.
#[derive(Serialize)]
pub(super) struct Conflicts {
    /// Its base; none when that is not known.
    pub(super) base: Option<bool>,
    /// Other lanes of that base.
    pub(super) lanes: Vec<String>,
    /// Whether there is nothing that only git could tell.
    complete: bool,
}

impl Conflicts {
    /// What a lane conflicts with by a forecast; none when it has no commits to compare.
    pub(super) fn of(forecast: Option<&Forecast>, lane: &str) -> Option<Conflicts> {
        let forecast = forecast?;
        let with_base = forecast.pairs.iter().find(|p| p.with_base && p.theirs == lane)?;
        let base = with_base.result.is_known().then(|| with_base.result.is_conflict());
        let mut lanes = Vec::new();
        let mut complete = base.is_some();
        for pair in forecast.pairs.iter().filter(|p| !p.with_base) {
            let other = match (pair.ours == lane, pair.theirs == lane) {
                (true, _) => &pair.theirs,
                (_, true) => &pair.ours,
                _ => continue,
            };
            complete &= pair.result.is_known();
            lanes.extend(pair.result.is_conflict().then(|| other.clone()));
        }
        Some(Conflicts { base, lanes, complete })
    }

    /// Whether it is known that it conflicts with neither its base nor any of these lanes.
    pub(super) fn get_along(&self, lanes: &[&str]) -> bool {
        self.base == Some(false)
            && self.complete
            && self.lanes.iter().all(|lane| !lanes.contains(&lane.as_str()))
    }

    /// In a few words: `base`, `2 lanes`, `base + 1 lane`; nothing where it may or may not conflict.
    pub(super) fn in_words(&self) -> String {
        let base = (self.base == Some(true)).then(|| "base".to_owned());
        let lanes = (!self.lanes.is_empty()).then(|| ui::count(self.lanes.len(), "lane"));
        let words: Vec<String> = base.into_iter().chain(lanes).collect();
        match (words.is_empty(), self.complete) {
            (true, true) => "-".to_owned(),
            _ => console::style(words.join(" + ")).yellow().to_string(),
        }
    }
}
