//! Owns submodules whose commit a transition changes: the index follows, their folders are transitions of their own.

use super::{Change, Oid, RepoPath, Tree};

impl Change {
    /// Whether it goes from one commit of a submodule to another.
    pub(super) fn is_in_submodule(&self) -> bool {
        self.old.is_some_and(super::Side::is_gitlink) && self.new.is_some_and(super::Side::is_gitlink)
    }
}

/// Says which submodules are at another commit now than the worktree's index has.
pub(super) fn tell_left_behind(tree: &Tree<'_>, changes: &[Change]) {
    let stays = |change: &&Change| {
        let wanted = change.new.map(|side| side.oid);
        change.is_in_submodule() && head_at(tree, &change.path).is_some_and(|head| Some(head) != wanted)
    };
    let names: Vec<String> = changes.iter().filter(stays).map(|c| c.path.to_string()).collect();
    if !names.is_empty() {
        (tree.warn)(format!(
            "the folder of submodule {} stays as it is; to have it follow: git submodule update",
            names.join(", ")
        ));
    }
}

/// The commit that a submodule's folder is at; none when there is nothing checked out in it.
fn head_at(tree: &Tree<'_>, path: &RepoPath) -> Option<Oid> {
    let dir = path.under(tree.dir);
    if !dir.join(".git").exists() {
        return None;
    }
    let out =
        tree.repo.program().in_dir(&dir).args(["rev-parse", "--verify", "--quiet", "HEAD"]).run().ok()?;
    Oid::from_hex(out.line().as_bytes())
}
