//! Owns the table of settings: name, form, default, and whether a repository may set it.

mod lane;
mod lookup;
mod swarm;

use super::Form;
use lane::LANE;
use swarm::SWARM;

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// Its name, `group.name`.
    pub(crate) name: &'static str,
    /// Its form.
    pub(crate) form: Form,
    /// Its value when nobody sets it.
    pub(crate) default: &'static str,
    /// Whether a `proq.toml` that comes with a repository may set it.
    pub(crate) by_repository: bool,
    /// What it does, in one line.
    pub(crate) about: &'static str,
}

/// Every setting, by name.
pub(crate) const KEYS: &[Key] = &joined();

const PARTS: [&[Key]; 5] = [UP_TO_HOOK, LANE, LOCK_TO_SNAPSHOT, SWARM, FROM_TRASH_ON];
const COUNT: usize = PARTS[0].len() + PARTS[1].len() + PARTS[2].len() + PARTS[3].len() + PARTS[4].len();

/// One table of all parts.
const fn joined() -> [Key; COUNT] {
    let mut all = [LANE[0]; COUNT];
    let (mut part, mut at) = (0, 0);
    while part < PARTS.len() {
        let mut n = 0;
        while n < PARTS[part].len() {
            all[at] = PARTS[part][n];
            (n, at) = (n + 1, at + 1);
        }
        part += 1;
    }
    all
}

/// Those before lanes.
const UP_TO_HOOK: &[Key] = &[
    Key {
        name: "agent.abort_grace",
        form: Form::Count("seconds"),
        default: "60",
        by_repository: true,
        about: "how long git proq stop --wrap-up waits for an agent to come to its end by itself",
    },
    Key {
        name: "agent.autocommit",
        form: Form::OneOf(&["success", "always", "never"]),
        default: "success",
        by_repository: true,
        about: "commit what an agent left uncommitted: when it ended well, always, or never",
    },
    Key {
        name: "agent.autocommit_limit",
        form: Form::Count("MiB"),
        default: "10",
        by_repository: false,
        about: "leave what an agent left uncommitted as it is when a file of it is larger; 0 for no limit",
    },
    Key {
        name: "agent.backoff",
        form: Form::Count("seconds"),
        default: "30",
        by_repository: false,
        about: "how long a run waits that the agent's service would not serve; twice as long each further time",
    },
    Key {
        name: "agent.budget",
        form: Form::Dollars,
        default: "0",
        by_repository: false,
        about: "end a run that cost more than this; 0 for no limit",
    },
    Key {
        name: "agent.commit_style",
        form: Form::Text,
        default: "",
        by_repository: true,
        about: "how agents are told to write commit messages",
    },
    Key {
        name: "agent.context_stop",
        form: Form::Count("percent"),
        default: "0",
        by_repository: false,
        about: "end a run whose context is this full and go on in a new conversation, where the agent tells; 0 for never",
    },
    Key {
        name: "agent.context_warn",
        form: Form::Count("percent"),
        default: "0",
        by_repository: false,
        about: "have a run wrap up whose context is this full, where the agent tells; 0 for never",
    },
    Key {
        name: "agent.crash_retries",
        form: Form::Count("tries"),
        default: "2",
        by_repository: false,
        about: "how often a run is tried again whose agent died",
    },
    Key {
        name: "agent.gate",
        form: Form::OneOf(&["false", "true"]),
        default: "false",
        by_repository: true,
        about: "send an agent back to work that ends while the lane's checks fail, where the agent can be sent back",
    },
    Key {
        name: "agent.gate_rounds",
        form: Form::Count("times"),
        default: "3",
        by_repository: true,
        about: "how often agent.gate sends it back at most",
    },
    Key {
        name: "agent.iterations",
        form: Form::Count("runs"),
        default: "5",
        by_repository: false,
        about: "how many runs in a row agent.context_stop makes of one at most",
    },
    Key {
        name: "agent.linger",
        form: Form::Count("seconds"),
        default: "30",
        by_repository: false,
        about: "how long an agent may go on after it said that it is done",
    },
    Key {
        name: "agent.max_running",
        form: Form::Count("runs"),
        default: "0",
        by_repository: false,
        about: "how many agents batches let run at the same time, those of other batches and lanes counted; 0 for no limit",
    },
    Key {
        name: "agent.max_time",
        form: Form::Time,
        default: "0",
        by_repository: false,
        about: "end a run that takes longer; 0 for no limit",
    },
    Key {
        name: "agent.max_turns",
        form: Form::Count("turns"),
        default: "200",
        by_repository: true,
        about: "how many turns a run may take, where the agent can be told",
    },
    Key {
        name: "agent.model",
        form: Form::Word,
        default: "",
        by_repository: false,
        about: "the model that agents are asked to use; without it each has its own",
    },
    Key {
        name: "agent.permission",
        form: Form::OneOf(&["read", "edit", "full"]),
        default: "edit",
        by_repository: false,
        about: "what agents may do: look, change their lane and use git there, or anything",
    },
    Key {
        name: "agent.prompt_append",
        form: Form::Text,
        default: "",
        by_repository: true,
        about: "what every agent is told besides its task",
    },
    Key {
        name: "agent.push",
        form: Form::OneOf(&["false", "true"]),
        default: "false",
        by_repository: false,
        about: "let agents push their lane's branch; otherwise they are told not to",
    },
    Key {
        name: "agent.rate_limit_retries",
        form: Form::Count("tries"),
        default: "5",
        by_repository: false,
        about: "how often a run is tried again that the agent's service would not serve, or that could not reach it",
    },
    Key {
        name: "agent.reset_wait",
        form: Form::Time,
        default: "30m",
        by_repository: false,
        about: "how long a run may wait for a limit to be lifted, where the agent says when; it ends where that is later",
    },
    Key {
        name: "agent.stall",
        form: Form::Time,
        default: "30m",
        by_repository: false,
        about: "end a run of which nothing came for this long: no output, no commit; 0 for no limit",
    },
    Key {
        name: "agent.stop_grace",
        form: Form::Count("seconds"),
        default: "10",
        by_repository: true,
        about: "time between asking an agent to end and ending it",
    },
    Key {
        name: "event.keep",
        form: Form::Count("files"),
        default: "4",
        by_repository: false,
        about: "how many full files of the event log are kept beside the one that grows",
    },
    Key {
        name: "event.rotate",
        form: Form::Count("KiB"),
        default: "8192",
        by_repository: false,
        about: "how big a file of the event log may get",
    },
    Key {
        name: "hook.timeout",
        form: Form::Count("seconds"),
        default: "60",
        by_repository: false,
        about: "how long one hook may take",
    },
];

/// Those between lanes and plans.
const LOCK_TO_SNAPSHOT: &[Key] = &[
    Key {
        name: "lock.timeout",
        form: Form::Count("seconds"),
        default: "30",
        by_repository: false,
        about: "how long a command waits for another one before it gives up",
    },
    Key {
        name: "merge.conflict_agent",
        form: Form::Agent,
        default: "",
        by_repository: true,
        about: "who is sent at each conflict of a landing; one that a repository names needs git proq approve",
    },
    Key {
        name: "merge.conflict_retries",
        form: Form::Count("tries"),
        default: "0",
        by_repository: true,
        about: "how many more tries such an agent has when its resolution is refused",
    },
    Key {
        name: "merge.push",
        form: Form::OneOf(&["false", "true"]),
        default: "false",
        by_repository: false,
        about: "push the base after a landing, to where git push would, never by force",
    },
    Key {
        name: "merge.strategy",
        form: Form::OneOf(&["merge", "rebase", "squash"]),
        default: "merge",
        by_repository: true,
        about: "how a lane lands: with a merge commit, commit by commit on top of the base, or as one commit",
    },
    Key {
        name: "merge.uncommitted",
        form: Form::OneOf(&["refuse", "commit", "snapshot"]),
        default: "refuse",
        by_repository: true,
        about: "a lane with uncommitted work: refuse to land it, commit the work first, or keep it aside and land the rest",
    },
    Key {
        name: "notify.bell",
        form: Form::OneOf(&["false", "true"]),
        default: "false",
        by_repository: false,
        about: "ring the bell of the terminal in which somebody waits for a lane or follows the events",
    },
    Key {
        name: "notify.desktop",
        form: Form::OneOf(&["off", "auto", "notify-send", "osc9", "osc777"]),
        default: "off",
        by_repository: false,
        about: "show a notice: by notify-send, or by the terminal in which somebody waits or follows",
    },
    Key {
        name: "notify.events",
        form: Form::Events,
        default: "run.ended agent.state:needs-approval merge.landed merge.conflict merge.check-failed merge.refused",
        by_repository: false,
        about: "the events that notifiers tell of",
    },
    Key {
        name: "notify.slack",
        form: Form::Secret,
        default: "",
        by_repository: false,
        about: "where the message is posted as Slack and others like it expect it; never shown",
    },
    Key {
        name: "notify.sound",
        form: Form::Sound,
        default: "",
        by_repository: false,
        about: "a sound that is played, or a command that makes one",
    },
    Key {
        name: "notify.title",
        form: Form::OneOf(&["false", "true"]),
        default: "false",
        by_repository: false,
        about: "put the message in the title of the terminal in which somebody waits or follows",
    },
    Key {
        name: "notify.webhook",
        form: Form::Secret,
        default: "",
        by_repository: false,
        about: "where the event is posted as JSON; never shown",
    },
    Key {
        name: "op.keep",
        form: Form::Count("days"),
        default: "30",
        by_repository: false,
        about: "how long operations, and snapshots that came back, are kept",
    },
    Key {
        name: "pool.keep",
        form: Form::Patterns,
        default: "",
        by_repository: false,
        about: "caches that can be built again and stay in the folder of a landed lane when the next lane gets it, where git ignores them",
    },
    Key {
        name: "pool.size",
        form: Form::Count("folders"),
        default: "2",
        by_repository: false,
        about: "how many of the youngest folders of landed lanes a new lane may be given one of; 0 for none",
    },
    Key {
        name: "snapshot.ignored",
        form: Form::Count("MiB"),
        default: "64",
        by_repository: false,
        about: "how much of ignored files an automatic snapshot copies; 0 for none",
    },
    Key {
        name: "snapshot.interval",
        form: Form::Count("seconds"),
        default: "5",
        by_repository: false,
        about: "how often uncommitted changes in the main checkout and in idle lanes are copied while agents run, lanes at work less often; 0 for never",
    },
];

/// Those from the trash on.
const FROM_TRASH_ON: &[Key] = &[
    Key {
        name: "trash.keep",
        form: Form::Count("days"),
        default: "7",
        by_repository: false,
        about: "how long removed lanes' folders are kept",
    },
    Key {
        name: "verify.commands",
        form: Form::Commands,
        default: "",
        by_repository: true,
        about: "what must succeed, in this order, on exactly what will land; those of a repository need git proq approve",
    },
    Key {
        name: "verify.jobs",
        form: Form::Count("checks"),
        default: "1",
        by_repository: false,
        about: "how many states of a landing are checked at the same time, each in a worktree of its own",
    },
    Key {
        name: "verify.location",
        form: Form::Folder,
        default: "~/.cache/git-proq/verify",
        by_repository: false,
        about: "where the worktrees for checks are kept, outside of any repository; without it below $XDG_CACHE_HOME if that is set",
    },
    Key {
        name: "verify.timeout",
        form: Form::Count("seconds"),
        default: "1800",
        by_repository: true,
        about: "how long one command of a check may take",
    },
];

#[cfg(test)]
mod tests;
