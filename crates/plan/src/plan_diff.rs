//! Differences between two versions of a plan.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::{Need, PhaseOrder, Plan, PlanTask, Task};

/// One difference between two plans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub enum PlanChange {
    /// The new plan has a task that the old one lacks.
    Added {
        /// The name of the task.
        task: String,
    },
    /// The new plan lacks a task of the old one.
    Removed {
        /// The name of the task.
        task: String,
    },
    /// A task differs between the plans.
    Changed {
        /// The name of the task.
        task: String,
        /// The names of the fields that differ.
        #[serde(rename = "what")]
        fields: Vec<&'static str>,
    },
    /// The plans differ in something other than tasks.
    Plan {
        /// The name of the component that differs.
        #[serde(rename = "what")]
        component: &'static str,
    },
}

/// Returns the differences from `old` to `new`, in the order of `new`; removed tasks come last.
pub fn diff_plans(old: &Plan, new: &Plan) -> Vec<PlanChange> {
    let key = |task: &Task| task.full_name().to_lowercase();
    let before: BTreeMap<String, PlanTask<'_>> =
        old.tasks().map(|position| (key(position.task), position)).collect();
    let after: BTreeMap<String, PlanTask<'_>> =
        new.tasks().map(|position| (key(position.task), position)).collect();
    let mut out = Vec::new();
    let comparisons = [
        (old.summary == new.summary, "summary"),
        (old.warnings == new.warnings, "warnings"),
        (old.criteria == new.criteria, "criteria"),
        (plan_structure(old) == plan_structure(new), "phases and groups"),
    ];
    out.extend(
        comparisons
            .into_iter()
            .filter(|(equal, _)| !equal)
            .map(|(_, component)| PlanChange::Plan { component }),
    );
    for position in new.tasks() {
        let task = position.task.full_name();
        match before.get(&key(position.task)) {
            None => out.push(PlanChange::Added { task }),
            Some(former) => {
                let fields = changed_fields(old, former, new, &position);
                if !fields.is_empty() {
                    out.push(PlanChange::Changed { task, fields });
                }
            }
        }
    }
    let removed = old.tasks().filter(|position| !after.contains_key(&key(position.task)));
    out.extend(removed.map(|position| PlanChange::Removed { task: position.task.full_name() }));
    out
}

/// Returns the phases and groups of a plan without their tasks.
fn plan_structure(plan: &Plan) -> Vec<(&str, PhaseOrder, Vec<[&str; 3]>)> {
    plan.phases
        .iter()
        .map(|phase| {
            let groups =
                phase.groups.iter().map(|g| [g.theme.as_str(), g.rationale.as_str(), g.prompt.as_str()]);
            (phase.title.as_str(), phase.order, groups.collect())
        })
        .collect()
}

/// Returns the names of the fields of a task that differ.
fn changed_fields(
    old: &Plan,
    former: &PlanTask<'_>,
    new: &Plan,
    current: &PlanTask<'_>,
) -> Vec<&'static str> {
    let (a, b) = (former.task, current.task);
    let names = |needs: &[Need]| {
        let mut names: Vec<String> = needs.iter().map(|need| need.name.to_lowercase()).collect();
        names.sort_unstable();
        names
    };
    let comparisons = [
        ("title", a.title == b.title),
        ("prompt", a.prompt == b.prompt),
        ("needs", names(&a.needs) == names(&b.needs)),
        ("scope", a.scope == b.scope),
        ("size", a.size == b.size),
        ("agent", old.task_agent(*former) == new.task_agent(*current)),
        ("model", old.task_model(*former) == new.task_model(*current)),
        ("checks", a.checks == b.checks),
        ("done", a.done == b.done),
        ("phase", former.phase == current.phase),
    ];
    comparisons.into_iter().filter(|(_, equal)| !equal).map(|(field, _)| field).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn parse_plan(text: &str) -> Plan {
        crate::toml_plan::read(&Arc::from("p"), &format!("format = 1\n{text}")).unwrap()
    }

    #[test]
    fn compares_tasks_by_name() {
        let old = parse_plan(
            "summary = 's'\n[[task]]\nid = 'a'\ntitle = 'A'\n[[task]]\nid = 'b'\ntitle = 'B'\nneeds = ['a']\n[[task]]\nid = 'c'\ntitle = 'C'\n",
        );
        let new = parse_plan(
            "summary = 't'\n[[task]]\nid = 'D'\ntitle = 'D'\n[[task]]\nid = 'B'\ntitle = 'B'\nneeds = ['D', 'a']\nsize = 'L'\n[[task]]\nid = 'a'\ntitle = 'A'\n",
        );
        assert_eq!(diff_plans(&old, &old), []);
        let differences = diff_plans(&old, &new);
        let task = |name: &str| name.to_owned();
        assert_eq!(
            differences,
            [
                PlanChange::Plan { component: "summary" },
                PlanChange::Added { task: task("D") },
                PlanChange::Changed { task: task("B"), fields: vec!["needs", "size"] },
                PlanChange::Removed { task: task("c") },
            ]
        );
    }

    #[test]
    fn reports_changed_phases_and_groups() {
        let old = parse_plan("[[group]]\ntheme = 'x'\n[[group.task]]\nid = 'a'\ntitle = 'A'\n");
        let new = parse_plan("[[phase]]\ntitle = 'p'\n[[phase.task]]\nid = 'a'\ntitle = 'A'\n");
        assert_eq!(diff_plans(&old, &new), [PlanChange::Plan { component: "phases and groups" }]);
    }
}
