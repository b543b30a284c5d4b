//! `cargo xtask merges replay`: the merges of a real history, repeated and compared with git.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use git_proq::probe::Probe;
use git_proq::types::CommitId;

use super::end_to_end;
use crate::copy;

use crate::dice;
use crate::merging::{
    GitOracle, GitVerdict, Outcome, Tally, compare_answer, compare_exact, exit_reason, git,
    write_commit_graph,
};

/// Number of merges that git computes in one process.
const GIT_BATCH_SIZE: usize = 100;
/// Number of differences that are printed in full.
const MAX_DIFFERENCES_PRINTED: usize = 20;

/// Make the merges of a real history anew
///
/// Each of its merges of two parents: what is merged in process must be the tree that git makes, and the whole engine must
/// say what git says: clean or not, the same tree, the same conflicted paths. Nothing is written to the repository. Some
/// also go through git-proq itself, in a checkout, beside `git merge` in another one.
#[derive(Debug, Clone, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The repository, with its whole history
    repo: PathBuf,
    /// How many merges, the newest ones; all by default
    #[arg(long, value_name = "N")]
    count: Option<usize>,
    /// Take them from all over the history instead; chooses those of --real too
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How many go through git-proq itself too; half of them conflict, as far as there are such
    #[arg(long, value_name = "K", default_value_t = 0)]
    real: usize,
    /// How many at once; as many as there are processors by default
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// The program for --real; by default it is built here first
    #[arg(long, value_name = "PATH")]
    proq: Option<PathBuf>,
}

/// Two commits, and git's verdict on their merge.
pub(super) type JudgedMerge = ((CommitId, CommitId), GitVerdict);

/// Repeats the merges. Returns whether none differs.
pub(super) fn run(args: &Args) -> Outcome<bool> {
    let objects = objects_dir(&args.repo)?;
    let merges = list_merges(args)?;
    let folder = super::create_folder()?;
    let mirror = folder.join("mirror");
    init_with_objects(&mirror, &["--bare"], &objects)?;
    write_commit_graph(&mirror, merges.iter().flat_map(|(ours, theirs)| [*ours, *theirs]))?;
    let begin = Instant::now();
    let sum: Mutex<(Tally, usize, Vec<JudgedMerge>)> = Mutex::default();
    let chunks: Vec<&[(CommitId, CommitId)]> = merges.chunks(GIT_BATCH_SIZE).collect();
    super::workers::run_jobs(args.jobs, chunks.len(), |n| {
        let (tally, differ, judged) = compare_merges(&mirror, chunks[n])?;
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.0 += tally;
        for difference in &differ {
            sum.1 += 1;
            if sum.1 <= MAX_DIFFERENCES_PRINTED {
                println!("{difference}\n");
            }
        }
        sum.2.extend(judged);
        if sum.0.merges.is_multiple_of(10 * GIT_BATCH_SIZE) {
            println!("{} done", sum.0.merges);
        }
        Ok(true)
    })?;
    let (tally, mut differ, judged) = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{} merges in {:.0} s: {} in process ({}%), {} clean, {} conflict, {} refused, {} unknown; {differ} differ",
        tally.merges,
        begin.elapsed().as_secs_f64(),
        tally.exact,
        super::percent(tally.exact, tally.merges),
        tally.clean,
        tally.conflicts,
        tally.refused,
        tally.unknown,
    );
    if args.real > 0 {
        let chosen = sample_merges(judged, args.real, args.seed.unwrap_or(1));
        let proq = crate::run_env::build_program(args.proq.as_deref(), true)?;
        differ += end_to_end::run(&folder, &objects, &proq, &chosen)?;
    }
    copy::remove(&folder)?;
    Ok(differ == 0)
}

/// Runs git in a folder and returns its output without the line end.
fn git_line(dir: &Path, args: &[&str]) -> Outcome<String> {
    let out = git(dir).args(args).output()?;
    if !out.status.success() {
        return Err(format!("git {}: {}", args.join(" "), exit_reason(&out)).into());
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim_end().to_owned())
}

/// Returns the objects folder of a repository. Fails if the history is shallow or has replacements, since the
/// comparison reads the commits themselves.
fn objects_dir(repo: &Path) -> Outcome<PathBuf> {
    let shallow = git_line(repo, &["rev-parse", "--is-shallow-repository"])?;
    if shallow != "false" || !git_line(repo, &["for-each-ref", "refs/replace/"])?.is_empty() {
        return Err(format!("{}: its history is shallow, or has replacements", repo.display()).into());
    }
    Ok(repo.join(git_line(repo, &["rev-parse", "--git-path", "objects"])?).canonicalize()?)
}

/// Creates a repository that reads the objects of another one.
pub(super) fn init_with_objects(dir: &Path, options: &[&str], objects: &Path) -> Outcome<()> {
    std::fs::create_dir_all(dir)?;
    git_line(dir, &[&["init", "-q", "-b", "base"], options].concat())?;
    let own = dir.join(git_line(dir, &["rev-parse", "--git-path", "objects"])?);
    std::fs::create_dir_all(own.join("info"))?;
    std::fs::write(own.join("info/alternates"), format!("{}\n", objects.display()))?;
    Ok(())
}

/// Returns the parents of the merges, newest first.
fn list_merges(args: &Args) -> Outcome<Vec<(CommitId, CommitId)>> {
    let all = git_line(&args.repo, &["rev-list", "--min-parents=2", "--max-parents=2", "--parents", "HEAD"])?;
    let mut merges = Vec::new();
    for words in all.lines().map(|l| l.split(' ').collect::<Vec<_>>()) {
        let [_, ours, theirs] = words[..] else { continue };
        merges.push((ours.parse()?, theirs.parse()?));
    }
    let count = args.count.unwrap_or(merges.len());
    if let Some(seed) = args.seed {
        let sample = dice::sample(&mut dice::seeded(seed, "merges"), merges.len(), count);
        merges = sample.into_iter().filter_map(|n| merges.get(n - 1).copied()).collect();
    }
    merges.truncate(count);
    if merges.is_empty() {
        return Err("there are no merges of two parents".into());
    }
    Ok(merges)
}

/// Repeats merges and returns counts, differences and git's verdicts.
fn compare_merges(
    mirror: &Path,
    merges: &[(CommitId, CommitId)],
) -> Outcome<(Tally, Vec<String>, Vec<JudgedMerge>)> {
    let judge = GitOracle::new(mirror);
    let probe = Probe::open(mirror, &mirror.join("scratch")).map_err(|e| e.to_string())?;
    let (mut tally, mut differ, mut judged) = (Tally::default(), Vec::new(), Vec::new());
    for (&(ours, theirs), mut verdict) in merges.iter().zip(judge.verdicts(merges)?) {
        let exact = probe.merge_in_process(ours, theirs);
        let compare = |verdict: &GitVerdict| match &exact {
            Ok(exact) => {
                compare_exact(*exact, verdict).or_else(|| compare_answer(&probe, ours, theirs, verdict))
            }
            Err(e) => Some(format!("in process: {e}")),
        };
        let mut wrong = compare(&verdict);
        if wrong.is_some() {
            // The batch ran without the attributes of each merge's own tree.
            verdict = judge.verdict(&[&format!("--attr-source={ours}")], ours, theirs)?;
            wrong = compare(&verdict);
        }
        if let GitVerdict::Refused(words) | GitVerdict::Unknown(words) = &verdict {
            println!("{ours} {theirs} has no answer by git: {words}");
        }
        tally.count("real", matches!(exact, Ok(Some(_))), &verdict);
        differ.extend(wrong.map(|wrong| format!("{ours} {theirs}: {wrong}")));
        judged.push(((ours, theirs), verdict));
    }
    Ok((tally, differ, judged))
}

/// Returns a sample of the merges, half of which conflict, as far as there are enough.
fn sample_merges(judged: Vec<JudgedMerge>, count: usize, seed: u64) -> Vec<JudgedMerge> {
    let mut rng = dice::seeded(seed, "real");
    let (conflicts, others): (Vec<JudgedMerge>, Vec<JudgedMerge>) =
        judged.into_iter().partition(|(_, verdict)| matches!(verdict, GitVerdict::Conflict(..)));
    let mut draw = |from: Vec<JudgedMerge>, count: usize| -> Vec<JudgedMerge> {
        let chosen = dice::sample(&mut rng, from.len(), count);
        chosen.into_iter().filter_map(|n| from.get(n - 1).cloned()).collect()
    };
    let mut out = draw(conflicts, count / 2);
    let rest = count - out.len();
    out.extend(draw(others, rest));
    out
}
