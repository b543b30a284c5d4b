//! Owns the trash: removed lanes' folders, kept for a time and emptied afterwards.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::drafts::is_hollow;
use super::expire::{Old, Spare, Stays, What};
use super::{Error, Operation, Project, pool};
use crate::explain::quoted_path;
use crate::fault;
use crate::git::{Nested, RepoPath, names};
use crate::store::records::{LaneRecord, TrashRecord};
use crate::store::{
    LockName, Record, Scratch, made_at, make_private, new_id, now, remove_drafts, remove_tree, size_on_disk,
};

/// Moves a lane's folder and git's admin folder for it to a new trash entry, as a pair. A folder that `stays` is another
/// repository's.
pub(super) fn put(
    op: &Operation<'_>,
    mut record: TrashRecord,
    admin: Option<&Path>,
    stays: bool,
) -> Result<PathBuf, Error> {
    let dir = new_entry(op.project, &record.lane);
    let file = dir.join("trash.toml");
    if !stays && record.path.symlink_metadata().is_ok() {
        let to =
            if is_other_disk(&record.path, op.project) { beside(&record.path) } else { dir.join("worktree") };
        record.worktree = Some(to.clone());
        op.save(&record, &file)?;
        op.rename(&record.path, &to)?;
        fault::point("trash.moved");
    } else {
        op.save(&record, &file)?;
    }
    if let Some(admin) = admin {
        op.rename(admin, &dir.join("admin"))?;
    }
    Ok(dir)
}

/// Moves what a killed process had made of a lane to the trash. Can be cut short itself and done again.
pub(super) fn put_half_made(
    project: &Project,
    path: &Path,
    lane: &str,
    admin: Option<&Path>,
) -> Result<PathBuf, Error> {
    remove_unwritten(project, lane)?;
    let dir = new_entry(project, lane);
    let there = path.symlink_metadata().is_ok();
    let to = if is_other_disk(path, project) { beside(path) } else { dir.join("worktree") };
    let record = TrashRecord {
        lane: lane.to_owned(),
        at: now(),
        path: path.to_owned(),
        worktree: there.then(|| to.clone()),
        worktree_id: admin.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned(),
        branch: String::new(),
        tip: None,
        saved: None,
        reusable: false,
        unread: Vec::new(),
    };
    record.save(&dir.join("trash.toml"))?;
    fault::point("trash.noted");
    if there {
        std::fs::rename(path, &to).map_err(Error::io("move to the trash", path))?;
        fault::point("trash.moved");
    }
    if let Some(admin) = admin {
        std::fs::rename(admin, dir.join("admin")).map_err(Error::io("move to the trash", admin))?;
    }
    Ok(dir)
}

/// An entry for single files of a lane that stays, with those that are to take their place. Until it is kept it goes with its
/// process, or with the next command.
pub(super) struct Exchange {
    scratch: Scratch,
    dir: PathBuf,
    /// Where files for the lane lie meanwhile, on its disk.
    place: PathBuf,
}

impl Exchange {
    /// Begins an entry.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn begin(project: &Project, lane: &LaneRecord) -> Result<Exchange, Error> {
        let (scratch, dir) = (project.store.layout().scratch()?, new_entry(project, &lane.name));
        let draft = scratch.path().join(ENTRY);
        let is_elsewhere = is_other_disk(&lane.path, project);
        let place = if is_elsewhere { beside(&lane.path) } else { draft.join("worktree") };
        std::fs::create_dir_all(&place).map_err(Error::io("create", &place))?;
        fault::point("trash.begun");
        let worktree = if is_elsewhere { place.clone() } else { dir.join("worktree") };
        let record = TrashRecord {
            lane: lane.name.clone(),
            at: now(),
            path: lane.path.clone(),
            worktree: Some(worktree),
            worktree_id: String::new(),
            branch: String::new(),
            tip: None,
            saved: None,
            reusable: false,
            unread: Vec::new(),
        };
        record.save(&draft.join("trash.toml"))?;
        let mut entry = Exchange { scratch, dir, place };
        // What lies elsewhere is found by its record only.
        if is_elsewhere {
            entry.put()?;
        }
        Ok(entry)
    }

    /// A folder of the entry, from which and to which renames are possible.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf, Error> {
        let folder = self.place.join(name);
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        Ok(folder)
    }

    /// Puts it into the trash with all that is in it by now.
    ///
    /// # Errors
    /// When it cannot be moved there.
    pub(super) fn put(&mut self) -> Result<(), Error> {
        let draft = self.scratch.path().join(ENTRY);
        if draft.symlink_metadata().is_err() {
            return Ok(());
        }
        if let Some(trash) = self.dir.parent() {
            make_private(trash)?;
        }
        std::fs::rename(&draft, &self.dir).map_err(Error::io("move to the trash", &draft))?;
        if self.place.starts_with(&draft) {
            self.place = self.dir.join("worktree");
        }
        Ok(())
    }
}

/// What an entry is called that has no place in the trash yet.
const ENTRY: &str = "entry";

/// Removes entries that a repair of this lane had begun when it was killed itself, before anything came into them.
fn remove_unwritten(project: &Project, lane: &str) -> Result<(), Error> {
    let Ok(entries) = std::fs::read_dir(project.store.layout().trash()) else { return Ok(()) };
    for entry in entries.flatten() {
        let (dir, name) = (entry.path(), entry.file_name());
        let id = name.to_str().and_then(|name| name.strip_prefix(lane)?.strip_prefix('-'));
        // Another lane's name may begin as this one's does.
        let is_id =
            |id: &str| id.split('-').count() == 4 && id.chars().all(|c| c == '-' || c.is_ascii_digit());
        let record = dir.join("trash.toml");
        if id.is_some_and(is_id) && is_only_begun(&dir, &record) {
            remove_drafts(&record).map_err(Error::io("remove", &record))?;
            drop(std::fs::remove_file(&record));
            // Not when anything else is in it.
            drop(std::fs::remove_dir(&dir));
        }
    }
    Ok(())
}

/// Whether an entry has nothing yet but its record, if that, which is one of a half-made lane.
fn is_only_begun(dir: &Path, record: &Path) -> bool {
    let Ok(found) = TrashRecord::find(record) else { return false };
    let Some(found) = found else { return true };
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
    let mut entries = std::fs::read_dir(dir).into_iter().flatten();
    found.branch.is_empty()
        && entries.all(|entry| entry.is_ok_and(|entry| entry.path() == record))
        && !found.worktree.as_ref().is_some_and(is_there)
}

/// The folder of a new entry; its record makes it.
fn new_entry(project: &Project, lane: &str) -> PathBuf {
    project.store.layout().trash().join(format!("{lane}-{}", new_id()))
}

/// Whether a rename from one to the other is impossible. What cannot be looked at is left to the rename to say.
fn is_other_disk(path: &Path, project: &Project) -> bool {
    let disk = |path: &Path| path.symlink_metadata().ok().map(|m| m.dev());
    matches!((disk(path), disk(project.store.layout().root())), (Some(a), Some(b)) if a != b)
}

/// On another file system the folder stays where it is, under a name that says what it is.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".trash-{name}-{}", new_id()))
}

/// The entries that are older than the setting `trash.keep`.
pub(super) fn old(project: &Project) -> Result<Old, Error> {
    let (keep, mut old) = (project.settings.trash_keep, Old::default());
    for dir in entries(project)? {
        let name = name_of(&dir);
        match TrashRecord::find(&dir.join("trash.toml")) {
            Err(e) => old.stays.push(Stays::unreadable(name, &e)),
            // One that is just being made has no record yet, and one without a file goes as such.
            Ok(None) if is_hollow(&dir) || made_at(&name).is_some_and(|at| !at.is_older_than(keep)) => {}
            Ok(None) => old.stays.push(Stays {
                why: "no record tells when it was removed".to_owned(),
                help: Some(format!("ls -la {}", quoted_path(&dir))),
                name,
            }),
            Ok(Some(record)) if !is_old(project, &record) => {}
            Ok(Some(record)) => {
                let beside = record.worktree.clone().filter(|w| !is_inside(w, &dir));
                if let Some(strange) = beside.as_ref().filter(|w| !is_set_aside(w)) {
                    let why = format!("its record names {}, which git-proq did not make", strange.display());
                    old.stays.push(Stays { name, why, help: None });
                } else if let Some(stays) = unread(project, &dir, &record)
                    .or_else(|| nested_work(project, &dir, record.worktree.as_deref()))
                {
                    old.stays.push(Stays { name, ..stays });
                } else {
                    old.spare.push(Spare { name, at: record.at, what: What::Trash { dir, beside } });
                }
            }
        }
    }
    old.spare.sort_by(|a, b| (a.at, &a.name).cmp(&(b.at, &b.name)));
    Ok(old)
}

/// The name in an entry of the note which repository it stays for, so that it is not searched each time.
const HOLDS: &str = "holds";

/// Why an entry stays: it holds what could not be read when the lane was removed, so that nothing else has it.
fn unread(project: &Project, dir: &Path, record: &TrashRecord) -> Option<Stays> {
    let worktree = record.worktree.as_deref()?;
    let is_gone = |path: &RepoPath| {
        let gone = |e: std::io::Error| {
            matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
        };
        path.under(worktree).symlink_metadata().is_err_and(gone)
    };
    let mut left = record.unread.clone();
    left.retain(|path| !is_gone(path));
    let whole = if is_inside(worktree, dir) { dir } else { worktree };
    let why = unread_in_words(&left);
    (!left.is_empty()).then(|| Stays { name: String::new(), why, help: Some(way_out(project, whole)) })
}

/// That files and folders could not be read, as a clause.
pub(crate) fn unread_in_words(paths: &[RepoPath]) -> String {
    let verb = if paths.len() == 1 { "is" } else { "are" };
    format!("{} could not be read, and {verb} in no snapshot", names(paths))
}

/// The command that moves an entry of the trash out of the checkout, where a clean-up of untracked files would take it.
fn way_out(project: &Project, whole: &Path) -> String {
    let away = project.repo.home().parent().unwrap_or_else(|| Path::new("."));
    format!("mv {} {}", quoted_path(whole), quoted_path(away))
}

/// Why an entry stays: it holds a repository with commits or changes that are in no other place. `worktree` is where the entry's record
/// says that the lane's folder lies.
fn nested_work(project: &Project, dir: &Path, worktree: Option<&Path>) -> Option<Stays> {
    let beside = worktree.filter(|worktree| !is_inside(worktree, dir));
    let note = dir.join(HOLDS);
    let known = crate::regular_file::record(&note).ok().map(|text| PathBuf::from(OsStr::from_bytes(&text)));
    let (repo, admin) = (&project.repo, dir.join("admin"));
    // What it has may have been pushed or taken away since.
    let found = known.and_then(|path| repo.work_in(&path, &admin)).or_else(|| {
        let worktree = beside.map_or_else(|| dir.join("worktree"), Path::to_owned);
        // What was in no commit when the folder became another lane's.
        let tops = [worktree, dir.join(pool::ASIDE)];
        let found = tops.iter().find_map(|top| repo.nested_work(top, &admin))?;
        // Without the note the next look takes as long as this one.
        drop(std::fs::write(&note, found.folder.as_os_str().as_bytes()));
        Some(found)
    })?;
    let Nested { folder, git_dir, .. } = found;
    let commits = match git_dir.starts_with(&folder) {
        true => String::new(),
        false => format!(", its commits in {}", git_dir.display()),
    };
    let whole = beside.filter(|beside| folder.starts_with(beside)).unwrap_or(dir);
    Some(Stays {
        name: String::new(),
        why: format!("{} is a repository with work that is nowhere else{commits}", folder.display()),
        help: Some(way_out(project, whole)),
    })
}

/// What the trash has in it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Held {
    /// How many entries.
    pub(crate) count: usize,
    /// The room that they take on disk.
    pub(crate) bytes: u64,
    /// The lanes whose folders wait for new lanes.
    pub(crate) waiting: Vec<String>,
}

/// Looks what the trash has in it, `but` for entries of these names.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn held(project: &Project, but: &[String]) -> Result<Held, Error> {
    let (mut out, mut dirs) = (Held::default(), entries(project)?);
    dirs.retain(|dir| !but.contains(&name_of(dir)));
    for dir in &dirs {
        let record = TrashRecord::find(&dir.join("trash.toml")).ok().flatten();
        let beside = record.and_then(|record| record.worktree).filter(|w| !is_inside(w, dir));
        out.bytes += size_on_disk(dir) + beside.as_deref().map_or(0, size_on_disk);
    }
    Ok(Held { count: dirs.len(), waiting: pool::waiting(project)?, ..out })
}

/// Whose folders wait, in words; nothing where none does.
pub(crate) fn whose(waiting: &[String]) -> String {
    match waiting {
        [] => String::new(),
        [one] => format!("; the folder of '{one}' waits for a new lane"),
        all => format!("; the folders of '{}' wait for new lanes", all.join("', '")),
    }
}

/// Every entry; what begins with a point is none.
pub(super) fn entries(project: &Project) -> Result<Vec<PathBuf>, Error> {
    let dir = project.store.layout().trash();
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", &dir)(e)),
    };
    let is_entry = |path: &PathBuf| {
        path.is_dir() && path.file_name().is_some_and(|n| !n.to_string_lossy().starts_with('.'))
    };
    Ok(entries.flatten().map(|e| e.path()).filter(is_entry).collect())
}

pub(super) fn is_old(project: &Project, record: &TrashRecord) -> bool {
    record.at.is_older_than(project.settings.trash_keep)
}

/// Whether a folder is part of an entry, also when the repository was moved since.
pub(super) fn is_inside(path: &Path, dir: &Path) -> bool {
    path.starts_with(dir)
        || (path.ends_with("worktree") && path.parent().and_then(Path::file_name) == dir.file_name())
}

/// Whether a folder has the kind of name that [`beside`] gives.
fn is_set_aside(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".trash-"))
}

/// Empties one entry, unless somebody has taken it back meanwhile.
pub(super) fn free(project: &Project, dir: &Path, beside: Option<&Path>) -> Result<bool, Error> {
    let record =
        || Ok::<_, Error>(TrashRecord::find(&dir.join("trash.toml"))?.filter(|r| is_old(project, r)));
    let Some(found) = record()? else { return Ok(false) };
    // Whoever brings a lane back holds this.
    let Some(lock) = project.store.locks().try_take(&LockName::Run(found.lane))? else { return Ok(false) };
    // Whoever gives its folder to another lane holds this.
    let Some(_pool) = project.store.locks().try_take(&LockName::Pool)? else { return Ok(false) };
    if record()?.is_none() {
        return Ok(false);
    }
    let Some(beside) = beside else {
        let grave = project.store.layout().take_away(dir)?;
        drop(lock);
        return Ok(grave.finish().map(|()| true)?);
    };
    // Out of reach at once, and found again by the record, which goes last.
    let gone = beside.with_extension("gone");
    match std::fs::rename(beside, &gone) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::io("remove", beside)(e)),
        _ => drop(lock),
    }
    remove_tree(&gone)?;
    Ok(project.store.layout().bury(dir).map(|()| true)?)
}

/// Names of the refs that entries which stay say they are saved by.
pub(super) fn saved_by(project: &Project) -> Result<Vec<String>, Error> {
    let going: Vec<String> = old(project)?.spare.into_iter().map(|spare| spare.name).collect();
    let mut stay = entries(project)?;
    stay.retain(|dir| !going.contains(&name_of(dir)));
    let record = |dir: PathBuf| TrashRecord::find(&dir.join("trash.toml")).ok().flatten()?.saved;
    Ok(stay.into_iter().filter_map(record).collect())
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
