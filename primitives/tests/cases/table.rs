//! The table of waiting operations: a new primitive joins every case by a line.

use std::task::{Context, Poll, Waker};

use reveille::oneshot::{Receiver, Sender};
use reveille::protocol::{Local, Native, Place, Spin};

use crate::support::channel::{Channel, Heap, Slotted};
use crate::support::token::Token;

/// Every waiting operation, in every place, over every backend.
pub(crate) fn table() -> Vec<Row> {
    vec![
        receiving::<Heap<Native>>(),
        receiving::<Heap<Spin>>(),
        receiving::<Heap<Local>>(),
        receiving::<Slotted<Native>>(),
        receiving::<Slotted<Spin>>(),
        receiving::<Slotted<Local>>(),
        closing::<Heap<Native>>(),
        closing::<Heap<Spin>>(),
        closing::<Heap<Local>>(),
        closing::<Slotted<Native>>(),
        closing::<Slotted<Spin>>(),
        closing::<Slotted<Local>>(),
    ]
}

/// A waiting operation.
pub(crate) struct Row {
    pub(crate) name: String,
    /// A fresh primitive, with a wait on it that has not been polled.
    pub(crate) scene: fn() -> Scene,
    /// What the wait ends with where the other side leaves.
    pub(crate) left: End,
}

/// The two sides of one wait.
pub(crate) struct Scene {
    pub(crate) waiter: Box<dyn Waiter>,
    pub(crate) completer: Box<dyn Completer>,
}

/// The side that waits. Dropping it cancels the wait.
pub(crate) trait Waiter {
    /// Polls the wait.
    fn poll(&mut self, waker: &Waker) -> Poll<End>;
}

/// The side that ends the wait. Dropping it leaves.
pub(crate) trait Completer {
    /// Gives the wait its result, if it has not got one. Answers whether
    /// anybody is there to have it.
    fn complete(&mut self) -> bool;

    /// What else can be called on this side and ends nothing.
    fn touch(&mut self);
}

/// What a wait ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With its result.
    Result,
    /// With the news that there will be none.
    Never,
}

/// `Receiver`, ended by `Sender::send`.
fn receiving<C: Channel>() -> Row {
    struct Receives<P: Place>(Receiver<Token, P>);
    struct Sends<P: Place>(Option<Sender<Token, P>>);

    impl<P: Place> Waiter for Receives<P> {
        fn poll(&mut self, waker: &Waker) -> Poll<End> {
            let mut cx = Context::from_waker(waker);
            std::pin::Pin::new(&mut self.0)
                .poll(&mut cx)
                .map(|received| match received {
                    Ok(token) => {
                        assert_eq!(token.0, 7, "the value is the one that was sent");
                        End::Result
                    }
                    Err(_) => End::Never,
                })
        }
    }

    impl<P: Place> Completer for Sends<P> {
        fn complete(&mut self) -> bool {
            match self.0.take() {
                Some(tx) => tx.send(Token::new(7)).is_ok(),
                None => true,
            }
        }

        fn touch(&mut self) {
            if let Some(tx) = &mut self.0 {
                let _ = tx.is_closed();
                let _ = tx.poll_closed(&mut Context::from_waker(Waker::noop()));
            }
        }
    }

    Row {
        name: format!("Receiver in {}", C::name()),
        scene: || {
            let (tx, rx) = C::open();
            Scene {
                waiter: Box::new(Receives(rx)),
                completer: Box::new(Sends(Some(tx))),
            }
        },
        left: End::Never,
    }
}

/// `Sender::closed`, ended by `Receiver::close`. Every poll is that of a new
/// future, as in a loop around a `select`: what waits is the sender.
fn closing<C: Channel>() -> Row {
    struct Waits<P: Place>(Sender<Token, P>);
    struct Closes<P: Place>(Receiver<Token, P>);

    impl<P: Place> Waiter for Waits<P> {
        fn poll(&mut self, waker: &Waker) -> Poll<End> {
            let mut cx = Context::from_waker(waker);
            std::pin::Pin::new(&mut self.0.closed())
                .poll(&mut cx)
                .map(|()| End::Result)
        }
    }

    impl<P: Place> Completer for Closes<P> {
        fn complete(&mut self) -> bool {
            self.0.close();
            true
        }

        fn touch(&mut self) {
            let _ = self.0.is_empty();
            if !self.0.is_terminated() {
                let mut cx = Context::from_waker(Waker::noop());
                let _ = std::pin::Pin::new(&mut self.0).poll(&mut cx);
            }
        }
    }

    Row {
        name: format!("Sender::closed in {}", C::name()),
        scene: || {
            let (tx, rx) = C::open();
            Scene {
                waiter: Box::new(Waits(tx)),
                completer: Box::new(Closes(rx)),
            }
        },
        left: End::Result,
    }
}
