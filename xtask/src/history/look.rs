//! Owns looking at a repository: its moment as it really is, read without asking git for more than objects.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::bench::Bench;
use super::model::{Lane, Model, Open};
use super::objects::{Objects, hex};
use super::parts::{File, Files, Kind, Snap, Tree};
use super::step::MAIN;
use super::{Outcome, fail};

/// A moment, and what git-proq wrote down of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The moment; snapshots are counted only.
    pub(super) model: Model,
    /// The records of lanes and preview, word for word.
    pub(super) records: Vec<String>,
    /// How many operations were logged.
    pub(super) operations: usize,
    /// What should not be there.
    pub(super) leftovers: Vec<String>,
}

/// Looks at everything.
pub(super) fn look(bench: &Bench) -> Outcome<Seen> {
    let objects = bench.objects()?;
    let git = bench.repo().join(".git");
    let mut seen = Seen::default();
    packed_refs(&git, &mut seen.model);
    loose_refs(&git, &git.join("refs"), &mut seen.model)?;
    let main = tree(objects, &bench.repo(), &git)?;
    seen.model.trees.insert(MAIN.to_owned(), main);
    for name in names(&bench.repo().join(".proq-worktrees")) {
        let dir = bench.repo().join(".proq-worktrees").join(&name);
        if dir.is_dir() {
            let link = fs::read_to_string(dir.join(".git")).unwrap_or_default();
            let admin = link.trim().trim_start_matches("gitdir: ").to_owned();
            seen.model.trees.insert(name, tree(objects, &dir, Path::new(&admin))?);
        }
    }
    for name in names(&git.join("proq/lanes")) {
        let text = fs::read_to_string(git.join("proq/lanes").join(&name).join("lane.toml"));
        let text = text.unwrap_or_else(|e| format!("state = \"{e}\""));
        seen.model.lanes.insert(name, lane(&text));
        seen.records.push(text);
    }
    if let Ok(text) = fs::read_to_string(git.join("proq/preview.toml")) {
        seen.model.open = Some(open(&text));
        seen.records.push(text);
    }
    seen.operations = names(&git.join("proq/ops")).len();
    seen.leftovers = names(&git.join("proq/work")).into_iter().map(|n| format!("proq/work/{n}")).collect();
    locks(&git, &mut seen.leftovers);
    Ok(seen)
}

/// What a folder holds; nothing when it is not there.
pub(super) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut out: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    out.sort();
    out
}

fn locks(dir: &Path, out: &mut Vec<String>) {
    for name in names(dir) {
        let path = dir.join(&name);
        if name == "objects" || path.ends_with("proq/locks") || path.ends_with("proq/trash") {
            continue;
        }
        if path.is_dir() {
            locks(&path, out);
        } else if Path::new(&name).extension().is_some_and(|e| e == "lock") {
            out.push(name);
        }
    }
}

fn packed_refs(git: &Path, model: &mut Model) {
    let text = fs::read_to_string(git.join("packed-refs")).unwrap_or_default();
    for (id, name) in text.lines().filter_map(|l| l.split_once(' ')) {
        if name.starts_with("refs/") && !name.starts_with("refs/proq/") {
            model.refs.insert(name.to_owned(), id.to_owned());
        }
    }
}

fn loose_refs(git: &Path, dir: &Path, model: &mut Model) -> Outcome<()> {
    for name in names(dir) {
        let path = dir.join(name);
        let full = path.strip_prefix(git)?.to_string_lossy().into_owned();
        if full == "refs/proq" {
            continue;
        }
        if path.is_dir() {
            loose_refs(git, &path, model)?;
        } else {
            model.refs.insert(full, fs::read_to_string(&path)?.trim().to_owned());
        }
    }
    Ok(())
}

fn tree(objects: &Objects, dir: &Path, git: &Path) -> Outcome<Tree> {
    let mut tree = Tree::default();
    let head = fs::read_to_string(git.join("HEAD")).unwrap_or_default();
    head.trim().trim_start_matches("ref: ").clone_into(&mut tree.head);
    files(dir, "", &mut tree.files)?;
    if git.join("index").exists() {
        tree.index = index(objects, &fs::read(git.join("index"))?)?;
    }
    Ok(tree)
}

/// Files below a folder. What is not a plain file is none of this model's.
fn files(dir: &Path, prefix: &str, out: &mut Files) -> Outcome<()> {
    for name in names(dir) {
        if prefix.is_empty() && (name == ".git" || name == ".proq-worktrees") {
            continue;
        }
        let path = dir.join(&name);
        let key = format!("{prefix}{name}");
        let meta = path.symlink_metadata()?;
        if meta.is_dir() {
            files(&path, &format!("{key}/"), out)?;
        } else if meta.is_symlink() {
            let text = fs::read_link(&path)?.to_string_lossy().as_ref().into();
            out.insert(key, File { kind: Kind::Link, text });
        } else {
            let text = String::from_utf8_lossy(&fs::read(&path)?).as_ref().into();
            out.insert(key, File { kind: Kind::of_mode(meta.permissions().mode() & 0o777), text });
        }
    }
    Ok(())
}

/// The entries of an index; one of a merge is called by its path and its stage.
fn index(objects: &Objects, bytes: &[u8]) -> Outcome<Files> {
    let number = |at: usize, len: usize| {
        bytes.get(at..at + len).unwrap_or_default().iter().fold(0_usize, |n, b| n << 8 | usize::from(*b))
    };
    if !bytes.starts_with(b"DIRC") || number(4, 4) > 3 {
        return fail("an index of a form that the model does not read");
    }
    let mut out = Files::new();
    let mut at = 12;
    for _ in 0..number(8, 4) {
        let id = hex(bytes.get(at + 40..at + 60).unwrap_or_default());
        let flags = number(at + 60, 2);
        let start = at + if flags & 0x4000 != 0 { 64 } else { 62 };
        let name = bytes.get(start..).unwrap_or_default().split(|b| *b == 0).next().unwrap_or_default();
        let mut path = String::from_utf8_lossy(name).into_owned();
        let stage = flags >> 12 & 3;
        if stage > 0 {
            path.push_str(&format!(" at stage {stage}"));
        }
        let intended = flags & 0x4000 != 0 && number(at + 62, 2) & 0x2000 != 0;
        let mode = u32::try_from(number(at + 24, 4))?;
        let kind = if intended { Kind::Intent } else { Kind::of_mode(mode) };
        let text = if intended { "".into() } else { objects.blob(&id)? };
        out.insert(path, File { kind, text });
        at += (start - at + name.len() + 8) & !7;
    }
    Ok(out)
}

fn value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(" = "))?;
    Some(line.trim_matches('"'))
}

fn lane(text: &str) -> Lane {
    let of = |key: &str| value(text, key).unwrap_or_default().to_owned();
    let edits = value(text, "preview_edits").map_or(0, |list| list.matches('"').count().div_ceil(2));
    Lane {
        state: of("state"),
        base: of("base"),
        start: of("start"),
        landed: text.contains("[landed]"),
        edits: vec![Snap::default(); edits],
        conflict: None,
    }
}

fn open(text: &str) -> Open {
    let of = |key: &str| value(text, key).unwrap_or_default().to_owned();
    let from = text.split("[came_from]").nth(1).unwrap_or_default();
    let came_from = match value(from, "branch") {
        Some(branch) => format!("refs/heads/{branch}"),
        None => value(from, "detached").unwrap_or_default().to_owned(),
    };
    Open {
        lane: of("lane"),
        tip: of("tip"),
        came_from,
        waiting: value(text, "snapshot").map(|_| Snap::default()),
    }
}
