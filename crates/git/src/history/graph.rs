//! Queries on the commit graph: ancestry, merge bases, counts, and reachability from refs.

use std::collections::HashSet;

use gix::object::Kind;

use super::commit::PROQ_EMAIL;
use crate::repository::objects::TempObjectStore;
use crate::{BlobId, CommitId, Error, Oid, Repo, TreeId};

/// Prefixes of refs that do not protect commits for long.
const TRANSIENT_REF_PREFIXES: &[&str] =
    &["refs/proq/", "refs/stash", "refs/bisect/", "refs/worktree/", "refs/rewritten/"];

/// Prefix of the refs that protect commits which no other ref reaches.
const SAVED_REF_PREFIX: &str = "refs/proq/saved/";

fn is_transient_ref(name: &str) -> bool {
    TRANSIENT_REF_PREFIXES.iter().any(|start| name.starts_with(start))
}

/// Numbers of commits that only one of two commits reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distance {
    /// Number of commits of the first that the second lacks.
    pub ahead: usize,
    /// Number of commits of the second that the first lacks.
    pub behind: usize,
}

/// Author and message of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitText {
    /// Author as `Name <address>`.
    pub author: String,
    /// Message with subject and body.
    pub message: String,
}

impl Repo {
    /// Returns whether `older` is `newer` or an ancestor of it.
    pub fn is_ancestor(&self, older: CommitId, newer: CommitId) -> Result<bool, Error> {
        self.is_ancestor_in_store(older, newer, None)
    }

    /// Returns whether `older` is `newer` or an ancestor of it, where some commits may exist only in
    /// `scratch_store`.
    pub fn is_ancestor_in_store(
        &self,
        older: CommitId,
        newer: CommitId,
        scratch_store: Option<&TempObjectStore>,
    ) -> Result<bool, Error> {
        if older == newer {
            return Ok(true);
        }
        if let Ok(base) = self.cached_merge_base(newer, older) {
            return Ok(base == Some(older));
        }
        // Git may read objects that gitoxide cannot.
        let out = TempObjectStore::redirect_writes(scratch_store, self.git())
            .args(["merge-base", "--is-ancestor"])
            .args([older.to_string(), newer.to_string()])
            .accept_exit_codes(&[1])
            .run()?;
        Ok(out.code == 0)
    }

    /// Returns those of `commits` that `newer` does not contain. The commits of `newer` that `older` lacks
    /// are walked once for all.
    pub fn commits_missing_from(
        &self,
        commits: &[CommitId],
        newer: CommitId,
        older: CommitId,
    ) -> Result<Vec<CommitId>, Error> {
        let walk = self.gix.rev_walk([newer.0]).with_hidden([older.0]).all();
        let new: HashSet<CommitId> = walk
            .map_or_else(|_| HashSet::new(), |walk| walk.flatten().map(|step| CommitId(step.id)).collect());
        let mut out = Vec::new();
        for commit in commits.iter().filter(|commit| !new.contains(commit)) {
            if !self.is_ancestor(*commit, newer)? {
                out.push(*commit);
            }
        }
        Ok(out)
    }

    /// Returns the best common ancestor of two commits; `None` if they share no history.
    pub fn merge_base(&self, one: CommitId, two: CommitId) -> Result<Option<CommitId>, Error> {
        if let (Ok(false), Ok(base)) = (self.has_altered_history(), self.cached_merge_base(one, two)) {
            return Ok(base);
        }
        let out = self
            .git()
            .arg("merge-base")
            .args([one.to_string(), two.to_string()])
            .accept_exit_codes(&[1])
            .run()?;
        Ok(CommitId::from_hex(out.trimmed_stdout().as_bytes()))
    }

    /// Returns the merge base that gitoxide computes, cached for each pair.
    fn cached_merge_base(&self, one: CommitId, two: CommitId) -> Result<Option<CommitId>, Error> {
        if let Some(known) = self.history_cache.merge_bases.borrow().get(&(one, two)) {
            return Ok(*known);
        }
        let object_name = || format!("history of {}", one.short());
        let found = self.gix.merge_base(one.0, two.0).map_err(Error::object(object_name()))?;
        let found = found.map(|base| CommitId(base.detach()));
        self.history_cache.merge_bases.borrow_mut().insert((one, two), found);
        Ok(found)
    }

    /// Returns whether git sees another history here than the commits record: the repository is shallow,
    /// grafted, or has replacement objects. The first answer is cached.
    pub(crate) fn has_altered_history(&self) -> Result<bool, Error> {
        if let Some(known) = self.history_cache.has_altered_history.get() {
            return Ok(*known);
        }
        let is_altered = self.detect_altered_history()?;
        Ok(*self.history_cache.has_altered_history.get_or_init(|| is_altered))
    }

    fn detect_altered_history(&self) -> Result<bool, Error> {
        let shallow = self.gix.is_shallow().map_err(Error::object("the shallow file"))?;
        if shallow || self.common_dir().join("info/grafts").exists() {
            return Ok(true);
        }
        if self.is_reftable() {
            return Ok(!self.refs_with_prefix("refs/replace/")?.is_empty());
        }
        let platform = self.gix.references().map_err(Error::object("refs"))?;
        let mut replaced = platform.prefixed("refs/replace/").map_err(Error::object("refs"))?;
        Ok(replaced.next().is_some())
    }

    /// Counts the commits reachable from `tip` and not from `base`, and the reverse.
    pub fn distance(&self, tip: CommitId, base: CommitId) -> Result<Distance, Error> {
        Ok(Distance { ahead: self.count_ahead(tip, base)?, behind: self.count_ahead(base, tip)? })
    }

    /// Counts the commits reachable from `tip` and not from `base`.
    pub fn count_ahead(&self, tip: CommitId, base: CommitId) -> Result<usize, Error> {
        if tip == base {
            return Ok(0);
        }
        self.count_ahead_of_all(tip, &[base])
    }

    /// Counts the commits reachable from `tip` and from none of `bases`.
    pub fn count_ahead_of_all(&self, tip: CommitId, bases: &[CommitId]) -> Result<usize, Error> {
        let walk = self
            .gix
            .rev_walk([tip.0])
            .with_hidden(bases.iter().map(|id| id.0))
            .all()
            .map_err(Error::object(format!("history of {}", tip.short())))?;
        let mut count = 0;
        for step in walk {
            step.map_err(Error::object(format!("history of {}", tip.short())))?;
            count += 1;
        }
        Ok(count)
    }

    /// Returns those of `tips`, with further commits below them, that no lasting ref reaches. Refs of
    /// git-proq and short-lived refs, as of a stash or a bisection, do not count.
    pub fn unreferenced_commits(&self, tips: &[Oid]) -> Result<HashSet<Oid>, Error> {
        if tips.is_empty() {
            return Ok(HashSet::new());
        }
        let mut refs = self.refs_with_prefix("refs/")?;
        refs.retain(|(name, _)| !is_transient_ref(name));
        self.reachable_only_from(tips, refs.iter().map(|(_, id)| id))
    }

    /// Returns those of `objects` that still exist and that no lasting ref reaches; all of them where that
    /// cannot be determined. Saved refs of git-proq count as lasting. A blob, a tree or a tag object needs a
    /// ref that points directly to it.
    pub fn unreferenced_objects(&self, objects: &[Oid]) -> Result<HashSet<Oid>, Error> {
        let mut refs = self.refs_with_prefix("refs/")?;
        refs.retain(|(name, _)| !is_transient_ref(name) || name.starts_with(SAVED_REF_PREFIX));
        let ref_targets: HashSet<Oid> = refs.into_iter().map(|(_, id)| id).collect();
        let mut candidates: Vec<Oid> =
            objects.iter().copied().filter(|id| !ref_targets.contains(id)).collect();
        candidates.retain(|id| self.has_object(*id));
        if candidates.is_empty() {
            return Ok(HashSet::new());
        }
        let Ok(commits) = self.reachable_only_from(&candidates, ref_targets.iter()) else {
            return Ok(candidates.into_iter().collect());
        };
        let is_commit = |id: &Oid| self.gix.find_header(id.0).is_ok_and(|found| found.kind() == Kind::Commit);
        Ok(candidates.into_iter().filter(|id| commits.contains(id) || !is_commit(id)).collect())
    }

    /// Returns the commits reachable from `tips` and from none of `excluded`. Missing objects in `excluded`
    /// are ignored; a missing one in `tips` is part of the result.
    fn reachable_only_from<'o>(
        &self,
        tips: &[Oid],
        excluded: impl Iterator<Item = &'o Oid>,
    ) -> Result<HashSet<Oid>, Error> {
        let mut lines: Vec<String> = tips.iter().map(ToString::to_string).collect();
        lines.extend(excluded.map(|id| format!("^{id}")));
        // The options precede `--stdin`, because they apply to the ids read after them.
        let call = self.git().args(["rev-list", "--ignore-missing", "--stdin"]);
        let out = call.input(format!("{}\n", lines.join("\n"))).run()?;
        let mut all: HashSet<Oid> = out.stdout.split(|b| *b == b'\n').filter_map(Oid::from_hex).collect();
        all.extend(tips.iter().filter(|tip| !self.has_object(**tip)));
        Ok(all)
    }

    /// Returns whether a branch, a remote-tracking branch or a tag other than `excluded_ref` contains a
    /// commit.
    pub fn is_in_other_ref(&self, commit: CommitId, excluded_ref: &str) -> Result<bool, Error> {
        let call =
            self.git().args(["for-each-ref", "--format=%(refname)", "--contains", &commit.to_string()]);
        let out = call.args(["refs/heads", "refs/remotes", "refs/tags"]).run()?;
        Ok(String::from_utf8_lossy(&out.stdout).lines().any(|name| name != excluded_ref))
    }

    /// Returns the parents of a keeper commit, which git-proq writes only to keep its parents reachable;
    /// `None` for any other commit.
    pub fn keeper_parents(&self, commit: Oid) -> Result<Option<Vec<CommitId>>, Error> {
        let object_name = || format!("commit {}", commit.short());
        let found = self.gix.find_commit(commit.0).map_err(Error::object(object_name()))?;
        let is_keeper = found.committer().map_err(Error::object(object_name()))?.email == PROQ_EMAIL;
        let parents: Vec<CommitId> = found.parent_ids().map(|id| CommitId(id.detach())).collect();
        let same_tree = match parents.first() {
            Some(first) => self.tree_of(*first)? == self.tree_of(commit)?,
            None => false,
        };
        Ok((is_keeper && same_tree).then_some(parents))
    }

    /// Returns the id of a commit's tree. Fails for the id of any other object.
    pub fn tree_of(&self, commit: impl Into<Oid>) -> Result<TreeId, Error> {
        self.tree_reader().tree_of(commit).map(TreeId)
    }

    /// Returns the first line of a commit's message.
    pub fn commit_subject(&self, commit: CommitId) -> Result<String, Error> {
        let object_name = || format!("commit {}", commit.short());
        let found = self.gix.find_commit(commit.0).map_err(Error::object(object_name()))?;
        let message = found.message().map_err(Error::object(object_name()))?;
        Ok(message.summary().to_string())
    }

    /// Returns the last `max_count` commits up to `tip`, newest first, each as its short id and subject.
    pub fn recent_commit_lines(&self, tip: CommitId, max_count: usize) -> Result<Vec<String>, Error> {
        let out = self
            .git()
            .args(["log", "-z", "--format=%h %s", &format!("--max-count={max_count}")])
            .arg(tip.to_string())
            .arg("--")
            .run()?;
        Ok(out.nul_separated_fields().map(|field| String::from_utf8_lossy(field).into_owned()).collect())
    }

    /// Returns the author and message of a commit. Bytes that are not UTF-8 are replaced.
    pub fn commit_text(&self, commit: CommitId) -> Result<CommitText, Error> {
        let object_name = || format!("commit {}", commit.short());
        let found = self.gix.find_commit(commit.0).map_err(Error::object(object_name()))?;
        let author = found.author().map_err(Error::object(object_name()))?;
        let message = found.message_raw().map_err(Error::object(object_name()))?.to_string();
        Ok(CommitText { author: format!("{} <{}>", author.name, author.email), message })
    }

    /// Returns the short name of a remote-tracking branch that contains a commit; `None` if there is none.
    pub fn remote_branch_with(&self, commit: CommitId) -> Result<Option<String>, Error> {
        let out = self
            .git()
            .args(["for-each-ref", "--count=1", "--format=%(refname:short)", "--contains"])
            .arg(commit.to_string())
            .args(["--", "refs/remotes/"])
            .run()?;
        Ok(Some(out.trimmed_stdout()).filter(|line| !line.is_empty()))
    }

    /// Returns the id that a blob with these bytes would have, without writing it.
    pub fn blob_id(&self, bytes: &[u8]) -> Option<BlobId> {
        gix::objs::compute_hash(self.gix.object_hash(), gix::objs::Kind::Blob, bytes).ok().map(BlobId)
    }
}
