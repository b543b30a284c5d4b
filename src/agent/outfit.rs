//! Owns what one run is given: what it is told, files of its own, variables, and its command line.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Error;
use super::afresh;
use super::gate;
use super::job::Job;
use super::on_screen;
use super::profile::FILES;
use super::prompt::{Told, tell};
use super::talk;
use super::template::Values;
use super::variables::{self, Variable};
use crate::lane::{self, Project};
use crate::store::records::{AnyLane, Ports};
use crate::store::{make_private, write_atomically};

/// What a run is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Errand<'a> {
    /// The lane's task, in its worktree.
    Task,
    /// This, in its worktree: the beginning of another conversation, or more in the one that there was.
    Said(&'a str),
    /// Its conflict, with this prompt.
    Conflict(&'a str),
}

impl Errand<'_> {
    /// Whether it resolves the lane's conflict.
    pub(super) fn resolves(self) -> bool {
        matches!(self, Errand::Conflict(_))
    }
}

/// What a run is given.
#[derive(Debug)]
pub(super) struct Outfit {
    /// The command line.
    pub(super) words: Vec<OsString>,
    /// Variables.
    pub(super) env: Vec<(String, OsString)>,
    /// The session's id, where it is known before.
    pub(super) session: Option<String>,
}

/// Writes what the `attempt`-th run of a lane is told, and its files, and fills in its command line. `exe` is this program.
pub(super) fn prepare(
    project: &Project,
    lane: &AnyLane,
    job: &Job,
    attempt: u32,
    exe: &Path,
    errand: Errand<'_>,
) -> Result<Outfit, Error> {
    let layout = project.store.layout();
    let (dir, prompt_file) = desk(project, lane, attempt, errand.resolves());
    let checks = gate::checks_of(project, lane)?;
    let told = told(project, lane, job, attempt, &checks, errand)?;
    write_atomically(&prompt_file, told.prompt.as_bytes())?;
    let run_dir = layout.run_dir(&lane.name, attempt);
    let records_dir = layout.agent_dir(&lane.name);
    make_private(&run_dir)?;
    make_private(&records_dir)?;
    if let (Some(_), true, Errand::Said(text)) = (&job.resume, job.speaks(), errand) {
        let anew = layout.run_anew(&lane.name, attempt);
        write_atomically(&anew, told_anew(project, lane, job, &checks, text)?.as_bytes())?;
    }
    let session = match &job.resume {
        Some(session) => Some(session.clone()),
        None if job.profile().capabilities.session_id_settable => Some(new_session()?),
        None => None,
    };
    let limit = gate::hook_limit(project, &checks).as_secs();
    let mut values = job.clone().with_checks(checks).values();
    if let Some(rules) = &told.rules {
        let file = layout.run_rules(&lane.name, attempt);
        write_atomically(&file, rules.as_bytes())?;
        values.set("system_prompt", rules);
        values.set("system_prompt_file", file);
    }
    values.set("prompt", told.prompt);
    values.set("prompt_file", prompt_file);
    values.set_if("trusted_dir", on_screen::trusted_for_the_run(project, job.profile(), &dir));
    values.set("common_dir", project.repo.common_dir());
    values.set("git_dir", project.repo.git_dir_of(&dir)?);
    values.set("lane", &lane.name);
    values.set("lane_dir", dir);
    values.set("attempt", attempt.to_string());
    values.set("exe", exe);
    values.set("hook_timeout", limit.to_string());
    values.set("hook_timeout_ms", (limit * 1000).to_string());
    values.set("usage_file", run_dir.join("usage.json"));
    values.set("records_dir", records_dir);
    values.set("run_dir", &run_dir);
    values.set_if("session", session.as_ref());
    let of_files = write_files(project, job, &run_dir, &mut values)?;
    let mut env = of_profile(job, &values, of_files);
    env.push(("PROQ_LANE".to_owned(), lane.name.clone().into()));
    env.push(("PROQ_ATTEMPT".to_owned(), attempt.to_string().into()));
    env.push(("PROQ_PROGRAM".to_owned(), exe.into()));
    env.push(("PROQ_TASK_FILE".to_owned(), task_file(project, lane, attempt, errand).into()));
    env.extend(of_task(job).into_iter().chain(ports(project, lane)));
    env.push(("PROQ_WRAP_UP".to_owned(), layout.run_wrap_up(&lane.name, attempt).into()));
    Ok(Outfit { words: job.words(&values), env, session })
}

/// What its profile has it find, and what more in a window.
fn of_profile(job: &Job, values: &Values, of_files: Vec<Variable>) -> Vec<Variable> {
    let mut env = variables::of_level(job.profile(), job.permission, values);
    env.extend(of_files);
    if job.in_window {
        env.extend(variables::of_window(job.profile(), values));
    }
    env
}

/// Where servers of the lane are to listen, and the file that says so, too.
fn ports(project: &Project, lane: &AnyLane) -> Vec<(String, OsString)> {
    let file = lane::env_file(project, lane).map(|file| ("PROQ_ENV_FILE".to_owned(), file.into()));
    let variables = lane.port.into_iter().flat_map(Ports::variables);
    file.into_iter().chain(variables.map(|(name, value)| (name.to_owned(), value.into()))).collect()
}

/// The file that says what a run is for.
fn task_file(project: &Project, lane: &AnyLane, attempt: u32, errand: Errand<'_>) -> PathBuf {
    match errand.resolves() {
        true => desk(project, lane, attempt, true).1,
        false => project.store.layout().task(&lane.name),
    }
}

/// What a run of a batch finds of its task.
fn of_task(job: &Job) -> Vec<(String, OsString)> {
    let Some(of) = &job.batch else { return Vec::new() };
    vec![
        ("PROQ_BATCH".to_owned(), of.batch.clone().into()),
        ("PROQ_TASK".to_owned(), of.task.clone().into()),
        ("PROQ_TASK_ATTEMPT".to_owned(), of.attempt.to_string().into()),
    ]
}

/// What a run is told. What was said in place of the lane's task is kept as it was said.
fn told(
    project: &Project,
    lane: &AnyLane,
    job: &Job,
    attempt: u32,
    checks: &[String],
    errand: Errand<'_>,
) -> Result<Told, Error> {
    match errand {
        Errand::Conflict(prompt) => Ok(Told { rules: None, prompt: prompt.to_owned() }),
        Errand::Task => tell(project, lane, job, checks, None),
        Errand::Said(text) => {
            let file = project.store.layout().run_said(&lane.name, attempt);
            write_atomically(&file, text.as_bytes())?;
            tell(project, lane, job, checks, Some(text))
        }
    }
}

/// What a run is told that should go on in a conversation, by an agent that cannot: all that was said in it, and `text`.
fn told_anew(
    project: &Project,
    lane: &AnyLane,
    job: &Job,
    checks: &[String],
    text: &str,
) -> Result<String, Error> {
    let before = match talk::last_talk(project, lane, job.talk)? {
        Some(run) => {
            let first = afresh::beginning(project, lane, run)?;
            afresh::text(project, lane, &first, afresh::CLOSED)? + "\n# What is asked of you now\n\n"
        }
        None => String::new(),
    };
    Ok(tell(project, lane, &job.anew(), checks, Some(&(before + text)))?.prompt)
}

/// Where a run works, and the file that tells it what to do.
pub(super) fn desk(project: &Project, lane: &AnyLane, attempt: u32, resolves: bool) -> (PathBuf, PathBuf) {
    let dir = if resolves { project.resolve_dir(&lane.name) } else { lane.path.clone() };
    (dir, project.store.layout().run_prompt(&lane.name, attempt))
}

/// Writes the profile's files for this run. One that lacks a value is left out, with the options that name it. Returns the variables that name one.
fn write_files(
    project: &Project,
    job: &Job,
    run_dir: &Path,
    values: &mut Values,
) -> Result<Vec<Variable>, Error> {
    let profile = job.profile();
    let mut env = Vec::new();
    for (name, called) in FILES {
        let Some(template) = profile.files.get(name) else { continue };
        let Some(text) = values.fill(OsStr::new(template)) else { continue };
        let text = match variables::file_text(&profile.env_file, name, text) {
            Err(e @ Error::NotJoined { .. }) => {
                let lost = "its own file counts, so it has no tools of ours and says nothing by hooks";
                project.listener.warn(format!("{}: {e}; {lost}", job.called()));
                continue;
            }
            text => text?,
        };
        let path = run_dir.join(called);
        write_atomically(&path, text.as_encoded_bytes())?;
        env.extend(variables::of_files(&profile.env_file, name, &path));
        if name == "plugin" {
            values.set("plugin_url", url(&path));
        }
        values.set(name, path);
    }
    Ok(env)
}

/// A path as an address.
fn url(path: &Path) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-._~/".contains(b);
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    let text: String =
        bytes.map(|b| if plain(b) { char::from(*b).to_string() } else { format!("%{b:02X}") }).collect();
    format!("file://{text}")
}

/// A random id in the form that agents take for sessions (a UUID of version 4). Nothing else has it, on whichever machine: runs
/// are marked by one, too.
pub(super) fn new_session() -> Result<String, Error> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0_u8; 16];
    let read = File::open(source).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(lane::Error::io("read", source))?;
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_uuids_that_differ() {
        let (a, b) = (new_session().unwrap(), new_session().unwrap());
        assert_ne!(a, b);
        assert_eq!(a.len(), 36);
        assert_eq!(&a[14..15], "4");
        assert!("89ab".contains(&a[19..20]));
    }

    #[test]
    fn an_address_names_a_file_whatever_it_is_called() {
        assert_eq!(url(Path::new("/a b/#é.ts")), "file:///a%20b/%23%C3%A9.ts");
    }
}
