//! Owns the tests of where things lie.

use super::*;

#[test]
fn folders_are_made_in_a_repository_that_is_there_only() {
    let dir = tempfile::tempdir().unwrap();
    let gone = Layout::new(&dir.path().join("gone/.git"));
    assert!(make_private(&gone.lane("x")).is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let there = Layout::new(dir.path());
    make_private(&there.lane("x")).unwrap();
    make_private(&there.lane("x")).unwrap();
    make_private(&dir.path().join("a/b/c")).unwrap();
    assert!(there.lane("x").is_dir() && dir.path().join("a/b/c").is_dir());
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert!(make_private(&dir.path().join("file")).is_err());
}
