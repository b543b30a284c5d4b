//! Definitions of the settings of plans and batches, `swarm.*`.

use crate::config::key::Key;
use crate::config::value_format::ValueFormat;

/// Settings of the group `swarm`, sorted by name.
pub(super) const SWARM_KEYS: &[Key] = &[
    Key {
        name: "swarm.agent",
        format: ValueFormat::Word,
        default: "",
        settable_by_repository: false,
        summary: "who does tasks of a plan that name no agent",
    },
    Key {
        name: "swarm.areas",
        format: ValueFormat::AreaFolders,
        default: "",
        settable_by_repository: true,
        summary: "areas of tasks that lie elsewhere than in swarm.tasks",
    },
    Key {
        name: "swarm.auto_merge",
        format: ValueFormat::OneOf(&["false", "true"]),
        default: "false",
        settable_by_repository: false,
        summary: "land the tasks of a plan on the base itself as they are done, and not on a branch of the batch first",
    },
    Key {
        name: "swarm.budget",
        format: ValueFormat::Dollars,
        default: "0",
        settable_by_repository: false,
        summary: "pause a batch that has cost this; 0 for no limit",
    },
    Key {
        name: "swarm.max_attempts",
        format: ValueFormat::Count("runs"),
        default: "3",
        settable_by_repository: true,
        summary: "with how many failures, over all batches, a task is set aside until somebody asks for it",
    },
    Key {
        name: "swarm.max_idle",
        format: ValueFormat::Count("iterations"),
        default: "3",
        settable_by_repository: false,
        summary: "after how many iterations in a row without a new box the work at a task folder is given up",
    },
    Key {
        name: "swarm.max_iterations",
        format: ValueFormat::Count("iterations"),
        default: "50",
        settable_by_repository: false,
        summary: "how many iterations the work at a task folder may take",
    },
    Key {
        name: "swarm.max_parallel",
        format: ValueFormat::Count("lanes"),
        default: "3",
        settable_by_repository: true,
        summary: "how many lanes of a batch are at work at the same time",
    },
    Key {
        name: "swarm.mode",
        format: ValueFormat::OneOf(&["continuous", "waves", "phases", "one-lane"]),
        default: "continuous",
        settable_by_repository: true,
        summary: "what lands together: each task by itself, a wave, a phase, or the whole plan, done in one lane",
    },
    Key {
        name: "swarm.on_merge_failure",
        format: ValueFormat::OneOf(&["pause", "abort"]),
        default: "pause",
        settable_by_repository: true,
        summary: "what becomes of a batch when a task cannot land",
    },
    Key {
        name: "swarm.on_task_failure",
        format: ValueFormat::OneOf(&["skip-dependents", "stop-wave", "stop-all"]),
        default: "skip-dependents",
        settable_by_repository: true,
        summary: "what becomes of a batch when a task fails: the rest goes on, nothing more starts, or all is stopped",
    },
    Key {
        name: "swarm.pre_warm",
        format: ValueFormat::Commands,
        default: "",
        settable_by_repository: false,
        summary: "commands that get a new lane of a batch ready; GLOB => COMMAND only for tasks about such files",
    },
    Key {
        name: "swarm.reviewer",
        format: ValueFormat::AgentOrProgram,
        default: "",
        settable_by_repository: false,
        summary: "the agent that reviews the steps of task folders; without it, the one that does them",
    },
    Key {
        name: "swarm.strategy",
        format: ValueFormat::OneOf(&["affinity-first", "round-robin", "load-balanced"]),
        default: "affinity-first",
        settable_by_repository: true,
        summary: "which lane a task goes to: with what is about the same files, the next in turn, or the one with the least work; where each task lands as it is done it changes little, since most tasks get a lane of their own",
    },
    Key {
        name: "swarm.strict",
        format: ValueFormat::OneOf(&["false", "true"]),
        default: "false",
        settable_by_repository: true,
        summary: "a batch of whose criteria not all are met counts as failed, and is not landed without --force",
    },
    Key {
        name: "swarm.tasks",
        format: ValueFormat::RepoFolder,
        default: "tasks",
        settable_by_repository: true,
        summary: "where task folders lie; each folder in it is an area",
    },
    Key {
        name: "swarm.verify_agent",
        format: ValueFormat::AgentOrProgram,
        default: "",
        settable_by_repository: false,
        summary: "the agent that looks in the end whether criteria are met that are no commands; without it nobody does",
    },
    Key {
        name: "swarm.when_landed",
        format: ValueFormat::OneOf(&["note", "archive", "nothing"]),
        default: "note",
        settable_by_repository: true,
        summary: "what becomes of a task in its plan's files once it is on the base: it is noted as done, its folder is archived too, or nothing",
    },
];
