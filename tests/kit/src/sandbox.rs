//! Temporary home with a repository in it. None of the machine's own configuration reaches the program.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use jiff::Timestamp;

use super::Output;
use super::hints::PrintedHints;
use super::waiting::{WAIT_LIMIT, wait_within};
use super::watchdog::Watchdog;

/// Time that the clock of a sandbox shows.
const CLOCK_TIME: &str = "2026-01-02T03:04:05Z";

/// Environment that is always the same: clock, language, author and committer.
const FIXED_ENV: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("TERM", "dumb"),
    // Tests of automatic snapshots turn them on.
    ("PROQ_SNAPSHOT_INTERVAL", "0"),
    ("PROQ_TEST_NOW", CLOCK_TIME),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_AUTHOR_NAME", "Ann Author"),
    ("GIT_AUTHOR_EMAIL", "ann@example.org"),
    ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
    ("GIT_COMMITTER_NAME", "Cal Committer"),
    ("GIT_COMMITTER_EMAIL", "cal@example.org"),
    ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
];

/// Returns the `PATH` that programs are searched in. `PROQ_TEST_PATH` goes before `PATH`, so that all tests
/// run against another git: `PROQ_TEST_PATH=/opt/git-2.39/bin cargo test`.
fn search_path() -> OsString {
    static PATH: LazyLock<OsString> = LazyLock::new(|| {
        let env_var = |name| std::env::var_os(name).unwrap_or_default();
        let first = env_var("PROQ_TEST_PATH");
        let machine_dirs = env_var("PATH");
        let machine_dirs: Vec<PathBuf> = std::env::split_paths(&machine_dirs).collect();
        // `python3` on `PATH` may be a script that selects a version, and takes ten times as long to start.
        let python = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let python = python.ok().and_then(|out| String::from_utf8(out.stdout).ok());
        let python = python.and_then(|path| Path::new(path.trim()).parent().map(Path::to_owned));
        let python = python.filter(|dir| dir.join("python3").is_file() && !machine_dirs.contains(dir));
        let first = std::env::split_paths(&first).filter(|dir| !dir.as_os_str().is_empty());
        std::env::join_paths(first.chain(python).chain(machine_dirs.iter().cloned())).unwrap()
    });
    PATH.clone()
}

/// Shell prologue that reads the first prompt, without the JSON around it, and leaves it as the only input.
const FIRST_PROMPT: &str = r#"case " $* " in *" --input-format stream-json "*)
    IFS= read -r PROQ_TEST_LINE
    PROQ_TEST_LINE=$(printf %s "$PROQ_TEST_LINE" | sed -e 's/^.*"content":"//' -e 's/","role":"user"}.*$//' -e 's/\\"/"/g')
    PROQ_TEST_FILE=$(mktemp) && printf %b "$PROQ_TEST_LINE" > "$PROQ_TEST_FILE"
    exec < "$PROQ_TEST_FILE"; rm "$PROQ_TEST_FILE"; unset PROQ_TEST_LINE PROQ_TEST_FILE ;;
esac"#;

/// A folder with a home and a repository, removed with everything in it.
pub struct Sandbox {
    root: tempfile::TempDir,
    /// The main checkout, on branch `main`, with one commit that adds `a.txt`.
    pub repo: PathBuf,
    used_until: Mutex<Timestamp>,
    pub(crate) is_given_away: AtomicBool,
    pub(crate) printed_hints: PrintedHints,
    // Dropped last: a sandbox that cannot be removed hangs its test, too.
    _watchdog: Watchdog,
}

impl Sandbox {
    /// Creates a sandbox whose repository has one commit.
    pub fn new() -> Sandbox {
        let sandbox = Sandbox::empty();
        sandbox.write("a.txt", "a\n");
        sandbox.commit_all("first");
        sandbox
    }

    /// Creates a sandbox whose repository has no commit yet.
    pub fn empty() -> Sandbox {
        let root = tempfile::Builder::new().prefix("proq-test-").tempdir().unwrap();
        let top = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("home")).unwrap();
        let used_until = Mutex::new(CLOCK_TIME.parse().unwrap());
        let (repo, printed_hints) = (top.join("repo"), PrintedHints::default());
        let (is_given_away, watchdog) = (AtomicBool::new(false), Watchdog::new());
        let sandbox = Sandbox { repo, root, used_until, is_given_away, printed_hints, _watchdog: watchdog };
        std::fs::create_dir_all(&sandbox.repo).unwrap();
        sandbox.git(&["init", "-q", "-b", "main"]);
        sandbox
    }

    /// Returns the folder that holds home and repository.
    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    /// Runs a command when the clock shows `time`, after a command that changes nothing on each day until
    /// then. Days on which the program is not used make nothing older.
    pub fn proq_at(&self, time: &str, args: &[&str]) -> Output {
        let run_at = |time: String, args: &[&str]| {
            let mut command = self.proq_command(&self.repo, args);
            command.env("PROQ_TEST_NOW", time);
            self.output(command)
        };
        let mut used_until = self.used_until.lock().unwrap();
        let requested: Timestamp = time.parse().unwrap();
        while requested.duration_since(*used_until) > jiff::SignedDuration::from_hours(24) {
            *used_until += Duration::from_hours(24);
            let _ = run_at(used_until.to_string(), &["gc", "--dry-run"]).ok();
        }
        *used_until = requested.max(*used_until);
        drop(used_until);
        run_at(time.to_owned(), args)
    }

    /// Creates a folder on another file system than the sandbox. Panics on a machine that has only one.
    pub fn dir_on_other_filesystem(&self) -> tempfile::TempDir {
        let device = |dir: &Path| dir.metadata().ok().map(|m| m.dev());
        let candidates = [Path::new("/dev/shm"), Path::new("/var/tmp"), crate::program().parent().unwrap()];
        let other =
            candidates.into_iter().find(|dir| device(dir).is_some() && device(dir) != device(&self.root()));
        tempfile::tempdir_in(other.unwrap_or_else(|| panic!("this test needs a second file system"))).unwrap()
    }

    /// Returns the worktree of a lane.
    pub fn lane_path(&self, name: &str) -> PathBuf {
        self.repo.join(".proq-worktrees").join(name)
    }

    /// Prepares a command in `dir` with the sandbox's environment and nothing else.
    pub fn command(&self, program: impl AsRef<OsStr>, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(dir).env_clear().stdin(Stdio::null());
        command.env("PATH", self.program_path());
        command.env("ROOT", self.root());
        command.env("HOME", self.root().join("home"));
        command.env("GIT_CONFIG_GLOBAL", self.root().join("home/.gitconfig"));
        command.envs(FIXED_ENV.iter().copied());
        self.drop_privileges(&mut command);
        command
    }

    /// Puts the programs of this sandbox first (`bin/`), then `git-proq` itself so that git finds it, then
    /// the machine's.
    fn program_path(&self) -> OsString {
        let mut path = self.root().join("bin").into_os_string();
        path.push(":");
        path.push(crate::program().parent().unwrap());
        path.push(":");
        path.push(search_path());
        path
    }

    /// Returns a `PATH` with only the programs of this sandbox, `git-proq`, git, a shell and `tools`. Agents
    /// installed on the machine are not found.
    pub fn path_without_agents(&self, tools: &[&str]) -> OsString {
        let folder = self.root().join("tools");
        std::fs::create_dir_all(&folder).unwrap();
        for tool in ["git", "sh"].iter().chain(tools) {
            let mut candidates =
                std::env::split_paths(&search_path()).map(|dir| dir.join(tool)).collect::<Vec<_>>();
            candidates.retain(|place| place.is_file());
            // The link may exist already.
            drop(std::os::unix::fs::symlink(&candidates[0], folder.join(tool)));
        }
        let proq_dir = crate::program().parent().unwrap();
        std::env::join_paths([&self.root().join("bin"), proq_dir, &folder]).unwrap()
    }

    /// Puts a shell script on `PATH`. Where it is started as an agent that reads one prompt after the other,
    /// it can read the first one, as text, and nothing more.
    pub fn program(&self, name: &str, script: &str) {
        self.program_verbatim(name, &format!("{FIRST_PROMPT}\n{script}"));
    }

    /// Puts a shell script on `PATH` that reads all its input itself. A child process writes the script: a
    /// descriptor of this process, open for writing while another test starts a program, would make the
    /// script "busy".
    pub fn program_verbatim(&self, name: &str, script: &str) {
        let mut command = self.command("sh", &self.root());
        command.args([
            "-ec",
            "mkdir -p \"$(dirname \"bin/$0\")\"; cat > \"bin/$0\"; chmod +x \"bin/$0\"",
            name,
        ]);
        let out = self.output_with(command, format!("#!/bin/sh\n{script}\n").as_bytes());
        assert_eq!(out.code, 0, "{}", out.stderr);
    }

    /// Puts a shell script on `PATH` that stands in for a known agent and reports success at its end in each
    /// agent's format.
    pub fn agent(&self, name: &str, script: &str) {
        let claude =
            r#"{"type":"result","subtype":"success","status":"success","is_error":false,"session_id":"s"}"#;
        let codex = r#"{"type":"turn.completed","usage":{}}"#;
        let opencode =
            r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop","tokens":{},"cost":0}}"#;
        self.program(name, &format!("{script}\necho '{claude}'; echo '{codex}'; echo '{opencode}'"));
    }

    /// Creates a named pipe in the sandbox; scripts find it as `$ROOT/NAME`.
    pub fn pipe(&self, name: &str) {
        let mut command = self.command("mkfifo", &self.root());
        let _ = self
            .output({
                command.arg(name);
                command
            })
            .ok();
    }

    /// Reads a named pipe to its end, which comes when a script has written to it.
    #[track_caller]
    pub fn read_pipe(&self, pipe: &str) -> String {
        let mut command = self.command("timeout", &self.root());
        command.args(["60", "cat", pipe]);
        self.output(command).ok()
    }

    /// Writes a line to a named pipe, as soon as a script reads it.
    #[track_caller]
    pub fn write_pipe(&self, pipe: &str) {
        let mut command = self.command("timeout", &self.root());
        command.args(["60", "sh", "-c", "echo go > \"$0\"", pipe]);
        let _ = self.output(command).ok();
    }

    /// Prepares the program in `dir` without starting it.
    pub fn proq_command(&self, dir: &Path, args: &[&str]) -> Command {
        let mut command = self.command(self.own_program().as_deref().unwrap_or(crate::program()), dir);
        command.args(args);
        command
    }

    /// Runs the program in the main checkout.
    pub fn proq(&self, args: &[&str]) -> Output {
        self.proq_in(&self.repo, args)
    }

    /// Runs the program in a folder.
    pub fn proq_in(&self, dir: &Path, args: &[&str]) -> Output {
        self.output(self.proq_command(dir, args))
    }

    /// Runs a command to its end.
    pub fn output(&self, mut command: Command) -> Output {
        let out = command.output().unwrap();
        self.note_hints(&command, &out);
        self.normalize_output(&out)
    }

    /// Runs a command to its end with input on its standard input.
    pub fn output_with(&self, mut command: Command, input: &[u8]) -> Output {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let out = std::thread::scope(|scope| {
            scope.spawn(move || {
                // A program that refuses early stops reading; only its output counts.
                drop(stdin.write_all(input));
            });
            child.wait_with_output().unwrap()
        });
        self.note_hints(&command, &out);
        self.normalize_output(&out)
    }

    fn normalize_output(&self, out: &std::process::Output) -> Output {
        let code = out.status.code().or(out.status.signal().map(|s| 128 + s)).unwrap();
        Output { stdout: self.normalize(&out.stdout), stderr: self.normalize(&out.stderr), code }
    }

    /// Returns output with the sandbox's own path and the ids that hold a process number replaced. The ports
    /// of a lane depend on what is free, so their line is left out, of output and of records.
    pub fn normalize(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).replace(&self.root().display().to_string(), "[ROOT]");
        let is_stable = |line: &&str| !line.starts_with("ports      ") && !line.starts_with("port = ");
        replace_ids(&text.split_inclusive('\n').filter(is_stable).collect::<String>())
    }

    /// Runs git in the main checkout and asserts success.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.repo, args)
    }

    /// Runs git in a folder and asserts success.
    #[track_caller]
    pub fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let mut command = self.command("git", dir);
        command.args(args);
        self.output(command).ok().trim_end().to_owned()
    }

    /// Runs git in a folder, asserts success and returns the exact bytes. Takes no optional lock.
    #[track_caller]
    pub fn git_bytes(&self, dir: &Path, args: &[&str]) -> Vec<u8> {
        let out = self.command("git", dir).args(args).env("GIT_OPTIONAL_LOCKS", "0").output().unwrap();
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        out.stdout
    }

    /// Runs a shell script in the main checkout and asserts success.
    #[track_caller]
    pub fn sh(&self, script: &str) -> String {
        self.sh_in(&self.repo, script)
    }

    /// Runs a shell script in a folder and asserts success.
    #[track_caller]
    pub fn sh_in(&self, dir: &Path, script: &str) -> String {
        let mut command = self.command("sh", dir);
        command.args(["-ec", script]);
        self.output(command).ok().trim_end().to_owned()
    }

    /// Returns major and minor number of the git under test.
    pub fn git_version(&self) -> (u32, u32) {
        let text = self.git(&["--version"]);
        let number = text.split(' ').nth(2).unwrap();
        let mut parts = number.split('.').map(|p| p.parse().unwrap());
        (parts.next().unwrap(), parts.next().unwrap())
    }

    /// Creates a lane without an agent and commits what a shell script does in it.
    #[track_caller]
    pub fn lane_with_commit(&self, name: &str, script: &str) {
        let _ = self.proq(&["spawn", "--empty", "-n", name]).ok();
        self.commit_in_lane(name, script);
    }

    /// Commits what a shell script does in a lane.
    #[track_caller]
    pub fn commit_in_lane(&self, name: &str, script: &str) {
        self.sh_in(&self.lane_path(name), script);
        self.commit_all_in(&self.lane_path(name), &format!("work of {name}"));
    }

    /// Writes a file of the main checkout, with the folders above it.
    pub fn write(&self, path: &str, text: &str) {
        self.write_in(&self.repo, path, text);
    }

    /// Writes a file below a folder, with the folders above it.
    pub fn write_in(&self, dir: &Path, path: &str, text: &str) {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Reads a file of the main checkout.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.repo.join(path)).unwrap()
    }

    /// Commits everything in the main checkout.
    pub fn commit_all(&self, message: &str) {
        self.commit_all_in(&self.repo, message);
    }

    /// Commits everything in a folder.
    pub fn commit_all_in(&self, dir: &Path, message: &str) {
        self.git_in(dir, &["add", "-A", "--sparse"]);
        // Nothing needs packing in so small a repository. This saves one start of git, thousands of times.
        self.git_in(dir, &["-c", "maintenance.auto=false", "commit", "-q", "--allow-empty", "-m", message]);
    }

    /// Returns the path of a lock file of a lane, or of the note next to it: `run.lock`, `run.holder`,
    /// `alive.lock`.
    pub fn lane_lock(&self, lane: &str, file: &str) -> PathBuf {
        self.repo.join(format!(".git/proq/locks/lanes/{lane}.{file}"))
    }

    /// Returns whether a process runs; a zombie does not.
    pub fn is_alive(&self, pid: &str) -> bool {
        let mut command = self.command("ps", &self.root());
        command.args(["-o", "stat=", "-p", pid]);
        let state = self.output(command).stdout;
        !state.trim().is_empty() && !state.trim().starts_with('Z')
    }

    /// Creates a lane whose agent is a shell script, and returns when it runs.
    #[track_caller]
    pub fn start_lane(&self, name: &str, script: &str) {
        let _ = self.proq(&["spawn", "-n", name, "--", "sh", "-ec", script]).ok();
    }

    /// Returns one lane of `list --all --json`; null when no lane has that name.
    #[track_caller]
    pub fn row(&self, name: &str) -> serde_json::Value {
        let all = self.proq(&["list", "--all", "--json"]).json();
        let rows = all["lanes"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).cloned().unwrap_or_default()
    }

    /// Waits until the supervisor of a lane has recorded that its agent started, and returns the lane's row.
    #[track_caller]
    pub fn started_row(&self, name: &str) -> serde_json::Value {
        let started = || Some(self.row(name)).filter(|row| row["state"] != "starting");
        wait_within(WAIT_LIMIT, || format!("the start of its agent: {}", self.row(name)), started)
    }

    /// Lists everything a lane could leave behind: worktrees, branches and records that are not the main
    /// checkout's.
    #[track_caller]
    pub fn lane_leftovers(&self) -> Vec<String> {
        let mut out = Vec::new();
        for line in
            self.git(&["worktree", "list", "--porcelain"]).lines().filter(|l| l.starts_with("worktree "))
        {
            out.push(line.to_owned());
        }
        out.remove(0);
        for line in
            self.git(&["for-each-ref", "--format=%(refname)", "refs/heads/proq/", "refs/proq/"]).lines()
        {
            out.push(line.to_owned());
        }
        for (kind, dir) in [
            ("folder", self.repo.join(".proq-worktrees")),
            ("record", self.repo.join(".git/proq/lanes")),
            ("registration", self.repo.join(".git/worktrees")),
            ("work", self.repo.join(".git/proq/work")),
        ] {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
            out.extend(names.filter(|n| n != ".gitignore").map(|n| format!("{kind} {n}")));
        }
        out
    }

    /// Asserts that `doctor` finds no warning and no error. Disk space does not depend on the test and is
    /// left out.
    #[track_caller]
    pub fn assert_healthy(&self) {
        let report = self.proq(&["doctor", "--json"]).json();
        let findings = report["findings"].as_array().unwrap();
        let bad: Vec<&serde_json::Value> =
            findings.iter().filter(|f| f["severity"] != "info" && f["check"] != "disk-space").collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }

    /// Creates a lane, runs a shell script in it as its agent, and waits for its end.
    #[track_caller]
    pub fn run_lane(&self, name: &str, script: &str) {
        let _ = self.proq(&["spawn", "--wait", "-n", name, "--", "sh", "-ec", script]).ok();
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // Agents that a failed test left running are stopped by name, through the program itself. Where no
        // lane has run, none is left.
        let has_runs = |lane: std::io::Result<std::fs::DirEntry>| {
            lane.is_ok_and(|lane| lane.path().join("runs").exists())
        };
        let lanes = std::fs::read_dir(self.repo.join(".git/proq/lanes"));
        if !self.repo.join(".git").is_dir() || lanes.is_ok_and(|mut lanes| lanes.any(has_runs)) {
            drop(self.proq_command(&self.repo, &["stop", "--all"]).output());
        }
    }
}

/// Replaces ids, which consist of the fixed clock, a process number and a count.
fn replace_ids(text: &str) -> String {
    const CLOCK: &str = "20260102-030405-";
    let mut parts = text.split(CLOCK);
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        out.push_str("[ID]");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-'));
    }
    out
}
