//! Owns giving the folder of a landed lane, which lies in the trash, to a new one; and making it anew where the landed lane comes
//! back all the same.
//!
//! A folder changes hands by one rename. Until then everything can be put back where it was; from then on the folder is the new
//! lane's. What the landed lane had in it besides its commit stays in the trash entry, but for what `pool.keep` names.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::evidence::residents;
use super::files::Folder;
use super::fill::telling;
use super::{Error, Operation, Project, trash};
use crate::fault;
use crate::git::{self, Included, Kept, Left, Oid, Patterns, RepoPath, inside};
use crate::store::records::{GivenRecord, Step, TrashRecord};
use crate::store::{LockName, Record, made_at, now, remove_drafts, rename_new, sync_dir};

/// The record of who got the folder, in an entry.
const GIVEN: &str = "given.toml";
/// What was in it besides its commit and what went along.
pub(super) const ASIDE: &str = "aside";
/// The file by which it was a worktree.
const LINK: &str = "gitlink";
/// The folder itself, before and after.
const FOLDER: &str = "worktree";

/// A trash entry whose folder may be of use.
struct Entry {
    dir: PathBuf,
    folder: PathBuf,
    admin: PathBuf,
    record: TrashRecord,
    tip: Oid,
}

impl Entry {
    fn left(&self) -> Left<'_> {
        Left { dir: &self.folder, admin: &self.admin, tip: self.tip }
    }
}

/// A new lane's folder that was another one's.
pub(super) struct Taken {
    /// Whose it was.
    from: String,
    /// What stays in it.
    pub(super) stays: Vec<RepoPath>,
    kept: Kept,
}

impl Taken {
    /// Makes it what the new lane asks for. False where that is to be done from the beginning.
    ///
    /// # Errors
    /// When it was cut short.
    pub(super) fn finish(&mut self, project: &Project, dir: &Path) -> Result<bool, Error> {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let made = telling(project, &name, |tell| {
            self.kept.finish(&project.repo, dir, &crate::interrupt::is_quiet, tell)
        })?;
        let Some(made) = made else {
            self.stays.clear();
            return Ok(false);
        };
        project.repo.sync_indexes(&[dir])?;
        project.listener.detail(format!("files: {}", made.in_words(&format!("lane '{}'", self.from))));
        fault::point("pool.filled");
        Ok(true)
    }
}

/// Puts the folder of a landed lane in the place of a new lane's; none where none is fit for that.
///
/// # Errors
/// When it was cut short.
pub(super) fn take(op: &Operation<'_>, new: &Folder<'_>) -> Result<Option<Taken>, Error> {
    let project = op.project;
    if project.settings.pool.size == 0 {
        return Ok(None);
    }
    let Ok(_pool) = project.store.locks().take(&LockName::Pool) else { return Ok(None) };
    for entry in entries(project, project.settings.pool.size)? {
        let said = |why: String| {
            project.listener.detail(format!("the folder of lane '{}' is not used: {why}", entry.record.lane));
        };
        match claim(op, new, &entry) {
            Ok(Ok(taken)) => return Ok(Some(taken)),
            Ok(Err(why)) => said(why),
            Err(e) => {
                crate::interrupt::check()?;
                said(e.to_string());
            }
        }
        // A folder that was half given away is back where it was, or the new lane has lost its own.
        if !new.dir.join(".git").exists() {
            return Err(Error::io("make", new.dir)(ErrorKind::NotFound.into()));
        }
    }
    Ok(None)
}

/// Whose folders wait for new lanes, the youngest first.
pub(super) fn waiting(project: &Project) -> Result<Vec<String>, Error> {
    let entries = entries_of_use(project, project.settings.pool.size)?;
    Ok(entries.into_iter().map(|entry| entry.record.lane).collect())
}

/// What the next lane can be given, as far as that is known without a look at each file.
#[derive(Debug, Default)]
pub(crate) struct Prospects {
    /// The lanes whose folders it may get, the youngest first.
    pub(crate) waiting: Vec<String>,
    /// The lanes whose folders it cannot get now, and why.
    pub(crate) unfit: Vec<(String, String)>,
    /// The lanes whose folders nobody gets, since the setting `pool.size` is 0.
    pub(crate) unused: Vec<String>,
}

/// Looks what the next lane can be given.
///
/// # Errors
/// When the trash or a lock cannot be looked at.
pub(crate) fn prospects(project: &Project) -> Result<Prospects, Error> {
    let (mut out, size) = (Prospects::default(), project.settings.pool.size);
    if size == 0 {
        let unused = entries_of_use(project, usize::MAX)?;
        out.unused = unused.into_iter().map(|entry| entry.record.lane).collect();
        return Ok(out);
    }
    let location = project.location()?;
    // It need not be there before the first lane is.
    let near = location.folder().ancestors().find(|dir| dir.exists()).unwrap_or(location.folder());
    let main = project.repo.main_worktree().unwrap_or(project.repo.common_dir());
    for entry in entries_of_use(project, size)? {
        let why = match unfit(project, &entry, near)? {
            None => project.repo.cannot_keep(&entry.left(), main).map(ToOwned::to_owned),
            why => why,
        };
        match why {
            Some(why) => out.unfit.push((entry.record.lane, why)),
            None => out.waiting.push(entry.record.lane),
        }
    }
    Ok(out)
}

/// As many of the youngest entries that may be of use, where folders are given away at all.
fn entries_of_use(project: &Project, most: usize) -> Result<Vec<Entry>, Error> {
    if cfg!(target_os = "linux") { entries(project, most) } else { Ok(Vec::new()) }
}

/// So many of the youngest entries that may be of use.
fn entries(project: &Project, most: usize) -> Result<Vec<Entry>, Error> {
    let mut dirs: Vec<_> = trash::entries(project)?
        .into_iter()
        .filter_map(|dir| Some((made_at(dir.file_name()?.to_str()?)?, dir)))
        .collect();
    dirs.sort();
    let fit = |(_, dir): (_, PathBuf)| {
        let record = TrashRecord::find(&dir.join("trash.toml")).ok()??;
        let inside = record.worktree.as_ref().is_some_and(|folder| trash::is_inside(folder, &dir));
        let is_folder = |name: &str| dir.join(name).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let fit = record.reusable && inside && !trash::is_old(project, &record);
        let tip = record.tip.filter(|_| fit && is_folder(FOLDER) && is_folder("admin"))?;
        let (folder, admin) = (dir.join(FOLDER), dir.join("admin"));
        Some(Entry { dir, folder, admin, record, tip })
    };
    Ok(dirs.into_iter().rev().filter_map(fit).take(most).collect())
}

/// Why a folder cannot go to where `near` lies, where it is plain from outside of it.
fn unfit(project: &Project, entry: &Entry, near: &Path) -> Result<Option<String>, Error> {
    let folder = &entry.folder;
    let disk = |path: &Path| path.symlink_metadata().ok().map(|meta| meta.dev());
    if disk(folder) != disk(near) {
        return Ok(Some("it is on another disk".to_owned()));
    }
    // What its agent left running may write to it still.
    if project.store.locks().is_held(&LockName::Alive(entry.record.lane.clone()))? {
        return Ok(Some("something of its run lives".to_owned()));
    }
    if let Some(who) = residents(folder).into_iter().next() {
        return Ok(Some(format!("{who} is in it")));
    }
    let link = folder.join(".git");
    let is_link = link.symlink_metadata().is_ok_and(|meta| meta.is_file())
        && std::fs::read(&link).is_ok_and(|text| text.starts_with(b"gitdir: "));
    Ok((!is_link).then(|| "it is no worktree".to_owned()))
}

/// Takes the folder of an entry, if it is fit. Why not, where it is not; then it is as it was. The pool's lock is held.
fn claim(op: &Operation<'_>, new: &Folder<'_>, entry: &Entry) -> Result<Result<Taken, String>, Error> {
    let (project, dir) = (op.project, new.dir);
    if let Some(why) = unfit(project, entry, dir)? {
        return Ok(Err(why));
    }
    let kept = match project.repo.look_at_left(&entry.left(), dir, new.start)? {
        Ok(kept) => kept,
        Err(why) => return Ok(Err(why.to_owned())),
    };
    let (stays, goes) = sort_out(project, &entry.folder, &kept, dir);
    let step = Step::Reuse { entry: entry.dir.clone(), dir: dir.to_owned() };
    let record = GivenRecord {
        lane: new.name.to_owned(),
        at: now(),
        kept: stays.iter().map(ToString::to_string).collect(),
    };
    op.perform_by(step, |_| give(&entry.dir, dir, &record, &goes))?;
    Ok(Ok(Taken { from: entry.record.lane.clone(), stays, kept }))
}

/// What of that which is in no commit stays in a folder, and what has to go.
fn sort_out(project: &Project, folder: &Path, kept: &Kept, new: &Path) -> (Vec<RepoPath>, Vec<RepoPath>) {
    let patterns = Patterns::read(project.settings.pool.keep.join("\n").as_bytes());
    // The names and ports of the lane that it was are nobody's cache.
    let own = project.settings.set_up.env.as_deref().map(RepoPath::new);
    let mut has_room = kept.room(new);
    let mut sorter = Sorter {
        folder,
        patterns: &patterns,
        own,
        has_room: &mut has_room,
        stays: Vec::new(),
        goes: Vec::new(),
    };
    kept.loose.iter().for_each(|one| sorter.sort(one));
    let Sorter { stays, goes, .. } = sorter;
    (stays, goes)
}

struct Sorter<'a> {
    folder: &'a Path,
    patterns: &'a Patterns,
    own: Option<RepoPath>,
    has_room: &'a mut dyn FnMut(&Included) -> bool,
    stays: Vec<RepoPath>,
    goes: Vec<RepoPath>,
}

impl Sorter<'_> {
    fn sort(&mut self, one: &Included) {
        if self.patterns.is_empty() {
            return self.goes.push(one.path.clone());
        }
        let path = &one.path;
        let is_own = self.own.as_ref() == Some(path);
        let has_own = self.own.as_ref().is_some_and(|own| own.parents().any(|up| up == *path));
        let named = self.patterns.names(path, one.is_folder) && !is_own;
        let may_stay = named && (self.has_room)(one);
        let part = has_own
            || (may_stay && self.patterns.has_exceptions())
            || (!may_stay && self.patterns.may_name_below(path.as_bytes()));
        if !one.is_folder || !part {
            return if may_stay { self.stays.push(path.clone()) } else { self.goes.push(path.clone()) };
        }
        let (stays, goes) = (self.stays.len(), self.goes.len());
        for below in inside(path, &path.under(self.folder)) {
            self.sort(&below);
        }
        // A folder of which nothing stays goes as a whole.
        if self.stays.len() == stays {
            self.goes.truncate(goes);
            self.goes.push(path.clone());
        }
    }
}

/// Gives the folder of an entry to the new lane's folder at `dir`. Cut short anywhere, it is [`settle_reuse`]'s.
fn give(entry: &Path, dir: &Path, record: &GivenRecord, goes: &[RepoPath]) -> Result<(), Error> {
    let (folder, aside) = (entry.join(FOLDER), entry.join(ASIDE));
    record.save(&entry.join(GIVEN))?;
    fault::point("pool.claimed");
    std::fs::create_dir(&aside).or_else(is_there).map_err(Error::io("create", &aside))?;
    for path in goes {
        let (from, to) = (path.under(&folder), path.under(&aside));
        if let Some(above) = to.parent() {
            std::fs::create_dir_all(above).map_err(Error::io("create", above))?;
        }
        rename_new(&from, &to).map_err(Error::io("move aside", &from))?;
        fault::point("pool.aside");
    }
    let (link, old) = (folder.join(".git"), entry.join(LINK));
    rename_new(&link, &old).map_err(Error::io("move aside", &link))?;
    fault::point("pool.unlinked");
    let new = dir.join(".git");
    copy_link(&new, &link)?;
    sync_dir(&folder)?;
    sync_dir(entry)?;
    fault::point("pool.linked");
    std::fs::remove_file(&new).map_err(Error::io("remove", &new))?;
    fault::point("pool.emptied");
    // In the place of an empty folder, and of nothing else.
    std::fs::rename(&folder, dir).map_err(Error::io("move", &folder))?;
    fault::point("pool.moved");
    for folder in [entry, dir, dir.parent().unwrap_or(dir)] {
        // It has happened, whatever a power cut makes of it: the entry says so.
        drop(sync_dir(folder));
    }
    Ok(())
}

/// Copies the file by which a folder is a worktree; it is on disk when this returns.
fn copy_link(from: &Path, to: &Path) -> Result<(), Error> {
    let copied = std::fs::copy(from, to).and_then(|_| std::fs::File::open(to)?.sync_all());
    copied.map_err(Error::io("write", to))
}

fn is_there(e: std::io::Error) -> std::io::Result<()> {
    if e.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(e) }
}

/// Judges a folder that was being given away: it has changed hands, or everything goes back to where it was. Can be cut short
/// itself and done again.
pub(super) fn settle_reuse(entry: &Path, dir: &Path) -> Result<bool, Error> {
    let (folder, old) = (entry.join(FOLDER), entry.join(LINK));
    if folder.symlink_metadata().is_err() {
        return Ok(true);
    }
    let link = folder.join(".git");
    if old.symlink_metadata().is_ok() {
        let new = dir.join(".git");
        if new.symlink_metadata().is_err() && dir.is_dir() && link.symlink_metadata().is_ok() {
            std::fs::rename(&link, &new).map_err(Error::io("move", &link))?;
        }
        std::fs::rename(&old, &link).map_err(Error::io("move", &old))?;
    }
    come_back(entry)?;
    Ok(false)
}

/// Puts what was moved aside back into the folder of an entry, which nobody has got, or has again. What does not fit stays.
fn come_back(entry: &Path) -> Result<(), Error> {
    let aside = entry.join(ASIDE);
    if aside.symlink_metadata().is_ok() {
        merge(&aside, &entry.join(FOLDER))?;
    }
    fault::point("regrow.merged");
    let record = entry.join(GIVEN);
    remove_drafts(&record).map_err(Error::io("remove", &record))?;
    match std::fs::remove_file(&record) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io("remove", &record)(e)),
        _ => Ok(()),
    }
}

/// Moves all that is in one folder to another, which may have a part of its folders. What stands there already stays, and so
/// does what would take its place.
fn merge(from: &Path, to: &Path) -> Result<(), Error> {
    for entry in std::fs::read_dir(from).map_err(Error::io("read", from))? {
        let entry = entry.map_err(Error::io("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match rename_new(&source, &target) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
                if is_folder(&source) && is_folder(&target) {
                    merge(&source, &target)?;
                }
            }
            Err(e) => return Err(Error::io("move", &source)(e)),
        }
    }
    // Not when anything is left in it.
    drop(std::fs::remove_dir(from));
    Ok(())
}

/// Moves what an entry holds as its folder to somewhere else by `work`, made anew before where another lane has got it.
pub(super) fn whole(
    op: &Operation<'_>,
    from: &Path,
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let project = op.project;
    let entry = from.parent().filter(|dir| {
        from.ends_with(FOLDER) && dir.parent() == Some(project.store.layout().trash().as_path())
    });
    let Some(entry) = entry else { return work() };
    // Nobody gives it away between the look and the move.
    let _pool = project.store.locks().take(&LockName::Pool)?;
    let record = TrashRecord::find(&entry.join("trash.toml"))?;
    if from.symlink_metadata().is_err()
        && let Some(given) = GivenRecord::find(&entry.join(GIVEN))?
        && let Some((lane, tip)) = record.and_then(|record| Some((record.lane, record.tip?)))
    {
        op.perform(Step::Regrow { entry: entry.to_owned(), tip }).map(drop)?;
        project
            .listener
            .step(format!("the folder of '{lane}' was given to '{}' and is made anew", given.lane));
        if !given.kept.is_empty() {
            let names = given.kept.join(", ");
            project.listener.warn(format!("what pool.keep names is not in it any more: {names}"));
        }
    }
    work()
}

/// Makes the folder of an entry anew: the files of its commit, and what was moved aside.
pub(super) fn regrow(project: &Project, entry: &Path, tip: Oid, scratch: &Path) -> Result<(), Error> {
    let new = scratch.join("folder");
    std::fs::create_dir(&new).map_err(Error::io("create", &new))?;
    project.repo.lay_out(&new, tip, &scratch.join("index"))?;
    let (link, old) = (new.join(".git"), entry.join(LINK));
    copy_link(&old, &link)?;
    git::sync_file_system(&new)?;
    fault::point("regrow.built");
    let folder = entry.join(FOLDER);
    rename_new(&new, &folder).map_err(Error::io("move", &new))?;
    fault::point("regrow.moved");
    settle_regrow(entry).map(drop)
}

/// Judges a folder that was being made anew, and ends it where it has its name.
pub(super) fn settle_regrow(entry: &Path) -> Result<bool, Error> {
    if entry.join(FOLDER).symlink_metadata().is_err() {
        return Ok(false);
    }
    let old = entry.join(LINK);
    match std::fs::remove_file(&old) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", &old)(e)),
        _ => {}
    }
    come_back(entry).map(|()| true)
}
