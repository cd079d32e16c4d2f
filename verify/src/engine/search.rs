//! Chooses which execution comes next: a search through the orders of steps.
//!
//! A *step* is what a process does from one choice of the scheduler to the next: it
//! enters one section, and runs on to the beginning of the next one. What it touched is
//! known afterwards. Two steps of different processes are *dependent* if they touch the
//! same object and one of them changes it. Orders that differ only by an exchange of
//! neighbours that are not dependent lead to the same state and form a *class* (a
//! Mazurkiewicz trace).
//!
//! | search | executions |
//! | --- | --- |
//! | [`Optimal`] | one of each class |
//! | [`Every`] | every order, up to a number of preemptions |
//! | [`Drawn`] | drawn: each choice at random, or by priorities (PCT) |
//!
//! [`Optimal`] is optimal dynamic partial order reduction (Abdulla, Aronis, Jonsson and
//! Sagonas, "Source Sets", 2017), in which a *race* is a pair of dependent steps with no
//! step between them that depends on the first and on which the second depends:
//!
//! ```text
//!   execution:   … │ e │ x │ y │ e' │ …        e, e' race; y depends on e, x does not
//!   to be run:   … │ x │ e' │ …                a branch where e stands, unless what is
//!                                              asleep there leads to the same class
//! ```
//!
//! Invariant: at each node of the current path, a process is *asleep* if each execution
//! that begins with its step there is equivalent to one that has been run. A branch is
//! added only if it begins with no step of a process that is asleep, so no class is run
//! twice.
//!
//! Locks are numbered in the order in which they are met. Executions that begin with
//! the same steps number them alike, up to the step in which they differ. Of two
//! executions, locks that were met later are all taken for the same one.
//!
//! What a step will touch is known exactly only if it has been run at this place. The
//! last step of a branch has not been run, and is assumed to touch all that it may. If
//! it touches less, an execution of a class that has been run is repeated. These
//! executions are counted ([`Search::repeated`]).
//!
//! [`Every`] can be [split](Search::split) into parts that run at the same time.
//! [`Optimal`] cannot, because a branch depends on what the branches before it have
//! found. Take `p: a b`, `q: b` and `r: a`, where each letter is a section on a lock. The
//! branch of `r` is run with the first step of `q` asleep. There, `r p` leads to nothing
//! new as long as `p` goes no further, since `q` could also come first. That `p` must take
//! its second step before `q` takes its first is found in the branch of `q`, which then
//! adds `r p p` to the branch of `r`. If both are run at the same time, either this is
//! lost, or `q` must not be asleep and classes are run twice.

/// The greatest number of processes in an execution.
pub(crate) const MOST: usize = 32;

/// An access to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    object: u32,
    changes: bool,
}

impl Touch {
    /// A section on a lock.
    pub(crate) const fn lock(lock: usize, changes: bool) -> Self {
        Self {
            object: (lock as u32) << 2,
            changes,
        }
    }

    /// A wake by a waker. The order of two wakes makes no difference.
    pub(crate) const fn wake(waker: usize) -> Self {
        Self {
            object: (waker as u32) << 2 | 1,
            changes: false,
        }
    }

    /// The start of a poll for which a waker was called. Earlier wakes merge, and a
    /// later one leads to a further poll.
    pub(crate) const fn start(waker: usize) -> Self {
        Self {
            changes: true,
            ..Self::wake(waker)
        }
    }

    /// The creation of a process, and its first step.
    pub(crate) const fn birth(process: usize) -> Self {
        Self {
            object: (process as u32) << 2 | 2,
            changes: true,
        }
    }

    /// An access to everything, by code whose accesses are not known.
    pub(crate) const fn all() -> Self {
        Self {
            object: 3,
            changes: true,
        }
    }

    const fn is_start(self) -> bool {
        self.object & 3 == 1 && self.changes
    }

    const fn is_lock(self) -> bool {
        self.object & 3 == 0
    }

    const fn is_wake(self) -> bool {
        self.object & 3 == 1 && !self.changes
    }

    const fn is_birth(self) -> bool {
        self.object & 3 == 2
    }

    fn conflicts(self, other: Self) -> bool {
        self.object == other.object && (self.changes || other.changes)
    }

    /// Returns whether two touches of different executions may conflict. The executions
    /// were the same until `met` locks had been met.
    fn may_conflict(self, other: Self, met: u32) -> bool {
        let unknown = |touch: Self| touch.is_lock() && touch.object >> 2 >= met;
        let same = self.object == other.object || unknown(self) && unknown(other);
        same && (self.changes || other.changes)
    }
}

/// The accesses of a step. Few have more than three.
#[derive(Clone, Debug)]
pub(crate) struct Touches {
    len: usize,
    first: [Touch; 3],
    rest: Vec<Touch>,
}

impl Touches {
    pub(crate) const NONE: Self = Self {
        len: 0,
        first: [Touch::all(); 3],
        rest: Vec::new(),
    };

    pub(crate) fn push(&mut self, touch: Touch) {
        let len = self.len.min(3);
        for known in self.first[..len].iter_mut().chain(&mut self.rest) {
            if *known == touch || touch.is_lock() && known.object == touch.object {
                known.changes |= touch.changes;
                return;
            }
        }
        match self.first.get_mut(self.len) {
            Some(place) => *place = touch,
            None => self.rest.push(touch),
        }
        self.len += 1;
    }

    fn iter(&self) -> impl Iterator<Item = Touch> + '_ {
        let len = self.len.min(3);
        self.first[..len].iter().chain(&self.rest).copied()
    }

    fn conflict(&self, other: &Self) -> bool {
        self.iter()
            .any(|touch| other.iter().any(|other| touch.conflicts(other)))
    }

    fn may_conflict(&self, other: &Self, met: u32) -> bool {
        self.iter()
            .any(|touch| other.iter().any(|other| touch.may_conflict(other, met)))
    }
}

/// The step that a process is about to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    pub(crate) process: usize,
    /// Whether its section can change something, and its code wake others.
    pub(crate) changes: bool,
}

/// A step that has been run.
#[derive(Clone, Debug)]
struct Step {
    process: usize,
    /// Whether it could have changed something at another place.
    could_change: bool,
    touches: Touches,
}

impl Step {
    fn depends(&self, other: &Self) -> bool {
        self.process == other.process || self.touches.conflict(&other.touches)
    }

    /// Returns whether it may depend on a step of another execution.
    fn may_depend(&self, other: &Self, met: u32) -> bool {
        self.process == other.process || self.touches.may_conflict(&other.touches, met)
    }

    /// Returns whether it may depend on a step that is moved: what that step touches
    /// there may differ, and it may wake this process or not.
    fn may_depend_moved(&self, moved: &Self, met: u32, may_wake: impl FnOnce() -> bool) -> bool {
        if self.may_depend(moved, met) {
            return true;
        }
        let changed = |touch| Touch {
            changes: true,
            ..touch
        };
        let may_change = |touch: Touch| {
            let mut own = self.touches.iter();
            !touch.is_wake() && own.any(|own| own.may_conflict(changed(touch), met))
        };
        let starts = || self.touches.iter().any(Touch::is_start);
        moved.could_change && (moved.touches.iter().any(may_change) || starts() && may_wake())
    }
}

/// For each process, the number of its last step on which an event depends, from 1.
type Clock = [u16; MOST];

/// A step of the current execution.
struct Event {
    step: Step,
    /// The number of the step among those of its process, from 1.
    number: u16,
    clock: Clock,
    /// The events before it with which it races.
    races: Vec<u16>,
}

/// Steps that are still to be run, one after the other, with alternatives.
struct Branch {
    step: Step,
    children: Vec<Branch>,
}

/// A point at which a process was chosen.
#[derive(Default)]
struct Node {
    /// The processes that could be chosen, one bit each.
    able: u32,
    /// How many locks had been met.
    met: u32,
    /// The steps that lead to nothing new.
    asleep: Vec<Step>,
    /// The steps that have been run from here.
    done: Vec<Step>,
    /// The steps that are also to be run from here.
    branches: Vec<Branch>,
}

/// Where wakers can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wakers {
    /// Where their owner has left them, which is at locks in whose sections it was.
    #[default]
    Registered,
    /// Anywhere, since the search does not see all code.
    Anywhere,
}

/// A search that runs one execution of each class.
#[derive(Default)]
pub(crate) struct Optimal {
    wakers: Wakers,
    begun: bool,
    /// A node for each event, and perhaps one more.
    path: Vec<Node>,
    events: Vec<Event>,
    /// How many steps of the current execution have been chosen.
    depth: usize,
    /// The process to choose in the last node.
    chosen: usize,
    /// The steps to run after it.
    pending: Vec<Branch>,
    /// Whether everything that could be run from here is asleep.
    idle: bool,
    repeated: u64,
    /// The first step that touched something else than the last time.
    strayed: Option<usize>,
    /// Whether the last step has not been run before.
    fresh: bool,
    /// The working memory of [`reverse`](Self::reverse).
    rest: Vec<(u16, bool)>,
}

impl Optimal {
    fn begin(&mut self) -> bool {
        self.depth = 0;
        self.idle = false;
        if !std::mem::replace(&mut self.begun, true) {
            return true;
        }
        self.pending.clear();
        // Go back to the last node that has a branch.
        while let Some(last) = self.path.len().checked_sub(1) {
            let node = &mut self.path[last];
            if let Some(event) = self.events.get(last) {
                node.done.push(event.step.clone());
                self.events.truncate(last);
            }
            let (able, asleep, done) = (node.able, &node.asleep, &node.done);
            let sleeps = |process| asleep.iter().chain(done).any(|s| s.process == process);
            while !node.branches.is_empty() {
                let branch = node.branches.remove(0);
                let process = branch.step.process;
                if able >> process & 1 == 1 && !sleeps(process) {
                    self.chosen = process;
                    self.pending = branch.children;
                    return true;
                }
            }
            self.path.pop();
        }
        false
    }

    fn choose(&mut self, able: u32, current: Option<usize>, met: u32) -> usize {
        let depth = self.depth;
        if self.idle {
            return first(able, current);
        }
        if depth < self.path.len() {
            let process = match self.events.get(depth) {
                Some(event) => event.step.process,
                None => self.chosen,
            };
            if able >> process & 1 == 1 {
                return process;
            }
            self.strayed.get_or_insert(depth);
            self.idle = true;
            return first(able, current);
        }
        let mut node = Node {
            able,
            met,
            branches: std::mem::take(&mut self.pending),
            ..Node::default()
        };
        if let (Some(before), Some(event)) = (self.path.last(), self.events.last()) {
            let asleep = before.asleep.iter().chain(&before.done);
            let asleep = asleep.filter(|step| !step.may_depend(&event.step, before.met));
            node.asleep.extend(asleep.cloned());
        }
        let sleeping = node
            .asleep
            .iter()
            .fold(0_u32, |mask, step| mask | 1 << step.process);
        let awake = able & !sleeping;
        self.chosen = loop {
            if node.branches.is_empty() {
                if awake == 0 {
                    // All of this has been run before, so any order will do.
                    self.idle = true;
                    self.repeated += 1;
                    return first(able, current);
                }
                break first(awake, current);
            }
            let branch = node.branches.remove(0);
            let process = branch.step.process;
            if awake >> process & 1 == 1 {
                self.pending = branch.children;
                break process;
            }
        };
        self.path.push(node);
        self.chosen
    }

    fn executed(&mut self, next: Next, touches: &Touches) {
        let depth = self.depth;
        self.depth += 1;
        self.fresh = false;
        if self.idle {
            return;
        }
        if let Some(event) = self.events.get(depth) {
            let same = event.step.touches.len == touches.len
                && event.step.touches.iter().eq(touches.iter());
            if !same {
                self.strayed.get_or_insert(depth);
            }
            return;
        }
        let step = Step {
            process: next.process,
            could_change: next.changes,
            touches: touches.clone(),
        };
        let process = step.process;
        let mut races = Vec::new();
        let mut clock: Clock = [0; MOST];
        let mut number = 1;
        let own = self.events.iter().rfind(|e| e.step.process == process);
        if let Some(own) = own {
            clock = own.clock;
            number = own.number + 1;
        }
        for (index, event) in self.events.iter().enumerate().rev() {
            let other = event.step.process;
            if clock[other] >= event.number || !event.step.touches.conflict(&step.touches) {
                continue;
            }
            races.push(u16::try_from(index).expect("executions are not as long"));
            for (mine, theirs) in clock.iter_mut().zip(&event.clock) {
                *mine = (*mine).max(*theirs);
            }
        }
        clock[process] = number;
        self.fresh = true;
        self.events.push(Event {
            step,
            number,
            clock,
            races,
        });
    }

    /// Adds a branch for a step that the last step has prevented. It is no event of
    /// this execution, so no race shows it.
    fn offer(&mut self, process: usize) {
        let (true, Some(event)) = (self.fresh, self.events.last()) else {
            return;
        };
        let step = Step {
            process,
            could_change: true,
            touches: event.step.touches.clone(),
        };
        let node = self.path.last_mut().expect("there is one for each event");
        let known = node.asleep.iter().chain(&node.done);
        let mut known = known.chain(node.branches.iter().map(|branch| &branch.step));
        if known.all(|known| known.process != process) {
            node.branches.push(Branch {
                step,
                children: Vec::new(),
            });
        }
    }

    fn end(&mut self) {
        for second in 0..self.events.len() {
            for race in 0..self.events[second].races.len() {
                let first = usize::from(self.events[second].races[race]);
                if self.can_be_reversed(first, second) {
                    self.reverse(first, second);
                }
            }
        }
    }

    /// Returns `true` if the process of the second event could have been chosen in
    /// place of the first.
    fn can_be_reversed(&self, first: usize, second: usize) -> bool {
        let (one, other) = (&self.events[first].step, &self.events[second].step);
        let born = |touch: Touch| touch.is_birth() && one.touches.iter().any(|t| t == touch);
        if other.touches.iter().any(born) {
            return false;
        }
        let Some(start) = other.touches.iter().find(|touch| touch.is_start()) else {
            return true;
        };
        let wake = Touch {
            changes: false,
            ..start
        };
        let wakes = |step: &Step| step.touches.iter().any(|touch| touch == wake);
        if !wakes(one) {
            return true;
        }
        // Without the first event, another must have woken it since it was polled.
        self.events[..second]
            .iter()
            .enumerate()
            .rev()
            .take_while(|(_, event)| {
                event.step.process != other.process
                    || !event.step.touches.iter().any(|touch| touch == start)
            })
            .any(|(index, event)| {
                index != first && wakes(&event.step) && !self.follows(first, index)
            })
    }

    /// Returns `true` if an event depends on an earlier one, directly or through
    /// others.
    fn follows(&self, earlier: usize, event: usize) -> bool {
        let of = &self.events[earlier];
        earlier < event && self.events[event].clock[of.step.process] >= of.number
    }

    /// Adds a branch that runs the second event before the first, if that leads to
    /// something new.
    fn reverse(&mut self, first: usize, second: usize) {
        let mut rest = std::mem::take(&mut self.rest);
        rest.clear();
        for index in first + 1..self.events.len() {
            if index != second && !self.follows(first, index) {
                rest.push((index as u16, false));
            }
        }
        rest.push((second as u16, true));
        let node = &self.path[first];
        let known = node.asleep.iter().chain(&node.done);
        let known = known.chain(std::iter::once(&self.events[first].step));
        let redundant = known
            .into_iter()
            .any(|step| self.can_begin(step, &rest, node.met).is_some());
        if !redundant {
            let met = node.met;
            let mut branches = std::mem::take(&mut self.path[first].branches);
            self.insert(&mut branches, &mut rest, met);
            self.path[first].branches = branches;
        }
        self.rest = rest;
    }

    /// Returns the index of the step in `rest`, or its length if the step is not in it,
    /// if a class of executions that begin with `rest` has one that begins with this
    /// step.
    fn can_begin(&self, step: &Step, rest: &[(u16, bool)], met: u32) -> Option<usize> {
        let of = |index: u16| &self.events[usize::from(index)].step;
        let depends = |step: &Step, (index, moved): (u16, bool)| match moved {
            true => {
                let may_wake = || self.may_wake(index, step.process);
                step.may_depend_moved(of(index), met, may_wake)
            }
            false => step.may_depend(of(index), met),
        };
        let place = rest
            .iter()
            .position(|&(i, _)| of(i).process == step.process);
        let Some(place) = place else {
            let independent = !rest.iter().any(|&event| depends(step, event));
            return independent.then_some(rest.len());
        };
        let step = of(rest[place].0);
        let independent = !rest[..place]
            .iter()
            .any(|&(index, _)| step.depends(of(index)));
        independent.then_some(place)
    }

    /// Returns `true` if a step may wake a process when it is run at another place.
    fn may_wake(&self, moved: u16, process: usize) -> bool {
        let moved = usize::from(moved);
        let touches = &self.events[moved].step.touches;
        let registered = |event: &Event| {
            let mut sections = touches.iter().filter(|touch| touch.is_lock());
            event.step.process == process
                && sections.any(|touch| event.step.touches.iter().any(|t| t.object == touch.object))
        };
        self.wakers == Wakers::Anywhere || self.events.iter().any(registered)
    }

    fn insert(&self, mut branches: &mut Vec<Branch>, rest: &mut Vec<(u16, bool)>, met: u32) {
        loop {
            let found = branches.iter().enumerate().find_map(|(index, branch)| {
                let place = self.can_begin(&branch.step, rest, met)?;
                Some((index, place))
            });
            let Some((index, place)) = found else {
                break;
            };
            if place < rest.len() {
                rest.remove(place);
            }
            branches = &mut branches[index].children;
            if branches.is_empty() {
                return; // That branch is there already.
            }
        }
        for &(index, _) in &*rest {
            branches.push(Branch {
                step: self.events[usize::from(index)].step.clone(),
                children: Vec::new(),
            });
            branches = &mut branches.last_mut().expect("just pushed").children;
        }
    }
}

/// Returns the process that goes on if nothing else decides: the running one, if it
/// can.
fn first(able: u32, current: Option<usize>) -> usize {
    match current {
        Some(current) if able >> current & 1 == 1 => current,
        _ => able.trailing_zeros() as usize,
    }
}

/// A search through every order of steps, depth first.
pub(crate) struct Every {
    preemptions: Option<usize>,
    begun: bool,
    path: Vec<Fork>,
    depth: usize,
    strayed: Option<usize>,
    /// The choices before this one belong to another part of the search.
    floor: usize,
}

#[derive(Clone)]
struct Fork {
    chosen: usize,
    /// The processes that have not been chosen.
    left: u32,
    /// The number of preemptions up to this choice.
    preemptions: usize,
}

impl Every {
    fn new(preemptions: Option<usize>) -> Self {
        Self {
            preemptions,
            begun: false,
            path: Vec::new(),
            depth: 0,
            strayed: None,
            floor: 0,
        }
    }

    /// Splits off the first choice that leaves something, if more is left after it.
    fn split(&mut self) -> Option<Self> {
        let own = self.path.iter().skip(self.floor);
        let floor = own.take_while(|fork| fork.left == 0).count() + self.floor + 1;
        if self.path.iter().skip(floor).all(|fork| fork.left == 0) {
            return None;
        }
        let mut rest = Self {
            path: self.path[..floor].to_vec(),
            begun: true,
            floor: self.floor,
            ..Self::new(self.preemptions)
        };
        self.floor = floor;
        rest.begin().then_some(rest)
    }

    fn begin(&mut self) -> bool {
        self.depth = 0;
        if !std::mem::replace(&mut self.begun, true) {
            return true;
        }
        while self.path.len() > self.floor {
            let last = self.path.len() - 1;
            let fork = &mut self.path[last];
            if fork.left != 0 {
                fork.chosen = fork.left.trailing_zeros() as usize;
                fork.left &= fork.left - 1;
                return true;
            }
            self.path.pop();
        }
        false
    }

    fn choose(&mut self, able: u32, current: Option<usize>) -> usize {
        let goes_on = current.filter(|&current| able >> current & 1 == 1);
        if self.depth == self.path.len() {
            let so_far = self.path.last().map_or(0, |fork| fork.preemptions);
            let chosen = first(able, current);
            let may_switch = goes_on.is_none() || self.preemptions.is_none_or(|most| so_far < most);
            self.path.push(Fork {
                chosen,
                left: if may_switch { able & !(1 << chosen) } else { 0 },
                preemptions: so_far,
            });
        }
        let fork = &mut self.path[self.depth];
        if able >> fork.chosen & 1 == 0 {
            self.strayed.get_or_insert(self.depth);
            fork.chosen = first(able, current);
        }
        let chosen = fork.chosen;
        let preempts = goes_on.is_some_and(|current| current != chosen);
        let so_far = self
            .depth
            .checked_sub(1)
            .map_or(0, |d| self.path[d].preemptions);
        self.path[self.depth].preemptions = so_far + usize::from(preempts);
        self.depth += 1;
        chosen
    }
}

/// Marsaglia's xorshift. It draws the same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    fn new(seed: u64) -> Self {
        // The state must not be zero. States of neighbouring seeds must not be close.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }
}

/// A search that draws executions.
pub(crate) struct Drawn {
    numbers: Numbers,
    /// The number of priority changes (Burckhardt, Kothari, Musuvathi and Nagarakatte,
    /// 2010). If it is `None`, each choice is drawn by itself.
    changes: Option<usize>,
    begun: bool,
    /// Whether there was a choice in the current execution.
    asked: bool,
    /// The process with the highest priority goes on.
    priorities: [usize; MOST],
    /// The steps at which the running process falls behind all others.
    falls: Vec<usize>,
    depth: usize,
    longest: usize,
}

impl Drawn {
    fn new(seed: u64, changes: Option<usize>) -> Self {
        Self {
            numbers: Numbers::new(seed),
            changes,
            begun: false,
            asked: false,
            priorities: [0; MOST],
            falls: Vec::new(),
            depth: 0,
            longest: 1,
        }
    }

    fn begin(&mut self) -> bool {
        let begun = std::mem::replace(&mut self.begun, true);
        if begun && !std::mem::take(&mut self.asked) {
            return false; // There is no other order.
        }
        self.longest = self.longest.max(self.depth);
        self.depth = 0;
        if let Some(changes) = self.changes {
            // A permutation (Fisher and Yates), above the priorities of processes that
            // fall behind.
            self.priorities = std::array::from_fn(|process| process + changes);
            for last in (1..MOST).rev() {
                self.priorities.swap(last, self.numbers.below(last + 1));
            }
            self.falls.clear();
            for _ in 1..changes {
                let fall = self.numbers.below(self.longest);
                self.falls.push(fall);
            }
        }
        true
    }

    fn choose(&mut self, able: u32, current: Option<usize>) -> usize {
        self.asked |= able & (able - 1) != 0;
        if self.changes.is_none() {
            let mut left = able;
            for _ in 0..self.numbers.below(able.count_ones() as usize) {
                left &= left - 1;
            }
            self.depth += 1;
            return left.trailing_zeros() as usize;
        }
        for (place, &fall) in self.falls.iter().enumerate() {
            if let (true, Some(current)) = (fall == self.depth, current) {
                self.priorities[current] = place;
            }
        }
        self.depth += 1;
        let able = (0..MOST).filter(|process| able >> process & 1 == 1);
        able.max_by_key(|&process| self.priorities[process])
            .expect("one is able")
    }
}

/// A search for executions.
pub(crate) enum Search {
    Optimal(Box<Optimal>),
    Every(Every),
    Drawn(Box<Drawn>),
}

impl Search {
    /// Creates a search that runs one execution of each class.
    pub(crate) fn optimal(wakers: Wakers) -> Self {
        Self::Optimal(Box::new(Optimal {
            wakers,
            ..Optimal::default()
        }))
    }

    /// Creates a search through every order of steps with at most this many
    /// preemptions.
    pub(crate) fn every(preemptions: Option<usize>) -> Self {
        Self::Every(Every::new(preemptions))
    }

    /// Creates a search that draws each choice.
    pub(crate) fn random(seed: u64) -> Self {
        Self::Drawn(Box::new(Drawn::new(seed, None)))
    }

    /// Creates a search that draws priorities, which change at `depth - 1` steps.
    pub(crate) fn pct(seed: u64, depth: usize) -> Self {
        Self::Drawn(Box::new(Drawn::new(seed, Some(depth))))
    }

    /// Begins an execution, and returns whether there is one.
    pub(crate) fn begin(&mut self) -> bool {
        match self {
            Self::Optimal(search) => search.begin(),
            Self::Every(search) => search.begin(),
            Self::Drawn(search) => search.begin(),
        }
    }

    /// Chooses one of the processes that are able, of which there is at least one. The
    /// running process is preferred.
    ///
    /// `met` is the number of locks that have been met.
    pub(crate) fn choose(&mut self, able: u32, current: Option<usize>, met: usize) -> usize {
        match self {
            Self::Optimal(search) => search.choose(able, current, met as u32),
            Self::Every(search) => search.choose(able, current),
            Self::Drawn(search) => search.choose(able, current),
        }
    }

    /// Records that the chosen step has been run, and what it has touched.
    pub(crate) fn executed(&mut self, next: Next, touches: &Touches) {
        if let Self::Optimal(search) = self {
            search.executed(next, touches);
        }
    }

    /// Records that the last step has prevented the next step of a process, which could
    /// have come before.
    pub(crate) fn offer(&mut self, process: usize) {
        if let Self::Optimal(search) = self {
            search.offer(process);
        }
    }

    /// Ends the execution.
    pub(crate) fn end(&mut self) {
        if let Self::Optimal(search) = self {
            search.end();
        }
    }

    /// Splits off the part that comes last, if that leaves something to run for both.
    /// Parts can be run at the same time. In both, an execution has begun.
    pub(crate) fn split(&mut self) -> Option<Self> {
        match self {
            Self::Every(search) => search.split().map(Self::Every),
            Self::Optimal(_) | Self::Drawn(_) => None,
        }
    }

    /// Returns how many executions were of a class that had been run before.
    pub(crate) fn repeated(&self) -> u64 {
        match self {
            Self::Optimal(search) => search.repeated,
            Self::Every(_) | Self::Drawn(_) => 0,
        }
    }

    /// Returns the first step that did not do the same when it was run again.
    pub(crate) fn strayed(&self) -> Option<usize> {
        match self {
            Self::Optimal(search) => search.strayed,
            Self::Every(search) => search.strayed,
            Self::Drawn(_) => None,
        }
    }
}
