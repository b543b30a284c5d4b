//! Files attached to a lane's task or to a follow-up message: copies next to the lane's record, for its agent
//! to read.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_store::Store;
use proq_store::base::atomic::create_private_dir;
use proq_store::base::id::new_id;

use crate::lane::Error;

/// Lists the files that are attached to the task of the lane `name`.
pub fn attachments(store: &Store, name: &LaneName) -> Result<Vec<PathBuf>, Error> {
    list_files(&store.layout().task_attachments(name))
}

/// Lists the files that were attached to the task of a removed lane, by its name in the history.
pub fn past_attachments(store: &Store, past: &str) -> Result<Vec<PathBuf>, Error> {
    list_files(&store.layout().removed_lane_attachments(past))
}

/// Returns the paths of all entries of a folder, sorted; none when the folder is missing.
fn list_files(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", dir)(e)),
    };
    let mut out: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    out.sort();
    Ok(out)
}

/// Copies files to the folder where the lane's agent reads the attachments of its task.
///
/// # Errors
/// Fails when a file cannot be read, or when two files have the same name.
pub fn attach(store: &Store, name: &LaneName, files: &[PathBuf]) -> Result<(), Error> {
    copy_into(&store.layout().task_attachments(name), files)
}

/// Copies files into a folder, and creates the folder if there are any.
pub fn copy_into(dir: &Path, files: &[PathBuf]) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    create_private_dir(dir)?;
    for file in files {
        copy_file(file, dir)?;
    }
    Ok(())
}

/// Copies a regular file into the folder `dir` under its name, which must be free there.
fn copy_file(file: &Path, dir: &Path) -> Result<(), Error> {
    let name =
        file.file_name().ok_or_else(|| Error::io("copy", file)(std::io::ErrorKind::InvalidInput.into()))?;
    let (mut from, _) = proq_base::regular_file::open(file, proq_base::regular_file::LinkPolicy::Follow)
        .map_err(Error::io("read", file))?;
    let to = dir.join(name);
    let mut target = std::fs::File::create_new(&to).map_err(Error::io("write", &to))?;
    std::io::copy(&mut from, &mut target).map_err(Error::io("copy", file))?;
    Ok(())
}

/// Files attached to a message to a lane's agent. Dropping this removes the copies unless they were retained.
#[derive(Debug, Default)]
#[must_use]
pub struct MessageFiles {
    /// Folder of the copies; none without files.
    dir: Option<PathBuf>,
}

impl MessageFiles {
    /// Copies files to the folder where the lane's agent reads the attachments of a message.
    ///
    /// # Errors
    /// Fails when a file cannot be read, or when the lane is missing.
    pub fn copy(store: &Store, lane: &LaneName, files: &[PathBuf]) -> Result<MessageFiles, Error> {
        if files.is_empty() {
            return Ok(MessageFiles::default());
        }
        // Creates no parent folders: the folder of a lane that is being removed must not be created again.
        let create_dir =
            |dir: &Path| DirBuilder::new().mode(0o700).create(dir).map_err(Error::io("create", dir));
        let parent = store.layout().message_files(lane);
        if !parent.is_dir() {
            create_dir(&parent)?;
        }
        let dir = parent.join(new_id());
        create_dir(&dir)?;
        let copies = MessageFiles { dir: Some(dir.clone()) };
        files.iter().try_for_each(|file| copy_file(file, &dir))?;
        Ok(copies)
    }

    /// Returns the message text followed by the list of the copied files.
    ///
    /// # Errors
    /// Fails when the copies cannot be listed.
    pub fn append_to(&self, text: &str) -> Result<String, Error> {
        let Some(dir) = &self.dir else { return Ok(text.to_owned()) };
        let heading = "These files are attached. Read them at these paths:";
        Ok(format!("{}\n\n{heading}\n\n{}", text.trim_end(), format_file_list(&list_files(dir)?)))
    }

    /// Keeps the copies on disk: the message was sent.
    pub fn retain(mut self) {
        self.dir = None;
    }
}

impl Drop for MessageFiles {
    fn drop(&mut self) {
        if let Some(dir) = &self.dir {
            // Copies that cannot be removed here are removed with the lane.
            drop(std::fs::remove_dir_all(dir));
        }
    }
}

/// Formats files as a list in a text for an agent, one path a line.
pub(crate) fn format_file_list(files: &[PathBuf]) -> String {
    let lines: Vec<String> = files.iter().map(|path| format!("- {}\n", path.display())).collect();
    lines.concat()
}
