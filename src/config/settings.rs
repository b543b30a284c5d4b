//! Owns the settings as the domain uses them: typed, once the layers have been checked.

use std::path::PathBuf;
use std::time::Duration;

use super::form::{area, nano_dollars, ports, time};
use super::{Checkouts, Key, Layers, Notify, Origin, Pool, Room, SetUp};

/// When uncommitted work of a finished agent is committed for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Autocommit {
    /// When it ended well.
    Success,
    /// However it ended.
    Always,
    /// Not at all.
    Never,
}

impl Autocommit {
    /// The one of this name.
    fn named(name: &str) -> Autocommit {
        match name {
            "always" => Autocommit::Always,
            "never" => Autocommit::Never,
            _ => Autocommit::Success,
        }
    }
}

/// What a landing does with uncommitted work of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uncommitted {
    /// Leaves the lane out.
    Refuse,
    /// Commits it first.
    Commit,
    /// Keeps it in a snapshot and lands the rest.
    Snapshot,
}

/// How a plan is run where the command line does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Swarm {
    /// Who does tasks that name no agent.
    pub(crate) agent: Option<String>,
    /// Name and folder of each area.
    pub(crate) areas: Vec<(String, String)>,
    /// Whether tasks land on the base itself.
    pub(crate) auto_merge: bool,
    /// What a batch may cost, in 1e-9 USD.
    pub(crate) budget: Option<u64>,
    /// With how many failures a task is set aside.
    pub(crate) max_attempts: u32,
    /// How many runs of a task folder in a row may come to nothing, at least one.
    pub(crate) max_idle: u32,
    /// How many runs a task folder may take, at least one.
    pub(crate) max_iterations: u32,
    /// How many lanes are at work at the same time.
    pub(crate) max_parallel: usize,
    /// What lands together: one of the names in the table, as those below.
    pub(crate) mode: String,
    /// What it means that a task cannot land.
    pub(crate) on_merge_failure: String,
    /// What a failed task means for others.
    pub(crate) on_task_failure: String,
    /// The commands that get a lane ready, each perhaps after the globs of the files that it is for.
    pub(crate) pre_warm: Vec<String>,
    /// Who looks at the steps of task folders.
    pub(crate) reviewer: Option<String>,
    /// Which lane a task goes to.
    pub(crate) strategy: String,
    /// Whether a batch has failed of whose criteria not all are met.
    pub(crate) strict: bool,
    /// Who looks whether criteria are met that are no commands.
    pub(crate) verify_agent: Option<String>,
    /// The folder of tasks that are of no area.
    pub(crate) tasks: String,
    /// What is noted in the plan once a task has landed.
    pub(crate) when_landed: String,
}

impl Swarm {
    /// Reads the values by their names.
    fn of(text: &dyn Fn(&str) -> String) -> Swarm {
        Swarm {
            agent: Some(text("swarm.agent")).filter(|agent| !agent.is_empty()),
            areas: areas(&text("swarm.areas")),
            auto_merge: text("swarm.auto_merge") == "true",
            budget: nano_dollars(&text("swarm.budget")).filter(|nanos| *nanos > 0),
            max_attempts: text("swarm.max_attempts").parse().unwrap_or_default(),
            max_idle: text("swarm.max_idle").parse().unwrap_or(u32::MAX).max(1),
            max_iterations: text("swarm.max_iterations").parse().unwrap_or(u32::MAX).max(1),
            max_parallel: text("swarm.max_parallel").parse().unwrap_or_default(),
            mode: text("swarm.mode"),
            on_merge_failure: text("swarm.on_merge_failure"),
            on_task_failure: text("swarm.on_task_failure"),
            pre_warm: lines(&text("swarm.pre_warm")),
            reviewer: Some(text("swarm.reviewer").trim().to_owned()).filter(|agent| !agent.is_empty()),
            strategy: text("swarm.strategy"),
            strict: text("swarm.strict") == "true",
            verify_agent: Some(text("swarm.verify_agent")).filter(|agent| !agent.is_empty()),
            tasks: text("swarm.tasks"),
            when_landed: text("swarm.when_landed"),
        }
    }
}

/// Typed settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `agent.abort_grace`.
    pub(crate) abort_grace: Duration,
    /// `agent.autocommit`.
    pub(crate) autocommit: Autocommit,
    /// `agent.commit_style`; empty when nobody has one.
    pub(crate) commit_style: String,
    /// `agent.context_stop`, in percent.
    pub(crate) context_stop: Option<u64>,
    /// `agent.context_warn`, in percent.
    pub(crate) context_warn: Option<u64>,
    /// `agent.gate`.
    pub(crate) gate: bool,
    /// `agent.gate_rounds`.
    pub(crate) gate_rounds: u32,
    /// `agent.iterations`.
    pub(crate) iterations: u32,
    /// `agent.max_running`.
    pub(crate) max_running: Option<usize>,
    /// `agent.max_turns`.
    pub(crate) max_turns: u32,
    /// `agent.model`; none when it is empty.
    pub(crate) model: Option<String>,
    /// `agent.permission`: one of the names in the table.
    pub(crate) permission: String,
    /// `agent.prompt_append`.
    pub(crate) prompt_append: String,
    /// `agent.push`.
    pub(crate) agent_push: bool,
    /// `agent.autocommit_limit`, in bytes.
    pub(crate) autocommit_limit: Option<u64>,
    /// `agent.backoff`.
    pub(crate) backoff: Duration,
    /// `agent.budget`, in 1e-9 USD.
    pub(crate) budget: Option<u64>,
    /// `agent.crash_retries`.
    pub(crate) crash_retries: u32,
    /// `agent.linger`.
    pub(crate) linger: Duration,
    /// `agent.max_time`.
    pub(crate) max_time: Option<Duration>,
    /// `agent.rate_limit_retries`.
    pub(crate) rate_limit_retries: u32,
    /// `agent.reset_wait`.
    pub(crate) reset_wait: Duration,
    /// `agent.stall`.
    pub(crate) stall: Option<Duration>,
    /// `agent.stop_grace`.
    pub(crate) stop_grace: Duration,
    /// `event.rotate` and `event.keep`.
    pub(crate) events: Room,
    /// `hook.timeout`.
    pub(crate) hook_timeout: Duration,
    /// What kind of checkout new lanes have.
    pub(crate) checkouts: Checkouts,
    /// `lane.ports`: the first and the last; none when nobody wants any.
    pub(crate) ports: Option<(u16, u16)>,
    /// `lane.prefix`.
    pub(crate) prefix: String,
    /// The other settings of new lanes.
    pub(crate) set_up: SetUp,
    /// `lock.timeout`.
    pub(crate) lock_timeout: Duration,
    /// `merge.conflict_agent`; none when it is empty.
    pub(crate) conflict_agent: Option<String>,
    /// `merge.conflict_retries`.
    pub(crate) conflict_retries: u32,
    /// `merge.push`.
    pub(crate) push: bool,
    /// `merge.strategy`: one of the names in the table.
    pub(crate) strategy: String,
    /// `merge.uncommitted`.
    pub(crate) uncommitted: Uncommitted,
    /// `notify.*`.
    pub(crate) notify: Notify,
    /// `op.keep`.
    pub(crate) op_keep: Duration,
    /// `pool.*`.
    pub(crate) pool: Pool,
    /// What `swarm.*` says of how a plan is run.
    pub(crate) swarm: Swarm,
    /// `trash.keep`.
    pub(crate) trash_keep: Duration,
    /// `verify.commands`.
    pub(crate) verify_commands: Vec<String>,
    /// `verify.jobs`, at least one.
    pub(crate) verify_jobs: usize,
    /// `verify.location`; none without a home folder.
    pub(crate) verify_location: Option<PathBuf>,
    /// `snapshot.ignored` in bytes.
    pub(crate) snapshot_ignored: u64,
    /// `snapshot.interval`; none for never.
    pub(crate) snapshot_interval: Option<Duration>,
    /// `verify.timeout`.
    pub(crate) verify_timeout: Duration,
}

impl Settings {
    /// Reads the layers, whose values have their forms by now.
    pub(crate) fn from_layers(layers: &Layers) -> Settings {
        let text = |name: &str| Key::find(name).map_or_else(String::new, |key| layers.get(key).0.to_owned());
        let count = |name: &str| text(name).parse::<u64>().unwrap_or_default();
        let limit = |name: &str| Some(count(name)).filter(|n| *n > 0);
        let span = |name: &str| time(&text(name)).filter(|t| !t.is_zero());
        let days = |name: &str| Duration::from_secs(count(name) * 24 * 60 * 60);
        Settings {
            abort_grace: Duration::from_secs(count("agent.abort_grace")),
            autocommit: Autocommit::named(&text("agent.autocommit")),
            commit_style: text("agent.commit_style"),
            context_stop: limit("agent.context_stop"),
            context_warn: limit("agent.context_warn"),
            gate: text("agent.gate") == "true",
            gate_rounds: text("agent.gate_rounds").parse().unwrap_or_default(),
            iterations: text("agent.iterations").parse().unwrap_or_default(),
            max_running: limit("agent.max_running").and_then(|n| usize::try_from(n).ok()),
            max_turns: text("agent.max_turns").parse().unwrap_or_default(),
            model: Some(text("agent.model")).filter(|model| !model.is_empty()),
            permission: text("agent.permission"),
            prompt_append: text("agent.prompt_append"),
            agent_push: text("agent.push") == "true",
            autocommit_limit: limit("agent.autocommit_limit").map(|mib| mib * 1024 * 1024),
            backoff: Duration::from_secs(count("agent.backoff")),
            budget: nano_dollars(&text("agent.budget")).filter(|nanos| *nanos > 0),
            crash_retries: text("agent.crash_retries").parse().unwrap_or_default(),
            linger: Duration::from_secs(count("agent.linger")),
            max_time: span("agent.max_time"),
            rate_limit_retries: text("agent.rate_limit_retries").parse().unwrap_or_default(),
            reset_wait: time(&text("agent.reset_wait")).unwrap_or_default(),
            stall: span("agent.stall"),
            stop_grace: Duration::from_secs(count("agent.stop_grace")),
            events: Room::of(layers),
            hook_timeout: Duration::from_secs(count("hook.timeout")),
            checkouts: Checkouts::of(&text),
            ports: ports(&text("lane.ports")),
            prefix: text("lane.prefix"),
            set_up: SetUp::of(&text),
            lock_timeout: Duration::from_secs(count("lock.timeout")),
            conflict_agent: Some(text("merge.conflict_agent").trim().to_owned()).filter(|a| !a.is_empty()),
            conflict_retries: text("merge.conflict_retries").parse().unwrap_or_default(),
            push: text("merge.push") == "true",
            strategy: text("merge.strategy"),
            uncommitted: match text("merge.uncommitted").as_str() {
                "commit" => Uncommitted::Commit,
                "snapshot" => Uncommitted::Snapshot,
                _ => Uncommitted::Refuse,
            },
            notify: Notify::of(layers),
            op_keep: days("op.keep"),
            pool: Pool::of(&text),
            snapshot_ignored: count("snapshot.ignored").saturating_mul(1024 * 1024),
            snapshot_interval: limit("snapshot.interval").map(Duration::from_secs),
            swarm: Swarm::of(&text),
            trash_keep: days("trash.keep"),
            verify_commands: lines(&text("verify.commands")),
            verify_jobs: usize::try_from(count("verify.jobs")).unwrap_or(1).max(1),
            verify_location: location(layers),
            verify_timeout: Duration::from_secs(count("verify.timeout")),
        }
    }
}

/// Command lines that say something.
pub(super) fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(ToOwned::to_owned).collect()
}

/// Areas and their folders.
fn areas(text: &str) -> Vec<(String, String)> {
    let owned = |(name, folder): (&str, &str)| (name.to_owned(), folder.to_owned());
    text.lines().filter_map(area).map(owned).collect()
}

/// The folder for checks: where nobody set it, the user's cache folder.
fn location(layers: &Layers) -> Option<PathBuf> {
    let (text, origin) = layers.get(Key::find("verify.location")?);
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    match (cache, text.strip_prefix("~/")) {
        (Some(cache), _) if *origin == Origin::Default => Some(cache.join("git-proq/verify")),
        (_, Some(below)) => Some(std::env::home_dir()?.join(below)),
        (_, None) => Some(PathBuf::from(text)),
    }
}
