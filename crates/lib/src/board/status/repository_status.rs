//! Status of a repository: preview, what needs a person, lanes by state, batches, merge queue, recent landings.

use std::collections::BTreeMap;
use std::time::Duration;

use proq_base::lane_name::LaneName;
use proq_store::base::batch_id::BatchId;
use proq_store::base::clock::{Moment, now};
use serde::Serialize;

use crate::board::attention::{Attention, AttentionKind};
use crate::board::attention_reader::AttentionReader;
use crate::board::queue::{QueueRow, read_queue};
use crate::board::rows::lane_list::LaneList;
use crate::board::rows::load_list::{ListRequest, load_list};
use crate::lane::Project;
use crate::ops::error::Error;
use crate::preview::main_checkout::PreviewStatus;
use crate::swarm::ops::batch_lookup::{read_progress, unfinished_batches};
use crate::swarm::status::progress::{BatchProgress, TaskCounts};

/// Age up to which a landing is recent.
const RECENT: Duration = Duration::from_hours(24);

/// Status of a repository. It serializes to the JSON output.
#[derive(Debug, Serialize)]
pub struct RepositoryStatus {
    /// The open preview; none without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<ShownPreview>,
    /// What needs a person: in lanes by their order in the list, then in batches and the repository.
    pub attention: Vec<StatusAttention>,
    /// Number of present lanes by the word of their state, such as `running`.
    pub lanes: BTreeMap<String, usize>,
    /// Batches that are unfinished or have work that is not on their base, oldest first.
    pub batches: Vec<BatchSummary>,
    /// The merge queue, from the landing at work to the last that waits.
    pub queue: Vec<QueueRow>,
    /// Landings of the last 24 hours, newest first.
    pub landed: Vec<RecentLanding>,
}

/// The open preview.
#[derive(Debug, Serialize)]
pub struct ShownPreview {
    /// Name of the previewed lane.
    pub lane: LaneName,
    /// Branch or commit that `git proq preview --back` returns to.
    pub from: String,
    /// Whether the main checkout still shows the lane; otherwise the user left the preview with git.
    pub shown: bool,
    /// Whether changes of the user are parked until the preview ends.
    pub waiting: bool,
}

impl From<PreviewStatus> for ShownPreview {
    fn from(preview: PreviewStatus) -> ShownPreview {
        ShownPreview {
            lane: preview.lane,
            from: preview.previous_head,
            shown: preview.is_shown,
            waiting: preview.has_parked_changes,
        }
    }
}

/// A case that needs a person, with the lane that it is about.
#[derive(Debug, Serialize)]
pub struct StatusAttention {
    /// Name of the lane; none for a case of a batch or of the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneName>,
    /// The case.
    #[serde(flatten)]
    pub case: Attention,
}

/// A batch in one line.
#[derive(Debug, Serialize)]
pub struct BatchSummary {
    /// Id of the batch.
    pub batch: BatchId,
    /// Word of its state, such as `running` or `paused`.
    pub state: String,
    /// Summary of its plan.
    pub summary: String,
    /// Number of its tasks by state.
    pub counts: TaskCounts,
    /// Whether everything that landed on its own branch is on its base too.
    pub on_base: bool,
}

/// A landing of the last 24 hours.
#[derive(Debug, Serialize)]
pub struct RecentLanding {
    /// Name of the lane.
    pub lane: LaneName,
    /// Branch that it landed on.
    pub onto: String,
    /// Id of the commit that it landed as.
    pub commit: String,
    /// Time of the landing.
    pub at: Moment,
}

impl RepositoryStatus {
    /// Reads the status of a repository.
    ///
    /// # Errors
    /// Fails when lanes, batches or the merge queue cannot be read.
    pub fn load(project: &Project) -> Result<RepositoryStatus, Error> {
        let list = load_list(project, ListRequest::default(), &mut |_| {})?;
        let preview = list.stored.preview.clone().map(ShownPreview::from);
        let mut lanes = BTreeMap::new();
        for view in &list.views {
            *lanes.entry(view.state().to_string()).or_default() += 1;
        }
        Ok(RepositoryStatus {
            preview,
            attention: read_attention(project, &list),
            lanes,
            batches: open_batches(project, &list)?,
            queue: read_queue(project)?.queue,
            landed: recent_landings(project, &list),
        })
    }

    /// Returns whether there is nothing to show: no lane, batch, preview or recent landing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty() && self.batches.is_empty() && self.landed.is_empty() && self.preview.is_none()
    }
}

fn read_attention(project: &Project, list: &LaneList) -> Vec<StatusAttention> {
    let reader = AttentionReader::new(project);
    let mut forecast = list.forecast.clone();
    let of_lanes = list.views.iter().flat_map(|view| {
        let cases = reader.of_lane(view, forecast.as_ref());
        // A conflict of two lanes is reported with the first of them.
        if let Some(forecast) = &mut forecast {
            forecast.pairs.retain(|pair| pair.other_lane(&view.lane.name).is_none());
        }
        cases.into_iter().map(|case| StatusAttention { lane: Some(view.lane.name.clone()), case })
    });
    let of_unlanded =
        list.unlanded_batches.iter().filter(|unlanded| unlanded.is_over()).filter_map(|unlanded| {
            let purpose = format!("land it on {}", unlanded.batch.base);
            Attention::from_step(
                AttentionKind::BatchUnlanded,
                &unlanded.describe(),
                &unlanded.landing_hint(project, &purpose),
            )
        });
    let of_repository = of_unlanded.chain(reader.of_repository(&list.batches));
    of_lanes
        .collect::<Vec<_>>()
        .into_iter()
        .chain(of_repository.map(|case| StatusAttention { lane: None, case }))
        .collect()
}

/// Returns the batches that are unfinished or have work that is not on their base.
fn open_batches(project: &Project, list: &LaneList) -> Result<Vec<BatchSummary>, Error> {
    let unlanded = list.unlanded_batches.iter().map(|unlanded| unlanded.batch.id.clone());
    let mut ids: Vec<BatchId> = unfinished_batches(project).into_iter().map(|batch| batch.id).collect();
    ids.extend(unlanded);
    ids.sort_unstable();
    ids.dedup();
    let summaries = ids.iter().map(|id| {
        let progress = read_progress(project, id)?;
        let state = progress.displayed_state().to_owned();
        let BatchProgress { batch, summary, counts, on_base, .. } = progress;
        Ok(BatchSummary { batch, state, summary, counts, on_base })
    });
    summaries.collect()
}

/// Returns the landings of the last 24 hours, of present and removed lanes, newest first.
fn recent_landings(project: &Project, list: &LaneList) -> Vec<RecentLanding> {
    let past = project.all_past_lanes().into_iter().map(|(_, lane)| lane);
    let lanes = list.views.iter().map(|view| view.lane.clone()).chain(past);
    let landings = lanes.filter_map(|lane| {
        let landed = lane.landed?;
        let (onto, commit, at) = (landed.onto, landed.commit.to_string(), landed.landed_at);
        (now().duration_since(at) <= RECENT).then_some(RecentLanding { lane: lane.name, onto, commit, at })
    });
    let mut landings: Vec<RecentLanding> = landings.collect();
    landings.sort_by_key(|landing| std::cmp::Reverse(landing.at));
    landings.dedup_by(|a, b| a.lane == b.lane && a.commit == b.commit);
    landings
}
