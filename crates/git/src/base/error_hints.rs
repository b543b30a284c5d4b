//! Hints for errors of git operations: commands that help against them.

use std::borrow::Cow;
use std::path::Path;

use proq_base::explain::{Exit, Explain, shell_quote, shell_quote_path};

use super::error::Error;
use super::head::BRANCH_PREFIX;

/// Returns hints for a failed filter.
fn filter_hints(stderr: &str, is_lfs: bool) -> Vec<Cow<'static, str>> {
    match is_lfs {
        true if is_lfs_missing(stderr) => {
            vec!["git-lfs is not on PATH here; install it: https://git-lfs.com".into()]
        }
        true => vec![
            "fetch what is missing, which says more: git lfs fetch".into(),
            "or have pointers in lanes: git config proq.lane.lfs pointer".into(),
        ],
        false => vec!["see which programs they are: git config --get-regexp '^filter'".into()],
    }
}

/// Returns whether a filter failed because git-lfs is not installed.
fn is_lfs_missing(stderr: &str) -> bool {
    ["git-lfs: not found", "git-lfs: command not found"].iter().any(|text| stderr.contains(text))
}

/// Returns the command that aborts the operation in progress.
pub fn abort_command(operation: &str) -> String {
    if operation == "bisect" { "git bisect reset".to_owned() } else { format!("git {operation} --abort") }
}

/// Returns the hint for a ref that git did not move, by its name and the reason.
fn ref_failure_hint(name: &str, reason: &str) -> Cow<'static, str> {
    let conflicting_ref =
        reason.split_once("' exists; cannot create").and_then(|(before, _)| before.rsplit_once('\''));
    if let Some(branch) = conflicting_ref.and_then(|(_, other)| other.strip_prefix(BRANCH_PREFIX)) {
        return format!("rename the branch in its way: git branch -m {} NEW-NAME", shell_quote(branch))
            .into();
    }
    if reason.ends_with("reference broken") || reason.ends_with("Too many levels of symbolic links") {
        let remove = ref_removal_command(name);
        return format!("its file holds no commit; remove it, then run the command again: {remove}").into();
    }
    "run the command again".into()
}

/// Returns the command that removes the file of a fully named ref, which git does not remove if the file
/// contains no commit id.
pub fn ref_removal_command(name: &str) -> String {
    format!("rm \"$(git rev-parse --git-path {})\"", shell_quote(name))
}

/// Returns the hint for a remote that git could not fetch from.
fn fetch_hint(remote: &str) -> String {
    format!("look whether it can be reached, then run this again: git fetch {remote}")
}

fn status_command(dir: &Path) -> String {
    format!("git -C {} status", shell_quote_path(dir))
}

impl Error {
    /// Returns hints for a repository, or output of git, that cannot be trusted.
    fn trust_hints(&self) -> Vec<Cow<'static, str>> {
        vec![match self {
            Error::Untrusted { advice, .. } => format!("if you trust who owns it: {advice}").into(),
            Error::BareNotNamedExplicitly { dir } => {
                format!("name it, if you trust it: git --git-dir={} proq", shell_quote_path(dir)).into()
            }
            Error::UnexpectedOutput { output, .. } if output.is_empty() => {
                "see whether the disk is full, or a limit was reached: df -h; ulimit -a".into()
            }
            Error::UnexpectedOutput { .. } => "see which git it is: git --version; type -a git".into(),
            _ => return Vec::new(),
        }]
    }

    /// Returns hints for files that cannot be saved or changed.
    fn file_hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::Unreadable { dir, paths } => {
                let first = paths.first().map(|p| shell_quote_path(&p.to_fs_path(dir))).unwrap_or_default();
                vec![format!("make them readable for you: chmod u+r {first}").into()]
            }
            Error::NotWritable { dir, paths } => {
                let first = paths.first().map(|p| shell_quote_path(&p.to_fs_path(dir))).unwrap_or_default();
                vec![
                    format!("make it writable for you: chmod u+rwx {first}").into(),
                    format!("or, where chattr has made it immutable: chattr -i {first}").into(),
                ]
            }
            Error::Replaced { oid, .. } => {
                vec![format!("take the replacement away first: git replace -d {oid}").into()]
            }
            Error::NotAFile { .. } => vec!["move these away, then try again".into()],
            _ => Vec::new(),
        }
    }
}

impl Explain for Error {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::NoGit => vec!["install git 2.39 or newer".into()],
            Error::TooOld { .. } => vec!["upgrade git, or put a newer one first on PATH".into()],
            Error::NoRepository { named_by_git_dir_variable: true, .. } => {
                vec!["GIT_DIR is set and names no repository: unset GIT_DIR".into()]
            }
            Error::NoRepository { .. } => {
                vec!["run it inside a repository, or make one: git init".into()]
            }
            Error::Unusable(e) => e.hints(),
            Error::MismatchedGitDir { .. } => {
                vec!["without the variables: env -u GIT_DIR -u GIT_WORK_TREE git proq …".into()]
            }
            Error::Untrusted { .. }
            | Error::BareNotNamedExplicitly { .. }
            | Error::UnexpectedOutput { .. } => self.trust_hints(),
            Error::NotFetched { remote, .. } => vec![fetch_hint(remote).into()],
            Error::Filter { stderr, is_lfs } => filter_hints(stderr, *is_lfs),
            Error::Bare => vec!["lanes work here, a preview needs a checkout: git clone".into()],
            Error::NoRev { .. } => vec!["see what there is: git branch --all; git tag".into()],
            Error::InvalidGlob { .. } => {
                vec!["name files from the top of the repository: --scope src/pay/ --scope '*.md'".into()]
            }
            Error::Unmerged { .. } => vec!["finish the merge first: git status".into()],
            Error::Unreadable { .. }
            | Error::NotWritable { .. }
            | Error::Replaced { .. }
            | Error::NotAFile { .. } => self.file_hints(),
            Error::OpenOperation { operation: what, .. } => {
                vec![format!("finish it, or give it up: {}", abort_command(what)).into()]
            }
            Error::LocalChanges { dir, hint: remedy, .. } => remedy.hints(dir),
            Error::Program(e) => e.hints(),
            Error::Obstructed { .. } => vec!["move these files away, then try again".into()],
            Error::IndexLocked { lock, .. } | Error::RefLocked { lock, .. } => vec![
                "wait for it to end, then try again".into(),
                format!("if no git runs there any more: rm {}", shell_quote_path(lock)).into(),
            ],
            Error::IndexReplaced { dir } => {
                vec![format!("look at it first: {}", status_command(dir)).into()]
            }
            Error::Raced { .. } => vec!["run the command again".into()],
            Error::RefNotMoved { name, reason: why } => vec![ref_failure_hint(name, why)],
            Error::NeedsSymref { .. } => vec!["upgrade git to 2.46 or newer".into()],
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                vec!["make room on the disk, then run the command again".into()]
            }
            Error::RestoreFailed { dir, .. } => {
                vec![format!("make room, put them back by hand, then look: {}", status_command(dir)).into()]
            }
            Error::Command { stderr, .. } if stderr.contains("No space left on device") => {
                vec!["make room on the disk, then run the command again".into()]
            }
            Error::Command { .. } | Error::Object { .. } | Error::Io { .. } => Vec::new(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Error::InvalidGlob { .. } => Exit::Usage,
            Error::IndexLocked { .. } | Error::RefLocked { .. } => Exit::Locked,
            _ => Exit::Refused,
        }
    }
}
