//! Owns what a lane's agent reports: whose report it is, how long it may be, and keeping it.

use std::path::Path;

use serde::Deserialize;

use super::{Error, Project, effective_state};
use crate::event;
use crate::store::records::{AnyLane, ReportRecord};
use crate::store::{LockName, Record, now, write_there};

/// The longest that one text may be, in bytes. More than that nobody reads; it belongs into a file of the lane.
const LONGEST_TEXT: usize = 64 * 1024;

/// The longest that all of them may be together.
const LONGEST: usize = 256 * 1024;

/// The most findings, and the most steps.
const MOST: usize = 100;

/// What an agent has to say. It takes the place of what it said before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    /// Where it is with its task.
    #[serde(default)]
    pub(crate) status: Option<String>,
    /// What it found.
    #[serde(default)]
    pub(crate) findings: Vec<String>,
    /// What only a person can do.
    #[serde(default)]
    pub(crate) human_steps: Vec<String>,
}

/// The lane that a process works in.
#[derive(Debug, Clone)]
pub(crate) struct Own {
    /// Its record.
    pub(crate) lane: AnyLane,
    /// Whether it works on the lane's conflict, where that is laid out.
    pub(crate) resolves: bool,
}

/// Finds the lane that a process works in by the worktree that it stands in. `claimed`, the lane that its environment names,
/// has to be the same one: an agent that has strayed into another lane speaks for neither.
///
/// # Errors
/// [`Error::NoLaneHere`] outside of any lane, [`Error::OtherLane`] where the two differ.
pub(crate) fn own_lane(project: &Project, claimed: Option<&str>) -> Result<Own, Error> {
    let here = project.repo.here();
    let found = here.map(|here| lane_of(project, here, claimed)).transpose()?.flatten();
    match (found, claimed) {
        (Some(own), Some(claimed)) if own.lane.name != claimed => {
            Err(Error::OtherLane { here: own.lane.name, claimed: short(claimed) })
        }
        (Some(own), _) => Ok(own),
        (None, claimed) => Err(Error::NoLaneHere {
            dir: here.unwrap_or(project.repo.home()).to_owned(),
            claimed: claimed.map(short),
        }),
    }
}

fn short(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(80).collect()
}

fn lane_of(project: &Project, here: &Path, claimed: Option<&str>) -> Result<Option<Own>, Error> {
    let is_here = |dir: &Path| dir == here || dir.canonicalize().is_ok_and(|dir| dir == here);
    for lane in project.lanes()? {
        if is_here(&lane.path) {
            return Ok(Some(Own { lane: lane.any(), resolves: false }));
        }
        if is_here(&project.resolve_dir(&lane.name)) {
            return Ok(Some(Own { lane: lane.any(), resolves: true }));
        }
    }
    // Who only looks is a guest there, and one of several. Its environment alone says which, for as long as it is at work.
    let guest = claimed.and_then(|name| project.any_lane(name).ok());
    let guest = guest.filter(|lane| lane.purpose().is_some() && is_here(&lane.path));
    Ok(match guest {
        Some(lane) if effective_state(project, &lane)?.0.is_busy() => Some(Own { lane, resolves: false }),
        _ => None,
    })
}

/// Keeps what a lane's agent said in place of what it said before.
///
/// # Errors
/// [`Error::Report`] when it says nothing or too much, [`Error::Unknown`] when the lane was removed meanwhile. The former
/// report stays then.
pub(crate) fn keep_report(project: &Project, lane: &str, said: Said) -> Result<ReportRecord, Error> {
    let said = check(said)?;
    // Who removes the lane meanwhile moves its folder; a report must not make that anew.
    let lock = project.store.locks().take(&LockName::Store)?;
    let lane = project.any_lane(lane)?;
    let report = ReportRecord {
        run: lane.attempt,
        at: now(),
        status: said.status,
        findings: said.findings,
        human_steps: said.human_steps,
    };
    let path = project.store.layout().report(&lane.name);
    // One of a later program is not for this one to replace.
    ReportRecord::find(&path)?;
    write_there(&path, report.text(&path)?.as_bytes())?;
    drop(lock);
    project.tell(event::Name::TaskUpdated, Some(&lane), summary(&lane.name, &report));
    Ok(report)
}

/// Looks at what an agent said, and takes out what is blank.
///
/// # Errors
/// As [`keep_report`].
pub(crate) fn check(said: Said) -> Result<Said, Error> {
    let refused = |why: &str| Err(Error::Report { why: why.to_owned() });
    let full = |text: &String| !text.trim().is_empty();
    let said = Said {
        status: said.status.filter(full),
        findings: said.findings.into_iter().filter(full).collect(),
        human_steps: said.human_steps.into_iter().filter(full).collect(),
    };
    let texts = || said.status.iter().chain(&said.findings).chain(&said.human_steps);
    if texts().next().is_none() {
        return refused("says nothing");
    }
    if said.findings.len() > MOST || said.human_steps.len() > MOST {
        return refused("has more than 100 findings or steps");
    }
    if texts().any(|text| text.len() > LONGEST_TEXT) {
        return refused("has a text of more than 64 KiB");
    }
    if texts().map(String::len).sum::<usize>() > LONGEST {
        return refused("is longer than 256 KiB");
    }
    Ok(said)
}

/// What more there is to say outside of any lane.
pub(super) fn claim(claimed: Option<&str>) -> String {
    claimed.map(|lane| format!(", though PROQ_LANE says '{lane}'")).unwrap_or_default()
}

fn summary(lane: &str, report: &ReportRecord) -> String {
    let count =
        |n: usize, what: &str| (n > 0).then(|| format!("{n} {what}{}", if n == 1 { "" } else { "s" }));
    let steps = count(report.human_steps.len(), "step").map(|steps| format!("{steps} for a person"));
    let parts: Vec<String> = count(report.findings.len(), "finding").into_iter().chain(steps).collect();
    match parts.is_empty() {
        true => format!("lane '{lane}' reported where it is"),
        false => format!("lane '{lane}' reported {}", parts.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(findings: Vec<String>) -> Result<Said, Error> {
        check(Said { findings, ..Said::default() })
    }

    #[test]
    fn a_report_that_says_nothing_or_too_much_is_refused() {
        assert!(check(Said::default()).is_err());
        assert!(found(vec![" \n".to_owned()]).is_err());
        assert!(found(vec!["x".repeat(LONGEST_TEXT)]).is_ok());
        assert!(found(vec!["x".repeat(LONGEST_TEXT + 1)]).is_err());
        assert!(found(vec!["x".repeat(LONGEST_TEXT); 5]).is_err());
        assert!(found(vec!["x".to_owned(); MOST]).is_ok());
        assert!(found(vec!["x".to_owned(); MOST + 1]).is_err());
    }
}
