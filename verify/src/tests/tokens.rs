//! Replay tokens.

use crate::run::token::Token;
use crate::subject::plan::Mode;

fn tokens() -> Vec<Token> {
    let token = |subject: &str, mode, program: &str, preemptions, seed, execution| Token {
        subject: subject.to_owned(),
        mode,
        program: program.to_owned(),
        preemptions,
        seed,
        execution,
    };
    vec![
        token("oneshot", Mode::Steps, "/recv", None, 0, 1),
        token(
            "oneshot/check-then-register",
            Mode::Sections,
            "send/recv",
            Some(1),
            3,
            32,
        ),
        token(
            "state-lock",
            Mode::Pct,
            "with,update,load/with/refuse",
            None,
            499,
            u64::MAX,
        ),
        token("s", Mode::Accesses, "a.cancel,b.repoll/", Some(0), 0, 7),
    ]
}

#[test]
fn what_is_written_is_read() {
    for token in tokens() {
        assert_eq!(Token::parse(&token.to_string()), Ok(token));
    }
    for mode in Mode::ALL {
        let token = Token {
            mode,
            ..tokens().remove(0)
        };
        assert_eq!(Token::parse(&token.to_string()), Ok(token));
    }
}

/// Returns the slips that copying a token can make: a character replaced, one too many
/// or too few, two exchanged, an end cut off.
fn slips(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let printable = || (' '..='~').chain(['ä']);
    let mut slips = Vec::new();
    let mut slip = |change: &dyn Fn(&mut Vec<char>)| {
        let mut changed = characters.clone();
        change(&mut changed);
        if changed != characters {
            slips.push(changed.into_iter().collect());
        }
    };
    for at in 0..characters.len() {
        for character in printable() {
            slip(&|text| text[at] = character);
            slip(&|text| text.insert(at, character));
        }
        slip(&|text| {
            text.remove(at);
        });
        slip(&|text| text.swap(at, (at + 1) % characters.len()));
        slip(&|text| text.truncate(at));
        slip(&|text| drop(text.drain(..at)));
    }
    slips
}

#[test]
fn a_slip_is_noticed() {
    for token in tokens() {
        let slips = slips(&token.to_string());
        let through: Vec<_> = slips
            .iter()
            .filter(|slip| Token::parse(slip).is_ok())
            .collect();
        assert!(slips.len() > 4_000, "{} slips", slips.len());
        assert!(through.is_empty(), "not noticed in {token}: {through:?}");
    }
}

#[test]
fn what_is_wrong_is_said_in_a_sentence() {
    let good = tokens()[0].to_string();
    for (damaged, why) in [
        (String::new(), "it has no checksum"),
        ("oneshot".to_owned(), "it has no checksum"),
        (good[..good.len() - 1].to_owned(), "its checksum"),
        (format!("x{good}"), "its checksum"),
    ] {
        let sentence = Token::parse(&damaged).expect_err("it is damaged");
        assert!(sentence.contains(why), "{sentence}");
        assert!(!sentence.contains('\n'), "{sentence}");
    }
}
