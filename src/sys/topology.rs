//! What the machine looks like: its CPUs, which of them share a core, a cache or a memory node, and
//! how much of them the control group grants.
//!
//! Everything is read from sysfs and procfs below a root that tests replace. Containers hide parts
//! of both, so nothing here fails: a CPU about which nothing is said is a core of its own.

use crate::sys::affinity;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// No kernel is built for more CPUs; longer lists are nonsense.
pub(crate) const MAX_CPUS: usize = 8192;

/// One logical CPU that is online.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cpu {
    pub(crate) id: usize,
    /// Whether the thread that looked may run on it.
    pub(crate) allowed: bool,
    pub(crate) package: usize,
    /// What shares a last-level cache and a memory node.
    pub(crate) domain: Domain,
    /// The lowest CPU of the physical core: siblings have it in common.
    pub(crate) core: usize,
}

/// A memory node, and the lowest CPU of a level 3 cache within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Domain {
    pub(crate) node: usize,
    pub(crate) cache: usize,
}

/// See the head of the file.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    /// In ascending order of their ids.
    pub(crate) cpus: Vec<Cpu>,
    /// The control group's limit in thousandths of a CPU, rounded up.
    pub(crate) quota_milli: Option<u64>,
}

impl Topology {
    /// Looks at this machine with the eyes of the calling thread.
    pub(crate) fn of_this_machine() -> Self {
        Self::read(Path::new("/"), affinity::allowed().ok().as_deref())
    }

    /// Reads `root`/sys and `root`/proc. Without a mask every CPU that is online is allowed.
    pub(crate) fn read(root: &Path, mask: Option<&[usize]>) -> Self {
        let system = root.join("sys/devices/system");
        let online = read_list(&system.join("cpu/online")).unwrap_or_default();
        let ids: BTreeSet<usize> = online.iter().chain(mask.unwrap_or_default()).copied().collect();
        let nodes = nodes(&system.join("node"));
        let cpus = ids.into_iter().map(|id| Cpu {
            allowed: mask.is_none_or(|mask| mask.contains(&id)),
            ..read_cpu(&system.join(format!("cpu/cpu{id}")), id, &nodes)
        });
        Self { cpus: cpus.collect(), quota_milli: quota_milli(root) }
    }

    pub(crate) fn allowed(&self) -> impl Iterator<Item = &Cpu> {
        self.cpus.iter().filter(|cpu| cpu.allowed)
    }

    /// How many CPUs' worth of work can be done at a time: the mask's, or less by the quota.
    pub(crate) fn parallelism(&self) -> usize {
        let quota = self.quota_milli.map_or(usize::MAX, |milli| milli.div_ceil(1000) as usize);
        self.allowed().count().min(quota).max(1)
    }

    /// Whether the control group stops the threads before the CPUs are used up.
    pub(crate) fn is_throttled(&self) -> bool {
        self.quota_milli.is_some_and(|milli| milli < 1000 * self.allowed().count() as u64)
    }
}

/// Parses the kernel's notation, "0,2,4-7", in the order given.
pub(crate) fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().ok()?;
        let last = last.trim().parse().ok()?;
        if first > last || last >= MAX_CPUS || cpus.len() > MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

fn read_cpu(dir: &Path, id: usize, nodes: &[(usize, Vec<usize>)]) -> Cpu {
    let package = read_number(&dir.join("topology/physical_package_id")).unwrap_or(0);
    let lowest = |list: &str| read_list(&dir.join(list)).and_then(|cpus| cpus.into_iter().min());
    let node = nodes.iter().find(|(_, cpus)| cpus.contains(&id)).map_or(0, |&(node, _)| node);
    Cpu {
        id,
        allowed: true,
        package,
        domain: Domain { node, cache: lowest("cache/index3/shared_cpu_list").unwrap_or(package) },
        core: lowest("topology/thread_siblings_list").unwrap_or(id),
    }
}

/// Every memory node with its CPUs.
fn nodes(dir: &Path) -> Vec<(usize, Vec<usize>)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let nodes = entries.filter_map(|entry| {
        let node = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
        Some((node, read_list(&entry.path().join("cpulist"))?))
    });
    nodes.collect()
}

/// The tightest limit between the process's own control group and the root, of either version.
fn quota_milli(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    groups.lines().filter_map(|line| quota_of_group(&root.join("sys/fs/cgroup"), line)).min()
}

/// One line of /proc/self/cgroup: "hierarchy:controllers:path".
fn quota_of_group(mounts: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let is_v2 = controllers.is_empty();
    if !is_v2 && !controllers.split(',').any(|controller| controller == "cpu") {
        return None;
    }
    // Beside version 1, version 2 is mounted aside. A joint mount may go by either name.
    let names = if is_v2 { ["", "unified"] } else { [controllers, "cpu"] };
    let limit = if is_v2 { limit_v2 } else { limit_v1 };
    let path = inside_mount(path);
    let limit_in = |mount: &Path| path.ancestors().filter_map(|dir| limit(&mount.join(dir))).min();
    names.iter().filter_map(|name| limit_in(&mounts.join(name))).min()
}

/// The group's path below the mount. A group outside of the own namespace ("/..") has none that
/// can be seen here: that leaves the root.
fn inside_mount(path: &str) -> PathBuf {
    let mut parts = Path::new(path).components();
    if parts.any(|part| part == Component::ParentDir) {
        return PathBuf::new();
    }
    PathBuf::from(path.trim_start_matches('/'))
}

/// "max 100000" or "150000 100000": microseconds of processor time per period.
fn limit_v2(group: &Path) -> Option<u64> {
    let text = fs::read_to_string(group.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    milli(quota.parse().ok()?, period.parse().ok()?)
}

/// A quota of -1 is none.
fn limit_v1(group: &Path) -> Option<u64> {
    let quota = read_number(&group.join("cpu.cfs_quota_us"))?;
    milli(quota as u64, read_number(&group.join("cpu.cfs_period_us"))? as u64)
}

fn milli(quota: u64, period: u64) -> Option<u64> {
    (period > 0).then(|| quota.saturating_mul(1000).div_ceil(period))
}

fn read_list(path: &Path) -> Option<Vec<usize>> {
    parse_list(&fs::read_to_string(path).ok()?)
}

fn read_number(path: &Path) -> Option<usize> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A directory that stands in for the root of a machine and goes away with the value.
    struct FakeRoot(PathBuf);

    impl FakeRoot {
        fn new(name: &str) -> Self {
            let name = format!("paceline-{}-{name}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&dir); // a killed process may have had our id
            Self(dir)
        }

        fn with(self, path: &str, text: &str) -> Self {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
            self
        }

        fn cpu(self, id: usize, package: usize, siblings: &str, cache: &str) -> Self {
            let dir = format!("sys/devices/system/cpu/cpu{id}");
            self.with(&format!("{dir}/topology/physical_package_id"), &package.to_string())
                .with(&format!("{dir}/topology/thread_siblings_list"), siblings)
                .with(&format!("{dir}/cache/index3/shared_cpu_list"), cache)
        }

        fn read(&self, mask: Option<&[usize]>) -> Topology {
            Topology::read(&self.0, mask)
        }
    }

    impl Drop for FakeRoot {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn quota(name: &str, files: &[(&str, &str)]) -> Option<u64> {
        let root = FakeRoot::new(name);
        let root = files.iter().fold(root, |root, (path, text)| root.with(path, text));
        root.read(Some(&[0])).quota_milli
    }

    #[test]
    fn siblings_caches_nodes_and_the_mask_are_read() {
        let root = FakeRoot::new("topology")
            .with("sys/devices/system/cpu/online", "1-2,5-6")
            .with("sys/devices/system/node/node0/cpulist", "1,5")
            .with("sys/devices/system/node/node3/cpulist", "2,6")
            .with("sys/devices/system/node/has_cpu", "0,3")
            .cpu(1, 0, "1,5", "1,5")
            .cpu(5, 0, "1,5", "1,5")
            .cpu(2, 1, "2,6", "2,6")
            .cpu(6, 1, "2,6", "2,6");
        let cpu = |id, allowed, package, node, core| Cpu {
            id,
            allowed,
            package,
            domain: Domain { node, cache: core },
            core,
        };
        assert_eq!(
            root.read(Some(&[1, 2, 6])).cpus,
            [
                cpu(1, true, 0, 0, 1),
                cpu(2, true, 1, 3, 2),
                cpu(5, false, 0, 0, 1),
                cpu(6, true, 1, 3, 2)
            ]
        );
        assert!(root.read(None).cpus.iter().all(|cpu| cpu.allowed));
    }

    #[test]
    fn without_sysfs_every_allowed_cpu_is_a_core() {
        let topology = FakeRoot::new("bare").read(Some(&[3, 8]));
        let ids: Vec<_> = topology.cpus.iter().map(|cpu| (cpu.id, cpu.core)).collect();
        assert_eq!(ids, [(3, 3), (8, 8)]);
        assert_eq!((topology.parallelism(), topology.is_throttled()), (2, false));
        assert_eq!(FakeRoot::new("nothing").read(None).parallelism(), 1);
    }

    #[test]
    fn the_tightest_limit_up_to_the_root_counts() {
        let own = ("proc/self/cgroup", "0::/a/b");
        let max = |path, text| (path, text);
        assert_eq!(quota("v2-none", &[own, max("sys/fs/cgroup/a/b/cpu.max", "max 100000")]), None);
        assert_eq!(
            quota("v2-own", &[own, max("sys/fs/cgroup/a/b/cpu.max", "150000 100000")]),
            Some(1500)
        );
        assert_eq!(
            quota(
                "v2-above",
                &[
                    own,
                    max("sys/fs/cgroup/a/b/cpu.max", "400000 100000"),
                    max("sys/fs/cgroup/a/cpu.max", "100001 100000"),
                    max("sys/fs/cgroup/cpu.max", "max 100000"),
                ]
            ),
            Some(1001)
        );
        assert_eq!(
            quota("v2-aside", &[own, max("sys/fs/cgroup/unified/a/cpu.max", "50000 100000")]),
            Some(500)
        );
    }

    #[test]
    fn version_1_and_foreign_paths_are_understood() {
        let joint = "12:cpuset:/\n4:cpu,cpuacct:/docker/x\n0::/../other";
        let files =
            |dir: &str| [format!("{dir}/cpu.cfs_quota_us"), format!("{dir}/cpu.cfs_period_us")];
        let own = files("sys/fs/cgroup/cpu,cpuacct/docker/x");
        let top = files("sys/fs/cgroup/cpu");
        let cgroup = ("proc/self/cgroup", joint);
        assert_eq!(
            quota(
                "v1",
                &[
                    cgroup,
                    (&own[0], "-1"),
                    (&own[1], "100000"),
                    (&top[0], "250000"),
                    (&top[1], "100000")
                ]
            ),
            Some(2500)
        );
        assert_eq!(quota("v1-none", &[cgroup, (&own[0], "-1"), (&own[1], "100000")]), None);
        assert_eq!(
            quota("v2-foreign", &[cgroup, ("sys/fs/cgroup/cpu.max", "10000 20000")]),
            Some(500)
        );
        assert_eq!(quota("v1-broken", &[cgroup, (&own[0], "1"), (&own[1], "0")]), None);
    }

    #[test]
    fn the_quota_bounds_the_parallelism() {
        let with = |name, milli| Topology {
            quota_milli: Some(milli),
            ..FakeRoot::new(name).read(Some(&[0, 1, 2, 3]))
        };
        let seen = [500, 1500, 3999, 4000].map(|milli| {
            let topology = with("quota", milli);
            (topology.parallelism(), topology.is_throttled())
        });
        assert_eq!(seen, [(1, true), (2, true), (4, true), (4, false)]);
    }

    #[test]
    fn lists_are_parsed_in_order_and_bounded() {
        assert_eq!(parse_list("0"), Some(vec![0]));
        assert_eq!(parse_list("4-6,1 \n"), Some(vec![4, 5, 6, 1]));
        for bad in ["", "x", "1-", "-1", "3-2", "1,,2", "0-8192", "99999999999999999999"] {
            assert_eq!(parse_list(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn this_machine_has_the_cpus_of_our_mask() {
        let topology = Topology::of_this_machine();
        let allowed: Vec<_> = topology.allowed().map(|cpu| cpu.id).collect();
        assert_eq!(allowed, affinity::allowed().unwrap());
    }
}
