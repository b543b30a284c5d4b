//! Location of new lanes: its default, and the format of the setting.

/// Default of `lane.location`: lanes are folders inside the main checkout.
pub const DEFAULT_LANE_LOCATION: &str = ".proq-worktrees/{lane}";

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
