//! What is published: the files of the packages, and that metadata, formula and release workflow agree with
//! what `cargo xtask dist` makes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use proq_plan::source_node::{NodeValue, SourceNode};
use proq_plan::yaml;

use super::readme::read_page;

#[path = "../../xtask/src/dist/release.rs"]
mod release;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn manifest(path: &str) -> toml::Table {
    read_page(path).parse().unwrap()
}

/// Returns the folders of the packages that are published.
fn published() -> Vec<PathBuf> {
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    [root().to_owned()].into_iter().chain(crates.map(|entry| entry.unwrap().path())).collect()
}

#[test]
fn packages_have_only_what_belongs_there() {
    let mut wrong = Vec::new();
    for folder in published() {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["package", "--list", "--offline", "--allow-dirty", "--quiet", "--package"]);
        let path = folder.join("Cargo.toml");
        let manifest = manifest(path.strip_prefix(root()).unwrap().to_str().unwrap());
        cargo.arg(manifest["package"]["name"].as_str().unwrap()).current_dir(root());
        let output = cargo.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("\nsrc/") && text.contains("\nCargo.toml\n"), "{text}");
        let is_document = |file: &str| {
            let names = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "build.rs"];
            folder == root()
                && (names.contains(&file) || file.starts_with("man/") || file.starts_with("completions/"))
        };
        let belongs = |file: &&str| {
            let is_cargos = file.starts_with("Cargo.") || *file == ".cargo_vcs_info.json";
            is_cargos || file.starts_with("src/") || is_document(file)
        };
        wrong.extend(text.lines().filter(|file| !belongs(file)).map(|file| folder.join(file)));
    }
    assert_eq!(wrong, Vec::<PathBuf>::new());
}

/// Returns a text of the metadata of binstall with its placeholders replaced.
fn filled(metadata: &toml::Value, key: &str, target: &str) -> String {
    let filling = [("repo", "HOME"), ("version", VERSION), ("target", target), ("bin", "git-proq")];
    let text = metadata[key].as_str().unwrap().replace("{ binary-ext }", "");
    filling.iter().fold(text, |text, (name, value)| text.replace(&format!("{{ {name} }}"), value))
}

#[test]
fn binstall_downloads_archives_of_releases() {
    let manifest = manifest("Cargo.toml");
    let metadata = &manifest["package"]["metadata"]["binstall"];
    let overrides = metadata["overrides"].as_table().unwrap();
    let triples = release::PLATFORMS.iter().map(|platform| (platform.triple, platform.triple));
    let others = overrides.iter().map(|(triple, _)| triple.as_str());
    let others = others.map(|triple| {
        (triple, release::PLATFORMS.iter().find(|p| p.triple.replace("musl", "gnu") == triple))
    });
    let others = others.map(|(triple, platform)| (triple, platform.unwrap().triple));
    let mut count = 0;
    for (triple, served_by) in triples.chain(others) {
        let metadata = overrides.get(triple).unwrap_or(metadata);
        let stem = release::archive_stem(VERSION, served_by);
        let url = format!("HOME/releases/download/v{VERSION}/{stem}.tar.gz");
        assert_eq!(filled(metadata, "pkg-url", triple), url);
        assert_eq!(filled(metadata, "bin-dir", triple), format!("{stem}/git-proq"));
        count += 1;
    }
    assert_eq!(count, 6);
}

/// Returns the sections of the man pages, such as `1`.
fn man_sections() -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join("man")).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| path.extension().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn debian_package_has_all_man_pages_and_completions() {
    let manifest = manifest("Cargo.toml");
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    let sources: Vec<&str> = assets.iter().map(|asset| asset[0].as_str().unwrap()).collect();
    for section in man_sections() {
        assert!(sources.contains(&format!("man/*.{section}").as_str()), "{section}");
    }
    for file in sources.iter().filter(|file| !file.contains('*') && !file.starts_with("target/")) {
        assert!(root().join(file).is_file(), "{file}");
    }
    assert_eq!(sources.iter().filter(|file| file.starts_with("completions/")).count(), 3);
    assert_eq!(
        release::debian_package_name("1.2.3", "x86_64-unknown-linux-musl"),
        "git-proq_1.2.3_amd64.deb"
    );
}

#[test]
fn formula_has_archive_of_each_platform() {
    let template = read_page("packaging/git-proq.rb.in");
    let url = format!("https://example.org/git-proq/releases/download/v{VERSION}");
    let formula = release::formula(&template, VERSION, &url, |archive| Some(format!("digest of {archive}")));
    for platform in release::PLATFORMS {
        let archive = format!("{}.tar.gz", release::archive_stem(VERSION, platform.triple));
        let block = format!(
            "  on_{} do\n    on_{} do\n      url \"{url}/{archive}\"\n      \
             sha256 \"digest of {archive}\"\n    end\n  end\n",
            platform.system, platform.processor
        );
        assert!(formula.contains(&block), "{formula}");
    }
    assert!(
        formula.contains("\n  homepage \"https://example.org/git-proq\"\n") && !formula.contains('@'),
        "{formula}"
    );
    for section in man_sections() {
        assert!(formula.contains(&format!("man{section}.install Dir[\"man/*.{section}\"]")), "{section}");
    }
    for line in formula.lines().filter(|line| line.contains("completions/")) {
        assert!(
            root().join(line.split('"').find(|part| part.starts_with("completions/")).unwrap()).is_file()
        );
    }
    // A block of Ruby that is not ended is the fault that a template of this kind can have.
    let opened = formula.lines().filter(|line| {
        line.trim_start().starts_with("class ")
            || line.trim_start().starts_with("def ")
            || line.ends_with(" do")
    });
    assert_eq!(opened.count(), formula.lines().filter(|line| line.trim() == "end").count());
    let partial = release::formula(&template, VERSION, &url, |name| name.contains("musl").then(String::new));
    assert!(partial.contains("on_linux") && !partial.contains("on_macos"));
}

/// Returns all texts in a YAML file, with those of the keys before them.
fn texts(node: &SourceNode, key: &str, out: &mut Vec<(String, String)>) {
    match &node.value {
        NodeValue::Text(text) => out.push((key.to_owned(), text.clone())),
        NodeValue::List(items) => items.iter().for_each(|item| texts(item, key, out)),
        NodeValue::Table(entries) => entries.iter().for_each(|entry| texts(&entry.node, &entry.key, out)),
        _ => {}
    }
}

#[test]
fn workflows_are_valid_and_build_each_platform() {
    let mut found = Vec::new();
    for name in ["ci.yml", "release.yml"] {
        let path = format!(".github/workflows/{name}");
        let tree = yaml::read(&Arc::from(path.as_str()), &read_page(&path)).unwrap().unwrap();
        assert!(tree.get("jobs").is_some() && tree.get("on").is_some(), "{path}");
        texts(&tree, "", &mut found);
    }
    let mut targets: Vec<&str> =
        found.iter().filter(|(key, _)| key == "target").map(|(_, text)| text.as_str()).collect();
    let mut expected = release::PLATFORMS.map(|platform| platform.triple);
    targets.sort_unstable();
    expected.sort_unstable();
    assert_eq!(targets, expected);
    let commands: Vec<&str> =
        found.iter().filter(|(key, _)| key == "run").map(|(_, text)| text.as_str()).collect();
    assert!(commands.iter().any(|run| run.contains("-p xtask -- dist --target ${{ matrix.target }}")));
    assert!(commands.iter().any(|run| run.contains("-p xtask -- dist --formula \"$URL\"")));
    // The checks of each commit and a release use the same builder of Debian packages.
    let pinned = commands.iter().find_map(|run| run.split("cargo-deb@").nth(1)).unwrap();
    let ci = read_page(".ci/run");
    assert!(ci.contains(&format!("cargo-deb@{} ", pinned.trim())), "{pinned}");
}
