//! Owns giving new worktrees their files, and keeping for the next time what was learned on the way.

use std::path::Path;

use super::{Error, Project};
use crate::git::{self, Filled, Oid, Sizes, SoFar, Tell};
use crate::store::write_cache;

/// Fills worktrees that have no files yet with those of the commit that they are at.
///
/// # Errors
/// When a file cannot be written, or the user does not wait for it any more. What is there by then is the caller's to remove.
pub(super) fn fill(project: &Project, dirs: &[&Path], commit: Oid) -> Result<Filled, Error> {
    let file = project.store.layout().sizes();
    let mut sizes = Sizes::read(&crate::regular_file::record(&file).unwrap_or_default());
    let whose = match dirs {
        [dir] => dir.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        dirs => format!("{} lanes", dirs.len()),
    };
    let repo = &project.repo;
    let filled = telling(project, &whose, |tell| {
        repo.fill_worktrees(dirs, commit, &mut sizes, &crate::interrupt::is_quiet, tell)
    })?;
    if let Some(bytes) = sizes.changed() {
        drop(write_cache(&file, bytes));
    }
    repo.sync_indexes(dirs)?;
    Ok(filled)
}

/// Does `work`, which makes files, and shows how far it has come where that takes long.
///
/// # Errors
/// Those of the work; that it was interrupted, where it was.
pub(super) fn telling<T>(
    project: &Project,
    whose: &str,
    work: impl FnOnce(Tell<'_>) -> Result<T, git::Error>,
) -> Result<T, Error> {
    let done = work(&|so_far| project.listener.progress(in_words(whose, so_far)));
    project.listener.progress("");
    if done.is_err() {
        // A git that was ended says no more than that.
        crate::interrupt::check()?;
    }
    Ok(done?)
}

/// How far it has come, in a line.
fn in_words(whose: &str, so_far: &SoFar) -> String {
    let SoFar { files: (made, files), bytes: (written, bytes), filtered } = so_far;
    let what = if *filtered { " through a filter" } else { "" };
    let line = format!("{whose}: {} of {} files{what}", grouped(*made), grouped(*files));
    let megabytes = |bytes: &u64| bytes / 1_000_000;
    if megabytes(bytes) == 0 {
        return line;
    }
    format!("{line}, {} of {} MB", megabytes(written), megabytes(bytes))
}

/// A number with a comma between thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let (first, rest) = digits.split_at((digits.len() - 1) % 3 + 1);
    let mut out = first.to_owned();
    for group in rest.as_bytes().chunks(3) {
        out.push(',');
        out.push_str(&String::from_utf8_lossy(group));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_short() {
        let so_far = |files, bytes| in_words("x", &SoFar { files, bytes, filtered: false });
        assert_eq!(
            so_far((12_345, 38_570), (83_999_999, 261_000_000)),
            "x: 12,345 of 38,570 files, 83 of 261 MB"
        );
        assert_eq!(so_far((0, 600), (0, 2400)), "x: 0 of 600 files");
        let filtered = SoFar { files: (1, 2), bytes: (0, 0), filtered: true };
        assert_eq!(in_words("x", &filtered), "x: 1 of 2 files through a filter");
        assert_eq!([7, 1000, 1_234_567].map(grouped), ["7", "1,000", "1,234,567"]);
    }
}
