//! A pool of connections over a `Semaphore`. It loses a connection if a caller gives
//! up.

use std::sync::Arc;

use reveille::time::{Duration, sleep, timeout};
use reveille::{Mutex, Semaphore};
use reveille_verify::{Kind, Model};

use crate::{fails, holds};

struct Pool {
    free: Semaphore,
    line: Mutex<()>,
}

const PATIENCE: Duration = Duration::from_millis(10);

impl Pool {
    /// The caller releases the permit at the end.
    async fn query(&self) -> bool {
        self.free.acquire().await.unwrap().forget();
        let Ok(line) = timeout(PATIENCE, self.line.lock()).await else {
            return false; // the permit is lost here
        };
        drop(line);
        self.free.add_permits(1);
        true
    }

    /// The guard releases the permit when it is dropped.
    async fn query_safely(&self) -> bool {
        let _permit = self.free.acquire().await.unwrap();
        timeout(PATIENCE, self.line.lock()).await.is_ok()
    }
}

fn scene<F: Future<Output = bool> + 'static>(m: &Model, query: fn(Arc<Pool>) -> F) {
    let pool = Arc::new(Pool {
        free: Semaphore::new(1),
        line: Mutex::new(()),
    });
    m.name(&pool.free, "free");
    let gave_up = m.sometimes("a caller gives up");
    let other = pool.clone();
    m.spawn("slow line", async move {
        let _line = other.line.lock().await;
        sleep(PATIENCE).await;
    });
    for name in ["first", "second"] {
        let (query, gave_up) = (query(pool.clone()), gave_up.clone());
        m.spawn(name, async move {
            if !query.await {
                gave_up.reached();
            }
        });
    }
}

#[test]
fn a_permit_that_is_given_back_by_hand_is_lost_by_a_timeout() {
    let failure = fails(Kind::LostWakeUp, |m| {
        scene(m, |pool| async move { pool.query().await });
    });
    assert!(failure.sentence.contains("waits for `free`"), "{failure}");
}

#[test]
fn one_that_is_given_back_by_its_drop_is_not() {
    let report = holds(|m| scene(m, |pool| async move { pool.query_safely().await }));
    assert!(report.time_passed > 0);
}
