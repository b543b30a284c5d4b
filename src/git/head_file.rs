//! Owns reading the file `HEAD` of a git directory: it holds a commit's id or a ref's name, or is a symbolic link to the ref, as
//! old repositories have it and `core.preferSymlinkRefs` still makes it.

use std::path::{Path, PathBuf};

use super::ownership::{self, Trust};
use super::{Error, Program, Unusable};
use crate::regular_file;

/// What HEAD of a git directory says, without the line's end: `ref: ` and the name of a ref, or the id of a commit. A link counts as
/// the name that it leads to, whether or not that ref has a file of its own there, as with git.
pub(super) fn read_head(git_dir: &Path) -> std::io::Result<String> {
    let file = git_dir.join("HEAD");
    if let Some(name) = linked_ref(&file) {
        return Ok(format!("ref: {name}"));
    }
    let text = std::fs::read_to_string(&file)?;
    Ok(text.trim_end().to_owned())
}

/// Reads HEAD of a git directory for a comparison or for display: bytes that are no UTF-8 are replaced. Empty where it cannot be read.
pub(super) fn head_lossy(git_dir: &Path) -> String {
    read_head(git_dir).unwrap_or_else(|_| {
        let bytes = std::fs::read(git_dir.join("HEAD")).unwrap_or_default();
        String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned()
    })
}

/// The ref that the file of another ref names, where that is a symbolic ref.
pub(super) fn named_by(file: &Path) -> Option<String> {
    linked_ref(file).or_else(|| {
        let text = regular_file::record_text(file).ok()?;
        Some(text.strip_prefix("ref:")?.trim().to_owned())
    })
}

/// Whether a folder has a HEAD, as a git directory does.
pub(super) fn has_head(dir: &Path) -> bool {
    let file = dir.join("HEAD");
    file.is_file() || linked_ref(&file).is_some()
}

/// The ref that a file is a link to, by git's rule: the link itself says the name, from `refs/` on.
fn linked_ref(file: &Path) -> Option<String> {
    let name = std::fs::read_link(file).ok()?.into_os_string().into_string().ok()?;
    let is_ref = name.starts_with("refs/") && gix::validate::reference::name(name.as_str().into()).is_ok();
    is_ref.then_some(name)
}

/// Opens a repository that git finds from `dir` and the library does not, for a HEAD that is a link to a ref without a file of its own:
/// that of a linked worktree always is. None where that is not the reason.
///
/// # Errors
/// [`Unusable::LinkedHead`] for the HEAD of the main checkout.
pub(super) fn open_behind_link(program: &Program, dir: &Path) -> Result<Option<gix::Repository>, Error> {
    let Some(git_dir) = asked(program, dir, "--git-dir") else { return Ok(None) };
    let Some(common) = asked(program, dir, "--git-common-dir") else { return Ok(None) };
    refuse_linked(&common)?;
    if linked_ref(&git_dir.join("HEAD")).is_none() || git_dir == common {
        return Ok(None);
    }
    // Git was asked, so it trusts the repository.
    let options = ownership::options(Trust::Excepted).full.open_path_as_is(true);
    let Ok(main) = gix::open_opts(&common, options) else { return Ok(None) };
    let all = main.worktrees().unwrap_or_default();
    let found = all.into_iter().find(|one| one.git_dir().canonicalize().is_ok_and(|path| path == git_dir));
    Ok(found.and_then(|one| one.into_repo().ok()))
}

/// Refuses the repository at `common` if its own HEAD is a link to a ref that has no file of its own.
///
/// # Errors
/// [`Unusable::LinkedHead`].
pub(super) fn refuse_linked(common: &Path) -> Result<(), Error> {
    let file = common.join("HEAD");
    match linked_ref(&file) {
        Some(name) if !file.exists() => {
            Err(Error::Unusable(Unusable::LinkedHead { git_dir: common.to_owned(), name }))
        }
        _ => Ok(()),
    }
}

/// A folder of the repository that git finds from `dir`; none where it finds none, or does not trust it.
fn asked(program: &Program, dir: &Path, which: &str) -> Option<PathBuf> {
    let mut out = program.in_dir(dir).args(["rev-parse", which]).run().ok()?;
    out.stdout.pop_if(|last| *last == b'\n');
    super::RepoPath::new(out.stdout).under(dir).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_is_the_ref_that_it_names_and_anything_else_is_what_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let (head, other) = (dir.path().join("HEAD"), dir.path().join("other"));
        assert!(read_head(dir.path()).is_err() && !has_head(dir.path()));
        symlink("refs/heads/packed", &head).unwrap();
        assert_eq!(read_head(dir.path()).unwrap(), "ref: refs/heads/packed");
        assert!(has_head(dir.path()));
        std::fs::remove_file(&head).unwrap();
        std::fs::write(&other, "ref: refs/heads/main\n").unwrap();
        symlink("other", &head).unwrap();
        assert_eq!(read_head(dir.path()).unwrap(), "ref: refs/heads/main");
        std::fs::remove_file(&head).unwrap();
        symlink("refs/heads/a..b", &head).unwrap();
        assert!(read_head(dir.path()).is_err() && !has_head(dir.path()));
    }

    #[test]
    fn a_name_that_is_no_utf8_is_a_name() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("HEAD"), b"ref: refs/heads/caf\xe9\n").unwrap();
        assert!(read_head(dir.path()).is_err());
        assert_eq!(head_lossy(dir.path()), "ref: refs/heads/caf\u{fffd}");
        assert_eq!(head_lossy(&dir.path().join("nowhere")), "");
    }
}
