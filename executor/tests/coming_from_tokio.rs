//! Checks that the page *Coming from tokio* is true.
//!
//! The tables of the page are checked against three things. The imports below compile for
//! each type and function that the page lists. The sources of this workspace declare its
//! methods. The sources of tokio and tokio-util, as cargo finds them, declare no public
//! item that the page omits, and every item that it lists.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const PAGE: &str = include_str!("../src/coming_from_tokio.md");

/// Imports each path, and lists it.
macro_rules! imports {
    ($($($segment:ident)::+),* $(,)?) => {
        $( const _: () = {
            #[allow(unused_imports, reason = "that it compiles is what is tested")]
            use $($segment)::+;
        }; )*
        const IMPORTS: &[&str] = &[$(concat!($("::", stringify!($segment)),+)),*];
    };
}

imports! {
    reveille::AcquireError,
    reveille::Barrier,
    reveille::BarrierWaitResult,
    reveille::CancellationToken,
    reveille::DropGuard,
    reveille::DropGuardRef,
    reveille::MappedMutexGuard,
    reveille::Mutex,
    reveille::MutexGuard,
    reveille::Notified,
    reveille::Notify,
    reveille::OnceCell,
    reveille::OwnedMappedMutexGuard,
    reveille::OwnedMutexGuard,
    reveille::OwnedNotified,
    reveille::OwnedRwLockMappedWriteGuard,
    reveille::OwnedRwLockReadGuard,
    reveille::OwnedRwLockWriteGuard,
    reveille::OwnedSemaphorePermit,
    reveille::RwLock,
    reveille::RwLockMappedWriteGuard,
    reveille::RwLockReadGuard,
    reveille::RwLockWriteGuard,
    reveille::Semaphore,
    reveille::SemaphorePermit,
    reveille::SetError,
    reveille::SetOnce,
    reveille::SetOnceError,
    reveille::TryAcquireError,
    reveille::TryLockError,
    reveille::WaitForCancellationFuture,
    reveille::WaitForCancellationFutureOwned,
    reveille::broadcast::Receiver,
    reveille::broadcast::Sender,
    reveille::broadcast::WeakSender,
    reveille::broadcast::channel,
    reveille::broadcast::error::RecvError,
    reveille::broadcast::error::SendError,
    reveille::broadcast::error::TryRecvError,
    reveille::mpsc::OwnedPermit,
    reveille::mpsc::Permit,
    reveille::mpsc::PermitIterator,
    reveille::mpsc::Receiver,
    reveille::mpsc::Sender,
    reveille::mpsc::UnboundedReceiver,
    reveille::mpsc::UnboundedSender,
    reveille::mpsc::WeakSender,
    reveille::mpsc::WeakUnboundedSender,
    reveille::mpsc::channel,
    reveille::mpsc::error::SendError,
    reveille::mpsc::error::SendTimeoutError,
    reveille::mpsc::error::TryRecvError,
    reveille::mpsc::error::TrySendError,
    reveille::mpsc::unbounded_channel,
    reveille::watch::Receiver,
    reveille::watch::Ref,
    reveille::watch::Sender,
    reveille::watch::channel,
    reveille::watch::error::RecvError,
    reveille::watch::error::SendError,
    reveille::oneshot::Receiver,
    reveille::oneshot::Sender,
    reveille::oneshot::channel,
    reveille::oneshot::error::RecvError,
    reveille::oneshot::error::TryRecvError,
    reveille::time::DelayQueue,
    reveille::time::Expired,
    reveille::time::Instant,
    reveille::time::Interval,
    reveille::time::Key,
    reveille::time::MissedTickBehavior,
    reveille::time::Sleep,
    reveille::time::Timeout,
    reveille::time::error::Elapsed,
    reveille::time::error::Error,
    reveille::time::interval,
    reveille::time::interval_at,
    reveille::time::sleep,
    reveille::time::sleep_until,
    reveille::time::timeout,
    reveille::time::timeout_at,
    reveille_executor::task::AbortHandle,
    reveille_executor::task::AccessError,
    reveille_executor::task::block_in_place,
    reveille_executor::task::Id,
    reveille_executor::task::JoinError,
    reveille_executor::task::JoinHandle,
    reveille_executor::task::JoinSet,
    reveille_executor::task::LocalKey,
    reveille_executor::task::coop::RestoreOnPending,
    reveille_executor::task::coop::consume_budget,
    reveille_executor::task::coop::cooperative,
    reveille_executor::task::coop::has_budget_remaining,
    reveille_executor::task::coop::poll_proceed,
    reveille_executor::task::coop::unconstrained,
    reveille_executor::task::id,
    reveille_executor::task::spawn,
    reveille_executor::task::spawn_blocking,
    reveille_executor::task::spawn_local,
    reveille_executor::task::try_id,
    reveille_executor::task::yield_now,
}

/// Sections of the page with items from the same files.
struct Group {
    sections: &'static [&'static str],
    /// The crate, and its files.
    theirs: (&'static str, &'static [&'static str]),
    /// Files of this workspace.
    ours: &'static [&'static str],
}

const GROUPS: &[Group] = &[
    Group {
        sections: &["tokio::sync", "tokio::sync::futures"],
        theirs: (
            "tokio",
            &[
                "sync/barrier.rs",
                "sync/batch_semaphore.rs",
                "sync/mutex.rs",
                "sync/notify.rs",
                "sync/once_cell.rs",
                "sync/rwlock.rs",
                "sync/rwlock/owned_read_guard.rs",
                "sync/rwlock/owned_write_guard.rs",
                "sync/rwlock/owned_write_guard_mapped.rs",
                "sync/rwlock/read_guard.rs",
                "sync/rwlock/write_guard.rs",
                "sync/rwlock/write_guard_mapped.rs",
                "sync/semaphore.rs",
                "sync/set_once.rs",
            ],
        ),
        ours: &[
            "primitives/src/barrier.rs",
            "primitives/src/mutex.rs",
            "primitives/src/notify.rs",
            "primitives/src/once_cell.rs",
            "primitives/src/rwlock.rs",
            "primitives/src/semaphore.rs",
            "primitives/src/set_once.rs",
        ],
    },
    Group {
        sections: &["tokio::sync::oneshot", "tokio::sync::oneshot::error"],
        theirs: ("tokio", &["sync/oneshot.rs"]),
        ours: &["primitives/src/oneshot.rs"],
    },
    Group {
        sections: &["tokio::sync::mpsc", "tokio::sync::mpsc::error"],
        theirs: (
            "tokio",
            &[
                "sync/mpsc/bounded.rs",
                "sync/mpsc/error.rs",
                "sync/mpsc/unbounded.rs",
            ],
        ),
        ours: &["primitives/src/mpsc"],
    },
    Group {
        sections: &["tokio::sync::broadcast", "tokio::sync::broadcast::error"],
        theirs: ("tokio", &["sync/broadcast.rs"]),
        ours: &["primitives/src/broadcast.rs", "primitives/src/broadcast"],
    },
    Group {
        sections: &["tokio::sync::watch", "tokio::sync::watch::error"],
        theirs: ("tokio", &["sync/watch.rs"]),
        ours: &["primitives/src/watch.rs", "primitives/src/watch"],
    },
    Group {
        sections: &["tokio::time", "tokio::time::error"],
        theirs: (
            "tokio",
            &[
                "time/clock.rs",
                "time/error.rs",
                "time/instant.rs",
                "time/interval.rs",
                "time/sleep.rs",
                "time/timeout.rs",
            ],
        ),
        ours: &[
            "primitives/src/raw/timeout.rs",
            "primitives/src/time/clock.rs",
            "primitives/src/time/current.rs",
            "primitives/src/time/error.rs",
            "primitives/src/time/instant.rs",
            "primitives/src/time/interval.rs",
            "primitives/src/time/mod.rs",
            "primitives/src/time/sleep.rs",
            "primitives/src/time/timeout.rs",
        ],
    },
    Group {
        sections: &["tokio::task", "tokio::task::coop"],
        theirs: (
            "tokio",
            &[
                "runtime/task/abort.rs",
                "runtime/task/error.rs",
                "runtime/task/id.rs",
                "runtime/task/join.rs",
                "task/blocking.rs",
                "task/coop/consume_budget.rs",
                "task/coop/mod.rs",
                "task/coop/unconstrained.rs",
                "task/join_set.rs",
                "task/local.rs",
                "task/spawn.rs",
                "task/task_local.rs",
                "task/yield_now.rs",
            ],
        ),
        ours: &["executor/src/task"],
    },
    Group {
        sections: &["tokio_util::time", "tokio_util::time::delay_queue"],
        theirs: ("tokio-util", &["time/delay_queue.rs"]),
        ours: &["primitives/src/time/delay_queue.rs"],
    },
    Group {
        sections: &["tokio_util::sync"],
        theirs: (
            "tokio-util",
            &[
                "sync/cancellation_token.rs",
                "sync/cancellation_token/guard.rs",
                "sync/cancellation_token/guard_ref.rs",
            ],
        ),
        ours: &[
            "primitives/src/cancellation_token.rs",
            "primitives/src/cancellation_token",
        ],
    },
    Group {
        sections: &["tokio_util::task"],
        theirs: ("tokio-util", &["task/task_tracker.rs"]),
        ours: &["executor/src/task"],
    },
];

/// What a row says about an item: a type, a function, or `Type::method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    Different,
    Absent,
}

struct Claim {
    section: String,
    /// The path of the section's items here, if there are any.
    here: Option<String>,
    item: String,
    /// Whether the row is about methods of the item, and says nothing about the item
    /// itself.
    is_owner: bool,
    verdict: Verdict,
}

/// Returns the names in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Returns the claims of the page, in order. A type with several rows is claimed once for
/// each row, and each of its methods once.
fn claims() -> Vec<Claim> {
    let (mut section, mut here, mut claims) = (String::new(), None, Vec::new());
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            section = quoted(heading).next().unwrap_or("").to_owned();
            here = None;
        } else if let Some(text) = line.strip_prefix("Here: ") {
            here = text
                .starts_with('`')
                .then(|| quoted(text).next().unwrap().to_owned());
        } else if line.starts_with("| `") {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let &[_, names, verdict, note, _] = &cells[..] else {
                panic!("a row has three cells: {line}");
            };
            let verdict = match verdict {
                "same" => Verdict::Same,
                "different" => Verdict::Different,
                "absent" => Verdict::Absent,
                _ => panic!("a row is neither same, different nor absent: {line}"),
            };
            assert!(
                verdict == Verdict::Same || !note.is_empty(),
                "a row does not say what is different, or what to write instead: {line}"
            );
            let mut claim = |item: String, is_owner: bool| {
                claims.push(Claim {
                    section: section.clone(),
                    here: here.clone(),
                    item,
                    is_owner,
                    verdict,
                });
            };
            match names.split_once(':') {
                Some((owner, methods)) => {
                    let owner = quoted(owner).next().expect("a name in backticks");
                    claim(owner.to_owned(), true);
                    quoted(methods).for_each(|method| claim(format!("{owner}::{method}"), false));
                }
                None => quoted(names).for_each(|name| claim(name.to_owned(), false)),
            }
        }
    }
    claims
}

/// Returns the text after the parameters of an `impl`.
fn past_generics(text: &str) -> &str {
    let (mut depth, mut before) = (0, ' ');
    for (index, it) in text.char_indices() {
        match it {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text[index..].trim_start_matches('>').trim_start();
        }
        before = it;
    }
    text
}

fn identifier(text: &str) -> &str {
    let end = text.find(|it: char| !it.is_alphanumeric() && it != '_');
    &text[..end.unwrap_or(text.len())]
}

/// Finds the public items that a source declares, and its aliases of types. It reads
/// lines, and relies on rustfmt. Items that are unstable or hidden are left out.
fn declared(source: &str, items: &mut BTreeSet<String>, aliases: &mut BTreeMap<String, String>) {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let (mut attributes, mut owner, mut closes) = (String::new(), None::<String>, 0);
    let mut unstable = None;
    for line in source.lines() {
        let text = line.trim_start();
        if text.starts_with("//") || text.is_empty() {
            continue;
        }
        if text.starts_with("#[") {
            attributes += text;
            continue;
        }
        if text == "}" && owner.is_some() && indent(line) == closes {
            owner = None;
        }
        if text == "}" && unstable == Some(indent(line)) {
            unstable = None;
        }
        if ["cfg_unstable", "cfg_trace", "cfg_taskdump"]
            .iter()
            .any(|it| text.starts_with(it))
        {
            unstable = Some(indent(line));
        }
        let hidden = attributes.contains("doc(hidden)")
            || attributes.contains("tokio_unstable") && !attributes.contains("not(");
        attributes.clear();
        if let Some(rest) = text.strip_prefix("impl")
            && rest.starts_with(['<', ' '])
            && indent(line) <= 4
            && !rest.ends_with('}')
        {
            let subject = past_generics(rest);
            let of_trait = subject.contains(" for ");
            let hidden = hidden || unstable.is_some() || of_trait;
            let name = identifier(subject.rsplit("::").next().unwrap_or(subject));
            let name = if subject.contains("::<") {
                identifier(subject)
            } else {
                name
            };
            owner = Some(if hidden {
                String::new()
            } else {
                name.to_owned()
            });
            closes = indent(line);
        }
        let Some(text) = text.strip_prefix("pub ") else {
            continue;
        };
        if hidden || unstable.is_some() || owner.as_deref() == Some("") {
            continue;
        }
        let (kind, name) = match text.split_once("fn ") {
            Some((words, rest))
                if words
                    .split(' ')
                    .all(|it| ["const", "async", ""].contains(&it)) =>
            {
                ("fn", identifier(rest))
            }
            _ => match text.split_once(' ') {
                Some((kind, rest)) => (kind, identifier(rest)),
                None => continue,
            },
        };
        match (kind, &owner) {
            ("fn" | "const", Some(owner)) if indent(line) > closes => {
                items.insert(format!("{owner}::{name}"));
            }
            ("fn" | "struct" | "enum" | "trait", _) => {
                items.insert(name.to_owned());
            }
            ("type", _) => {
                let of = text.rsplit_once("= ").map_or("", |(_, of)| of);
                aliases.insert(name.to_owned(), identifier(of).to_owned());
                items.insert(name.to_owned());
            }
            _ => {}
        }
    }
}

/// Returns the items that files, and the files in folders, declare. A missing file
/// declares nothing.
fn declared_in(paths: impl Iterator<Item = PathBuf>) -> BTreeSet<String> {
    let (mut items, mut aliases) = (BTreeSet::new(), BTreeMap::new());
    let mut paths: Vec<_> = paths.collect();
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder can be listed");
            paths.extend(entries.map(|entry| entry.expect("an entry can be read").path()));
        } else if let Ok(source) = fs::read_to_string(&path) {
            declared(&source, &mut items, &mut aliases);
        }
    }
    for (alias, of) in aliases {
        let of = format!("{of}::");
        let methods: Vec<_> = items
            .iter()
            .filter_map(|item| item.strip_prefix(&of))
            .collect();
        let methods: Vec<_> = methods.iter().map(|it| format!("{alias}::{it}")).collect();
        items.extend(methods);
    }
    items
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn ours(group: &Group) -> BTreeSet<String> {
    declared_in(group.ours.iter().map(|file| workspace().join(file)))
}

/// Returns the folder with the sources of a dependency.
fn sources_of(name: &str, metadata: &str) -> PathBuf {
    let package = metadata.find(&format!(r#"{{"name":"{name}","version":"#));
    let package = package.unwrap_or_else(|| panic!("{name} is a dependency of the workspace"));
    let (_, path) = metadata[package..]
        .split_once(r#""manifest_path":""#)
        .expect("a package has a manifest");
    let (path, _) = path.split_once('"').expect("a string ends");
    let manifest = PathBuf::from(path.replace(r"\\", r"\"));
    manifest
        .parent()
        .expect("a manifest is in a folder")
        .join("src")
}

fn metadata() -> String {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--all-features",
        ])
        .current_dir(workspace())
        .output()
        .expect("cargo can be run, because it runs this test");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {errors}");
    String::from_utf8(output.stdout).expect("the output is JSON")
}

fn none_wrong(wrong: &str, what: &str) {
    assert!(
        wrong.is_empty(),
        "{what}, in executor/src/coming_from_tokio.md:\n{wrong}"
    );
}

#[test]
fn what_the_page_claims_is_there_is_there_and_what_is_absent_is_not() {
    let (mut wrong, mut imports) = (String::new(), BTreeSet::from_iter(IMPORTS.iter().copied()));
    let claims = claims();
    assert!(
        claims.len() > 300,
        "only {} claims were read from the tables",
        claims.len()
    );
    for group in GROUPS {
        let ours = ours(group);
        for claim in claims
            .iter()
            .filter(|it| group.sections.contains(&&*it.section))
        {
            let Claim {
                section,
                here,
                item,
                is_owner,
                verdict,
            } = claim;
            let is_method = item.contains("::");
            let path = here.as_ref().map(|here| format!("::{here}::{item}"));
            let imported = path.as_deref().is_some_and(|path| IMPORTS.contains(&path));
            let is_there = if is_method {
                ours.contains(item)
            } else {
                imported
            };
            match verdict {
                Verdict::Absent if !is_owner && (ours.contains(item) || is_there) => {
                    writeln!(wrong, "{section}: {item} is no longer absent").unwrap();
                }
                Verdict::Same | Verdict::Different if !is_there => {
                    writeln!(
                        wrong,
                        "{section}: {item} does not exist, or is not imported"
                    )
                    .unwrap();
                }
                _ => {}
            }
            imports.remove(path.as_deref().unwrap_or(""));
        }
    }
    for import in imports {
        writeln!(wrong, "{import} is imported, but has no row").unwrap();
    }
    none_wrong(&wrong, "claims about items of this workspace");
}

#[test]
fn every_public_item_of_tokio_has_a_row_and_every_row_an_item() {
    let (metadata, claims, mut wrong) = (metadata(), claims(), String::new());
    for group in GROUPS {
        let (package, files) = group.theirs;
        let sources = sources_of(package, &metadata);
        let missing: Vec<_> = files
            .iter()
            .filter(|file| !sources.join(file).is_file())
            .collect();
        assert!(
            missing.is_empty(),
            "{package} no longer has its items in {missing:?}: change GROUPS"
        );
        let theirs = declared_in(files.iter().map(|file| sources.join(file)));
        let of_group = claims
            .iter()
            .filter(|it| group.sections.contains(&&*it.section));
        let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
        for claim in of_group {
            *rows.entry(&claim.item).or_default() += 1;
        }
        for item in theirs.iter().filter(|item| !rows.contains_key(&***item)) {
            writeln!(
                wrong,
                "{}: {item} of {package} has no row",
                group.sections[0]
            )
            .unwrap();
        }
        for (item, count) in rows {
            if !theirs.contains(item) {
                writeln!(wrong, "{}: {package} has no {item}", group.sections[0]).unwrap();
            }
            if count > 1 && item.contains("::") {
                writeln!(wrong, "{}: {item} has {count} rows", group.sections[0]).unwrap();
            }
        }
    }
    none_wrong(&wrong, "rows and items of tokio");
}

#[test]
fn every_section_of_the_page_is_checked() {
    for Claim { section, .. } in claims() {
        let checked = GROUPS
            .iter()
            .any(|group| group.sections.contains(&&*section));
        assert!(checked, "no entry of GROUPS has the section {section}");
    }
}
