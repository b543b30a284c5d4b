//! Owns plans that are folders, one for each task: finding them, and which of them are meant.

mod needs;
mod packet;
mod walk;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::plan::Remark;
use super::shape::is_name;
use super::{Error, Group, Place, Plan, Task};
use crate::harmless;

use needs::{Chosen, Known};
use packet::Packet;
pub(crate) use walk::Home;
use walk::Walk;
pub(super) use walk::{DONE, archived};

/// The file that tells a task.
pub(super) const PROMPT: &str = "PROMPT.md";
/// The word for every area.
pub(super) const ALL: &str = "all";

/// One folder of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Folder {
    /// The task's ID, which the folder's name begins with.
    id: String,
    /// Its area; none where the folder lies beside areas.
    area: Option<String>,
    /// Where it is.
    path: PathBuf,
    /// Whether it lies in an archive or has a mark that it is done.
    done: bool,
    /// Whether it lies in an archive: such a task is no part of a plan any more.
    archived: bool,
}

impl Folder {
    fn name(&self) -> String {
        match &self.area {
            Some(area) => format!("{area}/{}", self.id),
            None => self.id.clone(),
        }
    }
}

/// Reads the tasks that `sources` name: `all`, areas, folders, and single files.
///
/// # Errors
/// When one of them is nothing of that, or something in a task is wrong.
pub(super) fn read(dir: &Path, sources: &[String], home: &Home<'_>) -> Result<Plan, Error> {
    let mut walk = Walk::new(home)?;
    let mut wanted: BTreeSet<PathBuf> = BTreeSet::new();
    for source in sources {
        wanted.extend(walk.meant(dir, source)?);
    }
    let (folders, mut remarks) = walk.end()?;
    let known = Known::of(&folders);
    let mut tasks = Vec::new();
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let chosen = Chosen { dir: &dir, sources, wanted: &wanted };
    for folder in folders.iter().filter(|folder| wanted.contains(&folder.path) && !folder.archived) {
        tasks.push(one(folder, &known, &chosen, home, &mut remarks)?);
    }
    // Areas are groups, in the order of their names.
    let mut groups: Vec<Group> = Vec::new();
    for task in tasks {
        let theme = task.area.clone().unwrap_or_default();
        match groups.last_mut().filter(|group| group.theme == theme) {
            Some(group) => group.tasks.push(task),
            None => groups.push(Group { theme, tasks: vec![task], ..Group::default() }),
        }
    }
    Ok(Plan { remarks, ..Plan::of_groups(groups) })
}

/// One task, and where it lies.
#[derive(Debug)]
pub(crate) struct Single {
    /// The task. What it needs is not looked up.
    pub(crate) task: Task,
    /// Its folder.
    pub(crate) path: PathBuf,
    /// The same from the top of the worktree.
    pub(crate) folder: String,
    /// What it needs that nobody has done.
    pub(crate) open: Vec<String>,
    /// What is odd about it.
    pub(crate) remarks: Vec<Remark>,
}

/// Reads one task, named by its folder or its PROMPT.md.
///
/// # Errors
/// When there is none, or something in it is wrong.
pub(crate) fn single(dir: &Path, source: &str, home: &Home<'_>) -> Result<Single, Error> {
    let mut walk = Walk::new(home)?;
    let found = walk.meant(dir, source)?;
    let [path] = found.as_slice() else {
        return Err(Error::ManyTasks { name: source.to_owned(), count: found.len() });
    };
    let (folders, _) = walk.end()?;
    let folder = folders.iter().find(|folder| folder.path == *path);
    let folder = folder.ok_or_else(|| Error::NoSource { name: source.to_owned(), else_: String::new() })?;
    let (packet, mut task) = read_one(folder, &Known::of(&folders), home)?;
    task.area.clone_from(&folder.area);
    let inside = path.strip_prefix(home.top).ok().and_then(Path::to_str);
    let inside = inside.ok_or_else(|| Error::Outside { path: path.clone() })?.to_owned();
    let open = Known::of(&folders).open(folder, &packet.needs);
    Ok(Single { task, path: path.clone(), folder: inside, open, remarks: packet.remarks })
}

/// The error for what is neither a file nor an area.
pub(super) fn nothing(source: &str, home: &Home<'_>) -> Error {
    match Walk::new(home) {
        Ok(walk) => walk.nothing(source),
        Err(error) => error,
    }
}

/// Reads one task.
fn one(
    folder: &Folder,
    known: &Known<'_>,
    chosen: &Chosen<'_>,
    home: &Home<'_>,
    remarks: &mut Vec<Remark>,
) -> Result<Task, Error> {
    let (packet, mut task) = read_one(folder, known, home)?;
    remarks.extend(packet.remarks);
    for need in packet.needs {
        if let Some(need) = known.find(folder, need, chosen)? {
            task.needs.push(need);
        }
    }
    Ok(task)
}

/// Reads the files of one task. What it needs is not looked up.
fn read_one(folder: &Folder, known: &Known<'_>, home: &Home<'_>) -> Result<(Packet, Task), Error> {
    let path = folder.path.join(PROMPT);
    let file = shown(home.top, &path);
    let text = home.text(&path)?;
    let mut packet = packet::read(&file, &text, known)?;
    if let Some((id, place)) = packet.id.take().filter(|(id, _)| !id.eq_ignore_ascii_case(&folder.id)) {
        let what = format!("the heading says that this is '{id}', and the folder '{}'", folder.id);
        return Err(Error::wrong(&place, what, "give both the same ID"));
    }
    let progress = match home.optional_text(&folder.path.join("STATUS.md"))? {
        Some(status) => packet::progress(&status),
        None => packet::progress(&text),
    };
    let name = folder.path.file_name().unwrap_or_default().to_string_lossy();
    let title = packet.title.take().unwrap_or_else(|| harmless::line(&name));
    let mut task = Task::new(folder.id.clone(), title, Place { file, line: 1, column: 1 });
    task.area.clone_from(&folder.area);
    task.scope.clone_from(&packet.scope);
    task.size = packet.size;
    task.review = packet.review;
    task.done = folder.done;
    task.progress = progress;
    task.prompt = text;
    Ok((packet, task))
}

/// A path as it is shown: from the top of the repository where it lies in it.
fn shown(top: &Path, path: &Path) -> Arc<str> {
    Arc::from(harmless::line(&path.strip_prefix(top).unwrap_or(path).to_string_lossy()))
}

/// The ID that a folder's name begins with, as in `AUTH-014-add-roles`; the whole name where it begins with none.
fn id_of(name: &str) -> Option<&str> {
    let mut words = name.splitn(3, '-');
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_number =
        second.starts_with(|c: char| c.is_ascii_digit()) && second.chars().all(|c| c.is_ascii_alphanumeric());
    let id = if is_number && first.starts_with(|c: char| c.is_ascii_alphabetic()) {
        &name[..first.len() + 1 + second.len()]
    } else {
        name
    };
    is_name(id).then_some(id)
}

#[cfg(test)]
mod tests;
