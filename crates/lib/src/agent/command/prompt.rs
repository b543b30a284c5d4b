//! Prompt of a run for a lane's task: the user's text, its attachments, and the lane's rules.

use proq_base::config::choices::Autocommit;
use proq_base::config::settings::Settings;
use proq_base::lane_name::LaneName;
use proq_store::Store;
use proq_store::records::lane::{AnyLane, LanePurpose};

use super::agent_command::AgentCommand;
use super::conversation::last_conversation_run;
use crate::agent::Error;
use crate::agent::profiles::profile::permission::Permission;
use crate::lane;
use crate::lane::Project;
use crate::lane::messages::attached_files;

/// Texts that an agent receives at the start of a run.
#[derive(Debug)]
pub struct RunPrompt {
    /// The lane's rules, where the agent accepts them separately from the prompt.
    pub rules: Option<String>,
    /// Prompt of the run, with the lane's rules at its end where `rules` does not hold them.
    pub prompt: String,
}

/// Builds the prompt of a run in a lane: the lane's task, or `prompt_override` in its place. `checks` are the
/// commands that must pass before the lane merges. A prompt that the agent would interpret as its own command
/// gets a heading.
pub fn build_prompt(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    checks: &[String],
    prompt_override: Option<&str>,
) -> Result<RunPrompt, Error> {
    let run_prompt = compose_prompt(project, lane, command, checks, prompt_override)?;
    Ok(RunPrompt { prompt: command.profile().escape_command_prompt(run_prompt.prompt), ..run_prompt })
}

/// Composes the prompt and the rules of a run, without regard to prefixes that the agent takes for a command.
fn compose_prompt(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    checks: &[String],
    prompt_override: Option<&str>,
) -> Result<RunPrompt, Error> {
    let prompt = if let Some(text) = prompt_override {
        text.to_owned()
    } else {
        let path = project.store.layout().task_prompt(&lane.name);
        let task = proq_base::regular_file::read_store_text(&path).map_err(lane::Error::io("read", &path))?;
        task + &attachment_list(&project.store, &lane.name)?
    };
    if command.profile().prompt_only {
        return Ok(RunPrompt { rules: None, prompt });
    }
    let rules = match (lane.purpose(), lane.commit_branch()) {
        (Some(purpose), None) => read_only_rules(&project.settings, lane, command, purpose),
        (_, commit_branch) => lane_rules(project, lane, command, checks, commit_branch.unwrap_or_default()),
    };
    if command.profile().capabilities.reads_system_prompt {
        return Ok(RunPrompt { rules: Some(rules), prompt });
    }
    if command.resume.is_some() {
        // The resumed conversation has the rules already, except for who answers questions: a window has a
        // user, and a run without one has nobody.
        let previous_run = last_conversation_run(&project.store, lane, command.conversation)?;
        let prompt = match previous_run.is_some_and(|run| run.interactive != command.in_window) {
            true => format!("{}\n\nFrom now on: {}\n", prompt.trim_end(), question_rule(command.in_window)),
            false => prompt,
        };
        return Ok(RunPrompt { rules: None, prompt });
    }
    Ok(RunPrompt { rules: None, prompt: format!("{}\n\n{rules}", prompt.trim_end()) })
}

/// Returns the part of the prompt that lists the task's attached files by name.
pub(crate) fn attachment_list(store: &Store, lane: &LaneName) -> Result<String, Error> {
    let names = attached_files::attachments(store, lane)?;
    if names.is_empty() {
        return Ok(String::new());
    }
    let lines = attached_files::format_file_list(&names);
    Ok(format!("\n\nThese files are attached to the task. Read them at these paths:\n\n{lines}"))
}

fn lane_rules(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    checks: &[String],
    branch: &str,
) -> String {
    let settings = &project.settings;
    let mut out = location_intro(lane, branch, command.in_window);
    let mut add_rule = |text: String| out.push_str(&format!("- {text}\n"));
    if lane.works_in_place() {
        add_rule(format!(
            "Stay on branch `{branch}`. Commit only your own changes and do not revert changes that are not yours: no \
             `git add --all`, `git commit --all`, `git stash`, `git reset --hard`, `git clean` or `git checkout .`."
        ));
    }
    add_rule(
        "Stay in this worktree. Do not touch other worktrees, other branches, the stash or git's configuration."
            .to_owned(),
    );
    if let Some(sparse_folders) = project.repo.sparse_patterns(&lane.path) {
        let folder_list: Vec<String> = sparse_folders.iter().map(|folder| format!(", `{folder}`")).collect();
        add_rule(format!(
            "This is a sparse checkout: only the top-level files{} are here. `git ls-files` lists all files; `git sparse-checkout add FOLDER` checks out another folder.",
            folder_list.concat()
        ));
    }
    if !lane.scope.is_empty() {
        let globs: Vec<String> = lane.scope.iter().map(|glob| format!("`{glob}`")).collect();
        add_rule(format!(
            "The task is expected to change only {}. If other files have to change, change as little of them as possible and mention it in your final message.",
            globs.join(", ")
        ));
    }
    add_rule(commit_rule(settings, lane, command));
    command.command_rule(checks).into_iter().for_each(&mut add_rule);
    if !settings.commit_style.trim().is_empty() && command.permission != Permission::Read {
        add_rule(format!("Commit messages: {}", settings.commit_style.trim()));
    }
    add_rule(
        "Check from time to time whether the file named by the environment variable `PROQ_WRAP_UP` exists. Once it exists, finish your current step, commit it, list what is left to do, and stop."
            .to_owned(),
    );
    add_rule(if settings.agent_push {
        format!("You may push branch `{branch}`, but no other branch, and never with force.")
    } else {
        "Do not push.".to_owned()
    });
    add_rule(report_rule(command).to_owned());
    if !checks.is_empty() {
        out.push_str(&checks_section(lane, checks));
    }
    if !settings.prompt_append.trim().is_empty() {
        out.push_str(&format!("\n{}\n", settings.prompt_append.trim()));
    }
    out
}

/// Returns the section of the rules with the lane's checks.
fn checks_section(lane: &AnyLane, checks: &[String]) -> String {
    let lines: Vec<String> = checks.iter().map(|line| format!("- `{line}`\n")).collect();
    let condition = match lane.works_in_place() {
        true => "The task is done when these commands succeed in the top-level folder of the worktree.",
        false => "The work is merged only if these commands succeed in the top-level folder of the worktree.",
    };
    format!("\n{condition} Run them before you finish:\n\n{}", lines.concat())
}

/// Returns the introduction of the rules: where the run works, and who else works in the same repository.
fn location_intro(lane: &AnyLane, branch: &str, in_window: bool) -> String {
    let (name, base, dir) = (&lane.name, &lane.base, lane.path.display());
    let location = if lane.works_in_place() {
        format!(
            "# Rules of this run\n\nYou are working in the main checkout of a git repository at {dir}, on branch `{branch}` (this run is called `{name}`). The user may have uncommitted changes there and may be working there now. Other agents work in other worktrees at the same time."
        )
    } else {
        format!(
            "# Rules of this lane\n\nYou are working in lane `{name}`: a separate git worktree at {dir}, on branch `{branch}`, which will be merged into `{base}`. Other agents work in other worktrees of this repository at the same time."
        )
    };
    format!("{location} {}\n\n", question_rule(in_window))
}

/// Returns the rule about questions: whether anybody can answer them.
fn question_rule(in_window: bool) -> &'static str {
    match in_window {
        true => "The user can answer questions here: ask if you cannot decide.",
        false => {
            "Nobody can answer questions: decide yourself and list your decisions in your final message."
        }
    }
}

fn commit_rule(settings: &Settings, lane: &AnyLane, command: &AgentCommand) -> String {
    if command.permission == Permission::Read {
        return "This run is read-only: change no file and commit nothing.".to_owned();
    }
    let uncommitted_note = match settings.autocommit {
        Autocommit::Never if lane.works_in_place() => "",
        Autocommit::Never => " Uncommitted work is not merged.",
        _ => " Changes that you cannot commit are committed for you when you finish.",
    };
    format!("Commit your work on this branch, one logical change per commit.{uncommitted_note}")
}

/// Returns the rules for a read-only run, whose result is its last message.
fn read_only_rules(
    settings: &Settings,
    lane: &AnyLane,
    command: &AgentCommand,
    purpose: LanePurpose,
) -> String {
    let (name, base, dir) = (&lane.name, &lane.base, lane.path.display());
    let answer_rule = match purpose {
        LanePurpose::Answer | LanePurpose::InPlace => {
            "Your final message is the answer and the only output that is kept. Make it complete and clear, and cite the files and lines that support it. If the task specifies an output format, follow it."
        }
        LanePurpose::Plan => {
            "Your final message is the plan and the only output that is kept; do not write it to a file. List the steps in order, the files that each step changes, how to verify each step, and open questions. If the task specifies an output format, follow it."
        }
    };
    let location = if lane.is_detached() {
        format!(
            "in a temporary worktree that is removed when you finish: {dir}, at `{base}` ({})",
            lane.start.short()
        )
    } else {
        format!(
            "in the main checkout: {dir}, on `{base}` when you were started. The user may be working there now"
        )
    };
    let mut out = format!(
        "# Rules of this run\n\nYou are inspecting a git repository (mode `{purpose}`, run `{name}`), {location}. Nobody can answer questions: decide yourself and list your assumptions in your final message.\n\n- This run is read-only. Change no file, commit nothing, and do not touch branches, the stash or git's configuration.\n- {answer_rule}\n- {}\n",
        report_rule(command)
    );
    if !settings.prompt_append.trim().is_empty() {
        out.push_str(&format!("\n{}\n", settings.prompt_append.trim()));
    }
    out
}

fn report_rule(command: &AgentCommand) -> &'static str {
    if command.profile().capabilities.mcp {
        "The tool `read_task` of the MCP server `proq` shows this task again. Use `update_task` to report findings and steps that only a person can do. Without that server, use `git proq task read` and `git proq task update` instead."
    } else {
        "`git proq task read` shows this task again. Use `git proq task update` to report findings and steps that only a person can do."
    }
}
