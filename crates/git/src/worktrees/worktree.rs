//! git's list of worktrees, and creation of worktrees.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::fsync::sync_paths;
use crate::base::head::Head;
use crate::index::scratch_index::INDEX_NAME;
use crate::program::command::Command;
use crate::repository::head_file::read_head;
use crate::{CommitId, Error, Repo, RepoPath};

/// One entry of `git worktree list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Top folder of the worktree.
    pub path: PathBuf,
    /// Commit of HEAD, if the list included it.
    listed_head_commit: Option<CommitId>,
    /// Full name of the ref that HEAD names.
    head_ref: Option<String>,
    /// Branch that HEAD names, without `refs/heads/`; none when detached.
    pub branch: Option<String>,
    /// Branch that `branch` refers to if it is a symbolic ref: the worktree is on that branch.
    symbolic_target_branch: Option<String>,
    /// Reason of `git worktree lock`, possibly empty; none when the worktree is not locked.
    pub lock_reason: Option<String>,
    /// Reason why git would prune the worktree; none when it would not.
    pub prunable_reason: Option<String>,
    /// Whether this entry is the repository itself, without a checkout.
    pub bare: bool,
}

/// Maximum number of attempts to list the worktrees; [`LIST_RETRY_PAUSE`] is the pause between them.
const MAX_LIST_ATTEMPTS: u32 = 10;
const LIST_RETRY_PAUSE: Duration = Duration::from_millis(20);

/// All worktrees of a repository at one moment, the main one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeList(Vec<Worktree>);

impl WorktreeList {
    /// Reads the list: from git's files, or through git if refs are not files. git fails on a worktree that
    /// is just being added or removed, so it is run again.
    pub fn read(repo: &Repo) -> Result<WorktreeList, Error> {
        if !repo.is_reftable() {
            return WorktreeList::read_files(repo);
        }
        let list_worktrees = || repo.git().args(["worktree", "list", "--porcelain", "-z"]).run();
        let mut out = list_worktrees();
        for _ in 1..MAX_LIST_ATTEMPTS {
            if out.is_ok() {
                break;
            }
            std::thread::sleep(LIST_RETRY_PAUSE);
            out = list_worktrees();
        }
        let mut worktrees = parse_worktree_list(&out?.stdout);
        // git takes the folder above the git directory for the main checkout. That is wrong for a submodule
        // and for a git directory elsewhere.
        if let (Some(first), Some(main_dir)) = (worktrees.first_mut(), repo.main_worktree()) {
            main_dir.clone_into(&mut first.path);
        }
        Ok(WorktreeList(worktrees))
    }

    /// Reads the files that `git worktree list` reads: HEAD of the main checkout, and `gitdir`, `HEAD`,
    /// `locked` of every admin folder.
    fn read_files(repo: &Repo) -> Result<WorktreeList, Error> {
        let common = repo.common_dir();
        let mut worktrees = vec![match repo.main_worktree() {
            Some(main_dir) => load_worktree(common, main_dir.to_owned())?,
            None => Worktree { bare: true, ..Worktree::with_path(common.to_owned()) },
        }];
        let mut admins = match std::fs::read_dir(common.join("worktrees")) {
            Ok(entries) => entries.flatten().map(|e| e.path()).collect(),
            Err(_) => Vec::new(),
        };
        admins.sort();
        let mut folders = ResolvedFolders::default();
        for admin in admins {
            let Ok(text) = std::fs::read(admin.join("gitdir")) else { continue };
            let link = RepoPath::new(text.trim_ascii_end()).to_fs_path(&admin);
            let Some(path) = link.parent().map(|path| folders.resolve(path)) else { continue };
            // The worktree was removed since it was listed.
            let Ok(mut worktree) = load_worktree(&admin, path) else { continue };
            worktree.lock_reason =
                std::fs::read_to_string(admin.join("locked")).ok().map(|t| t.trim_end().to_owned());
            if worktree.lock_reason.is_none() && !link.exists() {
                worktree.prunable_reason = Some("its folder is missing".to_owned());
            }
            worktrees.push(worktree);
        }
        for worktree in &mut worktrees {
            let Some(branch) = &worktree.branch else { continue };
            worktree.symbolic_target_branch =
                Some(repo.resolve_symbolic_branch(branch)).filter(|behind| behind != branch);
        }
        Ok(WorktreeList(worktrees))
    }

    /// Returns every worktree.
    pub fn iter(&self) -> impl Iterator<Item = &Worktree> {
        self.0.iter()
    }

    /// Returns the worktree whose top folder is `path`.
    pub fn with_top_folder(&self, path: &Path) -> Option<&Worktree> {
        self.0.iter().find(|w| w.path == path)
    }

    /// Returns the worktrees that are on `branch`, without prunable ones: HEAD names the branch, or a
    /// symbolic ref to it.
    pub fn on_branch<'a>(&'a self, branch: &'a str) -> impl Iterator<Item = &'a Worktree> {
        self.0.iter().filter(move |w| w.is_on_branch(branch) && w.prunable_reason.is_none())
    }
}

/// Cache of folder paths whose links were resolved. Most worktrees share one parent folder.
#[derive(Default)]
struct ResolvedFolders(HashMap<PathBuf, Option<PathBuf>>);

impl ResolvedFolders {
    /// Returns the path with links resolved, or unchanged when it cannot be resolved.
    fn resolve(&mut self, path: &Path) -> PathBuf {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return path.canonicalize().unwrap_or_else(|_| path.to_owned());
        };
        let resolved_parent = self.0.entry(parent.to_owned()).or_insert_with(|| parent.canonicalize().ok());
        let Some(resolved) = resolved_parent.as_ref().map(|resolved_parent| resolved_parent.join(name))
        else {
            return path.to_owned();
        };
        match resolved.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
            Ok(_) => resolved,
            Err(_) => path.to_owned(),
        }
    }
}

impl Worktree {
    /// Returns the commit of HEAD; none on an unborn branch or in a bare repository.
    pub fn head(&self, repo: &Repo) -> Result<Option<CommitId>, Error> {
        match (self.listed_head_commit, &self.head_ref) {
            (None, Some(name)) => repo.ref_tip(name),
            (head, _) => Ok(head),
        }
    }

    /// Returns whether HEAD names this branch, or a symbolic ref that refers to it.
    pub fn is_on_branch(&self, branch: &str) -> bool {
        [&self.branch, &self.symbolic_target_branch].into_iter().any(|on| on.as_deref() == Some(branch))
    }

    /// Returns the branch that a commit in this worktree moves; none when HEAD is detached.
    pub fn target_branch(&self) -> Option<&String> {
        self.symbolic_target_branch.as_ref().or(self.branch.as_ref())
    }

    fn with_path(path: PathBuf) -> Worktree {
        Worktree {
            path,
            listed_head_commit: None,
            head_ref: None,
            branch: None,
            symbolic_target_branch: None,
            lock_reason: None,
            prunable_reason: None,
            bare: false,
        }
    }
}

/// Loads a worktree with the content of HEAD in its git directory.
fn load_worktree(git_dir: &Path, path: PathBuf) -> Result<Worktree, Error> {
    let mut worktree = Worktree::with_path(path);
    let text = read_head(git_dir).map_err(Error::io("read", &git_dir.join("HEAD")))?;
    if let Some(name) = text.strip_prefix("ref: ") {
        worktree.head_ref = Some(name.to_owned());
        worktree.branch = Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned());
    } else {
        worktree.listed_head_commit = text.parse().ok();
    }
    Ok(worktree)
}

fn parse_worktree_list(bytes: &[u8]) -> Vec<Worktree> {
    let mut worktrees: Vec<Worktree> = Vec::new();
    for line in bytes.split(|b| *b == 0).filter(|l| !l.is_empty()) {
        let (key, value) = match line.iter().position(|b| *b == b' ') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let text = || String::from_utf8_lossy(value).into_owned();
        if key == b"worktree" {
            worktrees.push(Worktree::with_path(RepoPath::new(value).to_fs_path(Path::new(""))));
            continue;
        }
        let Some(last) = worktrees.last_mut() else { continue };
        match key {
            b"HEAD" => last.listed_head_commit = CommitId::from_hex(value).filter(|id| !id.is_null()),
            b"branch" => last.branch = Some(text().trim_start_matches("refs/heads/").to_owned()),
            b"locked" => last.lock_reason = Some(text()),
            b"prunable" => last.prunable_reason = Some(text()),
            b"bare" => last.bare = true,
            _ => {}
        }
    }
    worktrees
}

impl Repo {
    /// Creates a worktree without files, at an empty or missing folder: on an existing branch, or detached.
    pub fn add_worktree(&self, path: &Path, head: &Head) -> Result<(), Error> {
        match head {
            Head::Branch(name) if self.add_worktree_in_process(path, name)? => {}
            _ => add_without_checkout(self.git(), path, head)?,
        }
        self.sync_worktree(path)
    }

    /// Syncs to disk the files that make the folder at `path` a worktree: its `.git`, and git's `gitdir`,
    /// `commondir` and `HEAD` for it. git does not sync them, and after a power failure any of them may be
    /// empty.
    fn sync_worktree(&self, path: &Path) -> Result<(), Error> {
        let admin = self.worktree_git_dir(path)?;
        let mut paths = vec![path.join(".git")];
        paths.extend(["gitdir", "commondir", "HEAD"].map(|name| admin.join(name)));
        let folders = [Some(path), path.parent(), Some(admin.as_path()), admin.parent()];
        paths.extend(folders.into_iter().flatten().map(Path::to_owned));
        sync_paths(&paths)
    }

    /// Syncs the indexes of worktrees to disk: git treats a worktree without its index as broken.
    pub fn sync_indexes(&self, dirs: &[&Path]) -> Result<(), Error> {
        let index_file = |dir: &&Path| Ok(self.worktree_git_dir(dir)?.join(INDEX_NAME));
        sync_paths(&dirs.iter().map(index_file).collect::<Result<Vec<PathBuf>, Error>>()?)
    }

    /// Writes all files of a commit to the empty folder `dir`, which is no worktree. Uses `index` as a
    /// separate index file.
    pub fn write_commit_files(&self, dir: &Path, commit: CommitId, index: &Path) -> Result<(), Error> {
        let command =
            self.git_in(dir).env("GIT_DIR", self.common_dir()).env("GIT_WORK_TREE", dir).use_index(index);
        let command = command.args(["-c", "core.sparseCheckout=false", "-c", "core.bare=false"]);
        command.args(["read-tree", "-m", "-u"]).arg(commit.to_string()).mutating().run().map(drop)
    }

    /// Returns whether the folder at `path` has a `.git` file that names an existing git directory. Otherwise
    /// the `.git` is missing, or is the folder of a nested repository.
    pub fn is_registered_worktree(&self, path: &Path) -> bool {
        let link = std::fs::symlink_metadata(path.join(".git")).is_ok_and(|m| m.is_file());
        link && self.worktree_git_dir(path).is_ok_and(|dir| dir.exists())
    }

    /// Removes git's record of the worktree whose folder was `path`; does nothing if the folder exists. `git
    /// worktree prune` would remove other records too, among them those on a disk that is not mounted.
    pub fn forget_worktree(&self, path: &Path) -> Result<(), Error> {
        if path.exists() {
            return Ok(());
        }
        match self.worktree_admin_dir(path) {
            Some(admin) => std::fs::remove_dir_all(&admin).map_err(Error::io("remove", &admin)),
            None => Ok(()),
        }
    }

    /// Returns git's admin folder for the worktree at `path`, found in git's own records. The worktree's
    /// folder may be missing, or its `.git` may name another worktree.
    pub fn worktree_admin_dir(&self, path: &Path) -> Option<PathBuf> {
        let worktrees_dir = self.common_dir().join("worktrees");
        let link = path.join(".git");
        let names_link = |dir: &Path| {
            let text = std::fs::read(dir.join("gitdir")).unwrap_or_default();
            RepoPath::new(text.trim_ascii_end()).to_fs_path(dir) == link
        };
        // Usually the folder itself names the right one.
        let candidate = self
            .worktree_git_dir(path)
            .ok()
            .filter(|dir| dir.parent() == Some(&worktrees_dir) && names_link(dir));
        if candidate.is_some() {
            return candidate;
        }
        std::fs::read_dir(&worktrees_dir)
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .find(|dir| names_link(dir))
    }
}

/// Adds a worktree without files with `git`, a command that may already have options.
pub(crate) fn add_without_checkout(git: Command, path: &Path, head: &Head) -> Result<(), Error> {
    let command = git.args(["worktree", "add", "--quiet", "--no-checkout"]);
    let command = match head {
        Head::Branch(name) => command.arg("--").arg(path).arg(name),
        Head::Detached(commit) => command.args(["--detach", "--"]).arg(path).arg(commit.to_string()),
    };
    command.mutating().run().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_porcelain_list() {
        let id = "1".repeat(40);
        let text = format!(
            "worktree /r\0HEAD {id}\0branch refs/heads/main\0\0worktree /l a\0HEAD {id}\0detached\0locked why not\0\0worktree /b\0bare\0\0"
        );
        let list = WorktreeList(parse_worktree_list(text.as_bytes()));
        assert_eq!(list.iter().count(), 3);
        assert_eq!(list.on_branch("main").count(), 1);
        let second = list.with_top_folder(Path::new("/l a")).unwrap();
        assert_eq!(second.branch, None);
        assert_eq!(second.lock_reason.as_deref(), Some("why not"));
        assert!(list.with_top_folder(Path::new("/b")).unwrap().bare);
    }

    #[test]
    fn reads_files_like_git_worktree_list() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let program = crate::program::command::Program::find().unwrap();
        let git = |args: &[&str]| {
            let call = program.command_in(&top).args(args);
            call.env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_AUTHOR_NAME", "a")
                .env("GIT_AUTHOR_EMAIL", "a@b")
                .env("GIT_COMMITTER_NAME", "a")
                .env("GIT_COMMITTER_EMAIL", "a@b")
                .mutating()
                .run()
                .unwrap();
        };
        git(&["init", "-q", "-b", "main", "repo"]);
        let repo = top.join("repo");
        let git_in_repo = |args: &[&str]| git(&[&["-C", "repo"], args].concat());
        git_in_repo(&["commit", "-q", "--allow-empty", "-m", "x"]);
        git_in_repo(&["worktree", "add", "-q", "-b", "a/b", "../with space"]);
        git_in_repo(&["worktree", "add", "-q", "--detach", "../detached"]);
        git_in_repo(&["worktree", "add", "-q", "-b", "gone", "../gone"]);
        git_in_repo(&["worktree", "add", "-q", "-b", "held", "../held"]);
        git_in_repo(&["worktree", "lock", "--reason", "on a stick", "../held"]);
        std::fs::remove_dir_all(top.join("gone")).unwrap();
        let repo = Repo::discover(&repo).unwrap();
        let normalized = |mut list: Vec<Worktree>| {
            list.sort_by(|a, b| a.path.cmp(&b.path));
            for worktree in &mut list {
                worktree.prunable_reason = worktree.prunable_reason.take().map(|_| String::new());
                worktree.listed_head_commit = worktree.head(&repo).unwrap();
                worktree.head_ref = None;
            }
            list
        };
        let git_list = repo.git().args(["worktree", "list", "--porcelain", "-z"]).run().unwrap();
        let file_list = WorktreeList::read_files(&repo).unwrap();
        assert_eq!(normalized(file_list.0), normalized(parse_worktree_list(&git_list.stdout)));
    }
}
