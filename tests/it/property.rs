//! Owns the tests over random trees: a preview and the way back change nothing, a landing changes only what it lands.
//!
//! Every run is the same; `PROQ_TEST_SEED=random cargo test property` looks further. A failure prints its seed, and
//! `PROQ_TEST_SEED=N` runs that one again.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::preview_identity::{nothing_is_left, same};
use super::support::{self, Image, Sandbox};

/// Names below a folder. Some are a file here and a folder there.
const NAMES: &[&[u8]] = &[
    b"a",
    b"b.txt",
    b"d",
    b"d/one",
    b"d/two",
    b"d/e",
    b"d/e/f",
    b"sp ace",
    b"q\"uote",
    b"n\nl",
    b"l\xff",
    b"*",
    b"-x",
    b"deep/er/x",
    b"deep/er",
    b"link",
    b":(top)",
];

/// A small generator: the same numbers for the same seed, everywhere.
#[derive(Clone)]
pub struct Dice(u64);

impl Dice {
    /// Seeded as all random tests are, and differently for each `salt`; says so.
    pub fn new(salt: u64) -> Dice {
        let seed = support::seed();
        println!("PROQ_TEST_SEED={seed}");
        Dice((seed ^ (salt << 48)).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % n as u64).unwrap()
    }

    /// A name below `folder`.
    fn name(&mut self, folder: &str) -> Vec<u8> {
        [folder.as_bytes(), NAMES[self.below(NAMES.len())]].concat()
    }

    /// A short text, or lines that two sides can change apart from each other.
    fn text(&mut self) -> String {
        match self.below(3) {
            0 => String::new(),
            1 => format!("{}\n", self.below(1000)),
            _ => {
                let mut lines: Vec<String> = (0..12).map(|n| format!("{n} -\n")).collect();
                (0..2).for_each(|n| lines[self.below(12)] = format!("x {n}\n"));
                lines.concat()
            }
        }
    }
}

/// A worktree that random things are done to, each of them written down.
struct Victim<'a> {
    sandbox: &'a Sandbox,
    dir: PathBuf,
    folder: &'static str,
    done: Vec<String>,
}

impl<'a> Victim<'a> {
    fn new(sandbox: &'a Sandbox, dir: &Path, folder: &'static str) -> Victim<'a> {
        Victim { sandbox, dir: dir.to_owned(), folder, done: Vec::new() }
    }

    /// Changes files only.
    fn change(&mut self, dice: &mut Dice) {
        let name = dice.name(self.folder);
        let path = self.dir.join(OsStr::from_bytes(&name));
        let what = dice.below(8);
        match what {
            0..=2 => {
                self.make_room(&path);
                std::fs::write(&path, dice.text()).unwrap();
            }
            3 => remove(&path),
            4 if path.is_file() && !path.is_symlink() => {
                let mode = if dice.below(2) == 0 { 0o644 } else { 0o755 };
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            }
            5 => {
                self.make_room(&path);
                // No link to a link: in a circle of them git sees no change, and the preview is refused.
                symlink(["a.txt", "deep", "nowhere"][dice.below(3)], &path).unwrap();
            }
            6 => {
                let other = self.dir.join(OsStr::from_bytes(&dice.name(self.folder)));
                if path.symlink_metadata().is_ok() && !other.starts_with(&path) && !path.starts_with(&other) {
                    self.make_room(&other);
                    // Making room may have taken what was to be moved.
                    drop(std::fs::rename(&path, &other));
                }
            }
            _ if path.symlink_metadata().is_err() => drop(std::fs::create_dir_all(&path)),
            _ => {}
        }
        self.done.push(format!("{what} {}", name.escape_ascii()));
    }

    /// Changes files, the index or both.
    fn disturb(&mut self, dice: &mut Dice) {
        if dice.below(3) > 0 {
            return self.change(dice);
        }
        let name = dice.name(self.folder);
        let args: &[&str] = match dice.below(8) {
            0..=2 => &["add", "-A"],
            3 => &["rm", "-rq", "--cached"],
            4 => &["add", "-N"],
            5 => &["update-index", "--assume-unchanged"],
            6 => &["update-index", "--skip-worktree"],
            _ => &["reset", "-q"],
        };
        let mut call = self.sandbox.command("git", &self.dir);
        call.arg("--literal-pathspecs").args(args).arg("--").arg(OsStr::from_bytes(&name));
        // Most of these are refused for most names; that is as random as the rest.
        let code = self.sandbox.output(call).code;
        self.done.push(format!("{args:?} {} = {code}", name.escape_ascii()));
    }

    /// Takes away what stands where a file or its parents should be.
    fn make_room(&self, path: &Path) {
        remove(path);
        let parents: Vec<&Path> = path.ancestors().skip(1).take_while(|up| *up != self.dir).collect();
        for up in parents.into_iter().rev() {
            if up.symlink_metadata().is_ok_and(|m| !m.is_dir()) {
                remove(up);
            }
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    }
}

fn remove(path: &Path) {
    if path.symlink_metadata().is_ok_and(|m| m.is_dir()) {
        std::fs::remove_dir_all(path).unwrap();
    } else {
        drop(std::fs::remove_file(path));
    }
}

/// A repository with random files and two lanes that changed some of them.
fn random_repository(dice: &mut Dice, folder: &'static str) -> Sandbox {
    let sandbox = Sandbox::new();
    let mut base = Victim::new(&sandbox, &sandbox.repo, folder);
    (0..25).for_each(|_| base.change(dice));
    sandbox.commit_all("base");
    for lane in ["one", "two"] {
        sandbox.lane_of(lane, "true");
        let dir = sandbox.lane(lane);
        let mut work = Victim::new(&sandbox, &dir, folder);
        (0..8).for_each(|_| work.change(dice));
        sandbox.commit_all_in(&dir, "work");
    }
    sandbox
}

fn a_preview_is_the_identity(salt: u64) {
    let mut dice = Dice::new(salt);
    for _ in 0..2 {
        let sandbox = random_repository(&mut dice, "");
        for _ in 0..4 {
            let mut user = Victim::new(&sandbox, &sandbox.repo, "");
            for _ in 0..dice.below(14) {
                user.disturb(&mut dice);
            }
            println!("{:#?}", user.done);
            let before = Image::of(&sandbox, &sandbox.repo);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            if dice.below(3) == 0 {
                let _ = sandbox.proq(&["preview", "two"]).ok();
            }
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            same(&before, &Image::of(&sandbox, &sandbox.repo));
            nothing_is_left(&sandbox);
            sandbox.assert_healthy();
        }
    }
}

#[test]
fn a_preview_is_the_identity_1() {
    a_preview_is_the_identity(1);
}

#[test]
fn a_preview_is_the_identity_2() {
    a_preview_is_the_identity(2);
}

#[test]
fn a_preview_is_the_identity_3() {
    a_preview_is_the_identity(3);
}

/// The lines of a status about one folder.
fn about<'i>(image: &'i Image, folder: &str) -> Vec<&'i String> {
    image.status.iter().filter(|l| l.contains(&format!(" {folder}"))).collect()
}

fn a_landing_leaves_dirt_alone(salt: u64) {
    let mut dice = Dice::new(salt);
    for _ in 0..4 {
        let sandbox = random_repository(&mut dice, "lane/");
        let mut base = Victim::new(&sandbox, &sandbox.repo, "user/");
        (0..12).for_each(|_| base.change(&mut dice));
        base.folder = "lane/";
        (0..3).for_each(|_| base.change(&mut dice));
        sandbox.commit_all("main goes on");
        let merge = "git worktree add -q --detach ../plain; cd ../plain; git merge -q --no-ff -m plain proq/one > /dev/null 2>&1 && git rev-parse HEAD^{tree} || echo conflict";
        let wanted = sandbox.sh(merge);
        let mut user = Victim::new(&sandbox, &sandbox.repo, "user/");
        for _ in 0..dice.below(16) {
            user.disturb(&mut dice);
        }
        println!("{:#?}", user.done);
        let (tip, before) = (sandbox.git(&["rev-parse", "main"]), Image::of(&sandbox, &sandbox.repo));
        let out = sandbox.proq(&["merge", "one"]);
        let after = Image::of(&sandbox, &sandbox.repo);
        sandbox.assert_healthy();
        if wanted == "conflict" {
            let _ = out.fails(3);
            same(&before, &after);
            continue;
        }
        // Where the base seems to have renamed a file of the lane's, git merges the lane's change into the new name.
        let is_renamed = !sandbox.git(&["diff", "--name-only", "-z", &tip, &wanted, "--", "user"]).is_empty();
        if is_renamed && out.code == 1 {
            assert!(out.stdout.contains("stand in the way"), "{out:?}");
            same(&before, &after);
            continue;
        }
        let text = out.ok();
        let moved = if text.starts_with("landed") {
            &wanted
        } else {
            &sandbox.git(&["rev-parse", &format!("{tip}^{{tree}}")])
        };
        assert_eq!(&sandbox.git(&["rev-parse", "main^{tree}"]), moved, "the tree is git's");
        assert_eq!(&wanted, moved);
        assert_eq!(before.status, after.status, "status");
        assert!(about(&after, "lane/").is_empty(), "the landed files are in place");
        if is_renamed {
            continue;
        }
        let own = |i: &Image| {
            i.files
                .iter()
                .filter(|(p, _)| p.starts_with("user"))
                .map(|(p, f)| (p.clone(), f.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(own(&before), own(&after), "the user's files");
    }
}

#[test]
fn a_landing_leaves_dirt_alone_1() {
    a_landing_leaves_dirt_alone(11);
}

#[test]
fn a_landing_leaves_dirt_alone_2() {
    a_landing_leaves_dirt_alone(12);
}
