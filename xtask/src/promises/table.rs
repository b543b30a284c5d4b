//! Table of the promises in `docs/promises.toml` with the tests whose doc comments name them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Start of a doc comment that names the promises held by the test below it.
const MARK: &str = "/// Promise: ";

const HEAD: &str = "\
# Promises and their tests

<!-- Written by `cargo xtask promises` from docs/promises.toml and the marks on tests. -->

[SAFETY.md](../SAFETY.md) states the promises of git-proq in short. This page lists each one in
detail, with the tests that fail when it is broken. `cargo test NAME` runs a test. A test that needs
more than every machine has says so here; `.ci/run` runs it where the machine has that.
";

/// Test that names promises.
struct MarkedTest {
    /// Its name in the output of `cargo test`.
    name: String,
    /// Reason why `cargo test` ignores it.
    ignored: Option<String>,
}

/// Tests by the ids of the promises that they hold, and what is wrong with the marks.
#[derive(Default)]
pub(crate) struct Marks {
    tests: BTreeMap<String, Vec<MarkedTest>>,
    faults: Vec<String>,
}

/// Returns the text of `docs/promises.md` for the repository at `root`.
///
/// # Errors
/// Lists every mark that is on no test or names no promise, and every promise without a test.
pub(crate) fn page(root: &Path) -> Result<String, String> {
    let mut marks = Marks::default();
    for folder in ["crates", "src", "tests"] {
        for path in rust_files(&root.join(folder))? {
            let module = path.strip_prefix(root.join(folder)).unwrap_or(&path).with_extension("");
            let module = module.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "::");
            // Unit tests of members have the member's name in front: `git::base::oid::tests::…`.
            let module = module.replacen("::src::", "::", 1);
            // `cargo test` names the folder of a test program once, not before each of its tests.
            let module = match folder {
                "tests" => module.split_once("::").map_or("", |(_, rest)| rest).to_owned(),
                _ => module,
            };
            marks.scan(module.strip_suffix("::mod").unwrap_or(&module), &read(&path)?);
        }
    }
    marks.into_page(&read(&root.join("docs/promises.toml"))?)
}

impl Marks {
    /// Adds the marked tests of a source file. Unit tests in a module of their own have that at the margin.
    pub(crate) fn scan(&mut self, module: &str, text: &str) {
        let mut path = module.to_owned();
        let mut ids: Vec<&str> = Vec::new();
        let mut is_test = false;
        let mut ignored = None;
        for (at, line) in text.lines().enumerate() {
            if let Some(name) = line.strip_prefix("mod ").and_then(|l| l.strip_suffix(" {")) {
                path = format!("{module}::{name}");
            } else if line == "}" {
                module.clone_into(&mut path);
            }
            let line = line.trim_start();
            if let Some(mark) = line.strip_prefix(MARK) {
                ids.extend(mark.split(", "));
            } else if line == "#[test]" {
                is_test = true;
            } else if let Some(reason) = line.strip_prefix("#[ignore = \"") {
                ignored = reason.strip_suffix("\"]");
            } else if !line.starts_with("///") && !line.starts_with("#[") {
                let name = line.strip_prefix("fn ").and_then(|l| l.split('(').next());
                if let Some(name) = name.filter(|_| is_test) {
                    for id in ids {
                        let ignored = ignored.map(str::to_owned);
                        let test = MarkedTest { name: format!("{path}::{name}"), ignored };
                        self.tests.entry(id.to_owned()).or_default().push(test);
                    }
                } else if !ids.is_empty() {
                    self.faults.push(format!("{module}, line {}: the mark above is on no test", at + 1));
                }
                (ids, is_test, ignored) = (Vec::new(), false, None);
            }
        }
    }

    /// Returns the page about the promises in the text of `docs/promises.toml`.
    pub(crate) fn into_page(mut self, promises: &str) -> Result<String, String> {
        let promises: toml::Table =
            promises.parse().map_err(|error| format!("docs/promises.toml: {error}"))?;
        let mut page = HEAD.to_owned();
        for section in array(promises.get("section"))? {
            let title = string(section.get("title"))?;
            page += &format!("\n## {title}\n\n| id | promise | tests |\n|---|---|---|\n");
            for promise in array(section.get("promises"))? {
                let id = format!("{}/{}", string(section.get("id"))?, string(promise.get(0))?);
                let tests = self.tests.remove(&id).unwrap_or_default();
                if tests.iter().all(MarkedTest::needs_real_programs) {
                    self.faults.push(format!("no test that .ci/run runs is marked with {id}"));
                }
                let tests: Vec<String> = tests.iter().map(MarkedTest::cell).collect();
                page += &format!("| `{id}` | {} | {} |\n", string(promise.get(1))?, tests.join(", "));
            }
        }
        for (id, tests) in &self.tests {
            self.faults
                .push(format!("docs/promises.toml has no promise {id}, which {} names", tests[0].name));
        }
        if self.faults.is_empty() { Ok(page) } else { Err(self.faults.join("\n")) }
    }
}

impl MarkedTest {
    /// Returns whether the test runs real agents or hook managers, which `.ci/run` leaves out by default.
    fn needs_real_programs(&self) -> bool {
        self.ignored.as_ref().is_some_and(|reason| reason.starts_with("needs the real "))
    }

    fn cell(&self) -> String {
        let needs = self.ignored.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("`{}`{needs}", self.name)
    }
}

fn array(value: Option<&toml::Value>) -> Result<&Vec<toml::Value>, String> {
    value.and_then(toml::Value::as_array).ok_or_else(|| "docs/promises.toml lacks a list".to_owned())
}

fn string(value: Option<&toml::Value>) -> Result<&str, String> {
    value.and_then(toml::Value::as_str).ok_or_else(|| "docs/promises.toml lacks a string".to_owned())
}

/// Returns all Rust files below a folder, sorted by path.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
