//! Owns noting in an index, as it lies in its file, what some of the files are like by now: what `git update-index --refresh` does
//! where only few files can have changed. Nothing else that the index says changes.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::entries::{self, Entries, Entry};
use super::index::NewIndex;
use super::plain::{AsIs, LARGEST, as_is};
use super::transition::{Tree, attribute_paths};
use super::{Error, Oid, Repo, RepoPath, Side};
use crate::fault;

/// How many files are looked at. Beyond that git is faster.
const MOST: usize = 256;

/// The clock by which a file system notes when files were written goes in steps that are no longer than this.
const TICK: Duration = Duration::from_millis(10);

/// What a file is, compared with its entry.
enum Is {
    /// The same; what is to be noted of it.
    Same(Stat),
    /// Another one; what would be noted of it, if it is there.
    Other(Option<Stat>),
}

/// An index in which files are to be noted anew.
pub(super) struct Renumbered {
    entries: Entries,
    /// The places of those entries, in order.
    places: BTreeSet<u32>,
    as_is: AsIs,
}

impl Renumbered {
    /// Reads `file`, an index of the tree, in which the files of `paths`, as far as it has them, are to be noted anew. None when
    /// that is git's to do.
    pub(super) fn plan(tree: &Tree<'_>, file: &Path, paths: &BTreeSet<&RepoPath>) -> Option<Renumbered> {
        let entries = read(tree, file)?;
        // One that is as young as its index could be taken for unchanged by a younger one.
        let mut places: BTreeSet<u32> = entries.racy().collect();
        places.extend(paths.iter().filter_map(|path| entries.place_of(path.as_bytes())));
        Renumbered::of(tree, entries, places)
    }

    /// The same for files of which `other`, a later index of the tree, notes something else than `file` does of the same
    /// content, beside those of `paths`.
    pub(super) fn plan_like(
        tree: &Tree<'_>,
        file: &Path,
        other: &Path,
        paths: &BTreeSet<&RepoPath>,
    ) -> Option<Renumbered> {
        let (entries, later) = (read(tree, file)?, Entries::read(other, tree.repo.gix.object_hash())?);
        let mut places: BTreeSet<u32> = entries.racy().collect();
        places.extend(
            both(&entries, &later).filter(|(at, is)| !is.is_noted_like(entries.entry(*at))).map(|(at, _)| at),
        );
        places.extend(paths.iter().filter_map(|path| entries.place_of(path.as_bytes())));
        Renumbered::of(tree, entries, places)
    }

    fn of(tree: &Tree<'_>, entries: Entries, mut places: BTreeSet<u32>) -> Option<Renumbered> {
        // Of others git notes nothing either.
        places.retain(|at| entries.entry(*at).is_seen());
        let is_file = |at: &u32| {
            matches!(entries.entry(*at).mode(), entries::FILE | entries::EXECUTABLE | entries::LINK)
        };
        if places.len() > MOST || !places.iter().all(is_file) {
            return None;
        }
        let paths: Vec<RepoPath> = places.iter().map(|at| RepoPath::new(entries.path(*at))).collect();
        // Where a worktree lacks a file with attributes git goes by the one in the index.
        let lacks = |file: &RepoPath| {
            entries.find(file.as_bytes()).is_some()
                && !file.under(tree.dir).symlink_metadata().is_ok_and(|m| m.is_file())
        };
        let as_is = as_is(tree.repo, tree.dir, &paths)?;
        if attribute_paths(paths.iter()).iter().any(lacks) {
            return None;
        }
        Some(Renumbered { entries, places, as_is })
    }

    /// Whether the index has each of these files in this form, and no attributes that say how to write them: git looks for those
    /// in the index first.
    pub(super) fn writes_as_is(&self, tree: &Tree<'_>, files: &[(RepoPath, Side)]) -> bool {
        let has = |(path, side): &(RepoPath, Side)| {
            let entry = self.entries.find(path.as_bytes());
            entry.is_some_and(|e| e.is_seen() && e.mode() == side.mode && e.id() == side.oid.0.as_slice())
        };
        let attributes = attribute_paths(files.iter().map(|(path, _)| path));
        files.iter().all(has) && self.entries.say_nothing_of_files(tree.repo, &attributes)
    }

    /// Looks at the files, and makes the index; none when that is git's to do.
    pub(super) fn made(self, tree: &Tree<'_>) -> Option<NewIndex> {
        self.made_as_of(SystemTime::now() - TICK, tree)
    }

    /// The same as of the time at which the look begins. To git, what is written to meanwhile is as young as that index, or
    /// younger, and is read again.
    fn made_as_of(mut self, began: SystemTime, tree: &Tree<'_>) -> Option<NewIndex> {
        for at in std::mem::take(&mut self.places) {
            let entry = self.entries.entry(at);
            match self.look(tree, entry)? {
                Is::Same(meta) => self.entries.renumber(at, &meta),
                Is::Other(meta) => {
                    let passes = |meta: Stat| entry.has_numbers_of(&meta) || self.entries.is_racy(entry);
                    if meta.is_some_and(passes) {
                        self.entries.forget_length(at);
                    }
                }
            }
        }
        Some(NewIndex::Of(self.entries.sealed()?, began))
    }

    /// Compares a file with its entry; none when git has to.
    fn look(&self, tree: &Tree<'_>, entry: Entry<'_>) -> Option<Is> {
        let path = RepoPath::new(entry.path());
        let file = path.under(tree.dir);
        let real = |up: RepoPath| up.under(tree.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let meta = match rustix::fs::lstat(&file) {
            Ok(meta) if path.parents().all(real) => meta,
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => return Some(Is::Other(None)),
            Err(_) => return None,
        };
        let (kind, executable) = (FileType::from_raw_mode(meta.st_mode), meta.st_mode & 0o100 != 0);
        let bytes = match (kind.is_symlink(), kind.is_file()) {
            (true, _) => std::fs::read_link(&file).ok()?.into_os_string().into_encoded_bytes(),
            (_, true) if u64::try_from(meta.st_size).ok()? <= LARGEST => std::fs::read(&file).ok()?,
            _ => return None,
        };
        let as_noted = match entry.mode() {
            entries::LINK => kind.is_symlink(),
            mode => kind.is_file() && executable == (mode == entries::EXECUTABLE),
        };
        if kind.is_file() && !self.as_is.takes(&bytes) {
            return None;
        }
        let same = as_noted && tree.repo.blob_id(&bytes)?.0.as_slice() == entry.id();
        Some(if same { Is::Same(meta) } else { Is::Other(Some(meta)) })
    }
}

/// Entries that `later` has with the same content: where they are in `entries`, and what they are there.
fn both<'e>(entries: &'e Entries, later: &'e Entries) -> impl Iterator<Item = (u32, Entry<'e>)> {
    let mut rest = later.all();
    entries.all().iter().filter_map(move |at| {
        let entry = entries.entry(*at);
        while rest.first().is_some_and(|first| later.path(*first) < entry.path()) {
            rest = &rest[1..];
        }
        let same = later.entry(*rest.first()?);
        (same.path() == entry.path() && same.id() == entry.id()).then_some((*at, same))
    })
}

/// Files of which `other`, a later index, notes another length than `file` does of the same content: filters made them anew.
/// Git takes such a file for an edited one, and does not read it.
pub(super) fn resized(repo: &Repo, file: &Path, other: &Path) -> Vec<(RepoPath, Side)> {
    let read = |file: &Path| Entries::read(file, repo.gix.object_hash());
    let (Some(entries), Some(later)) = (read(file), read(other)) else { return Vec::new() };
    let other_length = |(at, is): (u32, Entry<'_>)| {
        let entry = entries.entry(at);
        // Where none is noted git reads the file anyway, and nothing more than needs be is written.
        let is_other = ![0, is.size()].contains(&entry.size()) && is.size() != 0;
        let differs = entry.is_seen() && entry.mode() == is.mode() && is_other;
        let oid = gix::ObjectId::try_from(entry.id()).ok().filter(|_| differs).map(Oid)?;
        Some((RepoPath::new(entry.path()), Side { mode: entry.mode(), oid }))
    };
    both(&entries, &later).filter_map(other_length).collect()
}

/// An index that can be written again as it lies in its file.
fn read(tree: &Tree<'_>, file: &Path) -> Option<Entries> {
    if fault::is_by_git() {
        return None;
    }
    Entries::read(file, tree.repo.gix.object_hash()).filter(Entries::is_simple)
}

/// Has git forget what an index notes of files, so that it reads them.
pub(super) fn forget_lengths(tree: &Tree<'_>, index: &Path, files: &[(RepoPath, Side)]) -> Result<(), Error> {
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
    call.index(index).input(input).changes().run().map(drop)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::place::Place;
    use super::*;

    /// What may have happened since an index was written, and whether it can be noted without git.
    const DEEDS: &[(&str, bool)] = &[
        ("true", true),
        ("touch -d 2002-02-02 a d/b", true),
        ("echo other >a; touch -d 2002-02-02 d/b", true),
        // As long as it was.
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
        // As `index.skipHash` leaves it, which is too new for some gits.
        (
            "n=$(($(stat -c %s .git/index) - 20)); dd if=/dev/zero of=.git/index bs=1 seek=$n count=20 conv=notrunc 2>/dev/null",
            false,
        ),
        ("git update-index --assume-unchanged a; touch -d 2002-02-02 a", true),
        ("echo n >n; git add -N n; touch -d 2002-02-02 a n", true),
    ];

    struct Scene {
        place: Place,
        dir: PathBuf,
    }

    impl Scene {
        fn new() -> Scene {
            let place = Place::new();
            place.sh(
                "repo",
                "mkdir -p d e; echo a >a; echo b >d/b; echo f >e/f; ln -s a link; git add -A; git commit -qm first
                find . -path ./.git -prune -o -exec touch -h -d 2001-01-01 {} +; git update-index -q --refresh; mkdir ../scratch",
            );
            let dir = place.top.join("repo");
            Scene { place, dir }
        }

        /// Writes `../scratch/index` with what `paths` are by now.
        fn renumber(&self, paths: &[&str]) -> bool {
            self.renumber_as_of(SystemTime::now(), paths)
        }

        fn renumber_as_of(&self, began: SystemTime, paths: &[&str]) -> bool {
            let repo = Repo::discover(&self.dir).unwrap();
            let scratch = self.place.top.join("scratch");
            let git_dir = self.dir.join(".git");
            let index = git_dir.join("index");
            let tree = Tree {
                repo: &repo,
                dir: &self.dir,
                git_dir,
                scratch: &scratch,
                off_limits: None,
                warn: &|_| (),
            };
            let paths: Vec<RepoPath> = paths.iter().map(|path| RepoPath::new(*path)).collect();
            let plan = Renumbered::plan(&tree, &index, &paths.iter().collect());
            let made = plan.and_then(|plan| plan.made_as_of(began, &tree));
            let Some(NewIndex::Of(bytes, time)) = made else { return false };
            std::fs::write(scratch.join("index"), bytes).unwrap();
            let file = std::fs::File::options().write(true).open(scratch.join("index"));
            file.unwrap().set_modified(time).unwrap();
            true
        }

        fn listed(&self, index: &str) -> String {
            self.place.sh("repo", &format!("GIT_INDEX_FILE={index} git ls-files --debug --stage -v"))
        }
    }

    #[test]
    fn what_is_noted_of_files_is_what_git_notes() {
        for (deed, is_ours) in DEEDS {
            let scene = Scene::new();
            scene.place.sh("repo", deed);
            let done = scene.renumber(&["a", "d/b", "e/f", "link", "missing"]);
            assert_eq!(done, *is_ours, "{deed}");
            if done {
                scene.place.sh("repo", "cp -p .git/index ../by-git; GIT_INDEX_FILE=$PWD/../by-git git update-index -q --refresh || true");
                assert_eq!(scene.listed("../scratch/index"), scene.listed("../by-git"), "{deed}");
                let sound =
                    "cp ../scratch/index .git/index; git fsck --no-dangling 2>&1; git ls-files >/dev/null";
                assert_eq!(scene.place.sh("repo", sound), "", "{deed}");
            }
        }
    }

    #[test]
    fn an_edit_that_only_its_second_gives_away_is_seen_in_the_next_index_too() {
        let scene = Scene::new();
        // With the time of the index, the same length, and no other number that counts.
        let edit = "git config core.trustctime false; git config core.checkStat minimal; touch -d 2001-01-01 .git/index
            echo b >a; touch -d 2001-01-01 a";
        scene.place.sh("repo", edit);
        assert_eq!(scene.place.sh("repo", "git diff-files --name-only"), "a", "as it is");
        assert!(scene.renumber(&["d/b"]));
        scene.place.sh("repo", "cp -p ../scratch/index .git/index");
        assert_eq!(scene.place.sh("repo", "git diff-files --name-only"), "a");
    }

    #[test]
    fn an_index_is_as_old_as_the_look_at_its_files() {
        let scene = Scene::new();
        let to_the_second = "git config core.trustctime false; git config core.checkStat minimal";
        scene.place.sh("repo", &format!("{to_the_second}; touch -d 2003-01-01 a"));
        let began = scene.dir.join("a").metadata().unwrap().modified().unwrap();
        assert!(scene.renumber_as_of(began, &["a"]));
        scene.place.sh("repo", "cp -p ../scratch/index .git/index");
        assert_eq!(scene.place.sh("repo", "git diff-files --name-only"), "");
        // While the others were looked at.
        scene.place.sh("repo", "echo b >a; touch -d 2003-01-01 a");
        assert_eq!(scene.place.sh("repo", "git diff-files --name-only"), "a");
    }
}
