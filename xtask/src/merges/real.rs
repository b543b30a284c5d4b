//! Owns merges through git-proq itself, in a checkout, each beside `git merge` in a checkout of git's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use git_proq::{Oid, RepoPath};

use super::replay::{Judged, borrow};
use crate::merging::{Outcome, why};

/// The lane that all of them land from, one after the other.
const LANE: &str = "lane";

/// What became of a merge in one of the checkouts.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    clean: bool,
    /// The tree of HEAD afterwards.
    tree: String,
    conflicted: Vec<Vec<u8>>,
}

/// Two checkouts of the same objects.
struct Two {
    proq: PathBuf,
    home: PathBuf,
    /// Where git-proq lands.
    lands: PathBuf,
    /// Where git merges.
    merges: PathBuf,
}

/// Makes each of them in both ways; how many differ.
pub(super) fn run(folder: &Path, objects: &Path, proq: &Path, all: &[Judged]) -> Outcome<usize> {
    let Some(((first, _), _)) = all.first() else { return Ok(0) };
    let two = Two::new(folder, objects, proq, *first)?;
    let begin = Instant::now();
    let (mut differ, mut clean, mut refused) = (0, 0, 0);
    for &((ours, theirs), _) in all {
        let git = two.by_git(ours, theirs)?;
        clean += usize::from(git.as_ref().is_ok_and(|ended| ended.clean));
        refused += usize::from(git.is_err());
        let wrong = match (two.by_proq(ours, theirs)?, git) {
            (Ok(proq), Ok(git)) if proq == git => continue,
            (Err(_), Err(_)) => continue,
            (proq, git) => format!("git-proq ends with {proq:?}, git with {git:?}"),
        };
        differ += 1;
        println!("{ours} {theirs}: {wrong}\n");
    }
    println!(
        "{} merges through git-proq and git in {:.0} s: {clean} clean, {} conflict, {refused} refused; {differ} differ",
        all.len(),
        begin.elapsed().as_secs_f64(),
        all.len() - clean - refused,
    );
    Ok(differ)
}

impl Two {
    fn new(folder: &Path, objects: &Path, proq: &Path, first: Oid) -> Outcome<Two> {
        let home = folder.join("home");
        std::fs::create_dir_all(&home)?;
        std::fs::write(
            home.join(".gitconfig"),
            "[user]\n\tname = replay\n\temail = replay@replay\n[gc]\n\tauto = 0\n[advice]\n\tdetachedHead = false\n",
        )?;
        let [lands, merges] = ["lands", "merges"].map(|name| folder.join(name));
        let two = Two { proq: proq.to_owned(), home, lands, merges };
        for dir in [&two.lands, &two.merges] {
            borrow(dir, &[], objects)?;
            two.git(dir, &["reset", "-q", "--hard", &first.to_string()])?;
        }
        let spawned = two.call(&two.proq, &two.lands, &["spawn", "--empty", "-n", LANE]).output()?;
        if !spawned.status.success() {
            return Err(format!("git-proq spawn: {}", why(&spawned)).into());
        }
        Ok(two)
    }

    /// A lane at the second parent lands on a branch at the first one. A refusal is told.
    fn by_proq(&self, ours: Oid, theirs: Oid) -> Outcome<Result<Ended, String>> {
        self.git(&self.lands, &["reset", "-q", "--hard", &ours.to_string()])?;
        let lane = self.lands.join(".proq-worktrees").join(LANE);
        self.git(&lane, &["reset", "-q", "--hard", &theirs.to_string()])?;
        let out = self.call(&self.proq, &self.lands, &["merge", LANE, "--no-cleanup", "--json"]).output()?;
        let clean = match out.status.code() {
            Some(0) => true,
            Some(3) => false,
            _ => return Ok(Err(format!("{} {}", String::from_utf8_lossy(&out.stdout), why(&out)))),
        };
        let answer: serde_json::Value = serde_json::from_slice(&out.stdout)?;
        let files = answer.pointer("/lanes/0/files").cloned().unwrap_or_else(|| serde_json::json!([]));
        let files: Vec<RepoPath> = serde_json::from_value(files)?;
        let conflicted = files.iter().map(|p| p.as_bytes().to_vec()).collect();
        self.ended(&self.lands, clean, conflicted).map(Ok)
    }

    /// The same by `git merge`.
    fn by_git(&self, ours: Oid, theirs: Oid) -> Outcome<Result<Ended, String>> {
        let dir = &self.merges;
        self.git(dir, &["reset", "-q", "--hard", &ours.to_string()])?;
        let theirs = theirs.to_string();
        let out =
            self.call(Path::new("git"), dir, &["merge", "-q", "--no-ff", "--no-edit", &theirs]).output()?;
        let clean = match out.status.code() {
            Some(0) => true,
            Some(1) => false,
            _ => return Ok(Err(why(&out))),
        };
        let listed = self.git(dir, &["ls-files", "-u", "-z"])?.stdout;
        let stages = listed.split(|b| *b == 0).filter_map(|f| f.splitn(2, |b| *b == b'\t').nth(1));
        let mut conflicted: Vec<Vec<u8>> = stages.map(<[u8]>::to_vec).collect();
        conflicted.sort_unstable();
        conflicted.dedup();
        let ended = self.ended(dir, clean, conflicted)?;
        // What a conflict leaves beside tracked files would be in the way of the next one.
        self.git(dir, &["reset", "-q", "--hard"])?;
        self.git(dir, &["clean", "-qffdx"])?;
        Ok(Ok(ended))
    }

    fn ended(&self, dir: &Path, clean: bool, conflicted: Vec<Vec<u8>>) -> Outcome<Ended> {
        let tree = self.git(dir, &["rev-parse", "HEAD^{tree}"])?.stdout;
        Ok(Ended { clean, tree: String::from_utf8_lossy(&tree).trim_end().to_owned(), conflicted })
    }

    fn git(&self, dir: &Path, args: &[&str]) -> Outcome<Output> {
        let out = self.call(Path::new("git"), dir, args).output()?;
        if !out.status.success() {
            return Err(format!("git {}: {}", args.join(" "), why(&out)).into());
        }
        Ok(out)
    }

    /// A call with a home of its own.
    fn call(&self, program: &Path, dir: &Path, args: &[&str]) -> Command {
        let mut call = Command::new(program);
        call.env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(dir)
            .args(args)
            .stdin(Stdio::null());
        call
    }
}
