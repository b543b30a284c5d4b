//! Owns the walk over areas and their folders. Nothing outside of the repository is looked at, whatever links say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::super::plan::Remark;
use super::super::shape::is_name;
use super::super::source::{self, MOST};
use super::super::{Error, Place};
use super::{ALL, Folder, PROMPT, id_of, shown};
use crate::explain::nearest;

/// Where tasks lie that were done.
const ARCHIVE: &str = "archive";
/// The mark of a task that is done.
pub(in crate::swarm) const DONE: &str = ".DONE";

/// Where the folder of a task goes that was done; none for one that lies in no other folder.
pub(in crate::swarm) fn archived(folder: &Path) -> Option<PathBuf> {
    Some(folder.parent()?.join(ARCHIVE).join(folder.file_name()?))
}

/// Where a repository has its tasks.
#[derive(Debug, Clone)]
pub(crate) struct Home<'a> {
    /// The top of the worktree, without links in it.
    pub(crate) top: &'a Path,
    /// The folder whose folders are areas, from there.
    pub(crate) tasks: &'a str,
    /// Areas that lie elsewhere: name and folder.
    pub(crate) areas: &'a [(String, String)],
}

impl Home<'_> {
    /// Whether an area is called that.
    pub(crate) fn has_area(&self, name: &str) -> bool {
        let is_folder = || is_name(name) && name != ARCHIVE && self.top.join(self.tasks).join(name).is_dir();
        self.areas.iter().any(|(area, _)| area == name) || is_folder()
    }

    /// The text of a file of the repository.
    pub(super) fn text(&self, path: &Path) -> Result<String, Error> {
        match self.optional_text(path)? {
            Some(text) => Ok(text),
            None => Err(Error::NoSource { name: shown(self.top, path).to_string(), else_: String::new() }),
        }
    }

    /// The same for a file that may be absent.
    pub(super) fn optional_text(&self, path: &Path) -> Result<Option<String>, Error> {
        let Some(real) = self.inside(path)? else { return Ok(None) };
        // Something else than a file, such as a pipe, might never be read to its end.
        if real.is_file() { source::read_text(&real).map(Some) } else { Ok(None) }
    }

    /// Where a path really is; none where there is nothing.
    fn inside(&self, path: &Path) -> Result<Option<PathBuf>, Error> {
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Unreadable { path: path.to_owned(), source }),
        };
        if real.starts_with(self.top) {
            Ok(Some(real))
        } else {
            Err(Error::Outside { path: path.to_owned() })
        }
    }
}

/// What was found so far.
pub(super) struct Walk<'h> {
    home: &'h Home<'h>,
    /// Areas by name.
    areas: BTreeMap<String, PathBuf>,
    folders: Vec<Folder>,
    /// Folders that were looked through.
    seen: BTreeSet<PathBuf>,
    remarks: Vec<Remark>,
}

impl<'h> Walk<'h> {
    /// Looks through every area that is known.
    pub(super) fn new(home: &'h Home<'h>) -> Result<Walk<'h>, Error> {
        let mut walk = Walk {
            home,
            areas: BTreeMap::new(),
            folders: Vec::new(),
            seen: BTreeSet::new(),
            remarks: Vec::new(),
        };
        let tasks = home.top.join(home.tasks);
        if let Some(real) = home.inside(&tasks)?.filter(|real| real.is_dir()) {
            for (name, path) in walk.below(&real)? {
                if path.join(PROMPT).exists() {
                    walk.add(None, &name, path, false)?;
                } else if is_name(&name) && name != ARCHIVE {
                    walk.areas.insert(name, path);
                } else if name != ARCHIVE {
                    walk.remark(&path, "this cannot be the name of an area, so it was passed over");
                }
            }
            walk.archive(None, &real)?;
            walk.seen.insert(real);
        }
        for (name, folder) in home.areas {
            let path = home.top.join(folder);
            match home.inside(&path)?.filter(|real| real.is_dir()) {
                Some(real) => drop(walk.areas.insert(name.clone(), real)),
                None => walk.remark(&path, &format!("area '{name}' has no such folder")),
            }
        }
        for (name, path) in walk.areas.clone() {
            walk.area(&name, &path)?;
        }
        Ok(walk)
    }

    /// The folders of the tasks that one source names.
    pub(super) fn meant(&mut self, dir: &Path, source: &str) -> Result<Vec<PathBuf>, Error> {
        if source == ALL {
            return Ok(self.folders.iter().map(|folder| folder.path.clone()).collect());
        }
        if let Some(area) = self.areas.get(source).cloned() {
            return Ok(self.within(&area));
        }
        let path = dir.join(source);
        let Some(real) = self.home.inside(&path)? else { return Err(self.nothing(source)) };
        let folder = match real.file_name() {
            Some(name) if name == PROMPT => real.parent().unwrap_or(&real).to_owned(),
            _ if real.is_dir() => real,
            _ => return Err(self.nothing(source)),
        };
        if folder.join(PROMPT).exists() {
            self.single(&folder)?;
            return Ok(vec![folder]);
        }
        if !self.seen.contains(&folder) {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let name = if is_name(&name) { name } else { "tasks".to_owned() };
            self.area(&name, &folder)?;
        }
        let found = self.within(&folder);
        if found.is_empty() { Err(Error::Empty { name: source.to_owned() }) } else { Ok(found) }
    }

    /// Everything, by area and ID; an ID that is there twice in an area is a mistake.
    pub(super) fn end(mut self) -> Result<(Vec<Folder>, Vec<Remark>), Error> {
        let key = |f: &Folder| (f.area.as_ref().map(|a| a.to_lowercase()), f.id.to_lowercase());
        self.folders.sort_by_key(|folder| (key(folder), folder.path.clone()));
        let mut pairs = self.folders.windows(2);
        if let Some([one, two]) = pairs.find(|pair| key(&pair[0]) == key(&pair[1])) {
            let place =
                |f: &Folder| Place { file: shown(self.home.top, &f.path.join(PROMPT)), line: 1, column: 1 };
            return Err(Error::Twice { name: two.name(), first: place(one), second: place(two) });
        }
        self.folders.sort_by_key(|f| (f.area.clone(), in_numbers(&f.id), f.path.clone()));
        Ok((self.folders, self.remarks))
    }

    fn within(&self, area: &Path) -> Vec<PathBuf> {
        self.folders.iter().map(|f| f.path.clone()).filter(|path| path.starts_with(area)).collect()
    }

    /// One task that was named by its own folder, in an area that nobody told of: the folder around it.
    fn single(&mut self, folder: &Path) -> Result<(), Error> {
        if self.folders.iter().any(|known| known.path == folder) {
            return Ok(());
        }
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let around = folder.parent().unwrap_or(folder);
        let area = around.file_name().map(|area| area.to_string_lossy().into_owned());
        let area = area.filter(|area| is_name(area) && around != self.home.top);
        match area {
            Some(area) => self.area(&area, around),
            None => self.add(None, &name, folder.to_owned(), false),
        }
    }

    /// Looks through the folder of an area.
    fn area(&mut self, name: &str, path: &Path) -> Result<(), Error> {
        if !self.seen.insert(path.to_owned()) {
            return Ok(());
        }
        for (folder, path) in self.below(path)? {
            if path.join(PROMPT).exists() {
                self.add(Some(name), &folder, path, false)?;
            }
        }
        self.archive(Some(name), path)
    }

    fn archive(&mut self, area: Option<&str>, path: &Path) -> Result<(), Error> {
        let Some(archive) = self.home.inside(&path.join(ARCHIVE))?.filter(|archive| archive.is_dir()) else {
            return Ok(());
        };
        for (name, path) in self.below(&archive)? {
            self.add(area, &name, path, true)?;
        }
        Ok(())
    }

    fn add(&mut self, area: Option<&str>, name: &str, path: PathBuf, archived: bool) -> Result<(), Error> {
        let Some(id) = id_of(name) else {
            self.remark(&path, "this cannot be the name of a task, so it was passed over");
            return Ok(());
        };
        if self.folders.len() >= MOST {
            return Err(Error::TooMany { limit: MOST });
        }
        let done = archived || self.home.inside(&path.join(DONE))?.is_some();
        self.folders.push(Folder {
            id: id.to_owned(),
            area: area.map(ToOwned::to_owned),
            path,
            done,
            archived,
        });
        Ok(())
    }

    /// The folders in a folder by their names, without hidden ones.
    fn below(&mut self, folder: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
        let unreadable = |source| Error::Unreadable { path: folder.to_owned(), source };
        let mut out = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)?.take(2 * MOST) {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            let Some(name) = entry.file_name().to_str().map(ToOwned::to_owned) else { continue };
            if name.starts_with('.') || !path.is_dir() {
                continue;
            }
            match self.home.inside(&path) {
                Ok(Some(real)) => out.push((name, real)),
                Ok(None) => {}
                Err(Error::Outside { .. }) => {
                    self.remark(&path, "this is a link out of the repository, so it was passed over");
                }
                Err(error) => return Err(error),
            }
        }
        out.sort();
        Ok(out)
    }

    fn remark(&mut self, path: &Path, text: &str) {
        let place = Place { file: shown(self.home.top, path), line: 0, column: 0 };
        self.remarks.push(Remark { place, text: text.to_owned() });
    }

    /// There is no such area, folder or file.
    pub(super) fn nothing(&self, source: &str) -> Error {
        let areas: Vec<&str> = self.areas.keys().map(String::as_str).collect();
        let else_ = match nearest(source, areas.iter().copied()) {
            Some(near) => format!("did you mean '{near}'?"),
            None if areas.is_empty() => String::new(),
            None => format!("the areas are: {}", areas.join(", ")),
        };
        Error::NoSource { name: source.to_owned(), else_ }
    }
}

/// An ID as it is sorted: `A-10` comes after `A-9`.
fn in_numbers(id: &str) -> (String, u64, String) {
    let begin = id.find(|c: char| c.is_ascii_digit()).unwrap_or(id.len());
    let digits: String = id[begin..].chars().take_while(char::is_ascii_digit).collect();
    (id[..begin].to_lowercase(), digits.parse().unwrap_or_default(), id.to_owned())
}
