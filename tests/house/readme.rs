//! README, ARCHITECTURE.md, SAFETY.md, the design pages and the table of promises checked against the program
//! and its tests.

use std::path::{Path, PathBuf};

use proq_test_kit::Sandbox;

#[path = "../../xtask/src/promises/table.rs"]
mod promise_table;

const README: &str = include_str!("../../README.md");

/// Returns the lines of all code blocks, fenced or indented as in pages of `hooks/`.
fn code_lines(page: &str) -> Vec<&str> {
    let mut inside = false;
    let mut out = Vec::new();
    for line in page.lines() {
        if line.starts_with("```") {
            inside = !inside;
        } else if inside {
            out.push(line);
        } else if let Some(line) = line.strip_prefix("    ") {
            out.push(line);
        }
    }
    out
}

/// Returns the cells of the table with this heading, row by row, without the heading and the code marks.
fn table_rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, rest) = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let rows = rest.lines().skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect())
        .collect()
}

#[test]
fn command_table_matches_help() {
    let help = Sandbox::empty().proq(&["-h"]).ok();
    let mut group = String::new();
    let mut commands = Vec::new();
    for line in help.lines().take_while(|line| *line != "Options:") {
        if let Some(name) = line.strip_suffix(':') {
            name.clone_into(&mut group);
        } else if let Some((name, about)) = line.strip_prefix("  ").and_then(|l| l.split_once("  ")) {
            commands.push(vec![group.clone(), name.to_owned(), about.trim().to_owned()]);
        }
    }
    assert_eq!(table_rows(README, "| group | command | what it does |"), commands);
}

#[test]
fn settings_table_matches_config_list() {
    let answer = Sandbox::empty().proq(&["config", "list", "--json"]).json();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let settings: Vec<Vec<String>> = answer["settings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| {
            let who = if s["by_repository"] == true { "repository, you" } else { "you" };
            vec![text(&s["key"]), text(&s["form"]), text(&s["default"]), who.to_owned(), text(&s["about"])]
        })
        .collect();
    assert_eq!(table_rows(README, "| key | type | default | who may set it | what it does |"), settings);
}

#[test]
fn exit_codes_match_man_page() {
    let page = Sandbox::empty().proq(&["man"]).ok();
    let codes: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".B ")).collect();
    let rows = table_rows(README, "| code | meaning |");
    assert_eq!(rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), codes);
}

#[test]
fn readme_quick_start_is_run_by_ci() {
    assert!(code_lines(README).contains(&"cargo run --locked -- demo"));
    assert!(code_lines(README).contains(&"cargo test --locked"));
    let ci = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/run"));
    let ci = ci.expect("the tests run in the repository: a package from a registry comes without .ci");
    for line in ["step cargo test --locked", "    TMPDIR=$tmp target/debug/git-proq demo"] {
        assert!(ci.contains(&format!("\n{line}\n")), "{line}");
    }
}

#[test]
fn command_lines_in_documents_parse() {
    let sandbox = Sandbox::empty();
    let pages = [README, include_str!("../../hooks/README.md"), include_str!("../../ARCHITECTURE.md")];
    let lines: Vec<&str> = pages.into_iter().flat_map(code_lines).collect();
    let mut parsed = 0;
    for line in lines {
        let line = line.split("  ").find(|part| !part.is_empty()).unwrap_or_default();
        for part in line.trim_start_matches("$ ").split([';', '|', '>', '&']) {
            let Some(args) = part.trim().strip_prefix("git proq") else { continue };
            let mut args = split_words(args);
            let position = args.iter().position(|word| word == "--").unwrap_or(args.len());
            args.insert(position, "-h".to_owned());
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let out = sandbox.proq(&args);
            assert_eq!(out.code, 0, "{part}\n{}", out.stderr);
            parsed += 1;
        }
    }
    assert!(parsed > 25, "{parsed}");
}

/// Splits a command line as a shell does, as far as the documents need it.
fn split_words(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (n, part) in line.split('"').enumerate() {
        if n % 2 == 1 {
            out.push(part.to_owned());
        } else {
            out.extend(part.split_whitespace().map(ToOwned::to_owned));
        }
    }
    out
}

#[test]
fn transcript_matches_demo_output() {
    let sandbox = Sandbox::empty();
    let out = sandbox.proq(&["demo"]).ok();
    let (_, rest) = README.split_once("```text\n").unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    let mut printed = out.lines().map(mask_varying_words);
    for line in shown.lines() {
        let line = mask_varying_words(line);
        assert!(printed.any(|p| p == line), "the demo does not print this, or not there: {line}\n{out}");
    }
}

/// Returns a line with the words masked that differ between runs: commits, folders, ages.
fn mask_varying_words(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let bare = word.trim_matches(['(', ')']);
        let is_commit = bare.len() == 8 && bare.bytes().all(|b| b.is_ascii_hexdigit());
        let is_age = bare.strip_suffix('s').is_some_and(|n| n.parse::<u32>().is_ok());
        match word.split_once("/shop/") {
            Some((_, below)) => format!("SHOP/{below}"),
            None if is_commit => "COMMIT".to_owned(),
            None if is_age => "AGE".to_owned(),
            None => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn links_in_documents_resolve() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "SAFETY.md", "docs/promises.md", "hooks/README.md"]
            .map(|page| root.join(page))
            .into();
    pages.extend(design_pages());
    for page in pages {
        let (text, folder) = (std::fs::read_to_string(&page).unwrap(), page.parent().unwrap());
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let is_resolved = link.starts_with("https://") || folder.join(link).exists();
            assert!(is_resolved, "{}: {link}", page.display());
        }
    }
}

#[test]
fn promises_page_matches_marks_on_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = promise_table::page(root).unwrap_or_else(|faults| panic!("{faults}"));
    let old = std::fs::read_to_string(root.join("docs/promises.md")).unwrap();
    assert!(page == old, "docs/promises.md is out of date: cargo xtask promises");
}

/// Returns the paths of the pages in `docs/design`.
fn design_pages() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/design");
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The map is read in one sitting, and a design page is about one mechanism.
#[test]
fn architecture_and_design_pages_are_short() {
    let map = include_str!("../../ARCHITECTURE.md");
    assert!(map.len() <= 10_000, "ARCHITECTURE.md has {} bytes", map.len());
    let pages = design_pages();
    assert!(pages.len() > 20, "{}", pages.len());
    for page in pages {
        let size = std::fs::metadata(&page).unwrap().len();
        assert!((4_000..=10_000).contains(&size), "{} has {size} bytes", page.display());
        let link = format!("](docs/design/{})", page.file_name().unwrap().to_string_lossy());
        assert!(map.contains(&link), "ARCHITECTURE.md does not list {}", page.display());
    }
}

#[test]
fn finds_misplaced_and_missing_promise_marks() {
    const PROMISES: &str = "[[section]]\nid = 'a'\ntitle = 'A'\npromises = [['b', 'B.'], ['c', 'C.']]\n";
    let page = |code: &str| {
        let mut marks = promise_table::Marks::default();
        marks.scan("x", &code.replace("MARK", "/// Promise:"));
        marks.into_page(PROMISES)
    };
    let code = "MARK a/b, a/c\n#[test]\nfn one() {\n}\nmod m {\n    MARK a/b\n    #[test]\n    #[ignore = \"needs npm\"]\n    fn two() {\n    }\n}\n";
    let rows = "| `a/b` | B. | `x::one`, `x::m::two` (needs npm) |\n| `a/c` | C. | `x::one` |\n";
    let text = page(code).unwrap();
    assert!(text.ends_with(rows), "{text}");
    let on_no_test = code.to_owned() + "MARK a/b\nfn three() {\n}\n";
    assert_eq!(page(&on_no_test), Err("x, line 13: the mark above is on no test".to_owned()));
    let unknown = code.to_owned() + "MARK a/d\n#[test]\nfn four() {\n}\n";
    assert_eq!(page(&unknown), Err("docs/promises.toml has no promise a/d, which x::four names".to_owned()));
    let only_real_agents = code.replace("MARK a/b, a/c", "MARK a/c").replace("npm", "the real agents");
    assert_eq!(page(&only_real_agents), Err("no test that .ci/run runs is marked with a/b".to_owned()));
}

#[test]
fn safety_page_is_short() {
    assert!(include_str!("../../SAFETY.md").len() <= 6 * 1024);
}

#[test]
fn readme_names_minimum_rust_version() {
    let manifest: toml::Table = toml::from_str(include_str!("../../Cargo.toml")).unwrap();
    let oldest = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    assert!(README.contains(&format!("Rust {oldest} or newer")));
}

#[test]
fn every_dependency_has_a_reason() {
    let manifest: toml::Table = toml::from_str(include_str!("../../Cargo.toml")).unwrap();
    let all = manifest["workspace"]["dependencies"].as_table().unwrap();
    let mut expected: Vec<&str> =
        all.keys().map(String::as_str).filter(|name| !name.starts_with("proq-")).collect();
    let rows = table_rows(include_str!("../../docs/design/dependencies.md"), "| crate | why |");
    let mut named: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    expected.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, expected);
    assert!(rows.iter().all(|row| row[1].len() > 20));
}
