//! Owns the search for contents that must not get lost: no byte that anybody wrote is out of reach.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::place::Place;
use super::state::State;
use super::{Outcome, fail};
use crate::checkout;

/// The contents that are nowhere: not in a file of a worktree, not below `.git/proq`, not in a blob that an index entry,
/// a ref or a reflog holds.
pub(crate) fn lost(place: &Place, tokens: &[String]) -> Outcome<Vec<String>> {
    let mut missing: BTreeSet<&str> = tokens.iter().map(String::as_str).collect();
    search_files(&place.repo(), &mut missing)?;
    search_files(&place.repo().join(".git/proq"), &mut missing)?;
    if !missing.is_empty() {
        search_objects(place, &mut missing)?;
    }
    Ok(missing.into_iter().map(|t| t.trim_end().to_owned()).collect())
}

/// The contents that were found in git's objects, by what git's own files were then.
pub(super) type Reached = HashMap<u64, BTreeSet<String>>;

/// The same as [`lost`], where `state` is what is on disk. What git's objects hold is looked up where git's own files,
/// the names of its objects included, are as they were at an earlier time.
pub(super) fn lost_from(
    place: &Place,
    tokens: &[String],
    state: State,
    reached: &mut Reached,
) -> Outcome<Vec<String>> {
    let found = match reached.entry(state.git) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => {
            let mut missing = tokens.iter().map(String::as_str).collect();
            search_objects(place, &mut missing)?;
            entry.insert(tokens.iter().filter(|t| !missing.contains(t.as_str())).cloned().collect())
        }
    };
    let elsewhere = |token: &&str| !found.contains(*token);
    let mut missing: BTreeSet<&str> = tokens.iter().map(String::as_str).filter(elsewhere).collect();
    if !missing.is_empty() {
        search_files(&place.repo(), &mut missing)?;
        search_files(&place.repo().join(".git/proq"), &mut missing)?;
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
            strike(&fs::read(&path)?, missing);
        }
    }
    Ok(())
}

/// Strikes out what stands in a content. Every precious content begins with the same word and is one line.
fn strike(content: &[u8], missing: &mut BTreeSet<&str>) {
    const WORD: &[u8] = b"precious ";
    for (at, _) in content.windows(WORD.len()).enumerate().filter(|(_, w)| *w == WORD) {
        let line = content[at..].split_inclusive(|b| *b == b'\n').next().unwrap_or_default();
        if let Ok(line) = std::str::from_utf8(line) {
            missing.remove(line);
            // As it is where the worktree's lines end with CR LF.
            missing.remove(line.replace("\r\n", "\n").as_str());
        }
    }
}

/// Reads every object that refs, reflogs, HEADs and indexes of all worktrees hold. The beginnings are collected here and
/// not by git's own `--all --reflog --indexed-objects`, which gives up when a killed `git worktree add` has left a
/// worktree half-made; nothing is lost by that.
fn search_objects(place: &Place, missing: &mut BTreeSet<&str>) -> Outcome<()> {
    let mut roots = place
        .answer(place.command("git", &place.repo()).args(["for-each-ref", "--format=%(objectname)"]))?
        .stdout;
    ids_of_files(&place.repo().join(".git"), &mut roots)?;
    for tree in place.worktrees()? {
        // Only what can be read can be found.
        for entry in checkout::index(&place.list_index(&tree)?.stdout).into_values() {
            roots.extend_from_slice(entry.split(' ').nth(2).unwrap_or_default().as_bytes());
            roots.push(b'\n');
        }
    }
    let mut list = place.command("git", &place.repo());
    list.args(["rev-list", "--objects", "--no-object-names", "--ignore-missing", "--stdin"]);
    let ids = fed(list, roots)?;
    let mut batch = place.command("git", &place.repo());
    batch.args(["cat-file", "--batch", "--buffer"]);
    strike(&fed(batch, ids)?, missing);
    Ok(())
}

/// Object ids in HEADs and reflogs, of all worktrees.
fn ids_of_files(dir: &Path, out: &mut Vec<u8>) -> Outcome<()> {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            if name != "objects" && name != "proq" {
                ids_of_files(&path, out)?;
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

/// What a command answers to this input.
fn fed(mut command: Command, input: Vec<u8>) -> Outcome<Vec<u8>> {
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
