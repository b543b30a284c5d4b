//! Settings whose value is one of a few words, as enums.

use super::conversion::{FromSetting, SettingValue};
use super::value_format::ValueFormat;

/// Declares enums with the word of each variant. The first variant is the default.
macro_rules! choices {
    ($(
        $(#[$meta:meta])*
        $name:ident {
            $(#[$first_meta:meta])* $first:ident = $first_word:literal,
            $( $(#[$variant_meta:meta])* $variant:ident = $word:literal, )*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub enum $name {
            $(#[$first_meta])*
            #[default]
            $first,
            $( $(#[$variant_meta])* $variant, )*
        }

        impl $name {
            /// Format of the setting: the words of the variants.
            pub(super) const FORMAT: ValueFormat = ValueFormat::OneOf(&[$first_word, $($word),*]);
        }

        impl FromSetting for $name {
            fn from_setting(value: SettingValue<'_>) -> $name {
                match value.text {
                    $($word => $name::$variant,)*
                    _ => $name::$first,
                }
            }
        }
    )*};
}

choices! {
    /// When git-proq commits the work that a finished agent left uncommitted.
    Autocommit {
        /// Only after the agent succeeded.
        Success = "success",
        /// After every run, failed or not.
        Always = "always",
        /// After no run: the work stays uncommitted in the worktree.
        Never = "never",
    }

    /// Method of showing desktop notifications.
    DesktopNotifier {
        /// No desktop notifications.
        Off = "off",
        /// A notification program if one is installed, else the terminal if it is known to support
        /// notifications.
        Auto = "auto",
        /// `notify-send`, or the equivalent program of macOS.
        NotifySend = "notify-send",
        /// The terminal, with the escape sequence OSC 9.
        Osc9 = "osc9",
        /// The terminal, with the escape sequence OSC 777.
        Osc777 = "osc777",
    }

    /// What a landing does when a check fails on the base itself.
    BaseFailurePolicy {
        /// Refuses the landing.
        Refuse = "refuse",
        /// Ignores the check with a warning.
        Warn = "warn",
    }

    /// Program that opens pull or merge requests.
    ForgeChoice {
        /// The program of the remote's host.
        Auto = "auto",
        /// The program of GitHub.
        Gh = "gh",
        /// The program of GitLab.
        Glab = "glab",
    }

    /// Content of the files of git-lfs in a new lane.
    LfsContent {
        /// The whole files.
        Full = "full",
        /// The pointers that are committed.
        Pointer = "pointer",
    }

    /// Which submodules are populated in a new lane.
    SubmoduleMode {
        /// No submodule: their folders stay empty, as `git worktree add` leaves them.
        Empty = "none",
        /// The submodules of the lane's commit.
        TopLevel = "init",
        /// The submodules of the lane's commit, and their submodules recursively.
        Recursive = "recursive",
    }

    /// How a landing treats the uncommitted work of a lane.
    UncommittedPolicy {
        /// Refuses to land the lane.
        Refuse = "refuse",
        /// Commits the work first.
        Commit = "commit",
        /// Lands only the commits; the work stays in the worktree, and a snapshot of it is saved.
        Snapshot = "snapshot",
    }

    /// What happens to a task in its plan's files once the task is on the base.
    LandedTaskMarking {
        /// The task is marked as done in the files of its plan.
        Mark = "note",
        /// The task is marked as done in the files of its plan, and its task folder is archived.
        Archive = "archive",
        /// The files of the plan stay as they are.
        Nothing = "nothing",
    }
}
