//! Commands of a sandbox as an ordinary user, whom permissions bind. They do not bind root.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::Ordering;

use super::Sandbox;

/// User and group that a sandbox of root is given to.
const ORDINARY_USER: u32 = 12345;

impl Sandbox {
    /// Makes permissions count for all later commands: under root, the sandbox and a copy of the program in
    /// it are given to an ordinary user, who runs them. Another account is an ordinary user already.
    pub fn give_to_ordinary_user(&self) {
        if self.root().metadata().unwrap().uid() != 0 {
            return;
        }
        // Other users cannot always enter the folder that cargo builds in.
        let copy = format!("mkdir -p bin; cp '{}' bin/git-proq", crate::program().display());
        self.sh_in(&self.root(), &format!("{copy}; chown -R {ORDINARY_USER}:{ORDINARY_USER} ."));
        self.is_given_away.store(true, Ordering::SeqCst);
    }

    /// Runs `act` while the commands of the sandbox are those of the test's own account again, such as root
    /// for what a user does with `sudo`.
    pub fn as_own_account<T>(&self, act: impl FnOnce() -> T) -> T {
        let was_given_away = self.is_given_away.swap(false, Ordering::SeqCst);
        let out = act();
        self.is_given_away.store(was_given_away, Ordering::SeqCst);
        out
    }

    /// Lets the owner of the sandbox run a command.
    pub(crate) fn drop_privileges(&self, command: &mut Command) {
        if self.is_given_away.load(Ordering::SeqCst) {
            command.uid(ORDINARY_USER).gid(ORDINARY_USER);
        }
    }

    /// Returns the copy of the program that the owner of the sandbox can run; none if it is not needed.
    pub(crate) fn own_program(&self) -> Option<PathBuf> {
        self.is_given_away.load(Ordering::SeqCst).then(|| self.root().join("bin/git-proq"))
    }
}
