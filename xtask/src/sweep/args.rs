//! Options of the crash sweep.

use std::num::ParseIntError;
use std::path::PathBuf;
use std::time::Duration;

/// Kill git-proq at every system call that changes something
///
/// Each scenario's command, with all the git programs that it starts, is killed at the entry of its first mutating
/// system call, of its second, and so on, each time in a fresh copy of the same repository. Then recovery runs, and is
/// killed in the same way, wherever that leaves something on disk that no earlier kill has left. Afterwards nothing that anybody wrote may be out of reach, and the repository must be as it was
/// before the command or as it is after it. Ends with 1 when that is not so.
#[derive(Debug, Clone, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Only this scenario; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(super) scenario: Vec<String>,
    /// List the scenarios
    #[arg(long)]
    pub(super) list: bool,
    /// A sample of all points that takes a few minutes
    #[arg(long)]
    pub(super) short: bool,
    /// Chooses the sample; printed by every run
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Only this point, and keep the folder for a look
    #[arg(long, value_name = "K", requires = "scenario")]
    pub(super) point: Option<usize>,
    /// With --point: kill recovery at this point of its own too
    #[arg(long, value_name = "J", requires = "point")]
    pub(super) nested: Option<usize>,
    /// Kill recovery at N of its points, chosen anew for each point, instead of at all of them
    #[arg(long, value_name = "N", conflicts_with_all = ["short", "no_nested"])]
    pub(super) some_nested: Option<usize>,
    /// Leave recovery alone
    #[arg(long, conflicts_with = "nested")]
    pub(super) no_nested: bool,
    /// Instead of killing, let calls fail: once, and from there on, with ENOSPC and with EIO
    #[arg(long, group = "mode")]
    pub(super) errors: bool,
    /// Instead of killing, let each call fail once: with ENOSPC, EIO and EACCES in turn; the seed says which comes first
    #[arg(long, group = "mode")]
    pub(super) one_error: bool,
    /// Instead of killing, send SIGINT, SIGTERM and SIGHUP as a terminal would
    #[arg(long, group = "mode")]
    pub(super) signals: bool,
    /// Kill only the program that makes the call, where git-proq has started it: git, a hook, a filter
    #[arg(long, group = "mode")]
    pub(super) children: bool,
    /// Instead of killing, cut the power: what ext4 has not written is gone (Linux, needs root and loop devices)
    #[arg(long, group = "mode")]
    pub(super) power: bool,
    /// Instead of all that, let many processes work in one repository at once, for so long
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(super) crowd: Option<Duration>,
    /// With --crowd: kill one command in five at a random moment
    #[arg(long, requires = "crowd")]
    pub(super) kills: bool,
    /// How many those are
    #[arg(long, value_name = "N", default_value_t = 64, requires = "crowd")]
    pub(super) processes: usize,
    /// How many runs at once; as many as there are processors by default
    #[arg(long, value_name = "N")]
    pub(super) jobs: Option<usize>,
    /// The program; by default it is built here first
    #[arg(long, value_name = "PATH")]
    pub(super) proq: Option<PathBuf>,
}

/// Disturbance at each point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Kill the command and all processes that it started.
    Kill,
    /// Let calls fail: this one, or all from it on.
    Errors,
    /// Let this call fail.
    OneError,
    /// Send a signal.
    Signals,
    /// Kill the process that makes the call, unless it is the command itself.
    Children,
    /// Cut the power.
    Power,
}

impl Mode {
    /// Returns the option that selects the mode.
    fn option(self) -> &'static str {
        match self {
            Mode::Kill => "",
            Mode::Errors => " --errors",
            Mode::OneError => " --one-error",
            Mode::Signals => " --signals",
            Mode::Children => " --children",
            Mode::Power => " --power",
        }
    }
}

impl Args {
    /// Returns the disturbance at each point.
    pub(super) fn mode(&self) -> Mode {
        let chosen = [
            (self.errors, Mode::Errors),
            (self.one_error, Mode::OneError),
            (self.signals, Mode::Signals),
            (self.children, Mode::Children),
            (self.power, Mode::Power),
        ];
        chosen.into_iter().find(|(is_chosen, _)| *is_chosen).map_or(Mode::Kill, |(_, mode)| mode)
    }

    /// Returns whether recovery is killed wherever that leaves something new on disk.
    pub(super) fn kills_recovery_everywhere(&self) -> bool {
        let kills = self.mode() == Mode::Kill && self.crowd.is_none();
        kills && !self.short && !self.no_nested && self.some_nested.is_none() && self.point.is_none()
    }

    /// Returns the command that repeats one run of a scenario.
    pub(super) fn repeat_command(
        &self,
        scenario: &str,
        seed: u64,
        point: usize,
        nested: Option<usize>,
    ) -> String {
        let mode = self.mode();
        let seed = if mode == Mode::OneError { format!(" --seed {seed}") } else { String::new() };
        let nested = nested.map(|j| format!(" --nested {j}")).unwrap_or_default();
        format!(
            "cargo xtask crash-sweep{}{seed} --scenario {scenario} --point {point}{nested}",
            mode.option()
        )
    }
}

/// Parses a whole number of seconds.
fn parse_seconds(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_secs)
}
