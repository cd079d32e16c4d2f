//! Asks the compiler which auto traits a type has.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomPinned;
use std::sync::MutexGuard;

/// The auto traits of one type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traits {
    pub(crate) send: bool,
    pub(crate) sync: bool,
    pub(crate) unpin: bool,
    pub(crate) unwind: bool,
    pub(crate) ref_unwind: bool,
}

impl Traits {
    /// Returns each trait by name.
    pub(crate) fn named(self) -> [(&'static str, bool); 5] {
        [
            ("Send", self.send),
            ("Sync", self.sync),
            ("Unpin", self.unpin),
            ("UnwindSafe", self.unwind),
            ("RefUnwindSafe", self.ref_unwind),
        ]
    }
}

impl fmt::Debug for Traits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = self.named().into_iter().filter(|&(_, has)| has);
        let names = has.map(|(name, _)| name).collect::<Vec<_>>();
        write!(f, "{}", names.join(" + "))
    }
}

/// Returns whether a type has a trait. An inherent constant is preferred to one of a
/// trait, and exists only if its bound holds.
macro_rules! has {
    ($type:ty: $trait:path) => {{
        #[allow(dead_code, reason = "it is unused if the bound holds")]
        trait Otherwise {
            const HAS: bool = false;
        }
        struct Asked<T: ?Sized>(::std::marker::PhantomData<T>);
        impl<T: ?Sized> Otherwise for Asked<T> {}
        #[allow(dead_code, reason = "it is unused if the bound does not hold")]
        impl<T: ?Sized + $trait> Asked<T> {
            const HAS: bool = true;
        }
        <Asked<$type>>::HAS
    }};
}

macro_rules! traits {
    ($type:ty) => {
        $crate::probe::Traits {
            send: $crate::probe::has!($type: Send),
            sync: $crate::probe::has!($type: Sync),
            unpin: $crate::probe::has!($type: Unpin),
            unwind: $crate::probe::has!($type: ::std::panic::UnwindSafe),
            ref_unwind: $crate::probe::has!($type: ::std::panic::RefUnwindSafe),
        }
    };
}

/// Returns the traits of a type over each of [`PAYLOADS`].
macro_rules! over_payloads {
    ([T] $type:ty) => {{
        type Of<T> = $type;
        [
            $crate::probe::traits!(Of<$crate::probe::Neither>),
            $crate::probe::traits!(Of<$crate::probe::OnlySend>),
            $crate::probe::traits!(Of<$crate::probe::OnlySync>),
            $crate::probe::traits!(Of<$crate::probe::Both>),
            $crate::probe::traits!(Of<$crate::probe::Borrowed>),
            $crate::probe::traits!(Of<$crate::probe::Pinned>),
        ]
    }};
    ([] $type:ty) => {
        [$crate::probe::traits!($type); 6]
    };
}

pub(crate) use {has, over_payloads, traits};

/// Neither `Send` nor `Sync`.
pub(crate) type Neither = *const u8;
/// Only `Send`, and not `RefUnwindSafe`.
pub(crate) type OnlySend = Cell<u8>;
/// Only `Sync`.
pub(crate) type OnlySync = MutexGuard<'static, u8>;
/// All of the traits.
pub(crate) type Both = u8;
/// `Send` and `Sync`, but not `UnwindSafe`.
pub(crate) type Borrowed = &'static mut u8;
/// `Send` and `Sync`, but not `Unpin`.
pub(crate) type Pinned = PhantomPinned;

/// The payloads of each type, with their own traits.
pub(crate) const PAYLOADS: [(&str, Traits); 6] = [
    ("neither Send nor Sync", traits!(Neither)),
    ("only Send", traits!(OnlySend)),
    ("only Sync", traits!(OnlySync)),
    ("both", traits!(Both)),
    ("both, not UnwindSafe", traits!(Borrowed)),
    ("both, not Unpin", traits!(Pinned)),
];
