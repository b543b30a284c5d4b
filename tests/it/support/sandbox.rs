//! Owns a throw-away home with a repository in it. Nothing of the machine's own configuration reaches the program.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use jiff::Timestamp;

use super::Output;
use super::patience::{PATIENCE, wait_within};
use super::watchdog::Watchdog;

/// What the clock of a sandbox shows.
const NOW: &str = "2026-01-02T03:04:05Z";

/// What is always the same: the clock, the language, the people.
const FIXED: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("TERM", "dumb"),
    // Tests of automatic snapshots turn them on.
    ("PROQ_SNAPSHOT_INTERVAL", "0"),
    ("PROQ_TEST_NOW", NOW),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_AUTHOR_NAME", "Ann Author"),
    ("GIT_AUTHOR_EMAIL", "ann@example.org"),
    ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
    ("GIT_COMMITTER_NAME", "Cal Committer"),
    ("GIT_COMMITTER_EMAIL", "cal@example.org"),
    ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
];

/// Where programs are looked for. `PROQ_TEST_PATH` goes before `PATH`, so that the whole suite runs against another
/// git: `PROQ_TEST_PATH=/opt/git-2.39/bin cargo test`.
fn search_path() -> OsString {
    static PATH: LazyLock<OsString> = LazyLock::new(|| {
        let of = |name| std::env::var_os(name).unwrap_or_default();
        let first = of("PROQ_TEST_PATH");
        let own = of("PATH");
        let own: Vec<PathBuf> = std::env::split_paths(&own).collect();
        // What is there may be a script that chooses among several, and takes ten times as long to start.
        let python = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let python = python.ok().and_then(|out| String::from_utf8(out.stdout).ok());
        let python = python.and_then(|path| Path::new(path.trim()).parent().map(Path::to_owned));
        let python = python.filter(|dir| dir.join("python3").is_file() && !own.contains(dir));
        let first = std::env::split_paths(&first).filter(|dir| !dir.as_os_str().is_empty());
        std::env::join_paths(first.chain(python).chain(own.iter().cloned())).unwrap()
    });
    PATH.clone()
}

/// Has a script read the first prompt, without the JSON around it, and then the end of its input.
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
    // The last to go: a sandbox that cannot be left hangs its test, too.
    _watchdog: Watchdog,
}

impl Sandbox {
    /// A sandbox whose repository has one commit.
    pub fn new() -> Sandbox {
        let sandbox = Sandbox::empty();
        sandbox.write("a.txt", "a\n");
        sandbox.commit_all("first");
        sandbox
    }

    /// A sandbox whose repository has no commit yet.
    pub fn empty() -> Sandbox {
        let root = tempfile::Builder::new().prefix("proq-test-").tempdir().unwrap();
        let top = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("home")).unwrap();
        let used_until = Mutex::new(NOW.parse().unwrap());
        let sandbox = Sandbox { repo: top.join("repo"), root, used_until, _watchdog: Watchdog::new() };
        std::fs::create_dir_all(&sandbox.repo).unwrap();
        sandbox.git(&["init", "-q", "-b", "main"]);
        sandbox
    }

    /// The folder that holds home and repository.
    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    /// Runs a command when the clock shows `time`, after a command that changes nothing on each day until then: days on which the
    /// program is not used make nothing older.
    pub fn proq_at(&self, time: &str, args: &[&str]) -> Output {
        let at = |time: String, args: &[&str]| {
            let mut command = self.proq_command(&self.repo, args);
            command.env("PROQ_TEST_NOW", time);
            self.output(command)
        };
        let mut used_until = self.used_until.lock().unwrap();
        let wanted: Timestamp = time.parse().unwrap();
        while wanted.duration_since(*used_until) > jiff::SignedDuration::from_hours(24) {
            *used_until += Duration::from_hours(24);
            let _ = at(used_until.to_string(), &["gc", "--dry-run"]).ok();
        }
        *used_until = wanted.max(*used_until);
        drop(used_until);
        at(time.to_owned(), args)
    }

    /// A folder on another file system than the sandbox. Panics on a machine that has only one.
    pub fn other_disk(&self) -> tempfile::TempDir {
        let disk = |dir: &Path| dir.metadata().ok().map(|m| m.dev());
        let places = [Path::new("/dev/shm"), Path::new("/var/tmp"), Path::new(env!("CARGO_TARGET_TMPDIR"))];
        let other = places.into_iter().find(|dir| disk(dir).is_some() && disk(dir) != disk(&self.root()));
        tempfile::tempdir_in(other.unwrap_or_else(|| panic!("this test needs a second file system"))).unwrap()
    }

    /// The worktree of a lane.
    pub fn lane(&self, name: &str) -> PathBuf {
        self.repo.join(".proq-worktrees").join(name)
    }

    /// A command with the sandbox's environment and nothing else, in `dir`.
    pub fn command(&self, program: impl AsRef<OsStr>, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(dir).env_clear().stdin(Stdio::null());
        command.env("PATH", self.path());
        command.env("ROOT", self.root());
        command.env("HOME", self.root().join("home"));
        command.env("GIT_CONFIG_GLOBAL", self.root().join("home/.gitconfig"));
        command.envs(FIXED.iter().copied());
        command
    }

    /// The programs of this sandbox first (`bin/`), then `git-proq` itself so that git finds it, then the machine's.
    fn path(&self) -> OsString {
        let mut path = self.root().join("bin").into_os_string();
        path.push(":");
        path.push(Path::new(env!("CARGO_BIN_EXE_git-proq")).parent().unwrap());
        path.push(":");
        path.push(search_path());
        path
    }

    /// A `PATH` on which there is nothing but the programs of this sandbox, `git-proq`, git, a shell and `tools`: whatever agents the
    /// machine has are not found.
    pub fn path_without_agents(&self, tools: &[&str]) -> OsString {
        let folder = self.root().join("tools");
        std::fs::create_dir_all(&folder).unwrap();
        for tool in ["git", "sh"].iter().chain(tools) {
            let mut places =
                std::env::split_paths(&search_path()).map(|dir| dir.join(tool)).collect::<Vec<_>>();
            places.retain(|place| place.is_file());
            // It may be there already.
            drop(std::os::unix::fs::symlink(&places[0], folder.join(tool)));
        }
        let own = Path::new(env!("CARGO_BIN_EXE_git-proq")).parent().unwrap();
        std::env::join_paths([&self.root().join("bin"), own, &folder]).unwrap()
    }

    /// Puts a shell script on `PATH`. Where it is started as an agent that reads one prompt after the other, it has the first one
    /// to read, as text, and nothing more.
    pub fn program(&self, name: &str, script: &str) {
        self.program_as_it_is(name, &format!("{FIRST_PROMPT}\n{script}"));
    }

    /// The same for a script that reads whatever it is given. A child writes it: a descriptor of this process, open for writing
    /// while another test starts something, would make the script "busy".
    pub fn program_as_it_is(&self, name: &str, script: &str) {
        let mut command = self.command("sh", &self.root());
        command.args([
            "-ec",
            "mkdir -p \"$(dirname \"bin/$0\")\"; cat > \"bin/$0\"; chmod +x \"bin/$0\"",
            name,
        ]);
        let out = self.output_with(command, format!("#!/bin/sh\n{script}\n").as_bytes());
        assert_eq!(out.code, 0, "{}", out.stderr);
    }

    /// Puts a shell script on `PATH` that stands in for a known agent, and says at its end that all went well, in the words of
    /// each.
    pub fn agent(&self, name: &str, script: &str) {
        let claude =
            r#"{"type":"result","subtype":"success","status":"success","is_error":false,"session_id":"s"}"#;
        let codex = r#"{"type":"turn.completed","usage":{}}"#;
        let opencode =
            r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop","tokens":{},"cost":0}}"#;
        self.program(name, &format!("{script}\necho '{claude}'; echo '{codex}'; echo '{opencode}'"));
    }

    /// Makes a named pipe in the sandbox; scripts find it as `$ROOT/NAME`.
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
    pub fn hear(&self, pipe: &str) -> String {
        let mut command = self.command("timeout", &self.root());
        command.args(["60", "cat", pipe]);
        self.output(command).ok()
    }

    /// Writes a line to a named pipe, as soon as a script reads it.
    #[track_caller]
    pub fn tell(&self, pipe: &str) {
        let mut command = self.command("timeout", &self.root());
        command.args(["60", "sh", "-c", "echo go > \"$0\"", pipe]);
        let _ = self.output(command).ok();
    }

    /// The program in `dir`, not started yet.
    pub fn proq_command(&self, dir: &Path, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_git-proq"), dir);
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
        self.told(&out)
    }

    /// Runs a command to its end with something to read.
    pub fn output_with(&self, mut command: Command, input: &[u8]) -> Output {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let out = std::thread::scope(|scope| {
            scope.spawn(move || {
                // A program that refuses early does not read on; its answer is what counts.
                drop(stdin.write_all(input));
            });
            child.wait_with_output().unwrap()
        });
        self.told(&out)
    }

    fn told(&self, out: &std::process::Output) -> Output {
        let code = out.status.code().or(out.status.signal().map(|s| 128 + s)).unwrap();
        Output { stdout: self.plain(&out.stdout), stderr: self.plain(&out.stderr), code }
    }

    /// Output with the sandbox's own path and the ids that hold a process number replaced. Which ports a lane has goes by what
    /// is free, so the line that says so is left out, of what is shown and of records.
    pub fn plain(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).replace(&self.root().display().to_string(), "[ROOT]");
        let is_stable = |line: &&str| !line.starts_with("ports      ") && !line.starts_with("port = ");
        without_ids(&text.split_inclusive('\n').filter(is_stable).collect::<String>())
    }

    /// Runs git in the main checkout and insists on success.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.repo, args)
    }

    /// Runs git in a folder and insists on success.
    #[track_caller]
    pub fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let mut command = self.command("git", dir);
        command.args(args);
        self.output(command).ok().trim_end().to_owned()
    }

    /// Runs git in a folder, insists on success and returns its answer as it is. Takes no optional lock.
    #[track_caller]
    pub fn raw(&self, dir: &Path, args: &[&str]) -> Vec<u8> {
        let out = self.command("git", dir).args(args).env("GIT_OPTIONAL_LOCKS", "0").output().unwrap();
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        out.stdout
    }

    /// Runs a shell script in the main checkout and insists on success.
    #[track_caller]
    pub fn sh(&self, script: &str) -> String {
        self.sh_in(&self.repo, script)
    }

    /// Runs a shell script in a folder and insists on success.
    #[track_caller]
    pub fn sh_in(&self, dir: &Path, script: &str) -> String {
        let mut command = self.command("sh", dir);
        command.args(["-ec", script]);
        self.output(command).ok().trim_end().to_owned()
    }

    /// Major and minor number of the git that is tested.
    pub fn git_version(&self) -> (u32, u32) {
        let text = self.git(&["--version"]);
        let number = text.split(' ').nth(2).unwrap();
        let mut parts = number.split('.').map(|p| p.parse().unwrap());
        (parts.next().unwrap(), parts.next().unwrap())
    }

    /// Makes a lane without an agent and commits what a shell script does in it.
    #[track_caller]
    pub fn lane_of(&self, name: &str, script: &str) {
        let _ = self.proq(&["spawn", "--empty", "-n", name]).ok();
        self.commit_in_lane(name, script);
    }

    /// Commits what a shell script does in a lane.
    #[track_caller]
    pub fn commit_in_lane(&self, name: &str, script: &str) {
        self.sh_in(&self.lane(name), script);
        self.commit_all_in(&self.lane(name), &format!("work of {name}"));
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
        // Nothing is to be packed in so small a repository: one start of git less, thousands of times.
        self.git_in(dir, &["-c", "maintenance.auto=false", "commit", "-q", "--allow-empty", "-m", message]);
    }

    /// A lock file of a lane, or the note beside it: `run.lock`, `run.holder`, `alive.lock`.
    pub fn lock(&self, lane: &str, what: &str) -> PathBuf {
        self.repo.join(format!(".git/proq/locks/lanes/{lane}.{what}"))
    }

    /// Whether a process is there and not merely waiting to be collected.
    pub fn lives(&self, pid: &str) -> bool {
        let mut command = self.command("ps", &self.root());
        command.args(["-o", "stat=", "-p", pid]);
        let state = self.output(command).stdout;
        !state.trim().is_empty() && !state.trim().starts_with('Z')
    }

    /// Makes a lane whose agent is a shell script, and returns when it runs.
    #[track_caller]
    pub fn start_lane(&self, name: &str, script: &str) {
        let _ = self.proq(&["spawn", "-n", name, "--", "sh", "-ec", script]).ok();
    }

    /// One lane of `list --all --json`; null when there is none of that name.
    #[track_caller]
    pub fn row(&self, name: &str) -> serde_json::Value {
        let all = self.proq(&["list", "--all", "--json"]).json();
        let rows = all["lanes"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).cloned().unwrap_or_default()
    }

    /// The row of a lane whose agent is known to be at work, once its supervisor has noted that it has started.
    #[track_caller]
    pub fn started_row(&self, name: &str) -> serde_json::Value {
        let started = || Some(self.row(name)).filter(|row| row["state"] != "starting");
        wait_within(PATIENCE, || format!("the start of its agent: {}", self.row(name)), started)
    }

    /// Everything a lane could leave behind: worktrees, branches and records that are not the main checkout's.
    #[track_caller]
    pub fn traces(&self) -> Vec<String> {
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
        for (what, dir) in [
            ("folder", self.repo.join(".proq-worktrees")),
            ("record", self.repo.join(".git/proq/lanes")),
            ("registration", self.repo.join(".git/worktrees")),
            ("work", self.repo.join(".git/proq/work")),
        ] {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
            out.extend(names.filter(|n| n != ".gitignore").map(|n| format!("{what} {n}")));
        }
        out
    }

    /// Insists that the doctor finds nothing wrong or dubious here. How full the disk is says nothing about the test.
    #[track_caller]
    pub fn assert_healthy(&self) {
        let answer = self.proq(&["doctor", "--json"]).json();
        let findings = answer["findings"].as_array().unwrap();
        let bad: Vec<&serde_json::Value> =
            findings.iter().filter(|f| f["severity"] != "info" && f["check"] != "disk-space").collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }

    /// Makes a lane, runs a shell script in it and waits for its end.
    #[track_caller]
    pub fn lane_with(&self, name: &str, script: &str) {
        let _ = self.proq(&["spawn", "--wait", "-n", name, "--", "sh", "-ec", script]).ok();
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // Agents that a failed test left running are ended by name, through the program itself. Where no lane has run, none is left.
        let ran = |lane: std::io::Result<std::fs::DirEntry>| {
            lane.is_ok_and(|lane| lane.path().join("runs").exists())
        };
        let lanes = std::fs::read_dir(self.repo.join(".git/proq/lanes"));
        if !self.repo.join(".git").is_dir() || lanes.is_ok_and(|mut lanes| lanes.any(ran)) {
            drop(self.proq_command(&self.repo, &["stop", "--all"]).output());
        }
    }
}

/// Ids are made of the clock, which stands still here, a process number and a count.
fn without_ids(text: &str) -> String {
    const CLOCK: &str = "20260102-030405-";
    let mut parts = text.split(CLOCK);
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        out.push_str("[ID]");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-'));
    }
    out
}
