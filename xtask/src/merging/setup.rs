//! Owns what a repository of made-up merges is set up with: object format, settings and attributes that merges obey.

use super::super::dice::Dice;

/// The name of the files that hold attributes.
pub(super) const ATTRIBUTES: &[u8] = b".gitattributes";

/// How one repository is set up.
#[derive(Debug)]
pub(super) struct Setup {
    /// Whether ids are SHA-256.
    pub(super) sha256: bool,
    /// Settings; an empty value stands for none at all.
    pub(super) settings: Vec<(&'static str, &'static str)>,
    /// Whether merge bases are found by git's table of commits.
    pub(super) graph: bool,
    /// What every commit's attributes are added to.
    pub(super) attributes: Vec<u8>,
}

/// The set-up of a repository; the same one each time.
pub(super) fn choose(seed: u64, chunk: usize) -> Setup {
    let mut dice = Dice::new(seed, &format!("setup {chunk}"));
    // Half of all repositories are as git comes.
    let plain = dice.below(2) == 0;
    let mut one_of = |values: &[&'static str]| {
        let at = dice.below(values.len());
        values[if plain { 0 } else { at }]
    };
    let settings = vec![
        ("diff.renames", one_of(&["true", "false", "copies"])),
        ("diff.renameLimit", one_of(&["1000", "1", "0"])),
        ("merge.renames", one_of(&["", "", "true", "false", "copies"])),
        ("merge.renameLimit", one_of(&["7000", "1", "0"])),
        ("merge.directoryRenames", one_of(&["conflict", "true", "false"])),
        ("merge.renormalize", one_of(&["false", "true"])),
        ("merge.conflictStyle", one_of(&["merge", "diff3", "zdiff3"])),
        ("merge.verbosity", one_of(&["2", "0", "5"])),
        ("core.autocrlf", one_of(&["false", "input"])),
        ("merge.own.name", "takes theirs"),
        ("merge.own.driver", "cp %B %A"),
    ];
    let sha256 = dice.below(8) == 0;
    let attributes = if dice.below(3) == 0 { attributes(&mut dice) } else { Vec::new() };
    Setup { sha256, settings, graph: dice.below(2) == 0, attributes }
}

/// The content of a file of attributes.
pub(super) fn attributes(dice: &mut Dice) -> Vec<u8> {
    let lines = [
        "*.union merge=union",
        "*.bin binary",
        "*.own merge=own",
        "a* merge=union",
        "lib/** merge=own",
        "b -merge",
        "* text=auto",
        "c text eol=crlf",
        "e merge=none-such",
    ];
    let mut out = String::new();
    for line in lines {
        if dice.below(2) == 0 {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.into_bytes()
}
