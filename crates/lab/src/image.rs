//! What a guest boots: Debian's kernel and a small initramfs, built once and cached. The guest
//! needs no disk image: its root is this machine's own, read-only over 9p, under a tmpfs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use crate::{LabError, cpio::Archive, tool};

/// Where kernels are cached.
pub const DEFAULT_CACHE: &str = "/var/cache/netwright/lab";

/// The package that always depends on Debian's newest kernel.
const KERNEL_PACKAGE: &str = "linux-image-amd64";

/// Modules a guest loads before its root is there; what they depend on is found by itself.
const MODULES: &[&str] = &[
    "virtio_pci",
    "9pnet_virtio",
    "9p",
    "overlay",
    "virtio_console",
    "virtio_net",
    "vmxnet3",
    "virtio_blk",
    "nvme",
];

/// A bootable pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Kernel.
    pub kernel: PathBuf,
    /// Initramfs.
    pub initramfs: PathBuf,
    /// Kernel release, such as `6.1.0-18-amd64`.
    pub release: String,
}

/// Gives the image, fetching Debian's kernel by its package name and building the initramfs
/// when the cache has none.
///
/// # Errors
/// When a tool is missing, the package cannot be had, or the cache cannot be written.
pub fn prepare(cache: &Path, progress: &mut dyn FnMut(&str)) -> Result<Image, LabError> {
    fs::create_dir_all(cache)
        .map_err(|e| LabError::failed(format!("making {}", cache.display()), e))?;
    let _lock = lock(cache)?;
    let release = match cached_release(cache) {
        Some(r) => r,
        None => {
            progress("fetching Debian's kernel package (once, about 70 MB)");
            fetch_kernel(cache)?
        }
    };
    let initramfs = cache.join(format!("initramfs-{release}-{}", version()));
    if !initramfs.exists() {
        progress("building the initramfs");
        let bytes = build_initramfs(&cache.join("lib/modules").join(&release))?;
        write_whole(&initramfs, &bytes)?;
    }
    Ok(Image { kernel: cache.join(format!("vmlinuz-{release}")), initramfs, release })
}

/// Changes whenever the initramfs' own text does, so that an old cache is not used (FNV-1a).
fn version() -> String {
    let text = INIT.bytes().chain(MODULES.iter().flat_map(|m| m.bytes()));
    let hash = text.fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn lock(cache: &Path) -> Result<fs::File, LabError> {
    let path = cache.join(".lock");
    let file = fs::File::create(&path)
        .map_err(|e| LabError::failed(format!("opening {}", path.display()), e))?;
    // Waits: another `lab up` may be fetching the very same kernel.
    // SAFETY: the descriptor is open for the length of the call.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 {
        return Err(LabError::failed(
            format!("locking {}", path.display()),
            std::io::Error::last_os_error(),
        ));
    }
    Ok(file)
}

/// The newest kernel whose files are all there: the image is renamed into place last.
fn cached_release(cache: &Path) -> Option<String> {
    let mut releases: Vec<String> = fs::read_dir(cache)
        .ok()?
        .filter_map(|e| Some(e.ok()?.file_name().to_str()?.strip_prefix("vmlinuz-")?.to_owned()))
        .filter(|r| cache.join("lib/modules").join(r).join("modules.dep").exists())
        .collect();
    releases.sort();
    releases.pop()
}

fn fetch_kernel(cache: &Path) -> Result<String, LabError> {
    let package = kernel_package().or_else(|_| {
        tool::run("apt-get", &["update", "-q"])?;
        kernel_package()
    })?;
    let work = cache.join(format!("new-{}", std::process::id()));
    let _ = fs::remove_dir_all(&work);
    let result = unpack_kernel(cache, &work, &package);
    let _ = fs::remove_dir_all(&work);
    result
}

fn kernel_package() -> Result<String, LabError> {
    let text = tool::run("apt-cache", &["depends", KERNEL_PACKAGE]).map_err(|e| match e {
        LabError::Missing { .. } => LabError::failed(
            "fetching a kernel",
            format!("this is no Debian; put vmlinuz-RELEASE and lib/modules/RELEASE into {DEFAULT_CACHE} by hand"),
        ),
        other => other,
    })?;
    text.lines()
        .filter_map(|l| l.trim().strip_prefix("Depends: "))
        .find(|p| p.starts_with("linux-image-"))
        .map(str::to_owned)
        .ok_or_else(|| {
            LabError::failed(
                "fetching a kernel",
                format!("{KERNEL_PACKAGE} names no kernel; is apt's package list there?"),
            )
        })
}

fn unpack_kernel(cache: &Path, work: &Path, package: &str) -> Result<String, LabError> {
    let io = |what: &str| {
        let what = what.to_owned();
        move |e: std::io::Error| LabError::failed(what, e)
    };
    fs::create_dir_all(work).map_err(io("making a folder in the cache"))?;
    let out = tool::command("apt-get")
        .args(["download", "-q", package])
        .current_dir(work)
        .output()
        .map_err(io("running apt-get"))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        let last = said.lines().next_back().unwrap_or("no message");
        return Err(LabError::failed(format!("apt-get download {package}"), last));
    }
    let deb = fs::read_dir(work)
        .map_err(io("reading the cache"))?
        .filter_map(|e| Some(e.ok()?.path()))
        .find(|p| p.extension().is_some_and(|x| x == "deb"))
        .ok_or_else(|| {
            LabError::failed(format!("apt-get download {package}"), "it left no package")
        })?;
    let tree = work.join("tree");
    let paths = [deb.to_string_lossy(), tree.to_string_lossy()];
    tool::run("dpkg-deb", &["-x", &paths[0], &paths[1]])?;
    let release = fs::read_dir(tree.join("lib/modules"))
        .ok()
        .and_then(|mut d| d.next()?.ok()?.file_name().into_string().ok())
        .ok_or_else(|| LabError::failed(format!("unpacking {package}"), "it holds no modules"))?;
    let modules = tree.join("lib/modules").join(&release);
    if find_modules(&modules).is_empty() {
        return Err(LabError::failed(
            format!("unpacking {package}"),
            "its modules are compressed, which the lab's initramfs does not understand",
        ));
    }
    write_whole(&modules.join("modules.dep"), modules_dep(&modules).as_bytes())?;
    let place = cache.join("lib/modules").join(&release);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(cache.join("lib/modules")).map_err(io("making a folder in the cache"))?;
    fs::rename(&modules, &place).map_err(io("moving the modules into the cache"))?;
    fs::rename(
        tree.join("boot").join(format!("vmlinuz-{release}")),
        cache.join(format!("vmlinuz-{release}")),
    )
    .map_err(io("moving the kernel into the cache"))?;
    Ok(release)
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let new = path.with_extension("new");
    fs::write(&new, bytes)
        .and_then(|()| fs::rename(&new, path))
        .map_err(|e| LabError::failed(format!("writing {}", path.display()), e))
}

/// Modules by name (`-` and `_` are one), with their paths.
fn find_modules(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(folder) = todo.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.filter_map(|e| Some(e.ok()?.path())) {
            if path.is_dir() && !path.is_symlink() {
                todo.push(path);
            } else if let Some(name) =
                path.file_name().and_then(|n| n.to_str()?.strip_suffix(".ko"))
            {
                found.insert(name.replace('-', "_"), path.clone());
            }
        }
    }
    found
}

/// What a module says it depends on, in its `.modinfo` section.
fn depends(module: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let Some(at) = module.windows(key.len()).position(|w| w == key) else { return Vec::new() };
    let rest = module.get(at + key.len()..).unwrap_or_default();
    let end = rest.iter().position(|&b| b == 0).unwrap_or(0);
    String::from_utf8_lossy(rest.get(..end).unwrap_or_default())
        .split(',')
        .filter(|d| !d.is_empty())
        .map(|d| d.replace('-', "_"))
        .collect()
}

/// `modules.dep` as depmod writes it, so that `modprobe` works in the guest.
fn modules_dep(folder: &Path) -> String {
    let modules = find_modules(folder);
    let relative = |name: &str| {
        modules.get(name).and_then(|p| p.strip_prefix(folder).ok()).map(|p| p.display().to_string())
    };
    let direct: BTreeMap<&String, Vec<String>> = modules
        .iter()
        .map(|(name, path)| (name, depends(&fs::read(path).unwrap_or_default())))
        .collect();
    let mut text = String::new();
    for name in modules.keys() {
        let mut ordered = Vec::new();
        closure(name, &|n| direct.get(&n.to_owned()).cloned().unwrap_or_default(), &mut ordered);
        // modprobe loads from the right.
        let line: Vec<String> = ordered.iter().rev().skip(1).filter_map(|n| relative(n)).collect();
        text.push_str(&format!("{}: {}\n", relative(name).unwrap_or_default(), line.join(" ")));
    }
    text
}

/// What `name` needs, each after what it needs itself, `name` last.
fn closure(name: &str, depends: &dyn Fn(&str) -> Vec<String>, ordered: &mut Vec<String>) {
    fn visit(
        name: &str,
        depends: &dyn Fn(&str) -> Vec<String>,
        seen: &mut BTreeSet<String>,
        ordered: &mut Vec<String>,
    ) {
        if ordered.iter().any(|o| o == name) || !seen.insert(name.to_owned()) {
            return;
        }
        for d in depends(name) {
            visit(&d, depends, seen, ordered);
        }
        ordered.push(name.to_owned());
    }
    visit(name, depends, &mut BTreeSet::new(), ordered);
}

fn build_initramfs(modules: &Path) -> Result<Vec<u8>, LabError> {
    let busybox =
        ["/bin/busybox", "/usr/bin/busybox"].iter().find_map(|p| fs::read(p).ok()).ok_or_else(
            || LabError::Missing { tool: "busybox".into(), package: "busybox-static".into() },
        )?;
    let found = find_modules(modules);
    let content = |name: &str| found.get(name).and_then(|p| fs::read(p).ok());
    let mut ordered = Vec::new();
    for wanted in MODULES {
        let depends = |n: &str| content(n).map(|m| depends(&m)).unwrap_or_default();
        closure(wanted, &depends, &mut ordered);
    }
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "proc", "sys", "host", "over", "root", "modules"] {
        archive.folder(folder);
    }
    archive.console();
    archive.file("bin/busybox", &busybox);
    archive.link("bin/sh", "busybox");
    archive.file("init", INIT.as_bytes());
    let mut order = String::new();
    for name in &ordered {
        // Built into the kernel where there is no file.
        if let Some(bytes) = content(name) {
            archive.file(&format!("modules/{name}.ko"), &bytes);
            order.push_str(name);
            order.push('\n');
        }
    }
    archive.file("modules/order", order.as_bytes());
    Ok(archive.finish())
}

/// The guest's first program. The boot line says which binary serves the command ports and
/// where the modules are on the host.
const INIT: &str = r#"#!/bin/sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
while read -r m; do $b insmod /modules/$m.ko || echo "lab: module $m not loaded"; done < /modules/order
for word in $($b cat /proc/cmdline); do
  case $word in
    netwright.agent=*) agent=${word#*=} ;;
    netwright.modules=*) modules=${word#*=} ;;
    netwright.host=*) host=${word#*=} ;;
  esac
done
$b mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=512000 host /host || echo "lab: no root over 9p"
$b mount -t tmpfs -o mode=755 over /over
$b mkdir /over/upper /over/work
$b mount -t overlay -o lowerdir=/host,upperdir=/over/upper,workdir=/over/work root /root || echo "lab: no overlay"
for f in proc sys dev; do $b mount --move /$f /root/$f; done
$b mount -t tmpfs -o mode=755 run /root/run
$b mount -t tmpfs -o mode=1777 tmp /root/tmp.lab 2>/dev/null
$b mkdir -p /root/dev/pts /root/dev/shm /root/run/lock
$b mount -t devpts pts /root/dev/pts
$b mount -t tmpfs shm /root/dev/shm
$b mount -t tracefs trace /root/sys/kernel/tracing
$b mount -t debugfs debug /root/sys/kernel/debug
$b mount -t cgroup2 cgroup /root/sys/fs/cgroup
release=$($b uname -r)
if [ -n "$modules" ]; then
  $b mkdir -p /root/lib/modules/$release
  $b mount --bind /root$modules/$release /root/lib/modules/$release
fi
$b hostname "${host:-server}"
echo "lab: $($b cut -d' ' -f1 /root/proc/uptime) s: serving"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
$b chroot /root "$agent" lab agent
echo "lab: the agent ended with $?"
$b poweroff -f
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_says_what_it_needs() {
        assert_eq!(depends(b"xx\0license=GPL\0depends=a,b-c\0name=d\0"), ["a", "b_c"]);
        assert!(depends(b"xx\0depends=\0").is_empty());
        assert!(depends(b"").is_empty());
    }

    #[test]
    fn what_is_needed_comes_first_and_a_circle_ends() {
        let depends = |n: &str| match n {
            "a" => vec!["b".to_owned(), "c".to_owned()],
            "b" => vec!["c".to_owned()],
            "c" => vec!["a".to_owned()],
            _ => vec![],
        };
        let mut ordered = Vec::new();
        closure("a", &depends, &mut ordered);
        assert_eq!(ordered, ["c", "b", "a"]);
    }
}
