//! Differences between two trees, path by path.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use crate::repository::attributes::attribute_paths_for;
use crate::repository::objects::TempObjectStore;
use crate::repository::tree_reader::{TreeItem, TreeItems, TreeReader};
use crate::{BlobId, Error, Oid, Repo, RepoPath, TreeId};

/// File or submodule in a tree, without its path: mode and object id. It is also one side of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeFile {
    /// Git's mode: `100644`, `100755`, `120000` or `160000` (octal); `040000` of a folder, where those are listed.
    pub mode: u32,
    /// Id of the blob, of the commit of a submodule, or of the tree of a folder.
    pub oid: Oid,
}

impl TreeFile {
    /// Returns whether this is a regular file.
    pub fn is_file(self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }

    /// Returns whether this is a symbolic link.
    pub fn is_link(self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }

    /// Returns the id of the blob of a file or symbolic link. Of a submodule, no such blob exists.
    pub const fn blob(self) -> BlobId {
        BlobId::from_oid(self.oid)
    }

    /// Returns whether this is the commit of a submodule and not a file.
    pub fn is_gitlink(self) -> bool {
        self.mode == 0o160_000
    }
}

/// One path that differs between two trees. Renames are a removal and an addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// Path that differs.
    pub path: RepoPath,
    /// Version in the old tree, if any.
    pub old: Option<TreeFile>,
    /// Version in the new tree, if any.
    pub new: Option<TreeFile>,
}

impl TreeChange {
    /// Returns the letter that `git status` shows for this change.
    pub fn status_letter(&self) -> char {
        let kind = |side: TreeFile| side.mode & 0o170_000;
        match (self.old, self.new) {
            (None, _) => 'A',
            (_, None) => 'D',
            (Some(old), Some(new)) if kind(old) != kind(new) => 'T',
            _ => 'M',
        }
    }
}

/// Compares two trees or commits, and returns the changes in the order of paths.
pub fn tree_changes(repo: &Repo, from: impl Into<Oid>, to: impl Into<Oid>) -> Result<Vec<TreeChange>, Error> {
    let (from, to) = (from.into(), to.into());
    if from == to {
        return Ok(Vec::new());
    }
    match compare_in_process(repo, from, to) {
        Ok(all) => Ok(all),
        // Git explains objects that cannot be read.
        Err(_) => tree_changes_by_git(repo, from, to, None),
    }
}

/// Compares two trees or commits without starting git.
///
/// # Errors
/// Fails when one of the trees that differ cannot be read.
pub(crate) fn compare_in_process(repo: &Repo, from: Oid, to: Oid) -> Result<Vec<TreeChange>, Error> {
    let mut out = changes_between_trees(
        repo.tree_reader(),
        TreeId(peel_to_tree_id(repo, from)?),
        TreeId(peel_to_tree_id(repo, to)?),
    )?;
    out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}

/// Returns the id of the tree that an object is or points to.
fn peel_to_tree_id(repo: &Repo, id: Oid) -> Result<gix::ObjectId, Error> {
    let describe_object = || format!("object {}", id.short());
    let object = repo.gix.find_object(id.0).map_err(Error::object(describe_object()))?;
    object.peel_to_tree().map(|tree| tree.id).map_err(Error::object(describe_object()))
}

/// Converts an entry of a tree to a [`TreeFile`].
fn to_tree_file(item: TreeItem) -> TreeFile {
    TreeFile { mode: u32::from(item.mode.value()), oid: Oid(item.id) }
}

/// Returns the changes between two trees, in no particular order.
///
/// # Errors
/// Fails when one of the trees that differ cannot be read.
pub(crate) fn changes_between_trees(
    reader: &TreeReader,
    from: TreeId,
    to: TreeId,
) -> Result<Vec<TreeChange>, Error> {
    let mut walk = TreeDiff { reader, changes: Vec::new() };
    if from != to {
        walk.compare_trees(b"", Some(from.0), Some(to.0))?;
    }
    Ok(walk.changes)
}

/// Comparison of two trees in progress.
struct TreeDiff<'r> {
    reader: &'r TreeReader,
    changes: Vec<TreeChange>,
}

impl TreeDiff<'_> {
    fn compare_trees(
        &mut self,
        folder_path: &[u8],
        from: Option<gix::ObjectId>,
        to: Option<gix::ObjectId>,
    ) -> Result<(), Error> {
        let load_items = |id: Option<gix::ObjectId>| {
            id.map_or_else(|| Ok(Rc::new(TreeItems::default())), |id| self.reader.tree(id))
        };
        let (before, after) = (load_items(from)?, load_items(to)?);
        for (name, old) in before.iter() {
            self.compare_entry(folder_path, name, Some(old), after.get(name))?;
        }
        for (name, new) in after.iter().filter(|(name, _)| before.get(name).is_none()) {
            self.compare_entry(folder_path, name, None, Some(new))?;
        }
        Ok(())
    }

    fn compare_entry(
        &mut self,
        folder_path: &[u8],
        name: &[u8],
        old: Option<TreeItem>,
        new: Option<TreeItem>,
    ) -> Result<(), Error> {
        if old == new {
            return Ok(());
        }
        let mut path = folder_path.to_vec();
        path.extend_from_slice(name);
        let file_item = |item: Option<TreeItem>| item.filter(|i| !i.is_tree());
        let (old_file, new_file) = (file_item(old).map(to_tree_file), file_item(new).map(to_tree_file));
        if old_file.is_some() || new_file.is_some() {
            self.changes.push(TreeChange { path: RepoPath::new(path.clone()), old: old_file, new: new_file });
        }
        let subtree_id = |item: Option<TreeItem>| item.filter(|i| i.is_tree()).map(|i| i.id);
        let (old, new) = (subtree_id(old), subtree_id(new));
        if old.is_none() && new.is_none() {
            return Ok(());
        }
        path.push(b'/');
        self.compare_trees(&path, old, new)
    }
}

/// Compares two trees with `git diff-tree`. The objects may exist only in `temp_objects`.
pub(crate) fn tree_changes_by_git(
    repo: &Repo,
    from: Oid,
    to: Oid,
    temp_objects: Option<&TempObjectStore>,
) -> Result<Vec<TreeChange>, Error> {
    let command = TempObjectStore::redirect_writes(temp_objects, repo.git())
        .args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", "--no-abbrev"])
        .args([from.to_string(), to.to_string()]);
    let display_args = command.display_args();
    let out = command.run()?;
    parse_raw_diff(&out.stdout).ok_or_else(|| Error::UnexpectedOutput {
        args: display_args,
        fault_or_output: "a line of another form".into(),
    })
}

/// Entry at the top of a tree.
#[derive(Debug)]
pub struct TopFile {
    /// The entry, also of a folder.
    pub entry: TreeFile,
    /// Content; none if it is too large, or the entry is no regular file.
    pub content: Option<Vec<u8>>,
}

/// Returns the entry `name` at the top of a tree, with a content of at most `max_bytes`; none without such an
/// entry. The objects may exist only in `temp_objects`.
///
/// # Errors
/// Fails if the objects cannot be read.
pub fn top_file(
    repo: &Repo,
    tree: TreeId,
    name: &str,
    max_bytes: u64,
    temp_objects: &TempObjectStore,
) -> Result<Option<TopFile>, Error> {
    let reader = TreeReader::new(temp_objects.open(repo)?);
    let item = reader.tree(Oid::from(tree).0)?.get(name.as_bytes());
    let Some(entry) = item.map(to_tree_file) else { return Ok(None) };
    let content = if entry.is_file() { reader.small_blob(entry.oid.0, max_bytes)? } else { None };
    Ok(Some(TopFile { entry, content }))
}

/// Returns the entry at a path of a tree or of a commit's tree, also that of a folder; none without such an entry.
///
/// # Errors
/// Fails if git cannot read the tree.
pub fn tree_entry(repo: &Repo, treeish: Oid, path: &RepoPath) -> Result<Option<TreeFile>, Error> {
    let in_process = peel_to_tree_id(repo, treeish).and_then(|root| repo.find_tree_item(root, path));
    if let Ok(item) = in_process {
        return Ok(item.map(to_tree_file));
    }
    // Git explains objects that cannot be read.
    let command = repo.git().args(["ls-tree", "-z", "--full-tree"]).arg(treeish.to_string());
    let command = command.env("GIT_LITERAL_PATHSPECS", "1").arg("--");
    let out = command.arg(OsStr::from_bytes(path.as_bytes())).run()?;
    let entry = out.nul_separated_fields().filter_map(parse_tree_entry).find(|(found, _)| found == path);
    Ok(entry.map(|(_, entry)| entry))
}

/// Maximum number of paths passed to one git command; for more, git lists the entire tree.
const MAX_PATHS_PER_COMMAND: usize = 2000;

/// Returns every file of a tree in the order of paths; if `only_paths` is not empty, only those of its paths
/// that exist.
pub fn tree_files(
    repo: &Repo,
    tree: impl Into<Oid>,
    only_paths: &BTreeSet<RepoPath>,
) -> Result<Vec<(RepoPath, TreeFile)>, Error> {
    let tree = tree.into();
    match tree_files_in_process(repo, tree, only_paths) {
        Ok(all) => Ok(all),
        // Git explains objects that cannot be read.
        Err(_) => tree_files_by_git(repo, tree, only_paths),
    }
}

/// Lists the files of a tree without starting git.
fn tree_files_in_process(
    repo: &Repo,
    id: Oid,
    only_paths: &BTreeSet<RepoPath>,
) -> Result<Vec<(RepoPath, TreeFile)>, Error> {
    let root = peel_to_tree_id(repo, id)?;
    if !only_paths.is_empty() {
        let find_side = |path: &RepoPath| {
            Ok(repo.find_tree_item(root, path)?.filter(|item| !item.is_tree()).map(to_tree_file))
        };
        let sides = only_paths.iter().map(|path| Ok(find_side(path)?.map(|side| (path.clone(), side))));
        return sides.filter_map(Result::transpose).collect();
    }
    let mut walk = TreeDiff { reader: repo.tree_reader(), changes: Vec::new() };
    walk.compare_trees(b"", None, Some(root))?;
    walk.changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(walk.changes.into_iter().filter_map(|change| Some((change.path, change.new?))).collect())
}

fn tree_files_by_git(
    repo: &Repo,
    tree: Oid,
    only_paths: &BTreeSet<RepoPath>,
) -> Result<Vec<(RepoPath, TreeFile)>, Error> {
    let command = repo
        .git()
        .args(["ls-tree", "-r", "-z", "--full-tree"])
        .arg(tree.to_string())
        .env("GIT_LITERAL_PATHSPECS", "1");
    let command = match only_paths.len() {
        1..=MAX_PATHS_PER_COMMAND => {
            command.arg("--").args(only_paths.iter().map(|p| OsStr::from_bytes(p.as_bytes()).to_owned()))
        }
        _ => command,
    };
    let mut files: Vec<(RepoPath, TreeFile)> =
        command.run()?.nul_separated_fields().filter_map(parse_tree_entry).collect();
    if !only_paths.is_empty() {
        files.retain(|(path, _)| only_paths.contains(path));
    }
    Ok(files)
}

/// Returns the paths of all files of a tree.
pub fn tree_paths(repo: &Repo, tree: impl Into<Oid>) -> Result<Vec<RepoPath>, Error> {
    Ok(tree_files(repo, tree, &BTreeSet::new())?.into_iter().map(|(path, _)| path).collect())
}

/// Parses `<mode> <type> <id>\t<path>`.
pub(crate) fn parse_tree_entry(field: &[u8]) -> Option<(RepoPath, TreeFile)> {
    let tab = field.iter().position(|b| *b == b'\t')?;
    let mut columns = field[..tab].split(|b| *b == b' ');
    let mode = parse_mode(columns.next()?)?;
    let oid = Oid::from_hex(columns.nth(1)?)?;
    Some((RepoPath::new(&field[tab + 1..]), TreeFile { mode, oid }))
}

/// Parses repetitions of `:<mode> <mode> <id> <id> <letter>\0<path>\0`.
fn parse_raw_diff(bytes: &[u8]) -> Option<Vec<TreeChange>> {
    let mut fields = bytes.split(|b| *b == 0);
    let mut out = Vec::new();
    while let Some(header) = fields.next().filter(|h| !h.is_empty()) {
        let mut columns = header.strip_prefix(b":")?.split(|b| *b == b' ');
        let (old_mode, new_mode) = (parse_mode(columns.next()?)?, parse_mode(columns.next()?)?);
        let (old, new) = (Oid::from_hex(columns.next()?)?, Oid::from_hex(columns.next()?)?);
        let side = |mode: u32, oid| (mode != 0).then_some(TreeFile { mode, oid });
        out.push(TreeChange {
            path: RepoPath::new(fields.next()?),
            old: side(old_mode, old),
            new: side(new_mode, new),
        });
    }
    Some(out)
}

fn parse_mode(octal: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(octal).ok()?, 8).ok()
}

/// Returns the `.gitattributes` files of a tree that can apply to `paths`. They decide how git converts the
/// files.
pub(crate) fn tree_attribute_files<'p>(
    repo: &Repo,
    tree: impl Into<Oid>,
    paths: impl Iterator<Item = &'p RepoPath>,
) -> Result<Vec<(RepoPath, TreeFile)>, Error> {
    tree_files(repo, tree, &attribute_paths_for(paths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_both_sides_of_raw_diff() {
        let (a, z) = ("a".repeat(40), "0".repeat(40));
        let text = format!(":000000 100755 {z} {a} A\0n ew\0:100644 000000 {a} {z} D\0gone\0");
        let changes = parse_raw_diff(text.as_bytes()).unwrap();
        assert_eq!(changes.len(), 2);
        assert_eq!(changes[0].old, None);
        assert_eq!(changes[0].new.unwrap().mode, 0o100_755);
        assert_eq!(changes[1].path, RepoPath::new("gone"));
        assert_eq!(changes[1].new, None);
    }
}
