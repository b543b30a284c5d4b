//! `core.sharedRepository`: permissions for files and folders below a git directory that several users share,
//! independent of the umask. The rule is that of git's `adjust_shared_perm`.

use std::fs::{File, Permissions};
use std::io::Result;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::Repo;

/// Bit that makes new files in a folder inherit its group. On macOS and the BSDs every folder does so.
const SET_GID: u32 = if cfg!(target_os = "linux") { 0o2000 } else { 0 };

/// Permissions that `core.sharedRepository` requires for files and folders in the git directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Permissions follow the umask.
    ByUmask,
    /// These permissions are added to those of the umask.
    AtLeast(u32),
    /// Exactly these permissions are set.
    Exactly(u32),
}

impl Sharing {
    /// Parses a value of `core.sharedRepository`. A value that git rejects with an error is treated as
    /// `Sharing::ByUmask`.
    fn parse(value: &str) -> Sharing {
        let (group, everyone) = (Sharing::AtLeast(0o660), Sharing::AtLeast(0o664));
        match value {
            "group" => return group,
            "all" | "world" | "everybody" => return everyone,
            _ => {}
        }
        match u32::from_str_radix(value, 8) {
            Ok(1) => group,
            Ok(2) => everyone,
            Ok(mode) if mode & 0o600 == 0o600 => Sharing::Exactly(mode & 0o666),
            Err(_) if ["true", "yes", "on"].iter().any(|yes| value.eq_ignore_ascii_case(yes)) => group,
            Ok(_) | Err(_) => Sharing::ByUmask,
        }
    }

    /// Returns the mode, without the file type, that a file or folder with `mode` should have.
    fn adjusted_mode(self, mode: u32, is_folder: bool) -> u32 {
        let (Sharing::AtLeast(mut permissions) | Sharing::Exactly(mut permissions)) = self else {
            return mode;
        };
        if mode & 0o200 == 0 {
            permissions &= !0o222;
        }
        if mode & 0o100 != 0 {
            // A user who may read a program may run it.
            permissions |= (permissions & 0o444) >> 2;
        }
        let mut new_mode = if matches!(self, Sharing::Exactly(_)) {
            mode & !0o777 | permissions
        } else {
            mode | permissions
        };
        if is_folder {
            new_mode |= (new_mode & 0o444) >> 2;
            if new_mode & 0o060 != 0 {
                new_mode |= SET_GID;
            }
        }
        new_mode
    }

    /// Sets the shared permissions on a file or folder that was just created.
    ///
    /// # Errors
    /// Fails if its permissions cannot be read or changed.
    pub(crate) fn adjust_permissions(self, path: &Path) -> Result<()> {
        if self == Sharing::ByUmask {
            return Ok(());
        }
        let meta = path.symlink_metadata()?;
        let old = meta.permissions().mode() & 0o7777;
        let new_mode = self.adjusted_mode(old, meta.is_dir());
        if new_mode == old {
            Ok(())
        } else {
            std::fs::set_permissions(path, Permissions::from_mode(new_mode))
        }
    }

    /// Sets the shared permissions on an open file that was just created.
    ///
    /// # Errors
    /// Fails if its permissions cannot be read or changed.
    pub(crate) fn adjust_open_file(self, file: &File) -> Result<()> {
        if self == Sharing::ByUmask {
            return Ok(());
        }
        let old = file.metadata()?.permissions().mode() & 0o7777;
        let new_mode = self.adjusted_mode(old, false);
        if new_mode == old { Ok(()) } else { file.set_permissions(Permissions::from_mode(new_mode)) }
    }
}

impl Repo {
    /// Returns the sharing that `core.sharedRepository` sets.
    pub fn sharing(&self) -> Sharing {
        let key = "core.sharedRepository";
        match self.setting_text(key) {
            Some(value) => Sharing::parse(&value),
            // The key alone means true.
            None if self.setting_bool(key) == Some(true) => Sharing::parse("true"),
            None => Sharing::ByUmask,
        }
    }

    /// Sets the permissions that `core.sharedRepository` requires on a file or folder below the git directory
    /// that was just created.
    ///
    /// # Errors
    /// Fails if its permissions cannot be read or changed.
    pub fn share_permissions(&self, path: &Path) -> Result<()> {
        self.sharing().adjust_permissions(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_values_as_git_does() {
        let (group, all) = (Sharing::AtLeast(0o660), Sharing::AtLeast(0o664));
        for value in ["group", "true", "YES", "on", "1", "01"] {
            assert_eq!(Sharing::parse(value), group, "{value}");
        }
        for value in ["all", "world", "everybody", "2"] {
            assert_eq!(Sharing::parse(value), all, "{value}");
        }
        for value in ["umask", "false", "0", "no", "", "0440", "nonsense"] {
            assert_eq!(Sharing::parse(value), Sharing::ByUmask, "{value}");
        }
        assert_eq!(Sharing::parse("0640"), Sharing::Exactly(0o640));
        assert_eq!(Sharing::parse("0777"), Sharing::Exactly(0o666));
    }

    #[test]
    fn computes_modes_as_git_does() {
        let group = Sharing::parse("group");
        assert_eq!((group.adjusted_mode(0o600, false), group.adjusted_mode(0o400, false)), (0o660, 0o440));
        assert_eq!(
            (group.adjusted_mode(0o700, false), group.adjusted_mode(0o700, true)),
            (0o770, 0o770 | SET_GID)
        );
        let exact = Sharing::parse("0640");
        assert_eq!((exact.adjusted_mode(0o664, false), exact.adjusted_mode(0o444, false)), (0o640, 0o440));
        assert_eq!(exact.adjusted_mode(0o755, true), 0o750 | SET_GID);
        assert_eq!(Sharing::parse("0600").adjusted_mode(0o755, true), 0o700);
        assert_eq!(Sharing::ByUmask.adjusted_mode(0o755, true), 0o755);
    }
}
