//! Owns the comparison of forecasts with what git makes of the same merges, over made-up lanes.

use std::collections::BTreeSet;

use super::recovery::kit::with_git;
use super::support::Sandbox;

/// Lanes of one repository; each is compared with the base and with every other.
const LANES: usize = 18;
/// Repositories.
const ROUNDS: u64 = 3;
/// How many of a hundred forecasts of files that both sides changed may differ from git's merge.
const WRONG_OF_100: usize = 1;

/// A small generator: the same numbers for the same seed, everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % n
    }

    fn of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

const FILES: &[&str] = &["one", "two", "d/three", "d/four", "d/e/five", "f/six", "f/seven", "eight"];

/// A change that somebody makes to a few files, as a script.
fn change(dice: &mut Dice) -> String {
    let mut out = String::new();
    for _ in 0..=dice.below(3) {
        let file = dice.of(FILES);
        let line = 1 + dice.below(24);
        let last = (line + dice.below(3)).min(24);
        let word = dice.below(3);
        let step = match dice.below(16) {
            0..=4 => format!("sed -i '{line}s/.*/w{word}/' {file}"),
            5..=7 => format!("sed -i '{line},{last}d' {file}"),
            8 | 9 => format!("sed -i '{line}i i{word}' {file}"),
            10 => format!("sed -i 's/^{line}$/x{word}/; s/^{last}$/y{word}/' {file}"),
            11 => format!("mkdir -p n; seq {line} > n/{}", dice.of(&["a", "b", "c", "d"])),
            12 => format!("git rm -qf {file}"),
            13 => format!("git mv {file} {file}{word}"),
            14 => format!("chmod +x {file}"),
            _ => dice
                .of(&[
                    "git mv d/e d/g",
                    "git mv f g",
                    "ln -sf one eight",
                    "rm eight; mkdir eight; echo > eight/x",
                ])
                .to_owned(),
        };
        // What does not fit any more is left out.
        out.push_str(&format!("test ! -e {file} || {{ {step}; }} 2>/dev/null || true\n"));
    }
    out
}

/// A base that has moved, and lanes of every kind.
fn made_up(seed: u64) -> Sandbox {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let sandbox = Sandbox::new();
    sandbox
        .sh(&format!("mkdir -p d/e f; for f in {}; do {{ echo $f; seq 24; }} > $f; done", FILES.join(" ")));
    sandbox.commit_all("files");
    for n in 0..LANES {
        if n % 6 == 3 {
            sandbox.sh(&change(&mut dice));
            sandbox.commit_all("base");
        }
        let name = format!("l{n:02}");
        sandbox.lane_of(&name, &change(&mut dice));
        if dice.below(5) == 0 {
            let other = if dice.below(2) == 0 { "main" } else { "proq/l00" };
            let merge = format!("git merge -q --no-edit {other} >/dev/null 2>&1 || git reset -q --hard");
            sandbox.sh_in(&sandbox.lane(&name), &merge);
            sandbox.commit_in_lane(&name, &change(&mut dice));
        }
    }
    sandbox
}

/// What git says of a merge: none when it gives no answer, else the conflicted paths.
fn by_git(sandbox: &Sandbox, ours: &str, theirs: &str) -> Option<BTreeSet<String>> {
    let mut git = sandbox.command("git", &sandbox.repo);
    git.args(["merge-tree", "--write-tree", "--name-only", "-z", "--no-messages"]).args([ours, theirs]);
    let out = git.output().unwrap();
    let fields = || out.stdout.split(|b| *b == 0).skip(1).filter(|f| !f.is_empty());
    // A file that cannot stay where it was is called after its branch.
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

/// Whether both changed a file since they parted: then its lines have to be merged.
fn share_a_file(sandbox: &Sandbox, ours: &str, theirs: &str) -> bool {
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
fn forecasts_are_what_git_makes_of_the_same_merges() {
    let (mut exact, mut by_lines, mut asked, mut wrong) = (0, 0, 0, Vec::new());
    for round in 1..=ROUNDS {
        let sandbox = made_up(round);
        // Without git there is only what can be found out in process.
        let first = sandbox.output(with_git(&sandbox, "merge-tree", "exit 70", &["matrix", "--json"])).json();
        let last = sandbox.proq(&["matrix", "--json"]).json();
        let both = first["pairs"].as_array().unwrap().iter().zip(last["pairs"].as_array().unwrap());
        for (alone, pair) in both {
            let (ours, theirs) = (rev(&pair["ours"]), rev(&pair["theirs"]));
            let what = format!("round {round}: {ours} {theirs}");
            let Some(wanted) = by_git(&sandbox, &ours, &theirs) else {
                assert_eq!(alone["result"], "unknown", "{what}: git gives no answer");
                continue;
            };
            let found: BTreeSet<String> = pair["conflicts"].as_array().map_or_else(BTreeSet::new, |all| {
                all.iter().map(|c| c["path"].as_str().unwrap().to_owned()).collect()
            });
            assert_ne!(pair["result"], "unknown", "{what}");
            let right = (pair["result"] == "clean") == wanted.is_empty() && found == wanted;
            if alone["result"] == "unknown" {
                asked += 1;
                assert!(right, "{what}: git says {wanted:?}, and {pair:#}");
            } else if !share_a_file(&sandbox, &ours, &theirs) {
                exact += 1;
                assert!(right, "{what}: git says {wanted:?}, and {pair:#}");
            } else {
                by_lines += 1;
                wrong.extend((!right).then(|| format!("{what}: git says {wanted:?}, and {pair:#}")));
            }
        }
    }
    println!("{exact} exact, {by_lines} by lines, {} of them wrong, {asked} by git", wrong.len());
    assert!(exact > 50 && by_lines > 50 && asked > 50, "{exact} {by_lines} {asked}");
    assert!(wrong.len() * 100 <= by_lines * WRONG_OF_100, "{wrong:#?}");
}
