//! Settings of a new lane's worktree: its location, and which files git-proq checks out in it.

/// Default of `lane.location`: lanes are folders inside the main checkout.
pub const DEFAULT_LANE_LOCATION: &str = ".proq-worktrees/{lane}";

/// Location and contents of the worktree that a new lane gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckoutSettings {
    /// Setting `lane.location`: a path pattern with `{lane}` in its last component.
    pub location: String,
    /// Whether git-lfs files stay pointers (setting `lane.lfs`).
    pub lfs_pointers: bool,
    /// Whether lanes with a scope check out only its folders (setting `lane.sparse`).
    pub sparse: bool,
    /// Setting `lane.submodules`.
    pub submodules: SubmoduleMode,
}

/// Which submodules are populated in a new lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SubmoduleMode {
    /// No submodule: their folders stay empty, as `git worktree add` leaves them.
    #[default]
    Empty,
    /// The submodules of the lane's commit.
    TopLevel,
    /// The submodules of the lane's commit, and their submodules recursively.
    Recursive,
}

impl CheckoutSettings {
    /// Creates the settings from `value_of`, which returns the text of a setting by name.
    pub(super) fn from_values(value_of: &dyn Fn(&str) -> String) -> CheckoutSettings {
        let submodules = match value_of("lane.submodules").as_str() {
            "init" => SubmoduleMode::TopLevel,
            "recursive" => SubmoduleMode::Recursive,
            _ => SubmoduleMode::Empty,
        };
        CheckoutSettings {
            location: value_of("lane.location"),
            lfs_pointers: value_of("lane.lfs") == "pointer",
            sparse: value_of("lane.sparse") == "true",
            submodules,
        }
    }
}

/// Returns whether a value is a valid location pattern: its last component contains `{lane}` exactly once,
/// and no other component does. No two lanes then share a folder, and none lies inside another.
pub(super) fn is_lane_location(value: &str) -> bool {
    const LANE_PLACEHOLDER: &str = "{lane}";
    let (parent, last) = value.rsplit_once('/').unwrap_or(("", value));
    let literal = value.replace(LANE_PLACEHOLDER, "").replace("{repo}", "");
    last.matches(LANE_PLACEHOLDER).count() == 1
        && !parent.contains(LANE_PLACEHOLDER)
        && !literal.contains(['{', '}'])
        && !value.contains(char::is_control)
        && !value.starts_with('-')
        && (!value.starts_with('~') || value.starts_with("~/"))
        && parent.split('/').skip(1).all(|component| !component.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn location_names_lane_once_and_last() {
        for good in [
            DEFAULT_LANE_LOCATION,
            "../{repo}.{lane}",
            "/srv/lanes/{repo}-{lane}",
            "~/lanes/{repo}/{lane}",
            "/{lane}x",
        ] {
            assert!(is_lane_location(good), "{good}");
        }
        for bad in [
            "",
            "lanes",
            "../{repo}",
            "{lane}/tree",
            "{lane}/{lane}",
            "../{lane}{lane}",
            "../{lane}/",
            "../{branch}/{lane}",
            "../{lane",
            "../{{lane}}",
            "~me/{lane}",
            "-{lane}",
            "../a\n{lane}",
            "a//{lane}",
        ] {
            assert!(!is_lane_location(bad), "{bad}");
        }
    }
}
