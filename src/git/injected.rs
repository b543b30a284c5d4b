//! Owns the one setting of git's that a lane's agent gets by environment, where hooks are looked for, and taking it out again.
//!
//! It travels in the variable of `git -c`, which is one variable: a shell that drops some loses all of it or nothing. With
//! `GIT_CONFIG_COUNT` and its keys, a shell that drops names with KEY in them makes every git command fail.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::explain::quoted;

/// The variable.
pub(crate) const VARIABLE: &str = "GIT_CONFIG_PARAMETERS";

/// How the setting begins and ends as it is written here, and what lies between.
const BEGIN: &[u8] = b"'core.hooksPath'='";
const INSIDE: &[u8] = b"/proq/fences/";
const END: &[u8] = b"/hooks'";

/// The variable's value that makes git look for hooks in `folder`, which is one of `proq/fences/`.
pub(crate) fn hooks_setting(folder: &Path) -> OsString {
    let mut out = BEGIN[..BEGIN.len() - 1].to_vec();
    out.extend(quoted(folder.as_os_str().as_bytes()));
    OsString::from_vec(out)
}

/// This process's value of the variable without that setting; none when nothing is left.
pub(crate) fn own_parameters() -> Option<OsString> {
    without_hooks(&std::env::var_os(VARIABLE)?)
}

fn without_hooks(value: &OsStr) -> Option<OsString> {
    let ours = |word: &&[u8]| {
        word.starts_with(BEGIN) && word.ends_with(END) && word.windows(INSIDE.len()).any(|w| w == INSIDE)
    };
    let words: Vec<&[u8]> =
        words(value.as_bytes()).into_iter().filter(|word| !word.is_empty() && !ours(word)).collect();
    (!words.is_empty()).then(|| OsString::from_vec(words.join(&b' ')))
}

/// Whether a path lies in a folder of `proq/fences/`.
pub(super) fn is_fence(path: &Path) -> bool {
    path.as_os_str().as_bytes().windows(INSIDE.len()).any(|w| w == INSIDE)
}

/// The words of a line quoted as for a shell, quotes left in.
fn words(text: &[u8]) -> Vec<&[u8]> {
    let (mut out, mut from, mut inside, mut escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\'' => inside = !inside,
            b'\\' if !inside => escaped = true,
            b' ' if !inside => {
                out.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    out.push(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_setting_is_taken_out() {
        let ours = hooks_setting(Path::new("/a b/it's/.git/proq/fences/x-1/hooks"));
        let text = ours.to_str().unwrap();
        assert_eq!(text, "'core.hooksPath'='/a b/it'\\''s/.git/proq/fences/x-1/hooks'");
        assert_eq!(without_hooks(&ours), None);
        let mixed = format!("'a.b'='x  '\\''y' {text} 'core.hooksPath'='/other/hooks' 'c'= 'd=e'");
        let left = without_hooks(OsStr::new(&mixed)).unwrap();
        assert_eq!(left, "'a.b'='x  '\\''y' 'core.hooksPath'='/other/hooks' 'c'= 'd=e'");
    }
}
