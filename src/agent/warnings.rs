//! Owns what a person has to know before an agent is started: what nothing keeps it from, and which settings cannot hold for it.

use super::Error;
use super::catalogue::prices;
use super::job::Job;
use super::profile::Permission;
use super::stream::{Context, Dialect};
use crate::config::{Key, Origin};
use crate::lane::Project;

/// Settings that hold only where an agent's output is read.
const BY_OUTPUT: [&str; 5] =
    ["agent.budget", "agent.context_stop", "agent.context_warn", "agent.max_turns", "agent.stall"];

/// Settings about how full the context is.
const BY_CONTEXT: [&str; 2] = ["agent.context_stop", "agent.context_warn"];

/// Settings that reach an agent by an option of its profile, and its name.
const BY_OPTION: [(&str, &str); 2] = [("agent.max_turns", "max_turns"), ("agent.model", "model")];

/// Settings that reach an agent by what it is told beside its task.
const BY_RULES: [&str; 2] = ["agent.commit_style", "agent.prompt_append"];

impl Job {
    /// What there is to warn of, in sentences.
    ///
    /// # Errors
    /// When the user's prices cannot be read.
    pub(crate) fn warnings(&self, project: &Project) -> Result<Vec<String>, Error> {
        let all = [
            self.warning_of_power(),
            self.on_screen(project),
            self.not_taken(project),
            self.without_gate(project),
            self.without_budget(project)?,
            self.without_context(project),
            self.warning_of_question(project),
            self.warning_of_silence(),
        ];
        Ok(all.into_iter().flatten().collect())
    }

    /// Whether it was given leave to do anything.
    pub(crate) fn may_do_anything(&self) -> bool {
        self.permission == Permission::Full && self.is_limited()
    }

    /// Whether it is going to do whatever it likes, and why.
    pub(crate) fn warning_of_power(&self) -> Option<String> {
        let has_levels = self.is_limited();
        match self.permission {
            Permission::Full if self.may_do_anything() => {
                Some("the agent may do anything: permission full".to_owned())
            }
            Permission::Edit if has_levels && !self.profile().capabilities.permissions => {
                Some(format!("{} has no permissions of its own: it may do anything that you may", self.agent))
            }
            _ => None,
        }
    }

    /// Which of the settings that somebody made do not hold in a window.
    fn on_screen(&self, project: &Project) -> Option<String> {
        let lost = made(project, BY_OUTPUT).filter(|_| self.in_window);
        lost.map(|lost| {
            format!(
                "in a window nothing is read of what {} says, so this cannot hold there: {lost}; agent.max_time does",
                self.called()
            )
        })
    }

    /// Which of the settings that somebody made do not reach it. A command of the user's own is started as it stands there.
    fn not_taken(&self, project: &Project) -> Option<String> {
        if self.is_command() {
            return None;
        }
        let profile = self.profile();
        // What a window makes of them is said of that.
        let by_option = BY_OPTION
            .into_iter()
            .filter(|(key, option)| !(profile.takes(option) || self.in_window && BY_OUTPUT.contains(key)));
        let by_rules = BY_RULES.into_iter().filter(|_| profile.bare);
        let lost = made(project, by_option.map(|(key, _)| key).chain(by_rules));
        lost.map(|lost| {
            format!("this has no effect on {}, whose profile has no way to tell it: {lost}", self.agent)
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

    /// Whether it has a budget that cannot end a run of it in time, and why. An agent that keeps to one itself needs nobody else.
    fn without_budget(&self, project: &Project) -> Result<Option<String>, Error> {
        let (can, dialect, name) = (self.profile().capabilities, self.dialect(), self.called());
        if self.limits.budget.is_none() || self.in_window || self.profile().takes("budget") {
            return Ok(None);
        }
        let prices = prices(&project.layers)?;
        let has_price = match &self.model {
            Some(model) => prices.of(model).is_some(),
            // Only a price for all models is sure to be its own.
            None => prices.of("").is_some() || (dialect.names_its_model() && !prices.is_empty()),
        };
        let in_messages = dialect == Dialect::Aider;
        if can.tokens && has_price && dialect.tells_tokens_midway() && !in_messages {
            return Ok(None);
        }
        let is_known = can.cost || can.tokens && has_price;
        if !is_known {
            let how = match &self.model {
                _ if !can.tokens => String::new(),
                Some(model) => format!(" without a price for {model} in [prices]"),
                None if dialect.names_its_model() || prices.is_empty() => {
                    " without a price for its model in [prices]".to_owned()
                }
                None => ", nor which model it uses, without --model".to_owned(),
            };
            return Ok(Some(format!("{name} does not say what it costs{how}: its budget cannot hold")));
        }
        Ok(match dialect {
            Dialect::Acp => Some(format!(
                "whether {name} says what it costs is for the agent behind it: where it does not, its budget cannot hold"
            )),
            _ if in_messages => Some(format!(
                "{name} says what it used only at the end of each message: its budget cannot end one that goes on"
            )),
            _ if dialect.tells_cost_midway() => None,
            _ => Some(format!(
                "{name} says what it used only at its end: its budget cannot end a run, only keep another from following"
            )),
        })
    }

    /// Whether it is to end when its context is nearly full, and cannot tell that.
    fn without_context(&self, project: &Project) -> Option<String> {
        let says = match self.dialect().tells_context() {
            Context::Midway => return None,
            // Of a session that is gone on with it is known.
            Context::AfterATurn if self.resume.is_some() => return None,
            Context::AfterATurn if self.profile().capabilities.tokens => {
                "tells how large its context is only when its first turn has ended, so this does not hold before"
            }
            _ => "does not tell how full its context is, so this cannot hold",
        };
        let lost = made(project, BY_CONTEXT).filter(|_| !self.in_window);
        lost.map(|lost| format!("{} {says}: {lost}", self.called()))
    }
}

/// Those of some settings that somebody made, as a list; none where there is none.
fn made(project: &Project, names: impl IntoIterator<Item = &'static str>) -> Option<String> {
    let is_made = |name: &&str| {
        Key::find(name).is_some_and(|key| {
            let (value, origin) = project.layers.get(key);
            *origin != Origin::Default && !["", "0"].contains(&value)
        })
    };
    let names: Vec<&str> = names.into_iter().filter(is_made).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
