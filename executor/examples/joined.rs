//! Two waits side by side take the time of one. One after the other, they take the time
//! of both. In virtual time, neither takes any real time.

#![forbid(unsafe_code)]

use reveille::time::{Duration, Instant, sleep};
use reveille_executor::{Simulation, task};

const SECOND: Duration = Duration::from_secs(1);

fn main() {
    let begun = std::time::Instant::now();
    let simulation = Simulation::new(7);
    let (joined, in_sequence) = simulation.block_on(async {
        let start = Instant::now();
        let waits = [(); 2].map(|()| task::spawn(sleep(SECOND)));
        for wait in waits {
            wait.await.unwrap();
        }
        let joined = start.elapsed();
        let start = Instant::now();
        sleep(SECOND).await;
        sleep(SECOND).await;
        (joined, start.elapsed())
    });
    println!("joined: {joined:?}, in sequence: {in_sequence:?}");
    println!("real time: {:?}", begun.elapsed());
    assert_eq!((joined, in_sequence), (SECOND, 2 * SECOND));
}

#[test]
fn what_is_printed_holds() {
    main();
}
