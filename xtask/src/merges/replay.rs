//! Owns `cargo xtask merges replay`: the merges of a real history made anew, and how many come out another way.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use git_proq::Oid;
use git_proq::probe::Probe;

use super::real;
use crate::copy;
use crate::dice::Dice;
use crate::merging::{Judge, Outcome, Said, Tally, compare_answer, compare_exact, git, why, write_graph};

/// How many merges are handed to git at once.
const CHUNK: usize = 100;
/// So many that differ are told in full.
const TOLD: usize = 20;

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

/// A merge of two commits, and git's word about it.
pub(super) type Judged = ((Oid, Oid), Said);

/// Makes them; whether none came out another way.
pub(super) fn run(args: &Args) -> Outcome<bool> {
    let objects = objects_of(&args.repo)?;
    let merges = list(args)?;
    let folder = super::folder()?;
    let mirror = folder.join("mirror");
    borrow(&mirror, &["--bare"], &objects)?;
    write_graph(&mirror, merges.iter().flat_map(|(ours, theirs)| [*ours, *theirs]))?;
    let begin = Instant::now();
    let sum: Mutex<(Tally, usize, Vec<Judged>)> = Mutex::default();
    let chunks: Vec<&[(Oid, Oid)]> = merges.chunks(CHUNK).collect();
    super::crew::each(args.jobs, chunks.len(), |n| {
        let (tally, differ, judged) = hold(&mirror, chunks[n])?;
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.0 += tally;
        for what in &differ {
            sum.1 += 1;
            if sum.1 <= TOLD {
                println!("{what}\n");
            }
        }
        sum.2.extend(judged);
        if sum.0.merges.is_multiple_of(10 * CHUNK) {
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
        let chosen = choose(judged, args.real, args.seed.unwrap_or(1));
        let proq = crate::place::program(args.proq.as_deref(), true)?;
        differ += real::run(&folder, &objects, &proq, &chosen)?;
    }
    copy::remove(&folder)?;
    Ok(differ == 0)
}

/// One line of git's, in a folder.
fn line(dir: &Path, args: &[&str]) -> Outcome<String> {
    let out = git(dir).args(args).output()?;
    if !out.status.success() {
        return Err(format!("git {}: {}", args.join(" "), why(&out)).into());
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim_end().to_owned())
}

/// Where a repository has its objects. Its history must be what its commits tell, since only they are looked at.
fn objects_of(repo: &Path) -> Outcome<PathBuf> {
    let shallow = line(repo, &["rev-parse", "--is-shallow-repository"])?;
    if shallow != "false" || !line(repo, &["for-each-ref", "refs/replace/"])?.is_empty() {
        return Err(format!("{}: its history is shallow, or has replacements", repo.display()).into());
    }
    Ok(repo.join(line(repo, &["rev-parse", "--git-path", "objects"])?).canonicalize()?)
}

/// A new repository that sees these objects.
pub(super) fn borrow(dir: &Path, options: &[&str], objects: &Path) -> Outcome<()> {
    std::fs::create_dir_all(dir)?;
    line(dir, &[&["init", "-q", "-b", "base"], options].concat())?;
    let own = dir.join(line(dir, &["rev-parse", "--git-path", "objects"])?);
    std::fs::create_dir_all(own.join("info"))?;
    std::fs::write(own.join("info/alternates"), format!("{}\n", objects.display()))?;
    Ok(())
}

/// The parents of the merges, newest first.
fn list(args: &Args) -> Outcome<Vec<(Oid, Oid)>> {
    let all = line(&args.repo, &["rev-list", "--min-parents=2", "--max-parents=2", "--parents", "HEAD"])?;
    let mut merges = Vec::new();
    for words in all.lines().map(|l| l.split(' ').collect::<Vec<_>>()) {
        let [_, ours, theirs] = words[..] else { continue };
        merges.push((ours.parse()?, theirs.parse()?));
    }
    let count = args.count.unwrap_or(merges.len());
    if let Some(seed) = args.seed {
        let sample = Dice::new(seed, "merges").sample(merges.len(), count);
        merges = sample.into_iter().filter_map(|n| merges.get(n - 1).copied()).collect();
    }
    merges.truncate(count);
    if merges.is_empty() {
        return Err("there are no merges of two parents".into());
    }
    Ok(merges)
}

/// Makes some merges, and says in what they differ.
fn hold(mirror: &Path, merges: &[(Oid, Oid)]) -> Outcome<(Tally, Vec<String>, Vec<Judged>)> {
    let judge = Judge::new(mirror);
    let probe = Probe::open(mirror, &mirror.join("scratch")).map_err(|e| e.to_string())?;
    let (mut tally, mut differ, mut judged) = (Tally::default(), Vec::new(), Vec::new());
    for (&(ours, theirs), mut said) in merges.iter().zip(judge.all(merges)?) {
        let exact = probe.exact(ours, theirs);
        let compare = |said: &Said| match &exact {
            Ok(exact) => compare_exact(*exact, said).or_else(|| compare_answer(&probe, ours, theirs, said)),
            Err(e) => Some(format!("in process: {e}")),
        };
        let mut wrong = compare(&said);
        if wrong.is_some() {
            // All were asked about at once, without the attributes that each one's own tree sets.
            said = judge.one(&[&format!("--attr-source={ours}")], ours, theirs)?;
            wrong = compare(&said);
        }
        if let Said::Refused(words) | Said::Unknown(words) = &said {
            println!("{ours} {theirs} has no answer by git: {words}");
        }
        tally.count("real", matches!(exact, Ok(Some(_))), &said);
        differ.extend(wrong.map(|wrong| format!("{ours} {theirs}: {wrong}")));
        judged.push(((ours, theirs), said));
    }
    Ok((tally, differ, judged))
}

/// Some of them, half of which conflict, as far as there are such.
fn choose(judged: Vec<Judged>, count: usize, seed: u64) -> Vec<Judged> {
    let mut dice = Dice::new(seed, "real");
    let (conflicts, others): (Vec<Judged>, Vec<Judged>) =
        judged.into_iter().partition(|(_, said)| matches!(said, Said::Conflict(..)));
    let mut some = |from: Vec<Judged>, count: usize| -> Vec<Judged> {
        let chosen = dice.sample(from.len(), count);
        chosen.into_iter().filter_map(|n| from.get(n - 1).cloned()).collect()
    };
    let mut out = some(conflicts, count / 2);
    let rest = count - out.len();
    out.extend(some(others, rest));
    out
}
