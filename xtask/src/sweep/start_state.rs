//! Creation of a start state in a fixture.

use super::Outcome;
use super::fixture::Fixture;
use super::lost_contents::find_lost;
use crate::states::{State, written_lines};

/// Creates a state in an empty repository, with the lanes `one`, which makes the state's changes, and `two`.
/// Records the contents that must be found from now on.
pub(crate) fn create_state(fixture: &Fixture, state: &State) -> Outcome<()> {
    fixture.sh(&state.base())?;
    for lane in ["one", "two"] {
        fixture.proq_ok(&["spawn", "--empty", "-n", lane])?;
    }
    fixture.sh_in(&fixture.lane("one"), &state.lane())?;
    fixture.sh_in(
        &fixture.lane("two"),
        "echo two > two.txt; echo two > shared; git add -A; git commit -q -m two",
    )?;
    fixture.sh(&state.dirty())?;
    record_tokens(fixture, &[state.base(), state.lane(), state.dirty()].concat())
}

/// Records the contents written by a script that can be found now. Overwritten ones are gone.
pub(crate) fn record_tokens(fixture: &Fixture, script: &str) -> Outcome<()> {
    let mut lines = written_lines(script);
    let lost = find_lost(fixture, &lines)?;
    lines.retain(|line| !lost.iter().any(|gone| gone == line.trim_end()));
    fixture.add_tokens(&lines);
    Ok(())
}
