//! The archive of a release: packed so that the same files give the same bytes.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::run;

/// Documents that lie beside the program in an archive.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Folders of the repository that an archive has.
const FOLDERS: [&str; 2] = ["completions", "man"];

/// Packs a program with its documents, man pages and completions into `OUT/STEM.tar.gz`. Files belong to
/// root, are from `time` (seconds since 1970) and in order of their names.
pub(super) fn write_archive(
    root: &Path,
    program: &Path,
    out: &Path,
    stem: &str,
    time: u64,
) -> io::Result<PathBuf> {
    let folder = out.join(stem);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut files = vec![(program.to_owned(), PathBuf::from("git-proq"), 0o755)];
    files.extend(DOCUMENTS.map(|name| (root.join(name), PathBuf::from(name), 0o644)));
    for name in FOLDERS {
        fs::create_dir_all(folder.join(name))?;
        for entry in fs::read_dir(root.join(name))? {
            let path = entry?.path();
            let target = Path::new(name).join(path.file_name().unwrap_or_default());
            files.push((path, target, 0o644));
        }
    }
    files.sort_by(|(_, a, _), (_, b, _)| a.cmp(b));
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(time);
    for (source, target, mode) in &files {
        let copy = folder.join(target);
        fs::copy(source, &copy)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", source.display())))?;
        fs::set_permissions(&copy, Permissions::from_mode(*mode))?;
        fs::File::open(&copy)?.set_modified(time)?;
    }
    let archive = out.join(stem);
    let (tar, gzip) = (archive.with_added_extension("tar"), archive.with_added_extension("tar.gz"));
    let is_gnu = Command::new("tar").arg("--version").output()?.stdout.starts_with(b"tar (GNU tar)");
    let owner: &[&str] =
        if is_gnu { &["--owner=0", "--group=0"] } else { &["--uid=0", "--gid=0", "--no-mac-metadata"] };
    let names = files.iter().map(|(_, target, _)| Path::new(stem).join(target));
    run(Command::new("tar")
        .env("COPYFILE_DISABLE", "1")
        .args(["--format=ustar", "--numeric-owner"])
        .args(owner)
        .arg("-cf")
        .arg(&tar)
        .arg("-C")
        .arg(out)
        .args(names))?;
    run(Command::new("gzip").args(["-n", "-f"]).arg(&tar))?;
    fs::remove_dir_all(&folder)?;
    Ok(gzip)
}
