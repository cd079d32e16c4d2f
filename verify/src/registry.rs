//! Suites: the subjects and specimens that a command runs by name.

use std::fmt;
use std::sync::Arc;

use crate::check::{Foreign, OverNative, assert_is_name};
use crate::run::Generic;
use crate::run::entry::{SpecimenEntry, SubjectEntry, Surface};
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Subject};
use crate::{specimens, subjects};

/// What a command verifies: subjects, and specimens that it must catch.
///
/// With it a crate has the whole of `cargo verify` for its own primitives: every
/// engine and profile, workers that survive an abort, replay, JSON and pages. Put it in
/// a test target without the standard harness. In `Cargo.toml`:
///
/// ```toml
/// [[test]]
/// name = "verify"
/// harness = false
/// ```
///
/// In `tests/verify.rs`:
///
/// ```no_run
/// # use std::marker::PhantomData;
/// # struct Mail;
/// # #[derive(Clone, Debug)]
/// # struct Op;
/// # impl reveille_verify::Spec for Mail {
/// #     type Op = Op;
/// #     type Ret = ();
/// #     type State = ();
/// #     fn initial(&self) {}
/// #     fn step(&self, _: &(), _: reveille_verify::Call<'_, Op>) -> Vec<((), ())> { vec![((), ())] }
/// # }
/// # impl reveille_verify::Subject for Mail {
/// #     type Op = Op;
/// #     type Ret = ();
/// #     type Spec = Mail;
/// #     type Actor = ();
/// #     fn spec(&self) -> Mail { Mail }
/// #     fn roles(&self, _: usize) -> Vec<reveille_verify::Role<Op>> { vec![] }
/// #     fn actors(&self, n: usize) -> Vec<()> { vec![(); n] }
/// #     fn start<'a>(&self, _: &'a mut (), _: reveille_verify::Call<'_, Op>,
/// #         _: &dyn Fn() -> reveille_verify::Value) -> reveille_verify::Started<'a, ()> {
/// #         reveille_verify::Started::Done(())
/// #     }
/// # }
/// use std::process::ExitCode;
///
/// use reveille_verify::Suite;
///
/// fn main() -> ExitCode {
///     Suite::new("cargo test --test verify --").foreign("mailbox", Mail).main()
/// }
/// ```
///
/// Then `cargo test --test verify` runs everything, and
/// `cargo test --test verify -- --help` lists the options. If the command is installed,
/// by `cargo install reveille-verify`, it is `cargo verify`. [`main!`](crate::main) writes
/// this function for subjects that need nothing else.
///
/// `cargo test NAME` passes the name to this target too, which then looks for a subject
/// of that name. With `test = false` the target runs only if it is asked for.
pub struct Suite {
    /// The command that runs the suite, for messages.
    pub(crate) command: String,
    /// Every subject, in the order in which they run.
    pub(crate) subjects: Vec<SubjectEntry>,
    /// Every specimen.
    pub(crate) specimens: Vec<SpecimenEntry>,
}

impl Suite {
    /// Creates an empty suite. `command` is the command that runs it, which messages
    /// repeat.
    #[must_use]
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            subjects: Vec::new(),
            specimens: Vec::new(),
        }
    }

    /// Adds a subject that is generic over its backend.
    ///
    /// # Panics
    ///
    /// Panics if the suite has a subject of this name, or if the name is empty or has a
    /// character that divides replay tokens: a colon, a quotation mark, a slash or white
    /// space.
    #[must_use]
    pub fn subject(self, name: &str, subject: impl GenericSubject) -> Self {
        self.with(name, "a subject of this crate", subject)
    }

    /// Adds a subject over the default backend, as
    /// [`check_native`](crate::check_native) runs it.
    ///
    /// # Panics
    ///
    /// Panics as [`subject`](Self::subject) does.
    #[must_use]
    pub fn native(self, name: &str, subject: impl Subject) -> Self {
        let about = "a subject over the default backend";
        self.with(name, about, OverNative(Arc::new(subject)))
    }

    /// Adds a subject that is not generic over a backend, as
    /// [`check_foreign`](crate::check_foreign) runs it.
    ///
    /// # Panics
    ///
    /// Panics as [`subject`](Self::subject) does.
    #[must_use]
    pub fn foreign(self, name: &str, subject: impl Subject) -> Self {
        let about = "a subject without a backend";
        self.with(name, about, Foreign(Arc::new(subject)))
    }

    /// Adds a specimen: a subject that is broken on purpose. The command fails unless a
    /// program of at most four operations catches it in this class.
    ///
    /// # Panics
    ///
    /// Panics as [`subject`](Self::subject) does.
    #[must_use]
    pub fn specimen(mut self, name: &str, specimen: impl GenericSubject, class: Class) -> Self {
        self.assert_is_new(name);
        let entry = SpecimenEntry::new(name.to_owned(), Generic(specimen), Some(class), 4);
        self.specimens.push(entry);
        self
    }

    fn with(mut self, name: &str, about: &'static str, subject: impl GenericSubject) -> Self {
        self.assert_is_new(name);
        let surface = Surface::Other("those that the subject declares");
        let entry = SubjectEntry::new(name, about, subject, surface);
        self.subjects.push(entry);
        self
    }

    fn assert_is_new(&self, name: &str) {
        assert_is_name(name);
        assert!(
            self.find(name).is_none(),
            "the suite has a subject `{name}` already: give this one another name"
        );
    }

    /// Returns the names of the subjects of a group. There are none if there is no such
    /// group.
    pub(crate) fn group(&self, name: &str) -> Vec<String> {
        let subjects = self.subjects.iter();
        subjects
            .filter(|subject| subject.group == Some(name))
            .map(|subject| subject.name.clone())
            .collect()
    }

    /// Returns the subject or specimen of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&SubjectEntry> {
        let specimens = self.specimens.iter().map(|specimen| &specimen.named);
        let mut all = self.subjects.iter().chain(specimens);
        all.find(|named| named.name == name)
    }
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suite")
            .field("subjects", &self.subjects)
            .field("specimens", &self.specimens)
            .finish_non_exhaustive()
    }
}

/// Returns the suite of Reveille's own primitives.
#[must_use]
pub(crate) fn reveille() -> Suite {
    Suite {
        command: "cargo verify".to_owned(),
        subjects: subjects::all(),
        specimens: specimens::all(),
    }
}

/// Writes the `main` function of a test target that verifies subjects.
///
/// Each argument is an expression whose value is a
/// [`GenericSubject`](crate::GenericSubject), with a name in front of it. The target
/// needs `harness = false`. [`Suite`] describes it, and has more than this macro:
/// subjects without a backend, and specimens.
///
/// # Examples
///
/// In `tests/verify.rs`:
///
/// ```ignore
/// reveille_verify::main! {
///     "gate" => Gates { forgetful: false },
///     "channel" => MyChannel,
/// }
/// ```
#[macro_export]
macro_rules! main {
    ($($name:expr => $subject:expr),+ $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            let target = ::core::env!("CARGO_CRATE_NAME");
            $crate::Suite::new(::std::format!("cargo test --test {target} --"))
                $(.subject($name, $subject))+
                .main()
        }
    };
}
