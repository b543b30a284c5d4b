//! Owns what has to come of a batch in which nobody gets in between: worked out task by task, without any scheduling.

use std::collections::BTreeMap;

use super::case::Case;
use super::stages::{everything_below, stages};
use super::world::{Verdict, end_of, is_resolved, verdict_of};
use crate::store::records::RunClass;
use crate::swarm::schedule::{End, Fate, Mode, Why, Work};

/// By task, what may have become of it: one thing, or, where it depends on work below it that did not land in the end, either
/// that or what its own run came to. None where that in turn leaves open whether it could land.
pub(super) fn fates(case: &Case, work: &Work) -> Vec<Option<Vec<Fate>>> {
    let below = everything_below(work);
    let stages = stages(work, case.options.mode);
    let on_top = matches!(case.options.mode, Mode::Phases | Mode::OneLane);
    let mut order: Vec<usize> = (0..below.len()).collect();
    order.sort_by_key(|task| (below[*task].len(), *task));
    // What the run comes to, None for done; and what becomes of the task.
    let mut runs: BTreeMap<usize, Option<Fate>> = BTreeMap::new();
    let mut fates: BTreeMap<usize, Option<Vec<Fate>>> = BTreeMap::new();
    for task in order {
        let after = &work.tasks()[task].after;
        let there = |fate: &Fate| matches!(fate, Fate::Landed | Fate::Already);
        let is_there = |t: &usize| fates[t].as_ref().is_some_and(|fates| fates.iter().all(there));
        let is_open =
            |t: &usize| fates[t].as_ref().is_none_or(|f| f.iter().any(there) && !f.iter().all(there));
        let near = |t: &usize| on_top && stages[*t] == stages[task];
        let ready = after.iter().all(|t| if near(t) { has_run(runs[t]) } else { is_there(t) });
        let run = if case_of_the_past(case, work, task).is_some() {
            case_of_the_past(case, work, task)
        } else if ready {
            run(case, task, work.tasks()[task].failures)
        } else {
            Some(Fate::Skipped)
        };
        runs.insert(task, run);
        let there = after.iter().all(is_there);
        let open = after.iter().any(is_open) && case_of_the_past(case, work, task).is_none();
        let fate = match run {
            _ if open => None,
            Some(fate) if case_of_the_past(case, work, task).is_some() || there => Some(vec![fate]),
            Some(fate) => Some(vec![fate, Fate::Skipped]),
            None if there => Some(vec![land(case, task)]),
            None => Some(vec![Fate::Skipped]),
        };
        fates.insert(task, fate);
    }
    fates.into_values().collect()
}

fn has_run(run: Option<Fate>) -> bool {
    matches!(run, None | Some(Fate::Already))
}

fn case_of_the_past(case: &Case, work: &Work, task: usize) -> Option<Fate> {
    let it = &work.tasks()[task];
    let aside = it.failures >= case.options.max_attempts;
    if it.done { Some(Fate::Already) } else { aside.then_some(Fate::SetAside) }
}

fn run(case: &Case, task: usize, mut failures: u32) -> Option<Fate> {
    for attempt in 1.. {
        match end_of(case, task, attempt) {
            End::Done => return None,
            End::NoChange => return Some(Fate::NoChange),
            End::Already => return Some(Fate::Already),
            End::NotStarted => unreachable!("every run of a trial begins"),
            End::Failed(class) => {
                failures += u32::from(class != RunClass::Stopped);
                if failures >= case.options.max_attempts {
                    return Some(Fate::SetAside);
                }
                if matches!(class, RunClass::Stopped | RunClass::Budget) {
                    return Some(Fate::Failed(Why::Run(class)));
                }
            }
        }
    }
    None
}

fn land(case: &Case, task: usize) -> Fate {
    for time in 1.. {
        match verdict_of(case, task, time) {
            Verdict::Lands => return Fate::Landed,
            Verdict::IsRed => return Fate::Failed(Why::Check),
            Verdict::Conflicts if case.options.resolve && is_resolved(case, task, time) => {}
            Verdict::Conflicts => return Fate::Failed(Why::Conflict),
        }
    }
    unreachable!()
}
