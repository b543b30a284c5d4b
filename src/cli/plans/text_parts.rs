//! Parts of texts about plans and batches: optional clauses, lists, counts and amounts.

use proq_base::money::NanoDollars;
use proq_plan::plan::BoxProgress;

/// Returns `before`, `text` and `after` as one text; empty if `text` is.
pub(crate) fn clause(before: &str, text: &str, after: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{before}{text}{after}") }
}

/// Joins items to a list: `a, b, c`.
pub(crate) fn comma_list(items: impl IntoIterator<Item = impl ToString>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// Formats the counts that are not zero, each with its word.
pub(crate) fn count_texts<const N: usize>(counts: [(usize, &str); N]) -> Vec<String> {
    counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect()
}

/// Formats an amount of US dollars to the cent.
pub(crate) fn dollars(amount: NanoDollars) -> String {
    format!("${:.2}", amount.to_dollars())
}

/// Formats the ticked checkboxes of a task as a suffix of its state; empty for a task without boxes.
pub(crate) fn boxes_suffix(boxes: Option<BoxProgress>) -> String {
    boxes.map(|boxes| format!(" {}/{}", boxes.done, boxes.total)).unwrap_or_default()
}
