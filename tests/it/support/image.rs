//! Owns what a checkout looks like at one moment, in a form that two moments can be compared by.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Sandbox;

/// Bits of an index entry's flags that say something about the entry, not about this moment: stage,
/// assume-unchanged, intent-to-add, skip-worktree.
const LASTING: u32 = 0x6000_B000;

/// Files, index, status and HEAD of one worktree. Times are left out on purpose.
#[derive(Debug, PartialEq, Eq)]
pub struct Image {
    /// Every file, link and folder, ignored ones included, by its path.
    pub files: BTreeMap<String, String>,
    /// The index, entry by entry, with its flags.
    pub index: Vec<String>,
    /// What git says has changed.
    pub status: Vec<String>,
    /// The commit that HEAD leads to, and what it names.
    pub head: String,
}

impl Image {
    /// Looks at the worktree at `dir`.
    pub fn of(sandbox: &Sandbox, dir: &Path) -> Image {
        let mut files = BTreeMap::new();
        collect(dir, dir, &mut files);
        let head = sandbox.git_in(dir, &["rev-parse", "HEAD", "--symbolic-full-name", "HEAD"]);
        let status = ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=matching"];
        let status = fields(&sandbox.raw(dir, &status))
            .into_iter()
            .filter(|l| !l.contains(".proq-worktrees"))
            .collect();
        Image { files, index: index(sandbox, dir), status, head }
    }
}

/// The stage list with tags, and the lasting flags of each entry.
fn index(sandbox: &Sandbox, dir: &Path) -> Vec<String> {
    let answer = sandbox.raw(dir, &["ls-files", "--stage", "-v", "-z", "--debug"]);
    let (mut entries, mut rest) = (Vec::new(), &*answer);
    while let Some(end) = rest.iter().position(|b| *b == 0) {
        // Behind each entry are five lines about it.
        let mut lines = rest[end + 1..].splitn(6, |b| *b == b'\n');
        let last = String::from_utf8_lossy(lines.by_ref().nth(4).unwrap()).into_owned();
        let flags = u32::from_str_radix(last.split_once("\tflags: ").unwrap().1, 16).unwrap();
        entries.push(format!("{} flags {:x}", rest[..end].escape_ascii(), flags & LASTING));
        rest = lines.next().unwrap();
    }
    entries
}

fn fields(bytes: &[u8]) -> Vec<String> {
    bytes.split(|b| *b == 0).filter(|f| !f.is_empty()).map(|f| f.escape_ascii().to_string()).collect()
}

fn collect(root: &Path, dir: &Path, out: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap();
        if name == Path::new(".git") || name == Path::new(".proq-worktrees") {
            continue;
        }
        let key = name.as_os_str().as_bytes().escape_ascii().to_string();
        let meta = path.symlink_metadata().unwrap();
        if meta.is_symlink() {
            let target = std::fs::read_link(&path).unwrap();
            out.insert(key, format!("link {}", target.as_os_str().as_bytes().escape_ascii()));
        } else if meta.is_dir() {
            out.insert(key, "folder".to_owned());
            // What an embedded repository keeps for itself changes when git looks at it.
            if path.file_name() != Some(std::ffi::OsStr::new(".git")) {
                collect(root, &path, out);
            }
        } else {
            let text = std::fs::read(&path).unwrap();
            let mode = meta.permissions().mode() & 0o777;
            out.insert(key, format!("{mode:o} {}", text.escape_ascii()));
        }
    }
}
