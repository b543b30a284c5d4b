//! Owns writing any plan as a plan in TOML.

use serde::Serialize;

use super::super::{Group, Order, Phase, Plan, Size, Task};
use super::FORMAT;

#[derive(Serialize)]
struct PlanOut<'p> {
    format: i64,
    #[serde(skip_serializing_if = "str::is_empty")]
    summary: &'p str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'p [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    criteria: &'p [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'p str>,
    phase: Vec<PhaseOut<'p>>,
}

#[derive(Serialize)]
struct PhaseOut<'p> {
    #[serde(skip_serializing_if = "str::is_empty")]
    title: &'p str,
    order: Order,
    group: Vec<GroupOut<'p>>,
}

#[derive(Serialize)]
struct GroupOut<'p> {
    #[serde(skip_serializing_if = "str::is_empty")]
    theme: &'p str,
    #[serde(skip_serializing_if = "str::is_empty")]
    rationale: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'p str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    prompt: &'p str,
    task: Vec<TaskOut<'p>>,
}

#[derive(Serialize)]
struct TaskOut<'p> {
    id: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    area: Option<&'p str>,
    title: &'p str,
    prompt: &'p str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs: Vec<&'p str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    scope: &'p [String],
    size: Size,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'p str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    checks: &'p [String],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    done: bool,
}

/// A plan as a plan in TOML, which reads as the same plan. How closely somebody is to look at a task, and how far it is, are
/// no part of that form.
pub(crate) fn written(plan: &Plan) -> String {
    let out = PlanOut {
        format: FORMAT,
        summary: &plan.summary,
        warnings: &plan.warnings,
        criteria: &plan.criteria,
        agent: plan.agent.as_deref(),
        model: plan.model.as_deref(),
        phase: plan.phases.iter().map(phase).collect(),
    };
    toml::to_string_pretty(&out).unwrap_or_default()
}

fn phase(phase: &Phase) -> PhaseOut<'_> {
    PhaseOut { title: &phase.title, order: phase.order, group: phase.groups.iter().map(group).collect() }
}

fn group(group: &Group) -> GroupOut<'_> {
    GroupOut {
        theme: &group.theme,
        rationale: &group.rationale,
        agent: group.agent.as_deref(),
        model: group.model.as_deref(),
        prompt: &group.prompt,
        task: group.tasks.iter().map(task).collect(),
    }
}

fn task(task: &Task) -> TaskOut<'_> {
    TaskOut {
        id: &task.id,
        area: task.area.as_deref(),
        title: &task.title,
        prompt: &task.prompt,
        needs: task.needs.iter().map(|need| need.name.as_str()).collect(),
        scope: &task.scope,
        size: task.size,
        agent: task.agent.as_deref(),
        model: task.model.as_deref(),
        checks: &task.checks,
        done: task.done,
    }
}
