//! Property tests over random trees: a preview and its end change nothing, and a landing changes only what it
//! lands.
//!
//! Runs are deterministic; `PROQ_TEST_SEED=random cargo test property` explores other seeds. A failure prints
//! its seed, and `PROQ_TEST_SEED=N` repeats that run.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use fastrand::Rng;
use proq_test_kit::snapshots::{assert_no_preview_left, assert_same_image};
use proq_test_kit::{Sandbox, WorktreeState, random_seed};

/// File names below a folder. Some name a file here and a folder elsewhere in the list.
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

/// Returns a generator from the seed of all random tests, different for each `salt`, and prints the seed.
pub(crate) fn seeded_rng(salt: u64) -> Rng {
    let seed = random_seed();
    println!("PROQ_TEST_SEED={seed}");
    Rng::with_seed(seed ^ (salt << 48))
}

/// Returns a random name below `folder`.
fn random_name(rng: &mut Rng, folder: &str) -> Vec<u8> {
    [folder.as_bytes(), NAMES[rng.usize(..NAMES.len())]].concat()
}

/// Returns a short text, or lines that two sides can change independently.
fn random_text(rng: &mut Rng) -> String {
    match rng.usize(..3) {
        0 => String::new(),
        1 => format!("{}\n", rng.usize(..1000)),
        _ => {
            let mut lines: Vec<String> = (0..12).map(|n| format!("{n} -\n")).collect();
            (0..2).for_each(|n| lines[rng.usize(..12)] = format!("x {n}\n"));
            lines.concat()
        }
    }
}

/// Worktree that random changes are made in, with a log of them.
struct RandomWorktree<'a> {
    sandbox: &'a Sandbox,
    dir: PathBuf,
    folder: &'static str,
    log: Vec<String>,
}

impl<'a> RandomWorktree<'a> {
    fn new(sandbox: &'a Sandbox, dir: &Path, folder: &'static str) -> RandomWorktree<'a> {
        RandomWorktree { sandbox, dir: dir.to_owned(), folder, log: Vec::new() }
    }

    /// Makes one random change to files only.
    fn change_files(&mut self, rng: &mut Rng) {
        let name = random_name(rng, self.folder);
        let path = self.dir.join(OsStr::from_bytes(&name));
        let action = rng.usize(..8);
        match action {
            0..=2 => {
                self.clear_path(&path);
                std::fs::write(&path, random_text(rng)).unwrap();
            }
            3 => remove_path(&path),
            4 if path.is_file() && !path.is_symlink() => {
                let mode = if rng.usize(..2) == 0 { 0o644 } else { 0o755 };
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            }
            5 => {
                self.clear_path(&path);
                // Never a link to a link: in a cycle of links git sees no change, and the preview is refused.
                symlink(["a.txt", "deep", "nowhere"][rng.usize(..3)], &path).unwrap();
            }
            6 => {
                let other = self.dir.join(OsStr::from_bytes(&random_name(rng, self.folder)));
                if path.symlink_metadata().is_ok() && !other.starts_with(&path) && !path.starts_with(&other) {
                    self.clear_path(&other);
                    // Clearing the target path may have removed the source of the move.
                    drop(std::fs::rename(&path, &other));
                }
            }
            _ if path.symlink_metadata().is_err() => drop(std::fs::create_dir_all(&path)),
            _ => {}
        }
        self.log.push(format!("{action} {}", name.escape_ascii()));
    }

    /// Makes one random change to files, the index or both.
    fn change_files_or_index(&mut self, rng: &mut Rng) {
        if rng.usize(..3) > 0 {
            return self.change_files(rng);
        }
        let name = random_name(rng, self.folder);
        let args: &[&str] = match rng.usize(..8) {
            0..=2 => &["add", "-A"],
            3 => &["rm", "-rq", "--cached"],
            4 => &["add", "-N"],
            5 => &["update-index", "--assume-unchanged"],
            6 => &["update-index", "--skip-worktree"],
            _ => &["reset", "-q"],
        };
        let mut command = self.sandbox.command("git", &self.dir);
        command.arg("--literal-pathspecs").args(args).arg("--").arg(OsStr::from_bytes(&name));
        // Git refuses most of these commands for most names, which is random enough.
        let code = self.sandbox.output(command).code;
        self.log.push(format!("{args:?} {} = {code}", name.escape_ascii()));
    }

    /// Removes what occupies the path of a file or of its parent folders.
    fn clear_path(&self, path: &Path) {
        remove_path(path);
        let parents: Vec<&Path> = path.ancestors().skip(1).take_while(|up| *up != self.dir).collect();
        for up in parents.into_iter().rev() {
            if up.symlink_metadata().is_ok_and(|m| !m.is_dir()) {
                remove_path(up);
            }
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    }
}

fn remove_path(path: &Path) {
    if path.symlink_metadata().is_ok_and(|m| m.is_dir()) {
        std::fs::remove_dir_all(path).unwrap();
    } else {
        drop(std::fs::remove_file(path));
    }
}

/// Returns a repository with random files and two lanes that changed some of them.
fn random_repository(rng: &mut Rng, folder: &'static str) -> Sandbox {
    let sandbox = Sandbox::new();
    let mut base = RandomWorktree::new(&sandbox, &sandbox.repo, folder);
    (0..25).for_each(|_| base.change_files(rng));
    sandbox.commit_all("base");
    for lane in ["one", "two"] {
        sandbox.lane_with_commit(lane, "true");
        let dir = sandbox.lane_path(lane);
        let mut work = RandomWorktree::new(&sandbox, &dir, folder);
        (0..8).for_each(|_| work.change_files(rng));
        sandbox.commit_all_in(&dir, "work");
    }
    sandbox
}

fn assert_preview_round_trip(salt: u64) {
    let mut rng = seeded_rng(salt);
    for _ in 0..2 {
        let sandbox = random_repository(&mut rng, "");
        for _ in 0..4 {
            let mut user = RandomWorktree::new(&sandbox, &sandbox.repo, "");
            for _ in 0..rng.usize(..14) {
                user.change_files_or_index(&mut rng);
            }
            println!("{:#?}", user.log);
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            if rng.usize(..3) == 0 {
                let _ = sandbox.proq(&["preview", "two"]).ok();
            }
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
            assert_no_preview_left(&sandbox);
            sandbox.assert_healthy();
        }
    }
}

/// Promise: preview/identity
#[test]
fn preview_round_trip_restores_checkout_1() {
    assert_preview_round_trip(1);
}

#[test]
fn preview_round_trip_restores_checkout_2() {
    assert_preview_round_trip(2);
}

#[test]
fn preview_round_trip_restores_checkout_3() {
    assert_preview_round_trip(3);
}

/// Returns the status lines about one folder.
fn status_of_folder<'i>(image: &'i WorktreeState, folder: &str) -> Vec<&'i String> {
    image.status.iter().filter(|l| l.contains(&format!(" {folder}"))).collect()
}

fn assert_landing_keeps_local_changes(salt: u64) {
    let mut rng = seeded_rng(salt);
    for _ in 0..4 {
        let sandbox = random_repository(&mut rng, "lane/");
        let mut base = RandomWorktree::new(&sandbox, &sandbox.repo, "user/");
        (0..12).for_each(|_| base.change_files(&mut rng));
        base.folder = "lane/";
        (0..3).for_each(|_| base.change_files(&mut rng));
        sandbox.commit_all("main goes on");
        let merge = "git worktree add -q --detach ../plain; cd ../plain; git merge -q --no-ff -m plain proq/one > /dev/null 2>&1 && git rev-parse HEAD^{tree} || echo conflict";
        let expected_tree = sandbox.sh(merge);
        let mut user = RandomWorktree::new(&sandbox, &sandbox.repo, "user/");
        for _ in 0..rng.usize(..16) {
            user.change_files_or_index(&mut rng);
        }
        println!("{:#?}", user.log);
        let (tip, before) =
            (sandbox.git(&["rev-parse", "main"]), WorktreeState::capture(&sandbox, &sandbox.repo));
        let out = sandbox.proq(&["merge", "one"]);
        let after = WorktreeState::capture(&sandbox, &sandbox.repo);
        sandbox.assert_healthy();
        if expected_tree == "conflict" {
            let _ = out.fails(3);
            assert_same_image(&before, &after);
            continue;
        }
        // Where the base seems to have renamed a file that the lane changed, git merges the lane's change
        // into the new name.
        let is_renamed =
            !sandbox.git(&["diff", "--name-only", "-z", &tip, &expected_tree, "--", "user"]).is_empty();
        if is_renamed && out.code == 1 {
            assert!(out.stdout.contains("are in the way"), "{out:?}");
            assert_same_image(&before, &after);
            continue;
        }
        let text = out.ok();
        let landed_tree = if text.starts_with("landed") {
            &expected_tree
        } else {
            &sandbox.git(&["rev-parse", &format!("{tip}^{{tree}}")])
        };
        assert_eq!(&sandbox.git(&["rev-parse", "main^{tree}"]), landed_tree, "the tree is git's");
        assert_eq!(&expected_tree, landed_tree);
        assert_eq!(before.status, after.status, "status");
        assert!(status_of_folder(&after, "lane/").is_empty(), "the landed files are in place");
        if is_renamed {
            continue;
        }
        let user_files = |i: &WorktreeState| {
            i.files
                .iter()
                .filter(|(p, _)| p.starts_with("user"))
                .map(|(p, f)| (p.clone(), f.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(user_files(&before), user_files(&after), "the user's files");
    }
}

#[test]
fn landing_keeps_uncommitted_changes_1() {
    assert_landing_keeps_local_changes(11);
}

#[test]
fn landing_keeps_uncommitted_changes_2() {
    assert_landing_keeps_local_changes(12);
}
