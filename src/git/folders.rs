//! Owns what was found out about the folders of a worktree: which of them held nothing but what the index has in them.
//!
//! A folder gets new times whenever a name in it comes, goes or is given to something else, and nobody can set its ctime. So
//! one that has the times of then has the names of then, and does not have to be read again. That counts only for the same
//! tree, on file systems that note times to the tick, and for times that lay well back when the folder was read: a change in
//! the tick of the reading would leave no trace. What is in the files says nothing of this; they are looked at each time.

use std::os::fd::AsFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gix::ObjectId;
use rustix::fs::Stat;

/// What a file with this begins with.
const HEAD: &[u8] = b"proq folders 1\n";

/// How far back the times of a folder have to lie when it is read, in ns: further than any clock ticks.
const LONG: u64 = 2_000_000_000;

/// With fewer folders it is quicker to read them.
const FEW: usize = if cfg!(test) { 1 } else { 32 };

/// File systems that are known to note times in ns, and to have one clock for them: ext4, XFS, Btrfs, tmpfs, F2FS.
#[cfg(target_os = "linux")]
const KNOWN: &[u64] = &[0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0xF2F5_2010];

/// A folder as it was: inode, ctime and mtime in ns, size. All zero where it has to be read.
type Stamp = [u64; 4];

/// What is known of the folders of a worktree, in the order in which they are looked at, and what is found out meanwhile.
pub(super) struct Folders {
    tree: ObjectId,
    device: u64,
    /// When this look began, in ns.
    began: u64,
    before: Vec<Stamp>,
    now: Vec<Stamp>,
    /// Folders that were not known to be as they are.
    new: usize,
    /// A folder is missing, so that the others cannot be counted.
    is_lost: bool,
}

impl Folders {
    /// What the bytes say that an earlier look left, at an index that holds `tree`. None where folders have to be read each
    /// time. `top` is the top of the worktree, and `now` when the look begins.
    pub(super) fn new(
        bytes: Option<Vec<u8>>,
        tree: ObjectId,
        top: impl AsFd,
        now: SystemTime,
    ) -> Option<Folders> {
        let device = device_of(&top)?;
        let began = ns(now)?;
        let before = bytes.and_then(|bytes| read(&bytes, tree, device, began)).unwrap_or_default();
        let now = Vec::with_capacity(before.len());
        Some(Folders { tree, device, began, before, now, new: 0, is_lost: false })
    }

    /// Whether the next folder, whose numbers are `meta`, surely has no other names than the index.
    pub(super) fn knows(&mut self, meta: &Stat) -> bool {
        let stamp = self.stamp(meta);
        let known =
            !self.is_lost && stamp != Stamp::default() && self.before.get(self.now.len()) == Some(&stamp);
        self.now.push(if known { stamp } else { Stamp::default() });
        known
    }

    /// The place of the folder that was asked for last.
    pub(super) fn last(&self) -> usize {
        self.now.len().saturating_sub(1)
    }

    /// That folder, whose numbers were `meta` before it was read, had no other names.
    pub(super) fn learn(&mut self, at: usize, meta: &Stat) {
        let stamp = self.stamp(meta);
        if let Some(now) = self.now.get_mut(at) {
            *now = stamp;
            self.new += usize::from(stamp != Stamp::default());
        }
    }

    /// A folder, with those in it, is not there.
    pub(super) fn lose(&mut self) {
        self.is_lost = true;
    }

    /// What is to be kept for the next look; none when that is not worth while.
    pub(super) fn kept(&self) -> Option<Vec<u8>> {
        let all = self.now.len();
        if self.is_lost || all < FEW || self.new * 16 <= all {
            return None;
        }
        let mut out = HEAD.to_vec();
        out.push(u8::try_from(self.tree.as_slice().len()).ok()?);
        out.extend_from_slice(self.tree.as_slice());
        for number in [self.device, self.began].iter().chain(self.now.iter().flatten()) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let sum = sum(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        Some(out)
    }

    /// The numbers of a folder; all zero where they might stay as they are when something changes.
    fn stamp(&self, meta: &Stat) -> Stamp {
        let time =
            |seconds: i64, ns: u64| u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?.checked_add(ns);
        let (ctime_ns, mtime_ns) = (number(meta.st_ctime_nsec), number(meta.st_mtime_nsec));
        let times = (time(meta.st_ctime, ctime_ns), time(meta.st_mtime, mtime_ns));
        let (Some(ctime), Some(mtime)) = times else { return Stamp::default() };
        let old = ctime.max(mtime).saturating_add(LONG) <= self.began;
        // Full seconds are what a file system notes that knows no others.
        if old && ctime_ns != 0 && number(meta.st_dev) == self.device {
            [meta.st_ino, ctime, mtime, number(meta.st_size)]
        } else {
            Stamp::default()
        }
    }
}

/// Numbers that have another type on each system.
fn number(n: impl TryInto<u64>) -> u64 {
    n.try_into().unwrap_or_default()
}

fn ns(time: SystemTime) -> Option<u64> {
    let since: Duration = time.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

/// The device of a folder whose file system is known; elsewhere none.
#[cfg(target_os = "linux")]
fn device_of(top: impl AsFd) -> Option<u64> {
    let kind = rustix::fs::fstatfs(&top).ok()?.f_type;
    KNOWN.contains(&number(kind)).then_some(())?;
    Some(number(rustix::fs::fstat(&top).ok()?.st_dev))
}

#[cfg(not(target_os = "linux"))]
fn device_of(_: impl AsFd) -> Option<u64> {
    None
}

/// The stamps in a file; none when they are of another tree or device, were noted in what is the future by now, or are broken.
fn read(bytes: &[u8], tree: ObjectId, device: u64, now: u64) -> Option<Vec<Stamp>> {
    let (bytes, end) = bytes.split_last_chunk::<8>()?;
    if sum(bytes) != u64::from_le_bytes(*end) {
        return None;
    }
    let (len, rest) = bytes.strip_prefix(HEAD)?.split_first()?;
    let (of, rest) = rest.split_at_checked(usize::from(*len))?;
    let (numbers, []) = rest.as_chunks::<8>() else { return None };
    let (head, stamps) = numbers.split_first_chunk::<2>()?;
    let [of_device, began] = head.map(u64::from_le_bytes);
    let (stamps, []) = stamps.as_chunks::<4>() else { return None };
    let same = of == tree.as_slice() && of_device == device && began <= now;
    same.then(|| stamps.iter().map(|stamp| stamp.map(u64::from_le_bytes)).collect())
}

/// A number that tells a file from one that a power cut broke.
fn sum(bytes: &[u8]) -> u64 {
    let word = |part: &[u8]| part.iter().fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
    let mix = |sum: u64, part| (sum.rotate_left(5) ^ word(part)).wrapping_mul(0x517C_C1B7_2722_0A95);
    bytes.chunks(8).fold(u64::try_from(bytes.len()).unwrap_or_default(), mix)
}
