//! Owns landing through a tool: a plan first, and only what that plan says.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rmcp::model::CallToolResult;
use rmcp::schemars;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{failure, refused, result, told};
use super::server::Server;
use super::words::Words;
use crate::config::Uncommitted;
use crate::git;
use crate::lane::{self, Project};
use crate::note::Listener;

/// What is to land.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Landing {
    /// The lanes; all that are done when left out.
    #[serde(default)]
    lanes: Vec<String>,
    /// How: merge, rebase or squash; what is set for the repository when left out.
    #[serde(default)]
    strategy: Option<String>,
    /// Shell commands to check what will land with, besides those that are set.
    #[serde(default)]
    verify: Vec<String>,
    /// All of them or none.
    #[serde(default)]
    atomic: bool,
    /// The token of the plan; left out in the first call.
    #[serde(default)]
    token: Option<String>,
}

/// What a dry run says.
struct Plan {
    /// Its answer.
    answer: Value,
    /// The lanes that would be tried, in order.
    lanes: Vec<String>,
    /// What it rests on: lanes with their tips, bases with theirs, settings, checks, remotes, and what would come of it.
    rests_on: String,
}

impl Landing {
    /// The command line that all of its forms share.
    fn words(&self) -> Words {
        Words::json("merge")
            .options("--strategy", &self.strategy)
            .options("--verify", &self.verify)
            .flag("--atomic", self.atomic)
    }
}

impl Server {
    /// Lands what a plan said, or makes one.
    pub(super) async fn land(&self, asked: Landing) -> CallToolResult {
        let plan = match self.plan(&asked).await {
            Ok(plan) => plan,
            Err(why) => return refused(&why),
        };
        let token = token(&self.secret, &asked, &plan);
        if plan.lanes.is_empty() || asked.token.as_ref() != Some(&token) {
            return told(&shown(&asked, &plan, &token));
        }
        // Named one by one: whatever has become done since is not part of the plan.
        let words = asked.words().options("--order", [&"given".to_owned()]).names(&plan.lanes);
        match self.run(&words.all(), Vec::new()).await {
            Ok(answered) => result(&answered),
            Err(why) => refused(&why),
        }
    }

    /// Makes a dry run, and looks at what it rests on before and after: a plan of a moment in between is of neither.
    async fn plan(&self, asked: &Landing) -> Result<Plan, String> {
        let before = Ground::read(&self.dir)?;
        let words = asked.words().flag("--dry-run", true).flag("--all", asked.lanes.is_empty());
        let answer = self.json(words.names(&asked.lanes)).await?;
        let after = Ground::read(&self.dir)?;
        let rows = || answer["lanes"].as_array().into_iter().flatten();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let lanes: Vec<String> = rows().map(|row| text(row, "lane")).collect();
        // Where both are the same the plan is of that place. Where they are not, no plan that is made later rests on both.
        let mut rests_on = format!("{:?}\n", (&before.settings, &after.settings));
        for row in rows() {
            let lane = text(row, "lane");
            let places = (before.lanes.get(&lane), after.lanes.get(&lane));
            rests_on.push_str(&format!(
                "{lane:?} {places:?} {:?} {:?} {:?} {:?}\n",
                text(row, "onto"),
                text(row, "result"),
                text(row, "method"),
                row["message"].as_str(),
            ));
        }
        // How often a check ran or was known is nothing that it rests on.
        for part in ["/checks/commands", "/checks/tasks", "/checks/unapproved", "/pushed", "/stopped"] {
            rests_on.push_str(&format!("{:?}\n", answer.pointer(part)));
        }
        Ok(Plan { answer, lanes, rests_on })
    }

    async fn json(&self, words: Words) -> Result<Value, String> {
        let answered = self.run(&words.all(), Vec::new()).await?;
        let text = String::from_utf8_lossy(&answered.stdout);
        let talk = String::from_utf8_lossy(&answered.stderr);
        match failure(&text, &talk, answered.code) {
            Some(why) => Err(why),
            None => serde_json::from_str(&text).map_err(|e| format!("the answer was no JSON: {e}")),
        }
    }
}

/// What a landing depends on and a dry run does not show.
struct Ground {
    /// Where each lane is, with what is uncommitted in it, and where its base is.
    lanes: BTreeMap<String, String>,
    /// The settings of git-proq, and the addresses that git pushes to.
    settings: String,
}

impl Ground {
    fn read(dir: &Path) -> Result<Ground, String> {
        let read = || -> Result<Ground, lane::Error> {
            let project = Project::open(dir, Listener::silent())?;
            let repo = &project.repo;
            let mut lanes = BTreeMap::new();
            for lane in project.lanes()? {
                let (tip, base) = (repo.branch_tip(&lane.place.branch)?, repo.branch_tip(&lane.base)?);
                // A lane that cannot be looked at is no other plan as long as it cannot.
                let uncommitted = uncommitted(&project, &lane.path).unwrap_or_else(|e| e.to_string());
                lanes.insert(lane.name, format!("{tip:?} {} {base:?} {uncommitted}", lane.base));
            }
            let settings = format!("{:?} {:?}", project.layers, repo.push_addresses());
            Ok(Ground { lanes, settings })
        };
        read().map_err(|e| format!("error: {e}"))
    }
}

/// What is uncommitted in a worktree, by what the disk says of each file: with merge.uncommitted a landing may commit it.
fn uncommitted(project: &Project, dir: &Path) -> Result<String, lane::Error> {
    let mut out = String::new();
    if project.settings.uncommitted != Uncommitted::Commit || !dir.is_dir() {
        return Ok(out);
    }
    for path in git::status(&project.repo, dir, true)?.paths() {
        let at = path.under(dir).symlink_metadata().ok();
        let at = at.map(|at| (at.ino(), at.size(), at.mode(), at.ctime(), at.ctime_nsec()));
        out.push_str(&format!("{path} {at:?};"));
    }
    Ok(out)
}

/// What tells one plan from another. Nobody can make one but the server that has shown the plan.
fn token(secret: &RandomState, asked: &Landing, plan: &Plan) -> String {
    let terms = (&asked.strategy, &asked.verify, asked.atomic, &plan.lanes, &plan.rests_on);
    format!("{:016x}", secret.hash_one(terms))
}

fn shown(asked: &Landing, plan: &Plan, token: &str) -> String {
    let next = match (&asked.token, plan.lanes.is_empty()) {
        (_, true) => "there is nothing to land; nothing was changed",
        (None, _) => {
            "nothing has landed yet; to land exactly this, call merge again with the same arguments and this token"
        }
        (Some(_), _) => {
            "nothing has landed: this is another plan than the one of that token, since lanes, bases, settings or arguments \
             have changed; look at it, then call merge again with this token"
        }
    };
    let token = (!plan.lanes.is_empty()).then_some(token);
    let answer = json!({ "plan": plan.answer, "token": token, "next": next });
    serde_json::to_string_pretty(&answer).unwrap_or_default()
}
