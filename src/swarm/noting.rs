//! Owns noting what has landed where the plan was written: by a commit on top of the base, or in a file that nobody has
//! committed. What a person changed there meanwhile stays as it is; what cannot be noted without touching it is handed back.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};
use serde::{Deserialize, Serialize};

use super::Format;
use super::folders::{DONE, PROMPT, archived};
use super::marks::{self, Noted};
use crate::fault;
use crate::git::{self, Graft, Oid, RepoPath, WorktreeList};
use crate::lane::Project;
use crate::merge::{self, OnTop};
use crate::store::{Layout, exchange, rename_new};

/// The largest file that is looked at for what was noted in it, in bytes: a plan has up to 4 MiB before.
const LARGEST: u64 = 8 * 1024 * 1024;

/// A plan's source, and which of its tasks have landed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Landed<'a> {
    /// What it is written in.
    pub(crate) format: Format,
    /// The one file of it, from the root of the file system. Task folders have none.
    pub(crate) source: Option<&'a Path>,
    /// The milestone that was chosen, where it is a roadmap.
    pub(crate) milestone: &'a str,
    /// The tasks.
    pub(crate) tasks: &'a [LandedTask<'a>],
    /// Whether the folders of tasks go into the archive.
    pub(crate) archive: bool,
}

/// A task that has landed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LandedTask<'a> {
    /// Its name: `area/ID`, or the ID of one without an area.
    pub(crate) name: &'a str,
    /// What it is about.
    pub(crate) title: &'a str,
    /// The folder that it is, from the root of the file system.
    pub(crate) folder: Option<&'a Path>,
}

/// What came of noting.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Noting {
    /// The commit on top of the base.
    pub(crate) commit: Option<Oid>,
    /// Files and folders that were changed where they lie, and are for a person to commit.
    pub(crate) written: Vec<String>,
    /// What could not be noted: the place, why, and a patch where one can be made.
    pub(crate) left: Vec<Left>,
}

impl Noting {
    /// Nothing was noted in a plan.
    pub(super) fn nowhere(plan: &str, why: &str) -> Noting {
        let left =
            Left { path: crate::harmless::line(plan), why: crate::harmless::line(why), patch: String::new() };
        Noting { left: vec![left], ..Noting::default() }
    }
}

/// Something that was not noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Left {
    /// The file or folder.
    pub(crate) path: String,
    /// Why.
    pub(crate) why: String,
    /// What would have been written, as a patch; empty where that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) patch: String,
}

/// One thing in which something is to be noted.
struct Spot {
    /// Where it is.
    path: PathBuf,
    /// The same from the top of the worktree that it lies in.
    inside: Option<RepoPath>,
    what: What,
}

enum What {
    /// A file with all of the tasks.
    File,
    /// The folder of one.
    Folder,
}

/// Notes them, as a commit on `onto` where the source is committed there and nobody is changing it.
///
/// # Errors
/// As those of a landing: the branch was not moved. Files that are in no commit have been changed by then.
pub(crate) fn note(
    project: &Project,
    onto: &str,
    landed: &Landed<'_>,
    message: &str,
) -> Result<Noting, merge::Error> {
    let repo = &project.repo;
    let onto = &repo.branch_behind(onto);
    let mut record = Noting::default();
    let tip = repo.require_commit(&format!("refs/heads/{onto}"))?;
    let tree = repo.tree_of(tip)?;
    let worktrees = WorktreeList::read(repo)?;
    let local = local_changes(project, onto, &worktrees)?;
    let (mut committed, mut others) = (Vec::new(), Vec::new());
    for spot in landed.spots(&worktrees) {
        let there = match &spot.inside {
            Some(path) => repo.is_in(tree, &spot.file(path))? && !is_touched(&local, path),
            None => false,
        };
        if there { committed.push(spot) } else { others.push(spot) }
    }
    for spot in &others {
        let base = match &spot.inside {
            Some(path) => repo.file_in(tree, path)?,
            None => None,
        };
        landed.write(project.store.layout(), spot, base.as_deref(), &mut record);
    }
    let left = RefCell::new(Vec::new());
    let grafts = |tree: Oid| {
        left.borrow_mut().clear();
        let mut all = Vec::new();
        for spot in &committed {
            landed.graft(project, tree, spot, &mut all, &mut left.borrow_mut())?;
        }
        Ok(all)
    };
    record.commit = OnTop { onto, message, grafts: &grafts }.commit(project)?;
    record.left.append(&mut left.borrow_mut());
    Ok(record)
}

/// The paths that differ in worktrees that are on the base.
fn local_changes(
    project: &Project,
    onto: &str,
    worktrees: &WorktreeList,
) -> Result<Vec<RepoPath>, merge::Error> {
    let mut all = Vec::new();
    for worktree in worktrees.on_branch(onto).filter(|worktree| worktree.path.is_dir()) {
        all.extend(git::status(&project.repo, &worktree.path, true)?.paths());
    }
    Ok(all)
}

/// Whether one of these paths is `path` or lies below it.
fn is_touched(local: &[RepoPath], path: &RepoPath) -> bool {
    let below = path.join(b"");
    local.iter().any(|p| p == path || p.as_bytes().starts_with(below.as_bytes()))
}

impl Landed<'_> {
    /// The file and the folders, as they are shown, that say of a task of it that it is done.
    pub(crate) fn noted_on_disk(&self) -> Vec<String> {
        let says_so = |file: &&Path| {
            let Ok(bytes) = crate::regular_file::given(file, LARGEST) else { return false };
            self.tasks.chunks(1).any(|tasks| {
                let noted = Landed { tasks, ..*self }.noted(file, &bytes);
                noted.is_ok_and(|(text, missing)| missing.is_none() && text == bytes)
            })
        };
        let folder = |task: &LandedTask<'_>| {
            let dir = task.folder?;
            let moved = archived(dir).filter(|to| to.join(DONE).exists());
            moved.or_else(|| Some(dir.join(DONE)).filter(|mark| mark.exists()))
        };
        let file = self.source.filter(says_so).map(shown);
        file.into_iter().chain(self.tasks.iter().filter_map(folder).map(|path| shown(&path))).collect()
    }

    /// Where something is to be noted.
    fn spots(&self, worktrees: &WorktreeList) -> Vec<Spot> {
        let tops = worktrees.iter().filter(|worktree| !worktree.bare);
        let tops: Vec<PathBuf> = tops.filter_map(|worktree| worktree.path.canonicalize().ok()).collect();
        let spot =
            |path: &Path, what: What| Spot { path: path.to_owned(), inside: inside(path, &tops), what };
        let file = self.source.filter(|_| !self.tasks.is_empty()).map(|file| spot(file, What::File));
        let folders = self.tasks.iter().filter_map(|task| Some(spot(task.folder?, What::Folder)));
        file.into_iter().chain(folders).collect()
    }

    /// The changes to a tree that note it.
    fn graft(
        &self,
        project: &Project,
        tree: Oid,
        spot: &Spot,
        all: &mut Vec<Graft>,
        left: &mut Vec<Left>,
    ) -> Result<(), git::Error> {
        let Some(path) = &spot.inside else { return Ok(()) };
        let not = |why: &str| Left { path: shown(&spot.path), why: why.to_owned(), patch: String::new() };
        match &spot.what {
            What::File => {
                let Some(bytes) = project.repo.file_in(tree, path)? else {
                    left.push(not("it is not there any more"));
                    return Ok(());
                };
                match self.noted(&spot.path, &bytes) {
                    Ok((text, missing)) => {
                        all.push(Graft::Content(path.clone(), text));
                        left.extend(missing.map(|why| not(&why)));
                    }
                    Err(why) => left.push(not(&why)),
                }
            }
            What::Folder if !project.repo.is_in(tree, path)? => left.push(not("it is not there any more")),
            What::Folder => {
                let mark = path.join(DONE.as_bytes());
                if !project.repo.is_in(tree, &mark)? {
                    all.push(Graft::Content(mark, Vec::new()));
                }
                let to = archived(&path.under(Path::new(""))).and_then(|to| RepoPath::of(&to));
                match to.filter(|_| self.archive) {
                    Some(to) if !can_hold(project, tree, &to)? => {
                        left.push(not("its archive would be where something else is that is no folder"));
                    }
                    Some(to) if project.repo.is_in(tree, &to)? => {
                        left.push(not("there is another one of its name in the archive"));
                    }
                    Some(to) => all.push(Graft::Rename(path.clone(), to)),
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// A file's bytes with its tasks noted, and what is missing of them, in words.
    fn noted(&self, path: &Path, bytes: &[u8]) -> Result<(Vec<u8>, Option<String>), String> {
        const MARK: &str = "\u{feff}";
        let text = std::str::from_utf8(bytes).map_err(|_| "it is no text any more".to_owned())?;
        let (mark, text) = text.strip_prefix(MARK).map_or(("", text), |text| (MARK, text));
        let tasks: Vec<(&str, &str)> = self.tasks.iter().map(|task| (task.name, task.title)).collect();
        let name: Arc<str> = Arc::from(path.display().to_string());
        let file = marks::File { format: self.format, name: &name, text, milestone: self.milestone };
        let Noted { text, missing } = marks::note(file, &tasks).map_err(|e| e.to_string())?;
        let missing = (!missing.is_empty()).then(|| format!("no entry for: {}", missing.join(", ")));
        Ok((format!("{mark}{text}").into_bytes(), missing))
    }

    /// Notes it where it lies, uncommitted.
    fn write(&self, layout: &Layout, spot: &Spot, base: Option<&[u8]>, record: &mut Noting) {
        let done = match &spot.what {
            What::Folder => self.mark_folder(&spot.path).map(Some),
            What::File => self.write_file(layout, &spot.path, base, &mut record.left),
        };
        match done {
            Ok(changed) => record.written.extend(changed.iter().map(|path| shown(path))),
            Err(left) => record.left.push(left),
        }
    }

    /// The path that was changed, if one had to be.
    fn write_file(
        &self,
        layout: &Layout,
        path: &Path,
        base: Option<&[u8]>,
        missing: &mut Vec<Left>,
    ) -> Result<Option<PathBuf>, Left> {
        let not = |why: String, patch| Left { path: shown(path), why, patch };
        // A link stays one.
        let real = path.canonicalize().map_err(|e| not(e.to_string(), String::new()))?;
        // A pipe would be waited for, without end.
        if !real.is_file() {
            return Err(not("it is no file any more".to_owned(), String::new()));
        }
        let old = std::fs::read(&real).map_err(|e| not(e.to_string(), String::new()))?;
        let (new, gone) = self.noted(path, &old).map_err(|why| not(why, String::new()))?;
        missing.extend(gone.map(|why| not(why, String::new())));
        if new == old {
            return Ok(None);
        }
        let (before, after) = (String::from_utf8_lossy(&old), String::from_utf8_lossy(&new));
        let patch = || patch(path, &before, &after);
        if let Some(base) = base
            && !are_lines_of(base, &before, &after)
        {
            return Err(not("somebody is changing these very lines".to_owned(), patch()));
        }
        replace(layout, &real, &old, &new).map_err(|e| not(e.to_string(), patch()))?;
        Ok(Some(path.to_owned()))
    }

    /// The path that was changed.
    fn mark_folder(&self, dir: &Path) -> Result<PathBuf, Left> {
        let not = |e: std::io::Error| Left { path: shown(dir), why: e.to_string(), patch: String::new() };
        if !dir.exists()
            && let Some(moved) = archived(dir).filter(|to| to.join(DONE).exists())
        {
            return Ok(moved);
        }
        match File::create_new(dir.join(DONE)) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(not(e)),
            _ => {}
        }
        let Some(to) = archived(dir).filter(|_| self.archive) else { return Ok(dir.join(DONE)) };
        let moved = std::fs::create_dir_all(to.parent().unwrap_or(dir)).and_then(|()| rename_new(dir, &to));
        moved.map(|()| to).map_err(not)
    }
}

/// A path from the top of the worktree that it is in. It need not be there any more, if its folder is.
fn inside(path: &Path, tops: &[PathBuf]) -> Option<RepoPath> {
    let real = path
        .canonicalize()
        .ok()
        .or_else(|| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)))?;
    let below = tops.iter().filter_map(|top| real.strip_prefix(top).ok());
    // A lane's worktree may be inside of another one.
    RepoPath::of(below.min_by_key(|path| path.components().count())?)
}

impl Spot {
    /// The file by which it is known that it is committed.
    fn file(&self, path: &RepoPath) -> RepoPath {
        match self.what {
            What::File => path.clone(),
            What::Folder => path.join(PROMPT.as_bytes()),
        }
    }
}

/// Whether the folder that something is to be put into is one, or is free.
fn can_hold(project: &Project, tree: Oid, path: &RepoPath) -> Result<bool, git::Error> {
    let above = path.under(Path::new(""));
    match above.parent().and_then(RepoPath::of) {
        Some(above) => project.repo.is_folder_or_free(tree, &above),
        None => Ok(true),
    }
}

fn shown(path: &Path) -> String {
    crate::harmless::line(&path.display().to_string())
}

/// Whether all lines that go are lines of `base` too: then nobody has changed them since.
fn are_lines_of(base: &[u8], before: &str, after: &str) -> bool {
    let base = String::from_utf8_lossy(base);
    let known: BTreeSet<&str> = base.lines().collect();
    let input = InternedInput::new(before, after);
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let lines: Vec<&str> = before.lines().collect();
    let removed = diff.hunks().flat_map(|hunk| hunk.before);
    removed.filter_map(|at| lines.get(at as usize)).all(|line| known.contains(line))
}

/// What makes one text of another, for `git apply`.
fn patch(path: &Path, before: &str, after: &str) -> String {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = BasicLineDiffPrinter(&input.interner);
    let name = path.display();
    format!(
        "--- a/{name}\n+++ b/{name}\n{}",
        diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input)
    )
}

/// Replaces a file by another of the same permissions, unless it has been changed since it was read. Both change their places
/// in one step, and what was there is looked at when nobody finds it any more. It stays among what the store has put aside,
/// since a program may have it open still; on another disk than the store's it lies beside the file for that moment only.
fn replace(layout: &Layout, path: &Path, old: &[u8], new: &[u8]) -> std::io::Result<()> {
    let aside = layout.place_aside(path).map_err(std::io::Error::other)?;
    match replace_by(&aside, path, old, new) {
        Err(e) if e.kind() == ErrorKind::CrossesDevices => {
            let name = aside.file_name().unwrap_or_default().to_string_lossy();
            let beside = path.with_file_name(format!(".{name}"));
            replace_by(&beside, path, old, new)?;
            match std::fs::remove_file(&beside) {
                Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            }
        }
        done => done,
    }
}

/// Writes `new` to the free name `aside`, and exchanges it with the file at `path`, whose former content is at `aside` afterwards.
fn replace_by(aside: &Path, path: &Path, old: &[u8], new: &[u8]) -> std::io::Result<()> {
    let mut draft = File::options().write(true).create_new(true).mode(0o600).open(aside)?;
    let drafted = draft
        .write_all(new)
        .and_then(|()| draft.set_permissions(path.metadata()?.permissions()))
        .and_then(|()| draft.sync_all());
    fault::point("plan.drafted");
    match drafted.and_then(|()| exchange(aside, path)) {
        Ok(()) if holds(aside, old) => Ok(()),
        Ok(()) => give_back(aside, path, new),
        Err(e) if e.kind() == ErrorKind::InvalidInput || e.kind() == ErrorKind::Unsupported => {
            rename_over(aside, path, old)
        }
        Err(e) => {
            drop(std::fs::remove_file(aside));
            Err(e)
        }
    }
}

/// Puts what somebody has saved meanwhile back in its place, and fails in any case.
fn give_back(aside: &Path, path: &Path, new: &[u8]) -> std::io::Result<()> {
    fault::point("plan.taken");
    let why = match exchange(aside, path) {
        Ok(()) if holds(aside, new) => {
            drop(std::fs::remove_file(aside));
            return Err(std::io::Error::other("somebody is changing it just now"));
        }
        // It was changed twice meanwhile: the later text is the one to go on from.
        Ok(()) => exchange(aside, path).err(),
        // An editor has moved it away, to write it anew.
        Err(e) if e.kind() == ErrorKind::NotFound => rename_new(aside, path).err(),
        Err(e) => Some(e),
    };
    let why = why.map_or(String::new(), |e| format!(" ({e})"));
    let kept = if aside.symlink_metadata().is_ok() {
        format!("; what it said a moment ago is in {}", aside.display())
    } else {
        String::new()
    };
    Err(std::io::Error::other(format!("somebody is changing it just now{why}{kept}")))
}

/// Renames a draft over a file that still has the bytes `old`, on a disk that cannot exchange two files: what somebody saves between
/// that look and the rename is lost.
fn rename_over(draft: &Path, path: &Path, old: &[u8]) -> std::io::Result<()> {
    let done = match holds(path, old) {
        true => std::fs::rename(draft, path),
        false => Err(std::io::Error::other("somebody is changing it just now")),
    };
    if done.is_err() {
        drop(std::fs::remove_file(draft));
    }
    done
}

/// Whether this is a file of these bytes, and no link to one.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() == bytes.len() as u64)
        && std::fs::read(path).is_ok_and(|there| there == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_files_cannot_be_exchanged_a_plan_is_renamed_over_unless_it_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let (plan, draft) = (dir.path().join("plan"), dir.path().join("draft"));
        for (there, is_done) in [("old", true), ("new", false)] {
            std::fs::write(&plan, there).unwrap();
            std::fs::write(&draft, "noted").unwrap();
            assert_eq!(rename_over(&draft, &plan, b"old").is_ok(), is_done);
            assert_eq!(std::fs::read_to_string(&plan).unwrap(), if is_done { "noted" } else { there });
            assert!(!draft.exists());
        }
    }
}
