//! Owns unmerged paths of an index that is to be kept: no tree has them, but their files have what somebody made of the conflict.

use std::path::Path;

use super::status::{Dirt, Kind};
use super::transition::Tree;
use super::{Error, Oid, RepoPath};

/// Unmerged paths, each with what a copy of the index gets in place of its sides.
pub(super) struct Conflicts {
    /// Lines for `update-index --index-info`.
    lines: Vec<u8>,
}

impl Conflicts {
    /// Refuses what is unmerged.
    pub(super) fn refuse(tree: &Tree<'_>, _: &Path, dirt: &mut Dirt) -> Result<Conflicts, Error> {
        let paths = dirt.unmerged();
        match paths.is_empty() {
            true => Ok(Conflicts { lines: Vec::new() }),
            false => Err(Error::Unmerged { dir: tree.dir.to_owned(), paths }),
        }
    }

    /// Has what is unmerged count as if the index had our side of it.
    pub(super) fn take(tree: &Tree<'_>, index: &Path, dirt: &mut Dirt) -> Result<Conflicts, Error> {
        let mut lines = Vec::new();
        if dirt.unmerged().is_empty() {
            return Ok(Conflicts { lines });
        }
        let call = tree.repo.git_in(tree.dir).args(["ls-files", "--unmerged", "--full-name", "-z"]);
        let out = call.index(index).run()?;
        let mut ours = Vec::new();
        for (mode_and_id, path) in out.fields().filter_map(our_side) {
            ours.push(RepoPath::new(path));
            lines.extend([mode_and_id, b"\t", path, b"\0"].concat());
        }
        for entry in dirt.entries.iter_mut().filter(|entry| entry.kind == Kind::Unmerged) {
            let deleted = entry.path.under(tree.dir).symlink_metadata().is_err();
            let is_ours = ours.contains(&entry.path);
            entry.kind = match is_ours {
                // No clean file: no tree that is known has it.
                true => Kind::Tracked { staged: true, unstaged: true, deleted },
                false if deleted => Kind::Tracked { staged: true, unstaged: false, deleted: false },
                false => Kind::Untracked,
            };
            if !is_ours {
                let none = Oid(tree.repo.gix.object_hash().null()).to_string();
                lines.extend([b"0 ", none.as_bytes(), b"\t", entry.path.as_bytes(), b"\0"].concat());
            }
        }
        Ok(Conflicts { lines })
    }

    /// Puts it into `index`, a copy.
    pub(super) fn leave(self, tree: &Tree<'_>, index: &Path) -> Result<(), Error> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let call = tree.repo.git_in(tree.dir).args(["update-index", "-z", "--index-info"]);
        call.index(index).input(self.lines).changes().run().map(drop)
    }
}

/// The mode and id, and the path, of `<mode> <id> 2\t<path>`.
fn our_side(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let tab = field.iter().position(|b| *b == b'\t')?;
    let side = field[..tab].strip_suffix(b" 2")?;
    Some((side, &field[tab + 1..]))
}
