//! Shell commands that create a state: `base` before the first commit, `lane` in a lane, `dirty` in the main
//! checkout.

use super::deck::{IgnoreFile, LaneChange, PathSetup, State};
use super::path_state::{Attr, Disk, Head, Index};

/// First word of every written line; a number and the path follow.
const TOKEN_PREFIX: &str = "precious";

/// Returns the content lines that a script of this module writes.
pub(crate) fn written_lines(script: &str) -> Vec<String> {
    let word = format!("{TOKEN_PREFIX} %s");
    let line_of = |line: &str| {
        let rest = line
            .strip_prefix("printf '")?
            .trim_start_matches('+')
            .strip_prefix(&word)?
            .split_once("\\n' '")?
            .1;
        Some(format!("{TOKEN_PREFIX} {}\n", rest.split_once('\'')?.0))
    };
    script.lines().filter_map(line_of).collect()
}

/// Settings and files that the suffixes of paths refer to.
const RULES: &str = "git config filter.plus.clean 'sed s/^+//'
git config filter.plus.smudge 'sed s/^/+/'
printf '%s\\n' '*-crlf* text eol=crlf' '**/*-crlf*/** text eol=crlf' '*-filter* filter=plus' '**/*-filter*/** filter=plus' > .gitattributes
mkdir -p dir deep/er in
echo here > in/here
echo shared > shared
";

const IGNORE_PATTERN: &str = "*-ignored*";

/// Script under construction. Each written content has its own number.
struct ScriptBuilder {
    text: String,
    next: usize,
}

impl ScriptBuilder {
    fn new(next: usize) -> ScriptBuilder {
        ScriptBuilder { text: String::new(), next }
    }

    fn add(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Writes a new content to a file in an existing folder, with the line ends of its attributes.
    fn write(&mut self, path: &str, attr: Attr) {
        self.write_line("", path, attr);
    }

    /// Writes a new content in the form that git itself would check out.
    fn write_checked_out(&mut self, path: &str, attr: Attr) {
        self.write_line(if attr == Attr::Filter { "+" } else { "" }, path, attr);
    }

    fn write_line(&mut self, prefix: &str, path: &str, attr: Attr) {
        self.next += 1;
        let end = if attr == Attr::Crlf { "\\r" } else { "" };
        let (number, path) = (self.next, quoted(path));
        let name = path.trim_matches('\'');
        self.add(&format!("printf '{prefix}{TOKEN_PREFIX} %s{end}\\n' '{number} {name}' > {path}"));
    }

    /// Replaces a path with a folder with two files.
    fn add_folder(&mut self, path: &str, attr: Attr) {
        self.add(&format!("rm -rf {0}; mkdir -p {0}", quoted(path)));
        self.write_checked_out(&format!("{path}/x"), attr);
        self.write_checked_out(&format!("{path}/y"), attr);
    }

    fn add_link(&mut self, path: &str, target: &str) {
        self.add(&format!("rm -rf {0}; ln -s {target} {0}", quoted(path)));
    }
}

fn quoted(path: &str) -> String {
    format!("'{path}'")
}

/// Returns the relative path from a path's folder to the top.
fn path_to_top(path: &str) -> String {
    "../".repeat(path.matches('/').count())
}

/// Returns a command that creates the folder of a path.
fn mkdir_parent(path: &str) -> String {
    let make = |folder: &str| format!("[ -d {0} ] || mkdir -p {0}", quoted(folder));
    path.rsplit_once('/').map(|(folder, _)| make(folder)).unwrap_or_default()
}

impl State {
    /// Returns commands that write and commit the first commit. They need an empty repository.
    pub(crate) fn base(&self) -> String {
        let mut lines = ScriptBuilder::new(0);
        lines.text.push_str(RULES);
        if self.ignore == IgnoreFile::Committed {
            lines.add(&format!("echo '{IGNORE_PATTERN}' > .gitignore"));
        } else {
            lines.add("echo '*.log' > .gitignore");
        }
        for spot in &self.paths {
            spot.add_base(&mut lines);
        }
        lines.add("git add -f -A\ngit commit -q -m base");
        lines.text
    }

    /// Returns commands that make the commit of the lane `one`, in its worktree.
    pub(crate) fn lane(&self) -> String {
        let mut lines = ScriptBuilder::new(1000);
        lines.write("one.txt", Attr::Plain);
        lines.add("echo one >> shared");
        for spot in &self.paths {
            spot.add_lane(&mut lines);
        }
        lines.add("git add -f -A\ngit commit -q -m one");
        lines.text
    }

    /// Returns commands that put the clean main checkout into this state.
    pub(crate) fn dirty(&self) -> String {
        let mut lines = ScriptBuilder::new(2000);
        if self.paths.iter().any(|spot| spot.state.attr == Attr::Sparse) {
            lines.add(&self.sparse());
        }
        let ignore_last = self.ignore == IgnoreFile::Changed;
        if !ignore_last {
            self.add_ignore_rule(&mut lines);
        }
        for spot in &self.paths {
            spot.add_index(&mut lines);
        }
        if ignore_last {
            self.add_ignore_rule(&mut lines);
        }
        for spot in &self.paths {
            spot.add_disk(&mut lines);
        }
        if self.cone {
            // This comes last: some git commands cannot change a sparse index.
            lines.add("git config index.sparse true; git update-index --force-write-index");
        }
        lines.text
    }

    /// Returns the command that makes the checkout sparse.
    fn sparse(&self) -> String {
        if !self.cone {
            return "git sparse-checkout set --no-cone '/*' '!*-sparse*' 2> /dev/null".to_owned();
        }
        let is_within =
            |spot: &&PathSetup| spot.state.attr != Attr::Sparse && spot.state.head == Head::Folder;
        let folders: Vec<String> =
            self.paths.iter().filter(is_within).map(|spot| quoted(&spot.path)).collect();
        format!("git sparse-checkout set --cone --no-sparse-index dir deep/er in {}", folders.join(" "))
    }

    fn add_ignore_rule(&self, lines: &mut ScriptBuilder) {
        match self.ignore {
            IgnoreFile::Committed => {}
            IgnoreFile::Changed => lines.add(&format!("echo '{IGNORE_PATTERN}' >> .gitignore")),
            IgnoreFile::Exclude => {
                lines.add(&format!("mkdir -p .git/info; echo '{IGNORE_PATTERN}' >> .git/info/exclude"));
            }
        }
    }
}

impl PathSetup {
    /// Returns the quoted paths of its index entries.
    fn entry_args(&self) -> String {
        let path = &self.path;
        if self.state.head == Head::Folder { format!("'{path}/x' '{path}/y'") } else { quoted(path) }
    }

    /// Writes what HEAD has.
    fn add_base(&self, lines: &mut ScriptBuilder) {
        lines.add(&mkdir_parent(&self.path));
        match self.state.head {
            Head::Nothing => {}
            Head::File => lines.write_checked_out(&self.path, self.state.attr),
            Head::Link => lines.add_link(&self.path, "linked"),
            Head::Folder => lines.add_folder(&self.path, self.state.attr),
        }
    }

    fn add_lane(&self, lines: &mut ScriptBuilder) {
        let path = &self.path;
        if self.lane_change != LaneChange::Nothing {
            lines.add(&format!("rm -rf {}; {}", quoted(path), mkdir_parent(path)));
        }
        match self.lane_change {
            LaneChange::Nothing | LaneChange::Remove => {}
            LaneChange::Write => lines.write(path, self.state.attr),
            LaneChange::Folder => {
                lines.add(&format!("mkdir -p {}", quoted(path)));
                lines.write(&format!("{path}/lane"), self.state.attr);
            }
            LaneChange::Link => lines.add_link(path, &format!("{}in/here", path_to_top(path))),
        }
    }

    /// Returns commands that move a path with HEAD's content into this state, without rules for attributes
    /// and ignored paths.
    pub(crate) fn state_script(&self) -> String {
        let mut lines = ScriptBuilder::new(3000);
        self.add_index(&mut lines);
        self.add_disk(&mut lines);
        lines.text
    }

    fn add_index(&self, lines: &mut ScriptBuilder) {
        let (path, entries, head) = (&self.path, self.entry_args(), self.state.head);
        lines.add(&mkdir_parent(path));
        if self.state.attr == Attr::Sparse && head != Head::Nothing {
            if self.state.index == Index::Same && self.state.disk == Disk::Absent {
                return;
            }
            // The sparse checkout removed the path; the user restores it by hand.
            lines.add(&format!("git -c tar.umask=0022 archive HEAD {entries} | tar -xf -"));
        }
        match self.state.index {
            Index::Same => {}
            Index::Other => {
                match head {
                    Head::Nothing | Head::File => lines.write(path, self.state.attr),
                    Head::Link => lines.add_link(path, "elsewhere"),
                    Head::Folder => lines.write(&format!("{path}/x"), self.state.attr),
                }
                lines.add(&format!("git add -f --sparse {entries}"));
            }
            Index::Intent => {
                if head == Head::Nothing {
                    lines.write(path, self.state.attr);
                } else {
                    lines.add(&format!("git rm -q --cached --sparse {entries}"));
                }
                lines.add(&format!("git add -f -N --sparse {entries}"));
            }
            Index::Removed => lines.add(&format!("git rm -q --cached --sparse {entries}")),
            Index::Skip | Index::Assume => {
                if head == Head::Nothing {
                    lines.write(path, self.state.attr);
                    lines.add(&format!("git add -f --sparse {entries}"));
                }
                let skip = self.state.index == Index::Skip;
                let flag = if skip { "--skip-worktree" } else { "--assume-unchanged" };
                lines.add(&format!("git update-index {flag} {entries}"));
            }
        }
    }

    fn add_disk(&self, lines: &mut ScriptBuilder) {
        let path = &self.path;
        let name = quoted(path);
        let folder = self.state.head == Head::Folder;
        lines.add(&mkdir_parent(path));
        match self.state.disk {
            Disk::Same => {}
            Disk::Absent => lines.add(&format!("rm -rf {name}")),
            Disk::Other if folder => {
                lines.write(&format!("{path}/x"), self.state.attr);
                lines.write(&format!("{path}/z"), self.state.attr);
            }
            Disk::Other | Disk::File => {
                lines.add(&format!("rm -rf {name}"));
                lines.write(path, self.state.attr);
            }
            Disk::Mode if folder => lines.add(&format!("chmod +x '{path}/x'")),
            Disk::Mode => lines.add(&format!("chmod +x {name}")),
            Disk::Link => lines.add_link(path, "nowhere"),
            Disk::FolderLink => lines.add_link(path, &format!("{}in", path_to_top(path))),
            Disk::Folder => {
                lines.add_folder(path, self.state.attr);
                lines.add(&format!("mkdir '{path}/sub'"));
                lines.write(&format!("{path}/sub/inner"), self.state.attr);
            }
            Disk::EmptyFolder => lines.add(&format!("rm -rf {name}; mkdir {name}")),
            Disk::Fifo => lines.add(&format!("rm -rf {name}; mkfifo {name}")),
            Disk::Empty => lines.add(&format!("rm -rf {name}; : > {name}")),
        }
    }
}
