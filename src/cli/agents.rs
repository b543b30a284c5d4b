//! Owns `git proq agents`.

use serde::Serialize;

use super::{Done, Session, table};
use crate::agent::{Profile, profiles};
use crate::explain::Exit;
use crate::lane::Project;
use crate::process;

#[derive(Serialize)]
struct Row {
    name: String,
    path: Option<String>,
    #[serde(flatten)]
    profile: Profile,
}

#[derive(Serialize)]
struct Answer {
    agents: Vec<Row>,
}

pub(super) fn run(session: &Session) -> Done {
    let layers = Project::layers_of(None)?;
    let agents: Vec<Row> = profiles(&layers)?
        .into_iter()
        .map(|(name, profile)| Row {
            path: process::find(&profile.program, &session.dir).ok().map(|p| p.display().to_string()),
            name,
            profile,
        })
        .collect();
    if session.ui.json {
        session.ui.object(Answer { agents });
        return Ok(Exit::Done);
    }
    let rows = agents.iter().map(|row| {
        let found = match &row.path {
            Some(path) => console::style(path).green().to_string(),
            None => console::style("not installed").dim().to_string(),
        };
        vec![row.name.clone(), found, row.profile.about.clone()]
    });
    session.ui.answer(table::render(&["AGENT", "FOUND", "WHAT IT IS"], rows.collect()));
    session.ui.hint("any other program works too: git proq spawn -n NAME -- CMD ARGS…");
    Ok(Exit::Done)
}
