//! Models under loom.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Explores `model` and answers in how many executions: all of them, unless
/// `preemptions` says otherwise, and then the name of the test says so.
pub(crate) fn explore(
    preemptions: Option<usize>,
    model: impl Fn() + Send + Sync + 'static,
) -> usize {
    let executions = Arc::new(AtomicUsize::new(0));
    let count = executions.clone();
    let mut builder = loom::model::Builder::new();
    // Not from the environment: what is asserted of the number is of this search.
    builder.preemption_bound = preemptions;
    builder.max_permutations = None;
    builder.max_duration = None;
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        model();
    });
    executions.load(Ordering::Relaxed)
}
