//! Import of generated histories into a repository, many at once, through `git fast-import`.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use git_proq::types::CommitId;

use super::generate::MergeCase;
use super::git::{exit_reason, git, run_with_input};
use super::setup::Setup;
use super::tree::{File, Kind};
use super::{Outcome, fail};

/// Creates a repository with this set-up.
pub(super) fn init(dir: &Path, setup: &Setup) -> Outcome<()> {
    std::fs::create_dir_all(dir)?;
    let format = if setup.sha256 { "sha256" } else { "sha1" };
    let out = git(dir).args(["init", "-q", "--template=", "--object-format", format]).output()?;
    if !out.status.success() {
        return fail(format!("git init: {}", exit_reason(&out)));
    }
    let mut config = std::fs::read_to_string(dir.join(".git/config"))?;
    for (key, value) in setup.settings.iter().filter(|(_, value)| !value.is_empty()) {
        let (section, name) = key.rsplit_once('.').unwrap_or((key, ""));
        let section = match section.split_once('.') {
            Some((section, sub)) => format!("{section} \"{sub}\""),
            None => section.to_owned(),
        };
        config.push_str(&format!("[{section}]\n\t{name} = {value}\n"));
    }
    std::fs::write(dir.join(".git/config"), config)?;
    std::fs::create_dir_all(dir.join(".git/info"))?;
    std::fs::write(dir.join(".git/info/attributes"), &setup.attributes)?;
    Ok(())
}

/// Imports histories. Returns the two commits that are merged in each.
pub(super) fn import_histories(
    dir: &Path,
    setup: &Setup,
    cases: &[MergeCase],
) -> Outcome<Vec<(CommitId, CommitId)>> {
    let mut stream =
        FastImportStream { out: Vec::new(), blobs: HashMap::new(), marks: 0, sha256: setup.sha256 };
    for case in cases {
        stream.add_history(case);
    }
    // All objects go into one pack, however few there are; the one ref moves between the histories.
    let mut call = git(dir);
    call.args(["-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", "--force"]);
    let out = run_with_input(&mut call, stream.out)?;
    if !out.status.success() {
        return fail(format!("git fast-import: {}", exit_reason(&out)));
    }
    let ids: Result<Vec<CommitId>, String> =
        String::from_utf8_lossy(&out.stdout).lines().map(str::parse).collect();
    let ids = ids?;
    if ids.len() != 2 * cases.len() {
        return fail("git fast-import names another number of commits");
    }
    Ok(ids.chunks(2).map(|two| (two[0], two[1])).collect())
}

struct FastImportStream {
    out: Vec<u8>,
    blobs: HashMap<Rc<[u8]>, usize>,
    marks: usize,
    sha256: bool,
}

impl FastImportStream {
    fn add_history(&mut self, case: &MergeCase) {
        let mut marks = Vec::new();
        for commit in &case.commits {
            let files: Vec<String> = commit.files.iter().map(|(p, f)| self.file_command(p, f)).collect();
            self.marks += 1;
            let parents: Vec<usize> = commit.parents.iter().filter_map(|p| marks.get(*p).copied()).collect();
            if parents.is_empty() {
                self.push_line("reset refs/heads/made");
            }
            self.push_line("commit refs/heads/made");
            self.push_line(&format!("mark :{}", self.marks));
            self.push_line(&format!(
                "committer made up <made@up> {} +0000",
                1_000_000_000 + 60 * commit.time
            ));
            self.push_line("data 0");
            for (n, parent) in parents.iter().enumerate() {
                self.push_line(&format!("{} :{parent}", if n == 0 { "from" } else { "merge" }));
            }
            self.push_line("deleteall");
            for file in files {
                self.push_line(&file);
            }
            marks.push(self.marks);
        }
        for tip in [case.ours, case.theirs] {
            if let Some(mark) = marks.get(tip) {
                self.push_line(&format!("get-mark :{mark}"));
            }
        }
    }

    /// Returns the line that adds a file to a commit. Writes its content first.
    fn file_command(&mut self, path: &[u8], file: &File) -> String {
        let id = if file.kind == Kind::Submodule {
            let byte = file.content.first().copied().unwrap_or_default();
            format!("{:02x}", 0x10 + byte).repeat(if self.sha256 { 32 } else { 20 })
        } else {
            format!(":{}", self.add_blob(&file.content))
        };
        let mut line = format!("M {} {id} \"", file.kind.mode());
        for byte in path {
            line.push_str(&format!("\\{byte:03o}"));
        }
        line.push('"');
        line
    }

    fn add_blob(&mut self, content: &Rc<[u8]>) -> usize {
        if let Some(mark) = self.blobs.get(content) {
            return *mark;
        }
        self.marks += 1;
        self.blobs.insert(Rc::clone(content), self.marks);
        self.push_line(&format!("blob\nmark :{}\ndata {}", self.marks, content.len()));
        self.out.extend_from_slice(content);
        self.out.push(b'\n');
        self.marks
    }

    fn push_line(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(b'\n');
    }
}
