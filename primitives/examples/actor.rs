//! A task that owns a value, and is asked for it: requests come through a bounded
//! channel, and each brings the sender of its reply.

#![forbid(unsafe_code)]

use reveille::{mpsc, oneshot};
use reveille_executor::ThreadPool;

enum Request {
    Add(u64),
    Total(oneshot::Sender<u64>),
}

async fn counter(mut requests: mpsc::Receiver<Request>) {
    let mut total = 0;
    while let Some(request) = requests.recv().await {
        match request {
            Request::Add(number) => total += number,
            // A caller that has gone needs no reply.
            Request::Total(reply) => drop(reply.send(total)),
        }
    }
}

fn main() {
    let pool = ThreadPool::new();
    let (tx, rx) = mpsc::channel(8);
    let actor = pool.spawn(counter(rx));
    let adders = [1, 2, 3].map(|number| {
        let tx = tx.clone();
        pool.spawn(async move {
            for _ in 0..100 {
                tx.send(Request::Add(number)).await.expect("the actor runs");
            }
        })
    });
    let total = pool.block_on(async {
        for adder in adders {
            adder.await.expect("the adder ends");
        }
        let (reply, total) = oneshot::channel();
        tx.send(Request::Total(reply))
            .await
            .expect("the actor runs");
        // Without senders the actor ends.
        drop(tx);
        total.await.expect("the actor replies")
    });
    pool.block_on(actor).expect("the actor ends");
    println!("total: {total}");
    assert_eq!(total, 600);
}

#[test]
fn what_is_printed_holds() {
    main();
}
