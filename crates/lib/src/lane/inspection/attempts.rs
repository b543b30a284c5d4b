//! Groups of lanes: attempts at one task, created together, of which one will be picked to land.

use proq_store::records::lane::{AnyLane, LaneRecord};

use crate::lane::{Error, Project};

/// Returns the sort key that puts the attempts of one group next to each other, in the order of their
/// numbers. The lanes of a batch come after all others. Numbers in names count as numbers: `lane-2` comes before
/// `lane-10`.
pub fn group_sort_key<P>(lane: &LaneRecord<P>) -> (String, bool, usize, String) {
    if let Some(in_batch) = &lane.batch {
        // No lane name begins with `~`, and it sorts after every lane name.
        return (format!("~{}", in_batch.batch), true, in_batch.lane, lane.name.to_string());
    }
    let (name, group) = (lane.name.as_str(), lane.group.as_deref());
    (natural_key(group.unwrap_or(name)), group.is_some(), name.len(), name.to_owned())
}

/// Returns a key by which numbers in names sort by value: each number is padded with zeros to the same length.
fn natural_key(name: &str) -> String {
    let mut out = String::new();
    for part in name.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
        let padded = if digits.is_empty() { String::new() } else { format!("{digits:0>20}") };
        out.push_str(&padded);
        out.push_str(&part[digits.len()..]);
    }
    out
}

/// Returns the existing attempts of a group, in the order of their numbers.
///
/// # Errors
/// Fails when the lanes cannot be read.
pub fn attempts_of_group(project: &Project, group: &str) -> Result<Vec<LaneRecord>, Error> {
    let mut lanes = project.owned_lanes()?;
    lanes.retain(|lane| lane.group.as_deref() == Some(group));
    lanes.sort_by_key(group_sort_key);
    Ok(lanes)
}

/// Returns the lanes with these names. A name that no lane has stands for all attempts of the group with that
/// name, or else for the one lane whose name begins so. Each lane appears once, in the order of the names.
///
/// # Errors
/// [`Error::UnknownLane`] when a name is neither a lane nor a group.
pub fn lanes_by_name(project: &Project, names: &[String]) -> Result<Vec<LaneRecord>, Error> {
    resolve_names(names, |name| project.find_lane(name), |group| attempts_of_group(project, group))
}

/// Returns the lanes with these names, as [`lanes_by_name`] does, but includes guest lanes.
///
/// # Errors
/// As [`lanes_by_name`].
pub fn any_lanes_by_name(project: &Project, names: &[String]) -> Result<Vec<AnyLane>, Error> {
    let find_attempts =
        |group: &str| Ok(attempts_of_group(project, group)?.into_iter().map(LaneRecord::into_any).collect());
    resolve_names(names, |name| project.find_any_lane(name), find_attempts)
}

/// Returns the error for a name that neither a lane nor a group has. Other errors are returned unchanged.
fn or_no_such_group(error: Error) -> Error {
    match error {
        Error::UnknownLane { name, removed, similar, .. } => {
            Error::UnknownLane { name, may_be_group: true, removed, similar }
        }
        other => other,
    }
}

/// Returns the lanes that `names` stand for, each once, in order. The whole name of a lane comes before that of a
/// group, and that before the beginning of a lane's name.
fn resolve_names<P>(
    names: &[String],
    find_lane: impl Fn(&str) -> Result<LaneRecord<P>, Error>,
    find_attempts: impl Fn(&str) -> Result<Vec<LaneRecord<P>>, Error>,
) -> Result<Vec<LaneRecord<P>>, Error> {
    let mut out: Vec<LaneRecord<P>> = Vec::new();
    for name in names {
        let mut found = match find_lane(name) {
            Ok(lane) if lane.name == name.as_str() => vec![lane],
            lane => match find_attempts(name)? {
                attempts if attempts.is_empty() => vec![lane.map_err(or_no_such_group)?],
                attempts => attempts,
            },
        };
        found.retain(|lane| out.iter().all(|known| known.name != lane.name));
        out.extend(found);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_their_numbers() {
        let mut names = ["lane-10", "lane-2", "lane", "lane-2b", "a11", "a2b10", "a2b9", "2"];
        names.sort_by_key(|name| natural_key(name));
        assert_eq!(names, ["2", "a2b9", "a2b10", "a11", "lane", "lane-2", "lane-2b", "lane-10"]);
    }
}
