//! A select that drops a permit it was granted.

use std::sync::Arc;

use reveille::{Semaphore, SetOnce};
use reveille_verify::{Kind, Model};

use crate::{both, fails, first_of, holds};

struct Workers {
    work: Semaphore,
    stop: SetOnce<()>,
}

impl Workers {
    async fn take(&self) {
        self.work.acquire().await.unwrap().forget();
    }

    /// Polls both, and prefers the stop. A permit that was taken is lost then.
    async fn careless(self: Arc<Self>) {
        let (work, stop) = both(self.take(), self.stop.wait()).await;
        if work.is_some() && stop.is_none() {
            self.work.add_permits(1); // This one is done, and there is another.
        }
    }

    /// Polls the work only if there is no stop, so no permit is taken and dropped.
    async fn careful(self: Arc<Self>) {
        if first_of(self.stop.wait(), self.take()).await.is_err() {
            self.work.add_permits(1);
        }
    }
}

fn scene<F: Future<Output = ()> + 'static>(m: &Model, wait: fn(Arc<Workers>) -> F) {
    let workers = Arc::new(Workers {
        work: Semaphore::new(0),
        stop: SetOnce::new(),
    });
    m.spawn("stoppable", wait(workers.clone()));
    let steady = workers.clone();
    m.spawn("steady", async move { steady.take().await });
    m.spawn("boss", async move {
        workers.work.add_permits(1);
        workers.stop.set(()).unwrap();
    });
}

#[test]
fn what_is_taken_and_dropped_is_lost() {
    let failure = fails(Kind::LostWakeUp, |m| scene(m, Workers::careless));
    assert!(failure.sentence.contains("steady waits for"), "{failure}");
}

#[test]
fn what_is_not_taken_goes_to_the_other() {
    holds(|m| scene(m, Workers::careful));
}
