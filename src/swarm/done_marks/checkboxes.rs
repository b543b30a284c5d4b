//! Ticking the checkbox of a Markdown item.

use super::super::SourceLocation;
use super::super::source_node::TextLocator;
use super::TextEdit;
use crate::markdown::Line;

const UNTICKED_BOX: &str = "[ ]";

/// Returns the edit that ticks the box of the item whose text starts at `location`; none where that is no
/// unticked item.
pub(super) fn tick_box(locator: &TextLocator<'_>, location: &SourceLocation) -> Option<Vec<TextEdit>> {
    let line_start = locator.byte_offset(&SourceLocation { column: 1, ..location.clone() });
    let text = locator.text().get(line_start..)?.split('\n').next().unwrap_or_default();
    let item = Line { offset: line_start, text }.item().filter(|item| item.ticked == Some(false))?;
    // No bracket comes before the box, because the mark of an item is a dash or a number.
    let tick_offset = line_start + text.get(..item.text_offset)?.find(UNTICKED_BOX)? + 1;
    Some(vec![TextEdit { range: tick_offset..tick_offset + 1, text: "x".to_owned() }])
}
