//! Typed settings for the other modules, created from the validated configuration layers.

use std::path::PathBuf;
use std::time::Duration;

use super::key::Key;
use super::lane_checkout::CheckoutSettings;
use super::layers::{Layers, Origin};
use super::notifications::{EventLogLimits, NotifySettings};
use super::pool::PoolSettings;
use super::set_up::SetUpSettings;
use super::value_format::{
    non_empty_lines, parse_area, parse_duration, parse_nano_dollars, parse_port_range,
};

/// When git-proq commits the work that a finished agent left uncommitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Autocommit {
    /// Only after the agent succeeded.
    Success,
    /// After every run, failed or not.
    Always,
    /// After no run: the work stays uncommitted in the worktree.
    Never,
}

impl Autocommit {
    /// Parses a value of `agent.autocommit`.
    fn from_name(name: &str) -> Autocommit {
        match name {
            "always" => Autocommit::Always,
            "never" => Autocommit::Never,
            _ => Autocommit::Success,
        }
    }
}

/// How a landing treats the uncommitted work of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncommitted {
    /// Refuses to land the lane.
    Refuse,
    /// Commits the work first.
    Commit,
    /// Lands only the commits; the work stays in the worktree, and a snapshot of it is saved.
    Snapshot,
}

impl Uncommitted {
    /// Parses a value of `merge.uncommitted`.
    fn from_name(name: &str) -> Uncommitted {
        match name {
            "commit" => Uncommitted::Commit,
            "snapshot" => Uncommitted::Snapshot,
            _ => Uncommitted::Refuse,
        }
    }
}

/// Settings of plans and batches (`swarm.*`), for options that the command line leaves out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwarmSettings {
    /// Agent for tasks that name none.
    pub agent: Option<String>,
    /// Name and folder of each area that is not below `tasks_folder` (setting `swarm.areas`).
    pub areas: Vec<(String, String)>,
    /// Whether tasks land directly on the base instead of on a branch of the batch.
    pub auto_merge: bool,
    /// Cost at which a batch is paused, in 1e-9 USD.
    pub budget: Option<u64>,
    /// Number of failures, over all batches, after which a task is set aside.
    pub max_attempts: u32,
    /// Number of consecutive runs of a task folder without progress after which it is given up, at least one.
    pub max_idle: u32,
    /// Maximum number of runs of a task folder, at least one.
    pub max_iterations: u32,
    /// Maximum number of lanes that work at the same time.
    pub max_parallel: usize,
    /// Which tasks land together: one of the values of `swarm.mode` in the table of keys.
    pub mode: String,
    /// What happens to a batch when a task cannot land: a value of `swarm.on_merge_failure`.
    pub on_merge_failure: String,
    /// What happens to a batch when a task fails: a value of `swarm.on_task_failure`.
    pub on_task_failure: String,
    /// Set-up commands of a batch's lanes, each optionally preceded by `GLOB =>` for the files that it
    /// applies to.
    pub pre_warm: Vec<String>,
    /// Agent that reviews the steps of task folders.
    pub reviewer: Option<String>,
    /// How tasks are assigned to lanes: a value of `swarm.strategy`.
    pub strategy: String,
    /// Whether a batch counts as failed when some of its criteria are not met.
    pub strict: bool,
    /// Agent that checks the criteria that are no commands.
    pub verify_agent: Option<String>,
    /// Folder of the task folders (setting `swarm.tasks`): each folder in it is an area.
    pub tasks_folder: String,
    /// What happens to a task in its plan's files once the task is on the base: a value of
    /// `swarm.when_landed`.
    pub when_landed: String,
}

impl SwarmSettings {
    /// Creates the settings from `value_of`, which returns the text of a setting by name.
    fn from_values(value_of: &dyn Fn(&str) -> String) -> SwarmSettings {
        SwarmSettings {
            agent: Some(value_of("swarm.agent")).filter(|agent| !agent.is_empty()),
            areas: parse_areas(&value_of("swarm.areas")),
            auto_merge: value_of("swarm.auto_merge") == "true",
            budget: parse_nano_dollars(&value_of("swarm.budget")).filter(|nanos| *nanos > 0),
            max_attempts: value_of("swarm.max_attempts").parse().unwrap_or_default(),
            max_idle: value_of("swarm.max_idle").parse().unwrap_or(u32::MAX).max(1),
            max_iterations: value_of("swarm.max_iterations").parse().unwrap_or(u32::MAX).max(1),
            max_parallel: value_of("swarm.max_parallel").parse().unwrap_or_default(),
            mode: value_of("swarm.mode"),
            on_merge_failure: value_of("swarm.on_merge_failure"),
            on_task_failure: value_of("swarm.on_task_failure"),
            pre_warm: non_empty_lines(&value_of("swarm.pre_warm")),
            reviewer: Some(value_of("swarm.reviewer").trim().to_owned()).filter(|agent| !agent.is_empty()),
            strategy: value_of("swarm.strategy"),
            strict: value_of("swarm.strict") == "true",
            verify_agent: Some(value_of("swarm.verify_agent")).filter(|agent| !agent.is_empty()),
            tasks_folder: value_of("swarm.tasks"),
            when_landed: value_of("swarm.when_landed"),
        }
    }
}

/// All settings, with one typed field for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Setting `agent.abort_grace`: time for an agent to exit after `git proq stop --wrap-up`.
    pub abort_grace: Duration,
    /// Setting `agent.autocommit`: when git-proq commits what an agent left uncommitted.
    pub autocommit: Autocommit,
    /// Setting `agent.commit_style`: instructions for commit messages, empty for none.
    pub commit_style: String,
    /// Setting `agent.context_stop`: fill of the context window, in percent, at which a run ends and a new
    /// conversation continues it; none for never.
    pub context_stop: Option<u64>,
    /// Setting `agent.context_warn`: fill of the context window, in percent, at which an agent is requested
    /// to wrap up; none for never.
    pub context_warn: Option<u64>,
    /// Setting `agent.gate`: whether an agent that stops while the checks fail is sent back to work.
    pub stop_gate: bool,
    /// Setting `agent.gate_rounds`: how often the stop gate sends an agent back at most.
    pub stop_gate_rounds: u32,
    /// Setting `agent.iterations`: maximum number of consecutive runs that `agent.context_stop` turns one run
    /// into.
    pub max_chained_runs: u32,
    /// Setting `agent.max_running`: how many agents run at the same time; none for no limit.
    pub max_running: Option<usize>,
    /// Setting `agent.max_turns`: maximum number of turns of a run.
    pub max_turns: u32,
    /// Setting `agent.model`: model that agents are requested to use; none when it is empty.
    pub model: Option<String>,
    /// Setting `agent.permission`: permission of agents, `read`, `edit` or `full`.
    pub permission: String,
    /// Setting `agent.prompt_append`: text added to every agent's prompt.
    pub prompt_append: String,
    /// Setting `agent.push`: whether agents may push their lane's branch.
    pub agent_push: bool,
    /// Setting `agent.autocommit_limit`: size in bytes of an uncommitted file above which git-proq commits
    /// none of an agent's leftover work; none for no limit.
    pub autocommit_limit: Option<u64>,
    /// Setting `agent.backoff`: first wait before a run that the service refused is retried.
    pub backoff: Duration,
    /// Setting `agent.budget`: cost limit of a run, in 1e-9 USD.
    pub run_budget: Option<u64>,
    /// Setting `agent.crash_retries`: how often a run whose agent crashed is retried.
    pub crash_retries: u32,
    /// Setting `agent.linger`: how long an agent may keep running after it reported that it is done.
    pub linger: Duration,
    /// Setting `agent.max_time`: time limit of a run.
    pub max_time: Option<Duration>,
    /// Setting `agent.rate_limit_retries`: how often a run is retried that the agent's service refused, or
    /// that could not reach it.
    pub rate_limit_retries: u32,
    /// Setting `agent.reset_wait`: how long a run waits for a rate limit to be lifted.
    pub reset_wait: Duration,
    /// Setting `agent.stall`: time without output or commits after which a run is stopped.
    pub stall_limit: Option<Duration>,
    /// Setting `agent.stop_grace`: time between the request to exit and the kill.
    pub stop_grace: Duration,
    /// Limits of the event log: settings `event.rotate` and `event.keep`.
    pub event_log: EventLogLimits,
    /// Setting `hook.timeout`: time limit of one hook.
    pub hook_timeout: Duration,
    /// Location and contents of a new lane's worktree.
    pub lane_checkout: CheckoutSettings,
    /// Setting `lane.ports`: first and last port of the range from which lanes get their ports; none when it
    /// is empty.
    pub port_range: Option<(u16, u16)>,
    /// Setting `lane.prefix`: the branch of a lane is `PREFIX/NAME`.
    pub branch_prefix: String,
    /// Set-up of new lanes.
    pub set_up: SetUpSettings,
    /// Setting `lock.timeout`: how long a command waits for another one.
    pub lock_timeout: Duration,
    /// Setting `merge.conflict_agent`: agent that resolves the conflicts of a landing; none when it is empty.
    pub conflict_agent: Option<String>,
    /// Setting `merge.conflict_retries`: further attempts after a refused resolution.
    pub conflict_retries: u32,
    /// Setting `merge.push`: whether the base is pushed after a landing.
    pub merge_push: bool,
    /// Setting `merge.strategy`: how lanes land, `merge`, `rebase` or `squash`.
    pub merge_strategy: String,
    /// Setting `merge.uncommitted`: how a landing treats uncommitted work of a lane.
    pub uncommitted: Uncommitted,
    /// Settings `notify.*`: notifications about events.
    pub notify: NotifySettings,
    /// Setting `op.keep`: how long operations and restored snapshots are kept.
    pub op_keep: Duration,
    /// Settings `pool.*`: reuse of landed lanes' folders.
    pub pool: PoolSettings,
    /// Settings `swarm.*`: plans and batches.
    pub swarm: SwarmSettings,
    /// Setting `trash.keep`: how long folders of removed lanes are kept.
    pub trash_keep: Duration,
    /// Setting `verify.commands`: command lines of the checks that every landing runs.
    pub verify_commands: Vec<String>,
    /// Setting `verify.jobs`: number of states of a landing that are checked at the same time, at least one.
    pub verify_jobs: usize,
    /// Setting `verify.location`: folder of the check worktrees; none without a home folder.
    pub verify_location: Option<PathBuf>,
    /// Setting `snapshot.ignored`: maximum size, in bytes, of the ignored files that an automatic snapshot
    /// copies; 0 for none.
    pub snapshot_ignored: u64,
    /// Setting `snapshot.interval`: time between automatic snapshots while agents run; none for never.
    pub snapshot_interval: Option<Duration>,
    /// Setting `verify.timeout`: time limit of one check command.
    pub verify_timeout: Duration,
}

impl Settings {
    /// Creates the typed settings from layers whose values have been validated.
    pub fn from_layers(layers: &Layers) -> Settings {
        let value_of =
            |name: &str| Key::find(name).map_or_else(String::new, |key| layers.get(key).0.to_owned());
        let count = |name: &str| value_of(name).parse::<u64>().unwrap_or_default();
        let positive = |name: &str| Some(count(name)).filter(|n| *n > 0);
        let positive_duration = |name: &str| parse_duration(&value_of(name)).filter(|t| !t.is_zero());
        let days = |name: &str| Duration::from_secs(count(name) * 24 * 60 * 60);
        Settings {
            abort_grace: Duration::from_secs(count("agent.abort_grace")),
            autocommit: Autocommit::from_name(&value_of("agent.autocommit")),
            commit_style: value_of("agent.commit_style"),
            context_stop: positive("agent.context_stop"),
            context_warn: positive("agent.context_warn"),
            stop_gate: value_of("agent.gate") == "true",
            stop_gate_rounds: value_of("agent.gate_rounds").parse().unwrap_or_default(),
            max_chained_runs: value_of("agent.iterations").parse().unwrap_or_default(),
            max_running: positive("agent.max_running").and_then(|n| usize::try_from(n).ok()),
            max_turns: value_of("agent.max_turns").parse().unwrap_or_default(),
            model: Some(value_of("agent.model")).filter(|model| !model.is_empty()),
            permission: value_of("agent.permission"),
            prompt_append: value_of("agent.prompt_append"),
            agent_push: value_of("agent.push") == "true",
            autocommit_limit: positive("agent.autocommit_limit").map(|mib| mib * 1024 * 1024),
            backoff: Duration::from_secs(count("agent.backoff")),
            run_budget: parse_nano_dollars(&value_of("agent.budget")).filter(|nanos| *nanos > 0),
            crash_retries: value_of("agent.crash_retries").parse().unwrap_or_default(),
            linger: Duration::from_secs(count("agent.linger")),
            max_time: positive_duration("agent.max_time"),
            rate_limit_retries: value_of("agent.rate_limit_retries").parse().unwrap_or_default(),
            reset_wait: parse_duration(&value_of("agent.reset_wait")).unwrap_or_default(),
            stall_limit: positive_duration("agent.stall"),
            stop_grace: Duration::from_secs(count("agent.stop_grace")),
            event_log: EventLogLimits::from_layers(layers),
            hook_timeout: Duration::from_secs(count("hook.timeout")),
            lane_checkout: CheckoutSettings::from_values(&value_of),
            port_range: parse_port_range(&value_of("lane.ports")),
            branch_prefix: value_of("lane.prefix"),
            set_up: SetUpSettings::from_values(&value_of),
            lock_timeout: Duration::from_secs(count("lock.timeout")),
            conflict_agent: Some(value_of("merge.conflict_agent").trim().to_owned())
                .filter(|a| !a.is_empty()),
            conflict_retries: value_of("merge.conflict_retries").parse().unwrap_or_default(),
            merge_push: value_of("merge.push") == "true",
            merge_strategy: value_of("merge.strategy"),
            uncommitted: Uncommitted::from_name(&value_of("merge.uncommitted")),
            notify: NotifySettings::from_layers(layers),
            op_keep: days("op.keep"),
            pool: PoolSettings::from_values(&value_of),
            snapshot_ignored: count("snapshot.ignored").saturating_mul(1024 * 1024),
            snapshot_interval: positive("snapshot.interval").map(Duration::from_secs),
            swarm: SwarmSettings::from_values(&value_of),
            trash_keep: days("trash.keep"),
            verify_commands: non_empty_lines(&value_of("verify.commands")),
            verify_jobs: usize::try_from(count("verify.jobs")).unwrap_or(1).max(1),
            verify_location: resolve_verify_location(layers),
            verify_timeout: Duration::from_secs(count("verify.timeout")),
        }
    }
}

/// Parses the value of `swarm.areas` into area names and folders.
fn parse_areas(text: &str) -> Vec<(String, String)> {
    let to_owned_pair = |(name, folder): (&str, &str)| (name.to_owned(), folder.to_owned());
    text.lines().filter_map(parse_area).map(to_owned_pair).collect()
}

/// Returns the folder for check worktrees: by default in the user's cache folder.
fn resolve_verify_location(layers: &Layers) -> Option<PathBuf> {
    let (text, origin) = layers.get(Key::find("verify.location")?);
    let cache_home = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    match (cache_home, text.strip_prefix("~/")) {
        (Some(cache), _) if *origin == Origin::Default => Some(cache.join("git-proq/verify")),
        (_, Some(home_subfolder)) => Some(std::env::home_dir()?.join(home_subfolder)),
        (_, None) => Some(PathBuf::from(text)),
    }
}
