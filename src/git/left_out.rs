//! Owns files that a sparse checkout leaves out. Git applies the patterns anew each time that it goes to another commit: it
//! removes what a user has put back by hand, and writes what a user has marked skip-worktree. Here an entry stays as it is,
//! there or left out, and the patterns decide about files that are new.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use gix::index::entry::{Flags, Stage};

use super::make_way::stranger_above;
use super::path::nul_separated;
use super::patterns::{Against, Patterns};
use super::quarantine::{is_below_folders, prune_below, prune_parents, stands};
use super::status::Dirt;
use super::transition::Tree;
use super::{Change, Error, Oid, RepoPath, Side, diff, flags, index};

/// Has an index name the files of the folders that it has in place of them, where one of `changes` lies in such a folder: nothing
/// is known of the files there otherwise, and git would write them.
pub(super) fn unfold(tree: &Tree<'_>, index: &Path, changes: &[Change]) -> Result<(), Error> {
    let options = gix::index::decode::Options::default();
    let read = gix::index::File::at(index, tree.repo.gix.object_hash(), true, options);
    let Some(read) = read.ok().filter(|read| read.is_sparse()) else { return Ok(()) };
    let folded = |up: &RepoPath| read.entry_by_path(up.join(b"").as_bytes().into());
    let Some((folder, entry)) = changes.iter().flat_map(|c| c.path.parents()).find_map(|up| {
        let entry = folded(&up)?;
        Some((up, entry))
    }) else {
        return Ok(());
    };
    // Git names all files as soon as one of them is asked for by name.
    let files = diff::tree_files(tree.repo, Oid(entry.id), &BTreeSet::new())?;
    let Some((inside, _)) = files.first() else { return Ok(()) };
    let call = tree.repo.git_in(tree.dir).args(flags::AS_MARKED);
    let call = call.args(["update-index", "--skip-worktree", "-z", "--stdin"]).index(index);
    call.input(nul_separated([&folder.join(inside.as_bytes())])).changes().run().map(drop)
}

/// How git has to bring the files of a sparse checkout over, from one commit to another, for it not to look at those that are left out.
pub(super) struct LeftOut {
    /// The tree that it starts from.
    pub(super) from: Oid,
    /// The tree that it goes to.
    pub(super) to: Oid,
    /// The entries that the index lacks once git is done: left-out files that go in the place of files that are there, or of folders of
    /// such.
    late: Vec<(RepoPath, Side)>,
}

impl LeftOut {
    /// Brings those entries of `index` over that have no file: changed ones that are marked skip-worktree, and new ones that the
    /// patterns leave out, but for what is to be against them: git writes what is shown so. It leaves the others as they are from
    /// then on. Empty folders in their places go. None where the checkout is not sparse.
    pub(super) fn bring(
        tree: &Tree<'_>,
        index: &Path,
        changes: &[Change],
        (from, to): (Oid, Oid),
        Against { shown, left_out }: &Against<'_>,
    ) -> Result<Option<LeftOut>, Error> {
        let Some(patterns) = Patterns::of(tree)? else { return Ok(None) };
        let flagged = flags::flagged_in(tree.repo, tree.dir, index)?;
        let skipped: HashSet<&RepoPath> = flagged.iter().filter(|f| f.skipped).map(|f| &f.path).collect();
        let is_skipped = |path: &RepoPath| skipped.contains(path) && !stands(tree.dir, path);
        let there = changes.iter().filter(|c| c.old.is_some() && !is_skipped(&c.path)).map(|c| &c.path);
        let there: HashSet<&RepoPath> = there.collect();
        let above: HashSet<RepoPath> = there.iter().flat_map(|path| path.parents()).collect();
        let replaces = |path: &RepoPath| above.contains(path) || path.parents().any(|up| there.contains(&up));
        let is_left_out = |change: &&Change| match (change.old, change.new) {
            (Some(old), _) if old.is_gitlink() => false,
            (_, Some(new)) if new.is_gitlink() => false,
            _ if shown.contains(&change.path) => false,
            (Some(_), _) => is_skipped(&change.path),
            (None, _) => left_out.contains(&change.path) || patterns.leave_out(&change.path),
        };
        let skipped_yet: Vec<RepoPath> =
            shown.iter().filter(|path| skipped.contains(*path)).map(|path| (*path).clone()).collect();
        flags::clear_flags(tree.repo, tree.dir, index, &skipped_yet)?;
        let all: Vec<&Change> = changes.iter().filter(is_left_out).collect();
        let set = all.iter().filter_map(|c| Some((c.path.clone(), c.new?)));
        let (late, set): (Vec<_>, Vec<_>) = set.partition(|(path, _)| replaces(path));
        let mut input = Vec::new();
        // An entry may be in the place of a folder of others.
        for change in all.iter().filter(|c| c.new.is_none()) {
            let Some(old) = change.old else { continue };
            line(&mut input, 0, &old.oid.null().to_string(), &change.path);
        }
        enter(tree, index, input, &set)?;
        // An entry that is made anew has lost its other mark.
        let set: HashSet<&RepoPath> = set.iter().map(|(path, _)| path).collect();
        let assumed: Vec<_> = flagged.into_iter().filter(|f| f.assumed && set.contains(&f.path)).collect();
        flags::flag_again(tree.repo, tree.dir, index, &assumed)?;
        let is_taken = |path: &RepoPath| {
            path.under(tree.dir).symlink_metadata().is_ok() || !is_below_folders(tree.dir, path)
        };
        let taken = all.iter().filter(|c| c.new.is_none() && is_taken(&c.path)).map(|c| &c.path);
        let from = without(tree, from, &taken.collect::<Vec<_>>())?;
        let to = without(tree, to, &late.iter().map(|(path, _)| path).collect::<Vec<_>>())?;
        Ok(Some(LeftOut { from, to, late }))
    }

    /// Brings the rest of them over, once git has made the index that of [`LeftOut::to`].
    pub(super) fn finish(&self, tree: &Tree<'_>, index: &Path) -> Result<(), Error> {
        enter(tree, index, Vec::new(), &self.late)
    }
}

/// Gives an index these entries, behind the lines of `input`, and marks them skip-worktree.
fn enter(tree: &Tree<'_>, index: &Path, mut input: Vec<u8>, set: &[(RepoPath, Side)]) -> Result<(), Error> {
    for (path, side) in set {
        line(&mut input, side.mode, &side.oid.to_string(), path);
    }
    let call = || tree.repo.git_in(tree.dir).args(flags::AS_MARKED).index(index).changes();
    if !input.is_empty() {
        call().args(["update-index", "-z", "--index-info"]).input(input).run()?;
    }
    leave_out(tree, index, set.iter().map(|(path, _)| path))?;
    // An empty folder in the place of one is a change to git. Git removes it, too, where it writes the file.
    for (path, _) in set.iter().filter(|(path, _)| is_below_folders(tree.dir, path)) {
        prune_below(&path.under(tree.dir));
        prune_parents(tree.dir, path);
    }
    Ok(())
}

/// The tree of a commit without these paths. Git would look for a file that goes where the index has none, and be stopped by
/// what is there in its place or above it.
fn without(tree: &Tree<'_>, from: Oid, paths: &[&RepoPath]) -> Result<Oid, Error> {
    if paths.is_empty() {
        return Ok(from);
    }
    let index = tree.scratch.join("without-left-out");
    index::forget(&index);
    let call = || tree.repo.git_in(tree.dir).index(&index).changes();
    call().args(["read-tree", "--no-sparse-checkout"]).arg(from.to_string()).run()?;
    let list = nul_separated(paths.iter().copied());
    call().args(["update-index", "--force-remove", "-z", "--stdin"]).input(list).run()?;
    call().arg("write-tree").run_for_id()
}

/// Those of `changes` that write or remove something: without new files that the patterns of a sparse checkout leave out, or that
/// are left out `against` them. A new
/// file that replaces one or a folder of them counts as written, whether or not that was there; so does one whose path is
/// taken, as git takes what it finds there for that file and may remove it.
pub(super) fn without_left_out(
    tree: &Tree<'_>,
    changes: &[Change],
    against: &Against<'_>,
) -> Result<Vec<Change>, Error> {
    let Some(patterns) = Patterns::of(tree)? else { return Ok(changes.to_vec()) };
    let leaving: HashSet<&RepoPath> = changes.iter().filter(|c| c.old.is_some()).map(|c| &c.path).collect();
    let above: HashSet<RepoPath> = leaving.iter().flat_map(|path| path.parents()).collect();
    let replaces = |path: &RepoPath| above.contains(path) || path.parents().any(|up| leaving.contains(&up));
    let is_left_out = |change: &&Change| {
        let is_new_file = change.old.is_none() && change.new.is_some_and(|new| !new.is_gitlink());
        // As git looks at it: through links above it.
        let is_free = change.path.under(tree.dir).symlink_metadata().is_err();
        let is_left_out = match patterns.leave_out(&change.path) {
            true => !against.shown.contains(&change.path),
            false => against.left_out.contains(&change.path),
        };
        is_new_file && is_free && is_left_out && !replaces(&change.path)
    };
    Ok(changes.iter().filter(|change| !is_left_out(change)).cloned().collect())
}

fn line(input: &mut Vec<u8>, mode: u32, id: &str, path: &RepoPath) {
    input.extend_from_slice(format!("{mode:o} {id}\t").as_bytes());
    input.extend_from_slice(path.as_bytes());
    input.push(0);
}

/// Marks entries of an index skip-worktree.
pub(super) fn leave_out<'p>(
    tree: &Tree<'_>,
    index: &Path,
    paths: impl Iterator<Item = &'p RepoPath>,
) -> Result<(), Error> {
    let list = nul_separated(paths);
    if list.is_empty() {
        return Ok(());
    }
    let call = tree.repo.git_in(tree.dir).args(flags::AS_MARKED);
    let call = call.args(["update-index", "--skip-worktree", "-z", "--stdin"]);
    call.index(index).input(list).changes().run().map(drop)
}

/// Entries of a sparse checkout's index that are marked skip-worktree and whose file is there all the same.
pub(super) fn put_back(tree: &Tree<'_>, index: &Path) -> Result<Vec<RepoPath>, Error> {
    if !flags::is_sparse(&tree.git_dir) {
        return Ok(Vec::new());
    }
    let skipped: Vec<RepoPath> = if let Some(entries) = Entries::read(tree, index, &[]) {
        entries.0.into_iter().filter(|e| e.is_skipped).map(|e| e.path).collect()
    } else {
        let flagged = flags::flagged_in(tree.repo, tree.dir, index)?;
        flagged.into_iter().filter(|f| f.skipped).map(|f| f.path).collect()
    };
    let mut seen = Seen::new(tree.dir);
    Ok(skipped.into_iter().filter(|path| seen.has(path)).collect())
}

/// Folders of a sparse checkout that are there though a file which would be in them is left out, the deepest ones.
pub(super) fn folders_above(tree: &Tree<'_>) -> Result<BTreeSet<RepoPath>, Error> {
    if !flags::is_sparse(&tree.git_dir) {
        return Ok(BTreeSet::new());
    }
    let flagged = flags::flagged(tree.repo, tree.dir, &tree.git_dir)?;
    let is_folder = |up: &RepoPath| up.under(tree.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir());
    // In the order of the index, those of one folder come one after the other.
    let (mut last, mut all) = (None, BTreeSet::new());
    for file in flagged.iter().filter(|f| f.skipped) {
        let up = file.path.parents().last();
        if up != last {
            all.extend(file.path.parents().take_while(is_folder).last());
            last = up;
        }
    }
    Ok(all)
}

/// What stands in a sparse checkout where entries of the index belong, or above them, that are marked skip-worktree although the
/// checkout's patterns include them. Git writes such entries, over what stands there, as soon as somebody switches to a commit; none
/// where the checkout is not sparse. A folder may have no file in it.
pub(super) fn covering(tree: &Tree<'_>) -> Result<BTreeSet<RepoPath>, Error> {
    if !flags::is_sparse(&tree.git_dir) {
        return Ok(BTreeSet::new());
    }
    let flagged = flags::flagged(tree.repo, tree.dir, &tree.git_dir)?;
    let standing = |path: &RepoPath| {
        let at = || path.under(tree.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        stranger_above(tree.dir, path).or_else(|| at().then(|| path.clone()))
    };
    let marked = flagged.iter().filter(|f| f.skipped);
    let found: Vec<(&RepoPath, RepoPath)> =
        marked.filter_map(|f| Some((&f.path, standing(&f.path)?))).collect();
    if found.is_empty() {
        return Ok(BTreeSet::new());
    }
    let Some(patterns) = Patterns::of(tree)? else { return Ok(BTreeSet::new()) };
    Ok(found.into_iter().filter(|(path, _)| !patterns.leave_out(path)).map(|(_, there)| there).collect())
}

/// Staged entries of a sparse checkout's index that are marked skip-worktree and whose file is not there.
pub(super) fn staged_without_file(
    tree: &Tree<'_>,
    index: &Path,
    dirt: &Dirt,
) -> Result<Vec<RepoPath>, Error> {
    if !flags::is_sparse(&tree.git_dir) || dirt.staged().next().is_none() {
        return Ok(Vec::new());
    }
    let flagged = flags::flagged_in(tree.repo, tree.dir, index)?;
    let skipped: HashSet<&RepoPath> = flagged.iter().filter(|f| f.skipped).map(|f| &f.path).collect();
    let staged = dirt.staged().map(|entry| &entry.path);
    Ok(staged.filter(|path| skipped.contains(path) && !stands(tree.dir, path)).cloned().collect())
}

/// Whether entries of a sparse checkout's index are otherwise than git would make them: left out though the patterns name
/// them, or there though they do not. Git changes that as soon as it goes to another commit.
pub(crate) fn is_odd(tree: &Tree<'_>) -> Result<bool, Error> {
    let Some(patterns) = Patterns::of(tree)? else { return Ok(false) };
    let Some(index) = Entries::read(tree, &tree.git_dir.join("index"), &[]) else { return Ok(true) };
    let mut seen = Seen::new(tree.dir);
    let odd = |entry: &Entry| {
        let is_left_out = entry.is_skipped && !seen.has(&entry.path);
        is_left_out != patterns.leave_out(&entry.path)
    };
    Ok(index.0.iter().any(odd))
}

/// The files of HEAD, which has what the index has of them, that a sparse checkout shows or leaves out against its patterns: `put_back`
/// are those that are there though their entry is marked skip-worktree. One that is left out is like one that was removed. It says the
/// same as long as the index is the same, whatever becomes of the files.
pub(super) fn against_patterns(
    tree: &Tree<'_>,
    put_back: &[RepoPath],
    is_of_head: impl Fn(&RepoPath) -> bool,
) -> Result<Vec<Change>, Error> {
    let Some(patterns) = Patterns::of(tree)? else { return Ok(Vec::new()) };
    let Some(index) = Entries::read(tree, &tree.git_dir.join("index"), put_back) else {
        return Ok(Vec::new());
    };
    let put_back: HashSet<&RepoPath> = put_back.iter().collect();
    let change = |entry: Entry| {
        let is_left_out = entry.is_skipped && !put_back.contains(&entry.path);
        if is_left_out == patterns.leave_out(&entry.path) || !is_of_head(&entry.path) {
            return None;
        }
        let new = (!is_left_out).then_some(entry.side);
        Some(Change { path: entry.path, old: Some(entry.side), new })
    };
    Ok(index.0.into_iter().filter_map(change).collect())
}

/// The files that a sparse checkout with this index had, with what the index says of them: `put_back` are those that were there though
/// their entry is marked skip-worktree. None of another checkout.
pub(super) fn had(tree: &Tree<'_>, index: &Path, put_back: &[RepoPath]) -> Vec<(RepoPath, Side)> {
    if !flags::is_sparse(&tree.git_dir) {
        return Vec::new();
    }
    let Some(entries) = Entries::read(tree, index, put_back) else { return Vec::new() };
    let put_back: HashSet<&RepoPath> = put_back.iter().collect();
    let there = entries.0.into_iter().filter(|entry| !entry.is_skipped || put_back.contains(&entry.path));
    there.map(|entry| (entry.path, entry.side)).collect()
}

/// What has to change on disk in a sparse checkout, besides what a snapshot holds, for its index to be true again.
#[derive(Default)]
pub(super) struct Visible {
    /// HEAD's own files that the snapshot's checkout left out.
    pub(super) leaving: Vec<Change>,
    /// Files that it had, and that are left out now.
    pub(super) arriving: Vec<(RepoPath, Side)>,
}

impl Visible {
    /// Compares the index of a snapshot with that of the worktree. `put_back` are those that the snapshot's checkout had though
    /// their entry was marked skip-worktree. `is_held` says what the snapshot takes care of by itself, and `is_taken` what is
    /// in a killed process's keeping.
    pub(super) fn of(
        tree: &Tree<'_>,
        raw_index: &Path,
        put_back: &[RepoPath],
        is_held: impl Fn(&RepoPath) -> bool,
        is_taken: impl Fn(&RepoPath) -> bool,
    ) -> Visible {
        if !flags::is_sparse(&tree.git_dir) {
            return Visible::default();
        }
        let Some(then) = Entries::read(tree, raw_index, put_back) else { return Visible::default() };
        let put_back: HashSet<&RepoPath> = put_back.iter().collect();
        let is_left_out = |entry: &Entry| entry.is_skipped && !put_back.contains(&entry.path);
        let had: Vec<RepoPath> =
            then.0.iter().filter(|entry| !is_left_out(entry)).map(|entry| entry.path.clone()).collect();
        let now = Entries::read(tree, &tree.git_dir.join("index"), &had);
        let Some(now) = now else { return Visible::default() };
        let mut seen = Seen::new(tree.dir);
        let leaving = then.0.iter().filter(|entry| is_left_out(entry) && !is_held(&entry.path));
        let leaving = leaving.filter(|entry| seen.has(&entry.path) || is_taken(&entry.path));
        let leaving =
            leaving.map(|entry| Change { path: entry.path.clone(), old: Some(entry.side), new: None });
        let leaving = leaving.collect();
        let had: HashSet<&RepoPath> = had.iter().collect();
        let mut seen = Seen::new(tree.dir);
        let arriving = now.0.into_iter().filter(|entry| entry.is_skipped && had.contains(&entry.path));
        let arriving = arriving.filter(|entry| !is_held(&entry.path) && !seen.has(&entry.path));
        Visible { leaving, arriving: arriving.map(|entry| (entry.path, entry.side)).collect() }
    }
}

/// The files of an index, but for submodules and what a folder stands for.
struct Entries(Vec<Entry>);

struct Entry {
    path: RepoPath,
    side: Side,
    is_skipped: bool,
}

impl Entries {
    /// None where the library cannot read it. Of the folders that a sparse index has in place of their files, those that are there
    /// have all their files, and so have those above one of `needed`, which are in the order of an index.
    fn read(tree: &Tree<'_>, file: &Path, needed: &[RepoPath]) -> Option<Entries> {
        let options = gix::index::decode::Options::default();
        let read = gix::index::File::at(file, tree.repo.gix.object_hash(), true, options).ok()?;
        let mut all = Vec::new();
        for entry in read.entries() {
            let path = RepoPath::new(entry.path(&read).to_vec());
            if entry.mode.is_submodule() || entry.stage() != Stage::Unconflicted {
                continue;
            }
            if !entry.mode.is_sparse() {
                let side = Side { mode: entry.mode.bits(), oid: Oid(entry.id) };
                let is_skipped = entry.flags.contains(Flags::SKIP_WORKTREE);
                all.push(Entry { path, side, is_skipped });
                continue;
            }
            let after = needed.partition_point(|needed| needed.as_bytes() < path.as_bytes());
            let is_above = needed.get(after).is_some_and(|next| next.as_bytes().starts_with(path.as_bytes()));
            let folder = RepoPath::new(path.as_bytes().strip_suffix(b"/").unwrap_or(path.as_bytes()));
            if is_above || folder.under(tree.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                let inside = diff::tree_files(tree.repo, Oid(entry.id), &BTreeSet::new()).ok()?;
                let inside = inside.into_iter().filter(|(_, side)| !side.is_gitlink());
                all.extend(inside.map(|(name, side)| Entry {
                    path: folder.join(name.as_bytes()),
                    side,
                    is_skipped: true,
                }));
            }
        }
        Some(Entries(all))
    }
}

/// Which of many files are there, asked for in the order of the index: a missing folder is looked for once.
struct Seen<'a> {
    dir: &'a Path,
    missing: Vec<u8>,
}

impl<'a> Seen<'a> {
    fn new(dir: &'a Path) -> Seen<'a> {
        Seen { dir, missing: Vec::new() }
    }

    fn has(&mut self, path: &RepoPath) -> bool {
        if !self.missing.is_empty() && path.as_bytes().starts_with(&self.missing) {
            return false;
        }
        if stands(self.dir, path) {
            return true;
        }
        let is_folder = |up: &RepoPath| up.under(self.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if let Some(up) = path.parents().find(|up| !is_folder(up)) {
            self.missing = up.join(b"").as_bytes().to_vec();
        }
        false
    }
}
