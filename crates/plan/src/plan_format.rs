//! Formats of plans, by name.

use std::fmt;

/// Format of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanFormat {
    /// A plan in TOML.
    Toml,
    /// A folder for each task.
    Folders,
    /// A roadmap in Markdown.
    Roadmap,
    /// Stories in YAML.
    Stories,
    /// A plan that an agent drafted and that is retained until the user saves it.
    Draft,
}

impl PlanFormat {
    /// Returns the format with this name on the command line; none for `draft`, which cannot be chosen there.
    pub fn from_name(name: &str) -> Option<PlanFormat> {
        [PlanFormat::Toml, PlanFormat::Folders, PlanFormat::Roadmap, PlanFormat::Stories]
            .into_iter()
            .find(|format| format.name() == name)
    }

    /// Returns the name of the format, as on the command line and in batch records.
    pub fn name(self) -> &'static str {
        match self {
            PlanFormat::Toml => "toml",
            PlanFormat::Folders => "folders",
            PlanFormat::Roadmap => "roadmap",
            PlanFormat::Stories => "stories",
            PlanFormat::Draft => "draft",
        }
    }
}

impl fmt::Display for PlanFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PlanFormat::Toml => "TOML",
            PlanFormat::Folders => "task folders",
            PlanFormat::Roadmap => "Markdown",
            PlanFormat::Stories => "YAML",
            PlanFormat::Draft => "a draft",
        })
    }
}
