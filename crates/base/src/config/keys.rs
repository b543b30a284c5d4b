//! Table of all settings: name, value format, default, and whether a repository may set it.

pub mod lane;
pub mod lookup;
pub mod swarm;

use super::key::Key;
use super::value_format::ValueFormat;
use lane::LANE_KEYS;
use swarm::SWARM_KEYS;

/// All settings, sorted by name.
pub const KEYS: &[Key] = &join_groups();

const KEY_GROUPS: [&[Key]; 5] =
    [AGENT_TO_HOOK_KEYS, LANE_KEYS, LOCK_TO_SNAPSHOT_KEYS, SWARM_KEYS, TRASH_TO_VERIFY_KEYS];
const KEY_COUNT: usize = KEY_GROUPS[0].len()
    + KEY_GROUPS[1].len()
    + KEY_GROUPS[2].len()
    + KEY_GROUPS[3].len()
    + KEY_GROUPS[4].len();

/// Joins [`KEY_GROUPS`] into one table at compile time.
const fn join_groups() -> [Key; KEY_COUNT] {
    let mut keys = [LANE_KEYS[0]; KEY_COUNT];
    let (mut group, mut next) = (0, 0);
    while group < KEY_GROUPS.len() {
        let mut index = 0;
        while index < KEY_GROUPS[group].len() {
            keys[next] = KEY_GROUPS[group][index];
            (index, next) = (index + 1, next + 1);
        }
        group += 1;
    }
    keys
}

/// Settings of the groups `agent`, `event` and `hook`.
const AGENT_TO_HOOK_KEYS: &[Key] = &[
    Key {
        name: "agent.abort_grace",
        format: ValueFormat::Count("seconds"),
        default: "60",
        settable_by_repository: true,
        summary: "how long git proq stop --wrap-up waits for an agent to come to its end by itself",
    },
    Key {
        name: "agent.autocommit",
        format: ValueFormat::OneOf(&["success", "always", "never"]),
        default: "success",
        settable_by_repository: true,
        summary: "commit what an agent left uncommitted: when it ended well, always, or never",
    },
    Key {
        name: "agent.autocommit_limit",
        format: ValueFormat::Count("MiB"),
        default: "10",
        settable_by_repository: false,
        summary: "leave what an agent left uncommitted as it is when a file of it is larger; 0 for no limit",
    },
    Key {
        name: "agent.backoff",
        format: ValueFormat::Count("seconds"),
        default: "30",
        settable_by_repository: false,
        summary: "how long a run waits that the agent's service would not serve; twice as long each further time",
    },
    Key {
        name: "agent.budget",
        format: ValueFormat::Dollars,
        default: "0",
        settable_by_repository: false,
        summary: "end a run that cost more than this; 0 for no limit",
    },
    Key {
        name: "agent.commit_style",
        format: ValueFormat::Text,
        default: "",
        settable_by_repository: true,
        summary: "how agents are told to write commit messages",
    },
    Key {
        name: "agent.context_stop",
        format: ValueFormat::Count("percent"),
        default: "0",
        settable_by_repository: false,
        summary: "end a run whose context is this full and go on in a new conversation, where the agent tells; 0 for never",
    },
    Key {
        name: "agent.context_warn",
        format: ValueFormat::Count("percent"),
        default: "0",
        settable_by_repository: false,
        summary: "have a run wrap up whose context is this full, where the agent tells; 0 for never",
    },
    Key {
        name: "agent.crash_retries",
        format: ValueFormat::Count("tries"),
        default: "2",
        settable_by_repository: false,
        summary: "how often a run is tried again whose agent died",
    },
    Key {
        name: "agent.gate",
        format: ValueFormat::OneOf(&["false", "true"]),
        default: "false",
        settable_by_repository: true,
        summary: "send an agent back to work that ends while the lane's checks fail, where the agent can be sent back",
    },
    Key {
        name: "agent.gate_rounds",
        format: ValueFormat::Count("times"),
        default: "3",
        settable_by_repository: true,
        summary: "how often agent.gate sends it back at most",
    },
    Key {
        name: "agent.iterations",
        format: ValueFormat::Count("runs"),
        default: "5",
        settable_by_repository: false,
        summary: "how many runs in a row agent.context_stop makes of one at most",
    },
    Key {
        name: "agent.linger",
        format: ValueFormat::Count("seconds"),
        default: "30",
        settable_by_repository: false,
        summary: "how long an agent may go on after it said that it is done",
    },
    Key {
        name: "agent.max_running",
        format: ValueFormat::Count("runs"),
        default: "0",
        settable_by_repository: false,
        summary: "how many agents batches let run at the same time, those of other batches and lanes counted; 0 for no limit",
    },
    Key {
        name: "agent.max_time",
        format: ValueFormat::TimeSpan,
        default: "0",
        settable_by_repository: false,
        summary: "end a run that takes longer; 0 for no limit",
    },
    Key {
        name: "agent.max_turns",
        format: ValueFormat::Count("turns"),
        default: "200",
        settable_by_repository: true,
        summary: "how many turns a run may take, where the agent can be told",
    },
    Key {
        name: "agent.model",
        format: ValueFormat::Word,
        default: "",
        settable_by_repository: false,
        summary: "the model that agents are asked to use; without it each has its own",
    },
    Key {
        name: "agent.permission",
        format: ValueFormat::OneOf(&["read", "edit", "full"]),
        default: "edit",
        settable_by_repository: false,
        summary: "what agents may do: look, change their lane and use git there, or anything",
    },
    Key {
        name: "agent.prompt_append",
        format: ValueFormat::Text,
        default: "",
        settable_by_repository: true,
        summary: "what every agent is told besides its task",
    },
    Key {
        name: "agent.push",
        format: ValueFormat::OneOf(&["false", "true"]),
        default: "false",
        settable_by_repository: false,
        summary: "let agents push their lane's branch; otherwise they are told not to",
    },
    Key {
        name: "agent.rate_limit_retries",
        format: ValueFormat::Count("tries"),
        default: "5",
        settable_by_repository: false,
        summary: "how often a run is tried again that the agent's service would not serve, or that could not reach it",
    },
    Key {
        name: "agent.reset_wait",
        format: ValueFormat::TimeSpan,
        default: "30m",
        settable_by_repository: false,
        summary: "how long a run may wait for a limit to be lifted, where the agent says when; it ends where that is later",
    },
    Key {
        name: "agent.stall",
        format: ValueFormat::TimeSpan,
        default: "30m",
        settable_by_repository: false,
        summary: "end a run of which nothing came for this long: no output, no commit; 0 for no limit",
    },
    Key {
        name: "agent.stop_grace",
        format: ValueFormat::Count("seconds"),
        default: "10",
        settable_by_repository: true,
        summary: "time between asking an agent to end and ending it",
    },
    Key {
        name: "event.keep",
        format: ValueFormat::Count("files"),
        default: "4",
        settable_by_repository: false,
        summary: "how many full files of the event log are kept beside the one that grows",
    },
    Key {
        name: "event.rotate",
        format: ValueFormat::Count("KiB"),
        default: "8192",
        settable_by_repository: false,
        summary: "how big a file of the event log may get",
    },
    Key {
        name: "hook.timeout",
        format: ValueFormat::Count("seconds"),
        default: "60",
        settable_by_repository: false,
        summary: "how long one hook may take",
    },
];

/// Settings of the groups `lock`, `merge`, `notify`, `op`, `pool` and `snapshot`.
const LOCK_TO_SNAPSHOT_KEYS: &[Key] = &[
    Key {
        name: "lock.timeout",
        format: ValueFormat::Count("seconds"),
        default: "30",
        settable_by_repository: false,
        summary: "how long a command waits for another one before it gives up",
    },
    Key {
        name: "merge.conflict_agent",
        format: ValueFormat::AgentOrProgram,
        default: "",
        settable_by_repository: true,
        summary: "who is sent at each conflict of a landing; one that a repository names needs git proq approve",
    },
    Key {
        name: "merge.conflict_retries",
        format: ValueFormat::Count("tries"),
        default: "0",
        settable_by_repository: true,
        summary: "how many more tries such an agent has when its resolution is refused",
    },
    Key {
        name: "merge.push",
        format: ValueFormat::OneOf(&["false", "true"]),
        default: "false",
        settable_by_repository: false,
        summary: "push the base after a landing, to where git push would, never by force",
    },
    Key {
        name: "merge.strategy",
        format: ValueFormat::OneOf(&["merge", "rebase", "squash"]),
        default: "merge",
        settable_by_repository: true,
        summary: "how a lane lands: with a merge commit, commit by commit on top of the base, or as one commit",
    },
    Key {
        name: "merge.uncommitted",
        format: ValueFormat::OneOf(&["refuse", "commit", "snapshot"]),
        default: "refuse",
        settable_by_repository: true,
        summary: "a lane with uncommitted work: refuse to land it, commit the work first, or keep it aside and land the rest",
    },
    Key {
        name: "notify.bell",
        format: ValueFormat::OneOf(&["false", "true"]),
        default: "false",
        settable_by_repository: false,
        summary: "ring the bell of the terminal in which somebody waits for a lane or follows the events",
    },
    Key {
        name: "notify.desktop",
        format: ValueFormat::OneOf(&["off", "auto", "notify-send", "osc9", "osc777"]),
        default: "off",
        settable_by_repository: false,
        summary: "show a notice: by notify-send, or by the terminal in which somebody waits or follows",
    },
    Key {
        name: "notify.events",
        format: ValueFormat::EventNames,
        default: "run.ended agent.state:needs-approval merge.landed merge.conflict merge.check-failed merge.refused",
        settable_by_repository: false,
        summary: "the events that notifiers tell of",
    },
    Key {
        name: "notify.slack",
        format: ValueFormat::SecretUrl,
        default: "",
        settable_by_repository: false,
        summary: "where the message is posted as Slack and others like it expect it; never shown",
    },
    Key {
        name: "notify.sound",
        format: ValueFormat::SoundOrCommand,
        default: "",
        settable_by_repository: false,
        summary: "a sound that is played, or a command that makes one",
    },
    Key {
        name: "notify.title",
        format: ValueFormat::OneOf(&["false", "true"]),
        default: "false",
        settable_by_repository: false,
        summary: "put the message in the title of the terminal in which somebody waits or follows",
    },
    Key {
        name: "notify.webhook",
        format: ValueFormat::SecretUrl,
        default: "",
        settable_by_repository: false,
        summary: "where the event is posted as JSON; never shown",
    },
    Key {
        name: "op.keep",
        format: ValueFormat::Count("days"),
        default: "30",
        settable_by_repository: false,
        summary: "how long operations, and snapshots that came back, are kept",
    },
    Key {
        name: "pool.keep",
        format: ValueFormat::Patterns,
        default: "",
        settable_by_repository: false,
        summary: "caches that can be built again and stay in the folder of a landed lane when the next lane gets it, where git ignores them",
    },
    Key {
        name: "pool.size",
        format: ValueFormat::Count("folders"),
        default: "2",
        settable_by_repository: false,
        summary: "how many of the youngest folders of landed lanes a new lane may be given one of; 0 for none",
    },
    Key {
        name: "snapshot.ignored",
        format: ValueFormat::Count("MiB"),
        default: "64",
        settable_by_repository: false,
        summary: "how much of ignored files an automatic snapshot copies; 0 for none",
    },
    Key {
        name: "snapshot.interval",
        format: ValueFormat::Count("seconds"),
        default: "5",
        settable_by_repository: false,
        summary: "how often uncommitted changes in the main checkout and in idle lanes are copied while agents run, lanes at work less often; 0 for never",
    },
];

/// Settings of the groups `trash` and `verify`.
const TRASH_TO_VERIFY_KEYS: &[Key] = &[
    Key {
        name: "trash.keep",
        format: ValueFormat::Count("days"),
        default: "7",
        settable_by_repository: false,
        summary: "how long removed lanes' folders are kept",
    },
    Key {
        name: "verify.commands",
        format: ValueFormat::Commands,
        default: "",
        settable_by_repository: true,
        summary: "what must succeed, in this order, on exactly what will land; those of a repository need git proq approve",
    },
    Key {
        name: "verify.jobs",
        format: ValueFormat::Count("checks"),
        default: "1",
        settable_by_repository: false,
        summary: "how many states of a landing are checked at the same time, each in a worktree of its own",
    },
    Key {
        name: "verify.location",
        format: ValueFormat::Folder,
        default: "~/.cache/git-proq/verify",
        settable_by_repository: false,
        summary: "where the worktrees for checks are kept, outside of any repository; without it below $XDG_CACHE_HOME if that is set",
    },
    Key {
        name: "verify.timeout",
        format: ValueFormat::Count("seconds"),
        default: "1800",
        settable_by_repository: true,
        summary: "how long one command of a check may take",
    },
];

#[cfg(test)]
mod tests;
