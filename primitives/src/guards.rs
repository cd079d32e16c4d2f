//! What the guards of all locks, and their futures, have in common.

/// Defines the named future of a guard, around an
/// [`AcquireGuard`](crate::raw::AcquireGuard) or an
/// [`UpgradeGuard`](crate::raw::UpgradeGuard). The name of the operation stands in
/// the panic of a poll after completion.
macro_rules! guard_future {
    (
        $(#[$doc:meta])*
        $name:ident[$($lifetime:lifetime,)? T: ?Sized, B: Backend = DefaultBackend][$($generics:tt)*]:
            $acquire:ty, $operation:literal => $guard:ident<$($arguments:tt)*
    ) => {
        $(#[$doc])*
        ///
        /// # Panics
        ///
        /// Panics if it is polled again after it has completed.
        #[must_use = "futures do nothing unless polled"]
        pub struct $name<$($lifetime,)? T: ?Sized, B: Backend = DefaultBackend> {
            acquire: $acquire,
        }

        impl<$($lifetime,)? T: ?Sized, B: Backend> core::future::Future for $name<$($generics)*> {
            type Output = $guard<$($arguments)*;

            // What a checker is told is out of line, and counts in the estimate of the
            // compiler all the same.
            #[cfg_attr(feature = "model", inline(always))]
            #[cfg_attr(not(feature = "model"), inline)]
            fn poll(
                mut self: core::pin::Pin<&mut Self>,
                cx: &mut core::task::Context<'_>,
            ) -> core::task::Poll<Self::Output> {
                self.acquire
                    .poll(cx, $operation)
                    .map(|guard| $guard { guard: guard.into() })
            }
        }

        impl<$($lifetime,)? T: ?Sized, B: Backend> core::fmt::Debug for $name<$($generics)*> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

/// Implements what a guard offers that gives shared access.
macro_rules! shared_guard {
    ([$($generics:tt)*] $guard:ty, $target:ty) => {
        impl<$($generics)*> core::ops::Deref for $guard {
            type Target = $target;

            #[inline]
            fn deref(&self) -> &Self::Target {
                &self.guard
            }
        }

        impl<$($generics)*> core::fmt::Debug for $guard
        where
            $target: core::fmt::Debug,
        {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Debug::fmt(&**self, f)
            }
        }

        impl<$($generics)*> core::fmt::Display for $guard
        where
            $target: core::fmt::Display,
        {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(&**self, f)
            }
        }
    };
}

/// Implements what a guard offers that gives exclusive access.
macro_rules! exclusive_guard {
    ([$($generics:tt)*] $guard:ty, $target:ty) => {
        $crate::guards::shared_guard!([$($generics)*] $guard, $target);

        impl<$($generics)*> core::ops::DerefMut for $guard {
            #[inline]
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.guard
            }
        }
    };
}

pub(crate) use {exclusive_guard, guard_future, shared_guard};
