//! Every sequence of calls on a oneshot, up to a length, beside a model of one:
//! results, wakes, wakers kept and values alive agree after each call.
//!
//! All calls are on one thread, so each is one step. The interleaving of the steps of
//! two threads is explored elsewhere.

#![cfg(not(loom))]

mod support;

use std::mem;
use std::task::Poll;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::oneshot::error::TryRecvError;
use reveille::oneshot::{self, Receiver, Sender, Slot};
use reveille::raw::Storage;

use support::poll;
use support::probe::Probe;
use support::token::Token;

/// A call. Tasks are numbered, and each task may poll either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Poll(usize),
    PollClosed(usize),
    Send,
    DropSender,
    LeakSender,
    Close,
    TryRecv,
    DropReceiver,
    LeakReceiver,
}

const CALLS: [Call; 9] = [
    Call::Poll(0),
    Call::Poll(1),
    Call::PollClosed(0),
    Call::PollClosed(1),
    Call::Send,
    Call::DropSender,
    Call::Close,
    Call::TryRecv,
    Call::DropReceiver,
];

/// Halves can be leaked in a slot, which then has to clean up.
const LEAKS: [Call; 2] = [Call::LeakSender, Call::LeakReceiver];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Here,
    /// The receiver has returned its result.
    Terminated,
    Gone,
}

/// The simplest model of a oneshot.
#[derive(Debug, Clone, Copy)]
struct Model {
    sender: Half,
    receiver: Half,
    /// The sender has sent or left. Nothing more will come.
    ended: bool,
    closed: bool,
    value: bool,
    /// The task that sleeps on each side.
    sender_sleeps: Option<usize>,
    receiver_sleeps: Option<usize>,
    wakes: [usize; 2],
}

/// The result of a call, as far as the model determines it.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Nothing,
    Pending,
    Ready,
    Value,
    Never,
    Empty,
    Refused,
}

impl Model {
    fn new() -> Self {
        Self {
            sender: Half::Here,
            receiver: Half::Here,
            ended: false,
            closed: false,
            value: false,
            sender_sleeps: None,
            receiver_sleeps: None,
            wakes: [0; 2],
        }
    }

    /// Returns `true` if the call can be made: its half is there, and a terminated
    /// receiver is not polled.
    fn allows(&self, call: Call) -> bool {
        match call {
            Call::PollClosed(_) | Call::Send | Call::DropSender | Call::LeakSender => {
                self.sender == Half::Here
            }
            Call::Poll(_) | Call::LeakReceiver => self.receiver == Half::Here,
            Call::Close | Call::TryRecv | Call::DropReceiver => self.receiver != Half::Gone,
        }
    }

    fn wake(&mut self, sleeper: Option<usize>) {
        if let Some(task) = sleeper {
            self.wakes[task] += 1;
        }
    }

    /// Ends the sender, which has sent or left.
    fn end(&mut self) {
        self.sender = Half::Gone;
        self.ended = true;
        self.sender_sleeps = None;
        let sleeper = self.receiver_sleeps.take();
        self.wake(sleeper);
    }

    /// Closes the receiver, which has closed or left.
    fn close(&mut self) {
        self.closed = true;
        let sleeper = self.sender_sleeps.take();
        self.wake(sleeper);
    }

    /// Returns the result of the receiver, if it is decided.
    fn take(&mut self) -> Option<Answer> {
        if self.receiver == Half::Terminated {
            return Some(Answer::Never);
        }
        if !self.ended && !self.closed {
            return None;
        }
        self.receiver = Half::Terminated;
        self.close();
        Some(match mem::take(&mut self.value) {
            true => Answer::Value,
            false => Answer::Never,
        })
    }

    fn call(&mut self, call: Call) -> Answer {
        match call {
            Call::Poll(task) => self.take().unwrap_or_else(|| {
                self.receiver_sleeps = Some(task);
                Answer::Pending
            }),
            Call::TryRecv => self.take().unwrap_or(Answer::Empty),
            Call::PollClosed(_) if self.closed => Answer::Ready,
            Call::PollClosed(task) => {
                self.sender_sleeps = Some(task);
                Answer::Pending
            }
            Call::Send if self.closed => {
                self.end();
                Answer::Refused
            }
            Call::Send => {
                self.value = true;
                self.end();
                Answer::Nothing
            }
            Call::DropSender => {
                self.end();
                Answer::Nothing
            }
            Call::Close => {
                // A terminated receiver has nothing left to close.
                if self.receiver == Half::Here {
                    self.close();
                    let sleeper = self.receiver_sleeps.take();
                    self.wake(sleeper);
                }
                Answer::Nothing
            }
            Call::DropReceiver => {
                self.receiver = Half::Gone;
                self.receiver_sleeps = None;
                self.value = false;
                self.close();
                Answer::Nothing
            }
            // The other half is not notified.
            Call::LeakSender => {
                self.sender = Half::Gone;
                Answer::Nothing
            }
            Call::LeakReceiver => {
                self.receiver = Half::Gone;
                Answer::Nothing
            }
        }
    }

    fn kept(&self, task: usize) -> usize {
        let sleeps = |sleeper: Option<usize>| usize::from(sleeper == Some(task));
        sleeps(self.sender_sleeps) + sleeps(self.receiver_sleeps)
    }
}

/// The halves of a real channel.
struct Halves<P: Storage> {
    sender: Option<Sender<Token, P>>,
    receiver: Option<Receiver<Token, P>>,
}

impl<P: Storage> Halves<P> {
    fn call(&mut self, call: Call, tasks: &[Probe; 2]) -> Answer {
        match call {
            Call::Poll(task) => {
                let receiver = self.receiver.as_mut().expect("allowed");
                match poll(receiver, &tasks[task]) {
                    Poll::Pending => Answer::Pending,
                    Poll::Ready(Ok(_)) => Answer::Value,
                    Poll::Ready(Err(_)) => Answer::Never,
                }
            }
            Call::TryRecv => match self.receiver.as_mut().expect("allowed").try_recv() {
                Ok(_) => Answer::Value,
                Err(TryRecvError::Empty) => Answer::Empty,
                Err(TryRecvError::Closed) => Answer::Never,
            },
            Call::PollClosed(task) => {
                let sender = self.sender.as_mut().expect("allowed");
                match sender.poll_closed(&mut tasks[task].cx()) {
                    Poll::Pending => Answer::Pending,
                    Poll::Ready(()) => Answer::Ready,
                }
            }
            Call::Send => match self.sender.take().expect("allowed").send(Token::new(7)) {
                Ok(()) => Answer::Nothing,
                Err(_) => Answer::Refused,
            },
            Call::Close => {
                self.receiver.as_mut().expect("allowed").close();
                Answer::Nothing
            }
            Call::DropSender => {
                self.sender = None;
                Answer::Nothing
            }
            Call::DropReceiver => {
                self.receiver = None;
                Answer::Nothing
            }
            Call::LeakSender => {
                mem::forget(self.sender.take());
                Answer::Nothing
            }
            Call::LeakReceiver => {
                mem::forget(self.receiver.take());
                Answer::Nothing
            }
        }
    }
}

/// Makes the calls on both and compares.
fn play<P: Storage>(
    calls: &[Call],
    tasks: &[Probe; 2],
    (sender, receiver): (Sender<Token, P>, Receiver<Token, P>),
) {
    let mut model = Model::new();
    let mut halves = Halves {
        sender: Some(sender),
        receiver: Some(receiver),
    };
    let wakes_before = tasks.each_ref().map(Probe::wakes);
    for (index, &call) in calls.iter().enumerate() {
        let expected = model.call(call);
        let answer = halves.call(call, tasks);
        let at = || format!("{:?}, then {call:?}", &calls[..index]);
        assert_eq!(answer, expected, "{}", at());
        for task in 0..2 {
            let wakes = tasks[task].wakes() - wakes_before[task];
            assert_eq!(wakes, model.wakes[task], "wakes of {task}: {}", at());
            assert_eq!(
                tasks[task].kept(),
                model.kept(task),
                "wakers of {task}: {}",
                at()
            );
        }
        assert_eq!(Token::alive(), usize::from(model.value), "{}", at());
        if let Some(sender) = &halves.sender {
            assert_eq!(sender.is_closed(), model.closed, "{}", at());
        }
        if let Some(receiver) = &halves.receiver {
            assert_eq!(receiver.is_empty(), !model.value, "{}", at());
            let terminated = model.receiver == Half::Terminated;
            assert_eq!(receiver.is_terminated(), terminated, "{}", at());
        }
    }
}

/// Plays every sequence of at most `length` calls that can be made, once. A sequence
/// that can go on is played only as the beginning of longer ones.
fn every_sequence(calls: &[Call], length: usize, play: &mut impl FnMut(&[Call])) -> usize {
    fn extend(
        calls: &[Call],
        length: usize,
        model: Model,
        sequence: &mut Vec<Call>,
        play: &mut impl FnMut(&[Call]),
    ) -> usize {
        let mut played = 0;
        if sequence.len() < length {
            for &call in calls.iter().filter(|call| model.allows(**call)) {
                let mut next = model;
                next.call(call);
                sequence.push(call);
                played += extend(calls, length, next, sequence, play);
                sequence.pop();
            }
        }
        if played == 0 {
            play(sequence);
            played = 1;
        }
        played
    }
    extend(calls, length, Model::new(), &mut Vec::new(), play)
}

fn in_heap<B: Backend>() {
    let tasks = [(); 2].map(|()| Probe::new());
    let played = every_sequence(&CALLS, 7, &mut |calls| {
        play(calls, &tasks, oneshot::channel_in::<_, B>());
        assert_eq!(tasks.each_ref().map(Probe::kept), [0; 2], "{calls:?}");
        assert_eq!(Token::alive(), 0, "{calls:?}");
    });
    assert!(played > 300_000, "{played} sequences");
}

/// One slot is used for all sequences, and each half may be leaked in each of them.
fn in_slot<B: Backend>() {
    let calls = [&CALLS[..], &LEAKS[..]].concat();
    let tasks = [(); 2].map(|()| Probe::new());
    let mut slot = Slot::<Token, B>::new_in();
    let played = every_sequence(&calls, 6, &mut |calls| {
        play(calls, &tasks, slot.split());
        if !calls.iter().any(|call| LEAKS.contains(call)) {
            assert_eq!(tasks.each_ref().map(Probe::kept), [0; 2], "{calls:?}");
            assert_eq!(Token::alive(), 0, "{calls:?}");
        }
        // The next split drops what leaked halves left, if nothing did before.
        drop(slot.split());
        assert_eq!(tasks.each_ref().map(Probe::kept), [0; 2], "{calls:?}");
        assert_eq!(Token::alive(), 0, "{calls:?}");
    });
    assert!(played > 100_000, "{played} sequences");
}

#[test]
fn all_sequences_agree_with_the_model_on_native() {
    in_heap::<Native>();
}

#[test]
fn all_sequences_agree_with_the_model_on_spin() {
    in_heap::<Spin>();
}

#[test]
fn all_sequences_agree_with_the_model_on_local() {
    in_heap::<Local>();
}

#[test]
fn all_sequences_agree_with_the_model_in_a_native_slot() {
    in_slot::<Native>();
}

#[test]
fn all_sequences_agree_with_the_model_in_a_spin_slot() {
    in_slot::<Spin>();
}

#[test]
fn all_sequences_agree_with_the_model_in_a_local_slot() {
    in_slot::<Local>();
}
