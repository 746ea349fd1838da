//! `/proc/PID/mountinfo`. **Source**: proc_pid_mountinfo(5), `show_mountinfo` in the kernel's
//! `fs/proc_namespace.c`.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The folder of the file system that is mounted.
    pub root: String,
    pub mount_point: String,
    /// `cgroup`, `cgroup2`, `proc`, …
    pub fs_type: String,
    pub source: String,
    /// Options of the file system; for `cgroup` its controllers.
    pub super_options: Vec<String>,
}

/// The mounts, in the kernel's order; a line that cannot be understood is passed over.
pub fn parse(bytes: &[u8]) -> Vec<Mount> {
    bytes.split(|&b| b == b'\n').filter_map(mount).collect()
}

/// The mounts of file systems with a type that begins like this. The others, of which a host with
/// containers has thousands, are not taken apart.
pub fn of_types(bytes: &[u8], begin: &[u8]) -> Vec<Mount> {
    let fits = |line: &&[u8]| {
        let mut words = line.split(|&b| b == b' ').skip(5).skip_while(|w| *w != b"-").skip(1);
        words.next().is_some_and(|fs_type| fs_type.starts_with(begin))
    };
    bytes.split(|&b| b == b'\n').filter(fits).filter_map(mount).collect()
}

fn mount(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|&b| b == b' ');
    // id, parent, major:minor
    let root = unescaped(words.by_ref().nth(3)?);
    let mount_point = unescaped(words.next()?);
    // Mount options and optional fields run up to a lone hyphen.
    words.by_ref().find(|w| *w == b"-")?;
    let fs_type = unescaped(words.next()?);
    let source = unescaped(words.next()?);
    let options = unescaped(words.next()?);
    Some(Mount {
        root,
        mount_point,
        fs_type,
        source,
        super_options: options.split(',').map(str::to_owned).collect(),
    })
}

/// Octal escapes back to what they stand for (`\040` is a blank).
fn unescaped(word: &[u8]) -> String {
    let mut out = Vec::with_capacity(word.len());
    let mut i = 0;
    while let Some(&b) = word.get(i) {
        let octal = word
            .get(i + 1..i + 4)
            .filter(|_| b == b'\\')
            .and_then(|d| std::str::from_utf8(d).ok())
            .and_then(|d| u8::from_str_radix(d, 8).ok());
        match octal {
            Some(byte) => {
                out.push(byte);
                i += 4;
            }
            None => {
                out.push(b);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_cgroup_versions_and_escapes() {
        let text: &[u8] =
            b"36 25 0:30 / /sys/fs/cgroup/cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset\n\
              30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate\n\
              broken line\n\
              99 25 0:40 /a\\040b /mnt/x\\134y rw - ext4 /dev/vda rw\n\
              98 25 0:41 /-/a /mnt/- rw - cgroupless x rw\n\
              97 25 0:42 / /mnt/b rw,cgroup - tmpfs cgroup rw\n";
        let m = parse(text);
        assert_eq!(m.len(), 5);
        let of = |begin: &[u8]| of_types(text, begin);
        assert_eq!(of(b"cgroup"), [m[0].clone(), m[1].clone(), m[3].clone()]);
        assert_eq!((of(b"ext"), of(b"xfs")), (vec![m[2].clone()], vec![]));
        assert_eq!(m[0].fs_type, "cgroup");
        assert_eq!(m[0].super_options, ["rw", "cpuset"]);
        assert_eq!(
            (m[1].mount_point.as_str(), m[1].fs_type.as_str()),
            ("/sys/fs/cgroup", "cgroup2")
        );
        assert_eq!((m[2].root.as_str(), m[2].mount_point.as_str()), ("/a b", "/mnt/x\\y"));
    }
}
