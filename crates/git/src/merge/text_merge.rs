//! Line-level merge of a file that two sides changed, as git's text merge decides it: whether and where the
//! sides conflict.

use std::cmp::Ordering;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, sources};
use serde::{Deserialize, Serialize};

/// Number of bytes that git inspects to decide whether a file is text.
const TEXT_PROBE_BYTES: usize = 8000;

/// Range of lines in a file. An empty range is the position before its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRange {
    /// First line, counted from 1.
    pub start: u32,
    /// Number of lines.
    pub count: u32,
}

impl LineRange {
    fn from_range(range: &Range<u32>) -> LineRange {
        LineRange { start: range.start + 1, count: range.end - range.start }
    }
}

/// One conflict between two sides of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictHunk {
    /// Lines on the side that is merged into.
    pub ours: LineRange,
    /// Lines on the side that is merged.
    pub theirs: LineRange,
    /// Lines in the merge base.
    pub base: LineRange,
}

/// Returns whether git would treat this content as text.
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes[..bytes.len().min(TEXT_PROBE_BYTES)].contains(&0)
}

/// Edit that one side made: the range of lines in the base, and the range of lines that replaced it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineEdit {
    base_lines: Range<u32>,
    new_lines: Range<u32>,
}

/// Returns the edits between two texts, as git's histogram diff finds them.
pub(crate) fn diff_lines(before: &[u8], after: &[u8]) -> Vec<LineEdit> {
    let input = InternedInput::new(sources::byte_lines(before), sources::byte_lines(after));
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_no_heuristic(&input);
    diff.hunks().map(|hunk| LineEdit { base_lines: hunk.before, new_lines: hunk.after }).collect()
}

/// Side or sides that changed a region.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangedBy {
    Ours,
    Theirs,
    /// Both sides changed the region, differently.
    Both,
}

/// Range of lines that a side changed, in the base and on both sides.
struct ChangedRegion {
    changed_by: ChangedBy,
    base: Range<u32>,
    ours: Range<u32>,
    theirs: Range<u32>,
}

/// Returns the conflicts between two sets of edits of one base. Follows git's `xdl_do_merge` at the level
/// that merges use. Edits that touch or are adjacent conflict, unless they are the same. Lines within a
/// conflict that both sides share are not reported.
pub(crate) fn find_conflicts(
    ours: &[u8],
    our_edits: &[LineEdit],
    theirs: &[u8],
    their_edits: &[LineEdit],
) -> Vec<ConflictHunk> {
    let (our_lines, their_lines) = (split_lines(ours), split_lines(theirs));
    let mut out = Vec::new();
    for region in changed_regions(our_edits, their_edits, &our_lines, &their_lines) {
        if region.changed_by == ChangedBy::Both {
            refine_conflict(&region, &our_lines, &their_lines, &mut out);
        }
    }
    out
}

fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|b| *b == b'\n').collect()
}

/// Returns the regions that either side changed, in order. Equal edits of both sides are left out.
fn changed_regions(
    ours: &[LineEdit],
    theirs: &[LineEdit],
    our_lines: &[&[u8]],
    their_lines: &[&[u8]],
) -> Vec<ChangedRegion> {
    let mut out: Vec<ChangedRegion> = Vec::new();
    let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
    // Offset of each side from the base after its last edit.
    let (mut our_shift, mut their_shift) = (0_i64, 0_i64);
    while let (Some(a), Some(b)) = (ours.peek().copied(), theirs.peek().copied()) {
        if a.base_lines.end < b.base_lines.start {
            push_region(&mut out, ours_only_region(a, their_shift));
            our_shift = line_offset_after(a);
            ours.next();
            continue;
        }
        if b.base_lines.end < a.base_lines.start {
            push_region(&mut out, theirs_only_region(b, our_shift));
            their_shift = line_offset_after(b);
            theirs.next();
            continue;
        }
        let is_same_edit = a.base_lines == b.base_lines
            && line_slice(our_lines, &a.new_lines) == line_slice(their_lines, &b.new_lines);
        if !is_same_edit {
            push_region(&mut out, overlapping_region(a, b));
        }
        let order = a.base_lines.end.cmp(&b.base_lines.end);
        if order != Ordering::Greater {
            our_shift = line_offset_after(a);
            ours.next();
        }
        if order != Ordering::Less {
            their_shift = line_offset_after(b);
            theirs.next();
        }
    }
    for a in ours {
        push_region(&mut out, ours_only_region(a, their_shift));
    }
    for b in theirs {
        push_region(&mut out, theirs_only_region(b, our_shift));
    }
    out
}

/// Returns by how many lines the edited side is shifted against the base after an edit, including all earlier
/// edits.
fn line_offset_after(edit: &LineEdit) -> i64 {
    i64::from(edit.new_lines.end) - i64::from(edit.base_lines.end)
}

/// Returns a range of lines moved by an offset. A line before the first becomes the first.
fn shift_range(range: &Range<u32>, offset: i64) -> Range<u32> {
    let shifted = |line: u32| u32::try_from(i64::from(line) + offset).unwrap_or(0);
    shifted(range.start)..shifted(range.end)
}

/// Returns the region of an edit that only our side made. `their_shift` is the offset of their lines there.
fn ours_only_region(edit: &LineEdit, their_shift: i64) -> ChangedRegion {
    let theirs = shift_range(&edit.base_lines, their_shift);
    ChangedRegion {
        changed_by: ChangedBy::Ours,
        base: edit.base_lines.clone(),
        ours: edit.new_lines.clone(),
        theirs,
    }
}

/// Returns the region of an edit that only their side made. `our_shift` is the offset of our lines there.
fn theirs_only_region(edit: &LineEdit, our_shift: i64) -> ChangedRegion {
    let ours = shift_range(&edit.base_lines, our_shift);
    ChangedRegion {
        changed_by: ChangedBy::Theirs,
        base: edit.base_lines.clone(),
        ours,
        theirs: edit.new_lines.clone(),
    }
}

/// Returns the region of two edits that touch, each widened by the lines that only the other one covers.
fn overlapping_region(a: &LineEdit, b: &LineEdit) -> ChangedRegion {
    let start = a.base_lines.start.min(b.base_lines.start);
    let end = a.base_lines.end.max(b.base_lines.end);
    let widen = |edit: &LineEdit| {
        edit.new_lines.start.saturating_sub(edit.base_lines.start - start)
            ..edit.new_lines.end + (end - edit.base_lines.end)
    };
    ChangedRegion { changed_by: ChangedBy::Both, base: start..end, ours: widen(a), theirs: widen(b) }
}

/// Appends a region, or joins it with the previous one if they touch on a side. Joined regions of different
/// sides conflict.
fn push_region(out: &mut Vec<ChangedRegion>, region: ChangedRegion) {
    match out.last_mut() {
        Some(last) if region.ours.start <= last.ours.end || region.theirs.start <= last.theirs.end => {
            if region.changed_by != last.changed_by {
                last.changed_by = ChangedBy::Both;
            }
            last.base.end = region.base.end;
            last.ours.end = region.ours.end;
            last.theirs.end = region.theirs.end;
        }
        _ => out.push(region),
    }
}

/// Returns the lines of a range; empty if the range exceeds the text.
fn line_slice<'l, 't>(lines: &'l [&'t [u8]], range: &Range<u32>) -> &'l [&'t [u8]] {
    lines.get(range.start as usize..range.end as usize).unwrap_or_default()
}

/// Appends the parts of a conflict in which the two sides differ.
fn refine_conflict(
    region: &ChangedRegion,
    our_lines: &[&[u8]],
    their_lines: &[&[u8]],
    out: &mut Vec<ConflictHunk>,
) {
    let base = LineRange::from_range(&region.base);
    if region.ours.is_empty() || region.theirs.is_empty() {
        out.push(ConflictHunk {
            ours: LineRange::from_range(&region.ours),
            theirs: LineRange::from_range(&region.theirs),
            base,
        });
        return;
    }
    let (ours, theirs) = (line_slice(our_lines, &region.ours), line_slice(their_lines, &region.theirs));
    for edit in diff_lines(&ours.concat(), &theirs.concat()) {
        let line_range =
            |range: &Range<u32>, start: u32| LineRange::from_range(&(range.start + start..range.end + start));
        out.push(ConflictHunk {
            ours: line_range(&edit.base_lines, region.ours.start),
            theirs: line_range(&edit.new_lines, region.theirs.start),
            base,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict_ranges(base: &str, ours: &str, theirs: &str) -> Vec<(u32, u32, u32, u32)> {
        let [base, ours, theirs] = [base, ours, theirs].map(|t| t.replace(' ', "\n") + "\n");
        let (base, ours, theirs) = (base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
        let found = find_conflicts(ours, &diff_lines(base, ours), theirs, &diff_lines(base, theirs));
        found.iter().map(|h| (h.ours.start, h.ours.count, h.theirs.start, h.theirs.count)).collect()
    }

    #[test]
    fn adjacent_edits_conflict_separate_ones_do_not() {
        assert_eq!(conflict_ranges("a b c d e", "A b c d e", "a b c d E"), []);
        assert_eq!(conflict_ranges("a b c d e", "A b c d e", "a b C d e"), []);
        assert_eq!(conflict_ranges("a b c d e", "A b c d e", "a B c d e"), [(1, 2, 1, 2)]);
        assert_eq!(conflict_ranges("a b c d e", "a b X d e", "a b Y d e"), [(3, 1, 3, 1)]);
    }

    #[test]
    fn omits_identical_edits_and_lines_from_conflicts() {
        assert_eq!(conflict_ranges("a b c", "a X c", "a X c"), []);
        assert_eq!(conflict_ranges("a b c", "a X Y c", "a X Z c"), [(3, 1, 3, 1)]);
        assert_eq!(conflict_ranges("a b c d", "a X d", "a X c d"), [(3, 0, 3, 1)]);
    }

    #[test]
    fn counts_lines_on_each_side() {
        assert_eq!(conflict_ranges("a b c d e", "0 1 a b c X e", "a b c Y e"), [(6, 1, 4, 1)]);
        assert_eq!(conflict_ranges("a b c d e", "a b c e", "a b c Y e"), [(4, 0, 4, 1)]);
    }

    #[test]
    fn detects_text_like_git() {
        assert!(is_text(b"") && is_text("gr\u{fc}n".as_bytes()) && !is_text(b"a\0b"));
        let mut late = vec![b'a'; TEXT_PROBE_BYTES];
        late.push(0);
        assert!(is_text(&late));
    }
}
