//! Panics that are part of an exploration are not printed. One that ends the process is,
//! with the program that caused it.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Once};

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
    /// The program that runs on this thread.
    static PROGRAM: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// Panics that no thread survives: Rust aborts the process after them.
const FATAL: [&str; 2] = [
    "panic in a destructor during cleanup",
    "panic in a function that cannot unwind",
];

/// Runs `f` without the messages of its panics.
///
/// The hook is set once for the process.
pub(crate) fn quietly<R>(f: impl FnOnce() -> R) -> R {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                return before(info);
            }
            let text = info.payload().downcast_ref::<&str>();
            if text.is_some_and(|text| FATAL.contains(text)) {
                let program = program();
                let program = program.as_deref().unwrap_or("an unnamed program");
                eprintln!("{program} aborts the process");
                before(info);
            }
            let place = info.location().map(ToString::to_string);
            LAST.set(place);
        }));
    });
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            QUIET.set(self.0);
        }
    }
    let _restore = Restore(QUIET.replace(true));
    f()
}

/// Runs `f`, which runs a program. If the process is aborted meanwhile, the message
/// names the program.
pub(crate) fn naming<R>(program: &dyn Fn() -> String, f: impl FnOnce() -> R) -> R {
    let outer = PROGRAM.replace(Some(program().into()));
    let result = f();
    PROGRAM.set(outer);
    result
}

/// Returns the program that runs on this thread.
pub(crate) fn program() -> Option<Arc<str>> {
    PROGRAM.with_borrow(Clone::clone)
}

/// Makes this the program that runs on this thread, which belongs to another.
pub(crate) fn set_program(program: Option<Arc<str>>) {
    PROGRAM.set(program);
}

/// Returns where the last panic on this thread that was not printed began.
pub(crate) fn last_panic() -> Option<String> {
    LAST.take()
}
