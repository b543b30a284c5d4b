//! Man pages, completion scripts, and where `git proq setup` installs them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proq_test_kit::Sandbox;

/// The command that regenerates every checked-in file.
const REGENERATE_COMMAND: &str = "cargo run -q -- man --dir man && for s in bash elvish fish powershell zsh; do \
                      cargo run -q -- completions $s > completions/git-proq.$s; done";

/// The shells and where their scripts are installed, below the home folder.
const INSTALLED: [(&str, &str); 3] = [
    ("bash", ".local/share/bash-completion/completions/git-proq"),
    ("fish", ".config/fish/conf.d/git-proq.fish"),
    ("zsh", ".local/share/zsh/site-functions/_git-proq"),
];

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files of a folder, by name.
fn files(dir: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let file = |e: std::fs::DirEntry| {
        (e.file_name().into_string().unwrap(), std::fs::read_to_string(e.path()).unwrap())
    };
    entries.map(file).collect()
}

#[track_caller]
fn assert_same_files(checked_in: &BTreeMap<String, String>, made: &BTreeMap<String, String>) {
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(checked_in), names(made), "files are missing or left over; run\n  {REGENERATE_COMMAND}");
    for (name, text) in made {
        assert!(checked_in[name] == *text, "{name} is stale; run\n  {REGENERATE_COMMAND}");
    }
}

#[test]
fn checked_in_man_pages_are_current() {
    let sandbox = Sandbox::empty();
    let dir = sandbox.root().join("man");
    let _ = sandbox.proq(&["man", "--dir", dir.to_str().unwrap()]).ok();
    assert_same_files(&files(&project().join("man")), &files(&dir));
}

/// Returns the man page about a topic.
fn man_page(sandbox: &Sandbox, topic: &str) -> String {
    sandbox.proq(&["man", topic]).ok()
}

#[test]
fn man_pages_explain_every_option_and_argument() {
    let sandbox = Sandbox::empty();
    let dir = sandbox.root().join("man");
    let _ = sandbox.proq(&["man", "--dir", dir.to_str().unwrap()]).ok();
    for (name, text) in files(&dir) {
        let lines: Vec<&str> = text.lines().collect();
        let terms = lines.windows(3).filter(|lines| lines[0] == ".TP");
        for term in terms {
            assert!(!term[2].is_empty() && !term[2].starts_with('.'), "{name}: {term:?}");
        }
        assert!(!text.contains("default )") && text.contains(".SH SEE ALSO"), "{name}");
        let about = text.lines().nth(2).unwrap().split_once(" \\- ").unwrap().1;
        assert!(!text.contains(&format!(".SH DESCRIPTION\n{about}\n")), "{name}");
    }
    let edit = man_page(&sandbox, "edit");
    assert!(edit.contains(".SH ARGUMENTS\n.TP\n\\fI<LANE>\\fR\nLane name"), "{edit}");
    assert!(edit.contains("\\fB\\-q\\fR, \\fB\\-\\-quiet\\fR\nPrint only results"), "{edit}");
}

#[test]
fn man_pages_have_only_exit_codes_of_their_command() {
    let sandbox = Sandbox::empty();
    let codes = |topic: &str| -> Vec<String> {
        let page = man_page(&sandbox, topic);
        page.lines().filter_map(|line| line.strip_prefix(".B ")).map(ToOwned::to_owned).collect()
    };
    assert_eq!(codes("list"), ["0", "1", "2", "70", "130"]);
    assert_eq!(codes("edit"), ["0", "1", "2", "5", "70", "130"]);
    assert_eq!(codes("merge"), ["0", "1", "2", "3", "4", "5", "70", "130"]);
}

#[test]
fn man_pages_about_settings_and_tutorial_are_complete() {
    let sandbox = Sandbox::empty();
    let dir = sandbox.root().join("man");
    let _ = sandbox.proq(&["man", "--dir", dir.to_str().unwrap()]).ok();
    let config = std::fs::read_to_string(dir.join("git-proq-config.5")).unwrap();
    for setting in sandbox.proq(&["config", "list", "--json"]).json()["settings"].as_array().unwrap() {
        let key = setting["key"].as_str().unwrap();
        let (first, words) = key.split_once('_').unwrap_or((key, ""));
        let words: String = words
            .split('_')
            .map(|word| word[..1.min(word.len())].to_uppercase() + &word[1.min(word.len())..])
            .collect();
        assert!(config.contains(&format!("\\fBproq.{first}{words}\\fR\n")), "{key}");
    }
    let tutorial = man_page(&sandbox, "tutorial");
    let guide = std::fs::read_to_string(project().join("docs/guide/tutorial.md")).unwrap();
    let commands = guide.lines().filter(|line| line.starts_with("git proq ")).count();
    assert_eq!(tutorial.lines().filter(|line| line.starts_with("git proq ")).count(), commands + 2);
}

#[test]
fn checked_in_completions_are_current() {
    let sandbox = Sandbox::empty();
    let shells = ["bash", "elvish", "fish", "powershell", "zsh"];
    let made = shells.map(|s| (format!("git-proq.{s}"), sandbox.proq(&["completions", s]).ok()));
    for (name, text) in &made {
        assert!(!text.contains("target/"), "{name} names the program by its path");
    }
    assert_same_files(&files(&project().join("completions")), &BTreeMap::from(made));
}

/// Returns what the program writes to a terminal of 10 lines.
fn shown_on_terminal(sandbox: &Sandbox, args: &str) -> String {
    let mut command = sandbox.command("script", &sandbox.repo);
    command.args(["-qec", &format!("stty rows 10 cols 80; git-proq {args}"), "/dev/null"]);
    command.env("TERM", "xterm").env("GIT_PAGER", "sed s/^/paged:/");
    sandbox.output(command).ok()
}

#[test]
fn man_and_long_help_use_the_viewer_on_a_terminal() {
    let sandbox = Sandbox::empty();
    sandbox.program_verbatim("man", "test \"$1 $2\" = '-l -'; sed s/^/man:/");
    let help = shown_on_terminal(&sandbox, "help merge");
    assert!(help.contains("paged:") && help.contains("Merge lanes into their base branch"), "{help}");
    assert!(!shown_on_terminal(&sandbox, "version").contains("paged:"));
    assert!(shown_on_terminal(&sandbox, "man version").contains("man:.TH GIT"));
}

/// Runs bash with the completion script and this program on `PATH`, and returns the words that it offers.
fn completions(sandbox: &Sandbox, request: &str) -> Vec<String> {
    let script = project().join("completions/git-proq.bash");
    let text = format!(". '{}'\n{request}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"", script.display());
    let mut bash = sandbox.command("bash", &sandbox.repo);
    bash.args(["--norc", "--noprofile", "-c", &text]).env("PATH", program_path());
    sandbox.output(bash).ok().lines().map(ToOwned::to_owned).collect()
}

/// Returns a `PATH` that begins with the folder of this program.
fn program_path() -> std::ffi::OsString {
    let program = Path::new(env!("CARGO_BIN_EXE_git-proq")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([program.to_owned()].into_iter().chain(std::env::split_paths(&path))).unwrap()
}

/// Returns what readline sets for `git-proq …`, with the cursor in the last word.
fn typed_line(words: &[&str]) -> String {
    let last = words[words.len() - 1];
    format!(
        "COMP_WORDS=(git-proq '{}'); COMP_CWORD={}; COMP_TYPE=9; _clap_complete_git_proq git-proq '{last}'",
        words.join("' '"),
        words.len()
    )
}

/// Returns what git's own completion sets for a line, in which `proq` is at index `at`.
fn git_typed_line(words: &[&str], at: usize) -> String {
    let folder = if words[1] == "-C" { format!("__git_C_args=(-C '{}');", words[2]) } else { String::new() };
    format!(
        "words=('{}'); cword={}; cur='{}'; __git_cmd_idx={at}; {folder} _git_proq",
        words.join("' '"),
        words.len() - 1,
        words[words.len() - 1],
    )
}

#[test]
fn bash_completes_commands_options_and_lanes() {
    let sandbox = Sandbox::new();
    for lane in ["parser", "payments", "search"] {
        sandbox.run_lane(lane, "true");
    }
    assert_eq!(completions(&sandbox, &typed_line(&["cle"])), ["cleanup"]);
    assert_eq!(completions(&sandbox, &typed_line(&["show", "pa"])), ["parser", "payments"]);
    assert_eq!(completions(&sandbox, &typed_line(&["merge", "--dry"])), ["--dry-run"]);

    assert_eq!(completions(&sandbox, &git_typed_line(&["git", "proq", "cle"], 1)), ["cleanup"]);
    assert_eq!(
        completions(&sandbox, &git_typed_line(&["git", "proq", "show", "pa"], 1)),
        ["parser", "payments"]
    );
    let merge = ["git", "-c", "a.b=c", "proq", "merge", "search", "pay"];
    assert_eq!(completions(&sandbox, &git_typed_line(&merge, 3)), ["payments"]);
}

#[test]
fn bash_completes_lanes_of_named_repository() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "search"]).ok();
    let (here, repo) = (sandbox.root().join("home"), sandbox.repo.to_str().unwrap());
    let in_home = |request: &str| format!("cd '{}'; {request}", here.display());
    assert_eq!(completions(&sandbox, &in_home(&typed_line(&["show", "s"]))), [""]);
    assert_eq!(completions(&sandbox, &in_home(&typed_line(&["-C", repo, "show", "s"]))), ["search"]);
    assert_eq!(
        completions(&sandbox, &in_home(&git_typed_line(&["git", "-C", repo, "proq", "show", "s"], 3))),
        ["search"]
    );
}

#[test]
fn bash_completes_without_git_command_index() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "search"]).ok();
    let request = git_typed_line(&["git", "proq", "show", "s"], 1).replace("__git_cmd_idx=1;", "");
    assert_eq!(completions(&sandbox, &request), ["search"]);
}

#[test]
fn bash_offers_options_after_a_dash_and_no_lane_twice() {
    let sandbox = Sandbox::new();
    for lane in ["payments", "search"] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", lane]).ok();
    }
    assert_eq!(completions(&sandbox, &typed_line(&["preview", ""])), ["payments", "search"]);
    assert_eq!(completions(&sandbox, &typed_line(&["discard", "search", ""])), ["payments"]);
    assert!(completions(&sandbox, &typed_line(&["preview", "--"])).contains(&"--back".to_owned()));
    let commands = completions(&sandbox, &typed_line(&[""]));
    assert!(commands.iter().all(|word| !word.starts_with(['-', '_'])), "{commands:?}");
    assert!(commands.contains(&"merge".to_owned()) && !commands.contains(&"land".to_owned()), "{commands:?}");
    assert_eq!(completions(&sandbox, &typed_line(&["man", "mer"])), ["merge"]);
    assert_eq!(completions(&sandbox, &typed_line(&["help", "mer"])), ["merge"]);
    assert_eq!(completions(&sandbox, &typed_line(&["undo", ""])), ["2", "1"]);
    assert_eq!(completions(&sandbox, &typed_line(&["op", "show", ""])), ["2", "1"]);
}

#[test]
fn bash_completes_snapshot_ids() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > a.txt");
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    for command in ["show", "restore"] {
        assert_eq!(completions(&sandbox, &typed_line(&["snap", command, "2026"])), ["[ID]"]);
        assert_eq!(completions(&sandbox, &typed_line(&["snap", command, "1999"])), [""]);
    }
}

#[test]
fn setup_installs_pages_and_completion_scripts() {
    let sandbox = Sandbox::empty();
    let home = sandbox.root().join("home");
    let before = files_below(&home);
    let planned = sandbox.proq(&["setup", "--dry-run", "-v"]).ok();
    assert_eq!(files_below(&home), before, "--dry-run wrote something");

    let out = sandbox.proq(&["setup", "-v"]);
    assert!(out.stderr.starts_with("hint: let man find the pages"), "{}", out.stderr);
    assert!(out.stderr.contains("export MANPATH=\"[ROOT]/home/.local/share/man:\""), "{}", out.stderr);
    let installed = out.ok();
    assert_eq!(installed.replace("Installed", "Would install"), planned);
    assert!(installed.contains(" man pages in [ROOT]/home/.local/share/man\n"), "{installed}");
    assert!(installed.contains("\nInstalled completions for bash, fish, zsh\n"), "{installed}");
    for line in installed.lines().filter_map(|line| line.strip_prefix("  ")) {
        let path = line.replace("[ROOT]", &sandbox.root().display().to_string());
        assert!(Path::new(&path).starts_with(&home) && Path::new(&path).is_file(), "{line}");
    }
    assert_eq!(sandbox.proq(&["setup"]).ok(), "Already up to date.\n");
    let sections = ["man1", "man5", "man7"].map(|folder| files(&home.join(".local/share/man").join(folder)));
    assert_same_files(&files(&project().join("man")), &sections.into_iter().flatten().collect());
    for (shell, path) in INSTALLED {
        assert_eq!(sandbox.read(&format!("../home/{path}")), sandbox.proq(&["completions", shell]).ok());
    }
}

#[test]
fn setup_hints_only_at_what_is_missing() {
    let sandbox = Sandbox::empty();
    let setup = || {
        let mut command = sandbox.proq_command(&sandbox.repo, &["setup"]);
        command.env("SHELL", "/bin/zsh").env_remove("ZDOTDIR");
        let out = sandbox.output(command);
        assert_eq!(out.code, 0, "{}", out.to_text());
        [out.stderr.contains("let man find the pages"), out.stderr.contains("zsh finds its completions")]
    };
    assert_eq!(setup(), [true, true]);
    assert_eq!(setup(), [true, true]);
    sandbox.sh("echo '# fpath=(~/.local/share/zsh/site-functions $fpath)' > ../home/.zshrc");
    assert_eq!(setup(), [true, true], "a comment counts");
    sandbox.sh("echo 'fpath=(~/.local/share/zsh/site-functions $fpath)' > ../home/.zshrc");
    assert_eq!(setup(), [true, false]);
    sandbox.sh("echo \"export MANPATH=$ROOT/home/.local/share/man:\" >> ../home/.zshrc");
    assert_eq!(setup(), [false, false]);
}

#[test]
fn setup_respects_xdg_folders() {
    let sandbox = Sandbox::empty();
    let mut command = sandbox.proq_command(&sandbox.repo, &["setup", "--json"]);
    let (data, config) = (sandbox.root().join("data"), sandbox.root().join("config"));
    command.env("XDG_DATA_HOME", &data).env("XDG_CONFIG_HOME", &config);
    let answer = sandbox.output(command).json();
    assert_eq!(answer["dry_run"], false);
    assert!(data.join("man/man1/git-proq.1").is_file());
    assert!(config.join("fish/conf.d/git-proq.fish").is_file());
    assert_eq!(answer["files"].as_array().unwrap().len(), files_below(&data).len() + 1);
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { out.extend(files_below(&path)) } else { out.push(path) }
    }
    out
}

#[test]
fn completion_describes_shell_code_by_its_last_commit() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("one", "echo > n; git add -A; git commit -qm 'Add n'");
    sandbox.run_lane("two", "true");
    let mut command = sandbox.proq_command(&sandbox.repo, &["--", "git-proq", "show", ""]);
    command.env("PROQ_COMPLETE", "fish");
    let offered = sandbox.output(command).ok();
    assert_eq!(offered.lines().take(2).collect::<Vec<_>>(), ["one\tAdd n", "two\tsh -ec true"], "{offered}");
}
