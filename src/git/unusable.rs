//! Owns the errors of repositories and worktrees that lack what is needed to work with them at all.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::explain::{Exit, Explain};

/// Something that a repository or a worktree lacks.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// HEAD is a symbolic link to a ref that has no file of its own, which the library cannot follow.
    #[error("cannot open {}: HEAD is a symbolic link to {name}, which has no file of its own", git_dir.display())]
    LinkedHead {
        /// The git directory.
        git_dir: PathBuf,
        /// The ref.
        name: String,
    },
    /// The repository is called bare, and has a checkout that commands would leave behind.
    #[error("cannot use the repository at {}: core.bare is true, although files are checked out there; nothing was changed", dir.display())]
    HiddenCheckout {
        /// The top of the checkout.
        dir: PathBuf,
        /// The file with that setting.
        config: PathBuf,
    },
    /// The main checkout is a folder from which git does not find the repository.
    #[error("cannot use the repository {}: core.worktree is {}, from where git does not find it; nothing was changed", git_dir.display(), dir.display())]
    CheckoutElsewhere {
        /// The git directory.
        git_dir: PathBuf,
        /// The folder.
        dir: PathBuf,
        /// The file with that setting.
        config: PathBuf,
    },
    /// A worktree has no index. To git, every file of its commit is staged as deleted.
    #[error("cannot use {}: it has no index that git can read, so every file there counts as deleted; nothing was changed", dir.display())]
    NoIndex {
        /// The worktree.
        dir: PathBuf,
        /// The command that makes one.
        repair: String,
    },
}

impl Explain for Unusable {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        vec![match self {
            Unusable::HiddenCheckout { config, .. } => {
                format!("have the checkout back: git config --file '{}' --unset-all core.bare", config.display())
                    .into()
            }
            Unusable::CheckoutElsewhere { git_dir, dir, .. } if dir.is_dir() && !dir.join(".git").exists() => {
                format!("have git find it: echo 'gitdir: {}' > '{}/.git'", git_dir.display(), dir.display())
                    .into()
            }
            Unusable::CheckoutElsewhere { config, .. } => format!(
                "have the checkout beside it again: git config --file '{}' --unset-all core.worktree",
                config.display()
            )
            .into(),
            Unusable::LinkedHead { git_dir, name } => format!(
                "have git write the name there: git --git-dir='{}' -c core.preferSymlinkRefs=false symbolic-ref HEAD {name}",
                git_dir.display()
            )
            .into(),
            Unusable::NoIndex { repair, .. } => {
                format!("make one, and leave every file as it is: {repair}").into()
            }
        }]
    }

    fn exit(&self) -> Exit {
        Exit::Refused
    }
}
