//! Files that the user names: prompts, attachments, and files to write.

use std::io::Read;
use std::path::{Path, PathBuf};

use proq_base::regular_file;
use proq_base::regular_file::{LinkPolicy, MAX_STORE_FILE_BYTES};
use proq_lib::lane;

use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;

/// Returns the absolute paths of the attachments. Fails if one cannot be read or if two have the same file
/// name.
pub(crate) fn resolve_attachments(
    context: &CommandContext,
    files: &[PathBuf],
) -> Result<Vec<PathBuf>, Failure> {
    let mut out: Vec<PathBuf> = Vec::new();
    for file in files {
        let path = context.dir.join(file);
        let unreadable = unreadable(&context.dir, file);
        regular_file::open(&path, LinkPolicy::Follow).map_err(&unreadable)?;
        if out.iter().any(|other| other.file_name() == path.file_name()) {
            return Err(unreadable(std::io::Error::other("another file of this name is given along")));
        }
        out.push(path);
    }
    Ok(out)
}

/// Returns the absolute paths of files to attach to `text`. `example` is a command line with both, for the
/// hint.
///
/// # Errors
/// [`UsageError::MissingArgument`] if there are files and no text, and as [`resolve_attachments`] fails.
pub(crate) fn attachments_of_text(
    context: &CommandContext,
    files: &[PathBuf],
    text: Option<&String>,
    example: &'static str,
) -> Result<Vec<PathBuf>, Failure> {
    let attachments = resolve_attachments(context, files)?;
    match text {
        None if !attachments.is_empty() => {
            Err(UsageError::missing("attachments need a text that they belong to", example).into())
        }
        _ => Ok(attachments),
    }
}

/// Returns the text of a file, or of standard input with `-`; without a file, that of an argument.
///
/// # Errors
/// Those of [`read_text_or_stdin`].
pub(crate) fn argument_or_file(
    argument: Option<&String>,
    file: Option<&PathBuf>,
) -> Result<Option<String>, Failure> {
    file.map_or_else(|| Ok(argument.cloned()), |file| read_text_or_stdin(file).map(Some))
}

/// Reads a UTF-8 text, such as a prompt or a report, from a file, or from standard input with `-`.
///
/// # Errors
/// [`lane::Error::Io`] if it cannot be read, is too large, or is not UTF-8.
pub(crate) fn read_text_or_stdin(file: &Path) -> Result<String, Failure> {
    let is_stdin = file == Path::new("-");
    let display_path = if is_stdin { Path::new("standard input") } else { file };
    let unreadable = unreadable(Path::new(""), display_path);
    let mut bytes = Vec::new();
    if is_stdin {
        std::io::stdin().take(MAX_STORE_FILE_BYTES).read_to_end(&mut bytes).map_err(&unreadable)?;
    } else {
        bytes = regular_file::read_user_file(file, MAX_STORE_FILE_BYTES).map_err(&unreadable)?;
    }
    String::from_utf8(bytes)
        .map_err(|e| unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, e.utf8_error())))
}

/// Returns a function that describes why a file that the user named cannot be read. `dir` is the folder that a
/// relative path starts from.
fn unreadable(dir: &Path, file: &Path) -> impl Fn(std::io::Error) -> Failure {
    let (dir, file) = (dir.to_owned(), file.to_owned());
    move |error| {
        let path = dir.join(&file);
        let folder = path.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                UsageError::FileMissing { file: file.clone(), folder: folder.to_owned() }.into()
            }
            _ => lane::Error::io("read", &file)(error).into(),
        }
    }
}

/// Writes a file, and creates its parent folders.
pub(crate) fn write_file_and_folders(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let unwritable = lane::Error::io("write", path);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(&unwritable)?;
    }
    std::fs::write(path, bytes).map_err(unwritable)?;
    Ok(())
}
