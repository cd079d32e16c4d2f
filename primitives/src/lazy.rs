//! A value with its initializer, which callers drive one after another.
//!
//! A [`Lazy`] stores the future of its initializer. The first caller of
//! [`force`](Lazy::force) polls it. If that caller is dropped, the next one *resumes* it
//! where it was, so nothing is computed twice. In a [`OnceCell`](crate::OnceCell), the
//! next caller starts again, with an initializer of its own.
//!
//! ```
//! use reveille::Lazy;
//!
//! # reveille_executor::block_on(async {
//! let lazy = Lazy::new(|| async { "reveille".len() });
//! assert_eq!(*lazy.force().await, 8);
//! assert_eq!(lazy.get(), Some(&8));
//! # });
//! ```
//!
//! # States
//!
//! The value, and the permit to drive the initializer, are those of a `OnceCell`. Beside
//! the queue stands the initializer:
//!
//! ```text
//!              the first permit        dropped while it drives
//!   function ──────────────────▶ taken ────────────────────────▶ future
//!                                 ▲ │                              │
//!                                 │ └─ it is ready: initialized    │
//!                                 └──────── the next permit ───────┘
//! ```
//!
//! Invariant: only the caller that has the permit takes the initializer out, and it puts
//! the future back before it passes the permit on.

#![forbid(unsafe_code)]

use alloc::boxed::Box;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, DefaultBackend};
use crate::protocol::CallerLocation;
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::raw::{AcquirePermit, Found, INITIALIZING, Initialize, OnceSlot, Permit, Queued};

/// A value with its initializer, which callers drive one after another. See the
/// [module](self).
///
/// The future of the initializer is put on the heap when it starts.
///
/// # Examples
///
/// A caller that is dropped loses nothing of what was done:
///
/// ```
/// use core::task::{Context, Poll, Waker};
/// use core::{future::Future, pin::pin};
/// use reveille::{Event, Lazy};
///
/// let (first, second) = (Event::new(), Event::new());
/// let lazy = Lazy::new(|| async {
///     first.wait().await;
///     second.wait().await;
///     7
/// });
/// let mut cx = Context::from_waker(Waker::noop());
/// first.set();
/// assert!(pin!(lazy.force()).poll(&mut cx).is_pending());
/// first.reset();
/// second.set();
/// // The first wait is not waited for again.
/// assert_eq!(pin!(lazy.force()).poll(&mut cx), Poll::Ready(&7));
/// ```
///
/// In a `static`, the future has a name:
///
/// ```
/// use reveille::Lazy;
/// use std::pin::Pin;
///
/// type Loading = Pin<Box<dyn Future<Output = u32> + Send>>;
/// static ANSWER: Lazy<u32, Loading> = Lazy::const_new(|| Box::pin(async { 7 }));
///
/// # reveille_executor::block_on(async {
/// assert_eq!(ANSWER.force().await, &7);
/// # });
/// ```
pub struct Lazy<T, Fut, F = fn() -> Fut, B: Backend = DefaultBackend> {
    slot: OnceSlot<T, Queued<Work<Fut, F>>, B>,
}

/// The initializer.
pub(crate) enum Work<Fut, F> {
    /// It has not been started.
    Function(F),
    /// It has been started, and no caller drives it.
    Future(Pin<Box<Fut>>),
    /// The caller that has the permit drives it, or it has ended.
    Taken,
}

impl<T, Fut, F> Lazy<T, Fut, F> {
    const_unless_loom! {
        /// Creates a value that `f` will initialize.
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::Lazy;
        ///
        /// let lazy = Lazy::new(|| async { 7 });
        /// assert_eq!(lazy.get(), None);
        /// # reveille_executor::block_on(async { assert_eq!(lazy.force().await, &7) });
        /// ```
        pub const fn new(f: F) -> Self {
            Self::const_new(f)
        }

        /// Creates a value that `f` will initialize. It is the same as [`new`](Self::new).
        pub const fn const_new(f: F) -> Self {
            Self {
                slot: OnceSlot::const_new(Queued::new(Work::Function(f))),
            }
        }
    }
}

impl<T, Fut, F, B: Backend> Lazy<T, Fut, F, B> {
    /// Creates a value that `f` will initialize, over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Lazy, backend::Local};
    ///
    /// # reveille_executor::block_on(async {
    /// let lazy = Lazy::<_, _, _, Local>::new_in(|| async { 7 }); // for one thread
    /// assert_eq!(lazy.force().await, &7);
    /// # });
    /// ```
    #[must_use]
    pub fn new_in(f: F) -> Self {
        Self {
            slot: OnceSlot::new_in(Queued::new(Work::Function(f))),
        }
    }

    /// Returns the value, or `None` if it has not been initialized.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Lazy;
    ///
    /// # reveille_executor::block_on(async {
    /// let lazy = Lazy::new(|| async { 7 });
    /// assert_eq!(lazy.get(), None);
    /// lazy.force().await;
    /// assert_eq!(lazy.get(), Some(&7));
    /// # });
    /// ```
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.slot.get()
    }

    /// Returns a mutable reference to the value, or `None` if it has not been
    /// initialized.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Lazy;
    ///
    /// # reveille_executor::block_on(async {
    /// let mut lazy = Lazy::new(|| async { 7 });
    /// lazy.force().await;
    /// *lazy.get_mut().unwrap() += 1;
    /// assert_eq!(lazy.get(), Some(&8));
    /// # });
    /// ```
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.slot.get_mut()
    }

    /// Returns the value, and initializes it if it has not been. If another caller drives
    /// the initializer, the future waits for it. `lazy.await` is the same as
    /// `lazy.force().await`.
    ///
    /// An initializer that waits for its own value deadlocks. While a caller that drives
    /// the initializer exists and is not polled, no other caller gets on.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing. If it drove the initializer, the next caller
    /// resumes it.
    ///
    /// # Panics
    ///
    /// The poll panics if the initializer does. Then the next caller polls the initializer
    /// again: an `async` block panics again then, and every caller panics. It also panics
    /// if the future has panicked or completed before.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Lazy;
    ///
    /// # reveille_executor::block_on(async {
    /// let lazy = Lazy::new(|| async { 7 });
    /// assert_eq!(lazy.force().await, &7);
    /// assert_eq!((&lazy).await, &7);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub const fn force(&self) -> LazyForce<'_, T, Fut, F, B> {
        LazyForce {
            stage: Stage::Waits(AcquirePermit::new(self, CallerLocation::capture())),
        }
    }

    /// Returns the number of callers that wait for another to drive the initializer.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Lazy;
    ///
    /// let lazy = Lazy::new(|| async { 7 });
    /// assert_eq!(lazy.waiting(), 0);
    /// # reveille_executor::block_on(async { assert_eq!(lazy.force().await, &7) });
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.slot.with(|section| section.state.waiting())
    }

    /// Returns the number of callers that have been notified, of the value or with the
    /// permit to drive the initializer, and have not been polled since. A number that stays
    /// above zero shows that a future is no longer polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Lazy;
    ///
    /// let lazy = Lazy::new(|| async { 7 });
    /// assert_eq!(lazy.granted(), 0);
    /// # reveille_executor::block_on(async { assert_eq!(lazy.force().await, &7) });
    /// ```
    #[must_use]
    pub fn granted(&self) -> usize {
        self.slot.with(|section| section.state.granted())
    }

    /// Returns where in the source each wait began, the oldest first.
    ///
    /// Available with the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Lazy;
    ///
    /// let lazy = Lazy::new(|| async { 7 });
    /// assert!(lazy.waiters().is_empty());
    /// # reveille_executor::block_on(async { assert_eq!(lazy.force().await, &7) });
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.slot.with(|section| section.state.locations())
    }
}

impl<T, Fut, F, B: Backend> Initialize for Lazy<T, Fut, F, B> {
    type Value = T;
    type Beside = Work<Fut, F>;
    type Backend = B;

    #[inline]
    fn slot(&self) -> &OnceSlot<T, Queued<Work<Fut, F>>, B> {
        &self.slot
    }
}

/// The initializer, in the hands of the caller that has the permit. If it is dropped, it
/// puts the initializer back, and then the permit passes on.
struct Driver<'a, T, Fut, F, B: Backend> {
    /// `None` once it is ready.
    work: Option<Pin<Box<Fut>>>,
    permit: Permit<&'a Lazy<T, Fut, F, B>>,
}

impl<T, Fut, F, B: Backend> Drop for Driver<'_, T, Fut, F, B> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            let slot = &self.permit.holder().slot;
            slot.with(|section| section.state.beside = Work::Future(work));
        }
    }
}

enum Stage<'a, T, Fut, F, B: Backend> {
    Waits(AcquirePermit<&'a Lazy<T, Fut, F, B>>),
    Drives(Driver<'a, T, Fut, F, B>),
    Done,
}

/// The future of [`Lazy::force`].
///
/// If it is leaked while it drives the initializer, no other caller ever gets on.
///
/// # Panics
///
/// Panics if it is polled again after it has completed.
#[must_use = "futures do nothing unless polled"]
pub struct LazyForce<'a, T, Fut, F, B: Backend = DefaultBackend> {
    stage: Stage<'a, T, Fut, F, B>,
}

impl<'a, T, Fut, F, B> Future for LazyForce<'a, T, Fut, F, B>
where
    Fut: Future<Output = T>,
    F: FnOnce() -> Fut,
    B: Backend,
{
    type Output = &'a T;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<&'a T> {
        let stage = &mut self.get_mut().stage;
        // A waker that panics leaves the wait as it is.
        let permit = match stage {
            Stage::Waits(wait) => match Pin::new(&mut *wait).poll(cx) {
                Poll::Ready(Found::Value) => {
                    let lazy = *wait.holder();
                    *stage = Stage::Done;
                    return Poll::Ready(value(lazy));
                }
                Poll::Ready(Found::Permit(permit)) => Some(permit),
                Poll::Pending => return Poll::Pending,
            },
            _ => None,
        };
        // What follows runs the initializer. If it panics, it is put back, and the permit
        // passes on at once.
        let mut driver = match (mem::replace(stage, Stage::Done), permit) {
            (_, Some(permit)) => drive(permit),
            (Stage::Drives(driver), None) => driver,
            _ => panic!("Lazy::force polled after it was ready"),
        };
        let work = driver.work.as_mut().expect("it is not ready");
        match work.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(finish(driver, output)),
            Poll::Pending => {
                *stage = Stage::Drives(driver);
                Poll::Pending
            }
        }
    }
}

/// Takes the initializer out, and starts it if it has not been started.
fn drive<T, Fut, F, B>(permit: Permit<&Lazy<T, Fut, F, B>>) -> Driver<'_, T, Fut, F, B>
where
    F: FnOnce() -> Fut,
    B: Backend,
{
    let slot = &permit.holder().slot;
    let work = slot.with(|section| mem::replace(&mut section.state.beside, Work::Taken));
    let work = match work {
        Work::Function(f) => Box::pin(f()),
        Work::Future(work) => work,
        Work::Taken => panic!("the initializer of this Lazy panicked when it was started"),
    };
    Driver {
        work: Some(work),
        permit,
    }
}

/// Sets the value, and drops the future of the initializer after that, so that a panic of
/// its destructor does not lose the value.
fn finish<'a, T, Fut, F, B: Backend>(mut driver: Driver<'a, T, Fut, F, B>, output: T) -> &'a T {
    let work = driver.work.take();
    let lazy = driver.permit.set(output);
    drop(work);
    value(lazy)
}

fn value<T, Fut, F, B: Backend>(lazy: &Lazy<T, Fut, F, B>) -> &T {
    lazy.get().expect("the value is initialized")
}

impl<'a, T, Fut, F, B> IntoFuture for &'a Lazy<T, Fut, F, B>
where
    Fut: Future<Output = T>,
    F: FnOnce() -> Fut,
    B: Backend,
{
    type Output = &'a T;
    type IntoFuture = LazyForce<'a, T, Fut, F, B>;

    #[cfg_attr(feature = "caller-locations", track_caller)]
    fn into_future(self) -> Self::IntoFuture {
        self.force()
    }
}

impl<T: fmt::Debug, Fut, F, B: Backend> fmt::Debug for Lazy<T, Fut, F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Lazy");
        f.field("value", &self.get())
            .field("driven", &self.slot.load().contains(INITIALIZING))
            .field("waiting", &self.waiting())
            .field("granted", &self.granted());
        #[cfg(feature = "locations")]
        f.field("waiters", &Locations(self.waiters()));
        f.finish()
    }
}

impl<T, Fut, F, B: Backend> fmt::Debug for LazyForce<'_, T, Fut, F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Waits(wait) if !wait.is_queued() => "Created",
            Stage::Waits(_) => "Queued",
            Stage::Drives(_) => "Drives",
            Stage::Done => "Done",
        };
        f.debug_struct("LazyForce").field("stage", &stage).finish()
    }
}
