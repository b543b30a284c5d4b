//! Completion and `shell-init` in bash, zsh and fish, each driven in a terminal of its own.

use proq_test_kit::plans::install_worker;
use proq_test_kit::tmux::TmuxSandbox;
use proq_test_kit::waiting::{WAIT_LIMIT, wait_within};

/// A plan with one task.
const PLAN: &str =
    "format = 1\nsummary = \"One\"\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"The first\"\n";

/// What a shell shows for a line and a Tab: words of its list or of the completed line, and words that the list
/// has not.
const COMPLETIONS: &[(&str, &[&str], &[&str])] = &[
    ("git proq ", &["spawn", "merge"], &["-C", "--json", "land", "attach", "_supervise"]),
    ("git pro", &["$ git proq"], &[]),
    ("git proq red", &["redispatch", "redo"], &["run"]),
    ("git proq show ", &["payments", "parser", "search", "Implement payments"], &["--json", "-C"]),
    ("git proq show pay", &["$ git proq show payments"], &["parser"]),
    ("git proq preview --", &["--back", "--refresh"], &["payments"]),
    ("git proq discard search pars", &["$ git proq discard search parser"], &["search"]),
    ("git proq discard search ", &["$ git proq discard search pa"], &["search"]),
    ("git proq man me", &["$ git proq man merge"], &[]),
    ("git proq undo ", &["3", "2", "1", "git proq spawn --empty -n payments"], &["--dry-run"]),
    ("git proq op show ", &["3", "2", "1"], &["--trace"]),
    ("git proq batch status ", &["$ git proq batch status 20260102-030405"], &["plan.toml"]),
    ("git proq list --color=al", &["$ git proq list --color=always"], &["--color=--color"]),
    ("git proq spawn --file pla", &["$ git proq spawn --file plan.toml"], &[]),
];

/// A shell in a terminal, with the completions that `git proq setup` installs.
struct Screen {
    tmux: TmuxSandbox,
    /// Command that starts the shell.
    start: &'static str,
}

impl Screen {
    /// Prepares a repository with three lanes and a batch, and the start-up files of the shells.
    fn new(start: &'static str) -> Screen {
        let tmux = TmuxSandbox::new();
        let sandbox = &tmux.0;
        let home = sandbox.root().join("home");
        let bash =
            "PS1='$ '\n. /usr/share/bash-completion/bash_completion\neval \"$(git proq shell-init bash)\"\n";
        sandbox.write_in(&home, ".bashrc", bash);
        sandbox.write_in(&home, ".inputrc", "set show-all-if-ambiguous on\nset enable-bracketed-paste off\n");
        let zsh = "PS1='$ '\nfpath=(~/.local/share/zsh/site-functions $fpath)\nautoload -Uz compinit\n\
                   compinit -u -D\n\
                   eval \"$(git proq shell-init zsh)\"\n";
        sandbox.write_in(&home, ".zshrc", zsh);
        let fish =
            "set -g fish_greeting\nfunction fish_prompt; echo '$ '; end\ngit proq shell-init fish | source\n";
        sandbox.write_in(&home, ".config/fish/config.fish", fish);
        let _ = sandbox.proq(&["setup"]).ok();
        for lane in ["parser", "payments", "search"] {
            let _ = sandbox.proq(&["spawn", "--empty", "-n", lane]).ok();
        }
        let _ = sandbox.proq(&["edit", "payments", "--title", "Implement payments"]).ok();
        sandbox.write("plan.toml", PLAN);
        install_worker(sandbox, "");
        let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
        let screen = Screen { tmux, start };
        let repo = screen.tmux.0.repo.display().to_string();
        let session =
            ["-f", "/dev/null", "new-session", "-d", "-s", "x", "-x", "100", "-y", "60", "-c", &repo, start];
        let _ = screen.tmux.tmux(&session).ok();
        screen
    }

    /// Returns the lines on the screen.
    fn text(&self) -> String {
        self.tmux.tmux(&["capture-pane", "-p", "-t", "x"]).ok().trim_end().to_owned()
    }

    /// Restarts the shell in a folder.
    fn restart(&self, folder: &str) {
        let _ = self.tmux.tmux(&["respawn-pane", "-k", "-t", "x", "-c", folder, self.start]).ok();
        self.wait_until("a prompt", |text| text == "$");
    }

    fn wait_until(&self, wanted: &str, holds: impl Fn(&str) -> bool) {
        let describe = || format!("{}: {wanted}\n{}", self.start, self.text());
        wait_within(WAIT_LIMIT, describe, || holds(&self.text()).then_some(()));
    }

    /// Types a key by tmux's name of it.
    fn press(&self, key: &str) {
        let _ = self.tmux.tmux(&["send-keys", "-t", "x", key]).ok();
    }

    /// Types text and waits until the shell shows it.
    fn type_text(&self, text: &str) {
        let _ = self.tmux.tmux(&["send-keys", "-t", "x", "-l", text]).ok();
        self.wait_until(text, |screen| screen.contains(text.trim_end()));
    }

    /// Completes a line, and compares the screen.
    fn assert_completion(&self, line: &str, offered: &[&str], withheld: &[&str]) {
        self.type_text(line);
        self.press("Tab");
        self.wait_until(&format!("{line:?} completes to {offered:?}"), |text| {
            offered.iter().all(|word| match word.starts_with("$ ") || word.contains(' ') {
                true => text.contains(word),
                false => candidates(text).iter().any(|found| found == word),
            })
        });
        let text = self.text();
        let list = candidates(&text);
        for word in withheld {
            assert!(
                !list.iter().any(|found| found == word),
                "{}: {line:?} offers {word}\n{text}",
                self.start
            );
        }
        for word in offered.iter().filter(|word| !word.contains(' ') && word.len() > 1) {
            let count = list.iter().filter(|found| *found == word).count();
            assert_eq!(count, 1, "{}: {line:?} offers {word} more than once\n{text}", self.start);
        }
    }
}

/// Returns the candidates on a screen: the words beside those of edited lines, without descriptions, which
/// stand in parentheses or behind `--`.
fn candidates(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("$ "));
    let lines = lines.map(|line| {
        let mut depth = 0_usize;
        let is_outside = |c: &char| {
            depth += usize::from(*c == '(');
            let is_outside = depth == 0;
            depth = depth.saturating_sub(usize::from(*c == ')'));
            is_outside
        };
        line.split(" -- ").next().unwrap_or_default().chars().filter(is_outside).collect::<String>()
    });
    lines.collect::<Vec<_>>().join(" ").split_whitespace().map(str::to_owned).collect()
}

/// Completes all lines in a shell, and changes to a lane and back.
fn drive(start: &'static str) {
    let screen = Screen::new(start);
    let (sandbox, repo) = (&screen.tmux.0, screen.tmux.0.repo.display().to_string());
    for (line, offered, withheld) in COMPLETIONS {
        screen.restart(&repo);
        screen.assert_completion(line, offered, withheld);
    }
    let above_repo = sandbox.root().display().to_string();
    for line in ["git -C repo proq show ", "git proq -C repo show "] {
        screen.restart(&above_repo);
        screen.assert_completion(line, &["payments", "parser", "search"], &["--json", "-C"]);
    }

    screen.restart(&repo);
    screen.assert_completion("proq cd pay", &["$ proq cd payments"], &[]);
    screen.press("Enter");
    screen.type_text("pwd");
    screen.press("Enter");
    let is_folder = |folder: &'static str| move |text: &str| text.lines().any(|line| line == folder);
    screen.wait_until("the folder of the lane", is_folder("[ROOT]/repo/.proq-worktrees/payments"));
    screen.type_text("proq cd; pwd");
    screen.press("Enter");
    screen.wait_until("the main checkout", is_folder("[ROOT]/repo"));
}

#[test]
#[ignore = "needs bash-completion, zsh and fish"]
fn bash_completes_in_terminal() {
    drive("bash");
}

#[test]
#[ignore = "needs bash-completion, zsh and fish"]
fn zsh_completes_in_terminal() {
    drive("zsh -d");
}

#[test]
#[ignore = "needs bash-completion, zsh and fish"]
fn fish_completes_in_terminal() {
    drive("fish");
}
