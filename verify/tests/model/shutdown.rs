//! A graceful shutdown that misses the last message.

use std::sync::Arc;

use reveille::{Mutex, Notify, SetOnce};
use reveille_verify::{Kind, Model};

use crate::{fails, first_of, holds};

#[derive(Default)]
struct Worker {
    jobs: Mutex<Vec<u32>>,
    more: Notify,
    stop: SetOnce<()>,
    done: Mutex<u32>,
}

impl Worker {
    async fn run(self: Arc<Self>, drains: bool) {
        loop {
            let stopped = first_of(self.stop.wait(), self.more.notified()).await;
            if stopped.is_ok() && !drains {
                return; // even if messages are left
            }
            let jobs = std::mem::take(&mut *self.jobs.lock().await);
            *self.done.lock().await += jobs.len() as u32;
            if stopped.is_ok() {
                return;
            }
        }
    }

    async fn send(self: Arc<Self>) {
        for job in 0..2 {
            self.jobs.lock().await.push(job);
            self.more.notify_one();
        }
        self.stop.set(()).unwrap();
    }
}

fn scene(m: &Model, drains: bool) {
    let worker = Arc::new(Worker::default());
    m.spawn("worker", worker.clone().run(drains));
    m.spawn("sender", worker.clone().send());
    m.at_end(move || assert_eq!(*worker.done.try_lock().unwrap(), 2, "jobs done"));
}

#[test]
fn a_worker_that_stops_at_once_leaves_jobs_undone() {
    let failure = fails(Kind::AtEnd, |m| scene(m, false));
    assert!(failure.sentence.contains("jobs done"), "{failure}");
}

#[test]
fn one_that_looks_once_more_does_not() {
    holds(|m| scene(m, true));
}
