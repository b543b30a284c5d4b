//! Hook shims: the files in a git guard's hooks folder. Each starts git-proq, which then runs the
//! repository's hook.

use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use proq_base::explain;
use proq_store::base::atomic::create_private_dir;
use proq_store::paths::layout::Layout;

use crate::agent::Error;
use crate::lane;

/// Hooks that every git guard has, whichever hooks the repository has.
const GUARD_HOOKS: [&str; 3] = ["post-commit", "pre-push", "reference-transaction"];

/// Upper limit of a program path in a shebang line, below the shortest length at which a current kernel
/// truncates the line.
const MAX_SHEBANG_PATH_BYTES: usize = 120;

/// File mode of the shims and of their folder. Hook installers find the folder and must not write there.
const READ_ONLY_MODE: u32 = 0o555;

/// Writes a shim for each hook of the repository and for each of [`GUARD_HOOKS`], and makes the folder
/// read-only.
pub(super) fn write_shims(
    guard_dir: &Path,
    program_path: &Path,
    repository_hooks: &[String],
) -> Result<(), Error> {
    let program = Layout::git_guard_program(guard_dir);
    let link_error = |e: std::io::Error| lane::Error::io("create", &program)(e);
    // A hard link survives an update that removes the program's path. A symbolic link across file systems
    // does not.
    std::fs::hard_link(program_path, &program)
        .or_else(|_| std::os::unix::fs::symlink(program_path, &program))
        .map_err(link_error)?;
    let hooks_dir = Layout::git_guard_hooks(guard_dir);
    create_private_dir(&hooks_dir)?;
    let text = shim_text(&program);
    let other_hooks = repository_hooks.iter().map(String::as_str).filter(|name| !GUARD_HOOKS.contains(name));
    for name in other_hooks.chain(GUARD_HOOKS) {
        let path = hooks_dir.join(name);
        create_read_only(&path, &text).map_err(lane::Error::io("write", &path))?;
    }
    std::fs::set_permissions(&hooks_dir, Permissions::from_mode(READ_ONLY_MODE))
        .map_err(lane::Error::io("close", &hooks_dir))?;
    Ok(())
}

fn create_read_only(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o700).open(path)?;
    file.write_all(text)?;
    file.set_permissions(Permissions::from_mode(READ_ONLY_MODE))
}

/// Returns the content of a shim: a shebang line with the program if its path permits that, so that no shell
/// has to start. Each hook is a separate file and no link to the program, so that a write to a hook never
/// reaches the program.
fn shim_text(program: &Path) -> Vec<u8> {
    let path = program.as_os_str().as_bytes();
    if path.len() <= MAX_SHEBANG_PATH_BYTES && !path.iter().any(u8::is_ascii_whitespace) {
        return [b"#!", path, b" _hook\n"].concat();
    }
    [b"#!/bin/sh\nexec ", explain::shell_quote_bytes(path).as_slice(), b" _hook \"$0\" \"$@\"\n"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_sh_where_no_shebang_fits() {
        assert_eq!(shim_text(Path::new("/a/program")), b"#!/a/program _hook\n");
        let quoted = b"#!/bin/sh\nexec '/a b/it'\\''s' _hook \"$0\" \"$@\"\n";
        assert_eq!(shim_text(Path::new("/a b/it's")), quoted);
        let long = format!("/{}", "x".repeat(MAX_SHEBANG_PATH_BYTES));
        assert!(shim_text(Path::new(&long)).starts_with(b"#!/bin/sh\nexec '/xxx"));
    }
}
