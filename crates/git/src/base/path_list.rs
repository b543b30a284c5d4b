//! Lists of paths in files, which a recovery reads after a crash or a power cut.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::path::nul_separated;
use crate::{Error, RepoPath};

/// Writes paths to a file for recovery after a crash or a power cut. The list is on disk before anything
/// happens to the paths. An empty list creates no file.
pub(crate) fn write_path_list(file_path: &Path, paths: &[RepoPath]) -> Result<(), Error> {
    if paths.is_empty() && !file_path.exists() {
        return Ok(());
    }
    let written = File::create(file_path).and_then(|mut file| {
        file.write_all(&nul_separated(paths))?;
        file.sync_all()
    });
    written.map_err(Error::io("write", file_path))
}

/// Reads the paths from a list file; none if the file is missing. An entry without a terminator may be the
/// start of a name, as a full disk leaves it: nothing has happened to that path, so it is skipped.
pub(crate) fn read_path_list(file_path: &Path) -> Result<Vec<RepoPath>, Error> {
    match std::fs::read(file_path) {
        Ok(text) => {
            let terminated = text.split_inclusive(|b| *b == 0).filter_map(|path| path.strip_suffix(&[0]));
            Ok(terminated.filter(|path| !path.is_empty()).map(RepoPath::new).collect())
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(Error::io("read", file_path)(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_name_without_terminator() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list");
        for (text, paths) in
            [(&b"a\0b/c\0a.js"[..], &["a", "b/c"][..]), (b"a.js", &[]), (b"a\0", &["a"]), (b"", &[])]
        {
            std::fs::write(&list, text).unwrap();
            let noted: Vec<String> = read_path_list(&list).unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(noted, paths);
        }
    }
}
