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
    async fn query(self: Arc<Self>) {
        self.free.acquire().await.unwrap().forget();
        if timeout(PATIENCE, self.line.lock()).await.is_ok() {
            self.free.add_permits(1); // otherwise the permit is lost
        }
    }

    /// The guard releases the permit when it is dropped.
    async fn query_safely(self: Arc<Self>) {
        let _permit = self.free.acquire().await.unwrap();
        drop(timeout(PATIENCE, self.line.lock()).await);
    }
}

fn scene<F: Future<Output = ()> + 'static>(m: &Model, query: fn(Arc<Pool>) -> F) {
    let pool = Arc::new(Pool {
        free: Semaphore::new(1),
        line: Mutex::new(()),
    });
    m.name(&pool.free, "free");
    m.spawn("first", query(pool.clone()));
    m.spawn("second", query(pool.clone()));
    m.spawn("slow line", async move {
        let _line = pool.line.lock().await;
        sleep(PATIENCE).await;
    });
}

#[test]
fn a_permit_that_is_given_back_by_hand_is_lost_by_a_timeout() {
    let failure = fails(Kind::LostWakeUp, |m| scene(m, Pool::query));
    assert!(failure.sentence.contains("waits for `free`"), "{failure}");
}

#[test]
fn one_that_is_given_back_by_its_drop_is_not() {
    assert!(holds(|m| scene(m, Pool::query_safely)).time_passed > 0);
}
