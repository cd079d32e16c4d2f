//! A oneshot channel, over any storage and any backend.

use std::any::type_name;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use reveille::backend::Backend;
use reveille::oneshot::{self, Receiver, Sender, Slot};
use reveille::raw::{Boxed, InSlot, Storage};

/// A kind of channel: a storage and a backend.
pub(crate) trait Channel: 'static {
    type Storage: Storage + 'static;

    fn open<T: 'static>() -> (Sender<T, Self::Storage>, Receiver<T, Self::Storage>);

    /// Returns a name such as `Heap<Native>`.
    fn name() -> String {
        let mut name = String::new();
        for word in type_name::<Self>().split_inclusive(['<', '>', ',']) {
            name.push_str(word.rsplit("::").next().unwrap_or(word));
        }
        name
    }
}

/// On the heap.
pub(crate) struct Heap<B>(PhantomData<B>);

impl<B: Backend> Channel for Heap<B> {
    type Storage = Boxed<B>;

    fn open<T: 'static>() -> (Sender<T, Boxed<B>>, Receiver<T, Boxed<B>>) {
        oneshot::channel_in()
    }
}

/// In a slot.
pub(crate) struct Slotted<B>(PhantomData<B>);

impl<B: Backend> Channel for Slotted<B> {
    type Storage = InSlot<'static, B>;

    fn open<T: 'static>() -> (
        Sender<T, InSlot<'static, B>>,
        Receiver<T, InSlot<'static, B>>,
    ) {
        keep(Box::leak(Box::new(Slot::new_in()))).split()
    }
}

/// Keeps what is leaked on purpose reachable for leak checkers. Slots are leaked so
/// that their halves can be moved as those of a heap channel can. Other tests check
/// that slots can also be dropped.
pub(crate) fn keep<T>(leaked: &'static mut T) -> &'static mut T {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push(std::ptr::from_mut(leaked).expose_provenance());
    leaked
}
