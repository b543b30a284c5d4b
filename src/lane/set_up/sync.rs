//! Owns giving a lane once more what the main checkout has for it: what is missing, and what is as it was copied. Newer work in the
//! lane is never written over, unless that is asked for; then it goes to the trash, and `undo` brings it back.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::copy::Copier;
use super::env::{env_file, keep_out};
use super::files::{Wanted, giver, make_room, warn_of_left, warn_of_new, without};
use crate::copy::Stamp;
use crate::fault;
use crate::git::{Giver, Included, RepoPath};
use crate::lane::{Error, Project, operate, trash};
use crate::store::Guard;
use crate::store::records::LaneRecord;

/// What a lane is given, or would be.
#[derive(Debug, Default)]
pub(crate) struct Sync {
    /// What it lacks; folders as a whole.
    pub(crate) added: Vec<RepoPath>,
    /// What it lacks and gets a link to.
    pub(crate) linked: Vec<RepoPath>,
    /// What nobody has changed since it was copied, and is another one now.
    pub(crate) renewed: Vec<RepoPath>,
    /// What differs, and was changed in the lane or was never copied.
    pub(crate) differs: Vec<RepoPath>,
    all: Vec<Included>,
}

impl Sync {
    /// Whether there is nothing to be done.
    pub(crate) fn is_nothing(&self, force: bool) -> bool {
        self.added.is_empty()
            && self.linked.is_empty()
            && self.renewed.is_empty()
            && (self.differs.is_empty() || !force)
    }
}

/// Finds out what a lane would be given, and says what git would show there as new.
///
/// # Errors
/// When git fails, or the list of what is copied cannot be read.
pub(crate) fn plan(project: &Project, lane: &LaneRecord) -> Result<Sync, Error> {
    let Some(main) = project.repo.main_worktree() else { return Ok(Sync::default()) };
    let wanted = Wanted::read(project, main)?;
    if wanted.is_empty() {
        return Ok(Sync::default());
    }
    let giver = giver(project, main, &lane.path)?;
    let links = giver.find(&wanted.links, true);
    warn_of_new(project, "linked", &links.not_ignored);
    let linked: Vec<RepoPath> = links.all.into_iter().map(|one| one.path).collect();
    let found = giver.find(&wanted.copies, false);
    warn_of_new(project, "copied", &found.not_ignored);
    for unused in wanted.unused(&giver) {
        project.listener.step(unused);
    }
    let copies = project.store.layout().copies_of(&lane.name).into_iter().collect();
    let mut looking = Comparing {
        giver: &giver,
        wanted: &wanted,
        linked: &linked,
        copies,
        main,
        lane,
        out: Sync::default(),
    };
    for one in without(found.all, &linked) {
        looking.compare(&one);
    }
    let mut out = looking.out;
    for path in linked {
        let place = path.under(&lane.path);
        match std::fs::read_link(&place) {
            Ok(there) if there == path.under(main) => {}
            _ if place.symlink_metadata().is_ok() => out.differs.push(path),
            _ => out.linked.push(path),
        }
    }
    Ok(out)
}

/// Gives a lane what was found, as one operation. `lock` is its run lock. With `force` also what differs.
///
/// # Errors
/// When something cannot be copied or moved; then the lane is as it was.
pub(crate) fn sync(
    project: &Project,
    lane: &LaneRecord,
    _lock: &Guard,
    planned: &Sync,
    force: bool,
) -> Result<(), Error> {
    drop(env_file(project, &lane.clone().any()));
    let Some(main) = project.repo.main_worktree() else { return Ok(()) };
    let chosen = |one: &&Included| force || !planned.differs.contains(&one.path);
    let all: Vec<Included> = planned.all.iter().filter(chosen).cloned().collect();
    let links = planned
        .linked
        .iter()
        .chain(planned.differs.iter().filter(|path| force && all.iter().all(|one| one.path != **path)));
    let links: Vec<RepoPath> = links.cloned().collect();
    let mut entry = trash::Exchange::begin(project, lane)?;
    let new = entry.folder("new")?;
    let wanted = Wanted::read(project, main)?;
    let giver = giver(project, main, &lane.path)?;
    let leaves_out = |path: &RepoPath, is_folder: bool| {
        giver.is_off_limits(path) || wanted.copies.takes_out(path, is_folder)
    };
    let copied = Copier::new(main, &new, &project.listener, &leaves_out)?.copy(&all)?;
    warn_of_left(project, &copied);
    for path in &links {
        lay_link(&new, main, path)?;
        keep_out(project, &lane.path, path)?;
    }
    let paths = all.iter().map(|one| &one.path).chain(&links);
    let there: Vec<&RepoPath> = paths.filter(|path| path.under(&new).symlink_metadata().is_ok()).collect();
    fault::point("sync.copied");
    entry.put()?;
    let (old, new) = (entry.folder("old")?, entry.folder("new")?);
    operate(project, "sync", |op| {
        for path in there {
            let target = path.under(&lane.path);
            if target.symlink_metadata().is_ok() {
                op.rename(&target, &path.under(&old))?;
            }
            if let Err(why) = make_room(&lane.path, path) {
                return Err(Error::io("write", &target)(std::io::Error::other(why)));
            }
            op.rename(&path.under(&new), &target)?;
        }
        Ok::<_, Error>(())
    })?;
    // What was copied before and is not there any more does no harm: nothing of that name is taken for unchanged.
    let mut known: HashMap<RepoPath, Stamp> =
        project.store.layout().copies_of(&lane.name).into_iter().collect();
    known.extend(copied.files);
    let mut known: Vec<(RepoPath, Stamp)> = known.into_iter().collect();
    known.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(project.store.layout().note_copies(&lane.name, &known)?)
}

/// Makes a link below a folder of ours.
fn lay_link(below: &Path, main: &Path, path: &RepoPath) -> Result<(), Error> {
    let place = path.under(below);
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    }
    symlink(path.under(main), &place).map_err(Error::io("link", &place))
}

/// Compares what the main checkout has with what the lane has.
struct Comparing<'a> {
    giver: &'a Giver<'a>,
    wanted: &'a Wanted,
    linked: &'a [RepoPath],
    copies: HashMap<RepoPath, Stamp>,
    main: &'a Path,
    lane: &'a LaneRecord,
    out: Sync,
}

impl Comparing<'_> {
    fn compare(&mut self, one: &Included) {
        let (from, to) = (one.path.under(self.main), one.path.under(&self.lane.path));
        let real = |up: &RepoPath| up.under(&self.lane.path).symlink_metadata().is_ok_and(|m| !m.is_dir());
        let (Ok(theirs), false) = (from.symlink_metadata(), one.path.parents().any(|up| real(&up))) else {
            return;
        };
        let Ok(ours) = to.symlink_metadata() else {
            self.out.added.push(one.path.clone());
            return self.out.all.push(one.clone());
        };
        if theirs.is_dir() && ours.is_dir() {
            let entries = std::fs::read_dir(&from).into_iter().flatten().flatten();
            let mut inside: Vec<Included> = entries
                .map(|entry| Included {
                    path: one.path.join(entry.file_name().as_bytes()),
                    is_folder: entry.file_type().is_ok_and(|kind| kind.is_dir()),
                })
                .collect();
            inside.retain(|below| self.is_wanted(below));
            inside.sort();
            return inside.iter().for_each(|below| self.compare(below));
        }
        let is_same = match (theirs.is_file() && ours.is_file(), theirs.is_symlink()) {
            (true, _) => Stamp::of(&theirs) == Stamp::of(&ours) || are_equal(&from, &to),
            (false, true) => std::fs::read_link(&from).ok() == std::fs::read_link(&to).ok(),
            // A folder or a pipe where the lane has something else.
            (false, false) => !theirs.is_dir(),
        };
        if is_same {
            return;
        }
        if ours.is_file() && theirs.is_file() && self.copies.get(&one.path) == Some(&Stamp::of(&ours)) {
            self.out.renewed.push(one.path.clone());
        } else {
            self.out.differs.push(one.path.clone());
        }
        self.out.all.push(one.clone());
    }

    fn is_wanted(&self, one: &Included) -> bool {
        !self.giver.is_off_limits(&one.path)
            && !self.giver.is_tracked(&one.path)
            && !self.wanted.copies.takes_out(&one.path, one.is_folder)
            && !self.linked.contains(&one.path)
    }
}

/// Whether two files hold the same, whatever their times are.
fn are_equal(one: &PathBuf, other: &PathBuf) -> bool {
    let open = |path: &PathBuf| std::fs::File::open(path);
    let (Ok(mut one), Ok(mut other)) = (open(one), open(other)) else { return false };
    let size = |file: &std::fs::File| file.metadata().map(|m| m.len()).ok();
    if size(&one) != size(&other) {
        return false;
    }
    let (mut a, mut b) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let Ok(count) = one.read(&mut a) else { return false };
        if count == 0 {
            return true;
        }
        if other.read_exact(&mut b[..count]).is_err() || a[..count] != b[..count] {
            return false;
        }
    }
}
