//! Comparison with other ways to land a branch, and to preview one, over a checkout with uncommitted changes.
//! Each is killed before every mutating system call, and the resulting states are counted.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};

use super::fixture::Fixture;
use super::image::{Image, difference};
use super::trace::{self, Plan, TracedRun};
use super::{Outcome, fail, lost_contents};
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

/// Workflow under comparison.
#[derive(Debug, Clone)]
struct Workflow {
    /// Name of the workflow, as a user types it.
    name: String,
    /// Commands, run one after the other while they succeed.
    steps: Vec<String>,
    /// Whether the workflow runs in the branch's worktree.
    runs_in_branch: bool,
    /// Whether an edit is staged.
    has_staged_edit: bool,
    /// Command that a user runs next to inspect the repository.
    next_command: &'static str,
}

/// Results of killing a workflow at each of its calls.
#[derive(Debug, Default)]
struct Tally {
    points: usize,
    /// Points after which the user's work was out of reach in the end.
    lost: usize,
    /// Points after which the checkout was in a state that no completed command leaves.
    half_done: usize,
    /// Points after which it still was after the next command of the same tool.
    half_done_after_next: usize,
    /// Points after which a lock of git's remained after the next command.
    locked: usize,
    /// Points after which running the workflow again led to its final state.
    completed_by_rerun: usize,
    notes: Vec<String>,
}

const HEADER: &str = "| what is killed | at | changes lost | half done | still, at the next look | a lock left | the same again gets there |
|---|---|---|---|---|---|---|";

/// Runs the comparison.
pub(crate) fn main(args: &Args) -> ExitCode {
    if !trace::can_trace() {
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
    let proq = crate::run_env::build_program(args.proq.as_deref(), false)?;
    let folder = crate::run_env::create_folder(FOLDER, FOLDER)?;
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
                while let Some(workflow) = todo.lock().unwrap_or_else(PoisonError::into_inner).pop() {
                    match Fixture::new(&folder, proq)
                        .and_then(|fixture| kill_at_each_call(&fixture, &workflow, args))
                    {
                        Ok(tally) => tally.print(&workflow, args.verbose),
                        Err(e) => failures
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(format!("{}: {e}", workflow.name)),
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
    let workflow = |name: &str, steps: &[&str], in_branch, next| Workflow {
        name: name.to_owned(),
        steps: steps.iter().map(|step| (*step).to_owned()).collect(),
        runs_in_branch: in_branch,
        has_staged_edit: steps.len() > 1,
        next_command: next,
    };
    let mut all =
        vec![workflow("`git merge`", &["git merge -q --no-ff --no-edit topic"], false, "git status")];
    all.extend(args.wt.as_ref().map(|wt| Workflow {
        steps: vec![format!("'{}' merge --yes main", wt.display())],
        ..workflow("`wt merge`", &[], true, "git status")
    }));
    all.push(workflow("`git proq merge`", &["git-proq merge -q topic"], false, "git-proq list"));
    let stash = [
        "git stash push -q -u",
        "git switch -q --detach topic",
        "git switch -q main",
        "git stash pop -q --index",
    ];
    all.push(workflow("`git stash`, two `git switch`, `git stash pop --index`", &stash, false, "git status"));
    let preview = ["git-proq preview -q topic", "git-proq preview -q --back"];
    all.push(workflow("`git proq preview`, `preview --back`", &preview, false, "git-proq list"));
    all
}

impl Workflow {
    fn is_proq(&self) -> bool {
        self.next_command.starts_with("git-proq")
    }

    /// Returns the folder that the workflow runs in.
    fn dir(&self, fixture: &Fixture) -> PathBuf {
        if self.runs_in_branch { fixture.root().join("topic") } else { fixture.repo() }
    }

    /// Returns a command that runs the first steps.
    fn first_steps(&self, steps: usize, fixture: &Fixture) -> Command {
        let mut command = fixture.command("sh", &self.dir(fixture));
        command.args(["-c", &self.steps[..steps].join(" && ")]);
        command
    }

    /// Prepares the same branch for all workflows, in a worktree of git's own or in a lane.
    fn prepare(&self, fixture: &Fixture) -> Outcome<()> {
        fixture.init()?;
        fixture
            .sh("mkdir src; for n in 1 2 3 4 5 6 7 8; do echo $n > src/$n; done; echo cache > .gitignore")?;
        fixture.write_token("staged.txt", "first")?;
        fixture.write_token("edited.txt", "first")?;
        fixture.sh("git add -A; git commit -qm first")?;
        let worktree = if self.is_proq() {
            fixture.proq_ok(&["spawn", "--empty", "-n", "topic"])?;
            fixture.lane("topic")
        } else {
            fixture.sh("git worktree add -q -b topic ../topic")?;
            fixture.root().join("topic")
        };
        fixture.write_token(worktree.join("src/1"), "changed on the branch")?;
        fixture.write_token(worktree.join("src/2"), "changed on the branch")?;
        fixture.write_token(worktree.join("src/new"), "new on the branch")?;
        fixture.sh_in(&worktree, "git rm -q src/3; git add -A; git commit -qm topic")?;
        fixture.write_token("src/8", "changed on the base")?;
        fixture.sh("git commit -qam base")?;
        fixture.write_token("staged.txt", "staged by the user")?;
        if self.has_staged_edit {
            fixture.sh("git add staged.txt")?;
        }
        fixture.write_token("edited.txt", "edited by the user")?;
        fixture.write_token("notes.txt", "untracked, by the user")?;
        fixture.write_token("cache", "ignored, by the user")?;
        fixture.save_template()
    }
}

/// Kills a workflow at each of its calls.
fn kill_at_each_call(fixture: &Fixture, workflow: &Workflow, args: &Args) -> Outcome<Tally> {
    workflow.prepare(fixture)?;
    // States after no step, the first step, the first two, and so on. The last one is the final state.
    let mut complete_states = Vec::new();
    for steps in 0..=workflow.steps.len() {
        fixture.reset()?;
        if steps > 0 {
            fixture.output(&mut workflow.first_steps(steps, fixture))?.ok(&workflow.name)?;
        }
        complete_states.push(read_checkout(fixture)?);
    }
    let mut tally = Tally::default();
    let mut point = 1;
    loop {
        fixture.reset()?;
        let run = run_killed(fixture, workflow, point)?;
        let Some(call) = run.planned_call else { return Ok(tally) };
        tally.points += 1;
        let mut wrong = Vec::new();
        let is_complete = |image: &Image| complete_states.iter().any(|one| difference(image, one).is_none());
        if !is_complete(&read_checkout(fixture)?) {
            tally.half_done += 1;
        }
        let next: Vec<&str> = workflow.next_command.split(' ').collect();
        let _ = fixture.output(fixture.command(next[0], &fixture.repo()).args(&next[1..]))?;
        if !is_complete(&read_checkout(fixture)?) {
            tally.half_done_after_next += 1;
            wrong.push("half done".to_owned());
        }
        if let Some(lock) = lock_below(&fixture.repo().join(".git")) {
            tally.locked += 1;
            wrong.push(format!("locked by {lock}"));
        }
        if workflow.dir(fixture).is_dir() {
            let _ = fixture.output(&mut workflow.first_steps(workflow.steps.len(), fixture))?;
        }
        match complete_states.last().and_then(|wanted| difference(&read_checkout(fixture).ok()?, wanted)) {
            None => tally.completed_by_rerun += 1,
            Some(what) => wrong.push(format!("the same again does not get there: {what}")),
        }
        let lost = lost_contents::find_lost(fixture, &fixture.tokens())?;
        if !lost.is_empty() {
            tally.lost += 1;
            wrong.push(format!("LOST: {}", lost.join(", ")));
        }
        tally
            .notes
            .extend(wrong.into_iter().map(|what| format!("{} {point} {call:?}: {what}", workflow.name)));
        point += args.every.max(1);
    }
}

/// Runs a workflow under the tracer, and kills it with all processes that it started.
fn run_killed(fixture: &Fixture, workflow: &Workflow, point: usize) -> Outcome<TracedRun> {
    let output_files = [fixture.sibling("out"), fixture.sibling("err")];
    let mut command = workflow.first_steps(workflow.steps.len(), fixture);
    command.stdout(File::create(&output_files[0])?).stderr(File::create(&output_files[1])?);
    trace::run_traced(command, Plan::Kill(point), &output_files, None)
}

/// Reads the main checkout as its user sees it: files, index, HEAD and its tree, and open operations.
fn read_checkout(fixture: &Fixture) -> Outcome<Image> {
    let repo = fixture.repo();
    let mut image = Image::new();
    for (path, value) in checkout::files(&repo)? {
        image.insert(format!("file {path}"), value);
    }
    let index = fixture.list_index(&repo)?;
    for (entry, value) in checkout::index(&index.stdout) {
        image.insert(format!("index {entry}"), value);
    }
    let tree = fixture.output(fixture.command("git", &repo).args(["rev-parse", "HEAD^{tree}"]))?;
    image.insert("HEAD's tree".to_owned(), String::from_utf8_lossy(&tree.stdout).trim().to_owned());
    let head = std::fs::read_to_string(repo.join(".git/HEAD")).unwrap_or_default();
    image.insert("HEAD".to_owned(), if head.starts_with("ref: ") { head } else { "detached".to_owned() });
    if repo.join(".git/MERGE_HEAD").exists() {
        image.insert("an open merge".to_owned(), String::new());
    }
    Ok(image)
}

/// Returns a lock that blocks git. Locks of git-proq, which the kernel releases, do not, nor do those of the
/// stash's own index, whose names no process uses again.
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
    fn print(&self, workflow: &Workflow, verbose: bool) {
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            workflow.name,
            self.points,
            self.lost,
            self.half_done,
            self.half_done_after_next,
            self.locked,
            self.completed_by_rerun
        );
        for note in self.notes.iter().filter(|_| verbose) {
            println!("  {note}");
        }
    }
}
