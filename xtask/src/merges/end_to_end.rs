//! Merges through git-proq itself in one checkout, compared with `git merge` in another checkout.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use git_proq::types::{CommitId, RepoPath};

use super::replay::{JudgedMerge, init_with_objects};
use crate::merging::{Outcome, exit_reason};

/// Lane that all merges land from, one after the other.
const LANE: &str = "lane";

/// Result of a merge in one of the checkouts.
#[derive(Debug, PartialEq, Eq)]
struct MergeResult {
    clean: bool,
    /// Tree of HEAD after the merge.
    tree: String,
    conflicted: Vec<Vec<u8>>,
}

/// Two checkouts with the same objects.
struct CheckoutPair {
    proq: PathBuf,
    home: PathBuf,
    /// Checkout that git-proq lands in.
    proq_checkout: PathBuf,
    /// Checkout that git merges in.
    git_checkout: PathBuf,
}

/// Merges each pair of commits in both checkouts. Returns how many results differ.
pub(super) fn run(folder: &Path, objects: &Path, proq: &Path, all: &[JudgedMerge]) -> Outcome<usize> {
    let Some(((first, _), _)) = all.first() else { return Ok(0) };
    let pair = CheckoutPair::new(folder, objects, proq, *first)?;
    let begin = Instant::now();
    let (mut differ, mut clean, mut refused) = (0, 0, 0);
    for &((ours, theirs), _) in all {
        let git = pair.merge_with_git(ours, theirs)?;
        clean += usize::from(git.as_ref().is_ok_and(|result| result.clean));
        refused += usize::from(git.is_err());
        let wrong = match (pair.merge_with_proq(ours, theirs)?, git) {
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

impl CheckoutPair {
    fn new(folder: &Path, objects: &Path, proq: &Path, first: CommitId) -> Outcome<CheckoutPair> {
        let home = folder.join("home");
        std::fs::create_dir_all(&home)?;
        std::fs::write(
            home.join(".gitconfig"),
            "[user]\n\tname = replay\n\temail = replay@replay\n[gc]\n\tauto = 0\n[advice]\n\tdetachedHead = false\n",
        )?;
        let [proq_checkout, git_checkout] = ["lands", "merges"].map(|name| folder.join(name));
        let pair = CheckoutPair { proq: proq.to_owned(), home, proq_checkout, git_checkout };
        for dir in [&pair.proq_checkout, &pair.git_checkout] {
            init_with_objects(dir, &[], objects)?;
            pair.git(dir, &["reset", "-q", "--hard", &first.to_string()])?;
        }
        let spawned =
            pair.command(&pair.proq, &pair.proq_checkout, &["spawn", "--empty", "-n", LANE]).output()?;
        if !spawned.status.success() {
            return Err(format!("git-proq spawn: {}", exit_reason(&spawned)).into());
        }
        Ok(pair)
    }

    /// Lands a lane at the second parent on a branch at the first parent. The inner error is the text of a
    /// refusal.
    fn merge_with_proq(&self, ours: CommitId, theirs: CommitId) -> Outcome<Result<MergeResult, String>> {
        self.git(&self.proq_checkout, &["reset", "-q", "--hard", &ours.to_string()])?;
        let lane = self.proq_checkout.join(".proq-worktrees").join(LANE);
        self.git(&lane, &["reset", "-q", "--hard", &theirs.to_string()])?;
        let out = self
            .command(&self.proq, &self.proq_checkout, &["merge", LANE, "--no-cleanup", "--json"])
            .output()?;
        let clean = match out.status.code() {
            Some(0) => true,
            Some(3) => false,
            _ => return Ok(Err(format!("{} {}", String::from_utf8_lossy(&out.stdout), exit_reason(&out)))),
        };
        let answer: serde_json::Value = serde_json::from_slice(&out.stdout)?;
        let files = answer.pointer("/lanes/0/files").cloned().unwrap_or_else(|| serde_json::json!([]));
        let files: Vec<RepoPath> = serde_json::from_value(files)?;
        let conflicted = files.iter().map(|p| p.as_bytes().to_vec()).collect();
        self.read_result(&self.proq_checkout, clean, conflicted).map(Ok)
    }

    /// Merges the second parent into the first with `git merge`. The inner error is the text of a refusal.
    fn merge_with_git(&self, ours: CommitId, theirs: CommitId) -> Outcome<Result<MergeResult, String>> {
        let dir = &self.git_checkout;
        self.git(dir, &["reset", "-q", "--hard", &ours.to_string()])?;
        let theirs = theirs.to_string();
        let out = self
            .command(Path::new("git"), dir, &["merge", "-q", "--no-ff", "--no-edit", &theirs])
            .output()?;
        let clean = match out.status.code() {
            Some(0) => true,
            Some(1) => false,
            _ => return Ok(Err(exit_reason(&out))),
        };
        let listed = self.git(dir, &["ls-files", "-u", "-z"])?.stdout;
        let stages = listed.split(|b| *b == 0).filter_map(|f| f.splitn(2, |b| *b == b'\t').nth(1));
        let mut conflicted: Vec<Vec<u8>> = stages.map(<[u8]>::to_vec).collect();
        conflicted.sort_unstable();
        conflicted.dedup();
        let result = self.read_result(dir, clean, conflicted)?;
        // Untracked files of a conflict would block the next merge.
        self.git(dir, &["reset", "-q", "--hard"])?;
        self.git(dir, &["clean", "-qffdx"])?;
        Ok(Ok(result))
    }

    fn read_result(&self, dir: &Path, clean: bool, conflicted: Vec<Vec<u8>>) -> Outcome<MergeResult> {
        let tree = self.git(dir, &["rev-parse", "HEAD^{tree}"])?.stdout;
        Ok(MergeResult { clean, tree: String::from_utf8_lossy(&tree).trim_end().to_owned(), conflicted })
    }

    fn git(&self, dir: &Path, args: &[&str]) -> Outcome<Output> {
        let out = self.command(Path::new("git"), dir, args).output()?;
        if !out.status.success() {
            return Err(format!("git {}: {}", args.join(" "), exit_reason(&out)).into());
        }
        Ok(out)
    }

    /// Returns a command with its own home folder.
    fn command(&self, program: &Path, dir: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(dir)
            .args(args)
            .stdin(Stdio::null());
        command
    }
}
