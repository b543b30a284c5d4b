//! Owns the shell commands that make a state: `base` before the first commit, `lane` in a lane, `dirty` in the main checkout.

use super::combo::{Attr, Disk, Head, Index};
use super::draw::{IgnoreFile, Spot, State, Touch};

/// What every line that is written begins with; a number and the path follow.
const WORD: &str = "precious";

/// The lines with contents that a script of this module writes.
pub(crate) fn written(script: &str) -> Vec<String> {
    let word = format!("{WORD} %s");
    let of = |line: &str| {
        let rest = line
            .strip_prefix("printf '")?
            .trim_start_matches('+')
            .strip_prefix(&word)?
            .split_once("\\n' '")?
            .1;
        Some(format!("{WORD} {}\n", rest.split_once('\'')?.0))
    };
    script.lines().filter_map(of).collect()
}

/// Settings and files that the names of paths go by.
const RULES: &str = "git config filter.plus.clean 'sed s/^+//'
git config filter.plus.smudge 'sed s/^/+/'
printf '%s\\n' '*-crlf* text eol=crlf' '**/*-crlf*/** text eol=crlf' '*-filter* filter=plus' '**/*-filter*/** filter=plus' > .gitattributes
mkdir -p dir deep/er in
echo here > in/here
echo shared > shared
";

const IGNORE: &str = "*-ignored*";

/// Commands under construction. Each content that is written has a number of its own.
struct Lines {
    text: String,
    next: usize,
}

impl Lines {
    fn new(next: usize) -> Lines {
        Lines { text: String::new(), next }
    }

    fn add(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Writes a new content to a file, whose folder is there, with the line ends that its attributes ask for.
    fn write(&mut self, path: &str, attr: Attr) {
        self.put("", path, attr);
    }

    /// The same in the form that git itself would write.
    fn checked_out(&mut self, path: &str, attr: Attr) {
        self.put(if attr == Attr::Filter { "+" } else { "" }, path, attr);
    }

    fn put(&mut self, begin: &str, path: &str, attr: Attr) {
        self.next += 1;
        let end = if attr == Attr::Crlf { "\\r" } else { "" };
        let (number, path) = (self.next, quoted(path));
        let name = path.trim_matches('\'');
        self.add(&format!("printf '{begin}{WORD} %s{end}\\n' '{number} {name}' > {path}"));
    }

    /// Makes a folder with two files in the place of whatever is there.
    fn folder(&mut self, path: &str, attr: Attr) {
        self.add(&format!("rm -rf {0}; mkdir -p {0}", quoted(path)));
        self.checked_out(&format!("{path}/x"), attr);
        self.checked_out(&format!("{path}/y"), attr);
    }

    fn link(&mut self, path: &str, target: &str) {
        self.add(&format!("rm -rf {0}; ln -s {target} {0}", quoted(path)));
    }
}

fn quoted(path: &str) -> String {
    format!("'{path}'")
}

/// The way from a path's folder to the top.
fn up(path: &str) -> String {
    "../".repeat(path.matches('/').count())
}

/// The folder that a path lies in, as a command that makes it.
fn folder_of(path: &str) -> String {
    let make = |folder: &str| format!("[ -d {0} ] || mkdir -p {0}", quoted(folder));
    path.rsplit_once('/').map(|(folder, _)| make(folder)).unwrap_or_default()
}

impl State {
    /// Commands that write what the first commit has, and commit it. They need an empty repository.
    pub(crate) fn base(&self) -> String {
        let mut lines = Lines::new(0);
        lines.text.push_str(RULES);
        if self.ignore == IgnoreFile::Committed {
            lines.add(&format!("echo '{IGNORE}' > .gitignore"));
        } else {
            lines.add("echo '*.log' > .gitignore");
        }
        for spot in &self.spots {
            spot.base(&mut lines);
        }
        lines.add("git add -f -A\ngit commit -q -m base");
        lines.text
    }

    /// Commands that make the commit of the lane `one`, in its worktree.
    pub(crate) fn lane(&self) -> String {
        let mut lines = Lines::new(1000);
        lines.write("one.txt", Attr::Plain);
        lines.add("echo one >> shared");
        for spot in &self.spots {
            spot.lane(&mut lines);
        }
        lines.add("git add -f -A\ngit commit -q -m one");
        lines.text
    }

    /// Commands that make the main checkout so from a clean one.
    pub(crate) fn dirty(&self) -> String {
        let mut lines = Lines::new(2000);
        if self.spots.iter().any(|spot| spot.combo.attr == Attr::Sparse) {
            lines.add(&self.sparse());
        }
        let removed_first = self.ignore == IgnoreFile::Changed;
        if !removed_first {
            self.ignore(&mut lines);
        }
        for spot in &self.spots {
            spot.index(&mut lines);
        }
        if removed_first {
            self.ignore(&mut lines);
        }
        for spot in &self.spots {
            spot.disk(&mut lines);
        }
        if self.cone {
            // Last: some commands of git cannot change a sparse index.
            lines.add("git config index.sparse true; git update-index --force-write-index");
        }
        lines.text
    }

    /// The command that makes the checkout a sparse one.
    fn sparse(&self) -> String {
        if !self.cone {
            return "git sparse-checkout set --no-cone '/*' '!*-sparse*' 2> /dev/null".to_owned();
        }
        let is_within = |spot: &&Spot| spot.combo.attr != Attr::Sparse && spot.combo.head == Head::Folder;
        let folders: Vec<String> =
            self.spots.iter().filter(is_within).map(|spot| quoted(&spot.path)).collect();
        format!("git sparse-checkout set --cone --no-sparse-index dir deep/er in {}", folders.join(" "))
    }

    fn ignore(&self, lines: &mut Lines) {
        match self.ignore {
            IgnoreFile::Committed => {}
            IgnoreFile::Changed => lines.add(&format!("echo '{IGNORE}' >> .gitignore")),
            IgnoreFile::Exclude => {
                lines.add(&format!("mkdir -p .git/info; echo '{IGNORE}' >> .git/info/exclude"));
            }
        }
    }
}

impl Spot {
    /// The paths that the index has for it.
    fn entries(&self) -> String {
        let path = &self.path;
        if self.combo.head == Head::Folder { format!("'{path}/x' '{path}/y'") } else { quoted(path) }
    }

    /// Writes what HEAD has.
    fn base(&self, lines: &mut Lines) {
        lines.add(&folder_of(&self.path));
        match self.combo.head {
            Head::Nothing => {}
            Head::File => lines.checked_out(&self.path, self.combo.attr),
            Head::Link => lines.link(&self.path, "linked"),
            Head::Folder => lines.folder(&self.path, self.combo.attr),
        }
    }

    fn lane(&self, lines: &mut Lines) {
        let path = &self.path;
        if self.touch != Touch::Nothing {
            lines.add(&format!("rm -rf {}; {}", quoted(path), folder_of(path)));
        }
        match self.touch {
            Touch::Nothing | Touch::Remove => {}
            Touch::Write => lines.write(path, self.combo.attr),
            Touch::Folder => {
                lines.add(&format!("mkdir -p {}", quoted(path)));
                lines.write(&format!("{path}/lane"), self.combo.attr);
            }
            Touch::Link => lines.link(path, &format!("{}in/here", up(path))),
        }
    }

    /// Commands that bring a path with HEAD's content into this state, without rules for attributes and ignored paths.
    pub(crate) fn whole(&self) -> String {
        let mut lines = Lines::new(3000);
        self.index(&mut lines);
        self.disk(&mut lines);
        lines.text
    }

    fn index(&self, lines: &mut Lines) {
        let (path, entries, head) = (&self.path, self.entries(), self.combo.head);
        lines.add(&folder_of(path));
        if self.combo.attr == Attr::Sparse && head != Head::Nothing {
            if self.combo.index == Index::Same && self.combo.disk == Disk::Absent {
                return;
            }
            // The sparse checkout has taken it away; a person puts it back by hand.
            lines.add(&format!("git -c tar.umask=0022 archive HEAD {entries} | tar -xf -"));
        }
        match self.combo.index {
            Index::Same => {}
            Index::Other => {
                match head {
                    Head::Nothing | Head::File => lines.write(path, self.combo.attr),
                    Head::Link => lines.link(path, "elsewhere"),
                    Head::Folder => lines.write(&format!("{path}/x"), self.combo.attr),
                }
                lines.add(&format!("git add -f --sparse {entries}"));
            }
            Index::Intent => {
                if head == Head::Nothing {
                    lines.write(path, self.combo.attr);
                } else {
                    lines.add(&format!("git rm -q --cached --sparse {entries}"));
                }
                lines.add(&format!("git add -f -N --sparse {entries}"));
            }
            Index::Removed => lines.add(&format!("git rm -q --cached --sparse {entries}")),
            Index::Skip | Index::Assume => {
                if head == Head::Nothing {
                    lines.write(path, self.combo.attr);
                    lines.add(&format!("git add -f --sparse {entries}"));
                }
                let skip = self.combo.index == Index::Skip;
                let flag = if skip { "--skip-worktree" } else { "--assume-unchanged" };
                lines.add(&format!("git update-index {flag} {entries}"));
            }
        }
    }

    fn disk(&self, lines: &mut Lines) {
        let path = &self.path;
        let name = quoted(path);
        let folder = self.combo.head == Head::Folder;
        lines.add(&folder_of(path));
        match self.combo.disk {
            Disk::Same => {}
            Disk::Absent => lines.add(&format!("rm -rf {name}")),
            Disk::Other if folder => {
                lines.write(&format!("{path}/x"), self.combo.attr);
                lines.write(&format!("{path}/z"), self.combo.attr);
            }
            Disk::Other | Disk::File => {
                lines.add(&format!("rm -rf {name}"));
                lines.write(path, self.combo.attr);
            }
            Disk::Mode if folder => lines.add(&format!("chmod +x '{path}/x'")),
            Disk::Mode => lines.add(&format!("chmod +x {name}")),
            Disk::Link => lines.link(path, "nowhere"),
            Disk::FolderLink => lines.link(path, &format!("{}in", up(path))),
            Disk::Folder => {
                lines.folder(path, self.combo.attr);
                lines.add(&format!("mkdir '{path}/sub'"));
                lines.write(&format!("{path}/sub/inner"), self.combo.attr);
            }
            Disk::EmptyFolder => lines.add(&format!("rm -rf {name}; mkdir {name}")),
            Disk::Fifo => lines.add(&format!("rm -rf {name}; mkfifo {name}")),
            Disk::Empty => lines.add(&format!("rm -rf {name}; : > {name}")),
        }
    }
}
