//! Owns which blobs are known to be how long. To learn it of each file of a big repository takes longer than a tenth of the time
//! in which the files are made, so it is kept from one time to the next.

use gix::index::Entry;

/// How many bytes of an object's id are kept: nobody makes two that begin alike.
const ID: usize = 12;

/// A blob and its length.
pub(super) type Known = [u8; ID + 4];

/// What is known. A blob that an entry says to be of another length than it is kept with is not known, so that whatever is
/// kept can only be asked for again.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    known: Vec<Known>,
    changed: bool,
}

impl Sizes {
    /// What was kept: text that is of another form is nothing.
    pub(crate) fn read(bytes: &[u8]) -> Sizes {
        let (known, rest) = bytes.as_chunks();
        let in_order = known.is_sorted();
        let known = if rest.is_empty() && in_order { known.to_vec() } else { Vec::new() };
        Sizes { known, changed: false }
    }

    /// What is to be kept, if that is something new.
    pub(crate) fn changed(&self) -> Option<&[u8]> {
        self.changed.then(|| self.known.as_flattened())
    }

    /// Whether the blob of an entry is known to be as long as its file.
    pub(super) fn has(&self, known: &Known) -> bool {
        self.known.binary_search(known).is_ok()
    }

    /// Adds what was learned. What `all` entries of an index do not need is forgotten once it is more than what they need.
    pub(super) fn add(&mut self, learned: Vec<Known>, all: &[Entry]) {
        if learned.is_empty() {
            return;
        }
        self.changed = true;
        self.known.extend(learned);
        self.known.sort_unstable();
        self.known.dedup();
        if self.known.len() > 2 * all.len() {
            let mut needed: Vec<Known> = all.iter().map(known).collect();
            needed.sort_unstable();
            self.known.retain(|known| needed.binary_search(known).is_ok());
        }
    }
}

/// An entry's blob, and the length of its file.
pub(super) fn known(entry: &Entry) -> Known {
    let mut out = [0; ID + 4];
    out[..ID].copy_from_slice(&entry.id.as_bytes()[..ID]);
    out[ID..].copy_from_slice(&entry.stat.size.to_be_bytes());
    out
}
