//! Owns what a lane is made with beside its task, as far as the command line goes: its checks.

use super::{Failure, Mistake, Session};

/// The commands that are to succeed with the lane.
///
/// # Errors
/// [`Mistake::Missing`] when one is blank: whoever gave it takes something for checked that is not.
pub(super) fn checks(given: &[String]) -> Result<Vec<String>, Failure> {
    if given.iter().any(|line| line.trim().is_empty()) {
        let what = "--check names no command";
        let example = "git proq spawn claude \"implement payments\" --check \"make test-payments\"";
        return Err(Mistake::Missing { what, example }.into());
    }
    Ok(given.to_vec())
}

/// The lines of a plan.
pub(super) fn say(session: &Session, checks: &[String]) {
    for line in checks {
        session.ui.answer(format!("  lands if  `{line}` succeeds"));
    }
}
