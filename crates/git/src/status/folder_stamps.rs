//! Saved stamps of a worktree's folders: which folders held only names that the index has.
//!
//! The times of a folder change whenever a name in it is added, removed or reassigned, and nobody can set its
//! ctime. So a folder with the saved times still has the saved names, and does not have to be read again.
//! That holds only for the same tree, and on file systems with exact times. The times must also be well in
//! the past when the folder is read: a change in the same clock tick would leave no trace. Stamps do not
//! cover file contents; files are checked each time.

use std::os::fd::AsFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gix::ObjectId;
use rustix::fs::Stat;

/// First bytes of a file with folder stamps.
const FILE_HEADER: &[u8] = b"proq folders 1\n";

/// Minimum age of a folder's times when it is read, in ns: longer than the tick of any clock.
const MIN_STAMP_AGE_NS: u64 = 2_000_000_000;

/// Minimum number of folders for which stamps are saved; fewer are faster to read.
const MIN_FOLDERS: usize = if cfg!(test) { 1 } else { 32 };

/// Magic numbers of file systems that record times in ns from a single clock: ext4, XFS, Btrfs, tmpfs, F2FS.
#[cfg(target_os = "linux")]
const NS_CLOCK_FILE_SYSTEMS: &[u64] = &[0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0xF2F5_2010];

/// State of a folder: inode, ctime and mtime in ns, size. All zero if the folder has to be read.
type FolderStamp = [u64; 4];

/// Saved and current stamps of a worktree's folders, in the order in which the walk visits them.
pub(crate) struct FolderStamps {
    /// Root tree of the index that the stamps belong to.
    index_tree: ObjectId,
    /// Device number of the worktree's file system.
    device: u64,
    /// Start time of the current walk, in ns.
    walk_started_ns: u64,
    /// Stamps that an earlier walk saved, by the position of the folder.
    saved: Vec<FolderStamp>,
    /// Stamps of this walk, by the position of the folder; all zero for one that has to be read next time.
    current: Vec<FolderStamp>,
    /// Number of folders that this walk read and recorded with a new stamp.
    new_count: usize,
    /// Whether the walk skipped a missing folder, so that positions no longer match the saved ones.
    is_incomplete: bool,
}

impl FolderStamps {
    /// Loads the stamps that an earlier walk saved for an index with `index_tree`. Returns `None` where
    /// folders have to be read each time. `top` is the top of the worktree, and `now` the start time of the
    /// walk.
    pub fn new(
        saved_bytes: Option<Vec<u8>>,
        index_tree: ObjectId,
        top: impl AsFd,
        now: SystemTime,
    ) -> Option<FolderStamps> {
        let device = device_with_exact_times(&top)?;
        let started = unix_ns(now)?;
        let saved = saved_bytes
            .and_then(|bytes| parse_stamps(&bytes, index_tree, device, started))
            .unwrap_or_default();
        let current = Vec::with_capacity(saved.len());
        Some(FolderStamps {
            index_tree,
            device,
            walk_started_ns: started,
            saved,
            current,
            new_count: 0,
            is_incomplete: false,
        })
    }

    /// Takes the next folder of the walk, with stat data `meta`. Returns whether the folder certainly has
    /// only names that the index has, because its stamp is unchanged.
    pub fn is_next_unchanged(&mut self, meta: &Stat) -> bool {
        let is_known = self.skip_if_unchanged(meta);
        if !is_known {
            self.current.push(FolderStamp::default());
        }
        is_known
    }

    /// Returns whether the next folder of the walk has a saved stamp.
    pub(crate) fn may_skip_next(&self) -> bool {
        let saved = self.saved.get(self.current.len());
        !self.is_incomplete && saved.is_some_and(|stamp| *stamp != FolderStamp::default())
    }

    /// Takes the next folder of the walk, with stat data `meta`, if its stamp is unchanged; otherwise it
    /// stays the next one.
    pub(crate) fn skip_if_unchanged(&mut self, meta: &Stat) -> bool {
        let stamp = self.stamp(meta);
        let is_known = self.may_skip_next() && self.saved.get(self.current.len()) == Some(&stamp);
        if is_known {
            self.current.push(stamp);
        }
        is_known
    }

    /// Returns the position of the folder that was last passed to [`FolderStamps::is_next_unchanged`].
    pub(crate) fn last_position(&self) -> usize {
        self.current.len().saturating_sub(1)
    }

    /// Records that the folder at a position, with stat data `meta` from before it was read, has no names
    /// besides those in the index.
    pub(crate) fn record_clean(&mut self, position: usize, meta: &Stat) {
        let stamp = self.stamp(meta);
        if let Some(current) = self.current.get_mut(position) {
            *current = stamp;
            self.new_count += usize::from(stamp != FolderStamp::default());
        }
    }

    /// Records that a folder, with all folders below it, is missing.
    pub(crate) fn mark_incomplete(&mut self) {
        self.is_incomplete = true;
    }

    /// Returns the bytes to save for the next walk; `None` if saving them is not worthwhile.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let folder_count = self.current.len();
        if self.is_incomplete || folder_count < MIN_FOLDERS || self.new_count * 16 <= folder_count {
            return None;
        }
        let mut out = FILE_HEADER.to_vec();
        out.push(u8::try_from(self.index_tree.as_slice().len()).ok()?);
        out.extend_from_slice(self.index_tree.as_slice());
        for number in [self.device, self.walk_started_ns].iter().chain(self.current.iter().flatten()) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let sum = checksum(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        Some(out)
    }

    /// Returns the stamp of a folder; all zero where its times do not prove anything: they are too young or
    /// have no fractions, or the folder is on another device.
    fn stamp(&self, meta: &Stat) -> FolderStamp {
        let to_ns =
            |seconds: i64, ns: u64| u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?.checked_add(ns);
        let (ctime_ns, mtime_ns) = (to_u64(meta.st_ctime_nsec), to_u64(meta.st_mtime_nsec));
        let times = (to_ns(meta.st_ctime, ctime_ns), to_ns(meta.st_mtime, mtime_ns));
        let (Some(ctime), Some(mtime)) = times else { return FolderStamp::default() };
        let is_old_enough = ctime.max(mtime).saturating_add(MIN_STAMP_AGE_NS) <= self.walk_started_ns;
        // Times in full seconds come from a file system that records no fractions.
        if is_old_enough && ctime_ns != 0 && to_u64(meta.st_dev) == self.device {
            [meta.st_ino, ctime, mtime, to_u64(meta.st_size)]
        } else {
            FolderStamp::default()
        }
    }
}

/// Converts a number whose type differs between systems.
fn to_u64(n: impl TryInto<u64>) -> u64 {
    n.try_into().unwrap_or_default()
}

fn unix_ns(time: SystemTime) -> Option<u64> {
    let elapsed: Duration = time.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(elapsed.as_nanos()).ok()
}

/// Returns the device of a folder whose file system has exact times; `None` on others.
#[cfg(target_os = "linux")]
fn device_with_exact_times(top: impl AsFd) -> Option<u64> {
    let kind = rustix::fs::fstatfs(&top).ok()?.f_type;
    NS_CLOCK_FILE_SYSTEMS.contains(&to_u64(kind)).then_some(())?;
    Some(to_u64(rustix::fs::fstat(&top).ok()?.st_dev))
}

#[cfg(not(target_os = "linux"))]
fn device_with_exact_times(_: impl AsFd) -> Option<u64> {
    None
}

/// Parses saved stamps. Returns `None` if they are of another tree or device, are from the future, or are
/// corrupt.
fn parse_stamps(bytes: &[u8], tree: ObjectId, device: u64, now: u64) -> Option<Vec<FolderStamp>> {
    let (bytes, trailer) = bytes.split_last_chunk::<8>()?;
    if checksum(bytes) != u64::from_le_bytes(*trailer) {
        return None;
    }
    let (len, rest) = bytes.strip_prefix(FILE_HEADER)?.split_first()?;
    let (saved_tree, rest) = rest.split_at_checked(usize::from(*len))?;
    let (numbers, []) = rest.as_chunks::<8>() else { return None };
    let (head, stamps) = numbers.split_first_chunk::<2>()?;
    let [saved_device, saved_at] = head.map(u64::from_le_bytes);
    let (stamps, []) = stamps.as_chunks::<4>() else { return None };
    let is_valid = saved_tree == tree.as_slice() && saved_device == device && saved_at <= now;
    is_valid.then(|| stamps.iter().map(|stamp| stamp.map(u64::from_le_bytes)).collect())
}

/// Computes a checksum that detects a file truncated or garbled by a power failure.
fn checksum(bytes: &[u8]) -> u64 {
    let short_word = |chunk: &[u8]| chunk.iter().fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
    let word = |chunk: &[u8]| chunk.try_into().map_or_else(|_| short_word(chunk), u64::from_be_bytes);
    let mix = |sum: u64, chunk| (sum.rotate_left(5) ^ word(chunk)).wrapping_mul(0x517C_C1B7_2722_0A95);
    bytes.chunks(8).fold(u64::try_from(bytes.len()).unwrap_or_default(), mix)
}
