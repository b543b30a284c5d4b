//! Owns the model's way to commits: git's objects read and kept, merges made by git itself in a repository beside.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use super::parts::{File, Files, Kind, differing};
use super::{Outcome, fail};

/// A commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Commit {
    /// Its parents.
    pub(super) parents: Vec<String>,
    /// The id of its tree.
    pub(super) tree: String,
    /// Its files.
    pub(super) files: Rc<Files>,
}

/// A bare repository of the model's own that sees the objects of the real one.
#[derive(Debug)]
pub(super) struct Objects {
    dir: PathBuf,
    envs: Vec<(&'static str, String)>,
    child: Child,
    ask: RefCell<ChildStdin>,
    told: RefCell<BufReader<ChildStdout>>,
    commits: RefCell<HashMap<String, Rc<Commit>>>,
    trees: RefCell<HashMap<String, Rc<Files>>>,
    blobs: RefCell<HashMap<String, Rc<str>>>,
    made: Cell<usize>,
}

impl Drop for Objects {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Objects {
    /// A new repository in `dir` beside the one whose git folder is `real`.
    pub(super) fn new(dir: &Path, real: &Path, envs: Vec<(&'static str, String)>) -> Outcome<Objects> {
        let git = || {
            let mut git = Command::new("git");
            git.env_clear().envs(envs.iter().cloned()).stdin(Stdio::null());
            git
        };
        git().args(["init", "-q", "--bare"]).arg(dir).output()?;
        std::fs::write(dir.join("objects/info/alternates"), format!("{}/objects\n", real.display()))?;
        let mut child = git()
            .current_dir(dir)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(ask), Some(told)) = (child.stdin.take(), child.stdout.take()) else {
            return fail("git cat-file has no pipes");
        };
        Ok(Objects {
            dir: dir.to_owned(),
            envs,
            child,
            ask: RefCell::new(ask),
            told: RefCell::new(BufReader::new(told)),
            commits: RefCell::default(),
            trees: RefCell::default(),
            blobs: RefCell::default(),
            made: Cell::default(),
        })
    }

    /// The content of an object.
    pub(super) fn read(&self, id: &str) -> Outcome<Vec<u8>> {
        let mut ask = self.ask.borrow_mut();
        writeln!(ask, "{id}")?;
        ask.flush()?;
        let mut told = self.told.borrow_mut();
        let mut header = String::new();
        told.read_line(&mut header)?;
        let Some(size) = header.trim().rsplit(' ').next().and_then(|n| n.parse::<usize>().ok()) else {
            return fail(format!("object {id}: {}", header.trim()));
        };
        let mut content = vec![0; size + 1];
        told.read_exact(&mut content)?;
        content.pop();
        Ok(content)
    }

    /// A blob's text.
    pub(super) fn blob(&self, id: &str) -> Outcome<Rc<str>> {
        if let Some(text) = self.blobs.borrow().get(id) {
            return Ok(Rc::clone(text));
        }
        let text: Rc<str> = String::from_utf8_lossy(&self.read(id)?).into();
        self.blobs.borrow_mut().insert(id.to_owned(), Rc::clone(&text));
        Ok(text)
    }

    /// The files of a tree.
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
                let below = self.tree(&child)?;
                files.extend(below.iter().map(|(p, f)| (format!("{name}/{p}"), f.clone())));
            } else {
                files.insert(
                    name.to_owned(),
                    File { kind: Kind::of_mode(u32::from_str_radix(mode, 8)?), text: self.blob(&child)? },
                );
            }
        }
        let files = Rc::new(files);
        self.trees.borrow_mut().insert(id.to_owned(), Rc::clone(&files));
        Ok(files)
    }

    /// A commit.
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

    /// A commit's files.
    pub(super) fn files(&self, id: &str) -> Outcome<Rc<Files>> {
        Ok(Rc::clone(&self.commit(id)?.files))
    }

    /// Whether `old` is `new` or one of those it came from.
    pub(super) fn is_ancestor(&self, old: &str, new: &str) -> Outcome<bool> {
        let mut todo = vec![new.to_owned()];
        let mut seen = BTreeSet::new();
        while let Some(id) = todo.pop() {
            if id == old {
                return Ok(true);
            }
            if seen.insert(id.clone()) {
                todo.extend(self.commit(&id)?.parents.iter().cloned());
            }
        }
        Ok(false)
    }

    /// Whether all that `tip` changed is one commit of `base`'s own line, as it is after that commit was amended: git-proq knows it by
    /// its patch. A file that is on the base as it was before has nothing of it any more.
    pub(super) fn has_by_hand(&self, base: &str, tip: &str) -> Outcome<bool> {
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
        let all = differing(&before, &*self.files(tip)?);
        Ok(!all.is_empty() && all.iter().all(is_touched) && line.contains(&whole))
    }

    /// Whether two commits are the same but for messages and dates.
    pub(super) fn same(&self, a: &str, b: &str) -> Outcome<bool> {
        if a == b {
            return Ok(true);
        }
        let (one, two) = (self.commit(a)?, self.commit(b)?);
        if one.tree != two.tree || one.parents.len() != two.parents.len() {
            return Ok(false);
        }
        for (a, b) in one.parents.iter().zip(&two.parents) {
            if !self.same(a, b)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The tree that git makes of two commits; none when they conflict.
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

    /// Makes a commit.
    pub(super) fn make(&self, tree: &str, parents: &[&str]) -> Outcome<String> {
        let mut args = vec!["commit-tree", tree, "-m", "the model's"];
        for parent in parents {
            args.extend(["-p", parent]);
        }
        let out = self.git(&args, "")?;
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    }

    /// What `theirs` did to `base`, done to `ours`; none when they conflict.
    pub(super) fn merge_files(&self, base: &Files, ours: &Files, theirs: &Files) -> Outcome<Option<Files>> {
        if base == ours || ours == theirs {
            return Ok(Some(theirs.clone()));
        }
        if base == theirs {
            return Ok(Some(ours.clone()));
        }
        self.made.set(self.made.get() + 1);
        let name = format!("refs/heads/m{}", self.made.get());
        let mut text = String::new();
        for (n, (files, from)) in [(base, ""), (ours, "from :1\n"), (theirs, "from :1\n")].iter().enumerate()
        {
            text.push_str(&format!("commit {name}-{n}\nmark :{}\ncommitter a <b> 0 +0000\ndata 0\n", n + 1));
            text.push_str(from);
            text.push_str("deleteall\n");
            for (path, file) in *files {
                let mode = match file.kind {
                    Kind::Program => "100755",
                    Kind::Link => "120000",
                    Kind::Plain | Kind::Intent => "100644",
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

/// An id as git writes it.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, b| format!("{text}{b:02x}"))
}
