//! Owns the settings of lanes: one part of the table.

use super::super::checkouts::INSIDE;
use super::{Form, Key};

/// By name.
pub(super) const LANE: &[Key] = &[
    Key {
        name: "lane.copy",
        form: Form::Patterns,
        default: "",
        by_repository: true,
        about: "files of the main checkout that a new lane gets a copy of, beside those of .worktreeinclude, where git ignores them",
    },
    Key {
        name: "lane.env",
        form: Form::NewFile,
        default: "",
        by_repository: true,
        about: "the name of a file in each lane with its ports and names as KEY=VALUE, kept out of git; empty for none",
    },
    Key {
        name: "lane.lfs",
        form: Form::OneOf(&["full", "pointer"]),
        default: "full",
        by_repository: true,
        about: "what large files of git-lfs are in a new lane: whole, or the pointers that are committed",
    },
    Key {
        name: "lane.link",
        form: Form::Patterns,
        default: "",
        by_repository: true,
        about: "files and folders of the main checkout that a new lane gets a link to, where git ignores them",
    },
    Key {
        name: "lane.location",
        form: Form::Location,
        default: INSIDE,
        by_repository: false,
        about: "where new lanes lie, from the main checkout: {lane} is the lane's name, {repo} that of the checkout's folder",
    },
    Key {
        name: "lane.ports",
        form: Form::Ports,
        default: "20000-31999",
        by_repository: false,
        about: "from where each lane gets ten ports for servers of its own; empty for none",
    },
    Key {
        name: "lane.prefix",
        form: Form::Prefix,
        default: "proq",
        by_repository: true,
        about: "lanes' branches are named PREFIX/NAME",
    },
    Key {
        name: "lane.setup",
        form: Form::Commands,
        default: "",
        by_repository: true,
        about: "commands that get a new lane ready, run in it before anything else; those of a repository need git proq approve",
    },
    Key {
        name: "lane.setup_limit",
        form: Form::Time,
        default: "10m",
        by_repository: true,
        about: "how long those commands may take together; 0 for no limit",
    },
    Key {
        name: "lane.setup_lock",
        form: Form::Name,
        default: "",
        by_repository: true,
        about: "lanes with the same name here run those commands one after the other; empty for all at once",
    },
    Key {
        name: "lane.sparse",
        form: Form::OneOf(&["false", "true"]),
        default: "false",
        by_repository: true,
        about: "check out only the folders of their scope in new lanes that have one, those of a plan's tasks too",
    },
    Key {
        name: "lane.submodules",
        form: Form::OneOf(&["none", "init", "recursive"]),
        default: "none",
        by_repository: true,
        about: "the submodules that a new lane gets, copied from the main checkout without the network: none, its own (init), or theirs too",
    },
];
