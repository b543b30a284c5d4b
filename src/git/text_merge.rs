//! Owns merging the lines of a file that two sides changed, as git's own text merge decides it: whether that conflicts, and
//! where.

use std::cmp::Ordering;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, sources};
use serde::{Deserialize, Serialize};

/// How many bytes of a file git looks at to know whether it is text.
const LOOKED_AT: usize = 8000;

/// Lines of a file: the first one, counted from 1, and how many. With no lines it is the place before that line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The first line.
    pub start: u32,
    /// How many.
    pub count: u32,
}

impl Lines {
    fn of(range: &Range<u32>) -> Lines {
        Lines { start: range.start + 1, count: range.end - range.start }
    }
}

/// One place where two sides cannot be brought together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// Its lines on the side that is merged into.
    pub ours: Lines,
    /// Its lines on the other side.
    pub theirs: Lines,
    /// The lines that both were before.
    pub base: Lines,
}

/// Whether git would take this for text.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    !bytes[..bytes.len().min(LOOKED_AT)].contains(&0)
}

/// What one side changed: lines of the base, and what they became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    before: Range<u32>,
    after: Range<u32>,
}

/// The edits that lead from one text to another, as git's histogram diff has them.
pub(super) fn edits(before: &[u8], after: &[u8]) -> Vec<Edit> {
    let input = InternedInput::new(sources::byte_lines(before), sources::byte_lines(after));
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_no_heuristic(&input);
    diff.hunks().map(|hunk| Edit { before: hunk.before, after: hunk.after }).collect()
}

/// Which side changed a stretch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Ours,
    Theirs,
    /// Both, differently.
    Both,
}

/// A stretch in which something changed.
struct Stretch {
    who: Who,
    base: Range<u32>,
    ours: Range<u32>,
    theirs: Range<u32>,
}

/// The places that conflict when two sets of edits of one base come together. Follows git's `xdl_do_merge` at the level
/// that merges use: edits that touch conflict, also those side by side, unless they are the same; what both sides have
/// alike inside of a conflict then does not count.
pub(super) fn conflicts(ours: &[u8], our_edits: &[Edit], theirs: &[u8], their_edits: &[Edit]) -> Vec<Hunk> {
    let (our_lines, their_lines) = (lines(ours), lines(theirs));
    let mut out = Vec::new();
    for stretch in stretches(our_edits, their_edits, &our_lines, &their_lines) {
        if stretch.who == Who::Both {
            refine(&stretch, &our_lines, &their_lines, &mut out);
        }
    }
    out
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|b| *b == b'\n').collect()
}

fn stretches(ours: &[Edit], theirs: &[Edit], our_lines: &[&[u8]], their_lines: &[&[u8]]) -> Vec<Stretch> {
    let mut out: Vec<Stretch> = Vec::new();
    let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
    // How far each side is ahead of the base behind its last edit.
    let (mut our_shift, mut their_shift) = (0_i64, 0_i64);
    while let (Some(a), Some(b)) = (ours.peek().copied(), theirs.peek().copied()) {
        if a.before.end < b.before.start {
            add(&mut out, by_us(a, their_shift));
            our_shift = shift(a);
            ours.next();
            continue;
        }
        if b.before.end < a.before.start {
            add(&mut out, by_them(b, our_shift));
            their_shift = shift(b);
            theirs.next();
            continue;
        }
        let same = a.before == b.before && part(our_lines, &a.after) == part(their_lines, &b.after);
        if !same {
            add(&mut out, both(a, b));
        }
        let order = a.before.end.cmp(&b.before.end);
        if order != Ordering::Greater {
            our_shift = shift(a);
            ours.next();
        }
        if order != Ordering::Less {
            their_shift = shift(b);
            theirs.next();
        }
    }
    for a in ours {
        add(&mut out, by_us(a, their_shift));
    }
    for b in theirs {
        add(&mut out, by_them(b, our_shift));
    }
    out
}

fn shift(edit: &Edit) -> i64 {
    i64::from(edit.after.end) - i64::from(edit.before.end)
}

fn moved(range: &Range<u32>, by: i64) -> Range<u32> {
    let at = |line: u32| u32::try_from(i64::from(line) + by).unwrap_or(0);
    at(range.start)..at(range.end)
}

fn by_us(edit: &Edit, their_shift: i64) -> Stretch {
    let theirs = moved(&edit.before, their_shift);
    Stretch { who: Who::Ours, base: edit.before.clone(), ours: edit.after.clone(), theirs }
}

fn by_them(edit: &Edit, our_shift: i64) -> Stretch {
    let ours = moved(&edit.before, our_shift);
    Stretch { who: Who::Theirs, base: edit.before.clone(), ours, theirs: edit.after.clone() }
}

/// Two edits that touch, each widened by what only the other one covers.
fn both(a: &Edit, b: &Edit) -> Stretch {
    let start = a.before.start.min(b.before.start);
    let end = a.before.end.max(b.before.end);
    let widen = |edit: &Edit| {
        edit.after.start.saturating_sub(edit.before.start - start)..edit.after.end + (end - edit.before.end)
    };
    Stretch { who: Who::Both, base: start..end, ours: widen(a), theirs: widen(b) }
}

/// Adds a stretch, joined with the one before where they touch on a side. Stretches of different sides conflict then.
fn add(out: &mut Vec<Stretch>, next: Stretch) {
    match out.last_mut() {
        Some(last) if next.ours.start <= last.ours.end || next.theirs.start <= last.theirs.end => {
            if next.who != last.who {
                last.who = Who::Both;
            }
            last.base.end = next.base.end;
            last.ours.end = next.ours.end;
            last.theirs.end = next.theirs.end;
        }
        _ => out.push(next),
    }
}

fn part<'l, 't>(lines: &'l [&'t [u8]], range: &Range<u32>) -> &'l [&'t [u8]] {
    lines.get(range.start as usize..range.end as usize).unwrap_or_default()
}

/// What of a conflict the two sides do not have alike.
fn refine(stretch: &Stretch, our_lines: &[&[u8]], their_lines: &[&[u8]], out: &mut Vec<Hunk>) {
    let base = Lines::of(&stretch.base);
    if stretch.ours.is_empty() || stretch.theirs.is_empty() {
        out.push(Hunk { ours: Lines::of(&stretch.ours), theirs: Lines::of(&stretch.theirs), base });
        return;
    }
    let (ours, theirs) = (part(our_lines, &stretch.ours), part(their_lines, &stretch.theirs));
    for edit in edits(&ours.concat(), &theirs.concat()) {
        let at = |range: &Range<u32>, start: u32| Lines::of(&(range.start + start..range.end + start));
        out.push(Hunk {
            ours: at(&edit.before, stretch.ours.start),
            theirs: at(&edit.after, stretch.theirs.start),
            base,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(base: &str, ours: &str, theirs: &str) -> Vec<(u32, u32, u32, u32)> {
        let [base, ours, theirs] = [base, ours, theirs].map(|t| t.replace(' ', "\n") + "\n");
        let (base, ours, theirs) = (base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
        let found = conflicts(ours, &edits(base, ours), theirs, &edits(base, theirs));
        found.iter().map(|h| (h.ours.start, h.ours.count, h.theirs.start, h.theirs.count)).collect()
    }

    #[test]
    fn edits_apart_fit_and_edits_side_by_side_do_not() {
        assert_eq!(merge("a b c d e", "A b c d e", "a b c d E"), []);
        assert_eq!(merge("a b c d e", "A b c d e", "a b C d e"), []);
        assert_eq!(merge("a b c d e", "A b c d e", "a B c d e"), [(1, 2, 1, 2)]);
        assert_eq!(merge("a b c d e", "a b X d e", "a b Y d e"), [(3, 1, 3, 1)]);
    }

    #[test]
    fn the_same_edit_fits_and_what_is_alike_in_a_conflict_is_left_out() {
        assert_eq!(merge("a b c", "a X c", "a X c"), []);
        assert_eq!(merge("a b c", "a X Y c", "a X Z c"), [(3, 1, 3, 1)]);
        assert_eq!(merge("a b c d", "a X d", "a X c d"), [(3, 0, 3, 1)]);
    }

    #[test]
    fn lines_are_counted_on_each_side() {
        assert_eq!(merge("a b c d e", "0 1 a b c X e", "a b c Y e"), [(6, 1, 4, 1)]);
        assert_eq!(merge("a b c d e", "a b c e", "a b c Y e"), [(4, 0, 4, 1)]);
    }

    #[test]
    fn text_is_what_git_takes_for_text() {
        assert!(is_text(b"") && is_text("gr\u{fc}n".as_bytes()) && !is_text(b"a\0b"));
        let mut late = vec![b'a'; LOOKED_AT];
        late.push(0);
        assert!(is_text(&late));
    }
}
