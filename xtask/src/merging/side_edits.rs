//! Random edits that one side of a merge makes to a tree; some are aimed at what the other side touched.

use super::paths::{escaped, file_name, is_below, join, parent, random_name};
use super::tree::{File, Files, Kind};
use super::{contents, setup};
use fastrand::Rng;

/// Editor of one side's tree.
pub(super) struct SideEditor<'a> {
    /// Current tree.
    pub(super) files: Files,
    /// Touched paths, which the other side may aim at.
    pub(super) touched: Vec<Vec<u8>>,
    /// Paths that the other side touched.
    targets: &'a [Vec<u8>],
    rng: &'a mut Rng,
    log: &'a mut Vec<String>,
}

impl<'a> SideEditor<'a> {
    /// Starts from a tree. Each edit is described in `log`.
    pub(super) fn new(
        files: Files,
        targets: &'a [Vec<u8>],
        rng: &'a mut Rng,
        log: &'a mut Vec<String>,
    ) -> Self {
        SideEditor { files, touched: Vec::new(), targets, rng, log }
    }

    /// Makes this number of edits. Returns the tree and the touched paths.
    pub(super) fn edit_times(mut self, times: usize) -> (Files, Vec<Vec<u8>>) {
        for _ in 0..times {
            self.edit_once();
        }
        (self.files, self.touched)
    }

    /// Returns a random tree without a parent commit.
    pub(super) fn random_tree(rng: &'a mut Rng, log: &'a mut Vec<String>) -> Files {
        let mut side = SideEditor::new(Files::default(), &[], rng, log);
        for _ in 0..=side.rng.usize(..4) {
            let folder = side.new_folder();
            for _ in 0..=side.rng.usize(..4) {
                let path = join(&folder, &random_name(side.rng));
                side.add_file(&path);
            }
        }
        for _ in 0..=side.rng.usize(..4) {
            let path = random_name(side.rng);
            side.add_file(&path);
        }
        side.files
    }

    fn edit_once(&mut self) {
        match self.rng.usize(..37) {
            0..=7 => self.edit_file(),
            8..=12 => {
                let path = self.new_path();
                self.add_file(&path);
            }
            13..=15 => {
                let path = self.pick_file();
                self.remove(path);
            }
            16 | 17 => {
                let path = self.pick_folder();
                self.remove(path);
            }
            18..=21 => self.rename_file(),
            22..=24 => self.rename_folder(false),
            25 | 26 => self.rename_folder(true),
            27 => self.replace_file_by_folder(),
            28 => self.replace_folder_by_file(),
            29 => self.change_kind(),
            30 => self.copy_file(),
            31 => self.swap_files(),
            32 | 33 => self.set_submodule(),
            34 => self.write_attributes(),
            35 => self.move_all_into_folder(),
            _ => self.move_into_folder(),
        }
    }

    fn log_edit(&mut self, action: &str, paths: &[&[u8]]) {
        let paths: Vec<String> = paths.iter().map(|p| format!("'{}'", escaped(p))).collect();
        self.log.push(format!("{action} {}", paths.join(" ")));
    }

    fn write_file(&mut self, path: &[u8], file: File) {
        self.touched.push(path.to_vec());
        self.files.insert(path, file);
    }

    fn edit_file(&mut self) {
        let Some((path, mut file)) = self.pick_regular_file() else { return };
        file.content = contents::edit_content(&file.content, self.rng).into();
        self.log_edit("edit", &[&path]);
        self.write_file(&path, file);
    }

    fn add_file(&mut self, path: &[u8]) {
        let kind = match self.rng.usize(..12) {
            0 => Kind::Executable,
            1 => Kind::Symlink,
            2 if self.rng.usize(..3) == 0 => Kind::Submodule,
            _ => Kind::Regular,
        };
        let content = match kind {
            Kind::Symlink => random_name(self.rng),
            Kind::Submodule => vec![u8::try_from(self.rng.usize(..5)).unwrap_or(0)],
            _ => contents::new(self.rng),
        };
        self.log_edit("add", &[path]);
        self.write_file(path, File { kind, content: content.into() });
    }

    fn remove(&mut self, path: Option<Vec<u8>>) {
        let Some(path) = path else { return };
        self.log_edit("remove", &[&path]);
        self.files.remove(&path);
        self.touched.push(path);
    }

    fn rename_file(&mut self) {
        let Some(from) = self.pick_file() else { return };
        let Some(mut file) = self.files.get(&from).cloned() else { return };
        let to = self.new_path();
        if self.rng.usize(..3) == 0 && file.kind == Kind::Regular {
            file.content = contents::edit_content(&file.content, self.rng).into();
            self.log_edit("edit", &[&from]);
        }
        self.log_edit("rename", &[&from, &to]);
        self.files.remove(&from);
        self.write_file(&to, file);
        self.touched.push(from);
    }

    /// Moves the files in a folder to another folder, which may exist, lie in the old one, or contain it.
    /// With `partly`, some files stay or move somewhere else.
    fn rename_folder(&mut self, partly: bool) {
        let Some(from) = self.pick_folder() else { return };
        let to = match self.rng.usize(..6) {
            0 => join(&from, &random_name(self.rng)),
            1 => parent(&from).to_vec(),
            2 => self.pick_folder().unwrap_or_else(|| random_name(self.rng)),
            _ => self.new_folder(),
        };
        self.log_edit(if partly { "rename partly" } else { "rename folder" }, &[&from, &to]);
        for (path, file) in self.files.below(&from) {
            let rest = path[from.len() + 1..].to_vec();
            let target = match (partly, self.rng.usize(..4)) {
                (true, 0) => continue,
                (true, 1) => join(&self.new_folder(), file_name(&rest)),
                _ => join(&to, &rest),
            };
            self.files.remove(&path);
            self.write_file(&target, file);
        }
        self.touched.push(from);
        if !to.is_empty() {
            self.touched.push(to);
        }
    }

    fn replace_file_by_folder(&mut self) {
        let Some(path) = self.pick_file() else { return };
        let Some(file) = self.files.get(&path).cloned() else { return };
        let inside = join(&path, &random_name(self.rng));
        self.log_edit("folder for file", &[&inside]);
        self.files.remove(&path);
        let file = if self.rng.usize(..2) == 0 { file } else { File::regular(contents::new(self.rng)) };
        self.write_file(&inside, file);
        self.touched.push(path);
    }

    fn replace_folder_by_file(&mut self) {
        let Some(path) = self.pick_folder() else { return };
        self.add_file(&path);
    }

    fn change_kind(&mut self) {
        let Some(path) = self.pick_file() else { return };
        let Some(mut file) = self.files.get(&path).cloned() else { return };
        file.kind = match (file.kind, self.rng.usize(..4)) {
            (Kind::Regular, 0) => Kind::Symlink,
            (Kind::Regular, 1) => Kind::Submodule,
            (Kind::Regular, _) => Kind::Executable,
            (_, _) => Kind::Regular,
        };
        if file.kind == Kind::Symlink {
            file.content = random_name(self.rng).into();
        }
        self.log_edit("other kind", &[&path]);
        self.write_file(&path, file);
    }

    fn copy_file(&mut self) {
        let Some(from) = self.pick_file() else { return };
        let Some(file) = self.files.get(&from).cloned() else { return };
        let to = self.new_path();
        self.log_edit("copy", &[&from, &to]);
        self.write_file(&to, file);
    }

    fn swap_files(&mut self) {
        let (Some(one), Some(two)) = (self.pick_file(), self.pick_file()) else { return };
        let (Some(first), Some(second)) = (self.files.get(&one).cloned(), self.files.get(&two).cloned())
        else {
            return;
        };
        self.log_edit("swap", &[&one, &two]);
        self.write_file(&one, second);
        self.write_file(&two, first);
    }

    fn set_submodule(&mut self) {
        let old = self.files.iter().find(|(_, f)| f.kind == Kind::Submodule).map(|(p, _)| p.clone());
        let path = old.unwrap_or_else(|| self.new_path());
        let content = vec![u8::try_from(self.rng.usize(..5)).unwrap_or(0)];
        self.log_edit("submodule", &[&path]);
        self.write_file(&path, File { kind: Kind::Submodule, content: content.into() });
    }

    fn write_attributes(&mut self) {
        let folder = match self.rng.usize(..3) {
            0 => self.pick_folder().unwrap_or_default(),
            _ => Vec::new(),
        };
        let path = join(&folder, setup::ATTRIBUTES);
        let lines = setup::random_attributes(self.rng);
        self.log_edit("attributes", &[&path]);
        self.write_file(&path, File::regular(lines));
    }

    /// Moves everything into one folder.
    fn move_all_into_folder(&mut self) {
        let to = random_name(self.rng);
        self.log_edit("everything into", &[&to]);
        for (path, file) in std::mem::take(&mut self.files).below(&[]) {
            self.write_file(&join(&to, &path), file);
        }
        self.touched.push(to);
    }

    fn move_into_folder(&mut self) {
        let (Some(from), Some(folder)) = (self.pick_file(), self.pick_folder()) else { return };
        let Some(file) = self.files.get(&from).cloned() else { return };
        let to = join(&folder, file_name(&from));
        self.log_edit("rename", &[&from, &to]);
        self.files.remove(&from);
        self.write_file(&to, file);
        self.touched.push(from);
    }

    fn pick_target(&mut self) -> Option<Vec<u8>> {
        if self.targets.is_empty() || self.rng.usize(..2) == 0 {
            return None;
        }
        self.rng.choice(self.targets).cloned()
    }

    fn pick(&mut self, all: &[Vec<u8>]) -> Option<Vec<u8>> {
        self.rng.choice(all).cloned()
    }

    fn pick_file(&mut self) -> Option<Vec<u8>> {
        let all = self.files.paths();
        if let Some(target) = self.pick_target() {
            let near: Vec<Vec<u8>> =
                all.iter().filter(|p| **p == target || is_below(p, &target)).cloned().collect();
            if !near.is_empty() {
                return self.pick(&near);
            }
        }
        self.pick(&all)
    }

    fn pick_regular_file(&mut self) -> Option<(Vec<u8>, File)> {
        let path = self.pick_file()?;
        let file = self.files.get(&path).filter(|f| matches!(f.kind, Kind::Regular | Kind::Executable))?;
        Some((path, file.clone()))
    }

    fn pick_folder(&mut self) -> Option<Vec<u8>> {
        let all = self.files.folders();
        if let Some(target) = self.pick_target() {
            let near: Vec<Vec<u8>> = all
                .iter()
                .filter(|f| **f == target || is_below(&target, f) || is_below(f, &target))
                .cloned()
                .collect();
            if !near.is_empty() {
                return self.pick(&near);
            }
        }
        self.pick(&all)
    }

    fn new_folder(&mut self) -> Vec<u8> {
        let first = random_name(self.rng);
        match self.rng.usize(..3) {
            0 => join(&first, &random_name(self.rng)),
            1 => self.pick_folder().map_or(first.clone(), |above| join(&above, &first)),
            _ => first,
        }
    }

    /// Returns a path for a new file, often in a folder that the other side removed.
    fn new_path(&mut self) -> Vec<u8> {
        let name = random_name(self.rng);
        if let Some(target) = self.pick_target() {
            return match self.rng.usize(..4) {
                0 => target,
                1 => join(&target, &name),
                _ => join(parent(&target), &name),
            };
        }
        match self.rng.usize(..4) {
            0 => name,
            1 => join(&self.new_folder(), &name),
            _ => self.pick_folder().map_or(name.clone(), |above| join(&above, &name)),
        }
    }
}
