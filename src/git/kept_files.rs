//! Owns the trees of files as they are in a worktree, made in process: where nothing has a say in what git makes of a file, its
//! blob is its bytes.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use gix::objs::Blob;
use gix::objs::tree::EntryKind;

use super::plain::{LARGEST, as_is};
use super::transition::Tree;
use super::trees::Item;
use super::{Error, Oid, RepoPath};
use crate::fault;

/// The tree `base`, if there is one, with `changed` as these files are in the worktree, and without `gone`. None when that is
/// git's to make: a filter or a setting may have a say, or what is there cannot be read.
pub(super) fn tree_with(
    tree: &Tree<'_>,
    base: Option<Oid>,
    changed: &[RepoPath],
    gone: &[RepoPath],
) -> Result<Option<Oid>, Error> {
    let all: Vec<RepoPath> = changed.iter().chain(gone).cloned().collect();
    if fault::is_by_git() {
        return Ok(None);
    }
    let Some(as_is) = as_is(tree.repo, tree.dir, &all) else { return Ok(None) };
    let mut items: BTreeMap<&RepoPath, Option<Item>> = gone.iter().map(|path| (path, None)).collect();
    for path in changed {
        let Some((kind, data)) = read(tree, path) else { return Ok(None) };
        if kind != EntryKind::Link && !as_is.takes(&data) {
            return Ok(None);
        }
        let id = tree.repo.write_durably(&Blob { data })?.0;
        items.insert(path, Some(Item { mode: kind.into(), id }));
    }
    tree.repo.planted(base.map(|id| id.0), &items).map(|id| Some(Oid(id)))
}

/// What a file is to git, and its content; none for what is no file or link, is behind a link, or cannot be read.
fn read(tree: &Tree<'_>, path: &RepoPath) -> Option<(EntryKind, Vec<u8>)> {
    let file = path.under(tree.dir);
    let real = |up: RepoPath| up.under(tree.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir());
    if !path.parents().all(real) {
        return None;
    }
    if file.symlink_metadata().ok()?.is_symlink() {
        return Some((EntryKind::Link, std::fs::read_link(&file).ok()?.into_os_string().into_vec()));
    }
    // What it is could change between two looks, and a pipe would have us wait.
    let flags = rustix::fs::OFlags::NOFOLLOW.union(rustix::fs::OFlags::NONBLOCK).bits();
    let mut open = OpenOptions::new().read(true).custom_flags(i32::try_from(flags).ok()?).open(&file).ok()?;
    let meta = open.metadata().ok()?;
    if !meta.is_file() || meta.len() > LARGEST {
        return None;
    }
    let mut data = Vec::new();
    open.read_to_end(&mut data).ok()?;
    let kind = if meta.mode() & 0o100 == 0 { EntryKind::Blob } else { EntryKind::BlobExecutable };
    Some((kind, data))
}

#[cfg(test)]
mod tests {
    use super::super::Repo;
    use super::super::place::Place;
    use super::*;

    /// What may lie in a worktree, and whether its trees are made in process.
    const DEEDS: &[(&str, bool)] = &[
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

    #[test]
    fn files_are_kept_as_git_keeps_them_or_left_to_it() {
        for (deed, is_ours) in DEEDS {
            let place = Place::new();
            place.sh(
                "repo",
                "mkdir -p d/e e; echo a >a; echo b >d/b; echo c >d/e/c; echo f >e/f; ln -s a link
                git add -A; git commit -qm first; mkdir ../scratch",
            );
            place.sh("repo", deed);
            let list = "$git diff-files --name-only; $git ls-files -o --exclude-standard";
            let list = format!("git='git -c core.quotePath=false'; $git status >/dev/null; {list}");
            let all = place.sh("repo", &list);
            let dir = place.top.join("repo");
            let repo = Repo::discover(&dir).unwrap();
            let scratch = place.top.join("scratch");
            let git_dir = dir.join(".git");
            let tree =
                Tree { repo: &repo, dir: &dir, git_dir, scratch: &scratch, off_limits: None, warn: &|_| () };
            let all = all.lines().map(RepoPath::new);
            let stands = |path: &RepoPath| path.under(&dir).symlink_metadata().is_ok();
            let (changed, gone): (Vec<_>, Vec<_>) = all.partition(stands);
            let base = Oid::from_hex(place.sh("repo", "git rev-parse HEAD^{tree}").as_bytes());
            let ours = tree_with(&tree, base, &changed, &gone).unwrap();
            assert_eq!(ours.is_some(), *is_ours, "{deed}: {changed:?} {gone:?}");
            let Some(ours) = ours else { continue };
            assert_eq!(ours.to_string(), place.sh("repo", "git add -A; git write-tree"), "{deed}");
            assert_eq!(place.sh("repo", "git fsck --no-dangling 2>&1"), "", "{deed}");
            let alone = tree_with(&tree, None, &changed, &[]).unwrap().unwrap();
            let listed = place.sh("repo", &format!("git ls-tree -r --name-only {alone} | wc -l"));
            assert_eq!(listed.trim(), changed.len().to_string(), "{deed}");
        }
    }
}
