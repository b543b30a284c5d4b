//! Source files of this repository: their code without comments and strings, and the paths that it names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

pub(crate) struct Source {
    path: PathBuf,
    pub(crate) text: String,
    /// The text without comments and string contents.
    pub(crate) code: String,
    /// The code without what only tests compile.
    pub(crate) production: String,
    /// The comments alone. Like `code`, it has the lines of the text.
    pub(crate) comments: String,
}

impl Source {
    pub(crate) fn new(path: PathBuf, text: String) -> Source {
        let (code, comments) = split_code_and_comments(&text);
        let production = without_test_items(&code);
        Source { path, text, code, production, comments }
    }

    pub(crate) fn relative_path(&self) -> String {
        self.path.strip_prefix(root()).unwrap().display().to_string()
    }

    /// Returns the path below the repository without `.rs`.
    fn module_path(&self) -> String {
        self.relative_path().trim_end_matches(".rs").to_owned()
    }

    /// Returns whether the file is one of these modules, or in the folder of one.
    pub(crate) fn is_one_of(&self, modules: &BTreeSet<String>) -> bool {
        let path = self.module_path() + "/";
        path.match_indices('/').any(|(end, _)| modules.contains(&path[..end]))
    }

    /// Returns the string literals of the production code.
    pub(crate) fn string_literals(&self) -> Vec<StringLiteral> {
        let lines = self.code.lines().zip(self.production.lines());
        let is_production: Vec<bool> = lines.map(|(code, production)| code == production).collect();
        let (mut out, mut before, mut line, mut rest) = (Vec::new(), String::new(), 0, &*self.text);
        while let Some(c) = rest.chars().next() {
            let literal_end =
                raw_string_end(rest).or_else(|| rest.starts_with('"').then(|| string_end(rest)));
            let end = if let Some(end) = literal_end {
                if is_production[line] {
                    let text = rest[..end].trim_matches(['r', '#']);
                    let text = text[1..text.len() - 1].to_owned();
                    out.push(StringLiteral { before: before.clone(), text });
                }
                end
            } else if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("'\"'") {
                3
            } else if c == ';' {
                before.clear();
                1
            } else {
                before.extend((!c.is_whitespace()).then_some(c));
                c.len_utf8()
            };
            line += rest[..end].matches('\n').count();
            rest = &rest[end..];
        }
        out
    }

    /// Returns the path below the `src` folder of the file's crate.
    pub(crate) fn path_in_crate(&self) -> String {
        self.relative_path().split_once("src/").unwrap().1.to_owned()
    }

    /// Returns the top-level module of the file: `lane` for `crates/lib/src/lane/mod.rs`, `facade` for
    /// `crates/lib/src/facade.rs`.
    pub(crate) fn top_module(&self) -> String {
        self.path_in_crate().split('/').next().unwrap().trim_end_matches(".rs").to_owned()
    }
}

/// A string literal of production code.
pub(crate) struct StringLiteral {
    /// The code before it, after the last semicolon, without white space, comments and strings.
    pub(crate) before: String,
    /// The literal as it is written, without its quotes.
    pub(crate) text: String,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All sources of this repository by path. Most rules read them, and splitting them takes most of a rule's
/// time.
static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
    let mut out = Vec::new();
    let mut folders: Vec<PathBuf> = product_folders().iter().map(|folder| root().join(folder)).collect();
    folders.extend(["tests", "xtask/src", "examples"].map(|folder| root().join(folder)));
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                out.push(Source::new(path, text));
            }
        }
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    out
});

/// Returns the sources below a folder, which is given from the top of the repository.
pub(crate) fn sources(below: &str) -> Vec<&'static Source> {
    let folder = root().join(below);
    let out: Vec<&Source> = SOURCES.iter().filter(|source| source.path.starts_with(&folder)).collect();
    assert!(!out.is_empty(), "no sources below {below}");
    out
}

/// Returns the source folder of each crate of the product: the program's and those of the members.
pub(crate) fn product_folders() -> Vec<String> {
    let members = std::fs::read_dir(root().join("crates")).unwrap().flatten();
    let mut out: Vec<String> =
        members.map(|member| format!("crates/{}/src", member.file_name().to_string_lossy())).collect();
    out.sort();
    out.push("src".to_owned());
    out
}

/// Returns the sources of all crates of the product.
pub(crate) fn product_sources() -> Vec<&'static Source> {
    product_folders().iter().flat_map(|folder| sources(folder)).collect()
}

/// Returns the paths, without `.rs`, of the modules of the product that only tests compile.
pub(crate) fn test_files() -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for source in product_sources() {
        let path = source.module_path();
        let folder =
            ["/lib", "/main", "/mod"].iter().find_map(|name| path.strip_suffix(name)).unwrap_or(&path);
        for item in source.code.split("#[cfg(test)]").skip(1) {
            let module = item.trim_start().strip_prefix("mod ").and_then(|item| item.split_once(';'));
            let module = module.filter(|(module, _)| module.chars().all(|c| c.is_alphanumeric() || c == '_'));
            out.extend(module.map(|(module, _)| format!("{folder}/{module}")));
        }
    }
    out
}

/// Returns the sources of the product, its tests, and the repository's own tasks.
pub(crate) fn all_sources() -> Vec<&'static Source> {
    let others = ["tests", "xtask/src"].into_iter().flat_map(sources);
    product_sources().into_iter().chain(others).collect()
}

/// Splits a text into its code, without the contents of strings, and its comments. Both keep all line breaks.
pub(crate) fn split_code_and_comments(text: &str) -> (String, String) {
    let mut code = String::new();
    let mut comments = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            comments.push_str(&rest[..end]);
            end
        } else if let Some(inner) = raw_string_end(rest) {
            inner
        } else if rest.starts_with('"') {
            string_end(rest)
        } else if rest.starts_with("'\"'") || rest.starts_with("b'\"'") {
            rest.find("'\"'").unwrap() + 3
        } else {
            code.push(c);
            comments.extend((c == '\n').then_some(c));
            rest = &rest[c.len_utf8()..];
            continue;
        };
        let line_breaks = rest[..skip].matches('\n').count();
        code.extend(std::iter::repeat_n('\n', line_breaks));
        comments.extend(std::iter::repeat_n('\n', line_breaks));
        rest = &rest[skip..];
    }
    (code, comments)
}

/// Returns code with every item behind `#[cfg(test)]` left out. It keeps all line breaks.
pub(crate) fn without_test_items(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::new();
    let mut rest = code;
    while let Some((before, marked)) = rest.split_once(MARK) {
        let (item, after) = marked.split_at(item_end(marked));
        out.push_str(before);
        out.extend(std::iter::repeat_n('\n', item.matches('\n').count()));
        rest = after;
    }
    out + rest
}

/// Returns where the first item of a text ends: after its `;` or its last brace, or, for a field, a variant
/// or an arm, after its comma.
fn item_end(text: &str) -> usize {
    let mut open = 0;
    let mut angles = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' if open == 0 => return at,
            ')' | ']' => open -= 1,
            '}' => {
                open -= 1;
                let is_expression = text[at + 1..].starts_with(['.', ',', ';', ')']);
                if open == 0 && !is_expression {
                    return at + 1;
                }
            }
            '<' if open == 0 => angles += 1,
            '>' if open == 0 && !text[..at].ends_with(['-', '=']) => angles -= 1,
            ';' if open == 0 => return at + 1,
            ',' if open == 0 && angles == 0 => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn raw_string_end(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('r')?;
    let hashes = inner.len() - inner.trim_start_matches('#').len();
    let body = inner[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(1 + hashes + 1 + body.find(&end)? + end.len())
}

fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns every path that code names by `crate::`, with groups expanded: `git::Oid`, `lane::Project` …
pub(crate) fn crate_paths(code: &str) -> BTreeSet<String> {
    paths_after(code, "crate::")
}

/// Returns every path that follows a prefix (`crate::`, `super::`, `use `) in code, with groups expanded.
pub(crate) fn paths_after(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        if !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            collect_paths(&code[at + prefix.len()..], "", &mut out);
        }
    }
    out
}

/// Reads one path, or a `{…}` group of paths, into `out`, and returns the remaining text.
fn collect_paths<'a>(mut text: &'a str, prefix: &str, out: &mut BTreeSet<String>) -> &'a str {
    if let Some(inner) = text.strip_prefix('{') {
        text = inner;
        loop {
            text = collect_paths(text.trim_start(), prefix, out).trim_start();
            match text.strip_prefix(',') {
                Some(rest) if !rest.trim_start().starts_with('}') => text = rest,
                other => return other.unwrap_or(text).trim_start().strip_prefix('}').unwrap_or(text),
            }
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let path = if prefix.is_empty() { word.to_owned() } else { format!("{prefix}::{word}") };
    if let Some(rest) = rest.strip_prefix("::") {
        return collect_paths(rest, &path, out);
    }
    out.insert(path);
    rest
}

#[test]
fn expands_grouped_imports() {
    let (code, _) = split_code_and_comments(
        "use crate::git::{self, Oid, a::{B, c::D}};\nuse crate::note; // crate::cli\nlet x = crate::lane::f(\"crate::cli\");",
    );
    let found: Vec<String> = crate_paths(&code).into_iter().collect();
    assert_eq!(found, ["git::Oid", "git::a::B", "git::a::c::D", "git::self", "lane::f", "note"]);
}

#[test]
fn leaves_out_test_items_only() {
    let code = "use a;\n#[cfg(test)]\nuse b;\nstruct S {\n    #[cfg(test)]\n    c: HashMap<u8, d>,\n    e: f,\n}\n\
                #[cfg(test)]\nfn g<H, I>(x: [u8; 2]) -> J {\n    k();\n}\nfn l() {}\n#[cfg(test)]\nmod tests {}\nfn m() {}\n";
    let left: String = without_test_items(code).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(left, "use a; struct S { e: f, } fn l() {} fn m() {}");
}
