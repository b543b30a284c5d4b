//! Settings of the lane pool: `pool.size` and `pool.keep`.

/// Which folders of landed lanes new lanes may reuse, and which ignored files stay in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolSettings {
    /// Number of most recent folders that are available for reuse; 0 for none.
    pub size: usize,
    /// `.gitignore` patterns of ignored files that stay in a reused folder.
    pub keep_patterns: Vec<String>,
}

impl PoolSettings {
    /// Creates the settings from `value_of`, which returns the text of a setting by name.
    pub(super) fn from_values(value_of: &dyn Fn(&str) -> String) -> PoolSettings {
        // A pattern may begin or end with white space.
        let patterns = value_of("pool.keep");
        PoolSettings {
            size: value_of("pool.size").parse().unwrap_or_default(),
            keep_patterns: patterns
                .lines()
                .filter(|line| !line.trim().is_empty())
                .map(ToOwned::to_owned)
                .collect(),
        }
    }
}
