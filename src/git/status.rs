//! Owns what differs from HEAD in a worktree, as git sees it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gix::index::decode::Options;

use super::glance::Glance;
use super::head_file::read_head;
use super::index_facts::{self, Facts};
use super::threads::while_in_threads;
use super::{Change, Error, Oid, Program, Repo, RepoPath, tree_changes};

/// How a path differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Known to git and changed in the index, the worktree or both.
    Tracked {
        /// The index differs from HEAD.
        staged: bool,
        /// The worktree differs from the index.
        unstaged: bool,
        /// The worktree has no such file.
        deleted: bool,
    },
    /// Has conflict stages in the index.
    Unmerged,
    /// Not known to git and not ignored. An embedded repository ends in `/`.
    Untracked,
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// How.
    pub(crate) kind: Kind,
    /// Which. A folder that is an embedded repository has lost its trailing `/` here.
    pub(crate) path: RepoPath,
    /// An embedded repository, which git cannot add as files.
    pub(crate) nested: bool,
    /// A submodule.
    pub(crate) submodule: bool,
}

impl Entry {
    /// Whether only something inside a submodule differs, or which of its commits is checked out: that stays there with its
    /// folder, whatever the index says of it.
    pub(crate) fn is_inside_submodule(&self) -> bool {
        self.submodule && !matches!(self.kind, Kind::Tracked { staged: true, .. })
    }
}

/// All that differs in one worktree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Dirt {
    /// The paths, in git's order.
    pub(crate) entries: Vec<Entry>,
}

impl Dirt {
    /// Whether nothing differs.
    pub(crate) fn is_clean(&self) -> bool {
        self.entries.is_empty()
    }

    /// Paths with changes to tracked files.
    pub(crate) fn tracked(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|e| matches!(e.kind, Kind::Tracked { .. }))
    }

    /// Untracked files, embedded repositories included.
    pub(crate) fn untracked(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|e| e.kind == Kind::Untracked)
    }

    /// Paths that the index has otherwise than HEAD.
    pub(crate) fn staged(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|e| matches!(e.kind, Kind::Tracked { staged: true, .. }))
    }

    /// Paths with conflict stages.
    pub(crate) fn unmerged(&self) -> Vec<RepoPath> {
        self.entries.iter().filter(|e| e.kind == Kind::Unmerged).map(|e| e.path.clone()).collect()
    }

    /// All paths.
    pub(crate) fn paths(&self) -> Vec<RepoPath> {
        // A file that was taken out of the index and stays is both removed and untracked.
        let mut known = HashSet::new();
        self.entries.iter().filter(|e| known.insert(&e.path)).map(|e| e.path.clone()).collect()
    }
}

/// The state of one worktree. `untracked` decides whether files that git does not know are looked for. Git is asked unless
/// it is certain that nothing differs.
pub(crate) fn status(repo: &Repo, dir: &Path, untracked: bool) -> Result<Dirt, Error> {
    if Glance::at(repo, dir).is_some_and(|glance| glance.finds_nothing(untracked, true)) {
        return Ok(Dirt::default());
    }
    ask(repo.program(), dir, untracked)
}

/// Whether the index holds a commit's tree, and the files of `changes` are surely as the index has them, whatever HEAD is.
pub(super) fn is_surely_at(repo: &Repo, dir: &Path, git_dir: &Path, commit: Oid, changes: &[Change]) -> bool {
    let glance = Glance::with(repo, dir, git_dir, commit);
    glance.is_some_and(|glance| glance.finds_as_it_was(changes.iter().map(|change| &change.path)))
}

/// The states of many worktrees, untracked files included; none where there is no such folder or git fails. Beside them
/// what `meanwhile` answers, which does not have to wait for the disk.
pub(crate) fn statuses<M>(
    repo: &Repo,
    dirs: &[PathBuf],
    meanwhile: impl FnOnce() -> M,
) -> (Vec<Option<Dirt>>, M) {
    let program = repo.program();
    let alone = dirs.len() == 1;
    let all = dirs.iter().map(|dir| (dir, Glance::at(repo, dir)));
    let look = |(dir, glance): (&PathBuf, Option<Glance>)| {
        if glance.as_ref().is_some_and(|glance| glance.finds_nothing(true, alone)) {
            return Some(Dirt::default());
        }
        dir.exists().then(|| ask(program, dir, true).ok()).flatten()
    };
    while_in_threads(all, look, meanwhile)
}

/// A worktree that is looked at often.
pub(crate) struct Sight<'a> {
    /// Its top.
    pub(crate) dir: &'a Path,
    /// What an earlier look left to be kept.
    pub(crate) before: Option<Vec<u8>>,
}

/// Looks into many worktrees for whoever only shows what there is: as [`statuses`], but what surely differs is listed here as
/// well, and git is asked about less. `each` is told what was found in each worktree, by its number, and what that look leaves
/// to be kept.
pub(crate) fn sights<'a, M>(
    repo: &Repo,
    all: impl ExactSizeIterator<Item = Sight<'a>>,
    each: impl Fn(usize, Option<&Dirt>, Option<&[u8]>) + Sync,
    meanwhile: impl FnOnce() -> M,
) -> M {
    let program = repo.program();
    let all = all.enumerate().map(|(at, sight)| (at, Glance::at(repo, sight.dir), sight));
    let look = |(at, glance, Sight { dir, before }): (usize, Option<Glance>, Sight<'a>)| {
        // Somebody waits for each answer: where a look breaks off, git gives one.
        let look = || glance.map(|glance| glance.finds(before, SystemTime::now()));
        let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(look));
        let (found, kept) = looked.ok().flatten().unwrap_or_default();
        let by_git = || dir.exists().then(|| ask(program, dir, true).ok()).flatten();
        let by_git = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(by_git)).ok().flatten();
        each(at, found.map(|entries| Dirt { entries }).or_else(by_git).as_ref(), kept.as_deref());
    };
    while_in_threads(all, look, meanwhile).1
}

/// What git says of a worktree.
pub(super) fn ask(program: &Program, dir: &Path, untracked: bool) -> Result<Dirt, Error> {
    let out = program
        .in_dir(dir)
        .args(["-c", "status.relativePaths=false", "status", "--porcelain=v2", "-z", "--no-renames"])
        .arg(if untracked { "--untracked-files=all" } else { "--untracked-files=no" })
        .args(["--ignore-submodules=none", "--no-ahead-behind"])
        .run()?;
    Ok(Dirt { entries: out.fields().filter_map(parse).collect() })
}

fn parse(field: &[u8]) -> Option<Entry> {
    let (path_at, kind) = match field.first()? {
        b'1' => {
            let (staged, worktree) = (field.get(2)? != &b'.', *field.get(3)?);
            let (unstaged, deleted) = (worktree != b'.', worktree == b'D');
            (8, Kind::Tracked { staged, unstaged, deleted })
        }
        b'u' => (10, Kind::Unmerged),
        b'?' => (1, Kind::Untracked),
        _ => return None,
    };
    let path = field.splitn(path_at + 1, |b| *b == b' ').nth(path_at)?;
    let nested = kind == Kind::Untracked && path.ends_with(b"/");
    Some(Entry {
        kind,
        path: RepoPath::new(path.strip_suffix(b"/").unwrap_or(path)),
        nested,
        submodule: kind != Kind::Untracked && field.get(5) == Some(&b'S'),
    })
}

/// Tracked paths that differ between `commit`, the index and the worktree, whatever HEAD is.
pub(super) fn changed_since(repo: &Repo, dir: &Path, commit: Oid) -> Result<Vec<RepoPath>, Error> {
    let plain = ["-z", "--name-only", "--no-renames", "--ignore-submodules=none"];
    let staged = repo
        .git_in(dir)
        .args(["diff-index", "--cached"])
        .args(plain)
        .arg(commit.to_string())
        .arg("--")
        .run()?;
    // Unlike `diff-files` this looks at a file again whose times alone are different.
    let unstaged = repo.git_in(dir).args(["diff", "--no-ext-diff"]).args(plain).arg("--").run()?;
    Ok(staged.fields().chain(unstaged.fields()).map(RepoPath::new).collect())
}

impl Repo {
    /// The commit HEAD of a worktree is at; none on an unborn branch.
    pub(crate) fn head_of(&self, dir: &Path) -> Result<Option<Oid>, Error> {
        if let Some(commit) = self.head_read(dir).filter(|commit| self.tree_of(*commit).is_ok()) {
            return Ok(Some(commit));
        }
        let out = self
            .git_in(dir)
            .args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .accept(&[1])
            .run()?;
        Ok(Oid::from_hex(out.line().as_bytes()))
    }

    /// The same as the files say it; none where only git can read them, or HEAD is on no commit.
    pub(super) fn head_read(&self, dir: &Path) -> Option<Oid> {
        if self.is_reftable() {
            return None;
        }
        let git_dir = self.git_dir_of(dir).ok()?;
        match self.head_branch(dir, &git_dir).ok()? {
            Some(branch) => self.branch_tip(&branch).ok()?,
            None => Oid::from_hex(read_head(&git_dir).ok()?.as_bytes()),
        }
    }

    /// Whether the index of a worktree holds exactly this tree. A file that is only announced (`git add -N`) is not in it.
    pub(crate) fn index_is_at(&self, dir: &Path, commit: Oid) -> Result<bool, Error> {
        let facts = Facts::of(self, &self.git_dir_of(dir)?.join("index"));
        if let Some(tree) = facts.and_then(|facts| facts.tree(self))
            && (tree == commit || self.tree_of(commit).is_ok_and(|wanted| wanted == tree))
        {
            return Ok(true);
        }
        let out = self
            .git_in(dir)
            .args(["diff-index", "--cached", "--quiet", "--ita-invisible-in-index"])
            .arg(commit.to_string())
            .arg("--")
            .accept(&[1])
            .run()?;
        Ok(out.code == 0)
    }

    /// Whether the index of a worktree has what `to` has wherever that differs from `from`, whatever else is staged there.
    pub(crate) fn index_has(&self, dir: &Path, from: Oid, to: Oid) -> Result<bool, Error> {
        if self.index_is_at(dir, to)? {
            return Ok(true);
        }
        let changed: HashSet<RepoPath> =
            tree_changes(self, from, to)?.into_iter().map(|change| change.path).collect();
        let call = self.git_in(dir).args(["diff-index", "--cached", "-z", "--name-only", "--no-renames"]);
        let call = call.args(["--ignore-submodules=none", "--ita-invisible-in-index"]).arg(to.to_string());
        Ok(!call.arg("--").run()?.fields().any(|path| changed.contains(&RepoPath::new(path))))
    }

    /// Files announced with `git add -N`, there or not, by an index of the worktree at `dir`. Of an index that the library cannot
    /// read git lists those that are there.
    pub(crate) fn announced(&self, dir: &Path, index: Option<&Path>) -> Result<Vec<RepoPath>, Error> {
        let file = match index {
            Some(index) => index.to_owned(),
            None => self.git_dir_of(dir)?.join("index"),
        };
        if let Some(facts) = Facts::of(self, &file) {
            return Ok(facts.announced());
        }
        if let Ok(read) = gix::index::File::at(&file, self.gix.object_hash(), true, Options::default()) {
            return Ok(index_facts::announced(&read));
        }
        // Only an announced file is an addition between index and worktree.
        let call =
            self.git_in(dir).args(["diff-files", "-z", "--name-only", "--diff-filter=A", "--no-renames"]);
        Ok(call.index(&file).run()?.fields().map(RepoPath::new).collect())
    }

    /// Commits that a worktree leads to beside its branch: HEAD and its reflog, ORIG_HEAD, a rebase's autostash.
    /// `git_dir` is the worktree's own git directory; ids that are gone are left out.
    pub(crate) fn worktree_commits(&self, dir: &Path, git_dir: &Path) -> Vec<Oid> {
        let mut found = Vec::new();
        if self.is_reftable() {
            let log = self.git_in(dir).args(["reflog", "show", "--format=%H", "HEAD", "--"]).run();
            let log = log.map(|out| out.stdout).unwrap_or_default();
            found.extend(log.split(|b| *b == b'\n').filter_map(Oid::from_hex));
        }
        for line in std::fs::read(git_dir.join("logs/HEAD")).unwrap_or_default().split(|b| *b == b'\n').rev()
        {
            found.extend(line.splitn(3, |b| *b == b' ').nth(1).and_then(Oid::from_hex));
        }
        for name in ["HEAD", "ORIG_HEAD", "rebase-merge/autostash", "MERGE_AUTOSTASH"] {
            let text = std::fs::read(git_dir.join(name)).unwrap_or_default();
            found.extend(Oid::from_hex(text.trim_ascii()));
        }
        let mut seen = std::collections::HashSet::new();
        found.retain(|id| !id.is_null() && seen.insert(*id) && self.tree_of(*id).is_ok());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_line_is_read() {
        let id = "0".repeat(40);
        let tracked = parse(format!("1 .M N... 100644 100644 100644 {id} {id} a b").as_bytes()).unwrap();
        assert_eq!(tracked.kind, Kind::Tracked { staged: false, unstaged: true, deleted: false });
        assert_eq!(tracked.path, RepoPath::new("a b"));
        let unmerged = parse(format!("u UU N... 1 2 3 4 {id} {id} {id} x y").as_bytes()).unwrap();
        assert_eq!((unmerged.kind, unmerged.path), (Kind::Unmerged, RepoPath::new("x y")));
        let nested = parse(b"? sub repo/").unwrap();
        assert!(nested.nested);
        assert_eq!(nested.path, RepoPath::new("sub repo"));
        assert!(parse(format!("1 .M SC.. 160000 160000 160000 {id} {id} sub").as_bytes()).unwrap().submodule);
    }
}
