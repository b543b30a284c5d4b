//! Owns `git proq resolve`: its arguments, the ways to resolve, and what came of it.

use std::path::{Path, PathBuf};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::{agent_names, lane_names};
use super::wishes::{Wishes, refuse_full_in_lane};
use super::{Done, Failure, Mistake, Session, identity, ui};
use crate::explain::Exit;
use crate::git::RepoPath;
use crate::lane::Project;
use crate::merge::{self, Leave, ResolveError, Resolved, Resolver, Start};
use crate::process::Start as Program;
use crate::store::path_form;
use crate::store::records::{ConflictRecord, ResolveRecord};

/// Resolve the conflict of a lane
///
/// The lane's branch is checked out in a worktree of its own, .proq-worktrees/.resolve/LANE, and git merges into it what
/// the lane is to land on, so that rerere and merge drivers act. What you or an agent make of it becomes the lane's new
/// tip when it is proved: no marker is left, nothing beside the conflict was changed, and both sides' other changes are
/// still there. An agent may drop neither side; you may. Then the lane can land.
///
/// Without a flag, says what the conflict is and what can be done. Nothing that is in that worktree is ever lost: what is
/// given up is kept, and `git proq undo` takes a resolution back.
///
/// Exits with 3 when an agent's resolution was refused in every try.
///
/// Examples:
///     git proq resolve payments --agent claude --retries 1
///     git proq resolve payments --shell
///     git proq resolve payments --continue
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("way").args(["agent", "shell", "tool", "go_on", "abort"]))]
pub(crate) struct Resolve {
    /// The lane
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lane: String,
    /// Send AGENT at it: a known one or any program on PATH
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(agent_names))]
    pub(crate) agent: Option<String>,
    /// Open a shell in it; when that ends, go on as with --continue
    #[arg(long)]
    pub(crate) shell: bool,
    /// Run `git mergetool` in it, with TOOL or the one that git is set up with, then go on as with --continue
    #[arg(long, value_name = "TOOL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) tool: Option<String>,
    /// Make what is there the lane's new tip, if it is proved
    #[arg(long = "continue")]
    pub(crate) go_on: bool,
    /// Give it up; all that was made of it is kept
    #[arg(long)]
    pub(crate) abort: bool,
    /// Try N times more when an agent's resolution is refused
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, requires = "agent")]
    pub(crate) retries: u32,
    /// What the agent's run is to be like
    #[command(flatten)]
    pub(crate) wishes: Wishes,
    /// Accept PATH as it is, whatever was done to it (again for more)
    #[arg(long, value_name = "PATH", conflicts_with = "abort", requires = "way")]
    pub(crate) allow: Vec<PathBuf>,
    /// Accept changes of files that are not in conflict
    #[arg(long, conflicts_with = "abort", requires = "way")]
    pub(crate) allow_other_changes: bool,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What came of it, for programs.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    resolved: Option<&'a Resolved>,
    result: &'static str,
    dry_run: bool,
}

/// How a conflict stands, for programs.
#[derive(Serialize)]
struct Status<'a> {
    lane: &'a str,
    onto: &'a str,
    result: &'static str,
    files: &'a [RepoPath],
    messages: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    dry_run: bool,
}

/// What was given up, for programs.
#[derive(Serialize)]
struct GivenUp<'a> {
    lane: &'a str,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trash: Option<String>,
}

/// Where this program lies, to start it again as a supervisor. Where another has taken its place meanwhile, that one.
pub(super) fn this_program() -> Result<PathBuf, Failure> {
    let exe = std::env::current_exe();
    let exe = exe.map_err(|source| Mistake::Unreadable { path: "git-proq".into(), source })?;
    // That is how Linux names a program whose file was replaced while it ran.
    let other = exe.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(other.filter(|_| !exe.exists()).unwrap_or(exe))
}

pub(super) fn run(session: &Session, args: &Resolve) -> Done {
    let asked = args.agent.is_some() || args.shell || args.tool.is_some() || args.go_on || args.abort;
    if !asked || args.dry_run {
        return look(session, args);
    }
    let project = session.project_to_change()?;
    identity::refuse_agent_for_others(std::slice::from_ref(&args.lane), args.dry_run)?;
    if args.abort {
        return abort(session, &project, args);
    }
    let leave = Leave {
        paths: args.allow.iter().filter_map(|path| RepoPath::of(path)).collect(),
        others: args.allow_other_changes,
    };
    let resolved = if let Some(agent) = &args.agent {
        let exe = this_program()?;
        let asked = args.wishes.asked();
        refuse_full_in_lane(session, &project, &asked)?;
        let (retries, dir) = (args.retries, session.dir.as_path());
        let resolver = Resolver { agent, retries, leave: &leave, asked: &asked, exe: &exe, dir };
        merge::by_agent(&project, &args.lane, &resolver)?
    } else if args.go_on {
        merge::go_on(&project, &args.lane, &leave)?
    } else {
        match merge::lay_out_by_hand(&project, &args.lane)? {
            Start::Over(resolved) => resolved,
            Start::Open(open) => {
                work(session, &project, args, &open)?;
                merge::go_on(&project, &args.lane, &leave)?
            }
        }
    };
    say(session, &resolved);
    Ok(Exit::Done)
}

/// Lets the person work on it, in a shell or a merge tool.
fn work(session: &Session, project: &Project, args: &Resolve, open: &ResolveRecord) -> Result<(), Failure> {
    session.ui.say(format!("{} in {}:", conflicted(&open.names(), &open.onto), open.path.display()));
    for message in &open.messages {
        session.ui.say(format!("  {message}"));
    }
    let done = if let Some(tool) = &args.tool {
        project.repo.merge_tool(&open.path, Some(tool)).map_err(Failure::from)
    } else {
        session.ui.say(
            "edit the files and take the markers out, then `exit`; what is not resolved then stays there",
        );
        let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        let program = Program::new(Path::new(&shell), &open.path).env("PROQ_LANE", open.lane.as_str());
        // How a shell ends says nothing: it is the code of the last command in it.
        program.run_on_terminal().map(drop).map_err(Failure::from)
    };
    // A Ctrl-C in there was meant for what ran in there.
    crate::interrupt::forget();
    done
}

fn conflicted(files: &[RepoPath], onto: &str) -> String {
    format!("the conflict with {onto} in {} is laid out", ui::count(files.len(), "file"))
}

fn say(session: &Session, resolved: &Resolved) {
    let result = if resolved.commit.is_some() { "resolved" } else { "no-conflict" };
    if session.ui.json {
        session.ui.object(Answer { resolved: Some(resolved), result, dry_run: false });
        return;
    }
    let Resolved { lane, onto, commit, by, files } = resolved;
    match commit {
        None => session.ui.answer(format!("lane '{lane}' does not conflict with {onto} any more")),
        Some(commit) => {
            let by = match by.as_deref() {
                Some("hand") | None => String::new(),
                Some("git") => " by what git knew from before".to_owned(),
                Some(agent) => format!(" by {agent}"),
            };
            let files = ui::count(files.len(), "file");
            session.ui.answer(format!(
                "resolved{by}: lane '{lane}' has {onto} in it now ({}), {files} that conflicted",
                commit.short()
            ));
        }
    }
    session.ui.hint(format!("look at it: git proq diff {lane}   land it: git proq merge {lane}"));
}

fn abort(session: &Session, project: &Project, args: &Resolve) -> Done {
    let (open, away) = merge::abort(project, &args.lane)?;
    if session.ui.json {
        let trash = away.trash.as_deref().map(path_form::text);
        let saved = away.saved.as_deref();
        session.ui.object(GivenUp { lane: &open.lane, result: "aborted", saved, trash });
        return Ok(Exit::Done);
    }
    session.ui.answer(format!("given up: lane '{}' is in conflict with {} as before", open.lane, open.onto));
    if let Some(saved) = &away.saved {
        session.ui.say(format!("what was made of it is kept: git show {saved}"));
    }
    session.ui.hint("bring it back: git proq undo");
    Ok(Exit::Done)
}

/// Says what the conflict is and what can be done about it, or what the flags would do.
fn look(session: &Session, args: &Resolve) -> Done {
    let project = session.project()?;
    let (lane, open) = merge::look(&project, &args.lane)?;
    let conflict = merge::conflict_of(&project, &lane.name)?;
    if let (true, None) = (args.go_on || args.abort, &open) {
        return Err(merge::Error::from(ResolveError::NotOpen { lane: lane.name }).into());
    }
    if session.ui.json {
        session.ui.object(Status {
            lane: &lane.name,
            onto: &conflict.onto,
            result: if open.is_some() { "open" } else { "conflict" },
            files: &conflict.paths,
            messages: &conflict.messages,
            worktree: open.as_ref().map(|open| path_form::text(&open.path)),
            agent: open.as_ref().and_then(|open| open.agent.as_deref()),
            dry_run: args.dry_run,
        });
        return Ok(Exit::Done);
    }
    if args.dry_run {
        session.ui.answer(plan(args, &lane.name, &conflict.onto));
        return Ok(Exit::Done);
    }
    explain(session, &lane.name, &conflict, open.as_ref());
    Ok(Exit::Done)
}

fn plan(args: &Resolve, lane: &str, onto: &str) -> String {
    let after = "and make what comes of it the lane's new tip, if it is proved";
    match (&args.agent, args.abort, args.go_on) {
        (_, true, _) => format!("would give up what is laid out of the conflict of lane '{lane}', all kept"),
        (_, _, true) => format!("would judge what is laid out of the conflict of lane '{lane}', {after}"),
        (Some(agent), ..) => format!(
            "would merge {onto} into lane '{lane}' in a worktree of its own, send {agent} at it in up to {}, {after}",
            ui::count(usize::try_from(args.retries).unwrap_or(usize::MAX).saturating_add(1), "run")
        ),
        _ => format!(
            "would merge {onto} into lane '{lane}' in a worktree of its own, open it for you, {after}"
        ),
    }
}

fn explain(session: &Session, lane: &str, conflict: &ConflictRecord, open: Option<&ResolveRecord>) {
    session.ui.answer(format!(
        "lane '{lane}' conflicts with {} in {}",
        conflict.onto,
        ui::count(conflict.paths.len(), "file")
    ));
    for message in conflict.messages.iter().take(20) {
        session.ui.answer(format!("  {message}"));
    }
    session.ui.answer("");
    let row = |way: &str, what: &str| {
        session.ui.answer(format!("  {:<44} {what}", format!("git proq resolve {lane} {way}")));
    };
    if let Some(open) = open {
        session.ui.answer(format!("It is laid out in {}", open.path.display()));
        session.ui.answer("");
        row("--continue", "take what is there, if it is proved");
        row("--abort", "give it up; all that was made is kept");
    }
    row("--agent claude", "send an agent at it");
    row("--shell", "resolve it in a shell");
    row("--tool", "resolve it in your merge tool");
}
