//! Which thread runs on which CPU.
//!
//! Planning is a pure function of the wish ([`Pin`]), the machine ([`Topology`]) and what the other
//! pools of the process hold; the [`Occupancy`] table makes planning and taking one step. The
//! threads then pin themselves. The caller's own thread is never pinned.
//!
//! # The order of CPUs
//!
//! Threads get CPUs from the front of one list, and go round again when it ends. It is sorted by
//! these keys, the first that differs decides:
//!
//! 1. how many threads of other pools have the CPU,
//! 2. how many threads its physical core has, of other pools and from earlier in the list: a
//!    sibling counts only when every core has work,
//! 3. the place of the core, which is where the two strategies differ:
//!
//! ```text
//!             package 0             package 1          4 threads on 8 cores, 2 caches per package
//!           cache a  cache b      cache c  cache d
//!   compact [0][1]   [2][3]       [ ][ ]   [ ][ ]      fill a cache, then its neighbour
//!   spread  [0][ ]   [2][ ]       [1][ ]   [3][ ]      packages, then caches, then cores in turn
//! ```
//!
//! `Compact` starts with the smallest cache that has enough free cores for all threads, or else
//! with the freest one.

use crate::error::{Error, Result};
use crate::sys::affinity;
use crate::sys::topology::{Cpu, Domain, Topology, parse_list};
use core::cmp::Reverse;
use core::fmt;
use core::str::FromStr;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the threads of a pool run. Parsed from and shown as `none`, `compact`, `spread` or a list
/// like `0,2,4-7`.
///
/// CPUs are taken from the mask of the thread that builds the pool, distinct physical cores before
/// hyper-threads, and free ones before those that another pool of this process has. More threads
/// than CPUs go round again.
///
/// ```
/// use paceline::{Pin, Pool};
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::builder().threads(2).pin(Pin::Spread).build()?;
/// // Where each thread is pinned; `None` where it is not.
/// for thread in &pool.stats().threads[..2] {
///     println!("{:?}", thread.cpu);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pin {
    /// The scheduler moves the threads as it likes within the mask of the thread that builds the
    /// pool.
    None,
    /// As close together as possible: cores that share a level 3 cache.
    Compact,
    /// As far apart as possible: packages in turn, then caches, then cores.
    Spread,
    /// Thread *i* on the *i*-th CPU of this list. CPUs outside the mask may be named: isolated
    /// ones work.
    List(Vec<usize>),
}

/// What the `pin` setting accepts, for messages.
const NOTATION: &str = "none, compact, spread or a list of CPUs like 0,2,4-7";

impl FromStr for Pin {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.trim() {
            "none" => Ok(Self::None),
            "compact" => Ok(Self::Compact),
            "spread" => Ok(Self::Spread),
            list => match parse_list(list) {
                Some(cpus) => Ok(Self::List(cpus)),
                None => Err(Error::invalid("pin", text, NOTATION)),
            },
        }
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Compact => f.write_str("compact"),
            Self::Spread => f.write_str("spread"),
            Self::List(cpus) => f.write_str(&format_list(cpus)),
        }
    }
}

impl Pin {
    /// The default.
    ///
    /// Pinning pays when each thread has a CPU to itself and one is left for everything else. A pool
    /// that fills the mask shares its CPUs with the threads of its host, its clients and the kernel,
    /// and a pinned thread that wakes on a busy CPU cannot go to the idle one beside it: on two CPUs
    /// with a load generator, pinning cost an echo server a fifth of its requests and five times the
    /// context switches. And under a quota smaller than the mask the kernel stops all threads on a CPU
    /// when that CPU's slice of the quota is used up: a thread that cannot move then waits for the
    /// next period beside CPUs that still have some.
    pub(crate) fn by_default(threads: usize, machine: &Topology) -> Self {
        if machine.is_throttled() || threads >= machine.allowed().count() {
            Self::None
        } else {
            Self::Compact
        }
    }
}

/// How many threads of this process's pools are pinned to each CPU.
pub(crate) struct Occupancy {
    taken: Mutex<Taken>,
}

/// Threads per CPU; absent means none.
type Taken = BTreeMap<usize, usize>;

/// The CPUs of one pool's threads. They count as occupied until this is dropped. In a forked child,
/// where the table may be locked for ever, it must be forgotten.
pub(crate) struct Placement<'a> {
    cpus: Vec<Option<usize>>,
    occupancy: &'a Occupancy,
}

impl Occupancy {
    const fn new() -> Self {
        Self { taken: Mutex::new(Taken::new()) }
    }

    /// The table that all pools of the process share.
    pub(crate) fn of_process() -> &'static Self {
        static PROCESS: Occupancy = Occupancy::new();
        &PROCESS
    }

    /// Chooses a CPU for each thread and marks it as taken.
    pub(crate) fn place(
        &self,
        pin: &Pin,
        threads: usize,
        machine: &Topology,
    ) -> Result<Placement<'_>> {
        let mut taken = self.lock();
        let cpus = plan(pin, threads, machine, &taken)?;
        for cpu in cpus.iter().flatten() {
            *taken.entry(*cpu).or_default() += 1;
        }
        Ok(Placement { cpus, occupancy: self })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Nothing panics while it is held, and a count is right at every moment.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Placement<'_> {
    /// The CPU of a thread, None if it is not to be pinned.
    pub(crate) fn cpu(&self, thread: usize) -> Option<usize> {
        self.cpus[thread]
    }

    /// Binds the calling thread to the CPU of pool thread `thread`, if it has one. In lenient mode
    /// the error becomes a flag in the stats.
    pub(crate) fn pin_current(&self, thread: usize) -> Result<()> {
        let Some(cpu) = self.cpu(thread) else { return Ok(()) };
        affinity::pin(cpu)
            .map_err(|source| Error::os(format!("pin thread {thread} to CPU {cpu}"), source))
    }
}

impl Drop for Placement<'_> {
    fn drop(&mut self) {
        let mut taken = self.occupancy.lock();
        for cpu in self.cpus.iter().flatten() {
            if let Some(threads) = taken.get_mut(cpu) {
                *threads -= 1;
            }
        }
        taken.retain(|_, threads| *threads > 0);
    }
}

/// A CPU for each thread; see the head of the file.
fn plan(
    pin: &Pin,
    threads: usize,
    machine: &Topology,
    taken: &Taken,
) -> Result<Vec<Option<usize>>> {
    let cpus = match pin {
        Pin::None => Vec::new(),
        Pin::List(list) => known(list, machine)?,
        Pin::Compact => in_order(&compact(cores(machine, taken), threads), taken),
        Pin::Spread => in_order(&spread(cores(machine, taken)), taken),
    };
    let round = cpus.into_iter().map(Some).cycle();
    // Only a machine that hides all its CPUs, and no wish at all, leave a thread without one.
    Ok(round.chain(core::iter::repeat(None)).take(threads).collect())
}

fn known(list: &[usize], machine: &Topology) -> Result<Vec<usize>> {
    let all: Vec<usize> = machine.cpus.iter().map(|cpu| cpu.id).collect();
    let allowed = || format!("CPUs of {}", format_list(&all));
    if list.is_empty() {
        return Err(Error::invalid("pin", "an empty list", allowed()));
    }
    match list.iter().find(|cpu| !all.contains(cpu)) {
        Some(unknown) => Err(Error::invalid("pin", unknown, allowed())),
        None => Ok(list.to_vec()),
    }
}

/// A physical core, as far as the mask allows it.
struct Core {
    package: usize,
    domain: Domain,
    /// The least taken first.
    cpus: Vec<usize>,
    /// Threads of other pools on any of its CPUs, allowed or not.
    load: usize,
}

/// In the order of their lowest allowed CPU.
fn cores(machine: &Topology, taken: &Taken) -> Vec<Core> {
    let load_of = |core: usize| {
        let siblings = machine.cpus.iter().filter(|cpu| cpu.core == core);
        siblings.map(|cpu| threads_on(taken, cpu.id)).sum()
    };
    let mut index_of = BTreeMap::new();
    let mut cores: Vec<Core> = Vec::new();
    for &Cpu { id, package, domain, core, .. } in machine.allowed() {
        let index = *index_of.entry(core).or_insert_with(|| {
            cores.push(Core { package, domain, cpus: Vec::new(), load: load_of(core) });
            cores.len() - 1
        });
        cores[index].cpus.push(id);
    }
    for core in &mut cores {
        sort_few(&mut core.cpus, |&cpu| threads_on(taken, cpu));
    }
    cores
}

/// Domain by domain: the tightest that fits, else the freest, then on in that order.
fn compact(mut cores: Vec<Core>, threads: usize) -> Vec<Core> {
    let mut free: BTreeMap<Domain, usize> = BTreeMap::new();
    for core in &cores {
        *free.entry(core.domain).or_default() += usize::from(core.load == 0);
    }
    sort_few(&mut cores, |core| match free[&core.domain] {
        enough if enough >= threads => (0, enough, Reverse(0), core.package, core.domain),
        scarce => (1, 0, Reverse(scarce), core.package, core.domain),
    });
    cores
}

/// The first core of every domain, packages in turn, then the second of each, and so on.
fn spread(cores: Vec<Core>) -> Vec<Core> {
    let mut cores_in: BTreeMap<Domain, usize> = BTreeMap::new();
    let mut domains_in: BTreeMap<usize, Vec<Domain>> = BTreeMap::new();
    let mut keyed: Vec<_> = cores
        .into_iter()
        .map(|core| {
            let domains = domains_in.entry(core.package).or_default();
            if !domains.contains(&core.domain) {
                domains.push(core.domain);
            }
            let domain_in_package = domains.iter().position(|&domain| domain == core.domain);
            let seen = cores_in.entry(core.domain).or_default();
            *seen += 1;
            ((*seen, domain_in_package, core.package), core)
        })
        .collect();
    sort_few(&mut keyed, |&(key, _)| key);
    keyed.into_iter().map(|(_, core)| core).collect()
}

/// All CPUs of the cores by the three keys at the head of the file.
fn in_order(cores: &[Core], taken: &Taken) -> Vec<usize> {
    let cpus = cores.iter().enumerate().flat_map(|(place, core)| {
        let siblings = core.cpus.iter().enumerate();
        siblings.map(move |(rank, &cpu)| (threads_on(taken, cpu), core.load + rank, place, cpu))
    });
    let mut keyed: Vec<_> = cpus.collect();
    sort_few(&mut keyed, |&key| key);
    keyed.into_iter().map(|(.., cpu)| cpu).collect()
}

/// A stable sort for lists that are as long as the machine is large, and made once for a pool: the code of
/// std's is a twentieth of the library's.
fn sort_few<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    for end in 1..items.len() {
        let mut at = end;
        while at > 0 && key(&items[at]) < key(&items[at - 1]) {
            items.swap(at, at - 1);
            at -= 1;
        }
    }
}

fn threads_on(taken: &Taken, cpu: usize) -> usize {
    taken.get(&cpu).copied().unwrap_or(0)
}

/// "0,2,4-7": the inverse of `parse_list`.
fn format_list(cpus: &[usize]) -> String {
    let runs = cpus.chunk_by(|&before, &cpu| before.checked_add(1) == Some(cpu));
    let runs = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run.iter().map(usize::to_string).collect(),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A machine of packages × caches × cores × hyper-threads. CPUs are numbered as Linux does it:
    /// all cores first, then their siblings. `mask` says which are allowed.
    fn machine(shape: [usize; 4], mask: impl Fn(usize) -> bool) -> Topology {
        let [packages, caches, cores, siblings] = shape;
        let all = packages * caches * cores;
        let cpus = (0..all * siblings).map(|id| {
            let core = id % all;
            let cache = core / cores * cores;
            let package = core / (caches * cores);
            Cpu { id, allowed: mask(id), package, domain: Domain { node: package, cache }, core }
        });
        Topology { cpus: cpus.collect(), quota_milli: None }
    }

    fn planned(pin: &Pin, threads: usize, machine: &Topology, taken: &[usize]) -> Vec<usize> {
        let taken = taken.iter().map(|&cpu| (cpu, 1)).collect();
        let cpus = plan(pin, threads, machine, &taken).unwrap();
        cpus.into_iter().map(|cpu| cpu.expect("a CPU")).collect()
    }

    #[test]
    fn compact_fills_a_cache_and_spread_takes_turns() {
        let two_packages = machine([2, 2, 2, 1], |_| true);
        assert_eq!(planned(&Pin::Compact, 5, &two_packages, &[]), [0, 1, 2, 3, 4]);
        assert_eq!(planned(&Pin::Spread, 6, &two_packages, &[]), [0, 4, 2, 6, 1, 5]);
    }

    #[test]
    fn physical_cores_come_before_siblings() {
        let smt = machine([1, 2, 2, 2], |_| true); // siblings: 0 and 4, 1 and 5 …
        assert_eq!(planned(&Pin::Compact, 8, &smt, &[]), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(planned(&Pin::Spread, 8, &smt, &[]), [0, 2, 1, 3, 4, 6, 5, 7]);
        // The mask allows only the second thread of core 0: it stands for the core.
        let masked = machine([1, 2, 2, 2], |cpu| [1, 4, 5].contains(&cpu));
        assert_eq!(planned(&Pin::Compact, 3, &masked, &[]), [1, 4, 5]);
    }

    #[test]
    fn compact_prefers_the_tightest_cache_that_fits() {
        // Of the first cache one core is allowed, of the second two, of the third all four.
        let uneven = machine([1, 3, 4, 1], |cpu| [0, 4, 5, 8, 9, 10, 11].contains(&cpu));
        assert_eq!(planned(&Pin::Compact, 1, &uneven, &[]), [0]);
        assert_eq!(planned(&Pin::Compact, 2, &uneven, &[]), [4, 5]);
        assert_eq!(planned(&Pin::Compact, 3, &uneven, &[]), [8, 9, 10]);
        assert_eq!(planned(&Pin::Compact, 6, &uneven, &[]), [8, 9, 10, 11, 4, 5]);
    }

    #[test]
    fn a_mask_with_gaps_or_of_one_cpu_is_all_there_is() {
        let gaps = machine([1, 1, 8, 1], |cpu| [3, 6].contains(&cpu));
        assert_eq!(planned(&Pin::Compact, 5, &gaps, &[]), [3, 6, 3, 6, 3]);
        let one = machine([2, 1, 4, 2], |cpu| cpu == 5);
        assert_eq!(planned(&Pin::Spread, 3, &one, &[]), [5, 5, 5]);
    }

    #[test]
    fn what_other_pools_have_comes_last() {
        let smt = machine([1, 1, 2, 2], |_| true); // siblings: 0 and 2, 1 and 3
        assert_eq!(planned(&Pin::Compact, 4, &smt, &[0]), [1, 2, 3, 0]);
        assert_eq!(planned(&Pin::Compact, 2, &smt, &[0, 1, 2, 3]), [0, 1]);
        let caches = machine([1, 2, 4, 1], |_| true);
        assert_eq!(planned(&Pin::Compact, 3, &caches, &[0, 1]), [4, 5, 6]);
        assert_eq!(planned(&Pin::Compact, 2, &caches, &[0, 1]), [2, 3]);
        assert_eq!(planned(&Pin::Spread, 2, &caches, &[0]), [4, 1]);
        // A sibling outside the mask may be busy too.
        let masked = machine([1, 1, 2, 2], |cpu| cpu < 2);
        assert_eq!(planned(&Pin::Compact, 1, &masked, &[2]), [1]);
    }

    #[test]
    fn a_list_is_taken_as_it_is() {
        let masked = machine([1, 1, 4, 1], |cpu| cpu < 2);
        assert_eq!(planned(&Pin::List(vec![3, 0]), 3, &masked, &[3]), [3, 0, 3]);
    }

    #[test]
    fn an_unknown_cpu_is_named_with_those_that_exist() {
        let machine = machine([1, 1, 4, 1], |cpu| cpu < 2);
        for (list, value) in [(vec![0, 9], "9"), (vec![], "an empty list")] {
            let error = plan(&Pin::List(list), 2, &machine, &Taken::new()).unwrap_err();
            assert_eq!(error.to_string(), format!("pin is {value}, but must be CPUs of 0-3"));
        }
    }

    #[test]
    fn without_a_wish_or_a_known_cpu_nothing_is_pinned() {
        let hidden = Topology { cpus: Vec::new(), quota_milli: None };
        assert_eq!(plan(&Pin::Compact, 2, &hidden, &Taken::new()).unwrap(), [None, None]);
        let machine = machine([1, 1, 4, 1], |_| true);
        assert_eq!(plan(&Pin::None, 2, &machine, &Taken::new()).unwrap(), [None, None]);
    }

    #[test]
    fn the_default_pins_only_where_a_cpu_is_left() {
        let machine = machine([1, 1, 4, 1], |cpu| cpu < 3);
        assert_eq!(Pin::by_default(2, &machine), Pin::Compact);
        assert_eq!(Pin::by_default(3, &machine), Pin::None);
        let throttled = Topology { quota_milli: Some(2999), ..machine.clone() };
        assert_eq!(Pin::by_default(1, &throttled), Pin::None);
        let generous = Topology { quota_milli: Some(3000), ..machine };
        assert_eq!(Pin::by_default(2, &generous), Pin::Compact);
    }

    /// Goal: two pools do not share cores while there are free ones, and a pool that is gone, or
    /// was never built, leaves nothing taken.
    #[test]
    fn pools_keep_apart_until_one_is_dropped() {
        let machine = machine([1, 1, 4, 1], |_| true);
        let table = Occupancy::new();
        let cpus = |placement: &Placement<'_>| placement.cpus.clone();
        let first = table.place(&Pin::Compact, 2, &machine).unwrap();
        let second = table.place(&Pin::Spread, 2, &machine).unwrap();
        assert_eq!((cpus(&first), cpus(&second)), (vec![Some(0), Some(1)], vec![Some(2), Some(3)]));
        assert!(table.place(&Pin::List(vec![7]), 1, &machine).is_err());
        drop(first);
        let third = table.place(&Pin::Compact, 3, &machine).unwrap();
        assert_eq!(cpus(&third), [Some(0), Some(1), Some(2)]);
        drop((second, third));
        assert!(table.lock().is_empty());
    }

    #[test]
    fn threads_pin_themselves_and_an_impossible_cpu_is_named() {
        let machine = Topology::of_this_machine();
        let table = Occupancy::new();
        let placement = table.place(&Pin::Compact, 1, &machine).unwrap();
        let impossible = Placement { cpus: vec![Some(1023)], occupancy: &table };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                placement.pin_current(0).unwrap();
                assert_eq!(affinity::allowed().unwrap(), [placement.cpu(0).unwrap()]);
                let error = impossible.pin_current(0).unwrap_err().to_string();
                assert!(error.starts_with("cannot pin thread 0 to CPU 1023: "), "{error}");
            });
        });
    }

    #[test]
    fn the_notation_reads_what_it_writes() {
        for text in ["none", "compact", "spread", "0", "0,2,4-7", "7,3-5,3"] {
            assert_eq!(text.parse::<Pin>().unwrap().to_string(), text);
        }
        assert_eq!("4-6,1".parse::<Pin>().unwrap(), Pin::List(vec![4, 5, 6, 1]));
        for text in ["", "close", "1-", "0-99999", "Compact"] {
            let error = text.parse::<Pin>().unwrap_err().to_string();
            assert_eq!(error, format!("pin is {text}, but must be {NOTATION}"));
        }
    }
}
