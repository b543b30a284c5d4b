//! Owns keeping a process small that mostly waits: what it does not need now, and can read again at any time, is not kept in memory.

#[cfg(target_os = "linux")]
use rustix::mm::{Advice, madvise};

/// Gives back the memory of this program's own code and constants; what is needed of them is read again when it is, from the
/// system's cache most often. Costs well under a millisecond.
#[cfg(target_os = "linux")]
pub(crate) fn let_go_of_code() {
    // Without it the process is only larger.
    let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else { return };
    for (start, length) in clean_files(&maps) {
        let at = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: these pages are those of a file, in a mapping that this process cannot write to, and none of them is another than
        // the file's: whoever reads there next sees the same bytes.
        #[expect(unsafe_code, reason = "the system knows no other way to give pages back")]
        let _still_there = unsafe { madvise(at, length, Advice::LinuxDontNeed) };
    }
}

/// Elsewhere nothing is known of what is there.
#[cfg(not(target_os = "linux"))]
pub(crate) fn let_go_of_code() {}

/// The mappings, by start and length, that hold nothing but what is in a file: private, not to be written to, and without a page
/// that was changed before (as those are that a loader has filled in, in memory or swapped out).
#[cfg(target_os = "linux")]
fn clean_files(smaps: &str) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut last: Option<(usize, usize)> = None;
    // Both have to be said, and nought, for a mapping to count.
    let mut clean = 0;
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(first), second) = (words.next(), words.next().unwrap_or_default()) else { continue };
        match first {
            "Anonymous:" | "Swap:" if second == "0" => clean += 1,
            _ if first.ends_with(':') => {}
            _ => {
                out.extend(last.take().filter(|_| clean == 2));
                clean = 0;
                let of_a_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
                if matches!(second, "r--p" | "r-xp") && of_a_file {
                    last = range(first);
                }
            }
        }
    }
    out.extend(last.filter(|_| clean == 2));
    out
}

/// `start-end`, in hexadecimal digits.
#[cfg(target_os = "linux")]
fn range(word: &str) -> Option<(usize, usize)> {
    let (start, end) = word.split_once('-')?;
    let [start, end] = [start, end].map(|n| usize::from_str_radix(n, 16).ok());
    Some((start?, end?.checked_sub(start?)?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn mapping(head: &str, anonymous: &str) -> String {
        format!("{head}\nSize: 8 kB\nRss: 8 kB\n{anonymous}Swap: 0 kB\nVmFlags: rd mr\n")
    }

    #[test]
    fn only_what_is_as_in_its_file_and_stays_so_is_let_go_of() {
        let none = "Anonymous: 0 kB\n";
        let maps = [
            mapping("1000-3000 r--p 00000000 fe:00 7 /bin/it", none),
            mapping("3000-5000 r-xp 00002000 fe:00 7 /bin/with space", none),
            mapping("5000-6000 r--p 00004000 fe:00 7 /bin/relocated", "Anonymous: 4 kB\n"),
            mapping("6000-7000 rw-p 00005000 fe:00 7 /bin/data", none),
            mapping("7000-8000 r--s 00000000 fe:00 8 /shared", none),
            mapping("8000-9000 r-xp 00000000 00:00 0 [vdso]", none),
            mapping("9000-a000 r--p 00000000 00:00 0", none),
            mapping("a000-b000 r--p 00000000 fe:00 9 /old/system", ""),
            mapping("b000-c000 r--p 00000000 fe:00 9 /swapped", "Anonymous: 0 kB\nSwap: 4 kB\n")
                .replace("Swap: 0 kB\n", ""),
            mapping("c000-f000 r-xp 00000000 fe:00 9 /lib/last.so", none),
        ];
        let wanted = [(0x1000, 0x2000), (0x3000, 0x2000), (0xc000, 0x3000)];
        assert_eq!(clean_files(&maps.concat()), wanted);
        assert_eq!(clean_files(""), []);
    }

    #[test]
    fn this_program_goes_on_afterwards() {
        static TEXT: &str = "constants are read again";
        let code =
            || std::fs::read_to_string("/proc/self/smaps").map(|maps| clean_files(&maps).len()).unwrap();
        assert!(code() > 0);
        let_go_of_code();
        assert_eq!(TEXT.len(), 24);
        assert!(code() > 0);
    }
}
