//! Owns questions about the commit graph.

use std::collections::HashSet;

use gix::object::Kind;

use super::commit::KEEPER_EMAIL;
use super::{Error, Oid, Repo, ThrowAway};

/// Refs that keep nothing for long.
const FLEETING: &[&str] = &["refs/proq/", "refs/stash", "refs/bisect/", "refs/worktree/", "refs/rewritten/"];

/// Where git-proq keeps commits that nothing else leads to.
const SAVED: &str = "refs/proq/saved/";

fn is_fleeting(name: &str) -> bool {
    FLEETING.iter().any(|start| name.starts_with(start))
}

/// How two commits relate: commits on one that the other lacks, both ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Distance {
    /// Commits of the first that the second lacks.
    pub(crate) ahead: usize,
    /// Commits of the second that the first lacks.
    pub(crate) behind: usize,
}

/// What a commit says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitText {
    /// `Name <address>`.
    pub(crate) author: String,
    /// All of it.
    pub(crate) message: String,
}

impl Repo {
    /// Whether everything in `older` is contained in `newer`.
    pub(crate) fn is_ancestor(&self, older: Oid, newer: Oid) -> Result<bool, Error> {
        self.is_ancestor_with(older, newer, None)
    }

    /// The same for commits of which some may be in `into` only.
    pub(crate) fn is_ancestor_with(
        &self,
        older: Oid,
        newer: Oid,
        into: Option<&ThrowAway>,
    ) -> Result<bool, Error> {
        if older == newer {
            return Ok(true);
        }
        if let Ok(base) = self.known_merge_base(newer, older) {
            return Ok(base == Some(older));
        }
        // What the library cannot read, git may.
        let out = ThrowAway::apply(into, self.git())
            .args(["merge-base", "--is-ancestor"])
            .args([older.to_string(), newer.to_string()])
            .accept(&[1])
            .run()?;
        Ok(out.code == 0)
    }

    /// Those of `commits` that are not contained in `newer`. What that has on top of `older` is walked once for all of them.
    pub(crate) fn outside(&self, commits: &[Oid], newer: Oid, older: Oid) -> Result<Vec<Oid>, Error> {
        let walk = self.gix.rev_walk([newer.0]).with_hidden([older.0]).all();
        let new: HashSet<Oid> =
            walk.map_or_else(|_| HashSet::new(), |walk| walk.flatten().map(|step| Oid(step.id)).collect());
        let mut out = Vec::new();
        for commit in commits.iter().filter(|commit| !new.contains(commit)) {
            if !self.is_ancestor(*commit, newer)? {
                out.push(*commit);
            }
        }
        Ok(out)
    }

    /// The best common ancestor of two commits; none when they share no history.
    pub(crate) fn merge_base(&self, one: Oid, two: Oid) -> Result<Option<Oid>, Error> {
        if let (Ok(false), Ok(base)) = (self.has_made_up_history(), self.known_merge_base(one, two)) {
            return Ok(base);
        }
        let out = self.git().arg("merge-base").args([one.to_string(), two.to_string()]).accept(&[1]).run()?;
        Ok(Oid::from_hex(out.line().as_bytes()))
    }

    /// What the library finds, once for each two.
    fn known_merge_base(&self, one: Oid, two: Oid) -> Result<Option<Oid>, Error> {
        if let Some(known) = self.lore.bases.borrow().get(&(one, two)) {
            return Ok(*known);
        }
        let what = || format!("history of {}", one.short());
        let found = self.gix.merge_base(one.0, two.0).map_err(Error::object(what()))?;
        let found = found.map(|base| Oid(base.detach()));
        self.lore.bases.borrow_mut().insert((one, two), found);
        Ok(found)
    }

    /// Whether git sees another history here than the commits tell: shallow, grafted, or with replacements. As of when that
    /// was first asked.
    pub(super) fn has_made_up_history(&self) -> Result<bool, Error> {
        if let Some(known) = self.lore.made_up.get() {
            return Ok(*known);
        }
        let found = self.look_for_made_up_history()?;
        Ok(*self.lore.made_up.get_or_init(|| found))
    }

    fn look_for_made_up_history(&self) -> Result<bool, Error> {
        let shallow = self.gix.is_shallow().map_err(Error::object("the shallow file"))?;
        if shallow || self.common_dir().join("info/grafts").exists() {
            return Ok(true);
        }
        if self.is_reftable() {
            return Ok(!self.refs_below("refs/replace/")?.is_empty());
        }
        let platform = self.gix.references().map_err(Error::object("refs"))?;
        let mut replaced = platform.prefixed("refs/replace/").map_err(Error::object("refs"))?;
        Ok(replaced.next().is_some())
    }

    /// Commits reachable from `tip` and not from `from`, and the other way round.
    pub(crate) fn distance(&self, tip: Oid, from: Oid) -> Result<Distance, Error> {
        Ok(Distance { ahead: self.ahead(tip, from)?, behind: self.ahead(from, tip)? })
    }

    /// Commits reachable from `tip` and not from `from`, for whoever does not ask for the other way round.
    pub(crate) fn ahead(&self, tip: Oid, from: Oid) -> Result<usize, Error> {
        if tip == from {
            return Ok(0);
        }
        self.ahead_of_all(tip, &[from])
    }

    /// Commits reachable from `tip` and from none of `from`.
    pub(crate) fn ahead_of_all(&self, tip: Oid, from: &[Oid]) -> Result<usize, Error> {
        let walk = self
            .gix
            .rev_walk([tip.0])
            .with_hidden(from.iter().map(|id| id.0))
            .all()
            .map_err(Error::object(format!("history of {}", tip.short())))?;
        let mut count = 0;
        for step in walk {
            step.map_err(Error::object(format!("history of {}", tip.short())))?;
            count += 1;
        }
        Ok(count)
    }

    /// Of these commits, those that no ref leads to but git-proq's own, and such as come and go: a stash, a bisection.
    /// The answer holds whatever else lies between them and the refs.
    pub(crate) fn unreached(&self, tips: &[Oid]) -> Result<HashSet<Oid>, Error> {
        if tips.is_empty() {
            return Ok(HashSet::new());
        }
        let mut refs = self.refs_below("refs/")?;
        refs.retain(|(name, _)| !is_fleeting(name));
        self.beyond(tips, refs.iter().map(|(_, id)| id))
    }

    /// Of these objects, as far as they are there still, those that no ref leads to; all of them where that cannot be known. Refs that are
    /// saved for good count here. A blob, a tree or a tag's own object counts by the refs that lead right to it.
    pub(crate) fn unkept(&self, objects: &[Oid]) -> Result<HashSet<Oid>, Error> {
        let mut refs = self.refs_below("refs/")?;
        refs.retain(|(name, _)| !is_fleeting(name) || name.starts_with(SAVED));
        let ends: HashSet<Oid> = refs.into_iter().map(|(_, id)| id).collect();
        let mut left: Vec<Oid> = objects.iter().copied().filter(|id| !ends.contains(id)).collect();
        left.retain(|id| self.has_object(*id));
        if left.is_empty() {
            return Ok(HashSet::new());
        }
        let Ok(commits) = self.beyond(&left, ends.iter()) else { return Ok(left.into_iter().collect()) };
        let is_commit = |id: &Oid| self.gix.find_header(id.0).is_ok_and(|found| found.kind() == Kind::Commit);
        Ok(left.into_iter().filter(|id| commits.contains(id) || !is_commit(id)).collect())
    }

    /// The commits that `tips` lead to and none of `from`. What is missing of `from` leads to nothing, and of `tips` to itself.
    fn beyond<'o>(&self, tips: &[Oid], from: impl Iterator<Item = &'o Oid>) -> Result<HashSet<Oid>, Error> {
        let mut lines: Vec<String> = tips.iter().map(ToString::to_string).collect();
        lines.extend(from.map(|id| format!("^{id}")));
        // The order counts: what comes first holds for what is read.
        let call = self.git().args(["rev-list", "--ignore-missing", "--stdin"]);
        let out = call.input(format!("{}\n", lines.join("\n"))).run()?;
        let mut all: HashSet<Oid> = out.stdout.split(|b| *b == b'\n').filter_map(Oid::from_hex).collect();
        all.extend(tips.iter().filter(|tip| !self.has_object(**tip)));
        Ok(all)
    }

    /// Whether a branch, a branch of a remote or a tag other than `but` leads to a commit.
    pub(crate) fn is_reached_by_others(&self, commit: Oid, but: &str) -> Result<bool, Error> {
        let call =
            self.git().args(["for-each-ref", "--format=%(refname)", "--contains", &commit.to_string()]);
        let out = call.args(["refs/heads", "refs/remotes", "refs/tags"]).run()?;
        Ok(String::from_utf8_lossy(&out.stdout).lines().any(|name| name != but))
    }

    /// The parents of a commit that is nothing but a way to keep them; none for one that holds something itself.
    pub(crate) fn kept_by(&self, commit: Oid) -> Result<Option<Vec<Oid>>, Error> {
        let what = || format!("commit {}", commit.short());
        let found = self.gix.find_commit(commit.0).map_err(Error::object(what()))?;
        let ours = found.committer().map_err(Error::object(what()))?.email == KEEPER_EMAIL;
        let parents: Vec<Oid> = found.parent_ids().map(|id| Oid(id.detach())).collect();
        let same_tree = match parents.first() {
            Some(first) => self.tree_of(*first)? == self.tree_of(commit)?,
            None => false,
        };
        Ok((ours && same_tree).then_some(parents))
    }

    /// The tree of a commit.
    pub(crate) fn tree_of(&self, commit: Oid) -> Result<Oid, Error> {
        self.reader().tree_of(commit).map(Oid)
    }

    /// The first line of a commit's message.
    pub(crate) fn subject_of(&self, commit: Oid) -> Result<String, Error> {
        let what = || format!("commit {}", commit.short());
        let found = self.gix.find_commit(commit.0).map_err(Error::object(what()))?;
        let message = found.message().map_err(Error::object(what()))?;
        Ok(message.summary().to_string())
    }

    /// The last commits up to this one, newest first, each as its short id and the first line of its message.
    pub(crate) fn newest(&self, tip: Oid, most: usize) -> Result<Vec<String>, Error> {
        let out = self
            .git()
            .args(["log", "-z", "--format=%h %s", &format!("--max-count={most}")])
            .arg(tip.to_string())
            .arg("--")
            .run()?;
        Ok(out.fields().map(|field| String::from_utf8_lossy(field).into_owned()).collect())
    }

    /// What a commit says, and who wrote it. What is not UTF-8 is shown as such.
    pub(crate) fn text_of(&self, commit: Oid) -> Result<CommitText, Error> {
        let what = || format!("commit {}", commit.short());
        let found = self.gix.find_commit(commit.0).map_err(Error::object(what()))?;
        let author = found.author().map_err(Error::object(what()))?;
        let message = found.message_raw().map_err(Error::object(what()))?.to_string();
        Ok(CommitText { author: format!("{} <{}>", author.name, author.email), message })
    }

    /// A remote-tracking branch that has a commit, by its short name; none when no remote is known to have it.
    pub(crate) fn remote_with(&self, commit: Oid) -> Result<Option<String>, Error> {
        let out = self
            .git()
            .args(["for-each-ref", "--count=1", "--format=%(refname:short)", "--contains"])
            .arg(commit.to_string())
            .args(["--", "refs/remotes/"])
            .run()?;
        Ok(Some(out.line()).filter(|line| !line.is_empty()))
    }

    /// The id that these bytes have as a blob.
    pub(crate) fn blob_id(&self, bytes: &[u8]) -> Option<Oid> {
        gix::objs::compute_hash(self.gix.object_hash(), gix::objs::Kind::Blob, bytes).ok().map(Oid)
    }
}
