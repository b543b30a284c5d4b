//! Entry point of the program `git-proq`; all code is in the library.

fn main() -> std::process::ExitCode {
    git_proq::main()
}
