//! Owns `git proq show --prompt`: what the last run of a lane was told.

use std::io::IsTerminal;
use std::path::Path;

use serde::Serialize;

use super::{Done, Failure, Mistake, Session};
use crate::explain::Exit;
use crate::lane::told_at_work;
use crate::store::Layout;
use crate::store::records::AnyLane;

#[derive(Serialize)]
struct Answer<'a> {
    lane: &'a str,
    run: u32,
    /// What it was told apart from the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<String>,
    prompt: String,
    /// What it was told while it was at work, each time all of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    told: Vec<String>,
}

/// Prints it, from the lane's folder of records.
pub(super) fn print(session: &Session, lane: &AnyLane, dir: &Path) -> Done {
    let run = lane.attempt;
    let missing = || Mistake::NoRun { lane: lane.name.clone(), run };
    let prompt = read(&dir.join(Layout::run_prompt_in_lane(run)))?.ok_or_else(missing)?;
    let rules = read(&dir.join(Layout::run_rules_in_lane(run)))?;
    let told = told_at_work(dir, run)?;
    if session.ui.json {
        session.ui.object(Answer { lane: &lane.name, run, rules, prompt, told });
        return Ok(Exit::Done);
    }
    if let Some(rules) = rules {
        session.ui.say("apart from the prompt:");
        session.ui.text(&rules);
        session.ui.answer("");
        session.ui.say("the prompt:");
    }
    for (n, text) in std::iter::once(&prompt).chain(&told).enumerate() {
        if n > 0 {
            session.ui.answer("");
            session.ui.say("then, while it was at work:");
        }
        session.ui.text(text);
        if !std::io::stdout().is_terminal() && !text.ends_with('\n') {
            session.ui.answer("");
        }
    }
    Ok(Exit::Done)
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match crate::regular_file::record(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Mistake::Unreadable { path: path.to_owned(), source }.into()),
    }
}
