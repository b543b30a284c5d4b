//! Owns naming a plan on the command line, and what every command that reads one says of it.

use clap::{Args, ValueEnum, ValueHint};

use super::{Failure, Mistake, Session};
use crate::swarm::{self, Asked, Format, Found};

/// Where a plan is.
#[derive(Debug, Args)]
pub(crate) struct PlanSource {
    /// The plan: a file in TOML
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    sources: Vec<String>,
    /// What it is written in, where its name does not tell
    #[arg(long, value_name = "FORM")]
    format: Option<Form>,
}

/// The forms by the words for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A plan in TOML
    Toml,
}

impl PlanSource {
    /// Reads the plan, and says what is odd about it.
    pub(super) fn read(&self, session: &Session, example: &'static str) -> Result<Found, Failure> {
        if self.sources.is_empty() {
            return Err(Mistake::Missing { what: "no plan was named", example }.into());
        }
        let format = self.format.map(|form| match form {
            Form::Toml => Format::Toml,
        });
        let found = swarm::read(&Asked { dir: &session.dir, sources: &self.sources, format })?;
        for remark in &found.plan.remarks {
            session.ui.warn(remark.to_string());
        }
        Ok(found)
    }

    /// The sources, as they were named.
    pub(super) fn names(&self) -> &[String] {
        &self.sources
    }
}
