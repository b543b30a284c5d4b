//! Owns making way for files that go back to their places: what stands there by somebody else's doing is kept, in a commit or
//! under another name.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::fs::{Access, access};

use super::commit::NewCommit;
use super::path::nul_separated;
use super::quarantine::prune_below;
use super::transition::Tree;
use super::{Error, Oid, RepoPath, index};

/// Something that stands where a file has to go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stranger {
    /// Where.
    pub(super) path: RepoPath,
    /// Whether a rename of the file that goes there replaces it: no folder, and not in place of one.
    pub(super) is_replaced: bool,
}

/// What keeps a file from being put at `path`. Folders without a file in them make way.
pub(super) fn stranger(root: &Path, path: &RepoPath) -> Option<Stranger> {
    if let Some(path) = stranger_above(root, path) {
        return Some(Stranger { path, is_replaced: false });
    }
    let place = path.under(root);
    prune_below(&place);
    let meta = place.symlink_metadata().ok()?;
    Some(Stranger { path: path.clone(), is_replaced: !meta.is_dir() })
}

/// What stands in place of a folder above `path` and is none.
pub(super) fn stranger_above(root: &Path, path: &RepoPath) -> Option<RepoPath> {
    path.parents().find(|up| up.under(root).symlink_metadata().is_ok_and(|meta| !meta.is_dir()))
}

/// Keeps what stands where files go back to: in a commit what a rename will replace, as far as git can take it and does not
/// ignore it; everything else under a new name beside its place, which is reported.
pub(super) fn save(tree: &Tree<'_>, mut strangers: Vec<Stranger>) -> Result<Option<Oid>, Error> {
    strangers.sort();
    strangers.dedup();
    let ignored = ignored(tree, &strangers);
    let (plain, others): (Vec<_>, Vec<_>) = strangers
        .into_iter()
        .partition(|s| s.is_replaced && is_readable(&s.path.under(tree.dir)) && !ignored.contains(&s.path));
    move_beside(tree, &others)?;
    if plain.is_empty() {
        return Ok(None);
    }
    match commit(tree, &plain) {
        Ok(saved) => Ok(Some(saved)),
        // A rename needs neither git nor space.
        Err(_) => move_beside(tree, &plain).map(|()| None),
    }
}

/// Gives each of them a name that nothing has, in its folder.
pub(super) fn move_beside(tree: &Tree<'_>, strangers: &[Stranger]) -> Result<(), Error> {
    for Stranger { path, .. } in strangers {
        let from = path.under(tree.dir);
        let name = from.file_name().unwrap_or_default();
        let mut tries = (1..u32::MAX).map(|n| {
            let mut beside = name.to_owned();
            beside.push(format!(".proq-saved-{n}"));
            // With a name that is as long as names can be only the end of this one is left.
            let beside = if beside.len() > 255 { format!("proq-saved-{n}").into() } else { beside };
            from.with_file_name(beside)
        });
        let Some(to) = tries.find(|to| to.symlink_metadata().is_err()) else { continue };
        std::fs::rename(&from, &to).map_err(Error::io("move a file to", &to))?;
        let to = to.strip_prefix(tree.dir).ok().and_then(RepoPath::of);
        let to = to.as_ref().map_or_else(String::new, ToString::to_string);
        (tree.warn)(format!("{path} stood where something else goes back to: it is {to} now"));
    }
    Ok(())
}

/// A link, or a file that may be read.
fn is_readable(file: &Path) -> bool {
    let Ok(meta) = file.symlink_metadata() else { return false };
    meta.is_symlink() || (meta.is_file() && access(file, Access::READ_OK).is_ok())
}

/// Those that git ignores; all, where it cannot say.
fn ignored(tree: &Tree<'_>, strangers: &[Stranger]) -> BTreeSet<RepoPath> {
    let all = || strangers.iter().map(|s| &s.path);
    if strangers.is_empty() {
        return BTreeSet::new();
    }
    let call = tree.repo.git_in(tree.dir).args(["check-ignore", "--no-index", "-z", "--stdin"]);
    match call.input(nul_separated(all())).accept(&[1]).run() {
        Ok(out) => out.fields().map(RepoPath::new).collect(),
        Err(_) => all().cloned().collect(),
    }
}

fn commit(tree: &Tree<'_>, plain: &[Stranger]) -> Result<Oid, Error> {
    let index = tree.scratch.join("strange");
    index::forget(&index);
    let call = || tree.repo.git_in(tree.dir).index(&index);
    let paths = nul_separated(plain.iter().map(|s| &s.path));
    let how = ["-c", "core.safecrlf=false", "update-index", "--add", "-z", "--stdin"];
    call().args(how).input(paths).changes().durable().run()?;
    let id = call().arg("write-tree").changes().durable().run_for_id()?;
    let message = "git-proq: files that were written before others went back\n";
    NewCommit { tree: id, parents: &[], message }.write_as_keeper(tree.repo, None)
}
