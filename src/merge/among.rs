//! Owns conflicts among the lanes of a landing that moves nothing: the base has no part in them, so none is on record.

use super::Error;
use super::outcome::{Outcome, Verdict};
use super::stack::{Clash, Stack};
use crate::git::{self, Oid, ThrowAway};
use crate::lane::Project;

/// A lane that merges with its base and not with other lanes that were to land before it.
pub(super) struct Among {
    clash: Clash,
    onto: String,
    /// Those lanes.
    rivals: Vec<String>,
}

impl Among {
    /// Takes the conflicts that are only among lanes out of a stack that does not land. Those that are with the base are merged
    /// with it alone, which is what stays.
    pub(super) fn take_from(project: &Project, stack: &mut Stack) -> Result<Vec<Among>, Error> {
        if stack.clashes.iter().all(|clash| clash.ours == stack.base) {
            return Ok(Vec::new());
        }
        let scratch = project.store.layout().scratch()?;
        let aside = ThrowAway::new(&project.repo, &scratch.path().join("objects"))?;
        let hits =
            |ours: Oid, tip: Oid| git::would_conflict(&project.repo, ours, tip, scratch.path(), &aside);
        let (mut among, mut with_base) = (Vec::new(), Vec::new());
        for clash in std::mem::take(&mut stack.clashes) {
            let tip = clash.candidate.tip;
            if clash.ours == stack.base {
                with_base.push(clash);
            } else if hits(stack.base, tip)? {
                let merged = git::merge_commits(&project.repo, stack.base, tip, scratch.path(), None)?;
                with_base.push(Clash { ours: stack.base, merged, ..clash });
            } else {
                let top = stack.steps.iter().position(|step| step.commit == clash.ours);
                let below = &stack.steps[..top.map_or(stack.steps.len(), |top| top + 1)];
                let name = |candidate: &super::request::Candidate| candidate.lane.name.clone();
                let all = below.iter().map(|step| &step.candidate);
                let mut rivals = Vec::new();
                for candidate in all.clone() {
                    if hits(candidate.tip, tip)? {
                        rivals.push(name(candidate));
                    }
                }
                if rivals.is_empty() {
                    rivals = all.map(name).collect();
                }
                among.push(Among { clash, onto: stack.onto.clone(), rivals });
            }
        }
        stack.clashes = with_base;
        Ok(among)
    }

    /// The lane.
    pub(super) fn lane(&self) -> &String {
        &self.clash.candidate.lane.name
    }

    /// What it conflicts with, in a sentence.
    pub(super) fn with(&self) -> String {
        format!("'{}'", self.rivals.join("', '"))
    }

    /// Its line of the answer.
    pub(super) fn outcome(&self) -> Outcome {
        let rivals = self.rivals.join(" ");
        Outcome {
            files: self.clash.merged.paths(),
            with_lanes: self.rivals.clone(),
            message: self.clash.merged.messages.first().cloned(),
            hints: vec![format!("land {} without it: git proq merge {rivals}", self.rivals.join(", "))],
            ..Outcome::new(self.lane(), &self.onto, Verdict::Conflict)
        }
    }
}
