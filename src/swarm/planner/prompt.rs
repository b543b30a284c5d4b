//! Owns what agents are told that are to make a plan, change one, put a mistake right, or look for what is missing.

use super::super::{Error, Plan, toml_plan, written};
use super::context::{self, section};
use crate::git::Oid;
use crate::lane::Project;

/// So much of the file that a plan is to be made from is told.
const LONGEST_FROM: usize = 40 * 1024;
/// So much of a plan, or of the tasks of one.
const LONGEST_PLAN: usize = 60 * 1024;
/// So much of what one task is about.
const LONGEST_TASK: usize = 1024;

/// A file that a plan is to be made from.
#[derive(Debug, Clone)]
pub(crate) struct FromFile {
    /// As it was named.
    pub(crate) name: String,
    /// What it says.
    pub(crate) text: String,
}

/// What the answer has to be.
fn form() -> String {
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
        toml_plan::outline()
    )
}

/// What is asked for a new plan.
pub(crate) fn for_goal(
    project: &Project,
    at: Oid,
    goal: &str,
    from: Option<&FromFile>,
) -> Result<String, Error> {
    let mut out = format!(
        "{}\n\n# What is wanted\n\nA plan for that: tasks that several coding agents can do, some of them at the same time. Look at \
         the repository as far as you need to, and change nothing in it.\n\n",
        goal.trim()
    );
    if let Some(from) = from {
        section(&mut out, &format!("{}, which the plan is to follow", from.name), &from.text, LONGEST_FROM);
    }
    out.push_str("# The repository\n\n");
    out.push_str(&context::of(project, at)?);
    out.push_str(&form());
    Ok(out)
}

/// What is asked where a plan is to be changed, in the conversation in which it was made.
pub(crate) fn for_feedback(text: &str) -> String {
    format!(
        "{}\n\nChange the plan accordingly and leave the rest of it as it is. Answer with the whole plan again, in the form that \
         you were told: one JSON object in a fenced block.\n",
        text.trim()
    )
}

/// The same for an agent that does not know the plan; `whole` is what a new plan would be asked for with.
pub(crate) fn for_feedback_anew(whole: &str, plan: Option<&Plan>, former: &[String], text: &str) -> String {
    let mut out = whole.trim_end().to_owned();
    out.push_str("\n\n# What there is already\n\n");
    if let Some(plan) = plan {
        section(&mut out, "The plan as it is, in TOML", &written(plan), LONGEST_PLAN);
    }
    for said in former {
        section(&mut out, "What was said to it before", said, LONGEST_TASK * 4);
    }
    section(&mut out, "What is said to it now", text, LONGEST_FROM);
    out.push_str("Answer with the whole plan, changed accordingly; leave the rest of it as it is.\n");
    out
}

/// What an agent is told whose answer cannot be used.
pub(crate) fn for_mistake(why: &str) -> String {
    format!(
        "That answer cannot be used: {why}\n\nAnswer once more, with all of it, in the form that you were told: JSON in a fenced \
         block, and nothing that is no JSON in it.\n"
    )
}

/// The same for an agent that does not know what it answered.
pub(crate) fn for_mistake_anew(whole: &str, answer: &str, why: &str) -> String {
    let mut out = whole.trim_end().to_owned();
    out.push_str("\n\n# What was answered before\n\n");
    section(&mut out, "An answer that cannot be used", answer, LONGEST_PLAN);
    out.push_str(&for_mistake(why));
    out
}

/// What is asked where dependencies may be missing.
pub(crate) fn for_needs(plan: &Plan) -> String {
    let mut out = "Which dependencies are missing between these tasks?\n\n# What is wanted\n\nSeveral coding agents do these tasks, as many \
                   at the same time as what they need allows. Find tasks that cannot be done well before another one is done, and \
                   do not say so: they use what it makes, or change what it is about to change. Look at the repository as far \
                   as you need to, and change nothing in it.\n\n"
        .to_owned();
    let mut tasks = String::new();
    for spot in plan.spots().filter(|spot| !spot.task.done) {
        let task = spot.task;
        let needs: Vec<&str> = task.needs.iter().map(|need| need.name.as_str()).collect();
        let said: String = task.prompt.chars().take(LONGEST_TASK).collect();
        let told = serde_json::json!({
            "id": task.name(), "title": task.title, "phase": spot.phase + 1, "needs": needs, "scope": task.scope, "text": said,
        });
        tasks.push_str(&format!("{told}\n"));
    }
    section(&mut out, "The tasks, one in each line", &tasks, LONGEST_PLAN);
    out.push_str(
        "# What to answer\n\nYour last message is read by a program: a JSON list in a fenced block, empty if nothing is missing.\n\n```\n\
         [{\"task\": \"ID that has to wait\", \"needs\": \"ID that has to be done before\", \"because\": \"one line\"}]\n```\n\n\
         Name only what is missing and really needed: each one makes the work slower. Never in a circle, and nothing of a later \
         phase. Use the IDs as they stand above.\n",
    );
    out
}

/// What is asked where somebody is to look whether criteria are met.
pub(crate) fn for_criteria(summary: &str, criteria: &[&str]) -> String {
    let mut out = "Are these criteria met by the files here?\n\n# What is wanted\n\nSeveral coding agents have done a plan, and what they \
                   made is here. Look at it, and find out for each criterion whether it is true. Believe what you have seen, and \
                   nothing that only says so; change nothing.\n\n"
        .to_owned();
    if !summary.is_empty() {
        section(&mut out, "What the plan was about", summary, LONGEST_TASK);
    }
    let list: Vec<String> =
        criteria.iter().enumerate().map(|(n, text)| format!("{}. {text}\n", n + 1)).collect();
    section(&mut out, "The criteria", &list.concat(), LONGEST_PLAN);
    out.push_str(
        "# What to answer\n\nYour last message is read by a program: a JSON list in a fenced block, with one entry for each criterion.\n\n\
         ```\n[{\"n\": 1, \"met\": \"yes, no or unknown\", \"evidence\": \"one line: what shows it, with files and lines\"}]\n```\n\n\
         Say unknown where it cannot be found out by looking.\n",
    );
    out
}
