//! Prompts for planning agents: to write a plan, change one, correct an unusable answer, find missing
//! dependencies, or check acceptance criteria.

use super::super::{Error, Plan, plan_to_toml, toml_plan};
use super::repo_context::{self, push_section};
use crate::git::Oid;
use crate::lane::Project;

/// Maximum length, in bytes, of the quoted file that a plan is written from, and of new feedback.
const MAX_SOURCE_FILE_BYTES: usize = 40 * 1024;
/// Maximum length of a quoted plan, of its list of tasks or criteria, and of an earlier answer, in bytes.
const MAX_PLAN_BYTES: usize = 60 * 1024;
/// Maximum length of the excerpt of one task's prompt, in characters, and of a plan's summary, in bytes. Each
/// earlier feedback may be four times as long.
const MAX_TASK_TEXT: usize = 1024;

/// A file that a plan is to be written from.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    /// Name of the file, as the user gave it.
    pub(crate) name: String,
    /// Content of the file.
    pub(crate) text: String,
}

/// Returns the section that specifies the format of the answer.
fn answer_format() -> String {
    format!(
        "# What to answer\n\nYour last message is read by a program: one JSON object in a fenced block, below 48 KB, in this form (with \
         your values; keys that are not marked as required may be left out):\n\n```\n{}\n```\n\n\
         - A task is for one agent in one sitting, in a checkout of its own; others work at the same time. Its prompt says all \
         that this agent has to know: it sees neither this conversation nor the other tasks.\n\
         - An id is letters, digits, '.', '_' and '-', and no two tasks have the same.\n\
         - Name in \"needs\" only what a task really cannot begin without; never in a circle, and never a task of a later phase.\n\
         - \"scope\" names the files that a task changes, as narrowly as you can: tasks whose scopes meet go one after the other.\n\
         - \"checks\" are commands that fail now and succeed when the task is done.\n\
         - Everything in \"warnings\" is read by a person before the plan is run: say there what you were not sure of.\n",
        toml_plan::json_outline()
    )
}

/// Returns the prompt that requests a new plan.
pub(crate) fn goal_prompt(
    project: &Project,
    commit: Oid,
    goal: &str,
    source_file: Option<&SourceFile>,
) -> Result<String, Error> {
    let mut out = format!(
        "{}\n\n# What is wanted\n\nA plan for that: tasks that several coding agents can do, some of them at the same time. Look at \
         the repository as far as you need to, and change nothing in it.\n\n",
        goal.trim()
    );
    if let Some(file) = source_file {
        push_section(
            &mut out,
            &format!("{}, which the plan is to follow", file.name),
            &file.text,
            MAX_SOURCE_FILE_BYTES,
        );
    }
    out.push_str("# The repository\n\n");
    out.push_str(&repo_context::describe_repository(project, commit)?);
    out.push_str(&answer_format());
    Ok(out)
}

/// Returns the message that requests a change to a plan, in the conversation in which the agent wrote it.
pub(crate) fn feedback_prompt(feedback: &str) -> String {
    format!(
        "{}\n\nChange the plan accordingly and leave the rest of it as it is. Answer with the whole plan again, in the form that \
         you were told: one JSON object in a fenced block.\n",
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
    out.push_str("\n\n# What there is already\n\n");
    if let Some(plan) = plan {
        push_section(&mut out, "The plan as it is, in TOML", &plan_to_toml(plan), MAX_PLAN_BYTES);
    }
    for message in earlier {
        push_section(&mut out, "What was said to it before", message, MAX_TASK_TEXT * 4);
    }
    push_section(&mut out, "What is said to it now", feedback, MAX_SOURCE_FILE_BYTES);
    out.push_str("Answer with the whole plan, changed accordingly; leave the rest of it as it is.\n");
    out
}

/// Returns the message for an agent whose answer cannot be used.
pub(crate) fn rejection_prompt(reason: &str) -> String {
    format!(
        "That answer cannot be used: {reason}\n\nAnswer once more, with all of it, in the form that you were told: JSON in a fenced \
         block, and nothing that is no JSON in it.\n"
    )
}

/// Returns the prompt that requests a corrected answer from an agent that does not know its earlier answer.
pub(crate) fn full_rejection_prompt(initial_prompt: &str, answer: &str, reason: &str) -> String {
    let mut out = initial_prompt.trim_end().to_owned();
    out.push_str("\n\n# What was answered before\n\n");
    push_section(&mut out, "An answer that cannot be used", answer, MAX_PLAN_BYTES);
    out.push_str(&rejection_prompt(reason));
    out
}

/// Returns the prompt that requests the missing dependencies of a plan.
pub(crate) fn needs_prompt(plan: &Plan) -> String {
    let mut out = "Which dependencies are missing between these tasks?\n\n# What is wanted\n\nSeveral coding agents do these tasks, as many \
                   at the same time as what they need allows. Find tasks that cannot be done well before another one is done, and \
                   do not say so: they use what it makes, or change what it is about to change. Look at the repository as far \
                   as you need to, and change nothing in it.\n\n"
        .to_owned();
    let mut tasks = String::new();
    for plan_task in plan.tasks().filter(|spot| !spot.task.done) {
        let task = plan_task.task;
        let needs: Vec<&str> = task.needs.iter().map(|need| need.name.as_str()).collect();
        let excerpt: String = task.prompt.chars().take(MAX_TASK_TEXT).collect();
        let entry = serde_json::json!({
            "id": task.name(), "title": task.title, "phase": plan_task.phase + 1, "needs": needs, "scope": task.scope, "text": excerpt,
        });
        tasks.push_str(&format!("{entry}\n"));
    }
    push_section(&mut out, "The tasks, one in each line", &tasks, MAX_PLAN_BYTES);
    out.push_str(
        "# What to answer\n\nYour last message is read by a program: a JSON list in a fenced block, empty if nothing is missing.\n\n```\n\
         [{\"task\": \"ID that has to wait\", \"needs\": \"ID that has to be done before\", \"because\": \"one line\"}]\n```\n\n\
         Name only what is missing and really needed: each one makes the work slower. Never in a circle, and nothing of a later \
         phase. Use the IDs as they stand above.\n",
    );
    out
}

/// Returns the prompt that requests a check of acceptance criteria.
pub(crate) fn criteria_prompt(summary: &str, criteria: &[&str]) -> String {
    let mut out = "Are these criteria met by the files here?\n\n# What is wanted\n\nSeveral coding agents have done a plan, and what they \
                   made is here. Look at it, and find out for each criterion whether it is true. Believe what you have seen, and \
                   nothing that only says so; change nothing.\n\n"
        .to_owned();
    if !summary.is_empty() {
        push_section(&mut out, "What the plan was about", summary, MAX_TASK_TEXT);
    }
    let list: Vec<String> =
        criteria.iter().enumerate().map(|(n, text)| format!("{}. {text}\n", n + 1)).collect();
    push_section(&mut out, "The criteria", &list.concat(), MAX_PLAN_BYTES);
    out.push_str(
        "# What to answer\n\nYour last message is read by a program: a JSON list in a fenced block, with one entry for each criterion.\n\n\
         ```\n[{\"n\": 1, \"met\": \"yes, no or unknown\", \"evidence\": \"one line: what shows it, with files and lines\"}]\n```\n\n\
         Say unknown where it cannot be found out by looking.\n",
    );
    out
}
