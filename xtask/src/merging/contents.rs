//! Contents of generated files: few, so that the same ones recur, and similar, so that git detects renames.

use fastrand::Rng;

use super::super::dice;

/// Number of texts that have nothing in common.
const LONG_TEXT_COUNT: usize = 48;
/// Number of lines of a long text.
const LONG_TEXT_LINES: usize = 14;

/// Returns a random content. Most are long texts, each different from the others.
pub(super) fn new(rng: &mut Rng) -> Vec<u8> {
    match rng.usize(..20) {
        0 => Vec::new(),
        1 => b"short\n".to_vec(),
        2 => b"no end of line".to_vec(),
        3 => vec![0, 1, 2, b'\n', u8::try_from(rng.usize(..4)).unwrap_or(0), 0xff],
        4 => long_text(rng.usize(..LONG_TEXT_COUNT)).replace('\n', "\r\n").into_bytes(),
        _ => long_text(rng.usize(..LONG_TEXT_COUNT)).into_bytes(),
    }
}

/// Returns the content with an edit: one or two lines, rarely nearly all of it.
pub(super) fn edit_content(old: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = old.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    let times = if rng.usize(..6) == 0 { LONG_TEXT_LINES } else { 1 + rng.usize(..2) };
    for _ in 0..times {
        // Few values and few positions, so that both sides sometimes make the same edit.
        let line = format!("edit {}\n", rng.usize(..3)).into_bytes();
        let at = if rng.usize(..2) == 0 { rng.usize(..3) } else { rng.usize(..=lines.len()) };
        match (rng.usize(..4), lines.get_mut(at)) {
            (0, Some(_)) => drop(lines.remove(at)),
            (1 | 2, Some(existing)) => *existing = line,
            _ => lines.push(line),
        }
    }
    lines.concat()
}

fn long_text(family: usize) -> String {
    let mut words = dice::seeded(u64::try_from(family).unwrap_or(0), "words");
    let line = |n| format!("{:08x} is line {n} of {family}\n", words.u32(..));
    (0..LONG_TEXT_LINES).map(line).collect::<Vec<String>>().concat()
}
