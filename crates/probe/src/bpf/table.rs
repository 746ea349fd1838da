//! Reads whole hash tables in few system calls: a call per element costs as much as its data.

use std::{
    collections::HashMap,
    hash::Hash,
    io,
    os::fd::{AsFd, AsRawFd},
};

use aya::{
    Pod,
    maps::{self, Map, MapData},
};

use super::Object;

/// `BPF_MAP_LOOKUP_BATCH` and `BPF_MAP_LOOKUP_AND_DELETE_BATCH` of the kernel's `bpf.h`, for
/// hash tables since Linux 5.6.
const LOOKUP: libc::c_long = 24;
const LOOKUP_AND_DELETE: libc::c_long = 25;

/// Elements of one call at first; the kernel asks for more where one bucket holds more.
const ROOM: usize = 2048;
const MOST: usize = 1 << 20;

/// `ENOTSUPP`, which is the kernel's own and not the C library's.
const NOT_SUPPORTED: i32 = 524;

/// `union bpf_attr` for both.
#[repr(C, align(8))]
struct Request {
    from: u64,
    next: u64,
    keys: u64,
    values: u64,
    count: u32,
    fd: u32,
    flags: [u64; 2],
}

/// All elements of a hash table.
///
/// # Errors
/// There is no such table, or the kernel refuses.
pub fn read<K: Pod + Eq + Hash, V: Pod>(object: &Object, name: &str) -> io::Result<HashMap<K, V>> {
    match batches(fd::<K, V>(object, name)?, LOOKUP) {
        Err(e) if is_old(&e) => one_by_one(object, name),
        all => all,
    }
}

/// The same, and leaves the table empty.
///
/// # Errors
/// As for [`read`].
pub fn drain<K: Pod + Eq + Hash, V: Pod>(
    object: &mut Object,
    name: &str,
) -> io::Result<HashMap<K, V>> {
    match batches(fd::<K, V>(object, name)?, LOOKUP_AND_DELETE) {
        Err(e) if is_old(&e) => {}
        all => return all,
    }
    let all: HashMap<K, V> = one_by_one(object, name)?;
    let mut map: maps::HashMap<&mut MapData, K, V> = object.map_mut(name)?;
    for key in all.keys() {
        map.remove(key).map_err(io::Error::other)?;
    }
    Ok(all)
}

/// A kernel that does not know the calls, or not for this kind of table.
fn is_old(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP | NOT_SUPPORTED))
}

fn one_by_one<K: Pod + Eq + Hash, V: Pod>(
    object: &Object,
    name: &str,
) -> io::Result<HashMap<K, V>> {
    let map: maps::HashMap<&MapData, K, V> = object.map(name)?;
    map.iter().map(|element| element.map_err(io::Error::other)).collect()
}

/// What of a table is to be had in batches.
fn batches<K: Pod + Eq + Hash, V: Pod>(fd: i32, call: libc::c_long) -> io::Result<HashMap<K, V>> {
    let mut all = HashMap::new();
    let mut room = ROOM;
    // The kernel's mark of how far it came; of a hash table, the number of a bucket.
    let (mut from, mut next) = (0_u64, 0_u64);
    let mut first = true;
    loop {
        // SAFETY: `Pod` are types of which any bits are valid, zeros among them.
        let (mut keys, mut values): (Vec<K>, Vec<V>) =
            unsafe { (vec![std::mem::zeroed(); room], vec![std::mem::zeroed(); room]) };
        let mut request = Request {
            from: if first { 0 } else { &raw const from as u64 },
            next: &raw mut next as u64,
            keys: keys.as_mut_ptr() as u64,
            values: values.as_mut_ptr() as u64,
            count: u32::try_from(room).unwrap_or(u32::MAX),
            fd: u32::try_from(fd).unwrap_or(u32::MAX),
            flags: [0; 2],
        };
        // SAFETY: the kernel reads the request and the mark, and writes at most `count` keys and
        // values of the table's sizes, which are checked where the table is opened, and the next
        // mark; all of them outlive the call.
        let done =
            unsafe { libc::syscall(libc::SYS_bpf, call, &raw mut request, size_of::<Request>()) };
        let error = (done != 0).then(io::Error::last_os_error);
        match error.as_ref().and_then(io::Error::raw_os_error) {
            Some(libc::ENOSPC) if room < MOST => {
                room *= 2;
                continue;
            }
            None | Some(libc::ENOENT) => {}
            Some(_) => return Err(error.unwrap_or_else(|| io::Error::other("bpf"))),
        }
        let count = (request.count as usize).min(room);
        all.extend(keys.into_iter().zip(values).take(count));
        if error.is_some() {
            return Ok(all);
        }
        (from, first) = (next, false);
    }
}

/// The descriptor of a table with keys and values of these sizes.
fn fd<K: Pod, V: Pod>(object: &Object, name: &str) -> io::Result<i32> {
    let _checked: maps::HashMap<&MapData, K, V> = object.map(name)?;
    match object.any_map(name) {
        Some(Map::HashMap(data) | Map::LruHashMap(data)) => Ok(data.fd().as_fd().as_raw_fd()),
        _ => Err(io::Error::other(format!("map {name} is of another kind"))),
    }
}
