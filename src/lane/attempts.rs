//! Owns groups: lanes that are several attempts at one task, made together, of which one is to land.

use super::{Error, Project};
use crate::store::records::{AnyLane, LaneRecord};

/// What sorts lanes so that the attempts of one group stand together, in the order of their numbers, and those of a batch, after
/// all others.
pub(crate) fn in_groups<P>(lane: &LaneRecord<P>) -> (String, bool, usize, String) {
    if let Some(of) = &lane.batch {
        // No name begins so, and it comes behind all that are names.
        return (format!("~{}", of.batch), true, of.lane, lane.name.clone());
    }
    let first = lane.group.as_ref().unwrap_or(&lane.name);
    (first.clone(), lane.group.is_some(), lane.name.len(), lane.name.clone())
}

/// The attempts of a group that are there, in the order of their numbers.
///
/// # Errors
/// When the lanes cannot be read.
pub(crate) fn attempts(project: &Project, group: &str) -> Result<Vec<LaneRecord>, Error> {
    let mut lanes = project.lanes()?;
    lanes.retain(|lane| lane.group.as_deref() == Some(group));
    lanes.sort_by_key(in_groups);
    Ok(lanes)
}

/// Lanes by their names, and, where no lane has it, all attempts of a group by its name; each once, in the order in which they were named.
///
/// # Errors
/// [`Error::Unknown`] when a name is neither.
pub(crate) fn named(project: &Project, names: &[String]) -> Result<Vec<LaneRecord>, Error> {
    each_once(names, |name| project.lane(name), |group| attempts(project, group))
}

/// The same of any lanes.
///
/// # Errors
/// As [`named`].
pub(crate) fn any_named(project: &Project, names: &[String]) -> Result<Vec<AnyLane>, Error> {
    let group = |group: &str| Ok(attempts(project, group)?.into_iter().map(LaneRecord::any).collect());
    each_once(names, |name| project.any_lane(name), group)
}

fn each_once<P>(
    names: &[String],
    find: impl Fn(&str) -> Result<LaneRecord<P>, Error>,
    attempts: impl Fn(&str) -> Result<Vec<LaneRecord<P>>, Error>,
) -> Result<Vec<LaneRecord<P>>, Error> {
    let mut out: Vec<LaneRecord<P>> = Vec::new();
    for name in names {
        let mut found = match find(name) {
            Ok(lane) => vec![lane],
            Err(unknown) => Some(attempts(name)?).filter(|all| !all.is_empty()).ok_or(unknown)?,
        };
        found.retain(|lane| out.iter().all(|known| known.name != lane.name));
        out.extend(found);
    }
    Ok(out)
}
