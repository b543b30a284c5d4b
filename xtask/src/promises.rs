//! `cargo xtask promises`: writes `docs/promises.md`, the table of promises with the tests that hold them.

use std::path::Path;
use std::process::ExitCode;

mod table;

/// Write docs/promises.md from docs/promises.toml and the marks on tests
///
/// A mark is a doc comment on a test, `/// Promise: section/id`; several ids are separated by commas. Ends with 1 when a mark
/// names no promise or is on no test, or when a promise has no test.
#[derive(Debug, Clone, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Write nothing; end with 1 when the page is out of date
    #[arg(long)]
    check: bool,
}

pub(crate) fn main(args: &Args) -> ExitCode {
    match update(args.check) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn update(only_check: bool) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = root.join("docs/promises.md");
    let page = table::page(&root)?;
    if std::fs::read_to_string(&path).is_ok_and(|old| old == page) {
        return Ok(());
    }
    if only_check {
        return Err("docs/promises.md is out of date\nhint: write it: cargo xtask promises".to_owned());
    }
    std::fs::write(&path, page).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
