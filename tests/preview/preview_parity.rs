//! Tests that previews have the same result whether git or git-proq itself inspects and parks the changes of
//! the checkout.

use std::fmt::Write;

use fastrand::Rng;
use proq_test_kit::{Output, Sandbox, WorktreeState};

use super::property::seeded_rng;

/// Files of the first commit, with names that git has no special rules for.
const BASE_FILES: &[&str] = &["a.txt", "d/one", "d/two", "d/e/three", "run.sh", "long.txt", "z"];

/// Names of new files, some of them ignored.
const NEW_FILES: &[&str] =
    &["new", "d/new", "u/v/new", "u/new", "x.log", "d/x.log", "out/x", "u/x.log", "d-e"];

/// Other changes that may be applied.
const OTHER_CHANGES: &[&str] = &[
    "rm -rf d/e",
    "rm -f z",
    "mkdir -p u/empty d/empty out",
    "git add -A",
    "git add d; git reset -q",
    "git rm -q --cached z",
    "chmod +x a.txt",
    "rm link; ln -s z link",
    "printf 'a\\r\\nb\\r\\n' >long.txt",
    "printf 'a\\r\\n' >u-crlf",
    "echo '*.txt text' >.gitattributes",
    "echo '* text=auto eol=lf' >.git/info/attributes",
    "echo '*.txt ident' >.git/info/attributes",
    "echo '*.sh filter=upper' >.git/info/attributes; git config filter.upper.clean 'tr a-z A-Z'",
    "git config core.autocrlf input",
    "echo 'u/' >>.gitignore",
    "git write-tree >/dev/null",
    "git mv long.txt longer.txt",
    "git update-index --assume-unchanged z",
];

/// Changes of the previewed lane.
const LANE_SCRIPT: &str =
    "echo lane >a.txt; echo lane >d/one; git rm -q d/two; echo lane >lane.txt; chmod -x run.sh; mkdir fresh
    echo lane >fresh/f; printf 'x\\r\\n' >>long.txt";

/// Checkout that random changes are applied to, with a transcript of its states.
struct PreviewSimulation {
    sandbox: Sandbox,
    by_git: bool,
    transcript: String,
}

impl PreviewSimulation {
    fn new(by_git: bool) -> PreviewSimulation {
        let sandbox = Sandbox::new();
        let setup_script = "mkdir -p d/e; for f in a.txt d/one d/two d/e/three run.sh z; do echo $f >$f; done; chmod +x run.sh
            seq 40 >long.txt; ln -s a.txt link; printf '*.log\\nout/\\n' >.gitignore";
        sandbox.sh(setup_script);
        sandbox.commit_all("base");
        sandbox.lane_with_commit("show", LANE_SCRIPT);
        PreviewSimulation { sandbox, by_git, transcript: String::new() }
    }

    fn proq(&self, args: &[&str]) -> Output {
        let mut command = self.sandbox.proq_command(&self.sandbox.repo, args);
        if self.by_git {
            command.env("PROQ_TEST_BY_GIT", "1");
        }
        self.sandbox.output(command)
    }

    /// Sets all file times far back, so that no file is as new as the index. No year may be used twice.
    fn age_files(&self, year: usize) {
        let touch = format!("find . -path ./.git -prune -o -type f -exec touch -d {year}-02-03 {{}} +");
        self.sandbox.sh(&format!("{touch}; git update-index -q --refresh || true"));
    }

    fn apply_random_change(&mut self, rng: &mut Rng) {
        let pick = |rng: &mut Rng, from: &[&'static str]| from[rng.usize(..from.len())];
        let change = match rng.usize(..6) {
            0 | 1 => format!("test ! -f {0} || echo more{1} >>{0}", pick(rng, BASE_FILES), rng.usize(..9)),
            // The new content is as long as the old.
            2 => format!(
                "test ! -f {0} || tr a-z0-9 b-za1-90 <{0} >$HOME/t; test ! -f {0} || cat $HOME/t >{0}",
                pick(rng, BASE_FILES)
            ),
            3 | 4 => {
                let name = pick(rng, NEW_FILES);
                format!("mkdir -p $(dirname {name}); echo {} >{name}", rng.usize(..9))
            }
            _ => pick(rng, OTHER_CHANGES).to_owned(),
        };
        self.sandbox.sh(&format!("({change}) 2>/dev/null || true"));
        self.transcript += &format!("# {change}\n");
    }

    /// Appends the complete state of checkout and records to the transcript.
    fn record_state(&mut self, label: &str) {
        // Read first, as later reads may refresh the index.
        let racy_files = self.sandbox.git(&["diff-files", "--name-only", "--ignore-submodules=all"]);
        let image = WorktreeState::capture(&self.sandbox, &self.sandbox.repo);
        write!(self.transcript, "{label}: {:#?}\n{:#?}\n", image.files, image.index).unwrap();
        write!(self.transcript, "{:#?}\n{}\nunsure {racy_files}\n", image.status, image.head).unwrap();
        let keys =
            "index_tree|work_tree|untracked_tree|stages|intent_to_add|empty_dirs|ignored|files|what|path";
        let records = format!(
            "cd .git/proq; cat preview.toml snaps/*/snap.toml 2>/dev/null | grep -E '^({keys}) ' | sort"
        );
        self.transcript += &self.sandbox.sh(&records);
        self.transcript.push('\n');
    }

    fn run(mut self, rng: &mut Rng) -> String {
        for round in 0..4 {
            if rng.usize(..2) == 0 {
                self.age_files(2001 + round);
            }
            for _ in 0..rng.usize(..6) {
                self.apply_random_change(rng);
            }
            for args in [&["preview", "show"][..], &["preview", "--back"]] {
                let out = self.proq(args);
                self.transcript += &format!("{args:?} {} {}\n", out.code, out.stderr);
                self.record_state("then");
                if args.len() == 2 && args[1] == "show" && rng.usize(..3) == 0 {
                    self.apply_random_change(rng);
                }
            }
        }
        self.transcript
    }
}

fn assert_same_transcript(salt: u64) {
    let mut rng = seeded_rng(salt);
    for _ in 0..4 {
        let by_git = PreviewSimulation::new(true).run(&mut rng.clone());
        let in_process = PreviewSimulation::new(false).run(&mut rng);
        println!("by git:\n{by_git}\nin process:\n{in_process}");
        for (git, proq) in by_git.lines().zip(in_process.lines()) {
            assert_eq!(git, proq);
        }
        assert_eq!(by_git.len(), in_process.len());
    }
}

/// Promise: worktree/native-park
#[test]
fn in_process_preview_matches_git_1() {
    assert_same_transcript(31);
}

/// Promise: worktree/native-park
#[test]
fn in_process_preview_matches_git_2() {
    assert_same_transcript(32);
}

/// Promise: worktree/native-park
#[test]
fn in_process_preview_matches_git_3() {
    assert_same_transcript(33);
}
