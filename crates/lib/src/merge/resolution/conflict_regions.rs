//! Parser for files with conflict markers, and comparison of such a file with its resolution. It works on
//! lines only.
//!
//! Lines outside of the markers are compared exactly: each such section must be there, complete and in order.
//! Whether a side was dropped inside a conflict is decided by words, so that two changes of one line may
//! become one. A side counts as dropped in two cases: it added words that the other side lacks and none of
//! them is left, or it only removed words and all of them are back. A side whose change is in no word, such
//! as a comma or an indent, never counts as dropped.

use std::collections::HashSet;
use std::ops::Range;

/// Splits a text into lines without their ends. A last line is the same with and without an end.
pub fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    let mut split_lines: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
    if split_lines.last().is_some_and(|last| last.is_empty()) {
        split_lines.pop();
    }
    split_lines
}

/// One conflict: the lines of each side, and the common base where it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ConflictRegion<'a> {
    /// Lines of the lane.
    pub ours: Vec<&'a [u8]>,
    /// Lines of the common base; none if lines inside the conflict resemble markers, which makes it
    /// ambiguous.
    pub base: Option<Vec<&'a [u8]>>,
    /// Lines of the branch that the lane lands on.
    pub theirs: Vec<&'a [u8]>,
}

/// File as a merge left it: `unconflicted[0] regions[0] unconflicted[1] … unconflicted[n]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MarkedText<'a> {
    /// Sections without a conflict.
    pub(crate) unconflicted: Vec<Vec<&'a [u8]>>,
    /// Conflicts between the sections.
    pub(crate) regions: Vec<ConflictRegion<'a>>,
    /// Length of a marker.
    pub(crate) marker_size: usize,
}

/// Side of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergeSide {
    /// The lane.
    Ours,
    /// The branch that the lane lands on.
    Theirs,
}

/// Returns the marker length and the label if the line is a marker of this character; none for any other
/// line.
fn parse_marker(line: &[u8], marker_char: u8) -> Option<(usize, &[u8])> {
    let size = line.iter().take_while(|b| **b == marker_char).count();
    let label = &line[size..];
    match label.first() {
        _ if size == 0 => None,
        None => Some((size, label)),
        Some(b' ') => Some((size, &label[1..])),
        Some(b'\r') if label.len() == 1 => Some((size, &[])),
        Some(_) => None,
    }
}

impl<'a> MarkedText<'a> {
    /// Parses a text whose marker lines have these ids as labels. Returns none if it contains no conflict, or
    /// if its markers do not match.
    pub fn parse(text: &'a [u8], ours: &str, theirs: &str) -> Option<MarkedText<'a>> {
        let mut marked = MarkedText { unconflicted: vec![Vec::new()], regions: Vec::new(), marker_size: 0 };
        let mut region_lines: Option<Vec<&[u8]>> = None;
        for line in split_lines(text) {
            match region_lines.as_mut() {
                None => {
                    match parse_marker(line, b'<').filter(|(_, label)| label.starts_with(ours.as_bytes())) {
                        Some((size, _)) => {
                            marked.marker_size = size;
                            region_lines = Some(Vec::new());
                        }
                        None => marked.unconflicted.last_mut()?.push(line),
                    }
                }
                Some(held_lines) => {
                    let end = parse_marker(line, b'>');
                    if end.is_some_and(|(n, label)| {
                        n == marked.marker_size && label.starts_with(theirs.as_bytes())
                    }) {
                        marked.regions.push(parse_region(held_lines, marked.marker_size));
                        marked.unconflicted.push(Vec::new());
                        region_lines = None;
                    } else {
                        held_lines.push(line);
                    }
                }
            }
        }
        (region_lines.is_none() && !marked.regions.is_empty()).then_some(marked)
    }

    /// Returns the range of lines of `result` that replaces each conflict, if every section without a
    /// conflict is complete and in order.
    ///
    /// # Errors
    /// The first line that is missing.
    pub(crate) fn locate_resolved_regions(&self, result: &[&'a [u8]]) -> Result<Vec<Range<usize>>, &'a [u8]> {
        let [first, .., last] = self.unconflicted.as_slice() else { return Err(b"") };
        if let Some(index) = first.iter().enumerate().position(|(n, line)| result.get(n) != Some(line)) {
            return Err(first[index]);
        }
        let from_end = |n: usize| result.len().checked_sub(n + 1).and_then(|at| result.get(at));
        if let Some(index) = last.iter().rev().enumerate().position(|(n, line)| from_end(n) != Some(line)) {
            return Err(last[last.len() - 1 - index]);
        }
        let mut position = first.len();
        let Some(end) = result.len().checked_sub(last.len()).filter(|end| *end >= position) else {
            return Err(last.first().or(first.last()).copied().unwrap_or_default());
        };
        let mut out = Vec::new();
        for section in &self.unconflicted[1..self.unconflicted.len() - 1] {
            let Some(offset) = find_lines(&result[position..end], section) else {
                let missing = section.iter().find(|line| !result[position..end].contains(line));
                return Err(missing.or(section.first()).copied().unwrap_or_default());
            };
            out.push(position..position + offset);
            position += offset + section.len();
        }
        out.push(position..end);
        Ok(out)
    }

    /// Returns the sides whose change is lost in `result`, each with the index of its conflict. `locations`
    /// has the lines of `result` that replace each conflict.
    pub(crate) fn dropped_sides(
        &self,
        result: &[&'a [u8]],
        locations: &[Range<usize>],
    ) -> Vec<(usize, MergeSide)> {
        // Between two conflicts the same lines may occur twice; then it is unknown which belong to which
        // conflict.
        let all_lines: Vec<&[u8]> =
            locations.iter().flat_map(|location| &result[location.clone()]).copied().collect();
        let is_unambiguous = locations == self.locate_regions_from_end(result);
        let mut out = Vec::new();
        for (n, (region, location)) in self.regions.iter().zip(locations).enumerate() {
            let resolved_lines =
                if is_unambiguous { &result[location.clone()] } else { all_lines.as_slice() };
            for side in [MergeSide::Ours, MergeSide::Theirs] {
                if region.is_side_dropped(side, resolved_lines) {
                    out.push((n, side));
                }
            }
        }
        out
    }

    /// Locates the regions as [`MarkedText::locate_resolved_regions`] does, but from the end; empty where it
    /// fails.
    fn locate_regions_from_end(&self, result: &[&'a [u8]]) -> Vec<Range<usize>> {
        let reversed = |text: &[&'a [u8]]| text.iter().rev().copied().collect::<Vec<&'a [u8]>>();
        let plain = self.unconflicted.iter().rev().map(|part| reversed(part)).collect();
        let reversed_text =
            MarkedText { unconflicted: plain, regions: Vec::new(), marker_size: self.marker_size };
        let locations = reversed_text.locate_resolved_regions(&reversed(result)).unwrap_or_default();
        locations
            .iter()
            .rev()
            .map(|location| result.len() - location.end..result.len() - location.start)
            .collect()
    }

    /// Returns the lines of `result` that resemble markers of length `marker_size` and that neither side had.
    pub(crate) fn find_leftover_markers<'r>(
        marker_size: usize,
        result: &[&'r [u8]],
        sides: &[&[u8]],
    ) -> Option<LeftoverMarkers<'r>> {
        let is_marker = |line: &[u8]| {
            b"<|=>".iter().any(|marker_char| {
                // Headings are often underlined with equals signs, so for those only the exact length counts.
                parse_marker(line, *marker_char)
                    .is_some_and(|(n, label)| n == marker_size && (*marker_char != b'=' || label.is_empty()))
            })
        };
        let known_markers: HashSet<&[u8]> =
            sides.iter().flat_map(|side| split_lines(side)).filter(|l| is_marker(l)).collect();
        let mut leftover =
            result.iter().enumerate().filter(|(_, l)| is_marker(l) && !known_markers.contains(*l)).peekable();
        let (first, text) = leftover.peek().map(|(n, l)| (*n, **l))?;
        // Markers of a conflict, in their order.
        let mut expected = b"<=>".iter().peekable();
        for (_, line) in leftover {
            let _ = expected.next_if(|marker_char| line.starts_with(&[**marker_char]));
        }
        Some(LeftoverMarkers {
            line_number: first + 1,
            line_text: text,
            is_full_conflict: expected.peek().is_none(),
        })
    }
}

/// Lines of a result that resemble conflict markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeftoverMarkers<'r> {
    /// Number of the first such line, counted from one.
    pub line_number: usize,
    /// Text of that line.
    pub line_text: &'r [u8],
    /// Whether the lines form a full conflict.
    pub(crate) is_full_conflict: bool,
}

/// Returns the index at which the lines of `section` start in `text`; none if it does not contain them.
fn find_lines(text: &[&[u8]], section: &[&[u8]]) -> Option<usize> {
    if section.is_empty() {
        return Some(0);
    }
    text.windows(section.len()).position(|window| window == section)
}

/// Splits the lines between the outer markers of a conflict into its sides. All of them become `ours`,
/// without a base, if the inner markers are missing or ambiguous.
fn parse_region<'a>(region_lines: &[&'a [u8]], marker_size: usize) -> ConflictRegion<'a> {
    let is_marker =
        |line: &&[u8], marker_char| parse_marker(line, marker_char).is_some_and(|(n, _)| n == marker_size);
    let marker_positions = |marker_char: u8| -> Vec<usize> {
        region_lines
            .iter()
            .enumerate()
            .filter(|(_, line)| is_marker(line, marker_char))
            .map(|(n, _)| n)
            .collect()
    };
    match (marker_positions(b'|').as_slice(), marker_positions(b'=').as_slice()) {
        ([base], [middle]) if base < middle => ConflictRegion {
            ours: region_lines[..*base].to_vec(),
            base: Some(region_lines[base + 1..*middle].to_vec()),
            theirs: region_lines[middle + 1..].to_vec(),
        },
        _ => ConflictRegion { ours: region_lines.to_vec(), ..ConflictRegion::default() },
    }
}

impl ConflictRegion<'_> {
    /// Returns whether the resolved lines dropped a side's change: no word that only it added is left or, if
    /// it added none, every word that only it removed is back.
    fn is_side_dropped(&self, which: MergeSide, resolved: &[&[u8]]) -> bool {
        let Some(base) = &self.base else { return false };
        let (side, other) = match which {
            MergeSide::Ours => (&self.ours, &self.theirs),
            MergeSide::Theirs => (&self.theirs, &self.ours),
        };
        let (base, side, other, made) = (words(base), words(side), words(other), words(resolved));
        let mut added_words = side.iter().filter(|w| !base.contains(*w) && !other.contains(*w)).peekable();
        if added_words.peek().is_some() {
            return !added_words.any(|w| made.contains(w));
        }
        let mut removed_words = base.iter().filter(|w| !side.contains(*w) && other.contains(*w)).peekable();
        removed_words.peek().is_some() && removed_words.all(|w| made.contains(w))
    }
}

/// Returns the words of a text: sequences of letters, digits, underscores and non-ASCII bytes.
fn words<'a>(text: &[&'a [u8]]) -> HashSet<&'a [u8]> {
    let is_word_byte = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80;
    let pieces = text.iter().flat_map(|line| line.split(move |b| !is_word_byte(b)));
    pieces.filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a single line that resembles a marker and is no full conflict.
    fn leftover_line(line: usize, text: &[u8]) -> Option<LeftoverMarkers<'_>> {
        Some(LeftoverMarkers { line_number: line, line_text: text, is_full_conflict: false })
    }

    const TEXT: &[u8] =
        b"top\n<<<<<<< aa\nlane(x)\n||||||| 12\nold(x)\n=======\nmain(x)\n>>>>>>> bb\nmiddle\n<<<<<<< aa\none\n||||||| 12\n=======\ntwo\n>>>>>>> bb:f\nend\n";

    fn marked() -> MarkedText<'static> {
        MarkedText::parse(TEXT, "aa", "bb").unwrap()
    }

    /// Returns the reason to refuse a result: the missing line, or the dropped sides.
    fn check_result(result: &str) -> Result<Vec<(usize, MergeSide)>, String> {
        let marked = marked();
        let borrowed_lines = split_lines(result.as_bytes());
        let to_text = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
        let result_lines: Vec<&'static [u8]> = borrowed_lines.iter().map(|l| &*l.to_vec().leak()).collect();
        let places = marked.locate_resolved_regions(&result_lines).map_err(to_text)?;
        Ok(marked.dropped_sides(&result_lines, &places))
    }

    #[test]
    fn parses_regions_and_keeps_other_markers_as_text() {
        let marked = marked();
        assert_eq!(marked.unconflicted, [vec![b"top".as_slice()], vec![b"middle"], vec![b"end"]]);
        assert_eq!(marked.regions[0].base, Some(vec![b"old(x)".as_slice()]));
        assert_eq!(marked.regions[1].theirs, [b"two".as_slice()]);
        assert_eq!(MarkedText::parse(TEXT, "cc", "bb"), None);
        assert_eq!(MarkedText::parse(b"plain\n", "aa", "bb"), None);
        let odd = b"<<<<<<< aa\nTitle\n=======\n||||||| 1\n=======\nx\n>>>>>>> bb\n";
        assert_eq!(MarkedText::parse(odd, "aa", "bb").unwrap().regions[0].base, None);
    }

    /// Promise: resolution/outside-conflict
    #[test]
    fn requires_unconflicted_lines_complete_and_in_order() {
        assert_eq!(check_result("top\nlane main\nmiddle\none\ntwo\nend\n"), Ok(vec![]));
        assert_eq!(check_result("top\nlane main\nmiddle\none\ntwo\nend"), Ok(vec![]), "the last end of line");
        assert_eq!(check_result("lane main\nmiddle\none\ntwo\nend\n"), Err("top".into()));
        assert_eq!(check_result("top\nlane main\none\ntwo\nend\n"), Err("middle".into()));
        assert_eq!(check_result("top\nlane main\nmiddle\none\ntwo\nend\nmore\n"), Err("end".into()));
        assert_eq!(check_result("new\ntop\nlane main\nmiddle\none\ntwo\nend\n"), Err("top".into()));
        assert_eq!(check_result("top\nend\n"), Err("middle".into()));
    }

    /// Promise: resolution/no-dropped-side
    #[test]
    fn side_without_remaining_word_counts_as_dropped() {
        assert_eq!(check_result("top\nlane(x)\nmiddle\none\ntwo\nend\n"), Ok(vec![(0, MergeSide::Theirs)]));
        assert_eq!(
            check_result("top\nmain(x)\nmiddle\ntwo\nend\n"),
            Ok(vec![(0, MergeSide::Ours), (1, MergeSide::Ours)])
        );
        assert_eq!(check_result("top\nmain_lane(x)\nmiddle\none two\nend\n").unwrap().len(), 2);
        assert_eq!(check_result("top\nlane(main(x))\nmiddle\ntwo one\nend\n"), Ok(vec![]));
    }

    /// Returns the dropped sides when the full result is in place of the only conflict.
    fn sides_dropped<'a>(marked: &MarkedText<'a>, result: &[&'a [u8]]) -> Vec<(usize, MergeSide)> {
        let places = marked.locate_resolved_regions(result).unwrap();
        marked.dropped_sides(result, &places)
    }

    /// Promise: resolution/no-dropped-side
    #[test]
    fn reverted_removal_counts_as_dropped() {
        let text = b"<<<<<<< aa\n||||||| 1\nold(a)\n=======\nold(a, more)\n>>>>>>> bb\n";
        let marked = MarkedText::parse(text, "aa", "bb").unwrap();
        assert_eq!(sides_dropped(&marked, &[b"old(a, more)"]), [(0, MergeSide::Ours)]);
        assert_eq!(sides_dropped(&marked, &[b"new(more)"]), []);
    }

    #[test]
    fn ignores_wordless_and_identical_changes() {
        let text = b"<<<<<<< aa\nx,\n||||||| 1\nx\n=======\nx, y\n>>>>>>> bb\n";
        let marked = MarkedText::parse(text, "aa", "bb").unwrap();
        assert_eq!(sides_dropped(&marked, &[b"x, y"]), []);
        let both = b"<<<<<<< aa\nsame one\n||||||| 1\n=======\nsame one\nmore\n>>>>>>> bb\n";
        let marked = MarkedText::parse(both, "aa", "bb").unwrap();
        assert_eq!(sides_dropped(&marked, &[b"same one", b"more"]), []);
    }

    #[test]
    fn ambiguous_repeated_lines_are_not_dropped() {
        let text =
            b"<<<<<<< aa\none\n||||||| 1\n=======\ntwo\n>>>>>>> bb\n}\n<<<<<<< aa\nthree\n||||||| 1\n=======\nfour\n>>>>>>> bb\n";
        let marked = MarkedText::parse(text, "aa", "bb").unwrap();
        let result: [&[u8]; 6] = [b"one", b"}", b"two", b"}", b"three", b"four"];
        let places = marked.locate_resolved_regions(&result).unwrap();
        assert_eq!(marked.dropped_sides(&result, &places), []);
    }

    #[test]
    fn markers_that_a_side_had_are_not_leftover() {
        let result = split_lines(b"Title\n=======\n<<<<<<< x\n");
        assert_eq!(
            MarkedText::find_leftover_markers(7, &result, &[b"=======\n"]),
            leftover_line(3, b"<<<<<<< x")
        );
        assert_eq!(MarkedText::find_leftover_markers(7, &result, &[b"=======\n<<<<<<< x\n"]), None);
        assert_eq!(MarkedText::find_leftover_markers(9, &result, &[]), None);
    }
}
