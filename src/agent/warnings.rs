//! Owns what a person has to know before an agent is started: what nothing keeps it from, and which settings cannot hold for it.

use super::Error;
use super::catalogue::prices;
use super::job::Job;
use super::profile::Permission;
use crate::config::{Key, Origin};
use crate::lane::Project;

/// Settings that hold only where an agent's output is read.
const BY_OUTPUT: [&str; 5] =
    ["agent.budget", "agent.context_stop", "agent.context_warn", "agent.max_turns", "agent.stall"];

impl Job {
    /// What there is to warn of, in sentences.
    ///
    /// # Errors
    /// When the user's prices cannot be read.
    pub(crate) fn warnings(&self, project: &Project) -> Result<Vec<String>, Error> {
        let gate = self.without_gate(project);
        let window = [self.warning_of_question(project), self.warning_of_silence()];
        let all = [self.warning_of_power(), self.on_screen(project), gate, self.without_budget(project)?];
        let all = all.into_iter().chain(window);
        Ok(all.flatten().collect())
    }

    /// Whether it is going to do whatever it likes, and why.
    pub(crate) fn warning_of_power(&self) -> Option<String> {
        let has_levels = self.is_limited();
        match self.permission {
            Permission::Full if has_levels => Some("the agent may do anything: permission full".to_owned()),
            Permission::Edit if has_levels && !self.profile().capabilities.permissions => {
                Some(format!("{} has no permissions of its own: it may do anything that you may", self.agent))
            }
            _ => None,
        }
    }

    /// Which of the settings that somebody made do not hold in a window.
    fn on_screen(&self, project: &Project) -> Option<String> {
        let is_made = |name: &&&str| {
            Key::find(name).is_some_and(|key| {
                let (value, origin) = project.layers.get(key);
                *origin != Origin::Default && !["", "0"].contains(&value)
            })
        };
        let lost: Vec<&str> = BY_OUTPUT.iter().filter(|_| self.in_window).filter(is_made).copied().collect();
        (!lost.is_empty()).then(|| {
            format!(
                "in a window nothing is read of what {} says, so this cannot hold there: {}; agent.max_time does",
                self.called(),
                lost.join(", ")
            )
        })
    }

    /// Whether the checks are to send it back, and cannot.
    fn without_gate(&self, project: &Project) -> Option<String> {
        let can_be = self.profile().capabilities.stop_gate;
        let is_none = project.settings.gate && !can_be && !self.is_command() && self.lands();
        is_none.then(|| {
            format!(
                "agent.gate has no effect on {}: nothing of it asks before it ends; the checks are asked when the lane lands",
                self.agent
            )
        })
    }

    /// Whether it has a budget, and nobody learns what it costs.
    fn without_budget(&self, project: &Project) -> Result<Option<String>, Error> {
        let can = self.profile().capabilities;
        let is_known = can.cost || (can.tokens && !prices(&project.layers)?.is_empty());
        let is_none = self.limits.budget.is_some() && !self.in_window && !is_known;
        Ok(is_none.then(|| {
            let how = if can.tokens { " without a price for its model in [prices]" } else { "" };
            format!("{} does not say what it costs{how}: its budget cannot hold", self.called())
        }))
    }
}
