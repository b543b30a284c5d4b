//! Owns the files in a fence's folder of hooks. Each starts this program, which goes on as the repository's own hook.

use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::agent::Error;
use crate::git;
use crate::lane;
use crate::store::{Layout, make_private};

/// Hooks that are there whatever the repository has.
const ALWAYS: [&str; 3] = ["post-commit", "pre-push", "reference-transaction"];

/// Below the shortest first line that a kernel of today cuts off.
const LONGEST: usize = 120;

/// What a file in the folder and the folder itself may be used for: installers of hooks find it, and must not write there.
const CLOSED: u32 = 0o555;

/// Writes a shim for each of the repository's hooks and for our own, and closes the folder.
pub(super) fn write(fence: &Path, exe: &Path, own_hooks: &[String]) -> Result<(), Error> {
    let program = Layout::fence_program(fence);
    let link = |e: std::io::Error| lane::Error::io("make", &program)(e);
    // A second name of the program outlives an update that takes the first one away; a link across disks has to do without.
    std::fs::hard_link(exe, &program).or_else(|_| std::os::unix::fs::symlink(exe, &program)).map_err(link)?;
    let hooks = Layout::fence_hooks(fence);
    make_private(&hooks)?;
    let text = text(&program);
    let own = own_hooks.iter().map(String::as_str).filter(|name| !ALWAYS.contains(name));
    for name in own.chain(ALWAYS) {
        let path = hooks.join(name);
        create(&path, &text).map_err(lane::Error::io("write", &path))?;
    }
    std::fs::set_permissions(&hooks, Permissions::from_mode(CLOSED))
        .map_err(lane::Error::io("close", &hooks))?;
    Ok(())
}

fn create(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o700).open(path)?;
    file.write_all(text)?;
    file.set_permissions(Permissions::from_mode(CLOSED))
}

/// A first line that names the program, where that can say it: no shell has to start. (A file of its own for each hook, and
/// not a link to the program: who writes over a hook in spite of all must not hit the program.)
fn text(program: &Path) -> Vec<u8> {
    let path = program.as_os_str().as_bytes();
    if path.len() <= LONGEST && !path.iter().any(u8::is_ascii_whitespace) {
        return [b"#!", path, b" _hook\n"].concat();
    }
    [b"#!/bin/sh\nexec ", git::quoted(path).as_slice(), b" _hook \"$0\" \"$@\"\n"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_names_the_program_unless_it_cannot() {
        assert_eq!(text(Path::new("/a/program")), b"#!/a/program _hook\n");
        let quoted = b"#!/bin/sh\nexec '/a b/it'\\''s' _hook \"$0\" \"$@\"\n";
        assert_eq!(text(Path::new("/a b/it's")), quoted);
        let long = format!("/{}", "x".repeat(LONGEST));
        assert!(text(Path::new(&long)).starts_with(b"#!/bin/sh\nexec '/xxx"));
    }
}
