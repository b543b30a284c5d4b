//! `cargo xtask documents`: writes the parts of the documents that repeat what the program prints.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::run_env::{build_program, create_folder};

mod generated;
mod picture;

/// Start of the name of the folder that the program runs in.
const RUN_FOLDER_PREFIX: &str = "proq-documents-";

/// Write the parts of README.md and docs/ that repeat what the program prints
///
/// These are the demo's transcript, its picture (docs/demo.svg), and the tables of commands, exit codes and settings.
#[derive(Debug, Clone, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Write nothing; end with 1 when a document is out of date
    #[arg(long)]
    check: bool,
    /// The program; by default it is built here first
    #[arg(long, value_name = "PATH")]
    proq: Option<PathBuf>,
}

pub(crate) fn main(args: &Args) -> ExitCode {
    match update(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn update(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let program = build_program(args.proq.as_deref(), false)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = create_folder(RUN_FOLDER_PREFIX, RUN_FOLDER_PREFIX)?;
    let init = Command::new("git").args(["init", "--quiet"]).current_dir(&folder).status()?;
    let printed = if init.success() { print(&program, &folder) } else { Err("git init failed".into()) };
    std::fs::remove_dir_all(&folder)?;
    let (printed, demo) = printed?;
    for page in generated::PAGES {
        let old = std::fs::read_to_string(root.join(page))?;
        let new = generated::with_new_parts(&old, &printed).map_err(|error| format!("{page}: {error}"))?;
        replace(args, &root.join(page), &old, &new)?;
    }
    let path = root.join(generated::PICTURE);
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    replace(args, &path, &old, &picture::svg(&demo))
}

/// Returns what documents repeat, and the demo's output with colors.
fn print(program: &Path, folder: &Path) -> Result<(generated::Printed, String), Box<dyn std::error::Error>> {
    let demo = output(program, folder, &["demo"])?;
    let printed = generated::Printed {
        man_page: output(program, folder, &["man"])?,
        settings: serde_json::from_str(&output(program, folder, &["config", "list", "--json"])?)?,
        demo: picture::without_colors(&demo),
    };
    Ok((printed, demo))
}

/// Writes a document, unless only words differ that differ in each run, or `--check` refuses it.
fn replace(args: &Args, path: &Path, old: &str, new: &str) -> Result<(), Box<dyn std::error::Error>> {
    if generated::mask(old) == generated::mask(new) {
        return Ok(());
    }
    if args.check {
        let path = path.display();
        return Err(format!("{path} is out of date\nhint: write it: cargo xtask documents").into());
    }
    Ok(std::fs::write(path, new)?)
}

/// Runs the program in an empty repository, without settings of the user, and returns what it prints, with
/// colors.
fn output(program: &Path, folder: &Path, args: &[&str]) -> Result<String, Box<dyn std::error::Error>> {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
    command
        .env("TZ", "UTC")
        .env("CLICOLOR_FORCE", "1")
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .env_remove("XDG_CONFIG_HOME");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PROQ_")) {
        command.env_remove(name);
    }
    let out = command.output()?;
    if !out.status.success() {
        return Err(format!("git-proq {args:?}: {}", String::from_utf8_lossy(&out.stderr)).into());
    }
    Ok(String::from_utf8(out.stdout)?)
}
