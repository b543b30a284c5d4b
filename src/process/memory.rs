//! Memory use of processes that mostly wait: releasing pages that the system can read again at any time.

#[cfg(target_os = "linux")]
use rustix::mm::{Advice, madvise};

/// Releases the memory of this program's code and constants. The system reads needed pages again, mostly from
/// its cache. Takes well under a millisecond.
#[cfg(target_os = "linux")]
pub(crate) fn release_code_pages() {
    // Without this file the process only uses more memory.
    let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else { return };
    for (start, length) in clean_file_mappings(&maps) {
        let address = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: the pages belong to a file, in a mapping that this process cannot write to, and none
        // differs from the file. Later reads see the same bytes.
        #[expect(unsafe_code, reason = "the system knows no other way to give pages back")]
        let _result = unsafe { madvise(address, length, Advice::LinuxDontNeed) };
    }
}

/// Does nothing on other systems, where the mappings are unknown.
#[cfg(not(target_os = "linux"))]
pub(crate) fn release_code_pages() {}

/// Returns the mappings, as start and length, whose pages are all identical to their file: private,
/// read-only, and without changed pages. A loader may have changed pages, in memory or swapped out.
#[cfg(target_os = "linux")]
fn clean_file_mappings(smaps: &str) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut candidate: Option<(usize, usize)> = None;
    // A mapping counts only if both lines are present and zero.
    let mut zero_counts = 0;
    for line in smaps.lines() {
        let mut columns = line.split_ascii_whitespace();
        let (Some(first), second) = (columns.next(), columns.next().unwrap_or_default()) else { continue };
        match first {
            "Anonymous:" | "Swap:" if second == "0" => zero_counts += 1,
            _ if first.ends_with(':') => {}
            _ => {
                out.extend(candidate.take().filter(|_| zero_counts == 2));
                zero_counts = 0;
                let is_file_backed = columns.nth(3).is_some_and(|path| path.starts_with('/'));
                if matches!(second, "r--p" | "r-xp") && is_file_backed {
                    candidate = parse_range(first);
                }
            }
        }
    }
    out.extend(candidate.filter(|_| zero_counts == 2));
    out
}

/// Parses `start-end` in hexadecimal into start and length.
#[cfg(target_os = "linux")]
fn parse_range(word: &str) -> Option<(usize, usize)> {
    let (start, end) = word.split_once('-')?;
    let [start, end] = [start, end].map(|n| usize::from_str_radix(n, 16).ok());
    Some((start?, end?.checked_sub(start?)?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn smaps_entry(head: &str, anonymous: &str) -> String {
        format!("{head}\nSize: 8 kB\nRss: 8 kB\n{anonymous}Swap: 0 kB\nVmFlags: rd mr\n")
    }

    #[test]
    fn finds_unmodified_read_only_file_mappings() {
        let no_anonymous = "Anonymous: 0 kB\n";
        let maps = [
            smaps_entry("1000-3000 r--p 00000000 fe:00 7 /bin/it", no_anonymous),
            smaps_entry("3000-5000 r-xp 00002000 fe:00 7 /bin/with space", no_anonymous),
            smaps_entry("5000-6000 r--p 00004000 fe:00 7 /bin/relocated", "Anonymous: 4 kB\n"),
            smaps_entry("6000-7000 rw-p 00005000 fe:00 7 /bin/data", no_anonymous),
            smaps_entry("7000-8000 r--s 00000000 fe:00 8 /shared", no_anonymous),
            smaps_entry("8000-9000 r-xp 00000000 00:00 0 [vdso]", no_anonymous),
            smaps_entry("9000-a000 r--p 00000000 00:00 0", no_anonymous),
            smaps_entry("a000-b000 r--p 00000000 fe:00 9 /old/system", ""),
            smaps_entry("b000-c000 r--p 00000000 fe:00 9 /swapped", "Anonymous: 0 kB\nSwap: 4 kB\n")
                .replace("Swap: 0 kB\n", ""),
            smaps_entry("c000-f000 r-xp 00000000 fe:00 9 /lib/last.so", no_anonymous),
        ];
        let expected = [(0x1000, 0x2000), (0x3000, 0x2000), (0xc000, 0x3000)];
        assert_eq!(clean_file_mappings(&maps.concat()), expected);
        assert_eq!(clean_file_mappings(""), []);
    }

    #[test]
    fn program_continues_after_release() {
        static TEXT: &str = "constants are read again";
        let count_clean_mappings = || {
            std::fs::read_to_string("/proc/self/smaps").map(|maps| clean_file_mappings(&maps).len()).unwrap()
        };
        assert!(count_clean_mappings() > 0);
        release_code_pages();
        assert_eq!(TEXT.len(), 24);
        assert!(count_clean_mappings() > 0);
    }
}
