//! Owns the tests that a preview and the way back come to the same, whether git looks into the checkout and keeps what is there
//! or git-proq does so itself.

use std::fmt::Write;

use super::property::Dice;
use super::support::{Image, Output, Sandbox};

/// Files that are there from the beginning. Their names are such that git has no rules of its own about them.
const FILES: &[&str] = &["a.txt", "d/one", "d/two", "d/e/three", "run.sh", "long.txt", "z"];

/// Names of new ones; some of them are ignored.
const NEW: &[&str] = &["new", "d/new", "u/v/new", "u/new", "x.log", "d/x.log", "out/x", "u/x.log", "d-e"];

/// What else may be done.
const DEEDS: &[&str] = &[
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

/// What the lane does that is shown.
const LANE: &str =
    "echo lane >a.txt; echo lane >d/one; git rm -q d/two; echo lane >lane.txt; chmod -x run.sh; mkdir fresh
    echo lane >fresh/f; printf 'x\\r\\n' >>long.txt";

/// A checkout to which random things are done.
struct Player {
    sandbox: Sandbox,
    by_git: bool,
    told: String,
}

impl Player {
    fn new(by_git: bool) -> Player {
        let sandbox = Sandbox::new();
        let make = "mkdir -p d/e; for f in a.txt d/one d/two d/e/three run.sh z; do echo $f >$f; done; chmod +x run.sh
            seq 40 >long.txt; ln -s a.txt link; printf '*.log\\nout/\\n' >.gitignore";
        sandbox.sh(make);
        sandbox.commit_all("base");
        sandbox.lane_of("show", LANE);
        Player { sandbox, by_git, told: String::new() }
    }

    fn proq(&self, args: &[&str]) -> Output {
        let mut command = self.sandbox.proq_command(&self.sandbox.repo, args);
        if self.by_git {
            command.env("PROQ_TEST_BY_GIT", "1");
        }
        self.sandbox.output(command)
    }

    /// Sets the times of all files far back, so that none is as young as the index; never twice to the same.
    fn grow_old(&self, year: usize) {
        let touch = format!("find . -path ./.git -prune -o -type f -exec touch -d {year}-02-03 {{}} +");
        self.sandbox.sh(&format!("{touch}; git update-index -q --refresh || true"));
    }

    fn disturb(&mut self, dice: &mut Dice) {
        let pick = |dice: &mut Dice, from: &[&'static str]| from[dice.below(from.len())];
        let deed = match dice.below(6) {
            0 | 1 => format!("test ! -f {0} || echo more{1} >>{0}", pick(dice, FILES), dice.below(9)),
            // As long as before.
            2 => format!(
                "test ! -f {0} || tr a-z0-9 b-za1-90 <{0} >$HOME/t; test ! -f {0} || cat $HOME/t >{0}",
                pick(dice, FILES)
            ),
            3 | 4 => {
                let name = pick(dice, NEW);
                format!("mkdir -p $(dirname {name}); echo {} >{name}", dice.below(9))
            }
            _ => pick(dice, DEEDS).to_owned(),
        };
        self.sandbox.sh(&format!("({deed}) 2>/dev/null || true"));
        self.told += &format!("# {deed}\n");
    }

    /// Writes down all that there is.
    fn note(&mut self, what: &str) {
        // Before anybody looks at the files again.
        let unsure = self.sandbox.git(&["diff-files", "--name-only", "--ignore-submodules=all"]);
        let image = Image::of(&self.sandbox, &self.sandbox.repo);
        write!(self.told, "{what}: {:#?}\n{:#?}\n", image.files, image.index).unwrap();
        write!(self.told, "{:#?}\n{}\nunsure {unsure}\n", image.status, image.head).unwrap();
        let keys =
            "index_tree|work_tree|untracked_tree|stages|intent_to_add|empty_dirs|ignored|files|what|path";
        let records = format!(
            "cd .git/proq; cat preview.toml snaps/*/snap.toml 2>/dev/null | grep -E '^({keys}) ' | sort"
        );
        self.told += &self.sandbox.sh(&records);
        self.told.push('\n');
    }

    fn play(mut self, dice: &mut Dice) -> String {
        for round in 0..4 {
            if dice.below(2) == 0 {
                self.grow_old(2001 + round);
            }
            for _ in 0..dice.below(6) {
                self.disturb(dice);
            }
            for args in [&["preview", "show"][..], &["preview", "--back"]] {
                let out = self.proq(args);
                self.told += &format!("{args:?} {} {}\n", out.code, out.stderr);
                self.note("then");
                if args.len() == 2 && args[1] == "show" && dice.below(3) == 0 {
                    self.disturb(dice);
                }
            }
        }
        self.told
    }
}

fn comes_to_the_same(salt: u64) {
    let mut dice = Dice::new(salt);
    for _ in 0..4 {
        let told = Player::new(true).play(&mut dice.clone());
        let ours = Player::new(false).play(&mut dice);
        println!("by git:\n{told}\nin process:\n{ours}");
        for (git, proq) in told.lines().zip(ours.lines()) {
            assert_eq!(git, proq);
        }
        assert_eq!(told.len(), ours.len());
    }
}

#[test]
fn it_comes_to_the_same_by_git_1() {
    comes_to_the_same(31);
}

#[test]
fn it_comes_to_the_same_by_git_2() {
    comes_to_the_same(32);
}

#[test]
fn it_comes_to_the_same_by_git_3() {
    comes_to_the_same(33);
}
