//! Owns making a branch without starting git, by its own protocol of lock, log and rename, wherever no setting, hook or name asks
//! for more than that.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::register::is_ordinary;
use super::{Oid, Repo};
use crate::fault;

/// Where branches are.
const HEADS: &str = "refs/heads/";

/// The lock of a ref, given back if it does not become the ref.
struct Lock {
    file: File,
    path: PathBuf,
    held: bool,
}

impl Lock {
    fn take(path: PathBuf) -> Option<Lock> {
        let file = OpenOptions::new().write(true).create_new(true).open(&path).ok()?;
        Some(Lock { file, path, held: true })
    }

    fn becomes(mut self, place: &Path) -> std::io::Result<()> {
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
        let head = std::fs::read(common.join("HEAD")).ok()?;
        if kind != gix::object::Kind::Commit || head.trim_ascii() == format!("ref: {name}").as_bytes() {
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
        std::fs::create_dir_all(log.parent()?).ok()?;
        let mut log = OpenOptions::new().append(true).create(true).open(log).ok()?;
        log.write_all(&line).ok()?;
        fault::point("branch.logged");
        lock.becomes(&place).ok()
    }

    /// Whether a packed ref has this name, or one that makes it impossible; none when that cannot be read.
    fn is_packed(&self, name: &str) -> Option<bool> {
        let Some(all) = self.gix.refs.cached_packed_buffer().ok()? else { return Some(false) };
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
    use crate::git::Program;

    struct Scene {
        _dir: tempfile::TempDir,
        repo: Repo,
    }

    impl Scene {
        fn new() -> Scene {
            let dir = tempfile::tempdir().unwrap();
            let top = dir.path().canonicalize().unwrap();
            let first = Program::find().unwrap().in_dir(&top).args(["init", "-q", "-b", "main", "."]);
            first.changes().run().unwrap();
            let scene = Scene { _dir: dir, repo: Repo::discover(&top).unwrap() };
            for (key, value) in [("user.name", "Who Ever"), ("user.email", "a@b")] {
                scene.git(&["config", key, value]);
            }
            scene.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
            scene
        }

        fn git(&self, args: &[&str]) -> String {
            let out = self.repo.git().args(args).changes().run().unwrap();
            String::from_utf8(out.stdout).unwrap()
        }

        /// The repository as a new process sees it.
        fn fresh(&self) -> Repo {
            Repo::discover(self.repo.home()).unwrap()
        }

        fn tip(&self) -> Oid {
            self.repo.ref_tip("refs/heads/main").unwrap().unwrap()
        }

        fn makes(&self, branch: &str) -> bool {
            let name = format!("{HEADS}{branch}");
            let done = self.fresh().make_branch(&name, self.tip(), "git-proq: spawn").is_some();
            let lock = self.repo.common_dir().join(format!("{name}.lock"));
            assert!(!lock.exists(), "{branch}");
            done
        }
    }

    #[test]
    fn a_branch_is_what_git_would_have_made() {
        let scene = Scene::new();
        assert!(scene.makes("lanes/one"));
        scene.git(&["update-ref", "-m", "git-proq: spawn", "refs/heads/lanes/two", "HEAD", &"0".repeat(40)]);
        let read = |path: &str| std::fs::read_to_string(scene.repo.common_dir().join(path)).unwrap();
        assert_eq!(read("refs/heads/lanes/one"), read("refs/heads/lanes/two"));
        let log = |name: &str| {
            let text = read(&format!("logs/refs/heads/lanes/{name}"));
            let (who, rest) = text.split_once("> ").unwrap();
            let (time, rest) = rest.split_once(' ').unwrap();
            assert!(time.parse::<u64>().unwrap() > 1_700_000_000);
            format!("{who}> {rest}")
        };
        assert_eq!(log("one"), log("two"));
        assert_eq!(scene.git(&["reflog", "lanes/one", "--format=%gs"]), "git-proq: spawn\n");
        scene.git(&["fsck"]);
        scene.git(&["branch", "-d", "lanes/one"]);
    }

    #[test]
    fn a_name_that_is_taken_is_left_to_git() {
        let scene = Scene::new();
        assert!(!scene.makes("main"));
        scene.git(&["branch", "packed"]);
        scene.git(&["branch", "deep/er/packed"]);
        scene.git(&["pack-refs", "--all"]);
        for taken in
            ["packed", "packed/x", "packed/x/y", "deep", "deep/er", "deep/er/packed", "deep/er/packed/x"]
        {
            assert!(!scene.makes(taken), "{taken}");
        }
        scene.git(&["branch", "loose"]);
        scene.git(&["branch", "fold/er"]);
        for taken in ["loose", "loose/x", "fold"] {
            assert!(!scene.makes(taken), "{taken}");
        }
        let lock = scene.repo.common_dir().join("refs/heads/held.lock");
        std::fs::write(&lock, "").unwrap();
        let made = scene.fresh().make_branch("refs/heads/held", scene.tip(), "x");
        assert!(made.is_none() && lock.exists());
        std::fs::remove_file(lock).unwrap();
        for free in ["pack", "packed-too", "deep/e", "deep/er/packe", "held"] {
            assert!(scene.makes(free), "{free}");
        }
        scene.git(&["fsck"]);
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
        let tree = scene.repo.tree_of(tip).unwrap();
        assert!(scene.fresh().make_branch("refs/heads/x", tree, "x").is_none());
        assert!(scene.fresh().make_branch("refs/heads/x", tip.null(), "x").is_none());
        assert!(scene.fresh().make_branch("refs/heads/x", tip, "two\nlines").is_none());
        for (key, value) in [
            ("core.logAllRefUpdates", "false"),
            ("core.sharedRepository", "group"),
            ("extensions.worktreeConfig", "true"),
            ("user.name", "."),
        ] {
            let was = if key == "user.name" { Some("Who Ever") } else { None };
            scene.git(&["config", key, value]);
            assert!(!scene.makes("x"), "{key}");
            match was {
                Some(was) => scene.git(&["config", key, was]),
                None => scene.git(&["config", "--unset", key]),
            };
        }
        scene.git(&["symbolic-ref", "HEAD", "refs/heads/unborn"]);
        assert!(!scene.makes("unborn"));
        assert!(scene.makes("x"));
    }
}
