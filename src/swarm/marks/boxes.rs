//! Owns ticking the box of an item in Markdown.

use super::super::Place;
use super::super::node::Places;
use super::Edit;
use crate::markdown::Line;

const OPEN: &str = "[ ]";

/// Ticks the box of the item whose text begins at this place.
pub(super) fn tick(places: &Places<'_>, place: &Place) -> Option<Vec<Edit>> {
    let at = places.byte(&Place { column: 1, ..place.clone() });
    let text = places.text().get(at..)?.split('\n').next().unwrap_or_default();
    let item = Line { at, text }.item().filter(|item| item.ticked == Some(false))?;
    // Nothing before it has a bracket: the mark of an item is a dash or a number.
    let open = at + text.get(..item.at)?.find(OPEN)? + 1;
    Some(vec![Edit { at: open..open + 1, text: "x".to_owned() }])
}
