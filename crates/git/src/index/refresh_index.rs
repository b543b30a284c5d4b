//! In-process refresh of a few index entries, written back in the index file's own format: the same as `git
//! update-index --refresh` where only few files can have changed. Nothing else in the index changes.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

use proq_base::fail_points;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::index_lock::NewIndex;
use super::no_conversion::{MAX_BLOB_BYTES, VerbatimRule, verbatim_rule};
use super::raw_index;
use super::raw_index::{RawEntry, RawIndex};
use crate::history::tree_diff::TreeFile;
use crate::repository::attributes::attribute_paths_for;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, Oid, Repo, RepoPath};

/// Maximum number of files that are compared; for more files git is faster.
const MAX_FILES_COMPARED: usize = 256;

/// Upper limit of the clock tick with which file systems record modification times.
const FILE_TIME_TICK: Duration = Duration::from_millis(10);

/// Result of comparing a file with its index entry.
enum FileComparison {
    /// The file has the entry's content; its stat data is to be recorded.
    Same(Stat),
    /// The file differs, or is missing; its stat data if it exists.
    Different(Option<Stat>),
}

/// Planned refresh of an index.
pub(crate) struct IndexRefresh {
    old_index: RawIndex,
    /// Byte offsets of the entries to refresh, in order.
    entry_offsets: BTreeSet<u32>,
    verbatim_rule: VerbatimRule,
}

impl IndexRefresh {
    /// Plans a refresh of `index_file`, an index of the tree, for the files of `paths` that it contains.
    /// Returns `None` for cases that are left to git.
    pub fn plan(
        tree: &WorktreeContext<'_>,
        index_file: &Path,
        paths: &BTreeSet<&RepoPath>,
    ) -> Option<IndexRefresh> {
        let entries = read_rewritable_index(tree, index_file)?;
        // A racy entry, as new as its index, could pass as unchanged in a newer index.
        let mut positions: BTreeSet<u32> = entries.racy_entry_offsets().collect();
        positions.extend(paths.iter().filter_map(|path| entries.offset_of(path.as_bytes())));
        IndexRefresh::from_entry_offsets(tree, entries, positions)
    }

    /// Plans a refresh of `index_file` for the files of `paths`. It also covers files whose stat data differs
    /// in `later_index`, an index written later for the same worktree, although their content id is the same.
    pub(crate) fn plan_from_later_index(
        tree: &WorktreeContext<'_>,
        index_file: &Path,
        later_index: &Path,
        paths: &BTreeSet<&RepoPath>,
    ) -> Option<IndexRefresh> {
        let (entries, later) = (
            read_rewritable_index(tree, index_file)?,
            RawIndex::read(later_index, tree.repo.gix.object_hash())?,
        );
        let mut positions: BTreeSet<u32> = entries.racy_entry_offsets().collect();
        positions.extend(
            entries_with_same_content(&entries, &later)
                .filter(|(position, later_entry)| !later_entry.has_same_stat_and_id(entries.entry(*position)))
                .map(|(position, _)| position),
        );
        positions.extend(paths.iter().filter_map(|path| entries.offset_of(path.as_bytes())));
        IndexRefresh::from_entry_offsets(tree, entries, positions)
    }

    fn from_entry_offsets(
        tree: &WorktreeContext<'_>,
        entries: RawIndex,
        mut positions: BTreeSet<u32>,
    ) -> Option<IndexRefresh> {
        // git refreshes no other entries either.
        positions.retain(|at| entries.entry(*at).is_compared_by_git());
        let is_file = |at: &u32| {
            matches!(
                entries.entry(*at).mode(),
                raw_index::FILE_MODE | raw_index::EXECUTABLE_MODE | raw_index::SYMLINK_MODE
            )
        };
        if positions.len() > MAX_FILES_COMPARED || !positions.iter().all(is_file) {
            return None;
        }
        let paths: Vec<RepoPath> = positions.iter().map(|at| RepoPath::new(entries.path(*at))).collect();
        // If an attribute file is missing in a worktree, git uses the one in the index.
        let is_missing = |file: &RepoPath| {
            entries.find(file.as_bytes()).is_some()
                && !file.to_fs_path(tree.dir).symlink_metadata().is_ok_and(|m| m.is_file())
        };
        let verbatim_rule = verbatim_rule(tree.repo, tree.dir, &paths)?;
        if attribute_paths_for(paths.iter()).iter().any(is_missing) {
            return None;
        }
        Some(IndexRefresh { old_index: entries, entry_offsets: positions, verbatim_rule })
    }

    /// Returns whether git would write `files` unconverted: the index has each of them with this mode and id,
    /// and no attributes that convert contents. git reads attributes from the index first.
    pub(crate) fn writes_verbatim(&self, tree: &WorktreeContext<'_>, files: &[(RepoPath, TreeFile)]) -> bool {
        let matches_entry = |(path, side): &(RepoPath, TreeFile)| {
            let entry = self.old_index.find(path.as_bytes());
            entry.is_some_and(|e| {
                e.is_compared_by_git() && e.mode() == side.mode && e.id() == side.oid.0.as_slice()
            })
        };
        let attributes = attribute_paths_for(files.iter().map(|(path, _)| path));
        files.iter().all(matches_entry) && self.old_index.has_no_conversion_rules(tree.repo, &attributes)
    }

    /// Compares the files and builds the new index; `None` for cases that are left to git.
    pub fn build(self, tree: &WorktreeContext<'_>) -> Option<NewIndex> {
        self.build_as_of(SystemTime::now() - FILE_TIME_TICK, tree)
    }

    /// Compares the files and builds the new index, dated `start_time`, when the comparison starts. A file
    /// that is written during the comparison is then as new as the index or newer, and git reads it again.
    fn build_as_of(mut self, start_time: SystemTime, tree: &WorktreeContext<'_>) -> Option<NewIndex> {
        for position in std::mem::take(&mut self.entry_offsets) {
            let entry = self.old_index.entry(position);
            match self.compare_file(tree, entry)? {
                FileComparison::Same(meta) => self.old_index.update_stat(position, &meta),
                FileComparison::Different(meta) => {
                    let could_pass_as_same =
                        |meta: Stat| entry.stat_matches(&meta) || self.old_index.is_racy(entry);
                    if meta.is_some_and(could_pass_as_same) {
                        self.old_index.clear_file_size(position);
                    }
                }
            }
        }
        Some(NewIndex::InMemory(self.old_index.into_checksummed_bytes()?, start_time))
    }

    /// Compares a file with its entry; `None` if git has to do it.
    fn compare_file(&self, tree: &WorktreeContext<'_>, entry: RawEntry<'_>) -> Option<FileComparison> {
        let path = RepoPath::new(entry.path());
        let file = path.to_fs_path(tree.dir);
        let is_real_folder =
            |parent: RepoPath| parent.to_fs_path(tree.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let meta = match rustix::fs::lstat(&file) {
            Ok(meta) if path.parents().all(is_real_folder) => meta,
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => return Some(FileComparison::Different(None)),
            Err(_) => return None,
        };
        let (kind, executable) = (FileType::from_raw_mode(meta.st_mode), meta.st_mode & 0o100 != 0);
        let bytes = match (kind.is_symlink(), kind.is_file()) {
            (true, _) => std::fs::read_link(&file).ok()?.into_os_string().into_encoded_bytes(),
            (_, true) if u64::try_from(meta.st_size).ok()? <= MAX_BLOB_BYTES => std::fs::read(&file).ok()?,
            _ => return None,
        };
        let has_same_mode = match entry.mode() {
            raw_index::SYMLINK_MODE => kind.is_symlink(),
            mode => kind.is_file() && executable == (mode == raw_index::EXECUTABLE_MODE),
        };
        if kind.is_file() && !self.verbatim_rule.accepts(&bytes) {
            return None;
        }
        let is_same = has_same_mode && tree.repo.blob_id(&bytes)?.0.as_slice() == entry.id();
        Some(if is_same { FileComparison::Same(meta) } else { FileComparison::Different(Some(meta)) })
    }
}

/// Returns the entries of `later` that have the same path and content id in `entries`, each with its byte
/// offset in `entries`.
fn entries_with_same_content<'e>(
    entries: &'e RawIndex,
    later: &'e RawIndex,
) -> impl Iterator<Item = (u32, RawEntry<'e>)> {
    let mut remaining = later.entry_offsets();
    entries.entry_offsets().iter().filter_map(move |position| {
        let entry = entries.entry(*position);
        while remaining.first().is_some_and(|first| later.path(*first) < entry.path()) {
            remaining = &remaining[1..];
        }
        let later_entry = later.entry(*remaining.first()?);
        (later_entry.path() == entry.path() && later_entry.id() == entry.id())
            .then_some((*position, later_entry))
    })
}

/// Returns files for which `later_index` records another size than `index_file` although the content id is
/// the same: filters wrote them again. git treats such a file as edited without reading it.
pub(crate) fn files_with_other_size(
    repo: &Repo,
    index_file: &Path,
    later_index: &Path,
) -> Vec<(RepoPath, TreeFile)> {
    let read_index = |file: &Path| RawIndex::read(file, repo.gix.object_hash());
    let (Some(entries), Some(later)) = (read_index(index_file), read_index(later_index)) else {
        return Vec::new();
    };
    let with_other_size = |(position, later_entry): (u32, RawEntry<'_>)| {
        let entry = entries.entry(position);
        // git reads a file without a recorded size anyway, and no more than necessary is written.
        let is_other = ![0, later_entry.size()].contains(&entry.size()) && later_entry.size() != 0;
        let differs = entry.is_compared_by_git() && entry.mode() == later_entry.mode() && is_other;
        let oid = gix::ObjectId::try_from(entry.id()).ok().filter(|_| differs).map(Oid)?;
        Some((RepoPath::new(entry.path()), TreeFile { mode: entry.mode(), oid }))
    };
    entries_with_same_content(&entries, &later).filter_map(with_other_size).collect()
}

/// Reads an index that can be written again in the format of its file.
fn read_rewritable_index(tree: &WorktreeContext<'_>, index_file: &Path) -> Option<RawIndex> {
    if fail_points::is_git_forced() {
        return None;
    }
    RawIndex::read(index_file, tree.repo.gix.object_hash()).filter(RawIndex::is_rewritable)
}

/// Clears the stat data of files in an index, so that git reads the files.
pub(crate) fn clear_entry_stats(
    tree: &WorktreeContext<'_>,
    index: &Path,
    files: &[(RepoPath, TreeFile)],
) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let mut input = Vec::new();
    for (path, side) in files {
        input.extend_from_slice(format!("{:o} {}\t", side.mode, side.oid).as_bytes());
        input.extend_from_slice(path.as_bytes());
        input.push(0);
    }
    let call = tree.repo.git_in(tree.dir).args(["update-index", "-z", "--index-info"]);
    call.use_index(index).input(input).mutating().run().map(drop)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::base::test_repo::TestRepo;

    /// Scripts that change a repository after its index was written, and whether the refresh works without
    /// git then.
    const CHANGES: &[(&str, bool)] = &[
        ("true", true),
        ("touch -d 2002-02-02 a d/b", true),
        ("echo other >a; touch -d 2002-02-02 d/b", true),
        // The new content has the same size.
        ("echo b >a", true),
        ("rm a; ln -sfn d/b link; chmod +x d/b", true),
        ("rm -r d; ln -s e d", true),
        ("rm a; mkdir a", false),
        ("echo '* text' >.gitattributes; touch a", true),
        ("printf 'x\\r\\n' >a", true),
        ("printf 'x\\r\\n' >a; echo '* text' >.git/info/attributes", false),
        (
            "echo '* text' >e/.gitattributes; touch -d 2001-01-01 e/.gitattributes; git add e; rm e/.gitattributes; touch -d 2002-02-02 e/f",
            false,
        ),
        ("echo 'a filter=x' >.git/info/attributes", false),
        ("git config core.autocrlf input", false),
        ("git config core.fileMode false", false),
        ("mkdir -p .git/hooks; echo >.git/hooks/post-index-change", false),
        ("git update-index --split-index", false),
        ("git update-index --index-version 4", false),
        ("git update-index --force-untracked-cache", false),
        // Simulates `index.skipHash`, which is too new for some versions of git.
        (
            "n=$(($(stat -c %s .git/index) - 20)); dd if=/dev/zero of=.git/index bs=1 seek=$n count=20 conv=notrunc 2>/dev/null",
            false,
        ),
        ("git update-index --assume-unchanged a; touch -d 2002-02-02 a", true),
        ("echo n >n; git add -N n; touch -d 2002-02-02 a n", true),
    ];

    struct IndexFixture {
        test_repo: TestRepo,
        dir: PathBuf,
    }

    impl IndexFixture {
        fn new() -> IndexFixture {
            let test_repo = TestRepo::new();
            test_repo.run_script(
                "repo",
                "mkdir -p d e; echo a >a; echo b >d/b; echo f >e/f; ln -s a link; git add -A; git commit -qm first
                find . -path ./.git -prune -o -exec touch -h -d 2001-01-01 {} +; git update-index -q --refresh; mkdir ../scratch",
            );
            let dir = test_repo.parent_dir.join("repo");
            IndexFixture { test_repo, dir }
        }

        /// Refreshes the entries of `paths` and writes the new index to `../scratch/index`. Returns false if
        /// the case is left to git.
        fn refresh(&self, paths: &[&str]) -> bool {
            self.refresh_as_of(SystemTime::now(), paths)
        }

        fn refresh_as_of(&self, start_time: SystemTime, paths: &[&str]) -> bool {
            let repo = Repo::discover(&self.dir).unwrap();
            let scratch = self.test_repo.parent_dir.join("scratch");
            let git_dir = self.dir.join(".git");
            let index = git_dir.join("index");
            let tree = WorktreeContext {
                repo: &repo,
                dir: &self.dir,
                git_dir,
                scratch: &scratch,
                off_limits: None,
                warn: &|_| (),
            };
            let paths: Vec<RepoPath> = paths.iter().map(|path| RepoPath::new(*path)).collect();
            let plan = IndexRefresh::plan(&tree, &index, &paths.iter().collect());
            let built = plan.and_then(|plan| plan.build_as_of(start_time, &tree));
            let Some(NewIndex::InMemory(bytes, time)) = built else { return false };
            std::fs::write(scratch.join("index"), bytes).unwrap();
            let file = std::fs::File::options().write(true).open(scratch.join("index"));
            file.unwrap().set_modified(time).unwrap();
            true
        }

        fn list_index(&self, index: &str) -> String {
            self.test_repo
                .run_script("repo", &format!("GIT_INDEX_FILE={index} git ls-files --debug --stage -v"))
        }
    }

    /// Promise: worktree/native-index
    #[test]
    fn refreshes_entries_as_git_does() {
        for (change, is_supported) in CHANGES {
            let fixture = IndexFixture::new();
            fixture.test_repo.run_script("repo", change);
            let refreshed = fixture.refresh(&["a", "d/b", "e/f", "link", "missing"]);
            assert_eq!(refreshed, *is_supported, "{change}");
            if refreshed {
                fixture.test_repo.run_script("repo", "cp -p .git/index ../by-git; GIT_INDEX_FILE=$PWD/../by-git git update-index -q --refresh || true");
                assert_eq!(
                    fixture.list_index("../scratch/index"),
                    fixture.list_index("../by-git"),
                    "{change}"
                );
                let fsck_script =
                    "cp ../scratch/index .git/index; git fsck --no-dangling 2>&1; git ls-files >/dev/null";
                assert_eq!(fixture.test_repo.run_script("repo", fsck_script), "", "{change}");
            }
        }
    }

    /// Promise: worktree/native-index
    #[test]
    fn keeps_racy_edit_visible_in_next_index() {
        let fixture = IndexFixture::new();
        // The edit has the time of the index, the same size, and the same values of all other stat fields
        // that count.
        let edit = "git config core.trustctime false; git config core.checkStat minimal; touch -d 2001-01-01 .git/index
            echo b >a; touch -d 2001-01-01 a";
        fixture.test_repo.run_script("repo", edit);
        assert_eq!(fixture.test_repo.run_script("repo", "git diff-files --name-only"), "a", "as it is");
        assert!(fixture.refresh(&["d/b"]));
        fixture.test_repo.run_script("repo", "cp -p ../scratch/index .git/index");
        assert_eq!(fixture.test_repo.run_script("repo", "git diff-files --name-only"), "a");
    }

    /// Promise: worktree/native-index
    #[test]
    fn index_time_is_start_of_comparison() {
        let fixture = IndexFixture::new();
        let coarse_stat_config = "git config core.trustctime false; git config core.checkStat minimal";
        fixture.test_repo.run_script("repo", &format!("{coarse_stat_config}; touch -d 2003-01-01 a"));
        let start_time = fixture.dir.join("a").metadata().unwrap().modified().unwrap();
        assert!(fixture.refresh_as_of(start_time, &["a"]));
        fixture.test_repo.run_script("repo", "cp -p ../scratch/index .git/index");
        assert_eq!(fixture.test_repo.run_script("repo", "git diff-files --name-only"), "");
        // Simulates an edit during the comparison of the other files.
        fixture.test_repo.run_script("repo", "echo b >a; touch -d 2003-01-01 a");
        assert_eq!(fixture.test_repo.run_script("repo", "git diff-files --name-only"), "a");
    }
}
