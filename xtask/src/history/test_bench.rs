//! Test bench of histories: a repository at a path that never changes, created from a template.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::objects::Objects;
use super::step::{MAIN, WorktreeName};
use super::{Outcome, fail};

use super::super::copy::{copy, remove};

/// Environment that is always the same: clock, language, author and committer.
const FIXED_ENV: &[(&str, &str)] = &[
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
const INITIAL_FILES: &[&str] = &["a", "b", "d/one", "d/two", "t"];

/// Number of histories after which the model drops its cache of commits.
const HISTORIES_PER_MODEL: usize = 100;

/// Output of a program.
#[derive(Debug)]
pub(super) struct CommandOutput {
    /// Whether the program exited with 0.
    pub(super) succeeded: bool,
    /// Exit code; none when a signal ended the program.
    pub(super) code: Option<i32>,
    /// Standard output.
    pub(super) stdout: String,
    /// Standard error.
    pub(super) stderr: String,
}

/// Counts of each command: how often it was done, and how often refused.
pub(crate) type CommandCounts = BTreeMap<&'static str, [usize; 2]>;

/// Folder in which histories are played one after the other.
#[derive(Debug)]
pub(crate) struct TestBench {
    folder: PathBuf,
    proq: PathBuf,
    path: String,
    objects: Option<Objects>,
    histories_played: usize,
    counts: RefCell<CommandCounts>,
}

impl TestBench {
    /// Creates a test bench in `folder` for the program `proq`; `path` is the `PATH` for other programs.
    pub(crate) fn new(folder: &Path, proq: &Path, path: &str) -> Outcome<TestBench> {
        remove(folder)?;
        std::fs::create_dir_all(folder)?;
        let bench = TestBench {
            folder: folder.canonicalize()?,
            proq: proq.to_owned(),
            path: path.to_owned(),
            objects: None,
            histories_played: 0,
            counts: RefCell::default(),
        };
        bench.create_template()?;
        Ok(bench)
    }

    fn create_template(&self) -> Outcome<()> {
        std::fs::create_dir_all(self.folder.join("place/home"))?;
        std::fs::create_dir_all(self.repo())?;
        self.git_ok(MAIN, &["init", "-q", "-b", "main"])?;
        remove(&self.repo().join(".git/hooks"))?;
        self.git_ok(MAIN, &["config", "gc.auto", "0"])?;
        // Automatic maintenance outlives the commit that starts it, and a lane is not removed while a process
        // is in its folder.
        self.git_ok(MAIN, &["config", "maintenance.auto", "false"])?;
        for name in INITIAL_FILES {
            let text = (1..=8).fold(String::new(), |text, n| format!("{text}{name} {n}\n"));
            let path = self.repo().join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
            std::fs::write(path, text)?;
        }
        std::fs::write(self.repo().join(".gitignore"), "*.log\n")?;
        self.git_ok(MAIN, &["commit", "-q", "--allow-empty", "-m", "first"])?;
        // A file that is both tracked and ignored.
        std::fs::write(self.repo().join("k.log"), "k\n")?;
        self.git_ok(MAIN, &["add", "-A"])?;
        self.git_ok(MAIN, &["add", "-f", "k.log"])?;
        self.git_ok(MAIN, &["commit", "-q", "-m", "second"])?;
        for lane in ["one", "two"] {
            let spawned = self.proq(&["spawn", "--empty", "-n", lane])?;
            if !spawned.succeeded {
                return fail(format!("no lane could be made: {}", spawned.stderr));
            }
        }
        // The template's own operations are none that a history may undo.
        remove(&self.repo().join(".git/proq/ops"))?;
        Ok(copy(&self.folder.join("place"), &self.folder.join("template"))?)
    }

    /// Resets the folder to the template.
    pub(super) fn reset(&mut self) -> Outcome<()> {
        remove(&self.folder.join("place"))?;
        copy(&self.folder.join("template"), &self.folder.join("place"))?;
        if self.histories_played.is_multiple_of(HISTORIES_PER_MODEL) {
            let dir = self.folder.join("model.git");
            self.objects = None;
            remove(&dir)?;
            self.objects = Some(Objects::new(&dir, &self.repo().join(".git"), self.envs())?);
        }
        self.histories_played += 1;
        Ok(())
    }

    /// Counts a command.
    pub(super) fn count_command(&self, command: &'static str, done: bool) {
        self.counts.borrow_mut().entry(command).or_default()[usize::from(!done)] += 1;
    }

    /// Returns the counts so far.
    pub(crate) fn command_counts(&self) -> CommandCounts {
        self.counts.borrow().clone()
    }

    /// Returns the object reader of the model.
    pub(super) fn objects(&self) -> Outcome<&Objects> {
        self.objects.as_ref().ok_or_else(|| "nothing is played yet".into())
    }

    /// Returns the main checkout.
    pub(super) fn repo(&self) -> PathBuf {
        self.folder.join("place/repo")
    }

    /// Returns the path of a worktree.
    pub(super) fn worktree_path(&self, at: WorktreeName) -> PathBuf {
        if at == MAIN { self.repo() } else { self.repo().join(".proq-worktrees").join(at) }
    }

    fn envs(&self) -> Vec<(&'static str, String)> {
        let home = self.folder.join("place/home").display().to_string();
        let fixed = FIXED_ENV.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let variable = [
            ("PATH", self.path.clone()),
            ("GIT_CONFIG_GLOBAL", format!("{home}/.gitconfig")),
            ("TMPDIR", home.clone()),
            ("HOME", home),
        ];
        fixed.chain(variable).collect()
    }

    fn run(&self, program: &Path, dir: &Path, args: &[&str]) -> Outcome<CommandOutput> {
        let mut command = Command::new(program);
        command.env_clear().envs(self.envs()).current_dir(dir).args(args).stdin(Stdio::null());
        let out = command.output()?;
        Ok(CommandOutput {
            succeeded: out.status.success(),
            code: out.status.code(),
            stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
        })
    }

    /// Runs the program under test in the main checkout.
    pub(super) fn proq(&self, args: &[&str]) -> Outcome<CommandOutput> {
        self.run(&self.proq, &self.repo(), args)
    }

    /// Runs git in a worktree.
    pub(super) fn git(&self, at: WorktreeName, args: &[&str]) -> Outcome<CommandOutput> {
        self.run(Path::new("git"), &self.worktree_path(at), args)
    }

    /// Runs a shell script in a worktree.
    pub(super) fn sh(&self, at: WorktreeName, script: &str) -> Outcome<CommandOutput> {
        self.run(Path::new("sh"), &self.worktree_path(at), &["-c", script])
    }

    /// Runs git and asserts success.
    pub(super) fn git_ok(&self, at: WorktreeName, args: &[&str]) -> Outcome<String> {
        let answer = self.git(at, args)?;
        if answer.succeeded {
            Ok(answer.stdout)
        } else {
            fail(format!("git {}: {}", args.join(" "), answer.stderr))
        }
    }
}
