//! Owns noticing that a run changed something outside of its lane, and saying no more than is known of it.
//!
//! People edit and commit in the main checkout while agents run, so that something changed there says little (see `sight.rs`). Two
//! things say more: git was at work in another worktree with this run's hooks, which is certain; or a file changed during the run
//! whose absolute path stands in what the run wrote, which is likely.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::guard::Update;
use super::hook::Hook;
use super::said::each_line;
use crate::event::{Certainty, Event, Name};
use crate::git::{self, RepoPath};
use crate::lane::{self, Project};
use crate::note::Listener;
use crate::store::Layout;
use crate::store::records::AnyLane;

/// What ends a path in a log, besides space: quotes and brackets of every format, and what stands after a path in prose.
const ENDS: &[u8] = b"\"'`\\,;:|&<>()[]{}=*?#$";

/// How many paths are looked at: a log that lists a whole repository names no file in particular.
const MOST: usize = 1000;

/// A worktree that is not the run's own.
pub(super) struct Elsewhere {
    /// The lane; none is the main checkout.
    pub(super) lane: Option<String>,
    pub(super) top: PathBuf,
}

/// What was told of each place, by its lane.
pub(super) type Told = BTreeMap<Option<String>, BTreeSet<RepoPath>>;

impl Elsewhere {
    pub(super) fn called(&self) -> String {
        self.lane.as_ref().map_or_else(|| "the main checkout".to_owned(), |lane| format!("lane '{lane}'"))
    }
}

/// Tells, once in a run for each worktree, that the run's git has written HEAD of the main checkout or another lane.
pub(super) fn tell_of_head(dir: &Path, hook: &Hook<'_>, input: &[u8]) {
    let Some(head) = hook.place.head() else { return };
    let to = head.strip_prefix("ref: ");
    // A worktree that is being made elsewhere has a HEAD too, and git says nothing of whose it is.
    let moves = |update: &Update<'_>| match to {
        Some(branch) => update.name == branch || update.new.strip_prefix(b"ref:") == Some(branch.as_bytes()),
        None => update.name == "HEAD" && update.new == head.as_bytes(),
    };
    let all: Vec<Update<'_>> = Update::all(input).collect();
    if !all.iter().any(|update| update.name == "HEAD") || !all.iter().any(moves) {
        return;
    }
    let Ok(project) = Project::open(dir, Listener::silent()) else { return };
    let Some(there) = place_of(&project, &hook.place.git_dir) else { return };
    let mark = Layout::fence_told(&hook.fence, there.lane.as_deref().unwrap_or("@main"));
    if File::create_new(mark).is_err() {
        return;
    }
    let lane = &hook.record.lane;
    let message = format!("the agent of lane '{lane}' ran git in {}, which wrote HEAD there", there.called());
    tell(&project, lane, &there, message, Vec::new(), Certainty::Certain);
}

fn place_of(project: &Project, git_dir: &Path) -> Option<Elsewhere> {
    if git_dir == project.repo.common_dir() {
        return Some(Elsewhere { lane: None, top: project.repo.main_worktree()?.to_owned() });
    }
    let id = git_dir.file_name()?.to_str()?;
    let lanes = project.lanes().ok()?;
    let lane = lanes.into_iter().find(|lane| lane.place.worktree_id == id)?;
    Some(Elsewhere { lane: Some(lane.name), top: lane.path })
}

/// Tells of files in the main checkout, and in lanes in which nothing runs, that changed during a run and that what the run
/// wrote names by their absolute paths. The fence's own record is as old as the run.
pub(super) fn tell_of_files(project: &Project, lane: &AnyLane, attempt: u32, fence: &Path) -> Told {
    let mut told = Told::new();
    let Ok(began) = Layout::fence_record(fence).metadata() else { return told };
    let log = project.store.layout().run_log(&lane.name, attempt);
    let places = elsewhere(project, lane);
    let named = named_in(&log, &places, &project.lanes_dir());
    for (there, named) in places.into_iter().zip(named) {
        let since = |path: &RepoPath| changed_since(&path.under(&there.top), &began);
        let paths: Vec<RepoPath> = named.into_iter().filter(since).collect();
        if paths.is_empty() {
            continue;
        }
        let Ok(dirt) = git::status(&project.repo, &there.top, true) else { continue };
        let dirty: BTreeSet<RepoPath> = dirt.paths().into_iter().collect();
        let paths: Vec<RepoPath> = paths.into_iter().filter(|path| dirty.contains(path)).collect();
        if !paths.is_empty() {
            let message = format!(
                "while the agent of lane '{}' ran, files that its output names changed in {}: {}; it is not known who changed them",
                lane.name,
                there.called(),
                git::names(&paths)
            );
            told.entry(there.lane.clone()).or_default().extend(paths.iter().cloned());
            tell(project, &lane.name, &there, message, paths, Certainty::Likely);
        }
    }
    told
}

fn elsewhere(project: &Project, lane: &AnyLane) -> Vec<Elsewhere> {
    let main = project
        .repo
        .main_worktree()
        .filter(|_| {
            // Another run may be at work there.
            !lane.works_in_place() && matches!(lane::at_work_in_place(project, None), Ok(None))
        })
        .map(|top| Elsewhere { lane: None, top: top.to_owned() });
    let others = project.lanes().unwrap_or_default().into_iter();
    let quiet = others.filter(|other| {
        other.name != lane.name && !other.state.is_claimed() && !other.state.is_over() && other.path.is_dir()
    });
    main.into_iter().chain(quiet.map(|other| Elsewhere { lane: Some(other.name), top: other.path })).collect()
}

/// Whether a file, or for one that is gone its folder, is younger than the run.
pub(super) fn changed_since(path: &Path, began: &std::fs::Metadata) -> bool {
    let there = path.symlink_metadata().or_else(|_| path.parent().unwrap_or(path).symlink_metadata());
    there.is_ok_and(|meta| {
        (meta.ctime(), meta.ctime_nsec()) >= (began.mtime(), began.mtime_nsec()) && !meta.is_dir()
            || meta.is_dir()
                && !path.exists()
                && (meta.mtime(), meta.mtime_nsec()) >= (began.mtime(), began.mtime_nsec())
    })
}

/// For each place the paths in it that stand in a log, which is read once for all of them.
fn named_in(log: &Path, places: &[Elsewhere], lanes: &Path) -> Vec<BTreeSet<RepoPath>> {
    let mut out = vec![BTreeSet::new(); places.len()];
    let below = |dir: &Path| [dir.as_os_str().as_bytes(), b"/"].concat();
    let tops: Vec<Vec<u8>> = places.iter().map(|place| below(&place.top)).collect();
    let lanes = below(lanes);
    // Lanes mostly lie in the main checkout, so one start is what all paths have in common.
    let mut starts: Vec<&[u8]> = tops.iter().map(Vec::as_slice).collect();
    starts.sort_unstable();
    starts.dedup_by(|longer, shorter| longer.starts_with(shorter));
    each_line(log, |line| {
        for start in &starts {
            collect(line, start, |path| {
                let of = |top: &Vec<u8>| path.strip_prefix(top.as_slice());
                let Some(at) =
                    (0..tops.len()).filter(|at| of(&tops[*at]).is_some()).max_by_key(|at| tops[*at].len())
                else {
                    return;
                };
                // What lies among the lanes is no file of the main checkout.
                let strange = path.starts_with(&lanes) && !tops[at].starts_with(&lanes);
                if let (false, Some(inside)) = (strange || out[at].len() >= MOST, of(&tops[at])) {
                    add(inside, &mut out[at]);
                }
            });
        }
        true
    });
    out
}

/// Hands over each absolute path below `start` that stands in a line.
fn collect(line: &[u8], start: &[u8], mut each: impl FnMut(&[u8])) {
    let mut rest = line;
    while let Some(at) = find(rest, start) {
        let path = &rest[at..];
        let inside = &path[start.len()..];
        let end = inside.iter().position(|b| b.is_ascii_whitespace() || ENDS.contains(b));
        each(&path[..start.len() + end.unwrap_or(inside.len())]);
        rest = inside;
    }
}

/// Adds a path within a place; with and without a full stop, which may end the sentence and not the name.
fn add(path: &[u8], out: &mut BTreeSet<RepoPath>) {
    for path in [path, path.trim_ascii_end().strip_suffix(b".").unwrap_or_default()] {
        let plain = |part: &OsStr| part != ".git" && part != "." && part != "..";
        let parts = Path::new(OsStr::from_bytes(path)).iter();
        if !path.is_empty() && parts.clone().count() > 0 && parts.clone().all(plain) {
            out.insert(RepoPath::new(path));
        }
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    let first = *what.first()?;
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|b| *b == first) {
        if text[from + at..].starts_with(what) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

pub(super) fn tell(
    project: &Project,
    lane: &str,
    there: &Elsewhere,
    message: String,
    paths: Vec<RepoPath>,
    certainty: Certainty,
) {
    let mut event = Event::now(Name::LaneEscape, message);
    event.state = project.any_lane(lane).ok().map(|lane| lane.state.to_string());
    event.lane = Some(lane.to_owned());
    event.other.clone_from(&there.lane);
    event.certainty = Some(certainty);
    event.paths = paths.into_iter().take(MOST / 10).collect();
    project.tell_event(event);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_every_kind_of_output() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let line = br#"{"path":"/r/a.rs","n":"/r/x/b.rs:12"} wrote /r/c.txt. and `/r/d` /r/.git/config /r/../e /rest/f /r/ /r/l/x/a /r/l/y/b /q/z"#;
        std::fs::write(&log, line).unwrap();
        let place = |top: &str| Elsewhere { lane: None, top: PathBuf::from(top) };
        let found = named_in(&log, &[place("/r"), place("/r/l/x"), place("/q")], Path::new("/r/l"));
        let shown = |paths: &BTreeSet<RepoPath>| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown(&found[0]), ["a.rs", "c.txt", "c.txt.", "d", "x/b.rs"]);
        assert_eq!((shown(&found[1]), shown(&found[2])), (vec!["a".to_owned()], vec!["z".to_owned()]));
    }
}
