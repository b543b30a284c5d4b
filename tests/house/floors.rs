//! Rules about the structure of each crate: imports run downward, folders are small, `mod.rs` only declares.

use std::collections::{BTreeMap, BTreeSet};

use super::guard::source_code::{Source, paths_after, product_folders, product_sources, sources};

/// Maximum number of source files in one folder, `mod.rs` included.
const MAX_FILES: usize = 20;

/// Maximum number of names that a `mod.rs` or a member's `lib.rs` may re-export: what every user of it needs.
const MAX_REEXPORTS: usize = 8;

type Module = Vec<String>;

/// Modules of the sources by path, with the re-exports of each `mod.rs`.
struct Modules {
    files: BTreeMap<Module, String>,
    reexports: BTreeMap<Module, Module>,
}

/// Returns the module path of a file of a crate: `[base, oid]` for `base/oid.rs`, `[base]` for `base/mod.rs`.
fn module_of(file: &str) -> Module {
    let mut path: Module = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        path.pop();
    }
    path
}

/// Returns the absolute paths of what a file names by `crate::`, `super::` and, in a `mod.rs`, by its children.
fn named_paths(source: &Source) -> Vec<Module> {
    let here = module_of(&source.path_in_crate());
    let split = |path: &str| path.split("::").map(str::to_owned).collect::<Module>();
    let mut out: Vec<Module> =
        paths_after(&source.production, "crate::").iter().map(|path| split(path)).collect();
    for path in paths_after(&source.production, "super::") {
        let mut segments = split(&path);
        let ups = 1 + segments.iter().take_while(|s| *s == "super").count();
        segments.drain(..ups - 1);
        let base = here.len().saturating_sub(ups);
        out.push(here[..base].iter().cloned().chain(segments).collect());
    }
    out
}

impl Modules {
    fn load(all: &[&Source]) -> Self {
        let files = all.iter().map(|s| (module_of(&s.path_in_crate()), s.relative_path())).collect();
        let mut reexports = BTreeMap::new();
        for source in all.iter().filter(|s| is_folder_file(&s.path_in_crate())) {
            let here = module_of(&source.path_in_crate());
            for path in paths_after(&source.production, "use ") {
                let target: Module = path.split("::").map(str::to_owned).collect();
                let name = here.iter().chain(target.last()).cloned().collect();
                reexports.insert(name, here.iter().cloned().chain(target).collect());
            }
        }
        Self { files, reexports }
    }

    /// Returns the module that defines what a path names, or `None` for a path into no module.
    fn defining_module(&self, path: &[String]) -> Option<Module> {
        for end in (1..=path.len()).rev() {
            if self.files.contains_key(&path[..end]) {
                return Some(path[..end].to_vec());
            }
            if let Some(target) = self.reexports.get(&path[..end]) {
                return self.defining_module(target);
            }
        }
        None
    }
}

/// Imports between the children of each folder: folder, then child, then the children that it imports with
/// one pair of files as an example.
type Imports = BTreeMap<Module, BTreeMap<String, BTreeMap<String, String>>>;

/// A file `x.rs` and its folder `x/` are one child. Only the lowest folder that holds both ends of an import
/// is concerned with it.
fn imports_by_folder(all: &[&Source], modules: &Modules) -> Imports {
    let mut out = Imports::new();
    for source in all.iter().filter(|s| !is_test_file(&s.relative_path())) {
        let from = module_of(&source.path_in_crate());
        for to in named_paths(source).iter().filter_map(|path| modules.defining_module(path)) {
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            let (Some(a), Some(b)) = (from.get(common), to.get(common)) else { continue };
            let example = format!("{} names {}", source.relative_path(), modules.files[&to]);
            let children = out.entry(from[..common].to_vec()).or_default();
            children.entry(a.clone()).or_default().insert(b.clone(), example);
        }
    }
    out
}

fn is_folder_file(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| ["mod.rs", "lib.rs"].contains(&name))
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Returns the imports that lie on a circle: what is left once every child that imports nothing of the rest,
/// or that nothing of the rest imports, is taken away.
fn circular_imports(mut children: BTreeMap<String, BTreeMap<String, String>>) -> Vec<String> {
    loop {
        let importing: BTreeSet<String> = children.keys().cloned().collect();
        for imported in children.values_mut() {
            imported.retain(|child, _| importing.contains(child));
        }
        let imported: BTreeSet<String> = children.values().flat_map(BTreeMap::keys).cloned().collect();
        let before = children.len();
        children.retain(|child, imports| !imports.is_empty() && imported.contains(child));
        if children.len() == before {
            return children.into_values().flat_map(BTreeMap::into_values).collect();
        }
    }
}

#[test]
fn imports_of_each_folder_run_in_no_circle() {
    let mut circular = Vec::new();
    for folder in product_folders() {
        let all = sources(&folder);
        let modules = Modules::load(&all);
        let imports = imports_by_folder(&all, &modules);
        let found: usize = imports.values().map(BTreeMap::len).sum();
        assert!(found > all.len() / 4, "{folder}: {found} modules import others");
        circular.extend(imports.into_values().flat_map(circular_imports));
    }
    assert_eq!(circular, [""; 0]);
}

#[test]
fn folders_are_small() {
    let mut files = BTreeMap::<String, usize>::new();
    for source in product_sources() {
        let path = source.relative_path();
        *files.entry(path.rsplit_once('/').unwrap().0.to_owned()).or_default() += 1;
    }
    files.retain(|_, count| *count > MAX_FILES);
    assert_eq!(files, BTreeMap::new());
}

#[test]
fn module_files_only_declare() {
    let mut wrong = Vec::new();
    // A derive has to be in the root of its crate.
    let with_code = ["src/lib.rs", "crates/explain-derive/src/lib.rs"];
    let is_declaring =
        |path: &str| path.ends_with("mod.rs") || (path.ends_with("lib.rs") && !with_code.contains(&path));
    for source in product_sources().iter().filter(|s| is_declaring(&s.relative_path())) {
        let code = &source.production;
        let mut rest = code.split(';').map(str::trim).filter(|item| !item.is_empty());
        let is_declaration = |item: &str| {
            let item = item.rsplit(']').next().unwrap().trim_start();
            let item = item.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            ["mod ", "use ", "extern crate self "].iter().any(|word| item.starts_with(word))
        };
        if let Some(item) = rest.find(|item| !is_declaration(item)) {
            wrong.push(format!("{} has {item}", source.relative_path()));
        }
        let names = paths_after(code, "use ").len();
        if names > MAX_REEXPORTS {
            wrong.push(format!("{} re-exports {names} names", source.relative_path()));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn finds_the_imports_on_a_circle() {
    let children = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("e", "c")];
    let mut graph = BTreeMap::<String, BTreeMap<String, String>>::new();
    for (from, to) in children {
        graph.entry(from.to_owned()).or_default().insert(to.to_owned(), format!("{from}{to}"));
    }
    assert_eq!(circular_imports(graph), ["bc", "cb"]);
}
