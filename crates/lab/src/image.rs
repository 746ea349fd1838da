//! The kernel and initramfs of a guest: Debian's kernel and a small initramfs, built once and
//! cached. The guest needs no disk image: its root is this machine's, read-only over 9p, below a
//! tmpfs. If it cannot run this machine's programs, its root is the initramfs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    LabError,
    arch::Arch,
    cpio::Archive,
    modules::{closure, depends, find_modules, modules_dep},
    package::Apt,
};

/// Default directory of cached kernels.
pub const DEFAULT_CACHE: &str = "/var/cache/netwright/lab";

/// Modules that a guest loads before mounting its root; their dependencies are added automatically.
/// The last two provide socket diagnostics for `ss` and `doctor`.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_console",
    "virtio_net",
    "vmxnet3",
    "virtio_blk",
    "nvme",
    "udp_diag",
    "tcp_diag",
];

/// Further modules for mounting this machine's root.
const ROOT_MODULES: &[&str] = &["9pnet_virtio", "9p", "overlay"];

/// Path of `netwright` in a guest with the initramfs as its root.
pub const GUEST_PROGRAM: &str = "/bin/netwright";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub kernel: PathBuf,
    pub initramfs: PathBuf,
    /// Kernel release, such as `6.1.0-18-amd64`.
    pub release: String,
}

/// The image; if it is not cached, fetches Debian's kernel package and builds the initramfs.
///
/// # Errors
/// A tool is missing, the package cannot be fetched, or the cache cannot be written.
pub fn prepare(
    cache: &Path,
    arch: Arch,
    progress: &mut dyn FnMut(&str),
) -> Result<Image, LabError> {
    let cache = &folder(cache, arch);
    fs::create_dir_all(cache)
        .map_err(|e| LabError::failed(format!("making {}", cache.display()), e))?;
    let _lock = lock(cache)?;
    let release = match cached_release(cache) {
        Some(r) => r,
        None => {
            progress("fetching Debian's kernel package (once, about 70 MB)");
            fetch(cache, arch)?
        }
    };
    let initramfs = cache.join(format!("initramfs-{release}-{}", version(arch)));
    if !initramfs.exists() {
        progress("building the initramfs");
        let bytes = build_initramfs(cache, arch, &release)?;
        write_whole(&initramfs, &bytes)?;
    }
    Ok(Image { kernel: cache.join(format!("vmlinuz-{release}")), initramfs, release })
}

/// The cache directory of an architecture.
pub fn folder(cache: &Path, arch: Arch) -> PathBuf {
    match arch {
        Arch::X86_64 => cache.to_owned(),
        Arch::Aarch64 => cache.join(arch.debian()),
    }
}

/// Writes an initramfs with a program added as [`GUEST_PROGRAM`]: the kernel unpacks concatenated
/// archives. The program is copied, so a rebuild does not affect the guest.
///
/// # Errors
/// A file cannot be read, or `to` cannot be written.
pub fn with_program(initramfs: &Path, program: &Path, to: &Path) -> Result<(), LabError> {
    let read = |path: &Path| {
        fs::read(path).map_err(|e| LabError::failed(format!("reading {}", path.display()), e))
    };
    let mut bytes = read(initramfs)?;
    let mut archive = Archive::default();
    archive.file(GUEST_PROGRAM.trim_start_matches('/'), &read(program)?);
    bytes.extend(archive.finish());
    write_whole(to, &bytes)
}

/// Version of the initramfs' own content (FNV-1a), so that an outdated cache is not used.
fn version(arch: Arch) -> String {
    let text = init(arch).bytes().chain(modules_of(arch).flat_map(str::bytes));
    let hash = text.fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn modules_of(arch: Arch) -> impl Iterator<Item = &'static str> {
    let root = if arch.shares_root() { ROOT_MODULES } else { &[] };
    MODULES.iter().chain(root).copied()
}

const fn init(arch: Arch) -> &'static str {
    if arch.shares_root() { INIT } else { INIT_OF_ITSELF }
}

fn lock(cache: &Path) -> Result<fs::File, LabError> {
    let path = cache.join(".lock");
    let file = fs::File::create(&path)
        .map_err(|e| LabError::failed(format!("opening {}", path.display()), e))?;
    // Waits, since another `lab up` may be fetching the same kernel.
    if let Err(e) = file.lock() {
        return Err(LabError::failed(format!("locking {}", path.display()), e));
    }
    Ok(file)
}

/// The newest cached kernel with all files: the image is renamed into place last.
fn cached_release(cache: &Path) -> Option<String> {
    let mut releases: Vec<String> = fs::read_dir(cache)
        .ok()?
        .filter_map(|e| Some(e.ok()?.file_name().to_str()?.strip_prefix("vmlinuz-")?.to_owned()))
        .filter(|r| cache.join("lib/modules").join(r).join("modules.dep").exists())
        .collect();
    releases.sort();
    releases.pop()
}

/// Fetches the kernel, and other packages that this machine lacks.
fn fetch(cache: &Path, arch: Arch) -> Result<String, LabError> {
    let apt =
        if arch == Arch::here() { Apt::machine() } else { Apt::foreign(arch, &cache.join("apt"))? };
    let find = || apt.dependency(arch.kernel_package(), "linux-image-");
    let package = find().or_else(|e| match e {
        LabError::Missing { .. } => Err(LabError::failed(
            "fetching a kernel",
            format!(
                "this is no Debian; put vmlinuz-RELEASE and lib/modules/RELEASE into {} by hand",
                cache.display()
            ),
        )),
        _ => apt.update().and_then(|()| find()),
    })?;
    let work = cache.join(format!("new-{}", std::process::id()));
    let _ = fs::remove_dir_all(&work);
    let result = keep_busybox(cache, arch, &work, &apt)
        .and_then(|()| keep_kernel(cache, &apt.unpack(&package, &work)?));
    let _ = fs::remove_dir_all(&work);
    result
}

/// Path of busybox for a guest that cannot run this machine's.
fn busybox_of(cache: &Path) -> PathBuf {
    cache.join("busybox")
}

fn keep_busybox(cache: &Path, arch: Arch, work: &Path, apt: &Apt) -> Result<(), LabError> {
    if arch.shares_root() || busybox_of(cache).exists() {
        return Ok(());
    }
    let tree = apt.unpack("busybox-static", work)?;
    let bytes = find_busybox(&tree)?;
    write_whole(&busybox_of(cache), &bytes)
}

fn find_busybox(root: &Path) -> Result<Vec<u8>, LabError> {
    ["bin/busybox", "usr/bin/busybox"].iter().find_map(|p| fs::read(root.join(p)).ok()).ok_or_else(
        || LabError::Missing { tool: "busybox".into(), package: "busybox-static".into() },
    )
}

/// Moves an unpacked kernel into the cache.
fn keep_kernel(cache: &Path, tree: &Path) -> Result<String, LabError> {
    let io = |what: &str| {
        let what = what.to_owned();
        move |e: std::io::Error| LabError::failed(what, e)
    };
    let release = fs::read_dir(tree.join("lib/modules"))
        .ok()
        .and_then(|mut d| d.next()?.ok()?.file_name().into_string().ok())
        .ok_or_else(|| LabError::failed("unpacking the kernel", "it holds no modules"))?;
    let modules = tree.join("lib/modules").join(&release);
    if find_modules(&modules).is_empty() {
        return Err(LabError::failed(
            "unpacking the kernel",
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

fn build_initramfs(cache: &Path, arch: Arch, release: &str) -> Result<Vec<u8>, LabError> {
    let busybox = if arch.shares_root() {
        find_busybox(Path::new("/"))?
    } else {
        let path = busybox_of(cache);
        fs::read(&path).map_err(|e| LabError::failed(format!("reading {}", path.display()), e))?
    };
    let found = find_modules(&cache.join("lib/modules").join(release));
    let content = |name: &str| found.get(name).and_then(|p| fs::read(p).ok());
    let mut ordered = Vec::new();
    for wanted in modules_of(arch) {
        let depends = |n: &str| content(n).map(|m| depends(&m)).unwrap_or_default();
        closure(wanted, &depends, &mut ordered);
    }
    let mut archive = Archive::default();
    for folder in
        ["bin", "dev", "etc", "proc", "sys", "run", "tmp", "host", "over", "root", "modules"]
    {
        archive.folder(folder);
    }
    archive.console();
    archive.file("bin/busybox", &busybox);
    archive.link("bin/sh", "busybox");
    archive.file("init", init(arch).as_bytes());
    let mut order = String::new();
    for name in &ordered {
        // A module without a file is built into the kernel.
        if let Some(bytes) = content(name) {
            archive.file(&format!("modules/{name}.ko"), &bytes);
            order.push_str(name);
            order.push('\n');
        }
    }
    archive.file("modules/order", order.as_bytes());
    Ok(archive.finish())
}

/// The guest's init script. The kernel cmdline names the binary that serves the command ports, and
/// the host's module directory.
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
    netwright.systemd=*) systemd=${word#*=} ;;
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
if [ -n "$systemd" ]; then
  $b cp -a "/root$systemd/." /root/ || echo "lab: $systemd is not laid over the root"
  # What is in /tmp is the host's: a walk through all of it, to remove it from the overlay.
  $b mkdir -p /root/etc/tmpfiles.d /root/etc/systemd/system/multi-user.target.wants
  $b ln -sf /dev/null /root/etc/tmpfiles.d/tmp.conf
  $b cat > /root/etc/systemd/system/netwright-lab.service << END
[Unit]
Description=Commands from the lab
[Service]
Environment=HOME=/root
ExecStart=$agent lab agent
END
  $b ln -sf ../netwright-lab.service /root/etc/systemd/system/multi-user.target.wants/
  echo "lab: $($b cut -d' ' -f1 /root/proc/uptime) s: systemd"
  exec $b switch_root /root /lib/systemd/systemd
fi
echo "lab: $($b cut -d' ' -f1 /root/proc/uptime) s: serving"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
$b chroot /root "$agent" lab agent
echo "lab: the agent ended with $?"
$b poweroff -f
"#;

/// The same for a guest with the initramfs as its root: all programs are busybox's, plus
/// `netwright`.
const INIT_OF_ITSELF: &str = r#"#!/bin/sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r m; do insmod /modules/$m.ko || echo "lab: module $m not loaded"; done < /modules/order
for word in $(cat /proc/cmdline); do
  case $word in netwright.host=*) host=${word#*=} ;; esac
done
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tracefs trace /sys/kernel/tracing
mount -t debugfs debug /sys/kernel/debug
mount -t securityfs security /sys/kernel/security
mount -t cgroup2 cgroup /sys/fs/cgroup
hostname "${host:-server}"
echo "lab: $(cut -d' ' -f1 /proc/uptime) s: serving"
netwright lab agent
echo "lab: the agent ended with $?"
poweroff -f
"#;
