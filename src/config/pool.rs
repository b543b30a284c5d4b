//! Owns the settings of what becomes of landed lanes' folders: `pool.size` and `pool.keep`.

/// Which folders of landed lanes new ones may get, and what stays in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pool {
    /// How many of the youngest.
    pub(crate) size: usize,
    /// Patterns of what stays, as in `.gitignore`.
    pub(crate) keep: Vec<String>,
}

impl Pool {
    /// Reads the values by their names.
    pub(super) fn of(text: &dyn Fn(&str) -> String) -> Pool {
        // White space may be part of a pattern.
        let keep = text("pool.keep");
        Pool {
            size: text("pool.size").parse().unwrap_or_default(),
            keep: keep.lines().filter(|line| !line.trim().is_empty()).map(ToOwned::to_owned).collect(),
        }
    }
}
