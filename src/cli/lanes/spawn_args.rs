//! Arguments of `git proq spawn`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_lib::agent::command::agent_command::RunOptions;
use proq_lib::agent::profiles::default_agent::{DefaultAgent, find_default_agent, names_agent};
use proq_lib::lane::Project;
use proq_lib::lane::worktree::set_up::commands::SetUpLevel;
use proq_lib::ops::pull_request::issue::Issue;
use proq_lib::ops::start::spawn::request::{LaneProgram, RequestedLanes, SpawnRequest, read_task_folder};
use proq_lib::types::{IssueLink, LaneName, LanePurpose};

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

/// Create a lane and start an agent in it
///
/// The lane is a branch, proq/NAME, and a worktree, .proq-worktrees/NAME (see lane.location), created from
/// the current branch. The agent starts there with the prompt, and the command returns at once. Without
/// --name, the name comes from the prompt. `git proq new` is an alias.
///
/// A new lane has the files of its commit, copies of the files that .worktreeinclude and lane.copy list,
/// and links to those that lane.link lists. Then the lane.setup commands run in it; if one fails, no lane
/// is created.
///
/// With --check, each merge of the lane also runs CMD, as it runs verify.commands, and refuses the lane
/// if CMD fails. Give commands that fail until the task is done.
///
/// With --scope, git-proq names other lanes that work on the same files, by their own scope or by their
/// changes. Nothing is refused. A GLOB is a file, a folder, or a pattern in which `*` also matches
/// slashes.
///
/// With --auto-merge, a background process merges the lane when its agent finishes. At a conflict,
/// merge.conflict_agent resolves it, or else the lane's own agent, unless it is a command of yours. A
/// refused merge leaves the lane unchanged and is retried after the next merge into that branch; `git proq
/// show` prints the reason, `git proq logs --merge` the output. `git proq undo` of it ends the retries.
///
/// With --mode answer or plan, the agent reads the main checkout at permission read, and its final message
/// is all that is kept: no branch, no worktree, nothing to merge. `git proq show` prints it, and so does
/// this command with --wait; `git proq send` asks a follow-up question. With --isolated, it reads a commit
/// in a temporary worktree.
///
/// With --in-place, the agent works in the main checkout, on the branch that is checked out there: one such
/// run at a time, and not during a preview. Its changes are committed there. Files that you had changed
/// stay uncommitted, and a copy of their earlier state is kept. `git proq undo` with the number from `git
/// proq op log` removes its commits.
///
/// With --tmux, the agent runs interactively in a tmux window; `git proq open` enters it. The agent
/// outlives your terminal, and its run ends when it exits.
///
/// With --folder, the task is a folder with a PROMPT.md that lists steps. Each step is done in runs of its
/// own, one after another, each in a new conversation; STATUS.md in the folder holds the progress as check
/// boxes. The task is done when all boxes are ticked, and fails after three runs in a row without progress.
/// At review level 1 or 2 in PROMPT.md, the reviewer judges the plan of each step, or the plan and the
/// result; at most two revisions are requested for each. Time limit and budget apply to all runs together.
/// `git proq run LANE` continues the task.
///
/// With --count or --agents, several attempts at one task start from one commit, in the lanes NAME-1,
/// NAME-2 and so on: all or none. `git proq compare NAME` shows them side by side, and `git proq pick`
/// merges one and deletes the others.
///
/// Without AGENT, agent.default does the task, or the only known agent that is installed. An agent may change its lane, use
/// git there and run the lane's checks; --allow and agent.allow add commands, as in 'cargo *' (any arguments) or 'npm ci'
/// (exactly that). The first line says what it may run. What an agent's own rules cannot say is refused.
///
/// Examples:
///     git proq spawn claude "implement payments"
///     git proq spawn --allow 'cargo *' "speed up the parser"
///     git proq spawn codex -n auth -F task.md
///     git proq spawn claude --issue 12
///     git proq spawn -n docs -- sh -c 'make docs; git add -A; git commit -m docs'
///     git proq spawn claude "implement payments" --check 'make test-payments' --scope src/pay/
///     git proq spawn acp "implement payments" -- gemini --acp
///     git proq spawn --agents claude:2,codex:1 -n pay "implement payments"
///     git proq spawn --auto-merge claude "fix the typos in docs/"
///     git proq spawn --mode answer --wait claude "where is the tax computed?"
///     git proq spawn claude --folder tasks/pay/PAY-3-refunds --reviewer codex
///     git proq spawn --empty -n scratch
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment, alias = "new")]
#[command(
    override_usage = "git proq spawn [OPTIONS] [AGENT] PROMPT\n       git proq spawn [OPTIONS] -- CMD...\n       git proq spawn [OPTIONS] --empty"
)]
pub(crate) struct Spawn {
    /// Agent or any program on PATH [default: agent.default]
    ///
    /// `git proq agents` lists the agents.
    #[arg(value_name = "AGENT", add = ArgValueCompleter::new(installed_agent_names), conflicts_with = "empty")]
    pub(crate) agent: Option<String>,
    /// Task for the agent
    #[arg(value_name = "PROMPT", conflicts_with = "file")]
    pub(crate) prompt: Option<String>,
    /// Run this command instead of an agent
    ///
    /// `{prompt}` and `{prompt_file}` in it are substituted. After an agent that has no command of its own, such as
    /// `acp`, this is the command that starts it.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
    /// Lane name [default: from the prompt]
    ///
    /// Lower-case letters, digits, '.', '_' and '-'.
    #[arg(long, short, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) name: Option<String>,
    /// Read the prompt from FILE ('-' for standard input)
    #[arg(long, short = 'F', short_alias = 'f', value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Use issue N of the forge as the prompt
    ///
    /// Its title and body, read by gh or glab (merge.pr_command); a PROMPT after AGENT is added. The lane is named after
    /// the title, and its pull request closes the issue. Others wrote it: read it before you start an agent that may do
    /// much.
    #[arg(long, value_name = "N", conflicts_with_all = ["file", "folder"])]
    pub(crate) issue: Option<u64>,
    /// The issue that was read.
    #[arg(skip)]
    pub(crate) issue_link: Option<IssueLink>,
    /// Work through a task folder with a PROMPT.md, step by step
    #[arg(long, hide_short_help = true, value_name = "FOLDER", value_hint = clap::ValueHint::DirPath,
          conflicts_with_all = ["prompt", "file", "empty", "tmux", "count", "agents", "isolated", "attach", "mode"])]
    pub(crate) folder: Option<String>,
    /// Agent that reviews each step (requires --folder)
    #[arg(long, hide_short_help = true, value_name = "AGENT", requires = "folder", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) reviewer: Option<String>,
    /// Start from REV, and merge into it if it is a branch
    #[arg(long, value_name = "REV", add = ArgValueCompleter::new(user_branch_names))]
    pub(crate) base: Option<String>,
    /// Branch to merge into [default: base branch]
    #[arg(long, hide_short_help = true, value_name = "BRANCH", add = ArgValueCompleter::new(user_branch_names))]
    pub(crate) onto: Option<String>,
    /// Command that must pass to merge [can be repeated]
    ///
    /// A line for the shell, which runs on the result of the merge.
    #[arg(long, value_name = "CMD", value_hint = clap::ValueHint::CommandString)]
    pub(crate) check: Vec<String>,
    /// Files the task should touch [can be repeated]
    ///
    /// Globs relative to the repository root.
    #[arg(long, value_name = "GLOB", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) scope: Vec<String>,
    /// Check out only directories matched by --scope
    ///
    /// Files in their parent directories are checked out too.
    #[arg(long, hide_short_help = true, conflicts_with_all = ["mode", "isolated", "in_place"])]
    pub(crate) sparse: bool,
    /// What to produce: build (commits), plan or answer
    #[arg(long, value_name = "MODE", default_value = "build", hide_default_value = true,
          hide_possible_values = true,
          value_parser = ["build", "plan", "answer"])]
    pub(crate) mode: String,
    /// With --mode plan or answer, read a temporary worktree
    ///
    /// The worktree is at --base, or at the commit that is checked out in the main checkout.
    #[arg(long, hide_short_help = true)]
    pub(crate) isolated: bool,
    /// Work directly in the main checkout
    ///
    /// For setups that cannot be duplicated, such as a database.
    #[arg(long, hide_short_help = true, conflicts_with_all = ["mode", "isolated", "empty"])]
    pub(crate) in_place: bool,
    /// What the agent's run is to be like
    #[command(flatten)]
    pub(crate) run_args: TaskRunArgs,
    /// Run the agent in a tmux window (see `git proq open`)
    #[arg(long, conflicts_with_all = ["max_turns", "stall", "budget", "empty"])]
    pub(crate) tmux: bool,
    /// Attach FILE to the prompt [can be repeated]
    ///
    /// A copy is kept with the lane's record.
    #[arg(long = "attachment", alias = "attach", hide_short_help = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "empty")]
    pub(crate) attach: Vec<PathBuf>,
    /// Create the lane without starting anything
    #[arg(long, conflicts_with = "command")]
    pub(crate) empty: bool,
    /// Copy your uncommitted changes into the first commit
    ///
    /// Only changes of tracked files. They also stay where they are.
    #[arg(long)]
    pub(crate) carry: bool,
    /// Skip the lane.setup commands
    #[arg(long, hide_short_help = true)]
    pub(crate) no_setup: bool,
    /// Merge the lane when the agent finishes
    #[arg(long, conflicts_with = "empty")]
    pub(crate) auto_merge: bool,
    /// Wait for the agent (with --auto-merge, the merge)
    ///
    /// Exits with 4 if the agent fails, or as the merge does.
    #[arg(long, conflicts_with = "empty")]
    pub(crate) wait: bool,
    /// Start N parallel attempts, each in its own lane
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99), conflicts_with = "auto_merge")]
    pub(crate) count: Option<u8>,
    /// Start an attempt per agent, such as claude:2,codex
    #[arg(long, value_name = "LIST", value_parser = parse_agents,
          conflicts_with_all = ["count", "auto_merge", "empty", "command"])]
    pub(crate) agents: Option<AttemptAgents>,
    /// Show what would be done, without doing it
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

    /// Returns the arguments with the text of an issue as the prompt, before that of the user.
    pub(crate) fn with_issue(&self, context: &CommandContext, project: &Project, issue: &Issue) -> Spawn {
        // A single argument is an agent, or a prompt of the default agent.
        let agent = match &self.agent {
            Some(argument) if self.agents.is_none() && self.prompt.is_none() => {
                Some(argument).filter(|argument| {
                    !self.command.is_empty()
                        || names_agent(&project.layers, argument, &context.dir).unwrap_or(true)
                })
            }
            Some(argument) if self.agents.is_none() => Some(argument),
            _ => None,
        };
        let own_text = self.prompt.as_ref().or(self.agent.as_ref().filter(|_| agent.is_none()));
        let parts = [Some(issue.prompt()), own_text.cloned()];
        let prompt = parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        let (agent, prompt) = match self.agents {
            // Without an agent argument, the first positional argument is the prompt.
            Some(_) => (Some(prompt), None),
            None => (agent.cloned(), Some(prompt)),
        };
        Spawn { agent, prompt, issue_link: Some(issue.link.clone()), ..self.clone() }
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
            issue: self.issue_link.clone(),
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
                let problem = "cannot combine --agents with an agent";
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
    UsageError::missing("no agent or command given", example).into()
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
    let example = "git proq spawn claude \"implement payments\"";
    UsageError::missing("no prompt given for the agent", example).into()
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
