//! Owns what `git proq plan --json` says.

use serde::Serialize;

use super::Look;
use crate::swarm::{Order, Progress, Size};

#[derive(Serialize)]
pub(super) struct Answer {
    source: Source,
    summary: String,
    warnings: Vec<String>,
    criteria: Vec<String>,
    remarks: Vec<String>,
    phases: Vec<Phase>,
    tasks: Vec<Task>,
    /// Names of open tasks.
    waves: Vec<Vec<String>>,
    /// Of what tasks need, what an agent found missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    proposed: Vec<Proposal>,
    shared_lanes: Vec<Shared>,
    max_parallel: usize,
    /// How many lanes are at work at the same time at most.
    lanes: usize,
    /// How many would be without a limit.
    could_be_lanes: usize,
    longest: Longest,
    time: Time,
}

/// How long it would take.
#[derive(Serialize)]
struct Time {
    /// In small tasks, one after the other.
    weight: usize,
    /// In seconds, at the pace of former runs; none where there were too few.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<u64>,
    /// How many runs that was made of.
    from_runs: usize,
}

#[derive(Serialize)]
struct Proposal {
    task: String,
    needs: String,
    because: String,
    agent: String,
}

#[derive(Serialize)]
struct Source {
    format: String,
    names: Vec<String>,
}

#[derive(Serialize)]
struct Phase {
    title: String,
    order: Order,
    groups: Vec<Group>,
}

#[derive(Serialize)]
struct Group {
    theme: String,
    rationale: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    prompt: String,
    tasks: Vec<String>,
}

#[derive(Serialize)]
struct Task {
    name: String,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    area: Option<String>,
    title: String,
    prompt: String,
    needs: Vec<String>,
    scope: Vec<String>,
    size: Size,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    checks: Vec<String>,
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Progress>,
    /// From 1.
    phase: usize,
    /// From 1; none for one that is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    wave: Option<usize>,
    /// The one that it would be done in, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<usize>,
    from: From,
}

#[derive(Serialize)]
struct From {
    file: String,
    line: usize,
}

#[derive(Serialize)]
struct Shared {
    tasks: Vec<String>,
    because: Vec<Because>,
}

/// Two of them, and the glob of each by which they meet.
#[derive(Serialize)]
struct Because {
    tasks: [String; 2],
    globs: [String; 2],
}

#[derive(Serialize)]
struct Longest {
    tasks: Vec<String>,
    weight: usize,
    /// What all open tasks weigh together.
    of: usize,
}

pub(super) fn of(look: &Look<'_>) -> Answer {
    let plan = look.plan();
    let because = |lane: &[usize]| {
        let met = look.sharing.met.iter().filter(|met| look.sharing.lane(met.tasks[0]) == lane[0]);
        let because = |met: &crate::swarm::Met| Because {
            tasks: met.tasks.map(|task| look.name(task)),
            globs: met.globs.clone(),
        };
        met.map(because).collect()
    };
    let shared = look.sharing.shared();
    Answer {
        source: Source { format: look.found.format.word().to_owned(), names: look.sources.to_vec() },
        summary: plan.summary.clone(),
        warnings: plan.warnings.clone(),
        criteria: plan.criteria.clone(),
        remarks: plan.remarks.iter().map(ToString::to_string).collect(),
        phases: plan.phases.iter().map(phase).collect(),
        tasks: tasks(look),
        waves: look.waves.iter().map(|wave| look.names(wave)).collect(),
        proposed: look
            .found
            .proposed
            .iter()
            .map(|edge| Proposal {
                task: look.name(edge.task),
                needs: look.name(edge.need),
                because: edge.because.clone(),
                agent: edge.agent.clone(),
            })
            .collect(),
        shared_lanes: shared
            .iter()
            .map(|lane| Shared { tasks: look.names(lane), because: because(lane) })
            .collect(),
        max_parallel: look.max_parallel,
        lanes: look.lanes(),
        could_be_lanes: look.sharing.widest(&look.waves),
        longest: Longest {
            tasks: look.names(&look.longest.tasks),
            weight: look.longest.weight,
            of: look.work(),
        },
        time: time(look),
    }
}

fn time(look: &Look<'_>) -> Time {
    let weight = look.rehearsal.as_ref().map_or(0, |played| played.span);
    Time {
        weight,
        seconds: look.pace.map(|pace| pace.of_small(weight).as_secs()),
        from_runs: look.pace.map_or(0, |pace| pace.runs),
    }
}

fn phase(phase: &crate::swarm::Phase) -> Phase {
    let group = |group: &crate::swarm::Group| Group {
        theme: group.theme.clone(),
        rationale: group.rationale.clone(),
        agent: group.agent.clone(),
        model: group.model.clone(),
        prompt: group.prompt.clone(),
        tasks: group.tasks.iter().map(crate::swarm::Task::name).collect(),
    };
    Phase { title: phase.title.clone(), order: phase.order, groups: phase.groups.iter().map(group).collect() }
}

fn tasks(look: &Look<'_>) -> Vec<Task> {
    let waves = look.wave_of();
    let task = |(at, spot): (usize, &crate::swarm::Spot<'_>)| {
        let task = spot.task;
        Task {
            name: task.name(),
            id: task.id.clone(),
            area: task.area.clone(),
            title: task.title.clone(),
            prompt: task.prompt.clone(),
            needs: look.names(look.graph().needs(at)),
            scope: task.scope.clone(),
            size: task.size,
            agent: look.plan().agent_of(*spot).map(ToOwned::to_owned),
            model: look.plan().model_of(*spot).map(ToOwned::to_owned),
            checks: task.checks.clone(),
            done: task.done,
            review: task.review,
            steps: task.progress,
            phase: spot.phase + 1,
            wave: waves[at],
            lane: look.lane_of(at),
            from: From { file: task.from.file.to_string(), line: task.from.line },
        }
    };
    look.spots.iter().enumerate().map(task).collect()
}
