//! Creation of more than one lane in one operation: attempts at one task, or lanes of different tasks.

use proq_base::lane_name::LaneName;
use proq_store::base::atomic::create_private_dir;

use super::create::{CreatedLane, LanePlan, NewLane, create_planned_lanes, lock_plan_name, plan_lane};
use super::free_name::MAX_NAMES_TRIED;
use crate::lane::inspection::attempts::attempts_of_group;
use crate::lane::worktree::set_up::commands::require_set_up_approved;
use crate::lane::{Error, Project};
use crate::operation::run_operation::operate;

/// Plans attempts at one task, one for each of the `agents`, and chooses their names, without creating
/// anything: `name-1`, `name-2` and so on, in a group with that name.
///
/// # Errors
/// Fails when a requested name is taken.
pub fn plan_attempts<'a>(
    project: &Project,
    request: &NewLane<'a>,
    agents: &[Option<String>],
) -> Result<Vec<LanePlan<'a>>, Error> {
    let preferred = request.name.clone().unwrap_or_else(|| LaneName::from_prompt(request.name_source()));
    for n in 1..MAX_NAMES_TRIED {
        match plan_group(project, &preferred.numbered(n), request, agents) {
            Err(e) if request.name.is_none() && e.is_taken() => {}
            other => return other,
        }
    }
    Err(Error::NameTaken { name: preferred.clone() })
}

/// Plans the lanes `group-1`, `group-2` and so on, one for each of `agents`.
///
/// # Errors
/// [`Error::NameTaken`] or [`Error::GroupTaken`] when a lane or an older group has the name.
fn plan_group<'a>(
    project: &Project,
    group: &LaneName,
    request: &NewLane<'a>,
    agents: &[Option<String>],
) -> Result<Vec<LanePlan<'a>>, Error> {
    if project.store.layout().lane(group).exists() {
        return Err(Error::NameTaken { name: group.clone() });
    }
    if let Some(existing) = attempts_of_group(project, group.as_str())?.first() {
        return Err(Error::GroupTaken { group: group.to_string(), lane: existing.name.clone() });
    }
    let plan_attempt = |(agent, number): (&Option<String>, usize)| {
        let name = Some(LaneName::parse(&format!("{group}-{number}"))?);
        let (agent, group) = (agent.clone(), Some(group.to_string()));
        plan_lane(project, NewLane { name, agent, group, ..request.clone() })
    };
    agents.iter().zip(1..).map(plan_attempt).collect()
}

/// Creates all planned attempts in one operation, or none of them. Chooses a new group name where another
/// process has taken a name that the user did not request.
///
/// # Errors
/// Fails when one lane cannot be created; then none is.
pub fn create_attempts<'a>(
    project: &Project,
    request: &NewLane<'a>,
    agents: &[Option<String>],
    mut plans: Vec<LanePlan<'a>>,
) -> Result<Vec<CreatedLane>, Error> {
    require_set_up_approved(project, request.set_up)?;
    for plan in &plans {
        project.run_pre_spawn_hooks(&plan.name, &request.base.branch)?;
    }
    create_private_dir(project.store.layout().root())?;
    let locks = loop {
        let locked: Result<Vec<_>, _> = plans.iter().map(|plan| lock_plan_name(project, plan)).collect();
        match locked {
            Ok(locked) => break locked.into_iter().map(|(_, lock)| lock),
            Err(e) if request.name.is_none() && e.is_taken() => {
                plans = plan_attempts(project, request, agents)?;
            }
            Err(e) => return Err(e),
        }
    };
    let (lanes, unchanged) = operate(project, "spawn", |op| create_planned_lanes(op, &plans))?;
    let to_created =
        |(lane, lock)| CreatedLane { lane, run_lock: lock, unchanged_checkout: unchanged.clone() };
    Ok(lanes.into_iter().zip(locks).map(to_created).collect())
}

/// Creates the planned lanes in one operation, or none of them. None of their names was requested by the
/// user.
///
/// # Errors
/// Fails when one lane cannot be created; then none is.
pub(crate) fn create_lanes(project: &Project, plans: &[LanePlan<'_>]) -> Result<Vec<CreatedLane>, Error> {
    for plan in plans {
        require_set_up_approved(project, plan.request.set_up)?;
        project.run_pre_spawn_hooks(&plan.name, &plan.base().branch)?;
    }
    create_private_dir(project.store.layout().root())?;
    let locked: Vec<_> = plans.iter().map(|plan| lock_plan_name(project, plan)).collect::<Result<_, _>>()?;
    let (plans, locks): (Vec<_>, Vec<_>) = locked.into_iter().unzip();
    let (lanes, unchanged) = operate(project, "spawn", |op| create_planned_lanes(op, &plans))?;
    let to_created =
        |(lane, lock)| CreatedLane { lane, run_lock: lock, unchanged_checkout: unchanged.clone() };
    Ok(lanes.into_iter().zip(locks).map(to_created).collect())
}
