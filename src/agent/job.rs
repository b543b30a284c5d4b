//! Owns what is to be started in a lane: an agent by its profile, or a command of the user's own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Error;
use super::catalogue::profile_of;
use super::profile::{Delivery, Permission, Profile, Strays, check_text};
use super::stream::Dialect;
use super::template::Values;
use super::window;
use crate::config::{Settings, dollars};
use crate::explain::word;
use crate::lane::Project;
use crate::process;
use crate::store::records::{ForTask, Purpose, RunLimits, Stint};

/// What a run is to be like, as far as somebody has said so.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// What the agent may do.
    pub(crate) permission: Option<Permission>,
    /// The model.
    pub(crate) model: Option<String>,
    /// How many turns it may take.
    pub(crate) max_turns: Option<u32>,
    /// The session to go on in, by the id that the agent itself gave it.
    pub(crate) resume: Option<String>,
    /// What it only looks for; none when it is to do something.
    pub(crate) purpose: Option<Purpose>,
    /// What it may take.
    pub(crate) limits: RunLimits,
    /// Whether it is to be in a window, in front of a person.
    pub(crate) in_window: bool,
    /// The command of an agent that has none of its own.
    pub(crate) own: Vec<OsString>,
}

impl Asked {
    /// Whether nobody has said anything.
    pub(crate) fn is_open(&self) -> bool {
        self.permission.is_none()
            && self.model.is_none()
            && self.max_turns.is_none()
            && self.limits == RunLimits::default()
    }
}

/// A command for a lane, its placeholders not filled in yet.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// The profile's name; `command` for a command line of the user's own.
    pub(crate) agent: String,
    /// What the agent may do.
    pub(crate) permission: Permission,
    /// The model that it is asked to use.
    pub(crate) model: Option<String>,
    /// The session to go on in.
    pub(crate) resume: Option<String>,
    /// What it only looks for; none when it is to do something.
    pub(crate) purpose: Option<Purpose>,
    /// What it may take.
    pub(super) limits: RunLimits,
    /// Whether it is in a window, in front of a person.
    pub(crate) in_window: bool,
    pub(super) max_turns: Option<u32>,
    /// The conversation that it goes on with or takes up again, by the run that began it.
    pub(super) talk: Option<u32>,
    /// The messages of the lane's inbox that are in what it is told.
    pub(super) tells: Vec<String>,
    /// What of its budget the tries before it have used up, in 1e-9 USD.
    pub(super) spent_before: u64,
    /// The task of a batch that it is for.
    pub(super) batch: Option<ForTask>,
    /// Which part it has in a task that is a folder.
    pub(super) stint: Option<Stint>,
    /// The lane's checks, which its permission level may name.
    checks: Vec<String>,
    program: PathBuf,
    profile: Profile,
    /// The user's own arguments, in place of the profile's.
    own: Option<Vec<OsString>>,
}

impl Job {
    /// An agent by name, with the prompt handed over as its profile says. What `asked` leaves open is as in the settings.
    ///
    /// # Errors
    /// When the program is not found, the prompt cannot be handed over, or the agent has no way to do what was asked for.
    pub(crate) fn agent(
        project: &Project,
        agent: &str,
        prompt: &str,
        dir: &Path,
        asked: &Asked,
    ) -> Result<Job, Error> {
        let settings = &project.settings;
        let permission = permission(settings, asked)?;
        let profile = profile_of(&project.layers, agent)?;
        let (program, own) = match asked.own.split_first() {
            None => (require(&profile, agent, dir)?, None),
            Some((program, args)) if profile.wants_command() => (find(program, dir)?, Some(args.to_vec())),
            Some(_) => return Err(Error::HasCommand { agent: agent.to_owned() }),
        };
        match asked.in_window {
            true => window::require(&profile, agent, prompt)?,
            false => profile.check_prompt(prompt)?,
        }
        if permission == Permission::Read && profile.permission.read.is_none() {
            return Err(Error::NotLimited { agent: agent.to_owned() });
        }
        let not_taken = |flag| Err(Error::NotTaken { agent: agent.to_owned(), flag });
        if asked.model.is_some() && !profile.takes("model") {
            return not_taken("--model");
        }
        if asked.max_turns.is_some() && !profile.takes("max_turns") {
            return not_taken("--max-turns");
        }
        if asked.resume.is_some() && !profile.goes_on() {
            return Err(Error::NoResume { agent: agent.to_owned() });
        }
        let model = asked.model.as_ref().or(profile.model.as_ref()).or(settings.model.as_ref());
        let max_turns = asked.max_turns.or(Some(settings.max_turns)).filter(|n| *n > 0);
        Ok(Job {
            agent: agent.to_owned(),
            permission,
            model: model.filter(|_| profile.takes("model")).cloned(),
            resume: asked.resume.clone(),
            purpose: asked.purpose,
            limits: limits(project, asked),
            in_window: asked.in_window,
            // A limit of nobody's asking that cannot be told is none; the run's record would else ask the next run for it.
            max_turns: max_turns.filter(|_| profile.takes("max_turns")),
            talk: None,
            tells: Vec::new(),
            spent_before: 0,
            batch: None,
            stint: None,
            checks: Vec::new(),
            program,
            profile,
            own,
        })
    }

    /// A command line of the user's own; `{prompt}` and `{prompt_file}` in its arguments are filled in. Without them a
    /// prompt is only found in the file that `PROQ_TASK_FILE` names.
    pub(crate) fn command(
        project: &Project,
        words: &[OsString],
        prompt: &str,
        dir: &Path,
        asked: &Asked,
    ) -> Result<Job, Error> {
        let (program, args) = words.split_first().ok_or(Error::NoCommand)?;
        if let Some(purpose) = asked.purpose.filter(|purpose| purpose.only_looks()) {
            let why = "takes an agent: nothing keeps a command of yours from changing things";
            return Err(Error::OnlyLooks { purpose: purpose.to_string(), why });
        }
        check_text(prompt)?;
        if asked.in_window {
            window::find_tmux()?;
        }
        let found = find(program, dir)?;
        Ok(Job {
            agent: "command".to_owned(),
            permission: Permission::default(),
            model: None,
            resume: None,
            purpose: asked.purpose,
            limits: limits(project, asked),
            in_window: asked.in_window,
            max_turns: None,
            talk: None,
            tells: Vec::new(),
            spent_before: 0,
            batch: None,
            stint: None,
            checks: Vec::new(),
            program: found,
            profile: Profile { bare: true, prompt: Delivery::File, ..Profile::default() },
            own: Some(args.to_vec()),
        })
    }

    /// The same as a part of the conversation that the run of this number began.
    pub(super) fn in_talk(self, talk: u32) -> Job {
        Job { talk: Some(talk), ..self }
    }

    /// The same with these messages of the lane's inbox in what it is told.
    pub(super) fn telling(self, tells: Vec<String>) -> Job {
        Job { tells, ..self }
    }

    /// The same as a further try, of whose budget so much is used up.
    pub(super) fn after_spending(self, spent_before: u64) -> Job {
        Job { spent_before, ..self }
    }

    /// The same for a task of a batch.
    pub(crate) fn for_task(self, batch: Option<ForTask>) -> Job {
        Job { batch, ..self }
    }

    /// The same as a part of a task that is a folder.
    pub(super) fn with_part(self, stint: Option<Stint>) -> Job {
        Job { stint, ..self }
    }

    /// Sets the checks of the lane's task, which its agent may run.
    pub(crate) fn with_checks(self, checks: Vec<String>) -> Job {
        Job { checks, ..self }
    }

    /// The agent as a sentence names it.
    pub(crate) fn called(&self) -> &str {
        if self.is_command() { "your command" } else { &self.agent }
    }

    /// The same, as what there is to say of it once it was started. In a window it may have to be talked to first.
    pub(crate) fn begun(&self) -> String {
        format!("{} is {}", self.called(), if self.in_window { "in a window of tmux" } else { "at work" })
    }

    /// Whether its permission level means anything.
    pub(super) fn is_limited(&self) -> bool {
        !self.is_command() && !self.profile.bare
    }

    /// Whether it is a command line of the user's own and no agent.
    pub(super) fn is_command(&self) -> bool {
        self.own.is_some() && !self.speaks()
    }

    /// Whether the protocol is spoken with it.
    pub(super) fn speaks(&self) -> bool {
        self.profile.prompt == Delivery::Protocol
    }

    /// The command that the user named for an agent that has none of its own.
    pub(super) fn named_command(&self) -> Vec<String> {
        let Some(args) = self.own.as_ref().filter(|_| self.speaks()) else { return Vec::new() };
        let program = self.program.as_os_str();
        std::iter::once(program)
            .chain(args.iter().map(OsString::as_os_str))
            .map(|w| w.to_string_lossy().into_owned())
            .collect()
    }

    /// What the agent may do, where that means anything.
    pub(crate) fn level(&self) -> Option<String> {
        self.is_limited().then(|| self.permission.to_string())
    }

    /// Whether it may come to something that lands.
    pub(super) fn lands(&self) -> bool {
        self.purpose.is_none_or(|purpose| !purpose.only_looks())
    }

    /// The same in a new conversation.
    pub(super) fn anew(&self) -> Job {
        Job { resume: None, ..self.clone() }
    }

    /// Its profile.
    pub(super) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// What its output is written in.
    pub(super) fn dialect(&self) -> Dialect {
        self.profile.dialect
    }

    /// What becomes of the processes that it leaves running.
    pub(super) fn strays(&self) -> Strays {
        self.profile.strays
    }

    /// Whether the prompt is its standard input.
    pub(super) fn prompt_on_stdin(&self) -> bool {
        self.own.is_none() && !self.in_window && self.profile.prompt == Delivery::Stdin
    }

    /// Whether more prompts may follow that one while it runs.
    pub(super) fn prompts_follow(&self) -> bool {
        self.prompt_on_stdin() && self.profile.is_fed()
    }

    /// What it says itself about placeholders: model, turns, money, and the session to go on in.
    pub(super) fn values(&self) -> Values {
        let mut values = Values::default();
        values.set_if("model", self.model.as_ref());
        values.set_if("max_turns", self.max_turns.map(|n| n.to_string()));
        let left = self.limits.budget.map(|budget| budget.saturating_sub(self.spent_before));
        values.set_if("budget", left.map(dollars));
        values.set_if("session", self.resume.as_ref());
        values.set_all("check", self.checks.iter().filter(|check| is_plain(check)).cloned().collect());
        values
    }

    /// The command line for a lane.
    pub(super) fn words(&self, values: &Values) -> Vec<OsString> {
        let args = match &self.own {
            None => self.profile.words(self.template(), self.permission, values),
            Some(args) => args.iter().filter_map(|a| values.fill(a)).collect(),
        };
        std::iter::once(self.program.clone().into_os_string()).chain(args).collect()
    }

    /// The command line as a person reads it, placeholders of the run left in.
    pub(crate) fn shown(&self) -> String {
        let args: Vec<String> = match &self.own {
            None => self.profile.shown(self.template(), self.permission, &self.values()),
            Some(args) => args.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        };
        let words = std::iter::once(self.program.display().to_string()).chain(args);
        words.map(|w| word(&w)).collect::<Vec<_>>().join(" ")
    }

    fn template(&self) -> &[String] {
        let args = &self.profile.args;
        match (self.in_window && !self.profile.bare, self.resume.is_some()) {
            (true, true) => &args.interactive_resume,
            (true, false) => &args.interactive,
            // What it goes on with is said by the protocol.
            (false, true) if !self.speaks() => &args.resume,
            (false, _) => &args.start,
        }
    }
}

/// What the agent may do. One that only looks may do no more than that, whatever the settings say.
fn permission(settings: &Settings, asked: &Asked) -> Result<Permission, Error> {
    let Some(purpose) = asked.purpose.filter(|purpose| purpose.only_looks()) else {
        return Ok(asked.permission.or(Permission::named(&settings.permission)).unwrap_or_default());
    };
    let why = match asked.permission {
        _ if asked.in_window => "takes no window: what is said there is not kept",
        None | Some(Permission::Read) => return Ok(Permission::Read),
        Some(_) => "only looks, so there is no other permission than read",
    };
    Err(Error::OnlyLooks { purpose: purpose.to_string(), why })
}

/// What was asked for, and what the settings have where nothing was. Nought is no limit.
fn limits(project: &Project, Asked { limits: asked, in_window, .. }: &Asked) -> RunLimits {
    let settings = &project.settings;
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs());
    let limited = |limit: Option<u64>| limit.filter(|n| *n > 0);
    RunLimits {
        time: limited(asked.time.or(seconds(settings.max_time))),
        // What is said in a window is for a person: nothing is read there.
        stall: limited(asked.stall.or(seconds(settings.stall))).filter(|_| !in_window),
        budget: limited(asked.budget.or(settings.budget)).filter(|_| !in_window),
    }
}

/// Finds the program of a command of the user's own.
fn find(program: &OsString, dir: &Path) -> Result<PathBuf, Error> {
    let program = program.to_string_lossy();
    process::find(&program, dir).map_err(|_| Error::NotInstalled { program: program.into_owned() })
}

/// Finds the program of a profile.
pub(super) fn require(profile: &Profile, agent: &str, dir: &Path) -> Result<PathBuf, Error> {
    if profile.program.is_empty() {
        return Err(Error::Incomplete { agent: agent.to_owned() });
    }
    profile.find(dir)
}

/// Whether an agent's own rules can name a command without it meaning more there than here: no wildcards, no brackets.
fn is_plain(check: &str) -> bool {
    !check.contains(|c: char| "*()[]{},\\\"'`".contains(c) || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_checks_are_named_in_an_agents_rules() {
        assert!(is_plain("make test -j2"));
        for bad in ["rm *", "f(x)", "a\nb", "echo \"x\"", "a, b"] {
            assert!(!is_plain(bad), "{bad}");
        }
    }
}
