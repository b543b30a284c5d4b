//! Owns one worker's folder: a home and a repository at a path that never changes, and the environment of all programs.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::listed::Listed;
use super::still::adapt;
use super::trace::{Plan, Run, Watcher, run};
use super::{Outcome, fail};
use crate::copy::{copy, remove};

/// The clock of every run that is not told another time.
const NOW: &str = "2026-01-02T03:04:05Z";

/// What is always the same: the clock, the language, the people. As in the tests, so that ids are the same in each run.
const FIXED: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("TERM", "dumb"),
    ("PROQ_TEST_NOW", NOW),
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

/// What a program answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its exit code, or 128 + the number of the signal that ended it.
    pub(crate) code: i32,
    /// Its output.
    pub(crate) stdout: Vec<u8>,
    /// Its complaints.
    pub(crate) stderr: String,
    /// Its process number.
    pub(super) pid: i32,
}

impl Answer {
    /// Runs a command to its end.
    pub(super) fn of(command: &mut Command) -> Outcome<Answer> {
        Answer::of_child(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }

    /// Waits for the end of a process whose output is piped.
    pub(super) fn of_child(child: Child) -> Outcome<Answer> {
        use std::os::unix::process::ExitStatusExt;
        let pid = i32::try_from(child.id())?;
        let out = child.wait_with_output()?;
        let code = out.status.code().or(out.status.signal().map(|s| 128 + s)).unwrap_or(-1);
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        Ok(Answer { code, stdout: out.stdout, stderr, pid })
    }

    /// Its output and its complaints.
    pub(crate) fn said(&self) -> String {
        [String::from_utf8_lossy(&self.stdout).as_ref(), &self.stderr].concat()
    }

    /// The first line of its complaints.
    pub(crate) fn complaint(&self) -> String {
        self.stderr.lines().next().unwrap_or_default().to_owned()
    }

    /// The output, when all went well.
    pub(crate) fn ok(self, what: &str) -> Outcome<Vec<u8>> {
        if self.code == 0 {
            return Ok(self.stdout);
        }
        fail(format!("{what} ended with {}: {}", self.code, self.stderr.trim()))
    }
}

/// A folder with a home and a repository, and the template both are made from for every run.
#[derive(Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    proq: PathBuf,
    tokens: RefCell<Vec<String>>,
    /// Its indexes, as git listed them.
    pub(super) listed: Listed,
    /// Whether the machine counts as started after everything that was done here.
    restarts: bool,
}

impl Place {
    /// A place in `folder`, which is made, for the program `proq`.
    pub(crate) fn new(folder: &Path, proq: &Path) -> Outcome<Place> {
        std::fs::create_dir_all(folder)?;
        Ok(Place {
            folder: folder.canonicalize()?,
            proq: proq.to_owned(),
            tokens: RefCell::default(),
            listed: Listed::default(),
            restarts: false,
        })
    }

    /// Has every program of this place believe that the machine was started only now, as it is after a power cut.
    pub(super) fn on_a_machine_that_restarts(self) -> Place {
        Place { restarts: true, ..self }
    }

    /// What holds home and repository.
    pub(super) fn top(&self) -> PathBuf {
        self.folder.join("place")
    }

    /// A folder of this name beside it.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The main checkout.
    pub(crate) fn repo(&self) -> PathBuf {
        self.folder.join("place/repo")
    }

    /// The worktree of a lane.
    pub(crate) fn lane(&self, name: &str) -> PathBuf {
        self.repo().join(".proq-worktrees").join(name)
    }

    /// Starts anew: an empty home, and a repository without a commit.
    pub(crate) fn begin(&self) -> Outcome<()> {
        remove(&self.folder)?;
        std::fs::create_dir_all(self.top().join("home"))?;
        std::fs::create_dir_all(self.top().join("tmp"))?;
        std::fs::create_dir_all(self.repo())?;
        self.tokens.borrow_mut().clear();
        let settings = "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";
        std::fs::write(self.top().join("home/.gitconfig"), settings)?;
        self.git(&["init", "-q", "-b", "main"])?;
        let hooks = self.repo().join(".git/hooks");
        remove(&hooks)?;
        Ok(std::fs::create_dir(hooks)?)
    }

    /// Makes what is there now the template of all runs to come. Its indexes have the stat data of the files that git finds unchanged.
    pub(super) fn freeze(&self) -> Outcome<()> {
        for tree in self.worktrees()? {
            let _ = self.answer(self.command("git", &tree).args(["update-index", "-q", "--refresh"]))?;
        }
        let template = self.folder.join("template");
        remove(&template)?;
        copy(&self.top(), &template)?;
        adapt(self, &self.top(), &template, Vec::new())
    }

    /// Makes a fresh copy of the template. Git and the program notice that files are other files now; indexes, those in the
    /// trash too, are told that they are the same.
    pub(super) fn reset(&self) -> Outcome<()> {
        let template = self.folder.join("template");
        remove(&self.top())?;
        copy(&template, &self.top())?;
        adapt(self, &template, &self.top(), Vec::new())
    }

    /// Keeps a copy of how it is now, beside it, for somebody to look at.
    pub(super) fn save(&self, name: &str) -> Outcome<()> {
        remove(&self.folder.join(name))?;
        Ok(copy(&self.top(), &self.folder.join(name))?)
    }

    /// The main checkout and every folder among the lanes' worktrees that git knows as one.
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

    /// Everything that an index may be of: those, and the worktrees in the trash.
    pub(super) fn trees(&self) -> Outcome<Vec<PathBuf>> {
        let mut out = self.worktrees()?;
        for entry in std::fs::read_dir(self.repo().join(".git/proq/trash")).into_iter().flatten() {
            out.push(entry?.path().join("worktree"));
        }
        out[1..].sort();
        Ok(out)
    }

    /// A content that nobody else writes, and that must never get lost from now on.
    pub(super) fn precious(&self, what: &str) -> String {
        let mut tokens = self.tokens.borrow_mut();
        let token = format!("precious {} {what}\n", tokens.len() + 1);
        tokens.push(token.clone());
        token
    }

    /// Contents that were written by a script, and must never get lost from now on.
    pub(super) fn keep_lines(&self, lines: &[String]) {
        self.tokens.borrow_mut().extend_from_slice(lines);
    }

    /// These contents were written over by their owner.
    pub(crate) fn forget(&self, gone: &[String]) {
        self.tokens.borrow_mut().retain(|line| !gone.iter().any(|gone| gone == line.trim_end()));
    }

    /// All precious contents.
    pub(crate) fn tokens(&self) -> Vec<String> {
        self.tokens.borrow().clone()
    }

    /// A command with the place's environment and nothing else.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, dir: &Path) -> Command {
        let mut command = Command::new(program);
        let mut path = self.proq.parent().map(OsString::from).unwrap_or_default();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.current_dir(dir).env_clear().envs(FIXED.iter().copied()).env("PATH", path);
        command.env("HOME", self.top().join("home")).env("TMPDIR", self.top().join("tmp"));
        command.env("GIT_CONFIG_GLOBAL", self.top().join("home/.gitconfig")).stdin(Stdio::null());
        if self.restarts {
            command.env("PROQ_TEST_BOOT", "now");
        }
        command
    }

    /// The program under test, in the main checkout.
    pub(crate) fn proq<S: AsRef<OsStr>>(&self, args: &[S]) -> Outcome<Answer> {
        self.answer(self.command(&self.proq, &self.repo()).args(args))
    }

    /// The program under test, insisting on success.
    pub(crate) fn proq_ok(&self, args: &[&str]) -> Outcome<()> {
        self.proq(args)?.ok(&format!("git proq {}", args.join(" "))).map(drop)
    }

    /// Kills the program under test before one of its calls that change a file. Whether it got there, its exit code, and what
    /// it said.
    pub(crate) fn killed(&self, args: &[&str], call: usize) -> Outcome<(bool, i32, String)> {
        let (run, complaints) = self.traced(args, Plan::Kill(call))?;
        Ok((run.hit.is_some(), run.code, complaints))
    }

    /// The program under test, traced.
    pub(super) fn traced<S: AsRef<OsStr>>(&self, args: &[S], plan: Plan) -> Outcome<(Run, String)> {
        self.watched(args, plan, None)
    }

    /// The program under test, traced, with somebody who looks at the place before each of its mutating calls.
    pub(super) fn watched<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        plan: Plan,
        watcher: Option<Watcher<'_>>,
    ) -> Outcome<(Run, String)> {
        let ours = [self.folder.join("out"), self.folder.join("err")];
        let mut command = self.command(&self.proq, &self.repo());
        command.args(args).stdout(File::create(&ours[0])?).stderr(File::create(&ours[1])?);
        let mut run = run(command, plan, &ours, watcher)?;
        run.has_answered = !std::fs::read(&ours[0])?.is_empty();
        let complaints = std::fs::read(&ours[1])?;
        Ok((run, String::from_utf8_lossy(&complaints).into_owned()))
    }

    /// Runs a command to its end.
    pub(crate) fn answer(&self, command: &mut Command) -> Outcome<Answer> {
        let answer = Answer::of(command)?;
        Ok(Answer { stderr: self.plain(answer.stderr.as_bytes()), ..answer })
    }

    /// Text without this place's own path, and without ids that hold a process's number.
    pub(super) fn plain(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).replace(&self.top().display().to_string(), "[ROOT]");
        without_ids(&text)
    }

    /// Runs git in the main checkout and insists on success.
    pub(super) fn git(&self, args: &[&str]) -> Outcome<()> {
        self.answer(self.command("git", &self.repo()).args(args))?
            .ok(&format!("git {}", args.join(" ")))
            .map(drop)
    }

    /// Runs a shell script in the main checkout and insists on success.
    pub(crate) fn sh(&self, script: &str) -> Outcome<()> {
        self.sh_in(&self.repo(), script)
    }

    /// Runs a shell script in a folder and insists on success.
    pub(crate) fn sh_in(&self, dir: &Path, script: &str) -> Outcome<()> {
        self.answer(self.command("sh", dir).args(["-ec", script]))?.ok(script).map(drop)
    }

    /// Writes a file of the main checkout, or with an absolute path of any other.
    pub(super) fn write(&self, path: impl AsRef<Path>, text: &str) -> Outcome<()> {
        let path = self.repo().join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
        Ok(std::fs::write(path, text)?)
    }

    /// Writes a precious content to a file.
    pub(super) fn keep(&self, path: impl AsRef<Path>, what: &str) -> Outcome<()> {
        let text = self.precious(what);
        self.write(path, &text)
    }
}

/// Ids are made of the clock, which stands still here, a process number and a count.
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
