//! Owns `git proq demo`: the tour in a throw-away repository, by the same commands a user types.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use console::style;
use serde::Serialize;

use super::{Done, Failure, Mistake, Session, man, ui};
use crate::config::KEYS;
use crate::explain::Exit;
use crate::process::Start;
use crate::{git, interrupt};

/// Take the tour: three lanes in a throw-away repository
///
/// Needs no account and no network, and leaves nothing behind.
///
/// Example:
///     git proq demo
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Demo {
    /// Keep the repository and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
}

/// What stands in for an agent: a program on `PATH` that gets the prompt as its last argument.
const AGENT: &str = "#!/bin/sh
case $1 in
'Add payments') echo 'fn pay() {}' > payments.rs ;;
'Add search') echo 'title = \"Shop with search\"' > shop.toml ;;
'Rename the shop') echo 'title = \"Corner shop\"' > shop.toml ;;
esac
";

/// The demo needs no identity, and heeds no setting of the user's.
const IDENTITY: [(&str, &str); 7] = [
    ("GIT_AUTHOR_NAME", "Demo"),
    ("GIT_AUTHOR_EMAIL", "demo@localhost"),
    ("GIT_COMMITTER_NAME", "Demo"),
    ("GIT_COMMITTER_EMAIL", "demo@localhost"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("XDG_CONFIG_HOME", "/dev/null"),
];

/// How often, and after which pauses, the removal is tried while an agent's last process goes away.
const PATIENCE: (u32, Duration) = (100, Duration::from_millis(20));

/// The user's own work in the middle of which a lane is looked at.
const NOTES: (&str, &str) = ("notes.txt", "my own notes\n");
const IDEA: (&str, &str) = ("main.rs", "fn main() { /* half an idea */ }\n");

/// One command of the tour.
#[derive(Serialize)]
struct Step {
    command: String,
    exit: i32,
}

#[derive(Serialize)]
struct Answer {
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<PathBuf>,
}

pub(super) fn run(session: &Session, args: &Demo) -> Done {
    // Ctrl-C ends the tour between two steps, so that its repository goes too.
    interrupt::arm();
    let mut stage = Stage::new(session)?;
    let played = stage.set().and_then(|()| stage.play());
    if args.keep {
        stage.kept = true;
    } else {
        stage.strike()?;
    }
    played?;
    let kept = args.keep.then(|| stage.repo());
    if session.ui.json {
        session.ui.object(Answer { steps: stage.steps.take(), kept });
        return Ok(Exit::Done);
    }
    session.ui.answer("");
    session.ui.answer(bold(match kept {
        Some(_) => "That was the tour. In a repository of yours:",
        None => "That was the tour; its repository is gone again. In one of yours:",
    }));
    session.ui.answer("  git proq agents                              which agents are installed");
    session.ui.answer("  git proq spawn claude \"implement payments\"   start one in a lane of its own");
    session.ui.answer("  git proq                                     the lanes, and what to do next");
    if let Some(repo) = kept {
        session.ui.answer("");
        session.ui.answer(format!("kept: {}", repo.display()));
    }
    Ok(Exit::Done)
}

/// The folder with the throw-away repository and the stand-in for an agent.
struct Stage<'a> {
    session: &'a Session,
    dir: PathBuf,
    exe: PathBuf,
    path: OsString,
    steps: RefCell<Vec<Step>>,
    kept: bool,
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if !self.kept {
            drop(self.strike());
        }
    }
}

impl<'a> Stage<'a> {
    fn new(session: &'a Session) -> Result<Stage<'a>, Failure> {
        let exe = super::resolve::this_program()?;
        let dir = new_folder(&std::env::temp_dir())?;
        let before = std::env::var_os("PATH").unwrap_or_default();
        let folders = [dir.join("bin")].into_iter().chain(std::env::split_paths(&before));
        let path = std::env::join_paths(folders).unwrap_or(before);
        Ok(Stage { session, dir, exe, path, steps: RefCell::default(), kept: false })
    }

    fn repo(&self) -> PathBuf {
        self.dir.join("shop")
    }

    /// Makes the agent and a repository with one commit.
    fn set(&self) -> Result<(), Failure> {
        use std::os::unix::fs::PermissionsExt;
        let agent = self.dir.join("bin/demo-agent");
        man::write(&agent, AGENT.as_bytes())?;
        std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o700))
            .map_err(|source| Mistake::Unwritable { path: agent, source })?;
        self.write(("shop.toml", "title = \"Shop\"\n"))?;
        self.write(("main.rs", "fn main() {}\n"))?;
        let program = git::Program::find()?;
        for args in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-qm", "Open the shop"]] {
            let mut call = program.in_dir(&self.repo()).args(args);
            for (key, value) in IDENTITY {
                call = call.env(key, value);
            }
            drop(call.changes().run()?);
        }
        Ok(())
    }

    fn play(&self) -> Result<(), Failure> {
        self.chapter("Three agents, each in a lane of its own. They work at the same time.");
        for prompt in ["Add payments", "Add search", "Rename the shop"] {
            self.proq(&["spawn", "-q", "demo-agent", prompt], 0)?;
        }
        self.proq(&["wait", "add-payments", "add-search", "rename-the-shop"], 0)?;
        self.proq(&["list"], 0)?;

        self.chapter("Look at one in your own checkout, in the middle of your own work.");
        self.write(NOTES)?;
        self.write(IDEA)?;
        self.git(&["status", "--short"])?;
        self.proq(&["preview", "add-payments"], 0)?;
        self.git(&["ls-files"])?;
        self.proq(&["preview", "--back"], 0)?;
        self.git(&["status", "--short"])?;
        self.expect(NOTES)?;
        self.expect(IDEA)?;

        self.chapter("Land what fits together. What conflicts is put aside and stays as it is.");
        self.proq(&["merge", "--all"], 3)?;
        self.proq(&["list"], 0)?;
        self.git(&["log", "--oneline", "--graph"])?;
        self.git(&["status", "--short"])?;
        self.expect(("payments.rs", "fn pay() {}\n"))?;
        self.expect(NOTES)?;
        self.expect(IDEA)
    }

    fn chapter(&self, text: &str) {
        if !self.steps.borrow().is_empty() {
            self.show("");
        }
        self.show(&bold(text));
    }

    /// Shows a line. Nobody reading any more ends other commands at once; here something has to be removed first.
    fn show(&self, line: &str) {
        if !self.session.ui.json {
            ui::show(line);
        }
    }

    fn proq(&self, args: &[&str], want: i32) -> Result<(), Failure> {
        self.step("git proq", &self.exe, args, want)
    }

    fn git(&self, args: &[&str]) -> Result<(), Failure> {
        let program = crate::process::find("git", &self.dir)?;
        self.step("git", &program, args, 0)
    }

    /// Shows a command line, runs it, shows what it says, and insists on its exit code.
    fn step(&self, name: &str, program: &Path, args: &[&str], want: i32) -> Result<(), Failure> {
        interrupt::check()?;
        let words = args.iter().map(|a| if a.contains(' ') { format!("\"{a}\"") } else { (*a).to_owned() });
        let shown = format!("{name} {}", words.collect::<Vec<_>>().join(" "));
        self.show(&format!("{} {shown}", style("$").cyan()));
        let (status, out) = self.start(program, args).run()?;
        for line in String::from_utf8_lossy(&out).lines() {
            self.show(&format!("  {line}"));
        }
        interrupt::check()?;
        self.steps.borrow_mut().push(Step { command: shown.clone(), exit: status.code().unwrap_or(-1) });
        if status.code() == Some(want) {
            return Ok(());
        }
        Err(Mistake::Demo { what: format!("`{shown}` ended with {status}, not with {want}") }.into())
    }

    fn start(&self, program: &Path, args: &[&str]) -> Start {
        let mut start = Start::new(program, &self.repo()).args(args.iter().copied()).env("PATH", &self.path);
        for (key, value) in IDENTITY {
            start = start.env(key, value);
        }
        // The user's list of repositories is for those that last.
        start = start.env("XDG_STATE_HOME", self.dir.join("state"));
        for key in KEYS {
            // Nothing is to outlive the tour, and nobody has changes there to lose.
            let value = if key.name == "snapshot.interval" { "0" } else { key.default };
            start = start.env(key.variable(), value);
        }
        if console::colors_enabled() { start.env("CLICOLOR_FORCE", "1") } else { start }
    }

    fn write(&self, (name, text): (&str, &str)) -> Result<(), Failure> {
        man::write(&self.repo().join(name), text.as_bytes())
    }

    fn expect(&self, (name, text): (&str, &str)) -> Result<(), Failure> {
        match std::fs::read_to_string(self.repo().join(name)) {
            Ok(found) if found == text => Ok(()),
            _ => Err(Mistake::Demo { what: format!("{name} is not what it should be") }.into()),
        }
    }

    /// Ends what still runs and removes the folder. Nothing to do the second time.
    fn strike(&mut self) -> Result<(), Failure> {
        self.kept = true;
        if self.repo().join(".git/proq").exists() {
            drop(self.start(&self.exe, &["stop", "--all"]).run());
        }
        let (mut tries, pause) = PATIENCE;
        loop {
            match std::fs::remove_dir_all(&self.dir) {
                Ok(()) => return Ok(()),
                Err(e) if e.kind() == ErrorKind::NotFound && !self.dir.exists() => return Ok(()),
                Err(source) if tries == 0 => {
                    return Err(Mistake::Unwritable { path: self.dir.clone(), source }.into());
                }
                Err(_) => tries -= 1,
            }
            std::thread::sleep(pause);
        }
    }
}

/// Makes a folder that nobody else has or may look into, with a short path without links.
fn new_folder(parent: &Path) -> Result<PathBuf, Failure> {
    use std::os::unix::fs::DirBuilderExt;
    for n in std::process::id().. {
        let dir = parent.join(format!("proq-demo-{n}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&dir) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            made => {
                return Ok(made
                    .and_then(|()| dir.canonicalize())
                    .map_err(|source| Mistake::Unwritable { path: dir, source })?);
            }
        }
    }
    Err(Mistake::Demo { what: format!("there is no free name in {}", parent.display()) }.into())
}

fn bold(text: &str) -> String {
    style(text).bold().to_string()
}
