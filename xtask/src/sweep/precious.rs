//! Owns the search for contents that must not get lost: no byte that anybody wrote is out of reach.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use super::place::Place;
use super::{Outcome, fail};

/// The contents that are nowhere: not in a file of a worktree, not below `.git/proq`, not in a blob that an index entry,
/// a ref or a reflog holds.
pub(super) fn lost(place: &Place, tokens: &[String]) -> Outcome<Vec<String>> {
    let mut missing: BTreeSet<&str> = tokens.iter().map(String::as_str).collect();
    search_files(&place.repo(), &mut missing)?;
    search_files(&place.repo().join(".git/proq"), &mut missing)?;
    if !missing.is_empty() {
        search_objects(place, &mut missing)?;
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

fn strike(content: &[u8], missing: &mut BTreeSet<&str>) {
    missing.retain(|token| !content.windows(token.len()).any(|w| w == token.as_bytes()));
}

/// Reads every object that refs, reflogs, HEADs and indexes of all worktrees hold.
fn search_objects(place: &Place, missing: &mut BTreeSet<&str>) -> Outcome<()> {
    let args = ["rev-list", "--objects", "--no-object-names", "--all", "--reflog", "--indexed-objects"];
    let ids = place.answer(place.command("git", &place.repo()).args(args))?.ok("git rev-list")?;
    let mut batch = place.command("git", &place.repo());
    batch.args(["cat-file", "--batch", "--buffer"]);
    let mut child = batch.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let Some(mut stdin) = child.stdin.take() else { return fail("git cat-file has no input") };
    let out = std::thread::scope(|scope| {
        scope.spawn(move || drop(stdin.write_all(&ids)));
        child.wait_with_output()
    })?;
    strike(&out.stdout, missing);
    Ok(())
}
