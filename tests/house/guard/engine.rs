//! Rules about steps: the engine of operations names none and no feature, and only its feature names a step.

use super::source_code::{crate_paths, product_sources, sources};
use crate::words::words_of;

/// Words of features, which no identifier of the engine has. Imports from git's crate are of its own subjects.
const FEATURE_WORDS: &[&str] = &["lane", "lanes", "preview", "previews", "snapshot", "snapshots"];

/// Kind of steps, as the registry has it.
struct StepKind {
    /// Name of the type.
    name: String,
    /// Module of the feature below `crates/lib/src`, as a path.
    feature: String,
    /// Tag in journals.
    tag: String,
}

fn step_kinds() -> Vec<StepKind> {
    let all = sources("crates/lib/src");
    let registry = all.iter().find(|source| source.path_in_crate() == "step_kinds.rs").unwrap();
    let paths = crate_paths(&registry.production);
    let literals = registry.string_literals().into_iter();
    let kinds = literals.filter_map(|literal| {
        let (_, name) = literal.before.strip_suffix(">(")?.rsplit_once("StepKind::new::<")?;
        let modules = paths.iter().find_map(|path| path.strip_suffix(&format!("::{name}"))).unwrap();
        let (feature, _file) = modules.rsplit_once("::").unwrap();
        Some(StepKind { name: name.to_owned(), feature: feature.replace("::", "/"), tag: literal.text })
    });
    kinds.collect()
}

fn identifiers(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty())
}

#[test]
fn engine_names_no_step_and_no_feature() {
    let kinds = step_kinds();
    assert!(kinds.len() > 10, "{} kinds", kinds.len());
    let mut wrong = Vec::new();
    for source in sources("crates/lib/src/operation") {
        let is_own = |item: &&str| !item.trim_start().starts_with("use proq_git::");
        for name in source.production.split(';').filter(is_own).flat_map(identifiers) {
            let is_of_feature = words_of(name).iter().any(|word| FEATURE_WORDS.contains(&word.as_str()));
            if is_of_feature || kinds.iter().any(|kind| kind.name == name) {
                wrong.push(format!("{} names {name}", source.relative_path()));
            }
        }
        let literals = source.string_literals().into_iter();
        let tags = literals.filter(|literal| kinds.iter().any(|kind| kind.tag == literal.text));
        wrong.extend(tags.map(|literal| format!("{} has the tag {}", source.relative_path(), literal.text)));
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn only_its_feature_names_a_step() {
    let kinds = step_kinds();
    let mut wrong = Vec::new();
    for source in product_sources().iter().filter(|s| s.path_in_crate() != "step_kinds.rs") {
        let path = source.relative_path();
        for kind in &kinds {
            let feature = format!("crates/lib/src/{}", kind.feature);
            let is_of_feature = path == format!("{feature}.rs") || path.starts_with(&format!("{feature}/"));
            if !is_of_feature && identifiers(&source.production).any(|name| name == kind.name) {
                wrong.push(format!("{path} names {}", kind.name));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}
