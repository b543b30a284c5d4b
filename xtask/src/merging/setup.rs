//! Set-up of a repository with generated merges: object format, and settings and attributes that merges obey.

use fastrand::Rng;

use super::super::dice;

/// Name of attribute files.
pub(super) const ATTRIBUTES: &[u8] = b".gitattributes";

/// Set-up of one repository.
#[derive(Debug)]
pub(super) struct Setup {
    /// Whether object ids are SHA-256.
    pub(super) sha256: bool,
    /// Settings; an empty value means that the setting is absent.
    pub(super) settings: Vec<(&'static str, &'static str)>,
    /// Whether git finds merge bases through its commit-graph.
    pub(super) has_commit_graph: bool,
    /// Attributes that apply in addition to those of each commit.
    pub(super) attributes: Vec<u8>,
}

/// Generates the set-up of a repository. It is the same each time.
pub(super) fn generate_setup(seed: u64, chunk: usize) -> Setup {
    let mut rng = dice::seeded(seed, &format!("setup {chunk}"));
    // Half of all repositories have git's defaults.
    let is_default = rng.usize(..2) == 0;
    let mut pick = |values: &[&'static str]| {
        let at = rng.usize(..values.len());
        values[if is_default { 0 } else { at }]
    };
    let settings = vec![
        ("diff.renames", pick(&["true", "false", "copies"])),
        ("diff.renameLimit", pick(&["1000", "1", "0"])),
        ("merge.renames", pick(&["", "", "true", "false", "copies"])),
        ("merge.renameLimit", pick(&["7000", "1", "0"])),
        ("merge.directoryRenames", pick(&["conflict", "true", "false"])),
        ("merge.renormalize", pick(&["false", "true"])),
        ("merge.conflictStyle", pick(&["merge", "diff3", "zdiff3"])),
        ("merge.verbosity", pick(&["2", "0", "5"])),
        ("core.autocrlf", pick(&["false", "input"])),
        ("merge.own.name", "takes theirs"),
        ("merge.own.driver", "cp %B %A"),
    ];
    let sha256 = rng.usize(..8) == 0;
    let attributes = if rng.usize(..3) == 0 { random_attributes(&mut rng) } else { Vec::new() };
    Setup { sha256, settings, has_commit_graph: rng.usize(..2) == 0, attributes }
}

/// Returns a random attributes file.
pub(super) fn random_attributes(rng: &mut Rng) -> Vec<u8> {
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
        if rng.usize(..2) == 0 {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.into_bytes()
}
