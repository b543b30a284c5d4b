//! Contents of a checkout at one moment, in a form that two moments can be compared by.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Sandbox;

/// Bits of an index entry's flags that belong to the entry and not to the moment: stage, assume-unchanged,
/// intent-to-add, skip-worktree.
const PERSISTENT_FLAGS: u32 = 0x6000_B000;

/// Files, index, status and HEAD of one worktree. Times are left out on purpose.
#[derive(Debug, PartialEq, Eq)]
pub struct WorktreeState {
    /// Every file, link and folder, ignored ones included, by its path.
    pub files: BTreeMap<String, String>,
    /// The index, entry by entry, with its flags.
    pub index: Vec<String>,
    /// Changes as `git status` lists them.
    pub status: Vec<String>,
    /// Commit id of HEAD, and the ref that HEAD names.
    pub head: String,
}

impl WorktreeState {
    /// Captures the worktree at `dir`.
    pub fn capture(sandbox: &Sandbox, dir: &Path) -> WorktreeState {
        let mut files = BTreeMap::new();
        collect_files(dir, dir, &mut files);
        let head = sandbox.git_in(dir, &["rev-parse", "HEAD", "--symbolic-full-name", "HEAD"]);
        let status = ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=matching"];
        let status = fields(&sandbox.git_bytes(dir, &status))
            .into_iter()
            .filter(|l| !l.contains(".proq-worktrees"))
            .collect();
        WorktreeState { files, index: index_entries(sandbox, dir), status, head }
    }
}

/// Stage list with tags, and the persistent flags of each entry.
fn index_entries(sandbox: &Sandbox, dir: &Path) -> Vec<String> {
    let listing = sandbox.git_bytes(dir, &["ls-files", "--stage", "-v", "-z", "--debug"]);
    let (mut entries, mut rest) = (Vec::new(), &*listing);
    while let Some(end) = rest.iter().position(|b| *b == 0) {
        // Five lines of details follow each entry.
        let mut lines = rest[end + 1..].splitn(6, |b| *b == b'\n');
        let last = String::from_utf8_lossy(lines.by_ref().nth(4).unwrap()).into_owned();
        let flags = u32::from_str_radix(last.split_once("\tflags: ").unwrap().1, 16).unwrap();
        entries.push(format!("{} flags {:x}", rest[..end].escape_ascii(), flags & PERSISTENT_FLAGS));
        rest = lines.next().unwrap();
    }
    entries
}

fn fields(bytes: &[u8]) -> Vec<String> {
    bytes.split(|b| *b == 0).filter(|f| !f.is_empty()).map(|f| f.escape_ascii().to_string()).collect()
}

fn collect_files(root: &Path, dir: &Path, out: &mut BTreeMap<String, String>) {
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
            // Files inside an embedded repository's `.git` change when git reads that repository.
            if path.file_name() != Some(std::ffi::OsStr::new(".git")) {
                collect_files(root, &path, out);
            }
        } else {
            let text = std::fs::read(&path).unwrap();
            let mode = meta.permissions().mode() & 0o777;
            out.insert(key, format!("{mode:o} {}", text.escape_ascii()));
        }
    }
}
