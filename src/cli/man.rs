//! Owns `git proq man`: a page per command, made from the same grammar as the help.

use std::path::Path;

use clap_mangen::Man;

use super::args::Man as Args;
use super::{Done, Failure, Mistake, Session, groups};
use crate::explain::Exit;

pub(super) fn run(session: &Session, args: &Args) -> Done {
    if let Some(dir) = &args.dir {
        for (name, text) in pages() {
            write(&dir.join(&name), text.as_bytes())?;
            session.ui.say(dir.join(&name).display().to_string());
        }
        return Ok(Exit::Done);
    }
    let name = match &args.command {
        Some(command) => format!("git-proq-{command}.1"),
        None => "git-proq.1".to_owned(),
    };
    let (_, text) = pages()
        .into_iter()
        .find(|(n, _)| *n == name)
        .ok_or(Mistake::Missing { what: "there is no such command", example: "git proq man spawn" })?;
    session.ui.raw(text.as_bytes());
    Ok(Exit::Done)
}

/// Every page, as `(file name, text)`.
pub(super) fn pages() -> Vec<(String, String)> {
    console::set_colors_enabled(false);
    let mut top = groups::command();
    top.build();
    let mut out = vec![("git-proq.1".to_owned(), render(&top, "git-proq"))];
    for sub in top.get_subcommands().filter(|c| !c.is_hide_set()) {
        let name = format!("git-proq-{}", sub.get_name());
        out.push((format!("{name}.1"), render(sub, &name)));
    }
    out
}

fn render(command: &clap::Command, name: &str) -> String {
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .section("1")
        .date("")
        .manual("git-proq")
        .source(concat!("git-proq ", env!("CARGO_PKG_VERSION")));
    let mut out = Vec::new();
    // Writing to memory does not fail.
    drop(man.render(&mut out));
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes a file, with the folders above it.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |source| Mistake::Unwritable { path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::write(path, bytes).map_err(failed)?;
    Ok(())
}
