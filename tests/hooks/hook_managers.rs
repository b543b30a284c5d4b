//! Hooks installed by a hook manager: they run in lanes as in the main checkout.

use proq_test_kit::Sandbox;

/// Script that lefthook installs for each hook, without the many locations it searches beside `PATH`.
const LEFTHOOK: &str = r#"#!/bin/sh

if [ "$LEFTHOOK_VERBOSE" = "1" -o "$LEFTHOOK_VERBOSE" = "true" ]; then
  set -x
fi

if [ "$LEFTHOOK" = "0" ]; then
  exit 0
fi

call_lefthook()
{
  if test -n "$LEFTHOOK_BIN"
  then
    "$LEFTHOOK_BIN" "$@"
  elif lefthook -h >/dev/null 2>&1
  then
    lefthook "$@"
  else
    echo "Can't find lefthook in PATH"
    exit 1
  fi
}

call_lefthook run "NAME" "$@"
"#;

/// Stands in for lefthook: it saves unstaged changes on the stash while a commit is checked, as the real
/// program does, and reads where hooks are; the real one writes there when its configuration has changed.
const LEFTHOOK_PROGRAM: &str = r#"
    [ "$1" = -h ] && exit
    name=$2; shift 2
    echo "$name in $(pwd): staged $(git diff --cached --name-only | tr '\n' ' ')hooks $(git rev-parse --path-format=absolute --git-path hooks)" >> "$ROOT/ran"
    case $name in
    pre-commit)
        git stash store -q -m 'lefthook auto backup' "$(git stash create)"
        git stash drop -q
        test ! -e refuse ;;
    commit-msg) echo trailer >> "$1" ;;
    esac"#;

/// Promise: agent-git/hook-managers
#[test]
fn lefthook_hooks_run_in_lanes_and_use_stash() {
    let sandbox = Sandbox::new();
    sandbox.program("lefthook", LEFTHOOK_PROGRAM);
    for name in ["pre-commit", "commit-msg"] {
        sandbox.write(&format!(".git/hooks/{name}"), &LEFTHOOK.replace("NAME", name));
    }
    sandbox.sh("chmod +x .git/hooks/*");
    let script = "echo one > one; echo more >> a.txt; git add one; git commit -qm one
        touch refuse; if git commit -qam two; then echo not refused; fi; rm refuse; git checkout -q HEAD a.txt; git stash list";
    sandbox.run_lane("x", script);
    assert_eq!(sandbox.git(&["log", "--format=%s", "main..proq/x"]), "one trailer");
    assert_eq!(sandbox.proq(&["logs", "x"]).ok(), "");
    let ran = sandbox.normalize(&std::fs::read(sandbox.root().join("ran")).unwrap());
    let lane = "in [ROOT]/repo/.proq-worktrees/x";
    let hooks_folder = "hooks [ROOT]/repo/.git/hooks";
    assert_eq!(
        ran,
        format!(
            "pre-commit {lane}: staged one {hooks_folder}\ncommit-msg {lane}: staged one {hooks_folder}\npre-commit {lane}: staged a.txt {hooks_folder}\n"
        )
    );
    // Where lefthook is not installed, its hook prints the same as anywhere.
    std::fs::remove_file(sandbox.root().join("bin/lefthook")).unwrap();
    sandbox.run_lane("y", "if git commit -q --allow-empty -m never; then exit 1; fi");
    assert!(sandbox.proq(&["logs", "y"]).ok().contains("Can't find lefthook in PATH"));
}

/// Script that writes what husky installs beside its folder of scripts, including `h`.
const HUSKY: &str = r#"mkdir -p .husky/_; cd .husky/_; echo '*' > .gitignore
    printf '#!/usr/bin/env sh\n. "$(dirname "$0")/h"' > pre-commit; cp pre-commit commit-msg; cp pre-commit pre-push
    chmod +x pre-commit commit-msg pre-push; cat > h <<'END'
#!/usr/bin/env sh
[ "$HUSKY" = "2" ] && set -x
n=$(basename "$0")
s=$(dirname "$(dirname "$0")")/$n

[ ! -f "$s" ] && exit 0

i="${XDG_CONFIG_HOME:-$HOME/.config}/husky/init.sh"
[ -f "$i" ] && . "$i"

[ "${HUSKY-}" = "0" ] && exit 0

export PATH="node_modules/.bin:$PATH"
sh -e "$s" "$@"
c=$?

[ $c != 0 ] && echo "husky - $n script failed (code $c)"
[ $c = 127 ] && echo "husky - command not found in PATH=$PATH"
exit $c
END
"#;

/// Promise: agent-git/hook-managers
#[test]
fn husky_scripts_run_in_lane_with_its_folder() {
    let sandbox = Sandbox::new();
    sandbox.write(".husky/pre-commit", "lint\n");
    sandbox.write(".husky/commit-msg", "echo trailer >> \"$1\"\n");
    sandbox.write(".gitignore", "node_modules\n");
    sandbox.commit_all("husky");
    sandbox.sh(HUSKY);
    sandbox.git(&["config", "core.hooksPath", ".husky/_"]);
    // `npm install` in the lane writes the folder there; the lane's script is the one that runs.
    let script = format!(
        "({HUSKY})\nmkdir -p node_modules/.bin; printf '#!/bin/sh\\necho linted in $(pwd) >> \"$ROOT/ran\"; test ! -e refuse\\n' > node_modules/.bin/lint
        chmod +x node_modules/.bin/lint; echo one > one; git add one; git commit -qm one
        touch refuse; if git commit -q --allow-empty -m two; then echo not refused; fi; rm refuse
        echo 'lint; lint' > .husky/pre-commit; git commit -qam three"
    );
    sandbox.run_lane("x", &script);
    assert_eq!(sandbox.git(&["log", "--format=%s", "main..proq/x"]), "three trailer\none trailer");
    let ran = sandbox.normalize(&std::fs::read(sandbox.root().join("ran")).unwrap());
    assert_eq!(ran, "linted in [ROOT]/repo/.proq-worktrees/x\n".repeat(4));
    assert!(sandbox.proq(&["logs", "x"]).ok().contains("husky - pre-commit script failed (code 1)"));
    assert!(!sandbox.proq(&["logs", "x"]).ok().contains("not refused"));
}
