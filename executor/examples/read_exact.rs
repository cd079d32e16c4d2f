//! A read of a message in two parts, dropped between them: once with its progress in the
//! future, where it is lost, and once outside of it.
//!
//! ```text
//!   peer:    "hel" ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ "lo"
//!   inside:  read "hel", wait ─ dropped   read again: "lo" only
//!   outside: read "hel", wait ─ dropped   read again: goes on at 3, "hello"
//! ```

#![forbid(unsafe_code)]

use std::future::poll_fn;
use std::io::{self, Write};
use std::net::{self, TcpListener};
use std::pin::pin;
use std::task::Poll;

use reveille_executor::block_on;
use reveille_executor::net::TcpStream;
use tokio::io::AsyncReadExt;

const LENGTH: usize = 5;

/// Reads a message. Its progress is a local variable: dropping the future loses the bytes
/// that it has read.
async fn read_inside(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_outside(stream, &mut bytes).await?;
    Ok(bytes)
}

/// Reads until `bytes` has the whole message. Its progress is the caller's: dropping the
/// future loses nothing, and the next call goes on.
async fn read_outside(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    while bytes.len() < LENGTH {
        let mut part = [0; LENGTH];
        // One read either has taken bytes and is ready, or has taken none.
        match stream.read(&mut part[..LENGTH - bytes.len()]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => bytes.extend_from_slice(&part[..n]),
        }
    }
    Ok(())
}

/// Waits until a part has come, polls a read of the whole once, and drops it.
async fn dropped_halfway<'a, F: Future<Output: std::fmt::Debug>>(
    stream: &'a mut TcpStream,
    read: impl FnOnce(&'a mut TcpStream) -> F,
) -> io::Result<()> {
    stream.readable().await?;
    let mut future = pin!(read(stream));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(ended) => panic!("only a part of the message has come: {ended:?}"),
        Poll::Pending => Poll::Ready(Ok(())),
    })
    .await
}

/// Returns a connection, with its other end.
fn connected() -> io::Result<(TcpStream, net::TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let stream = net::TcpStream::connect(listener.local_addr()?)?;
    let (peer, _) = listener.accept()?;
    Ok((TcpStream::from_std(stream)?, peer))
}

fn main() -> io::Result<()> {
    let mut lines = Vec::new();

    let (mut stream, mut peer) = connected()?;
    peer.write_all(b"hel")?;
    block_on(dropped_halfway(&mut stream, read_inside))?;
    peer.write_all(b"lo")?;
    drop(peer);
    let lost = block_on(read_inside(&mut stream)).unwrap_err();
    lines.push(format!("progress inside: {:?}", lost.kind()));

    let (mut stream, mut peer) = connected()?;
    let mut bytes = Vec::new();
    peer.write_all(b"hel")?;
    block_on(dropped_halfway(&mut stream, |stream| {
        read_outside(stream, &mut bytes)
    }))?;
    lines.push(format!("progress outside: {}", text(&bytes)));
    peer.write_all(b"lo")?;
    block_on(read_outside(&mut stream, &mut bytes))?;
    lines.push(format!("progress outside: {}", text(&bytes)));

    lines.iter().for_each(|line| println!("{line}"));
    assert_eq!(
        lines,
        [
            "progress inside: UnexpectedEof",
            "progress outside: hel",
            "progress outside: hello",
        ]
    );
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_is_printed_holds() {
    main().unwrap();
}
