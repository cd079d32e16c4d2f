//! No two files of a crate use each other, directly or in a circle, so that each can be
//! read after those that it uses.
//!
//! A file *uses* another if one of its paths leads to an item that is defined there. A
//! path is followed through `use` lines and reexports, so a `mod.rs` that only
//! reexports items closes no circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A path from the root of the crate, or as it is written.
type Names = Vec<String>;

/// The files and modules of a crate.
#[derive(Default)]
struct Sources {
    /// The file of each module, inline ones included.
    modules: BTreeMap<Names, Names>,
    /// What a name of a module stands for, by its `use` lines.
    bindings: BTreeMap<(Names, String), Names>,
    /// Each path of each file, with the module that it stands in.
    paths: Vec<(Names, Names)>,
}

impl Sources {
    fn of(root: &Path) -> Self {
        let mut sources = Self::default();
        sources.walk(root, &[]);
        sources
    }

    fn walk(&mut self, folder: &Path, module: &[String]) {
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let mut inner = module.to_vec();
            if !["lib", "mod"].contains(&name) {
                inner.push(name.to_owned());
            }
            if path.is_dir() {
                self.walk(&path, &inner);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                self.read(&inner, &tokens(&text));
            }
        }
    }

    /// Takes in the modules, `use` lines and paths of a file, without its tests.
    fn read(&mut self, file: &Names, tokens: &[String]) {
        let token = |at: usize| tokens.get(at).map_or("", String::as_str);
        let mut scope = file.clone();
        self.modules.insert(scope.clone(), file.clone());
        let mut depth = 0;
        // The depth at which each inline module ends.
        let mut inline = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            match token(at) {
                "mod" if token(at + 2) == "{" => {
                    scope.push(token(at + 1).to_owned());
                    self.modules.insert(scope.clone(), file.clone());
                    inline.push(depth);
                    depth += 1;
                    at += 3;
                }
                "{" => {
                    depth += 1;
                    at += 1;
                }
                "}" => {
                    depth -= 1;
                    if inline.last() == Some(&depth) {
                        inline.pop();
                        scope.pop();
                    }
                    at += 1;
                }
                "use" => {
                    let reexport = at > 0 && ["pub", ")"].contains(&token(at - 1));
                    let end = at + tokens[at..].iter().position(|token| token == ";").unwrap();
                    self.bind(&scope, &[], &tokens[at + 1..end], reexport);
                    at = end;
                }
                first if is_name(first) && token(at.wrapping_sub(1)) != "." => {
                    let mut names = vec![first.to_owned()];
                    while token(at + 1) == "::" && is_name(token(at + 2)) {
                        names.push(token(at + 2).to_owned());
                        at += 2;
                    }
                    if !scope.iter().any(|name| name == "tests") {
                        self.paths.push((scope.clone(), names));
                    }
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Takes in one tree of a `use` line.
    fn bind(&mut self, scope: &Names, before: &[String], tree: &[String], reexport: bool) {
        let brace = tree.iter().position(|token| token == "{");
        let until = brace.unwrap_or(tree.len());
        let mut path = before.to_vec();
        let names = tree[..until].iter().filter(|token| *token != "::");
        path.extend(names.take_while(|token| *token != "as").cloned());
        if let Some(brace) = brace {
            let mut depth = 0;
            let branches = tree[brace + 1..tree.len() - 1].split(|token| {
                depth += i32::from(token == "{") - i32::from(token == "}");
                depth == 0 && token == ","
            });
            for branch in branches.filter(|branch| !branch.is_empty()) {
                self.bind(scope, &path, branch, reexport);
            }
            return;
        }
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        let mut name = tree.last().unwrap().clone();
        if name == "self" {
            name.clone_from(path.last().unwrap());
        }
        // A trait is used by its methods, which do not name it: a private `use` counts. A
        // reexport counts where its name is used.
        if !reexport && !scope.iter().any(|name| name == "tests") {
            self.paths.push((scope.clone(), path.clone()));
        }
        self.bindings.insert((scope.clone(), name), path);
    }

    /// The module, and the rest of the path from there, to which a path leads from a
    /// module: `None` if it leads out of the crate.
    fn follow(&self, scope: &Names, path: &[String], hops: u32) -> Option<(Names, Names)> {
        assert!(hops < 32, "{path:?} in {scope:?} leads nowhere");
        let (first, rest) = path.split_first()?;
        let binding = |module: &Names, name: &String| {
            let target = self.bindings.get(&(module.clone(), name.clone()))?;
            // A crate of the same name: `use loom::…` within `mod loom`.
            (target.first() != Some(name)).then_some((module.clone(), target.clone()))
        };
        let (mut module, mut rest) = match &**first {
            "crate" => (Names::new(), rest),
            "self" => (scope.clone(), rest),
            "super" => (scope[..scope.len() - 1].to_vec(), rest),
            _ if self
                .modules
                .contains_key(&[scope.as_slice(), std::slice::from_ref(first)].concat()) =>
            {
                (scope.clone(), path)
            }
            _ => {
                let (module, mut target) = binding(scope, first)?;
                target.extend_from_slice(rest);
                return self.follow(&module, &target, hops + 1);
            }
        };
        while let Some((name, after)) = rest.split_first() {
            let inner = [module.as_slice(), std::slice::from_ref(name)].concat();
            if name == "super" {
                module.pop();
            } else if self.modules.contains_key(&inner) {
                module = inner;
            } else if let Some((module, mut target)) = binding(&module, name) {
                target.extend_from_slice(after);
                return self.follow(&module, &target, hops + 1);
            } else {
                break;
            }
            rest = after;
        }
        Some((module, rest.to_vec()))
    }

    /// The files that each file uses, with an item by which it does.
    fn uses(&self) -> BTreeMap<&Names, BTreeMap<&Names, String>> {
        let mut uses: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for file in self.modules.values() {
            uses.entry(file).or_default();
        }
        for (scope, path) in &self.paths {
            let Some((module, item)) = self.follow(scope, path, 0) else {
                continue;
            };
            let (user, used) = (&self.modules[scope], &self.modules[&module]);
            if let (Some(item), true) = (item.first(), user != used) {
                let items = uses.get_mut(user).unwrap();
                items.entry(used).or_insert_with(|| item.clone());
            }
        }
        uses
    }

    /// The uses that make a circle: those of a file that leads back to its user.
    fn circles(&self) -> Vec<String> {
        let uses = self.uses();
        let leads = |from, to| {
            let mut seen = BTreeSet::from([from]);
            let mut next = vec![from];
            while let Some(file) = next.pop() {
                next.extend(uses[file].keys().copied().filter(|&used| seen.insert(used)));
            }
            seen.contains(to)
        };
        let show = |file: &Names| match &**file {
            [] => "lib".to_owned(),
            names => names.join("/"),
        };
        let mut circles = Vec::new();
        for (user, used) in &uses {
            for (used, item) in used.iter().filter(|(used, _)| leads(**used, *user)) {
                circles.push(format!("{} uses {}::{item}", show(user), show(used)));
            }
        }
        circles
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The names, `::` and other signs of a text, without its comments and literals.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let name = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let name = name.unwrap_or(rest.len());
        let taken = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            string(rest)
        } else if first == '\'' {
            character(rest)
        } else if name > 0 {
            tokens.push(rest[..name].to_owned());
            name
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[taken..];
    }
    tokens
}

/// The length of a string literal.
fn string(text: &str) -> usize {
    let mut escaped = false;
    let end = text[1..].find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

/// The length of a character, or of the sign that begins a lifetime.
fn character(text: &str) -> usize {
    let mut signs = text.char_indices().skip(1);
    match signs.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(1, |end| end + 4),
        _ => match signs.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
    }
}

/// The circles of a crate beside this one.
fn circles_of(name: &str, least: usize) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    let sources = Sources::of(&root.join("src"));
    let uses = sources.uses();
    let count: usize = uses.values().map(BTreeMap::len).sum();
    assert!(count > least, "only {count} uses are seen between files");
    sources.circles()
}

#[test]
fn no_files_of_the_primitives_use_each_other_in_a_circle() {
    let circles = circles_of("primitives", 150);
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn no_files_of_the_executors_use_each_other_in_a_circle() {
    let circles = circles_of("executor", 50);
    assert!(circles.is_empty(), "{circles:#?}");
}

/// What a path leads to, and a circle that must be found.
#[test]
fn a_path_is_followed_to_the_file_that_defines_the_item() {
    let mut sources = Sources::default();
    let file = |name: &str| -> Names {
        let names = name.split('/').filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    };
    for (name, text) in [
        ("", "mod a; mod f; mod g; mod h; pub use a::B;"),
        (
            "a",
            "pub use self::b::B; pub(crate) use self::c::{C as Sea, d};",
        ),
        (
            "a/b",
            "use super::{Sea, d::{self, D}}; struct B(Sea, D, d::E);",
        ),
        ("a/c", "pub mod d { pub struct D; pub struct E; } struct C;"),
        (
            "f",
            r#"use crate::a; fn f() { a::B; "crate::g::G"; '"'; '\'' } // crate::g::G"#,
        ),
        (
            "g",
            "mod tests { use crate::h::H; } struct G<'a>(crate::f::F);",
        ),
        ("h", "struct H(crate::B);"),
    ] {
        sources.read(&file(name), &tokens(text));
    }
    let uses = |user: &str| {
        let uses = &sources.uses()[&file(user)];
        uses.keys().map(|file| file.join("/")).collect::<Vec<_>>()
    };
    assert_eq!(uses("a"), [""; 0]);
    assert_eq!(uses("a/b"), ["a/c"]);
    assert_eq!(uses("f"), ["a/b"]);
    assert_eq!(uses("g"), ["f"]);
    assert_eq!(uses("h"), ["a/b"]);
    assert!(sources.circles().is_empty());
    sources.read(&file("a/c"), &tokens("struct C(crate::g::G);"));
    let circle = [
        "a/b uses a/c::C",
        "a/c uses g::G",
        "f uses a/b::B",
        "g uses f::F",
    ];
    assert_eq!(sources.circles(), circle);
}
