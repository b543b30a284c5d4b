//! Owns the settings of what kind of checkout a new lane has: where it lies, and which files are in it.

/// Where lanes lie that nobody wants elsewhere.
pub(crate) const INSIDE: &str = ".proq-worktrees/{lane}";

/// The kind of checkout that a new lane has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Checkouts {
    /// `lane.location`.
    pub(crate) location: String,
    /// `lane.lfs`: files of git-lfs stay pointers.
    pub(crate) pointers: bool,
    /// `lane.sparse`: lanes with a scope have only its folders.
    pub(crate) sparse: bool,
    /// `lane.submodules`.
    pub(crate) submodules: Submodules,
}

/// Which submodules a new lane has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Submodules {
    /// Empty folders, as git leaves them.
    #[default]
    Empty,
    /// Those of its commit.
    Own,
    /// Those of its submodules, too.
    All,
}

impl Checkouts {
    /// Reads the values by their names.
    pub(super) fn of(text: &dyn Fn(&str) -> String) -> Checkouts {
        let submodules = match text("lane.submodules").as_str() {
            "init" => Submodules::Own,
            "recursive" => Submodules::All,
            _ => Submodules::Empty,
        };
        Checkouts {
            location: text("lane.location"),
            pointers: text("lane.lfs") == "pointer",
            sparse: text("lane.sparse") == "true",
            submodules,
        }
    }
}

/// Whether a value says where lanes lie: the last part names the lane, once, and no other part does. So no two lanes lie in
/// one place, and none in another.
pub(super) fn is_location(value: &str) -> bool {
    const LANE: &str = "{lane}";
    let (above, last) = value.rsplit_once('/').unwrap_or(("", value));
    let bare = value.replace(LANE, "").replace("{repo}", "");
    last.matches(LANE).count() == 1
        && !above.contains(LANE)
        && !bare.contains(['{', '}'])
        && !value.contains(char::is_control)
        && !value.starts_with('-')
        && (!value.starts_with('~') || value.starts_with("~/"))
        && above.split('/').skip(1).all(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_names_the_lane_once_and_last() {
        for good in
            [INSIDE, "../{repo}.{lane}", "/srv/lanes/{repo}-{lane}", "~/lanes/{repo}/{lane}", "/{lane}x"]
        {
            assert!(is_location(good), "{good}");
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
            assert!(!is_location(bad), "{bad}");
        }
    }
}
