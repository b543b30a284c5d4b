//! Refusal of main checkouts that git's settings hide, move to where git does not find the repository, or
//! share among all worktrees.

use std::path::{Path, PathBuf};

use gix::index::decode::Options;

use super::git_dir::git_dir_at;
use crate::base::unusable::UnusableRepoError;
use crate::{Error, RepoPath};

/// Refuses a repository that has a checkout although it is configured as bare. If a branch moved there, the
/// checkout's files would stay behind, and the next commit would revert what has landed. A repository from
/// `git clone --bare` has no index.
///
/// # Errors
/// Returns [`UnusableRepoError::BareWithCheckout`].
pub(crate) fn refuse_bare_with_checkout(
    gix: &gix::Repository,
    common_dir: &Path,
    dir: &Path,
) -> Result<(), Error> {
    let is_top = |top: &&Path| git_dir_at(top).is_some_and(|git_dir| is_same_dir(&git_dir, common_dir));
    let Some(top) = common_dir.parent().into_iter().chain(dir.ancestors()).find(is_top) else {
        return Ok(());
    };
    let index = gix::index::File::at(common_dir.join("index"), gix.object_hash(), true, Options::default());
    let has_tracked_file = index.is_ok_and(|index| {
        let mut paths = index.entries().iter().map(|entry| gix::path::from_bstr(entry.path(&index)));
        paths.any(|path| path.is_ok_and(|path| top.join(path).symlink_metadata().is_ok()))
    });
    match has_tracked_file && top != common_dir {
        true => Err(Error::Unusable(UnusableRepoError::BareWithCheckout {
            dir: top.to_owned(),
            config: deciding_config_file(gix, "bare", common_dir),
        })),
        false => Ok(()),
    }
}

/// Refuses a main checkout that `core.worktree` moves to a folder from which git does not find the
/// repository: git-proq runs commands there.
///
/// # Errors
/// Returns [`UnusableRepoError::CheckoutElsewhere`].
pub(crate) fn refuse_moved_checkout(
    gix: &gix::Repository,
    common_dir: &Path,
    main_dir: &Path,
) -> Result<(), Error> {
    let is_set = gix.config_snapshot().string("core.worktree").is_some();
    let is_from_env = std::env::var_os("GIT_WORK_TREE").is_some();
    if !is_set || is_from_env || git_dir_at(main_dir).is_some_and(|git_dir| is_same_dir(&git_dir, common_dir))
    {
        return Ok(());
    }
    Err(Error::Unusable(UnusableRepoError::CheckoutElsewhere {
        git_dir: common_dir.to_owned(),
        dir: main_dir.to_owned(),
        config: deciding_config_file(gix, "worktree", common_dir),
    }))
}

/// Refuses a repository whose `core.worktree` applies to every worktree: with `extensions.worktreeConfig` git
/// reads it from the shared settings. In a lane, git would then change the main checkout's files.
///
/// # Errors
/// Returns [`UnusableRepoError::SharedWorktree`].
pub(crate) fn refuse_shared_worktree(gix: &gix::Repository, common_dir: &Path) -> Result<(), Error> {
    let config = gix.config_snapshot();
    if config.boolean("extensions.worktreeConfig") != Some(true) || config.string("core.worktree").is_none() {
        return Ok(());
    }
    // Git reads this setting only from these files, without their includes.
    let read_worktree = |name: &str| {
        let file =
            gix::config::File::from_path_no_includes(common_dir.join(name), gix::config::Source::Local);
        Some(RepoPath::new(file.ok()?.string("core.worktree")?.to_vec()))
    };
    let Some(worktree) = read_worktree("config") else { return Ok(()) };
    Err(Error::Unusable(UnusableRepoError::SharedWorktree {
        git_dir: common_dir.to_owned(),
        worktree_setting: worktree.to_fs_path(Path::new("")),
        is_set_for_main: read_worktree("config.worktree").is_some(),
    }))
}

fn is_same_dir(path: &Path, common_dir: &Path) -> bool {
    path.canonicalize().is_ok_and(|real_path| real_path == common_dir)
}

/// Returns the configuration file whose value of a `core` setting applies.
pub(crate) fn deciding_config_file(gix: &gix::Repository, name: &str, common_dir: &Path) -> PathBuf {
    let snapshot = gix.config_snapshot();
    let sections = snapshot.plumbing().sections_by_name("core").into_iter().flatten();
    let setting_sections = sections.filter(|section| section.body().contains_value_name(name));
    let file = setting_sections.last().and_then(|section| section.meta().path.as_ref()?.canonicalize().ok());
    file.unwrap_or_else(|| common_dir.join("config"))
}
