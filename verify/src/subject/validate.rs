//! Checks what a subject can get wrong before any of it runs.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::subject::Subject;
use crate::subject::role::{Operation, Role};

/// Checks the roles and the actors of a subject for this number of participants.
///
/// # Errors
///
/// Returns a sentence that says what is wrong.
pub(crate) fn validate<S: Subject>(subject: &S, participants: usize) -> Result<(), String> {
    let roles = subject.roles(participants);
    if roles.is_empty() {
        return Err(format!(
            "`Subject::roles` returns no role for {participants} participants: a program needs one"
        ));
    }
    roles.iter().try_for_each(names)?;
    symmetry(&roles)?;
    let actors = catch_unwind(AssertUnwindSafe(|| subject.actors(roles.len())));
    match actors {
        Ok(actors) => {
            let made = actors.len();
            // They are dropped one by one. If a drop panics, an execution finds it.
            for actor in actors {
                let _ = catch_unwind(AssertUnwindSafe(|| drop(actor)));
            }
            if made == roles.len() {
                Ok(())
            } else {
                Err(mismatch(roles.len(), made))
            }
        }
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let text = text.unwrap_or_else(|| "a value that is not text".to_owned());
            Err(format!("`Subject::actors` panics: {text}"))
        }
    }
}

/// Returns the sentence for roles and actors that do not match.
pub(crate) fn mismatch(roles: usize, actors: usize) -> String {
    format!(
        "`Subject::roles` returns {roles} roles and `Subject::actors` {actors} actors: there must \
         be an actor for each role"
    )
}

/// Checks that the text of a program has only one reading.
fn names<Op>(role: &Role<Op>) -> Result<(), String> {
    let divides = |c: char| "/,.:'".contains(c) || c.is_whitespace();
    for (index, Operation { name, .. }) in role.ops.iter().enumerate() {
        if name.is_empty() || name.contains(divides) {
            return Err(format!(
                "`{name}` cannot be the name of an operation: the text of a program is divided by \
                 slashes, commas, dots, colons, quotation marks and white space"
            ));
        }
        if role.ops[..index].iter().any(|other| other.name == *name) {
            return Err(format!(
                "the {} has two operations of the name `{name}`: the text of a program must say \
                 which of them it means",
                role.name
            ));
        }
    }
    Ok(())
}

/// Checks that participants of one symmetry class are alike, since they are exchanged.
fn symmetry<Op>(roles: &[Role<Op>]) -> Result<(), String> {
    let mut classes: BTreeMap<usize, &Role<Op>> = BTreeMap::new();
    for role in roles {
        let first = *classes.entry(role.symmetry).or_insert(role);
        let ops = |role: &Role<Op>| -> Vec<_> {
            let ops = role.ops.iter();
            ops.map(|op| (op.name, op.kind, op.leaves, op.alias))
                .collect()
        };
        if ops(first) != ops(role) {
            return Err(format!(
                "the roles `{}` and `{}` are of symmetry class {} and have different operations: \
                 programs in which they are exchanged are left out, so that they must be alike",
                first.name, role.name, role.symmetry
            ));
        }
    }
    Ok(())
}
