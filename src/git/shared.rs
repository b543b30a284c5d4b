//! Owns `core.sharedRepository`: which rights to files and folders below a git directory the users have who share it, whatever the
//! umask says. The rule is that of git's `adjust_shared_perm`.

use std::fs::{File, Permissions};
use std::io::Result;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Repo;

/// What a new folder gives its group to what is made in it. On macOS and the BSDs every folder does.
const SET_GID: u32 = if cfg!(target_os = "linux") { 0o2000 } else { 0 };

/// Who may read and write what git writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Whoever the umask lets.
    ByUmask,
    /// These rights are given beside those.
    AtLeast(u32),
    /// These rights and no others are given.
    Exactly(u32),
}

impl Sharing {
    /// Reads a value. One that git dies of shares nothing.
    fn of(value: &str) -> Sharing {
        let (group, everybody) = (Sharing::AtLeast(0o660), Sharing::AtLeast(0o664));
        match value {
            "group" => return group,
            "all" | "world" | "everybody" => return everybody,
            _ => {}
        }
        match u32::from_str_radix(value, 8) {
            Ok(1) => group,
            Ok(2) => everybody,
            Ok(mode) if mode & 0o600 == 0o600 => Sharing::Exactly(mode & 0o666),
            Err(_) if ["true", "yes", "on"].iter().any(|yes| value.eq_ignore_ascii_case(yes)) => group,
            Ok(_) | Err(_) => Sharing::ByUmask,
        }
    }

    /// The mode, without the file type, that something of `mode` is to have.
    fn mode(self, mode: u32, is_folder: bool) -> u32 {
        let (Sharing::AtLeast(mut rights) | Sharing::Exactly(mut rights)) = self else { return mode };
        if mode & 0o200 == 0 {
            rights &= !0o222;
        }
        if mode & 0o100 != 0 {
            // Whoever may read a program may run it.
            rights |= (rights & 0o444) >> 2;
        }
        let mut new =
            if matches!(self, Sharing::Exactly(_)) { mode & !0o777 | rights } else { mode | rights };
        if is_folder {
            new |= (new & 0o444) >> 2;
            if new & 0o060 != 0 {
                new |= SET_GID;
            }
        }
        new
    }

    /// Gives a file or folder that was just made the rights it is to have.
    ///
    /// # Errors
    /// When its rights cannot be read or changed.
    pub(super) fn adjust(self, path: &Path) -> Result<()> {
        if self == Sharing::ByUmask {
            return Ok(());
        }
        let meta = path.symlink_metadata()?;
        let old = meta.permissions().mode() & 0o7777;
        let new = self.mode(old, meta.is_dir());
        if new == old { Ok(()) } else { std::fs::set_permissions(path, Permissions::from_mode(new)) }
    }

    /// Gives an open file that was just made the rights it is to have.
    ///
    /// # Errors
    /// When its rights cannot be read or changed.
    pub(super) fn adjust_open(self, file: &File) -> Result<()> {
        if self == Sharing::ByUmask {
            return Ok(());
        }
        let old = file.metadata()?.permissions().mode() & 0o7777;
        let new = self.mode(old, false);
        if new == old { Ok(()) } else { file.set_permissions(Permissions::from_mode(new)) }
    }
}

impl Repo {
    /// What `core.sharedRepository` says.
    pub(super) fn sharing(&self) -> Sharing {
        let key = "core.sharedRepository";
        match self.setting_text(key) {
            Some(value) => Sharing::of(&value),
            // The key alone means true.
            None if self.setting_bool(key) == Some(true) => Sharing::of("true"),
            None => Sharing::ByUmask,
        }
    }

    /// Gives a file or folder below the git directory, which was just made, the rights that users of a shared repository need.
    ///
    /// # Errors
    /// When its rights cannot be read or changed.
    pub(crate) fn share(&self, path: &Path) -> Result<()> {
        self.sharing().adjust(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_means_what_it_means_to_git() {
        let (group, all) = (Sharing::AtLeast(0o660), Sharing::AtLeast(0o664));
        for value in ["group", "true", "YES", "on", "1", "01"] {
            assert_eq!(Sharing::of(value), group, "{value}");
        }
        for value in ["all", "world", "everybody", "2"] {
            assert_eq!(Sharing::of(value), all, "{value}");
        }
        for value in ["umask", "false", "0", "no", "", "0440", "nonsense"] {
            assert_eq!(Sharing::of(value), Sharing::ByUmask, "{value}");
        }
        assert_eq!(Sharing::of("0640"), Sharing::Exactly(0o640));
        assert_eq!(Sharing::of("0777"), Sharing::Exactly(0o666));
    }

    #[test]
    fn rights_are_those_of_git() {
        let group = Sharing::of("group");
        assert_eq!((group.mode(0o600, false), group.mode(0o400, false)), (0o660, 0o440));
        assert_eq!((group.mode(0o700, false), group.mode(0o700, true)), (0o770, 0o770 | SET_GID));
        let exactly = Sharing::of("0640");
        assert_eq!((exactly.mode(0o664, false), exactly.mode(0o444, false)), (0o640, 0o440));
        assert_eq!(exactly.mode(0o755, true), 0o750 | SET_GID);
        assert_eq!(Sharing::of("0600").mode(0o755, true), 0o700);
        assert_eq!(Sharing::ByUmask.mode(0o755, true), 0o755);
    }
}
