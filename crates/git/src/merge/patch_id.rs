//! Patch id: an id that two commits share if they change the same lines in the same context.
//!
//! It follows `git patch-id --verbatim`, computed in process. It is exact to the last byte (also after a NUL,
//! where git stops comparing), and independent of the settings, attributes or filters that affect a diff.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, sources};

use super::text_merge::is_text;
use crate::history::tree_diff::{TreeChange, TreeFile};
use crate::{BlobId, Oid, Repo};

/// Number of unchanged lines around a change that belong to it, as in git's own patches.
const CONTEXT_LINES: usize = 3;

/// Size of the largest file that is compared by lines; larger files count by their blob ids, because the
/// comparison would take too long.
const MAX_DIFFED_BYTES: u64 = 4 * 1024 * 1024;

/// Returns the patch id of changes; `None` if there are none. Equal ids mean the same lines removed and
/// added, at the same paths, with the same modes and between the same lines; the position in the file does
/// not count. Binary files, links and submodules count by their old and new object ids.
pub(crate) fn patch_id(repo: &Repo, changes: &[TreeChange]) -> Option<Oid> {
    if changes.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    for change in changes {
        encode_field(&mut out, b'p', change.path.as_bytes());
        for side in [change.old, change.new] {
            encode_field(&mut out, b'm', &side.map_or(0, |s| s.mode).to_be_bytes());
        }
        match (read_text(repo, change.old), read_text(repo, change.new)) {
            (Some(old), Some(new)) => encode_hunks(&mut out, &old, &new),
            _ => {
                for side in [change.old, change.new].into_iter().flatten() {
                    encode_field(&mut out, b'o', side.oid.to_string().as_bytes());
                }
            }
        }
    }
    repo.blob_id(&out).map(BlobId::oid)
}

/// Returns the patch id of the inverse of changes, as a revert has it.
pub(crate) fn inverse_patch_id(repo: &Repo, changes: &[TreeChange]) -> Option<Oid> {
    let inverted = |c: &TreeChange| TreeChange { path: c.path.clone(), old: c.new, new: c.old };
    patch_id(repo, &changes.iter().map(inverted).collect::<Vec<_>>())
}

/// Returns the text of one side of a change; `None` if it is binary, too large or no regular file. A missing
/// file has no lines.
pub(super) fn read_text(repo: &Repo, side: Option<TreeFile>) -> Option<Vec<u8>> {
    let Some(side) = side else { return Some(Vec::new()) };
    let bytes = side.is_file().then(|| repo.small_blob(side.blob(), MAX_DIFFED_BYTES)).flatten()?;
    is_text(&bytes).then_some(bytes)
}

/// Adds the changed lines between two texts, with their context, to the encoding `out`. Each field is
/// preceded by its length, so that different changes have different encodings.
fn encode_hunks(out: &mut Vec<u8>, old: &[u8], new: &[u8]) {
    let lines = |text| -> Vec<&[u8]> { <[u8]>::split_inclusive(text, |b| *b == b'\n').collect() };
    let (before, after) = (lines(old), lines(new));
    let mut last_end: Option<usize> = None;
    for (removed, added) in hunks(old, new) {
        let start = match last_end {
            Some(end) if removed.start - end <= 2 * CONTEXT_LINES => end,
            Some(end) => {
                encode_lines(out, b' ', &before[end..end + CONTEXT_LINES]);
                encode_field(out, b'@', b"");
                removed.start - CONTEXT_LINES
            }
            None => removed.start.saturating_sub(CONTEXT_LINES),
        };
        encode_lines(out, b' ', &before[start..removed.start]);
        encode_lines(out, b'-', &before[removed.clone()]);
        encode_lines(out, b'+', &after[added]);
        last_end = Some(removed.end);
    }
    if let Some(end) = last_end {
        encode_lines(out, b' ', &before[end..before.len().min(end + CONTEXT_LINES)]);
    }
}

/// Returns the ranges of removed lines and of the lines added in their place, in order.
pub(super) fn hunks(old: &[u8], new: &[u8]) -> Vec<(Range<usize>, Range<usize>)> {
    let input = InternedInput::new(sources::byte_lines(old), sources::byte_lines(new));
    // The histogram algorithm depends on how often lines occur in the entire file, which may differ between
    // the two commits.
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_no_heuristic(&input);
    let range = |r: Range<u32>| r.start as usize..r.end as usize;
    diff.hunks().map(|hunk| (range(hunk.before), range(hunk.after))).collect()
}

/// Appends lines to the encoding `out`, each as a field of this kind: removed, added or context.
fn encode_lines(out: &mut Vec<u8>, kind: u8, lines: &[&[u8]]) {
    for line in lines {
        encode_field(out, kind, line);
    }
}

/// Appends a field to the encoding `out`: its kind, its length and its bytes.
fn encode_field(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&bytes.len().to_be_bytes());
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk_bytes(old: &str, new: &str) -> Vec<u8> {
        let mut out = Vec::new();
        encode_hunks(&mut out, old.as_bytes(), new.as_bytes());
        out
    }

    /// Promise: removal/exact-patch-id
    #[test]
    fn equal_only_for_same_lines_and_context() {
        let sample = |head: &str, mid: &str| format!("{head}1\n2\n3\n{mid}4\n5\n6\n7\n8\n9\n");
        let expected = hunk_bytes(&sample("", ""), &sample("", "x\n"));
        assert_eq!(expected, hunk_bytes(&sample("a\nb\n", ""), &sample("a\nb\n", "x\n")), "further down");
        for other in ["x\r\n", " x\n", "x \n", "x", "X\n", "x\n\n"] {
            assert_ne!(expected, hunk_bytes(&sample("", ""), &sample("", other)), "{other:?}");
        }
        let near = hunk_bytes("1\n2\n3\n4\n5\n6!\n7\n", "1\n2\n3\nx\n4\n5\n6!\n7\n");
        assert_ne!(expected, near, "between other lines");
        assert_ne!(hunk_bytes("a", "a\n"), hunk_bytes("a\n", "a"), "and back");
    }

    #[test]
    fn distance_between_changes_counts() {
        let text: Vec<String> = (1..30).map(|n| format!("{n}\n")).collect();
        let with_lines_before = |at: &[usize]| -> String {
            let mark = |(n, line): (usize, &String)| {
                if at.contains(&n) { format!("new\n{line}") } else { line.clone() }
            };
            text.iter().enumerate().map(mark).collect()
        };
        let original = with_lines_before(&[]);
        let ids: Vec<Vec<u8>> =
            [vec![5], vec![5, 10], vec![5, 11], vec![5, 12], vec![5, 20], vec![0], vec![0, 28]]
                .iter()
                .map(|at| hunk_bytes(&original, &with_lines_before(at)))
                .collect();
        for (n, id) in ids.iter().enumerate() {
            assert!(ids[..n].iter().all(|other| other != id), "{n}");
        }
    }
}
