//! Tests of worktrees created from a retired worktree's folder, compared with git, over many changes made in
//! that folder.

use super::*;
use crate::worktrees::populate::reuse::RetiredWorktree;

impl PopulateFixture {
    /// Creates the worktree `lane` on a branch and runs scripts in it. Then moves its folder to `left` and
    /// its git directory to `admin`, as a retired worktree leaves them.
    fn retire_worktree(&self, deeds: &[&str]) {
        let repo = Repo::discover(&self.0.parent_dir.join("repo")).unwrap();
        self.sh("git branch lane");
        let commit = CommitId::from_hex(self.sh("git rev-parse HEAD").as_bytes()).unwrap();
        let dir = self.0.parent_dir.join("lane");
        repo.add_worktree(&dir, &Head::Branch("lane".to_owned())).unwrap();
        repo.populate_worktrees(&[&dir], commit, &mut BlobSizes::default(), &|| true, &|_| ()).unwrap();
        for deed in deeds {
            self.0.run_script("lane", &format!("({deed}) >/dev/null 2>&1 || true"));
        }
        let tip = "git rev-parse HEAD >../tip; mv ../repo/.git/worktrees/lane ../admin; cd ..; mv lane left";
        self.0.run_script("lane", tip);
    }

    /// Creates the worktree `one` from the retired folder, at HEAD of the main checkout. Returns the number
    /// of reused files, the number of written files, and whether git wrote any. The error is the reason why
    /// the folder cannot be reused.
    fn reuse_retired_folder(&self) -> Result<(usize, usize, bool), String> {
        let top = &self.0.parent_dir;
        let repo = Repo::discover(&top.join("repo")).unwrap();
        let id = |text: String| CommitId::from_hex(text.as_bytes()).unwrap();
        let (commit, tip) = (id(self.sh("git rev-parse HEAD")), id(self.0.run_script(".", "cat tip")));
        let dir = top.join("one");
        repo.add_worktree(&dir, &Head::Detached(commit)).unwrap();
        let (folder, admin) = (top.join("left"), top.join("admin"));
        let retired = RetiredWorktree { dir: &folder, git_dir: &admin, tip };
        let plan = repo.plan_reuse(&retired, &dir, commit).unwrap().map_err(ToOwned::to_owned)?;
        for item in &plan.untracked {
            std::fs::rename(item.path.to_fs_path(&folder), top.join(format!("loose-{}", self.next_number())))
                .unwrap();
        }
        self.0.run_script(".", "cp one/.git left/.git; rm one/.git; mv -T left one");
        let outcome = plan.apply(&repo, &dir, &|| true, &|_| ()).unwrap().expect("it can be made of it");
        Ok((outcome.kept, outcome.written, outcome.git_reason.is_some()))
    }

    fn next_number(&self) -> u32 {
        self.1.set(self.1.get() + 1);
        self.1.get()
    }
}

/// Promise: pool/same-as-git
#[test]
fn keeps_common_files_and_writes_others() {
    // Git writes a file with an unusual name.
    let all_of_d = "git rm -rq d; git commit -qm gone";
    for (in_lane, on_main, written) in [
        (":", ":", 0),
        ("echo new >new; git add new; git commit -qm new", ":", 0),
        ("seq 3 >d/n1.txt; git commit -qam n", ":", 1),
        (all_of_d, ":", 15),
        (":", "git rm -rq d/e; echo file >d/e; git add -A; git commit -qm kind", 1),
        (":", "git rm -q a; mkdir a; echo in >a/b; git add -A; git commit -qm kind", 1),
        ("chmod 600 a; ln d/n1.txt ../second; touch d/n2.txt; : >empty", ":", 4),
        ("rm a; git checkout a; git status", ":", 0),
    ] {
        let scene = PopulateFixture::new();
        scene.retire_worktree(&[in_lane]);
        scene.sh(on_main);
        let (_, made, by_git) = scene.reuse_retired_folder().unwrap();
        assert_eq!((made, by_git), (written, in_lane == all_of_d), "{in_lane}, {on_main}");
        scene.assert_same_as_git(&["one"], &format!("{in_lane}, {on_main}"));
        scene.sh("git fsck --strict");
    }
}

#[test]
fn reused_worktree_has_fresh_index() {
    let scene = PopulateFixture::new();
    scene.retire_worktree(&[]);
    // The files are as old as those that they were copied from, and the index is newer than all of them.
    let (kept, ..) = scene.reuse_retired_folder().unwrap();
    assert_eq!(kept.to_string(), scene.sh("git ls-files | wc -l"));
    let index = scene.0.parent_dir.join("repo/.git/worktrees/one/index");
    let before = std::fs::metadata(&index).unwrap().ino();
    assert_eq!(scene.0.run_script("one", "git status --porcelain"), "");
    assert_eq!(std::fs::metadata(&index).unwrap().ino(), before);
}

/// Promise: pool/same-as-git
#[test]
fn rewrites_converted_files_by_git() {
    for (in_lane, on_main) in [
        (
            "echo '*.c ident' >.gitattributes; git add -A; git commit -qm i; rm d/e/id.c; git checkout d/e/id.c; find . -name .git -o -exec touch -h -d 2001-01-01 {} +; git update-index -q --refresh",
            ":",
        ),
        (":", "echo '*.txt eol=crlf' >.gitattributes; git add -A; git commit -qm eol"),
        (
            ":",
            "git config filter.x.smudge 'tr 1 2'; git config filter.x.clean cat; echo '*.txt filter=x' >.git/info/attributes",
        ),
        (":", "git config index.version 4"),
        // Line endings that git removed on `git add` are still in the file.
        (
            "echo 'n1.txt text' >.gitattributes; sed -i 's/$/\\r/' d/n1.txt; touch -d 2001-01-01 d/n1.txt; git add -A; git commit -qm t; git rm -q .gitattributes; git commit -qm u; git update-index -q --refresh",
            ":",
        ),
    ] {
        let scene = PopulateFixture::new();
        scene.sh("mkdir -p .git/info");
        scene.retire_worktree(&[in_lane]);
        scene.sh(on_main);
        scene.reuse_retired_folder().unwrap();
        scene.assert_same_as_git(&["one"], &format!("{in_lane}, {on_main}"));
    }
}

/// Promise: pool/changed-folder
#[test]
fn rejects_folder_that_differs_from_its_index() {
    for deed in [
        "echo more >>a",
        "rm a",
        "chmod +x a",
        "rm link; echo d/n1.txt >link",
        "rm -rf d/e; ln -s ../bin d/e",
        "echo staged >a; git add a",
        "git update-index --assume-unchanged a",
        "git update-index --skip-worktree a",
        "echo n >n; git add -N n",
        "git reset -q --soft $(git commit-tree -m o $(git mktree </dev/null))",
        "chmod 700 d",
        "git update-index --split-index",
        "git sparse-checkout set d",
        "git checkout -q -b other; echo 1 >a; git commit -qam 1; git checkout -q lane; echo 2 >a; git commit -qam 2; git merge -q other",
        "git bisect start",
    ] {
        let scene = PopulateFixture::new();
        scene.retire_worktree(&[deed]);
        assert!(scene.reuse_retired_folder().is_err(), "{deed}");
    }
}

/// Scripts that change a lane's worktree before it is retired, in addition to `REPO_SCRIPTS`.
const LANE_SCRIPTS: &[&str] = &[
    "chmod 600 d/n1.txt",
    "chmod 777 d/n2.txt",
    "ln -f d/n1.txt ../other; ln -f d/n3.txt d/n4.txt",
    "mkdir -p out/of/nowhere; echo x >out/of/x; mkfifo out/pipe",
    "git init -q nested; mkdir d/empty",
    "touch a a.b d/e/n1.c",
    "cp -p a b; rm a; mv b a",
    "git checkout -q HEAD~1 -- . ; git add -A; git commit -qm back",
    "git stash -q; git stash pop -q",
    "git status",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..Default::default() })]
    #[test]
    fn whatever_was_done_in_it_the_next_worktree_is_as_git_makes_it(
        in_lane in proptest::collection::vec(prop_oneof![select(REPO_SCRIPTS), select(LANE_SCRIPTS)], 0..8),
        on_main in proptest::collection::vec(select(REPO_SCRIPTS), 0..4), committed in any::<bool>(),
    ) {
        let scene = PopulateFixture::new();
        let mut all = in_lane.clone();
        if committed {
            all.push("git add -A; git commit -qm all");
        }
        scene.retire_worktree(&all);
        for deed in &on_main {
            scene.sh(&format!("({deed}) >/dev/null 2>&1 || true"));
        }
        if scene.reuse_retired_folder().is_ok() {
            scene.assert_same_as_git(&["one"], &format!("{all:?}, {on_main:?}"));
            scene.0.run_script("one", "git fsck --no-dangling");
        }
    }
}
