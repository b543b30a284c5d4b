//! Image of a repository at one moment, in a form in which two moments can be compared.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use super::Outcome;
use super::fixture::{Fixture, without_ids};
use crate::checkout;

/// Files that git keeps while an operation of its own is unfinished.
const UNFINISHED_MARKERS: &[&str] =
    &["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply"];

/// Refs that only keep objects, whose names differ between runs.
const KEEP_REFS: &[&str] = &["refs/proq/saved/", "refs/proq/op/", "refs/proq/pending/"];

pub(super) use crate::checkout::{Image, difference};

/// Reads the image of a repository.
pub(super) fn read_image(fixture: &Fixture) -> Outcome<Image> {
    let mut image = Image::new();
    let repo = fixture.repo();
    add_lists(fixture, &mut image)?;
    for dir in fixture.worktrees()? {
        let name = match dir.strip_prefix(repo.join(".proq-worktrees")) {
            Ok(lane) => format!("lane {}", lane.display()),
            Err(_) => "main".to_owned(),
        };
        add_files(&dir, &format!("{name}: file"), &mut image)?;
        add_index(fixture, &dir, &name, &mut image)?;
        add_head(&dir, &name, &mut image)?;
    }
    add_refs(fixture, &mut image)?;
    add_folders(&repo, &mut image)?;
    let fsck = ["fsck", "--connectivity-only", "--no-dangling", "--no-progress"];
    let fsck = fixture.output(fixture.command("git", &repo).args(fsck))?;
    if fsck.code != 0 || !fsck.stderr.is_empty() {
        image.insert("fsck".to_owned(), format!("{} {}", fsck.code, fsck.first_error_line()));
    }
    Ok(image)
}

/// Adds what `git proq list` reports: lanes, states, history, the open preview.
fn add_lists(fixture: &Fixture, image: &mut Image) -> Outcome<()> {
    // On a busy machine the time for forecasts may run out; the next call continues.
    let is_incomplete = |text: &[u8]| String::from_utf8_lossy(text).contains("\"complete\":false");
    let mut answer = fixture.proq(&["list", "--all", "--json"])?;
    for _ in 0..20 {
        if is_incomplete(&answer.stdout) {
            answer = fixture.proq(&["list", "--all", "--json"])?;
        }
    }
    if answer.code != 0 {
        image.insert("list".to_owned(), format!("ended with {}: {}", answer.code, answer.first_error_line()));
        return Ok(());
    }
    let Value::Object(all) = serde_json::from_str::<Value>(&fixture.normalized(&answer.stdout))? else {
        return Ok(());
    };
    for (key, value) in all {
        let Value::Array(rows) = value else {
            image.insert(format!("list: {key}"), value.to_string());
            continue;
        };
        for (n, row) in rows.iter().enumerate() {
            let name = row.get("name").and_then(Value::as_str).map_or_else(|| n.to_string(), str::to_owned);
            let Value::Object(fields) = row else {
                image.insert(format!("list: {key} {name}"), row.to_string());
                continue;
            };
            for (field, value) in fields {
                image.insert(format!("list: {key} {name} {field}"), value.to_string());
            }
        }
    }
    Ok(())
}

/// Adds files, links and folders with modes and contents, including ignored ones, except git's own.
fn add_files(dir: &Path, prefix: &str, image: &mut Image) -> Outcome<()> {
    for (path, value) in checkout::files(dir)? {
        image.insert(format!("{prefix} {}", without_ids(&path)), value);
    }
    Ok(())
}

/// Adds the index entries with tag, mode, id, stage and the lasting flags.
fn add_index(fixture: &Fixture, dir: &Path, tree: &str, image: &mut Image) -> Outcome<()> {
    let answer = fixture.list_index(dir)?;
    if answer.code != 0 {
        image.insert(format!("{tree}: index"), answer.first_error_line());
    }
    for (entry, value) in checkout::index(&answer.stdout) {
        image.insert(format!("{tree}: index {entry}"), value);
    }
    Ok(())
}

/// Adds HEAD, and git's own unfinished operations.
fn add_head(dir: &Path, tree: &str, image: &mut Image) -> Outcome<()> {
    let dot = dir.join(".git");
    let git_dir = if dot.is_file() {
        let link = fs::read_to_string(&dot)?;
        link.trim_end().trim_start_matches("gitdir: ").into()
    } else {
        dot
    };
    let head = fs::read_to_string(git_dir.join("HEAD")).unwrap_or_default();
    image.insert(format!("{tree}: HEAD"), head.trim_end().to_owned());
    for name in UNFINISHED_MARKERS.iter().filter(|name| git_dir.join(name).exists()) {
        image.insert(format!("{tree}: open {name}"), String::new());
    }
    Ok(())
}

fn add_refs(fixture: &Fixture, image: &mut Image) -> Outcome<()> {
    let format = ["for-each-ref", "--format=%(refname) %(objectname) %(symref)"];
    let answer = fixture.output(fixture.command("git", &fixture.repo()).args(format))?;
    if answer.code != 0 || !answer.stderr.is_empty() {
        image.insert("refs".to_owned(), answer.first_error_line());
    }
    for line in String::from_utf8_lossy(&answer.stdout).lines() {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        if KEEP_REFS.iter().any(|k| name.starts_with(k)) {
            continue;
        }
        // The name of a snapshot shows which command made it; only its commit is compared.
        match name.strip_prefix("refs/proq/snap/") {
            Some(_) => image.insert(format!("ref: snapshot {value}"), String::new()),
            None => image.insert(format!("ref: {name}"), value.to_owned()),
        };
    }
    Ok(())
}

/// Adds locks and leftovers, and what is stored in folders: registrations, worktrees, snapshots, the trash.
fn add_folders(repo: &Path, image: &mut Image) -> Outcome<()> {
    let git = repo.join(".git");
    add_locks(&git, &git, image)?;
    let proq = git.join("proq");
    for (kind, dir) in [
        ("leftover work", proq.join("work")),
        ("leftover open", proq.join("open")),
        ("registration", git.join("worktrees")),
        ("worktree", repo.join(".proq-worktrees")),
        ("snapshot folder", proq.join("snaps")),
        ("leftover", git.clone()),
    ] {
        for (n, entry) in fs::read_dir(dir).into_iter().flatten().flatten().enumerate() {
            let name = without_ids(&entry.file_name().to_string_lossy());
            let expected = name == ".gitignore" || kind == "leftover" && !name.starts_with("index.");
            if !expected {
                let key =
                    if name.contains("[ID]") { format!("{kind} {n}") } else { format!("{kind} {name}") };
                image.insert(key, String::new());
            }
        }
    }
    let trash = fs::read_dir(proq.join("trash")).into_iter().flatten().flatten();
    for entry in trash {
        let lane = without_ids(&entry.file_name().to_string_lossy());
        let worktree = entry.path().join("worktree");
        let text = if worktree.exists() { "with its folder" } else { "without a folder" };
        let count = image.keys().filter(|k| k.starts_with(&format!("trash {lane}"))).count();
        image.insert(format!("trash {lane} {count}"), text.to_owned());
        if worktree.is_dir() {
            add_files(&worktree, &format!("trash {lane}: file"), image)?;
        }
        let parked = entry.path().join("aside");
        if parked.is_dir() {
            add_files(&parked, &format!("trash {lane}: aside"), image)?;
        }
    }
    Ok(())
}

fn add_locks(git: &Path, dir: &Path, image: &mut Image) -> Outcome<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.strip_prefix(git)?;
        if name == Path::new("proq/locks") || name == Path::new("objects") || name == Path::new("proq/trash")
        {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            add_locks(git, &path, image)?;
        } else if path.extension().is_some_and(|e| e == "lock") {
            image.insert(without_ids(&format!("lock {}", name.display())), String::new());
        }
    }
    Ok(())
}

/// Returns everything below the repository byte for byte, except what reading it changes: lock files' notes
/// and caches.
pub(super) fn byte_listing(fixture: &Fixture) -> Outcome<Image> {
    let mut out = Image::new();
    add_everything(&fixture.repo(), &fixture.repo(), &mut out)?;
    Ok(out)
}

fn add_everything(root: &Path, dir: &Path, out: &mut Image) -> Outcome<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.strip_prefix(root)?;
        if [".git/proq/locks", ".git/proq/cache"].iter().any(|own| name == Path::new(own)) {
            continue;
        }
        let meta = path.symlink_metadata()?;
        let mode = meta.permissions().mode();
        let key = name.as_os_str().as_bytes().escape_ascii().to_string();
        if meta.is_symlink() {
            out.insert(key, fs::read_link(&path)?.display().to_string());
        } else if meta.is_dir() {
            out.insert(key, format!("{mode:o}"));
            add_everything(root, &path, out)?;
        } else if !meta.is_file() || name.starts_with(".git/objects") {
            out.insert(key, meta.len().to_string());
        } else {
            out.insert(key, format!("{mode:o} {}", fs::read(&path)?.escape_ascii()));
        }
    }
    Ok(())
}
