//! Many senders, one receiver.
//!
//! [`channel`] has a capacity: a [`Sender`] waits while the channel is full.
//! [`unbounded_channel`] has none: sending never waits. Each value is received once, in
//! the order in which the values were sent.
//!
//! ```
//! use reveille::mpsc;
//!
//! # reveille_executor::block_on(async {
//! let (tx, mut rx) = mpsc::channel(2);
//! tx.send("reveille").await.unwrap();
//! tx.send("tattoo").await.unwrap();
//! drop(tx);
//! assert_eq!(rx.recv().await, Some("reveille"));
//! assert_eq!(rx.recv().await, Some("tattoo"));
//! assert_eq!(rx.recv().await, None);
//! # });
//! ```
//!
//! # Capacity
//!
//! Capacity is counted in permits. A value takes one when it is sent and gives it back
//! when it is received. [`Sender::reserve`] takes a permit for a value that does not exist
//! yet. Permits go to the tasks that wait for them in the order in which they came.
//!
//! A channel of capacity 0 is a *rendezvous*: a value can be sent only while the receiver
//! waits for one. [`try_recv`](Receiver::try_recv) cannot take a value out of a task that
//! waits to send it: it lets that task send it, and returns
//! [`Empty`](error::TryRecvError::Empty).
//!
//! # The end
//!
//! When the last sender is dropped, the receiver gets what is in the channel and then
//! `None`. When the receiver is dropped, sends fail and return their value; what is in the
//! channel is dropped with the receiver. After [`Receiver::close`] sends fail too, and the
//! receiver gets what is in the channel and what is sent by permits that were reserved
//! before.
//!
//! # Memory
//!
//! An idle channel has room for a few values: as many as fit into 1 KiB, or 32. After a
//! spike the rest is freed, as it is received.
//!
//! Differences from `tokio::sync::mpsc`: a capacity of 0 is legal; futures are named;
//! [`SendFuture::into_inner`], [`channel_in`] and [`unbounded_channel_in`] are additions;
//! a reservation of several permits takes them at once, so a closed channel does not wait
//! for one that is not complete; the blocking calls do not know whether they are within
//! an executor, and cannot panic there; [`Sender::send_timeout`] works on any executor.

#![forbid(unsafe_code)]

mod bounded;
mod chan;
pub mod error;
mod futures;
mod permit;
mod unbounded;

pub use self::bounded::{Receiver, Sender, WeakSender, channel, channel_in};
#[cfg(feature = "std")]
pub use self::futures::SendTimeout;
pub use self::futures::{Closed, Recv, RecvMany, SendFuture};
pub use self::permit::{OwnedPermit, Permit, PermitIterator, Reserve, ReserveMany, ReserveOwned};
pub use self::unbounded::{
    UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel,
    unbounded_channel_in,
};
