//! Owns a short run of made-up merges: what is merged in process is the tree that git makes; and the tests of what long
//! runs have found.
//!
//! Every run is the same; `PROQ_TEST_SEED=random cargo test made_up` looks further, `cargo xtask merges fuzz` looks far.

use super::histories::dice;
use super::support::{self, Sandbox};

#[path = "../../xtask/src/merging/mod.rs"]
#[allow(dead_code, unused_imports, reason = "what a long run counts, a short one does not ask for")]
mod merging;

/// How many merges there are: four repositories, each set up in its own way.
const COUNT: usize = 4 * merging::CHUNK;

#[test]
fn made_up_merges_are_as_git_makes_them() {
    let seed = support::seed();
    println!("PROQ_TEST_SEED={seed}");
    let dir = tempfile::Builder::new().prefix("proq-test-").tempdir().unwrap();
    let mut sum = merging::Tally::default();
    for start in (0..COUNT).step_by(merging::CHUNK) {
        let place = merging::Place { dir: &dir.path().join(start.to_string()), whole: 40 };
        let found = merging::hold(place, seed, start..start + merging::CHUNK).unwrap();
        if let Some((number, what)) = found.differences.first() {
            panic!(
                "merge {number} differs: {what}\nagain: cargo xtask merges fuzz --seed {seed} --only {number} --keep"
            );
        }
        sum += found.tally;
    }
    assert_eq!(sum.merges, COUNT);
    assert!(sum.exact * 5 > COUNT, "too few are merged in process to say anything: {sum:?}");
    assert!(sum.unknown * 20 < COUNT, "git came to no end too often: {sum:?}");
}

#[test]
fn attributes_that_a_lane_brings_count_where_merges_renormalize() {
    let sandbox = Sandbox::new();
    sandbox.sh("git config merge.renormalize true; seq 9 > list; git add .; git commit -qm list");
    sandbox.lane_of("x", "echo '* merge=union' > .gitattributes; sed -i 's/^5$/lane/' list");
    sandbox.sh("sed -i 's/^5$/base/' list; git commit -qam base");
    let wanted = sandbox.git(&["merge-tree", "--write-tree", "main", "proq/x"]);
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "main^{tree}"]), wanted);
    assert_eq!(sandbox.read("list"), "1\n2\n3\n4\nbase\nlane\n6\n7\n8\n9\n");
}
