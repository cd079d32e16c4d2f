//! Channels and cancellation tokens in a model.

use reveille::{CancellationToken, broadcast, mpsc, watch};
use reveille_verify::Kind;

use crate::{fails, first_of, holds};

#[test]
fn a_full_channel_makes_its_senders_wait() {
    let report = holds(|m| {
        let full = m.sometimes("a sender finds no room");
        let (tx, mut rx) = mpsc::channel(1);
        for name in ["first", "second"] {
            let (tx, full) = (tx.clone(), full.clone());
            m.spawn(name, async move {
                if tx.try_send(name).is_err() {
                    full.reached();
                    tx.send(name).await.unwrap();
                }
            });
        }
        drop(tx);
        m.spawn("receiver", async move {
            let (one, other) = (rx.recv().await, rx.recv().await);
            assert!(one.is_some() && other.is_some() && one != other);
            assert_eq!(rx.recv().await, None);
        });
    });
    assert!(report.waited > 0, "{report}");
}

#[test]
fn a_receiver_that_keeps_a_sender_itself_waits_for_ever() {
    let failure = fails(Kind::LostWakeUp, |m| {
        let (tx, mut rx) = mpsc::channel::<u32>(1);
        let other = tx.clone();
        m.spawn("sender", async move { other.send(7).await.unwrap() });
        m.spawn("receiver", async move {
            let _kept = tx;
            while rx.recv().await.is_some() {}
        });
    });
    assert!(failure.sentence.contains("receiver waits"), "{failure}");
}

#[test]
fn every_receiver_of_a_broadcast_has_each_value_or_has_lagged() {
    holds(|m| {
        let lagged = m.sometimes("a receiver lags");
        let (tx, mut rx) = broadcast::channel(1);
        m.spawn("sender", async move {
            for value in [7, 8] {
                tx.send(value).unwrap();
            }
        });
        m.spawn("receiver", async move {
            match rx.recv().await {
                Ok(first) => assert_eq!(first, 7),
                Err(broadcast::error::RecvError::Lagged(missed)) => {
                    assert_eq!(missed, 1);
                    lagged.reached();
                }
                Err(broadcast::error::RecvError::Closed) => panic!("two values were sent"),
            }
            assert_eq!(rx.recv().await, Ok(8));
        });
    });
}

#[test]
fn a_watcher_sees_the_last_value() {
    holds(|m| {
        let (tx, mut rx) = watch::channel(0);
        m.spawn("sender", async move {
            tx.send(1).unwrap();
            tx.send(2).unwrap();
        });
        m.spawn("watcher", async move {
            while *rx.borrow_and_update() != 2 {
                rx.changed().await.unwrap();
            }
        });
    });
}

#[test]
fn a_cancelled_token_ends_its_children() {
    holds(|m| {
        let (sent, cancelled) = (m.sometimes("received"), m.sometimes("cancelled"));
        let token = CancellationToken::new();
        let (tx, mut rx) = mpsc::channel(1);
        let child = token.child_token();
        m.spawn("worker", async move {
            match first_of(rx.recv(), child.cancelled()).await {
                Ok(received) => {
                    assert_eq!(received, Some(7));
                    sent.reached();
                }
                Err(()) => cancelled.reached(),
            }
        });
        m.spawn("sender", async move {
            let _ = tx.send(7).await;
        });
        m.spawn("boss", async move { token.cancel() });
    });
}
