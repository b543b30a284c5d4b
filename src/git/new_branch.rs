//! Owns making a branch without starting git, by its own protocol of lock, log and rename, wherever no setting, hook or name asks
//! for more than that.

use std::fs::File;
use std::io::{Result, Write};
use std::path::{Path, PathBuf};

use super::head_file::read_head;
use super::refs::HEADS;
use super::register::is_ordinary;
use super::{Oid, Repo};
use crate::fault;

/// The lock of a ref, given back if it does not become the ref.
struct Lock {
    file: File,
    path: PathBuf,
    held: bool,
}

impl Lock {
    fn take(path: PathBuf) -> Option<Lock> {
        let file = File::create_new(&path).ok()?;
        Some(Lock { file, path, held: true })
    }

    fn becomes(mut self, place: &Path) -> Result<()> {
        std::fs::rename(&self.path, place)?;
        self.held = false;
        Ok(())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.held {
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Adds a line to a log and does what it is about. If that fails the log is as it was: what was not made has none, nor the
/// beginning of a line that git's own would be joined to.
fn logged(log: &Path, line: &[u8], work: impl FnOnce() -> Result<()>) -> Result<()> {
    std::fs::create_dir_all(log.parent().unwrap_or(log))?;
    let mut file = File::options().append(true).create(true).open(log)?;
    let before = file.metadata()?.len();
    file.write_all(line).and_then(|()| work()).or_else(|e| {
        // An empty one would be in the way of branches below this name. Whoever wrote to it held the ref's lock, which is held here.
        if before == 0 { std::fs::remove_file(log) } else { file.set_len(before) }.and(Err(e))
    })
}

impl Repo {
    /// Makes the branch of a full ref name that must not exist, at a commit, durably and with `why` in its log. None where that
    /// is git's to do, which also knows the words for what is wrong; then it was not made.
    pub(super) fn make_branch(&self, name: &str, new: Oid, why: &str) -> Option<()> {
        let short = name.strip_prefix(HEADS)?;
        let ordinary = short.split('/').all(|part| is_ordinary(part.as_bytes()));
        let plain = |b: u8| matches!(b, b' '..=b'~');
        let is_logged = self.setting_text("core.logAllRefUpdates").is_none_or(|set| set == "true");
        if !ordinary || !why.bytes().all(plain) || !is_logged || !self.keeps_plain_refs() {
            return None;
        }
        let kind = self.gix.find_header(new.0).ok()?.kind();
        let common = self.common_dir();
        // Of a branch that is there in name only, HEAD keeps a log too.
        let head = read_head(common).ok()?;
        if kind != gix::object::Kind::Commit || head == format!("ref: {name}") {
            return None;
        }
        let mut line = format!("{} {new} ", new.null()).into_bytes();
        self.committer()?.to_ref(&mut gix::date::parse::TimeBuf::default()).write_to(&mut line).ok()?;
        line.extend_from_slice(format!("\t{why}\n").as_bytes());

        let (place, log) = (common.join(name), common.join("logs").join(name));
        // A file where a folder is needed is a branch that makes this one impossible.
        std::fs::create_dir_all(place.parent()?).ok()?;
        let mut lock = Lock::take(common.join(format!("{name}.lock")))?;
        // A folder holds branches below this one, or is about to be removed.
        if place.symlink_metadata().is_ok() || log.is_dir() || self.is_packed(name)? {
            return None;
        }
        lock.file.write_all(format!("{new}\n").as_bytes()).and_then(|()| lock.file.sync_all()).ok()?;
        fault::point("branch.locked");
        let place = || {
            fault::point("branch.logged");
            lock.becomes(&place)
        };
        logged(&log, &line, place).ok()
    }

    /// Whether a packed ref has this name, or one that makes it impossible; none when that cannot be read.
    fn is_packed(&self, name: &str) -> Option<bool> {
        // Read anew: what was read before counts as good for as long as the file's time is the same, be it by a tick.
        let Some(all) = self.gix.refs.open_packed_buffer().ok()? else { return Some(false) };
        let above =
            name.match_indices('/').map(|(at, _)| &name[..at]).filter(|above| above.len() > HEADS.len());
        for above in above {
            if all.try_find(above).ok()?.is_some() {
                return Some(true);
            }
        }
        for found in all.iter_prefixed(name.into()).ok()? {
            let found = found.ok()?;
            let rest = &found.name.as_bstr()[name.len()..];
            if rest.is_empty() || rest.starts_with(b"/") {
                return Some(true);
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::place::Place;

    struct Scene(Place);

    impl Scene {
        fn new() -> Scene {
            let scene = Scene(Place::new());
            scene.git("config user.name a");
            scene.git("config user.email a@b");
            scene.git("commit -q --allow-empty -m x");
            scene
        }

        fn git(&self, words: &str) -> String {
            self.0.sh("repo", &format!("git {words}"))
        }

        /// The repository as a new process sees it.
        fn fresh(&self) -> Repo {
            Repo::discover(&self.0.top.join("repo")).unwrap()
        }

        fn tip(&self) -> Oid {
            self.fresh().ref_tip("refs/heads/main").unwrap().unwrap()
        }

        fn in_git_dir(&self, path: &str) -> PathBuf {
            self.0.top.join("repo/.git").join(path)
        }

        fn makes(&self, branch: &str) -> bool {
            let name = format!("{HEADS}{branch}");
            let done = self.fresh().make_branch(&name, self.tip(), "git-proq: spawn").is_some();
            assert!(!self.in_git_dir(&format!("{name}.lock")).exists(), "{branch}");
            done
        }
    }

    #[test]
    fn a_branch_is_what_git_would_have_made() {
        let scene = Scene::new();
        assert!(scene.makes("lanes/one"));
        scene.git(&format!("update-ref -m 'git-proq: spawn' refs/heads/lanes/two HEAD {}", "0".repeat(40)));
        let read = |path: &str| std::fs::read_to_string(scene.in_git_dir(path)).unwrap();
        assert_eq!(read("refs/heads/lanes/one"), read("refs/heads/lanes/two"));
        let log = |name: &str| {
            let text = read(&format!("logs/refs/heads/lanes/{name}"));
            let (who, rest) = text.split_once("> ").unwrap();
            let (time, rest) = rest.split_once(' ').unwrap();
            assert!(time.parse::<u64>().unwrap() > 1_700_000_000);
            format!("{who}> {rest}")
        };
        assert_eq!(log("one"), log("two"));
        assert_eq!(scene.git("reflog lanes/one --format=%gs"), "git-proq: spawn");
        scene.git("fsck");
        scene.git("branch -d lanes/one");
    }

    #[test]
    fn a_name_that_is_taken_is_left_to_git() {
        let scene = Scene::new();
        assert!(!scene.makes("main"));
        scene.git("branch packed");
        scene.git("branch deep/er/packed");
        scene.git("pack-refs --all");
        for taken in
            ["packed", "packed/x", "packed/x/y", "deep", "deep/er", "deep/er/packed", "deep/er/packed/x"]
        {
            assert!(!scene.makes(taken), "{taken}");
        }
        scene.git("branch loose");
        scene.git("branch fold/er");
        for taken in ["loose", "loose/x", "fold"] {
            assert!(!scene.makes(taken), "{taken}");
        }
        let lock = scene.in_git_dir("refs/heads/held.lock");
        std::fs::write(&lock, "").unwrap();
        let made = scene.fresh().make_branch("refs/heads/held", scene.tip(), "x");
        assert!(made.is_none() && lock.exists());
        std::fs::remove_file(lock).unwrap();
        for free in ["pack", "packed-too", "deep/e", "deep/er/packe", "held"] {
            assert!(scene.makes(free), "{free}");
        }
        scene.git("fsck");
    }

    #[test]
    fn what_was_packed_since_is_seen() {
        let scene = Scene::new();
        scene.git("branch first");
        scene.git("pack-refs --all");
        let (repo, packed) = (scene.fresh(), scene.in_git_dir("packed-refs"));
        assert_eq!(repo.ref_tip("refs/heads/first").unwrap(), Some(scene.tip()));
        let time = packed.metadata().unwrap().modified().unwrap();
        scene.git("branch second");
        scene.git("pack-refs --all");
        // As when both are of one tick of the clock.
        File::options().write(true).open(&packed).unwrap().set_modified(time).unwrap();
        assert!(repo.make_branch("refs/heads/second", scene.tip(), "x").is_none());
    }

    #[test]
    fn what_could_not_be_made_has_no_log() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("deep/log");
        let fails = || Err(std::io::ErrorKind::StorageFull.into());
        assert!(logged(&log, b"never\n", fails).is_err());
        assert!(!log.exists());
        logged(&log, b"one\n", || Ok(())).unwrap();
        assert!(logged(&log, b"never\n", fails).is_err());
        logged(&log, b"two\n", || Ok(())).unwrap();
        assert_eq!(std::fs::read(&log).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn what_asks_for_more_is_left_to_git() {
        let scene = Scene::new();
        let tip = scene.tip();
        for name in
            ["refs/heads/a b", "refs/heads/.x", "refs/heads/x.lock", "refs/heads/\u{fc}", "refs/proq/x"]
        {
            assert!(scene.fresh().make_branch(name, tip, "x").is_none(), "{name}");
        }
        let tree = scene.fresh().tree_of(tip).unwrap();
        assert!(scene.fresh().make_branch("refs/heads/x", tree, "x").is_none());
        assert!(scene.fresh().make_branch("refs/heads/x", tip.null(), "x").is_none());
        assert!(scene.fresh().make_branch("refs/heads/x", tip, "two\nlines").is_none());
        for (key, value) in [
            ("core.logAllRefUpdates", "false"),
            ("core.sharedRepository", "group"),
            ("extensions.worktreeConfig", "true"),
            ("user.name", "."),
        ] {
            scene.git(&format!("config {key} {value}"));
            assert!(!scene.makes("x"), "{key}");
            scene.git(&format!("config --unset {key}"));
        }
        scene.git("config user.name a");
        scene.git("symbolic-ref HEAD refs/heads/unborn");
        assert!(!scene.makes("unborn"));
        assert!(scene.makes("x"));
    }
}
