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
    /// Where those begin whose first two bytes are such a number.
    starts: Vec<u32>,
    changed: bool,
}

impl Sizes {
    /// What was kept: text that is of another form is nothing.
    pub(crate) fn read(bytes: &[u8]) -> Sizes {
        let (known, rest) = bytes.as_chunks();
        let in_order = known.is_sorted();
        let known = if rest.is_empty() && in_order { known.to_vec() } else { Vec::new() };
        Sizes { starts: starts(&known), known, changed: false }
    }

    /// What is to be kept, if that is something new.
    pub(crate) fn changed(&self) -> Option<&[u8]> {
        self.changed.then(|| self.known.as_flattened())
    }

    /// Whether the blob of an entry is known to be as long as its file.
    pub(super) fn has(&self, known: &Known) -> bool {
        let at = prefix(known);
        let [start, end] = [at, at + 1].map(|at| self.starts.get(at).map_or(0, |start| *start as usize));
        self.known.get(start..end).is_some_and(|few| few.contains(known))
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
        self.starts = starts(&self.known);
    }
}

/// Where those of each prefix begin, and where the last ones end.
fn starts(known: &[Known]) -> Vec<u32> {
    let mut starts = Vec::with_capacity(PREFIXES + 1);
    for (known, at) in known.iter().zip(0..) {
        if starts.len() <= prefix(known) {
            starts.resize(prefix(known) + 1, at);
        }
    }
    starts.resize(PREFIXES + 1, u32::try_from(known.len()).unwrap_or_default());
    starts
}

/// How many prefixes there are.
const PREFIXES: usize = 1 << 16;

fn prefix(known: &Known) -> usize {
    usize::from(u16::from_be_bytes([known[0], known[1]]))
}

/// An entry's blob, and the length of its file.
pub(super) fn known(entry: &Entry) -> Known {
    let mut out = [0; ID + 4];
    out[..ID].copy_from_slice(&entry.id.as_bytes()[..ID]);
    out[ID..].copy_from_slice(&entry.stat.size.to_be_bytes());
    out
}
