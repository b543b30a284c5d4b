//! README, ARCHITECTURE.md, SAFETY.md, the design pages and the table of promises checked against the program
//! and its tests.

use std::path::{Path, PathBuf};

use proq_test_kit::Sandbox;

#[path = "../../xtask/src/promises/table.rs"]
mod promise_table;

#[path = "../../xtask/src/documents/generated.rs"]
mod generated;

#[path = "../../xtask/src/documents/picture.rs"]
mod picture;

const README: &str = include_str!("../../README.md");

/// Returns the text of a document by its path in the repository.
pub(crate) fn read_page(path: &str) -> String {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the paths of the pages of the guide.
pub(crate) fn guide_pages() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut pages: Vec<String> =
        entries.map(|name| format!("docs/guide/{}", name.to_string_lossy())).collect();
    pages.sort_unstable();
    pages
}

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
fn documents_repeat_what_the_program_prints() {
    let sandbox = Sandbox::empty();
    let mut command = sandbox.proq_command(&sandbox.root(), &["demo"]);
    command.env("CLICOLOR_FORCE", "1").env("TERM", "xterm");
    let demo = sandbox.output(command).ok();
    let printed = generated::Printed {
        man_page: sandbox.proq(&["man"]).ok(),
        settings: sandbox.proq(&["config", "list", "--json"]).json(),
        demo: picture::without_colors(&demo),
    };
    let mut count = 0;
    let mut is_same = |page: &str, new: String| {
        let old = read_page(page);
        count += old.matches("<!-- generated: ").count();
        assert!(
            generated::mask(&old) == generated::mask(&new),
            "{page} is out of date: cargo xtask documents\n{new}"
        );
    };
    for page in generated::PAGES {
        is_same(page, generated::with_new_parts(&read_page(page), &printed).unwrap());
    }
    is_same(generated::PICTURE, picture::svg(&demo));
    assert_eq!(count, 4);
    let commands = read_page("docs/guide/commands.md");
    assert!(commands.matches("\n| `").count() > 40, "{commands}");
    assert!(!table_rows(&commands, "| code | meaning |").is_empty());
    let settings = printed.settings["settings"].as_array().unwrap().len();
    assert_eq!(read_page("docs/guide/settings.md").matches("\n| `").count(), settings);
}

#[test]
fn generated_parts_are_replaced_and_masked() {
    let demo = "$ git proq list\n  LANE  AGE\n\n$ git log\n$ git proq preview add-payments\n\
                $ git proq preview --back\n$ git proq merge --all\n  landed\n";
    let mut printed = generated::Printed {
        man_page: String::new(),
        settings: serde_json::json!({}),
        demo: demo.to_owned(),
    };
    let page = "a\n<!-- generated: demo -->\nold\n<!-- end -->\nb\n";
    let shown = demo.replace("\n\n$ git log", "").trim_end().to_owned();
    let new = format!("a\n<!-- generated: demo -->\n\n```text\n{shown}\n```\n\n<!-- end -->\nb\n");
    assert_eq!(generated::with_new_parts(page, &printed), Ok(new));
    assert!(generated::with_new_parts("<!-- generated: demo -->\n", &printed).is_err());
    assert!(generated::with_new_parts("<!-- generated: x -->\n<!-- end -->", &printed).is_err());
    printed.demo = demo.replace("--back", "--return");
    assert!(generated::with_new_parts(page, &printed).is_err());
    let masked = generated::mask("landed a (0123abcd)  /tmp/x/shop/b  3s, 12 files");
    assert_eq!(masked, "landed a (COMMIT) SHOP/b AGE, 12 files");
}

/// What a newcomer and a contributor begin with.
#[test]
fn first_commands_are_run_by_ci() {
    assert!(code_lines(README).contains(&"git proq demo"));
    assert!(code_lines(&read_page("CONTRIBUTING.md")).contains(&"cargo test --locked"));
    let ci = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/run"));
    let ci = ci.expect("the tests run in the repository: a package from a registry comes without .ci");
    for line in ["step cargo test --locked", "    TMPDIR=$tmp target/debug/git-proq demo"] {
        assert!(ci.contains(&format!("\n{line}\n")), "{line}");
    }
}

/// Returns the number of words of each sentence of a page, and of each paragraph, in this order. Tables, code,
/// headings, comments and link targets do not count.
fn word_counts(page: &str) -> (Vec<usize>, Vec<usize>) {
    let (mut sentences, mut paragraphs) = (Vec::new(), Vec::new());
    let (mut is_code, mut is_comment) = (false, false);
    let mut paragraph = String::new();
    for line in page.lines().chain([""]) {
        let text = line.trim();
        is_comment |= text.starts_with("<!--");
        is_code ^= text.starts_with("```");
        let is_list_item =
            text.starts_with("- ") || text.split_once(". ").is_some_and(|(n, _)| n.parse::<u8>().is_ok());
        let is_prose = !is_code && !is_comment && !text.starts_with(['#', '|', '!', '<', '`']);
        is_comment &= !text.ends_with("-->");
        if !is_prose && !text.starts_with('`') || text.is_empty() || is_list_item {
            let words =
                |text: &str| text.split_whitespace().filter(|w| w.contains(char::is_alphanumeric)).count();
            let text = std::mem::take(&mut paragraph);
            paragraphs.push(words(&text));
            sentences.extend(text.split_inclusive(". ").map(words));
        }
        if is_prose || !is_code && text.starts_with('`') && !text.starts_with("```") {
            paragraph += &format!("{text} ");
        }
    }
    sentences.retain(|count| *count > 0);
    (sentences, paragraphs)
}

fn mean(counts: &[usize]) -> usize {
    counts.iter().sum::<usize>().div_ceil(counts.len().max(1))
}

#[test]
fn readme_and_guide_are_easy_to_read() {
    let words = README.split_whitespace().count();
    assert!(
        README.lines().count() <= 220 && words <= 1_300,
        "{} lines, {words} words",
        README.lines().count()
    );
    let (sentences, paragraphs) = word_counts(README);
    assert!(mean(&sentences) < 20 && paragraphs.iter().max() <= Some(&80), "{sentences:?} {paragraphs:?}");
    let tools = table_rows(README, "| tool | choose it for | what is different here |");
    assert_eq!(tools.len(), 6);
    for cell in tools.iter().flatten() {
        assert!(cell.split_whitespace().count() <= 8, "{cell}");
    }
    for page in guide_pages() {
        let (sentences, paragraphs) = word_counts(&read_page(&page));
        let longest = paragraphs.iter().max().copied().unwrap_or_default();
        assert!(mean(&sentences) < 25 && longest <= 80, "{page}: {} {longest}", mean(&sentences));
    }
    let counts = word_counts("# One two\n\nA b c. D e\n`f`.\n\n- g h\n- i\n\n```sh\nj k l\n```\n| m |\n");
    assert_eq!(counts.0, [3, 3, 2, 1]);
}

/// Each page of the guide is in the book, and nothing else is named there.
#[test]
fn book_lists_every_page() {
    let summary = read_page("docs/SUMMARY.md");
    let mut listed: Vec<String> = links(&summary).map(|link| format!("docs/{link}")).collect();
    let design = design_pages().into_iter();
    let design = design.map(|path| format!("docs/design/{}", path.file_name().unwrap().to_string_lossy()));
    let others = ["docs/glossary.md", "docs/promises.md"].map(str::to_owned);
    let mut expected: Vec<String> = guide_pages().into_iter().chain(design).chain(others).collect();
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
}

#[test]
fn command_lines_in_documents_parse() {
    let sandbox = Sandbox::empty();
    let pages = ["README.md", "hooks/README.md", "ARCHITECTURE.md"].map(str::to_owned);
    let pages: Vec<String> = pages.into_iter().chain(guide_pages()).map(|page| read_page(&page)).collect();
    let blocks = pages.iter().flat_map(|page| code_lines(page)).map(str::to_owned);
    let lines: Vec<String> = blocks.chain(pages.iter().flat_map(|page| inline_code(page))).collect();
    let mut parsed = 0;
    for line in lines {
        let line = line.split(" # ").next().unwrap_or_default();
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
    assert!(parsed > 200, "{parsed}");
}

/// Returns what stands between code marks in the text of a page. `COMMAND` stands for any command.
fn inline_code(page: &str) -> Vec<String> {
    let mut is_block = false;
    let lines = page.lines().filter(|line| {
        is_block ^= line.trim_start().starts_with("```");
        !is_block && !line.trim_start().starts_with("```")
    });
    let text = lines.collect::<Vec<_>>().join(" ");
    text.split('`').skip(1).step_by(2).filter(|code| !code.contains("COMMAND")).map(str::to_owned).collect()
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

/// Returns the targets of the links of a page, pictures included.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// Returns the name by which a heading can be linked to, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let is_kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(is_kept)
        .collect::<String>()
        .replace(' ', "-")
}

#[test]
fn links_in_documents_resolve() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = ["README.md", "ARCHITECTURE.md", "SAFETY.md", "CONTRIBUTING.md", "hooks/README.md"];
    let docs = ["docs/promises.md", "docs/glossary.md", "docs/SUMMARY.md"];
    let pages = pages.into_iter().chain(docs).map(str::to_owned).chain(guide_pages());
    for page in pages.map(|page| root.join(page)).chain(design_pages()) {
        let (text, folder) = (std::fs::read_to_string(&page).unwrap(), page.parent().unwrap());
        for link in links(&text).filter(|link| !link.starts_with("https://")) {
            let (file, wanted) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { folder.join(file) };
            assert!(target.exists(), "{}: {link}", page.display());
            if !wanted.is_empty() {
                let text = std::fs::read_to_string(target).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                assert!(headings.any(|line| anchor(line) == wanted), "{}: {link}", page.display());
            }
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
