//! One scan of a worktree for everything that differs from HEAD, shared by callers that need several parts of
//! it.

use std::collections::BTreeSet;
use std::path::Path;

use proq_base::fail_points;

use super::stat_scan::StatScan;
use super::status_walk::UntrackedContent;
use super::worktree_status::{StatusEntry, WorktreeStatus};
use crate::index::index_lock::FileVersion;
use crate::index::no_conversion::verbatim_rule;
use crate::{CommitId, Error, Repo, RepoPath};

/// Result of one scan of a worktree. It reflects the moment of the scan, so code that moves a file has to
/// check that file again.
pub struct WorktreeScan {
    facts: Option<ScanFacts>,
    /// Ignored files that a snapshot has restored.
    pub(crate) restored_ignored: Vec<RepoPath>,
}

/// Facts about a worktree that a scan has established with certainty.
pub(crate) struct ScanFacts {
    /// Version of the index, which matches HEAD and has no entry whose changes git ignores.
    index_version: FileVersion,
    /// Whether the index file can be rewritten in its own format: it has only entries and cached trees, and
    /// shares none with another file.
    pub(crate) is_index_rewritable: bool,
    /// Commit of HEAD at the time of the scan.
    head_commit: CommitId,
    /// Differences from HEAD.
    entries: Vec<StatusEntry>,
    /// Ignored and untracked content next to tracked files.
    untracked: UntrackedContent,
}

impl WorktreeScan {
    /// Scans the worktree at `dir`. Where the scan is not certain, callers of the result query git later.
    pub fn scan(repo: &Repo, dir: &Path, git_dir: &Path) -> WorktreeScan {
        WorktreeScan { facts: ScanFacts::scan(repo, dir, git_dir), restored_ignored: Vec::new() }
    }

    /// Returns the ignored files that a snapshot has restored.
    pub(crate) fn restored_ignored(&self) -> &[RepoPath] {
        &self.restored_ignored
    }

    /// Returns the facts, if the worktree's index still has this version and its commit is `head_commit`.
    pub(crate) fn facts_if_current(
        &self,
        index: Option<FileVersion>,
        head_commit: CommitId,
    ) -> Option<&ScanFacts> {
        self.facts.as_ref().filter(|all| Some(all.index_version) == index && all.head_commit == head_commit)
    }

    /// Returns untracked files and folders that git ignores; a folder stands for everything in it.
    pub fn ignored_paths(&self, repo: &Repo, dir: &Path) -> Result<Vec<RepoPath>, Error> {
        match self.facts.as_ref().filter(|all| !all.untracked.has_nested_ignored) {
            Some(facts) => Ok(facts.untracked.ignored.clone()),
            None => query_ignored(repo, dir),
        }
    }

    /// Returns the nested repositories of a worktree that are no submodules and not ignored.
    pub fn nested_repositories(&self, repo: &Repo, dir: &Path) -> Result<Vec<RepoPath>, Error> {
        if self.facts.is_some() {
            // With a nested repository, the scan yields no facts.
            return Ok(Vec::new());
        }
        let out = repo.git_in(dir).args(["ls-files", "--others", "--exclude-standard", "-z"]).run()?;
        Ok(out
            .nul_separated_fields()
            .filter_map(|field| field.strip_suffix(b"/"))
            .map(RepoPath::new)
            .collect())
    }

    /// Returns the topmost untracked folders, which contain no tracked file and are not ignored; none if the
    /// scan could not establish them.
    pub fn untracked_folders(&self) -> Option<&[RepoPath]> {
        self.facts.as_ref().and_then(ScanFacts::untracked_folders)
    }
}

impl ScanFacts {
    fn scan(repo: &Repo, dir: &Path, git_dir: &Path) -> Option<ScanFacts> {
        if fail_points::is_git_forced() {
            return None;
        }
        let index_file = git_dir.join("index");
        let index = FileVersion::read(&index_file).ok()??;
        let commit = repo.read_head_commit(dir)?;
        let found = StatScan::with_commit(repo, dir, git_dir, commit)?.find_changes_and_untracked()?;
        let (entries, mut untracked, is_simple) = found;
        if FileVersion::read(&index_file).ok()? != Some(index) || repo.read_head_commit(dir) != Some(commit) {
            return None;
        }
        if !untracked.compared_by_content.is_empty() {
            let conversion = verbatim_rule(repo, dir, &untracked.compared_by_content)?;
            let is_stored_verbatim = |path: &RepoPath| {
                std::fs::read(path.to_fs_path(dir)).is_ok_and(|bytes| conversion.accepts(&bytes))
            };
            let is_link = |path: &RepoPath| path.to_fs_path(dir).is_symlink();
            if !untracked.compared_by_content.iter().all(|path| is_link(path) || is_stored_verbatim(path)) {
                return None;
            }
        }
        untracked.ignored.sort();
        untracked.untracked_folders.sort();
        Some(ScanFacts {
            index_version: index,
            is_index_rewritable: is_simple,
            head_commit: commit,
            entries,
            untracked,
        })
    }

    /// Returns the differences from HEAD.
    pub fn worktree_status(&self) -> WorktreeStatus {
        WorktreeStatus { entries: self.entries.clone() }
    }

    /// Returns the topmost untracked folders at the time of the scan, which contain no tracked file and are
    /// not ignored; none if an untracked folder contains something ignored.
    pub fn untracked_folders(&self) -> Option<&[RepoPath]> {
        (!self.untracked.has_nested_ignored).then_some(&self.untracked.untracked_folders)
    }
}

/// Queries git for the ignored files and folders of the worktree at `dir`; a folder stands for everything in
/// it.
pub(crate) fn query_ignored(repo: &Repo, dir: &Path) -> Result<Vec<RepoPath>, Error> {
    let list_args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard"];
    let out = repo.git_in(dir).args(list_args).arg("--directory").run()?;
    let mut paths: Vec<RepoPath> =
        out.nul_separated_fields().map(|f| RepoPath::new(f.strip_suffix(b"/").unwrap_or(f))).collect();
    // With `--directory`, git leaves out a folder that stands in the place of a file of the index.
    let replaced_files = files_replaced_by_folders(repo, dir)?;
    if !replaced_files.is_empty() {
        let listed = repo.git_in(dir).args(list_args).run()?;
        let inside = listed.nul_separated_fields().map(RepoPath::new);
        paths.extend(inside.filter(|path| path.parents().any(|up| replaced_files.contains(&up))));
        paths.sort();
        paths.dedup();
    }
    Ok(paths)
}

/// Returns files of the index of the worktree at `dir` that are folders on disk.
fn files_replaced_by_folders(repo: &Repo, dir: &Path) -> Result<BTreeSet<RepoPath>, Error> {
    let out = repo.git_in(dir).args(["ls-files", "-z", "--stage"]).run()?;
    // A submodule is a folder.
    let files = out.nul_separated_fields().filter(|field| !field.starts_with(b"160000 "));
    let paths = files.filter_map(|field| Some(RepoPath::new(field.splitn(2, |b| *b == b'\t').nth(1)?)));
    Ok(paths.filter(|path| path.to_fs_path(dir).symlink_metadata().is_ok_and(|meta| meta.is_dir())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_repo::TestRepo;
    use crate::status::status_query::query_git_status;

    /// Scripts that change a worktree. The value is whether a scan without git is certain afterwards.
    const WORKTREE_CHANGES: &[(&str, bool)] = &[
        ("true", true),
        ("echo more >>a; echo x >d/new; mkdir -p u/v/w u/e; echo x >u/v/f", true),
        // The length stays the same.
        ("echo b >a", true),
        ("printf 'x\\r' >a; touch -d 2001-01-01 a", true),
        ("printf 'x\\r' >a; echo '* text' >.git/info/attributes", false),
        ("echo b >a; echo '* text eol=lf' >.git/info/attributes", true),
        ("echo b >a; echo 'a filter=x' >.git/info/attributes", false),
        ("echo b >a; git config core.autocrlf input", false),
        ("ln -sfn b link", true),
        ("rm a d/e/c; rmdir d/e", true),
        ("rm -r d", true),
        ("mkdir -p out/in d/out; echo x >out/in/f; echo x >d/out/f; echo x >x.o; echo x >d/x.o", true),
        ("mkdir empty empty/below d/out", true),
        (
            "git add -f d/b; mkdir -p kept; echo x >kept/f; git add -f kept/f; git commit -qm kept; echo kept/ >>.git/info/exclude; echo x >kept/g",
            true,
        ),
        // Ignored paths in a folder that is not ignored.
        ("mkdir -p u/out; echo x >u/f; echo x >u/x.o", true),
        ("mkdir -p u/out/in", true),
        ("mkfifo x.o", false),
        ("mkfifo d/pipe", false),
        ("mkdir u; mkfifo u/pipe", false),
        ("git init -q nested", false),
        ("git init -q out", true),
        ("echo more >>a; git add a", false),
        ("echo n >n; git add -N n", false),
        ("git update-index --assume-unchanged a; echo more >>a", false),
        ("git update-index --skip-worktree a", false),
        ("git update-index --index-version 4; echo more >>a", true),
        ("git update-index --split-index; echo more >>a", true),
        ("chmod +x a", false),
        ("rm a; mkdir a", false),
        ("rm a; mkdir -p a/out; echo x >a/x.o; echo x >a/out/f; echo x >a/f", false),
        ("rm -r d; echo x >d", false),
        ("git checkout -q --detach; echo more >>a", true),
        ("git checkout -q --orphan none", false),
        ("for n in $(seq 40); do echo $n >m$n; done; git add .; git commit -qm many; rm m*; echo x >m", true),
    ];

    fn sorted(mut paths: Vec<RepoPath>) -> Vec<RepoPath> {
        paths.sort();
        paths
    }

    /// Promise: worktree/status-scan
    #[test]
    fn scan_agrees_with_git() {
        for (change, is_certain) in WORKTREE_CHANGES {
            let test_repo = TestRepo::new();
            test_repo.run_script(
                "repo",
                "mkdir -p d/e; echo a >a; echo b >d/b; echo c >d/e/c; ln -s a link; printf 'out/\\n*.o\\n' >.gitignore
                git add -A; git commit -qm first",
            );
            test_repo.run_script("repo", &format!("({change}) >/dev/null 2>&1"));
            let (dir, git_dir) = (test_repo.parent_dir.join("repo"), test_repo.parent_dir.join("repo/.git"));
            let repo = Repo::discover(&dir).unwrap();
            let scan = WorktreeScan::scan(&repo, &dir, &git_dir);
            assert_eq!(scan.facts.is_some(), *is_certain, "{change}");
            let git_ignored = sorted(query_ignored(&repo, &dir).unwrap());
            assert_eq!(sorted(scan.ignored_paths(&repo, &dir).unwrap()), git_ignored, "{change}");
            let files = test_repo.run_script("repo", "git ls-files --others --ignored --exclude-standard");
            for file in files.lines().map(RepoPath::new) {
                assert!(
                    file.parents().chain([file.clone()]).any(|up| git_ignored.contains(&up)),
                    "{change}: {file:?}"
                );
            }
            let Some(facts) = &scan.facts else { continue };
            assert_eq!(
                facts.worktree_status(),
                query_git_status(repo.program(), &dir, true).unwrap(),
                "{change}"
            );
            let Some(folders) = facts.untracked_folders() else { continue };
            let git_folders = test_repo.run_script(
                "repo",
                "git ls-files --others --directory --exclude-standard | grep '/$' || true",
            );
            let git_folders = git_folders.lines().map(|line| RepoPath::new(line.trim_end_matches('/')));
            assert_eq!(folders, sorted(git_folders.collect()), "{change}");
        }
    }

    /// Promise: worktree/status-scan
    #[test]
    fn applies_only_to_scanned_index_and_commit() {
        let test_repo = TestRepo::new();
        test_repo.run_script(
            "repo",
            "echo a >a; git add -A; git commit -qm first; git commit -qm other --allow-empty",
        );
        let (dir, git_dir) = (test_repo.parent_dir.join("repo"), test_repo.parent_dir.join("repo/.git"));
        let repo = Repo::discover(&dir).unwrap();
        let id = |name: &str| {
            CommitId::from_hex(test_repo.run_script("repo", &format!("git rev-parse {name}")).as_bytes())
                .unwrap()
        };
        let version = || FileVersion::read(&git_dir.join("index")).unwrap();
        let scan = WorktreeScan::scan(&repo, &dir, &git_dir);
        assert!(scan.facts_if_current(version(), id("HEAD")).is_some());
        assert!(scan.facts_if_current(version(), id("HEAD^")).is_none());
        test_repo.run_script("repo", "echo more >>a; git add a");
        assert!(scan.facts_if_current(version(), id("HEAD")).is_none());
    }
}
