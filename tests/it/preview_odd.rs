//! Owns the tests of a preview from a checkout with things in it that git refuses, or sees only in part: what may not be changed or
//! read, what is no file, contents that are exchanged or made anew, repositories of their own.

use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;

use super::preview_identity::{nothing_is_left, same};
use super::snap::ids;
use super::support::{Image, Output, Sandbox};

const BASE: &str =
    "mkdir -p d/e; echo one >d/one; echo two >d/two; echo three >d/e/three; echo keep >keep.txt; : >d/empty";
const LANE: &str = "echo lane >a.txt; echo lane >d/one; git rm -q d/two; echo lane >lane.txt";
const DIRTY: &str = "echo mine >keep.txt; echo u >untracked; mkdir -p n/m; echo f >n/m/f; rm d/e/three";
/// Somebody whom rights mean something to.
const NOBODY: u32 = 65534;

fn sandbox_with(base: &str, lane: &str, dirty: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(&format!("{BASE}; {base}"));
    sandbox.commit_all("base");
    sandbox.lane_of("one", lane);
    sandbox.sh(dirty);
    sandbox
}

/// The ways of looking and keeping: the program's own, and git's.
fn both_ways(test: impl Fn(&dyn Fn(&Sandbox, &[&str]) -> Output)) {
    for by_git in [false, true] {
        test(&|sandbox, args| {
            let mut command = sandbox.proq_command(&sandbox.repo, args);
            if by_git {
                command.env("PROQ_TEST_BY_GIT", "1");
            }
            sandbox.output(command)
        });
    }
}

/// Runs the program as somebody whom rights mean something to.
fn as_anybody(sandbox: &Sandbox, args: &[&str]) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    if sandbox.sh("id -u") == "0" {
        sandbox.sh(&format!("git config --global safe.directory '*'; chown -hR {NOBODY}:{NOBODY} \"$ROOT\""));
        command.uid(NOBODY).gid(NOBODY);
    }
    sandbox.output(command)
}

/// A preview that is refused leaves all as it was.
#[track_caller]
fn refused(sandbox: &Sandbox, run: impl Fn(&Sandbox, &[&str]) -> Output, says: &[&str]) {
    let before = Image::of(sandbox, &sandbox.repo);
    let text = run(sandbox, &["preview", "one"]).fails(1);
    for part in says {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("could not all be taken back"), "{text}");
    same(&before, &Image::of(sandbox, &sandbox.repo));
    nothing_is_left(sandbox);
}

#[test]
fn folders_that_may_not_be_written_to_refuse_it_before_anything_moves() {
    for (deed, says) in [
        // What the lane changes lies in it, and what the user changed below it.
        ("chmod 555 d", "d cannot be changed in"),
        ("echo more >>d/e/three; chmod 555 d/e", "d/e cannot be changed in"),
        ("mkdir -p ro/a; echo f >ro/a/f; chmod 555 ro/a", "ro/a cannot be changed in"),
        ("echo more >>d/e/three; chmod 444 d", "d cannot be changed in"),
    ] {
        let sandbox = sandbox_with("", LANE, &format!("{DIRTY}; {deed}"));
        refused(&sandbox, as_anybody, &[says, "nothing was changed", "chmod u+rwx '"]);
        sandbox.sh("chmod 755 d d/e; test ! -d ro/a || chmod 755 ro/a");
        let before = Image::of(&sandbox, &sandbox.repo);
        let _ = as_anybody(&sandbox, &["preview", "one"]).ok();
        let _ = as_anybody(&sandbox, &["preview", "--back"]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
    }
}

#[test]
fn a_folder_above_that_may_not_be_written_to_is_nothing_to_what_moves_below_it() {
    let sandbox =
        sandbox_with("", "echo lane >a.txt", "echo more >>d/e/three; echo new >d/e/new; chmod 555 d");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = as_anybody(&sandbox, &["preview", "one"]).ok();
    assert_eq!(sandbox.read("d/e/three"), "three\n");
    let _ = as_anybody(&sandbox, &["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    sandbox.sh("chmod 755 d");
}

#[test]
fn a_file_of_the_lane_that_may_not_be_read_refuses_it_by_name() {
    let sandbox = sandbox_with("", "echo lane >d/two", DIRTY);
    let _ = as_anybody(&sandbox, &["list"]).ok();
    sandbox.sh("touch -d 2005-02-03 d/two; git update-index -q --refresh || true; chmod 000 d/two");
    let text = as_anybody(&sandbox, &["preview", "one"]).fails(1);
    assert!(text.contains("cannot be read: d/two; nothing was changed"), "{text}");
    assert_eq!((sandbox.read("keep.txt"), sandbox.read("untracked")), ("mine\n".into(), "u\n".into()));
    nothing_is_left(&sandbox);
}

#[test]
fn a_pipe_in_the_place_of_a_tracked_file_refuses_it_by_name() {
    both_ways(|run| {
        for file in ["keep.txt", "d/one"] {
            let sandbox = sandbox_with("", LANE, &format!("{DIRTY}; rm {file}; mkfifo {file}"));
            // With both its ends open nobody waits for another one.
            let open = std::fs::File::options().read(true).write(true).open(sandbox.repo.join(file)).unwrap();
            let text = run(&sandbox, &["preview", "one"]).fails(1);
            assert!(text.contains(&format!("{file} is a named pipe; nothing was changed")), "{text}");
            drop(open);
            let kind = std::fs::symlink_metadata(sandbox.repo.join(file)).unwrap().file_type();
            assert!(kind.is_fifo());
            assert_eq!(sandbox.read("untracked"), "u\n");
            nothing_is_left(&sandbox);
        }
    });
}

#[test]
fn contents_that_git_exchanges_refuse_it_before_anything_moves() {
    both_ways(|run| {
        for (rev, file) in
            [("HEAD:keep.txt", "keep.txt"), ("HEAD:d/one", "d/one"), ("proq/one:lane.txt", "lane.txt")]
        {
            let replace =
                format!("git replace $(git rev-parse {rev}) $(echo other | git hash-object -w --stdin)");
            let sandbox = sandbox_with("", LANE, &format!("{DIRTY}; {replace}"));
            let id = sandbox.git(&["rev-parse", rev]);
            let take_away = format!("git replace -d {id}");
            refused(&sandbox, run, &["`git replace` exchanges the content of", file, &take_away]);
            sandbox.sh(&take_away);
            let before = Image::of(&sandbox, &sandbox.repo);
            let _ = run(&sandbox, &["preview", "one"]).ok();
            let _ = run(&sandbox, &["preview", "--back"]).ok();
            same(&before, &Image::of(&sandbox, &sandbox.repo));
        }
        // Of what stays as it is, and of history, nothing is written.
        let replace = "git replace $(git rev-parse HEAD:d/e/three) $(echo other | git hash-object -w --stdin)
            git replace HEAD $(git commit-tree -m other HEAD^{tree})";
        let sandbox = sandbox_with("", LANE, &format!("echo mine >keep.txt; {replace}"));
        let before = Image::of(&sandbox, &sandbox.repo);
        let _ = run(&sandbox, &["preview", "one"]).ok();
        let _ = run(&sandbox, &["preview", "--back"]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
    });
}

#[test]
fn line_ends_that_git_would_not_add_come_back_as_they_were() {
    both_ways(|run| {
        let set = "git config core.safecrlf true; git config core.autocrlf input";
        let dirty = "printf 'a\\r\\nb\\r\\n' >keep.txt; printf 'x\\r\\n' >crlf; echo u >untracked";
        let sandbox = sandbox_with("", LANE, &format!("{set}; {dirty}"));
        let before = Image::of(&sandbox, &sandbox.repo);
        let _ = run(&sandbox, &["preview", "one"]).ok();
        assert!(!sandbox.repo.join("crlf").exists());
        let _ = run(&sandbox, &["preview", "--back"]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
        assert_eq!(sandbox.read("crlf"), "x\r\n");
    });
}

#[test]
fn files_that_filters_make_anew_are_not_called_edited() {
    both_ways(|run| {
        // Files from before there was a rule about their line ends.
        let set = "git config core.autocrlf true; git update-index -q --refresh";
        let sandbox = sandbox_with("", LANE, &format!("{set}; {DIRTY}"));
        let status = |sandbox: &Sandbox| sandbox.git(&["status", "--porcelain"]);
        let before = status(&sandbox);
        let _ = run(&sandbox, &["preview", "one"]).ok();
        let _ = run(&sandbox, &["preview", "--back"]).ok();
        assert_eq!(status(&sandbox), before);
        assert_eq!(sandbox.git(&["diff", "--name-only"]), "d/e/three\nkeep.txt");
    });
}

#[test]
fn a_repository_in_a_folder_where_the_lane_has_a_file_keeps_its_own() {
    both_ways(|run| {
        for dirty in [DIRTY, "true"] {
            let nested = "git init -q nest; echo x >nest/x; git -C nest add x; git -C nest commit -qm x; echo u >nest/u";
            let lane = format!("{LANE}; mkdir nest; echo lane >nest/lane");
            let sandbox = sandbox_with("", &lane, &format!("{dirty}; {nested}"));
            sandbox.lane_of("two", "mkdir nest; echo two >nest/two");
            let before = Image::of(&sandbox, &sandbox.repo);
            let _ = run(&sandbox, &["preview", "one"]).ok();
            assert_eq!((sandbox.read("nest/lane"), sandbox.read("nest/u")), ("lane\n".into(), "u\n".into()));
            let _ = run(&sandbox, &["preview", "two"]).ok();
            assert_eq!((sandbox.read("nest/two"), sandbox.read("nest/x")), ("two\n".into(), "x\n".into()));
            sandbox.sh("echo more >>nest/u; echo edit >>nest/two");
            let _ = run(&sandbox, &["preview", "--back"]).ok();
            assert_eq!(sandbox.read("nest/u"), "u\nmore\n");
            sandbox.sh("echo u >nest/u");
            same(&before, &Image::of(&sandbox, &sandbox.repo));
        }
    });
}

/// What may have become of a tracked file that git was told to forget or not to look at, or that something else has taken the place of.
const FORGOTTEN: &[&str] = &[
    "git rm -q --cached keep.txt",
    "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude",
    "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; echo secret >>keep.txt",
    "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; : >keep.txt; chmod 600 keep.txt",
    "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; ln -sf nowhere keep.txt",
    "git rm -q --cached keep.txt d/e/three; echo keep.txt >>.git/info/exclude",
    "git rm -q --cached d/one d/two; echo d/one >>.git/info/exclude",
    "git rm -qr --cached d; echo d/ >>.git/info/exclude; echo new >d/new",
    "git mv keep.txt moved; echo new >keep.txt; echo keep.txt >>.git/info/exclude",
    "rm keep.txt; mkdir -p keep.txt/in keep.txt/empty; echo i >keep.txt/in/f; echo keep.txt >>.git/info/exclude",
    "rm keep.txt; mkdir -p keep.txt; echo i >keep.txt/a.o; echo s >keep.txt/s; echo '*.o' >>.git/info/exclude",
    "rm -r d; echo file >d; echo d >>.git/info/exclude",
    "rm -r d; ln -s nowhere d; echo d >>.git/info/exclude",
    "rm -r d/e; echo file >d/e; echo d/e >>.git/info/exclude; rm keep.txt",
    "git rm -q --cached keep.txt; git add -N keep.txt; echo more >>keep.txt",
    "git rm -q --cached d/empty; git add -N d/empty",
    "git rm -q --cached d/empty; git add -N d/empty; rm d/empty; mkdir d/empty; echo i >d/empty/i",
    "git update-index --skip-worktree keep.txt; rm keep.txt; mkdir keep.txt; echo i >keep.txt/i",
    "git update-index --assume-unchanged d/one; rm -r d; echo d >d",
];

#[test]
fn a_file_that_git_was_told_to_forget_comes_back_as_it_was() {
    both_ways(|run| {
        for deed in FORGOTTEN {
            let sandbox = sandbox_with("", "echo lane >lane.txt", deed);
            sandbox.lane_of("two", "echo two >two.txt; echo two >d/two");
            let before = Image::of(&sandbox, &sandbox.repo);
            for lane in ["one", "two"] {
                let _ = run(&sandbox, &["preview", lane]).ok();
                assert_eq!(sandbox.git(&["status", "--porcelain"]), "", "{deed}");
            }
            let _ = run(&sandbox, &["preview", "--back"]).ok();
            same(&before, &Image::of(&sandbox, &sandbox.repo));
            nothing_is_left(&sandbox);
            // What brings it back once more.
            for args in [&["undo"][..], &["preview", "--back"], &["preview", "one"], &["undo"]] {
                let _ = run(&sandbox, args).ok();
            }
            same(&before, &Image::of(&sandbox, &sandbox.repo));
        }
    });
}

#[test]
fn an_ignored_file_that_is_set_aside_gets_into_no_object() {
    both_ways(|run| {
        let deed = "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; echo secret >keep.txt";
        let sandbox = sandbox_with("", LANE, &format!("{DIRTY}; {deed}"));
        let _ = run(&sandbox, &["preview", "one"]).ok();
        assert_eq!(sandbox.read("keep.txt"), "keep\n");
        let has = "git cat-file -e $(echo secret | git hash-object --stdin) 2>/dev/null && echo it is there || true";
        assert_eq!(sandbox.sh(has), "");
        let _ = run(&sandbox, &["preview", "--back"]).ok();
        assert_eq!((sandbox.read("keep.txt"), sandbox.sh(has)), ("secret\n".into(), String::new()));
    });
}

#[test]
fn an_ignored_file_that_is_set_aside_comes_back_onto_a_base_that_moved() {
    let deed = "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; echo secret >keep.txt";
    let sandbox = sandbox_with("", LANE, &format!("{DIRTY}; rm keep.txt; {deed}"));
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox
        .sh("git worktree add -q ../wt main; cd ../wt; echo m >moved.txt; git add .; git commit -qm moved; git worktree remove .");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!((sandbox.read("keep.txt"), sandbox.read("moved.txt")), ("secret\n".into(), "m\n".into()));
    assert_eq!(sandbox.git(&["ls-files", "keep.txt"]), "");
}

#[test]
fn an_ignored_file_that_was_edited_since_survives_the_undo_of_a_restore() {
    let deed = "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; echo secret >keep.txt";
    for change in ["", "echo newer >keep.txt", "echo newer >keep.txt; rm d/one"] {
        let sandbox = sandbox_with("", LANE, &format!("echo mine >d/two; {deed}"));
        for args in [&["preview", "one"][..], &["preview", "--back"]] {
            let _ = sandbox.proq(args).ok();
        }
        let id = ids(&sandbox).pop().unwrap();
        sandbox.sh(&format!("git checkout -q d/two; {change}"));
        let before = Image::of(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["snap", "restore", &id]).ok();
        assert_eq!(sandbox.read("d/two"), "mine\n");
        let after = Image::of(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["undo"]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["op", "redo"]).ok();
        same(&after, &Image::of(&sandbox, &sandbox.repo));
    }
}

#[test]
fn a_restore_names_ignored_files_that_came_back_before_and_are_not_as_they_were() {
    let deed = "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; echo secret >keep.txt";
    for (change, is_gone) in [
        ("", false),
        ("rm keep.txt", true),
        ("echo newer >keep.txt", true),
        ("rm keep.txt; mkdir keep.txt", true),
        ("rm keep.txt; mkfifo keep.txt", true),
    ] {
        let sandbox = sandbox_with("", LANE, &format!("echo mine >d/two; {deed}"));
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let id = ids(&sandbox).pop().unwrap();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        sandbox.sh(&format!("git checkout -q d/two; {change}"));
        for more in [&["--dry-run"][..], &[]] {
            let out = sandbox.proq(&[&["snap", "restore", &id], more].concat());
            assert_eq!(out.stderr.contains("keep.txt is not as it was"), is_gone, "{}", out.shown());
            assert_eq!(out.stdout.contains("exactly as it was"), !is_gone, "{}", out.shown());
            assert_eq!(out.stdout.contains("but for ignored files"), is_gone, "{}", out.shown());
        }
    }
}

#[test]
fn a_preview_that_stops_late_leaves_a_file_that_git_was_told_to_forget() {
    both_ways(|run| {
        for deed in FORGOTTEN {
            let sandbox = sandbox_with("", "echo lane >lane.txt", deed);
            sandbox.sh(": >.git/HEAD.lock");
            let before = Image::of(&sandbox, &sandbox.repo);
            let text = run(&sandbox, &["preview", "one"]).fails(5);
            assert!(text.contains("HEAD.lock"), "{deed}: {text}");
            same(&before, &Image::of(&sandbox, &sandbox.repo));
        }
    });
}

#[test]
fn what_no_snapshot_holds_refuses_it_where_git_was_told_to_forget_the_file() {
    both_ways(|run| {
        for (deed, says) in [
            ("mkfifo keep.txt", "keep.txt is a named pipe; nothing was changed"),
            ("mkdir keep.txt; mkfifo keep.txt/p", "keep.txt/p is a named pipe; nothing was changed"),
            ("git init -q keep.txt", "keep.txt is a repository of its own; nothing was changed"),
        ] {
            let forget = "git rm -q --cached keep.txt; rm keep.txt; echo keep.txt >>.git/info/exclude";
            let sandbox = sandbox_with("", LANE, &format!("{DIRTY}; {forget}; {deed}"));
            let text = run(&sandbox, &["preview", "one"]).fails(1);
            assert!(text.contains(says), "{text}");
            assert_eq!(sandbox.read("untracked"), "u\n");
            nothing_is_left(&sandbox);
        }
    });
}

/// A sandbox whose git directory is on another file system than its checkout.
fn over_file_systems() -> (Sandbox, tempfile::TempDir) {
    let sandbox = Sandbox::new();
    let disk = sandbox.other_disk();
    let git_dir = disk.path().join("git");
    sandbox.sh(&format!("mv .git {0}; echo 'gitdir: {0}' >.git; {BASE}", git_dir.display()));
    sandbox.commit_all("base");
    sandbox.lane_of("one", LANE);
    sandbox.sh(DIRTY);
    (sandbox, disk)
}

/// Kills a command at each file that it moves to another file system, and the recovery after it, and insists that the checkout is then
/// as it was before: no file is missing, there twice, or cut short, and nothing is kept beside it.
#[track_caller]
fn is_there_once(args: &[&str]) {
    let mut killed = 0;
    for point in ["file.copied", "file.twice"] {
        for n in 1.. {
            let (sandbox, _disk) = over_file_systems();
            if args != ["preview", "one"] {
                let _ = sandbox.proq(&["preview", "one"]).ok();
            }
            let mut args = args.to_vec();
            let id = ids(&sandbox).pop();
            if args[0] == "snap" {
                let _ = sandbox.proq(&["preview", "--back"]).ok();
                sandbox.sh("git reset -q --hard; git clean -qfd");
                args.extend(id.as_deref());
            }
            let kept = || sandbox.git(&["for-each-ref", "refs/proq/snap", "refs/proq/saved"]);
            let (before, kept_before) = (Image::of(&sandbox, &sandbox.repo), kept());
            let mut command = sandbox.proq_command(&sandbox.repo, &args);
            command.env("PROQ_TEST_DIE_AT", format!("{point}:{n}"));
            if sandbox.output(command).code == 0 {
                break;
            }
            // Who puts it right is killed, too.
            let mut again = sandbox.proq_command(&sandbox.repo, &["list"]);
            again.env("PROQ_TEST_DIE_AT", point);
            drop(sandbox.output(again));
            let _ = sandbox.proq(&["list"]).ok();
            same(&before, &Image::of(&sandbox, &sandbox.repo));
            assert_eq!(kept_before, kept(), "{point}:{n}");
            killed += 1;
        }
    }
    assert!(killed >= 3, "{killed}");
}

#[test]
#[ignore = "needs a second file system"]
fn what_a_preview_was_moving_to_another_file_system_is_there_once() {
    is_there_once(&["preview", "one"]);
}

#[test]
#[ignore = "needs a second file system"]
fn what_a_way_back_was_moving_to_another_file_system_is_there_once() {
    is_there_once(&["preview", "--back"]);
}

#[test]
#[ignore = "needs a second file system"]
fn what_an_undo_was_moving_to_another_file_system_is_there_once() {
    is_there_once(&["undo"]);
}

#[test]
#[ignore = "needs a second file system"]
fn what_a_restore_was_moving_to_another_file_system_is_there_once() {
    is_there_once(&["snap", "restore"]);
}
