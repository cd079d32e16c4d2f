//! `task_local!` and `LocalKey`: values that belong to a future.
//!
//! ```text
//!   outside of a poll: the value is in the scope's future
//!   poll, drop: ──swap──▶ the thread-local ──swap──▶ back into the future
//! ```
//!
//! Invariant: while the future of a scope is polled or dropped, its value is in the
//! thread-local. At all other times it is in the future. So a value follows its future
//! from thread to thread, and an inner scope hides an outer one.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::thread;

/// Declares values that belong to a future, each a [`LocalKey`](crate::task::LocalKey).
///
/// # Examples
///
/// ```
/// reveille_executor::task_local! {
///     /// The number of the request that is served.
///     pub static REQUEST: u32;
///     static USER: String;
/// }
///
/// reveille_executor::block_on(REQUEST.scope(7, async {
///     assert_eq!(REQUEST.get(), 7);
///     assert!(USER.try_with(String::len).is_err());
/// }));
/// ```
#[macro_export]
macro_rules! task_local {
    () => {};
    ($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty; $($rest:tt)*) => {
        $crate::task_local! { $(#[$attribute])* $vis static $name: $type }
        $crate::task_local! { $($rest)* }
    };
    ($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty) => {
        $(#[$attribute])*
        $vis static $name: $crate::task::LocalKey<$type> = {
            ::std::thread_local! {
                static KEY: ::std::cell::RefCell<::core::option::Option<$type>> =
                    const { ::std::cell::RefCell::new(::core::option::Option::None) };
            }
            $crate::task::LocalKey::__new(KEY)
        };
    };
}

/// A key to a value that belongs to a future. [`task_local!`](crate::task_local) declares
/// it.
///
/// A task that is spawned within a scope does not inherit the value. It has to open a
/// scope of its own.
///
/// # Examples
///
/// ```
/// use reveille_executor::{ThreadPool, task, task_local};
///
/// task_local! {
///     static REQUEST: u32;
/// }
///
/// let pool = ThreadPool::new();
/// let served = pool.spawn(REQUEST.scope(7, async {
///     task::yield_now().await; // perhaps on another thread from here on
///     let inner = REQUEST.scope(8, async { REQUEST.get() }).await;
///     (REQUEST.get(), inner)
/// }));
/// assert_eq!(pool.block_on(served).unwrap(), (7, 8));
/// ```
pub struct LocalKey<T: 'static> {
    value: thread::LocalKey<RefCell<Option<T>>>,
}

/// The error of an access to a key of which no scope is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessError;

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("task-local value not set: no LocalKey::scope of it is open here")
    }
}

impl Error for AccessError {}

/// The value of a scope is in the thread-local, until this is dropped.
struct Entered<'a, T: 'static> {
    key: &'static LocalKey<T>,
    value: &'a mut Option<T>,
}

impl<T> Drop for Entered<'_, T> {
    fn drop(&mut self) {
        // The scope was entered, so the thread-local exists and is not borrowed.
        let swapped = self.key.swap(self.value);
        debug_assert!(swapped.is_ok());
    }
}

/// The future of a scope, with the value while it is not polled.
struct Scope<'a, T: 'static, F> {
    key: &'static LocalKey<T>,
    value: Option<T>,
    future: Pin<&'a mut Option<F>>,
}

impl<T, F: Future> Scope<'_, T, F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        let entered = self.key.enter(&mut self.value);
        let _entered = entered.unwrap_or_else(|why| panic!("LocalKey::scope: {why}"));
        let Some(future) = self.future.as_mut().as_pin_mut() else {
            panic!("the future of LocalKey::scope was polled after it was ready");
        };
        let poll = future.poll(cx);
        if poll.is_ready() {
            self.future.set(None);
        }
        poll
    }
}

/// The future is dropped with its value in the thread-local.
impl<T, F> Drop for Scope<'_, T, F> {
    fn drop(&mut self) {
        let _entered = self.key.enter(&mut self.value);
        self.future.set(None);
    }
}

impl<T> LocalKey<T> {
    #[doc(hidden)]
    #[must_use]
    pub const fn __new(value: thread::LocalKey<RefCell<Option<T>>>) -> Self {
        Self { value }
    }

    /// Exchanges the value with that of the thread-local.
    fn swap(&'static self, value: &mut Option<T>) -> Result<(), &'static str> {
        let swapped = self.value.try_with(|slot| match slot.try_borrow_mut() {
            Ok(mut slot) => {
                mem::swap(&mut *slot, value);
                Ok(())
            }
            Err(_) => Err("a scope cannot be entered within LocalKey::with of the same key"),
        });
        swapped.unwrap_or(Err("a scope cannot be entered while the thread ends"))
    }

    fn enter<'a>(&'static self, value: &'a mut Option<T>) -> Result<Entered<'a, T>, &'static str> {
        self.swap(value)?;
        Ok(Entered { key: self, value })
    }

    /// Runs a future with `value` under this key, wherever it is polled.
    ///
    /// # Cancel safety
    ///
    /// It is that of the future. The value is dropped with the future.
    ///
    /// # Panics
    ///
    /// Panics if the future is polled within [`with`](Self::with) of the same key, or by
    /// the destructor of a thread-local.
    ///
    /// # Examples
    ///
    /// See the [type](Self).
    pub async fn scope<F: Future>(&'static self, value: T, future: F) -> F::Output {
        let future = pin!(Some(future));
        let mut scope = Scope {
            key: self,
            value: Some(value),
            future,
        };
        poll_fn(|cx| scope.poll(cx)).await
    }

    /// Calls a function with `value` under this key.
    ///
    /// # Panics
    ///
    /// Panics if [`scope`](Self::scope) would.
    ///
    /// # Examples
    ///
    /// ```
    /// reveille_executor::task_local! {
    ///     static REQUEST: u32;
    /// }
    ///
    /// assert_eq!(REQUEST.sync_scope(7, || REQUEST.get()), 7);
    /// ```
    #[track_caller]
    pub fn sync_scope<R>(&'static self, value: T, f: impl FnOnce() -> R) -> R {
        let mut value = Some(value);
        match self.enter(&mut value) {
            Ok(_entered) => f(),
            Err(why) => panic!("LocalKey::sync_scope: {why}"),
        }
    }

    /// Calls a function with a reference to the value.
    ///
    /// # Panics
    ///
    /// Panics if no scope of this key is open. [`try_with`](Self::try_with) returns an
    /// error instead.
    #[track_caller]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Ok(returned) => returned,
            Err(error) => panic!("LocalKey::with: {error}"),
        }
    }

    /// Calls a function with a reference to the value, if there is one.
    ///
    /// # Errors
    ///
    /// Returns [`AccessError`] if no scope of this key is open.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let returned = self.value.try_with(|slot| slot.borrow().as_ref().map(f));
        returned.ok().flatten().ok_or(AccessError)
    }

    /// Returns a clone of the value.
    ///
    /// # Panics
    ///
    /// Panics if [`with`](Self::with) would.
    #[track_caller]
    pub fn get(&'static self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    /// Returns a clone of the value, if there is one.
    ///
    /// # Errors
    ///
    /// Those of [`try_with`](Self::try_with).
    pub fn try_get(&'static self) -> Result<T, AccessError>
    where
        T: Clone,
    {
        self.try_with(T::clone)
    }
}

impl<T> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}
