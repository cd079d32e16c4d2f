//! Many senders, many receivers: each value is received by one receiver.
//!
//! [`bounded`] has a capacity: a [`Sender`] waits while the channel is full.
//! [`unbounded`] has none: sending never waits. Both halves can be cloned. Values are
//! received in the order in which they were sent.
//!
//! ```
//! use reveille::mpmc;
//!
//! # reveille_executor::block_on(async {
//! let (tx, rx) = mpmc::bounded(2);
//! let another = rx.clone();
//! tx.send("reveille").await.unwrap();
//! tx.send("tattoo").await.unwrap();
//! drop(tx);
//! assert_eq!(rx.recv().await, Ok("reveille"));
//! assert_eq!(another.recv().await, Ok("tattoo"));
//! assert!(rx.recv().await.is_err());
//! # });
//! ```
//!
//! # Fairness
//!
//! Senders that wait get room in the order in which they came, and receivers that wait
//! get values likewise. A value that was granted to a receiver is kept for it until it is
//! polled. If its future is dropped instead, the value goes to the next receiver.
//!
//! # Rendezvous
//!
//! A channel of capacity 0 is a *rendezvous*: a value can be sent only while a receiver
//! waits for one. [`Receiver::try_recv`] cannot take a value out of a task that waits to
//! send it. It lets that task send it, and returns [`TryRecvError::Empty`].
//!
//! # The end
//!
//! Either half can [close](Sender::close) the channel. It is closed too when the last
//! sender or the last receiver is dropped. From then on nothing is sent. What is in the
//! channel can still be received, and is dropped with the last receiver.
//!
//! # Memory
//!
//! An idle channel has room for a few values: as many as fit into 1 KiB, or 32. The rest
//! of a spike is freed as it is received.
//!
//! Names and semantics are those of the crate `async-channel`. Differences: a capacity of
//! 0 is legal; waiters are served in order; the values go with the last receiver;
//! futures are `Unpin`; [`SendFuture::into_inner`], [`Receiver::poll_recv`],
//! [`bounded_in`] and [`unbounded_in`] are additions.

#![forbid(unsafe_code)]

mod chan;
mod error;
mod futures;
mod halves;

pub use self::error::{RecvError, TryRecvError};
pub use self::futures::{Closed, Recv, SendFuture};
pub use self::halves::{
    Receiver, Sender, WeakReceiver, WeakSender, bounded, bounded_in, unbounded, unbounded_in,
};
pub use crate::mpsc::error::{SendError, TrySendError};
