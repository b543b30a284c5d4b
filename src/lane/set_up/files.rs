//! Owns which files a new lane is given, and giving them: copies of what `.worktreeinclude` and `lane.copy` name, links to what
//! `lane.link` names.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::copy::{Copied, Copier};
use super::env::keep_out;
use crate::git::{self, Giver, Included, Patterns, RepoPath, WorktreeList};
use crate::harmless;
use crate::lane::{Error, Project};
use crate::regular_file::{self, Links, SETTINGS};

/// The file at the top of the main checkout that names what is copied; other tools read it too.
const LIST: &str = ".worktreeinclude";

/// How many files are named one by one.
const NAMED: usize = 5;

/// What lanes are to be given.
pub(super) struct Wanted {
    /// What is copied.
    pub(super) copies: Patterns,
    /// What is linked.
    pub(super) links: Patterns,
    /// How many lines of the copies are from the list.
    listed: usize,
}

impl Wanted {
    /// Reads what the main checkout and the settings say.
    pub(super) fn read(project: &Project, main: &Path) -> Result<Wanted, Error> {
        let list = main.join(LIST);
        let mut text = match list.symlink_metadata() {
            Ok(meta) if meta.is_file() => {
                regular_file::read(&list, SETTINGS, Links::Refuse).map_err(Error::io("read", &list))?
            }
            Ok(_) => {
                project.listener.warn(format!("{LIST} is no file, so it is not read"));
                Vec::new()
            }
            Err(_) => Vec::new(),
        };
        let settings = &project.settings.set_up;
        text.push(b'\n');
        let listed = text.split(|b| *b == b'\n').count() - 1;
        text.extend_from_slice(settings.copy.join("\n").as_bytes());
        let links = Patterns::read(settings.link.join("\n").as_bytes());
        Ok(Wanted { copies: Patterns::read(&text), links, listed })
    }

    /// Which patterns name nothing, in words, once all of them were looked for.
    pub(super) fn unused(&self, giver: &Giver<'_>) -> Vec<String> {
        let of_copies = |at: usize| if at < self.listed { LIST } else { "lane.copy" };
        let copies =
            giver.unused(&self.copies, false, NAMED + 1).into_iter().map(|(at, line)| (of_copies(at), line));
        let links =
            giver.unused(&self.links, true, NAMED + 1).into_iter().map(|(_, line)| ("lane.link", line));
        let in_words = |(whose, line): (&str, String)| {
            let line = harmless::line(&line);
            format!("{whose}: '{line}' names nothing that the main checkout has uncommitted")
        };
        // Each is looked for by itself, so those that are not named are not counted either.
        let mut all: Vec<String> = copies.chain(links).map(in_words).collect();
        if all.len() > NAMED {
            all.truncate(NAMED);
            all.push("more lines of these name nothing either".to_owned());
        }
        all
    }

    /// Whether nothing is.
    pub(super) fn is_empty(&self) -> bool {
        self.copies.is_empty() && self.links.is_empty()
    }
}

/// Where files are taken from for a lane.
pub(super) fn giver<'a>(project: &Project, main: &'a Path, dir: &'a Path) -> Result<Giver<'a>, Error> {
    let worktrees = WorktreeList::read(&project.repo)?;
    let others = worktrees.iter().map(|w| w.path.clone()).filter(|path| path != main);
    let off_limits: Vec<PathBuf> = others.chain([project.lanes_dir()]).collect();
    Ok(Giver::new(&project.repo, main, dir, off_limits)?)
}

/// Gives a lane whose files are there what the main checkout has for it.
///
/// What was `kept` there from another lane stays as it is.
pub(super) fn give(project: &Project, name: &str, dir: &Path, kept: &[RepoPath]) -> Result<(), Error> {
    let Some(main) = project.repo.main_worktree() else { return Ok(()) };
    let wanted = Wanted::read(project, main)?;
    if wanted.is_empty() {
        return Ok(());
    }
    let giver = giver(project, main, dir)?;
    let linked = link(project, &giver, &wanted, main, dir, kept)?;
    let found = giver.find(&wanted.copies, false);
    warn_of_new(project, "copied", &found.not_ignored);
    for unused in wanted.unused(&giver) {
        project.listener.detail(unused);
    }
    say_given(project, "linked to", &linked);
    let all = without(without(found.all, &linked), kept);
    if all.is_empty() {
        return Ok(());
    }
    let leaves_out = |path: &RepoPath, is_folder: bool| {
        giver.is_off_limits(path)
            || wanted.copies.takes_out(path, is_folder)
            || linked.contains(path)
            || kept.contains(path)
    };
    let copied = Copier::new(main, dir, &project.listener, &leaves_out)?.copy(&all)?;
    warn_of_left(project, &copied);
    if copied.files.is_empty() {
        return Ok(());
    }
    let copies: Vec<RepoPath> = all.into_iter().map(|one| one.path).collect();
    say_given(project, "copied from", &copies);
    project.store.layout().note_copies(name, &copied.files)?;
    if let Err(e) = git::same_times(&project.repo, main, dir) {
        project
            .listener
            .warn(format!("what was copied may be built again, since times are not as there: {e}"));
    }
    Ok(())
}

/// Links what is to be linked and is not there yet. All that is linked then.
pub(super) fn link(
    project: &Project,
    giver: &Giver<'_>,
    wanted: &Wanted,
    main: &Path,
    dir: &Path,
    kept: &[RepoPath],
) -> Result<Vec<RepoPath>, Error> {
    if wanted.links.is_empty() {
        return Ok(Vec::new());
    }
    let found = giver.find(&wanted.links, true);
    warn_of_new(project, "linked", &found.not_ignored);
    let mut linked = Vec::new();
    for Included { path, .. } in found.all {
        let (source, place) = (path.under(main), path.under(dir));
        if std::fs::read_link(&place).is_ok_and(|there| there == source) {
            linked.push(path);
            continue;
        }
        if kept.contains(&path) {
            project.listener.detail(format!("not linked: {path}: it was kept"));
            continue;
        }
        if let Err(why) = make_room(dir, &path) {
            project.listener.warn(format!("not linked: {path}: {why}"));
            continue;
        }
        keep_out(project, dir, &path)?;
        symlink(&source, &place).map_err(Error::io("link", &place))?;
        linked.push(path);
    }
    Ok(linked)
}

/// Makes the folders above a path, unless something else stands there or in their place.
pub(super) fn make_room(dir: &Path, path: &RepoPath) -> Result<(), String> {
    for folder in path.parents() {
        let place = folder.under(dir);
        match place.symlink_metadata() {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(format!("'{folder}' is no folder in the lane")),
            Err(_) => std::fs::create_dir(&place).map_err(|e| format!("'{folder}': {e}"))?,
        }
    }
    match path.under(dir).symlink_metadata() {
        Ok(_) => Err("the lane has something of that name".to_owned()),
        Err(_) => Ok(()),
    }
}

/// All that is not linked, nor lies in what is.
pub(super) fn without(all: Vec<Included>, linked: &[RepoPath]) -> Vec<Included> {
    let is_linked = |one: &Included| {
        linked.contains(&one.path) || one.path.parents().any(|folder| linked.contains(&folder))
    };
    all.into_iter().filter(|one| !is_linked(one)).collect()
}

/// Names what a lane was given, to who asks.
fn say_given(project: &Project, how: &str, paths: &[RepoPath]) {
    if !paths.is_empty() {
        project.listener.detail(format!("{how} the main checkout: {}", git::names(paths)));
    }
}

/// Names what git would show as new in the lane, so that somebody would commit it.
pub(super) fn warn_of_new(project: &Project, what: &str, paths: &[RepoPath]) {
    if !paths.is_empty() {
        project.listener.warn(format!(
            "not {what}, since git does not ignore it in the lane and it would be committed there: {}",
            git::names(paths)
        ));
    }
}

/// Names what was left out.
pub(super) fn warn_of_left(project: &Project, copied: &Copied) {
    let left = &copied.left_out;
    for (path, why) in left.iter().take(NAMED) {
        project.listener.warn(format!("not copied: {path}: {why}"));
    }
    if left.len() > NAMED {
        project.listener.warn(format!("not copied: {} more", left.len() - NAMED));
    }
}
