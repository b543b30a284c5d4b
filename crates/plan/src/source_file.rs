//! Bounded reading of a plan's source files.

use std::path::Path;

use super::plan_error::PlanError;

/// Maximum size of a plan's file, in MiB.
const MAX_FILE_MIB: u64 = 4;

/// Reads a UTF-8 file of limited size, without its byte order mark. Fails if the text contains a NUL.
pub fn read_text(path: &Path) -> Result<String, PlanError> {
    let unreadable = |source| PlanError::Unreadable { path: path.to_owned(), source };
    let max_bytes = MAX_FILE_MIB * 1024 * 1024;
    let bytes =
        proq_base::regular_file::read_user_file(path, max_bytes).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                PlanError::SourceNotFound { source_name: path.display().to_string(), hint: String::new() }
            }
            std::io::ErrorKind::FileTooLarge => {
                PlanError::FileTooLarge { path: path.to_owned(), limit_mib: MAX_FILE_MIB }
            }
            _ => unreadable(source),
        })?;
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let text = text.ok_or_else(|| PlanError::NotUtf8 { path: path.to_owned() })?;
    Ok(text.strip_prefix('\u{feff}').map(ToOwned::to_owned).unwrap_or(text))
}
