//! Reader of a repository's real state. Git is only used to read objects.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::model::{Lane, Model, OpenPreview};
use super::objects::{Objects, hex};
use super::step::MAIN;
use super::test_bench::TestBench;
use super::worktree::{File, Files, Kind, Snapshot, Worktree};
use super::{Outcome, fail};

/// State of the repository, and what git-proq recorded about it.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    /// State of the repository; snapshots are only counted.
    pub(super) model: Model,
    /// Records of lanes and of the preview, verbatim.
    pub(super) records: Vec<String>,
    /// Number of logged operations.
    pub(super) operations: usize,
    /// Files that should not be there.
    pub(super) leftovers: Vec<String>,
}

/// Reads the state of the repository.
pub(super) fn observe(bench: &TestBench) -> Outcome<Observed> {
    let objects = bench.objects()?;
    let git = bench.repo().join(".git");
    let mut observed = Observed::default();
    read_packed_refs(&git, &mut observed.model);
    read_loose_refs(&git, &git.join("refs"), &mut observed.model)?;
    let main = read_worktree(objects, &bench.repo(), &git)?;
    observed.model.trees.insert(MAIN.to_owned(), main);
    for name in dir_entries(&bench.repo().join(".proq-worktrees")) {
        let dir = bench.repo().join(".proq-worktrees").join(&name);
        if dir.is_dir() {
            let link = fs::read_to_string(dir.join(".git")).unwrap_or_default();
            let admin = link.trim().trim_start_matches("gitdir: ").to_owned();
            observed.model.trees.insert(name, read_worktree(objects, &dir, Path::new(&admin))?);
        }
    }
    for name in dir_entries(&git.join("proq/lanes")) {
        let text = fs::read_to_string(git.join("proq/lanes").join(&name).join("lane.toml"));
        let text = text.unwrap_or_else(|e| format!("state = \"{e}\""));
        observed.model.lanes.insert(name, parse_lane(&text));
        observed.records.push(text);
    }
    if let Ok(text) = fs::read_to_string(git.join("proq/preview.toml")) {
        observed.model.preview = Some(parse_preview(&text));
        observed.records.push(text);
    }
    observed.operations = dir_entries(&git.join("proq/ops")).len();
    observed.leftovers =
        dir_entries(&git.join("proq/work")).into_iter().map(|n| format!("proq/work/{n}")).collect();
    collect_locks(&git, &mut observed.leftovers);
    Ok(observed)
}

/// Returns the names in a folder, sorted; empty if the folder does not exist.
pub(super) fn dir_entries(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut out: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    out.sort();
    out
}

fn collect_locks(dir: &Path, out: &mut Vec<String>) {
    for name in dir_entries(dir) {
        let path = dir.join(&name);
        if name == "objects" || path.ends_with("proq/locks") || path.ends_with("proq/trash") {
            continue;
        }
        if path.is_dir() {
            collect_locks(&path, out);
        } else if Path::new(&name).extension().is_some_and(|e| e == "lock") {
            out.push(name);
        }
    }
}

fn read_packed_refs(git: &Path, model: &mut Model) {
    let text = fs::read_to_string(git.join("packed-refs")).unwrap_or_default();
    for (id, name) in text.lines().filter_map(|l| l.split_once(' ')) {
        if name.starts_with("refs/") && !name.starts_with("refs/proq/") {
            model.refs.insert(name.to_owned(), id.to_owned());
        }
    }
}

fn read_loose_refs(git: &Path, dir: &Path, model: &mut Model) -> Outcome<()> {
    for name in dir_entries(dir) {
        let path = dir.join(name);
        let full = path.strip_prefix(git)?.to_string_lossy().into_owned();
        if full == "refs/proq" {
            continue;
        }
        if path.is_dir() {
            read_loose_refs(git, &path, model)?;
        } else {
            model.refs.insert(full, fs::read_to_string(&path)?.trim().to_owned());
        }
    }
    Ok(())
}

fn read_worktree(objects: &Objects, dir: &Path, git: &Path) -> Outcome<Worktree> {
    let mut tree = Worktree::default();
    let head = fs::read_to_string(git.join("HEAD")).unwrap_or_default();
    head.trim().trim_start_matches("ref: ").clone_into(&mut tree.head);
    collect_files(dir, "", &mut tree.files)?;
    if git.join("index").exists() {
        tree.index = parse_index(objects, &fs::read(git.join("index"))?)?;
    }
    Ok(tree)
}

/// Collects the files below a folder. Special files are not part of the model.
fn collect_files(dir: &Path, prefix: &str, out: &mut Files) -> Outcome<()> {
    for name in dir_entries(dir) {
        if prefix.is_empty() && (name == ".git" || name == ".proq-worktrees") {
            continue;
        }
        let path = dir.join(&name);
        let key = format!("{prefix}{name}");
        let meta = path.symlink_metadata()?;
        if meta.is_dir() {
            collect_files(&path, &format!("{key}/"), out)?;
        } else if meta.is_symlink() {
            let text = fs::read_link(&path)?.to_string_lossy().as_ref().into();
            out.insert(key, File { kind: Kind::Symlink, text });
        } else {
            let text = String::from_utf8_lossy(&fs::read(&path)?).as_ref().into();
            out.insert(key, File { kind: Kind::from_mode(meta.permissions().mode() & 0o777), text });
        }
    }
    Ok(())
}

/// Parses the entries of an index. The key of an unmerged entry is its path with its stage.
fn parse_index(objects: &Objects, bytes: &[u8]) -> Outcome<Files> {
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
        let is_intent_to_add = flags & 0x4000 != 0 && number(at + 62, 2) & 0x2000 != 0;
        let mode = u32::try_from(number(at + 24, 4))?;
        let kind = if is_intent_to_add { Kind::IntentToAdd } else { Kind::from_mode(mode) };
        let text = if is_intent_to_add { "".into() } else { objects.blob(&id)? };
        out.insert(path, File { kind, text });
        at += (start - at + name.len() + 8) & !7;
    }
    Ok(out)
}

fn toml_value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(" = "))?;
    Some(line.trim_matches('"'))
}

fn parse_lane(text: &str) -> Lane {
    let field = |key: &str| toml_value(text, key).unwrap_or_default().to_owned();
    let edits = toml_value(text, "preview_edits").map_or(0, |list| list.matches('"').count().div_ceil(2));
    Lane {
        state: field("state"),
        base: field("base"),
        fork_point: field("start"),
        landed: text.contains("[landed]"),
        preview_edits: vec![Snapshot::default(); edits],
        conflict: None,
    }
}

fn parse_preview(text: &str) -> OpenPreview {
    let field = |key: &str| toml_value(text, key).unwrap_or_default().to_owned();
    let from = text.split("[came_from]").nth(1).unwrap_or_default();
    let came_from = match toml_value(from, "branch") {
        Some(branch) => format!("refs/heads/{branch}"),
        None => toml_value(from, "detached").unwrap_or_default().to_owned(),
    };
    OpenPreview {
        lane: field("lane"),
        tip: field("tip"),
        came_from,
        parked: toml_value(text, "snapshot").map(|_| Snapshot::default()),
    }
}
