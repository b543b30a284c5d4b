//! Names of generated files and folders: few, and such as have caused defects.

use fastrand::Rng;

/// Names that sort differently as a file and as a folder, names with bytes that must be quoted, and plain
/// ones.
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

/// Returns a random name.
pub(super) fn random_name(rng: &mut Rng) -> Vec<u8> {
    // The first names are common; the hostile ones are rare.
    let plain_count = 12;
    let at = if rng.usize(..5) == 0 { rng.usize(..NAMES.len()) } else { rng.usize(..plain_count) };
    NAMES.get(at).copied().unwrap_or(b"a").to_vec()
}

/// Joins a folder and a name; the empty folder is the top.
pub(super) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, name].join(&b'/') }
}

/// Returns the folder of a path; empty at the top.
pub(super) fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(&[], |at| &path[..at])
}

/// Returns the last component of a path.
pub(super) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// Returns whether a path is below a folder.
pub(super) fn is_below(path: &[u8], folder: &[u8]) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// Returns a path escaped to one line.
pub(super) fn escaped(path: &[u8]) -> String {
    path.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_and_splits_paths() {
        assert_eq!(join(b"", b"a"), b"a");
        assert_eq!(join(b"a/b", b"c"), b"a/b/c");
        assert_eq!((parent(b"a/b/c"), file_name(b"a/b/c")), (&b"a/b"[..], &b"c"[..]));
        assert_eq!((parent(b"a"), file_name(b"a")), (&b""[..], &b"a"[..]));
        assert!(
            is_below(b"a/b", b"a") && is_below(b"a", b"") && !is_below(b"a.b", b"a") && !is_below(b"a", b"a")
        );
    }
}
