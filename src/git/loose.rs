//! Owns small objects in files of their own: reading them, and writing them. The library maps each of them into memory and out
//! again, and every time that happens all threads have to wait; and what it needs to pack one is a thousand times its length.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use gix::objs::Kind;
use gix::objs::decode::loose_header;
use gix::zlib::{Inflate, Status};

use super::Oid;

/// How long a file may be, packed.
const SMALL: usize = 16 * 1024;
/// How long an object may be. Text may become a thousandth of its length.
const LONGEST: usize = 1024 * 1024;
/// How long the first line of an object is at most, and some of what follows it.
const HEAD: usize = 64;

/// Reads an object of the folder `objects` into `out`, which is emptied first. None for one that is not in a file of its
/// own there, is not small, or cannot be read: then the library finds it, or says why not.
pub(super) fn read(objects: &Path, id: Oid, out: &mut Vec<u8>) -> Option<Kind> {
    let hex = id.to_string();
    let (folder, name) = hex.split_at(2);
    let mut file = File::open(objects.join(folder).join(name)).ok()?;
    let mut room = [0; SMALL];
    let length = fill(&mut file, &mut room)?;
    let packed = room.get(..length)?;
    let (mut inflate, mut head) = (Inflate::default(), [0; HEAD]);
    let (status, read, written) = inflate.prefix(packed, &mut head).ok()?;
    let (kind, size, start) = loose_header(head.get(..written)?).ok()?;
    let begun = written.checked_sub(start)?;
    let size = usize::try_from(size).ok().filter(|size| (begun..=LONGEST).contains(size))?;
    out.clear();
    if status == Status::StreamEnd {
        out.extend_from_slice(head.get(start..written)?);
    } else {
        out.reserve(size.saturating_add(start));
        inflate.rest(packed.get(read..)?, &head[..written], start, out, size).ok()?;
    }
    (out.len() == size).then_some(kind)
}

/// An object with its first line must be no longer than this to be written as it is: its file takes a block of the disk, packed
/// or not.
const BLOCK: usize = 4096 - 11;

/// How often an object is written anew when the folder that it goes to is removed meanwhile.
const TRIES: u32 = 20;

/// Writes an object of this kind and id to the folder `objects`; it is on disk when this returns. False for one that is not
/// small, or whose folder is removed again and again: then nothing was done.
///
/// `git gc`, `git repack -d` and `git prune-packed` remove every folder of objects that is empty, at any moment, also between
/// the making of a folder and of the first file in it; and they remove a file once its object is in a pack.
pub(super) fn write(objects: &Path, id: Oid, kind: Kind, bytes: &[u8]) -> std::io::Result<bool> {
    let mut object = loose_header_of(kind, bytes.len());
    object.extend_from_slice(bytes);
    if object.len() > BLOCK {
        return Ok(false);
    }
    let stored = stored(&object);
    for _ in 0..TRIES {
        match write_once(objects, id, &stored) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            done => return done.map(|()| true),
        }
    }
    Ok(false)
}

/// Writes the packed bytes of an object once.
///
/// # Errors
/// `NotFound` when the folder was removed on the way.
fn write_once(objects: &Path, id: Oid, stored: &[u8]) -> std::io::Result<()> {
    let hex = id.to_string();
    let (folder, name) = hex.split_at(2);
    let folder = objects.join(folder);
    let made = std::fs::create_dir(&folder);
    if let Err(e) = &made
        && e.kind() != ErrorKind::AlreadyExists
    {
        return made;
    }
    // What a killed process leaves of it goes with `git prune`.
    let beside = folder.join(format!("tmp_obj_{}_{name}", std::process::id()));
    drop(std::fs::remove_file(&beside));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o444).open(&beside)?;
        file.write_all(stored)?;
        file.sync_all()?;
        std::fs::rename(&beside, folder.join(name))
    })();
    let kept = match written {
        Ok(()) => File::open(&folder).and_then(|folder| folder.sync_all()),
        Err(e) => {
            drop(std::fs::remove_file(&beside));
            Err(e)
        }
    };
    // Not before: what takes a moment gives others time to remove a folder that is still empty. In any case: others may use it by now.
    if made.is_ok() {
        File::open(objects)?.sync_all()?;
    }
    kept
}

fn loose_header_of(kind: Kind, length: usize) -> Vec<u8> {
    format!("{} {length}\0", String::from_utf8_lossy(kind.as_bytes())).into_bytes()
}

/// Bytes in the form of RFC 1950 and 1951, as one block that is not packed. There are no more than 65,535 of them.
fn stored(bytes: &[u8]) -> Vec<u8> {
    const LARGEST_PRIME: u32 = 65_521;
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % LARGEST_PRIME;
        b = (b + a) % LARGEST_PRIME;
    }
    let mut out = vec![0x78, 0x01, 0x01];
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(&((b << 16) | a).to_be_bytes());
    out
}

/// Reads a file to its end, and returns how long it is; none when there is more of it than room.
fn fill(file: &mut File, room: &mut [u8]) -> Option<usize> {
    let mut length = 0;
    while let Some(rest) = room.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
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

    /// Writes objects of all kinds and many lengths, and returns the folder and their ids.
    fn objects(top: &Path) -> (PathBuf, Vec<Oid>) {
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
    fn objects_are_as_the_library_reads_them_or_left_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, ids) = objects(dir.path());
        let library = gix::odb::at(&folder, gix::hash::Kind::Sha1).unwrap();
        let (mut ours, mut theirs) = (b"left".to_vec(), Vec::new());
        for id in &ids {
            let kind = gix::prelude::FindExt::find(&library, &id.0, &mut theirs).unwrap().kind;
            assert_eq!((read(&folder, *id, &mut ours), &ours), (Some(kind), &theirs), "{id}");
        }
        assert_eq!(ids.len(), 95);
    }

    #[test]
    fn small_objects_are_written_as_git_knows_them() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, _) = objects(dir.path());
        let empty = tempfile::tempdir_in(&folder).unwrap();
        for length in [0, 1, 200, 4000, 4073, 4074, 9000] {
            let bytes = vec![b'a'; length];
            let hash = gix::objs::compute_hash(gix::hash::Kind::Sha1, Kind::Blob, &bytes).unwrap();
            let small = write(empty.path(), Oid(hash), Kind::Blob, &bytes).unwrap();
            assert_eq!(small, length <= 4074, "{length}");
            let mut git = Command::new("git");
            git.args(["cat-file", "blob", &hash.to_string()]).current_dir(dir.path()).env("HOME", dir.path());
            let out = git.env("GIT_OBJECT_DIRECTORY", empty.path()).output().unwrap();
            assert_eq!(out.status.success() && out.stdout == bytes, small, "{length}: {out:?}");
        }
        let mut names = walk(empty.path());
        names.retain(|name| name.contains("tmp"));
        assert_eq!(names, [""; 0]);
    }

    /// As beside `git gc`: in a folder of objects nothing is in, and somebody removes it whenever that is so.
    #[test]
    fn a_folder_that_is_removed_meanwhile_is_made_again() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let dir = tempfile::tempdir().unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let remover = scope.spawn(|| {
                let mut removed = 0;
                while !ended.load(Ordering::Relaxed) {
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
                left += u32::from(!write(dir.path(), Oid(hash), Kind::Blob, &bytes).unwrap());
                let hex = hash.to_string();
                drop(std::fs::remove_file(dir.path().join(&hex[..2]).join(&hex[2..])));
            }
            ended.store(true, Ordering::Relaxed);
            assert!(remover.join().unwrap() > 0);
            // What is left to the library is left to it without an error.
            assert!(left < 20, "{left}");
        });
    }

    fn walk(folder: &Path) -> Vec<String> {
        let below = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
        below
            .flat_map(|dir| std::fs::read_dir(dir).unwrap())
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn what_is_no_small_object_is_left_to_the_library() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, ids) = objects(dir.path());
        let id = ids[50];
        let hex = id.to_string();
        let file = folder.join(&hex[..2]).join(&hex[2..]);
        let whole = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(read(&folder, id, &mut Vec::new()), None, "it is not there");
        let library = gix::odb::at(&folder, gix::hash::Kind::Sha1).unwrap();
        let (mut ours, mut theirs, mut refused) = (Vec::new(), Vec::new(), 0);
        for cut in 0..whole.len() {
            std::fs::write(&file, &whole[..cut]).unwrap();
            let found = read(&folder, id, &mut ours);
            // Without what comes after the last byte of text it is whole, for both.
            assert!(
                found.is_none() || gix::prelude::FindExt::find(&library, &id.0, &mut theirs).is_ok(),
                "{cut}"
            );
            assert!(found.is_none() || ours == theirs, "{cut}");
            refused += usize::from(found.is_none());
        }
        assert!(refused > whole.len() / 2);
        std::fs::write(&file, vec![b'x'; SMALL]).unwrap();
        assert_eq!(read(&folder, id, &mut Vec::new()), None, "it may go on");
    }
}
