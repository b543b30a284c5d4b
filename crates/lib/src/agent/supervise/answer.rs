//! Answer of a read-only run, which is its only result, in a file next to the run's record.

use proq_store::Store;
use proq_store::base::atomic::write as write_atomically;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::AnyLane;
use proq_stream::base::json::MAX_TEXT_BYTES;
use proq_stream::summary::Summary;

use crate::agent::Error;

/// Maximum length of a saved answer in bytes.
pub(crate) const MAX_ANSWER_LEN: usize = MAX_TEXT_BYTES;

/// How much of a run's answer was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SavedAnswer {
    Complete,
    /// The answer was too long, so only a part of it is saved.
    Truncated,
    /// The agent gave no answer.
    Missing,
}

/// Saves the agent's last text. `is_structured` is true for an agent that writes events, false for plain
/// lines. A text of white space is no answer.
///
/// # Errors
/// Fails when the file cannot be written.
pub(crate) fn save_answer(
    store: &Store,
    lane: &AnyLane,
    run_number: RunNumber,
    summary: &Summary,
    is_structured: bool,
) -> Result<SavedAnswer, Error> {
    let Some(text) = summary.answer.as_deref().map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(SavedAnswer::Missing);
    };
    let file = store.layout().run_answer(&lane.name, run_number);
    write_atomically(&file, format!("{text}\n").as_bytes())?;
    // The reader of an agent's output cuts a longer text at the limit; of plain lines it keeps at least half
    // of that.
    let max_len = if is_structured { MAX_TEXT_BYTES } else { MAX_TEXT_BYTES / 2 };
    Ok(if text.len() < max_len { SavedAnswer::Complete } else { SavedAnswer::Truncated })
}
