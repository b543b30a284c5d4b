//! A short run of generated merges, whose in-process result is the tree that git makes; and regression tests
//! for what long runs have found.
//!
//! Every run is the same; `PROQ_TEST_SEED=random cargo test generated_merges` tries other merges, `cargo
//! xtask merges fuzz` runs many.

use proq_test_kit::{Sandbox, random_seed};

use super::histories::dice;

#[path = "../../xtask/src/merging/mod.rs"]
#[allow(dead_code, unused_imports, reason = "what a long run counts, a short one does not ask for")]
mod merging;

/// How many merges there are: four repositories, each with its own setup.
const COUNT: usize = 4 * merging::CHUNK;

/// Promise: operations/same-tree-as-git
#[test]
fn generated_merges_match_git() {
    let seed = random_seed();
    println!("PROQ_TEST_SEED={seed}");
    let dir = tempfile::Builder::new().prefix("proq-test-").tempdir().unwrap();
    let mut sum = merging::Tally::default();
    for start in (0..COUNT).step_by(merging::CHUNK) {
        let place = merging::ChunkSetup { dir: &dir.path().join(start.to_string()), whole: 40 };
        let found = merging::compare_chunk(place, seed, start..start + merging::CHUNK).unwrap();
        if let Some((number, difference)) = found.differences.first() {
            panic!(
                "merge {number} differs: {difference}\nagain: cargo xtask merges fuzz --seed {seed} --only {number} --keep"
            );
        }
        sum += found.tally;
    }
    assert_eq!(sum.merges, COUNT);
    assert!(sum.exact * 5 > COUNT, "too few are merged in process to say anything: {sum:?}");
    assert!(sum.unknown * 20 < COUNT, "git came to no end too often: {sum:?}");
}

#[test]
fn lane_attributes_apply_when_merges_renormalize() {
    let sandbox = Sandbox::new();
    sandbox.sh("git config merge.renormalize true; seq 9 > list; git add .; git commit -qm list");
    sandbox.lane_with_commit("x", "echo '* merge=union' > .gitattributes; sed -i 's/^5$/lane/' list");
    sandbox.sh("sed -i 's/^5$/base/' list; git commit -qam base");
    let wanted = sandbox.git(&["merge-tree", "--write-tree", "main", "proq/x"]);
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "main^{tree}"]), wanted);
    assert_eq!(sandbox.read("list"), "1\n2\n3\n4\nbase\nlane\n6\n7\n8\n9\n");
}
