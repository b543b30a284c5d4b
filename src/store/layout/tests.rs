//! Tests of the store's paths.

use super::*;

#[test]
fn private_dir_needs_existing_repository() {
    let dir = tempfile::tempdir().unwrap();
    let gone = Layout::new(&dir.path().join("gone/.git"));
    assert!(create_private_dir(&gone.lane("x")).is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let there = Layout::new(dir.path());
    create_private_dir(&there.lane("x")).unwrap();
    create_private_dir(&there.lane("x")).unwrap();
    create_private_dir(&dir.path().join("a/b/c")).unwrap();
    assert!(there.lane("x").is_dir() && dir.path().join("a/b/c").is_dir());
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert!(create_private_dir(&dir.path().join("file")).is_err());
}
