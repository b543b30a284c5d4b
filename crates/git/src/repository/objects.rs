//! Objects: reads blobs, and writes new objects either into the repository or into a temporary store, so that
//! a forecast leaves nothing behind.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::objs::WriteTo;

use super::loose_objects;
use crate::program::command::Command;
use crate::{BlobId, Error, Oid, Repo};

/// Name in error messages of an object that is not written yet.
const NEW_OBJECT_LABEL: &str = "a new object";

impl Repo {
    /// Returns the bytes of a blob.
    pub fn blob(&self, id: BlobId) -> Result<Vec<u8>, Error> {
        self.tree_reader().blob(id.0)
    }

    /// Returns the bytes of a blob of at most `max_bytes`; `None` if it is longer or missing.
    pub fn small_blob(&self, id: BlobId, max_bytes: u64) -> Option<Vec<u8>> {
        self.tree_reader().small_blob(id.0, max_bytes).ok().flatten()
    }

    /// Returns the bytes of a blob of at most `max_bytes`; `None` if it is longer. git fetches a blob that a
    /// partial clone lacks.
    ///
    /// # Errors
    /// Fails if git cannot read or fetch the blob.
    pub fn fetch_small_blob(&self, id: BlobId, max_bytes: u64) -> Result<Option<Vec<u8>>, Error> {
        if let Ok(found) = self.tree_reader().small_blob(id.0, max_bytes) {
            return Ok(found);
        }
        let size = self.git().args(["cat-file", "-s"]).arg(id.to_string()).run()?.trimmed_stdout();
        if size.parse::<u64>().is_ok_and(|size| size > max_bytes) {
            return Ok(None);
        }
        Ok(Some(self.git().args(["cat-file", "blob"]).arg(id.to_string()).run()?.stdout))
    }

    /// Returns whether an object exists.
    pub fn has_object(&self, id: impl Into<Oid>) -> bool {
        gix::objs::Exists::exists(&self.gix.objects, &id.into().0)
    }

    /// Returns the size of an object in bytes; `None` if it is missing.
    pub(crate) fn object_size(&self, id: impl Into<Oid>) -> Option<u64> {
        self.gix.find_header(id.into().0).ok().map(|header| header.size())
    }

    /// Writes an object that is on disk when this returns, as git does with `core.fsync=objects`. An existing
    /// loose object is left unchanged.
    pub(crate) fn write_durably(&self, object: &impl WriteTo) -> Result<Oid, Error> {
        let (id, bytes) = self.encode_object(object)?;
        // A lookup of a missing object makes gix scan for new packs each time.
        if self.has_loose_object(id) {
            // A process that was killed may have written the object without sharing it.
            drop(self.share_loose_permissions(id));
            return Ok(id);
        }
        let objects = self.common_dir().join("objects");
        if !loose_objects::write_small_object(&objects, id, object.kind(), &bytes)
            .map_err(Error::io("write to", &objects))?
        {
            self.write_object_with_gix(id, object.kind(), &bytes)?;
        }
        match self.share_loose_permissions(id) {
            // The object is in a pack by now.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(id),
            done => done.map(|()| id).map_err(Error::io("write", &self.loose_object_path(id))),
        }
    }

    /// Sets the permissions that `core.sharedRepository` requires on an object's file and its folder.
    fn share_loose_permissions(&self, id: Oid) -> std::io::Result<()> {
        let file = self.loose_object_path(id);
        // A folder that another user created is for that user to share.
        drop(file.parent().map(|folder| self.share_permissions(folder)));
        self.share_permissions(&file)
    }

    /// Writes an object with gix and makes it durable. If the object's folder is removed again and again, as
    /// `git gc` removes an empty one, git writes the object.
    ///
    /// # Errors
    /// Fails if gix fails for any other reason, or if git fails.
    fn write_object_with_gix(&self, id: Oid, kind: gix::objs::Kind, bytes: &[u8]) -> Result<Oid, Error> {
        const MAX_ATTEMPTS: u32 = 5;
        let file = self.loose_object_path(id);
        let folder = file.parent().unwrap_or(&file);
        for _ in 1..MAX_ATTEMPTS {
            let written = gix::objs::Write::write_buf(&self.gix.objects, kind, bytes);
            let synced = || [&*file, folder].iter().try_for_each(|path| File::open(path)?.sync_all());
            match written {
                Ok(_) => match synced() {
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                    done => return done.map(|()| id).map_err(Error::io("write", &file)),
                },
                Err(_) if !folder.is_dir() => {}
                Err(e) => return Err(Error::object(NEW_OBJECT_LABEL)(e)),
            }
        }
        // git retries automatically and reports what is wrong.
        self.write_object_with_git(kind, bytes)
    }

    fn write_object_with_git(&self, kind: gix::objs::Kind, bytes: &[u8]) -> Result<Oid, Error> {
        let call = self.git().args(["hash-object", "-w", "--stdin", "--literally", "-t"]);
        let call = call.arg(kind.to_string()).input(bytes).mutating().durable();
        let line = call.run()?.trimmed_stdout();
        Oid::from_hex(line.as_bytes())
            .ok_or_else(|| Error::UnexpectedOutput { args: "hash-object".into(), fault_or_output: line })
    }

    /// Returns whether an object is stored as a loose object.
    pub(crate) fn has_loose_object(&self, id: Oid) -> bool {
        self.loose_object_path(id).is_file()
    }

    pub(crate) fn loose_object_path(&self, id: Oid) -> PathBuf {
        let hex = id.to_string();
        let (folder, file) = hex.split_at(2);
        self.common_dir().join("objects").join(folder).join(file)
    }

    /// Returns the id that an object would have, and its bytes, without writing anything.
    pub(crate) fn encode_object(&self, object: &impl WriteTo) -> Result<(Oid, Vec<u8>), Error> {
        let mut bytes = Vec::new();
        object.write_to(&mut bytes).map_err(Error::object(NEW_OBJECT_LABEL))?;
        let id = gix::objs::compute_hash(self.gix.object_hash(), object.kind(), &bytes);
        Ok((Oid(id.map_err(Error::object(NEW_OBJECT_LABEL))?), bytes))
    }
}

/// Temporary object store that is removed on drop. No object in it may land.
#[derive(Debug)]
#[must_use]
pub struct TempObjectStore {
    dir: PathBuf,
    repo_objects: PathBuf,
}

impl TempObjectStore {
    /// Creates the store in the folder `dir`, which is created if it is missing.
    pub fn new(repo: &Repo, dir: &Path) -> Result<TempObjectStore, Error> {
        std::fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
        Ok(TempObjectStore { dir: dir.to_owned(), repo_objects: repo.common_dir().join("objects") })
    }

    /// Opens the store for reading, with the repository's objects as its alternate.
    pub fn open(&self, repo: &Repo) -> Result<gix::OdbHandle, Error> {
        let info = self.dir.join("info");
        let alternates = info.join("alternates");
        let mut line = self.repo_objects.as_os_str().as_bytes().to_owned();
        line.push(b'\n');
        let written = std::fs::create_dir_all(&info).and_then(|()| std::fs::write(&alternates, line));
        written.map_err(Error::io("write", &alternates))?;
        let store = gix::odb::at(&self.dir, repo.gix.object_hash()).map_err(Error::io("read", &self.dir))?;
        Ok(store.into())
    }

    /// Redirects the new objects of a git command to the temporary store, if there is one.
    pub(crate) fn redirect_writes(temp_store: Option<&TempObjectStore>, call: Command) -> Command {
        match temp_store {
            None => call,
            Some(temp_store) => call
                .env("GIT_OBJECT_DIRECTORY", &temp_store.dir)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &temp_store.repo_objects),
        }
    }
}

impl Drop for TempObjectStore {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.dir));
    }
}

/// Opens the repository's object store, with a temporary object folder in front of it if one is given.
pub(crate) fn open_object_store(
    repo: &Repo,
    objects: Option<&TempObjectStore>,
) -> Result<gix::OdbHandle, Error> {
    match objects {
        None => Ok(repo.gix.objects.clone()),
        Some(temp_objects) => temp_objects.open(repo),
    }
}
