//! What was found, each confirmed by a test that was written by hand.

/// A finding.
pub(crate) struct Finding {
    /// The subject in which it is found.
    pub(crate) subject: &'static str,
    /// The class of its failure, or the rule that it breaks.
    pub(crate) class: &'static str,
    /// What users of the crate see.
    pub(crate) seen: &'static str,
    /// How it could be mended.
    pub(crate) mend: &'static str,
    /// The test in `tests/findings.rs`.
    pub(crate) test: &'static str,
}

/// The class of a finding in the table of auto traits.
pub(crate) const AUTO_TRAITS: &str = "auto traits";

/// The findings, in the order of the subjects.
pub(crate) const KNOWN: &[Finding] = &[
    Finding {
        subject: "tokio/oneshot",
        class: "leak",
        seen: "The waker of a `closed()` that was dropped stays in the channel until the sender \
               goes. The task behind it, and all that it owns, is freed later than it could be.",
        mend: "Take the waker out when the future is dropped.",
        test: "tokio_oneshot_keeps_the_waker_of_a_closed_that_was_dropped",
    },
    Finding {
        subject: "futures/mpsc-unbounded",
        class: "leak",
        seen: "The waker of a receiver that was dropped stays until the last sender goes.",
        mend: "Take the waker out when the receiver is dropped.",
        test: "futures_mpsc_keeps_the_waker_of_a_receiver_that_was_dropped",
    },
    Finding {
        subject: "futures/mutex",
        class: "panic",
        seen: "After a waker's `clone` has panicked in `lock`, every later `lock` panics.",
        mend: "Clone the waker before the list of waiters is locked, or ignore the poison.",
        test: "futures_mutex_cannot_be_locked_after_a_clone_that_panics",
    },
    Finding {
        subject: "futures/waker-cell",
        class: "panic",
        seen: "After a waker's `clone` has panicked in `register`, no wake reaches the task any \
               more.",
        mend: "Clone the waker before the cell is marked as registering, or mark it as free in a \
               guard.",
        test: "futures_atomic_waker_is_registering_for_ever_after_a_clone_that_panics",
    },
    Finding {
        subject: "async-lock/mutex",
        class: "panic",
        seen: "If a waker's `clone` panics in `lock` and that future is dropped, the next task \
               that waits is not woken when the lock is released, although the lock is free.",
        mend: "Remove the listener in a guard, and pass its notification on.",
        test: "async_lock_mutex_forgets_a_waiter_after_a_clone_that_panics",
    },
    Finding {
        subject: "async-lock/rwlock",
        class: AUTO_TRAITS,
        seen: "A write guard of a `Cell` can be sent to another thread and made into a read \
               guard there, so that two threads share the `Cell`. That is undefined behaviour \
               in safe code.",
        mend: "Demand `Sync` of the value for sending a guard that can be downgraded.",
        test: "async_lock_write_guard_of_a_cell_can_be_sent",
    },
    Finding {
        subject: "asyncband/rwlock",
        class: AUTO_TRAITS,
        seen: "A mapped write guard of a `Cell` can be sent to another thread and made into a \
               read guard there, so that two threads share the `Cell`. That is undefined \
               behaviour in safe code.",
        mend: "Demand `Sync` of the value for sending the mapped guard, as for the guard itself.",
        test: "asyncband_mapped_write_guard_of_a_cell_can_be_sent",
    },
    Finding {
        subject: "futures-intrusive/semaphore",
        class: "cancellation race",
        seen: "If a large request at the head of a fair semaphore is dropped, the smaller one \
               behind it waits for ever, although its permits are free.",
        mend: "Wake the waiters behind a request that leaves the head of the queue.",
        test: "futures_intrusive_semaphore_forgets_the_waiter_behind_one_that_gives_up",
    },
    Finding {
        subject: "async-oneshot/oneshot",
        class: "leak",
        seen: "A value that was sent and not received is never dropped. What it owns is leaked.",
        mend: "Drop the value with the last half.",
        test: "async_oneshot_never_drops_a_value_that_is_not_received",
    },
    Finding {
        subject: "flume/mpmc",
        class: "leak",
        seen: "If the receiver goes while a `send_async` waits, its waker stays in the channel \
               after the send has returned, until the sender goes.",
        mend: "Take the waiting senders out when the channel is disconnected.",
        test: "flume_keeps_the_waker_of_a_send_that_has_returned",
    },
    Finding {
        subject: "kanal/mpmc",
        class: "stale waker",
        seen: "A `send` that is polled again with another waker keeps the first, as in a `select` \
               or after the task has moved. The task that waits now is not woken, and waits for \
               ever.",
        mend: "Replace the waker if the new one would not wake the same task.",
        test: "kanal_wakes_the_first_waker_of_a_send_that_was_polled_with_another",
    },
    Finding {
        subject: "kanal/mpmc",
        class: "cancellation race",
        seen: "A message that was handed to a `recv` is lost if that future is dropped, as in a \
               `select` or a timeout.",
        mend: "Put the message back, or hand it to the next receiver, when the future is dropped.",
        test: "kanal_loses_a_message_for_a_receive_that_is_dropped",
    },
    Finding {
        subject: "tachyonix/mpsc",
        class: "leak",
        seen: "The waker of a receiver that was dropped stays until the last sender goes.",
        mend: "Take the waker out when the receiver is dropped.",
        test: "tachyonix_keeps_the_waker_of_a_receiver_that_was_dropped",
    },
    Finding {
        subject: "thingbuf/mpsc",
        class: "leak",
        seen: "The waker of a receiver that was dropped stays until the last sender goes.",
        mend: "Take the waker out when the receiver is dropped.",
        test: "thingbuf_keeps_the_waker_of_a_receiver_that_was_dropped",
    },
    Finding {
        subject: "postage/mpsc",
        class: "leak",
        seen: "The waker of a receiver that was dropped stays until the last sender goes.",
        mend: "Take the waker out when the receiver is dropped.",
        test: "postage_keeps_the_waker_of_a_receiver_that_was_dropped",
    },
    Finding {
        subject: "postage/mpsc-many",
        class: "leak",
        seen: "The waker of a `send` that was dropped stays until a message is received.",
        mend: "Take the waker out when the future is dropped.",
        test: "postage_keeps_the_waker_of_a_send_that_was_dropped",
    },
    Finding {
        subject: "atomic-waker/waker-cell",
        class: "panic",
        seen: "After a waker's `clone` has panicked in `register`, no wake reaches the task any \
               more.",
        mend: "Clone the waker before the cell is marked as registering, or mark it as free in a \
               guard.",
        test: "atomic_waker_is_registering_for_ever_after_a_clone_that_panics",
    },
    Finding {
        subject: "diatomic-waker/waker-cell",
        class: "panic",
        seen: "After a waker has panicked in `notify`, no later `notify` reaches the task.",
        mend: "Release the cell in a guard, or wake after it is released.",
        test: "diatomic_waker_wakes_no_more_after_a_wake_that_panics",
    },
];
