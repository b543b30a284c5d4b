//! Prompts for planning agents: to write a plan, change one, correct an unusable answer, find missing
//! dependencies, or check acceptance criteria.

use proq_git as git;
use proq_git::{CommitId, Repo};
use proq_plan::plan::Plan;
use proq_plan::toml_plan;
use proq_plan::toml_plan::write::plan_to_toml;

use super::repo_context;
use super::repo_context::push_section;

/// Maximum length, in bytes, of the quoted file that a plan is written from, and of new feedback.
const MAX_QUOTED_INPUT_BYTES: usize = 40 * 1024;
/// Maximum length of a quoted plan, of its list of tasks or criteria, and of an earlier answer, in bytes.
const MAX_PLAN_BYTES: usize = 60 * 1024;
/// Maximum length of the excerpt of one task's prompt, in characters, and of a plan's summary, in bytes. Each
/// earlier feedback may be four times as long.
const MAX_EXCERPT_LEN: usize = 1024;

/// A file that a plan is to be written from.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Name of the file, as the user gave it.
    pub name: String,
    /// Content of the file.
    pub text: String,
}

/// Returns the section that specifies the format of the answer.
fn answer_format() -> String {
    format!(
        "# Output format\n\nYour final message is read by a program: one JSON object in a fenced block, below 48 KB, in this form (with your values; keys not marked as required may be omitted):\n\n```\n{}\n```\n\n- A task is done by one agent in one run, in its own worktree, while other agents work on other tasks. Its prompt contains everything that this agent needs to know: the agent sees neither this conversation nor the other tasks.\n- An id consists of letters, digits, '.', '_' and '-', and is unique.\n- List in \"needs\" only tasks that must be done before this one can start; no cycles, and no task of a later phase.\n- \"scope\" lists the files that a task changes, as narrowly as possible: tasks with overlapping scopes run one after another.\n- \"checks\" are commands that fail now and succeed once the task is done.\n- The user reads \"warnings\" before the plan runs: list there what you were not sure of.\n",
        toml_plan::json_outline()
    )
}

/// Returns the prompt that requests a new plan.
pub(crate) fn goal_prompt(
    repo: &Repo,
    commit: CommitId,
    goal: &str,
    source_file: Option<&SourceFile>,
) -> Result<String, git::Error> {
    let mut out = format!(
        "{}\n\n# Assignment\n\nWrite a plan for the goal above: tasks for several coding agents, some of which can run in parallel. Inspect \
         the repository as far as you need to, and change nothing in it.\n\n",
        goal.trim()
    );
    if let Some(file) = source_file {
        push_section(
            &mut out,
            &format!("{}, which the plan must follow", file.name),
            &file.text,
            MAX_QUOTED_INPUT_BYTES,
        );
    }
    out.push_str("# The repository\n\n");
    out.push_str(&repo_context::describe_repository(repo, commit)?);
    out.push_str(&answer_format());
    Ok(out)
}

/// Returns the message that requests a change to a plan, in the conversation in which the agent wrote it.
pub(crate) fn feedback_prompt(feedback: &str) -> String {
    format!(
        "{}\n\nChange the plan accordingly and leave the rest unchanged. Answer with the complete plan in the format specified before: one JSON object in a fenced block.\n",
        feedback.trim()
    )
}

/// Returns the prompt that requests a change to a plan from an agent that does not know the plan.
/// `initial_prompt` is the prompt for a new plan.
pub(crate) fn full_feedback_prompt(
    initial_prompt: &str,
    plan: Option<&Plan>,
    earlier: &[String],
    feedback: &str,
) -> String {
    let mut out = initial_prompt.trim_end().to_owned();
    out.push_str("\n\n# Current state\n\n");
    if let Some(plan) = plan {
        push_section(&mut out, "The current plan, in TOML", &plan_to_toml(plan), MAX_PLAN_BYTES);
    }
    for message in earlier {
        push_section(&mut out, "Earlier feedback", message, MAX_EXCERPT_LEN * 4);
    }
    push_section(&mut out, "New feedback", feedback, MAX_QUOTED_INPUT_BYTES);
    out.push_str("Answer with the complete plan, changed accordingly; leave the rest unchanged.\n");
    out
}

/// Returns the message for an agent whose answer cannot be used.
pub(crate) fn rejection_prompt(reason: &str) -> String {
    format!(
        "Your answer is not valid: {reason}\n\nAnswer again with the complete content, in the specified format: JSON in a fenced block that contains only JSON.\n"
    )
}

/// Returns the prompt that requests a corrected answer from an agent that does not know its earlier answer.
pub(crate) fn full_rejection_prompt(initial_prompt: &str, answer: &str, reason: &str) -> String {
    let mut out = initial_prompt.trim_end().to_owned();
    out.push_str("\n\n# Previous answer\n\n");
    push_section(&mut out, "The invalid answer", answer, MAX_PLAN_BYTES);
    out.push_str(&rejection_prompt(reason));
    out
}

/// Returns the prompt that requests the missing dependencies of a plan.
pub(crate) fn needs_prompt(plan: &Plan) -> String {
    let mut out = "Which dependencies are missing between these tasks?\n\n# Assignment\n\nSeveral coding agents do these tasks, as many in parallel as their dependencies allow. Find tasks that depend on another task without declaring it: they use what the other task creates, or change code that it is going to change. Inspect the repository as far \
                   as you need to, and change nothing in it.\n\n"
        .to_owned();
    let mut tasks = String::new();
    for plan_task in plan.tasks().filter(|spot| !spot.task.done) {
        let task = plan_task.task;
        let needs: Vec<&str> = task.needs.iter().map(|need| need.name.as_str()).collect();
        let excerpt: String = task.prompt.chars().take(MAX_EXCERPT_LEN).collect();
        let entry = serde_json::json!({
            "id": task.full_name(), "title": task.title, "phase": plan_task.phase + 1, "needs": needs, "scope": task.scope, "text": excerpt,
        });
        tasks.push_str(&format!("{entry}\n"));
    }
    push_section(&mut out, "The tasks, one per line", &tasks, MAX_PLAN_BYTES);
    out.push_str(
        "# Output format\n\nYour final message is read by a program: a JSON list in a fenced block, empty if no dependency is missing.\n\n```\n\
         [{\"task\": \"ID of the task that must wait\", \"needs\": \"ID of the task that must be done first\", \"because\": \"one line\"}]\n```\n\nList only dependencies that are missing and necessary: each one makes the batch slower. No cycles, and no task of a later phase. Use the IDs exactly as given above.\n",
    );
    out
}

/// Returns the prompt that requests a check of acceptance criteria.
pub(crate) fn criteria_prompt(summary: &str, criteria: &[&str]) -> String {
    let mut out = "Are these criteria met by the files in this repository?\n\n# Assignment\n\nSeveral coding agents have carried out a plan, and their work is checked out here. Inspect it and determine for each criterion whether it is met. Rely on what you verified yourself, not on claims in documents; change nothing.\n\n"
        .to_owned();
    if !summary.is_empty() {
        push_section(&mut out, "Summary of the plan", summary, MAX_EXCERPT_LEN);
    }
    let list: Vec<String> =
        criteria.iter().enumerate().map(|(n, text)| format!("{}. {text}\n", n + 1)).collect();
    push_section(&mut out, "The criteria", &list.concat(), MAX_PLAN_BYTES);
    out.push_str(
        "# Output format\n\nYour final message is read by a program: a JSON list in a fenced block, with one entry per criterion.\n\n\
         ```\n[{\"n\": 1, \"met\": \"yes, no or unknown\", \"evidence\": \"one line: the evidence, with files and lines\"}]\n```\n\nAnswer unknown if inspection cannot determine it.\n",
    );
    out
}
