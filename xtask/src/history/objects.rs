//! The model's access to commits: git objects, read once and cached, and merges made by git in a repository
//! of their own.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use super::worktree::{File, Files, Kind, differing_paths};
use super::{Outcome, fail};

/// Commit of the repository or of the model.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Commit {
    /// Parent ids.
    pub(super) parents: Vec<String>,
    /// Tree id.
    pub(super) tree: String,
    /// Files of the tree.
    pub(super) files: Rc<Files>,
}

/// Bare repository of the model that also reads the objects of the real one.
#[derive(Debug)]
pub(super) struct Objects {
    dir: PathBuf,
    envs: Vec<(&'static str, String)>,
    child: Child,
    stdin: RefCell<ChildStdin>,
    stdout: RefCell<BufReader<ChildStdout>>,
    commits: RefCell<HashMap<String, Rc<Commit>>>,
    trees: RefCell<HashMap<String, Rc<Files>>>,
    blobs: RefCell<HashMap<String, Rc<str>>>,
    import_count: Cell<usize>,
}

impl Drop for Objects {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Objects {
    /// Creates the bare repository in `dir`, next to the repository with this git folder.
    pub(super) fn new(dir: &Path, git_dir: &Path, envs: Vec<(&'static str, String)>) -> Outcome<Objects> {
        let git = || {
            let mut git = Command::new("git");
            git.env_clear().envs(envs.iter().cloned()).stdin(Stdio::null());
            git
        };
        git().args(["init", "-q", "--bare"]).arg(dir).output()?;
        std::fs::write(dir.join("objects/info/alternates"), format!("{}/objects\n", git_dir.display()))?;
        let mut child = git()
            .current_dir(dir)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return fail("git cat-file has no pipes");
        };
        Ok(Objects {
            dir: dir.to_owned(),
            envs,
            child,
            stdin: RefCell::new(stdin),
            stdout: RefCell::new(BufReader::new(stdout)),
            commits: RefCell::default(),
            trees: RefCell::default(),
            blobs: RefCell::default(),
            import_count: Cell::default(),
        })
    }

    /// Returns the content of an object.
    pub(super) fn read(&self, id: &str) -> Outcome<Vec<u8>> {
        let mut stdin = self.stdin.borrow_mut();
        writeln!(stdin, "{id}")?;
        stdin.flush()?;
        let mut stdout = self.stdout.borrow_mut();
        let mut header = String::new();
        stdout.read_line(&mut header)?;
        let Some(size) = header.trim().rsplit(' ').next().and_then(|n| n.parse::<usize>().ok()) else {
            return fail(format!("object {id}: {}", header.trim()));
        };
        let mut content = vec![0; size + 1];
        stdout.read_exact(&mut content)?;
        content.pop();
        Ok(content)
    }

    /// Returns the text of a blob.
    pub(super) fn blob(&self, id: &str) -> Outcome<Rc<str>> {
        if let Some(text) = self.blobs.borrow().get(id) {
            return Ok(Rc::clone(text));
        }
        let text: Rc<str> = String::from_utf8_lossy(&self.read(id)?).into();
        self.blobs.borrow_mut().insert(id.to_owned(), Rc::clone(&text));
        Ok(text)
    }

    /// Returns the files of a tree.
    pub(super) fn tree(&self, id: &str) -> Outcome<Rc<Files>> {
        if let Some(files) = self.trees.borrow().get(id) {
            return Ok(Rc::clone(files));
        }
        let mut files = Files::new();
        let content = self.read(id)?;
        let mut rest = &content[..];
        while let Some(end) = rest.iter().position(|b| *b == 0) {
            let entry = String::from_utf8_lossy(&rest[..end]).into_owned();
            let (mode, name) = entry.split_once(' ').unwrap_or_default();
            let child = hex(&rest[end + 1..end + 21]);
            rest = &rest[end + 21..];
            if mode == "40000" {
                let subtree = self.tree(&child)?;
                files.extend(subtree.iter().map(|(p, f)| (format!("{name}/{p}"), f.clone())));
            } else {
                files.insert(
                    name.to_owned(),
                    File { kind: Kind::from_mode(u32::from_str_radix(mode, 8)?), text: self.blob(&child)? },
                );
            }
        }
        let files = Rc::new(files);
        self.trees.borrow_mut().insert(id.to_owned(), Rc::clone(&files));
        Ok(files)
    }

    /// Returns a commit.
    pub(super) fn commit(&self, id: &str) -> Outcome<Rc<Commit>> {
        if let Some(commit) = self.commits.borrow().get(id) {
            return Ok(Rc::clone(commit));
        }
        let text = String::from_utf8_lossy(&self.read(id)?).into_owned();
        let header = || text.lines().take_while(|l| !l.is_empty());
        let parents = header().filter_map(|l| l.strip_prefix("parent ")).map(str::to_owned).collect();
        let tree = header().find_map(|l| l.strip_prefix("tree ")).unwrap_or_default().to_owned();
        let commit = Rc::new(Commit { parents, files: self.tree(&tree)?, tree });
        self.commits.borrow_mut().insert(id.to_owned(), Rc::clone(&commit));
        Ok(commit)
    }

    /// Returns the files of a commit.
    pub(super) fn files(&self, id: &str) -> Outcome<Rc<Files>> {
        Ok(Rc::clone(&self.commit(id)?.files))
    }

    /// Returns whether `old` is `new` or an ancestor of it.
    pub(super) fn is_ancestor(&self, old: &str, new: &str) -> Outcome<bool> {
        let mut todo = vec![new.to_owned()];
        let mut visited = BTreeSet::new();
        while let Some(id) = todo.pop() {
            if id == old {
                return Ok(true);
            }
            if visited.insert(id.clone()) {
                todo.extend(self.commit(&id)?.parents.iter().cloned());
            }
        }
        Ok(false)
    }

    /// Returns whether one commit on the base's first-parent line has the same patch as all of `tip`, as
    /// after that commit was amended: git-proq recognizes it by its patch. A file that is on the base as it
    /// was before contributes nothing.
    pub(super) fn has_same_patch(&self, base: &str, tip: &str) -> Outcome<bool> {
        let (mut from, mut line) = (base.to_owned(), Vec::new());
        while !self.is_ancestor(&from, tip)? {
            let commit = self.commit(&from)?;
            let Some(parent) = commit.parents.first().cloned() else { return Ok(false) };
            line.push((self.commit(&parent)?.tree.clone(), commit.tree.clone()));
            from = parent;
        }
        let whole = (self.commit(&from)?.tree.clone(), self.commit(tip)?.tree.clone());
        let (before, now) = (self.files(&from)?, self.files(base)?);
        let is_touched = |path: &String| before.get(path) != now.get(path);
        let touched = differing_paths(&before, &*self.files(tip)?);
        Ok(!touched.is_empty() && touched.iter().all(is_touched) && line.contains(&whole))
    }

    /// Returns whether two commits have equal trees and equivalent parents, whatever their messages and
    /// dates.
    pub(super) fn is_equivalent(&self, a: &str, b: &str) -> Outcome<bool> {
        if a == b {
            return Ok(true);
        }
        let (one, two) = (self.commit(a)?, self.commit(b)?);
        if one.tree != two.tree || one.parents.len() != two.parents.len() {
            return Ok(false);
        }
        for (a, b) in one.parents.iter().zip(&two.parents) {
            if !self.is_equivalent(a, b)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the tree that git merges two commits to; none if they conflict.
    pub(super) fn merge(&self, ours: &str, theirs: &str) -> Outcome<Option<String>> {
        if self.is_ancestor(ours, theirs)? {
            return Ok(Some(self.commit(theirs)?.tree.clone()));
        }
        let out = self.git(&["merge-tree", "--write-tree", "--no-messages", ours, theirs], "")?;
        match out.status.code() {
            Some(0) => Ok(Some(String::from_utf8_lossy(&out.stdout).trim().to_owned())),
            Some(1) => Ok(None),
            _ => fail(String::from_utf8_lossy(&out.stderr).into_owned()),
        }
    }

    /// Writes a commit and returns its id.
    pub(super) fn write_commit(&self, tree: &str, parents: &[&str]) -> Outcome<String> {
        let mut args = vec!["commit-tree", tree, "-m", "the model's"];
        for parent in parents {
            args.extend(["-p", parent]);
        }
        let out = self.git(&args, "")?;
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    }

    /// Applies the changes from `base` to `theirs` to `ours`; none if they conflict.
    pub(super) fn merge_files(&self, base: &Files, ours: &Files, theirs: &Files) -> Outcome<Option<Files>> {
        if base == ours || ours == theirs {
            return Ok(Some(theirs.clone()));
        }
        if base == theirs {
            return Ok(Some(ours.clone()));
        }
        self.import_count.set(self.import_count.get() + 1);
        let name = format!("refs/heads/m{}", self.import_count.get());
        let mut text = String::new();
        for (n, (files, from)) in [(base, ""), (ours, "from :1\n"), (theirs, "from :1\n")].iter().enumerate()
        {
            text.push_str(&format!("commit {name}-{n}\nmark :{}\ncommitter a <b> 0 +0000\ndata 0\n", n + 1));
            text.push_str(from);
            text.push_str("deleteall\n");
            for (path, file) in *files {
                let mode = match file.kind {
                    Kind::Executable => "100755",
                    Kind::Symlink => "120000",
                    Kind::Regular | Kind::IntentToAdd => "100644",
                };
                text.push_str(&format!("M {mode} inline {path}\ndata {}\n{}\n", file.text.len(), file.text));
            }
        }
        let out = self.git(&["fast-import", "--quiet"], &text)?;
        if !out.status.success() {
            return fail(String::from_utf8_lossy(&out.stderr).into_owned());
        }
        let tree = self.merge(&format!("{name}-1"), &format!("{name}-2"))?;
        tree.map(|tree| Ok(Files::clone(&*self.tree(&tree)?))).transpose()
    }

    fn git(&self, args: &[&str], input: &str) -> Outcome<std::process::Output> {
        let mut git = Command::new("git");
        git.env_clear().envs(self.envs.iter().cloned()).current_dir(&self.dir).args(args);
        let mut child = git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        Ok(child.wait_with_output()?)
    }
}

/// Formats an object id in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, b| format!("{text}{b:02x}"))
}
