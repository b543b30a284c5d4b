//! Hooks that can veto a command before anything is changed: `pre-spawn`, `pre-merge`, `pre-remove`.

use proq_base::lane_name::LaneName;
use proq_store::records::lane::LaneRecord;
use serde_json::{Value, json};

use crate::event::approval::Approvals;
use crate::event::hook::{Hook, HookContext, log as log_hook, run as run_hook};
use crate::event::program_info::are_hooks_disabled;
use crate::event::sink::Hooks;
use crate::event::trigger::has_hook;
use crate::lane::{Error, Project};

/// Maximum length of a hook's output in an error message, in characters.
const MAX_HOOK_OUTPUT_CHARS: usize = 400;

impl Project {
    /// Runs the `pre-spawn` hooks, which can veto the creation of a lane.
    ///
    /// # Errors
    /// [`Error::HookVetoed`] with the hook's output, [`Error::UnapprovedHook`].
    pub fn run_pre_spawn_hooks(&self, lane: &LaneName, base: &str) -> Result<(), Error> {
        let payload = json!({ "event": "pre-spawn", "lane": lane, "base": base });
        self.run_veto_hooks("pre-spawn", payload, vec![("PROQ_LANE", lane.to_string())])
    }

    /// Returns whether there may be a `pre-merge` hook.
    pub(crate) fn has_pre_merge_hook(&self) -> bool {
        !are_hooks_disabled() && has_hook(&self.store, &self.layers, "pre-merge")
    }

    /// Runs the `pre-merge` hooks, which can veto landing the lanes, named as the user gave them, or, with
    /// `all`, every lane that is done. `only_lane` is the record of the lane if there is only one.
    ///
    /// # Errors
    /// [`Error::HookVetoed`] with the hook's output, [`Error::UnapprovedHook`].
    pub(crate) fn run_pre_merge_hooks(
        &self,
        lanes: &[String],
        only_lane: Option<&LaneRecord>,
        all: bool,
        onto: Option<&str>,
    ) -> Result<(), Error> {
        let payload = json!({ "event": "pre-merge", "lanes": lanes, "all": all, "onto": onto });
        let mut env = vec![("PROQ_LANES", lanes.join(" "))];
        if let [lane] = lanes {
            env.push(("PROQ_LANE", lane.clone()));
            env.extend(port_env(only_lane));
        }
        self.run_veto_hooks("pre-merge", payload, env)
    }

    /// Runs the `pre-remove` hooks, which can veto the removal of a lane.
    ///
    /// # Errors
    /// [`Error::HookVetoed`] with the hook's output, [`Error::UnapprovedHook`].
    pub fn run_pre_remove_hooks(&self, lane: &LaneName) -> Result<(), Error> {
        let payload = json!({ "event": "pre-remove", "lane": lane });
        let mut env = vec![("PROQ_LANE", lane.to_string())];
        env.extend(port_env(self.any_lane(lane).ok().as_ref()));
        self.run_veto_hooks("pre-remove", payload, env)
    }

    /// Runs all hooks of the event `name`; the first hook that fails vetoes the command.
    fn run_veto_hooks(
        &self,
        name: &'static str,
        payload: Value,
        env: Vec<(&'static str, String)>,
    ) -> Result<(), Error> {
        if are_hooks_disabled() || !has_hook(&self.store, &self.layers, name) {
            return Ok(());
        }
        let approvals = Approvals::load(&self.repo, &self.store)?;
        let hooks =
            Hooks::load(&self.repo, &self.store, &approvals, &self.layers, &self.settings).hooks_for(name);
        for hook in &hooks {
            if let Hook::Shell(command) = hook
                && let (false, Some(path)) = (command.approved, &command.source_file)
            {
                return Err(Error::UnapprovedHook {
                    settings_file: path.clone(),
                    hook_name: name,
                    command_line: command.line.clone(),
                });
            }
        }
        let mut env = env;
        env.push(("PROQ_EVENT", name.to_owned()));
        let hook_input = HookContext { json: payload, env, dir: self.repo.command_dir().to_owned() };
        let timeout = self.settings.hook_timeout;
        for hook in &hooks {
            let outcome =
                run_hook(hook, &hook_input, timeout, &|| proq_base::interrupt::require_no_signal().is_err());
            proq_base::interrupt::require_no_signal()?;
            log_hook(&self.store, name, &hook.label(), &outcome.exit_text(), outcome.output());
            if !outcome.is_success() {
                return Err(Error::HookVetoed {
                    hook_name: name,
                    reason: join_output_lines(outcome.output()).unwrap_or_else(|| outcome.exit_text()),
                });
            }
        }
        Ok(())
    }
}

/// Returns the environment variables that name a lane's ports; empty without a lane and for a lane without
/// ports.
fn port_env<P>(lane: Option<&LaneRecord<P>>) -> Vec<(&'static str, String)> {
    lane.and_then(|lane| lane.ports.as_ref()).map(|ports| ports.variables().collect()).unwrap_or_default()
}

/// Joins a hook's output to one line; none when it is empty.
fn join_output_lines(output: &str) -> Option<String> {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let joined: String =
        lines.join("; ").chars().filter(|c| !c.is_control()).take(MAX_HOOK_OUTPUT_CHARS).collect();
    (!joined.is_empty()).then_some(joined)
}
