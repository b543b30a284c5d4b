//! What the last run of a lane was given to read.

use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::AnyLane;
use serde::Serialize;

use crate::board::error::BoardError;
use crate::lane;
use crate::lane::messages::delivered_messages::read_delivered;
use crate::ops::error::Error;

/// The prompt of a lane's last run, and what came after it.
#[derive(Debug, Serialize)]
pub struct RunPrompt {
    /// Name of the lane.
    pub lane: LaneName,
    /// Number of the run.
    pub run: RunNumber,
    /// Rules that the agent was given separately from the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
    /// The prompt.
    pub prompt: String,
    /// Messages delivered while the run was active, each in full.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "told")]
    pub delivered_messages: Vec<String>,
}

impl RunPrompt {
    /// Reads the prompt of the lane's last run from `dir`, the lane's record folder.
    ///
    /// # Errors
    /// [`BoardError::NoSuchRun`], or a file cannot be read.
    pub fn load(lane: &AnyLane, dir: &Path) -> Result<RunPrompt, Error> {
        let (lane, run) = (lane.name.clone(), lane.last_run);
        let Some(prompt) = read_if_exists(&Layout::run_prompt_in(dir, run))? else {
            return Err(BoardError::NoSuchRun { lane, run }.into());
        };
        let rules = read_if_exists(&Layout::run_rules_in(dir, run))?;
        Ok(RunPrompt { lane, run, rules, prompt, delivered_messages: read_delivered(dir, run)? })
    }
}

fn read_if_exists(path: &Path) -> Result<Option<String>, lane::Error> {
    match proq_base::regular_file::read_store_file(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(lane::Error::io("read", path)(e)),
    }
}
