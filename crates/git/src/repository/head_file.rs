//! Reader of the file `HEAD` in a git directory. The file holds a commit id or a ref name, or is a symbolic
//! link to the ref, as in old repositories and with `core.preferSymlinkRefs`.

use std::path::{Path, PathBuf};

use proq_base::regular_file;

use super::ownership;
use super::ownership::Trust;
use crate::Error;
use crate::base::unusable::UnusableRepoError;
use crate::program::command::Program;

/// Reads HEAD of a git directory without the line end: `ref: ` and a ref name, or a commit id. A symbolic
/// link counts as the ref name that it points to, whether or not that ref has a file, as in git.
pub(crate) fn read_head(git_dir: &Path) -> std::io::Result<String> {
    let file = git_dir.join("HEAD");
    if let Some(name) = symlink_ref(&file) {
        return Ok(format!("ref: {name}"));
    }
    let text = std::fs::read_to_string(&file)?;
    Ok(text.trim_end().to_owned())
}

/// Returns the text of HEAD for comparison or display, with bytes that are not UTF-8 replaced; empty if HEAD
/// cannot be read.
pub(crate) fn read_head_lossy(git_dir: &Path) -> String {
    read_head(git_dir).unwrap_or_else(|_| {
        let bytes = std::fs::read(git_dir.join("HEAD")).unwrap_or_default();
        String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned()
    })
}

/// Returns the ref that the file of a symbolic ref points to; `None` for any other ref.
pub(crate) fn read_symbolic_ref(file: &Path) -> Option<String> {
    symlink_ref(file).or_else(|| {
        let text = regular_file::read_store_text(file).ok()?;
        Some(text.strip_prefix("ref:")?.trim().to_owned())
    })
}

/// Returns whether a folder has a HEAD, as a git directory does.
pub fn has_head(dir: &Path) -> bool {
    let file = dir.join("HEAD");
    file.is_file() || symlink_ref(&file).is_some()
}

/// Returns the ref that a symbolic link points to, by git's rule: the link target itself is the name,
/// starting with `refs/`.
fn symlink_ref(file: &Path) -> Option<String> {
    let name = std::fs::read_link(file).ok()?.into_os_string().into_string().ok()?;
    let is_ref = name.starts_with("refs/") && gix::validate::reference::name(name.as_str().into()).is_ok();
    is_ref.then_some(name)
}

/// Opens a linked worktree that git finds from `dir` and gitoxide does not, because its HEAD is a symbolic
/// link to a ref without a file there. Returns `None` if that is not the reason.
///
/// # Errors
/// Returns [`UnusableRepoError::SymlinkHead`] for the HEAD of the main checkout.
pub(crate) fn open_with_symlink_head(
    program: &Program,
    dir: &Path,
) -> Result<Option<gix::Repository>, Error> {
    let Some(git_dir) = rev_parse_path(program, dir, "--git-dir") else { return Ok(None) };
    let Some(common_dir) = rev_parse_path(program, dir, "--git-common-dir") else { return Ok(None) };
    reject_symlink_head(&common_dir)?;
    if symlink_ref(&git_dir.join("HEAD")).is_none() || git_dir == common_dir {
        return Ok(None);
    }
    // Git opened the repository, so git trusts it.
    let options = ownership::open_options(Trust::SafeDirectory).full.open_path_as_is(true);
    let Ok(main) = gix::open_opts(&common_dir, options) else { return Ok(None) };
    let worktrees = main.worktrees().unwrap_or_default();
    let found = worktrees
        .into_iter()
        .find(|worktree| worktree.git_dir().canonicalize().is_ok_and(|path| path == git_dir));
    Ok(found.and_then(|worktree| worktree.into_repo().ok()))
}

/// Rejects the repository at `common_dir` if its HEAD is a link to a ref that has no file.
///
/// # Errors
/// Returns [`UnusableRepoError::SymlinkHead`].
pub(crate) fn reject_symlink_head(common_dir: &Path) -> Result<(), Error> {
    let file = common_dir.join("HEAD");
    match symlink_ref(&file) {
        Some(name) if !file.exists() => Err(Error::Unusable(UnusableRepoError::SymlinkHead {
            git_dir: common_dir.to_owned(),
            ref_name: name,
        })),
        _ => Ok(()),
    }
}

/// Returns the path that `git rev-parse` prints for `option` in `dir`, with links resolved; `None` if git
/// finds no repository or does not trust it.
fn rev_parse_path(program: &Program, dir: &Path, option: &str) -> Option<PathBuf> {
    let mut out = program.command_in(dir).args(["rev-parse", option]).run().ok()?;
    out.stdout.pop_if(|last| *last == b'\n');
    crate::RepoPath::new(out.stdout).to_fs_path(dir).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn reads_ref_from_symlink_head() {
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
    fn replaces_bytes_that_are_not_utf8() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("HEAD"), b"ref: refs/heads/caf\xe9\n").unwrap();
        assert!(read_head(dir.path()).is_err());
        assert_eq!(read_head_lossy(dir.path()), "ref: refs/heads/caf\u{fffd}");
        assert_eq!(read_head_lossy(&dir.path().join("nowhere")), "");
    }
}
