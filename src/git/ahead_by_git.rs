//! Owns looking ahead at merges that need git: whole batches of them, into a throw-away folder for objects.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::ahead::{Clash, clashing_lines, store_of};
use super::merge_drivers::Drivers;
use super::threads::in_threads;
use super::tree_merge::{Stage, lay_out_attributes, parse_stage};
use super::trees::Reader;
use super::{Error, NewCommit, Oid, Program, Repo, RepoPath, ThrowAway};

/// What git answers to a batch beside zero: it gave up, or died. What it said before that counts.
const GAVE_UP: &[i32] = &[-1, 1, 2, 128, 129, 134, 255];
/// A batch that is smaller is not shared among threads.
const SMALL: usize = 8;
/// The kind of a conflict that git says nothing more about.
const PLAIN: &str = "conflict";

/// Git's answer about one merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ByGit {
    /// The paths that conflict; none when it is clean.
    Merged(Vec<Clash>),
    /// Git gave no answer.
    Failed,
}

/// Where and how one batch is merged.
struct Batch<'a> {
    dir: PathBuf,
    attributes: Attributes,
    /// The merge drivers of the user's.
    drivers: Drivers,
    pairs: Vec<(usize, (Oid, Oid))>,
    program: &'a Program,
    into: &'a ThrowAway,
}

/// Where attributes are looked up.
#[derive(Clone)]
enum Attributes {
    /// In this tree or commit.
    Tree(Oid),
    /// In the folder that git is started in, as it does not know of trees; with the git directory.
    Folder(PathBuf),
}

/// Merges the second commit of each pair into the first. New objects go to `into`, files that git needs to `scratch`.
pub(crate) fn ask_git(
    repo: &Repo,
    into: &ThrowAway,
    scratch: &Path,
    pairs: &[(Oid, Oid)],
) -> Result<Vec<ByGit>, Error> {
    let reader = Reader::of(store_of(repo, Some(into))?);
    let mut batches = Vec::new();
    for group in by_attributes(&reader, pairs)? {
        let share = if group.len() <= SMALL { group.len() } else { group.len().div_ceil(2) };
        for part in group.chunks(share.max(1)) {
            let ours = part[0].1.0;
            let (dir, attributes) = match repo.version()?.has_attr_source() {
                true => (repo.home().to_owned(), Attributes::Tree(ours)),
                false => (
                    lay_out_attributes(repo, ours, scratch, Some(into))?,
                    Attributes::Folder(repo.common_dir().to_owned()),
                ),
            };
            let drivers = match attributes {
                Attributes::Tree(_) => Drivers::of(repo, None),
                Attributes::Folder(_) => Drivers::of(repo, Some(&dir)),
            };
            batches.push(Batch {
                dir,
                attributes,
                drivers,
                pairs: part.to_vec(),
                program: repo.program(),
                into,
            });
        }
    }
    let answers = in_threads(&batches, |batch| batch.run(&batch.pairs));
    let mut out = vec![ByGit::Failed; pairs.len()];
    for (at, raw) in answers.into_iter().flatten() {
        let (ours, theirs) = pairs[at];
        out[at] = raw.with_plain_paths([ours, theirs]).understood(&reader);
    }
    Ok(out)
}

type Numbered = (usize, (Oid, Oid));

/// The pairs, together where the attributes that count for a merge are the same.
fn by_attributes(reader: &Reader, pairs: &[(Oid, Oid)]) -> Result<Vec<Vec<Numbered>>, Error> {
    let mut known = HashMap::new();
    let mut groups: BTreeMap<Vec<u8>, Vec<Numbered>> = BTreeMap::new();
    for (at, pair) in pairs.iter().enumerate() {
        let tree = reader.tree_of(pair.0)?;
        let all = attributes_below(reader, tree, &mut known)?;
        groups.entry(all).or_default().push((at, *pair));
    }
    Ok(groups.into_values().collect())
}

/// Which attribute files a tree has, and what is in them, as bytes to compare.
fn attributes_below(
    reader: &Reader,
    tree: gix::ObjectId,
    known: &mut HashMap<gix::ObjectId, Vec<u8>>,
) -> Result<Vec<u8>, Error> {
    if let Some(all) = known.get(&tree) {
        return Ok(all.clone());
    }
    let mut all = Vec::new();
    for (name, item) in reader.tree(tree)?.iter() {
        if item.is_tree() {
            let below = attributes_below(reader, item.id, known)?;
            if !below.is_empty() {
                all.extend_from_slice(name);
                all.push(b'/');
                all.extend(below);
                all.push(b'\n');
            }
        } else if name == ".gitattributes" {
            all.extend_from_slice(item.id.as_slice());
        }
    }
    known.insert(tree, all.clone());
    Ok(all)
}

impl Batch<'_> {
    /// The answers, with the numbers of their pairs. One that git dies of takes those with it that it had not given out
    /// yet, so what is missing is asked again in halves.
    fn run(&self, pairs: &[Numbered]) -> Vec<(usize, Raw)> {
        let lines: Vec<String> =
            pairs.iter().map(|(_, (ours, theirs))| format!("{ours} {theirs}\n")).collect();
        let out = self.call().input(lines.concat()).accept(GAVE_UP).run();
        let bytes = out.map(|out| out.stdout).unwrap_or_default();
        let mut answers: Vec<(usize, Raw)> = pairs.iter().map(|(at, _)| *at).zip(parse(&bytes)).collect();
        let rest = &pairs[answers.len()..];
        if pairs.len() > 1 {
            let (first, second) = rest.split_at(rest.len().div_ceil(2));
            for half in [first, second].into_iter().filter(|half| !half.is_empty()) {
                answers.extend(self.run(half));
            }
        }
        answers
    }

    fn call(&self) -> super::Command {
        let call = self.program.in_dir(&self.dir);
        let call = match &self.attributes {
            Attributes::Tree(tree) => call.arg(format!("--attr-source={tree}")),
            Attributes::Folder(git_dir) => call.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", &self.dir),
        };
        let call = self.drivers.apply(call);
        // With messages a clean merge has the same form as any other.
        ThrowAway::apply(Some(self.into), call).args([
            "merge-tree",
            "--write-tree",
            "-z",
            "--messages",
            "--stdin",
        ])
    }
}

/// An answer as git gives it.
#[derive(Debug, Default)]
struct Raw {
    clean: bool,
    stages: Vec<Stage>,
    /// What kind of conflict each path has.
    kinds: Vec<(RepoPath, String)>,
}

/// `(<1 or 0>\0 <tree>\0 (<stage>\0)* \0 (<n>\0 <path>\0 × n <kind>\0 <message>\0)* \0)*`, as far as it is whole.
fn parse(bytes: &[u8]) -> Vec<Raw> {
    // Behind the last NUL there is no field, only what was cut short.
    let end = bytes.iter().rposition(|b| *b == 0).unwrap_or(0);
    let mut fields = bytes[..end].split(|b| *b == 0);
    let mut out = Vec::new();
    while let Some(raw) = parse_one(&mut fields) {
        out.push(raw);
    }
    out
}

fn parse_one<'b>(fields: &mut impl Iterator<Item = &'b [u8]>) -> Option<Raw> {
    let clean = match fields.next()? {
        b"1" => true,
        b"0" => false,
        _ => return None,
    };
    Oid::from_hex(fields.next()?)?;
    let mut raw = Raw { clean, ..Raw::default() };
    loop {
        match fields.next()? {
            b"" => break,
            field => raw.stages.push(parse_stage(field)?),
        }
    }
    loop {
        let count = match fields.next()? {
            b"" => return Some(raw),
            count => std::str::from_utf8(count).ok()?.parse::<usize>().ok()?,
        };
        let mut paths = Vec::new();
        for _ in 0..count {
            paths.push(RepoPath::new(fields.next()?));
        }
        let kind = String::from_utf8_lossy(fields.next()?);
        fields.next()?;
        if let Some(kind) = kind.strip_prefix("CONFLICT (").and_then(|k| k.strip_suffix(')')) {
            raw.kinds.extend(paths.into_iter().map(|path| (path, kind.to_owned())));
        }
    }
}

impl Raw {
    /// Git calls a file that cannot stay where it was after its side: `path~<commit>`.
    fn with_plain_paths(mut self, sides: [Oid; 2]) -> Raw {
        let marks = sides.map(|side| format!("~{side}"));
        let stages = self.stages.iter_mut().map(|stage| &mut stage.path);
        for path in stages.chain(self.kinds.iter_mut().map(|(path, _)| path)) {
            for mark in &marks {
                if let Some(plain) = path.as_bytes().strip_suffix(mark.as_bytes()) {
                    *path = RepoPath::new(plain);
                }
            }
        }
        self
    }

    fn understood(self, reader: &Reader) -> ByGit {
        if self.clean {
            return ByGit::Merged(Vec::new());
        }
        let mut paths: Vec<RepoPath> = self.stages.iter().map(|s| s.path.clone()).collect();
        if paths.is_empty() {
            paths.extend(self.kinds.iter().map(|(path, _)| path.clone()));
        }
        paths.sort();
        paths.dedup();
        ByGit::Merged(paths.into_iter().map(|path| self.clash(reader, path)).collect())
    }

    fn clash(&self, reader: &Reader, path: RepoPath) -> Clash {
        let said = self.kinds.iter().find(|(p, _)| *p == path);
        let mut kind = said.map_or_else(|| PLAIN.to_owned(), |(_, kind)| kind.clone());
        let side = |number| self.stages.iter().find(|s| s.path == path && s.number == number);
        let [base, ours, theirs] = [1, 2, 3].map(|n| side(n).map(|s| s.side));
        let mut hunks = Vec::new();
        if let (Some(ours), Some(theirs), "contents") = (ours, theirs, kind.as_str()) {
            let files = [Some(ours), Some(theirs), base].into_iter().flatten();
            if files.into_iter().all(|side| side.mode & 0o170_000 == 0o100_000) {
                // Where they lie only helps; that they conflict is said.
                hunks = clashing_lines(reader, base.map(|s| s.oid), ours.oid, theirs.oid).unwrap_or_default();
            }
            if base.is_none() {
                "add/add".clone_into(&mut kind);
            }
        }
        Clash { path, kind, hunks }
    }
}

/// A commit on top of `parent` that holds `tree`, in a throw-away folder.
pub(crate) fn commit_aside(repo: &Repo, into: &ThrowAway, tree: Oid, parent: Oid) -> Result<Oid, Error> {
    NewCommit { tree, parents: &[parent], message: "git-proq: uncommitted work" }
        .write_as_keeper(repo, Some(into))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_read_as_far_as_it_is_whole() {
        let id = "a".repeat(40);
        let clash = format!(
            "0\0{id}\x00100644 {id} 2\tx\x00100644 {id} 3\tx\0\x001\0x\0Auto-merging\0m\n\x001\0x\0CONFLICT (contents)\0m\n\0\0"
        );
        let clean = format!("1\0{id}\0\0\0");
        let whole = format!("{clean}{clash}{clean}");
        let all = parse(whole.as_bytes());
        assert_eq!(all.iter().map(|raw| raw.clean).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(all[1].kinds, [(RepoPath::new("x"), "contents".to_owned())]);
        assert_eq!(all[1].stages.len(), 2);
        for cut in 1..clash.len() {
            assert_eq!(parse(format!("{clean}{}", &clash[..cut]).as_bytes()).len(), 1, "{cut}");
        }
    }
}
