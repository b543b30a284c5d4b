//! Owns refusing a main checkout that git's own settings hide, put where git does not find the repository, or have all worktrees be.

use std::path::{Path, PathBuf};

use gix::index::decode::Options;

use super::hook_place::git_dir_in;
use super::{Error, Repo, RepoPath, Unusable, settings};

/// Refuses a repository that has a checkout and is called bare all the same. A branch that moves there would leave the files of
/// the checkout behind, and the next commit would take back what has landed. What `git clone --bare` makes has no index.
///
/// # Errors
/// [`Unusable::HiddenCheckout`].
pub(super) fn refuse_hidden(gix: &gix::Repository, common_dir: &Path, dir: &Path) -> Result<(), Error> {
    let is_top = |top: &&Path| git_dir_in(top).is_some_and(|git_dir| is_same(&git_dir, common_dir));
    let Some(top) = common_dir.parent().into_iter().chain(dir.ancestors()).find(is_top) else {
        return Ok(());
    };
    let index = gix::index::File::at(common_dir.join("index"), gix.object_hash(), true, Options::default());
    let has_file = index.is_ok_and(|index| {
        let mut paths = index.entries().iter().map(|entry| gix::path::from_bstr(entry.path(&index)));
        paths.any(|path| path.is_ok_and(|path| top.join(path).symlink_metadata().is_ok()))
    });
    match has_file && top != common_dir {
        true => Err(Error::Unusable(Unusable::HiddenCheckout {
            dir: top.to_owned(),
            config: file_with(gix, "bare", common_dir),
        })),
        false => Ok(()),
    }
}

/// Refuses a main checkout that `core.worktree` puts into a folder from which git does not find the repository: commands run
/// there.
///
/// # Errors
/// [`Unusable::CheckoutElsewhere`].
pub(super) fn refuse_elsewhere(gix: &gix::Repository, common_dir: &Path, main: &Path) -> Result<(), Error> {
    let is_set = gix.config_snapshot().string("core.worktree").is_some();
    let by_variable = std::env::var_os("GIT_WORK_TREE").is_some();
    if !is_set || by_variable || git_dir_in(main).is_some_and(|git_dir| is_same(&git_dir, common_dir)) {
        return Ok(());
    }
    Err(Error::Unusable(Unusable::CheckoutElsewhere {
        git_dir: common_dir.to_owned(),
        dir: main.to_owned(),
        config: file_with(gix, "worktree", common_dir),
    }))
}

/// Refuses a repository whose `core.worktree` is the folder of every worktree: with `extensions.worktreeConfig` git takes it from the
/// settings that all of them share. In a lane git would change the files of the main checkout then.
///
/// # Errors
/// [`Unusable::SharedWorktree`].
pub(super) fn refuse_shared(gix: &gix::Repository, common_dir: &Path) -> Result<(), Error> {
    let set = gix.config_snapshot();
    if set.boolean("extensions.worktreeConfig") != Some(true) || set.string("core.worktree").is_none() {
        return Ok(());
    }
    // Git reads the setting from these files alone, without what they include.
    let read = |name: &str| {
        let file =
            gix::config::File::from_path_no_includes(common_dir.join(name), gix::config::Source::Local);
        Some(RepoPath::new(file.ok()?.string("core.worktree")?.to_vec()))
    };
    let Some(worktree) = read("config") else { return Ok(()) };
    Err(Error::Unusable(Unusable::SharedWorktree {
        git_dir: common_dir.to_owned(),
        worktree: worktree.under(Path::new("")),
        is_set_apart: read("config.worktree").is_some(),
    }))
}

impl Repo {
    /// Refuses to go on where a command has changed in which folder git has the main checkout: it would change files there.
    ///
    /// # Errors
    /// [`Unusable::CheckoutElsewhere`], [`Unusable::SharedWorktree`].
    pub(crate) fn require_same_checkout(&self) -> Result<(), Error> {
        let Some(now) = settings::open(self.gix.git_dir()) else { return Ok(()) };
        refuse_shared(&now, self.common_dir())?;
        let place =
            |gix: &gix::Repository| gix.config_snapshot().string("core.worktree").map(|set| set.to_vec());
        match place(&now) {
            Some(set) if place(&self.gix).as_ref() != Some(&set) => {
                Err(Error::Unusable(Unusable::CheckoutElsewhere {
                    git_dir: self.common_dir().to_owned(),
                    dir: RepoPath::new(set).under(self.common_dir()),
                    config: file_with(&now, "worktree", self.common_dir()),
                }))
            }
            _ => Ok(()),
        }
    }
}

fn is_same(one: &Path, common_dir: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| one == common_dir)
}

/// The file that has the last word on a setting of `core`.
fn file_with(gix: &gix::Repository, name: &str, common_dir: &Path) -> PathBuf {
    let snapshot = gix.config_snapshot();
    let sections = snapshot.plumbing().sections_by_name("core").into_iter().flatten();
    let setting = sections.filter(|section| section.body().contains_value_name(name));
    let file = setting.last().and_then(|section| section.meta().path.as_ref()?.canonicalize().ok());
    file.unwrap_or_else(|| common_dir.join("config"))
}
