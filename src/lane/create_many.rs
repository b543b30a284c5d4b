//! Owns making several lanes at once, as one operation: attempts at one task, or lanes of several.

use super::attempts::attempts;
use super::create::{TRIES, hold_plan, make_all};
use super::{Created, Error, Name, NewLane, Plan, Project, operate, plan, require_approved};
use crate::store::make_private;

/// Checks several attempts at what is asked for, one for each of the `agents`, and chooses their names, without making
/// anything: `name-1`, `name-2` and so on, in a group that is called by the name.
///
/// # Errors
/// When one of the names is taken that were asked for.
pub(crate) fn plan_attempts<'a>(
    project: &Project,
    asked: &NewLane<'a>,
    agents: &[Option<String>],
) -> Result<Vec<Plan<'a>>, Error> {
    let wish = asked.name.clone().unwrap_or_else(|| Name::from_prompt(asked.called()));
    for n in 1..TRIES {
        match plan_group(project, &wish.numbered(n), asked, agents) {
            Err(e) if asked.name.is_none() && e.is_taken() => {}
            other => return other,
        }
    }
    Err(Error::Taken { name: wish.to_string() })
}

fn plan_group<'a>(
    project: &Project,
    group: &Name,
    asked: &NewLane<'a>,
    agents: &[Option<String>],
) -> Result<Vec<Plan<'a>>, Error> {
    if project.store.layout().lane(group.as_str()).exists() {
        return Err(Error::Taken { name: group.to_string() });
    }
    if let Some(left) = attempts(project, group.as_str())?.first() {
        return Err(Error::GroupTaken { group: group.to_string(), lane: left.name.clone() });
    }
    let one = |(agent, number): (&Option<String>, usize)| {
        let name = Some(Name::parse(&format!("{group}-{number}"))?);
        let (agent, group) = (agent.clone(), Some(group.to_string()));
        plan(project, NewLane { name, agent, group, ..asked.clone() })
    };
    agents.iter().zip(1..).map(one).collect()
}

/// Makes all attempts that were planned, or none of them, as one operation. Names that were not asked for are chosen anew
/// where another process has taken one.
///
/// # Errors
/// When one of them cannot be made; then none is.
pub(crate) fn create_attempts<'a>(
    project: &Project,
    asked: &NewLane<'a>,
    agents: &[Option<String>],
    mut plans: Vec<Plan<'a>>,
) -> Result<Vec<Created>, Error> {
    require_approved(project, asked.given)?;
    for plan in &plans {
        project.ask_to_spawn(plan.name.as_str(), &asked.base.branch)?;
    }
    make_private(project.store.layout().root())?;
    let locks = loop {
        let held: Result<Vec<_>, _> = plans.iter().map(|plan| hold_plan(project, plan)).collect();
        match held {
            Ok(held) => break held.into_iter().map(|(_, lock)| lock),
            Err(e) if asked.name.is_none() && e.is_taken() => {
                plans = plan_attempts(project, asked, agents)?;
            }
            Err(e) => return Err(e),
        }
    };
    let (lanes, unchanged) = operate(project, "spawn", |op| make_all(op, &plans))?;
    let created = |(lane, lock)| Created { lane, lock, unchanged: unchanged.clone() };
    Ok(lanes.into_iter().zip(locks).map(created).collect())
}

/// Makes several lanes of which none was asked for by name, or none of them.
///
/// # Errors
/// When one of them cannot be made; then none is.
pub(crate) fn create_all(project: &Project, plans: &[Plan<'_>]) -> Result<Vec<Created>, Error> {
    for plan in plans {
        require_approved(project, plan.asked.given)?;
        project.ask_to_spawn(plan.name.as_str(), &plan.base().branch)?;
    }
    make_private(project.store.layout().root())?;
    let held: Vec<_> = plans.iter().map(|plan| hold_plan(project, plan)).collect::<Result<_, _>>()?;
    let (plans, locks): (Vec<_>, Vec<_>) = held.into_iter().unzip();
    let (lanes, unchanged) = operate(project, "spawn", |op| make_all(op, &plans))?;
    let created = |(lane, lock)| Created { lane, lock, unchanged: unchanged.clone() };
    Ok(lanes.into_iter().zip(locks).map(created).collect())
}
