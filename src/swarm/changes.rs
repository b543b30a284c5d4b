//! Owns what is different in a plan from the one that it was before.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::{Need, Spot};
use super::{Order, Plan, Task};

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub(crate) enum Change {
    /// A task is new.
    Added {
        /// Its name.
        task: String,
    },
    /// A task is gone.
    Removed {
        /// Its name.
        task: String,
    },
    /// A task is another one.
    Changed {
        /// Its name.
        task: String,
        /// What of it, in words.
        what: Vec<&'static str>,
    },
    /// Something that is no task.
    Plan {
        /// What, in words.
        what: &'static str,
    },
}

/// What is different, in the order of the new plan; what is gone stands last.
pub(crate) fn changes(old: &Plan, new: &Plan) -> Vec<Change> {
    let key = |task: &Task| task.name().to_lowercase();
    let before: BTreeMap<String, Spot<'_>> = old.spots().map(|spot| (key(spot.task), spot)).collect();
    let after: BTreeMap<String, Spot<'_>> = new.spots().map(|spot| (key(spot.task), spot)).collect();
    let mut out = Vec::new();
    let same = [
        (old.summary == new.summary, "summary"),
        (old.warnings == new.warnings, "warnings"),
        (old.criteria == new.criteria, "criteria"),
        (shape(old) == shape(new), "phases and groups"),
    ];
    out.extend(same.into_iter().filter(|(same, _)| !same).map(|(_, what)| Change::Plan { what }));
    for spot in new.spots() {
        let task = spot.task.name();
        match before.get(&key(spot.task)) {
            None => out.push(Change::Added { task }),
            Some(former) => {
                let what = different(old, former, new, &spot);
                if !what.is_empty() {
                    out.push(Change::Changed { task, what });
                }
            }
        }
    }
    let gone = old.spots().filter(|spot| !after.contains_key(&key(spot.task)));
    out.extend(gone.map(|spot| Change::Removed { task: spot.task.name() }));
    out
}

/// What a plan says of its phases and groups, without their tasks.
fn shape(plan: &Plan) -> Vec<(&str, Order, Vec<[&str; 3]>)> {
    plan.phases
        .iter()
        .map(|phase| {
            let groups =
                phase.groups.iter().map(|g| [g.theme.as_str(), g.rationale.as_str(), g.prompt.as_str()]);
            (phase.title.as_str(), phase.order, groups.collect())
        })
        .collect()
}

/// What of a task is different.
fn different(old: &Plan, former: &Spot<'_>, new: &Plan, spot: &Spot<'_>) -> Vec<&'static str> {
    let (a, b) = (former.task, spot.task);
    let names = |needs: &[Need]| {
        let mut names: Vec<String> = needs.iter().map(|need| need.name.to_lowercase()).collect();
        names.sort_unstable();
        names
    };
    let all = [
        ("title", a.title == b.title),
        ("prompt", a.prompt == b.prompt),
        ("needs", names(&a.needs) == names(&b.needs)),
        ("scope", a.scope == b.scope),
        ("size", a.size == b.size),
        ("agent", old.agent_of(*former) == new.agent_of(*spot)),
        ("model", old.model_of(*former) == new.model_of(*spot)),
        ("checks", a.checks == b.checks),
        ("done", a.done == b.done),
        ("phase", former.phase == spot.phase),
    ];
    all.into_iter().filter(|(_, same)| !same).map(|(what, _)| what).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn plan(text: &str) -> Plan {
        super::super::toml_plan::read(&Arc::from("p"), &format!("format = 1\n{text}")).unwrap()
    }

    #[test]
    fn tasks_are_compared_by_their_names() {
        let old = plan(
            "summary = 's'\n[[task]]\nid = 'a'\ntitle = 'A'\n[[task]]\nid = 'b'\ntitle = 'B'\nneeds = ['a']\n[[task]]\nid = 'c'\ntitle = 'C'\n",
        );
        let new = plan(
            "summary = 't'\n[[task]]\nid = 'D'\ntitle = 'D'\n[[task]]\nid = 'B'\ntitle = 'B'\nneeds = ['D', 'a']\nsize = 'L'\n[[task]]\nid = 'a'\ntitle = 'A'\n",
        );
        assert_eq!(changes(&old, &old), []);
        let found = changes(&old, &new);
        let task = |name: &str| name.to_owned();
        assert_eq!(
            found,
            [
                Change::Plan { what: "summary" },
                Change::Added { task: task("D") },
                Change::Changed { task: task("B"), what: vec!["needs", "size"] },
                Change::Removed { task: task("c") },
            ]
        );
    }

    #[test]
    fn groups_and_phases_count_too() {
        let old = plan("[[group]]\ntheme = 'x'\n[[group.task]]\nid = 'a'\ntitle = 'A'\n");
        let new = plan("[[phase]]\ntitle = 'p'\n[[phase.task]]\nid = 'a'\ntitle = 'A'\n");
        assert_eq!(changes(&old, &new), [Change::Plan { what: "phases and groups" }]);
    }
}
