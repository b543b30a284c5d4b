//! Writer of plans in TOML.

use serde::Serialize;

use crate::plan::{Group, Phase, PhaseOrder, Plan, Size, Task};

/// Version of the format.
pub(crate) const FORMAT_VERSION: i64 = 1;

#[derive(Serialize)]
struct TomlPlan<'p> {
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
    phase: Vec<TomlPhase<'p>>,
}

#[derive(Serialize)]
struct TomlPhase<'p> {
    #[serde(skip_serializing_if = "str::is_empty")]
    title: &'p str,
    order: PhaseOrder,
    group: Vec<TomlGroup<'p>>,
}

#[derive(Serialize)]
struct TomlGroup<'p> {
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
    task: Vec<TomlTask<'p>>,
}

#[derive(Serialize)]
struct TomlTask<'p> {
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

/// Returns a plan as TOML that reads as the same plan. The format has no review level or progress of a task,
/// so those are omitted.
pub fn plan_to_toml(plan: &Plan) -> String {
    let out = TomlPlan {
        format: FORMAT_VERSION,
        summary: &plan.summary,
        warnings: &plan.warnings,
        criteria: &plan.criteria,
        agent: plan.agent.as_deref(),
        model: plan.model.as_deref(),
        phase: plan.phases.iter().map(phase_to_toml).collect(),
    };
    toml::to_string_pretty(&out).unwrap_or_default()
}

fn phase_to_toml(phase: &Phase) -> TomlPhase<'_> {
    TomlPhase {
        title: &phase.title,
        order: phase.order,
        group: phase.groups.iter().map(group_to_toml).collect(),
    }
}

fn group_to_toml(group: &Group) -> TomlGroup<'_> {
    TomlGroup {
        theme: &group.theme,
        rationale: &group.rationale,
        agent: group.agent.as_deref(),
        model: group.model.as_deref(),
        prompt: &group.prompt,
        task: group.tasks.iter().map(task_to_toml).collect(),
    }
}

fn task_to_toml(task: &Task) -> TomlTask<'_> {
    TomlTask {
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
