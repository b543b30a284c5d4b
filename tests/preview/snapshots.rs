//! Snapshots of every kind of change: exact, readable by plain git, safe from `gc`, and rebuilt from their
//! objects alone after everything was discarded.
use proq_test_kit::snapshots::{assert_same_image, snapshot_ids, waiting_snapshots};
use proq_test_kit::{Sandbox, WorktreeState};

/// Files that every checkout below starts with.
const BASE: &str = r"
    mkdir -p d sub/deep
    echo one > d/one; echo two > d/two; echo x > sub/deep/x; : > empty; echo keep > keep.txt
    printf '#!/bin/sh\n' > run.sh; chmod +x run.sh; ln -s a.txt link; seq 1 20 > long.txt
";

/// Discards everything that differs from HEAD, including index flags.
const THROW_AWAY: &str =
    "git ls-files -z | git update-index -z --no-assume-unchanged --no-skip-worktree --stdin
    git reset -q --hard; git clean -qfd";

fn sandbox_with_changes(base: &str, dirty: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(&format!("{BASE}\n{base}"));
    sandbox.commit_all("base");
    sandbox.lane_with_commit("show", "echo lane > a.txt; echo lane > lane.txt; rm d/one");
    sandbox.sh(dirty);
    sandbox
}

/// Takes a snapshot by starting and ending a preview, discards everything, and restores it.
#[track_caller]
fn is_rebuilt(base: &str, dirty: &str) {
    let sandbox = sandbox_with_changes(base, dirty);
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "show"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    let id = snapshot_ids(&sandbox).pop().unwrap();
    sandbox.sh(THROW_AWAY);
    sandbox.sh("git reflog expire --expire=now --all; git gc -q --prune=now");
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

macro_rules! is_rebuilt {
    ($($name:ident: $base:expr, $dirty:expr;)*) => {
        mod rebuilt {
            $(#[test]
            fn $name() {
                super::is_rebuilt($base, $dirty);
            })*
        }
    };
}

is_rebuilt! {
    staged_unstaged_and_untracked: "", "echo s > a.txt; git add a.txt; echo u > a.txt; echo u >> keep.txt; mkdir new; echo n > new/n";
    deleted: "", "rm a.txt d/two; git rm -q keep.txt; git rm -q --cached long.txt; rm -r sub";
    staged_then_deleted: "", "echo new > new; git add new; rm new";
    intent_to_add: "", "echo new > new.txt; git add -N new.txt; echo x > gone; git add -N gone; rm gone";
    assume_unchanged: "", "git update-index --assume-unchanged a.txt keep.txt; echo hidden > a.txt";
    skip_worktree: "", "git update-index --skip-worktree a.txt keep.txt; echo hidden > a.txt; rm keep.txt";
    executable_bits: "", "chmod +x a.txt keep.txt; chmod -x run.sh; git add keep.txt; echo n > n.sh; chmod +x n.sh";
    symlinks: "", "rm link; ln -s nowhere link; ln -s d other; ln -s a.txt staged; git add staged; rm keep.txt; ln -s d keep.txt";
    files_links_and_folders_swapped: "",
        "rm link; echo t > link; rm a.txt; mkdir a.txt; echo x > a.txt/x; rm -r d; echo f > d; git rm -qr sub; ln -s run.sh sub";
    empty_files_and_folders: "", ": > a.txt; : > nothing; : > staged; git add staged; echo full > empty; mkdir -p void/deep";
    names_that_need_quotes: r#"printf x > "a b"; printf x > 'q"uote'; printf x > "$(printf 'n\nl')"; printf x > "$(printf 'l\377')""#,
        r#"for f in "a b" 'q"uote' "$(printf 'n\nl')" "$(printf 'l\377')" "$(printf 'new\377\n')" ':(top)x' '*' '-dash' ' lead' 'tail '; do echo y > "./$f"; done; git add "a b" ':(literal)*'"#;
    index_version_four: "git update-index --index-version 4", "echo s > a.txt; git add a.txt; echo u > a.txt; echo n > n";
    index_without_hash: "git config index.skipHash true; git update-index --force-write-index", "echo s > a.txt; git add a.txt; echo u > a.txt; echo n > n";
    split_index: "git config core.splitIndex true; git update-index --split-index", "echo s > a.txt; git add a.txt; echo u > a.txt; echo n > n";
    untracked_cache: "git config core.untrackedCache true; git update-index --untracked-cache", "echo n > new; git status -s > /dev/null; echo n > sub/new; echo u > a.txt";
    sparse_checkout: "mkdir far; echo f > far/f; git add .; git commit -qm far; git sparse-checkout set --no-cone '/*' '!/far/'", "echo mine > a.txt; echo n > new; git add new";
    sparse_checkout_in_cones: "mkdir far; echo f > far/f; git add .; git commit -qm far; git sparse-checkout set sub d", "echo mine > a.txt; echo n > new; git add new; echo x > sub/n";
    sparse_index: "mkdir far; echo f > far/f; git add .; git commit -qm far; git sparse-checkout set --sparse-index sub d", "echo mine > a.txt; echo n > new; git add new; echo x > sub/n";
    line_endings: "printf 'a\\nb\\n' > text.txt; echo '*.txt text' > .gitattributes; git config core.autocrlf true",
        "git rm -qr --cached .; git reset -q --hard; printf 'a\\r\\nc\\r\\n' > text.txt; printf 'n\\r\\n' > new.txt";
    self_inverse_filter: "git config filter.rot.clean 'tr a-z n-za-m'; git config filter.rot.smudge 'tr a-z n-za-m'; git config filter.rot.required true
        echo '*.rot filter=rot' > .gitattributes; echo word > w.rot",
        "echo other > w.rot; echo new > n.rot; echo staged > s.rot; git add s.rot; echo later > s.rot";
}

#[test]
fn sha256_repository_is_restored() {
    let sandbox = Sandbox::new();
    sandbox.sh("rm -rf .git; git init -q -b main --object-format=sha256");
    sandbox.sh(BASE);
    sandbox.commit_all("base");
    sandbox.lane_with_commit("show", "echo lane > a.txt; echo lane > lane.txt");
    sandbox.sh(
        "echo s > a.txt; git add a.txt; echo u > a.txt; echo ann > ann; git add -N ann; echo loose > loose
        git update-index --assume-unchanged keep.txt; echo hidden > keep.txt",
    );
    assert_eq!(sandbox.git(&["rev-parse", "HEAD"]).len(), 64);
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "show"]).ok();
    assert_eq!(sandbox.read("a.txt"), "lane\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    sandbox.sh(THROW_AWAY);
    let _ = sandbox.proq(&["snap", "restore", "2026"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    sandbox.sh(THROW_AWAY);
    let _ = sandbox.proq(&["merge", "show"]).ok();
    assert_eq!(sandbox.read("lane.txt"), "lane\n");
}

/// Applies the snapshot of one checkout in a second one with `git stash apply --index`, and asserts that git
/// sees the same state in both.
#[track_caller]
fn assert_plain_git_applies(dirty: &str) {
    let sandbox = sandbox_with_changes("", dirty);
    let status = sandbox.git(&["status", "--short"]);
    let files = WorktreeState::capture(&sandbox, &sandbox.repo).files;
    let _ = sandbox.proq(&["preview", "show"]).ok();
    sandbox.sh("git worktree add -q --detach ../second main");
    let second = sandbox.root().join("second");
    let id = snapshot_ids(&sandbox).pop().unwrap();
    sandbox.git_in(&second, &["stash", "apply", "--index", "-q", &format!("refs/proq/snap/{id}")]);
    let second_image = WorktreeState::capture(&sandbox, &second);
    assert_eq!(files, second_image.files);
    assert_eq!(status, sandbox.git_in(&second, &["status", "--short"]));
    assert_eq!(sandbox.git(&["stash", "list"]), "", "the stash list is never used");
}

/// Promise: snapshots/plain-git
#[test]
fn plain_git_applies_staged_and_untracked_files() {
    assert_plain_git_applies(
        "echo s > a.txt; git add a.txt; echo u > a.txt; echo u >> keep.txt; echo l > loose; mkdir n; echo n > n/n",
    );
}

/// Promise: snapshots/plain-git
#[test]
fn plain_git_applies_deletions_modes_and_links() {
    assert_plain_git_applies(
        "git rm -q d/two; rm keep.txt; chmod +x a.txt; git add a.txt; chmod -x run.sh; rm link; ln -s d link; ln -s x loose",
    );
}

/// Promise: snapshots/plain-git
#[test]
fn plain_git_applies_names_that_need_quotes() {
    assert_plain_git_applies(
        r#"for f in "a b" 'q"uote' "$(printf 'n\nl')" "$(printf 'l\377')" ':(top)x' '*'; do echo y > "./$f"; done; git add 'a b'"#,
    );
}

/// Promise: snapshots/gc
#[test]
fn gc_before_restore_loses_nothing() {
    let sandbox = sandbox_with_changes(
        "",
        "echo s1 > a.txt; git add a.txt; echo u > a.txt; echo n > new; git add new; echo m > new
        echo loose > loose; echo gone > gone; git add gone; rm gone",
    );
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let staged = sandbox.git(&["ls-files", "-s"]);
    let _ = sandbox.proq(&["preview", "show"]).ok();
    sandbox.sh("git reflog expire --expire=now --all; git gc -q --prune=now");
    for line in staged.lines() {
        let blob = line.split(' ').nth(1).unwrap();
        assert_eq!(sandbox.git(&["cat-file", "-t", blob]), "blob", "{line}");
    }
    // The parked files are lost as well, so the objects alone have to suffice.
    let files = sandbox.repo.join(".git/proq/snaps").join(&snapshot_ids(&sandbox)[0]).join("files");
    std::fs::remove_dir_all(files).unwrap();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

/// Promise: snapshots/gc
#[test]
fn gc_keeps_sides_of_resolved_conflict() {
    let sandbox = sandbox_with_changes("", "echo mine > a.txt; echo m > 'x y'; git add .; git stash -q; echo theirs > a.txt; git commit -qam theirs
        git stash pop > /dev/null 2>&1 || true; echo resolved > a.txt; git add a.txt; git stash drop -q");
    let sides = sandbox.git(&["ls-files", "--resolve-undo"]);
    assert_eq!(sides.lines().count(), 3);
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "show"]).ok();
    let gc = "git reflog expire --expire=now --all; git gc -q --prune=now";
    sandbox.sh(gc);
    let id = snapshot_ids(&sandbox).pop().unwrap();
    sandbox.sh(&format!("git worktree add -q --detach ../second main
        git -C ../second stash apply -q --index refs/proq/snap/{id}; test \"$(cat ../second/a.txt)\" = resolved"));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_eq!(sandbox.git(&["ls-files", "--resolve-undo"]), sides);
    sandbox.sh(gc);
    sandbox.sh("git fsck --strict 2>&1; git checkout -q -m a.txt");
    assert!(sandbox.read("a.txt").contains("<<<<<<<"));
}

/// Promise: snapshots/unsaved-named
#[test]
fn refuses_unmerged_index() {
    let sandbox = sandbox_with_changes(
        "",
        "echo mine > a.txt; git stash -q; echo theirs > a.txt; git commit -qam theirs",
    );
    sandbox.sh("git stash pop > /dev/null 2>&1 || true; echo n > new");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let text = sandbox.proq(&["preview", "show"]).fails(1);
    assert!(
        text.contains("has unmerged paths: a.txt") && text.contains("git -C '[ROOT]/repo' status"),
        "{text}"
    );
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_eq!(snapshot_ids(&sandbox), Vec::<String>::new());
}

/// Promise: snapshots/unsaved-named
#[test]
fn names_and_leaves_what_snapshots_cannot_hold() {
    let sandbox = sandbox_with_changes("echo '*.sock' > .gitignore", "echo mine > a.txt; mkfifo pipe d/pipe; mkdir -p t/u; echo x > t/f; mkfifo t/u/pipe
        mkfifo quiet.sock; git init -q emb; echo e > emb/e; mkdir only; mkfifo 'only/p q'; mkdir n; mv d/two n; git init -q n/deep");
    let socket = std::os::unix::net::UnixListener::bind(sandbox.repo.join("sub/socket")).unwrap();
    let preview = sandbox.proq(&["preview", "show"]);
    let mut warnings: Vec<&str> = preview.stderr.lines().filter(|l| l.starts_with("warning: ")).collect();
    warnings.sort_unstable();
    insta::assert_snapshot!(warnings.join("\n"), @r"
    warning: d/pipe is a named pipe: it is in no snapshot
    warning: emb is a repository of its own: it is in no snapshot
    warning: n/deep is a repository of its own: it is in no snapshot
    warning: only/p q is a named pipe: it is in no snapshot
    warning: pipe is a named pipe: it is in no snapshot
    warning: sub/socket is a socket: it is in no snapshot
    warning: t/u/pipe is a named pipe: it is in no snapshot
    ");
    let _ = preview.ok();
    for path in ["pipe", "d/pipe", "t/u/pipe", "quiet.sock", "emb/e", "only/p q", "n/deep", "sub/socket"] {
        assert!(sandbox.repo.join(path).exists(), "{path}");
    }
    let json = sandbox.proq(&["snap", "show", "2026", "--json"]).json();
    assert_eq!(json["left"].as_array().unwrap().len(), 7);
    let shown = sandbox.proq(&["snap", "show", "2026"]).ok();
    assert!(shown.contains("left out   emb (a repository of its own)"), "{shown}");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!((sandbox.read("a.txt"), sandbox.read("t/f")), ("mine\n".into(), "x\n".into()));
    assert_eq!(waiting_snapshots(&sandbox), Vec::<String>::new());
    drop(socket);
}

#[test]
fn ignores_pipe_behind_symlink() {
    let sandbox = sandbox_with_changes(
        "",
        "mkdir ../away; mkfifo ../away/pipe; rm -r d; ln -s ../away d; echo mine > a.txt",
    );
    let preview = sandbox.proq(&["preview", "show"]);
    assert!(!preview.stderr.contains("pipe"), "{}", preview.stderr);
    let _ = preview.ok();
}

/// Promise: snapshots/unsaved-named
#[test]
#[ignore = "needs an account other than root"]
fn names_and_leaves_unreadable_untracked_file() {
    let sandbox = sandbox_with_changes(
        "",
        "echo mine > a.txt; echo secret > secret; chmod 000 secret; echo l > loose; mkdir shut; echo in > shut/in; chmod 000 shut",
    );
    assert_ne!(sandbox.sh("id -u"), "0", "this test needs an account whose permissions count");
    let preview = sandbox.proq(&["preview", "show"]);
    for path in ["secret", "shut"] {
        let line = format!("warning: {path} is not readable: it is in no snapshot\n");
        assert!(preview.stderr.contains(&line), "{}", preview.stderr);
    }
    let _ = preview.ok();
    assert!(sandbox.repo.join("secret").exists() && !sandbox.repo.join("loose").exists());
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("chmod 600 secret; chmod 700 shut");
    assert_eq!((sandbox.read("secret"), sandbox.read("shut/in")), ("secret\n".into(), "in\n".into()));
    assert_eq!((sandbox.read("a.txt"), sandbox.read("loose")), ("mine\n".into(), "l\n".into()));
}

#[test]
#[ignore = "needs an account other than root"]
fn refuses_unreadable_tracked_file() {
    let sandbox = sandbox_with_changes("", "echo mine > keep.txt; chmod 000 keep.txt");
    assert_ne!(sandbox.sh("id -u"), "0", "this test needs an account whose permissions count");
    let text = sandbox.proq(&["preview", "show"]).fails(1);
    assert!(text.contains("cannot be read: keep.txt; nothing was changed"), "{text}");
    assert!(text.contains("chmod u+r '[ROOT]/repo/keep.txt'"), "{text}");
    assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(snapshot_ids(&sandbox), Vec::<String>::new());
}
