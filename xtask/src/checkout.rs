//! Owns the exact image of one checkout: files, links, folders and special files, and the index with its flags.
//!
//! Times are left out on purpose. `tests/it` includes this file by its path.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

/// Bits of an index entry's flags that say something about the entry, not about this moment: stage,
/// assume-unchanged, intent-to-add, skip-worktree.
const LASTING: u32 = 0x6000_B000;

/// The git command whose answer [`index`] reads. In a sparse checkout git itself drops the skip-worktree flag of a file that is
/// there, each time that it reads the index; so it is not shown.
pub(crate) const LIST_INDEX: [&str; 5] = ["ls-files", "--stage", "-v", "-z", "--debug"];

/// What a checkout has, by path or by another name: how each thing is, in a form that two moments can be compared by.
pub(crate) type Image = BTreeMap<String, String>;

/// Every file, link, folder and special file below `dir` by its path, ignored ones included. Git's own files and lanes are
/// left out; of an embedded repository only the name is given.
pub(crate) fn files(dir: &Path) -> io::Result<Image> {
    let mut image = Image::new();
    collect(dir, dir, &mut image)?;
    Ok(image)
}

fn collect(root: &Path, dir: &Path, image: &mut Image) -> io::Result<()> {
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
            // What an embedded repository keeps for itself changes when git looks at it.
            if path.file_name().is_none_or(|last| last != ".git") {
                collect(root, &path, image)?;
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

/// The entries of an index by path and stage, with tag, mode, id and lasting flags, from the answer to [`LIST_INDEX`].
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
        let (what, path) = entry.split_once("\\t").unwrap_or((&entry, ""));
        let stage = what.rsplit(' ').next().unwrap_or_default();
        let value = format!("{what} {:x}", flags.unwrap_or_default() & LASTING);
        image.insert(format!("{path} {stage}"), value);
    }
    image
}

/// How many differences are named.
const MOST: usize = 8;

/// How two images differ, in a few words; None when they do not.
pub(crate) fn difference(found: &Image, wanted: &Image) -> Option<String> {
    let mut parts = Vec::new();
    for (key, value) in found {
        match wanted.get(key) {
            None => parts.push(format!("+{key} = {}", short(value))),
            Some(other) if other != value => {
                parts.push(format!("{key} = {}, not {}", short(value), short(other)));
            }
            Some(_) => {}
        }
    }
    let gone = wanted.keys().filter(|key| !found.contains_key(*key));
    parts.extend(gone.map(|key| format!("-{key}")));
    let more = parts.len().saturating_sub(MOST);
    parts.truncate(MOST);
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn short(text: &str) -> String {
    let mut out: String = text.chars().take(60).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}
