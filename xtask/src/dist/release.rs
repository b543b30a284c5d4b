//! Names of the files of a release, and its Homebrew formula. Tests read this file, too.

/// Platform that a release has a program for.
pub(crate) struct Platform {
    /// Target triple of the compiler.
    pub(crate) triple: &'static str,
    /// Homebrew's name of the operating system.
    pub(crate) system: &'static str,
    /// Homebrew's name of the processor.
    pub(crate) processor: &'static str,
}

/// The platforms of a release. On Linux the program is linked statically, so that it runs on every
/// distribution.
pub(crate) const PLATFORMS: [Platform; 4] = [
    Platform { triple: "aarch64-apple-darwin", system: "macos", processor: "arm" },
    Platform { triple: "x86_64-apple-darwin", system: "macos", processor: "intel" },
    Platform { triple: "aarch64-unknown-linux-musl", system: "linux", processor: "arm" },
    Platform { triple: "x86_64-unknown-linux-musl", system: "linux", processor: "intel" },
];

/// Returns the name of the archive of a target, which is also that of its only folder, without `.tar.gz`.
pub(crate) fn archive_stem(version: &str, triple: &str) -> String {
    format!("git-proq-{version}-{triple}")
}

/// Returns the name of the Debian package of a target.
pub(crate) fn debian_package_name(version: &str, triple: &str) -> String {
    let architecture = match triple.split('-').next() {
        Some("x86_64") => "amd64",
        Some("aarch64") => "arm64",
        other => other.unwrap_or(triple),
    };
    format!("git-proq_{version}_{architecture}.deb")
}

/// Fills a template of a Homebrew formula in. The archives are below `url`, which is
/// `HOMEPAGE/releases/download/TAG`; `digest_of` returns the SHA-256 checksum of one by its name, if it
/// exists.
pub(crate) fn formula(
    template: &str,
    version: &str,
    url: &str,
    digest_of: impl Fn(&str) -> Option<String>,
) -> String {
    let url = url.trim_end_matches('/');
    let homepage = url.split("/releases/").next().unwrap_or(url);
    let mut blocks = Vec::new();
    for Platform { triple, system, processor } in PLATFORMS {
        let archive = format!("{}.tar.gz", archive_stem(version, triple));
        if let Some(digest) = digest_of(&archive) {
            blocks.push(format!(
                "  on_{system} do\n    on_{processor} do\n      url \"{url}/{archive}\"\n      \
                 sha256 \"{digest}\"\n    end\n  end\n"
            ));
        }
    }
    template
        .replace("@HOMEPAGE@", homepage)
        .replace("@VERSION@", version)
        .replace("@ARCHIVES@", blocks.join("\n").trim_end())
}
