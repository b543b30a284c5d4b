//! Owns nothing but the start: everything is in the library.

fn main() -> std::process::ExitCode {
    git_proq::main()
}
