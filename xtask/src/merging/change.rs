//! Owns what one side of a merge does to a tree: one small change after the other, some aimed at what the other side did.

use super::super::dice::Dice;
use super::files::{File, Files, Kind};
use super::names::{is_below, join, last, name, parent, shown};
use super::{setup, text};

/// One side at work.
pub(super) struct Side<'a> {
    /// The tree as it is now.
    pub(super) files: Files,
    /// What was touched, for the other side to aim at.
    pub(super) touched: Vec<Vec<u8>>,
    /// What the other side touched.
    aims: &'a [Vec<u8>],
    dice: &'a mut Dice,
    story: &'a mut Vec<String>,
}

impl<'a> Side<'a> {
    /// Starts from a tree. What is done is noted in `story`.
    pub(super) fn new(
        files: Files,
        aims: &'a [Vec<u8>],
        dice: &'a mut Dice,
        story: &'a mut Vec<String>,
    ) -> Self {
        Side { files, touched: Vec::new(), aims, dice, story }
    }

    /// Makes some changes.
    pub(super) fn change(mut self, times: usize) -> (Files, Vec<Vec<u8>>) {
        for _ in 0..times {
            self.once();
        }
        (self.files, self.touched)
    }

    /// What a tree is like before anybody changes it.
    pub(super) fn first_tree(dice: &'a mut Dice, story: &'a mut Vec<String>) -> Files {
        let mut side = Side::new(Files::default(), &[], dice, story);
        for _ in 0..=side.dice.below(4) {
            let folder = side.new_folder();
            for _ in 0..=side.dice.below(4) {
                let path = join(&folder, &name(side.dice));
                side.add(&path);
            }
        }
        for _ in 0..=side.dice.below(4) {
            let path = name(side.dice);
            side.add(&path);
        }
        side.files
    }

    fn once(&mut self) {
        match self.dice.below(37) {
            0..=7 => self.edit(),
            8..=12 => {
                let path = self.new_path();
                self.add(&path);
            }
            13..=15 => {
                let path = self.some_file();
                self.remove(path);
            }
            16 | 17 => {
                let path = self.some_folder();
                self.remove(path);
            }
            18..=21 => self.rename_file(),
            22..=24 => self.rename_folder(false),
            25 | 26 => self.rename_folder(true),
            27 => self.folder_for_file(),
            28 => self.file_for_folder(),
            29 => self.other_kind(),
            30 => self.copy(),
            31 => self.swap(),
            32 | 33 => self.submodule(),
            34 => self.attributes(),
            35 => self.sink(),
            _ => self.move_into_folder(),
        }
    }

    fn note(&mut self, what: &str, paths: &[&[u8]]) {
        let paths: Vec<String> = paths.iter().map(|p| format!("'{}'", shown(p))).collect();
        self.story.push(format!("{what} {}", paths.join(" ")));
    }

    fn put(&mut self, path: &[u8], file: File) {
        self.touched.push(path.to_vec());
        self.files.put(path, file);
    }

    fn edit(&mut self) {
        let Some((path, mut file)) = self.some_plain() else { return };
        file.content = text::edited(&file.content, self.dice).into();
        self.note("edit", &[&path]);
        self.put(&path, file);
    }

    fn add(&mut self, path: &[u8]) {
        let kind = match self.dice.below(12) {
            0 => Kind::Program,
            1 => Kind::Link,
            2 if self.dice.below(3) == 0 => Kind::Submodule,
            _ => Kind::Plain,
        };
        let content = match kind {
            Kind::Link => name(self.dice),
            Kind::Submodule => vec![u8::try_from(self.dice.below(5)).unwrap_or(0)],
            _ => text::new(self.dice),
        };
        self.note("add", &[path]);
        self.put(path, File { kind, content: content.into() });
    }

    fn remove(&mut self, path: Option<Vec<u8>>) {
        let Some(path) = path else { return };
        self.note("remove", &[&path]);
        self.files.remove(&path);
        self.touched.push(path);
    }

    fn rename_file(&mut self) {
        let Some(from) = self.some_file() else { return };
        let Some(mut file) = self.files.get(&from).cloned() else { return };
        let to = self.new_path();
        if self.dice.below(3) == 0 && file.kind == Kind::Plain {
            file.content = text::edited(&file.content, self.dice).into();
            self.note("edit", &[&from]);
        }
        self.note("rename", &[&from, &to]);
        self.files.remove(&from);
        self.put(&to, file);
        self.touched.push(from);
    }

    /// Moves what is in a folder to another one, which may be there already, lie within the old one, or hold it. Partly:
    /// some files stay, or go somewhere else.
    fn rename_folder(&mut self, partly: bool) {
        let Some(from) = self.some_folder() else { return };
        let to = match self.dice.below(6) {
            0 => join(&from, &name(self.dice)),
            1 => parent(&from).to_vec(),
            2 => self.some_folder().unwrap_or_else(|| name(self.dice)),
            _ => self.new_folder(),
        };
        self.note(if partly { "rename partly" } else { "rename folder" }, &[&from, &to]);
        for (path, file) in self.files.below(&from) {
            let rest = path[from.len() + 1..].to_vec();
            let target = match (partly, self.dice.below(4)) {
                (true, 0) => continue,
                (true, 1) => join(&self.new_folder(), last(&rest)),
                _ => join(&to, &rest),
            };
            self.files.remove(&path);
            self.put(&target, file);
        }
        self.touched.push(from);
        if !to.is_empty() {
            self.touched.push(to);
        }
    }

    fn folder_for_file(&mut self) {
        let Some(path) = self.some_file() else { return };
        let Some(file) = self.files.get(&path).cloned() else { return };
        let inside = join(&path, &name(self.dice));
        self.note("folder for file", &[&inside]);
        self.files.remove(&path);
        let file = if self.dice.below(2) == 0 { file } else { File::plain(text::new(self.dice)) };
        self.put(&inside, file);
        self.touched.push(path);
    }

    fn file_for_folder(&mut self) {
        let Some(path) = self.some_folder() else { return };
        self.add(&path);
    }

    fn other_kind(&mut self) {
        let Some(path) = self.some_file() else { return };
        let Some(mut file) = self.files.get(&path).cloned() else { return };
        file.kind = match (file.kind, self.dice.below(4)) {
            (Kind::Plain, 0) => Kind::Link,
            (Kind::Plain, 1) => Kind::Submodule,
            (Kind::Plain, _) => Kind::Program,
            (_, _) => Kind::Plain,
        };
        if file.kind == Kind::Link {
            file.content = name(self.dice).into();
        }
        self.note("other kind", &[&path]);
        self.put(&path, file);
    }

    fn copy(&mut self) {
        let Some(from) = self.some_file() else { return };
        let Some(file) = self.files.get(&from).cloned() else { return };
        let to = self.new_path();
        self.note("copy", &[&from, &to]);
        self.put(&to, file);
    }

    fn swap(&mut self) {
        let (Some(one), Some(two)) = (self.some_file(), self.some_file()) else { return };
        let (Some(first), Some(second)) = (self.files.get(&one).cloned(), self.files.get(&two).cloned())
        else {
            return;
        };
        self.note("swap", &[&one, &two]);
        self.put(&one, second);
        self.put(&two, first);
    }

    fn submodule(&mut self) {
        let old = self.files.iter().find(|(_, f)| f.kind == Kind::Submodule).map(|(p, _)| p.clone());
        let path = old.unwrap_or_else(|| self.new_path());
        let content = vec![u8::try_from(self.dice.below(5)).unwrap_or(0)];
        self.note("submodule", &[&path]);
        self.put(&path, File { kind: Kind::Submodule, content: content.into() });
    }

    fn attributes(&mut self) {
        let folder = match self.dice.below(3) {
            0 => self.some_folder().unwrap_or_default(),
            _ => Vec::new(),
        };
        let path = join(&folder, setup::ATTRIBUTES);
        let lines = setup::attributes(self.dice);
        self.note("attributes", &[&path]);
        self.put(&path, File::plain(lines));
    }

    /// Moves everything into one folder.
    fn sink(&mut self) {
        let to = name(self.dice);
        self.note("everything into", &[&to]);
        for (path, file) in std::mem::take(&mut self.files).below(&[]) {
            self.put(&join(&to, &path), file);
        }
        self.touched.push(to);
    }

    fn move_into_folder(&mut self) {
        let (Some(from), Some(folder)) = (self.some_file(), self.some_folder()) else { return };
        let Some(file) = self.files.get(&from).cloned() else { return };
        let to = join(&folder, last(&from));
        self.note("rename", &[&from, &to]);
        self.files.remove(&from);
        self.put(&to, file);
        self.touched.push(from);
    }

    fn aim(&mut self) -> Option<Vec<u8>> {
        if self.aims.is_empty() || self.dice.below(2) == 0 {
            return None;
        }
        self.aims.get(self.dice.below(self.aims.len())).cloned()
    }

    fn one_of(&mut self, all: &[Vec<u8>]) -> Option<Vec<u8>> {
        all.get(self.dice.below(all.len())).cloned()
    }

    fn some_file(&mut self) -> Option<Vec<u8>> {
        let all = self.files.paths();
        if let Some(aim) = self.aim() {
            let near: Vec<Vec<u8>> =
                all.iter().filter(|p| **p == aim || is_below(p, &aim)).cloned().collect();
            if !near.is_empty() {
                return self.one_of(&near);
            }
        }
        self.one_of(&all)
    }

    fn some_plain(&mut self) -> Option<(Vec<u8>, File)> {
        let path = self.some_file()?;
        let file = self.files.get(&path).filter(|f| matches!(f.kind, Kind::Plain | Kind::Program))?;
        Some((path, file.clone()))
    }

    fn some_folder(&mut self) -> Option<Vec<u8>> {
        let all = self.files.folders();
        if let Some(aim) = self.aim() {
            let near: Vec<Vec<u8>> = all
                .iter()
                .filter(|f| **f == aim || is_below(&aim, f) || is_below(f, &aim))
                .cloned()
                .collect();
            if !near.is_empty() {
                return self.one_of(&near);
            }
        }
        self.one_of(&all)
    }

    fn new_folder(&mut self) -> Vec<u8> {
        let first = name(self.dice);
        match self.dice.below(3) {
            0 => join(&first, &name(self.dice)),
            1 => self.some_folder().map_or(first.clone(), |above| join(&above, &first)),
            _ => first,
        }
    }

    /// A path for a new file: often in a folder that the other side took away.
    fn new_path(&mut self) -> Vec<u8> {
        let name = name(self.dice);
        if let Some(aim) = self.aim() {
            return match self.dice.below(4) {
                0 => aim,
                1 => join(&aim, &name),
                _ => join(parent(&aim), &name),
            };
        }
        match self.dice.below(4) {
            0 => name,
            1 => join(&self.new_folder(), &name),
            _ => self.some_folder().map_or(name.clone(), |above| join(&above, &name)),
        }
    }
}
