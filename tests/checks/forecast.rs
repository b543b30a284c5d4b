//! Forecasts compared with git's own merges, over randomly generated lanes.

use std::collections::BTreeSet;

use fastrand::Rng;
use proq_test_kit::Sandbox;
use proq_test_kit::faults::with_git_wrapper;

/// Lanes of one repository; each is compared with the base and with every other lane.
const LANES: usize = 18;
/// Number of repositories.
const ROUNDS: u64 = 3;
/// How many of a hundred forecasts of files that both sides changed may differ from git's merge.
const MAX_WRONG_PERCENT: usize = 1;

const FILES: &[&str] = &["one", "two", "d/three", "d/four", "d/e/five", "f/six", "f/seven", "eight"];

/// Returns a random change of a few files, as a script.
fn random_change(rng: &mut Rng) -> String {
    let mut out = String::new();
    for _ in 0..=rng.u64(..3) {
        let file = rng.choice(FILES).unwrap();
        let line = 1 + rng.u64(..24);
        let last = (line + rng.u64(..3)).min(24);
        let word = rng.u64(..3);
        let step = match rng.u64(..16) {
            0..=4 => format!("sed -i '{line}s/.*/w{word}/' {file}"),
            5..=7 => format!("sed -i '{line},{last}d' {file}"),
            8 | 9 => format!("sed -i '{line}i i{word}' {file}"),
            10 => format!("sed -i 's/^{line}$/x{word}/; s/^{last}$/y{word}/' {file}"),
            11 => format!("mkdir -p n; seq {line} > n/{}", rng.choice(["a", "b", "c", "d"]).unwrap()),
            12 => format!("git rm -qf {file}"),
            13 => format!("git mv {file} {file}{word}"),
            14 => format!("chmod +x {file}"),
            _ => rng
                .choice([
                    "git mv d/e d/g",
                    "git mv f g",
                    "ln -sf one eight",
                    "rm eight; mkdir eight; echo > eight/x",
                ])
                .unwrap()
                .to_owned(),
        };
        // A change that no longer applies is skipped.
        out.push_str(&format!("test ! -e {file} || {{ {step}; }} 2>/dev/null || true\n"));
    }
    out
}

/// Returns a repository with a base that has moved, and lanes of every kind.
fn random_repository(seed: u64) -> Sandbox {
    let mut rng = Rng::with_seed(seed);
    let sandbox = Sandbox::new();
    sandbox
        .sh(&format!("mkdir -p d/e f; for f in {}; do {{ echo $f; seq 24; }} > $f; done", FILES.join(" ")));
    sandbox.commit_all("files");
    for n in 0..LANES {
        if n % 6 == 3 {
            sandbox.sh(&random_change(&mut rng));
            sandbox.commit_all("base");
        }
        let name = format!("l{n:02}");
        sandbox.lane_with_commit(&name, &random_change(&mut rng));
        if rng.u64(..5) == 0 {
            let other = if rng.u64(..2) == 0 { "main" } else { "proq/l00" };
            let merge = format!("git merge -q --no-edit {other} >/dev/null 2>&1 || git reset -q --hard");
            sandbox.sh_in(&sandbox.lane_path(&name), &merge);
            sandbox.commit_in_lane(&name, &random_change(&mut rng));
        }
    }
    sandbox
}

/// Returns the conflicted paths of git's merge; `None` when git gives no answer.
fn git_conflicts(sandbox: &Sandbox, ours: &str, theirs: &str) -> Option<BTreeSet<String>> {
    let mut git = sandbox.command("git", &sandbox.repo);
    git.args(["merge-tree", "--write-tree", "--name-only", "-z", "--no-messages"]).args([ours, theirs]);
    let out = git.output().unwrap();
    let fields = || out.stdout.split(|b| *b == 0).skip(1).filter(|f| !f.is_empty());
    // Git names a file that cannot keep its path after its branch.
    let path =
        |field: &[u8]| String::from_utf8(field.to_vec()).unwrap().split('~').next().unwrap().to_owned();
    let paths = fields().map(path).collect();
    match out.status.code() {
        Some(0) => Some(BTreeSet::new()),
        Some(1) => Some(paths),
        _ => None,
    }
}

fn rev(name: &serde_json::Value) -> String {
    let name = name.as_str().unwrap();
    if name == "main" { name.to_owned() } else { format!("proq/{name}") }
}

/// Returns whether both sides changed a common file since their merge base, so that lines have to be merged.
fn share_changed_file(sandbox: &Sandbox, ours: &str, theirs: &str) -> bool {
    let changed = |from: &str, to: &str| -> BTreeSet<String> {
        sandbox
            .git(&["diff", "--name-only", "--no-renames", &format!("{from}...{to}")])
            .lines()
            .map(Into::into)
            .collect()
    };
    !changed(ours, theirs).is_disjoint(&changed(theirs, ours))
}

#[test]
fn forecasts_match_git_merges() {
    let (mut exact, mut by_lines, mut git_decided, mut wrong) = (0, 0, 0, Vec::new());
    for round in 1..=ROUNDS {
        let sandbox = random_repository(round);
        // With a failing git, only forecasts computed in process remain.
        let first =
            sandbox.output(with_git_wrapper(&sandbox, "merge-tree", "exit 70", &["matrix", "--json"])).json();
        let last = sandbox.proq(&["matrix", "--json"]).json();
        let both = first["pairs"].as_array().unwrap().iter().zip(last["pairs"].as_array().unwrap());
        for (alone, pair) in both {
            let (ours, theirs) = (rev(&pair["ours"]), rev(&pair["theirs"]));
            let pair_name = format!("round {round}: {ours} {theirs}");
            let Some(wanted) = git_conflicts(&sandbox, &ours, &theirs) else {
                assert_eq!(alone["result"], "unknown", "{pair_name}: git gives no answer");
                continue;
            };
            let found: BTreeSet<String> = pair["conflicts"].as_array().map_or_else(BTreeSet::new, |all| {
                all.iter().map(|c| c["path"].as_str().unwrap().to_owned()).collect()
            });
            assert_ne!(pair["result"], "unknown", "{pair_name}");
            let right = (pair["result"] == "clean") == wanted.is_empty() && found == wanted;
            if alone["result"] == "unknown" {
                git_decided += 1;
                assert!(right, "{pair_name}: git says {wanted:?}, and {pair:#}");
            } else if !share_changed_file(&sandbox, &ours, &theirs) {
                exact += 1;
                assert!(right, "{pair_name}: git says {wanted:?}, and {pair:#}");
            } else {
                by_lines += 1;
                wrong.extend((!right).then(|| format!("{pair_name}: git says {wanted:?}, and {pair:#}")));
            }
        }
    }
    println!("{exact} exact, {by_lines} by lines, {} of them wrong, {git_decided} by git", wrong.len());
    assert!(exact > 50 && by_lines > 50 && git_decided > 50, "{exact} {by_lines} {git_decided}");
    assert!(wrong.len() * 100 <= by_lines * MAX_WRONG_PERCENT, "{wrong:#?}");
}
