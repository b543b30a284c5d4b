//! Merge forecasts that need git: batches for `git merge-tree --stdin`, with new objects in a temporary
//! folder.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::forecast::{PathConflict, conflicting_hunks};
use super::merge_drivers::MergeDrivers;
use super::tree_merge::{UnmergedStage, parse_stage, write_attribute_files};
use crate::base::parallel::parallel_map;
use crate::history::commit::NewCommit;
use crate::history::tree_diff::TreeFile;
use crate::program::command::Program;
use crate::repository::objects::{TempObjectStore, open_object_store};
use crate::repository::tree_reader::TreeReader;
use crate::{CommitId, Error, Oid, Repo, RepoPath, TreeId};

/// Exit codes of `git merge-tree` other than zero after which the results that it printed count: it gave up, or
/// crashed, within a batch.
const PARTIAL_BATCH_EXIT_CODES: &[i32] = &[-1, 1, 2, 128, 129, 134, 255];
/// Largest group of merges that is not divided among threads.
const MAX_UNSPLIT_BATCH: usize = 8;
/// Kind of a conflict for which git reports no kind.
const UNKNOWN_CONFLICT_KIND: &str = "conflict";

/// Forecast of one merge by git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitForecast {
    /// Conflicting paths; empty when the merge is clean.
    Merged(Vec<PathConflict>),
    /// Git gave no result.
    Failed,
}

/// Batch of merges for one `git merge-tree` process, with its folder and settings.
struct MergeTreeBatch<'a> {
    /// Folder in which git runs.
    merge_dir: PathBuf,
    attribute_source: AttributeSource,
    /// Merge drivers that the user has configured.
    drivers: MergeDrivers,
    /// Pairs of commits to merge, each with its position in the results.
    pairs: Vec<(usize, (CommitId, CommitId))>,
    program: &'a Program,
    temp_objects: &'a TempObjectStore,
}

/// Source from which `git merge-tree` reads attributes.
#[derive(Clone)]
enum AttributeSource {
    /// Commit, which git gets as `--attr-source`.
    Commit(CommitId),
    /// Attribute files in the folder that git is started in, for versions without `--attr-source`. The value
    /// is the repository's git directory.
    FolderWithGitDir(PathBuf),
}

/// Forecasts with git the merge of the second commit of each pair into the first. New objects go to
/// `temp_objects`, files that git needs to `scratch`.
pub fn forecast_with_git(
    repo: &Repo,
    temp_objects: &TempObjectStore,
    scratch: &Path,
    pairs: &[(CommitId, CommitId)],
) -> Result<Vec<GitForecast>, Error> {
    let reader = TreeReader::new(open_object_store(repo, Some(temp_objects))?);
    let mut batches = Vec::new();
    for group in group_by_attributes(&reader, pairs)? {
        let batch_size = if group.len() <= MAX_UNSPLIT_BATCH { group.len() } else { group.len().div_ceil(2) };
        for chunk in group.chunks(batch_size.max(1)) {
            let ours = chunk[0].1.0;
            let (dir, attribute_source) = match repo.version()?.has_attr_source() {
                true => (repo.command_dir().to_owned(), AttributeSource::Commit(ours)),
                false => (
                    write_attribute_files(repo, ours, scratch, Some(temp_objects))?,
                    AttributeSource::FolderWithGitDir(repo.common_dir().to_owned()),
                ),
            };
            let drivers = match attribute_source {
                AttributeSource::Commit(_) => MergeDrivers::load(repo, None),
                AttributeSource::FolderWithGitDir(_) => MergeDrivers::load(repo, Some(&dir)),
            };
            batches.push(MergeTreeBatch {
                merge_dir: dir,
                attribute_source,
                drivers,
                pairs: chunk.to_vec(),
                program: repo.program(),
                temp_objects,
            });
        }
    }
    let results = parallel_map(&batches, |batch| batch.run(&batch.pairs));
    let mut forecasts = vec![GitForecast::Failed; pairs.len()];
    for (index, record) in results.into_iter().flatten() {
        let (ours, theirs) = pairs[index];
        forecasts[index] = record.strip_side_suffixes([ours, theirs]).into_forecast(&reader);
    }
    Ok(forecasts)
}

type IndexedCommitPair = (usize, (CommitId, CommitId));

/// Groups the pairs whose merges use the same attributes.
fn group_by_attributes(
    reader: &TreeReader,
    pairs: &[(CommitId, CommitId)],
) -> Result<Vec<Vec<IndexedCommitPair>>, Error> {
    let mut cached_keys = HashMap::new();
    let mut groups: BTreeMap<Vec<u8>, Vec<IndexedCommitPair>> = BTreeMap::new();
    for (index, pair) in pairs.iter().enumerate() {
        let tree = reader.tree_of(pair.0)?;
        let key = attributes_key(reader, tree, &mut cached_keys)?;
        groups.entry(key).or_default().push((index, *pair));
    }
    Ok(groups.into_values().collect())
}

/// Returns the paths and ids of all attribute files of a tree, as bytes to compare.
fn attributes_key(
    reader: &TreeReader,
    tree: gix::ObjectId,
    cached_keys: &mut HashMap<gix::ObjectId, Vec<u8>>,
) -> Result<Vec<u8>, Error> {
    if let Some(key) = cached_keys.get(&tree) {
        return Ok(key.clone());
    }
    let mut key = Vec::new();
    for (name, item) in reader.tree(tree)?.iter() {
        if item.is_tree() {
            let folder_key = attributes_key(reader, item.id, cached_keys)?;
            if !folder_key.is_empty() {
                key.extend_from_slice(name);
                key.push(b'/');
                key.extend(folder_key);
                key.push(b'\n');
            }
        } else if name == ".gitattributes" {
            key.extend_from_slice(item.id.as_slice());
        }
    }
    cached_keys.insert(tree, key.clone());
    Ok(key)
}

impl MergeTreeBatch<'_> {
    /// Runs git on `pairs` and returns the records with the indexes of their pairs. A merge that makes git
    /// crash also loses the records that git had not printed yet, so the missing pairs run again in halves.
    fn run(&self, pairs: &[IndexedCommitPair]) -> Vec<(usize, MergeTreeRecord)> {
        let lines: Vec<String> =
            pairs.iter().map(|(_, (ours, theirs))| format!("{ours} {theirs}\n")).collect();
        let out = self.command().input(lines.concat()).accept_exit_codes(PARTIAL_BATCH_EXIT_CODES).run();
        let bytes = out.map(|out| out.stdout).unwrap_or_default();
        let mut records: Vec<(usize, MergeTreeRecord)> =
            pairs.iter().map(|(at, _)| *at).zip(parse_records(&bytes)).collect();
        let unanswered = &pairs[records.len()..];
        if pairs.len() > 1 {
            let (first, second) = unanswered.split_at(unanswered.len().div_ceil(2));
            for half in [first, second].into_iter().filter(|half| !half.is_empty()) {
                records.extend(self.run(half));
            }
        }
        records
    }

    fn command(&self) -> crate::program::command::Command {
        let command = self.program.command_in(&self.merge_dir);
        let command = match &self.attribute_source {
            AttributeSource::Commit(commit) => command.arg(format!("--attr-source={commit}")),
            AttributeSource::FolderWithGitDir(git_dir) => {
                command.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", &self.merge_dir)
            }
        };
        let command = self.drivers.apply(command);
        // With messages, git prints clean merges in the same form as all others.
        TempObjectStore::redirect_writes(Some(self.temp_objects), command).args([
            "merge-tree",
            "--write-tree",
            "-z",
            "--messages",
            "--stdin",
        ])
    }
}

/// Record of one merge in the output of `git merge-tree`.
#[derive(Debug, Default)]
struct MergeTreeRecord {
    /// Whether git reported no conflict.
    clean: bool,
    /// Stages of all conflicting paths.
    stages: Vec<UnmergedStage>,
    /// Kind of conflict of each path.
    conflict_kinds: Vec<(RepoPath, String)>,
}

/// Parses `(<1 or 0>\0 <tree>\0 (<stage>\0)* \0 (<n>\0 <path>\0 × n <kind>\0 <message>\0)* \0)*` up to the
/// last complete record.
fn parse_records(bytes: &[u8]) -> Vec<MergeTreeRecord> {
    // Bytes after the last NUL are an incomplete field.
    let end = bytes.iter().rposition(|b| *b == 0).unwrap_or(0);
    let mut fields = bytes[..end].split(|b| *b == 0);
    let mut records = Vec::new();
    while let Some(record) = parse_record(&mut fields) {
        records.push(record);
    }
    records
}

fn parse_record<'b>(fields: &mut impl Iterator<Item = &'b [u8]>) -> Option<MergeTreeRecord> {
    let clean = match fields.next()? {
        b"1" => true,
        b"0" => false,
        _ => return None,
    };
    Oid::from_hex(fields.next()?)?;
    let mut record = MergeTreeRecord { clean, ..MergeTreeRecord::default() };
    loop {
        match fields.next()? {
            b"" => break,
            field => record.stages.push(parse_stage(field)?),
        }
    }
    loop {
        let count = match fields.next()? {
            b"" => return Some(record),
            count => std::str::from_utf8(count).ok()?.parse::<usize>().ok()?,
        };
        let mut paths = Vec::new();
        for _ in 0..count {
            paths.push(RepoPath::new(fields.next()?));
        }
        let kind = String::from_utf8_lossy(fields.next()?);
        fields.next()?;
        if let Some(kind) = kind.strip_prefix("CONFLICT (").and_then(|k| k.strip_suffix(')')) {
            record.conflict_kinds.extend(paths.into_iter().map(|path| (path, kind.to_owned())));
        }
    }
}

impl MergeTreeRecord {
    /// Strips the suffix from `path~<commit>`, which is git's name for a file that cannot stay at its path.
    fn strip_side_suffixes(mut self, sides: [CommitId; 2]) -> MergeTreeRecord {
        let suffixes = sides.map(|side| format!("~{side}"));
        let stages = self.stages.iter_mut().map(|stage| &mut stage.path);
        for path in stages.chain(self.conflict_kinds.iter_mut().map(|(path, _)| path)) {
            for suffix in &suffixes {
                if let Some(original) = path.as_bytes().strip_suffix(suffix.as_bytes()) {
                    *path = RepoPath::new(original);
                }
            }
        }
        self
    }

    fn into_forecast(self, reader: &TreeReader) -> GitForecast {
        if self.clean {
            return GitForecast::Merged(Vec::new());
        }
        let mut paths: Vec<RepoPath> = self.stages.iter().map(|s| s.path.clone()).collect();
        if paths.is_empty() {
            paths.extend(self.conflict_kinds.iter().map(|(path, _)| path.clone()));
        }
        paths.sort();
        paths.dedup();
        GitForecast::Merged(paths.into_iter().map(|path| self.path_conflict(reader, path)).collect())
    }

    fn path_conflict(&self, reader: &TreeReader, path: RepoPath) -> PathConflict {
        let listed = self.conflict_kinds.iter().find(|(p, _)| *p == path);
        let mut kind = listed.map_or_else(|| UNKNOWN_CONFLICT_KIND.to_owned(), |(_, kind)| kind.clone());
        let side = |number| self.stages.iter().find(|s| s.path == path && s.stage_number == number);
        let [base, ours, theirs] = [1, 2, 3].map(|n| side(n).map(|s| s.side));
        let mut hunks = Vec::new();
        if let (Some(ours), Some(theirs), "contents") = (ours, theirs, kind.as_str()) {
            let sides = [Some(ours), Some(theirs), base].into_iter().flatten();
            if sides.into_iter().all(|side| side.mode & 0o170_000 == 0o100_000) {
                // Git has reported the conflict; the hunks are only extra detail.
                hunks = conflicting_hunks(reader, base.map(TreeFile::blob), ours.blob(), theirs.blob())
                    .unwrap_or_default();
            }
            if base.is_none() {
                "add/add".clone_into(&mut kind);
            }
        }
        PathConflict { path, kind, hunks }
    }
}

/// Writes a commit of `tree` on top of `parent` to a temporary object folder.
pub fn write_temporary_commit(
    repo: &Repo,
    temp_objects: &TempObjectStore,
    tree: TreeId,
    parent: CommitId,
) -> Result<CommitId, Error> {
    NewCommit { tree, parents: &[parent], message: "git-proq: uncommitted work" }
        .write_as_proq(repo, Some(temp_objects))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_only_complete_records() {
        let id = "a".repeat(40);
        let clash = format!(
            "0\0{id}\x00100644 {id} 2\tx\x00100644 {id} 3\tx\0\x001\0x\0Auto-merging\0m\n\x001\0x\0CONFLICT (contents)\0m\n\0\0"
        );
        let clean = format!("1\0{id}\0\0\0");
        let output = format!("{clean}{clash}{clean}");
        let records = parse_records(output.as_bytes());
        assert_eq!(records.iter().map(|raw| raw.clean).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(records[1].conflict_kinds, [(RepoPath::new("x"), "contents".to_owned())]);
        assert_eq!(records[1].stages.len(), 2);
        for cut in 1..clash.len() {
            assert_eq!(parse_records(format!("{clean}{}", &clash[..cut]).as_bytes()).len(), 1, "{cut}");
        }
    }
}
