//! Search for contents that must not be lost: every byte that the user or an agent wrote must be reachable.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::fingerprint::Fingerprint;
use super::fixture::Fixture;
use super::{Outcome, fail};
use crate::checkout;

/// Returns the contents that are nowhere: not in a file of a worktree, not below `.git/proq`, not in a blob
/// reachable from an index entry, a ref or a reflog.
pub(crate) fn find_lost(fixture: &Fixture, tokens: &[String]) -> Outcome<Vec<String>> {
    let mut missing: BTreeSet<&str> = tokens.iter().map(String::as_str).collect();
    search_files(&fixture.repo(), &mut missing)?;
    search_files(&fixture.repo().join(".git/proq"), &mut missing)?;
    if !missing.is_empty() {
        search_objects(fixture, &mut missing)?;
    }
    Ok(missing.into_iter().map(|t| t.trim_end().to_owned()).collect())
}

/// Contents found in git's objects, by the fingerprint of git's own files.
pub(super) type FoundInObjects = HashMap<u64, BTreeSet<String>>;

/// Returns the lost contents, as [`find_lost`] does, for the state on disk. The search in git's objects is
/// skipped where git's own files, including the names of its objects, are as they were before.
pub(super) fn find_lost_at(
    fixture: &Fixture,
    tokens: &[String],
    state: Fingerprint,
    found_in_objects: &mut FoundInObjects,
) -> Outcome<Vec<String>> {
    let found = match found_in_objects.entry(state.git) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => {
            let mut missing = tokens.iter().map(String::as_str).collect();
            search_objects(fixture, &mut missing)?;
            entry.insert(tokens.iter().filter(|t| !missing.contains(t.as_str())).cloned().collect())
        }
    };
    let is_not_in_objects = |token: &&str| !found.contains(*token);
    let mut missing: BTreeSet<&str> = tokens.iter().map(String::as_str).filter(is_not_in_objects).collect();
    if !missing.is_empty() {
        search_files(&fixture.repo(), &mut missing)?;
        search_files(&fixture.repo().join(".git/proq"), &mut missing)?;
    }
    Ok(missing.into_iter().map(|t| t.trim_end().to_owned()).collect())
}

fn search_files(dir: &Path, missing: &mut BTreeSet<&str>) -> Outcome<()> {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry?.path();
        let meta = path.symlink_metadata()?;
        if path.file_name().is_some_and(|n| n == ".git") || missing.is_empty() {
            continue;
        }
        if meta.is_dir() {
            search_files(&path, missing)?;
        } else if meta.is_file() {
            remove_found(&fs::read(&path)?, missing);
        }
    }
    Ok(())
}

/// Removes the contents that occur in a file. Every such content is one line that starts with the same word.
fn remove_found(content: &[u8], missing: &mut BTreeSet<&str>) {
    const WORD: &[u8] = b"precious ";
    for (at, _) in content.windows(WORD.len()).enumerate().filter(|(_, w)| *w == WORD) {
        let line = content[at..].split_inclusive(|b| *b == b'\n').next().unwrap_or_default();
        if let Ok(line) = std::str::from_utf8(line) {
            missing.remove(line);
            // Also as it reads where the worktree's lines end with CR LF.
            missing.remove(line.replace("\r\n", "\n").as_str());
        }
    }
}

/// Reads every object reachable from refs, reflogs, HEADs and indexes of all worktrees. The starting points
/// are collected here and not by git's `--all --reflog --indexed-objects`, which fails when a killed `git
/// worktree add` has left an incomplete worktree; nothing is lost by that.
fn search_objects(fixture: &Fixture, missing: &mut BTreeSet<&str>) -> Outcome<()> {
    let mut roots = fixture
        .output(fixture.command("git", &fixture.repo()).args(["for-each-ref", "--format=%(objectname)"]))?
        .stdout;
    collect_ids(&fixture.repo().join(".git"), &mut roots)?;
    for tree in fixture.worktrees()? {
        // Only readable indexes can be searched.
        for entry in checkout::index(&fixture.list_index(&tree)?.stdout).into_values() {
            roots.extend_from_slice(entry.split(' ').nth(2).unwrap_or_default().as_bytes());
            roots.push(b'\n');
        }
    }
    let mut list = fixture.command("git", &fixture.repo());
    list.args(["rev-list", "--objects", "--no-object-names", "--ignore-missing", "--stdin"]);
    let ids = run_with_input(list, roots)?;
    let mut batch = fixture.command("git", &fixture.repo());
    batch.args(["cat-file", "--batch", "--buffer"]);
    remove_found(&run_with_input(batch, ids)?, missing);
    Ok(())
}

/// Collects the object ids in HEADs and reflogs of all worktrees.
fn collect_ids(dir: &Path, out: &mut Vec<u8>) -> Outcome<()> {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            if name != "objects" && name != "proq" {
                collect_ids(&path, out)?;
            }
        } else if name == "HEAD" || name == "ORIG_HEAD" || path.components().any(|c| c.as_os_str() == "logs")
        {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let ids = text
                .split_whitespace()
                .filter(|w| matches!(w.len(), 40 | 64) && w.bytes().all(|b| b.is_ascii_hexdigit()));
            for id in ids.filter(|id| id.bytes().any(|b| b != b'0')) {
                out.extend_from_slice(id.as_bytes());
                out.push(b'\n');
            }
        }
    }
    Ok(())
}

/// Runs a command with this input and returns its output.
fn run_with_input(mut command: Command, input: Vec<u8>) -> Outcome<Vec<u8>> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let Some(mut stdin) = child.stdin.take() else { return fail("a program without input") };
    let out = std::thread::scope(|scope| {
        scope.spawn(move || drop(stdin.write_all(&input)));
        child.wait_with_output()
    })?;
    if out.status.success() {
        return Ok(out.stdout);
    }
    fail(String::from_utf8_lossy(&out.stderr).trim().to_owned())
}
