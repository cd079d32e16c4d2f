//! Models under loom.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Explores `model` and returns the number of executions. These are all executions,
/// unless `preemptions` is a bound, which the name of the test then states.
pub(crate) fn explore(
    preemptions: Option<usize>,
    model: impl Fn() + Send + Sync + 'static,
) -> usize {
    let executions = Arc::new(AtomicUsize::new(0));
    let count = executions.clone();
    let mut builder = loom::model::Builder::new();
    // The environment does not set the bound, since the assertions on the number are
    // about this search.
    builder.preemption_bound = preemptions;
    builder.max_permutations = None;
    builder.max_duration = None;
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        model();
    });
    executions.load(Ordering::Relaxed)
}
