//! Identity of the caller: the lane in which git-proq runs, by its environment and current folder, never by
//! an argument.

use proq_base::lane_name::LaneName;
use proq_lib::lane;
use proq_lib::lane::Project;
use proq_lib::ops::refusal;
use proq_lib::ops::refusal::Refusal;
use proq_lib::run::report;
use proq_lib::run::report::CurrentLane;

use super::context::CommandContext;
use super::failure::Failure;
use super::usage_error::UsageError;

/// Environment variable that holds the name of the agent's lane.
const LANE_VARIABLE: &str = "PROQ_LANE";

/// Environment variable that only agent processes have. Hooks and set-up commands do not have it.
const ATTEMPT_VARIABLE: &str = "PROQ_ATTEMPT";

/// Returns the lane that this process works in.
///
/// # Errors
/// [`proq_lib::lane::Error::NoLaneHere`] outside of all lanes, [`proq_lib::lane::Error::LaneMismatch`] if the
/// environment names another lane.
pub(crate) fn current_lane(project: &Project) -> Result<CurrentLane, Failure> {
    Ok(report::find_current_lane(project, lane_from_env().as_deref())?)
}

/// Returns the name or branch of a lane that the user gave, or else the name of the lane that this process works
/// in.
///
/// # Errors
/// [`UsageError::NoLaneGiven`] outside of all lanes, and as [`current_lane`] fails in one.
pub(crate) fn lane_or_current(project: &Project, given: Option<&String>) -> Result<String, Failure> {
    match given {
        Some(given) => Ok(given.clone()),
        None => Ok(current_lane_name(project)?.ok_or(UsageError::NoLaneGiven)?),
    }
}

/// Returns the name of the lane that this process works in; none outside of all lanes.
///
/// # Errors
/// As [`current_lane`] fails in a lane.
pub(crate) fn current_lane_name(project: &Project) -> Result<Option<String>, Failure> {
    match report::find_current_lane(project, lane_from_env().as_deref()) {
        Ok(current) => Ok(Some(current.lane.name.into())),
        Err(lane::Error::NoLaneHere { .. }) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Returns the whole names of the lanes that the user gave. A text that names none stays as it is.
pub(crate) fn whole_names(project: &Project, given: &[String]) -> Vec<String> {
    let whole_name = |text: &String| project.find_any_lane(text).map(|lane| lane.name.into());
    given.iter().map(|text| whole_name(text).unwrap_or_else(|_| text.clone())).collect()
}

/// Refuses a command that only the user, or the agent that supervises all lanes, may run.
///
/// # Errors
/// [`Refusal::InLane`] in a lane, or if the environment names one.
pub(crate) fn refuse_in_lane(context: &CommandContext, project: &Project) -> Result<(), Failure> {
    Ok(refusal::refuse_in_lane(calling_lane(context, project).as_deref())?)
}

/// Refuses a command in a lane if `lanes` contains any other lane.
///
/// # Errors
/// [`Refusal::InLane`] in a lane, or if the environment names one, unless `lanes` contains no other
/// lane.
pub(crate) fn refuse_other_lanes_inside_lane(
    context: &CommandContext,
    project: &Project,
    lanes: &[LaneName],
) -> Result<(), Failure> {
    match calling_lane(context, project).filter(|own| lanes.iter().any(|lane| *lane != own.as_str())) {
        Some(agent_lane) => Err(Refusal::InLane { agent_lane }.into()),
        None => Ok(()),
    }
}

/// Refuses a command of a lane's agent that would change other lanes, their bases or the main checkout.
/// `lanes` are the lanes that the command changes, as the user gave them; empty means that it may change any.
///
/// A user in a lane's folder may make the change, and so may commands that the user has configured. A dry run
/// is always allowed.
///
/// # Errors
/// [`UsageError::NotOwnLane`] for an agent of a lane, unless `lanes` is that lane and no other.
pub(crate) fn refuse_agent_for_other_lanes<L: AsRef<str>>(lanes: &[L], dry_run: bool) -> Result<(), Failure> {
    let is_agent = std::env::var_os(ATTEMPT_VARIABLE).is_some_and(|attempt| !attempt.is_empty());
    match lane_from_env().filter(|_| is_agent && !dry_run) {
        Some(own) if lanes.is_empty() || lanes.iter().any(|lane| lane.as_ref() != own) => {
            Err(UsageError::NotOwnLane { agent_lane: own }.into())
        }
        _ => Ok(()),
    }
}

/// Refuses a command of a lane's agent that may change any lane, base or the main checkout. A dry run is
/// always allowed.
///
/// # Errors
/// [`UsageError::NotOwnLane`] for an agent of a lane.
pub(crate) fn refuse_lane_agent(dry_run: bool) -> Result<(), Failure> {
    refuse_agent_for_other_lanes::<&str>(&[], dry_run)
}

/// Returns the name of the lane in which this process runs, as the environment or the folder has it; `None`
/// outside of all lanes.
pub(crate) fn calling_lane(context: &CommandContext, project: &Project) -> Option<String> {
    let current_dir = project.repo.current_worktree().unwrap_or(&context.dir);
    let is_inside_lane = project.is_lane_worktree_dir(current_dir).unwrap_or(true);
    match (lane_from_env(), is_inside_lane) {
        (Some(name), _) => Some(name),
        (None, true) => Some(report::find_current_lane(project, None).map_or_else(
            // A lane that is only partly created or removed has no record.
            |_| current_dir.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            |own| own.lane.name.into(),
        )),
        (None, false) => None,
    }
}

/// Returns the lane that the environment names. An empty value names none.
fn lane_from_env() -> Option<String> {
    let name = std::env::var_os(LANE_VARIABLE)?.to_string_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}
