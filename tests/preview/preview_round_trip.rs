//! Tests that a preview and the way back restore any kind of dirty checkout exactly.

use proq_test_kit::snapshots::{assert_no_preview_left, assert_same_image};
use proq_test_kit::{Sandbox, WorktreeState};

/// Script that creates the files of the base.
const BASE_SCRIPT: &str = r"
    mkdir -p d sub/deep
    echo one > d/one; echo two > d/two; echo x > sub/deep/x; : > empty; echo keep > keep.txt
    printf '#!/bin/sh\n' > run.sh; chmod +x run.sh
    ln -s a.txt link
    seq 1 20 > long.txt
    printf '*.log\nbuild/\n' > .gitignore
";

/// Script of the previewed lane; it changes files that the user's changes touch too.
const LANE_SCRIPT: &str = r"
    echo lane > a.txt; echo lane > d/one; git rm -q d/two; echo lane > lane.txt; chmod -x run.sh
    rm link; ln -s keep.txt link; mkdir -p fresh; echo lane > fresh/f; sed -i s/^5$/five/ long.txt
";

/// Asserts that entering and leaving a preview from a dirty checkout restores the checkout.
#[track_caller]
fn comes_back(base: &str, dirty: &str) {
    let sandbox = Sandbox::new();
    sandbox.sh(&format!("{BASE_SCRIPT}\n{base}"));
    sandbox.commit_all("base");
    sandbox.lane_with_commit("show", LANE_SCRIPT);
    sandbox.sh(dirty);
    round_trip(&sandbox);
}

#[track_caller]
fn round_trip(sandbox: &Sandbox) {
    let before = WorktreeState::capture(sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "show"]).ok();
    assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/proq/show-preview");
    let tip = sandbox.git(&["rev-parse", "proq/show^{tree}"]);
    let shown = sandbox.git(&["ls-files", "-o", "--exclude-standard", "--", "lane.txt", "fresh"]);
    assert_eq!(shown, "", "the lane's files are tracked");
    assert_eq!(sandbox.git(&["write-tree"]), tip, "the index is the lane's");
    assert_eq!(sandbox.read("a.txt").trim_end(), "lane");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(sandbox, &sandbox.repo));
    assert_no_preview_left(sandbox);
}

macro_rules! comes_back {
    ($($name:ident: $base:expr, $dirty:expr;)*) => {
        $(#[test]
        fn $name() {
            comes_back($base, $dirty);
        })*
    };
}

comes_back! {
    clean: "", "";
    unstaged: "", "echo mine > a.txt; echo more >> d/two";
    staged: "", "echo mine > a.txt; echo new > new.txt; git add .";
    staged_and_unstaged_in_one_file: "", "echo staged > a.txt; git add a.txt; echo later > a.txt";
    untracked: "", "echo u > untracked.txt; mkdir -p new/er; echo u > new/er/file; echo u > sub/u";
    untracked_file_in_place_of_lane_file: "", "echo mine > lane.txt; mkdir fresh; echo mine > fresh/other";
    untracked_file_in_place_of_lane_folder: "", "echo mine > fresh";
    untracked_folder_in_place_of_lane_file: "", "mkdir lane.txt; echo mine > lane.txt/x";
    deleted: "", "rm a.txt d/two keep.txt; rm -r sub";
    deleted_and_staged: "", "git rm -q a.txt d/two; git rm -qr sub";
    removed_from_index_only: "", "git rm -q --cached a.txt keep.txt d/two; echo more >> keep.txt";
    staged_then_deleted: "", "echo new > new.txt; git add new.txt; rm new.txt; echo s > a.txt; git add a.txt; rm a.txt";
    renamed: "", "git mv a.txt b.txt; mv keep.txt kept.txt";
    executable_bits: "", "chmod +x a.txt keep.txt; chmod -x run.sh; git add keep.txt";
    modes_git_does_not_store: "", "chmod 600 a.txt; echo x > secret; chmod 600 secret; echo >> a.txt";
    symlinks: "", "rm link; ln -s nowhere link; ln -s d other; ln -s a.txt staged; git add staged";
    link_becomes_file: "", "rm link; echo text > link";
    file_becomes_link: "", "rm a.txt; ln -s keep.txt a.txt; rm keep.txt; ln -s long.txt keep.txt; git add keep.txt";
    file_becomes_folder: "", "rm a.txt keep.txt; mkdir a.txt; echo x > a.txt/x; mkdir -p keep.txt/y; echo z > keep.txt/y/z; git add keep.txt";
    folder_becomes_file: "", "rm -r d; echo file > d; git rm -qr sub; echo file > sub; git add sub";
    folder_becomes_link: "", "mv d e; ln -s e d";
    folder_becomes_dangling_link: "", "rm -r d; ln -s nowhere d; rm -r sub; ln -s a.txt sub";
    link_becomes_folder: "", "rm link; mkdir link; echo x > link/x";
    empty_files: "", ": > a.txt; : > nothing; echo full > empty; : > staged; git add staged";
    empty_folders: "", "mkdir -p void/deep d/void; echo x >> a.txt";
    empty_folder_in_place_of_lane_files: "", "mkdir -p fresh lane.txt";
    only_empty_folders: "", "mkdir -p void/deep d/void";
    deleted_files_with_empty_folders: "", "rm d/one d/two; rm sub/deep/x; rm keep.txt; mkdir keep.txt; rm a.txt; mkdir -p a.txt/void";
    skipped_and_removed: "", "git update-index --skip-worktree a.txt keep.txt; rm a.txt keep.txt";
    skipped_below_a_folder_replaced_by_link: "", "git update-index --skip-worktree d/one; mv d e; ln -s e d";
    intent_to_add: "", "echo new > new.txt; git add -N new.txt; echo x > gone; git add -N gone; rm gone";
    assume_unchanged_with_edits: "", "git update-index --assume-unchanged a.txt keep.txt; echo hidden > a.txt";
    skip_worktree_with_edits: "", "git update-index --skip-worktree a.txt keep.txt long.txt; echo hidden > a.txt; rm keep.txt";
    flagged_files_only_touched: "", "git update-index --skip-worktree a.txt; git update-index --assume-unchanged d/one; touch -d 2001-01-01 a.txt d/one";
    both_flags: "", "git update-index --assume-unchanged a.txt; git update-index --skip-worktree a.txt; echo hidden > a.txt";
    unusual_file_names: r#"printf x > "a b"; printf x > 'q"uote'; printf x > "$(printf 'n\nl')"; printf x > "$(printf 'l\377')""#,
        r#"for f in "a b" 'q"uote' "$(printf 'n\nl')" "$(printf 'l\377')" "$(printf 'new\377\n')" ':(top)x' '*' '-dash' ' lead' 'tail '; do echo y > "./$f"; done; git add "a b" ':(literal)*'"#;
    folder_name_not_utf8: r#"mkdir "$(printf 'd\377')"; echo x > "$(printf 'd\377/f')""#,
        r#"echo y > "$(printf 'd\377/f')"; mkdir "$(printf 'e\377')"; echo x > "$(printf 'e\377/g')""#;
    ignored_files: "", "mkdir build; echo o > build/o; echo l > x.log; mkdir logs; echo l > logs/y.log; echo mine > a.txt";
    ignored_by_edited_gitignore: "", "echo cache/ >> .gitignore; mkdir cache; echo c > cache/c; echo mine > a.txt";
    ignored_by_a_new_gitignore: "", "echo '*' > sub/.gitignore; echo c > sub/made";
    line_endings: "printf 'a\\nb\\n' > text.txt; echo '*.txt text' > .gitattributes; git config core.autocrlf true",
        "rm -r a.txt d run.sh long.txt; git checkout -q .; printf 'a\\r\\nc\\r\\n' > text.txt; printf 'n\\r\\n' > new.txt; printf 'm\\n' > keep.txt; git add keep.txt";
    ident: "echo '*.c ident' > .gitattributes; echo '$Id$' > x.c",
        "rm x.c; git checkout -q x.c; echo more >> x.c; printf '$Id$\\n' > y.c";
    attributes_edited: "echo '*.bin -text' > .gitattributes; printf 'a\\r\\n' > x.bin",
        "echo '*.txt text eol=crlf' > .gitattributes; printf 'b\\r\\n' > x.bin; printf 'z\\r\\n' > a.txt";
    embedded_repository: "", "git init -q emb; echo x > emb/x; git -C emb add x; git -C emb commit -qm e; echo y > emb/y; echo mine > a.txt";
    split_index: "git config core.splitIndex true; git update-index --split-index", "echo s > a.txt; git add a.txt; echo u > a.txt; echo n > new";
    index_without_hash: "git config index.skipHash true; git update-index --force-write-index", "echo s > a.txt; git add a.txt; echo u > a.txt; echo n > new";
    index_version_four: "git update-index --index-version 4", "echo s > a.txt; git add a.txt; echo u > a.txt";
    untracked_cache: "git config core.untrackedCache true; git update-index --untracked-cache", "echo n > new; git status -s > /dev/null; echo n > sub/new";
    sparse_checkout: "mkdir far; echo f > far/f; git add .; git commit -qm far; git sparse-checkout set --no-cone '/*' '!/far/'", "echo mine > a.txt; echo n > new; git add new";
    sparse_checkout_in_cones: "mkdir far; echo f > far/f; git add .; git commit -qm far; git sparse-checkout set sub d", "echo mine > a.txt; echo n > new; git add new; echo x > sub/n";
    untracked_files_hidden_by_config: "git config status.showUntrackedFiles no", "echo n > new; echo mine > a.txt";
    file_modes_not_trusted: "git config core.fileMode false", "chmod +x keep.txt; echo mine >> keep.txt";
}

#[test]
fn restores_filtered_files_byte_for_byte() {
    let sandbox = Sandbox::new();
    // This filter stores text in upper case and writes it in lower case.
    sandbox.git(&["config", "filter.up.clean", "tr a-z A-Z"]);
    sandbox.git(&["config", "filter.up.smudge", "tr A-Z a-z"]);
    sandbox.git(&["config", "filter.up.required", "true"]);
    sandbox.sh(&format!("{BASE_SCRIPT}\necho '*.up filter=up' > .gitattributes; echo word > w.up"));
    sandbox.commit_all("base");
    sandbox.lane_with_commit("show", &format!("{LANE_SCRIPT}\necho lane > w.up"));
    // The filter changes text in mixed case in both directions, so only the original bytes are equal.
    sandbox.sh("echo MiXed > w.up; echo NeW > n.up; echo StaGed > s.up; git add s.up");
    round_trip(&sandbox);
}

/// Promise: worktree/submodules-unchanged
#[test]
fn submodules_stay_unchanged() {
    let sandbox = Sandbox::new();
    sandbox.sh(&format!(
        "{BASE_SCRIPT}\ngit init -q ../other; echo o > ../other/o; git -C ../other add o; git -C ../other commit -qm o
        git -c protocol.file.allow=always submodule --quiet add ../other mod"
    ));
    sandbox.commit_all("base");
    sandbox.lane_with_commit("show", LANE_SCRIPT);
    sandbox.sh("echo dirty > mod/o; echo u > mod/u; echo mine > a.txt");
    round_trip(&sandbox);
    sandbox.sh("git -C mod commit -qam 'moved on'; git add mod; echo again >> mod/o");
    round_trip(&sandbox);
}

#[test]
fn returns_to_a_detached_head() {
    let sandbox = Sandbox::new();
    sandbox.sh(BASE_SCRIPT);
    sandbox.commit_all("base");
    sandbox.lane_with_commit("show", LANE_SCRIPT);
    sandbox.sh("git checkout -q --detach; echo s > a.txt; git add a.txt; echo u > u");
    round_trip(&sandbox);
}

#[test]
#[ignore = "needs git 2.46"]
fn works_in_a_reftable_repository() {
    let sandbox = Sandbox::new();
    assert!(sandbox.git_version() >= (2, 46), "this test needs git 2.46");
    sandbox.sh("rm -rf .git; git init -q -b main --ref-format=reftable");
    sandbox.sh(BASE_SCRIPT);
    sandbox.commit_all("base");
    sandbox.lane_with_commit("show", LANE_SCRIPT);
    sandbox.sh("echo s > a.txt; git add a.txt; echo u > a.txt; echo u > untracked");
    round_trip(&sandbox);
    sandbox.sh("git checkout -q --detach");
    round_trip(&sandbox);
    let _ = sandbox.proq(&["--json", "merge", "show", "--onto", "main"]).ok();
    assert_eq!(sandbox.git(&["show", "main:lane.txt"]), "lane");
}

#[test]
fn file_in_place_of_ignored_folder_is_an_edit() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo '*.log' > .gitignore; git add .; git commit -qm ignore");
    sandbox.lane_with_commit("x", "echo 1 > one");
    sandbox.sh("mkdir t; echo log > t/z.log");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    sandbox.sh("rm -r t; echo mine > t");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert!(!sandbox.repo.join("t").exists());
    let _ = sandbox.proq(&["preview", "x"]).ok();
    assert_eq!(sandbox.read("t"), "mine\n");
}
