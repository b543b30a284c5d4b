//! The git setting that a lane's agent gets through the environment: the hook folder. This module writes it
//! and removes it again.
//!
//! The setting is passed in the variable of `git -c`, which is a single variable: a shell that drops some
//! variables loses all of it or nothing. With `GIT_CONFIG_COUNT` and its keys, a shell that drops names with
//! KEY in them makes every git command fail.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use proq_base::explain::shell_quote_bytes;

/// Environment variable in which `git -c` passes settings.
pub const CONFIG_VARIABLE: &str = "GIT_CONFIG_PARAMETERS";

/// Start of the setting as git-proq writes it, up to the quoted path. [`GUARD_FOLDER`] is part of that path,
/// and [`HOOKS_SETTING_SUFFIX`] ends it.
const HOOKS_SETTING_PREFIX: &[u8] = b"'core.hooksPath'='";
const GUARD_FOLDER: &[u8] = b"/proq/fences/";
const HOOKS_SETTING_SUFFIX: &[u8] = b"/hooks'";

/// Returns the value of [`CONFIG_VARIABLE`] that makes `folder` git's hook folder. `folder` is one in
/// `proq/fences/`.
pub fn hooks_path_parameter(folder: &Path) -> OsString {
    let mut out = HOOKS_SETTING_PREFIX[..HOOKS_SETTING_PREFIX.len() - 1].to_vec();
    out.extend(shell_quote_bytes(folder.as_os_str().as_bytes()));
    OsString::from_vec(out)
}

/// Returns this process's value of [`CONFIG_VARIABLE`] without git-proq's setting; `None` if nothing is left.
pub fn user_config_parameters() -> Option<OsString> {
    remove_hooks_setting(&std::env::var_os(CONFIG_VARIABLE)?)
}

fn remove_hooks_setting(value: &OsStr) -> Option<OsString> {
    let is_guard_setting = |word: &&[u8]| {
        word.starts_with(HOOKS_SETTING_PREFIX)
            && word.ends_with(HOOKS_SETTING_SUFFIX)
            && word.windows(GUARD_FOLDER.len()).any(|w| w == GUARD_FOLDER)
    };
    let remaining: Vec<&[u8]> = split_quoted(value.as_bytes())
        .into_iter()
        .filter(|word| !word.is_empty() && !is_guard_setting(word))
        .collect();
    (!remaining.is_empty()).then(|| OsString::from_vec(remaining.join(&b' ')))
}

/// Returns whether a path lies in a folder of `proq/fences/`.
pub(crate) fn is_guard_path(path: &Path) -> bool {
    path.as_os_str().as_bytes().windows(GUARD_FOLDER.len()).any(|w| w == GUARD_FOLDER)
}

/// Splits shell-quoted text at spaces, and leaves the quotes in.
fn split_quoted(text: &[u8]) -> Vec<&[u8]> {
    let (mut out, mut start, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\'' => is_quoted = !is_quoted,
            b'\\' if !is_quoted => is_escaped = true,
            b' ' if !is_quoted => {
                out.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_only_guard_setting() {
        let guard_setting = hooks_path_parameter(Path::new("/a b/it's/.git/proq/fences/x-1/hooks"));
        let text = guard_setting.to_str().unwrap();
        assert_eq!(text, "'core.hooksPath'='/a b/it'\\''s/.git/proq/fences/x-1/hooks'");
        assert_eq!(remove_hooks_setting(&guard_setting), None);
        let mixed = format!("'a.b'='x  '\\''y' {text} 'core.hooksPath'='/other/hooks' 'c'= 'd=e'");
        let remaining = remove_hooks_setting(OsStr::new(&mixed)).unwrap();
        assert_eq!(remaining, "'a.b'='x  '\\''y' 'core.hooksPath'='/other/hooks' 'c'= 'd=e'");
    }
}
