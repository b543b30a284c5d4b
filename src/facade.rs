//! Owns the library's face: the same work as the commands, for programs. What it returns is what `--json` prints.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::agent::{self, Asked, Job};
use crate::explain::Explain;
use crate::lane::{self, Name, NewLane, Project, View, Why, operate};
use crate::merge::{self, Request};
use crate::note::Listener;
use crate::preview;
use crate::store::Limit;
use crate::store::records::{AnyLane, LaneRecord, LaneState};

/// Something that could not be done.
#[derive(Debug)]
pub struct Error(Box<dyn Explain>);

impl Error {
    /// Commands that help, most useful first.
    #[must_use]
    pub fn hints(&self) -> Vec<String> {
        self.0.hints().iter().map(ToString::to_string).collect()
    }

    /// The exit code that the command line would end with.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.0.exit().code()
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

macro_rules! from_domain {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Error {
            fn from(e: $error) -> Error {
                Error(Box::new(e))
            }
        })*
    };
}

from_domain!(agent::Error, crate::git::Error, lane::Error, merge::Error, preview::Error, crate::store::Error);

/// What a new lane is to do.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Spawn {
    /// The lane's name; without one it is made from the prompt or the command.
    pub name: Option<String>,
    /// What the agent is asked.
    pub prompt: Option<String>,
    /// A known agent, or any program on `PATH`.
    pub agent: Option<String>,
    /// A command line instead of an agent. Without both, the lane stays empty.
    pub command: Vec<OsString>,
    /// A starting point other than the current branch.
    pub base: Option<String>,
    /// A branch to land on other than the starting point.
    pub onto: Option<String>,
    /// Shell command lines that must succeed with the lane before it lands.
    pub checks: Vec<String>,
    /// The files that the task is expected to touch, as globs from the top of the repository.
    pub scope: Vec<String>,
    /// It lands by itself when its run is done.
    pub auto_merge: bool,
}

impl Spawn {
    /// An agent with a prompt.
    #[must_use]
    pub fn agent(agent: impl Into<String>, prompt: impl Into<String>) -> Spawn {
        Spawn { agent: Some(agent.into()), prompt: Some(prompt.into()), ..Spawn::default() }
    }

    /// A command line.
    #[must_use]
    pub fn command<S: Into<OsString>>(words: impl IntoIterator<Item = S>) -> Spawn {
        Spawn { command: words.into_iter().map(Into::into).collect(), ..Spawn::default() }
    }

    /// The same with a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Spawn {
        self.name = Some(name.into());
        self
    }
}

/// A lane as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// The first line of its task.
    pub title: String,
    /// What it is doing.
    pub state: LaneState,
    /// More about the state.
    pub detail: Option<String>,
    /// Its branch.
    pub branch: String,
    /// The top of its worktree.
    pub path: PathBuf,
    /// The branch it lands on.
    pub base: String,
    /// Its agent.
    pub agent: Option<String>,
    /// Commits on its branch that its base lacks; none when one of them is gone.
    pub ahead: Option<usize>,
    /// Commits on its base that its branch lacks.
    pub behind: Option<usize>,
    /// Uncommitted files; none when that could not be found out.
    pub uncommitted: Option<usize>,
}

impl From<View> for Lane {
    fn from(view: View) -> Lane {
        Lane {
            state: view.state,
            detail: view.detail,
            ahead: view.distance.map(|d| d.ahead),
            behind: view.distance.map(|d| d.behind),
            uncommitted: view.dirt.map(|d| d.entries.len()),
            branch: view.lane.branch().unwrap_or_default().to_owned(),
            name: view.lane.name,
            title: view.lane.title,
            path: view.lane.path,
            base: view.lane.base,
            agent: view.lane.agent,
        }
    }
}

/// One repository with its lanes.
pub struct Proq {
    project: Project,
    program: PathBuf,
}

impl Proq {
    /// Opens the repository that `dir` lies in. Agents are watched by the `git-proq` that is found on `PATH`.
    ///
    /// # Errors
    /// When there is no repository, or no git.
    pub fn open(dir: impl AsRef<Path>) -> Result<Proq, Error> {
        let project = Project::open(dir.as_ref(), Listener::silent())?;
        lane::recover(&project)?;
        Ok(Proq { project, program: PathBuf::from("git-proq") })
    }

    /// Uses another `git-proq` to watch agents.
    #[must_use]
    pub fn with_program(mut self, program: impl Into<PathBuf>) -> Proq {
        self.program = program.into();
        self
    }

    /// Makes a lane and, if it is to do something, starts that in it. Returns when it runs, not when it has ended.
    ///
    /// # Errors
    /// When the name is taken or no name, the base is none, the scope no globs, or the program is not found; then nothing was
    /// made.
    pub fn spawn(&self, asked: &Spawn) -> Result<Lane, Error> {
        let project = &self.project;
        let dir = project.repo.home();
        let prompt = asked.prompt.as_deref();
        let job = match (&asked.agent, asked.command.as_slice()) {
            (Some(agent), _) => {
                let own = asked.command.clone();
                let wishes = Asked { own, ..Asked::default() };
                Some(Job::agent(project, agent, prompt.unwrap_or_default(), dir, &wishes)?)
            }
            (None, []) => None,
            (None, words) => {
                Some(Job::command(project, words, prompt.unwrap_or_default(), dir, &Asked::default())?)
            }
        };
        let words: Vec<_> = asked.command.iter().map(|w| w.to_string_lossy()).collect();
        let words = words.join(" ");
        drop(crate::git::Scope::read(&asked.scope)?);
        let plan = lane::plan(
            project,
            NewLane {
                name: asked.name.as_deref().map(Name::parse).transpose()?,
                prompt,
                words: Some(words.as_str()),
                agent: job.as_ref().map(|j| j.agent.clone()),
                base: lane::resolve_base(project, asked.base.as_deref(), asked.onto.as_deref())?,
                carry: None,
                checks: asked.checks.clone(),
                scope: asked.scope.clone(),
                sparse: false,
                auto_merge: asked.auto_merge,
                group: None,
                batch: None,
                given: lane::Given::Whole,
            },
        )?;
        let created = lane::create(project, &plan)?;
        let record = match job {
            None => created.lane.any(),
            Some(job) => agent::launch(project, &created.lane.any(), created.lock, &job, &self.program)?,
        };
        self.view(record)
    }

    /// Every lane that can be landed, by name.
    pub fn list(&self) -> Result<Vec<Lane>, Error> {
        let lanes = self.project.lanes()?.into_iter().map(LaneRecord::any).collect();
        let views = lane::views(&self.project, lanes)?;
        Ok(views.into_iter().map(Lane::from).collect())
    }

    /// One lane.
    pub fn show(&self, name: &str) -> Result<Lane, Error> {
        self.view(self.project.lane(name)?.any())
    }

    /// Waits for a lane's agent to end.
    pub fn wait(&self, name: &str) -> Result<Lane, Error> {
        let (record, _) = agent::wait(&self.project, &self.project.lane(name)?.name)?;
        self.view(record)
    }

    /// Shows a lane in the main checkout; uncommitted changes there are set aside.
    pub fn preview(&self, name: &str) -> Result<(), Error> {
        preview::enter(&self.project, name).map(drop).map_err(Error::from)
    }

    /// Leaves the preview and brings the changes back. Returns the commit that still holds them when they conflict with
    /// what landed meanwhile; `git stash apply` reads it.
    pub fn preview_back(&self) -> Result<Option<String>, Error> {
        let back = preview::back(&self.project)?;
        Ok(back.snapshot.map(|id| id.to_string()))
    }

    /// Lands lanes, in this order, each on its base, once the checks of the settings and those of their tasks succeed. Of two
    /// that conflict, the first lands. With `merge.push`, bases are pushed then; what came of that is in the report, and is no
    /// error. No agent is sent at conflicts, whatever `merge.conflict_agent` says.
    pub fn merge(&self, lanes: &[String]) -> Result<merge::Report, Error> {
        self.land(lanes, false)
    }

    /// Lands every lane that is done, in the order in which most of them land.
    pub fn merge_all(&self) -> Result<merge::Report, Error> {
        self.land(&[], true)
    }

    /// Throws a lane away. With `force` whatever is in it is saved first and a running agent is stopped.
    ///
    /// # Errors
    /// Without `force`, when the lane has work that is not on its base; then nothing was changed.
    pub fn discard(&self, name: &str, force: bool) -> Result<(), Error> {
        let project = &self.project;
        let lane = project.lane(name)?;
        project.ask_to_remove(&lane.name)?;
        let (state, _) = lane::effective_state(project, &lane)?;
        if force && state.is_busy() {
            agent::stop(project, name)?;
        }
        operate(project, "discard", |op| preview::retire(op, name, Why::Discard, force).map(drop))?;
        Ok(())
    }

    fn land(&self, lanes: &[String], all: bool) -> Result<merge::Report, Error> {
        let request = Request {
            resolver: None,
            lanes,
            unrecorded: None,
            all,
            onto: None,
            force: false,
            allow_deletions: false,
            stop: None,
            ends: &[],
            pick: false,
            by_itself: false,
            keep: false,
            dry_run: false,
            verify: &[],
            no_checks: false,
            jobs: None,
            patience: Limit::Forever,
            strategy: None,
            no_verify: false,
            order: if all { merge::Order::Best } else { merge::Order::Given },
            atomic: false,
            push: if self.project.settings.push { merge::Push::Silently } else { merge::Push::No },
            plan: &|_| {},
        };
        Ok(merge::run(&self.project, &request)?)
    }

    fn view(&self, record: AnyLane) -> Result<Lane, Error> {
        let name = record.name.clone();
        let view = lane::views(&self.project, vec![record])?.pop();
        view.map(Lane::from).ok_or_else(|| lane::Error::Unknown { name, similar: None }.into())
    }
}
