//! Subjects made of closures: each operation with its meaning beside it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::value::Value;
use crate::subject::{Started, Subject};

/// Creates a subject from closures.
///
/// `create` creates the primitive, once for each execution, and all participants share
/// it. `initial` is the state of the specification before the first operation. Each
/// operation is added with two closures: what it does, and what it means. The second is
/// given the state and returns each outcome that the operation may have, as the state
/// after it and the result. If there is none, the operation waits. `Option`, arrays and
/// `Vec` are outcomes.
///
/// Results are compared by their `Debug` text.
///
/// Run the subject by [`check_foreign`](crate::check_foreign), or by
/// [`Suite::foreign`](crate::Suite::foreign). What each participant holds for itself,
/// as a guard, needs a [`Subject`] of one's own.
///
/// # Examples
///
/// A mailbox that keeps the first waker it was polled with:
///
/// ```
/// use std::sync::Mutex;
/// use std::task::{Context, Poll, Waker};
///
/// use reveille_verify::{Class, Profile, check_foreign, subject};
///
/// #[derive(Default)]
/// struct Mailbox(Mutex<(bool, Option<Waker>)>); // whether it is full, and who waits
///
/// impl Mailbox {
///     fn put(&self) {
///         let mut inner = self.0.lock().unwrap();
///         inner.0 = true;
///         let waiting = inner.1.take();
///         drop(inner);
///         waiting.into_iter().for_each(Waker::wake);
///     }
///
///     fn poll_take(&self, cx: &mut Context<'_>) -> Poll<()> {
///         let waker = cx.waker().clone();
///         let mut inner = self.0.lock().unwrap();
///         if std::mem::take(&mut inner.0) {
///             return Poll::Ready(());
///         }
///         inner.1.get_or_insert(waker); // here
///         Poll::Pending
///     }
/// }
///
/// let mail = subject(Mailbox::default, false)
///     .role("sender")
///     .op("put", |mail| mail.put(), |_| [(true, ())])
///     .role("receiver")
///     .poll("take", |mail, cx| mail.poll_take(cx), |&full| full.then_some((false, ())))
///     .keeps_waker("until a put");
///
/// let reports = check_foreign(mail, "mailbox", Profile::Quick);
/// let failure = &reports[0].failures[0];
/// assert_eq!(failure.class, Class::StaleWaker);
/// assert_eq!(failure.program, "put/take.repoll");
/// ```
pub fn subject<P, S>(create: impl Fn() -> P + Send + Sync + 'static, initial: S) -> Closures<P, S>
where
    P: Send + Sync + 'static,
    S: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    Closures {
        create: Box::new(create),
        meaning: Arc::new(Meanings {
            initial,
            steps: Vec::new(),
        }),
        runs: Vec::new(),
        roles: Vec::new(),
        fixed: false,
    }
}

/// A subject made of closures, which [`subject`] creates. `P` is the primitive, and `S`
/// the state of its specification.
#[must_use]
pub struct Closures<P, S> {
    create: Box<dyn Fn() -> P + Send + Sync>,
    meaning: Arc<Meanings<S>>,
    /// How each operation runs.
    runs: Vec<Run<P>>,
    /// The roles, each with the number of its participants.
    roles: Vec<(Role<Number>, usize)>,
    /// Whether roles were declared. If not, every participant has the only one.
    fixed: bool,
}

/// The number of an operation of [`Closures`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number(usize);

/// A result of an operation of [`Closures`], as its `Debug` text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Text(String);

impl Text {
    fn of(result: &impl fmt::Debug) -> Self {
        Self(format!("{result:?}"))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

enum Run<P> {
    Immediate(Box<dyn Fn(&P) -> Text + Send + Sync>),
    Poll(PollFn<P>),
    Future(Box<dyn Fn(Arc<P>) -> BoxedFuture + Send + Sync>),
}

type PollFn<P> = Arc<dyn Fn(&P, &mut Context<'_>) -> Poll<Text> + Send + Sync>;

type BoxedFuture = Pin<Box<dyn Future<Output = Text> + Send>>;

/// Returns the outcomes of an operation in a state.
type Step<S> = Box<dyn Fn(&S) -> Vec<(S, Text)> + Send + Sync>;

/// What the operations mean.
struct Meanings<S> {
    initial: S,
    steps: Vec<Step<S>>,
}

/// The specification of [`Closures`].
pub struct ClosureSpec<S>(Arc<Meanings<S>>);

impl<P, S> Closures<P, S>
where
    P: Send + Sync + 'static,
    S: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    /// Begins a role: the operations that are added next belong to a participant of
    /// this name. Without roles, every participant has all operations.
    ///
    /// # Panics
    ///
    /// Panics if operations were added before the first role.
    pub fn role(mut self, name: &'static str) -> Self {
        assert!(
            self.fixed || self.roles.is_empty(),
            "the role `{name}` comes after operations that belong to no role: begin with a role"
        );
        self.fixed = true;
        self.add_role(name);
        self
    }

    /// Makes the current role that of this many participants.
    ///
    /// # Panics
    ///
    /// Panics if there is no role, or if `participants` is zero.
    pub fn times(mut self, participants: usize) -> Self {
        assert!(
            participants > 0,
            "a role is that of one participant at least"
        );
        let role = self.roles.last_mut();
        role.expect("`times` belongs to the role before it").1 = participants;
        self
    }

    /// Adds an operation that returns without waiting.
    pub fn op<R: fmt::Debug, O: IntoIterator<Item = (S, R)>>(
        self,
        name: &'static str,
        run: impl Fn(&P) -> R + Send + Sync + 'static,
        meaning: impl Fn(&S) -> O + Send + Sync + 'static,
    ) -> Self {
        let run = Run::Immediate(Box::new(move |it| Text::of(&run(it))));
        self.add(Operation::immediate(name, Number(0)), run, meaning)
    }

    /// Adds an operation that may block its thread. Only real threads run it.
    pub fn blocking<R: fmt::Debug, O: IntoIterator<Item = (S, R)>>(
        self,
        name: &'static str,
        run: impl Fn(&P) -> R + Send + Sync + 'static,
        meaning: impl Fn(&S) -> O + Send + Sync + 'static,
    ) -> Self {
        let run = Run::Immediate(Box::new(move |it| Text::of(&run(it))));
        self.add(Operation::blocking(name, Number(0)), run, meaning)
    }

    /// Adds an operation that is a future. `run` is given the primitive in an `Arc`, so
    /// that the future can own it.
    pub fn future<R: fmt::Debug, O: IntoIterator<Item = (S, R)>, F>(
        self,
        name: &'static str,
        run: impl Fn(Arc<P>) -> F + Send + Sync + 'static,
        meaning: impl Fn(&S) -> O + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
    {
        let run = Run::Future(Box::new(move |it| {
            let future = run(it);
            Box::pin(async move { Text::of(&future.await) })
        }));
        self.add(Operation::future(name, Number(0)), run, meaning)
    }

    /// Adds an operation that is a future with this poll function. Dropping the future
    /// does nothing.
    pub fn poll<R: fmt::Debug, O: IntoIterator<Item = (S, R)>>(
        self,
        name: &'static str,
        run: impl Fn(&P, &mut Context<'_>) -> Poll<R> + Send + Sync + 'static,
        meaning: impl Fn(&S) -> O + Send + Sync + 'static,
    ) -> Self {
        let run = Run::Poll(Arc::new(move |it, cx| {
            run(it, cx).map(|result| Text::of(&result))
        }));
        self.add(Operation::future(name, Number(0)), run, meaning)
    }

    /// Declares that the last operation may keep a waker after it has ended, as
    /// [`Operation::keeps_waker`] describes.
    ///
    /// # Panics
    ///
    /// Panics if there is no operation.
    pub fn keeps_waker(mut self, reason: &'static str) -> Self {
        self.last("keeps_waker").keeps_waker = Some(reason);
        self
    }

    /// Declares that the last operation may take effect at any moment between its call
    /// and its return, as [`Operation::spanning`] describes.
    ///
    /// # Panics
    ///
    /// Panics if there is no operation.
    pub fn spanning(mut self) -> Self {
        self.last("spanning").spanning = true;
        self
    }

    fn add<R: fmt::Debug, O: IntoIterator<Item = (S, R)>>(
        mut self,
        mut operation: Operation<Number>,
        run: Run<P>,
        meaning: impl Fn(&S) -> O + Send + Sync + 'static,
    ) -> Self {
        operation.op = Number(self.runs.len());
        self.runs.push(run);
        let steps = &mut Arc::get_mut(&mut self.meaning)
            .expect("a specification is asked for only when the subject is complete")
            .steps;
        steps.push(Box::new(move |state| {
            let outcomes = meaning(state).into_iter();
            outcomes
                .map(|(state, result)| (state, Text::of(&result)))
                .collect()
        }));
        if self.roles.is_empty() {
            self.add_role("task");
        }
        let (role, _) = self.roles.last_mut().expect("there is one");
        role.ops.push(operation);
        self
    }

    fn add_role(&mut self, name: &'static str) {
        let role = Role {
            name,
            ops: Vec::new(),
            symmetry: self.roles.len(),
        };
        self.roles.push((role, 1));
    }

    fn last(&mut self, what: &str) -> &mut Operation<Number> {
        let role = self.roles.last_mut();
        let operation = role.and_then(|(role, _)| role.ops.last_mut());
        operation.unwrap_or_else(|| panic!("`{what}` belongs to the operation before it"))
    }
}

impl<P, S> Subject for Closures<P, S>
where
    P: Send + Sync + 'static,
    S: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    type Op = Number;
    type Ret = Text;
    type Spec = ClosureSpec<S>;
    type Actor = Arc<P>;

    fn spec(&self) -> ClosureSpec<S> {
        ClosureSpec(self.meaning.clone())
    }

    fn roles(&self, participants: usize) -> Vec<Role<Number>> {
        let roles = self.roles.iter();
        roles
            .flat_map(|(role, times)| {
                let times = if self.fixed { *times } else { participants };
                std::iter::repeat_n(role.clone(), times)
            })
            .collect()
    }

    fn actors(&self, participants: usize) -> Vec<Arc<P>> {
        let primitive = Arc::new((self.create)());
        vec![primitive; self.roles(participants).len()]
    }

    fn start<'a>(
        &self,
        primitive: &'a mut Arc<P>,
        call: Call<'_, Number>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Text> {
        match &self.runs[call.op.0] {
            Run::Immediate(run) => Started::Done(run(primitive)),
            Run::Future(run) => Started::Future(run(primitive.clone())),
            Run::Poll(run) => {
                let run = run.clone();
                Started::future(poll_fn(move |cx| run(primitive, cx)))
            }
        }
    }
}

impl<S> Spec for ClosureSpec<S>
where
    S: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    type Op = Number;
    type Ret = Text;
    type State = S;

    fn initial(&self) -> S {
        self.0.initial.clone()
    }

    fn step(&self, state: &S, call: Call<'_, Number>) -> Vec<(S, Text)> {
        self.0.steps[call.op.0](state)
    }
}

impl<P, S: fmt::Debug> fmt::Debug for Closures<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closures")
            .field("initial", &self.meaning.initial)
            .field("roles", &self.roles)
            .finish_non_exhaustive()
    }
}

impl<S: fmt::Debug> fmt::Debug for ClosureSpec<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClosureSpec")
            .field("initial", &self.0.initial)
            .finish_non_exhaustive()
    }
}
