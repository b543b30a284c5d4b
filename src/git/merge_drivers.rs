//! Owns that merge drivers find the checkout where git itself merges in a folder that holds attributes only.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Repo;

/// Files that git makes for a driver, in the folder in which it merges.
const FILES: &[char] = &['O', 'A', 'B'];

/// Options for a git that merges in `dir`, which stands in for the checkout: each driver runs in the checkout's top, with the
/// files that git made for it, and a path of an attributes file that begins there is one from there.
pub(super) fn settings_from(repo: &Repo, dir: &Path) -> Vec<OsString> {
    let snapshot = repo.gix.config_snapshot();
    let mut out = Vec::new();
    let mut set = |key: String, value: OsString| {
        let mut setting = OsString::from(format!("{key}="));
        setting.push(value);
        out.extend([OsString::from("-c"), setting]);
    };
    for section in snapshot.sections_by_name("merge").into_iter().flatten() {
        let name = section.header().subsection_name().map(ToString::to_string);
        // git takes a setting of a command line up to its first sign of that kind.
        let Some(name) = name.filter(|name| !name.contains('=')) else { continue };
        if let Some(driver) = section.body().value("driver") {
            set(format!("merge.{name}.driver"), in_checkout(&driver.to_string(), repo.home(), dir).into());
        }
    }
    let file = snapshot.string("core.attributesFile").map(|file| PathBuf::from(file.to_string()));
    // `~` and `%(prefix)` are git's to fill in.
    let is_from_top =
        |file: &PathBuf| !file.is_absolute() && !file.starts_with("~") && !starts_with_sign(file);
    if let Some(file) = file.filter(is_from_top) {
        set("core.attributesFile".to_owned(), repo.home().join(file).into_os_string());
    }
    out
}

fn starts_with_sign(file: &Path) -> bool {
    file.to_str().is_some_and(|text| text.starts_with(['~', '%']) || text.is_empty())
}

/// A driver's command line that changes to `top` first. Where it names a file that git made, it is named in `dir`.
fn in_checkout(driver: &str, top: &Path, dir: &Path) -> String {
    // Below the checkout the way there is of names of git-proq's own, which no shell takes apart.
    let files = match dir.strip_prefix(top) {
        Ok(below) => percent(&below.display().to_string()),
        Err(_) => percent(&quoted(dir)),
    };
    let mut line = String::new();
    let mut rest = driver.chars();
    while let Some(sign) = rest.next() {
        if sign != '%' {
            line.push(sign);
            continue;
        }
        match rest.next() {
            Some(letter) if FILES.contains(&letter) => {
                line.extend([files.as_str(), "/%", letter.encode_utf8(&mut [0; 4])]);
            }
            Some(other) => line.extend(['%', other]),
            None => line.push('%'),
        }
    }
    let top = percent(&quoted(top));
    format!("unset GIT_DIR GIT_WORK_TREE; cd {top} && {{\n{line}\n}}")
}

/// A path as a shell takes it for one word.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// A text in which git fills nothing in.
fn percent(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_brought_to_the_checkout_and_its_files_to_it() {
        let (top, below) = (Path::new("/re%po's"), Path::new("/re%po's/.git/proq/x"));
        assert_eq!(
            in_checkout("drv %A \"%B\" %P %%A", top, below),
            "unset GIT_DIR GIT_WORK_TREE; cd '/re%%po'\\''s' && {\ndrv .git/proq/x/%A \".git/proq/x/%B\" %P %%A\n}"
        );
        assert!(in_checkout("d %O", top, Path::new("/a b")).ends_with("{\nd '/a b'/%O\n}"));
    }
}
