//! Owns reading blobs, and where new objects go: into the repository for good, or into a throw-away folder, so that looking
//! ahead leaves nothing behind.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::objs::WriteTo;

use super::{Command, Error, Oid, Repo, loose};

/// What an error calls an object that is not there yet.
const NEW: &str = "a new object";

impl Repo {
    /// The bytes of a blob.
    pub(crate) fn blob(&self, id: Oid) -> Result<Vec<u8>, Error> {
        self.reader().blob(id.0)
    }

    /// The bytes of a blob that is no longer than `most`; none when it is longer, or not there.
    pub(crate) fn small_blob(&self, id: Oid, most: u64) -> Option<Vec<u8>> {
        self.reader().small_blob(id.0, most).ok().flatten()
    }

    /// The bytes of a blob that is no longer than `most`; none when it is longer. Git fetches one that a partial clone lacks.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn blob_within(&self, id: Oid, most: u64) -> Result<Option<Vec<u8>>, Error> {
        if let Ok(found) = self.reader().small_blob(id.0, most) {
            return Ok(found);
        }
        let size = self.git().args(["cat-file", "-s"]).arg(id.to_string()).run()?.line();
        if size.parse::<u64>().is_ok_and(|size| size > most) {
            return Ok(None);
        }
        Ok(Some(self.git().args(["cat-file", "blob"]).arg(id.to_string()).run()?.stdout))
    }

    /// How long an object is; none for one that is not there.
    pub(super) fn size_of(&self, id: Oid) -> Option<u64> {
        self.gix.find_header(id.0).ok().map(|header| header.size())
    }

    /// Writes an object that is on disk when this returns, as git does with `core.fsync=objects`. One that was there
    /// before is left alone.
    pub(super) fn write_durably(&self, object: &impl WriteTo) -> Result<Oid, Error> {
        let (id, bytes) = self.encode(object)?;
        // Asking for one that is not there makes the library look for new packs, each time.
        if self.has_loose(id) {
            // Somebody who was killed may have come to write it, and not to share it.
            drop(self.share_loose(id));
            return Ok(id);
        }
        let objects = self.common_dir().join("objects");
        if !loose::write(&objects, id, object.kind(), &bytes).map_err(Error::io("write to", &objects))? {
            self.write_by_library(id, object.kind(), &bytes)?;
        }
        match self.share_loose(id) {
            // In a pack by now.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(id),
            done => done.map(|()| id).map_err(Error::io("write", &self.loose_file(id))),
        }
    }

    fn share_loose(&self, id: Oid) -> std::io::Result<()> {
        let file = self.loose_file(id);
        // A folder that somebody else made is theirs to share.
        drop(file.parent().map(|folder| self.share(folder)));
        self.share(&file)
    }

    /// Writes an object by the library's hand, and makes it durable.
    ///
    /// # Errors
    /// When the folder that it goes to is removed again and again, as by `git gc` when it is empty, and for any other reason.
    fn write_by_library(&self, id: Oid, kind: gix::objs::Kind, bytes: &[u8]) -> Result<Oid, Error> {
        const TRIES: u32 = 5;
        let file = self.loose_file(id);
        let folder = file.parent().unwrap_or(&file);
        for _ in 1..TRIES {
            let written = gix::objs::Write::write_buf(&self.gix.objects, kind, bytes);
            let synced = || [&*file, folder].iter().try_for_each(|path| File::open(path)?.sync_all());
            match written {
                Ok(_) => match synced() {
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                    done => return done.map(|()| id).map_err(Error::io("write", &file)),
                },
                Err(_) if !folder.is_dir() => {}
                Err(e) => return Err(Error::object(NEW)(e)),
            }
        }
        // Git tries again by itself, and has the words for what is wrong.
        self.write_by_git(kind, bytes)
    }

    fn write_by_git(&self, kind: gix::objs::Kind, bytes: &[u8]) -> Result<Oid, Error> {
        let call = self.git().args(["hash-object", "-w", "--stdin", "--literally", "-t"]);
        let call = call.arg(kind.to_string()).input(bytes).changes().durable();
        let line = call.run()?.line();
        Oid::from_hex(line.as_bytes()).ok_or_else(|| Error::Answer { args: "hash-object".into(), what: line })
    }

    /// Whether an object is in a file of its own.
    pub(super) fn has_loose(&self, id: Oid) -> bool {
        self.loose_file(id).is_file()
    }

    pub(super) fn loose_file(&self, id: Oid) -> PathBuf {
        let hex = id.to_string();
        let (folder, file) = hex.split_at(2);
        self.common_dir().join("objects").join(folder).join(file)
    }

    /// The id that an object has, and its bytes. Nothing is written.
    pub(super) fn encode(&self, object: &impl WriteTo) -> Result<(Oid, Vec<u8>), Error> {
        let mut bytes = Vec::new();
        object.write_to(&mut bytes).map_err(Error::object(NEW))?;
        let id = gix::objs::compute_hash(self.gix.object_hash(), object.kind(), &bytes);
        Ok((Oid(id.map_err(Error::object(NEW))?), bytes))
    }
}

/// A folder that new objects go to and that is removed when dropped. Nothing made in it may ever land.
#[derive(Debug)]
#[must_use]
pub(crate) struct ThrowAway {
    dir: PathBuf,
    real: PathBuf,
}

impl ThrowAway {
    /// Uses `dir`, which is made here.
    pub(crate) fn new(repo: &Repo, dir: &Path) -> Result<ThrowAway, Error> {
        std::fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
        Ok(ThrowAway { dir: dir.to_owned(), real: repo.common_dir().join("objects") })
    }

    /// Opens it for reading, with the repository's own objects behind it.
    pub(super) fn open(&self, repo: &Repo) -> Result<gix::OdbHandle, Error> {
        let info = self.dir.join("info");
        let alternates = info.join("alternates");
        let mut line = self.real.as_os_str().as_bytes().to_owned();
        line.push(b'\n');
        let written = std::fs::create_dir_all(&info).and_then(|()| std::fs::write(&alternates, line));
        written.map_err(Error::io("write", &alternates))?;
        let store = gix::odb::at(&self.dir, repo.gix.object_hash()).map_err(Error::io("read", &self.dir))?;
        Ok(store.into())
    }

    /// Sends the new objects of a call here, if there is a here.
    pub(super) fn apply(here: Option<&ThrowAway>, call: Command) -> Command {
        match here {
            None => call,
            Some(here) => call
                .env("GIT_OBJECT_DIRECTORY", &here.dir)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &here.real),
        }
    }
}

impl Drop for ThrowAway {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.dir));
    }
}
