//! The timing wheel against a model: a map ordered by deadline, then by insertion.

#![cfg(not(loom))]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use reveille::time::wheel::{Timer, Wheel};

/// An operation on a wheel. An index of an entry is taken modulo the number of
/// entries.
#[derive(Clone, Debug)]
enum Op {
    Insert(u64),
    /// Inserts an entry that is overdue by this much.
    InsertOverdue(u64),
    Reset(usize, u64),
    Remove(usize),
    /// Advances the time, and pops at most this many entries.
    Fire(u64, usize),
    /// Pops what was due this long ago, since another thread may have fired later
    /// times first.
    FireBehind(u64),
    /// Advances the time to the next deadline, and pops everything.
    FireNext,
    /// Gives back the free capacity, and moves entries for that.
    Compact,
}

/// A wheel, and its model.
struct Pair {
    wheel: Wheel<u64>,
    /// The entries by number: their timers, deadlines and places in the order.
    entries: BTreeMap<u64, (Timer, u64, u64)>,
    /// What is listed, in order: deadline, place, number.
    listed: BTreeMap<(u64, u64), u64>,
    now: u64,
    /// Listed entries with a deadline before this are overdue and come next.
    position: u64,
    turns: u64,
    popped: usize,
}

impl Pair {
    fn new(now: u64) -> Self {
        Self {
            wheel: Wheel::new(now),
            entries: BTreeMap::new(),
            listed: BTreeMap::new(),
            now,
            position: now,
            turns: 0,
            popped: 0,
        }
    }

    fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    fn list(&mut self, number: u64, timer: Timer, deadline: u64) {
        let turn = self.turn();
        let tick = deadline.max(self.position);
        self.entries.insert(number, (timer, deadline, turn));
        self.listed.insert((tick, turn), number);
    }

    fn insert(&mut self, deadline: u64) {
        let number = self.turns;
        let timer = self.wheel.insert(deadline, number);
        self.list(number, timer, deadline);
    }

    fn number(&self, place: usize) -> Option<u64> {
        let place = place.checked_rem(self.entries.len())?;
        self.entries.keys().nth(place).copied()
    }

    fn reset(&mut self, number: u64, deadline: u64) {
        let (timer, ..) = self.entries[&number];
        self.listed.retain(|_, listed| *listed != number);
        self.wheel.reset(timer, deadline);
        self.list(number, timer, deadline);
    }

    fn remove(&mut self, number: u64) {
        let (timer, ..) = self.entries.remove(&number).expect("it is there");
        self.listed.retain(|_, listed| *listed != number);
        assert_eq!(self.wheel[timer], number);
        self.wheel.remove(timer);
    }

    /// Pops at most `at_most` entries, and returns whether that was all.
    fn fire(&mut self, to: u64, at_most: usize) -> bool {
        self.now = self.now.max(to);
        for _ in 0..at_most {
            let due = self
                .listed
                .first_key_value()
                .filter(|((at, _), _)| *at <= to);
            let due = due.map(|(&key, &number)| (key, number));
            let popped = self.wheel.pop(to);
            assert_eq!(
                popped.map(|timer| self.wheel[timer]),
                due.map(|(_, number)| number)
            );
            let Some((key, _)) = due else {
                self.position = self.position.max(to);
                return true;
            };
            self.position = key.0;
            self.listed.remove(&key);
            self.popped += 1;
        }
        false
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Insert(ahead) => self.insert(self.now.saturating_add(ahead)),
            Op::InsertOverdue(behind) => self.insert(self.now.saturating_sub(behind)),
            Op::Reset(place, ahead) => {
                if let Some(number) = self.number(place) {
                    self.reset(number, self.now.saturating_add(ahead));
                }
            }
            Op::Remove(place) => {
                if let Some(number) = self.number(place) {
                    self.remove(number);
                }
            }
            Op::Fire(ahead, at_most) => {
                self.fire(self.now.saturating_add(ahead), at_most);
            }
            Op::FireBehind(behind) => {
                self.fire(self.now.saturating_sub(behind), usize::MAX);
            }
            Op::FireNext => {
                if let Some(next) = self.wheel.next_deadline() {
                    assert!(self.fire(next.max(self.now), usize::MAX));
                }
            }
            Op::Compact => self.compact(),
        }
        self.check();
    }

    fn compact(&mut self) {
        let Self { wheel, entries, .. } = self;
        wheel.compact(|number, timer| {
            let entry = entries.get_mut(number).expect("it is there");
            assert_ne!(entry.0, timer, "it has moved");
            entry.0 = timer;
        });
        assert!(wheel.capacity() >= wheel.len());
        let capacity = wheel.capacity();
        wheel.compact(|_, _| panic!("there is nothing to move any more"));
        assert_eq!(wheel.capacity(), capacity);
    }

    fn check(&self) {
        assert_eq!(self.wheel.len(), self.entries.len());
        assert_eq!(self.wheel.now(), self.now);
        let first = self.listed.values().next().copied();
        let next = first.map(|number| self.entries[&number].1);
        assert_eq!(self.wheel.next_deadline(), next);
        assert_eq!(self.wheel.first_listed().map(|it| self.wheel[it]), first);
        let pop = self.wheel.next_pop();
        assert_eq!(pop.is_some(), next.is_some());
        assert!(pop <= next, "never late");
        for &(timer, deadline, _) in self.entries.values() {
            assert_eq!(self.wheel.deadline(timer), deadline);
            assert_eq!(self.wheel.is_due(timer), deadline <= self.now);
        }
    }

    /// Pops all that is left, at the times that the wheel asks for.
    fn finish(mut self) -> usize {
        while let Some(next) = self.wheel.next_pop() {
            assert!(self.fire(next.max(self.now), usize::MAX));
            self.check();
        }
        assert!(self.listed.is_empty());
        for number in self.entries.keys().copied().collect::<Vec<_>>() {
            self.remove(number);
        }
        assert!(self.wheel.is_empty());
        self.popped
    }
}

/// Draws near and far durations equally often, on each scale.
fn ahead() -> impl Strategy<Value = u64> {
    (0..=64u32, any::<u64>()).prop_map(|(bits, any)| any.checked_shr(64 - bits).unwrap_or(0))
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => ahead().prop_map(Op::Insert),
        1 => ahead().prop_map(Op::InsertOverdue),
        2 => (any::<usize>(), ahead()).prop_map(|(place, ahead)| Op::Reset(place, ahead)),
        2 => any::<usize>().prop_map(Op::Remove),
        // It is rarely far, since everything is due at once then.
        2 => (ahead(), 1..9usize).prop_map(|(ahead, at_most)| Op::Fire(ahead >> 16, at_most)),
        1 => ahead().prop_map(|ahead| Op::Fire(ahead, usize::MAX)),
        1 => ahead().prop_map(Op::FireBehind),
        2 => Just(Op::FireNext),
        1 => Just(Op::Compact),
    ]
}

/// Returns the edges of every level, and what the cases name.
fn edges() -> impl Iterator<Item = u64> {
    (0..=10)
        .map(|level| 1u64 << (6 * level))
        .chain([1 << 30, 1 << 36])
}

fn starts() -> Vec<u64> {
    let around = edges().flat_map(|edge| [edge - 1, edge, edge + 1]);
    around
        .chain([0, u64::MAX / 2, u64::MAX - 1, u64::MAX])
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_is_the_model(
        start in proptest::sample::select(starts()),
        ops in proptest::collection::vec(op(), 0..200),
    ) {
        let mut pair = Pair::new(start);
        for op in ops {
            pair.apply(op);
        }
        pair.finish();
    }
}

/// OV-06: from the last tick before each edge, across it.
#[test]
fn ov_06_deadlines_are_met_across_every_edge() {
    for start in starts() {
        let mut pair = Pair::new(start);
        let mut inserted = 0;
        for ahead in edges()
            .flat_map(|edge| [edge - 1, edge, edge + 1])
            .chain([0, u64::MAX])
        {
            pair.insert(start.saturating_add(ahead));
            inserted += 1;
        }
        assert_eq!(pair.finish(), inserted, "from {start}");
    }
}

/// The digits of the position roll over while entries of every level wait.
#[test]
fn ov_06_the_position_goes_over_every_edge_in_small_steps() {
    for edge in edges().filter(|&edge| edge > 64) {
        let mut pair = Pair::new(edge - 40);
        for ahead in 0..=80 {
            pair.insert(edge - 40 + ahead);
            pair.insert(edge - 40 + ahead * 3);
        }
        for tick in edge - 40..edge + 240 {
            assert!(pair.fire(tick, usize::MAX));
            pair.check();
        }
        assert_eq!(pair.popped, 162, "at {edge}");
        pair.finish();
    }
}

/// The insertions of one tick at different levels come out in their order.
#[test]
fn entries_of_one_tick_come_out_in_the_order_of_insertion() {
    let tick = (3 << 18) + (7 << 12) + (5 << 6) + 1;
    let mut pair = Pair::new(0);
    for now in [0, 3 << 18, tick - 1000, tick - 70, tick - 2, tick - 1] {
        assert!(pair.fire(now, usize::MAX));
        pair.insert(tick);
        pair.insert(tick);
    }
    assert_eq!(pair.finish(), 12);
}

#[test]
fn a_place_is_used_again_and_room_is_kept() {
    let mut wheel = Wheel::new(0);
    for round in 0..100 {
        let timers: Vec<_> = (0..10).map(|it| wheel.insert(round * 7 + it, ())).collect();
        for timer in timers {
            wheel.remove(timer);
        }
    }
    assert!(wheel.is_empty() && wheel.capacity() < 20);
    assert_eq!((wheel.next_pop(), wheel.next_deadline()), (None, None));
    wheel.shrink_to_fit();
    assert_eq!(wheel.capacity(), 0);
    wheel.reserve(10);
    assert!(wheel.capacity() >= 10);
}

#[test]
fn what_has_been_removed_is_not_to_be_used() {
    type Use = fn(&mut Wheel<()>, Timer);
    let uses: [Use; 2] = [Wheel::remove, |wheel, timer| wheel.reset(timer, 5)];
    for again in uses {
        let mut wheel = Wheel::new(0);
        let (removed, kept) = (wheel.insert(3, ()), wheel.insert(3, ()));
        wheel.remove(removed);
        let panic = catch_unwind(AssertUnwindSafe(|| again(&mut wheel, removed))).unwrap_err();
        let said = panic.downcast_ref::<&str>().unwrap();
        assert_eq!(*said, "the timer has been removed from the wheel");
        assert_eq!((wheel.len(), wheel.pop(3)), (1, Some(kept)));
    }
}

#[test]
fn what_gave_up_its_room_can_be_used_again() {
    let mut wheel = Wheel::new(0);
    for round in 1..4 {
        let timers = [3, 2, 1].map(|after| wheel.insert(round * 10 + after, after));
        for timer in timers {
            wheel.remove(timer);
        }
        wheel.shrink_to_fit();
        assert_eq!((wheel.capacity(), wheel.len()), (0, 0));
    }
    let timer = wheel.insert(100, 7);
    assert_eq!(wheel.pop(100), Some(timer));
    assert_eq!(wheel[timer], 7);
}

/// Memory is given back behind the entries that stay, which keep their indices.
#[test]
fn a_spike_gives_its_memory_back_around_entries_that_stay() {
    let mut pair = Pair::new(0);
    for round in 0..3 {
        for it in 0..50 {
            pair.insert(100 + it * 7919 % 1000);
        }
        let stay = pair.turns;
        (0..1500).for_each(|it| pair.insert(1 + it % 90));
        assert!(pair.wheel.capacity() > 1500);
        let spike: Vec<_> = pair.entries.range(stay..).map(|(&it, _)| it).collect();
        for (it, number) in spike.into_iter().enumerate() {
            match it % 3 {
                0 => pair.remove(number),
                1 => pair.reset(number, 2000 + it as u64 % 3),
                _ => {}
            }
        }
        pair.check();
        let spike: Vec<_> = pair.entries.range(stay..).map(|(&it, _)| it).collect();
        spike
            .into_iter()
            .rev()
            .for_each(|number| pair.remove(number));
        for _ in 0..400 {
            pair.insert(50);
            pair.remove(pair.turns - 1);
        }
        pair.check();
        assert!(round > 0 || pair.wheel.capacity() <= 256);
    }
    assert_eq!(pair.finish(), 150);
}

/// Many entries in one slot of a high level: the next time to pop is found in
/// constant time, and is not late.
#[test]
fn a_crowd_hides_no_entry() {
    let mut pair = Pair::new(0);
    for it in 0..1000 {
        pair.insert((1 << 30) + it * 7919 % 100_000);
    }
    pair.insert(5);
    assert_eq!(pair.wheel.next_pop(), Some(5));
    assert!(pair.fire(5, usize::MAX));
    assert!(pair.wheel.next_pop() > Some(5));
    assert_eq!(pair.finish(), 1001);
}
