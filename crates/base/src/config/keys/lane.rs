//! Definitions of the settings of lanes, `lane.*`.

use crate::config::key::Key;
use crate::config::lane_checkout::DEFAULT_LANE_LOCATION;
use crate::config::value_format::ValueFormat;

/// Settings of the group `lane`, sorted by name.
pub(super) const LANE_KEYS: &[Key] = &[
    Key {
        name: "lane.copy",
        format: ValueFormat::Patterns,
        default: "",
        settable_by_repository: true,
        summary: "files of the main checkout that a new lane gets a copy of, beside those of .worktreeinclude, where git ignores them",
    },
    Key {
        name: "lane.env",
        format: ValueFormat::WorktreeFile,
        default: "",
        settable_by_repository: true,
        summary: "the name of a file in each lane with its ports and names as KEY=VALUE, kept out of git; empty for none",
    },
    Key {
        name: "lane.lfs",
        format: ValueFormat::OneOf(&["full", "pointer"]),
        default: "full",
        settable_by_repository: true,
        summary: "what large files of git-lfs are in a new lane: whole, or the pointers that are committed",
    },
    Key {
        name: "lane.link",
        format: ValueFormat::Patterns,
        default: "",
        settable_by_repository: true,
        summary: "files and folders of the main checkout that a new lane gets a link to, where git ignores them",
    },
    Key {
        name: "lane.location",
        format: ValueFormat::LaneLocation,
        default: DEFAULT_LANE_LOCATION,
        settable_by_repository: false,
        summary: "where new lanes lie, from the main checkout: {lane} is the lane's name, {repo} that of the checkout's folder",
    },
    Key {
        name: "lane.ports",
        format: ValueFormat::PortRange,
        default: "20000-31999",
        settable_by_repository: false,
        summary: "from where each lane gets ten ports for servers of its own; empty for none",
    },
    Key {
        name: "lane.prefix",
        format: ValueFormat::BranchPrefix,
        default: "proq",
        settable_by_repository: true,
        summary: "lanes' branches are named PREFIX/NAME",
    },
    Key {
        name: "lane.setup",
        format: ValueFormat::Commands,
        default: "",
        settable_by_repository: true,
        summary: "commands that get a new lane ready, run in it before anything else; those of a repository need git proq approve",
    },
    Key {
        name: "lane.setup_limit",
        format: ValueFormat::TimeSpan,
        default: "10m",
        settable_by_repository: true,
        summary: "how long those commands may take together; 0 for no limit",
    },
    Key {
        name: "lane.setup_lock",
        format: ValueFormat::ShortName,
        default: "",
        settable_by_repository: true,
        summary: "lanes with the same name here run those commands one after the other; empty for all at once",
    },
    Key {
        name: "lane.sparse",
        format: ValueFormat::OneOf(&["false", "true"]),
        default: "false",
        settable_by_repository: true,
        summary: "check out only the folders of their scope in new lanes that have one, those of a plan's tasks too",
    },
    Key {
        name: "lane.submodules",
        format: ValueFormat::OneOf(&["none", "init", "recursive"]),
        default: "none",
        settable_by_repository: true,
        summary: "the submodules that a new lane gets, copied from the main checkout without the network: none, its own (init), or theirs too",
    },
];
