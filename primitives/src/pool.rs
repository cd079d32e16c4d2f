//! A pool of objects, such as connections, that tasks take and give back.
//!
//! ```
//! use reveille::Pool;
//!
//! # reveille_executor::block_on(async {
//! let pool = Pool::new(2);
//! let connect = || async { Ok::<_, std::io::Error>(Vec::<u8>::new()) };
//! let mut connection = pool.get(connect).await.unwrap();
//! connection.push(7);
//! drop(connection); // It goes back into the pool.
//! assert_eq!(pool.idle(), 1);
//! # });
//! ```
//!
//! # States
//!
//! Each object has a *place*, of which there are at most as many as the pool is large. A
//! place is taken before its object is created, and is given back when the object is gone.
//!
//! ```text
//!   get ──idle object────────────────▶ it is checked out ──dropped, and the check says so──▶ idle
//!    │  ──a place is free────────────▶ create it, check it out                                │
//!    │                                                                      or to the first waiter
//!    └──▶ queued ──granted an object, or a place─▶ as above
//! ```
//!
//! Invariant: tasks are queued only while there is no idle object and no free place. What
//! comes back goes to the task that has waited longest, and a `get` that is dropped passes
//! on what it was granted. Objects are created, checked and dropped outside the lock.

#![forbid(unsafe_code)]

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::mem;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::watch::refused;
use crate::backend::{Backend, DefaultBackend};
use crate::protocol::CallerLocation;
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::protocol::{Bits, Generation, Section, StateLock, Waiter, Waiters, WakeList};

/// A pool of objects that tasks take and give back. See the [module](self).
///
/// # Examples
///
/// At most two objects are checked out at a time, and an object that has become too large
/// is not kept:
///
/// ```
/// use reveille::Pool;
///
/// # reveille_executor::block_on(async {
/// let pool = Pool::with_check(2, |buffer: &mut Vec<u8>| {
///     buffer.clear();
///     buffer.capacity() <= 1024
/// });
/// let create = || async { Ok::<_, ()>(Vec::new()) };
/// let (first, mut second) = (pool.get(create).await.unwrap(), pool.get(create).await.unwrap());
/// second.reserve(4096);
/// drop((first, second));
/// assert_eq!((pool.idle(), pool.size()), (1, 1));
/// # });
/// ```
pub struct Pool<T, C = fn(&mut T) -> bool, B: Backend = DefaultBackend> {
    lock: StateLock<State<T>, B>,
    max_size: usize,
    check: C,
}

/// The pool is closed.
const CLOSED: Bits = Bits::new(1);

struct State<T> {
    /// The objects that are in the pool. The last one that came back is taken first.
    idle: Vec<T>,
    /// The places that are taken, by an object or by one that is being created.
    places: usize,
    waiters: Waiters<Grant>,
    /// The objects that waiters have been granted, each in the slot of its grant.
    granted: Vec<Option<T>>,
    /// The slots of `granted` that are empty.
    free: Vec<usize>,
}

/// What a queued `get` has been granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    /// Nothing, or the pool is closed.
    None,
    /// A place, for an object to be created.
    Place,
    /// The object in this slot.
    Object(usize),
}

/// What a `get` has: an object, or a place for one.
enum Got<T> {
    Object(T),
    Place,
}

impl<T> State<T> {
    const fn new() -> Self {
        Self {
            idle: Vec::new(),
            places: 0,
            waiters: Waiters::new(),
            granted: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Takes an idle object, or a free place.
    fn take(&mut self, max_size: usize) -> Option<Got<T>> {
        if let Some(object) = self.idle.pop() {
            return Some(Got::Object(object));
        }
        (self.places < max_size).then(|| {
            self.places += 1;
            Got::Place
        })
    }

    /// Gives an object back: to the first waiter, or into the pool. Returns it if the pool
    /// is closed.
    fn give(&mut self, bits: Bits, object: T, wakes: &mut WakeList) -> Option<T> {
        if bits.contains(CLOSED) {
            self.places -= 1;
            return Some(object);
        }
        match self.waiters.first() {
            Some(waiter) => {
                let slot = self.free.pop().unwrap_or_else(|| {
                    self.granted.push(None);
                    self.granted.len() - 1
                });
                self.granted[slot] = Some(object);
                *self.waiters.notify_one(&waiter, wakes) = Grant::Object(slot);
            }
            None => self.idle.push(object),
        }
        None
    }

    /// Gives a place back: to the first waiter, or to the pool.
    fn give_place(&mut self, wakes: &mut WakeList) {
        match self.waiters.first() {
            Some(waiter) => *self.waiters.notify_one(&waiter, wakes) = Grant::Place,
            None => self.places -= 1,
        }
    }

    /// Takes out what a waiter has been granted, and removes the waiter.
    fn observe(&mut self, waiter: Waiter, wakes: &mut WakeList) -> Option<Got<T>> {
        match self.waiters.remove(waiter, wakes) {
            Grant::None => None,
            Grant::Place => Some(Got::Place),
            Grant::Object(slot) => {
                let object = self.granted[slot].take();
                self.free.push(slot);
                if self.free.len() == self.granted.len() {
                    // The slots of a spike are given back.
                    self.granted.clear();
                    self.granted.shrink_to(KEPT);
                    self.free.clear();
                    self.free.shrink_to(KEPT);
                }
                object.map(Got::Object)
            }
        }
    }
}

/// The number of slots that are kept.
const KEPT: usize = 32;

impl<T> Pool<T> {
    const_unless_loom! {
        /// Creates a pool for at most `max_size` objects, each of which is kept when it
        /// comes back.
        ///
        /// # Panics
        ///
        /// Panics if `max_size` is 0.
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::Pool;
        ///
        /// static BUFFERS: Pool<Vec<u8>> = Pool::new(8);
        /// assert_eq!(BUFFERS.max_size(), 8);
        /// ```
        #[track_caller]
        pub const fn new(max_size: usize) -> Self {
            Self::with_check(max_size, keep)
        }

        /// Creates a pool for any number of objects. A `get` never waits for an object to
        /// come back: if there is none in the pool, it creates one.
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::Pool;
        ///
        /// let pool = Pool::<Vec<u8>>::unbounded();
        /// assert_eq!(pool.max_size(), usize::MAX);
        /// ```
        pub const fn unbounded() -> Self {
            Self::with_check(usize::MAX, keep)
        }
    }
}

/// Keeps each object.
fn keep<T>(_: &mut T) -> bool {
    true
}

#[track_caller]
const fn at_least_one(max_size: usize) -> usize {
    assert!(max_size > 0, "a pool is for at least one object");
    max_size
}

impl<T, C> Pool<T, C> {
    const_unless_loom! {
        /// Creates a pool for at most `max_size` objects, each of which is checked when it
        /// comes back.
        ///
        /// `check` can reset the object, and returns `false` if it is not to be kept. It
        /// runs in the destructor of the guard. If it panics, the object is dropped and its
        /// place is given back.
        ///
        /// # Panics
        ///
        /// Panics if `max_size` is 0.
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::Pool;
        ///
        /// let pool = Pool::with_check(8, |buffer: &mut Vec<u8>| buffer.capacity() < 1024);
        /// assert_eq!(pool.size(), 0);
        /// ```
        #[track_caller]
        pub const fn with_check(max_size: usize, check: C) -> Self {
            Self {
                lock: StateLock::<_, DefaultBackend>::const_new(Bits::EMPTY, State::new()),
                max_size: at_least_one(max_size),
                check,
            }
        }
    }
}

impl<T, C: Fn(&mut T) -> bool, B: Backend> Pool<T, C, B> {
    /// Creates a pool as [`with_check`](Pool::with_check) does, over any backend.
    ///
    /// # Panics
    ///
    /// Panics if `max_size` is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Pool, backend::Local};
    ///
    /// // For one thread.
    /// let pool = Pool::<Vec<u8>, _, Local>::with_check_in(2, |_| true);
    /// assert!(pool.try_get().is_none());
    /// ```
    #[track_caller]
    pub fn with_check_in(max_size: usize, check: C) -> Self {
        Self {
            lock: StateLock::new_in(Bits::EMPTY, State::new()),
            max_size: at_least_one(max_size),
            check,
        }
    }

    /// Takes an object out of the pool. If there is none and fewer than
    /// [`max_size`](Self::max_size) are checked out, it creates one by `create`. Otherwise
    /// it waits until one comes back.
    ///
    /// An object or a place that comes back goes to the call that has waited longest. The
    /// future that `create` returns is put on the heap.
    ///
    /// # Errors
    ///
    /// Returns [`GetError::Create`] with the error of `create` if it was called and failed,
    /// and [`GetError::Closed`] if the pool is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue. What it has been granted and
    /// has not observed goes to the next call that waits. If it was creating an object, its
    /// place does.
    ///
    /// # Panics
    ///
    /// The poll panics if `create` or its future does. The place is then given back. It
    /// also panics if the future has panicked or completed before.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Pool;
    ///
    /// # reveille_executor::block_on(async {
    /// let pool = Pool::new(1);
    /// let object = pool.get(|| async { Ok::<_, ()>(7) }).await.unwrap();
    /// assert_eq!(*object, 7);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub const fn get<F, Fut, E>(&self, create: F) -> Get<&Self, F, Fut, T, C, B>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        Get::new(self, create)
    }

    /// Takes an object out of the pool as [`get`](Self::get) does. The guard owns the pool,
    /// through the `Arc`.
    ///
    /// # Errors
    ///
    /// The same as those of [`get`](Self::get).
    ///
    /// # Cancel safety
    ///
    /// The same as that of [`get`](Self::get).
    ///
    /// # Panics
    ///
    /// The same as those of [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Pool;
    /// use std::sync::Arc;
    ///
    /// # reveille_executor::block_on(async {
    /// let pool = Arc::new(Pool::new(1));
    /// let object = pool.clone().get_owned(|| async { Ok::<_, ()>(7) }).await.unwrap();
    /// std::thread::spawn(move || drop(object)).join().unwrap();
    /// assert_eq!(pool.idle(), 1);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub const fn get_owned<F, Fut, E>(self: Arc<Self>, create: F) -> Get<Arc<Self>, F, Fut, T, C, B>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        Get::new(self, create)
    }

    /// Takes an object that is in the pool, without waiting or creating one.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Pool;
    ///
    /// assert!(Pool::<u32>::new(1).try_get().is_none());
    /// ```
    pub fn try_get(&self) -> Option<Pooled<&Self, T, C, B>> {
        let object = Some(self.take_idle().or_else(|| refused::<B, _>(None))?);
        Some(Pooled { pool: self, object })
    }

    /// Takes an object as [`try_get`](Self::try_get) does. The guard owns the pool, through
    /// the `Arc`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Pool;
    /// use std::sync::Arc;
    ///
    /// let pool = Arc::new(Pool::<u32>::new(1));
    /// assert!(pool.clone().try_get_owned().is_none());
    /// ```
    pub fn try_get_owned(self: Arc<Self>) -> Option<Pooled<Arc<Self>, T, C, B>> {
        let object = Some(self.take_idle().or_else(|| refused::<B, _>(None))?);
        Some(Pooled { pool: self, object })
    }

    fn take_idle(&self) -> Option<T> {
        self.lock.unlisted(|_, state| state.idle.pop())
    }

    /// Closes the pool: drops the objects that are in it, and wakes the calls that wait,
    /// which fail.
    ///
    /// Objects that are checked out are dropped when they come back.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{GetError, Pool};
    ///
    /// # reveille_executor::block_on(async {
    /// let pool = Pool::new(1);
    /// pool.close();
    /// let refused = pool.get(|| async { Ok::<_, ()>(7) }).await;
    /// assert_eq!(refused.unwrap_err(), GetError::Closed);
    /// # });
    /// ```
    pub fn close(&self) {
        let mut closed: Option<Generation> = None;
        let mut idle = Vec::new();
        self.lock.rounds(|Section { bits, state, wakes }| {
            let generation = *closed.get_or_insert_with(|| {
                bits.insert(CLOSED);
                idle = mem::take(&mut state.idle);
                state.places -= idle.len();
                state.waiters.notify_all()
            });
            state.waiters.wake_notified(generation, wakes)
        });
        drop(idle);
    }

    /// Returns `true` if the pool is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Pool;
    ///
    /// assert!(!Pool::<u32>::new(1).is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock.load().contains(CLOSED)
    }

    /// Returns the largest number of objects.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Pool;
    ///
    /// assert_eq!(Pool::<u32>::new(3).max_size(), 3);
    /// ```
    #[must_use]
    pub const fn max_size(&self) -> usize {
        self.max_size
    }

    /// Returns the number of objects, those in the pool and those that are checked out or
    /// being created.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Pool;
    ///
    /// assert_eq!(Pool::<u32>::new(1).size(), 0);
    /// ```
    #[must_use]
    pub fn size(&self) -> usize {
        self.lock.look(|state| state.places)
    }

    /// Returns the number of objects that are in the pool.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Pool;
    ///
    /// assert_eq!(Pool::<u32>::new(1).idle(), 0);
    /// ```
    #[must_use]
    pub fn idle(&self) -> usize {
        self.lock.look(|state| state.idle.len())
    }

    /// Returns the number of calls that wait for an object.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Pool;
    ///
    /// assert_eq!(Pool::<u32>::new(1).waiting(), 0);
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock.look(|state| state.waiters.queued())
    }

    /// Returns the number of calls that have been granted an object or a place, or been
    /// told that the pool is closed, and have not been polled since. A number that stays
    /// above zero shows that a future is no longer polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Pool;
    ///
    /// assert_eq!(Pool::<u32>::new(1).granted(), 0);
    /// ```
    #[must_use]
    pub fn granted(&self) -> usize {
        self.lock.look(|state| state.waiters.notified())
    }

    /// Returns where in the source each wait began, the oldest first. Waits that have been
    /// granted an object and not been polled since are included.
    ///
    /// Available with the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Pool;
    ///
    /// assert!(Pool::<u32>::new(1).waiters().is_empty());
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> Vec<&'static core::panic::Location<'static>> {
        self.lock.look(|state| state.waiters.locations())
    }

    /// Gives an object back.
    fn give(&self, object: T) {
        let refused = self
            .lock
            .with(|section| section.state.give(*section.bits, object, section.wakes));
        drop(refused);
    }

    fn give_place(&self) {
        self.lock
            .with(|section| section.state.give_place(section.wakes));
    }
}

/// A place, for as long as its object is created or checked. If it is dropped, it is given
/// back.
struct Place<P: Deref<Target = Pool<T, C, B>>, T, C: Fn(&mut T) -> bool, B: Backend> {
    /// `None` once an object has the place.
    pool: Option<P>,
}

impl<P, T, C, B> Place<P, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    /// Checks out an object that has this place.
    fn fill(mut self, object: T) -> Pooled<P, T, C, B> {
        Pooled {
            pool: self.pool.take().expect("a place has its pool"),
            object: Some(object),
        }
    }
}

impl<P, T, C, B> Drop for Place<P, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give_place();
        }
    }
}

/// An object that is checked out of its pool. Dropping it gives the object back.
///
/// If it is leaked, its place is never given back.
#[must_use = "an object that is not held goes back at once"]
pub struct Pooled<P, T, C = fn(&mut T) -> bool, B = DefaultBackend>
where
    P: Deref<Target = Pool<T, C, B>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    pool: P,
    /// `None` only while it is dropped.
    object: Option<T>,
}

impl<P, T, C, B> Pooled<P, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    /// Takes the object out of its pool for good. Its place is given back.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Pool;
    ///
    /// # reveille_executor::block_on(async {
    /// let pool = Pool::new(1);
    /// let object = pool.get(|| async { Ok::<_, ()>(7) }).await.unwrap();
    /// assert_eq!(object.detach(), 7);
    /// assert_eq!(pool.size(), 0);
    /// # });
    /// ```
    pub fn detach(mut self) -> T {
        let object = self.object.take().expect("it is dropped once");
        // The place is given back here and not at the return. If a waker that it wakes
        // panicked there, the object being returned would leak.
        drop(self);
        object
    }
}

impl<P, T, C, B> Deref for Pooled<P, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.object.as_ref().expect("it is dropped once")
    }
}

impl<P, T, C, B> DerefMut for Pooled<P, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.object.as_mut().expect("it is dropped once")
    }
}

/// The object is never pinned here.
impl<P, T, C, B> Unpin for Pooled<P, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
}

/// Checks the object, and gives it or its place back.
impl<P, T, C, B> Drop for Pooled<P, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    fn drop(&mut self) {
        let pool = &*self.pool;
        // Declared before the object, so that if the check panics, the object is dropped
        // and its place is given back after that.
        let mut place = Place { pool: Some(pool) };
        if let Some(mut object) = self.object.take()
            && (pool.check)(&mut object)
        {
            place.pool = None;
            pool.give(object);
        }
    }
}

enum Stage<P, F, Fut, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    /// It has its place in the queue, if it has been polled.
    Waits(P, Option<Waiter>, F),
    /// The future is dropped before the place.
    Creates(Pin<Box<Fut>>, Place<P, T, C, B>),
    Done,
}

/// The future of [`Pool::get`] and [`Pool::get_owned`].
///
/// # Panics
///
/// Panics if it is polled again after it has completed.
#[must_use = "futures do nothing unless polled"]
pub struct Get<P, F, Fut, T, C = fn(&mut T) -> bool, B = DefaultBackend>
where
    P: Deref<Target = Pool<T, C, B>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    location: CallerLocation,
    stage: Stage<P, F, Fut, T, C, B>,
}

impl<P, F, Fut, T, C, B> Get<P, F, Fut, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    #[cfg_attr(feature = "caller-locations", track_caller)]
    const fn new(pool: P, create: F) -> Self {
        Self {
            location: CallerLocation::capture(),
            stage: Stage::Waits(pool, None, create),
        }
    }

    /// Polls for an object or a place. `None` says that the pool is closed.
    fn poll_got(&mut self, cx: &mut Context<'_>) -> Poll<Option<Got<T>>> {
        let Stage::Waits(pool, waiter, _) = &mut self.stage else {
            return Poll::Ready(None);
        };
        let (location, max_size) = (self.location, pool.max_size);
        let fresh = waiter.is_none();
        // What the section takes is here if a waker panics after it, and not in a result
        // that would be lost.
        let mut got = Unobserved {
            pool: &**pool,
            got: None,
        };
        let polled = pool.lock.poll(cx, fresh, |section, registration| {
            let Section { bits, state, wakes } = section;
            if let Some(waiter) = waiter.take_if(|waiter| state.waiters.is_notified(waiter)) {
                got.got = state.observe(waiter, wakes);
                return Ok(());
            }
            if waiter.is_none() {
                if bits.contains(CLOSED) {
                    return Ok(());
                }
                if state.waiters.is_empty() {
                    got.got = state.take(max_size);
                    if got.got.is_some() {
                        return Ok(());
                    }
                }
            }
            let waiter = waiter.get_or_insert_with(|| state.waiters.push(location, Grant::None));
            Err(registration.register(state.waiters.waker(waiter)))
        });
        polled.map(|()| got.got.take())
    }
}

/// What a section has taken for a `get`. If it is dropped, it is given back.
struct Unobserved<'a, T, C: Fn(&mut T) -> bool, B: Backend> {
    pool: &'a Pool<T, C, B>,
    got: Option<Got<T>>,
}

impl<T, C: Fn(&mut T) -> bool, B: Backend> Drop for Unobserved<'_, T, C, B> {
    fn drop(&mut self) {
        match self.got.take() {
            None => {}
            Some(Got::Object(object)) => self.pool.give(object),
            Some(Got::Place) => self.pool.give_place(),
        }
    }
}

impl<P, F, Fut, T, E, C, B> Future for Get<P, F, Fut, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>> + Unpin,
    F: FnOnce() -> Fut,
    Fut: Future<Output = Result<T, E>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    type Output = Result<Pooled<P, T, C, B>, GetError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        // A waker that panics leaves the wait as it is.
        let got = match this.stage {
            Stage::Waits(..) => match this.poll_got(cx) {
                Poll::Ready(got) => got,
                Poll::Pending => return Poll::Pending,
            },
            _ => None,
        };
        let (mut future, place) = match mem::replace(&mut this.stage, Stage::Done) {
            Stage::Waits(pool, _, create) => {
                let place = Place { pool: Some(pool) };
                match got {
                    Some(Got::Object(object)) => {
                        let pooled = place.fill(object);
                        // As below, it is dropped before the return.
                        drop(create);
                        return Poll::Ready(Ok(pooled));
                    }
                    Some(Got::Place) => (Box::pin(create()), place),
                    None => {
                        let mut place = place;
                        place.pool = None;
                        return Poll::Ready(Err(GetError::Closed));
                    }
                }
            }
            Stage::Creates(future, place) => (future, place),
            Stage::Done => panic!("Pool::get polled after it was ready"),
        };
        match future.as_mut().poll(cx) {
            Poll::Ready(created) => {
                let created = match created {
                    Ok(object) => Ok(place.fill(object)),
                    Err(error) => Err(GetError::Create(error)),
                };
                // The future is dropped here and not at the return. If its destructor
                // panicked there, the object being returned would leak.
                drop(future);
                Poll::Ready(created)
            }
            Poll::Pending => {
                this.stage = Stage::Creates(future, place);
                Poll::Pending
            }
        }
    }
}

/// The function is never pinned here. It is called, and the future that it returns is
/// pinned on the heap.
impl<P, F, Fut, T, C, B> Unpin for Get<P, F, Fut, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>> + Unpin,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
}

/// Gives up the place in the queue, and passes on what was granted.
impl<P, F, Fut, T, C, B> Drop for Get<P, F, Fut, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    fn drop(&mut self) {
        if let Stage::Waits(pool, waiter, _) = &mut self.stage
            && let Some(waiter) = waiter.take()
        {
            let refused = pool.lock.with(|Section { bits, state, wakes }| {
                match state.observe(waiter, wakes) {
                    None => None,
                    Some(Got::Object(object)) => state.give(*bits, object, wakes),
                    Some(Got::Place) => {
                        state.give_place(wakes);
                        None
                    }
                }
            });
            drop(refused);
        }
    }
}

/// The error of [`Pool::get`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GetError<E> {
    /// The pool is closed.
    Closed,
    /// The object could not be created.
    Create(E),
}

impl<E: fmt::Display> fmt::Display for GetError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the pool is closed and gives no objects"),
            Self::Create(error) => write!(f, "an object for the pool cannot be created: {error}"),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for GetError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Closed => None,
            Self::Create(error) => Some(error),
        }
    }
}

impl<T, C: Fn(&mut T) -> bool, B: Backend> fmt::Debug for Pool<T, C, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Pool");
        f.field("max_size", &self.max_size)
            .field("size", &self.size())
            .field("idle", &self.idle())
            .field("closed", &self.is_closed())
            .field("waiting", &self.waiting())
            .field("granted", &self.granted());
        #[cfg(feature = "locations")]
        f.field("waiters", &Locations(self.waiters()));
        f.finish()
    }
}

impl<P, T, C, B> fmt::Debug for Pooled<P, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>>,
    T: fmt::Debug,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pooled").field(&self.object).finish()
    }
}

impl<P, F, Fut, T, C, B> fmt::Debug for Get<P, F, Fut, T, C, B>
where
    P: Deref<Target = Pool<T, C, B>>,
    C: Fn(&mut T) -> bool,
    B: Backend,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Waits(_, None, _) => "Created",
            Stage::Waits(..) => "Queued",
            Stage::Creates(..) => "Creates",
            Stage::Done => "Done",
        };
        f.debug_struct("Get")
            .field("stage", &stage)
            .finish_non_exhaustive()
    }
}
