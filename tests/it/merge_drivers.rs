//! Owns the tests of merge drivers and attributes files: where they run and are found, whatever git and settings.

use super::support::Sandbox;

/// A lane and a base that change a file which a driver of this command line merges.
fn driven(driver: &str, settings: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "mkdir tools sub; echo 'v merge=own' > .gitattributes; echo 1 > v; echo 7 > VERSION; echo s > sub/s
        printf '#!/bin/sh\ncat VERSION > \"$1\"; echo \"$2\" >> \"$1\"\n' > tools/drv; chmod +x tools/drv",
    );
    sandbox.commit_all("base");
    sandbox.git(&["config", "merge.own.driver", driver]);
    sandbox.sh(settings);
    sandbox.lane_of("one", "echo lane > v");
    sandbox.sh("echo main > v; git commit -qam main");
    sandbox
}

#[test]
fn a_merge_driver_runs_in_the_checkout_whatever_git_and_settings() {
    for settings in ["true", "git config merge.renormalize true"] {
        for (driver, wanted) in [
            ("./tools/drv %A %P", "7\nv\n"),
            ("(cat VERSION || echo none) > %A", "7\n"),
            ("cat \"%O\" %A %B > all; mv all %A", "1\nmain\nlane\n"),
            ("git show :VERSION > %A", "7\n"),
        ] {
            let sandbox = driven(driver, settings);
            let dir = sandbox.repo.join("sub");
            let seen = sandbox.proq(&["matrix", "--json"]).json();
            assert_eq!(seen["pairs"][0]["result"], "clean", "{driver}: {seen}");
            let _ = sandbox.proq_in(&dir, &["merge", "one", "--dry-run"]).ok();
            let _ = sandbox.proq_in(&dir, &["merge", "one"]).ok();
            assert_eq!(sandbox.read("v"), wanted, "{driver}, {settings}");
        }
    }
}

#[test]
fn an_attributes_file_is_found_from_the_top_of_the_checkout() {
    for settings in ["true", "git config merge.renormalize true"] {
        let sandbox = Sandbox::new();
        sandbox.sh("mkdir sub; echo top > list; echo s > sub/s; echo 'list merge=union' > ../attributes");
        sandbox.commit_all("base");
        sandbox.git(&["config", "core.attributesFile", "../attributes"]);
        sandbox.sh(settings);
        sandbox.lane_of("one", "echo lane >> list");
        sandbox.sh("echo main >> list; git commit -qam main");
        let _ = sandbox.proq_in(&sandbox.repo.join("sub"), &["merge", "one"]).ok();
        assert_eq!(sandbox.read("list"), "top\nmain\nlane\n", "{settings}");
    }
}

#[test]
fn what_a_merge_driver_writes_is_no_part_of_the_answer_of_git() {
    for (name, settings) in [("own", "true"), ("own", "git config merge.renormalize true"), ("a=b", "true")] {
        for words in ["echo merging %P", "printf '1\\000aaaa\\000\\000'", "seq 20000"] {
            let driver = format!("{words}; cat %B >> %A # all");
            let sandbox = driven(&driver, settings);
            sandbox.lane_of("two", "echo two > v");
            sandbox.git(&["config", &format!("merge.{name}.driver"), &driver]);
            sandbox.sh(&format!(
                "echo 'v merge={name}' > .gitattributes; git commit -qam attributes --allow-empty"
            ));
            let seen = sandbox.proq(&["matrix", "--json"]).json();
            let results: Vec<_> =
                seen["pairs"].as_array().unwrap().iter().map(|pair| &pair["result"]).collect();
            assert!(
                results.len() == 3 && results.iter().all(|result| *result == "clean"),
                "{driver}: {seen}"
            );
            let _ = sandbox.proq(&["merge", "one", "--dry-run"]).ok();
            let _ = sandbox.proq(&["merge", "--all"]).ok();
            assert_eq!(sandbox.read("v"), "main\nlane\ntwo\n", "{name}, {driver}, {settings}");
        }
    }
}
