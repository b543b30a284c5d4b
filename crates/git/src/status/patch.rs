//! A difference as files, hunks and lines, parsed from git's patch format and bounded.

use serde::Serialize;

use super::word_ranges::differing_words;
use crate::RepoPath;

/// Number of bytes of git's output that are read for one patch.
pub const MAX_PATCH_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of lines of one file.
const MAX_FILE_LINES: usize = 5_000;
/// Maximum number of characters of one line.
const MAX_LINE_CHARS: usize = 2_000;

/// Part of a difference that is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchSelection {
    /// The only file, or the folder with the only files; none for all.
    pub path: Option<RepoPath>,
    /// Number of unchanged lines around each change; none for git's setting.
    pub context: Option<u16>,
}

/// A difference, file by file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Patch {
    /// The changed files, in git's order.
    #[serde(rename = "patch")]
    pub files: Vec<FilePatch>,
    /// Whether something was left out: a file, lines of a file, or the end of a line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// How a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileChange {
    /// The file is new.
    Added,
    /// The file is gone.
    Deleted,
    /// The content or the mode of the file changed.
    Modified,
}

/// The changes of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilePatch {
    /// Path of the file.
    pub path: RepoPath,
    /// How the file changed.
    pub change: FileChange,
    /// Whether the file is binary, which has no hunks.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
    /// Mode of the file before, in octal, if the mode changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_mode: Option<String>,
    /// Mode of the file after, in octal, if the mode changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_mode: Option<String>,
    /// The changed places, from the top down.
    pub hunks: Vec<Hunk>,
    /// Whether lines of the file were left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// A changed place of a file with the lines around it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Hunk {
    /// Number of the first line before the change, from 1; 0 in a new file.
    pub old_start: usize,
    /// Number of the first line after the change, from 1; 0 in a deleted file.
    pub new_start: usize,
    /// The line of code that git names as the place, such as the head of a function.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub heading: String,
    /// The lines, in the order of a patch: removed ones before those that replace them.
    pub lines: Vec<PatchLine>,
}

/// Kind of a line of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineKind {
    /// The line is the same before and after.
    Context,
    /// The line is new.
    Added,
    /// The line is gone.
    Removed,
}

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PatchLine {
    /// Kind of the line.
    pub kind: LineKind,
    /// Number of the line before the change; none for an added line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<usize>,
    /// Number of the line after the change; none for a removed line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<usize>,
    /// Text of the line without its end; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The words that differ from the line on the other side, as start and end in characters of `text`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<[usize; 2]>,
    /// Whether the end of the text was left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Whether this is the last line of a file that does not end with a line feed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_newline: bool,
}

impl Patch {
    /// Parses git's output. `cut` is whether its end was left out.
    pub(crate) fn parse(bytes: &[u8], cut: bool) -> Patch {
        let mut parser = PatchParser::default();
        let mut lines = bytes.split(|b| *b == b'\n').peekable();
        while let Some(line) = lines.next() {
            // Without its end, the last line may be anything.
            if lines.peek().is_some() {
                parser.read_line(line);
            }
        }
        let mut files = parser.files;
        if let Some(last) = files.last_mut() {
            last.cut |= cut;
        }
        files.iter_mut().flat_map(|file| &mut file.hunks).for_each(mark_words);
        let cut = cut || files.iter().any(FilePatch::is_incomplete);
        Patch { files, cut }
    }
}

impl FilePatch {
    fn is_incomplete(&self) -> bool {
        self.cut || self.hunks.iter().flat_map(|hunk| &hunk.lines).any(|line| line.cut)
    }
}

#[derive(Default)]
struct PatchParser {
    files: Vec<FilePatch>,
    /// Lines of the open hunk that are still to come, before and after the change.
    remaining: [usize; 2],
    /// Numbers of the next lines, before and after the change.
    next: [usize; 2],
    /// Number of lines of the open file that were kept.
    kept: usize,
}

impl PatchParser {
    fn read_line(&mut self, line: &[u8]) {
        if line.starts_with(b"\\ ") {
            if let Some(line) = self.open_hunk().and_then(|hunk| hunk.lines.last_mut()) {
                line.no_newline = true;
            }
            return;
        }
        if self.remaining != [0, 0] {
            return self.read_hunk_line(line);
        }
        if let Some(names) = line.strip_prefix(b"diff --git ") {
            self.kept = 0;
            self.files.push(FilePatch {
                path: RepoPath::new(parse_header_path(names)),
                change: FileChange::Modified,
                binary: false,
                old_mode: None,
                new_mode: None,
                hunks: Vec::new(),
                cut: false,
            });
            return;
        }
        let text = String::from_utf8_lossy(line);
        let hunk = text.strip_prefix("@@ ").map(|header| self.begin_hunk(header));
        let Some(file) = self.files.last_mut() else { return };
        if let Some(hunk) = hunk {
            file.hunks.push(hunk);
        } else if text.starts_with("new file mode ") {
            file.change = FileChange::Added;
        } else if text.starts_with("deleted file mode ") {
            file.change = FileChange::Deleted;
        } else if let Some(mode) = text.strip_prefix("old mode ") {
            file.old_mode = Some(mode.to_owned());
        } else if let Some(mode) = text.strip_prefix("new mode ") {
            file.new_mode = Some(mode.to_owned());
        } else if text.starts_with("Binary files ") {
            file.binary = true;
        }
    }

    fn open_hunk(&mut self) -> Option<&mut Hunk> {
        self.files.last_mut()?.hunks.last_mut()
    }

    /// Begins the hunk of a line such as `@@ -1,3 +1,4 @@ fn main() {`, given without its first three bytes.
    fn begin_hunk(&mut self, header: &str) -> Hunk {
        let (ranges, heading) = header.split_once(" @@").unwrap_or((header, ""));
        let mut ranges = ranges.split(' ').map(|range| {
            let (start, count) = range[1..].split_once(',').unwrap_or((&range[1..], "1"));
            (start.parse().unwrap_or_default(), count.parse().unwrap_or_default())
        });
        let (old, new) = (ranges.next().unwrap_or_default(), ranges.next().unwrap_or_default());
        self.next = [old.0, new.0];
        self.remaining = [old.1, new.1];
        Hunk {
            old_start: old.0,
            new_start: new.0,
            heading: heading.trim_start().to_owned(),
            lines: Vec::new(),
        }
    }

    fn read_hunk_line(&mut self, line: &[u8]) {
        let kind = match line.first() {
            Some(b'+') => LineKind::Added,
            Some(b'-') => LineKind::Removed,
            _ => LineKind::Context,
        };
        let old = (kind != LineKind::Added).then(|| self.take_number(0));
        let new = (kind != LineKind::Removed).then(|| self.take_number(1));
        let Some(file) = self.files.last_mut() else { return };
        if self.kept == MAX_FILE_LINES {
            file.cut = true;
            return;
        }
        self.kept += 1;
        let whole = String::from_utf8_lossy(line.get(1..).unwrap_or_default());
        let text: String = whole.chars().take(MAX_LINE_CHARS).collect();
        let cut = text.len() < whole.len();
        let line = PatchLine { kind, old, new, text, words: Vec::new(), cut, no_newline: false };
        if let Some(hunk) = self.open_hunk() {
            hunk.lines.push(line);
        }
    }

    /// Returns the number of the next line on a side, and counts the line as read.
    fn take_number(&mut self, side: usize) -> usize {
        self.remaining[side] = self.remaining[side].saturating_sub(1);
        self.next[side] += 1;
        self.next[side] - 1
    }
}

/// Marks the differing words of a hunk. The n-th removed line of a block is compared with the n-th added one.
fn mark_words(hunk: &mut Hunk) {
    let mut at = 0;
    while at < hunk.lines.len() {
        let count = |from: usize, kind: LineKind| {
            hunk.lines[from..].iter().take_while(|line| line.kind == kind).count()
        };
        let removed = count(at, LineKind::Removed);
        let added = count(at + removed, LineKind::Added);
        let (before, after) = hunk.lines[at..].split_at_mut(removed);
        for (old, new) in before.iter_mut().zip(&mut after[..added]) {
            [old.words, new.words] = differing_words(&old.text, &new.text);
        }
        at += (removed + added).max(1);
    }
}

/// Returns the path in `a/PATH b/PATH`, both of which git quotes if need be. Both have the same length.
fn parse_header_path(names: &[u8]) -> Vec<u8> {
    let first = &names[..names.len() / 2];
    let unquoted = match first.strip_prefix(b"\"") {
        Some(quoted) => unquote(quoted.strip_suffix(b"\"").unwrap_or(quoted)),
        None => first.to_vec(),
    };
    unquoted.strip_prefix(b"a/").unwrap_or(&unquoted).to_vec()
}

/// Replaces the escapes of git's quoted paths.
fn unquote(quoted: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next() {
            Some(b'a') => 7,
            Some(b'b') => 8,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'v') => 11,
            Some(b'f') => 12,
            Some(b'r') => b'\r',
            Some(first @ b'0'..=b'3') => {
                let digits = bytes.by_ref().take(2);
                digits.fold(first - b'0', |value, digit| value * 8 + (digit & 7))
            }
            Some(other) => other,
            None => break,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
diff --git a/a b.txt b/a b.txt
index 1..2 100644
--- a/a b.txt
+++ b/a b.txt
@@ -1,3 +1,4 @@ fn main() {
 one
-let x = 1;
+let y = 1;
+--- three
 diff --git a/x b/x
\\ No newline at end of file
diff --git \"a/t\\ta\\303\\244\" \"b/t\\ta\\303\\244\"
new file mode 100644
Binary files /dev/null and b/x differ
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
";

    #[test]
    fn parses_files_hunks_and_lines() {
        let patch = Patch::parse(PATCH.as_bytes(), false);
        let [text, binary, script] = patch.files.as_slice() else { panic!("{patch:?}") };
        assert_eq!(text.path, RepoPath::new("a b.txt"));
        let [hunk] = text.hunks.as_slice() else { panic!("{text:?}") };
        assert_eq!((hunk.old_start, hunk.new_start, hunk.heading.as_str()), (1, 1, "fn main() {"));
        let lines: Vec<_> =
            hunk.lines.iter().map(|line| (line.kind, line.old, line.new, line.text.as_str())).collect();
        assert_eq!(
            lines,
            [
                (LineKind::Context, Some(1), Some(1), "one"),
                (LineKind::Removed, Some(2), None, "let x = 1;"),
                (LineKind::Added, None, Some(2), "let y = 1;"),
                (LineKind::Added, None, Some(3), "--- three"),
                (LineKind::Context, Some(3), Some(4), "diff --git a/x b/x"),
            ]
        );
        assert_eq!(hunk.lines[1].words, [[4, 5]]);
        assert!(hunk.lines[4].no_newline && !hunk.lines[3].no_newline);
        assert_eq!(binary.path, RepoPath::new("t\ta\u{e4}"));
        assert_eq!((binary.change, binary.binary), (FileChange::Added, true));
        assert_eq!(script.new_mode.as_deref(), Some("100755"));
        assert!(!patch.cut);
    }

    #[test]
    fn notes_what_is_cut() {
        let cut = Patch::parse(&PATCH.as_bytes()[..PATCH.len() / 2], true);
        assert!(cut.cut && cut.files.last().unwrap().cut);
        let head = format!("diff --git a/x b/x\n@@ -0,0 +1,{} @@\n", MAX_FILE_LINES + 1);
        let long = head.clone() + &"+\n".repeat(MAX_FILE_LINES + 1);
        let patch = Patch::parse(long.as_bytes(), false);
        assert_eq!((patch.cut, patch.files[0].hunks[0].lines.len()), (true, MAX_FILE_LINES));
        let wide = head.replace("+1,5001", "+1") + "+" + &"x".repeat(MAX_LINE_CHARS + 1) + "\n";
        let patch = Patch::parse(wide.as_bytes(), false);
        assert!(patch.cut && patch.files[0].hunks[0].lines[0].cut && !patch.files[0].cut);
    }
}
