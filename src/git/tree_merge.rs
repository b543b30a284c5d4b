//! Owns merging two commits in memory: in process where nothing needs a decision, else by git, whose verdict counts.

use std::path::Path;

use super::merge_drivers::Drivers;
use super::{Error, NewCommit, Oid, Repo, RepoPath, Side, ThrowAway, diff, exact};

/// One side of one conflicted path, as in an index: 1 is the base, 2 ours, 3 theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stage {
    /// The path.
    pub(crate) path: RepoPath,
    /// 1, 2 or 3.
    pub(crate) number: u8,
    /// The mode and blob of that side.
    pub(crate) side: Side,
}

/// The outcome of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Merged {
    /// The merged tree; with conflicts it holds markers.
    pub(crate) tree: Oid,
    /// Whether nothing needs a person.
    pub(crate) clean: bool,
    /// The sides of every conflicted path.
    pub(crate) stages: Vec<Stage>,
    /// What git says about conflicts, one line each.
    pub(crate) messages: Vec<String>,
}

impl Merged {
    /// A merge in which nobody had to decide anything.
    fn without_decisions(tree: Oid) -> Merged {
        Merged { tree, clean: true, stages: Vec::new(), messages: Vec::new() }
    }

    /// The conflicted paths, each once.
    pub(crate) fn paths(&self) -> Vec<RepoPath> {
        let mut out: Vec<RepoPath> = self.stages.iter().map(|s| s.path.clone()).collect();
        out.sort();
        out.dedup();
        out
    }
}

/// Merges `theirs` into `ours`. Attributes come from `ours`, not from whatever is checked out; on git before 2.41,
/// and where `merge.renormalize` is on, they are laid out in `scratch` for that. The merge base is always git's to find:
/// it may be several commits.
pub(crate) fn merge_commits(
    repo: &Repo,
    ours: Oid,
    theirs: Oid,
    scratch: &Path,
    into: Option<&ThrowAway>,
) -> Result<Merged, Error> {
    // Objects that a throw-away folder holds are not seen in process. What cannot be read is git's to explain.
    if let (None, Ok(Some(exact))) = (into, exact::merge_commits(repo, ours, theirs)) {
        return exact.write(repo).map(Merged::without_decisions);
    }
    merge_by_git(repo, (ours, theirs), &[], scratch, into)
}

/// Whether two commits conflict. What git writes to find out goes to `aside`.
pub(crate) fn would_conflict(
    repo: &Repo,
    ours: Oid,
    theirs: Oid,
    scratch: &Path,
    aside: &ThrowAway,
) -> Result<bool, Error> {
    if let Ok(Some(_)) = exact::merge_commits(repo, ours, theirs) {
        return Ok(false);
    }
    merge_by_git(repo, (ours, theirs), &[], scratch, Some(aside)).map(|merged| !merged.clean)
}

/// Merges `theirs` into `ours`, in the form that can be taken apart again: each conflict with what both sides come from,
/// its marker lines ending in the ids of `ours` and `theirs`, which no file holds by chance.
pub(crate) fn merge_with_base(repo: &Repo, ours: Oid, theirs: Oid, scratch: &Path) -> Result<Merged, Error> {
    merge_by_git(repo, (ours, theirs), &["-c", "merge.conflictStyle=diff3"], scratch, None)
}

/// The tree that is made in process, without it being written; none where git would be asked.
pub(crate) fn merge_exactly(repo: &Repo, ours: Oid, theirs: Oid) -> Result<Option<Oid>, Error> {
    Ok(exact::merge_commits(repo, ours, theirs)?.map(|exact| exact.id))
}

/// Merges by git, with these options before its command.
fn merge_by_git(
    repo: &Repo,
    (ours, theirs): (Oid, Oid),
    options: &[&str],
    scratch: &Path,
    into: Option<&ThrowAway>,
) -> Result<Merged, Error> {
    // A merge that renormalizes also goes by attributes that it brings itself, which a source that is named hides.
    let named = repo.version()?.has_attr_source() && repo.setting_bool("merge.renormalize") != Some(true);
    let call = if named {
        Drivers::of(repo, None).apply(repo.git().arg(format!("--attr-source={ours}")))
    } else {
        // Attributes are looked up from where git stands, so it has to stand there too.
        let dir = lay_out_attributes(repo, ours, scratch, into)?;
        let call = repo.git_in(&dir).env("GIT_DIR", repo.common_dir()).env("GIT_WORK_TREE", &dir);
        Drivers::of(repo, Some(&dir)).apply(call)
    };
    let call = ThrowAway::apply(into, call)
        .args(options)
        .args(["merge-tree", "--write-tree", "-z", "--messages"])
        .args([ours.to_string(), theirs.to_string()])
        .accept(&[1])
        .changes()
        .durable();
    let shown = call.shown();
    let out = call.run()?;
    parse(&out.stdout, out.code == 0)
        .ok_or_else(|| Error::Answer { args: shown, what: "a field of another form".into() })
}

/// Applies what changed between two trees to a third: `(before, ours, after)`. Where git has to decide, histories are made
/// up for it, in which `before` is the only merge base.
pub(crate) fn merge_trees(
    repo: &Repo,
    (before, ours, after): (Oid, Oid, Oid),
    scratch: &Path,
    into: Option<&ThrowAway>,
) -> Result<Merged, Error> {
    if let (None, Ok(Some(exact))) = (into, exact::merge_trees(repo, before, ours, after)) {
        return exact.write(repo).map(Merged::without_decisions);
    }
    let write = |tree, parents: &[Oid]| {
        NewCommit { tree, parents, message: "git-proq: merge" }.write_as_keeper(repo, into)
    };
    let root = write(before, &[])?;
    merge_by_git(repo, (write(ours, &[root])?, write(after, &[root])?), &[], scratch, into)
}

/// Writes the `.gitattributes` files of a tree to a folder that stands in for the checkout. The folder has its name only once all of
/// them are in it: with some of them git merges by other rules.
pub(super) fn lay_out_attributes(
    repo: &Repo,
    commit: Oid,
    scratch: &Path,
    into: Option<&ThrowAway>,
) -> Result<std::path::PathBuf, Error> {
    let dir = scratch.join(format!("attributes-{commit}"));
    if dir.exists() {
        return Ok(dir);
    }
    let draft = scratch.join(format!("attributes-{commit}.part"));
    if draft.exists() {
        std::fs::remove_dir_all(&draft).map_err(Error::io("remove", &draft))?;
    }
    std::fs::create_dir_all(&draft).map_err(Error::io("create", &draft))?;
    // What was merged only to look ahead has its files there too.
    let git = || ThrowAway::apply(into, repo.git());
    let listed = git().args(["ls-tree", "-r", "-z", "--full-tree"]).arg(commit.to_string()).run()?;
    let all = listed.fields().filter_map(diff::parse_file);
    for (path, side) in all.filter(|(p, _)| p.ends_with_name(b".gitattributes")) {
        let text = git().args(["cat-file", "blob"]).arg(side.oid.to_string()).run()?;
        let file = path.under(&draft);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        std::fs::write(&file, text.stdout).map_err(Error::io("write", &file))?;
    }
    std::fs::rename(&draft, &dir).map_err(Error::io("rename", &draft))?;
    Ok(dir)
}

/// `<tree>\0 (<mode> <id> <stage>\t<path>\0)* \0 (<n>\0 <path>\0 × n <kind>\0 <message>\0)*`
fn parse(bytes: &[u8], clean: bool) -> Option<Merged> {
    let mut fields = bytes.split(|b| *b == 0);
    let tree = Oid::from_hex(fields.next()?)?;
    let mut stages = Vec::new();
    for field in fields.by_ref().take_while(|f| !f.is_empty()) {
        stages.push(parse_stage(field)?);
    }
    let mut messages = Vec::new();
    while let Some(count) = fields.next().filter(|f| !f.is_empty()) {
        let number = std::str::from_utf8(count).ok().and_then(|n| n.parse::<usize>().ok());
        let Some(count) = number else {
            // Some gits, 2.39 among them, end with advice about conflicts in submodules, for people.
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
    Some(Merged { tree, clean, stages, messages })
}

/// `<mode> <id> <stage>\t<path>`
pub(super) fn parse_stage(field: &[u8]) -> Option<Stage> {
    let tab = field.iter().position(|b| *b == b'\t')?;
    let head = std::str::from_utf8(&field[..tab]).ok()?;
    let mut words = head.split(' ');
    let mode = u32::from_str_radix(words.next()?, 8).ok()?;
    let oid = Oid::from_hex(words.next()?.as_bytes())?;
    let number = words.next()?.parse().ok()?;
    Some(Stage { path: RepoPath::new(&field[tab + 1..]), number, side: Side { mode, oid } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_read_with_stages_and_messages() {
        let id = "a".repeat(40);
        let text = format!(
            "{id}\x00100644 {id} 1\tx y\x00100644 {id} 2\tx y\0\x001\0x y\0Auto-merging\0Auto-merging x y\n\x002\0x y\0z\0CONFLICT (contents)\0CONFLICT (content): Merge conflict in x y\n\0"
        );
        let merged = parse(text.as_bytes(), false).unwrap();
        assert_eq!(merged.stages.len(), 2);
        assert_eq!(merged.paths(), [RepoPath::new("x y")]);
        assert_eq!(merged.messages, ["CONFLICT (content): Merge conflict in x y"]);
    }

    #[test]
    fn advice_behind_the_messages_is_passed_over() {
        let id = "a".repeat(40);
        let text = format!(
            "{id}\x00160000 {id} 2\tsub\0\x001\0sub\0CONFLICT (contents)\0CONFLICT (submodule): in sub\n\0"
        );
        let advised =
            format!("{text}Recursive merging with submodules currently only supports trivial cases.\n");
        let merged = parse(advised.as_bytes(), false).unwrap();
        assert_eq!(merged, parse(text.as_bytes(), false).unwrap());
        assert_eq!(merged.messages, ["CONFLICT (submodule): in sub"]);
        assert_eq!(parse(format!("{text}no number\0").as_bytes(), false), None);
    }

    #[test]
    fn a_clean_merge_is_only_a_tree() {
        let id = "a".repeat(40);
        let merged = parse(format!("{id}\0").as_bytes(), true).unwrap();
        assert!(merged.clean && merged.stages.is_empty() && merged.messages.is_empty());
    }
}
