//! Exact image of a checkout: files, links, folders and special files, and the index with its flags.
//!
//! Times are left out on purpose.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::{fs, io};

/// Bits of an index entry's flags that belong to the entry and not to the moment: stage, assume-unchanged,
/// intent-to-add, skip-worktree.
const PERSISTENT_FLAGS: u32 = 0x6000_B000;

/// The git command whose output [`index`] reads. In a sparse checkout git drops the skip-worktree flag of a
/// file that is present each time it reads the index, so that flag is not compared.
pub(crate) const LIST_INDEX: [&str; 5] = ["ls-files", "--stage", "-v", "-z", "--debug"];

/// Image of a checkout: state of each entry by path or other name, in a form that two moments can be compared
/// by.
pub(crate) type Image = BTreeMap<String, String>;

/// Returns every file, link, folder and special file below `dir` by its path, ignored ones included. Git's
/// own files and lanes are left out; of an embedded repository only the name is given.
pub(crate) fn files(dir: &Path) -> io::Result<Image> {
    let mut image = Image::new();
    collect_files(dir, dir, &mut image)?;
    Ok(image)
}

fn collect_files(root: &Path, dir: &Path, image: &mut Image) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.strip_prefix(root).unwrap_or(&path);
        if name == Path::new(".git") || name == Path::new(".proq-worktrees") {
            continue;
        }
        let key = name.as_os_str().as_bytes().escape_ascii().to_string();
        let meta = path.symlink_metadata()?;
        let kind = meta.file_type();
        let mode = meta.permissions().mode() & 0o777;
        let value = if kind.is_symlink() {
            format!("link {}", fs::read_link(&path)?.as_os_str().as_bytes().escape_ascii())
        } else if kind.is_dir() {
            // Files inside an embedded repository's `.git` change when git reads that repository.
            if path.file_name().is_none_or(|last| last != ".git") {
                collect_files(root, &path, image)?;
            }
            "folder".to_owned()
        } else if kind.is_file() {
            format!("{mode:o} {}", fs::read(&path)?.escape_ascii())
        } else if kind.is_fifo() {
            format!("{mode:o} named pipe")
        } else {
            format!("{mode:o} special file")
        };
        image.insert(key, value);
    }
    Ok(())
}

/// Returns the entries of an index by path and stage, with tag, mode, id and persistent flags, from the
/// output of [`LIST_INDEX`].
pub(crate) fn index(answer: &[u8]) -> Image {
    let mut image = Image::new();
    let mut rest = answer;
    while let Some(end) = rest.iter().position(|b| *b == 0) {
        let (entry, after) = rest.split_at(end);
        let mut lines = after[1..].splitn(6, |b| *b == b'\n');
        let flags = lines.nth(4).map(|l| String::from_utf8_lossy(l).into_owned()).unwrap_or_default();
        let flags = flags.rsplit("flags: ").next().and_then(|f| u32::from_str_radix(f.trim(), 16).ok());
        rest = lines.next().unwrap_or_default();
        let entry = entry.escape_ascii().to_string();
        let (attributes, path) = entry.split_once("\\t").unwrap_or((&entry, ""));
        let stage = attributes.rsplit(' ').next().unwrap_or_default();
        let value = format!("{attributes} {:x}", flags.unwrap_or_default() & PERSISTENT_FLAGS);
        image.insert(format!("{path} {stage}"), value);
    }
    image
}

/// Maximum number of differences listed.
const MAX_DIFFERENCES_LISTED: usize = 8;

/// Describes how two images differ; None when they are equal.
pub(crate) fn difference(actual: &Image, expected: &Image) -> Option<String> {
    let mut parts = Vec::new();
    for (key, value) in actual {
        match expected.get(key) {
            None => parts.push(format!("+{key} = {}", shorten(value))),
            Some(other) if other != value => {
                parts.push(format!("{key} = {}, not {}", shorten(value), shorten(other)));
            }
            Some(_) => {}
        }
    }
    let missing = expected.keys().filter(|key| !actual.contains_key(*key));
    parts.extend(missing.map(|key| format!("-{key}")));
    let more = parts.len().saturating_sub(MAX_DIFFERENCES_LISTED);
    parts.truncate(MAX_DIFFERENCES_LISTED);
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn shorten(text: &str) -> String {
    let mut out: String = text.chars().take(60).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}
