//! Tests of merge drivers and attributes files: where drivers run and where the files are found, under
//! different merge settings.

use proq_test_kit::Sandbox;

/// Creates a lane and a base that both change a file merged by a driver with this command line.
fn sandbox_with_driver(driver: &str, settings: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "mkdir tools sub; echo 'v merge=own' > .gitattributes; echo 1 > v; echo 7 > VERSION; echo s > sub/s
        printf '#!/bin/sh\ncat VERSION > \"$1\"; echo \"$2\" >> \"$1\"\n' > tools/drv; chmod +x tools/drv",
    );
    sandbox.commit_all("base");
    sandbox.git(&["config", "merge.own.driver", driver]);
    sandbox.sh(settings);
    sandbox.lane_with_commit("one", "echo lane > v");
    sandbox.sh("echo main > v; git commit -qam main");
    sandbox
}

/// Promise: snapshots/git-merge-settings
#[test]
fn driver_runs_at_the_top_of_the_checkout() {
    for settings in ["true", "git config merge.renormalize true"] {
        for (driver, wanted) in [
            ("./tools/drv %A %P", "7\nv\n"),
            ("(cat VERSION || echo none) > %A", "7\n"),
            ("cat \"%O\" %A %B > all; mv all %A", "1\nmain\nlane\n"),
            ("git show :VERSION > %A", "7\n"),
        ] {
            let sandbox = sandbox_with_driver(driver, settings);
            let dir = sandbox.repo.join("sub");
            let matrix = sandbox.proq(&["matrix", "--json"]).json();
            assert_eq!(matrix["pairs"][0]["result"], "clean", "{driver}: {matrix}");
            let _ = sandbox.proq_in(&dir, &["merge", "one", "--dry-run"]).ok();
            let _ = sandbox.proq_in(&dir, &["merge", "one"]).ok();
            assert_eq!(sandbox.read("v"), wanted, "{driver}, {settings}");
        }
    }
}

#[test]
fn attributes_file_is_resolved_from_checkout_top() {
    for settings in ["true", "git config merge.renormalize true"] {
        let sandbox = Sandbox::new();
        sandbox.sh("mkdir sub; echo top > list; echo s > sub/s; echo 'list merge=union' > ../attributes");
        sandbox.commit_all("base");
        sandbox.git(&["config", "core.attributesFile", "../attributes"]);
        sandbox.sh(settings);
        sandbox.lane_with_commit("one", "echo lane >> list");
        sandbox.sh("echo main >> list; git commit -qam main");
        let _ = sandbox.proq_in(&sandbox.repo.join("sub"), &["merge", "one"]).ok();
        assert_eq!(sandbox.read("list"), "top\nmain\nlane\n", "{settings}");
    }
}

#[test]
fn driver_output_is_not_parsed_as_git_output() {
    for (name, settings) in [("own", "true"), ("own", "git config merge.renormalize true"), ("a=b", "true")] {
        for command in ["echo merging %P", "printf '1\\000aaaa\\000\\000'", "seq 20000"] {
            let driver = format!("{command}; cat %B >> %A # all");
            let sandbox = sandbox_with_driver(&driver, settings);
            sandbox.lane_with_commit("two", "echo two > v");
            sandbox.git(&["config", &format!("merge.{name}.driver"), &driver]);
            sandbox.sh(&format!(
                "echo 'v merge={name}' > .gitattributes; git commit -qam attributes --allow-empty"
            ));
            let matrix = sandbox.proq(&["matrix", "--json"]).json();
            let results: Vec<_> =
                matrix["pairs"].as_array().unwrap().iter().map(|pair| &pair["result"]).collect();
            assert!(
                results.len() == 3 && results.iter().all(|result| *result == "clean"),
                "{driver}: {matrix}"
            );
            let _ = sandbox.proq(&["merge", "one", "--dry-run"]).ok();
            let _ = sandbox.proq(&["merge", "--all"]).ok();
            assert_eq!(sandbox.read("v"), "main\nlane\ntwo\n", "{name}, {driver}, {settings}");
        }
    }
}
