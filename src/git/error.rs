//! Owns what can go wrong with git, in the user's words.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::failed_program::{FailedProgram, filter_line};
use super::refs::after_not_moved;
use super::{Oid, Remedy, RepoPath, Unusable};
use crate::explain::{Exit, Explain, quoted_path};

/// How many names a one-line message lists before it counts the rest.
const NAMED: usize = 4;

/// How many characters are shown of an answer that is not understood.
const SHOWN: usize = 200;

/// An error from git, or from reading and changing what git keeps.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No git program on `PATH`.
    #[error("git was not found on PATH")]
    NoGit,
    /// The git program is older than what this program relies on.
    #[error("git {found} is too old; git-proq needs {needed} or newer")]
    TooOld {
        /// The version found.
        found: String,
        /// The oldest version that works.
        needed: &'static str,
    },
    /// There is no repository here.
    #[error("not a git repository: {}", dir.display())]
    NoRepository {
        /// Where the search began, or what `GIT_DIR` names.
        dir: PathBuf,
        /// Whether it is what `GIT_DIR` names.
        by_variable: bool,
    },
    /// Variables name a worktree and a repository that do not belong together.
    #[error("{} is no worktree of {}, which GIT_DIR names; nothing was changed", dir.display(), git_dir.display())]
    Mixture {
        /// The worktree.
        dir: PathBuf,
        /// The repository.
        git_dir: PathBuf,
    },
    /// Another user owns the repository, and git makes no exception for it.
    #[error("cannot use the repository at {}: git detected dubious ownership; nothing of it was read or run", dir.display())]
    Untrusted {
        /// Its worktree, or its git directory.
        dir: PathBuf,
        /// The command that makes an exception.
        advice: String,
    },
    /// A bare repository that nobody named, where git wants that.
    #[error("cannot use the bare repository at {}: safe.bareRepository is 'explicit'; nothing of it was read or run", dir.display())]
    BareUnnamed {
        /// Its git directory.
        dir: PathBuf,
    },
    /// The command needs a main checkout and the repository is bare.
    #[error("this is a bare repository; it has no main checkout")]
    Bare,
    /// A git program call failed.
    #[error("`git {args}` failed: {}", first_line(stderr, status))]
    Command {
        /// The arguments, joined for reading.
        args: String,
        /// Exit status or signal, in words.
        status: String,
        /// Everything it wrote to its error stream.
        stderr: String,
    },
    /// A partial clone lacks files, and they could not be fetched.
    #[error(
        "{count} files of this commit are not in this partial clone, and git could not fetch them from {remote}; nothing was changed"
    )]
    NotFetched {
        /// How many.
        count: usize,
        /// The remote that has them.
        remote: String,
        /// What git said.
        #[source]
        source: Box<Error>,
    },
    /// A filter of the user's, which git sends files through, failed.
    #[error("a filter that git sends files through failed: {}; nothing was changed", filter_line(stderr))]
    Filter {
        /// Everything that git and the filter wrote.
        stderr: String,
        /// Whether it is that of git-lfs.
        is_lfs: bool,
    },
    /// The git program answered in a form that is not understood.
    #[error("`git {args}` {}", answer(what))]
    Answer {
        /// The arguments, joined for reading.
        args: String,
        /// What was wrong with the answer, or the answer; empty where there was none.
        what: String,
    },
    /// A name that resolves to nothing.
    #[error("'{rev}' is not a commit in this repository")]
    NoRev {
        /// What was asked for.
        rev: String,
    },
    /// A repository or a worktree lacks what is needed to work with it at all.
    #[error(transparent)]
    Unusable(Unusable),
    /// What is to be a glob of files is none.
    #[error("'{glob}' names no files: {why}; nothing was made")]
    Glob {
        /// What was given.
        glob: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An object could not be read.
    #[error("could not read {what}")]
    Object {
        /// What was being read.
        what: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file could not be read, written or moved.
    #[error("could not {verb} {}", path.display())]
    Io {
        /// What was attempted, as a verb.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// An index has unmerged paths.
    #[error("{} has unmerged paths: {}", dir.display(), names(paths))]
    Unmerged {
        /// The worktree.
        dir: PathBuf,
        /// The unmerged paths.
        paths: Vec<RepoPath>,
    },
    /// Tracked files that cannot be read, so that their content cannot be kept.
    #[error("files in {} cannot be read: {}; nothing was changed", dir.display(), names(paths))]
    Unreadable {
        /// The worktree.
        dir: PathBuf,
        /// The files.
        paths: Vec<RepoPath>,
    },
    /// Folders in which nothing can be changed, or files that cannot be taken away.
    #[error("{} cannot be changed in {}: its rights, or those of the file system, do not let you; nothing was changed", names(paths), dir.display())]
    Shut {
        /// The worktree.
        dir: PathBuf,
        /// The folders and files.
        paths: Vec<RepoPath>,
    },
    /// `git replace` has other content in the place of that of files.
    #[error("`git replace` exchanges the content of files in {}: {}; nothing was changed", dir.display(), names(paths))]
    Replaced {
        /// The worktree.
        dir: PathBuf,
        /// The first of the contents.
        oid: Oid,
        /// The files.
        paths: Vec<RepoPath>,
    },
    /// Something else stands where git has files.
    #[error("in {} stands what git cannot keep where it has a file: {}; nothing was changed", dir.display(), paths.join(", "))]
    NoFile {
        /// The worktree.
        dir: PathBuf,
        /// Where, and what it is.
        paths: Vec<String>,
    },
    /// A merge, rebase or the like is under way.
    #[error("a {what} is under way in {}; nothing was changed", dir.display())]
    OpenOperation {
        /// Which one.
        what: &'static str,
        /// The worktree.
        dir: PathBuf,
    },
    /// Local changes would be overwritten.
    #[error("local changes in {} stand in the way: {}; nothing was changed", dir.display(), names(paths))]
    Overlap {
        /// The worktree.
        dir: PathBuf,
        /// The paths that both sides change.
        paths: Vec<RepoPath>,
        /// What gets them out of the way.
        remedy: Remedy,
    },
    /// Untracked or ignored files would be overwritten.
    #[error("files that git does not track in {} stand in the way: {}; nothing was changed", dir.display(), names(paths))]
    Obstructed {
        /// The worktree.
        dir: PathBuf,
        /// The files.
        paths: Vec<RepoPath>,
    },
    /// Somebody else holds git's own lock on this index.
    #[error("another git command is running in {} ({} exists); nothing was changed", dir.display(), lock.display())]
    IndexLocked {
        /// The worktree.
        dir: PathBuf,
        /// The lock file.
        lock: PathBuf,
    },
    /// The index or its lock changed under us.
    #[error("the index of {} was replaced while its lock was held; it was left as it is", dir.display())]
    IndexReplaced {
        /// The worktree.
        dir: PathBuf,
    },
    /// Files changed between being looked at and being moved.
    #[error("{} changed while git-proq was at work: {}; they were put back", dir.display(), names(paths))]
    Raced {
        /// The worktree.
        dir: PathBuf,
        /// The files.
        paths: Vec<RepoPath>,
    },
    /// Something failed, and putting files back failed too.
    #[error("files of {} could not all be put back; those that are missing are in {}", dir.display(), kept.display())]
    Stuck {
        /// The worktree.
        dir: PathBuf,
        /// Where the files are.
        kept: PathBuf,
        /// What kept them from going back.
        #[source]
        source: Box<Error>,
    },
    /// Another git command holds a lock that a ref's move needs.
    #[error("'{name}' could not be moved: another git command holds {}; nothing was changed", lock.display())]
    RefLocked {
        /// The ref.
        name: String,
        /// The lock file.
        lock: PathBuf,
    },
    /// A ref was not where it was expected, or could not be locked.
    #[error("'{name}' could not be moved: {why}; nothing was changed")]
    RefMoved {
        /// The ref.
        name: String,
        /// What git said.
        why: String,
    },
    /// Reftable repositories need git's symref verbs to switch HEAD.
    #[error("git {found} cannot switch branches safely in a reftable repository")]
    NeedsSymref {
        /// The version found.
        found: String,
    },
    /// A program of the user's failed or refused.
    #[error(transparent)]
    Program(FailedProgram),
}

impl Error {
    /// Wraps an IO error with what was attempted and where.
    pub(crate) fn io(verb: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { verb, path, source }
    }

    /// Wraps a library error with what was being read.
    pub(crate) fn object<E>(what: impl Into<String>) -> impl FnOnce(E) -> Error
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let what = what.into();
        move |e| Error::Object { what, source: e.into() }
    }
}

impl Error {
    /// Whether somebody's own changes or programs are in the way, rather than that something could not be done now.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            Error::Overlap { .. }
                | Error::Obstructed { .. }
                | Error::NoFile { .. }
                | Error::OpenOperation { .. }
                | Error::Raced { .. }
                | Error::RefMoved { .. }
                | Error::Unmerged { .. }
                | Error::Shut { .. }
                | Error::Replaced { .. }
                | Error::Unreadable { .. }
                | Error::Program(_)
        )
    }
}

/// The first names of a list and how many more there are.
pub(crate) fn names(paths: &[RepoPath]) -> String {
    let mut out = paths.iter().take(NAMED).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if paths.len() > NAMED {
        out.push_str(&format!(" and {} more", paths.len() - NAMED));
    }
    out
}

/// How an answer is shown that is not understood: no more of it than a person reads.
fn answer(what: &str) -> String {
    if what.is_empty() {
        return "ended well and answered nothing: what it wrote was lost".to_owned();
    }
    let shown: String = what.chars().take(SHOWN).collect();
    match what.len() - shown.len() {
        0 => format!("gave an answer that is not understood: {shown}"),
        more => format!("gave an answer that is not understood: {shown}… and {more} more bytes"),
    }
}

/// What helps where a filter failed.
fn of_filter(stderr: &str, is_lfs: bool) -> Vec<Cow<'static, str>> {
    match is_lfs {
        true if no_lfs(stderr) => vec!["git-lfs is not on PATH here; install it: https://git-lfs.com".into()],
        true => vec![
            "fetch what is missing, which says more: git lfs fetch".into(),
            "or have pointers in lanes: git config proq.lane.lfs pointer".into(),
        ],
        false => vec!["see which programs they are: git config --get-regexp '^filter'".into()],
    }
}

/// Whether there is no git-lfs.
fn no_lfs(stderr: &str) -> bool {
    ["git-lfs: not found", "git-lfs: command not found"].iter().any(|text| stderr.contains(text))
}

/// The line of `stderr` that says why, or the status when there is none.
pub(super) fn first_line(stderr: &str, status: &str) -> String {
    let line = stderr
        .lines()
        .find(|l| l.starts_with("fatal:") || l.starts_with("error:"))
        .or_else(|| stderr.lines().find(|l| !l.trim().is_empty()));
    match line {
        Some(line) => line.trim_start_matches("fatal: ").trim_start_matches("error: ").to_owned(),
        None => status.to_owned(),
    }
}

/// The command that ends what is under way without keeping it.
pub(crate) fn give_up(what: &str) -> String {
    if what == "bisect" { "git bisect reset".to_owned() } else { format!("git {what} --abort") }
}

/// What to do about a remote that git could not fetch from.
fn unreached(remote: &str) -> String {
    format!("look whether it can be reached, then run this again: git fetch {remote}")
}

fn status_in(dir: &Path) -> String {
    format!("git -C {} status", quoted_path(dir))
}

impl Error {
    /// What helps where a repository, or what git answers, cannot be relied on.
    fn hints_on_trust(&self) -> Vec<Cow<'static, str>> {
        vec![match self {
            Error::Untrusted { advice, .. } => format!("if you trust who owns it: {advice}").into(),
            Error::BareUnnamed { dir } => {
                format!("name it, if you trust it: git --git-dir={} proq", quoted_path(dir)).into()
            }
            Error::Answer { what, .. } if what.is_empty() => {
                "see whether the disk is full, or a limit was reached: df -h; ulimit -a".into()
            }
            Error::Answer { .. } => "see which git it is: git --version; type -a git".into(),
            _ => return Vec::new(),
        }]
    }

    /// What helps with files that cannot be kept or changed.
    fn hints_on_files(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::Unreadable { dir, paths } => {
                let first = paths.first().map(|p| quoted_path(&p.under(dir))).unwrap_or_default();
                vec![format!("make them readable for you: chmod u+r {first}").into()]
            }
            Error::Shut { dir, paths } => {
                let first = paths.first().map(|p| quoted_path(&p.under(dir))).unwrap_or_default();
                vec![
                    format!("make it writable for you: chmod u+rwx {first}").into(),
                    format!("or, where chattr has made it immutable: chattr -i {first}").into(),
                ]
            }
            Error::Replaced { oid, .. } => {
                vec![format!("take the replacement away first: git replace -d {oid}").into()]
            }
            Error::NoFile { .. } => vec!["move these away, then try again".into()],
            _ => Vec::new(),
        }
    }
}

impl Explain for Error {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::NoGit => vec!["install git 2.39 or newer".into()],
            Error::TooOld { .. } => vec!["upgrade git, or put a newer one first on PATH".into()],
            Error::NoRepository { by_variable: true, .. } => {
                vec!["GIT_DIR is set and names no repository: unset GIT_DIR".into()]
            }
            Error::NoRepository { .. } => {
                vec!["run it inside a repository, or make one: git init".into()]
            }
            Error::Unusable(e) => e.hints(),
            Error::Mixture { .. } => {
                vec!["without the variables: env -u GIT_DIR -u GIT_WORK_TREE git proq …".into()]
            }
            Error::Untrusted { .. } | Error::BareUnnamed { .. } | Error::Answer { .. } => {
                self.hints_on_trust()
            }
            Error::NotFetched { remote, .. } => vec![unreached(remote).into()],
            Error::Filter { stderr, is_lfs } => of_filter(stderr, *is_lfs),
            Error::Bare => vec!["lanes work here, a preview needs a checkout: git clone".into()],
            Error::NoRev { .. } => vec!["see what there is: git branch --all; git tag".into()],
            Error::Glob { .. } => {
                vec!["name files from the top of the repository: --scope src/pay/ --scope '*.md'".into()]
            }
            Error::Unmerged { .. } => vec!["finish the merge first: git status".into()],
            Error::Unreadable { .. } | Error::Shut { .. } | Error::Replaced { .. } | Error::NoFile { .. } => {
                self.hints_on_files()
            }
            Error::OpenOperation { what, .. } => {
                vec![format!("finish it, or give it up: {}", give_up(what)).into()]
            }
            Error::Overlap { dir, remedy, .. } => remedy.hints(dir),
            Error::Program(e) => e.hints(),
            Error::Obstructed { .. } => vec!["move these files away, then try again".into()],
            Error::IndexLocked { lock, .. } | Error::RefLocked { lock, .. } => vec![
                "wait for it to end, then try again".into(),
                format!("if no git runs there any more: rm {}", quoted_path(lock)).into(),
            ],
            Error::IndexReplaced { dir } => {
                vec![format!("look at it first: {}", status_in(dir)).into()]
            }
            Error::Raced { .. } => vec!["run the command again".into()],
            Error::RefMoved { name, why } => vec![after_not_moved(name, why)],
            Error::NeedsSymref { .. } => vec!["upgrade git to 2.46 or newer".into()],
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                vec!["make room on the disk, then run the command again".into()]
            }
            Error::Stuck { dir, .. } => {
                vec![format!("make room, put them back by hand, then look: {}", status_in(dir)).into()]
            }
            Error::Command { stderr, .. } if stderr.contains("No space left on device") => {
                vec!["make room on the disk, then run the command again".into()]
            }
            Error::Command { .. } | Error::Object { .. } | Error::Io { .. } => Vec::new(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Error::Glob { .. } => Exit::Usage,
            Error::IndexLocked { .. } | Error::RefLocked { .. } => Exit::Locked,
            _ => Exit::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_answer_no_more_is_shown_than_a_person_reads() {
        let shown = |what: &str| Error::Answer { args: "write-tree".into(), what: what.to_owned() };
        assert_eq!(
            shown("").to_string(),
            "`git write-tree` ended well and answered nothing: what it wrote was lost"
        );
        assert_eq!(shown("ab").to_string(), "`git write-tree` gave an answer that is not understood: ab");
        let long = shown(&"x".repeat(100_000)).to_string();
        assert!(long.len() < 300 && long.ends_with("… and 99800 more bytes"), "{long}");
        assert!(shown("").exit() == Exit::Refused && shown("ab").exit() == Exit::Refused);
    }
}
