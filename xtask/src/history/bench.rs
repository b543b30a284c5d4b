//! Owns the folder that histories are played in: a repository at a path that never changes, made from a template.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::objects::Objects;
use super::step::{At, MAIN};
use super::{Outcome, fail};

use super::super::copy::{copy, remove};

/// What is always the same: the clock, the language, the people.
const FIXED: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("TERM", "dumb"),
    ("PROQ_TEST_NOW", "2026-01-02T03:04:05Z"),
    ("PROQ_SNAPSHOT_INTERVAL", "0"),
    ("PROQ_LOCK_TIMEOUT", "10"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_AUTHOR_NAME", "Ann Author"),
    ("GIT_AUTHOR_EMAIL", "ann@example.org"),
    ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
    ("GIT_COMMITTER_NAME", "Cal Committer"),
    ("GIT_COMMITTER_EMAIL", "cal@example.org"),
    ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
];

/// Files of the first commit, of eight lines each.
const FILES: &[&str] = &["a", "b", "d/one", "d/two", "t"];

/// After so many histories the model forgets what it knows of commits.
const MEMORY: usize = 100;

/// What a program answered.
#[derive(Debug)]
pub(super) struct Answer {
    /// Whether it ended with 0.
    pub(super) good: bool,
    /// Its exit code; none when a signal ended it.
    pub(super) code: Option<i32>,
    /// Its output.
    pub(super) stdout: String,
    /// Its complaints.
    pub(super) stderr: String,
}

/// How often each command was done, and how often refused.
pub(crate) type Tally = BTreeMap<&'static str, [usize; 2]>;

/// A folder for one history after the other.
#[derive(Debug)]
pub(crate) struct Bench {
    folder: PathBuf,
    proq: PathBuf,
    path: String,
    objects: Option<Objects>,
    played: usize,
    tally: RefCell<Tally>,
}

impl Bench {
    /// A bench in `folder`, which is made, for the program `proq`, with `path` to find others.
    pub(crate) fn new(folder: &Path, proq: &Path, path: &str) -> Outcome<Bench> {
        remove(folder)?;
        std::fs::create_dir_all(folder)?;
        let bench = Bench {
            folder: folder.canonicalize()?,
            proq: proq.to_owned(),
            path: path.to_owned(),
            objects: None,
            played: 0,
            tally: RefCell::default(),
        };
        bench.make_template()?;
        Ok(bench)
    }

    fn make_template(&self) -> Outcome<()> {
        std::fs::create_dir_all(self.folder.join("place/home"))?;
        std::fs::create_dir_all(self.repo())?;
        self.git_ok(MAIN, &["init", "-q", "-b", "main"])?;
        remove(&self.repo().join(".git/hooks"))?;
        self.git_ok(MAIN, &["config", "gc.auto", "0"])?;
        // It outlives the commit that starts it, and a lane stays as long as somebody is in its folder.
        self.git_ok(MAIN, &["config", "maintenance.auto", "false"])?;
        for name in FILES {
            let text = (1..=8).fold(String::new(), |text, n| format!("{text}{name} {n}\n"));
            let path = self.repo().join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
            std::fs::write(path, text)?;
        }
        std::fs::write(self.repo().join(".gitignore"), "*.log\n")?;
        self.git_ok(MAIN, &["commit", "-q", "--allow-empty", "-m", "first"])?;
        // One that is tracked and ignored.
        std::fs::write(self.repo().join("k.log"), "k\n")?;
        self.git_ok(MAIN, &["add", "-A"])?;
        self.git_ok(MAIN, &["add", "-f", "k.log"])?;
        self.git_ok(MAIN, &["commit", "-q", "-m", "second"])?;
        for lane in ["one", "two"] {
            let made = self.proq(&["spawn", "--empty", "-n", lane])?;
            if !made.good {
                return fail(format!("no lane could be made: {}", made.stderr));
            }
        }
        // The template's own operations are nothing that a history may undo.
        remove(&self.repo().join(".git/proq/ops"))?;
        Ok(copy(&self.folder.join("place"), &self.folder.join("template"))?)
    }

    /// Starts anew.
    pub(super) fn reset(&mut self) -> Outcome<()> {
        remove(&self.folder.join("place"))?;
        copy(&self.folder.join("template"), &self.folder.join("place"))?;
        if self.played.is_multiple_of(MEMORY) {
            let dir = self.folder.join("model.git");
            self.objects = None;
            remove(&dir)?;
            self.objects = Some(Objects::new(&dir, &self.repo().join(".git"), self.envs())?);
        }
        self.played += 1;
        Ok(())
    }

    /// Counts a command.
    pub(super) fn count(&self, command: &'static str, done: bool) {
        self.tally.borrow_mut().entry(command).or_default()[usize::from(!done)] += 1;
    }

    /// What was counted so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally.borrow().clone()
    }

    /// The model's way to commits.
    pub(super) fn objects(&self) -> Outcome<&Objects> {
        self.objects.as_ref().ok_or_else(|| "nothing is played yet".into())
    }

    /// The main checkout.
    pub(super) fn repo(&self) -> PathBuf {
        self.folder.join("place/repo")
    }

    /// A worktree.
    pub(super) fn dir(&self, at: At) -> PathBuf {
        if at == MAIN { self.repo() } else { self.repo().join(".proq-worktrees").join(at) }
    }

    fn envs(&self) -> Vec<(&'static str, String)> {
        let home = self.folder.join("place/home").display().to_string();
        let fixed = FIXED.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let ours = [
            ("PATH", self.path.clone()),
            ("GIT_CONFIG_GLOBAL", format!("{home}/.gitconfig")),
            ("TMPDIR", home.clone()),
            ("HOME", home),
        ];
        fixed.chain(ours).collect()
    }

    fn run(&self, program: &Path, dir: &Path, args: &[&str]) -> Outcome<Answer> {
        let mut command = Command::new(program);
        command.env_clear().envs(self.envs()).current_dir(dir).args(args).stdin(Stdio::null());
        let out = command.output()?;
        Ok(Answer {
            good: out.status.success(),
            code: out.status.code(),
            stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
        })
    }

    /// Runs the program under test in the main checkout.
    pub(super) fn proq(&self, args: &[&str]) -> Outcome<Answer> {
        self.run(&self.proq, &self.repo(), args)
    }

    /// Runs git in a worktree.
    pub(super) fn git(&self, at: At, args: &[&str]) -> Outcome<Answer> {
        self.run(Path::new("git"), &self.dir(at), args)
    }

    /// Runs a shell script in a worktree.
    pub(super) fn sh(&self, at: At, script: &str) -> Outcome<Answer> {
        self.run(Path::new("sh"), &self.dir(at), &["-c", script])
    }

    /// Runs git and insists on success.
    pub(super) fn git_ok(&self, at: At, args: &[&str]) -> Outcome<String> {
        let answer = self.git(at, args)?;
        if answer.good {
            Ok(answer.stdout)
        } else {
            fail(format!("git {}: {}", args.join(" "), answer.stderr))
        }
    }
}
