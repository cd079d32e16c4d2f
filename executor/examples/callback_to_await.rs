//! One receive, at three levels: a callback on a raw socket, a promise around the callback
//! by hand, and a function that other code awaits.
//!
//! ```text
//!   thread:   recv blocks … the kernel has a line ──▶ callback(Ok(line)) or callback(Err)
//!   promise:                                              └─ set, once ──▶ wakes each wait
//!   task:     receive(stream).await ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄▶ Ok(line) or Err
//! ```

#![forbid(unsafe_code)]

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;

use reveille::{SetOnce, oneshot};
use reveille_executor::block_on;

/// Level 1: has a thread wait for a line, and calls back with it. Returns at once.
fn on_receive(stream: TcpStream, callback: impl FnOnce(io::Result<String>) + Send + 'static) {
    thread::spawn(move || {
        let mut line = String::new();
        let result = match BufReader::new(stream).read_line(&mut line) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(error),
        };
        callback(result);
    });
}

/// Level 2: a promise, which is fulfilled or rejected once. Each task that waits for it
/// gets the same result.
type Promise = Arc<SetOnce<Result<String, io::ErrorKind>>>;

fn promise(stream: TcpStream) -> Promise {
    let promise = Promise::default();
    on_receive(stream, {
        let promise = promise.clone();
        move |result| {
            let result = result.map_err(|error| error.kind());
            promise.set(result).expect("the callback is called once");
        }
    });
    promise
}

/// Level 3: what a library offers. The result belongs to the only caller, so it is sent
/// and not shared.
async fn receive(stream: TcpStream) -> io::Result<String> {
    let (tx, rx) = oneshot::channel();
    // If the future has been dropped, there is nothing to send to.
    on_receive(stream, move |result| drop(tx.send(result)));
    rx.await.map_err(io::Error::other)?
}

/// What code on top of the library looks like: an error leaves it at the first `?`.
async fn length(stream: TcpStream) -> io::Result<usize> {
    Ok(receive(stream).await?.len())
}

/// Returns a connection to a peer that sends `text` and closes.
fn peer(text: &'static str) -> io::Result<TcpStream> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let stream = TcpStream::connect(listener.local_addr()?)?;
    let (mut accepted, _) = listener.accept()?;
    accepted.write_all(text.as_bytes())?;
    Ok(stream)
}

fn main() -> io::Result<()> {
    let mut lines = Vec::new();

    let (called, calls) = mpsc::channel();
    on_receive(peer("news\n")?, move |result| called.send(result).unwrap());
    lines.push(format!("callback: {:?}", calls.recv().unwrap()?));

    let fulfilled = promise(peer("news\n")?);
    let rejected = promise(peer("")?);
    block_on(async {
        for time in ["first", "second"] {
            lines.push(format!("{time} await: {:?}", fulfilled.wait().await));
            lines.push(format!("{time} await: {:?}", rejected.wait().await));
        }
    });

    let length_of = |text| block_on(length(peer(text)?));
    lines.push(format!("function: {}", length_of("news\n")?));
    let error = length_of("").unwrap_err();
    lines.push(format!("function, error: {:?}", error.kind()));

    lines.iter().for_each(|line| println!("{line}"));
    assert_eq!(
        lines,
        [
            r#"callback: "news""#,
            r#"first await: Ok("news")"#,
            "first await: Err(UnexpectedEof)",
            r#"second await: Ok("news")"#,
            "second await: Err(UnexpectedEof)",
            "function: 4",
            "function, error: UnexpectedEof",
        ]
    );
    Ok(())
}

#[test]
fn what_is_printed_holds() {
    main().unwrap();
}
