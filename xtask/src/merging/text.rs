//! Owns the contents of files: few, so that the same ones turn up again, and alike, so that renames are seen.

use super::super::dice::Dice;

/// How many texts there are that have nothing in common.
const FAMILIES: usize = 48;
/// How many lines a long text has.
const LINES: usize = 14;

/// A new content. Most are long texts, each unlike the others.
pub(super) fn new(dice: &mut Dice) -> Vec<u8> {
    match dice.below(20) {
        0 => Vec::new(),
        1 => b"short\n".to_vec(),
        2 => b"no end of line".to_vec(),
        3 => vec![0, 1, 2, b'\n', u8::try_from(dice.below(4)).unwrap_or(0), 0xff],
        4 => long(dice.below(FAMILIES)).replace('\n', "\r\n").into_bytes(),
        _ => long(dice.below(FAMILIES)).into_bytes(),
    }
}

/// The same content with something changed: a line or two, seldom nearly all of it.
pub(super) fn edited(old: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = old.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    let times = if dice.below(6) == 0 { LINES } else { 1 + dice.below(2) };
    for _ in 0..times {
        // Few values and few places, so that both sides come upon the same edit now and then.
        let line = format!("edit {}\n", dice.below(3)).into_bytes();
        let at = if dice.below(2) == 0 { dice.below(3) } else { dice.below(lines.len() + 1) };
        match (dice.below(4), lines.get_mut(at)) {
            (0, Some(_)) => drop(lines.remove(at)),
            (1 | 2, Some(found)) => *found = line,
            _ => lines.push(line),
        }
    }
    lines.concat()
}

fn long(family: usize) -> String {
    let mut words = Dice::new(u64::try_from(family).unwrap_or(0), "words");
    let line = |n| format!("{:08x} is line {n} of {family}\n", words.next() & 0xffff_ffff);
    (0..LINES).map(line).collect::<Vec<String>>().concat()
}
