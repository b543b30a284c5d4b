//! One short line about a repository, for a shell's prompt or an agent's status line.

use std::collections::BTreeMap;
use std::path::Path;

use proq_base::diagnostics::Listener;
use proq_base::lane_name::LaneName;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;
use serde::Serialize;

use crate::lane::{Error, Project};
use crate::preview::main_checkout::preview_status;

/// Lanes of a repository in short, from their records alone: no lock is taken and no git is started.
#[derive(Debug, Default, Serialize)]
pub struct StatusLine {
    /// Name of the lane in whose worktree the current folder is; none outside of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneName>,
    /// Recorded state of that lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<LaneState>,
    /// Name of the lane that the main checkout shows; none without a preview.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<LaneName>,
    /// Number of lanes by the word of their recorded state.
    pub lanes: BTreeMap<String, usize>,
}

impl StatusLine {
    /// Reads the line of the repository that contains `dir`.
    ///
    /// # Errors
    /// Fails outside of repositories, and when settings or records cannot be read.
    pub fn load(dir: &Path) -> Result<StatusLine, Error> {
        let project = Project::open_to_read(dir, Listener::silent())?;
        let lanes = project.load_lanes(&|_| {})?;
        let here = project.repo.current_worktree();
        let own =
            lanes.iter().find(|lane| lane.branch().is_some() && here.is_some_and(|dir| dir == lane.path));
        let preview = preview_status(&project).ok().flatten().filter(|preview| preview.is_shown);
        let mut counts = BTreeMap::new();
        for lane in &lanes {
            *counts.entry(lane.state().to_string()).or_default() += 1;
        }
        Ok(StatusLine {
            lane: own.map(|lane| lane.name.clone()),
            state: own.map(AnyLane::state),
            preview: preview.map(|preview| preview.lane),
            lanes: counts,
        })
    }

    /// Formats the line, such as `payments done | 2 running, 1 conflict`; empty without lanes.
    #[must_use]
    pub fn text(&self) -> String {
        let count = |state: &LaneState| Some(format!("{} {state}", self.lanes.get(&state.to_string())?));
        let is_shown = |state: &&LaneState| !state.is_closed() && **state != LaneState::NoChange;
        let shown_states = LaneState::IN_DISPLAY_ORDER.iter().filter(is_shown);
        let counts: Vec<String> = shown_states.filter_map(count).collect();
        let own = self.lane.as_ref().zip(self.state).map(|(lane, state)| format!("{lane} {state}"));
        let preview = self.preview.as_ref().map(|lane| format!("preview {lane}"));
        let parts =
            own.into_iter().chain(preview).chain(Some(counts.join(", ")).filter(|text| !text.is_empty()));
        parts.collect::<Vec<_>>().join(" | ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_names_lane_preview_and_states() {
        let lanes = [("running", 2), ("conflict", 1), ("landed", 4)];
        let line = StatusLine {
            lane: LaneName::parse("pay").ok(),
            state: Some(LaneState::Done),
            preview: LaneName::parse("docs").ok(),
            lanes: lanes.map(|(state, count)| (state.to_owned(), count)).into(),
        };
        assert_eq!(line.text(), "pay done | preview docs | 2 running, 1 conflict");
        assert_eq!(StatusLine::default().text(), "");
    }
}
