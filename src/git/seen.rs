//! Owns all that lies in a worktree and is not as HEAD has it, found by one look for whoever needs more than a part of it.

use std::collections::BTreeSet;
use std::path::Path;

use super::clean::BesideTracked;
use super::glance::Glance;
use super::in_the_way::IgnoredFile;
use super::index::Version;
use super::plain::as_is;
use super::status::{self, Dirt};
use super::{Error, Oid, Repo, RepoPath};
use crate::fault;

/// One look at a worktree. It tells what was so when it was made: whoever moves a file looks at that file again.
pub(crate) struct Seen {
    all: Option<All>,
    /// Ignored files that a snapshot has brought back.
    brought: Vec<RepoPath>,
}

/// What is certain.
pub(super) struct All {
    /// The index, which has what HEAD has, and no entry that git was told not to look at.
    index: Version,
    /// Whether that index has nothing but entries and trees in it, and no part in another file.
    pub(super) is_simple: bool,
    commit: Oid,
    entries: Vec<status::Entry>,
    beside: BesideTracked,
}

impl Seen {
    /// Looks at the worktree whose top is `dir`. Where not all is certain git will be asked.
    pub(crate) fn look(repo: &Repo, dir: &Path, git_dir: &Path) -> Seen {
        Seen { all: All::look(repo, dir, git_dir), brought: Vec::new() }
    }

    /// Adds the `ignored` files of a snapshot that was brought back here. What is still there of them moves aside again, whether
    /// HEAD has something else in its place by now or not.
    pub(crate) fn with_brought(self, ignored: &[IgnoredFile]) -> Seen {
        Seen { brought: ignored.iter().map(|file| file.path.clone()).collect(), ..self }
    }

    /// The ignored files that a snapshot has brought back.
    pub(super) fn brought(&self) -> &[RepoPath] {
        &self.brought
    }

    /// What is certain, if the worktree's index is still this one and its commit is `commit`.
    pub(super) fn at(&self, index: Option<Version>, commit: Oid) -> Option<&All> {
        self.all.as_ref().filter(|all| Some(all.index) == index && all.commit == commit)
    }

    /// Untracked files and folders that git was told to ignore; a folder stands for everything in it.
    pub(crate) fn ignored(&self, repo: &Repo, dir: &Path) -> Result<Vec<RepoPath>, Error> {
        match self.all.as_ref().filter(|all| !all.beside.is_mixed) {
            Some(all) => Ok(all.beside.ignored.clone()),
            None => ignored_by_git(repo, dir),
        }
    }

    /// Repositories of their own, which are no submodules.
    pub(crate) fn nested(&self, repo: &Repo, dir: &Path) -> Result<Vec<RepoPath>, Error> {
        if self.all.is_some() {
            // Beside one nothing is certain.
            return Ok(Vec::new());
        }
        let out = repo.git_in(dir).args(["ls-files", "--others", "--exclude-standard", "-z"]).run()?;
        Ok(out.fields().filter_map(|field| field.strip_suffix(b"/")).map(RepoPath::new).collect())
    }

    /// Folders that no tracked file is in and that are not ignored, the topmost ones; none when that is not certain.
    pub(super) fn folders(&self) -> Option<&[RepoPath]> {
        self.all.as_ref().and_then(All::folders)
    }
}

impl All {
    fn look(repo: &Repo, dir: &Path, git_dir: &Path) -> Option<All> {
        if fault::is_by_git() {
            return None;
        }
        let file = git_dir.join("index");
        let index = Version::of(&file).ok()??;
        let commit = repo.head_read(dir)?;
        let found = Glance::with(repo, dir, git_dir, commit)?.finds_all()?;
        let (entries, mut beside, is_simple) = found;
        if Version::of(&file).ok()? != Some(index) || repo.head_read(dir) != Some(commit) {
            return None;
        }
        if !beside.by_content.is_empty() {
            let as_is = as_is(repo, dir, &beside.by_content)?;
            let takes =
                |path: &RepoPath| std::fs::read(path.under(dir)).is_ok_and(|bytes| as_is.takes(&bytes));
            let is_link = |path: &RepoPath| path.under(dir).is_symlink();
            if !beside.by_content.iter().all(|path| is_link(path) || takes(path)) {
                return None;
            }
        }
        beside.ignored.sort();
        beside.folders.sort();
        Some(All { index, is_simple, commit, entries, beside })
    }

    /// What differs from HEAD.
    pub(super) fn dirt(&self) -> Dirt {
        Dirt { entries: self.entries.clone() }
    }

    /// As of the look.
    pub(super) fn folders(&self) -> Option<&[RepoPath]> {
        (!self.beside.is_mixed).then_some(&self.beside.folders)
    }
}

/// Asks git for the files and folders of the worktree at `dir` that are ignored; a folder stands for all that is in it.
pub(super) fn ignored_by_git(repo: &Repo, dir: &Path) -> Result<Vec<RepoPath>, Error> {
    let list = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard"];
    let out = repo.git_in(dir).args(list).arg("--directory").run()?;
    let mut all: Vec<RepoPath> =
        out.fields().map(|f| RepoPath::new(f.strip_suffix(b"/").unwrap_or(f))).collect();
    // With `--directory`, git leaves out a folder that stands in the place of a file of the index.
    let left_out = folders_for_files(repo, dir)?;
    if !left_out.is_empty() {
        let each = repo.git_in(dir).args(list).run()?;
        let inside = each.fields().map(RepoPath::new);
        all.extend(inside.filter(|path| path.parents().any(|up| left_out.contains(&up))));
        all.sort();
        all.dedup();
    }
    Ok(all)
}

/// Files of the index of the worktree at `dir` in whose places folders are.
fn folders_for_files(repo: &Repo, dir: &Path) -> Result<BTreeSet<RepoPath>, Error> {
    let out = repo.git_in(dir).args(["ls-files", "-z", "--stage"]).run()?;
    // A submodule is a folder.
    let files = out.fields().filter(|field| !field.starts_with(b"160000 "));
    let paths = files.filter_map(|field| Some(RepoPath::new(field.splitn(2, |b| *b == b'\t').nth(1)?)));
    Ok(paths.filter(|path| path.under(dir).symlink_metadata().is_ok_and(|meta| meta.is_dir())).collect())
}

#[cfg(test)]
mod tests {
    use super::super::place::Place;
    use super::*;

    /// What may lie in a worktree, and whether that is certain without git.
    const DEEDS: &[(&str, bool)] = &[
        ("true", true),
        ("echo more >>a; echo x >d/new; mkdir -p u/v/w u/e; echo x >u/v/f", true),
        // As long as it was.
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
        // Ignored in a folder that is not.
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

    #[test]
    fn one_look_says_what_git_says_in_three() {
        for (deed, is_certain) in DEEDS {
            let place = Place::new();
            place.sh(
                "repo",
                "mkdir -p d/e; echo a >a; echo b >d/b; echo c >d/e/c; ln -s a link; printf 'out/\\n*.o\\n' >.gitignore
                git add -A; git commit -qm first",
            );
            place.sh("repo", &format!("({deed}) >/dev/null 2>&1"));
            let (dir, git_dir) = (place.top.join("repo"), place.top.join("repo/.git"));
            let repo = Repo::discover(&dir).unwrap();
            let seen = Seen::look(&repo, &dir, &git_dir);
            assert_eq!(seen.all.is_some(), *is_certain, "{deed}");
            let by_git = sorted(ignored_by_git(&repo, &dir).unwrap());
            assert_eq!(sorted(seen.ignored(&repo, &dir).unwrap()), by_git, "{deed}");
            let files = place.sh("repo", "git ls-files --others --ignored --exclude-standard");
            for file in files.lines().map(RepoPath::new) {
                assert!(
                    file.parents().chain([file.clone()]).any(|up| by_git.contains(&up)),
                    "{deed}: {file:?}"
                );
            }
            let Some(all) = &seen.all else { continue };
            assert_eq!(all.dirt(), status::ask(repo.program(), &dir, true).unwrap(), "{deed}");
            let Some(folders) = all.folders() else { continue };
            let by_git =
                place.sh("repo", "git ls-files --others --directory --exclude-standard | grep '/$' || true");
            let by_git = by_git.lines().map(|line| RepoPath::new(line.trim_end_matches('/')));
            assert_eq!(folders, sorted(by_git.collect()), "{deed}");
        }
    }

    #[test]
    fn a_look_counts_only_for_the_index_and_the_commit_that_it_was_made_of() {
        let place = Place::new();
        place.sh("repo", "echo a >a; git add -A; git commit -qm first; git commit -qm other --allow-empty");
        let (dir, git_dir) = (place.top.join("repo"), place.top.join("repo/.git"));
        let repo = Repo::discover(&dir).unwrap();
        let id = |name: &str| {
            Oid::from_hex(place.sh("repo", &format!("git rev-parse {name}")).as_bytes()).unwrap()
        };
        let version = || Version::of(&git_dir.join("index")).unwrap();
        let seen = Seen::look(&repo, &dir, &git_dir);
        assert!(seen.at(version(), id("HEAD")).is_some());
        assert!(seen.at(version(), id("HEAD^")).is_none());
        place.sh("repo", "echo more >>a; git add a");
        assert!(seen.at(version(), id("HEAD")).is_none());
    }
}
