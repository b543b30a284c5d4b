//! Updates of refs in the input of git's hooks.

/// A ref update that git is about to make. Ids are as git writes them: all zeros for a missing ref,
/// `ref:NAME` for a symbolic one.
pub(super) struct RefUpdate<'a> {
    pub(super) old: &'a [u8],
    pub(super) new: &'a [u8],
    pub(super) name: &'a str,
}

impl RefUpdate<'_> {
    /// Parses the lines of a hook's input. Malformed lines are skipped.
    pub(super) fn parse_all(input: &[u8]) -> impl Iterator<Item = RefUpdate<'_>> {
        input.split(|b| *b == b'\n').filter_map(|line| {
            let mut fields = line.splitn(3, |b| *b == b' ');
            let (old, new) = (fields.next()?, fields.next()?);
            Some(RefUpdate { old, new, name: std::str::from_utf8(fields.next()?).ok()? })
        })
    }

    /// Returns whether the ref becomes a symbolic ref, which git reports from version 2.46 on.
    pub(super) fn is_symbolic(&self) -> bool {
        self.new.starts_with(b"ref:")
    }

    pub(super) fn is_deletion(&self) -> bool {
        is_zero_id(self.new)
    }
}

/// Returns whether an id is all zeros, which stands for a missing ref.
pub(super) fn is_zero_id(id: &[u8]) -> bool {
    !id.is_empty() && id.iter().all(|b| *b == b'0')
}

/// Converts the input of a `pre-push` hook to the form that [`RefUpdate::parse_all`] reads: the old value,
/// new value and name of each ref of the remote.
pub(super) fn convert_push_input(input: &[u8]) -> Vec<u8> {
    let convert_line = |line: &[u8]| {
        let mut fields = line.splitn(4, |b| *b == b' ').skip(1);
        let (new, name, old) = (fields.next()?, fields.next()?, fields.next()?);
        Some([old, b" ", new, b" ", name, b"\n"].concat())
    };
    input.split(|b| *b == b'\n').filter_map(convert_line).flatten().collect()
}
