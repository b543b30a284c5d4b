//! Owns a file system of its own in a file, whose power can be cut: ext4 on a loop device. What the file has is what reached the
//! disk; what is only in memory is lost with the power.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::{Outcome, fail};

/// Bytes of the file: room for a scenario and its template.
const SIZE: u64 = 24 << 20;

/// Bytes of a block of the file system.
const BLOCK: usize = 4096;

/// How long programs may still be in it after a command has ended.
const PATIENCE: Duration = Duration::from_secs(20);

/// Small tables and a small journal, all made at once: the kernel is not to write any of it later.
const FORMAT: &[&str] =
    &["-q", "-F", "-b", "4096", "-N", "4096", "-J", "size=4", "-E", "lazy_itable_init=0,lazy_journal_init=0"];

/// The blocks of a disk, by place in bytes, that differ at some moment from what it held when a run began. One shot shares with the
/// one before what is the same in both: a run has hundreds of them, and a large process is slow to start programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shot(Vec<(usize, Rc<[u8]>)>);

impl Shot {
    /// A shot of these blocks, which come in the order of their places; it shares with the shot `before`.
    fn of<'a>(blocks: impl Iterator<Item = (usize, &'a [u8])>, before: &Shot) -> Shot {
        let old =
            |at: usize| before.0.binary_search_by_key(&at, |(old, _)| *old).ok().map(|n| &before.0[n].1);
        let same = |at: usize, block: &[u8]| old(at).filter(|old| ***old == *block).cloned();
        Shot(blocks.map(|(at, block)| (at, same(at, block).unwrap_or_else(|| block.into()))).collect())
    }
}

/// A mounted file system.
#[derive(Debug)]
pub(super) struct Disk {
    image: PathBuf,
    device: PathBuf,
    /// Keeps the device, which goes with it: what has noted a file system's number finds it again.
    _open: File,
    mount: PathBuf,
    /// Where the file is read to: it is read very often.
    buffer: RefCell<Vec<u8>>,
}

impl Disk {
    /// Makes one below `folder`.
    ///
    /// # Errors
    /// When the system does not let this process make and mount one: that takes root and a loop device.
    pub(super) fn new(folder: &Path) -> Outcome<Disk> {
        let (image, mount) = (folder.join("image"), folder.join("mount"));
        fs::create_dir_all(&mount)?;
        File::create(&image)?.set_len(SIZE)?;
        done(Command::new("mkfs.ext4").args(FORMAT).arg(&image))?;
        // When this thread ends, however it ends, nothing stays mounted.
        super::sys::mounts_alone()?;
        done(Command::new("mount").args(["--make-rprivate", "/"]))?;
        let device = done(Command::new("losetup").args(["--find", "--show"]).arg(&image))?;
        let device = PathBuf::from(device.trim());
        let open = File::open(&device)?;
        done(Command::new("losetup").arg("--detach").arg(&device))?;
        let disk = Disk { image, device, _open: open, mount, buffer: RefCell::default() };
        disk.mount("")?;
        Ok(disk)
    }

    /// Where its files are.
    pub(super) fn files(&self) -> &Path {
        &self.mount
    }

    /// A folder of this name beside it, which is not in it.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.image.with_file_name(name)
    }

    /// Mounts it anew, with options of ext4.
    pub(super) fn remount(&self, options: &str) -> Outcome<()> {
        self.unmount()?;
        self.mount(options)
    }

    /// Unmounts it once no program is in it any more: what a command leaves behind to clean up ends by itself.
    fn unmount(&self) -> Outcome<()> {
        let begun = Instant::now();
        loop {
            match done(Command::new("umount").arg(&self.mount)) {
                Err(e) if e.to_string().contains("busy") && begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                other => return other.map(drop),
            }
        }
    }

    /// Mounts it as the file has it now. Nothing is written by the clock for as long as a run takes.
    fn mount(&self, options: &str) -> Outcome<()> {
        let options = format!("commit=900{options}");
        done(Command::new("blockdev").arg("--flushbufs").arg(&self.device))?;
        let mut mount = Command::new("mount");
        done(mount.args(["-t", "ext4", "-o", &options]).arg(&self.device).arg(&self.mount)).map(drop)
    }

    /// Writes everything to the disk.
    pub(super) fn sync(&self) -> Outcome<()> {
        Ok(rustix::fs::syncfs(File::open(&self.mount)?)?)
    }

    /// Has the file system end its transaction, as it does by itself every few seconds: names, lengths and removals are on disk
    /// then, and of contents only what was synced or already has its blocks.
    pub(super) fn commit(&self) -> Outcome<()> {
        let tick =
            OpenOptions::new().write(true).create(true).truncate(false).open(self.mount.join("tick"))?;
        tick.write_all_at(b"tick", 0)?;
        Ok(tick.sync_all()?)
    }

    /// Everything that is on the disk.
    pub(super) fn read(&self) -> Outcome<Vec<u8>> {
        Ok(fs::read(&self.image)?)
    }

    /// The blocks that are on the disk now and not in `base`, the whole disk at an earlier moment. The shot shares with the one
    /// `before` it.
    pub(super) fn shot(&self, base: &[u8], before: &Shot) -> Outcome<Shot> {
        let mut buffer = self.buffer.borrow_mut();
        buffer.resize(base.len(), 0);
        File::open(&self.image)?.read_exact_at(&mut buffer, 0)?;
        Ok(Shot::of(differing(&buffer, base), before))
    }

    /// Cuts the power, and has what was on the disk at the moment of a shot. `base` is what that was made with.
    pub(super) fn cut(&self, base: &[u8], shot: &Shot, options: &str) -> Outcome<()> {
        self.unmount()?;
        let mut wanted = base.to_vec();
        for (at, block) in &shot.0 {
            wanted[*at..*at + block.len()].copy_from_slice(block);
        }
        let image = OpenOptions::new().write(true).open(&self.image)?;
        for (at, block) in differing(&wanted, &self.read()?) {
            image.write_all_at(block, at as u64)?;
        }
        self.mount(options)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.unmount());
    }
}

/// Whether this system lets this process make such a file system.
pub(super) fn is_possible() -> bool {
    let folder = std::env::temp_dir().join(format!("xtask-disk-{}", std::process::id()));
    let is_possible = Disk::new(&folder).is_ok();
    drop(crate::copy::remove(&folder));
    is_possible
}

/// The blocks of `now` that are not as in `then`, with their places.
fn differing<'a>(now: &'a [u8], then: &'a [u8]) -> impl Iterator<Item = (usize, &'a [u8])> {
    let pairs = now.chunks(BLOCK).zip(then.chunks(BLOCK)).enumerate();
    pairs.filter(|(_, (now, then))| now != then).map(|(n, (now, _))| (n * BLOCK, now))
}

/// Runs a program and insists on success; returns what it says.
fn done(command: &mut Command) -> Outcome<String> {
    let out = command.output()?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let program = command.get_program().to_string_lossy();
    fail(format!("{program}: {}", String::from_utf8_lossy(&out.stderr).trim()))
}
