//! In-memory merge of two commits: in process if nothing needs a decision, otherwise by git, whose result is
//! authoritative.

use std::path::Path;

use super::exact_merge;
use super::merge_drivers::MergeDrivers;
use crate::history::commit::NewCommit;
use crate::history::tree_diff;
use crate::history::tree_diff::TreeFile;
use crate::repository::objects::TempObjectStore;
use crate::{CommitId, Error, Oid, Repo, RepoPath, TreeId};

/// One stage of a conflicted path, as in an index: 1 is the base, 2 ours, 3 theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmergedStage {
    /// Conflicted path.
    pub path: RepoPath,
    /// Stage number: 1, 2 or 3.
    pub stage_number: u8,
    /// Mode and blob of the stage.
    pub side: TreeFile,
}

/// Outcome of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeMergeOutcome {
    /// Merged tree; with conflicts it holds markers.
    pub tree: TreeId,
    /// Whether the merge has no conflict that a person has to resolve.
    pub is_clean: bool,
    /// Stages of every conflicted path.
    pub stages: Vec<UnmergedStage>,
    /// git's messages about conflicts, one line each.
    pub messages: Vec<String>,
}

impl TreeMergeOutcome {
    /// Creates the outcome of a merge without conflicts.
    fn from_clean_tree(tree: TreeId) -> TreeMergeOutcome {
        TreeMergeOutcome { tree, is_clean: true, stages: Vec::new(), messages: Vec::new() }
    }

    /// Returns the conflicted paths, each once.
    pub fn conflicted_paths(&self) -> Vec<RepoPath> {
        let mut out: Vec<RepoPath> = self.stages.iter().map(|s| s.path.clone()).collect();
        out.sort();
        out.dedup();
        out
    }
}

/// Merges the commit `theirs` into `ours` in memory. Attributes come from `ours`, not from the current
/// checkout. On git before 2.41, and if `merge.renormalize` is on, the attribute files are written to
/// `scratch` for that. git always determines the merge base, because more than one may exist.
pub fn merge_commits(
    repo: &Repo,
    ours: CommitId,
    theirs: CommitId,
    scratch: &Path,
    temp_objects: Option<&TempObjectStore>,
) -> Result<TreeMergeOutcome, Error> {
    // Objects in a temporary folder are not visible in process. If objects cannot be read, git reports the
    // error.
    if let (None, Ok(Some(exact))) = (temp_objects, exact_merge::merge_commits(repo, ours, theirs)) {
        return exact.write(repo).map(TreeMergeOutcome::from_clean_tree);
    }
    merge_by_git(repo, (ours, theirs), &[], scratch, temp_objects)
}

/// Returns whether two commits conflict. Objects that git writes to determine it go to `temp_objects`.
pub fn would_conflict(
    repo: &Repo,
    ours: CommitId,
    theirs: CommitId,
    scratch: &Path,
    temp_objects: &TempObjectStore,
) -> Result<bool, Error> {
    if let Ok(Some(_)) = exact_merge::merge_commits(repo, ours, theirs) {
        return Ok(false);
    }
    merge_by_git(repo, (ours, theirs), &[], scratch, Some(temp_objects)).map(|merged| !merged.is_clean)
}

/// Merges `theirs` into `ours` with conflict markers that can be parsed. Each conflict includes its base
/// lines. Its marker lines end in the ids of `ours` and `theirs`, which no file contains by chance.
pub fn merge_with_diff3_markers(
    repo: &Repo,
    ours: CommitId,
    theirs: CommitId,
    scratch: &Path,
) -> Result<TreeMergeOutcome, Error> {
    merge_by_git(repo, (ours, theirs), &["-c", "merge.conflictStyle=diff3"], scratch, None)
}

/// Returns the tree that merging two commits in process results in, without writing it; none if the merge
/// needs a decision by git.
pub fn exact_merge_tree(repo: &Repo, ours: CommitId, theirs: CommitId) -> Result<Option<TreeId>, Error> {
    Ok(exact_merge::merge_commits(repo, ours, theirs)?.map(|exact| exact.id))
}

/// Merges by git, with `git_options` before the git command.
fn merge_by_git(
    repo: &Repo,
    (ours, theirs): (CommitId, CommitId),
    git_options: &[&str],
    scratch: &Path,
    temp_objects: Option<&TempObjectStore>,
) -> Result<TreeMergeOutcome, Error> {
    // A merge that renormalizes also uses attributes that it adds itself, which `--attr-source` would hide.
    let uses_attr_source =
        repo.version()?.has_attr_source() && repo.setting_bool("merge.renormalize") != Some(true);
    let command = if uses_attr_source {
        MergeDrivers::load(repo, None).apply(repo.git().arg(format!("--attr-source={ours}")))
    } else {
        // git reads attributes from its current folder, so it has to run there too.
        let dir = write_attribute_files(repo, ours, scratch, temp_objects)?;
        let command = repo.git_in(&dir).env("GIT_DIR", repo.common_dir()).env("GIT_WORK_TREE", &dir);
        MergeDrivers::load(repo, Some(&dir)).apply(command)
    };
    let command = TempObjectStore::redirect_writes(temp_objects, command)
        .args(git_options)
        .args(["merge-tree", "--write-tree", "-z", "--messages"])
        .args([ours.to_string(), theirs.to_string()])
        .accept_exit_codes(&[1])
        .mutating()
        .durable();
    let command_text = command.display_args();
    let out = command.run()?;
    parse_merge_output(&out.stdout, out.code == 0).ok_or_else(|| Error::UnexpectedOutput {
        args: command_text,
        fault_or_output: "a field of another form".into(),
    })
}

/// Applies the changes between two trees to a third: `before` and `after` are the two trees, `ours` the
/// third. If the merge needs a decision by git, it writes artificial commits in which `before` is the only
/// merge base.
pub fn merge_trees(
    repo: &Repo,
    (before, ours, after): (TreeId, TreeId, TreeId),
    scratch: &Path,
    temp_objects: Option<&TempObjectStore>,
) -> Result<TreeMergeOutcome, Error> {
    if let (None, Ok(Some(exact))) = (temp_objects, exact_merge::merge_trees(repo, before, ours, after)) {
        return exact.write(repo).map(TreeMergeOutcome::from_clean_tree);
    }
    let write = |tree, parents: &[CommitId]| {
        NewCommit { tree, parents, message: "git-proq: merge" }.write_as_proq(repo, temp_objects)
    };
    let root = write(before, &[])?;
    merge_by_git(repo, (write(ours, &[root])?, write(after, &[root])?), &[], scratch, temp_objects)
}

/// Writes the `.gitattributes` files of a commit to a folder in `scratch` in which git merges instead of a
/// checkout. The folder gets its final name only when all files are in it: with only some of them, git would
/// merge by other rules.
pub(crate) fn write_attribute_files(
    repo: &Repo,
    commit: CommitId,
    scratch: &Path,
    temp_objects: Option<&TempObjectStore>,
) -> Result<std::path::PathBuf, Error> {
    let dir = scratch.join(format!("attributes-{commit}"));
    if dir.exists() {
        return Ok(dir);
    }
    let partial_dir = scratch.join(format!("attributes-{commit}.part"));
    if partial_dir.exists() {
        std::fs::remove_dir_all(&partial_dir).map_err(Error::io("remove", &partial_dir))?;
    }
    std::fs::create_dir_all(&partial_dir).map_err(Error::io("create", &partial_dir))?;
    // A commit that was merged only for a forecast has its objects in the temporary folder too.
    let git_command = || TempObjectStore::redirect_writes(temp_objects, repo.git());
    let listed = git_command().args(["ls-tree", "-r", "-z", "--full-tree"]).arg(commit.to_string()).run()?;
    let files = listed.nul_separated_fields().filter_map(tree_diff::parse_tree_entry);
    for (path, side) in files.filter(|(p, _)| p.ends_with_name(b".gitattributes")) {
        let text = git_command().args(["cat-file", "blob"]).arg(side.oid.to_string()).run()?;
        let file = path.to_fs_path(&partial_dir);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        std::fs::write(&file, text.stdout).map_err(Error::io("write", &file))?;
    }
    std::fs::rename(&partial_dir, &dir).map_err(Error::io("rename", &partial_dir))?;
    Ok(dir)
}

/// Parses the output of `git merge-tree`: `<tree>\0 (<mode> <id> <stage>\t<path>\0)* \0 (<n>\0 <path>\0 × n
/// <kind>\0 <message>\0)*`
fn parse_merge_output(bytes: &[u8], is_clean: bool) -> Option<TreeMergeOutcome> {
    let mut fields = bytes.split(|b| *b == 0);
    let tree = TreeId::from_hex(fields.next()?)?;
    let mut stages = Vec::new();
    for field in fields.by_ref().take_while(|f| !f.is_empty()) {
        stages.push(parse_stage(field)?);
    }
    let mut messages = Vec::new();
    while let Some(count) = fields.next().filter(|f| !f.is_empty()) {
        let number = std::str::from_utf8(count).ok().and_then(|n| n.parse::<usize>().ok());
        let Some(count) = number else {
            // Some versions of git, 2.39 among them, end with advice about conflicts in submodules, intended
            // for users.
            if fields.next().is_some() {
                return None;
            }
            break;
        };
        for _ in 0..count {
            fields.next()?;
        }
        let kind = fields.next()?;
        let text = String::from_utf8_lossy(fields.next()?);
        if kind.starts_with(b"CONFLICT") {
            messages.extend(text.lines().map(ToOwned::to_owned));
        }
    }
    Some(TreeMergeOutcome { tree, is_clean, stages, messages })
}

/// Parses one stage: `<mode> <id> <stage>\t<path>`
pub(crate) fn parse_stage(field: &[u8]) -> Option<UnmergedStage> {
    let tab = field.iter().position(|b| *b == b'\t')?;
    let header = std::str::from_utf8(&field[..tab]).ok()?;
    let mut columns = header.split(' ');
    let mode = u32::from_str_radix(columns.next()?, 8).ok()?;
    let oid = Oid::from_hex(columns.next()?.as_bytes())?;
    let number = columns.next()?.parse().ok()?;
    Some(UnmergedStage {
        path: RepoPath::new(&field[tab + 1..]),
        stage_number: number,
        side: TreeFile { mode, oid },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_conflict_stages_and_messages() {
        let id = "a".repeat(40);
        let text = format!(
            "{id}\x00100644 {id} 1\tx y\x00100644 {id} 2\tx y\0\x001\0x y\0Auto-merging\0Auto-merging x y\n\x002\0x y\0z\0CONFLICT (contents)\0CONFLICT (content): Merge conflict in x y\n\0"
        );
        let merged = parse_merge_output(text.as_bytes(), false).unwrap();
        assert_eq!(merged.stages.len(), 2);
        assert_eq!(merged.conflicted_paths(), [RepoPath::new("x y")]);
        assert_eq!(merged.messages, ["CONFLICT (content): Merge conflict in x y"]);
    }

    #[test]
    fn ignores_advice_after_messages() {
        let id = "a".repeat(40);
        let text = format!(
            "{id}\x00160000 {id} 2\tsub\0\x001\0sub\0CONFLICT (contents)\0CONFLICT (submodule): in sub\n\0"
        );
        let advised =
            format!("{text}Recursive merging with submodules currently only supports trivial cases.\n");
        let merged = parse_merge_output(advised.as_bytes(), false).unwrap();
        assert_eq!(merged, parse_merge_output(text.as_bytes(), false).unwrap());
        assert_eq!(merged.messages, ["CONFLICT (submodule): in sub"]);
        assert_eq!(parse_merge_output(format!("{text}no number\0").as_bytes(), false), None);
    }

    #[test]
    fn parses_clean_merge() {
        let id = "a".repeat(40);
        let merged = parse_merge_output(format!("{id}\0").as_bytes(), true).unwrap();
        assert!(merged.is_clean && merged.stages.is_empty() && merged.messages.is_empty());
    }
}
