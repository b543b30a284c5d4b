//! Owns telling, without starting git, that a worktree is surely as HEAD has it. Whatever is doubtful is left to git.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::stat::{self, Time};
use gix::index::entry::{Flags, Mode, Stage, Stat};
use gix::index::{Entry, File};
use gix::objs::{Kind, compute_hash};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, openat, statat};

use super::ignored::{Ignored, Names};
use super::threads::in_threads;

/// How many files whose times do not settle it are read, and how many bytes of them. Beyond that git, which reads in many
/// threads, is faster.
const MOST_FILES: usize = 256;
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// Entries that git was told not to look at, or that hold nothing yet.
pub(super) const UNSEEN: Flags = Flags::ASSUME_VALID.union(Flags::SKIP_WORKTREE).union(Flags::INTENT_TO_ADD);

/// How many files below a folder make it worth a thread's while.
const PART: usize = if cfg!(test) { 2 } else { 32 };

/// A look at a worktree that says only what is certain.
pub(super) struct Walk<'a> {
    top: &'a Path,
    index: &'a File,
    /// None when files that are not in the index do not matter.
    ignored: Option<Mutex<Ignored<'a>>>,
    /// A folder with as many files below it is a part of its own.
    pub(super) part: usize,
    /// Files and bytes read so far.
    files: AtomicUsize,
    bytes: AtomicU64,
}

/// What is in one folder of the index.
pub(super) enum Inside<'e> {
    File(&'e Entry),
    /// A folder, and what is below it.
    Folder(&'e [Entry]),
}

impl<'a> Walk<'a> {
    /// A look at the worktree whose top is `top`, by its index; with `untracked`, also at files that are not in it. One that
    /// is done `alone` is divided among threads.
    pub(super) fn new(top: &'a Path, index: &'a File, untracked: bool, alone: bool) -> Walk<'a> {
        Walk {
            top,
            index,
            ignored: untracked.then(|| Mutex::new(Ignored::new(top, index))),
            part: if alone { PART } else { usize::MAX },
            files: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Whether each file is as the index has it, and nothing else is there that matters.
    pub(super) fn finds_nothing(&self) -> bool {
        let parts = self.parts();
        let differs = AtomicBool::new(false);
        in_threads(&parts, |(above, entries)| {
            if !differs.load(Relaxed) && !self.part(*above, entries) {
                differs.store(true, Relaxed);
            }
        });
        !differs.into_inner()
    }

    /// Whether the file of an entry, of whatever folder, is as the index has it.
    pub(super) fn finds_as_it_was(&self, entry: &Entry) -> bool {
        let name = OsStr::from_bytes(entry.path(self.index));
        let Ok(top) = rustix::fs::open(self.top, FOLDER, rustix::fs::Mode::empty()) else { return false };
        // A link in place of a folder would lead elsewhere.
        let mut above = Path::new(name).ancestors().skip(1).filter(|up| !up.as_os_str().is_empty());
        let real = |up: &Path| self.top.join(up).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        above.all(real) && self.is_as(entry, self.top, &top, name)
    }

    /// The parts of the index that can be looked at independently: the length of a folder's name, with the slash, and the
    /// entries below it.
    pub(super) fn parts(&self) -> Vec<(usize, &[Entry])> {
        let mut parts = vec![(0, self.index.entries())];
        let mut next = 0;
        while let Some((above, entries)) = parts.get(next).copied() {
            next += 1;
            let mut rest = entries;
            while let Some((name, inside)) = self.first(above, &mut rest) {
                if let Inside::Folder(below) = inside
                    && below.len() >= self.part
                {
                    parts.push((above + name.len() + 1, below));
                }
            }
        }
        parts
    }

    /// Takes what comes first in a folder from its entries.
    pub(super) fn first<'e>(&self, above: usize, rest: &mut &'e [Entry]) -> Option<(&[u8], Inside<'e>)> {
        let first = rest.first()?;
        let path: &BStr = first.path(self.index);
        let name = path.get(above..)?;
        let Some(end) = name.find_byte(b'/') else {
            *rest = &rest[1..];
            return Some((name, Inside::File(first)));
        };
        let prefix = &path[..=above + end];
        let below = rest.iter().take_while(|e| e.path(self.index).starts_with(prefix)).count();
        let (inside, after) = rest.split_at(below);
        *rest = after;
        Some((&name[..end], Inside::Folder(inside)))
    }

    fn part(&self, above: usize, entries: &[Entry]) -> bool {
        let name = entries.first().and_then(|e| e.path(self.index).get(..above)).unwrap_or_default();
        let dir = self.top.join(OsStr::from_bytes(name));
        // A link further up is found where that folder is looked at.
        let open = rustix::fs::open(&dir, FOLDER, rustix::fs::Mode::empty());
        open.is_ok_and(|open| self.folder(&dir, open, above, entries))
    }

    /// Whether a folder has exactly `entries`, which are all those below it, but for what is a part of its own. `above` is
    /// the length of its name in the index, with the slash. Names are looked up in the open folder, which is faster than
    /// paths.
    fn folder(&self, dir: &Path, open: OwnedFd, above: usize, entries: &[Entry]) -> bool {
        let mut names = Vec::new();
        let mut rest = entries;
        while let Some((name, inside)) = self.first(above, &mut rest) {
            let called = OsStr::from_bytes(name);
            let same = match inside {
                Inside::File(entry) => self.is_as(entry, dir, &open, called),
                Inside::Folder(below) => open_folder(&open, called).is_ok_and(|open| {
                    below.len() >= self.part
                        || self.folder(&dir.join(called), open, above + name.len() + 1, below)
                }),
            };
            if !same {
                return false;
            }
            if self.ignored.is_some() {
                names.push(name);
            }
        }
        rest.is_empty()
            && self
                .ignored
                .as_ref()
                .is_none_or(|ignored| self.has_only(dir, open, Names::new(names), ignored))
    }

    /// Whether a folder has nothing but `names`, and what is ignored.
    fn has_only(
        &self,
        dir: &Path,
        open: OwnedFd,
        mut names: Names<'_>,
        ignored: &Mutex<Ignored<'_>>,
    ) -> bool {
        let Ok(mut all) = Dir::new(open) else { return false };
        all.all(|entry| {
            let Ok(entry) = entry else { return false };
            let name = entry.file_name().to_bytes();
            // At the top is git's own folder, or the link to it.
            if matches!(name, b"." | b"..") || names.has(name) || (dir == self.top && name == b".git") {
                return true;
            }
            let path = dir.join(OsStr::from_bytes(name));
            let covered = |folder: bool| ignored.lock().is_ok_and(|mut rules| rules.covers(&path, folder));
            path.symlink_metadata().is_ok_and(|meta| covered(meta.is_dir()))
        })
    }

    /// Whether a file is surely what an entry says.
    fn is_as(&self, entry: &Entry, dir: &Path, open: &OwnedFd, name: &OsStr) -> bool {
        if entry.flags.intersects(UNSEEN) || entry.stage() != Stage::Unconflicted {
            return false;
        }
        let Ok(meta) = statat(open, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
        let (kind, executable) = (FileType::from_raw_mode(meta.st_mode), meta.st_mode & 0o100 != 0);
        let kind = match entry.mode {
            Mode::FILE => kind.is_file() && !executable,
            Mode::FILE_EXECUTABLE => kind.is_file() && executable,
            Mode::SYMLINK => kind.is_symlink(),
            _ => false,
        };
        let to_the_tick = stat::Options { use_nsec: true, ..BY_SECOND };
        let settled = entry.stat.matches(&noted(&meta), to_the_tick) && !is_racy(self.index, entry);
        kind && (settled || self.has_content(entry, &dir.join(name)))
    }

    /// Reads a file. Filters are left out: a file whose bytes are those in the repository has nothing that could get lost.
    fn has_content(&self, entry: &Entry, file: &Path) -> bool {
        let Ok(meta) = file.symlink_metadata() else { return false };
        let files = self.files.fetch_add(1, Relaxed);
        let bytes = self.bytes.fetch_add(meta.len().min(MOST_BYTES), Relaxed);
        if files >= MOST_FILES || bytes.saturating_add(meta.len()) > MOST_BYTES {
            return false;
        }
        let bytes = if meta.is_symlink() {
            std::fs::read_link(file).map(|to| to.into_os_string().into_encoded_bytes())
        } else {
            std::fs::read(file)
        };
        let id = bytes.ok().and_then(|b| compute_hash(entry.id.kind(), Kind::Blob, &b).ok());
        id == Some(entry.id)
    }
}

/// Times as git compares them: every number that an index has, by the second.
pub(super) const BY_SECOND: stat::Options =
    stat::Options { trust_ctime: true, check_stat: true, use_nsec: false, use_stdev: false };

/// Whether a file was changed in the second in which the index was written, or later.
pub(super) fn is_racy(index: &File, entry: &Entry) -> bool {
    entry.stat.is_racy(index.timestamp(), BY_SECOND)
}

/// Opens a folder that is no link to one.
pub(super) fn open_folder(above: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    openat(above, name, FOLDER, rustix::fs::Mode::empty())
}

pub(super) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What an index would note of a file: the lower 32 bits of each number.
pub(super) fn noted(meta: &rustix::fs::Stat) -> Stat {
    let low = |n: i128| u32::try_from(n & 0xFFFF_FFFF).unwrap_or_default();
    let time = |secs: i128, nsecs: i128| Time { secs: low(secs), nsecs: low(nsecs) };
    Stat {
        mtime: time(meta.st_mtime.into(), meta.st_mtime_nsec.into()),
        ctime: time(meta.st_ctime.into(), meta.st_ctime_nsec.into()),
        dev: low(meta.st_dev.into()),
        ino: low(meta.st_ino.into()),
        uid: low(meta.st_uid.into()),
        gid: low(meta.st_gid.into()),
        size: low(meta.st_size.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::time::{Duration, UNIX_EPOCH};

    use super::super::Repo;
    use super::super::glance::Glance;
    use super::super::place::Place;

    /// A repository with a few files, one of them executable, one a link, one ignored, and a worktree of it.
    struct Lane(Place);

    impl Lane {
        fn new() -> Lane {
            let place = Place::new();
            place.sh(
                ".",
                "cd repo
                mkdir -p d/e; echo a >a; echo b >d/b; echo c >d/e/c; echo x >d.x; echo '#!' >run; chmod +x run
                ln -s a link; printf 'out/\n*.o\n!keep.o\n' >.gitignore; git add -A; git commit -qm first
                git worktree add -q -b lane ../lane; cd ../lane; echo o >d/x.o; mkdir -p out/in; echo f >out/in/f",
            );
            Lane(place)
        }

        fn sh(&self, script: &str) -> String {
            self.0.sh(".", script)
        }

        fn finds_nothing(&self, untracked: bool) -> bool {
            let repo = Repo::discover(&self.0.top.join("repo")).unwrap();
            let Some(glance) = Glance::at(&repo, &self.0.top.join("lane")) else { return false };
            let answer = glance.finds_nothing(untracked, true);
            assert_eq!(glance.finds_nothing(untracked, false), answer, "in parts and as a whole");
            answer
        }
    }

    #[test]
    fn a_worktree_that_is_as_its_head_is_seen_to_be_so() {
        let place = Lane::new();
        assert!(place.finds_nothing(true));
        for script in [
            "cd lane; git checkout -q --detach",
            "cd lane; touch a",
            "cd lane; echo n >new; git add -A; git commit -qm new",
            "cd lane; git update-index --split-index",
            "cd lane; rm -r out d/x.o",
            "cd lane; mkdir -p empty/folder deep; echo o >deep/y.o",
            "echo '*.log' >>repo/.git/info/exclude; echo l >lane/d/e/l.log",
        ] {
            place.sh(script);
            assert!(place.finds_nothing(true), "{script}");
            assert_eq!(place.sh("cd lane; git status --porcelain -uall"), "", "{script}");
        }
    }

    #[test]
    fn whatever_differs_is_left_to_git() {
        for (script, untracked) in [
            ("echo A >a", false),
            ("rm a", false),
            ("rm a; mkdir a", false),
            ("rm a; ln -s nowhere a", false),
            ("ln -sf b link", false),
            ("chmod +x a", false),
            ("chmod -x run", false),
            ("rm -r d; ln -s ../repo/d d", false),
            ("echo s >a; git add a", false),
            ("echo s >a; git add a; echo a >a", false),
            ("git rm -q --cached a", false),
            ("echo n >n; git add -N n", false),
            ("git update-index --assume-unchanged a; echo A >a", false),
            ("git update-index --skip-worktree a; rm a", false),
            (
                "git commit -q --allow-empty -m x; git reset -q --soft $(git commit-tree -m o $(git mktree </dev/null))",
                false,
            ),
            (
                "cd ../repo; echo 1 >a; git commit -qam 1; cd ../lane; echo 2 >a; git commit -qam 2; git merge -q main || true",
                false,
            ),
            (
                "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; git commit -qm sub; mkdir sub",
                false,
            ),
            ("echo u >untracked", true),
            ("mkdir -p far/away; echo u >far/away/u", true),
            ("echo k >d/keep.o", true),
            ("git init -q nested", true),
            ("git init -q d/nested", true),
            ("mkfifo pipe", true),
            ("mv d D", true),
            ("git checkout -q --orphan unborn", false),
        ] {
            let place = Lane::new();
            place.sh(&format!("cd lane; {script}"));
            assert!(!place.finds_nothing(true), "{script}");
            if !untracked {
                assert!(!place.finds_nothing(false), "{script}");
            } else if !script.starts_with("mv") {
                assert!(place.finds_nothing(false), "{script}");
            }
        }
    }

    /// An edit of the same length in the tick of the clock in which git had looked at the file leaves the times that are in
    /// the index.
    #[test]
    fn a_file_as_young_as_the_index_is_read() {
        let place = Lane::new();
        place.sh("cd lane; echo A >a");
        let index = place.0.top.join("repo/.git/worktrees/lane/index");
        let file = std::fs::metadata(place.0.top.join("lane/a")).unwrap();
        let mut bytes = std::fs::read(&index).unwrap();
        let path = bytes.windows(3).position(|w| w == b"\x01a\0").unwrap() + 1;
        let entry = path - 62;
        let stamps = [file.ctime(), file.ctime_nsec(), file.mtime(), file.mtime_nsec()];
        for (n, stamp) in stamps.into_iter().enumerate() {
            let stamp = u32::try_from(stamp).unwrap();
            bytes[entry + 4 * n..entry + 4 * n + 4].copy_from_slice(&stamp.to_be_bytes());
        }
        std::fs::write(&index, bytes).unwrap();
        let at = |seconds: i64| {
            let time = UNIX_EPOCH + Duration::from_secs(u64::try_from(file.mtime() + seconds).unwrap());
            std::fs::File::options().write(true).open(&index).unwrap().set_modified(time).unwrap();
        };
        at(0);
        assert!(!place.finds_nothing(false));
        // From the next second on nobody can tell, git neither.
        at(1);
        assert!(place.finds_nothing(false));
    }

    /// What may happen in a worktree, one line of shell each; whether it can be done does not matter.
    const DEEDS: &[&str] = &[
        "echo b >a",
        "printf 'a\n' >a",
        "touch -d 2001-01-01 a d/b",
        "chmod 755 a",
        "chmod 644 a run",
        "rm -f a",
        "mv d/b d/c",
        "mv d moved",
        "mv moved d",
        "rm -f link; ln -s a link",
        "rm -f link; echo a >link",
        "echo x >d/e/x.o",
        "echo x >d/e/keep.o",
        "rm -f d/e/keep.o",
        "printf '*\n!.gitignore\n' >d/e/.gitignore",
        "rm -f d/e/.gitignore",
        "printf 'new\n' >>.gitignore",
        "git checkout -q -- .gitignore",
        "mkdir -p new; echo n >new/n",
        "rm -rf new",
        "git add -A",
        "git add -N new",
        "git commit -qm work",
        "git commit -q --allow-empty -m nothing",
        "git reset -q --soft HEAD~1",
        "git reset -q HEAD~1",
        "git reset -q --hard",
        "git rm -q --cached d/e/c",
        "git stash -q",
        "git update-index --assume-unchanged a",
        "git update-index --no-assume-unchanged a",
        "git update-index --skip-worktree d/b",
        "git update-index --no-skip-worktree d/b",
        "git update-index --index-version 4",
        "git update-index --split-index",
        "git config core.fileMode false",
        "git config --unset core.fileMode",
        "git config core.autocrlf true",
        "git config --unset core.autocrlf",
        "printf 'a\r\n' >a",
        "git sparse-checkout set d",
        "git sparse-checkout disable",
        "git status >status.o",
    ];

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { cases: 24, ..Default::default() })]
        #[test]
        fn nothing_is_found_only_where_git_finds_nothing(
            deeds in proptest::collection::vec(proptest::sample::select(DEEDS), 1..14),
        ) {
            let place = Lane::new();
            for (n, deed) in deeds.iter().enumerate() {
                place.sh(&format!("cd lane; ({deed}) >../said 2>&1 || true"));
                if place.finds_nothing(true) {
                    let status = place.sh("cd lane; git --no-optional-locks status --porcelain -uall");
                    proptest::prop_assert_eq!(&status, "", "after {:?}", &deeds[..=n]);
                }
            }
        }
    }
}
