//! Owns which tasks of a plan are about the same files, and so share a lane.

use std::collections::BTreeMap;

use super::{Error, Plan};
use crate::git::{RepoPath, Scope};

/// Tasks that have files in common go in one lane, one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sharing {
    /// For each task the first one of its lane, which may be itself.
    first: Vec<usize>,
    /// Meetings that tie lanes together: enough to say of each task why it is there.
    pub(crate) met: Vec<Met>,
}

/// Two tasks that are about the same files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Met {
    /// The tasks.
    pub(crate) tasks: [usize; 2],
    /// The glob of each.
    pub(crate) globs: [String; 2],
}

impl Sharing {
    /// Looks at the open tasks of a plan. `files` gives the files that exist; it is asked only where a pattern is among the
    /// globs, since folders and files are compared by name.
    ///
    /// # Errors
    /// Where a scope, or the list of files, cannot be read.
    pub(crate) fn of(
        plan: &Plan,
        files: impl FnOnce() -> Result<Vec<RepoPath>, Error>,
    ) -> Result<Sharing, Error> {
        let mut scopes = Vec::new();
        for (at, spot) in plan.spots().enumerate() {
            if !spot.task.done && !spot.task.scope.is_empty() {
                scopes.push((at, Scope::read(&spot.task.scope)?));
            }
        }
        let mut out = Sharing { first: (0..plan.spots().count()).collect(), met: Vec::new() };
        for (n, (one, mine)) in scopes.iter().enumerate() {
            for (two, theirs) in &scopes[n + 1..] {
                if out.root(*one) == out.root(*two) {
                    continue;
                }
                if let Some((a, b)) = mine.meets(theirs) {
                    out.tie(*one, *two, a, b);
                }
            }
        }
        if scopes.iter().any(|(_, scope)| scope.has_patterns()) {
            out.meet_at(&scopes, &files()?);
        }
        for task in 0..out.first.len() {
            out.first[task] = out.root(task);
        }
        Ok(out)
    }

    /// Ties together what is about the same existing file.
    fn meet_at(&mut self, scopes: &[(usize, Scope)], files: &[RepoPath]) {
        for file in files {
            let mut holder: Option<(usize, &str)> = None;
            for (task, scope) in scopes {
                let Some(glob) = scope.holds(file) else { continue };
                match holder {
                    None => holder = Some((*task, glob)),
                    Some((other, theirs)) if self.root(other) != self.root(*task) => {
                        self.tie(other, *task, theirs, glob);
                    }
                    Some(_) => {}
                }
            }
        }
    }

    fn tie(&mut self, one: usize, two: usize, a: &str, b: &str) {
        let (one_root, two_root) = (self.root(one), self.root(two));
        self.first[one_root.max(two_root)] = one_root.min(two_root);
        self.met.push(Met { tasks: [one, two], globs: [a.to_owned(), b.to_owned()] });
    }

    fn root(&self, mut task: usize) -> usize {
        while self.first[task] != task {
            task = self.first[task];
        }
        task
    }

    /// The first task of a task's lane, which stands for the lane.
    pub(crate) fn lane(&self, task: usize) -> usize {
        self.first[task]
    }

    /// Lanes of more than one task, each in the plan's order.
    pub(crate) fn shared(&self) -> Vec<Vec<usize>> {
        let mut lanes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (task, first) in self.first.iter().enumerate() {
            lanes.entry(*first).or_default().push(task);
        }
        lanes.into_values().filter(|lane| lane.len() > 1).collect()
    }

    /// How many lanes are at work at the same time at most, if there is no other limit.
    pub(crate) fn widest(&self, waves: &[Vec<usize>]) -> usize {
        let lanes = |wave: &Vec<usize>| {
            let mut lanes: Vec<usize> = wave.iter().map(|task| self.lane(*task)).collect();
            lanes.sort_unstable();
            lanes.dedup();
            lanes.len()
        };
        waves.iter().map(lanes).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::toml_plan;
    use super::*;

    /// A plan with a task for each list of globs, and their lanes.
    fn sharing(scopes: &[&[&str]], files: &[&str]) -> Sharing {
        let task = |(n, scope): (usize, &&[&str])| {
            format!("[[task]]\nid = \"t{n}\"\ntitle = \"t\"\nscope = {scope:?}\n")
        };
        let text: String = scopes.iter().enumerate().map(task).collect();
        let plan = toml_plan::read(&Arc::from("f"), &format!("format = 1\n{text}")).unwrap();
        let files = files.iter().map(|path| RepoPath::new(*path)).collect();
        Sharing::of(&plan, || Ok(files)).unwrap()
    }

    #[test]
    fn folders_are_compared_by_name_and_patterns_by_the_files_that_are_there() {
        let named = sharing(&[&["src/pay/"], &["docs"], &["src/pay/api.rs"], &[]], &[]);
        assert_eq!(named.shared(), [[0, 2]]);
        assert_eq!(named.met[0].globs, ["src/pay/", "src/pay/api.rs"]);
        let patterns: &[&[&str]] = &[&["*.md"], &["docs/"], &["src/*.rs"]];
        assert_eq!(sharing(patterns, &[]).shared(), [[0; 0]; 0]);
        assert_eq!(sharing(patterns, &["docs/a.md", "src/a.rs"]).shared(), [[0, 1]]);
    }

    #[test]
    fn what_meets_a_third_one_shares_its_lane() {
        let lanes = sharing(&[&["a"], &["b"], &["c"], &["a/x", "c/x"], &["d"]], &[]);
        assert_eq!(lanes.shared(), [[0, 2, 3]]);
        assert_eq!(lanes.met.len(), 2);
        assert_eq!(lanes.widest(&[vec![0, 1, 2], vec![3, 4]]), 2);
    }
}
