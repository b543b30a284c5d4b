//! Owns the answer of a run that only looked: all that such a run comes to, in a file beside its record.

use super::Error;
use super::stream::{LONGEST_TEXT, Summary};
use crate::lane::Project;
use crate::store::records::AnyLane;
use crate::store::write_atomically;

/// No answer that is kept is longer.
pub(crate) const LONGEST: usize = LONGEST_TEXT;

/// What became of a run's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// All of it is kept.
    Whole,
    /// It was so long that only a part of it is kept.
    Part,
    /// There was none.
    Nothing,
}

/// Keeps what the agent said last, which it wrote as lines `for_machines` or as plain ones. White space alone is no answer.
///
/// # Errors
/// When it cannot be written.
pub(super) fn keep(
    project: &Project,
    lane: &AnyLane,
    attempt: u32,
    summary: &Summary,
    for_machines: bool,
) -> Result<Kept, Error> {
    let Some(text) = summary.answer.as_deref().map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(Kept::Nothing);
    };
    let file = project.store.layout().run_answer(&lane.name, attempt);
    write_atomically(&file, format!("{text}\n").as_bytes())?;
    // Who reads an agent's output cuts a longer text off there, and keeps no less than half of that of plain lines.
    let most = if for_machines { LONGEST_TEXT } else { LONGEST_TEXT / 2 };
    Ok(if text.len() < most { Kept::Whole } else { Kept::Part })
}
