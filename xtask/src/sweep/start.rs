//! Owns how a place gets into a start state.

use super::Outcome;
use super::place::Place;
use super::precious::lost;
use crate::states::{State, written};

/// Makes a state in an empty repository, with the lanes `one`, which does what the state says, and `two`. The contents that
/// somebody wrote and that are to be found are kept in mind.
pub(crate) fn make(place: &Place, state: &State) -> Outcome<()> {
    place.sh(&state.base())?;
    for lane in ["one", "two"] {
        place.proq_ok(&["spawn", "--empty", "-n", lane])?;
    }
    place.sh_in(&place.lane("one"), &state.lane())?;
    place.sh_in(
        &place.lane("two"),
        "echo two > two.txt; echo two > shared; git add -A; git commit -q -m two",
    )?;
    place.sh(&state.dirty())?;
    own(place, &[state.base(), state.lane(), state.dirty()].concat())
}

/// Takes note of those contents written by a script that are to be found now; what was written over is gone.
pub(crate) fn own(place: &Place, script: &str) -> Outcome<()> {
    let mut lines = written(script);
    let lost = lost(place, &lines)?;
    lines.retain(|line| !lost.iter().any(|gone| gone == line.trim_end()));
    place.keep_lines(&lines);
    Ok(())
}
