//! Arguments of `git proq spawn`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_lib::agent::command::agent_command::RunOptions;
use proq_lib::agent::profiles::default_agent::{DefaultAgent, find_default_agent, names_agent};
use proq_lib::lane::Project;
use proq_lib::lane::worktree::set_up::commands::SetUpLevel;
use proq_lib::ops::start::spawn::request::{LaneProgram, RequestedLanes, SpawnRequest, read_task_folder};
use proq_lib::types::{LaneName, LanePurpose};

use crate::cli::arguments::candidates::{installed_agent_names, user_branch_names};
use crate::cli::arguments::run_args::TaskRunArgs;
use crate::cli::arguments::user_files::{argument_or_file, resolve_attachments};
use crate::cli::invocation::caller;
use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;

/// Maximum number of attempts in one group.
const MAX_ATTEMPTS: usize = 99;

/// Names of the agents given with `--agents`, one per attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttemptAgents(pub(crate) Vec<String>);

/// Parses a list of agents with counts, such as `claude:2,codex`.
pub(crate) fn parse_agents(text: &str) -> Result<AttemptAgents, String> {
    let mut names = Vec::new();
    for item in text.split(',').map(str::trim) {
        let (name, count) = match item.rsplit_once(':') {
            Some((name, count)) if count.bytes().all(|b| b.is_ascii_digit()) => (name, count),
            // The program of a path may have a ':' in its name.
            Some((name, count)) if !item.contains('/') => {
                return Err(format!(
                    "'{count}' is not a number; give {name} a number of attempts, like {name}:2"
                ));
            }
            _ => (item, "1"),
        };
        let count = count.parse::<usize>().ok().filter(|count| (1..=MAX_ATTEMPTS).contains(count));
        let Some(count) = count.filter(|_| !name.is_empty()) else {
            return Err(format!("'{item}' is no agent with a number of attempts, like claude:2"));
        };
        names.extend(std::iter::repeat_n(name.to_owned(), count));
    }
    match names.len() > MAX_ATTEMPTS {
        true => Err(format!("more than {MAX_ATTEMPTS} attempts")),
        false => Ok(AttemptAgents(names)),
    }
}

/// Make a lane and start an agent in it
///
/// The lane is a branch proq/NAME and a worktree, .proq-worktrees/NAME or where lane.location says, cut from the current
/// branch. The agent is started there with the prompt, and the command returns at once. Without NAME one is made from it.
///
/// The lane has the files of its commit, and from the main checkout copies of what .worktreeinclude and lane.copy name, links to
/// what lane.link names; then the lane.setup commands run in it. -v says what it was given, `git proq config list` shows these
/// settings. When a command fails no lane is made.
///
/// With --check, the lane says when its task is done: each landing runs CMD too, as it runs the verify.commands, and leaves
/// the lane out when it fails. Give commands that fail as long as nobody has done the task.
///
/// With --scope, lanes are named that are at work there too, or have work there that has not landed: by their own scope, or
/// by the files that they have changed. Nothing is refused. A GLOB is a file, a folder, or a pattern whose `*` also stands
/// for slashes.
///
/// With --auto-merge the lane is landed by a process of its own when its agent is done. At a conflict merge.conflict_agent
/// is sent, or else the lane's own agent, unless it is a command of yours. A landing that is refused leaves the lane as it
/// is, and is tried again after the next landing on that branch; `git proq show` says why, `git proq logs --merge` shows it.
/// `git proq undo` of it ends that.
///
/// With --mode answer or plan the agent only looks, in the main checkout as it is, at permission read, and what it says last is
/// all that is kept: no branch, no worktree, nothing to land. `git proq show` prints it, with --wait this command does;
/// `git proq send` asks on. With --isolated it looks at a commit instead, in a worktree that goes when its run ends.
///
/// With --in-place the agent works in the main checkout, on the branch that is checked out there, one such run at a time and
/// not while a preview is open. What it changes is committed there; files that had changes of yours stay uncommitted, and a copy
/// of them as they were is kept. `git proq undo` takes its commits back, by the number in `git proq op log`.
///
/// With --tmux the agent is on its own screen in a window of tmux, where you can look at it and talk to it: `git proq attach`
/// goes there. It does not end with your terminal. Its run is over when it ends.
///
/// With --folder the task is a folder: PROMPT.md in it says what is to be done, in steps. Each step is worked at in runs of their own, one
/// after the other, each in a new conversation; what one has to know of those before stands in STATUS.md there, whose boxes say how
/// far it is. It is done when all are ticked, and has failed when nothing comes of three runs in a row. At a review level of 1 or 2 in
/// PROMPT.md, REVIEWER judges the plan of each step, or that and what was done; at most twice something of a step is done anew.
/// Its time and budget are for all runs together. `git proq run LANE` goes on with it where it was.
///
/// With --count or --agents, several attempts are made at one task: lanes NAME-1, NAME-2 and so on from one commit, all or
/// none. `git proq compare NAME` shows them side by side, `git proq pick` lands one and discards the others.
///
/// Without AGENT, agent.default does the task, or the only known agent that is installed. An agent may change its lane, use
/// git there and run the lane's checks; --allow and agent.allow add commands, as in 'cargo *' (any arguments) or 'npm ci'
/// (exactly that). The first line says what it may run. What an agent's own rules cannot say is refused.
///
/// Examples:
///     git proq spawn claude "implement payments"
///     git proq spawn --allow 'cargo *' "speed up the parser"
///     git proq spawn codex -n auth -f task.md
///     git proq spawn claude "implement payments" --check 'make test-payments' --scope src/pay/
///     git proq spawn acp "implement payments" -- gemini --acp
///     git proq spawn -n docs -- sh -c 'make docs; git add -A; git commit -m docs'
///     git proq spawn --agents claude:2,codex:1 -n pay "implement payments"
///     git proq spawn --auto-merge claude "fix the typos in docs/"
///     git proq spawn --mode answer --wait claude "where is the tax computed?"
///     git proq spawn claude --folder tasks/pay/PAY-3-refunds --reviewer codex
///     git proq spawn --empty -n scratch
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
#[command(
    override_usage = "git proq spawn [OPTIONS] [AGENT] PROMPT\n       git proq spawn [OPTIONS] AGENT PROMPT -- CMD...\n       git proq spawn [OPTIONS] [AGENT] -f FILE\n       git proq spawn [OPTIONS] [AGENT] --folder FOLDER\n       git proq spawn [OPTIONS] --agents LIST PROMPT\n       git proq spawn [OPTIONS] -- CMD...\n       git proq spawn [OPTIONS] --empty"
)]
pub(crate) struct Spawn {
    /// Agent: a known one (see `git proq agents`) or any program on PATH [default: agent.default]
    #[arg(value_name = "AGENT", add = ArgValueCompleter::new(installed_agent_names), conflicts_with = "empty")]
    pub(crate) agent: Option<String>,
    /// What the agent is asked to do
    #[arg(value_name = "PROMPT", conflicts_with = "file")]
    pub(crate) prompt: Option<String>,
    /// A command line of your own, instead of an agent; {prompt} and {prompt_file} in it are filled in. After AGENT, the
    /// command that such an agent is started with, where it has none of its own: acp "..." -- CMD
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
    /// The lane's name: lower-case letters, digits, '.', '_' and '-'
    #[arg(long, short, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) name: Option<String>,
    /// Read the prompt from FILE, or from standard input with '-'
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// The task is a folder with PROMPT.md in it, done step by step
    #[arg(long, value_name = "FOLDER", value_hint = clap::ValueHint::DirPath,
          conflicts_with_all = ["prompt", "file", "empty", "tmux", "count", "agents", "isolated", "attach", "mode"])]
    pub(crate) folder: Option<String>,
    /// With --folder, the agent that reviews its steps, if PROMPT.md asks for reviews
    #[arg(long, value_name = "AGENT", requires = "folder", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) reviewer: Option<String>,
    /// Start from REV instead of the current branch; a branch is also what the lane lands on
    #[arg(long, value_name = "REV", add = ArgValueCompleter::new(user_branch_names))]
    pub(crate) base: Option<String>,
    /// Land on BRANCH
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(user_branch_names))]
    pub(crate) onto: Option<String>,
    /// Land the lane only when CMD, a line for the shell, succeeds with it; may be given again
    #[arg(long, value_name = "CMD", value_hint = clap::ValueHint::CommandString)]
    pub(crate) check: Vec<String>,
    /// The files that the task is expected to touch, from the top of the repository; may be given again
    #[arg(long, value_name = "GLOB", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) scope: Vec<String>,
    /// Check out only the folders that the scope's files are in, and the files beside and above them
    #[arg(long, conflicts_with_all = ["mode", "isolated", "in_place"])]
    pub(crate) sparse: bool,
    /// What it is to come to: commits in a lane of its own, a plan, or an answer
    #[arg(long, value_name = "MODE", default_value = "build", hide_default_value = true,
          value_parser = ["build", "plan", "answer"])]
    pub(crate) mode: String,
    /// With --mode plan or answer, look in a worktree made for it, at --base or what is checked out here; it goes afterwards
    #[arg(long)]
    pub(crate) isolated: bool,
    /// Work in the main checkout, on its branch, without a lane's own: for what cannot be had twice, like a database
    #[arg(long, conflicts_with_all = ["mode", "isolated", "empty"])]
    pub(crate) in_place: bool,
    /// What the agent's run is to be like
    #[command(flatten)]
    pub(crate) run_args: TaskRunArgs,
    /// Start it in a window of tmux, on its own screen; `git proq attach` goes there
    #[arg(long, conflicts_with_all = ["max_turns", "stall", "budget", "empty"])]
    pub(crate) tmux: bool,
    /// Give FILE along with the prompt; a copy is kept beside the lane's record. May be given again
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "empty")]
    pub(crate) attach: Vec<PathBuf>,
    /// Make the lane only; start nothing
    #[arg(long, conflicts_with = "command")]
    pub(crate) empty: bool,
    /// Make your uncommitted changes of tracked files the lane's first commit; they stay where they are too
    #[arg(long)]
    pub(crate) carry: bool,
    /// Run none of the lane.setup commands in it
    #[arg(long)]
    pub(crate) no_setup: bool,
    /// Land it when the agent is done, as `git proq merge` would; what refuses that is tried again after the next landing
    #[arg(long, conflicts_with = "empty")]
    pub(crate) auto_merge: bool,
    /// Wait for the agent to end, and with --auto-merge for the landing; exit with 4 when it failed, or as the landing does
    #[arg(long, conflicts_with = "empty")]
    pub(crate) wait: bool,
    /// Make N attempts at the task, each in a lane of its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99), conflicts_with = "auto_merge")]
    pub(crate) count: Option<u8>,
    /// Make an attempt with each of these agents, or as many as their numbers say: claude:2,codex
    #[arg(long, value_name = "LIST", value_parser = parse_agents,
          conflicts_with_all = ["count", "auto_merge", "empty", "command"])]
    pub(crate) agents: Option<AttemptAgents>,
    /// Say what would be made, and make nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl Spawn {
    /// Returns the purpose of a run in a lane without a branch; none if the lane has a branch.
    pub(crate) fn purpose(&self) -> Option<LanePurpose> {
        match self.mode.as_str() {
            _ if self.in_place => Some(LanePurpose::InPlace),
            "plan" => Some(LanePurpose::Plan),
            "answer" => Some(LanePurpose::Answer),
            _ => None,
        }
    }

    /// Returns the request for lanes that can land.
    pub(crate) fn spawn_request(
        &self,
        context: &CommandContext,
        project: &Project,
    ) -> Result<SpawnRequest, Failure> {
        let (lanes, prompt) = match &self.folder {
            Some(folder) => (self.folder_lane(context, project, folder)?, None),
            None => self.lanes_and_prompt(context, project)?,
        };
        Ok(SpawnRequest {
            name: self.name.as_deref().map(LaneName::from_user).transpose()?,
            prompt,
            lanes,
            options: self.run_options(),
            dir: context.dir.clone(),
            calling_lane: caller::calling_lane(context, project),
            base: self.base.clone(),
            onto: self.onto.clone(),
            checks: self.check.clone(),
            scope: self.scope.clone(),
            sparse: self.sparse,
            carry: self.carry,
            set_up: if self.no_setup { SetUpLevel::NoCommands } else { SetUpLevel::Full },
            auto_merge: self.auto_merge,
            attachments: resolve_attachments(context, &self.attach)?,
        })
    }

    /// Returns the options of the runs.
    pub(crate) fn run_options(&self) -> RunOptions {
        RunOptions { agent_command: self.command.clone(), ..self.run_args.run_options_with_window(self.tmux) }
    }

    /// Returns the programs of the lanes, and the prompt of their agents.
    fn lanes_and_prompt(
        &self,
        context: &CommandContext,
        project: &Project,
    ) -> Result<(RequestedLanes, Option<String>), Failure> {
        if let Some(AttemptAgents(names)) = &self.agents {
            // Without an agent argument, the first positional argument is the prompt.
            if self.prompt.is_some() || (self.agent.is_some() && self.file.is_some()) {
                let problem = "--agents says who does it, and so does an argument";
                let example = "git proq spawn --agents claude:2,codex:1 \"implement payments\"";
                return Err(UsageError::missing(problem, example).into());
            }
            let prompt = argument_or_file(self.agent.as_ref(), self.file.as_ref())?;
            let prompt = prompt.ok_or_else(missing_prompt)?;
            let programs = names.iter().cloned().map(LaneProgram::Agent).collect();
            return Ok((RequestedLanes::Attempts(programs), Some(prompt)));
        }
        let (program, prompt) = self.program_and_prompt(context, project)?;
        let lanes = match self.count {
            Some(count) => RequestedLanes::Attempts(vec![program; usize::from(count)]),
            None => RequestedLanes::Single(program),
        };
        Ok((lanes, prompt))
    }

    /// Returns the program to start, and its prompt. A single argument that names no agent and no program is
    /// the prompt of the default agent.
    ///
    /// # Errors
    /// [`UsageError::MissingArgument`] without a program, or for an agent without a prompt; an error when no
    /// agent is named and none can be chosen.
    pub(crate) fn program_and_prompt(
        &self,
        context: &CommandContext,
        project: &Project,
    ) -> Result<(LaneProgram, Option<String>), Failure> {
        let prompt = argument_or_file(self.prompt.as_ref(), self.file.as_ref())?;
        let default_agent = || Ok::<_, Failure>(LaneProgram::Agent(choose_default_agent(context, project)?));
        match (&self.agent, prompt, self.command.as_slice()) {
            (_, prompt, _) if self.empty => Ok((LaneProgram::None, prompt)),
            (Some(agent), Some(prompt), _) => Ok((LaneProgram::Agent(agent.clone()), Some(prompt))),
            (Some(argument), None, []) if !names_agent(&project.layers, argument, &context.dir)? => {
                Ok((default_agent()?, Some(argument.clone())))
            }
            (Some(_), None, _) => Err(missing_prompt()),
            (None, Some(prompt), []) => Ok((default_agent()?, Some(prompt))),
            (None, None, []) => Err(missing_agent()),
            (None, prompt, argv) => Ok((LaneProgram::Command(argv.to_vec()), prompt)),
        }
    }

    /// Reads the task of a folder. Warns about faults in its files, a task marked as done, and unmet needs.
    fn folder_lane(
        &self,
        context: &CommandContext,
        project: &Project,
        folder: &str,
    ) -> Result<RequestedLanes, Failure> {
        let agent = match &self.agent {
            Some(agent) => agent.clone(),
            None => choose_default_agent(context, project)?,
        };
        let single_task = read_task_folder(project, &context.dir, folder)?;
        let task = &single_task.task;
        context.ui.warn_each(&single_task.notes);
        if task.done {
            context.ui.warn(format!("task {} is marked as done", task.full_name()));
        }
        if !single_task.open_needs.is_empty() {
            let needs = single_task.open_needs.join(", ");
            context.ui.warn(format!("task {} needs {needs}, which is not done", task.full_name()));
        }
        Ok(RequestedLanes::TaskFolder { agent, reviewer: self.reviewer.clone(), task: single_task.into() })
    }
}

fn missing_agent() -> Failure {
    let example = "git proq spawn claude \"implement payments\"";
    UsageError::missing("nothing says what to start", example).into()
}

/// Returns the name of the agent for a command that names none. Prints a note where no setting names it.
fn choose_default_agent(context: &CommandContext, project: &Project) -> Result<String, Failure> {
    let DefaultAgent { name, is_only_installed } = find_default_agent(project, &context.dir)?;
    if is_only_installed {
        context.ui.status(format!("using {name}, the only known agent that is installed"));
    }
    Ok(name)
}

fn missing_prompt() -> Failure {
    let example = "git proq spawn claude \"implement payments\", or -f task.md";
    UsageError::missing("the agent needs a prompt", example).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_agent_names_with_counts() {
        let list = |text| parse_agents(text).map(|AttemptAgents(all)| all.join(" "));
        assert_eq!(list("claude:2,codex:1").unwrap(), "claude claude codex");
        assert_eq!(list("claude, codex").unwrap(), "claude codex");
        assert_eq!(list("./my:agent:2").unwrap(), "./my:agent ./my:agent");
        assert_eq!(list("./my:agent").unwrap(), "./my:agent");
        for bad in [
            "",
            ":2",
            "claude:",
            "claude:0",
            "claude:100",
            "claude:99,codex",
            "claude,,codex",
            "claude:-1,",
            "claude:x",
        ] {
            assert!(parse_agents(bad).is_err(), "{bad}");
        }
    }
}
