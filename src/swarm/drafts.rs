//! Owns drafts: plans that agents made and nobody has run yet. Each has a folder with its record and every plan that it was.

use std::sync::Arc;

use super::source::Found;
use super::{DraftError, Error, Format, toml_plan};
use crate::fault;
use crate::lane::{self, Name, Project};
use crate::store::records::{Costs, DraftApproval, DraftRecord};
use crate::store::{
    Guard, Layout, LockName, Record, make_private, now, rename_new, sync_dir, write_atomically,
};

/// A draft, and the plan that it is by now.
#[derive(Debug)]
pub(crate) struct Draft {
    /// What is known of it.
    pub(crate) record: DraftRecord,
    /// Its plan; none as long as nothing came of it.
    pub(crate) plan: Option<Drafted>,
}

/// A draft's plan.
#[derive(Debug)]
pub(crate) struct Drafted {
    /// As it is kept, in TOML.
    pub(crate) text: String,
    /// As it was read.
    pub(crate) found: Found,
}

/// All drafts, the one changed last first. One that cannot be read is named in a warning and left out.
///
/// # Errors
/// When their folder cannot be read.
pub(crate) fn list(project: &Project) -> Result<Vec<DraftRecord>, DraftError> {
    let mut out = Vec::new();
    for name in names(project)? {
        match DraftRecord::find(&Layout::draft_record(&project.store.layout().draft(&name))) {
            Ok(found) => out.extend(found),
            Err(e) => project.listener.warn(format!("draft '{name}': {e}")),
        }
    }
    out.sort_by_key(|record| std::cmp::Reverse(record.turn));
    Ok(out)
}

fn names(project: &Project) -> Result<Vec<String>, DraftError> {
    let dir = project.store.layout().drafts();
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(lane::Error::io("read", &dir)(e).into()),
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| Name::parse(name).is_ok()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Whether there is a draft of this name.
pub(crate) fn exists(project: &Project, name: &str) -> bool {
    Name::parse(name).is_ok() && Layout::draft_record(&project.store.layout().draft(name)).exists()
}

/// The draft of this name.
///
/// # Errors
/// [`DraftError::Unknown`], and when it cannot be read.
pub(crate) fn read(project: &Project, name: &str) -> Result<Draft, DraftError> {
    let unknown = || DraftError::Unknown { name: name.chars().take(80).collect() };
    if Name::parse(name).is_err() {
        return Err(unknown());
    }
    let folder = project.store.layout().draft(name);
    let record = DraftRecord::find(&Layout::draft_record(&folder))?.ok_or_else(unknown)?;
    let plan = match record.plan {
        None => None,
        Some(number) => {
            let path = Layout::draft_plan(&folder, number);
            let text = crate::regular_file::record_text(&path).map_err(lane::Error::io("read", &path))?;
            Some(Drafted { found: found_in(name, &text)?, text })
        }
    };
    Ok(Draft { record, plan })
}

fn found_in(name: &str, text: &str) -> Result<Found, Error> {
    let plan = toml_plan::read(&Arc::from(name), text)?;
    Found::of(Format::Draft, plan, || name.to_owned())
}

/// Whether somebody has approved the plan that a draft is by now.
pub(crate) fn is_approved(project: &Project, draft: &Draft) -> bool {
    let Some(plan) = &draft.plan else { return false };
    draft
        .record
        .approved
        .as_ref()
        .is_some_and(|approved| Some(&approved.plan) == hash(project, &plan.text).as_ref())
}

/// Lets a draft be run, as the plan that `seen` is: one that has changed meanwhile is not approved.
///
/// # Errors
/// [`DraftError::NoPlan`], [`DraftError::Changed`].
pub(crate) fn approve(project: &Project, seen: &Draft) -> Result<DraftRecord, DraftError> {
    let name = &seen.record.name;
    let none = || DraftError::NoPlan { name: name.clone(), why: seen.record.wrong.clone() };
    let plan = seen.plan.as_ref().ok_or_else(none)?;
    let plan = hash(project, &plan.text).ok_or_else(none)?;
    let store = project.store.locks().take(&LockName::Store)?;
    if read(project, name)?.record.plan != seen.record.plan {
        return Err(DraftError::Changed { name: name.clone() });
    }
    change_held(project, name, &store, |record| record.approved = Some(DraftApproval { plan, at: now() }))
}

fn hash(project: &Project, text: &str) -> Option<String> {
    project.repo.blob_id(text.as_bytes()).map(|id| id.to_string())
}

/// Begins a draft under a name that no draft and no lane has.
pub(super) fn begin(
    project: &Project,
    goal: &str,
    (from, prompt): (Option<&str>, &str),
    (agent, model): (&str, Option<&str>),
) -> Result<DraftRecord, DraftError> {
    let layout = project.store.layout();
    make_private(&layout.drafts())?;
    let called = Name::from_prompt(&format!("plan {}", first_words(goal)));
    let scratch = layout.scratch()?;
    let store = project.store.locks().take(&LockName::Store)?;
    let turn = next_turn(project)?;
    let free = |name: &Name| !layout.draft(name.as_str()).exists() && !layout.lane(name.as_str()).exists();
    for name in (1..).map(|n| called.numbered(n)).filter(free) {
        let record = DraftRecord {
            name: name.to_string(),
            goal: goal.to_owned(),
            from: from.map(ToOwned::to_owned),
            agent: agent.to_owned(),
            model: model.map(ToOwned::to_owned),
            lane: None,
            session: None,
            feedback: Vec::new(),
            read: 0,
            plan: None,
            wrong: None,
            approved: None,
            turn,
            created: now(),
            updated: now(),
            costs: Costs::default(),
            past_costs: Costs::default(),
        };
        let draft = scratch.sub(name.as_str())?;
        write_atomically(&Layout::draft_prompt(&draft), prompt.as_bytes())?;
        record.save(&Layout::draft_record(&draft))?;
        let place = layout.draft(name.as_str());
        match rename_new(&draft, &place) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(lane::Error::io("make", &place)(e).into()),
        }
        sync_dir(&layout.drafts())?;
        drop(store);
        fault::point("draft.begun");
        return Ok(record);
    }
    Err(DraftError::Unknown { name: called.to_string() })
}

/// The first line of what somebody wants.
fn first_words(goal: &str) -> &str {
    goal.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Takes back a draft that nothing came of: not even its lane could be made.
pub(super) fn take_back(project: &Project, name: &str) -> Result<(), DraftError> {
    Ok(project.store.layout().bury(&project.store.layout().draft(name))?)
}

/// Changes a draft's record, from what is on disk then.
pub(super) fn change(
    project: &Project,
    name: &str,
    change: impl FnOnce(&mut DraftRecord),
) -> Result<DraftRecord, DraftError> {
    let store = project.store.locks().take(&LockName::Store)?;
    change_held(project, name, &store, change)
}

fn change_held(
    project: &Project,
    name: &str,
    _store: &Guard,
    change: impl FnOnce(&mut DraftRecord),
) -> Result<DraftRecord, DraftError> {
    let path = Layout::draft_record(&project.store.layout().draft(name));
    let mut record = DraftRecord::load(&path)?;
    record.turn = next_turn(project)?;
    record.updated = now();
    change(&mut record);
    record.save(&path)?;
    Ok(record)
}

/// Under the store's lock: one more than any draft has.
fn next_turn(project: &Project) -> Result<u64, DraftError> {
    Ok(list(project)?.first().map_or(0, |record| record.turn) + 1)
}

/// Makes `plan` what a draft is from now on, if the answer of `run` was not read before; `change` says what else is known. Its
/// file is there before the record names it.
pub(super) fn take_plan(
    project: &Project,
    name: &str,
    run: u32,
    plan: Option<&str>,
    change: impl FnOnce(&mut DraftRecord),
) -> Result<DraftRecord, DraftError> {
    let folder = project.store.layout().draft(name);
    let store = project.store.locks().take(&LockName::Store)?;
    let record = DraftRecord::load(&Layout::draft_record(&folder))?;
    if record.read >= run {
        return Ok(record);
    }
    let number = match plan {
        None => record.plan,
        Some(text) => {
            let number = next_turn(project)?;
            write_atomically(&Layout::draft_plan(&folder, number), text.as_bytes())?;
            fault::point("draft.written");
            Some(number)
        }
    };
    change_held(project, name, &store, |record| {
        record.read = run;
        record.plan = number;
        change(record);
    })
}
