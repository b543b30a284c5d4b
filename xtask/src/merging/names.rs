//! Owns the names of files and folders: few, and such as have caused trouble.

use super::super::dice::Dice;

/// Names that sort in another order as a file than as a folder, names with bytes that must be quoted, and plain ones.
const NAMES: &[&[u8]] = &[
    b"a",
    b"a.b",
    b"a-b",
    b"a0",
    b"b",
    b"c",
    b"d",
    b"e",
    b"A",
    b"ab",
    b"lib",
    b"src",
    b"x.union",
    b"y.union",
    b"x.bin",
    b"x.own",
    b"a\nb",
    b"\xff\xfe",
    b"\xc3\xbc",
    b"\"q\"",
    b" ",
    b"-n",
    b"*",
    b"a\\b",
    b"a\tb",
    b"\x01",
];

/// One name.
pub(super) fn name(dice: &mut Dice) -> Vec<u8> {
    // The first few are common, the hostile ones turn up now and then.
    let plain = 12;
    let at = if dice.below(5) == 0 { dice.below(NAMES.len()) } else { dice.below(plain) };
    NAMES.get(at).copied().unwrap_or(b"a").to_vec()
}

/// A path below a folder; the empty path is the top.
pub(super) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, name].join(&b'/') }
}

/// The folder of a path; empty for what lies at the top.
pub(super) fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(&[], |at| &path[..at])
}

/// The last name in a path.
pub(super) fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// Whether a path lies below a folder.
pub(super) fn is_below(path: &[u8], folder: &[u8]) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// A path for people, on one line.
pub(super) fn shown(path: &[u8]) -> String {
    path.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart_and_put_together() {
        assert_eq!(join(b"", b"a"), b"a");
        assert_eq!(join(b"a/b", b"c"), b"a/b/c");
        assert_eq!((parent(b"a/b/c"), last(b"a/b/c")), (&b"a/b"[..], &b"c"[..]));
        assert_eq!((parent(b"a"), last(b"a")), (&b""[..], &b"a"[..]));
        assert!(
            is_below(b"a/b", b"a") && is_below(b"a", b"") && !is_below(b"a.b", b"a") && !is_below(b"a", b"a")
        );
    }
}
