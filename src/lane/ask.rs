//! Owns asking the hooks that may refuse a command before anything is changed: `pre-spawn`, `pre-merge`, `pre-remove`.

use serde_json::{Value, json};

use super::{Error, Project};
use crate::event::{About, Approvals, Hook, Hooks, has_hook, log_hook, no_hooks, run_hook};

/// So much of what a hook says stands in an error.
const WORDS: usize = 400;

impl Project {
    /// Asks whether a lane may be made.
    ///
    /// # Errors
    /// [`Error::Vetoed`] with the hook's words, [`Error::UnapprovedHook`].
    pub(crate) fn ask_to_spawn(&self, lane: &str, base: &str) -> Result<(), Error> {
        let about = json!({ "event": "pre-spawn", "lane": lane, "base": base });
        self.ask("pre-spawn", about, vec![("PROQ_LANE", lane.to_owned())])
    }

    /// Asks whether lanes may land; those that are named, or all that are done.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn ask_to_merge(&self, lanes: &[String], all: bool, onto: Option<&str>) -> Result<(), Error> {
        let about = json!({ "event": "pre-merge", "lanes": lanes, "all": all, "onto": onto });
        let mut env = vec![("PROQ_LANES", lanes.join(" "))];
        if let [one] = lanes {
            env.push(("PROQ_LANE", one.clone()));
            env.extend(self.port_variables(one));
        }
        self.ask("pre-merge", about, env)
    }

    /// Asks whether a lane may be removed.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn ask_to_remove(&self, lane: &str) -> Result<(), Error> {
        let about = json!({ "event": "pre-remove", "lane": lane });
        let mut env = vec![("PROQ_LANE", lane.to_owned())];
        env.extend(self.port_variables(lane));
        self.ask("pre-remove", about, env)
    }

    /// What names the ports of a lane to a hook, if there is such a lane.
    fn port_variables(&self, lane: &str) -> Vec<(&'static str, String)> {
        let ports = self.any_lane(lane).ok().and_then(|lane| lane.port);
        ports.map(|ports| ports.variables().collect()).unwrap_or_default()
    }

    /// Runs the hooks of this name; the first that says no ends it.
    fn ask(&self, name: &'static str, json: Value, env: Vec<(&'static str, String)>) -> Result<(), Error> {
        if no_hooks() || !has_hook(&self.store, &self.layers, name) {
            return Ok(());
        }
        let approvals = Approvals::read(&self.repo, &self.store)?;
        let hooks = Hooks::of(&self.repo, &self.store, &approvals, &self.layers, &self.settings).at(name);
        for hook in &hooks {
            if let Hook::Line(command) = hook
                && let (false, Some(path)) = (command.approved, &command.from)
            {
                return Err(Error::UnapprovedHook { path: path.clone(), name, line: command.line.clone() });
            }
        }
        let mut env = env;
        env.push(("PROQ_EVENT", name.to_owned()));
        let about = About { json, env, dir: self.repo.home().to_owned() };
        let limit = self.settings.hook_timeout;
        for hook in &hooks {
            let ran = run_hook(hook, &about, limit, &|| crate::interrupt::check().is_err());
            crate::interrupt::check()?;
            log_hook(&self.store, name, &hook.called(), &ran.end(), ran.words());
            if !ran.is_success() {
                return Err(Error::Vetoed {
                    name,
                    why: in_one_line(ran.words()).unwrap_or_else(|| ran.end()),
                });
            }
        }
        Ok(())
    }
}

/// What a hook said, on one line; none when it said nothing.
fn in_one_line(words: &str) -> Option<String> {
    let lines: Vec<&str> = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let all: String = lines.join("; ").chars().filter(|c| !c.is_control()).take(WORDS).collect();
    (!all.is_empty()).then_some(all)
}
