//! `cargo xtask dist`: builds the files of a release: archive, Debian package, checksums, Homebrew formula.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

mod archive;
mod release;

/// Version of git-proq, which all packages of the workspace share.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// File that lists the checksums of all others.
const CHECKSUMS: &str = "SHA256SUMS";

/// Build the files of a release
///
/// Writes `git-proq-VERSION-TARGET.tar.gz` with the program, its man pages and its completions, and
/// SHA256SUMS with the checksums of all files of this version in the output folder. On Linux the program is
/// linked statically. The same program and `SOURCE_DATE_EPOCH` (by default the time of the commit) give the
/// same bytes. No name of a folder of this machine is in the program.
#[derive(Debug, Clone, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Target triple; `host` is the compiler's own [default: static on Linux, `host` elsewhere]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Cargo profile
    #[arg(long, value_name = "NAME", default_value = "release")]
    profile: String,
    /// Use the program that an earlier build left
    #[arg(long)]
    no_build: bool,
    /// Also build a Debian package; needs cargo-deb
    #[arg(long)]
    deb: bool,
    /// Build nothing; write `git-proq.rb`, a Homebrew formula of the archives in the output folder, which are
    /// downloaded from URL (HOMEPAGE/releases/download/TAG)
    #[arg(long, value_name = "URL", conflicts_with_all = ["target", "no_build", "deb"])]
    formula: Option<String>,
    /// Output folder
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    out: PathBuf,
}

pub(crate) fn main(args: &Args) -> ExitCode {
    match write_files(args) {
        Ok(files) => {
            for file in files {
                println!("{}", file.display());
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write_files(args: &Args) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(&args.out)?;
    let mut files = match &args.formula {
        Some(url) => vec![write_formula(&args.out, url)?],
        None => build(args)?,
    };
    files.push(write_checksums(&args.out)?);
    Ok(files)
}

/// Builds the program, and writes its archive and, if requested, the Debian package.
fn build(args: &Args) -> io::Result<Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let host = host_triple()?;
    let default_target =
        if cfg!(target_os = "linux") { host.replace("-gnu", "-musl") } else { "host".to_owned() };
    let target = args.target.as_ref().unwrap_or(&default_target);
    let mut selection = vec!["--profile", &args.profile];
    if target != "host" {
        selection.extend(["--target", target]);
    }
    let target_dir = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    if !args.no_build {
        let build = ["build", "--locked", "--bin", "git-proq"];
        let mut command = cargo(&root);
        command.args(build).args(&selection);
        // The name that build scripts search for on aarch64 is not that of Debian's compiler.
        let variable = format!("CC_{}", target.replace('-', "_"));
        if *target == host.replace("-gnu", "-musl")
            && *target != host
            && std::env::var_os(&variable).is_none()
        {
            command.env(variable, "musl-gcc");
        }
        run(without_folder_names(&mut command, &root, &target_dir))?;
    }
    let profile_dir = if args.profile == "dev" { "debug" } else { &args.profile };
    let triple = if target == "host" { &host } else { target };
    let target_dir = if target == "host" { target_dir } else { target_dir.join(target) };
    let program = target_dir.join(profile_dir).join("git-proq");
    let time = source_time(&root)?;
    let stem = release::archive_stem(VERSION, triple);
    let mut files = vec![archive::write_archive(&root, &program, &args.out, &stem, time)?];
    if args.deb {
        let package = args.out.join(release::debian_package_name(VERSION, triple));
        let options = ["--package", "git-proq", "--no-build", "--no-strip", "--locked", "--output"];
        let mut command = cargo(&root);
        command.arg("deb").env("SOURCE_DATE_EPOCH", time.to_string());
        // An unoptimized program is several times as large.
        if args.profile == "dev" {
            command.args(["--compress-type=gz", "--compress-system"]);
        }
        run(command.args(options).arg(std::path::absolute(&package)?).args(&selection))?;
        files.push(package);
    }
    Ok(files)
}

/// Keeps the names of this machine's folders out of the program: in messages of panics, and in what C
/// compilers leave.
fn without_folder_names<'a>(command: &'a mut Command, root: &Path, target_dir: &Path) -> &'a mut Command {
    let home = std::env::home_dir().unwrap_or_default();
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let (mut rust_flags, mut c_flags) = (Vec::new(), Vec::new());
    for (folder, name) in [(cargo_home.as_path(), "cargo"), (root, "git-proq"), (target_dir, "target")] {
        rust_flags.push(format!("--remap-path-prefix={}={name}", folder.display()));
        c_flags.push(format!("-ffile-prefix-map={}={name}", folder.display()));
    }
    command.env("CARGO_ENCODED_RUSTFLAGS", rust_flags.join("\u{1f}")).env("CFLAGS", c_flags.join(" "))
}

/// Returns the time of the sources in seconds since 1970: `SOURCE_DATE_EPOCH`, or that of the commit.
fn source_time(root: &Path) -> io::Result<u64> {
    let text = std::env::var("SOURCE_DATE_EPOCH").or_else(|_| {
        let mut git = Command::new("git");
        let output = git.args(["log", "-1", "--format=%ct"]).current_dir(root).output()?;
        io::Result::Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    })?;
    text.trim().parse().map_err(|_| io::Error::other("no commit here; set SOURCE_DATE_EPOCH (in seconds)"))
}

/// Writes the checksums of the files of this version, in the form that `sha256sum --check` reads.
fn write_checksums(out: &Path) -> io::Result<PathBuf> {
    let prefixes = [format!("git-proq-{VERSION}-"), format!("git-proq_{VERSION}_")];
    let mut names = Vec::new();
    for entry in fs::read_dir(out)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            names.push(name);
        }
    }
    names.sort_unstable();
    let mut text = String::new();
    for name in names {
        text += &format!("{}  {name}\n", digest(&out.join(&name))?);
    }
    let path = out.join(CHECKSUMS);
    fs::write(&path, text)?;
    Ok(path)
}

/// Returns the SHA-256 checksum of a file in hexadecimal digits.
fn digest(file: &Path) -> io::Result<String> {
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha256);
    hasher.update(&fs::read(file)?);
    Ok(hasher.try_finalize().map_err(io::Error::other)?.to_string())
}

/// Writes a Homebrew formula for the archives of this version in `out`.
fn write_formula(out: &Path, url: &str) -> io::Result<PathBuf> {
    let template = include_str!("../../packaging/git-proq.rb.in");
    let formula = release::formula(template, VERSION, url, |archive| digest(&out.join(archive)).ok());
    if !formula.contains("sha256") {
        return Err(io::Error::other(format!("{} has no archive of version {VERSION}", out.display())));
    }
    let path = out.join("git-proq.rb");
    fs::write(&path, formula)?;
    Ok(path)
}

/// Returns the target triple that the compiler builds for by default.
fn host_triple() -> io::Result<String> {
    let output = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| io::Error::other("rustc names no host"))
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.current_dir(root);
    command
}

/// Runs a program to its end.
fn run(command: &mut Command) -> io::Result<()> {
    let name = command.get_program().display().to_string();
    let status =
        command.status().map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{name} ended with {status}"))),
    }
}
