//! File system of its own on a loop device, whose power can be cut: ext4 in a file. The file contains what
//! reached the disk; what is only in memory is lost with the power.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::{Outcome, fail};

/// Size of the file in bytes: enough for a scenario and its template.
const DISK_SIZE: u64 = 24 << 20;

/// Size of a block of the file system in bytes.
const BLOCK_SIZE: usize = 4096;

/// How long programs may still use the file system after a command has ended.
const UNMOUNT_TIMEOUT: Duration = Duration::from_secs(20);

/// Small tables and a small journal, all written at once, so that the kernel writes none of them later.
const MKFS_ARGS: &[&str] =
    &["-q", "-F", "-b", "4096", "-N", "4096", "-J", "size=4", "-E", "lazy_itable_init=0,lazy_journal_init=0"];

/// Blocks of a disk, by offset in bytes, that differ from the disk at the start of a run. A diff shares equal
/// blocks with the one before it: a run has hundreds of diffs, and a large process is slow to start programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct BlockDiff(Vec<(usize, Rc<[u8]>)>);

impl BlockDiff {
    /// Creates a diff of these blocks, which are sorted by offset; it shares equal blocks with `before`.
    fn from_blocks<'a>(blocks: impl Iterator<Item = (usize, &'a [u8])>, before: &BlockDiff) -> BlockDiff {
        let old =
            |at: usize| before.0.binary_search_by_key(&at, |(old, _)| *old).ok().map(|n| &before.0[n].1);
        let same = |at: usize, block: &[u8]| old(at).filter(|old| ***old == *block).cloned();
        BlockDiff(blocks.map(|(at, block)| (at, same(at, block).unwrap_or_else(|| block.into()))).collect())
    }
}

/// Mounted file system on a loop device.
#[derive(Debug)]
pub(super) struct LoopDisk {
    image: PathBuf,
    device: PathBuf,
    /// Keeps the device, which is detached when this is closed, so that the file system's device number stays
    /// the same.
    _open: File,
    mount: PathBuf,
    /// Buffer for reading the file, which happens very often.
    buffer: RefCell<Vec<u8>>,
}

impl LoopDisk {
    /// Creates one below `folder`.
    ///
    /// # Errors
    /// Fails if the system does not let this process create and mount a file system; that takes root and a
    /// loop device.
    pub(super) fn new(folder: &Path) -> Outcome<LoopDisk> {
        let (image, mount) = (folder.join("image"), folder.join("mount"));
        fs::create_dir_all(&mount)?;
        File::create(&image)?.set_len(DISK_SIZE)?;
        run_checked(Command::new("mkfs.ext4").args(MKFS_ARGS).arg(&image))?;
        // When this thread ends, however it ends, nothing stays mounted.
        super::sys::unshare_mounts()?;
        run_checked(Command::new("mount").args(["--make-rprivate", "/"]))?;
        let device = run_checked(Command::new("losetup").args(["--find", "--show"]).arg(&image))?;
        let device = PathBuf::from(device.trim());
        let open = File::open(&device)?;
        run_checked(Command::new("losetup").arg("--detach").arg(&device))?;
        let disk = LoopDisk { image, device, _open: open, mount, buffer: RefCell::default() };
        disk.mount("")?;
        Ok(disk)
    }

    /// Returns the mount point.
    pub(super) fn files(&self) -> &Path {
        &self.mount
    }

    /// Returns a folder of this name next to the disk's file, outside of the file system.
    pub(super) fn sibling(&self, name: &str) -> PathBuf {
        self.image.with_file_name(name)
    }

    /// Mounts the file system again, with options of ext4.
    pub(super) fn remount(&self, options: &str) -> Outcome<()> {
        self.unmount()?;
        self.mount(options)
    }

    /// Unmounts the file system when no program uses it any more: a command's background cleanup ends on its
    /// own.
    fn unmount(&self) -> Outcome<()> {
        let start = Instant::now();
        loop {
            match run_checked(Command::new("umount").arg(&self.mount)) {
                Err(e) if e.to_string().contains("busy") && start.elapsed() < UNMOUNT_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                other => return other.map(drop),
            }
        }
    }

    /// Mounts the file system as the file contains it now. The kernel writes nothing on a timer for as long
    /// as a run takes.
    fn mount(&self, options: &str) -> Outcome<()> {
        let options = format!("commit=900{options}");
        run_checked(Command::new("blockdev").arg("--flushbufs").arg(&self.device))?;
        let mut mount = Command::new("mount");
        run_checked(mount.args(["-t", "ext4", "-o", &options]).arg(&self.device).arg(&self.mount)).map(drop)
    }

    /// Writes everything to the disk.
    pub(super) fn sync(&self) -> Outcome<()> {
        Ok(rustix::fs::syncfs(File::open(&self.mount)?)?)
    }

    /// Makes the file system end its transaction, as it does every few seconds: names, lengths and removals
    /// are then on disk. Of contents, only synced ones and those with allocated blocks are.
    pub(super) fn commit_transaction(&self) -> Outcome<()> {
        let tick =
            OpenOptions::new().write(true).create(true).truncate(false).open(self.mount.join("tick"))?;
        tick.write_all_at(b"tick", 0)?;
        Ok(tick.sync_all()?)
    }

    /// Returns everything on the disk.
    pub(super) fn read(&self) -> Outcome<Vec<u8>> {
        Ok(fs::read(&self.image)?)
    }

    /// Returns the blocks that are on the disk now and not in `base`, the disk at an earlier moment. The diff
    /// shares equal blocks with `before`.
    pub(super) fn diff_from(&self, base: &[u8], before: &BlockDiff) -> Outcome<BlockDiff> {
        let mut buffer = self.buffer.borrow_mut();
        buffer.resize(base.len(), 0);
        File::open(&self.image)?.read_exact_at(&mut buffer, 0)?;
        Ok(BlockDiff::from_blocks(differing_blocks(&buffer, base), before))
    }

    /// Cuts the power, and restores what was on the disk at the moment of `diff`. `base` is what the diff was
    /// made with.
    pub(super) fn cut_power(&self, base: &[u8], diff: &BlockDiff, options: &str) -> Outcome<()> {
        self.unmount()?;
        let mut wanted = base.to_vec();
        for (at, block) in &diff.0 {
            wanted[*at..*at + block.len()].copy_from_slice(block);
        }
        let image = OpenOptions::new().write(true).open(&self.image)?;
        for (at, block) in differing_blocks(&wanted, &self.read()?) {
            image.write_all_at(block, at as u64)?;
        }
        self.mount(options)
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        drop(self.unmount());
    }
}

/// Returns whether this system lets this process create such a file system.
pub(super) fn is_supported() -> bool {
    let folder = std::env::temp_dir().join(format!("xtask-disk-{}", std::process::id()));
    let is_supported = LoopDisk::new(&folder).is_ok();
    drop(crate::copy::remove(&folder));
    is_supported
}

/// Returns the blocks of `now` that differ from those of `then`, with their offsets.
fn differing_blocks<'a>(now: &'a [u8], then: &'a [u8]) -> impl Iterator<Item = (usize, &'a [u8])> {
    let pairs = now.chunks(BLOCK_SIZE).zip(then.chunks(BLOCK_SIZE)).enumerate();
    pairs.filter(|(_, (now, then))| now != then).map(|(n, (now, _))| (n * BLOCK_SIZE, now))
}

/// Runs a program and requires success; returns its output.
fn run_checked(command: &mut Command) -> Outcome<String> {
    let out = command.output()?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let program = command.get_program().to_string_lossy();
    fail(format!("{program}: {}", String::from_utf8_lossy(&out.stderr).trim()))
}
