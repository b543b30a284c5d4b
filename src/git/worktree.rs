//! Owns git's list of worktrees, and adding one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::durable::sync_all;
use super::head_file::read_head;
use super::index::INDEX;
use super::{Command, Error, Head, Oid, Repo, RepoPath};

/// One line of `git worktree list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Worktree {
    /// Its top folder.
    pub(crate) path: PathBuf,
    /// The commit HEAD is at, if that was said with it.
    head: Option<Oid>,
    /// The ref HEAD names, in full.
    names: Option<String>,
    /// The branch HEAD names, without `refs/heads/`; none when detached.
    pub(crate) branch: Option<String>,
    /// The branch that `branch` leads to, where that is a symbolic ref: the worktree is on it.
    behind: Option<String>,
    /// Why `git worktree lock` holds it, if it does (the reason may be empty).
    pub(crate) locked: Option<String>,
    /// Why git would prune it, if it would.
    pub(crate) prunable: Option<String>,
    /// Whether this is the repository itself, without a checkout.
    pub(crate) bare: bool,
}

/// How often the list is asked for, and how long is waited in between.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// All worktrees of a repository, the main one first, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorktreeList(Vec<Worktree>);

impl WorktreeList {
    /// Reads the list: from git's files, or through git where refs are not files. git fails when it comes upon a worktree
    /// that is just being added or removed, so it is asked again.
    pub(crate) fn read(repo: &Repo) -> Result<WorktreeList, Error> {
        if !repo.is_reftable() {
            return WorktreeList::read_files(repo);
        }
        let ask = || repo.git().args(["worktree", "list", "--porcelain", "-z"]).run();
        let mut out = ask();
        for _ in 1..TRIES {
            if out.is_ok() {
                break;
            }
            std::thread::sleep(PAUSE);
            out = ask();
        }
        let mut all = parse(&out?.stdout);
        // git takes the main checkout for the folder above the git directory, which it is not for a submodule or with a
        // git directory elsewhere.
        if let (Some(first), Some(main)) = (all.first_mut(), repo.main_worktree()) {
            main.clone_into(&mut first.path);
        }
        Ok(WorktreeList(all))
    }

    /// What `git worktree list` reads: HEAD of the main checkout, and `gitdir`, `HEAD`, `locked` of every admin folder.
    fn read_files(repo: &Repo) -> Result<WorktreeList, Error> {
        let common = repo.common_dir();
        let mut all = vec![match repo.main_worktree() {
            Some(main) => with_head(common, main.to_owned())?,
            None => Worktree { bare: true, ..Worktree::at(common.to_owned()) },
        }];
        let mut admins = match std::fs::read_dir(common.join("worktrees")) {
            Ok(entries) => entries.flatten().map(|e| e.path()).collect(),
            Err(_) => Vec::new(),
        };
        admins.sort();
        let mut folders = Folders::default();
        for admin in admins {
            let Ok(text) = std::fs::read(admin.join("gitdir")) else { continue };
            let link = RepoPath::new(text.trim_ascii_end()).under(&admin);
            let Some(path) = link.parent().map(|path| folders.real(path)) else { continue };
            // Gone since it was listed: it is just being removed.
            let Ok(mut worktree) = with_head(&admin, path) else { continue };
            worktree.locked =
                std::fs::read_to_string(admin.join("locked")).ok().map(|t| t.trim_end().to_owned());
            if worktree.locked.is_none() && !link.exists() {
                worktree.prunable = Some("its folder is gone".to_owned());
            }
            all.push(worktree);
        }
        for worktree in &mut all {
            let Some(branch) = &worktree.branch else { continue };
            worktree.behind = Some(repo.branch_behind(branch)).filter(|behind| behind != branch);
        }
        Ok(WorktreeList(all))
    }

    /// Every worktree.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Worktree> {
        self.0.iter()
    }

    /// The worktree whose top folder is `path`.
    pub(crate) fn at(&self, path: &Path) -> Option<&Worktree> {
        self.0.iter().find(|w| w.path == path)
    }

    /// The worktrees that are on `branch`: HEAD names it, or a symbolic ref that leads to it.
    pub(crate) fn on_branch<'a>(&'a self, branch: &'a str) -> impl Iterator<Item = &'a Worktree> {
        self.0.iter().filter(move |w| w.is_on(branch) && w.prunable.is_none())
    }
}

/// Folders in which worktrees lie, with their links resolved: most lie in one.
#[derive(Default)]
struct Folders(HashMap<PathBuf, Option<PathBuf>>);

impl Folders {
    /// The path with links resolved, or as it is when it cannot be.
    fn real(&mut self, path: &Path) -> PathBuf {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return path.canonicalize().unwrap_or_else(|_| path.to_owned());
        };
        let known = self.0.entry(above.to_owned()).or_insert_with(|| above.canonicalize().ok());
        let Some(real) = known.as_ref().map(|above| above.join(name)) else { return path.to_owned() };
        match real.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
            Ok(_) => real,
            Err(_) => path.to_owned(),
        }
    }
}

impl Worktree {
    /// The commit HEAD is at; none on an unborn branch or in a bare repository.
    pub(crate) fn head(&self, repo: &Repo) -> Result<Option<Oid>, Error> {
        match (self.head, &self.names) {
            (None, Some(name)) => repo.ref_tip(name),
            (head, _) => Ok(head),
        }
    }

    /// Whether HEAD names this branch, or a symbolic ref that leads to it.
    pub(crate) fn is_on(&self, branch: &str) -> bool {
        [&self.branch, &self.behind].into_iter().any(|on| on.as_deref() == Some(branch))
    }

    /// The branch that moves with a commit here; none when HEAD is detached.
    pub(crate) fn branch_behind(&self) -> Option<&String> {
        self.behind.as_ref().or(self.branch.as_ref())
    }

    fn at(path: PathBuf) -> Worktree {
        Worktree {
            path,
            head: None,
            names: None,
            branch: None,
            behind: None,
            locked: None,
            prunable: None,
            bare: false,
        }
    }
}

/// A worktree with what HEAD in its git directory says.
fn with_head(git_dir: &Path, path: PathBuf) -> Result<Worktree, Error> {
    let mut worktree = Worktree::at(path);
    let text = read_head(git_dir).map_err(Error::io("read", &git_dir.join("HEAD")))?;
    if let Some(name) = text.strip_prefix("ref: ") {
        worktree.names = Some(name.to_owned());
        worktree.branch = Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned());
    } else {
        worktree.head = text.parse().ok();
    }
    Ok(worktree)
}

fn parse(bytes: &[u8]) -> Vec<Worktree> {
    let mut all: Vec<Worktree> = Vec::new();
    for line in bytes.split(|b| *b == 0).filter(|l| !l.is_empty()) {
        let (word, rest) = match line.iter().position(|b| *b == b' ') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let text = || String::from_utf8_lossy(rest).into_owned();
        if word == b"worktree" {
            all.push(Worktree::at(RepoPath::new(rest).under(Path::new(""))));
            continue;
        }
        let Some(last) = all.last_mut() else { continue };
        match word {
            b"HEAD" => last.head = Oid::from_hex(rest).filter(|id| !id.is_null()),
            b"branch" => last.branch = Some(text().trim_start_matches("refs/heads/").to_owned()),
            b"locked" => last.locked = Some(text()),
            b"prunable" => last.prunable = Some(text()),
            b"bare" => last.bare = true,
            _ => {}
        }
    }
    all
}

impl Repo {
    /// Makes a worktree without files in a folder that is empty or not there: of an existing branch, or on none.
    pub(crate) fn add_worktree(&self, path: &Path, head: &Head) -> Result<(), Error> {
        match head {
            Head::Branch(name) if self.register(path, name)? => {}
            _ => add(self.git(), path, head)?,
        }
        self.sync_worktree(path)
    }

    /// Makes durable what makes the folder at `path` a worktree: its `.git`, and git's `gitdir`, `commondir` and `HEAD` for it. Git
    /// writes them without that, and after a power cut any of them may be empty.
    fn sync_worktree(&self, path: &Path) -> Result<(), Error> {
        let admin = self.git_dir_of(path)?;
        let mut all = vec![path.join(".git")];
        all.extend(["gitdir", "commondir", "HEAD"].map(|name| admin.join(name)));
        let folders = [Some(path), path.parent(), Some(admin.as_path()), admin.parent()];
        all.extend(folders.into_iter().flatten().map(Path::to_owned));
        sync_all(&all)
    }

    /// Makes the indexes of worktrees durable: without its index, git takes a worktree for broken.
    pub(crate) fn sync_indexes(&self, dirs: &[&Path]) -> Result<(), Error> {
        let index = |dir: &&Path| Ok(self.git_dir_of(dir)?.join(INDEX));
        sync_all(&dirs.iter().map(index).collect::<Result<Vec<PathBuf>, Error>>()?)
    }

    /// Writes the files of a commit to an empty folder that is no worktree, all of them, with an index for that alone.
    pub(crate) fn lay_out(&self, dir: &Path, commit: Oid, index: &Path) -> Result<(), Error> {
        let call = self.git_in(dir).env("GIT_DIR", self.common_dir()).env("GIT_WORK_TREE", dir).index(index);
        let call = call.args(["-c", "core.sparseCheckout=false", "-c", "core.bare=false"]);
        call.args(["read-tree", "-m", "-u"]).arg(commit.to_string()).changes().run().map(drop)
    }

    /// Whether the folder at `path` is the worktree that git has on record there: its `.git` may be gone, or be a
    /// repository of its own.
    pub(crate) fn is_own_worktree(&self, path: &Path) -> bool {
        let link = std::fs::symlink_metadata(path.join(".git")).is_ok_and(|m| m.is_file());
        link && self.git_dir_of(path).is_ok_and(|dir| dir.exists())
    }

    /// Forgets the one worktree whose folder was `path` and is gone. (`git worktree prune` would forget others too,
    /// among them those on a disk that is not mounted.)
    pub(crate) fn forget_worktree(&self, path: &Path) -> Result<(), Error> {
        if path.exists() {
            return Ok(());
        }
        match self.admin_dir_of(path) {
            Some(admin) => std::fs::remove_dir_all(&admin).map_err(Error::io("remove", &admin)),
            None => Ok(()),
        }
    }

    /// Git's admin folder for the worktree at `path`, found from git's side: the folder may be gone or name another.
    pub(crate) fn admin_dir_of(&self, path: &Path) -> Option<PathBuf> {
        let all = self.common_dir().join("worktrees");
        let link = path.join(".git");
        let names_it = |dir: &Path| {
            let text = std::fs::read(dir.join("gitdir")).unwrap_or_default();
            RepoPath::new(text.trim_ascii_end()).under(dir) == link
        };
        // The one that the folder itself names is it more often than not.
        let own = self.git_dir_of(path).ok().filter(|dir| dir.parent() == Some(&all) && names_it(dir));
        if own.is_some() {
            return own;
        }
        std::fs::read_dir(&all).ok()?.flatten().map(|entry| entry.path()).find(|dir| names_it(dir))
    }
}

/// Adds a worktree without files by `git`, a call that may have settings of its own so far.
pub(super) fn add(git: Command, path: &Path, head: &Head) -> Result<(), Error> {
    let call = git.args(["worktree", "add", "--quiet", "--no-checkout"]);
    let call = match head {
        Head::Branch(name) => call.arg("--").arg(path).arg(name),
        Head::Detached(commit) => call.args(["--detach", "--"]).arg(path).arg(commit.to_string()),
    };
    call.changes().run().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_porcelain_list_is_read_whole() {
        let id = "1".repeat(40);
        let text = format!(
            "worktree /r\0HEAD {id}\0branch refs/heads/main\0\0worktree /l a\0HEAD {id}\0detached\0locked why not\0\0worktree /b\0bare\0\0"
        );
        let list = WorktreeList(parse(text.as_bytes()));
        assert_eq!(list.iter().count(), 3);
        assert_eq!(list.on_branch("main").count(), 1);
        let second = list.at(Path::new("/l a")).unwrap();
        assert_eq!(second.branch, None);
        assert_eq!(second.locked.as_deref(), Some("why not"));
        assert!(list.at(Path::new("/b")).unwrap().bare);
    }

    #[test]
    fn our_reading_of_the_files_is_gits_own_list() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let program = crate::git::Program::find().unwrap();
        let git = |args: &[&str]| {
            let call = program.in_dir(&top).args(args);
            call.env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_AUTHOR_NAME", "a")
                .env("GIT_AUTHOR_EMAIL", "a@b")
                .env("GIT_COMMITTER_NAME", "a")
                .env("GIT_COMMITTER_EMAIL", "a@b")
                .changes()
                .run()
                .unwrap();
        };
        git(&["init", "-q", "-b", "main", "repo"]);
        let repo = top.join("repo");
        let within = |args: &[&str]| git(&[&["-C", "repo"], args].concat());
        within(&["commit", "-q", "--allow-empty", "-m", "x"]);
        within(&["worktree", "add", "-q", "-b", "a/b", "../with space"]);
        within(&["worktree", "add", "-q", "--detach", "../detached"]);
        within(&["worktree", "add", "-q", "-b", "gone", "../gone"]);
        within(&["worktree", "add", "-q", "-b", "held", "../held"]);
        within(&["worktree", "lock", "--reason", "on a stick", "../held"]);
        std::fs::remove_dir_all(top.join("gone")).unwrap();
        let repo = Repo::discover(&repo).unwrap();
        let plain = |mut list: Vec<Worktree>| {
            list.sort_by(|a, b| a.path.cmp(&b.path));
            for worktree in &mut list {
                worktree.prunable = worktree.prunable.take().map(|_| String::new());
                worktree.head = worktree.head(&repo).unwrap();
                worktree.names = None;
            }
            list
        };
        let theirs = repo.git().args(["worktree", "list", "--porcelain", "-z"]).run().unwrap();
        let ours = WorktreeList::read_files(&repo).unwrap();
        assert_eq!(plain(ours.0), plain(parse(&theirs.stdout)));
    }
}
