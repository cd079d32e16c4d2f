//! Sockets: what the docs of `reveille_executor::net` state.

use std::future::{Future, poll_fn};
use std::io::{self, Read, Write};
use std::net;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use reveille_executor::net::{
    Async, Readiness, TcpListener, TcpStream, UdpSocket, lookup_host, registered,
};
use reveille_executor::{LocalExecutor, ThreadPool, block_on, task};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Counts its wakes.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn of(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until there has been this number of wakes.
    fn reaches(&self, wakes: usize) {
        while self.of() < wakes {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

async fn connected() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let stream = TcpStream::connect(listener.local_addr()?).await?;
    Ok((stream, listener.accept().await?.0))
}

/// Sends lines both ways between two tasks, and to the end.
async fn echoes() -> io::Result<()> {
    let (mut client, mut server) = connected().await?;
    let served = async {
        let mut all = Vec::new();
        server.read_to_end(&mut all).await?;
        server.write_all(&all).await?;
        server.shutdown().await?;
        io::Result::Ok(all.len())
    };
    let asked = async {
        let bytes = vec![7; 1 << 20];
        client.write_all(&bytes).await?;
        client.shutdown().await?;
        let mut all = Vec::new();
        client.read_to_end(&mut all).await?;
        assert!(all == bytes);
        io::Result::Ok(all.len())
    };
    let (mut served, mut asked) = (pin!(served), pin!(asked));
    let (mut first, mut second) = (None, None);
    poll_fn(|cx| {
        if first.is_none()
            && let Poll::Ready(it) = served.as_mut().poll(cx)
        {
            first = Some(it);
        }
        if second.is_none()
            && let Poll::Ready(it) = asked.as_mut().poll(cx)
        {
            second = Some(it);
        }
        match (&first, &second) {
            (Some(_), Some(_)) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    })
    .await;
    assert_eq!(first.expect("it is ready")?, 1 << 20);
    assert_eq!(second.expect("it is ready")?, 1 << 20);
    Ok(())
}

#[test]
fn a_megabyte_comes_back_under_any_executor() {
    block_on(echoes()).expect("under block_on");
    ThreadPool::new()
        .block_on(echoes())
        .expect("on a ThreadPool");
    LocalExecutor::new()
        .block_on(echoes())
        .expect("on a LocalExecutor");
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("tokio starts")
        .block_on(echoes())
        .expect("under tokio, without its sockets");
}

#[test]
fn a_read_is_woken_when_bytes_come_and_not_before() {
    let (mut client, mut server) = block_on(connected()).expect("connected");
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut cx = Context::from_waker(&waker);
    let mut bytes = [0; 8];
    {
        let mut read = pin!(server.read(&mut bytes));
        assert!(read.as_mut().poll(&mut cx).is_pending());
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(count.of(), 0);
        block_on(client.write_all(b"hello")).expect("there is room");
        count.reaches(1);
        let Poll::Ready(read) = read.as_mut().poll(&mut cx) else {
            panic!("the bytes are there");
        };
        assert_eq!(read.expect("it reads"), 5);
    }
    assert_eq!(&bytes[..5], b"hello");
}

#[test]
fn all_tasks_that_wait_for_a_direction_are_woken() {
    let (client, server) = block_on(connected()).expect("connected");
    // It is not readable, whatever is known of it so far.
    assert!(server.try_read(&mut [0; 1]).is_err());
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut cx = Context::from_waker(&waker);
    let mut waits: Vec<_> = (0..40).map(|_| server.readable()).collect();
    let mut polled = |waits: &mut [Readiness<'_, net::TcpStream>]| {
        let polls = waits.iter_mut().map(|wait| pin!(wait).poll(&mut cx));
        polls.filter(Poll::is_ready).count()
    };
    assert_eq!(polled(&mut waits), 0);
    client.try_write(b"x").expect("there is room");
    count.reaches(40);
    assert_eq!(polled(&mut waits), 40);
}

#[test]
fn a_wait_that_is_dropped_leaves_no_waker() {
    let (_client, server) = block_on(connected()).expect("connected");
    assert!(server.try_read(&mut [0; 1]).is_err());
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    {
        let mut wait = pin!(server.readable());
        let mut cx = Context::from_waker(&waker);
        assert!(wait.as_mut().poll(&mut cx).is_pending());
        assert!(Arc::strong_count(&count) > 2);
    }
    drop(waker);
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
fn trying_clears_readiness_so_that_the_next_wait_waits() {
    let (client, server) = block_on(connected()).expect("connected");
    block_on(async {
        for _ in 0..100 {
            client.try_write(b"x").expect("there is room");
            server.readable().await.expect("it becomes readable");
            assert_eq!(server.try_read(&mut [0; 8]).expect("a byte"), 1);
            let error = server.try_read(&mut [0; 8]).expect_err("nothing is left");
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        }
    });
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pin!(server.readable()).poll(&mut cx).is_pending());
}

#[test]
fn halves_work_in_two_tasks_and_come_together_again() {
    let pool = ThreadPool::builder().workers(2).build();
    pool.block_on(async {
        let (client, server) = connected().await.expect("connected");
        let (mut read, mut write) = client.into_split();
        let (mut server_read, mut server_write) = server.into_split();
        let echo =
            task::spawn(async move { tokio::io::copy(&mut server_read, &mut server_write).await });
        let sends = task::spawn(async move {
            for _ in 0..1000 {
                write.write_all(b"0123456789").await.expect("it writes");
            }
            // Dropping the half ends the direction.
        });
        let mut all = Vec::new();
        read.read_to_end(&mut all).await.expect("it reads");
        assert_eq!(all.len(), 10_000);
        sends.await.expect("it ends");
        assert_eq!(echo.await.expect("it ends").expect("it copies"), 10_000);

        let (a, b) = connected().await.expect("connected");
        let (a_read, a_write) = a.into_split();
        let (b_read, b_write) = b.into_split();
        let error = a_read.reunite(b_write).expect_err("of two streams");
        assert!(error.to_string().contains("not of the same stream"));
        let a = error.0.reunite(a_write).expect("of one stream");
        let mut b = b_read.reunite(error.1).expect("of one stream");
        a.try_write(b"x").expect("there is room");
        assert_eq!(b.read(&mut [0; 2]).await.expect("it reads"), 1);
        // The connection goes on in the standard library.
        let mut a = a.into_std().expect("it is taken out");
        a.set_nonblocking(false).expect("it blocks again");
        b.write_all(b"bye").await.expect("it writes");
        drop(b);
        let mut text = String::new();
        a.read_to_string(&mut text).expect("it reads");
        assert_eq!(text, "bye");
    });
}

#[test]
fn refused_reset_and_unknown_are_errors_and_the_listener_lives() {
    block_on(async {
        let free = net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = free.local_addr().expect("it has one");
        drop(free);
        let refused = TcpStream::connect(address).await.expect_err("closed");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(lookup_host("no.such.host.invalid:1").await.is_err());

        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("it has one");
        let client = net::TcpStream::connect(address).expect("connected");
        let (mut server, _) = listener.accept().await.expect("accepted");
        // With bytes that were not read, closing resets the connection.
        server.write_all(b"unread").await.expect("it writes");
        client.peek(&mut [0; 1]).expect("the bytes have come");
        drop(client);
        let reset = server.read(&mut [0; 1]).await.expect_err("reset");
        assert_eq!(reset.kind(), io::ErrorKind::ConnectionReset);
        let (connected, accepted) = (TcpStream::connect(address).await, listener.accept().await);
        assert!(connected.is_ok() && accepted.is_ok());
    });
}

#[test]
fn names_are_looked_up() {
    block_on(async {
        let listener = TcpListener::bind("localhost:0").await.expect("bound");
        let port = listener.local_addr().expect("it has one").port();
        TcpStream::connect(("localhost", port))
            .await
            .expect("connected");
    });
}

#[test]
fn an_accept_that_is_dropped_loses_no_connection() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("it has one");
        let mut cx = Context::from_waker(Waker::noop());
        assert!(pin!(listener.accept()).poll(&mut cx).is_pending());
        let client = TcpStream::connect(address).await.expect("connected");
        let (_, from) = listener.accept().await.expect("accepted");
        assert_eq!(from, client.local_addr().expect("it has one"));
    });
}

#[test]
fn datagrams_go_to_their_addresses() {
    block_on(async {
        let a = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
        let b = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
        let (to_a, to_b) = (a.local_addr().expect("a"), b.local_addr().expect("b"));
        let mut bytes = [0; 8];
        assert_eq!(a.send_to(b"one", to_b).await.expect("sent"), 3);
        assert_eq!(b.recv_from(&mut bytes).await.expect("received"), (3, to_a));
        a.connect(to_b).await.expect("connected");
        b.connect(to_a).await.expect("connected");
        b.send(b"two").await.expect("sent");
        assert_eq!(a.recv(&mut bytes).await.expect("received"), 3);
        assert_eq!(&bytes[..3], b"two");
        let nothing = a.try_recv(&mut bytes).expect_err("nothing has come");
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    });
}

#[test]
fn bytes_can_be_peeked_at() {
    block_on(async {
        let (client, mut server) = connected().await.expect("connected");
        client.try_write(b"once").expect("there is room");
        let mut bytes = [0; 8];
        assert_eq!(server.peek(&mut bytes).await.expect("it peeks"), 4);
        assert_eq!(server.read(&mut bytes).await.expect("it reads"), 4);
        assert_eq!(&bytes[..4], b"once");
    });
}

#[cfg(unix)]
#[test]
fn sockets_of_the_file_system_and_pipes_work_too() {
    use reveille_executor::net::{UnixDatagram, UnixListener, UnixStream};
    let directory = std::env::temp_dir().join(format!("reveille-net-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("created");
    let path = directory.join("stream");
    block_on(async {
        let listener = UnixListener::bind(&path).expect("bound");
        let mut client = UnixStream::connect(&path).await.expect("connected");
        let (mut server, _) = listener.accept().await.expect("accepted");
        client.write_all(b"hello").await.expect("it writes");
        let mut bytes = [0; 8];
        assert_eq!(server.read(&mut bytes).await.expect("it reads"), 5);
        let (a, b) = UnixDatagram::pair().expect("a pair");
        a.send(b"message").await.expect("sent");
        assert_eq!(b.recv(&mut bytes).await.expect("received"), 7);

        let (reader, mut writer) = io::pipe().expect("a pipe");
        let reader = Async::new(reader).expect("registered");
        writer.write_all(b"through").expect("it writes");
        let read = reader.read_with(|mut pipe| pipe.read(&mut bytes));
        assert_eq!(read.await.expect("it reads"), 7);
    });
    std::fs::remove_dir_all(&directory).expect("removed");
}

#[cfg(unix)]
#[test]
fn options_can_be_set_by_the_descriptor() {
    use std::os::fd::{AsFd, AsRawFd};
    let (client, _server) = block_on(connected()).expect("connected");
    assert_eq!(client.as_fd().as_raw_fd(), client.as_raw_fd());
    let mut other = net::TcpStream::from(client.as_fd().try_clone_to_owned().expect("cloned"));
    other.set_nodelay(true).expect("it is set");
    assert!(client.nodelay().expect("it is known"));
    other.write_all(b"x").expect("there is room");
}

/// Other tests of this process have sockets too, so it starts itself for this one.
#[cfg(unix)]
#[test]
fn a_storm_of_connections_leaves_nothing_behind() {
    if std::env::var_os("REVEILLE_NET_STORM").is_none() {
        let this = std::env::current_exe().expect("it has a path");
        let status = std::process::Command::new(this)
            .args(["--exact", "a_storm_of_connections_leaves_nothing_behind"])
            .env("REVEILLE_NET_STORM", "1")
            .status()
            .expect("it starts");
        assert!(status.success());
        return;
    }
    let open = || std::fs::read_dir("/dev/fd").expect("it is there").count();
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("it has one");
        let (before, known) = (open(), registered());
        for round in 0..2_000 {
            let client = TcpStream::connect(address).await.expect("connected");
            let (mut server, _) = listener.accept().await.expect("accepted");
            if round % 3 == 0 {
                client.try_write(b"x").expect("there is room");
                assert_eq!(server.read(&mut [0; 2]).await.expect("it reads"), 1);
            }
        }
        assert_eq!((open(), registered()), (before, known));
    });
}

#[test]
fn a_file_cannot_be_waited_for() {
    #[cfg(unix)]
    {
        let file = std::fs::File::open("/dev/null").expect("it is there");
        let error = Async::new(std::os::fd::OwnedFd::from(file)).expect_err("it is no socket");
        assert_ne!(error.kind(), io::ErrorKind::WouldBlock);
        let regular = std::env::current_exe().expect("it has a path");
        let file = std::fs::File::open(regular).expect("it is there");
        assert!(Async::new(std::os::fd::OwnedFd::from(file)).is_err());
    }
}
