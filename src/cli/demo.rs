//! Owns `git proq demo`: the tour in a throw-away repository, by the same commands a user types.

use std::path::PathBuf;

use console::style;

use super::args::Demo;
use super::{Done, Failure, Mistake, Session};
use crate::explain::Exit;
use crate::git;
use crate::process::Start;
use crate::store::new_id;

/// What the three scripted agents do: their lanes' names and their scripts. The last leaves its work uncommitted.
const AGENTS: [(&str, &str); 3] = [
    ("payments", "echo 'fn pay() {}' > payments.rs; git add -A; git commit -qm 'Add payments'"),
    ("search", "echo 'title = \"Shop with search\"' > shop.toml; git commit -qam 'Add search'"),
    ("rename", "echo 'title = \"Corner shop\"' > shop.toml"),
];

pub(super) fn run(session: &Session, args: &Demo) -> Done {
    let stage = Stage::set(session)?;
    let done = stage.play();
    if args.keep {
        session.ui.answer(format!("the repository is kept: {}", stage.repo.display()));
    } else {
        stage.strike()?;
    }
    done?;
    session.ui.answer(bold("That was the tour. In a repository of yours:"));
    session.ui.answer("  git proq agents                              which agents are installed");
    session.ui.answer("  git proq spawn claude \"implement payments\"   start one in a lane of its own");
    session.ui.answer("  git proq                                     the lanes, and what can be done next");
    Ok(Exit::Done)
}

/// The throw-away repository.
struct Stage<'a> {
    session: &'a Session,
    dir: PathBuf,
    repo: PathBuf,
    exe: PathBuf,
}

impl<'a> Stage<'a> {
    fn set(session: &'a Session) -> Result<Stage<'a>, Failure> {
        let exe = std::env::current_exe()
            .map_err(|source| Mistake::Unreadable { path: "git-proq".into(), source })?;
        let dir = std::env::temp_dir().join(format!("git-proq-demo-{}", new_id()));
        let repo = dir.join("shop");
        std::fs::create_dir_all(&repo)
            .map_err(|source| Mistake::Unwritable { path: repo.clone(), source })?;
        let repo = repo.canonicalize().map_err(|source| Mistake::Unreadable { path: repo, source })?;
        let stage = Stage { session, dir, repo, exe };
        stage.first_commit()?;
        Ok(stage)
    }

    fn first_commit(&self) -> Result<(), Failure> {
        self.write("shop.toml", "title = \"Shop\"\n")?;
        self.write("main.rs", "fn main() {}\n")?;
        let program = git::Program::find()?;
        for args in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-qm", "Open the shop"]] {
            let mut call = program.in_dir(&self.repo).args(args);
            for (key, value) in IDENTITY {
                call = call.env(key, value);
            }
            drop(call.changes().run()?);
        }
        Ok(())
    }

    fn play(&self) -> Result<(), Failure> {
        self.chapter("Three agents, each in a lane of its own. They run at the same time.");
        for (name, script) in AGENTS {
            let args = ["spawn", "-q", "-n", name, "--", "sh", "-c", script];
            self.types(
                &format!("git proq spawn -q -n {name} -- sh -c \"{}\"", script.replace('"', "\\\"")),
                &args,
                0,
            )?;
        }
        self.proq(&["wait"], 0)?;
        self.proq(&["list"], 0)?;

        self.chapter("Look at one in your own checkout, in the middle of your own work.");
        self.write("notes.txt", "my own notes\n")?;
        self.write("main.rs", "fn main() { /* half an idea */ }\n")?;
        self.git(&["status", "--short"])?;
        self.proq(&["preview", "payments"], 0)?;
        self.git(&["ls-files"])?;
        self.proq(&["preview", "--back"], 0)?;
        self.expect("notes.txt", "my own notes\n")?;
        self.expect("main.rs", "fn main() { /* half an idea */ }\n")?;

        self.chapter("Land what fits together. What conflicts is put aside, with its conflict kept.");
        self.proq(&["merge", "--all"], 3)?;
        self.proq(&["list"], 0)?;
        self.proq(&["show", "rename"], 0)?;
        self.expect("payments.rs", "fn pay() {}\n")?;
        self.expect("notes.txt", "my own notes\n")?;
        Ok(())
    }

    fn chapter(&self, text: &str) {
        self.session.ui.answer("");
        self.session.ui.answer(bold(text));
    }

    fn proq(&self, args: &[&str], want: i32) -> Result<(), Failure> {
        self.types(&format!("git proq {}", args.join(" ")), args, want)
    }

    /// Shows a command line, runs it, shows what it says, and insists on its exit code.
    fn types(&self, shown: &str, args: &[&str], want: i32) -> Result<(), Failure> {
        self.session.ui.answer(format!("{} {shown}", style("$").cyan()));
        let mut start = Start::new(&self.exe, &self.repo).args(args.iter().copied());
        for (key, value) in IDENTITY {
            start = start.env(key, value);
        }
        if console::colors_enabled() {
            start = start.env("CLICOLOR_FORCE", "1");
        }
        let (status, out) = start.run()?;
        for line in String::from_utf8_lossy(&out).lines() {
            self.session.ui.answer(format!("  {line}"));
        }
        if status.code() == Some(want) {
            return Ok(());
        }
        Err(Mistake::Demo { what: format!("`{shown}` ended with {status}, not with {want}") }.into())
    }

    fn git(&self, args: &[&str]) -> Result<(), Failure> {
        self.session.ui.answer(format!("{} git {}", style("$").cyan(), args.join(" ")));
        let out = git::Program::find()?.in_dir(&self.repo).args(args).run()?;
        for line in String::from_utf8_lossy(&out.stdout).lines() {
            self.session.ui.answer(format!("  {line}"));
        }
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.repo.join(name);
        Ok(std::fs::write(&path, text).map_err(|source| Mistake::Unwritable { path, source })?)
    }

    fn expect(&self, name: &str, text: &str) -> Result<(), Failure> {
        match std::fs::read_to_string(self.repo.join(name)) {
            Ok(found) if found == text => Ok(()),
            _ => Err(Mistake::Demo { what: format!("{name} is not what it should be") }.into()),
        }
    }

    fn strike(&self) -> Result<(), Failure> {
        Ok(std::fs::remove_dir_all(&self.dir)
            .map_err(|source| Mistake::Unwritable { path: self.dir.clone(), source })?)
    }
}

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

fn bold(text: &str) -> String {
    style(text).bold().to_string()
}
