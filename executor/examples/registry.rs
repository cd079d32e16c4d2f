//! Two requests on one thread, each to a server of its own: what waits for what, from the
//! number of the kernel to the task.
//!
//! ```text
//!   task A ── request ──▶ store        the kernel knows two descriptors;
//!   task B ── request ──▶ news         the registry leads from each to a waker;
//!   main   ── C, when both have ended  the thread sleeps until one of them is called
//! ```

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;

use reveille_executor::LocalExecutor;
use reveille_executor::net::{TcpStream, registered};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Starts a server for one request. It replies when it is told to.
fn server(reply: &'static str) -> io::Result<(SocketAddr, mpsc::Sender<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (go, told) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let mut request = [0; 3];
        stream.read_exact(&mut request)?;
        told.recv().expect("the example tells it");
        stream.write_all(reply.as_bytes())
    });
    Ok((address, go))
}

async fn ask(server: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(b"get").await?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await?;
    Ok(reply)
}

fn main() -> io::Result<()> {
    let (store, store_replies) = server("7 apples")?;
    let (news, news_replies) = server("rain")?;
    let lines = RefCell::new(Vec::new());
    let say = |line: &str| {
        println!("{line}");
        lines.borrow_mut().push(line.to_owned());
    };
    let known = registered();

    let executor = LocalExecutor::new();
    executor.block_on(async {
        let first = async {
            say("A-1: the store is asked");
            let reply = ask(store).await?;
            say(&format!("A-2: the store has {reply}"));
            // The other server replies only after this line.
            news_replies.send(()).expect("it waits");
            io::Result::Ok(())
        };
        let second = async {
            say("B-1: the news are asked for");
            let reply = ask(news).await?;
            say(&format!("B-2: the news are {reply}"));
            io::Result::Ok(())
        };
        // Both wait in the kernel by now, or will: the thread has nothing else to do.
        let watch = async {
            while registered() < known + 2 {
                reveille_executor::task::yield_now().await;
            }
            say("the registry leads from 2 descriptors to their tasks");
            store_replies.send(()).expect("it waits");
            io::Result::Ok(())
        };
        for result in joined([
            Box::pin(first) as Joined<'_>,
            Box::pin(second),
            Box::pin(watch),
        ])
        .await
        {
            result?;
        }
        io::Result::Ok(())
    })?;
    say("C: both have ended");

    assert_eq!(registered(), known);
    assert_eq!(
        *lines.borrow(),
        [
            "A-1: the store is asked",
            "B-1: the news are asked for",
            "the registry leads from 2 descriptors to their tasks",
            "A-2: the store has 7 apples",
            "B-2: the news are rain",
            "C: both have ended",
        ]
    );
    Ok(())
}

type Joined<'a> = std::pin::Pin<Box<dyn Future<Output = io::Result<()>> + 'a>>;

/// Polls futures in turn until all have ended.
async fn joined<const N: usize>(mut futures: [Joined<'_>; N]) -> [io::Result<()>; N] {
    let mut results = [const { None }; N];
    std::future::poll_fn(|cx| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none()
                && let std::task::Poll::Ready(ended) = future.as_mut().poll(cx)
            {
                *result = Some(ended);
            }
        }
        match results.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    results.map(|result| result.expect("each has ended"))
}

#[test]
fn what_is_printed_holds() {
    main().unwrap();
}
