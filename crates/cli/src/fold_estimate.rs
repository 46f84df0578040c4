//! How many requests a plan makes and how large they are, before any is made (spec 5.3, 5.4).

use summarizer::fold::estimate;
use summarizer::plan::{Chain, Job, Plan};
use summarizer::request::Kind;

/// One request that would be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EstimatedRequest {
    /// What it is for.
    pub kind: Kind,
    /// Estimated tokens of the request.
    pub prompt: u64,
    /// Most tokens of the answer.
    pub output: u64,
}

/// The requests of a compaction. Summaries that are not there yet count as if they had their limit.
pub fn requests(job: &Job<'_>, plan: &Plan) -> Vec<EstimatedRequest> {
    of(&job.requests(plan, &|kind| stand_in(job, kind)))
}

/// The requests of a branch summary.
pub fn branch_requests(job: &Job<'_>, chain: &Chain) -> Vec<EstimatedRequest> {
    of(&job.chain_requests(chain, &|kind| stand_in(job, kind)))
}

fn of(requests: &[(Kind, summarizer::provider::Request)]) -> Vec<EstimatedRequest> {
    requests
        .iter()
        .map(|(kind, request)| EstimatedRequest {
            kind: *kind,
            prompt: estimate(&request.system) + estimate(&request.prompt),
            output: request.max_output_tokens,
        })
        .collect()
}

/// A text as long as the longest summary of this kind.
fn stand_in(job: &Job<'_>, kind: Kind) -> String {
    "x".repeat(usize::try_from(4 * job.limit(kind)).unwrap_or(usize::MAX))
}
