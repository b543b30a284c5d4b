//! Owns writing a plan into a file of the user's: never over one that is there, unless that was said.

use std::path::{Path, PathBuf};

use super::super::{Failure, Mistake, Session};
use crate::harmless;
use crate::lane::Project;
use crate::store::{make_private, new_id, write_there};

/// Where a plan is to be written.
pub(super) struct Target {
    path: PathBuf,
    force: bool,
}

impl Target {
    /// The file that was named; one that is there already is refused, before anything is spent on a plan.
    ///
    /// # Errors
    /// [`Mistake::Exists`], [`Mistake::Unwritable`].
    pub(super) fn new(session: &Session, file: &Path, force: bool) -> Result<Target, Failure> {
        let path = session.dir.join(file);
        if path.is_dir() || path.file_name().is_none() {
            let source = std::io::ErrorKind::IsADirectory.into();
            return Err(Mistake::Unwritable { path, source }.into());
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
            let source = std::io::ErrorKind::NotFound.into();
            return Err(Mistake::Unwritable { path: folder.to_owned(), source }.into());
        }
        if !force && path.symlink_metadata().is_ok() {
            return Err(Mistake::Exists { path }.into());
        }
        Ok(Target { path, force })
    }

    /// Writes it. What is written over is kept.
    ///
    /// # Errors
    /// When somebody else wrote it meanwhile, or it cannot be written.
    pub(super) fn write(&self, session: &Session, project: &Project, text: &str) -> Result<PathBuf, Failure> {
        let path = &self.path;
        match put(path, text) {
            Ok(()) => return Ok(path.clone()),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && self.force => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(Mistake::Exists { path: path.clone() }.into());
            }
            Err(source) => return Err(Mistake::Unwritable { path: path.clone(), source }.into()),
        }
        // Where it is a link, what it leads to is what was meant.
        let place = path.canonicalize().unwrap_or_else(|_| path.clone());
        let former = std::fs::read(&place);
        let former = former.map_err(|source| Mistake::Unreadable { path: path.clone(), source })?;
        if former == text.as_bytes() {
            return Ok(path.clone());
        }
        let kept = project.store.layout().replaced(&new_id());
        make_private(kept.parent().unwrap_or(&kept))?;
        write_there(&kept, &former)?;
        let mode = place.metadata().map(|meta| meta.permissions());
        write_there(&place, text.as_bytes())?;
        // Who may read it stays as it was, as far as that can be had.
        drop(mode.and_then(|mode| std::fs::set_permissions(&place, mode)));
        session.ui.say(format!("what was there before is kept: {}", kept.display()));
        Ok(path.clone())
    }
}

/// Writes a file that is not there yet, all of it or nothing.
pub(super) fn put(path: &Path, text: &str) -> std::io::Result<()> {
    let mut out = std::fs::File::create_new(path)?;
    std::io::Write::write_all(&mut out, text.as_bytes()).inspect_err(|_| {
        // Half of one is nobody's work.
        drop(std::fs::remove_file(path));
    })
}

/// A plan in TOML with what there is to say of it, as comments.
pub(super) fn with_comments(text: &str, about: &[String], file: &str) -> String {
    let comment = |line: &str| format!("# {}", harmless::line(line)).trim_end().to_owned();
    let mut lines: Vec<String> = about.iter().flat_map(|text| text.lines()).map(comment).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_a_comment() {
        let text =
            with_comments("format = 1\n", &["a\rformat = 2\nagent = 'x'\u{2028}y".to_owned()], "p.toml");
        let plan: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(plan.len(), 1, "{text}");
        assert!(text.starts_with("# a\\rformat = 2\n# agent = 'x'\\u{2028}y\n#\n"), "{text}");
    }
}
