//! A cache that its first caller fills. That caller may be cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reveille::OnceCell;
use reveille::time::{Duration, sleep};
use reveille_verify::{Kind, Model};

use crate::{fails, holds};

#[derive(Default)]
struct Cache {
    filling: AtomicBool,
    value: OnceCell<u32>,
}

async fn load() -> u32 {
    sleep(Duration::from_millis(1)).await;
    7
}

impl Cache {
    /// The first caller fills the cache, and the others wait for it.
    async fn get(&self) -> u32 {
        if !self.filling.swap(true, Ordering::Relaxed) {
            let _ = self.value.set(load().await);
        }
        *self.value.wait().await
    }

    /// The cell knows which task initializes it. If that task is dropped, another takes
    /// over.
    async fn get_safely(&self) -> u32 {
        *self.value.get_or_init(load).await
    }
}

fn scene<F: Future<Output = u32> + 'static>(m: &Model, get: fn(Arc<Cache>) -> F) {
    let cache = Arc::new(Cache::default());
    let (first, second) = (get(cache.clone()), get(cache));
    m.spawn_cancellable("first", async move { assert_eq!(first.await, 7) });
    m.spawn("second", async move { assert_eq!(second.await, 7) });
}

#[test]
fn what_a_dropped_caller_was_filling_stays_empty() {
    let failure = fails(Kind::LostWakeUp, |m| {
        scene(m, |cache| async move { cache.get().await });
    });
    assert!(failure.sentence.contains("first (dropped)"));
}

#[test]
fn a_once_cell_is_filled_by_the_next() {
    let report = holds(|m| scene(m, |cache| async move { cache.get_safely().await }));
    assert!(report.cancelled > 0);
}
