//! Lanes of real projects: what was built in the main checkout is reused.

use std::path::Path;

use proq_test_kit::{Output, Sandbox};

/// An npm package with a local dependency, so that no network is needed.
const PACKAGE: &str = r#"{"name":"app","version":"1.0.0","dependencies":{"dep":"file:dep"}}"#;

trait WithArgs {
    fn with_args(self, args: &[&str]) -> Self;
}

impl WithArgs for std::process::Command {
    fn with_args(mut self, args: &[&str]) -> Self {
        self.args(args);
        self
    }
}

#[test]
#[ignore = "needs npm"]
fn npm_installs_in_each_lane() {
    let sandbox = Sandbox::new();
    sandbox.write("package.json", PACKAGE);
    sandbox.write("dep/package.json", r#"{"name":"dep","version":"1.0.0","main":"i.js"}"#);
    sandbox.write("dep/i.js", "module.exports = process.env.PROQ_LANE\n");
    sandbox.write(".gitignore", "node_modules/\n.env\n");
    sandbox.write(".worktreeinclude", ".env\n");
    sandbox.commit_all("app");
    sandbox.write(".env", "TOKEN=1\n");
    let install = "npm install --offline --no-audit --no-fund --no-update-notifier --no-package-lock";
    for command in
        [install, "node -e 'require(\"fs\").writeFileSync(\"node_modules/lane\", require(\"dep\"))'"]
    {
        sandbox.git(&["config", "--add", "proq.lane.setup", command]);
    }
    let out = sandbox.proq(&["spawn", "--empty", "-n", "x"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    let lane = sandbox.lane_path("x");
    assert_eq!(std::fs::read_to_string(lane.join("node_modules/lane")).unwrap(), "x");
    assert_eq!(std::fs::read_to_string(lane.join(".env")).unwrap(), "TOKEN=1\n");
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    assert!(!sandbox.repo.join("node_modules").exists());
}

fn cargo(sandbox: &Sandbox, dir: &Path, args: &[&str]) -> Output {
    let mut command = sandbox.command("cargo", dir).with_args(args);
    // The sandbox has a home of its own without a compiler.
    let home = std::env::home_dir().unwrap();
    for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        command.env(name, std::env::var_os(name).unwrap_or_else(|| home.join(folder).into()));
    }
    sandbox.output(command)
}

#[test]
fn lane_reuses_build_of_main_checkout() {
    let sandbox = Sandbox::new();
    let package =
        |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    sandbox.write("Cargo.toml", &(package("app") + "[dependencies]\ndep = { path = \"dep\" }\n"));
    sandbox.write("src/main.rs", "fn main() { println!(\"{}\", dep::one()) }\n");
    sandbox.write("dep/Cargo.toml", &package("dep"));
    sandbox.write("dep/src/lib.rs", "pub fn one() -> u8 { 1 }\n");
    sandbox.write(".gitignore", "target/\n");
    sandbox.write(".worktreeinclude", "target/\n");
    sandbox.commit_all("app");
    let built = cargo(&sandbox, &sandbox.repo, &["build", "--offline"]);
    assert_eq!(built.code, 0, "{}", built.to_text());
    sandbox.commit_all("lock file");
    // Changed since and not committed, so the lane does not have it.
    sandbox.write("dep/src/lib.rs", "pub fn one() -> u8 { 2 }\n");
    let lane = sandbox.lane_path("x");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let rebuilt = cargo(&sandbox, &lane, &["build", "--offline"]);
    assert!(rebuilt.code == 0 && rebuilt.stderr.contains("Finished"), "{}", rebuilt.to_text());
    assert!(rebuilt.stderr.contains("Compiling dep"), "{}", rebuilt.to_text());
    sandbox.git(&["checkout", "-q", "dep"]);
    let clean = cargo(&sandbox, &sandbox.repo, &["build", "--offline"]);
    assert_eq!(clean.code, 0, "{}", clean.to_text());
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    let lane = sandbox.lane_path("y");
    let rebuilt = cargo(&sandbox, &lane, &["build", "--offline"]);
    assert!(rebuilt.code == 0 && !rebuilt.stderr.contains("Compiling"), "{}", rebuilt.to_text());
    // Git trusts the index, which was written again with those times.
    assert_eq!(sandbox.git_in(&lane, &["diff-files", "--name-only"]), "");
    assert_eq!(sandbox.git_in(&lane, &["write-tree"]), sandbox.git_in(&lane, &["rev-parse", "HEAD^{tree}"]));
    sandbox.sh_in(&lane, "printf '// changed\\n' >> src/main.rs");
    assert_eq!(sandbox.git_in(&lane, &["diff-files", "--name-only"]), "src/main.rs");
    let changed = cargo(&sandbox, &lane, &["build", "--offline"]);
    assert!(changed.stderr.contains("Compiling app"), "{}", changed.to_text());
}
