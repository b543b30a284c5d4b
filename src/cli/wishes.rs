//! Owns the flags that say what an agent's run is to be like.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};

use super::{Failure, Session, identity};
use crate::agent::{Asked, Job, Permission};
use crate::lane::Project;
use crate::store::records::RunLimits;

/// What a run is to be like. What is left open is as in the settings.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Wishes {
    /// What the agent may do: look only, change its lane and use git there, or anything without being asked
    #[arg(long, value_name = "LEVEL")]
    pub(crate) permission: Option<Level>,
    /// The model that it is asked to use
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// End its run after N turns, if it can be told to
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<u32>,
    /// End its run after TIME, as in 90s, 30m or 2h; 0 for no limit
    #[arg(long, value_name = "TIME", visible_alias = "max-minutes", value_parser = seconds)]
    pub(crate) max_time: Option<u64>,
    /// End its run when nothing came of it for TIME; 0 for no limit
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) stall: Option<u64>,
    /// End its run when it cost more than USD; 0 for no limit
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) budget: Option<u64>,
}

/// Reads a time, in minutes where no unit says otherwise.
fn seconds(text: &str) -> Result<u64, String> {
    let time = crate::config::time(text).ok_or("a time is wanted, as in 90s, 30m or 2h")?;
    Ok(time.as_secs())
}

/// Reads US dollars, as 1e-9 of one.
fn dollars(text: &str) -> Result<u64, String> {
    crate::config::nano_dollars(text).ok_or_else(|| "US dollars are wanted, as in 2.50".to_owned())
}

/// A permission level, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// Look, and change nothing.
    #[value(help = None)]
    Read,
    /// Change files in its lane, use git there, run approved checks.
    #[value(help = None)]
    Edit,
    /// Anything.
    #[value(help = None)]
    Full,
}

impl Wishes {
    /// The same, for a run that may be in a window of tmux.
    pub(super) fn asked_in(&self, in_window: bool) -> Asked {
        Asked { in_window, ..self.asked() }
    }

    /// As the domain takes them.
    pub(super) fn asked(&self) -> Asked {
        Asked {
            permission: self.permission.map(|level| match level {
                Level::Read => Permission::Read,
                Level::Edit => Permission::Edit,
                Level::Full => Permission::Full,
            }),
            model: self.model.clone(),
            max_turns: self.max_turns,
            limits: RunLimits { time: self.max_time, stall: self.stall, budget: self.budget },
            ..Asked::default()
        }
    }
}

/// Refuses an agent in a lane that would start one that may do anything, by its wish or by the settings.
///
/// # Errors
/// [`super::Mistake::InLane`].
pub(super) fn refuse_full_in_lane(
    session: &Session,
    project: &Project,
    asked: &Asked,
) -> Result<(), Failure> {
    match asked.permission.or(Permission::named(&project.settings.permission)) {
        Some(Permission::Full) => identity::refuse_in_lane(session, project),
        _ => Ok(()),
    }
}

/// Says what there is to know before these are started, each thing once.
///
/// # Errors
/// When an agent in a lane would start one that may do anything.
pub(super) fn warn_of<'j>(
    session: &Session,
    project: &Project,
    jobs: impl IntoIterator<Item = &'j Job>,
) -> Result<(), Failure> {
    let mut said = BTreeSet::new();
    for job in jobs {
        // Wherever that was set: an agent gives nobody more than it has.
        if job.may_do_anything() {
            identity::refuse_in_lane(session, project)?;
        }
        for warning in job.warnings(project)? {
            if !said.contains(&warning) {
                session.ui.warn(&warning);
                said.insert(warning);
            }
        }
    }
    Ok(())
}
