//! Files of the user that plans are written from and to. An existing file is replaced only on request.

use std::path::{Path, PathBuf};

use proq_base::explain::Explain;
use proq_base::terminal_text;
use proq_plan::toml_plan;
use proq_plan::toml_plan::write;
use proq_store::base::atomic::{create_private_dir, write_in_existing_dir};
use proq_store::base::id::new_id;
use proq_store::paths::path_form;
use serde::Serialize;

use super::draft_view::resolve_draft;
use super::named_plan::NamedPlan;
use crate::lane;
use crate::lane::Project;
use crate::ops::error::Error;
use crate::swarm::planner::draft_error::DraftError;
use crate::swarm::planner::draft_session;
use crate::swarm::planner::drafts::Draft;
use crate::swarm::planner::prompt::SourceFile;

/// Maximum size of a file that a plan is written from, in bytes.
const MAX_SOURCE_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Reason why a file of a plan cannot be read or written.
#[derive(Debug, thiserror::Error, Explain)]
pub enum PlanFileError {
    /// The file that a template should be written to already exists.
    #[error("cannot write {}: it exists already", path.display())]
    #[hint("write another file: git proq plan --init plan-2.toml")]
    TemplateExists {
        /// Path of the file.
        path: PathBuf,
    },
    /// The output file already exists and is not to be replaced.
    #[error("cannot write {}: it exists already", path.display())]
    #[hint("name another file, or add --force to replace this one")]
    OutputExists {
        /// Path of the file.
        path: PathBuf,
    },
}

/// File that a plan will be written to.
#[derive(Debug, Clone)]
pub struct OutputFile {
    path: PathBuf,
    /// The path as it was given, for messages.
    pub display_name: String,
    /// Whether an existing file is replaced.
    force: bool,
}

impl OutputFile {
    /// Checks a path that was given in the folder `dir`, before an agent spends anything on a plan. `force` is
    /// whether an existing file is replaced.
    ///
    /// # Errors
    /// [`PlanFileError::OutputExists`]; [`lane::Error::Io`] if the path is a folder or its folder does not
    /// exist.
    pub fn check(dir: &Path, file: &Path, force: bool) -> Result<OutputFile, Error> {
        let path = dir.join(file);
        if path.is_dir() || path.file_name().is_none() {
            let source = std::io::ErrorKind::IsADirectory.into();
            return Err(lane::Error::io("write", &path)(source).into());
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
            let source = std::io::ErrorKind::NotFound.into();
            return Err(lane::Error::io("write", folder)(source).into());
        }
        if !force && path.symlink_metadata().is_ok() {
            return Err(PlanFileError::OutputExists { path }.into());
        }
        let display_name = terminal_text::escape_line(&file.display().to_string());
        Ok(OutputFile { path, display_name, force })
    }

    /// Writes the text, and returns the path. The previous content is saved in git-proq's folder.
    ///
    /// # Errors
    /// Fails if another process created the file concurrently, or if it cannot be written.
    fn write(&self, project: &Project, text: &str) -> Result<PathBuf, Error> {
        let path = self.path.clone();
        match create_new_file(&path, text) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && self.force => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(PlanFileError::OutputExists { path }.into());
            }
            Err(source) => return Err(lane::Error::io("write", &path)(source).into()),
        }
        // If the path is a symbolic link, its target is written.
        let real_path = path.canonicalize().unwrap_or_else(|_| path.clone());
        let previous_content = std::fs::read(&real_path).map_err(lane::Error::io("read", &path))?;
        if previous_content == text.as_bytes() {
            return Ok(path);
        }
        let backup_path = project.store.layout().overwritten_file_copy(&new_id());
        create_private_dir(backup_path.parent().unwrap_or(&backup_path))?;
        write_in_existing_dir(&backup_path, &previous_content)?;
        let permissions = real_path.metadata().map(|meta| meta.permissions());
        write_in_existing_dir(&real_path, text.as_bytes())?;
        // The permissions are preserved where that is possible.
        drop(permissions.and_then(|mode| std::fs::set_permissions(&real_path, mode)));
        project.listener.step_done(format!("saved the previous file as {}", backup_path.display()));
        Ok(path)
    }

    /// Writes the plan of a draft, and returns the path.
    ///
    /// # Errors
    /// [`DraftError::NoPlan`], or an error when the file cannot be written.
    pub(super) fn write_draft(&self, project: &Project, draft: &Draft) -> Result<PathBuf, Error> {
        let record = &draft.record;
        let no_plan =
            || DraftError::NoPlan { name: record.name.clone(), why: record.invalid_answer_reason.clone() };
        let plan = draft.plan.as_ref().ok_or_else(no_plan)?;
        let mut header = vec![
            format!("A plan by {}, made with git proq plan --ai (draft {}).", record.agent, record.name),
            format!("Goal: {}", record.goal.trim()),
        ];
        header.extend(record.source_file.as_ref().map(|from| format!("From: {from}")));
        self.write(project, &with_header_comments(&plan.text, &header, &self.display_name))
    }
}

/// A file that was written. It serializes to the JSON output.
#[derive(Debug, Clone, Serialize)]
pub struct SavedPlan {
    /// Path of the file.
    pub saved: String,
}

/// Writes a draft, or a plan in any other format, as a plan in TOML. Without sources it is the only draft.
///
/// # Errors
/// Fails when there is no such plan, or the file cannot be written.
pub fn save_plan(project: &Project, plan: &NamedPlan, target: &OutputFile) -> Result<SavedPlan, Error> {
    let path = if plan.sources.is_empty() || plan.draft_name(&project.store).is_some() {
        let draft = draft_session::refresh_draft(project, &resolve_draft(project, plan)?)?.draft;
        target.write_draft(project, &draft)?
    } else {
        let text = write::plan_to_toml(&plan.read(project)?.plan);
        let header = [format!("From {}.", plan.sources.join(" "))];
        target.write(project, &with_header_comments(&text, &header, &target.display_name))?
    };
    Ok(SavedPlan { saved: path_form::to_text(&path) })
}

/// Reads a file that a plan is to be written from; `file` was given in the folder `dir`.
///
/// # Errors
/// [`lane::Error::Io`], also for a file that is too large or no text.
pub fn read_source_file(dir: &Path, file: &Path) -> Result<SourceFile, lane::Error> {
    let unreadable = lane::Error::io("read", file);
    let bytes = proq_base::regular_file::read_user_file(&dir.join(file), MAX_SOURCE_FILE_BYTES)
        .map_err(&unreadable)?;
    let is_text = |text: &String| !text.contains('\0');
    let text = String::from_utf8(bytes).ok().filter(is_text);
    let text = text.ok_or_else(|| unreadable(std::io::Error::other("it is not UTF-8 text")))?;
    Ok(SourceFile { name: terminal_text::escape_line(&file.display().to_string()), text })
}

/// Writes a plan to begin with to a new file, and returns the path in the form of the JSON output.
///
/// # Errors
/// [`PlanFileError::TemplateExists`], [`lane::Error::Io`].
pub fn write_template(path: &Path) -> Result<String, Error> {
    create_new_file(path, toml_plan::PLAN_TEMPLATE).map_err(|source| match source.kind() {
        std::io::ErrorKind::AlreadyExists => PlanFileError::TemplateExists { path: path.to_owned() }.into(),
        _ => Error::from(lane::Error::io("write", path)(source)),
    })?;
    Ok(path_form::to_text(path))
}

/// Writes a file that must not exist yet. A partly written file is removed.
fn create_new_file(path: &Path, text: &str) -> std::io::Result<()> {
    let mut out = std::fs::File::create_new(path)?;
    std::io::Write::write_all(&mut out, text.as_bytes()).inspect_err(|_| {
        // A partly written plan is of no use.
        drop(std::fs::remove_file(path));
    })
}

/// Returns a plan in TOML with a header of comments.
fn with_header_comments(text: &str, header: &[String], file: &str) -> String {
    let comment = |line: &str| format!("# {}", terminal_text::escape_line(line)).trim_end().to_owned();
    let mut lines: Vec<String> = header.iter().flat_map(|text| text.lines()).map(comment).collect();
    lines.push("#".to_owned());
    lines.push(comment(&format!(
        "Show the plan: git proq plan {file}    Show its dependencies: git proq deps {file}"
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
