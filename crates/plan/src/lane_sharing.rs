//! Lane sharing: tasks of a plan whose scopes overlap share a lane.

use std::collections::BTreeMap;

use proq_git as git;
use proq_git::RepoPath;
use proq_git::status::scope::Scope;

use super::plan::Plan;

/// Groups of tasks that share a lane. Tasks with files in common run in one lane, one after the other.
#[derive(Debug, Clone, Default)]
pub struct LaneSharing {
    /// For each task, the first task of its lane, which may be the task itself.
    lane_roots: Vec<usize>,
    /// File overlaps that join lanes: enough of them to explain for each task why it is in its lane.
    pub overlaps: Vec<FileOverlap>,
}

/// Two tasks whose scopes have files in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOverlap {
    /// Positions of the two tasks in the plan.
    pub tasks: [usize; 2],
    /// The overlapping glob of each task.
    pub globs: [String; 2],
}

impl LaneSharing {
    /// Groups the open tasks of a plan. `files` lists the existing files. It is called only if a glob has a
    /// pattern, since folders and files are compared by name.
    ///
    /// # Errors
    /// Fails if a scope or the list of files cannot be read.
    pub fn from_plan(
        plan: &Plan,
        files: impl FnOnce() -> Result<Vec<RepoPath>, git::Error>,
    ) -> Result<LaneSharing, git::Error> {
        let mut scopes = Vec::new();
        for (index, plan_task) in plan.tasks().enumerate() {
            if !plan_task.task.done && !plan_task.task.scope.is_empty() {
                scopes.push((index, Scope::parse(&plan_task.task.scope)?));
            }
        }
        let mut out = LaneSharing { lane_roots: (0..plan.tasks().count()).collect(), overlaps: Vec::new() };
        for (n, (first_task, scope)) in scopes.iter().enumerate() {
            for (second_task, other_scope) in &scopes[n + 1..] {
                if out.find_root(*first_task) == out.find_root(*second_task) {
                    continue;
                }
                if let Some((first_glob, second_glob)) = scope.overlapping_globs(other_scope) {
                    out.join_lanes(*first_task, *second_task, first_glob, second_glob);
                }
            }
        }
        if scopes.iter().any(|(_, scope)| scope.has_patterns()) {
            out.join_by_existing_files(&scopes, &files()?);
        }
        for task in 0..out.lane_roots.len() {
            out.lane_roots[task] = out.find_root(task);
        }
        Ok(out)
    }

    /// Joins the lanes of tasks whose scopes contain the same existing file.
    fn join_by_existing_files(&mut self, scopes: &[(usize, Scope)], files: &[RepoPath]) {
        for file in files {
            let mut first_match: Option<(usize, &str)> = None;
            for (task, scope) in scopes {
                let Some(glob) = scope.matching_glob(file) else { continue };
                match first_match {
                    None => first_match = Some((*task, glob)),
                    Some((first_task, first_glob)) if self.find_root(first_task) != self.find_root(*task) => {
                        self.join_lanes(first_task, *task, first_glob, glob);
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// Joins the lanes of two tasks, and records the globs that overlap.
    fn join_lanes(&mut self, first: usize, second: usize, first_glob: &str, second_glob: &str) {
        let (first_root, second_root) = (self.find_root(first), self.find_root(second));
        self.lane_roots[first_root.max(second_root)] = first_root.min(second_root);
        self.overlaps.push(FileOverlap {
            tasks: [first, second],
            globs: [first_glob.to_owned(), second_glob.to_owned()],
        });
    }

    /// Returns the first task of a task's lane while lanes are being joined.
    fn find_root(&self, mut task: usize) -> usize {
        while self.lane_roots[task] != task {
            task = self.lane_roots[task];
        }
        task
    }

    /// Returns the first task of a task's lane, which identifies the lane.
    pub fn first_task_of_lane(&self, task: usize) -> usize {
        self.lane_roots[task]
    }

    /// Returns the lanes with more than one task, each in the plan's order.
    pub fn shared_lanes(&self) -> Vec<Vec<usize>> {
        let mut lanes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (task, lane_root) in self.lane_roots.iter().enumerate() {
            lanes.entry(*lane_root).or_default().push(task);
        }
        lanes.into_values().filter(|lane| lane.len() > 1).collect()
    }

    /// Returns the maximum number of lanes that run concurrently if there is no other limit.
    pub fn max_concurrent_lanes(&self, waves: &[Vec<usize>]) -> usize {
        let count_lanes = |wave: &Vec<usize>| {
            let mut lanes: Vec<usize> = wave.iter().map(|task| self.first_task_of_lane(*task)).collect();
            lanes.sort_unstable();
            lanes.dedup();
            lanes.len()
        };
        waves.iter().map(count_lanes).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::toml_plan;

    /// Groups the tasks of a plan with one task for each list of globs.
    fn share_lanes(scopes: &[&[&str]], files: &[&str]) -> LaneSharing {
        let task = |(n, scope): (usize, &&[&str])| {
            format!("[[task]]\nid = \"t{n}\"\ntitle = \"t\"\nscope = {scope:?}\n")
        };
        let text: String = scopes.iter().enumerate().map(task).collect();
        let plan = toml_plan::read(&Arc::from("f"), &format!("format = 1\n{text}")).unwrap();
        let files = files.iter().map(|path| RepoPath::new(*path)).collect();
        LaneSharing::from_plan(&plan, || Ok(files)).unwrap()
    }

    #[test]
    fn compares_folders_by_name_and_patterns_by_existing_files() {
        let by_name = share_lanes(&[&["src/pay/"], &["docs"], &["src/pay/api.rs"], &[]], &[]);
        assert_eq!(by_name.shared_lanes(), [[0, 2]]);
        assert_eq!(by_name.overlaps[0].globs, ["src/pay/", "src/pay/api.rs"]);
        let patterns: &[&[&str]] = &[&["*.md"], &["docs/"], &["src/*.rs"]];
        assert_eq!(share_lanes(patterns, &[]).shared_lanes(), [[0; 0]; 0]);
        assert_eq!(share_lanes(patterns, &["docs/a.md", "src/a.rs"]).shared_lanes(), [[0, 1]]);
    }

    #[test]
    fn tasks_overlapping_a_third_share_its_lane() {
        let lanes = share_lanes(&[&["a"], &["b"], &["c"], &["a/x", "c/x"], &["d"]], &[]);
        assert_eq!(lanes.shared_lanes(), [[0, 2, 3]]);
        assert_eq!(lanes.overlaps.len(), 2);
        assert_eq!(lanes.max_concurrent_lanes(&[vec![0, 1, 2], vec![3, 4]]), 2);
    }
}
