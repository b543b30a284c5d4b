//! Drafts: plans that agents made and that were not run yet. Each draft has a folder with its record and all
//! versions of its plan.

use std::sync::Arc;

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_git::Repo;
use proq_plan::plan_error::PlanError;
use proq_plan::plan_format::PlanFormat;
use proq_plan::plan_source::LoadedPlan;
use proq_plan::toml_plan;
use proq_store::Store;
use proq_store::base::atomic::{create_private_dir, rename_no_replace, sync_dir, write as write_atomically};
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::paths::layout::Layout;
use proq_store::records::draft::{DraftApproval, DraftRecord, RunCosts};

use super::draft_error::DraftError;
use crate::lane;
use crate::lane::Project;

/// A draft with the current version of its plan.
#[derive(Debug)]
pub struct Draft {
    /// Stored record of the draft, with its name and goal.
    pub record: DraftRecord,
    /// The current plan; none until an agent has produced one.
    pub plan: Option<DraftPlan>,
}

/// The plan of a draft, as text and parsed.
#[derive(Debug)]
pub struct DraftPlan {
    /// The TOML text on disk.
    pub text: String,
    /// The plan parsed from the text.
    pub loaded: LoadedPlan,
}

/// Returns all drafts, the one changed last first. A draft that cannot be read gives a warning and is left
/// out.
///
/// # Errors
/// Fails when the folder of drafts cannot be read.
pub fn list_drafts(project: &Project) -> Result<Vec<DraftRecord>, DraftError> {
    let mut out = Vec::new();
    for name in draft_names(&project.store)? {
        match DraftRecord::load_if_exists(&Layout::draft_record(&project.store.layout().plan_draft(&name))) {
            Ok(found) => out.extend(found),
            Err(e) => project.listener.warn(format!("draft '{name}': {e}")),
        }
    }
    out.sort_by_key(|record| std::cmp::Reverse(record.change_number));
    Ok(out)
}

/// Returns the names of all drafts, sorted.
fn draft_names(store: &Store) -> Result<Vec<String>, DraftError> {
    let dir = store.layout().plan_drafts();
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(lane::Error::io("read", &dir)(e).into()),
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| LaneName::parse(name).is_ok()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Returns whether a draft of this name exists.
pub fn draft_exists(store: &Store, name: &str) -> bool {
    LaneName::parse(name).is_ok() && Layout::draft_record(&store.layout().plan_draft(name)).exists()
}

/// Reads the draft of this name.
///
/// # Errors
/// [`DraftError::UnknownDraft`], or an error when the draft cannot be read.
pub fn read_draft(store: &Store, name: &str) -> Result<Draft, DraftError> {
    let unknown = || DraftError::UnknownDraft { name: name.chars().take(80).collect() };
    if LaneName::parse(name).is_err() {
        return Err(unknown());
    }
    let folder = store.layout().plan_draft(name);
    let record = DraftRecord::load_if_exists(&Layout::draft_record(&folder))?.ok_or_else(unknown)?;
    let plan = match record.plan_number {
        None => None,
        Some(number) => {
            let path = Layout::draft_plan(&folder, number);
            let text =
                proq_base::regular_file::read_store_text(&path).map_err(lane::Error::io("read", &path))?;
            Some(DraftPlan { loaded: parse_draft_plan(name, &text)?, text })
        }
    };
    Ok(Draft { record, plan })
}

/// Parses the TOML text of a draft's plan.
fn parse_draft_plan(name: &str, text: &str) -> Result<LoadedPlan, PlanError> {
    let plan = toml_plan::read(&Arc::from(name), text)?;
    LoadedPlan::from_plan(PlanFormat::Draft, plan, || name.to_owned())
}

/// Returns whether the user has approved the current plan of a draft.
pub fn is_approved(repo: &Repo, draft: &Draft) -> bool {
    let Some(plan) = &draft.plan else { return false };
    draft
        .record
        .approval
        .as_ref()
        .is_some_and(|approved| Some(&approved.plan_hash) == plan_blob_id(repo, &plan.text).as_ref())
}

/// Approves the plan of a draft as it was shown. A plan that has changed since it was shown is not approved.
///
/// # Errors
/// [`DraftError::NoPlan`], [`DraftError::ChangedSinceShown`].
pub fn approve(project: &Project, shown: &Draft) -> Result<DraftRecord, DraftError> {
    let name = &shown.record.name;
    let no_plan =
        || DraftError::NoPlan { name: name.clone(), why: shown.record.invalid_answer_reason.clone() };
    let plan = shown.plan.as_ref().ok_or_else(no_plan)?;
    let blob_id = plan_blob_id(&project.repo, &plan.text).ok_or_else(no_plan)?;
    let store_lock = project.store.locks().acquire(&LockName::Store)?;
    if read_draft(&project.store, name)?.record.plan_number != shown.record.plan_number {
        return Err(DraftError::ChangedSinceShown { name: name.clone() });
    }
    update_record_locked(project, name, &store_lock, |record| {
        record.approval = Some(DraftApproval { plan_hash: blob_id, at: now() });
    })
}

/// Returns the blob id by which a plan's text is approved; none if git cannot compute it.
fn plan_blob_id(repo: &Repo, text: &str) -> Option<String> {
    repo.blob_id(text.as_bytes()).map(|id| id.to_string())
}

/// Creates a draft under a name that neither a draft nor a lane has.
pub fn create_draft(
    project: &Project,
    goal: &str,
    (source_file, prompt): (Option<&str>, &str),
    (agent, model): (&str, Option<&str>),
) -> Result<DraftRecord, DraftError> {
    let layout = project.store.layout();
    create_private_dir(&layout.plan_drafts())?;
    let base_name = LaneName::from_title(&format!("plan {}", first_line(goal)));
    let scratch = layout.create_scratch()?;
    let store_lock = project.store.locks().acquire(&LockName::Store)?;
    let change_number = next_change_number(project)?;
    let is_free = |name: &LaneName| !layout.plan_draft(name.as_str()).exists() && !layout.lane(name).exists();
    for name in (1..).map(|n| base_name.numbered(n)).filter(is_free) {
        let record = DraftRecord {
            name: name.to_string(),
            goal: goal.to_owned(),
            source_file: source_file.map(ToOwned::to_owned),
            agent: agent.to_owned(),
            model: model.map(ToOwned::to_owned),
            lane_created: None,
            session: None,
            feedback: Vec::new(),
            last_read_run: RunNumber::NONE,
            plan_number: None,
            invalid_answer_reason: None,
            approval: None,
            change_number,
            created: now(),
            updated: now(),
            costs: RunCosts::default(),
            past_costs: RunCosts::default(),
        };
        let scratch_draft = scratch.create_subdir(name.as_str())?;
        write_atomically(&Layout::draft_prompt(&scratch_draft), prompt.as_bytes())?;
        record.save(&Layout::draft_record(&scratch_draft))?;
        let draft_dir = layout.plan_draft(name.as_str());
        match rename_no_replace(&scratch_draft, &draft_dir) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(lane::Error::io("create", &draft_dir)(e).into()),
        }
        sync_dir(&layout.plan_drafts())?;
        drop(store_lock);
        fail_points::hit("draft.begun");
        return Ok(record);
    }
    Err(DraftError::UnknownDraft { name: base_name.to_string() })
}

/// Returns the first non-empty line of the user's goal.
fn first_line(goal: &str) -> &str {
    goal.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Removes a draft for which not even a lane could be created.
pub(crate) fn discard_draft(store: &Store, name: &str) -> Result<(), DraftError> {
    Ok(store.layout().delete(&store.layout().plan_draft(name))?)
}

/// Reads a draft's record under the store's lock, applies `edit` and saves it.
pub(crate) fn update_record(
    project: &Project,
    name: &str,
    edit: impl FnOnce(&mut DraftRecord),
) -> Result<DraftRecord, DraftError> {
    let store_lock = project.store.locks().acquire(&LockName::Store)?;
    update_record_locked(project, name, &store_lock, edit)
}

/// Reads a draft's record, applies `edit` and saves it. The caller passes the store's lock.
fn update_record_locked(
    project: &Project,
    name: &str,
    _store_lock: &LockGuard,
    edit: impl FnOnce(&mut DraftRecord),
) -> Result<DraftRecord, DraftError> {
    let path = Layout::draft_record(&project.store.layout().plan_draft(name));
    let mut record = DraftRecord::load(&path)?;
    record.change_number = next_change_number(project)?;
    record.updated = now();
    edit(&mut record);
    record.save(&path)?;
    Ok(record)
}

/// Returns one more than the largest change number of any draft. The caller holds the store's lock.
fn next_change_number(project: &Project) -> Result<u64, DraftError> {
    Ok(list_drafts(project)?.first().map_or(0, |record| record.change_number) + 1)
}

/// Saves `plan` as the current plan of a draft, unless the answer of `run` was already read; `edit` updates
/// the rest of the record. The plan's file is written before the record names it.
pub fn save_plan(
    project: &Project,
    name: &str,
    run: RunNumber,
    plan: Option<&str>,
    edit: impl FnOnce(&mut DraftRecord),
) -> Result<DraftRecord, DraftError> {
    let folder = project.store.layout().plan_draft(name);
    let store_lock = project.store.locks().acquire(&LockName::Store)?;
    let record = DraftRecord::load(&Layout::draft_record(&folder))?;
    if record.last_read_run >= run {
        return Ok(record);
    }
    let number = match plan {
        None => record.plan_number,
        Some(text) => {
            let number = next_change_number(project)?;
            write_atomically(&Layout::draft_plan(&folder, number), text.as_bytes())?;
            fail_points::hit("draft.written");
            Some(number)
        }
    };
    update_record_locked(project, name, &store_lock, |record| {
        record.last_read_run = run;
        record.plan_number = number;
        edit(record);
    })
}
