//! Owns `git proq agents`.

use serde::Serialize;

use super::{Done, Session, table};
use crate::agent::profiles;
use crate::explain::Exit;
use crate::process;

#[derive(Serialize)]
struct Row {
    name: String,
    about: String,
    program: String,
    path: Option<String>,
    args: Vec<String>,
}

#[derive(Serialize)]
struct Answer {
    agents: Vec<Row>,
}

pub(super) fn run(session: &Session) -> Done {
    let agents: Vec<Row> = profiles()
        .into_iter()
        .map(|(name, profile)| Row {
            path: process::find(&profile.program, &session.dir).ok().map(|p| p.display().to_string()),
            name,
            about: profile.about,
            program: profile.program,
            args: profile.args,
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
        vec![row.name.clone(), found, row.about.clone()]
    });
    session.ui.answer(table::render(&["AGENT", "FOUND", "WHAT IT IS"], rows.collect()));
    session.ui.hint("any other program works too: git proq spawn -n NAME -- CMD ARGS…");
    Ok(Exit::Done)
}
