//! Owns reading git's configuration.

use super::Repo;

impl Repo {
    /// A git setting that is a boolean; none when unset or not a boolean.
    pub(crate) fn setting_bool(&self, key: &str) -> Option<bool> {
        self.gix.config_snapshot().boolean(key)
    }

    /// All `proq.*` settings in git's order (later wins), as `(key without "proq.", value)`.
    pub(crate) fn proq_settings(&self) -> Vec<(String, String)> {
        let snapshot = self.gix.config_snapshot();
        let mut out = Vec::new();
        for section in snapshot.sections_by_name("proq").into_iter().flatten() {
            let sub = section.header().subsection_name().map(ToString::to_string);
            for name in section.body().value_names() {
                let key = match &sub {
                    Some(sub) => format!("{sub}.{}", name.to_lowercase()),
                    None => name.to_lowercase(),
                };
                for value in section.body().values(name.as_ref()) {
                    out.push((key.clone(), value.to_string()));
                }
            }
        }
        out
    }
}
