//! Trees of worktree files, built in process where no conversion applies, so that each blob is the bytes of
//! its file.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use gix::objs::Blob;
use gix::objs::tree::EntryKind;
use proq_base::fail_points;

use crate::index::no_conversion::{MAX_BLOB_BYTES, verbatim_rule};
use crate::repository::tree_reader::TreeItem;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, RepoPath, TreeId};

/// Writes a tree with the files `changed` as they are in the worktree: `base_tree`, if given, with these
/// files replaced and `deleted` removed. Returns `None` if git has to build it: a filter or a setting may
/// apply, or a path cannot be read.
pub(crate) fn build_tree(
    tree: &WorktreeContext<'_>,
    base_tree: Option<TreeId>,
    changed: &[RepoPath],
    deleted: &[RepoPath],
) -> Result<Option<TreeId>, Error> {
    let all: Vec<RepoPath> = changed.iter().chain(deleted).cloned().collect();
    if fail_points::is_git_forced() {
        return Ok(None);
    }
    let Some(conversion_check) = verbatim_rule(tree.repo, tree.dir, &all) else { return Ok(None) };
    let mut items: BTreeMap<&RepoPath, Option<TreeItem>> = deleted.iter().map(|path| (path, None)).collect();
    for path in changed {
        let Some((kind, data)) = read_as_tree_entry(tree, path) else { return Ok(None) };
        if kind != EntryKind::Link && !conversion_check.accepts(&data) {
            return Ok(None);
        }
        let id = tree.repo.write_durably(&Blob { data })?.0;
        items.insert(path, Some(TreeItem { mode: kind.into(), id }));
    }
    tree.repo.replace_tree_items(base_tree.map(|id| id.0), &items).map(|id| Some(TreeId(id)))
}

/// Returns a file's tree entry kind and content; `None` if it is neither file nor link, lies behind a link,
/// or cannot be read.
fn read_as_tree_entry(tree: &WorktreeContext<'_>, path: &RepoPath) -> Option<(EntryKind, Vec<u8>)> {
    let file = path.to_fs_path(tree.dir);
    let is_real_folder =
        |parent: RepoPath| parent.to_fs_path(tree.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir());
    if !path.parents().all(is_real_folder) {
        return None;
    }
    if file.symlink_metadata().ok()?.is_symlink() {
        return Some((EntryKind::Link, std::fs::read_link(&file).ok()?.into_os_string().into_vec()));
    }
    // The file type could change between two calls, and opening a pipe would block.
    let flags = rustix::fs::OFlags::NOFOLLOW.union(rustix::fs::OFlags::NONBLOCK).bits();
    let mut open = OpenOptions::new().read(true).custom_flags(i32::try_from(flags).ok()?).open(&file).ok()?;
    let meta = open.metadata().ok()?;
    if !meta.is_file() || meta.len() > MAX_BLOB_BYTES {
        return None;
    }
    let mut data = Vec::new();
    open.read_to_end(&mut data).ok()?;
    let kind = if meta.mode() & 0o100 == 0 { EntryKind::Blob } else { EntryKind::BlobExecutable };
    Some((kind, data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Repo;
    use crate::base::test_repo::TestRepo;

    /// Scripts that change a worktree, and whether its trees are built in process.
    const WORKTREE_SCRIPTS: &[(&str, bool)] = &[
        ("echo more >>a; chmod +x d/b; echo new >d/e/new; rm d/e/c", true),
        ("rm d/b d/e/c; ln -sfn elsewhere link", true),
        ("rm -r a d e link", true),
        ("seq 2000 >a; printf 'x\\r\\n' >d/b", true),
        ("printf 'x\\r\\n' >d/b; echo '* text=auto' >.git/info/attributes", false),
        ("printf 'x\\n' >d/b; echo '* text=auto eol=lf' >.git/info/attributes", true),
        ("echo '* filter=x' >d/.gitattributes; echo x >d/b", false),
        ("echo x >a; git config core.autocrlf true", false),
        ("echo x >a; git config core.fileMode false", false),
        ("head -c 5000000 /dev/zero >a", false),
        ("rm a; mkfifo a", false),
        ("rm -r d/e; ln -s ../e d/e; echo c >e/c", false),
        ("echo n >'d/gr\u{fc}n'", false),
        ("echo n >d/.Git.x", true),
    ];

    /// Promise: worktree/native-park
    #[test]
    fn builds_same_tree_as_git_or_leaves_it() {
        for (deed, is_built) in WORKTREE_SCRIPTS {
            let test_repo = TestRepo::new();
            test_repo.run_script(
                "repo",
                "mkdir -p d/e e; echo a >a; echo b >d/b; echo c >d/e/c; echo f >e/f; ln -s a link
                git add -A; git commit -qm first; mkdir ../scratch",
            );
            test_repo.run_script("repo", deed);
            let list = "$git diff-files --name-only; $git ls-files -o --exclude-standard";
            let list = format!("git='git -c core.quotePath=false'; $git status >/dev/null; {list}");
            let all = test_repo.run_script("repo", &list);
            let dir = test_repo.parent_dir.join("repo");
            let repo = Repo::discover(&dir).unwrap();
            let scratch = test_repo.parent_dir.join("scratch");
            let git_dir = dir.join(".git");
            let tree = WorktreeContext {
                repo: &repo,
                dir: &dir,
                git_dir,
                scratch: &scratch,
                off_limits: None,
                warn: &|_| (),
            };
            let all = all.lines().map(RepoPath::new);
            let exists = |path: &RepoPath| path.to_fs_path(&dir).symlink_metadata().is_ok();
            let (changed, deleted): (Vec<_>, Vec<_>) = all.partition(exists);
            let base = TreeId::from_hex(test_repo.run_script("repo", "git rev-parse HEAD^{tree}").as_bytes());
            let built = build_tree(&tree, base, &changed, &deleted).unwrap();
            assert_eq!(built.is_some(), *is_built, "{deed}: {changed:?} {deleted:?}");
            let Some(tree_id) = built else { continue };
            assert_eq!(
                tree_id.to_string(),
                test_repo.run_script("repo", "git add -A; git write-tree"),
                "{deed}"
            );
            assert_eq!(test_repo.run_script("repo", "git fsck --no-dangling 2>&1"), "", "{deed}");
            let files_only = build_tree(&tree, None, &changed, &[]).unwrap().unwrap();
            let listed =
                test_repo.run_script("repo", &format!("git ls-tree -r --name-only {files_only} | wc -l"));
            assert_eq!(listed.trim(), changed.len().to_string(), "{deed}");
        }
    }
}
