//! Owns the comparison with other ways to land a branch, and to look at one, over a checkout with uncommitted changes: each is
//! killed before every system call that changes something, and what is there then is counted.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};

use super::image::{Image, difference};
use super::place::Place;
use super::trace::{self, Plan, Run};
use super::{Outcome, fail, precious};
use crate::checkout;

/// Kill git-proq and other tools at every call that changes something, side by side
///
/// The scene: a main checkout with edited, untracked and ignored files, and a branch that changes other files. The branch is
/// landed by `git merge`, by `wt merge` where that program is named, and by `git proq merge`. It is looked at by `git stash`, two
/// `git switch` and `git stash pop`, and by `git proq preview`; there an edit is staged, too, which `git merge` would refuse. Each is
/// killed, with all that it started, before its first mutating system call, before its second, and so on, each time in a fresh
/// copy.
#[derive(Debug, Clone, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The program `wt` of worktrunk; left out of the comparison without this
    #[arg(long, value_name = "PATH")]
    wt: Option<PathBuf>,
    /// Only every Nth call
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: usize,
    /// Name each call after which something was not as it should be
    #[arg(long)]
    verbose: bool,
    /// The program; by default it is built here first
    #[arg(long, value_name = "PATH")]
    proq: Option<PathBuf>,
}

/// A workflow under comparison.
#[derive(Debug, Clone)]
struct Workflow {
    /// As a person types it.
    name: String,
    /// The commands, one after the other as long as all goes well.
    steps: Vec<String>,
    /// Whether it runs in the branch's worktree.
    in_branch: bool,
    /// Whether an edit is staged.
    staged: bool,
    /// What somebody runs next who only wants to look.
    next: &'static str,
}

/// What happened when a workflow was killed at each of its calls.
#[derive(Debug, Default)]
struct Tally {
    points: usize,
    /// Points after which something that the user had written was out of reach in the end.
    lost: usize,
    /// Points after which the checkout was as it is between no two commands.
    half: usize,
    /// Those after which it still was when somebody had looked with the same tool.
    half_looked_at: usize,
    /// Points after which a lock of git's was left, when somebody had looked.
    locked: usize,
    /// Points after which the same once more brought the checkout to where it was to go.
    again: usize,
    notes: Vec<String>,
}

const HEADER: &str = "| what is killed | at | changes lost | half done | still, at the next look | a lock left | the same again gets there |
|---|---|---|---|---|---|---|";

/// Runs the comparison.
pub(crate) fn main(args: &Args) -> ExitCode {
    if !trace::is_possible() {
        println!("SKIPPED: this system does not let a process be traced");
        return ExitCode::from(super::SKIPPED);
    }
    match compare(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}

fn compare(args: &Args) -> Outcome<()> {
    const FOLDER: &str = "proq-rivals-";
    let proq = crate::place::program(args.proq.as_deref(), false)?;
    let folder = crate::place::folder(FOLDER, FOLDER)?;
    for program in [Some(&proq), args.wt.as_ref(), Some(&PathBuf::from("git"))].into_iter().flatten() {
        let version = Command::new(program).arg("--version").output()?;
        println!("{}", String::from_utf8_lossy(&version.stdout).trim());
    }
    println!("{HEADER}");
    let todo: Mutex<Vec<Workflow>> = Mutex::new(workflows(args).into_iter().rev().collect());
    let failures: Mutex<Vec<String>> = Mutex::default();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (todo, failures, proq) = (&todo, &failures, &proq);
            let folder = folder.join(format!("w{worker}"));
            scope.spawn(move || {
                while let Some(way) = todo.lock().unwrap_or_else(PoisonError::into_inner).pop() {
                    match Place::new(&folder, proq).and_then(|place| count(&place, &way, args)) {
                        Ok(tally) => tally.print(&way, args.verbose),
                        Err(e) => failures
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(format!("{}: {e}", way.name)),
                    }
                }
            });
        }
    });
    crate::copy::remove(&folder)?;
    match failures.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().next() {
        Some(failure) => fail(failure),
        None => Ok(()),
    }
}

fn workflows(args: &Args) -> Vec<Workflow> {
    let way = |name: &str, steps: &[&str], in_branch, next| Workflow {
        name: name.to_owned(),
        steps: steps.iter().map(|step| (*step).to_owned()).collect(),
        in_branch,
        staged: steps.len() > 1,
        next,
    };
    let mut all = vec![way("`git merge`", &["git merge -q --no-ff --no-edit topic"], false, "git status")];
    all.extend(args.wt.as_ref().map(|wt| Workflow {
        steps: vec![format!("'{}' merge --yes main", wt.display())],
        ..way("`wt merge`", &[], true, "git status")
    }));
    all.push(way("`git proq merge`", &["git-proq merge -q topic"], false, "git-proq list"));
    let stash = [
        "git stash push -q -u",
        "git switch -q --detach topic",
        "git switch -q main",
        "git stash pop -q --index",
    ];
    all.push(way("`git stash`, two `git switch`, `git stash pop --index`", &stash, false, "git status"));
    let preview = ["git-proq preview -q topic", "git-proq preview -q --back"];
    all.push(way("`git proq preview`, `preview --back`", &preview, false, "git-proq list"));
    all
}

impl Workflow {
    fn is_ours(&self) -> bool {
        self.next.starts_with("git-proq")
    }

    /// The folder that it runs in.
    fn dir(&self, place: &Place) -> PathBuf {
        if self.in_branch { place.top().join("topic") } else { place.repo() }
    }

    /// Its first commands.
    fn first(&self, steps: usize, place: &Place) -> Command {
        let mut command = place.command("sh", &self.dir(place));
        command.args(["-c", &self.steps[..steps].join(" && ")]);
        command
    }

    /// The same branch for all, in a worktree: one of git's own, or a lane.
    fn prepare(&self, place: &Place) -> Outcome<()> {
        place.begin()?;
        place
            .sh("mkdir src; for n in 1 2 3 4 5 6 7 8; do echo $n > src/$n; done; echo cache > .gitignore")?;
        place.keep("staged.txt", "first")?;
        place.keep("edited.txt", "first")?;
        place.sh("git add -A; git commit -qm first")?;
        let worktree = if self.is_ours() {
            place.proq_ok(&["spawn", "--empty", "-n", "topic"])?;
            place.lane("topic")
        } else {
            place.sh("git worktree add -q -b topic ../topic")?;
            place.top().join("topic")
        };
        place.keep(worktree.join("src/1"), "changed on the branch")?;
        place.keep(worktree.join("src/2"), "changed on the branch")?;
        place.keep(worktree.join("src/new"), "new on the branch")?;
        place.sh_in(&worktree, "git rm -q src/3; git add -A; git commit -qm topic")?;
        place.keep("src/8", "changed on the base")?;
        place.sh("git commit -qam base")?;
        place.keep("staged.txt", "staged by the user")?;
        if self.staged {
            place.sh("git add staged.txt")?;
        }
        place.keep("edited.txt", "edited by the user")?;
        place.keep("notes.txt", "untracked, by the user")?;
        place.keep("cache", "ignored, by the user")?;
        place.freeze()
    }
}

/// Kills one way at each of its points.
fn count(place: &Place, way: &Workflow, args: &Args) -> Outcome<Tally> {
    way.prepare(place)?;
    // What is there when no command, the first, the first two, ... have run. The last is where it is to go.
    let mut whole = Vec::new();
    for steps in 0..=way.steps.len() {
        place.reset()?;
        if steps > 0 {
            place.answer(&mut way.first(steps, place))?.ok(&way.name)?;
        }
        whole.push(look(place)?);
    }
    let mut count = Tally::default();
    let mut point = 1;
    loop {
        place.reset()?;
        let run = killed(place, way, point)?;
        let Some(call) = run.hit else { return Ok(count) };
        count.points += 1;
        let mut wrong = Vec::new();
        let is_whole = |image: &Image| whole.iter().any(|one| difference(image, one).is_none());
        if !is_whole(&look(place)?) {
            count.half += 1;
        }
        let next: Vec<&str> = way.next.split(' ').collect();
        let _ = place.answer(place.command(next[0], &place.repo()).args(&next[1..]))?;
        if !is_whole(&look(place)?) {
            count.half_looked_at += 1;
            wrong.push("half done".to_owned());
        }
        if let Some(lock) = lock_below(&place.repo().join(".git")) {
            count.locked += 1;
            wrong.push(format!("locked by {lock}"));
        }
        if way.dir(place).is_dir() {
            let _ = place.answer(&mut way.first(way.steps.len(), place))?;
        }
        match whole.last().and_then(|wanted| difference(&look(place).ok()?, wanted)) {
            None => count.again += 1,
            Some(what) => wrong.push(format!("the same again does not get there: {what}")),
        }
        let lost = precious::lost(place, &place.tokens())?;
        if !lost.is_empty() {
            count.lost += 1;
            wrong.push(format!("LOST: {}", lost.join(", ")));
        }
        count.notes.extend(wrong.into_iter().map(|what| format!("{} {point} {call:?}: {what}", way.name)));
        point += args.every.max(1);
    }
}

/// Runs a way under the tracer, and kills it with all that it started.
fn killed(place: &Place, way: &Workflow, point: usize) -> Outcome<Run> {
    let ours = [place.beside("out"), place.beside("err")];
    let mut command = way.first(way.steps.len(), place);
    command.stdout(File::create(&ours[0])?).stderr(File::create(&ours[1])?);
    trace::run(command, Plan::Kill(point), &ours, None)
}

/// The main checkout as its user sees it: files, index, where HEAD is and what it holds, and open operations.
fn look(place: &Place) -> Outcome<Image> {
    let repo = place.repo();
    let mut image = Image::new();
    for (path, value) in checkout::files(&repo)? {
        image.insert(format!("file {path}"), value);
    }
    let index = place.list_index(&repo)?;
    for (entry, value) in checkout::index(&index.stdout) {
        image.insert(format!("index {entry}"), value);
    }
    let tree = place.answer(place.command("git", &repo).args(["rev-parse", "HEAD^{tree}"]))?;
    image.insert("HEAD's tree".to_owned(), String::from_utf8_lossy(&tree.stdout).trim().to_owned());
    let head = std::fs::read_to_string(repo.join(".git/HEAD")).unwrap_or_default();
    image.insert("HEAD".to_owned(), if head.starts_with("ref: ") { head } else { "detached".to_owned() });
    if repo.join(".git/MERGE_HEAD").exists() {
        image.insert("an open merge".to_owned(), String::new());
    }
    Ok(image)
}

/// A lock that keeps git from something. Those of git-proq, which the kernel frees, do not, nor do those of the stash's own
/// index, whose name nobody takes again.
fn lock_below(dir: &Path) -> Option<String> {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let found = if path.is_dir() && name != "proq" && name != "objects" {
            lock_below(&path)
        } else {
            (path.extension().is_some_and(|end| end == "lock") && !name.starts_with("index.stash."))
                .then_some(name)
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

impl Tally {
    fn print(&self, way: &Workflow, verbose: bool) {
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            way.name, self.points, self.lost, self.half, self.half_looked_at, self.locked, self.again
        );
        for note in self.notes.iter().filter(|_| verbose) {
            println!("  {note}");
        }
    }
}
