//! Stat data of index entries, compared as git does.

use gix::index::File;
use gix::index::entry::stat::Time;
use gix::index::entry::{Stat, stat};

/// Options that compare stat data as git does: every number that an index has, times by the second.
pub(crate) const STAT_BY_SECOND: stat::Options =
    stat::Options { trust_ctime: true, check_stat: true, use_nsec: false, use_stdev: false };

/// Returns whether a file was changed in the second in which the index was written, or later.
pub(crate) fn is_racy(index: &File, entry: &gix::index::Entry) -> bool {
    entry.stat.is_racy(index.timestamp(), STAT_BY_SECOND)
}

/// Returns the stat data an index would record of a file: the lower 32 bits of each number.
pub fn index_stat(meta: &rustix::fs::Stat) -> Stat {
    let low_32_bits = |n: i128| u32::try_from(n & 0xFFFF_FFFF).unwrap_or_default();
    let time = |secs: i128, nsecs: i128| Time { secs: low_32_bits(secs), nsecs: low_32_bits(nsecs) };
    Stat {
        mtime: time(meta.st_mtime.into(), meta.st_mtime_nsec.into()),
        ctime: time(meta.st_ctime.into(), meta.st_ctime_nsec.into()),
        dev: low_32_bits(meta.st_dev.into()),
        ino: low_32_bits(meta.st_ino.into()),
        uid: low_32_bits(meta.st_uid.into()),
        gid: low_32_bits(meta.st_gid.into()),
        size: low_32_bits(meta.st_size.into()),
    }
}
