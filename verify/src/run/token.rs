//! Replay tokens. A token names one execution of one program.

use std::fmt;

use crate::subject::plan::Mode;

/// What is needed to run one execution again. Engines are deterministic, so the number
/// of the execution is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The name of the subject or specimen.
    pub(crate) subject: String,
    /// The mode in which it is run.
    pub(crate) mode: Mode,
    /// The program, as text.
    pub(crate) program: String,
    /// The bound on preemptions under which the execution was found.
    pub(crate) preemptions: Option<usize>,
    /// The seed of the draws.
    pub(crate) seed: u64,
    /// The number of the execution.
    pub(crate) execution: u64,
}

impl Token {
    fn body(&self) -> String {
        let Self {
            subject,
            mode,
            program,
            preemptions,
            seed,
            execution,
        } = self;
        let preemptions = preemptions.map_or("all".to_owned(), |n| n.to_string());
        format!(
            "{subject}:{}:{program}:{preemptions}:{seed}:{execution}",
            mode.name()
        )
    }

    /// Parses a token.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the token, in a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let damaged = |why: &str| {
            format!(
                "the replay token `{text}` is damaged ({why}): copy it whole, as it was printed"
            )
        };
        let (body, sum) = text
            .rsplit_once(':')
            .ok_or_else(|| damaged("it has no checksum"))?;
        if sum != checksum(body) {
            return Err(damaged("its checksum does not match"));
        }
        let fields: Vec<&str> = body.split(':').collect();
        let [subject, mode, program, preemptions, seed, execution] = fields[..] else {
            return Err(damaged("it does not have seven parts"));
        };
        let number = |text: &str| text.parse().map_err(|_| damaged("a number is missing"));
        Ok(Self {
            subject: subject.to_owned(),
            mode: Mode::by_name(mode).ok_or_else(|| damaged("its mode is unknown"))?,
            program: program.to_owned(),
            preemptions: match preemptions {
                "all" => None,
                number => Some(number.parse().map_err(|_| damaged("a number is missing"))?),
            },
            seed: number(seed)?,
            execution: number(execution)?,
        })
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body();
        write!(f, "{body}:{}", checksum(&body))
    }
}

/// Returns a checksum of the text, by FNV-1a. It detects slips of the hand, nothing
/// more.
fn checksum(text: &str) -> String {
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    format!("{hash:08x}")
}
