//! Effects of steps as a user notices them, and the summary of an operation's effects in a few words.

use std::collections::BTreeMap;

use super::{BoxedStep, MovedBranch};

/// Effect of a step, in the words of its feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Clause about the step.
    Clause(String),
    /// Clause of which a summary has only one: the last of those with the highest rank.
    Exclusive {
        /// Rank of the clause.
        rank: u8,
        /// Clause about the step.
        clause: String,
    },
    /// Change of something with a name. The names of one kind of things share a clause.
    Named {
        /// Change of the thing.
        change: Change,
        /// Word for such a thing, in the singular.
        noun: &'static str,
        /// Name of the thing.
        name: String,
    },
    /// Clause that a summary has only when there are no other effects.
    Minor(String),
}

/// Change of something with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The thing was created.
    Created,
    /// The thing was removed.
    Removed,
    /// The thing was restored.
    Restored,
}

/// Steps whose effects are summarized together.
#[derive(Debug, Clone, Copy)]
pub struct SummarizedSteps<'a> {
    /// Prefix of the branches that git-proq manages, without the slash.
    pub prefix: &'a str,
    /// The steps, in order.
    pub steps: &'a [&'a BoxedStep],
}

impl SummarizedSteps<'_> {
    fn is_managed_branch(&self, branch: &str) -> bool {
        branch.strip_prefix(self.prefix).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns whether one of the steps moves a branch that git-proq manages.
    pub(crate) fn move_managed_branch(&self) -> bool {
        let is_managed_move = |moved: MovedBranch<'_>| {
            moved.old.is_some() && moved.new.is_some() && self.is_managed_branch(moved.name)
        };
        self.steps.iter().filter_map(|step| step.moved_branch()).any(is_managed_move)
    }

    /// Returns the effect of the move or removal of a branch. A new branch is no effect of its own.
    pub(crate) fn branch_effect(&self, moved: MovedBranch<'_>) -> Option<Effect> {
        let MovedBranch { name, old, new } = moved;
        let old = old?;
        let text = match new {
            Some(new) => format!("{name} moved to {} from {}", new.short(), old.short()),
            None => format!("branch {name} removed"),
        };
        Some(if self.is_managed_branch(name) { Effect::Minor(text) } else { Effect::Clause(text) })
    }

    /// Returns the effects of the steps as text; none without effects.
    pub(crate) fn describe(&self) -> Option<String> {
        let (mut clauses, mut minor_clauses) = (Vec::new(), Vec::new());
        let mut exclusive: Option<(u8, String)> = None;
        let mut names: BTreeMap<(Change, &str), Vec<String>> = BTreeMap::new();
        for effect in self.steps.iter().filter_map(|step| step.effect(self)) {
            match effect {
                Effect::Clause(clause) => clauses.push(clause),
                Effect::Minor(clause) => minor_clauses.push(clause),
                Effect::Named { change, noun, name } => names.entry((change, noun)).or_default().push(name),
                Effect::Exclusive { rank, clause } => {
                    exclusive = exclusive.filter(|(highest, _)| *highest > rank).or(Some((rank, clause)));
                }
            }
        }
        clauses.extend(exclusive.map(|(_, clause)| clause));
        clauses.extend(names.into_iter().map(|((change, noun), names)| {
            let plural = if names.len() == 1 { "" } else { "s" };
            format!("{noun}{plural} {} {}", names.join(", "), change.participle())
        }));
        if clauses.is_empty() {
            clauses = minor_clauses;
        }
        clauses.dedup();
        (!clauses.is_empty()).then(|| clauses.join("; "))
    }
}

impl Change {
    fn participle(self) -> &'static str {
        match self {
            Change::Created => "created",
            Change::Removed => "removed",
            Change::Restored => "restored",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde::Serialize;

    use super::super::{Step, StepOutcome};
    use super::*;
    use crate::errors::Error;
    use crate::operation::journaled_operation::Operation;

    /// Step without a change.
    #[derive(Debug, Clone, Serialize)]
    struct Noticed {
        #[serde(skip)]
        effect: Effect,
    }

    impl Step for Noticed {
        fn effect(&self, _summarized: &SummarizedSteps<'_>) -> Option<Effect> {
            Some(self.effect.clone())
        }

        fn log_line(&self) -> Option<String> {
            None
        }

        fn apply(&self, _op: &Operation<'_>, _scratch: &Path) -> Result<StepOutcome, Error> {
            Ok(StepOutcome::done())
        }

        fn recover(&self, _op: &Operation<'_>, _scratch: &Path) -> Result<bool, Error> {
            Ok(true)
        }
    }

    fn describe(effects: &[Effect]) -> Option<String> {
        let steps: Vec<BoxedStep> =
            effects.iter().map(|effect| Noticed { effect: effect.clone() }.into()).collect();
        SummarizedSteps { prefix: "proq", steps: &steps.iter().collect::<Vec<_>>() }.describe()
    }

    #[test]
    fn effects_are_joined_by_kind() {
        let named = |change, name: &str| Effect::Named { change, noun: "door", name: name.to_owned() };
        let [removed, made, also_made] =
            [named(Change::Removed, "a"), named(Change::Created, "b"), named(Change::Created, "c")];
        let [clause, minor] = [Effect::Clause("HEAD moved".into()), Effect::Minor("files moved".into())];
        let all = [minor.clone(), removed, made, clause, also_made];
        assert_eq!(describe(&all).unwrap(), "HEAD moved; doors b, c created; door a removed");
        assert_eq!(describe(&[minor.clone(), minor]).unwrap(), "files moved");
        assert_eq!(describe(&[]), None);
    }

    #[test]
    fn last_exclusive_effect_of_highest_rank_is_shown() {
        let exclusive = |rank, clause: &str| Effect::Exclusive { rank, clause: clause.to_owned() };
        let [low, high, last] = [exclusive(0, "low"), exclusive(1, "high"), exclusive(0, "last")];
        assert_eq!(describe(&[low.clone(), high, last.clone()]).unwrap(), "high");
        assert_eq!(describe(&[low, last]).unwrap(), "last");
    }
}
