//! Owns `git proq gc`: its arguments, and how it tells what it frees.

use clap::Args;
use serde::Serialize;

use super::{Done, Session, identity, ui};
use crate::explain::{Exit, Explain};
use crate::lane::{self, Held, Kind, Old, Project, Spare, Stays};
use crate::store::{Moment, now};

/// Free what was kept for a time and is old now
///
/// Goes: removed lanes' folders after trash.keep days; after op.keep days operations, snapshots that came back, and saved
/// refs whose commits a branch or tag has too; results of checks after 30 days; and what dead processes had begun to
/// write. What is younger, what cannot be read, and commits that nothing else keeps stay; those are named, and how much room
/// the trash takes, in which folders of landed lanes wait for new ones. cleanup and merge do most of this by themselves.
///
/// Examples:
///     git proq gc --dry-run
///     git proq gc --json | jq .bytes
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Gc {
    /// Say what would go, by name, and free nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct Answer {
    freed: Vec<Group>,
    /// On disk. Objects are git's to free, when nothing keeps them any more.
    bytes: u64,
    kept: Vec<Kept>,
    /// What the trash has in it still, since it is young.
    trash: Held,
    dry_run: bool,
}

#[derive(Serialize)]
struct Group {
    /// trash, snapshots, operations, saved-refs, operation-refs, checks or drafts.
    kind: &'static str,
    count: usize,
    bytes: u64,
    items: Vec<Item>,
}

#[derive(Serialize)]
struct Item {
    name: String,
    /// Since when it could be missed.
    at: Moment,
    bytes: u64,
}

#[derive(Serialize)]
struct Kept {
    kind: &'static str,
    name: String,
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

pub(super) fn run(session: &Session, args: &Gc) -> Done {
    let project = session.project_to_change()?;
    identity::refuse_agent_for_others(&[], args.dry_run)?;
    let (dry_run, trash) = (args.dry_run, Held::default());
    let mut answer = Answer { freed: Vec::new(), bytes: 0, kept: Vec::new(), trash, dry_run };
    let mut failed = false;
    for kind in Kind::ALL {
        let Old { spare, stays } = lane::old(&project, kind)?;
        let mut items = Vec::new();
        for spare in &spare {
            crate::interrupt::check()?;
            match free(&project, spare, args.dry_run) {
                Ok(item) => items.extend(item),
                Err(e) => {
                    failed = true;
                    let help = e.hints().first().map(ToString::to_string);
                    answer.kept.push(Kept { kind: key(kind), name: spare.name.clone(), why: said(&e), help });
                }
            }
        }
        let kept = |Stays { name, why, help }| Kept { kind: key(kind), name, why, help };
        answer.kept.extend(stays.into_iter().map(kept));
        if !items.is_empty() {
            let bytes = items.iter().map(|item| item.bytes).sum();
            answer.bytes += bytes;
            show(session, kind, &items, bytes, args.dry_run);
            answer.freed.push(Group { kind: key(kind), count: items.len(), bytes, items });
        }
    }
    let gone = answer.freed.iter().filter(|group| group.kind == key(Kind::Trash));
    let mut but: Vec<String> = gone.flat_map(|group| &group.items).map(|item| item.name.clone()).collect();
    // What stays in it whatever its age goes with no clean-up.
    but.extend(answer.kept.iter().filter(|kept| kept.kind == key(Kind::Trash)).map(|kept| kept.name.clone()));
    answer.trash = lane::held(&project, &but)?;
    tell(session, answer);
    Ok(if failed { Exit::Refused } else { Exit::Done })
}

/// Says what is not said yet: what stays.
fn tell(session: &Session, answer: Answer) {
    if session.ui.json {
        session.ui.object(answer);
    } else {
        for kept in &answer.kept {
            let is_command = kept.help.as_ref().is_some_and(|help| help.starts_with("git update-ref"));
            let lead = if is_command { "delete it: " } else { "" };
            let help = kept.help.as_ref().map_or_else(String::new, |help| format!("; {lead}{help}"));
            session.ui.say(format!("kept {} {}: {}{help}", word(kept.kind), kept.name, kept.why));
        }
        if answer.freed.is_empty() {
            session.ui.say("nothing is old enough to go");
        } else if !answer.dry_run && answer.freed.iter().any(|group| group.kind != "trash") {
            session.ui.hint("what git keeps of them goes with its own clean-up: git gc");
        }
        let Held { count, bytes, waiting } = answer.trash;
        if count > 0 {
            let (lanes, size) = (ui::count(count, "removed lane"), ui::size(bytes));
            session.ui.say(format!("in the trash for now: {lanes}, {size}{}", lane::whose(&waiting)));
            session.ui.hint("free that too, for good: PROQ_TRASH_KEEP=0 git proq gc");
        }
    }
}

/// Lets one thing go; none when it went, or was taken back, meanwhile.
fn free(project: &Project, spare: &Spare, dry_run: bool) -> Result<Option<Item>, lane::Error> {
    let item = Item { name: spare.name.clone(), at: spare.at, bytes: spare.size(project) };
    Ok((dry_run || spare.free(project)?).then_some(item))
}

fn show(session: &Session, kind: Kind, items: &[Item], bytes: u64, dry_run: bool) {
    if session.ui.json {
        return;
    }
    let done = if dry_run { "would free" } else { "freed" };
    let size = if bytes == 0 { String::new() } else { format!(", {}", ui::size(bytes)) };
    session.ui.answer(format!("{done} {}{size}", counted(kind, items.len())));
    for item in items.iter().filter(|_| dry_run) {
        let size = if item.bytes == 0 { String::new() } else { format!(", {}", ui::size(item.bytes)) };
        session.ui.answer(format!("  {} ({} old{size})", item.name, ui::span(now().since(item.at))));
    }
}

fn counted(kind: Kind, n: usize) -> String {
    match kind {
        Kind::Trash => format!("{} from the trash", ui::count(n, "removed lane")),
        Kind::Snapshots => format!("{} that came back", ui::count(n, "snapshot")),
        Kind::Operations => format!("{} from the log", ui::count(n, "operation")),
        Kind::Saved => format!("{} whose commits are elsewhere", ui::count(n, "saved ref")),
        Kind::Keepers => format!("{} of operations that are gone", ui::count(n, "ref")),
        Kind::Checks => format!("{} of checks", ui::count(n, "result")),
        Kind::Drafts => format!("{} of dead processes", ui::count(n, "left-over")),
    }
}

/// A kind's name in answers for programs.
fn key(kind: Kind) -> &'static str {
    match kind {
        Kind::Trash => "trash",
        Kind::Snapshots => "snapshots",
        Kind::Operations => "operations",
        Kind::Saved => "saved-refs",
        Kind::Keepers => "operation-refs",
        Kind::Checks => "checks",
        Kind::Drafts => "drafts",
    }
}

fn word(key: &str) -> &str {
    match key {
        "snapshots" => "snapshot",
        "operations" => "operation",
        "saved-refs" | "operation-refs" => "ref",
        "checks" => "result",
        "drafts" => "left-over",
        other => other,
    }
}

/// An error with its cause, in one line.
fn said(error: &lane::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error} ({cause})"),
        None => error.to_string(),
    }
}
