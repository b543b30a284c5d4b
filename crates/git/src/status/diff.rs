//! Differences that are shown to users: from a commit to another, or to a worktree.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::patch::{MAX_PATCH_BYTES, Patch, PatchSelection};
use super::special_files;
use super::status_query::status;
use crate::base::path::nul_separated;
use crate::index::scratch_index;
use crate::program::command::PrintChunk;
use crate::repository::objects::TempObjectStore;
use crate::{CommitId, Error, Repo, RepoPath, TreeId};

/// Worktree that commits are compared with, with or without its untracked files.
#[derive(Debug)]
pub struct DiffWorktree {
    dir: PathBuf,
    /// Copy of the worktree's index that also has the untracked files; `None` to compare tracked files only.
    index_with_untracked: Option<PathBuf>,
}

impl DiffWorktree {
    /// Creates a comparison with the tracked files of the worktree at `dir`.
    pub fn with_tracked_files(dir: &Path) -> DiffWorktree {
        DiffWorktree { dir: dir.to_owned(), index_with_untracked: None }
    }

    /// Returns two lists of the untracked files of the worktree at `dir`: the readable ones, then the
    /// unreadable ones. Files of nested repositories are left out.
    pub fn list_untracked(repo: &Repo, dir: &Path) -> Result<(Vec<RepoPath>, Vec<RepoPath>), Error> {
        let dirty_state = status(repo, dir, true)?;
        let untracked_paths: Vec<RepoPath> = dirty_state
            .untracked()
            .filter(|entry| !entry.is_nested_repo)
            .map(|entry| entry.path.clone())
            .collect();
        let unreadable_paths = special_files::unreadable_paths(dir, &untracked_paths);
        let readable_paths =
            untracked_paths.into_iter().filter(|path| !unreadable_paths.contains(path)).collect();
        Ok((readable_paths, unreadable_paths))
    }

    /// Creates a comparison with the worktree at `dir` and its `untracked` files. They are added, as `git add
    /// -N` does, to a copy of its index in `scratch`.
    pub fn with_untracked_files(
        repo: &Repo,
        dir: &Path,
        untracked: &[RepoPath],
        scratch: &Path,
    ) -> Result<DiffWorktree, Error> {
        let index_copy = scratch.join("index");
        scratch_index::copy_with_mtime(&repo.worktree_git_dir(dir)?.join("index"), &index_copy)?;
        // Git would write a shared index next to the real one.
        repo.git_in(dir)
            .args(["-c", "core.splitIndex=false", "-c", "core.fsmonitor=false"])
            .args(["add", "--intent-to-add", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"])
            .env("GIT_LITERAL_PATHSPECS", "1")
            .use_index(&index_copy)
            .input(nul_separated(untracked))
            .run()?;
        Ok(DiffWorktree { dir: dir.to_owned(), index_with_untracked: Some(index_copy) })
    }

    fn set_index(&self, command: crate::program::command::Command) -> crate::program::command::Command {
        match &self.index_with_untracked {
            Some(index) => command.use_index(index),
            None => command,
        }
    }
}

/// Exit code of `git config --type=bool` for a value that is not a boolean.
const NOT_A_BOOL_EXIT_CODE: i32 = 128;

impl Repo {
    /// Shows a difference on the terminal as `git diff` does, with the user's pager and colors: from one
    /// commit to another, or to the present state of `worktree`. Where git would start no pager, nothing
    /// would filter control sequences for the terminal, so the difference goes to `print` in chunks instead.
    /// `print` is `None` where there is no terminal.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when a changed file cannot be read: git would show the others and stop half-way.
    pub fn show_diff(
        &self,
        worktree: &DiffWorktree,
        from: CommitId,
        to: Option<CommitId>,
        stat: bool,
        print: Option<PrintChunk<'_>>,
    ) -> Result<(), Error> {
        let command = self.diff_command(worktree, from, to, stat)?;
        // Git quotes the names that `--stat` shows.
        let print = match print {
            Some(print) if !stat && !self.uses_diff_pager(&worktree.dir)? => print,
            _ => return command.args(revision_args(from, to)).arg("--").run_on_terminal(),
        };
        let config_args = ["config", "--get-colorbool", "color.diff", "true"];
        let use_color = self.git_in(&worktree.dir).args(config_args).run()?.trimmed_stdout() == "true";
        let command = command.arg(if use_color { "--color=always" } else { "--color=never" });
        command.args(revision_args(from, to)).arg("--").run_printing(print)
    }

    /// Returns a difference in git's format, as `git diff` prints it to a pipe: from one commit to another, or
    /// to the present state of `worktree`. `stat` shows only the files.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when a changed file cannot be read.
    pub fn diff_text(
        &self,
        worktree: &DiffWorktree,
        from: CommitId,
        to: Option<CommitId>,
        stat: bool,
    ) -> Result<Vec<u8>, Error> {
        let command = self.diff_command(worktree, from, to, stat)?;
        Ok(command.args(revision_args(from, to)).arg("--").run()?.stdout)
    }

    /// Returns the command that shows a difference, without its revisions.
    fn diff_command(
        &self,
        worktree: &DiffWorktree,
        from: CommitId,
        to: Option<CommitId>,
        stat: bool,
    ) -> Result<crate::program::command::Command, Error> {
        self.require_readable(worktree, from, to)?;
        Ok(worktree.set_index(self.git_in(&worktree.dir)).arg("diff").args(stat.then_some("--stat")))
    }

    /// Returns a difference as lines, from one commit to another, or to the present state of `worktree`. Only
    /// the first [`MAX_PATCH_BYTES`] of git's output are read.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when a changed file cannot be read.
    pub fn patch(
        &self,
        worktree: &DiffWorktree,
        from: CommitId,
        to: Option<CommitId>,
        selection: &PatchSelection,
    ) -> Result<Patch, Error> {
        self.require_readable(worktree, from, to)?;
        let command = worktree.set_index(self.git_in(&worktree.dir)).env("GIT_LITERAL_PATHSPECS", "1");
        let command = command.args(["-c", "core.quotePath=false", "-c", "diff.relative=false"]).args([
            "diff",
            "--patch",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            "--submodule=short",
            "--src-prefix=a/",
            "--dst-prefix=b/",
        ]);
        let command = command.args(selection.context.map(|lines| format!("--unified={lines}")));
        let command = command.args(revision_args(from, to)).arg("--");
        let paths = selection.path.iter().map(|path| OsStr::from_bytes(path.as_bytes()));
        let (bytes, cut) = command.args(paths).run_bounded(MAX_PATCH_BYTES)?;
        Ok(Patch::parse(&bytes, cut))
    }

    /// Refuses a comparison with a worktree in which a changed file cannot be read.
    fn require_readable(
        &self,
        worktree: &DiffWorktree,
        from: CommitId,
        to: Option<CommitId>,
    ) -> Result<(), Error> {
        if to.is_some() {
            return Ok(());
        }
        let paths = special_files::unreadable_paths(&worktree.dir, &self.changed_files(worktree, from, to)?);
        match paths.is_empty() {
            true => Ok(()),
            false => Err(Error::Unreadable { dir: worktree.dir.clone(), unreadable_paths: paths }),
        }
    }

    /// Returns whether git starts a pager for a difference on a terminal; `cat` does not count as one.
    fn uses_diff_pager(&self, dir: &Path) -> Result<bool, Error> {
        let read_setting = |kind: &[&str]| {
            let command =
                self.git_in(dir).arg("config").args(kind.iter().copied()).args(["--get", "pager.diff"]);
            command.accept_exit_codes(&[1, NOT_A_BOOL_EXIT_CODE]).run()
        };
        let setting = read_setting(&["--type=bool"])?;
        let pager = match (setting.code, std::env::var("GIT_PAGER")) {
            (0, _) if setting.trimmed_stdout() == "false" => return Ok(false),
            (NOT_A_BOOL_EXIT_CODE, Err(_)) => read_setting(&[])?.trimmed_stdout(),
            _ => self.git_in(dir).args(["var", "GIT_PAGER"]).run()?.trimmed_stdout(),
        };
        Ok(!matches!(pager.trim(), "" | "cat"))
    }

    /// Returns the paths that differ between the commit `from` and the commit `to`, or the worktree if `to`
    /// is `None`.
    pub fn changed_files(
        &self,
        worktree: &DiffWorktree,
        from: CommitId,
        to: Option<CommitId>,
    ) -> Result<Vec<RepoPath>, Error> {
        let command = worktree.set_index(self.git_in(&worktree.dir));
        let command = command.args(["diff", "--name-only", "-z", "--no-ext-diff", "--no-renames"]);
        let out = command.args(revision_args(from, to)).arg("--").run()?;
        Ok(out.nul_separated_fields().map(RepoPath::new).collect())
    }
}

/// Path of a changed file with the numbers of its added and removed lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileLineCounts {
    /// Path of the file.
    pub path: RepoPath,
    /// Number of added lines; `None` for a binary file.
    pub added: Option<usize>,
    /// Number of removed lines; `None` for a binary file.
    pub removed: Option<usize>,
}

/// Size of a difference, as `git diff --shortstat` counts it. Its text is the one that git prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DiffStat {
    /// Number of changed files; a renamed file counts once where git detects renames.
    pub files: usize,
    /// Number of added lines.
    pub insertions: usize,
    /// Number of removed lines.
    pub deletions: usize,
}

impl DiffStat {
    /// Returns the size of a difference by its files. A file without numbers counts only as a file.
    #[must_use]
    pub fn of_files(files: &[FileLineCounts]) -> DiffStat {
        let sum = |count: fn(&FileLineCounts) -> Option<usize>| files.iter().filter_map(count).sum();
        DiffStat { files: files.len(), insertions: sum(|f| f.added), deletions: sum(|f| f.removed) }
    }

    /// Returns the sum of two sizes.
    #[must_use]
    pub fn plus(self, other: DiffStat) -> DiffStat {
        DiffStat {
            files: self.files + other.files,
            insertions: self.insertions + other.insertions,
            deletions: self.deletions + other.deletions,
        }
    }

    /// Parses a line of git: ` 3 files changed, 10 insertions(+), 2 deletions(-)`.
    fn parse(line: &str) -> Option<DiffStat> {
        let mut stat = DiffStat::default();
        for part in line.trim().split(", ") {
            let (number, words) = part.split_once(' ')?;
            let count = match words.chars().next()? {
                'f' => &mut stat.files,
                'i' => &mut stat.insertions,
                'd' => &mut stat.deletions,
                _ => return None,
            };
            *count = number.parse().ok()?;
        }
        Some(stat)
    }
}

impl fmt::Display for DiffStat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DiffStat { files, insertions, deletions } = *self;
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        write!(f, "{files} file{} changed", plural(files))?;
        if insertions > 0 || deletions == 0 {
            write!(f, ", {insertions} insertion{}(+)", plural(insertions))?;
        }
        if deletions > 0 || insertions == 0 {
            write!(f, ", {deletions} deletion{}(-)", plural(deletions))?;
        }
        Ok(())
    }
}

impl Repo {
    /// Returns the size of the difference of each pair of trees, from the first to the second, as `git diff`
    /// counts it with the settings of the repository. The trees may exist only in `temp_objects`.
    pub fn diff_stats(
        &self,
        pairs: &[[TreeId; 2]],
        temp_objects: Option<&TempObjectStore>,
    ) -> Result<Vec<DiffStat>, Error> {
        // Unlike `git diff`, `git diff-tree` ignores these settings.
        let rename_option = match self.setting_text("diff.renames").as_deref() {
            Some("copies" | "copy") => "--find-copies",
            _ if self.setting_bool("diff.renames") == Some(false) => "--no-renames",
            _ => "--find-renames",
        };
        let algorithm = self.setting_text("diff.algorithm");
        let ignores_submodules = self.setting_text("diff.ignoreSubmodules").as_deref() == Some("all");
        let lines: Vec<String> = pairs.iter().map(|[from, to]| format!("{from} {to}\n")).collect();
        let command = TempObjectStore::redirect_writes(temp_objects, self.git())
            .args(["diff-tree", "--stdin", "--shortstat", "--no-ext-diff", rename_option])
            .args(algorithm.map(|name| format!("--diff-algorithm={name}")))
            .args(ignores_submodules.then_some("--ignore-submodules=all"))
            .input(lines.concat());
        let args = command.display_args();
        let output = command.run()?.trimmed_stdout();
        parse_diff_stats(&output, pairs.len())
            .ok_or(Error::UnexpectedOutput { args, fault_or_output: output })
    }

    /// Returns the files that change from one commit to another, with git's counts of their lines.
    pub fn line_counts(&self, from: CommitId, to: CommitId) -> Result<Vec<FileLineCounts>, Error> {
        let command = self.git().args(["diff", "--numstat", "-z", "--no-ext-diff", "--no-renames"]);
        let out = command.args(revision_args(from, Some(to))).arg("--").run()?;
        Ok(out.nul_separated_fields().filter_map(parse_numstat).collect())
    }
}

/// Parses `<added>\t<removed>\t<path>`, with `-` for a binary file.
fn parse_numstat(field: &[u8]) -> Option<FileLineCounts> {
    let mut columns = field.splitn(3, |b| *b == b'\t');
    let mut next_number = || std::str::from_utf8(columns.next()?).ok()?.parse().ok();
    let (added, removed) = (next_number(), next_number());
    Some(FileLineCounts { path: RepoPath::new(columns.next()?), added, removed })
}

/// Parses for each of `count` pairs a line with two ids, followed by a line with a size unless it is zero.
fn parse_diff_stats(output: &str, count: usize) -> Option<Vec<DiffStat>> {
    let mut out: Vec<DiffStat> = Vec::new();
    for line in output.lines() {
        match line.starts_with(' ') {
            true => *out.last_mut()? = DiffStat::parse(line)?,
            false => out.push(DiffStat::default()),
        }
    }
    (out.len() == count).then_some(out)
}

fn revision_args(from: CommitId, to: Option<CommitId>) -> Vec<String> {
    std::iter::once(from).chain(to).map(|id| id.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_stats_read_and_print_what_git_prints() {
        let sizes = [
            "1 file changed, 0 insertions(+), 0 deletions(-)",
            "3 files changed, 10 insertions(+), 2 deletions(-)",
            "1 file changed, 1 insertion(+)",
            "2 files changed, 1 deletion(-)",
        ];
        let output = sizes.map(|size| format!("a b\n {size}\n")).concat();
        let parsed = parse_diff_stats(&format!("a b\n{output}a b"), 6).unwrap();
        assert_eq!((parsed[0], parsed[5]), (DiffStat::default(), DiffStat::default()));
        let printed: Vec<String> = parsed[1..5].iter().map(ToString::to_string).collect();
        assert_eq!(printed, sizes);
        assert_eq!(parsed[2].plus(parsed[3]), DiffStat { files: 4, insertions: 11, deletions: 2 });
        assert_eq!(parse_diff_stats(&output, 3), None);
    }
}
