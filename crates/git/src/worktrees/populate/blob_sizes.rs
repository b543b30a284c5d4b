//! Cache of blob lengths. To read the length of each file's blob takes more than a tenth of the time that
//! writing the files of a big repository takes, so the lengths are saved.

use gix::index::Entry;

/// Number of bytes saved of an object id; nobody produces two ids that share this prefix.
const ID_PREFIX_LEN: usize = 12;

/// Prefix of a blob's id and the blob's length.
pub(crate) type BlobRecord = [u8; ID_PREFIX_LEN + 4];

/// Known blob lengths. A blob counts as unknown if an index entry has another length than the saved one. So a
/// wrong record only causes the blob to be read again.
#[derive(Debug, Default)]
pub struct BlobSizes {
    records: Vec<BlobRecord>,
    /// Position in `records` of the first record for each value of the first two id bytes.
    bucket_starts: Vec<u32>,
    /// Whether records were added since the cache was parsed.
    changed: bool,
}

impl BlobSizes {
    /// Parses saved records; bytes in another format yield an empty cache.
    pub fn parse(bytes: &[u8]) -> BlobSizes {
        let (known, rest) = bytes.as_chunks();
        let in_order = known.is_sorted();
        let records = if rest.is_empty() && in_order { known.to_vec() } else { Vec::new() };
        BlobSizes { bucket_starts: find_bucket_starts(&records), records, changed: false }
    }

    /// Returns the bytes to save, if the cache has changed.
    pub fn changed_bytes(&self) -> Option<&[u8]> {
        self.changed.then(|| self.records.as_flattened())
    }

    /// Returns whether the blob of an entry is known to be as long as the entry's file.
    pub fn is_known(&self, record: &BlobRecord) -> bool {
        let at = bucket_number(record);
        let [start, end] =
            [at, at + 1].map(|at| self.bucket_starts.get(at).map_or(0, |start| *start as usize));
        self.records.get(start..end).is_some_and(|candidates| candidates.contains(record))
    }

    /// Adds new records. Once the cache has more than twice as many records as the index has entries, records
    /// that `entries` do not need are dropped.
    pub fn add(&mut self, new_records: Vec<BlobRecord>, entries: &[Entry]) {
        if new_records.is_empty() {
            return;
        }
        self.changed = true;
        self.records.extend(new_records);
        self.records.sort_unstable();
        self.records.dedup();
        if self.records.len() > 2 * entries.len() {
            let mut needed: Vec<BlobRecord> = entries.iter().map(blob_record).collect();
            needed.sort_unstable();
            self.records.retain(|known| needed.binary_search(known).is_ok());
        }
        self.bucket_starts = find_bucket_starts(&self.records);
    }
}

/// Returns the position of the first record of each bucket, followed by the end of the last one.
fn find_bucket_starts(records: &[BlobRecord]) -> Vec<u32> {
    let mut starts = Vec::with_capacity(BUCKET_COUNT + 1);
    for (record, at) in records.iter().zip(0..) {
        if starts.len() <= bucket_number(record) {
            starts.resize(bucket_number(record) + 1, at);
        }
    }
    starts.resize(BUCKET_COUNT + 1, u32::try_from(records.len()).unwrap_or_default());
    starts
}

/// Number of buckets: one for each value of the first two id bytes.
const BUCKET_COUNT: usize = 1 << 16;

fn bucket_number(record: &BlobRecord) -> usize {
    usize::from(u16::from_be_bytes([record[0], record[1]]))
}

/// Returns the record of an entry: its blob's id prefix and the length of its file.
pub(crate) fn blob_record(entry: &Entry) -> BlobRecord {
    let mut out = [0; ID_PREFIX_LEN + 4];
    out[..ID_PREFIX_LEN].copy_from_slice(&entry.id.as_bytes()[..ID_PREFIX_LEN]);
    out[ID_PREFIX_LEN..].copy_from_slice(&entry.stat.size.to_be_bytes());
    out
}
