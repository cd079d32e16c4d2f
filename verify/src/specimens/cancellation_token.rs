//! A tree of tokens, with a fault that can be chosen.
//!
//! It is written in the plain way, with everything under one lock, so that each fault
//! is a line. With [`Fault::None`] it is correct.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};

use crate::run::entry::SpecimenEntry;
use crate::specimens::support::{asymmetric, wake_all};
use crate::subject::role::Role;
use crate::subject::spec::Call;
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::cancellation_token::{self as real, Op, TokenSpec};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("cancellation-token", 3, Fault::ALL, Specimen)
}

/// What is wrong with the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// P2: a wait checks in one section, and registers in another.
    CheckThenRegister,
    /// P4: wakers are called under the lock of the parent.
    WakesUnderLock,
    /// P5: the first waker is kept.
    FirstWakerKept,
    /// P8: if a waker panics, the wakers after it are not called.
    StopsAtPanic,
    /// A child checks its parent in one section, and enters the tree in another. It
    /// misses a cancellation in between.
    ChildMissesParent,
    /// A parent is cancelled before its children, in separate sections.
    ParentBeforeChildren,
    /// A child whose parent is dropped is never cancelled.
    OrphanForgotten,
}

impl Fault {
    /// Every fault, with its name and the class in which it must be caught. It is
    /// `None` for a specimen that must pass.
    pub(crate) const ALL: [(&'static str, Self, Option<Class>); 8] = [
        ("plain", Self::None, None),
        (
            "check-then-register",
            Self::CheckThenRegister,
            Some(Class::LostWakeUp),
        ),
        (
            "wakes-under-lock",
            Self::WakesUnderLock,
            Some(Class::Reentrancy),
        ),
        (
            "first-waker-kept",
            Self::FirstWakerKept,
            Some(Class::StaleWaker),
        ),
        ("stops-at-panic", Self::StopsAtPanic, Some(Class::Panic)),
        (
            "child-misses-parent",
            Self::ChildMissesParent,
            Some(Class::LostWakeUp),
        ),
        (
            "parent-before-children",
            Self::ParentBeforeChildren,
            Some(Class::WrongResult),
        ),
        (
            "orphan-forgotten",
            Self::OrphanForgotten,
            Some(Class::LostWakeUp),
        ),
    ];
}

/// The specimen over every backend.
pub(crate) struct Specimen(pub(crate) Fault);

impl GenericSubject for Specimen {
    type On<B: BlockingBackend> = SpecimenOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        SpecimenOn {
            fault: self.0,
            backend: PhantomData,
        }
    }
}

pub(crate) struct SpecimenOn<B> {
    fault: Fault,
    backend: PhantomData<fn() -> B>,
}

/// What the participants share.
pub(crate) struct Tokens<B: BlockingBackend> {
    fault: Fault,
    lock: StateLock<State, B>,
}

#[derive(Default)]
struct State {
    nodes: Vec<Node>,
    /// The waiters: for each its node, its number, and its waker.
    waits: Vec<(usize, usize, Waker)>,
    next: usize,
}

#[derive(Clone, Copy, Default)]
struct Node {
    cancelled: bool,
    parent: Option<usize>,
}

const ROOT: usize = 0;
const CHILD: usize = 1;

impl State {
    /// A node and its descendants.
    fn subtree(&self, of: usize) -> Vec<usize> {
        let descends = |&node: &usize| {
            let mut node = Some(node);
            std::iter::from_fn(|| {
                let this = node?;
                node = self.nodes[this].parent;
                Some(this)
            })
            .any(|ancestor| ancestor == of)
        };
        (0..self.nodes.len()).filter(descends).collect()
    }

    fn cancel(&mut self, nodes: &[usize]) -> Vec<Waker> {
        for &node in nodes {
            self.nodes[node].cancelled = true;
        }
        let waits = std::mem::take(&mut self.waits).into_iter();
        let (due, rest): (Vec<_>, _) = waits.partition(|(node, ..)| nodes.contains(node));
        self.waits = rest;
        due.into_iter().map(|(.., waker)| waker).collect()
    }

    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }
}

impl<B: BlockingBackend> Tokens<B> {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn cancel(&self, node: usize) {
        let wakers = self.lock.with(|section| {
            let state = section.state;
            let subtree = match self.is(Fault::ParentBeforeChildren) {
                true => vec![node],
                false => state.subtree(node),
            };
            let wakers = state.cancel(&subtree);
            if self.is(Fault::WakesUnderLock) {
                wake_all(wakers);
                return Vec::new();
            }
            wakers
        });
        match self.is(Fault::StopsAtPanic) {
            true => wakers.into_iter().for_each(Waker::wake),
            false => wake_all(wakers),
        }
        if self.is(Fault::ParentBeforeChildren) {
            let wakers = self.lock.with(|section| {
                let subtree = section.state.subtree(node);
                section.state.cancel(&subtree)
            });
            wake_all(wakers);
        }
    }

    fn is_cancelled(&self, node: usize) -> bool {
        self.lock
            .with(|section| section.state.nodes[node].cancelled)
    }

    fn child(&self, parent: usize) -> usize {
        let early = self
            .is(Fault::ChildMissesParent)
            .then(|| self.is_cancelled(parent));
        self.lock.with(|section| {
            let state = section.state;
            let cancelled = early.unwrap_or(state.nodes[parent].cancelled);
            state.add(Node {
                cancelled,
                parent: Some(parent),
            })
        })
    }

    /// A grandchild of the child, whose own parent is gone.
    fn orphan(&self) -> usize {
        self.lock.with(|section| {
            let state = section.state;
            let cancelled = state.nodes[CHILD].cancelled;
            let parent = (!self.is(Fault::OrphanForgotten)).then_some(CHILD);
            state.add(Node { cancelled, parent })
        })
    }

    fn wait(&self, node: usize) -> Wait<'_, B> {
        Wait {
            tokens: self,
            node,
            number: None,
        }
    }
}

struct Wait<'a, B: BlockingBackend> {
    tokens: &'a Tokens<B>,
    node: usize,
    number: Option<usize>,
}

impl<B: BlockingBackend> Future for Wait<'_, B> {
    type Output = Option<bool>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let tokens = this.tokens;
        let looks_first = tokens.is(Fault::CheckThenRegister);
        if looks_first && tokens.is_cancelled(this.node) {
            return Poll::Ready(None);
        }
        let waker = cx.waker().clone();
        let (ready, unused) = tokens.lock.with(|section| {
            let state = section.state;
            let number = *this.number.get_or_insert(state.next);
            state.next = state.next.max(number + 1);
            let place = state.waits.iter().position(|&(_, own, _)| own == number);
            if state.nodes[this.node].cancelled && !looks_first {
                let old = place.map(|place| state.waits.swap_remove(place).2);
                return (true, [Some(waker), old]);
            }
            let unused = match place {
                Some(_) if tokens.is(Fault::FirstWakerKept) => Some(waker),
                Some(place) => Some(std::mem::replace(&mut state.waits[place].2, waker)),
                None => {
                    state.waits.push((this.node, number, waker));
                    None
                }
            };
            (false, [unused, None])
        });
        drop(unused);
        match ready {
            true => Poll::Ready(None),
            false => Poll::Pending,
        }
    }
}

impl<B: BlockingBackend> Drop for Wait<'_, B> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let wait = self.tokens.lock.with(|section| {
                let waits = &mut section.state.waits;
                let place = waits.iter().position(|&(_, own, _)| own == number);
                place.map(|place| waits.swap_remove(place))
            });
            drop(wait);
        }
    }
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Option<bool>;
    type Spec = TokenSpec;
    type Actor = Arc<Tokens<B>>;

    fn spec(&self) -> TokenSpec {
        TokenSpec
    }

    /// Returns three roles: the first waits in every polling mode, or cancels; the
    /// second waits; the third cancels, or looks twice.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        vec![
            asymmetric(real::role(), 0, |op| {
                matches!(
                    op,
                    Op::Cancelled | Op::ChildToken | Op::Orphan | Op::CancelRoot
                )
            }),
            asymmetric(real::role(), 1, |op| *op == Op::Cancelled),
            asymmetric(real::role(), 2, |op| {
                matches!(op, Op::CancelRoot | Op::IsCancelled | Op::RootIsCancelled)
            }),
        ]
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], _: Step) -> bool {
        before.is_empty() || role.symmetry == 2
    }

    fn actors(&self, _: usize) -> Vec<Arc<Tokens<B>>> {
        let child = Node {
            cancelled: false,
            parent: Some(ROOT),
        };
        let state = State {
            nodes: vec![Node::default(), child],
            ..State::default()
        };
        let tokens = Arc::new(Tokens {
            fault: self.fault,
            lock: StateLock::new_in(Bits::EMPTY, state),
        });
        vec![tokens; 3]
    }

    fn start<'a>(
        &self,
        tokens: &'a mut Arc<Tokens<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Option<bool>> {
        Started::Done(match call.op {
            Op::Cancelled => return Started::future(tokens.wait(CHILD)),
            Op::ChildToken => return Started::future(tokens.wait(tokens.child(ROOT))),
            Op::Orphan => return Started::future(tokens.wait(tokens.orphan())),
            Op::CancelRoot => {
                tokens.cancel(ROOT);
                None
            }
            Op::IsCancelled => Some(tokens.is_cancelled(CHILD)),
            Op::RootIsCancelled => Some(tokens.is_cancelled(ROOT)),
            _ => unreachable!("no specimen does it"),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
