//! Writing a plan to a file of the user. An existing file is replaced only with `--force`.

use std::path::{Path, PathBuf};

use proq_base::terminal_text;
use proq_lib::swarm::planner::draft_error::DraftError;
use proq_lib::swarm::planner::drafts::Draft;
use proq_store::Store;
use proq_store::base::atomic::{create_private_dir, write_in_existing_dir};
use proq_store::base::id::new_id;

use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::plans::plan_args::PlanArgs;

/// File that a plan will be written to.
pub(crate) struct OutputFile {
    path: PathBuf,
    /// Whether an existing file is replaced.
    force: bool,
}

impl OutputFile {
    /// Checks the given path before an agent spends anything on a plan.
    ///
    /// # Errors
    /// [`UsageError::OutputFileExists`] if the file exists without `--force`; [`UsageError::Unwritable`] if
    /// the path is a folder or its folder does not exist.
    pub(crate) fn new(context: &CommandContext, file: &Path, force: bool) -> Result<OutputFile, Failure> {
        let path = context.dir.join(file);
        if path.is_dir() || path.file_name().is_none() {
            let source = std::io::ErrorKind::IsADirectory.into();
            return Err(UsageError::Unwritable { path, source }.into());
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
            let source = std::io::ErrorKind::NotFound.into();
            return Err(UsageError::Unwritable { path: folder.to_owned(), source }.into());
        }
        if !force && path.symlink_metadata().is_ok() {
            return Err(UsageError::OutputFileExists { path }.into());
        }
        Ok(OutputFile { path, force })
    }

    /// Writes the plan. The previous content is saved in git-proq's folder.
    ///
    /// # Errors
    /// Fails if another process created the file concurrently, or if it cannot be written.
    pub(crate) fn write(
        &self,
        context: &CommandContext,
        store: &Store,
        text: &str,
    ) -> Result<PathBuf, Failure> {
        let path = &self.path;
        match create_new_file(path, text) {
            Ok(()) => return Ok(path.clone()),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && self.force => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(UsageError::OutputFileExists { path: path.clone() }.into());
            }
            Err(source) => return Err(UsageError::Unwritable { path: path.clone(), source }.into()),
        }
        // If the path is a symbolic link, its target is written.
        let real_path = path.canonicalize().unwrap_or_else(|_| path.clone());
        let previous_content = std::fs::read(&real_path);
        let previous_content =
            previous_content.map_err(|source| UsageError::Unreadable { path: path.clone(), source })?;
        if previous_content == text.as_bytes() {
            return Ok(path.clone());
        }
        let backup_path = store.layout().overwritten_file_copy(&new_id());
        create_private_dir(backup_path.parent().unwrap_or(&backup_path))?;
        write_in_existing_dir(&backup_path, &previous_content)?;
        let permissions = real_path.metadata().map(|meta| meta.permissions());
        write_in_existing_dir(&real_path, text.as_bytes())?;
        // The permissions are preserved where that is possible.
        drop(permissions.and_then(|mode| std::fs::set_permissions(&real_path, mode)));
        context.ui.status(format!("what was there before is kept: {}", backup_path.display()));
        Ok(path.clone())
    }
}

/// Writes a file that must not exist yet. A partly written file is removed.
pub(crate) fn create_new_file(path: &Path, text: &str) -> std::io::Result<()> {
    let mut out = std::fs::File::create_new(path)?;
    std::io::Write::write_all(&mut out, text.as_bytes()).inspect_err(|_| {
        // A partly written plan is of no use.
        drop(std::fs::remove_file(path));
    })
}

/// Returns a plan in TOML with a header of comments.
pub(crate) fn with_header_comments(text: &str, header: &[String], file: &str) -> String {
    let comment = |line: &str| format!("# {}", terminal_text::escape_line(line)).trim_end().to_owned();
    let mut lines: Vec<String> = header.iter().flat_map(|text| text.lines()).map(comment).collect();
    lines.push("#".to_owned());
    lines.push(comment(&format!(
        "What it comes to: git proq plan {file}    What waits for what: git proq deps {file}"
    )));
    for line in [
        "Each phase begins when the one before is over. In a task:",
        "  needs   tasks that have to be done before",
        "  scope   the files that it is about; tasks that have some in common go one after the other",
        "  size    how much work it is: S, M or L",
        "  checks  commands that succeed when it is done",
        "All keys: git proq plan --init -",
    ] {
        lines.push(comment(line));
    }
    format!("{}\n\n{text}", lines.join("\n"))
}

/// Writes a draft's plan to the output file.
pub(crate) fn write_draft_plan(
    context: &CommandContext,
    store: &Store,
    args: &PlanArgs,
    draft: &Draft,
    target: &OutputFile,
) -> Result<PathBuf, Failure> {
    let record = &draft.record;
    let no_plan =
        || DraftError::NoPlan { name: record.name.clone(), why: record.invalid_answer_reason.clone() };
    let plan = draft.plan.as_ref().ok_or_else(no_plan)?;
    let mut header = vec![
        format!("A plan by {}, made with git proq plan --ai (draft {}).", record.agent, record.name),
        format!("Goal: {}", record.goal.trim()),
    ];
    header.extend(record.source_file.as_ref().map(|from| format!("From: {from}")));
    target.write(
        context,
        store,
        &with_header_comments(&plan.text, &header, &args.draft_args.output_file_text()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_line_ends_in_comments() {
        let text = with_header_comments(
            "format = 1\n",
            &["a\rformat = 2\nagent = 'x'\u{2028}y".to_owned()],
            "p.toml",
        );
        let plan: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(plan.len(), 1, "{text}");
        assert!(text.starts_with("# a\\rformat = 2\n# agent = 'x'\\u{2028}y\n#\n"), "{text}");
    }
}
