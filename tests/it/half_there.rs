//! Owns the tests of what a power cut or a hand left half there: branches whose file names no commit, snapshots that lack a part.

use std::fs::{remove_file, write};
use std::path::PathBuf;
use std::process::Stdio;

use super::bad_git::full_disk_at;
use super::recovery::kit::dies;
use super::snap::ids;
use super::support::patience::Beside;
use super::support::{Sandbox, State, names, scenes};

/// What stands in the file of a branch, as a power cut leaves it, or somebody who writes there by hand.
const BROKEN: [&[u8]; 2] = [b"", b"nothing that names a commit\n"];

fn file_of(sandbox: &Sandbox, branch: &str) -> PathBuf {
    sandbox.repo.join(".git/refs/heads").join(branch)
}

/// The command in a line that `begins` so, as a person copies it.
fn command_after(text: &str, begins: &str) -> String {
    let line = text.lines().find_map(|line| line.split_once(begins));
    line.unwrap_or_else(|| panic!("no command after '{begins}': {text}")).1.to_owned()
}

#[test]
fn an_undo_that_cannot_make_a_broken_branch_again_holds_nobody_up() {
    let sandbox = scenes::two_lanes();
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    for (n, bytes) in BROKEN.iter().enumerate() {
        write(file_of(&sandbox, "proq/one"), bytes).unwrap();
        let undone = sandbox.proq(&["undo"]).fails(1);
        let listed = sandbox.proq(&["list"]).fails(0);
        assert!(!listed.contains("cut short") && !undone.contains("tries again"), "{listed}");
        let _ = sandbox.proq(&["spawn", "--empty", "-n", &format!("new-{n}")]).ok();
        let _ = sandbox.proq(&["discard", "--force", &format!("new-{n}")]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        sandbox.sh(&command_after(&undone, "then run the command again: "));
    }
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/one:one.txt"]), "one");
    sandbox.assert_healthy();
}

#[test]
fn a_branch_below_one_that_comes_back_is_named_with_what_helps() {
    let sandbox = scenes::two_lanes();
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    sandbox.git(&["branch", "proq/one/below"]);
    let undone = sandbox.proq(&["undo"]).fails(1);
    sandbox.sh(&command_after(&undone, "in its way: ").replace("NEW-NAME", "other"));
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/one:one.txt"]), "one");
}

#[test]
fn a_broken_branch_is_one_that_is_gone_and_hides_no_other_lane() {
    let around: &[u8] = b"ref: refs/heads/proq/one\n";
    for bytes in BROKEN.into_iter().chain([around]) {
        let sandbox = scenes::two_lanes();
        let at = sandbox.git(&["rev-parse", "proq/one"]);
        write(file_of(&sandbox, "proq/one"), bytes).unwrap();
        let shown = String::from_utf8_lossy(bytes).into_owned();
        for args in [&["list"][..], &["matrix"], &["cleanup"]] {
            let out = sandbox.proq(args).ok();
            assert!(args != ["list"] || out.contains("two"), "{shown}: {out}");
        }
        if bytes != around {
            // A symbolic ref has a command of its own.
            let again = sandbox.proq(&["doctor"]).fails(1);
            sandbox.sh(&command_after(&again, &format!("{} is still there: ", &at[..8])));
            assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), at, "{shown}");
        }
        let _ = sandbox.proq(&["merge", "two"]).ok();
        assert_eq!(sandbox.read("two.txt"), "two\n", "{shown}");
    }
}

#[test]
fn a_pipe_where_a_killed_way_back_has_a_file_holds_no_other_lane_up() {
    let sandbox = scenes::shown();
    dies(&sandbox, "step.after:3", &["preview", "--back"]);
    remove_file(sandbox.repo.join("a.txt")).unwrap();
    sandbox.sh("mkfifo a.txt");
    let _ = sandbox.proq(&["list"]).ok();
    let out = sandbox.proq(&["merge", "two"]).fails(0);
    assert!(!out.contains("could not be put right"), "{out}");
    assert_eq!(sandbox.git(&["show", "main:two.txt"]), "two");
}

#[test]
fn a_pipe_that_stands_where_a_killed_command_wrote_is_not_waited_for() {
    let way = |prepare: &str, args: &[&str], at: &str, meanwhile: &str| {
        let sandbox = scenes::two_lanes();
        sandbox.sh(prepare);
        dies(&sandbox, at, args);
        sandbox.sh(meanwhile);
        let mut list = sandbox.proq_command(&sandbox.repo, &["list"]);
        let list = list.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(Beside(list).code(), Some(0), "{args:?}");
    };
    let link = "mkfifo ../pipe; ln -s ../pipe new-link; echo edit >>a.txt";
    way(link, &["preview", "one"], "transition.installed", "true");
    way("true", &["merge", "one"], "transition.moved", "rm one.txt; mkfifo one.txt");
}

#[test]
#[ignore = "needs an account other than root"]
fn what_is_set_aside_and_cannot_be_looked_at_is_not_taken_for_back() {
    let sandbox = scenes::dirty();
    let before = State::of(&sandbox);
    dies(&sandbox, "clear.filled", &["preview", "one"]);
    sandbox.sh("chmod 0 .git/proq/snaps/*/files");
    let out = sandbox.proq(&["list"]);
    assert!(out.stderr.contains("could not be put right yet"), "{}", out.shown());
    sandbox.sh("chmod 700 .git/proq/snaps/*/files");
    let _ = sandbox.proq(&["list"]).ok();
    State::of(&sandbox).is(&before, "taken back");
}

#[test]
fn changes_come_back_also_where_the_index_kept_with_them_is_broken() {
    for bytes in [None, Some(&b""[..]), Some(b"garbage"), Some(b"DIRC\0\0\0\x02")] {
        let sandbox = scenes::two_lanes();
        sandbox.sh("echo mine >>a.txt; echo new >untracked");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let index = sandbox.repo.join(".git/proq/snaps").join(&ids(&sandbox)[0]).join("index");
        match bytes {
            Some(bytes) => write(&index, bytes).unwrap(),
            None => remove_file(&index).unwrap(),
        }
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert!(sandbox.read("a.txt").ends_with("mine\n"), "{bytes:?}");
        assert_eq!(sandbox.read("untracked"), "new\n", "{bytes:?}");
        let _ = sandbox.proq(&["merge", "two"]).ok();
    }
}

#[test]
fn a_kept_index_is_not_broken_because_git_could_not_say_what_is_in_it() {
    let sandbox = full_disk_at("ls-files -v");
    sandbox.lane_of("one", "echo one >one.txt");
    sandbox.sh("echo mine >>a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let index = sandbox.repo.join(".git/proq/snaps").join(&ids(&sandbox)[0]).join("index");
    // The library leaves such a one to git.
    write(&index, "garbage").unwrap();
    let mut back = sandbox.proq_command(&sandbox.repo, &["preview", "--back"]);
    back.env("FULL", "before");
    let _ = sandbox.output(back).fails(1);
    assert_eq!(std::fs::read(&index).unwrap(), b"garbage");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert!(sandbox.read("a.txt").ends_with("mine\n"));
}

#[test]
fn a_preview_is_left_though_git_has_lost_what_it_set_aside() {
    let deeds = [
        ("", "git has lost your changes from before the preview"),
        ("rm .git/proq/snaps/*/snap.toml;", "your changes from before the preview are gone"),
        ("rm -r .git/proq/snaps/*;", "your changes from before the preview are gone"),
    ];
    for (deed, says) in deeds {
        let sandbox = scenes::two_lanes();
        sandbox.sh("echo mine >>a.txt");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let lose = "for r in $(git for-each-ref --format='%(refname)' refs/proq/snap); do git update-ref -d $r; done";
        sandbox.sh(&format!("{deed} {lose}; git reflog expire --expire=now --all; git gc -q --prune=now"));
        let out = sandbox.proq(&["preview", "--back"]).fails(0);
        assert!(out.contains(says), "{deed}: {out}");
        if let Some((_, look)) = out.split_once("see which files are left: ") {
            let id = names(&sandbox.repo.join(".git/proq/snaps")).remove(0);
            let look = look.lines().next().unwrap().replace("[ID]", &id);
            sandbox.sh(&look.replace("[ROOT]", sandbox.root().to_str().unwrap()));
        }
        let _ = sandbox.proq(&["merge", "one"]).ok();
    }
}

#[test]
fn a_name_that_a_broken_branch_or_a_symbolic_ref_has_is_freed_by_what_is_said() {
    for make in [": >.git/refs/heads/proq/new", "git symbolic-ref refs/heads/proq/new refs/heads/main"] {
        let sandbox = Sandbox::new();
        sandbox.sh(&format!("mkdir -p .git/refs/heads/proq; {make}"));
        let refused = sandbox.proq(&["spawn", "--empty", "-n", "new"]).fails(1);
        let line = refused.lines().find(|line| line.contains("or remove ")).unwrap();
        sandbox.sh(line.split_once(": ").unwrap().1.split_once(": ").unwrap().1);
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
        assert_eq!(sandbox.git(&["rev-parse", "proq/new"]), sandbox.git(&["rev-parse", "main"]), "{make}");
    }
}
