//! Warnings before an agent is started: what the agent is not prevented from doing, and which settings have
//! no effect on it.

use proq_base::config::key::Key;
use proq_base::config::layers::{Layers, Origin};
use proq_base::config::settings::Settings;
use proq_stream::live_reporting::ContextReporting;
use proq_stream::reader::Dialect;

use super::agent_command::AgentCommand;
use crate::agent::Error;
use crate::agent::profiles::profile::permission::Permission;
use crate::agent::profiles::profile_catalog::load_prices;
use crate::lane::Project;

/// Settings that have an effect only on a run whose output git-proq reads.
const OUTPUT_DEPENDENT_SETTINGS: [&str; 5] =
    ["agent.budget", "agent.context_stop", "agent.context_warn", "agent.max_turns", "agent.stall"];

/// Settings that apply when the model's context is nearly full.
const CONTEXT_SETTINGS: [&str; 2] = ["agent.context_stop", "agent.context_warn"];

/// Settings that reach an agent through an option of its profile, each with the option's name.
const OPTION_SETTINGS: [(&str, &str); 2] = [("agent.max_turns", "max_turns"), ("agent.model", "model")];

/// Settings that reach an agent through the rules in its prompt.
const RULES_SETTINGS: [&str; 2] = ["agent.commit_style", "agent.prompt_append"];

impl AgentCommand {
    /// Returns the warnings about this command, one sentence each.
    ///
    /// # Errors
    /// Fails when the user's prices cannot be read.
    pub fn warnings(&self, project: &Project) -> Result<Vec<String>, Error> {
        let all = [
            self.unrestricted_warning(),
            self.window_settings_warning(&project.layers),
            self.unsupported_settings_warning(&project.layers),
            self.stop_gate_warning(&project.settings),
            self.budget_warning(&project.layers)?,
            self.context_limits_warning(&project.layers),
            self.question_warning(&project.repo),
            self.unknown_activity_warning(),
        ];
        Ok(all.into_iter().flatten().chain(self.allowed.warnings.clone()).collect())
    }

    /// Returns whether full permission was granted to an agent that has permission levels.
    pub fn is_unrestricted(&self) -> bool {
        self.permission == Permission::Full && self.has_permission_level()
    }

    /// Warns that nothing limits what the agent does, with the reason.
    pub(crate) fn unrestricted_warning(&self) -> Option<String> {
        let has_levels = self.has_permission_level();
        match self.permission {
            Permission::Full if self.is_unrestricted() => {
                Some("the agent may do anything: permission full".to_owned())
            }
            Permission::Edit if has_levels && !self.profile().capabilities.permissions => {
                Some(format!("{} has no permission levels: it may do anything that you may", self.agent))
            }
            _ => None,
        }
    }

    /// Warns that settings the user made have no effect on a run in a tmux window.
    fn window_settings_warning(&self, layers: &Layers) -> Option<String> {
        let ignored_settings =
            list_explicit_settings(layers, OUTPUT_DEPENDENT_SETTINGS).filter(|_| self.in_window);
        ignored_settings.map(|names| format!("git-proq does not read the output of {} in a window, so these have no effect: {names}; agent.max_time has", self.display_name()))
    }

    /// Warns that settings the user made do not reach the agent. Returns no warning for a command line of the
    /// user, which is started exactly as given.
    fn unsupported_settings_warning(&self, layers: &Layers) -> Option<String> {
        if self.is_user_command() {
            return None;
        }
        let profile = self.profile();
        // Settings that a window disables have a separate warning.
        let unsupported_options = OPTION_SETTINGS.into_iter().filter(|(key, option)| {
            !(profile.has_option(option) || self.in_window && OUTPUT_DEPENDENT_SETTINGS.contains(key))
        });
        let unsupported_rules = RULES_SETTINGS.into_iter().filter(|_| profile.prompt_only);
        let ignored_settings =
            list_explicit_settings(layers, unsupported_options.map(|(key, _)| key).chain(unsupported_rules));
        ignored_settings.map(|names| {
            format!(
                "the profile of {} does not support these options, so they have no effect: {names}",
                self.agent
            )
        })
    }

    /// Warns that the stop gate, which the settings require, does not exist for this agent.
    fn stop_gate_warning(&self, settings: &Settings) -> Option<String> {
        let has_stop_gate = self.profile().capabilities.stop_gate;
        let is_missing = settings.stop_gate && !has_stop_gate && !self.is_user_command() && self.can_land();
        is_missing.then(|| format!("agent.gate has no effect on {}, which has no stop hook; the checks run when the lane is merged", self.agent))
    }

    /// Warns that the run's budget cannot end the run in time, with the reason. An agent that limits its own
    /// budget needs no warning.
    fn budget_warning(&self, layers: &Layers) -> Result<Option<String>, Error> {
        let (capabilities, dialect, agent_name) =
            (self.profile().capabilities, self.dialect(), self.display_name());
        if self.limits.budget.is_none() || self.in_window || self.profile().has_option("budget") {
            return Ok(None);
        }
        let price_table = load_prices(layers)?;
        let has_price = match &self.model {
            Some(model) => price_table.find_price(model).is_some(),
            // Without a known model, only a price for all models is certain to apply.
            None => {
                price_table.find_price("").is_some() || (dialect.reports_model() && !price_table.is_empty())
            }
        };
        let reports_per_message = dialect == Dialect::Aider;
        if capabilities.tokens && has_price && dialect.reports_tokens_live() && !reports_per_message {
            return Ok(None);
        }
        let is_cost_known = capabilities.cost || capabilities.tokens && has_price;
        if !is_cost_known {
            let missing_price = match &self.model {
                _ if !capabilities.tokens => String::new(),
                Some(model) => format!(" without a price for {model} in [prices]"),
                None if dialect.reports_model() || price_table.is_empty() => {
                    " without a price for its model in [prices]".to_owned()
                }
                None => ", nor its model without --model".to_owned(),
            };
            return Ok(Some(format!(
                "{agent_name} does not report its cost{missing_price}: its budget has no effect"
            )));
        }
        Ok(match dialect {
            Dialect::Acp => Some(format!(
                "whether {agent_name} reports its cost depends on the agent behind it: if not, its budget has no effect"
            )),
            _ if reports_per_message => Some(format!(
                "{agent_name} reports its usage only at the end of each message: its budget cannot stop a message in progress"
            )),
            _ if dialect.reports_cost_live() => None,
            _ => Some(format!(
                "{agent_name} reports its usage only at its end: its budget cannot stop a run, only prevent the next one"
            )),
        })
    }

    /// Warns that the limits on the context have no effect, because the agent does not report in time how
    /// full it is.
    fn context_limits_warning(&self, layers: &Layers) -> Option<String> {
        let limitation = match self.dialect().context_reporting() {
            ContextReporting::WhileRunning => return None,
            // The size is known for a session that is continued.
            ContextReporting::AfterFirstTurn if self.resume.is_some() => return None,
            ContextReporting::AfterFirstTurn if self.profile().capabilities.tokens => {
                "reports its context only after its first turn, so this has no effect before"
            }
            _ => "does not report its context, so this has no effect",
        };
        let ignored_settings = list_explicit_settings(layers, CONTEXT_SETTINGS).filter(|_| !self.in_window);
        ignored_settings.map(|names| format!("{} {limitation}: {names}", self.display_name()))
    }
}

/// Returns those of the named settings that are set to other than their default, separated by commas. `None`
/// when there are none.
fn list_explicit_settings(layers: &Layers, names: impl IntoIterator<Item = &'static str>) -> Option<String> {
    let is_explicit = |name: &&str| {
        Key::find(name).is_some_and(|key| {
            let (value, origin) = layers.get(key);
            *origin != Origin::Default && value != key.default && !["", "0", key.default].contains(&value)
        })
    };
    let explicit: Vec<&str> = names.into_iter().filter(is_explicit).collect();
    (!explicit.is_empty()).then(|| explicit.join(", "))
}
