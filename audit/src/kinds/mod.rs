//! The kinds of primitive: for each what its operations are, what they mean, and how
//! they are started over a crate.

pub(crate) mod channel;
pub(crate) mod event;
pub(crate) mod lock;
pub(crate) mod oneshot;
pub(crate) mod semaphore;
pub(crate) mod waker_cell;

use std::future::Future;
use std::pin::Pin;

/// A future of an adapter.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
