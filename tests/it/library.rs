//! Owns the test of the library's face: its example, run as a program.

use super::support::Sandbox;

#[test]
fn the_example_lands_two_lanes() {
    let sandbox = Sandbox::new();
    // Beside the test binaries, since `cargo test` builds the examples too.
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_git-proq"));
    let example = program.with_file_name("examples").join("land");
    let mut command = sandbox.command(example, &sandbox.repo);
    command.arg(&sandbox.repo).arg(program);
    let out = sandbox.output(command);
    insta::assert_snapshot!(out.shown(), @r"
    one: done
    two: done
    one Landed on main
    two Landed on main
    --- code 0
    ");
    assert_eq!(sandbox.read("one.txt"), "1\n");
    assert_eq!(sandbox.read("two.txt"), "2\n");
}
