//! Scripts that stand in for `gh` and `glab`, with one request numbered 7, and print what those document.

use std::path::PathBuf;

use crate::Sandbox;

/// Part of both scripts: notes the call, fails if a test wants that, and defines `field NAME DEFAULT` and
/// `head`, the newest commit of the request.
const PRELUDE: &str = r#"
dir=$ROOT/forge
{ printf '%s' "${0##*/}"; for word; do printf ' %s' "$word" | tr '\n' '~'; done; echo; } >> "$dir/calls"
[ ! -f "$dir/failure" ] || { cat "$dir/failure" >&2; exit "$(cat "$dir/exit")"; }
field() { cat "$dir/$1" 2> /dev/null || printf %s "$2"; }
option() { wanted=$1; shift; while [ $# -gt 0 ]; do [ "$1" != "$wanted" ] || { printf %s "$2"; return; }; shift; done; }
head() { [ ! -f "$dir/branch" ] || field head "$(git --git-dir="$ROOT/origin.git" rev-parse "refs/heads/$(cat "$dir/branch")")"; }
echo "a warning on standard error" >&2
"#;

const GH: &str = r#"
json() {
    printf '{"number":7,"url":"https://github.com/acme/shop/pull/7","state":"%s","headRefOid":"%s","isDraft":%s,' \
        "$(field state OPEN)" "$(head)" "$(field draft false)"
    printf '"statusCheckRollup":%s,"mergeCommit":%s,"mergedAt":null,"headRepositoryOwner":{"login":"acme"}}\n' \
        "$(field checks '[]')" "$(field merge_commit null)"
}
case "$1 $2" in
"pr create") cat > "$dir/body"; option --head "$@" | sed 's/.*://' > "$dir/branch"; echo https://github.com/acme/shop/pull/7 ;;
"pr list") if [ -f "$dir/branch" ] && [ "$(field state OPEN)" = OPEN ]; then echo "[$(json)]"; else echo "[]"; fi ;;
"pr view") json ;;
"pr edit") cat > "$dir/body" ;;
"pr ready") ;;
"pr reopen") rm "$dir/state" ;;
"issue view") cat "$dir/issue" ;;
*) echo "unknown command \"$1\" for \"gh\"" >&2; exit 1 ;;
esac"#;

const GLAB: &str = r#"
json() {
    printf '{"iid":7,"web_url":"https://gitlab.com/acme/tools/shop/-/merge_requests/7","state":"%s","sha":"%s",' \
        "$(field state opened)" "$(head)"
    printf '"draft":%s,"head_pipeline":%s,"merge_commit_sha":null,"squash_commit_sha":null,"merged_at":null}\n' \
        "$(field draft false)" "$(field checks null)"
}
case "$1 $2" in
"mr create")
    option --description "$@" > "$dir/body"; option --source-branch "$@" > "$dir/branch"
    printf '\n!7 a title (branch)\n https://gitlab.com/acme/tools/shop/-/merge_requests/7\n\n' ;;
"mr list") if [ -f "$dir/branch" ] && [ "$(field state opened)" = opened ]; then echo "[$(json)]"; else echo "[]"; fi ;;
"mr view") json ;;
"mr update") ;;
"issue view") cat "$dir/issue" ;;
*) echo "unknown command" >&2; exit 1 ;;
esac"#;

/// Forge with the repository of the remote `origin`.
pub struct Forge<'s> {
    sandbox: &'s Sandbox,
    dir: PathBuf,
}

impl<'s> Forge<'s> {
    /// Puts `gh` on `PATH`, and gives the sandbox a remote on GitHub with its `main`.
    pub fn github(sandbox: &'s Sandbox) -> Forge<'s> {
        sandbox.program_verbatim("gh", &format!("{PRELUDE}{GH}"));
        Forge::new(sandbox, "https://github.com/acme/shop.git")
    }

    /// Puts `glab` on `PATH`, and gives the sandbox a remote on GitLab with its `main`.
    pub fn gitlab(sandbox: &'s Sandbox) -> Forge<'s> {
        sandbox.program_verbatim("glab", &format!("{PRELUDE}{GLAB}"));
        Forge::new(sandbox, "git@gitlab.com:acme/tools/shop.git")
    }

    fn new(sandbox: &'s Sandbox, url: &str) -> Forge<'s> {
        sandbox.sh(&format!(
            "mkdir ../forge; git init -q --bare -b main ../origin.git; git remote add origin {url}
             git config remote.origin.pushurl \"$ROOT/origin.git\"; git push -q origin main
             git config branch.main.remote origin; git config branch.main.merge refs/heads/main"
        ));
        Forge { sandbox, dir: sandbox.root().join("forge") }
    }

    /// Sets what the program reports: a field of the request as JSON or word (`state`, `head`, `draft`,
    /// `checks`, `merge_commit`), or `issue`, the whole answer about an issue.
    pub fn set(&self, field: &str, value: &str) {
        std::fs::write(self.dir.join(field), value).unwrap();
    }

    /// Makes every call fail with this text on standard error.
    pub fn fail(&self, exit: i32, text: &str) {
        self.set("exit", &exit.to_string());
        self.set("failure", text);
    }

    /// Returns the calls since the last time, one a line, with `~` for line breaks in arguments.
    pub fn take_calls(&self) -> Vec<String> {
        let path = self.dir.join("calls");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        drop(std::fs::remove_file(path));
        text.lines().map(str::to_owned).collect()
    }

    /// Returns the body of the request.
    pub fn body(&self) -> String {
        std::fs::read_to_string(self.dir.join("body")).unwrap()
    }

    /// Returns the commit of a branch of the remote; empty if it has none.
    pub fn remote_branch(&self, branch: &str) -> String {
        self.sandbox
            .sh(&format!("git --git-dir=../origin.git rev-parse -q --verify refs/heads/{branch} || :"))
    }
}
