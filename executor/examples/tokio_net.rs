//! A library that needs tokio, on the workers of a pool: an echo server of `tokio::net`.
//! On a signal, the program prints what each of its tasks waits for.
//!
//! ```text
//!   tokio's thread: waits for the kernel, wakes tasks      the pool: runs them
//!                        ▲                                      │
//!                        └── each thread of the pool is in tokio's context
//! ```

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, LazyLock};

use reveille::{Notify, oneshot};
use reveille_executor::pool::Handle;
use reveille_executor::{ThreadPool, task};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, EnterGuard, Runtime};

/// It runs no task. Its one thread waits for the kernel.
static TOKIO: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all();
    builder.build().expect("tokio starts")
});

thread_local! {
    static ENTERED: RefCell<Option<EnterGuard<'static>>> = const { RefCell::new(None) };
}

fn main() -> io::Result<()> {
    let pool = ThreadPool::builder()
        .workers(2)
        .on_thread_start(|| ENTERED.set(Some(TOKIO.enter())))
        .on_thread_stop(|| ENTERED.set(None))
        .build();
    pool.block_on(pool.spawn_named("main", run()))
        .expect("the task does not panic")
}

async fn run() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let pool = Handle::current();
    let server = pool.spawn_named("accept", async move {
        while let Ok((stream, _)) = listener.accept().await {
            task::spawn(echo(stream));
        }
    });

    let mut client = TcpStream::connect(address).await?;
    client.write_all(b"reveille").await?;
    let mut echoed = [0; 8];
    client.read_exact(&mut echoed).await?;
    println!("echoed: {}", String::from_utf8_lossy(&echoed));
    assert_eq!(&echoed, b"reveille");

    let never = Arc::new(Notify::new());
    let patient = pool.spawn_named("patient", async move { never.notified().await });
    let dump = dumped_on_a_signal(&pool).await?;
    print!("{dump}");
    let says = |name: &str, what: &str| {
        let mut lines = dump.lines().filter(|line| line.contains(name));
        lines.any(|line| line.contains(what))
    };
    assert!(says("`accept`", "spawned at") && says("`dumps`", "runs"));
    // Primitives of this project note where a task waits.
    assert!(says("`patient`", "waits at executor"));
    drop((server, patient));
    Ok(())
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let (mut reads, mut writes) = stream.split();
    tokio::io::copy(&mut reads, &mut writes).await?;
    Ok(())
}

/// Sends the program a signal, and returns what the task prints that waits for it.
#[cfg(unix)]
async fn dumped_on_a_signal(pool: &Handle) -> io::Result<String> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut signals = signal(SignalKind::user_defined1())?;
    let (tx, rx) = oneshot::channel();
    let handle = pool.clone();
    let dumps = pool.spawn_named("dumps", async move {
        // A server would do this in a loop, and print.
        signals.recv().await;
        tx.send(handle.dump().to_string())
    });
    let process = std::process::id().to_string();
    let kill = task::spawn_blocking(move || {
        std::process::Command::new("kill")
            .args(["-USR1", &process])
            .status()
    });
    assert!(kill.await.expect("it does not panic")?.success());
    let dump = rx.await.expect("the task sends it");
    drop(dumps);
    Ok(dump)
}

#[cfg(not(unix))]
async fn dumped_on_a_signal(pool: &Handle) -> io::Result<String> {
    Ok(pool.dump().to_string())
}

#[test]
fn what_is_printed_holds() {
    main().unwrap();
}
