//! Owns the id of a change: what two commits have in common that change the same lines in the same surroundings.
//!
//! It is what `git patch-id --verbatim` goes by, made in process: exact to the last byte (also behind a NUL, where git
//! stops comparing), and the same whatever a person's settings, attributes or filters make of a diff.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, sources};

use super::text_merge::is_text;
use super::{Change, Oid, Repo, Side};

/// How many unchanged lines around a change belong to it, as in git's own patches.
const CONTEXT: usize = 3;

/// Files longer than this count as a whole: comparing their lines would take longer than a person waits.
const COMPARED: u64 = 4 * 1024 * 1024;

/// The id of a change that is none of nothing. Equal ids mean the same lines taken out and put in, at the same paths, with
/// the same modes and between the same lines; where in the file does not count. Binary files, links and submodules count
/// by what they were and what they became.
pub(super) fn patch_id(repo: &Repo, changes: &[Change]) -> Option<Oid> {
    if changes.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    for change in changes {
        add(&mut out, b'p', change.path.as_bytes());
        for side in [change.old, change.new] {
            add(&mut out, b'm', &side.map_or(0, |s| s.mode).to_be_bytes());
        }
        match (text(repo, change.old), text(repo, change.new)) {
            (Some(old), Some(new)) => add_hunks(&mut out, &old, &new),
            _ => {
                for side in [change.old, change.new].into_iter().flatten() {
                    add(&mut out, b'o', side.oid.to_string().as_bytes());
                }
            }
        }
    }
    repo.blob_id(&out)
}

/// The id of what takes a change back.
pub(super) fn inverse_id(repo: &Repo, changes: &[Change]) -> Option<Oid> {
    let back = |c: &Change| Change { path: c.path.clone(), old: c.new, new: c.old };
    patch_id(repo, &changes.iter().map(back).collect::<Vec<_>>())
}

/// The lines of one side, if it has lines. A file that is not there has none.
fn text(repo: &Repo, side: Option<Side>) -> Option<Vec<u8>> {
    let Some(side) = side else { return Some(Vec::new()) };
    let bytes = side.is_file().then(|| repo.small_blob(side.oid, COMPARED)).flatten()?;
    is_text(&bytes).then_some(bytes)
}

/// Adds what changed, with the lines around it. The length of each part is written before it, so that no two different
/// changes come out the same.
fn add_hunks(out: &mut Vec<u8>, old: &[u8], new: &[u8]) {
    let lines = |text| -> Vec<&[u8]> { <[u8]>::split_inclusive(text, |b| *b == b'\n').collect() };
    let (before, after) = (lines(old), lines(new));
    let mut last: Option<usize> = None;
    for (removed, added) in hunks(old, new) {
        let from = match last {
            Some(end) if removed.start - end <= 2 * CONTEXT => end,
            Some(end) => {
                add_all(out, b' ', &before[end..end + CONTEXT]);
                add(out, b'@', b"");
                removed.start - CONTEXT
            }
            None => removed.start.saturating_sub(CONTEXT),
        };
        add_all(out, b' ', &before[from..removed.start]);
        add_all(out, b'-', &before[removed.clone()]);
        add_all(out, b'+', &after[added]);
        last = Some(removed.end);
    }
    if let Some(end) = last {
        add_all(out, b' ', &before[end..before.len().min(end + CONTEXT)]);
    }
}

/// The lines that went and those that came for them, in order.
fn hunks(old: &[u8], new: &[u8]) -> Vec<(Range<usize>, Range<usize>)> {
    let input = InternedInput::new(sources::byte_lines(old), sources::byte_lines(new));
    // The histogram goes by how often lines are in the whole file, which may be another one on the other side.
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_no_heuristic(&input);
    let range = |r: Range<u32>| r.start as usize..r.end as usize;
    diff.hunks().map(|hunk| (range(hunk.before), range(hunk.after))).collect()
}

fn add_all(out: &mut Vec<u8>, kind: u8, lines: &[&[u8]]) {
    for line in lines {
        add(out, kind, line);
    }
}

fn add(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&bytes.len().to_be_bytes());
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(old: &str, new: &str) -> Vec<u8> {
        let mut out = Vec::new();
        add_hunks(&mut out, old.as_bytes(), new.as_bytes());
        out
    }

    #[test]
    fn a_change_is_the_same_wherever_it_is_and_only_then() {
        let long = |head: &str, mid: &str| format!("{head}1\n2\n3\n{mid}4\n5\n6\n7\n8\n9\n");
        let one = told(&long("", ""), &long("", "x\n"));
        assert_eq!(one, told(&long("a\nb\n", ""), &long("a\nb\n", "x\n")), "further down");
        for other in ["x\r\n", " x\n", "x \n", "x", "X\n", "x\n\n"] {
            assert_ne!(one, told(&long("", ""), &long("", other)), "{other:?}");
        }
        let near = told("1\n2\n3\n4\n5\n6!\n7\n", "1\n2\n3\nx\n4\n5\n6!\n7\n");
        assert_ne!(one, near, "between other lines");
        assert_ne!(told("a", "a\n"), told("a\n", "a"), "and back");
    }

    #[test]
    fn changes_far_from_each_other_are_not_taken_for_near_ones() {
        let text: Vec<String> = (1..30).map(|n| format!("{n}\n")).collect();
        let with = |at: &[usize]| -> String {
            let mark = |(n, line): (usize, &String)| {
                if at.contains(&n) { format!("new\n{line}") } else { line.clone() }
            };
            text.iter().enumerate().map(mark).collect()
        };
        let all = with(&[]);
        let ids: Vec<Vec<u8>> =
            [vec![5], vec![5, 10], vec![5, 11], vec![5, 12], vec![5, 20], vec![0], vec![0, 28]]
                .iter()
                .map(|at| told(&all, &with(at)))
                .collect();
        for (n, one) in ids.iter().enumerate() {
            assert!(ids[..n].iter().all(|other| other != one), "{n}");
        }
    }
}
