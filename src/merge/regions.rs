//! Owns taking a file with conflict markers apart, and comparing it with what somebody made of it. Knows lines only.
//!
//! What lies outside of the markers is compared exactly: each such part must be there, whole and in order. Whether a side
//! was dropped inside is judged by words, so that two changes of one line may become one: a side counts as dropped when it
//! brought words that the other has not, and none of them is left, or when all it did was to take words away and all of
//! them are back. A side whose change is in no word, such as a comma or an indent, is never called dropped.

use std::collections::HashSet;
use std::ops::Range;

/// A text as lines without their ends. A last line counts the same with and without an end.
pub(super) fn lines(text: &[u8]) -> Vec<&[u8]> {
    let mut all: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
    if all.last().is_some_and(|last| last.is_empty()) {
        all.pop();
    }
    all
}

/// One conflict: what each side has, and what both come from where that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Region<'a> {
    /// The lane's lines.
    pub(super) ours: Vec<&'a [u8]>,
    /// What both come from; none where lines inside look like markers, so that it cannot be told.
    pub(super) base: Option<Vec<&'a [u8]>>,
    /// The other branch's lines.
    pub(super) theirs: Vec<&'a [u8]>,
}

/// A file as a merge left it: `plain[0] region[0] plain[1] … plain[n]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marked<'a> {
    /// What needed no decision.
    pub(super) plain: Vec<Vec<&'a [u8]>>,
    /// The conflicts between them.
    pub(super) regions: Vec<Region<'a>>,
    /// How long a marker is.
    pub(super) size: usize,
}

/// A side of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Party {
    /// The lane.
    Ours,
    /// The branch it lands on.
    Theirs,
}

/// How long a marker line of this letter is, and what it is labelled with; none for any other line.
fn marker(line: &[u8], letter: u8) -> Option<(usize, &[u8])> {
    let size = line.iter().take_while(|b| **b == letter).count();
    let rest = &line[size..];
    match rest.first() {
        _ if size == 0 => None,
        None => Some((size, rest)),
        Some(b' ') => Some((size, &rest[1..])),
        Some(b'\r') if rest.len() == 1 => Some((size, &[])),
        Some(_) => None,
    }
}

impl<'a> Marked<'a> {
    /// Takes a text apart whose marker lines are labelled with these ids. None when there is no conflict in it, or when
    /// its markers do not fit together.
    pub(super) fn parse(text: &'a [u8], ours: &str, theirs: &str) -> Option<Marked<'a>> {
        let mut marked = Marked { plain: vec![Vec::new()], regions: Vec::new(), size: 0 };
        let mut inside: Option<Vec<&[u8]>> = None;
        for line in lines(text) {
            match inside.as_mut() {
                None => match marker(line, b'<').filter(|(_, label)| label.starts_with(ours.as_bytes())) {
                    Some((size, _)) => {
                        marked.size = size;
                        inside = Some(Vec::new());
                    }
                    None => marked.plain.last_mut()?.push(line),
                },
                Some(held) => {
                    let end = marker(line, b'>');
                    if end.is_some_and(|(n, label)| n == marked.size && label.starts_with(theirs.as_bytes()))
                    {
                        marked.regions.push(region(held, marked.size));
                        marked.plain.push(Vec::new());
                        inside = None;
                    } else {
                        held.push(line);
                    }
                }
            }
        }
        (inside.is_none() && !marked.regions.is_empty()).then_some(marked)
    }

    /// Which lines of `result` stand in the place of each conflict, when every other part is there, whole and in order.
    ///
    /// # Errors
    /// The first line that is not there any more.
    pub(super) fn fit(&self, result: &[&'a [u8]]) -> Result<Vec<Range<usize>>, &'a [u8]> {
        let [first, .., last] = self.plain.as_slice() else { return Err(b"") };
        if let Some(at) = first.iter().enumerate().position(|(n, line)| result.get(n) != Some(line)) {
            return Err(first[at]);
        }
        let from_end = |n: usize| result.len().checked_sub(n + 1).and_then(|at| result.get(at));
        if let Some(at) = last.iter().rev().enumerate().position(|(n, line)| from_end(n) != Some(line)) {
            return Err(last[last.len() - 1 - at]);
        }
        let mut at = first.len();
        let Some(end) = result.len().checked_sub(last.len()).filter(|end| *end >= at) else {
            return Err(last.first().or(first.last()).copied().unwrap_or_default());
        };
        let mut out = Vec::new();
        for part in &self.plain[1..self.plain.len() - 1] {
            let Some(found) = find(&result[at..end], part) else {
                let gone = part.iter().find(|line| !result[at..end].contains(line));
                return Err(gone.or(part.first()).copied().unwrap_or_default());
            };
            out.push(at..at + found);
            at += found + part.len();
        }
        out.push(at..end);
        Ok(out)
    }

    /// For each conflict, the sides of which nothing is left in `result`.
    pub(super) fn dropped(&self, result: &[&'a [u8]], places: &[Range<usize>]) -> Vec<(usize, Party)> {
        // Between two conflicts the same lines may stand twice; then it cannot be told which belongs where.
        let all: Vec<&[u8]> = places.iter().flat_map(|place| &result[place.clone()]).copied().collect();
        let sure = places == self.fit_from_end(result);
        let mut out = Vec::new();
        for (n, (region, place)) in self.regions.iter().zip(places).enumerate() {
            let made = if sure { &result[place.clone()] } else { all.as_slice() };
            for party in [Party::Ours, Party::Theirs] {
                if region.is_dropped(party, made) {
                    out.push((n, party));
                }
            }
        }
        out
    }

    /// The same places as [`Marked::fit`] finds, looked for from the end.
    fn fit_from_end(&self, result: &[&'a [u8]]) -> Vec<Range<usize>> {
        let turned = |text: &[&'a [u8]]| text.iter().rev().copied().collect::<Vec<&'a [u8]>>();
        let plain = self.plain.iter().rev().map(|part| turned(part)).collect();
        let backwards = Marked { plain, regions: Vec::new(), size: self.size };
        let places = backwards.fit(&turned(result)).unwrap_or_default();
        places.iter().rev().map(|place| result.len() - place.end..result.len() - place.start).collect()
    }

    /// The first line of `result` that looks like a marker of this file and that neither side had.
    pub(super) fn left_over<'r>(size: usize, result: &[&'r [u8]], sides: &[&[u8]]) -> Option<LeftOver<'r>> {
        let is_mark = |line: &[u8]| {
            b"<|=>".iter().any(|letter| {
                // Of equals signs alone many a heading is underlined, so only the exact length counts.
                marker(line, *letter)
                    .is_some_and(|(n, label)| n == size && (*letter != b'=' || label.is_empty()))
            })
        };
        let had: HashSet<&[u8]> = sides.iter().flat_map(|side| lines(side)).filter(|l| is_mark(l)).collect();
        let mut left = result.iter().enumerate().filter(|(_, l)| is_mark(l) && !had.contains(*l)).peekable();
        let (first, text) = left.peek().map(|(n, l)| (*n, **l))?;
        // The lines of a conflict, in their order.
        let mut wanted = b"<=>".iter().peekable();
        for (_, line) in left {
            let _ = wanted.next_if(|letter| line.starts_with(&[**letter]));
        }
        Some(LeftOver { line: first + 1, text, whole: wanted.peek().is_none() })
    }
}

/// What looks like markers in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeftOver<'r> {
    /// The first such line, from one.
    pub(super) line: usize,
    /// The text of that.
    pub(super) text: &'r [u8],
    /// Whether they make up a whole conflict.
    pub(super) whole: bool,
}

fn find(text: &[&[u8]], part: &[&[u8]]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    text.windows(part.len()).position(|window| window == part)
}

fn region<'a>(held: &[&'a [u8]], size: usize) -> Region<'a> {
    let is = |line: &&[u8], letter| marker(line, letter).is_some_and(|(n, _)| n == size);
    let at = |letter: u8| -> Vec<usize> {
        held.iter().enumerate().filter(|(_, line)| is(line, letter)).map(|(n, _)| n).collect()
    };
    match (at(b'|').as_slice(), at(b'=').as_slice()) {
        ([base], [middle]) if base < middle => Region {
            ours: held[..*base].to_vec(),
            base: Some(held[base + 1..*middle].to_vec()),
            theirs: held[middle + 1..].to_vec(),
        },
        _ => Region { ours: held.to_vec(), ..Region::default() },
    }
}

impl Region<'_> {
    /// Whether nothing is left of what a side did, and the other side did not do the same.
    fn is_dropped(&self, party: Party, made: &[&[u8]]) -> bool {
        let Some(base) = &self.base else { return false };
        let (side, other) = match party {
            Party::Ours => (&self.ours, &self.theirs),
            Party::Theirs => (&self.theirs, &self.ours),
        };
        let (base, side, other, made) = (words(base), words(side), words(other), words(made));
        let mut brought = side.iter().filter(|w| !base.contains(*w) && !other.contains(*w)).peekable();
        if brought.peek().is_some() {
            return !brought.any(|w| made.contains(w));
        }
        let mut taken = base.iter().filter(|w| !side.contains(*w) && other.contains(*w)).peekable();
        taken.peek().is_some() && taken.all(|w| made.contains(w))
    }
}

/// Letters, digits and what is not ASCII, in a row.
fn words<'a>(text: &[&'a [u8]]) -> HashSet<&'a [u8]> {
    let inside = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80;
    let all = text.iter().flat_map(|line| line.split(move |b| !inside(b)));
    all.filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line that looks like a marker, and no whole conflict.
    fn left(line: usize, text: &[u8]) -> Option<LeftOver<'_>> {
        Some(LeftOver { line, text, whole: false })
    }

    const TEXT: &[u8] =
        b"top\n<<<<<<< aa\nlane(x)\n||||||| 12\nold(x)\n=======\nmain(x)\n>>>>>>> bb\nmiddle\n<<<<<<< aa\none\n||||||| 12\n=======\ntwo\n>>>>>>> bb:f\nend\n";

    fn marked() -> Marked<'static> {
        Marked::parse(TEXT, "aa", "bb").unwrap()
    }

    /// What is refused of a result: the line that is gone, or the sides that are.
    fn judge(result: &str) -> Result<Vec<(usize, Party)>, String> {
        let marked = marked();
        let made = lines(result.as_bytes());
        let told = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
        let copy: Vec<&'static [u8]> = made.iter().map(|l| &*l.to_vec().leak()).collect();
        let places = marked.fit(&copy).map_err(told)?;
        Ok(marked.dropped(&copy, &places))
    }

    #[test]
    fn a_text_is_taken_apart_and_other_marks_are_text() {
        let marked = marked();
        assert_eq!(marked.plain, [vec![b"top".as_slice()], vec![b"middle"], vec![b"end"]]);
        assert_eq!(marked.regions[0].base, Some(vec![b"old(x)".as_slice()]));
        assert_eq!(marked.regions[1].theirs, [b"two".as_slice()]);
        assert_eq!(Marked::parse(TEXT, "cc", "bb"), None);
        assert_eq!(Marked::parse(b"plain\n", "aa", "bb"), None);
        let odd = b"<<<<<<< aa\nTitle\n=======\n||||||| 1\n=======\nx\n>>>>>>> bb\n";
        assert_eq!(Marked::parse(odd, "aa", "bb").unwrap().regions[0].base, None);
    }

    #[test]
    fn what_needed_no_decision_must_be_there_whole_and_in_order() {
        assert_eq!(judge("top\nlane main\nmiddle\none\ntwo\nend\n"), Ok(vec![]));
        assert_eq!(judge("top\nlane main\nmiddle\none\ntwo\nend"), Ok(vec![]), "the last end of line");
        assert_eq!(judge("lane main\nmiddle\none\ntwo\nend\n"), Err("top".into()));
        assert_eq!(judge("top\nlane main\none\ntwo\nend\n"), Err("middle".into()));
        assert_eq!(judge("top\nlane main\nmiddle\none\ntwo\nend\nmore\n"), Err("end".into()));
        assert_eq!(judge("new\ntop\nlane main\nmiddle\none\ntwo\nend\n"), Err("top".into()));
        assert_eq!(judge("top\nend\n"), Err("middle".into()));
    }

    #[test]
    fn a_side_of_which_no_word_is_left_was_dropped() {
        assert_eq!(judge("top\nlane(x)\nmiddle\none\ntwo\nend\n"), Ok(vec![(0, Party::Theirs)]));
        assert_eq!(judge("top\nmain(x)\nmiddle\ntwo\nend\n"), Ok(vec![(0, Party::Ours), (1, Party::Ours)]));
        assert_eq!(judge("top\nmain_lane(x)\nmiddle\none two\nend\n").unwrap().len(), 2);
        assert_eq!(judge("top\nlane(main(x))\nmiddle\ntwo one\nend\n"), Ok(vec![]));
    }

    /// The sides that are dropped where the whole result stands in the place of the only conflict.
    fn dropped<'a>(marked: &Marked<'a>, made: &[&'a [u8]]) -> Vec<(usize, Party)> {
        let places = marked.fit(made).unwrap();
        marked.dropped(made, &places)
    }

    #[test]
    fn a_removal_that_is_taken_back_was_dropped() {
        let text = b"<<<<<<< aa\n||||||| 1\nold(a)\n=======\nold(a, more)\n>>>>>>> bb\n";
        let marked = Marked::parse(text, "aa", "bb").unwrap();
        assert_eq!(dropped(&marked, &[b"old(a, more)"]), [(0, Party::Ours)]);
        assert_eq!(dropped(&marked, &[b"new(more)"]), []);
    }

    #[test]
    fn a_change_in_no_word_and_one_that_both_made_are_not_called_dropped() {
        let text = b"<<<<<<< aa\nx,\n||||||| 1\nx\n=======\nx, y\n>>>>>>> bb\n";
        let marked = Marked::parse(text, "aa", "bb").unwrap();
        assert_eq!(dropped(&marked, &[b"x, y"]), []);
        let both = b"<<<<<<< aa\nsame one\n||||||| 1\n=======\nsame one\nmore\n>>>>>>> bb\n";
        let marked = Marked::parse(both, "aa", "bb").unwrap();
        assert_eq!(dropped(&marked, &[b"same one", b"more"]), []);
    }

    #[test]
    fn lines_that_stand_twice_blame_nobody() {
        let text =
            b"<<<<<<< aa\none\n||||||| 1\n=======\ntwo\n>>>>>>> bb\n}\n<<<<<<< aa\nthree\n||||||| 1\n=======\nfour\n>>>>>>> bb\n";
        let marked = Marked::parse(text, "aa", "bb").unwrap();
        let made: [&[u8]; 6] = [b"one", b"}", b"two", b"}", b"three", b"four"];
        let places = marked.fit(&made).unwrap();
        assert_eq!(marked.dropped(&made, &places), []);
    }

    #[test]
    fn marks_that_a_side_had_before_are_no_leftovers() {
        let made = lines(b"Title\n=======\n<<<<<<< x\n");
        assert_eq!(Marked::left_over(7, &made, &[b"=======\n"]), left(3, b"<<<<<<< x"));
        assert_eq!(Marked::left_over(7, &made, &[b"=======\n<<<<<<< x\n"]), None);
        assert_eq!(Marked::left_over(9, &made, &[]), None);
    }
}
