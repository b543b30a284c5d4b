//! Folder of one worker: a home and a repository at a path that never changes, and the environment of all
//! programs.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::checkpoint::adapt_copy;
use super::index_cache::IndexCache;
use super::trace::{Plan, TracedRun, Watcher, run_traced};
use super::{Outcome, fail};
use crate::copy::{copy, remove};

/// Clock of every run that has no other time.
const DEFAULT_CLOCK: &str = "2026-01-02T03:04:05Z";

/// Fixed environment: clock, language, identities. It is as in the tests, so that ids are the same in each
/// run.
const FIXED_ENV: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("TERM", "dumb"),
    ("PROQ_TEST_NOW", DEFAULT_CLOCK),
    ("PROQ_SNAPSHOT_INTERVAL", "0"),
    ("PROQ_LOCK_TIMEOUT", "3"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_AUTHOR_NAME", "Ann Author"),
    ("GIT_AUTHOR_EMAIL", "ann@example.org"),
    ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
    ("GIT_COMMITTER_NAME", "Cal Committer"),
    ("GIT_COMMITTER_EMAIL", "cal@example.org"),
    ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
];

/// Output of a program.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// Exit code, or 128 + the number of the signal that ended the program.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: Vec<u8>,
    /// Standard error.
    pub(crate) stderr: String,
    /// Process number.
    pub(super) pid: i32,
}

impl CommandOutput {
    /// Runs a command to its end.
    pub(super) fn run(command: &mut Command) -> Outcome<CommandOutput> {
        CommandOutput::wait_for(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }

    /// Waits for the end of a process whose output is piped.
    pub(super) fn wait_for(child: Child) -> Outcome<CommandOutput> {
        use std::os::unix::process::ExitStatusExt;
        let pid = i32::try_from(child.id())?;
        let out = child.wait_with_output()?;
        let code = out.status.code().or(out.status.signal().map(|s| 128 + s)).unwrap_or(-1);
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        Ok(CommandOutput { code, stdout: out.stdout, stderr, pid })
    }

    /// Returns standard output followed by standard error.
    pub(crate) fn all_output(&self) -> String {
        [String::from_utf8_lossy(&self.stdout).as_ref(), &self.stderr].concat()
    }

    /// Returns the first line of standard error.
    pub(crate) fn first_error_line(&self) -> String {
        self.stderr.lines().next().unwrap_or_default().to_owned()
    }

    /// Returns standard output; fails if the exit code is not 0.
    pub(crate) fn ok(self, label: &str) -> Outcome<Vec<u8>> {
        if self.code == 0 {
            return Ok(self.stdout);
        }
        fail(format!("{label} ended with {}: {}", self.code, self.stderr.trim()))
    }
}

/// Folder with a home and a repository, and the template that both are copied from for every run.
#[derive(Debug)]
pub(crate) struct Fixture {
    folder: PathBuf,
    proq: PathBuf,
    tokens: RefCell<Vec<String>>,
    /// Indexes of the fixture, as git listed them.
    pub(super) index_cache: IndexCache,
    /// Whether programs believe that the machine started after everything that was done here.
    simulates_restart: bool,
}

impl Fixture {
    /// Creates a fixture in `folder`, which is created, for the program `proq`.
    pub(crate) fn new(folder: &Path, proq: &Path) -> Outcome<Fixture> {
        std::fs::create_dir_all(folder)?;
        Ok(Fixture {
            folder: folder.canonicalize()?,
            proq: proq.to_owned(),
            tokens: RefCell::default(),
            index_cache: IndexCache::default(),
            simulates_restart: false,
        })
    }

    /// Makes every program of this fixture believe that the machine started only now, as it does after a
    /// power cut.
    pub(super) fn with_restarted_machine(self) -> Fixture {
        Fixture { simulates_restart: true, ..self }
    }

    /// Returns the folder with home and repository.
    pub(super) fn root(&self) -> PathBuf {
        self.folder.join("place")
    }

    /// Returns a folder of this name next to that folder.
    pub(super) fn sibling(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the main checkout.
    pub(crate) fn repo(&self) -> PathBuf {
        self.folder.join("place/repo")
    }

    /// Returns the worktree of a lane.
    pub(crate) fn lane(&self, name: &str) -> PathBuf {
        self.repo().join(".proq-worktrees").join(name)
    }

    /// Starts with an empty home, and a repository without a commit.
    pub(crate) fn init(&self) -> Outcome<()> {
        remove(&self.folder)?;
        std::fs::create_dir_all(self.root().join("home"))?;
        std::fs::create_dir_all(self.root().join("tmp"))?;
        std::fs::create_dir_all(self.repo())?;
        self.tokens.borrow_mut().clear();
        let settings = "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";
        std::fs::write(self.root().join("home/.gitconfig"), settings)?;
        self.git(&["init", "-q", "-b", "main"])?;
        let hooks = self.repo().join(".git/hooks");
        remove(&hooks)?;
        Ok(std::fs::create_dir(hooks)?)
    }

    /// Saves the current content as the template of later runs. Its indexes have the stat data of the files
    /// that git finds unchanged.
    pub(super) fn save_template(&self) -> Outcome<()> {
        for tree in self.worktrees()? {
            let _ = self.output(self.command("git", &tree).args(["update-index", "-q", "--refresh"]))?;
        }
        let template = self.folder.join("template");
        remove(&template)?;
        copy(&self.root(), &template)?;
        adapt_copy(self, &self.root(), &template, Vec::new())
    }

    /// Replaces the content with a fresh copy of the template. Git and git-proq notice that files are other
    /// files now, so indexes, also those in the trash, are adapted to the copies.
    pub(super) fn reset(&self) -> Outcome<()> {
        let template = self.folder.join("template");
        remove(&self.root())?;
        copy(&template, &self.root())?;
        adapt_copy(self, &template, &self.root(), Vec::new())
    }

    /// Saves a copy of the current content next to it, for inspection.
    pub(super) fn save_copy(&self, name: &str) -> Outcome<()> {
        remove(&self.folder.join(name))?;
        Ok(copy(&self.root(), &self.folder.join(name))?)
    }

    /// Returns the main checkout and every lane worktree that git knows.
    pub(super) fn worktrees(&self) -> Outcome<Vec<PathBuf>> {
        let mut out = vec![self.repo()];
        let Ok(entries) = std::fs::read_dir(self.repo().join(".git/worktrees")) else { return Ok(out) };
        for entry in entries {
            let link = std::fs::read_to_string(entry?.path().join("gitdir")).unwrap_or_default();
            let dir = Path::new(link.trim_end()).parent().map(Path::to_owned).unwrap_or_default();
            if dir.is_absolute() && dir.join(".git").is_file() {
                out.push(dir);
            }
        }
        out[1..].sort();
        Ok(out)
    }

    /// Returns every worktree that an index may belong to: the live ones, and those in the trash.
    pub(super) fn all_worktrees(&self) -> Outcome<Vec<PathBuf>> {
        let mut out = self.worktrees()?;
        for entry in std::fs::read_dir(self.repo().join(".git/proq/trash")).into_iter().flatten() {
            out.push(entry?.path().join("worktree"));
        }
        out[1..].sort();
        Ok(out)
    }

    /// Returns a content that no other file has and that must not be lost from now on.
    pub(super) fn new_token(&self, label: &str) -> String {
        let mut tokens = self.tokens.borrow_mut();
        let token = format!("precious {} {label}\n", tokens.len() + 1);
        tokens.push(token.clone());
        token
    }

    /// Adds contents that a script wrote and that must not be lost from now on.
    pub(super) fn add_tokens(&self, lines: &[String]) {
        self.tokens.borrow_mut().extend_from_slice(lines);
    }

    /// Removes contents that their owner overwrote.
    pub(crate) fn forget_tokens(&self, overwritten: &[String]) {
        self.tokens.borrow_mut().retain(|line| !overwritten.iter().any(|gone| gone == line.trim_end()));
    }

    /// Returns all contents that must not be lost.
    pub(crate) fn tokens(&self) -> Vec<String> {
        self.tokens.borrow().clone()
    }

    /// Returns a command with the fixture's environment and nothing else.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, dir: &Path) -> Command {
        let mut command = Command::new(program);
        let mut path = self.proq.parent().map(OsString::from).unwrap_or_default();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.current_dir(dir).env_clear().envs(FIXED_ENV.iter().copied()).env("PATH", path);
        command.env("HOME", self.root().join("home")).env("TMPDIR", self.root().join("tmp"));
        command.env("GIT_CONFIG_GLOBAL", self.root().join("home/.gitconfig")).stdin(Stdio::null());
        if self.simulates_restart {
            command.env("PROQ_TEST_BOOT", "now");
        }
        command
    }

    /// Runs git-proq in the main checkout.
    pub(crate) fn proq<S: AsRef<OsStr>>(&self, args: &[S]) -> Outcome<CommandOutput> {
        self.output(self.command(&self.proq, &self.repo()).args(args))
    }

    /// Runs git-proq and requires success.
    pub(crate) fn proq_ok(&self, args: &[&str]) -> Outcome<()> {
        self.proq(args)?.ok(&format!("git proq {}", args.join(" "))).map(drop)
    }

    /// Kills git-proq before one of its file-changing calls. Returns whether it reached that call, its exit
    /// code, and its standard error.
    pub(crate) fn run_killed(&self, args: &[&str], call: usize) -> Outcome<(bool, i32, String)> {
        let (run, stderr) = self.run_traced(args, Plan::Kill(call))?;
        Ok((run.planned_call.is_some(), run.code, stderr))
    }

    /// Runs git-proq under the tracer.
    pub(super) fn run_traced<S: AsRef<OsStr>>(&self, args: &[S], plan: Plan) -> Outcome<(TracedRun, String)> {
        self.run_watched(args, plan, None)
    }

    /// Runs git-proq under the tracer, with a watcher that inspects the fixture before each mutating call.
    pub(super) fn run_watched<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        plan: Plan,
        watcher: Option<Watcher<'_>>,
    ) -> Outcome<(TracedRun, String)> {
        let output_files = [self.folder.join("out"), self.folder.join("err")];
        let mut command = self.command(&self.proq, &self.repo());
        command.args(args).stdout(File::create(&output_files[0])?).stderr(File::create(&output_files[1])?);
        let mut traced_run = run_traced(command, plan, &output_files, watcher)?;
        traced_run.wrote_output = !std::fs::read(&output_files[0])?.is_empty();
        let stderr = std::fs::read(&output_files[1])?;
        Ok((traced_run, String::from_utf8_lossy(&stderr).into_owned()))
    }

    /// Runs a command to its end.
    pub(crate) fn output(&self, command: &mut Command) -> Outcome<CommandOutput> {
        let output = CommandOutput::run(command)?;
        Ok(CommandOutput { stderr: self.normalized(output.stderr.as_bytes()), ..output })
    }

    /// Returns text without the fixture's own path, and without ids that contain a process number.
    pub(super) fn normalized(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).replace(&self.root().display().to_string(), "[ROOT]");
        without_ids(&text)
    }

    /// Runs git in the main checkout and requires success.
    pub(super) fn git(&self, args: &[&str]) -> Outcome<()> {
        self.output(self.command("git", &self.repo()).args(args))?
            .ok(&format!("git {}", args.join(" ")))
            .map(drop)
    }

    /// Runs a shell script in the main checkout and requires success.
    pub(crate) fn sh(&self, script: &str) -> Outcome<()> {
        self.sh_in(&self.repo(), script)
    }

    /// Runs a shell script in a folder and requires success.
    pub(crate) fn sh_in(&self, dir: &Path, script: &str) -> Outcome<()> {
        self.output(self.command("sh", dir).args(["-ec", script]))?.ok(script).map(drop)
    }

    /// Writes a file of the main checkout, or any other file by its absolute path.
    pub(super) fn write(&self, path: impl AsRef<Path>, text: &str) -> Outcome<()> {
        let path = self.repo().join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
        Ok(std::fs::write(path, text)?)
    }

    /// Writes a new content that must not be lost to a file.
    pub(super) fn write_token(&self, path: impl AsRef<Path>, label: &str) -> Outcome<()> {
        let text = self.new_token(label);
        self.write(path, &text)
    }
}

/// Replaces ids in a text. They consist of the clock, which stands still here, a process number and a count.
pub(super) fn without_ids(text: &str) -> String {
    const CLOCK: &str = "20260102-030405-";
    let mut parts = text.split(CLOCK);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("[ID]");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-'));
    }
    out
}
