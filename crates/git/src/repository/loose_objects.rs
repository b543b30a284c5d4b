//! Reader and writer for small loose objects. Gitoxide maps each object file into memory and unmaps it, and
//! every time all threads have to wait. To compress an object it needs a thousand times the object's length.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use gix::objs::Kind;
use gix::objs::decode::loose_header;
use gix::zlib::{Inflate, Status};

use crate::Oid;

/// Maximum length of a compressed object file, in bytes.
const MAX_COMPRESSED_LEN: usize = 16 * 1024;
/// Maximum length of an object, in bytes. Text may compress to a thousandth of its length.
const MAX_OBJECT_LEN: usize = 1024 * 1024;
/// Length of a buffer that holds an object's header and the first bytes of its content.
const HEADER_LEN: usize = 64;

/// Reads an object from the folder `objects` into `out`, which is cleared first. Returns `None` if the object
/// is not loose, not small, or cannot be read. Gitoxide then finds it or reports why not.
pub fn read_small_object(objects: &Path, id: Oid, out: &mut Vec<u8>) -> Option<Kind> {
    let hex = id.to_string();
    let (folder, name) = hex.split_at(2);
    let mut file = File::open(objects.join(folder).join(name)).ok()?;
    let mut buffer = [0; MAX_COMPRESSED_LEN];
    let length = read_into_buffer(&mut file, &mut buffer)?;
    let compressed = buffer.get(..length)?;
    let (mut inflate, mut header) = (Inflate::default(), [0; HEADER_LEN]);
    let (status, read, written) = inflate.prefix(compressed, &mut header).ok()?;
    let (kind, size, start) = loose_header(header.get(..written)?).ok()?;
    let content_in_header = written.checked_sub(start)?;
    let size =
        usize::try_from(size).ok().filter(|size| (content_in_header..=MAX_OBJECT_LEN).contains(size))?;
    out.clear();
    if status == Status::StreamEnd {
        out.extend_from_slice(header.get(start..written)?);
    } else {
        out.reserve(size.saturating_add(start));
        inflate.rest(compressed.get(read..)?, &header[..written], start, out, size).ok()?;
    }
    (out.len() == size).then_some(kind)
}

/// Maximum length of an object, with its header, that is written uncompressed: its file takes one disk block
/// either way.
const MAX_STORED_LEN: usize = 4096 - 11;

/// Maximum number of attempts to write an object when its folder is removed concurrently.
const MAX_WRITE_ATTEMPTS: u32 = 20;

/// Writes an object of this kind and id to the folder `objects`; it is on disk when this returns. Returns
/// false, with nothing written, if the object is not small or its folder is removed again and again.
///
/// `git gc`, `git repack -d` and `git prune-packed` remove every empty object folder at any moment, also
/// between the creation of a folder and of its first file. They also remove a file once its object is in a
/// pack.
pub fn write_small_object(objects: &Path, id: Oid, kind: Kind, bytes: &[u8]) -> std::io::Result<bool> {
    let mut object = encode_loose_header(kind, bytes.len());
    object.extend_from_slice(bytes);
    if object.len() > MAX_STORED_LEN {
        return Ok(false);
    }
    let stored = encode_uncompressed_zlib(&object);
    for _ in 0..MAX_WRITE_ATTEMPTS {
        match write_once(objects, id, &stored) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            result => return result.map(|()| true),
        }
    }
    Ok(false)
}

/// Writes the encoded bytes of an object in one attempt.
///
/// # Errors
/// Fails with `NotFound` if the folder was removed concurrently.
fn write_once(objects: &Path, id: Oid, stored: &[u8]) -> std::io::Result<()> {
    let hex = id.to_string();
    let (folder, name) = hex.split_at(2);
    let folder = objects.join(folder);
    let created = std::fs::create_dir(&folder);
    if let Err(e) = &created
        && e.kind() != ErrorKind::AlreadyExists
    {
        return created;
    }
    // `git prune` removes the temporary file of a killed process.
    let temp_path = folder.join(format!("tmp_obj_{}_{name}", std::process::id()));
    drop(std::fs::remove_file(&temp_path));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o444).open(&temp_path)?;
        file.write_all(stored)?;
        file.sync_all()?;
        std::fs::rename(&temp_path, folder.join(name))
    })();
    let synced = match written {
        Ok(()) => File::open(&folder).and_then(|folder| folder.sync_all()),
        Err(e) => {
            drop(std::fs::remove_file(&temp_path));
            Err(e)
        }
    };
    // Not synced earlier, because a delay gives other processes time to remove the folder while it is empty.
    // Synced even on failure, because other processes may use the folder already.
    if created.is_ok() {
        File::open(objects)?.sync_all()?;
    }
    synced
}

fn encode_loose_header(kind: Kind, length: usize) -> Vec<u8> {
    format!("{} {length}\0", String::from_utf8_lossy(kind.as_bytes())).into_bytes()
}

/// Encodes at most 65,535 bytes by RFC 1950 and 1951, as one uncompressed block.
fn encode_uncompressed_zlib(bytes: &[u8]) -> Vec<u8> {
    const ADLER32_MODULUS: u32 = 65_521;
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % ADLER32_MODULUS;
        b = (b + a) % ADLER32_MODULUS;
    }
    let mut out = vec![0x78, 0x01, 0x01];
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(&((b << 16) | a).to_be_bytes());
    out
}

/// Reads a file to its end and returns its length; `None` if the file does not fit into the buffer.
fn read_into_buffer(file: &mut File, buffer: &mut [u8]) -> Option<usize> {
    let mut length = 0;
    while let Some(free) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read(free) {
            Ok(0) => return Some(length),
            Ok(n) => length += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    /// Writes objects of all kinds and many lengths, and returns the object folder and their ids.
    fn create_objects(top: &Path) -> (PathBuf, Vec<Oid>) {
        let script = "git init -q; i=0; while [ $i -lt 90 ]; do seq $i | git hash-object -w --stdin; i=$((i + 1)); done
            printf '' | git hash-object -w --stdin
            head -c 3000 /dev/zero | tr '\\0' x | git hash-object -w --stdin
            seq 9999 >a; git add a; git write-tree; git -c user.name=a -c user.email=a@b commit -qm x
            git rev-parse HEAD; git -c user.name=a -c user.email=a@b tag -am t t; git rev-parse t";
        let out =
            Command::new("sh").args(["-ec", script]).current_dir(top).env("HOME", top).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        let ids = out.stdout.split(|b| *b == b'\n').filter_map(Oid::from_hex).collect();
        (top.join(".git/objects"), ids)
    }

    #[test]
    fn reads_objects_as_gitoxide_does() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, ids) = create_objects(dir.path());
        let library = gix::odb::at(&folder, gix::hash::Kind::Sha1).unwrap();
        let (mut ours, mut theirs) = (b"left".to_vec(), Vec::new());
        for id in &ids {
            let kind = gix::prelude::FindExt::find(&library, &id.0, &mut theirs).unwrap().kind;
            assert_eq!((read_small_object(&folder, *id, &mut ours), &ours), (Some(kind), &theirs), "{id}");
        }
        assert_eq!(ids.len(), 95);
    }

    #[test]
    fn writes_small_objects_that_git_reads() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, _) = create_objects(dir.path());
        let empty = tempfile::tempdir_in(&folder).unwrap();
        for length in [0, 1, 200, 4000, 4073, 4074, 9000] {
            let bytes = vec![b'a'; length];
            let hash = gix::objs::compute_hash(gix::hash::Kind::Sha1, Kind::Blob, &bytes).unwrap();
            let is_written = write_small_object(empty.path(), Oid(hash), Kind::Blob, &bytes).unwrap();
            assert_eq!(is_written, length <= 4074, "{length}");
            let mut git = Command::new("git");
            git.args(["cat-file", "blob", &hash.to_string()]).current_dir(dir.path()).env("HOME", dir.path());
            let out = git.env("GIT_OBJECT_DIRECTORY", empty.path()).output().unwrap();
            assert_eq!(out.status.success() && out.stdout == bytes, is_written, "{length}: {out:?}");
        }
        let mut names = object_file_names(empty.path());
        names.retain(|name| name.contains("tmp"));
        assert_eq!(names, [""; 0]);
    }

    /// Simulates a concurrent `git gc`: a thread removes each object folder whenever it is empty.
    /// Promise: operations/object-folders
    #[test]
    fn recreates_folder_removed_by_gc() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let dir = tempfile::tempdir().unwrap();
        let is_finished = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let remover = scope.spawn(|| {
                let mut removed = 0;
                while !is_finished.load(Ordering::Relaxed) {
                    for n in 0..256 {
                        removed +=
                            u32::from(std::fs::remove_dir(dir.path().join(format!("{n:02x}"))).is_ok());
                    }
                }
                removed
            });
            let mut left = 0;
            for n in 0..2000 {
                let bytes = format!("{n}").into_bytes();
                let hash = gix::objs::compute_hash(gix::hash::Kind::Sha1, Kind::Blob, &bytes).unwrap();
                left += u32::from(!write_small_object(dir.path(), Oid(hash), Kind::Blob, &bytes).unwrap());
                let hex = hash.to_string();
                drop(std::fs::remove_file(dir.path().join(&hex[..2]).join(&hex[2..])));
            }
            is_finished.store(true, Ordering::Relaxed);
            assert!(remover.join().unwrap() > 0);
            // Writes that gave up are not errors.
            assert!(left < 20, "{left}");
        });
    }

    fn object_file_names(folder: &Path) -> Vec<String> {
        let below = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
        below
            .flat_map(|dir| std::fs::read_dir(dir).unwrap())
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn rejects_missing_truncated_and_long_objects() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, ids) = create_objects(dir.path());
        let id = ids[50];
        let hex = id.to_string();
        let file = folder.join(&hex[..2]).join(&hex[2..]);
        let complete = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(read_small_object(&folder, id, &mut Vec::new()), None, "it is not there");
        let library = gix::odb::at(&folder, gix::hash::Kind::Sha1).unwrap();
        let (mut ours, mut theirs, mut refused) = (Vec::new(), Vec::new(), 0);
        for cut in 0..complete.len() {
            std::fs::write(&file, &complete[..cut]).unwrap();
            let found = read_small_object(&folder, id, &mut ours);
            // A file that lacks only what follows the last content byte is complete for both readers.
            assert!(
                found.is_none() || gix::prelude::FindExt::find(&library, &id.0, &mut theirs).is_ok(),
                "{cut}"
            );
            assert!(found.is_none() || ours == theirs, "{cut}");
            refused += usize::from(found.is_none());
        }
        assert!(refused > complete.len() / 2);
        std::fs::write(&file, vec![b'x'; MAX_COMPRESSED_LEN]).unwrap();
        assert_eq!(read_small_object(&folder, id, &mut Vec::new()), None, "it may go on");
    }
}
