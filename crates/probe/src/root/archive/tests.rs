use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use lzma_rust2::{XzOptions, XzWriter};
use proptest::prelude::*;
use tar::{EntryType, Header};

use super::*;

/// One raw member, with a right checksum whatever else is wrong.
fn member(name: &[u8], kind: EntryType, link: &[u8], size: u64, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    let bytes = header.as_mut_bytes();
    bytes[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
    bytes[157..157 + link.len()].copy_from_slice(link);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(size);
    header.set_cksum();
    let mut all = header.as_bytes().to_vec();
    all.extend(content);
    all.resize(all.len().next_multiple_of(512), 0);
    all
}

fn file(name: &str, content: &[u8]) -> Vec<u8> {
    member(name.as_bytes(), EntryType::Regular, b"", content.len() as u64, content)
}

fn link(name: &str, target: &str) -> Vec<u8> {
    member(name.as_bytes(), EntryType::Symlink, target.as_bytes(), 0, b"")
}

fn tar(members: &[Vec<u8>]) -> Vec<u8> {
    let mut all = members.concat();
    all.resize(all.len() + 1024, 0);
    all
}

fn open(bytes: &[u8]) -> Result<ArchiveRoot, String> {
    ArchiveRoot::read(bytes, &Limits::default())
}

fn refused(bytes: &[u8]) -> String {
    let why = open(bytes).unwrap_err();
    assert!(!why.contains('\n') && why.len() < 300, "{why:?}");
    why
}

#[test]
fn reads_files_links_and_listings_compressed_or_not() {
    let plain = tar(&[
        file("./proc/stat", b"cpu0 1\n"),
        link("sys/class/net/eth0", "../../devices/pci/net/eth0"),
        file("/sys/devices/pci/net/eth0/mtu", b"1500\n"),
        file("sys/devices/pci-x/a", b""),
        link("sys/top", "/sys/devices"),
    ]);
    for bytes in [zstd::encode_all(&plain[..], 1).unwrap(), plain] {
        let a = open(&bytes).unwrap();
        assert_eq!(a.read_file("/sys/class/net/eth0/mtu"), Ok(&b"1500\n"[..]));
        assert_eq!(a.read_file("/sys/top/pci/net/../net/./eth0/mtu"), Ok(&b"1500\n"[..]));
        assert_eq!(a.resolve("/sys/class/net/eth0").unwrap(), "/sys/devices/pci/net/eth0");
        assert_eq!(a.link("/sys/class/net/eth0").unwrap(), "../../devices/pci/net/eth0");
        assert_eq!(a.entries("/sys").unwrap(), ["class", "devices", "top"]);
        assert_eq!(a.entries("/sys/devices").unwrap(), ["pci", "pci-x"]);
        assert_eq!(a.entries("/").unwrap(), ["proc", "sys"]);
        assert_eq!(a.read_file("/proc/stat/x"), Err(libc::ENOTDIR));
        assert_eq!(a.read_file("/proc"), Err(libc::EISDIR));
        assert_eq!(a.read_file("/nope"), Err(libc::ENOENT));
        assert_eq!(a.link("/proc/stat"), Err(libc::EINVAL));
        assert_eq!(a.entries("/proc/stat"), Err(libc::ENOTDIR));
    }
}

#[test]
fn no_link_leads_outside_and_a_loop_ends() {
    let a = open(&tar(&[
        link("a", "../../../../etc/passwd"),
        link("b", "/etc/passwd"),
        link("loop1", "loop2"),
        link("loop2", "loop1"),
        link("self", "self/self"),
        file("etc/passwd", b"inside"),
        link("ns", "net:[4026531840]"),
    ]))
    .unwrap();
    assert_eq!(a.read_file("/a"), Ok(&b"inside"[..]));
    assert_eq!(a.read_file("/b"), Ok(&b"inside"[..]));
    assert_eq!(a.read_file("/../../etc/passwd"), Ok(&b"inside"[..]));
    assert_eq!(a.read_file("/loop1"), Err(libc::ELOOP));
    assert_eq!(a.read_file("/self"), Err(libc::ELOOP));
    assert_eq!(a.resolve("/ns"), Ok("/ns".into()), "an identity, not a path");
}

#[test]
fn refuses_what_is_no_snapshot_in_one_line() {
    assert_eq!(refused(b""), "it is empty");
    refused(b"\x1f\x8b\x08\x00abc");
    assert_eq!(refused(b"BZh91AY"), "it is bzip2; unpack it, and give the folder or the .tar");
    assert_eq!(refused(b"garbage"), "it is truncated");
    assert!(refused(&[b'x'; 2000]).contains("no tar"));
    assert_eq!(refused(&[0; 1024]), "it holds nothing");
    assert_eq!(refused(&[0x28, 0xb5, 0x2f, 0xfd]), "it is truncated");
    refused(&[0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff, 0xff, 0xff, 0, 0]);
}

fn xz(bytes: &[u8], dictionary: u32) -> Vec<u8> {
    let mut options = XzOptions::with_preset(1);
    options.lzma_options.dict_size = dictionary;
    let mut to = XzWriter::new(vec![], options).unwrap();
    to.write_all(bytes).unwrap();
    to.finish().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut to = GzEncoder::new(vec![], Compression::fast());
    to.write_all(bytes).unwrap();
    to.finish().unwrap()
}

#[test]
fn a_support_archive_is_read_without_its_top_folder_and_its_compression() {
    let whole = tar(&[
        member(b"sos-db1-2026/", EntryType::Directory, b"", 0, b""),
        file("sos-db1-2026/proc/uptime", b"100.00 50.00\n"),
        link("sos-db1-2026/sys/class/net/eth0", "../../devices/eth0"),
        file("sos-db1-2026/sys/devices/eth0/mtu", b"1500\n"),
    ]);
    for packed in [whole.clone(), gzip(&whole), xz(&whole, 1 << 16)] {
        let a = open(&packed).unwrap();
        assert_eq!(a.entries("/").unwrap(), ["proc", "sys"]);
        assert_eq!(a.read_file("/sys/class/net/eth0/mtu"), Ok(&b"1500\n"[..]));
    }
    // Two hosts, or a folder that is no host: unchanged.
    let two = open(&tar(&[file("a/proc/stat", b""), file("b/proc/stat", b"")])).unwrap();
    assert_eq!(two.entries("/").unwrap(), ["a", "b"]);
    assert_eq!(open(&tar(&[file("a/b", b"")])).unwrap().entries("/").unwrap(), ["a"]);
}

#[test]
fn packed_by_others_it_is_as_bounded() {
    let bomb = tar(&[file("a", &vec![0; 3 << 20])]);
    let limits = Limits { total_bytes: 1 << 20, ..Limits::default() };
    for packed in [gzip(&bomb), xz(&bomb, 1 << 16)] {
        assert!(packed.len() < 100_000, "{} bytes", packed.len());
        let why = ArchiveRoot::read(&packed[..], &limits).unwrap_err();
        assert!(why.contains("more than"), "{why}");
        for end in (6..packed.len()).step_by(97) {
            refused(&packed[..end]);
        }
    }
    // A dictionary is memory before anything is unpacked.
    refused(&xz(b"small", 1 << 30));
}

#[test]
fn a_truncated_archive_is_refused_wherever_it_was_cut() {
    let whole = tar(&[file("a", &[b'x'; 700]), file("b", b"y")]);
    // Also between two members, where a lenient reader sees a whole archive.
    for end in [1, 511, 512, 600, 1535, 1536, 2048, whole.len() - 1024] {
        assert_eq!(refused(&whole[..end]), "it is truncated", "cut at {end}");
    }
    let packed = zstd::encode_all(&whole[..], 1).unwrap();
    for end in 4..packed.len() {
        refused(&packed[..end]);
    }
}

#[test]
fn paths_stay_inside() {
    for bad in ["../x", "a/../../x", "/..", "a/.."] {
        assert!(refused(&tar(&[file(bad, b"")])).contains("unsafe path"), "{bad}");
    }
    let a =
        open(&tar(&[file("//a//./b", b"1"), member(b"bad\xff", EntryType::Regular, b"", 0, b"")]));
    let a = a.unwrap();
    assert_eq!(a.read_file("/a/b"), Ok(&b"1"[..]));
    assert_eq!(a.entries("/").unwrap(), ["a"], "a name that is no text is not there");
}

#[test]
fn the_last_of_two_counts_and_a_file_may_not_become_a_folder() {
    let a = open(&tar(&[file("a", b"1"), file("a", b"2"), file("a/b", b"3")])).unwrap();
    assert_eq!(a.read_file("/a"), Ok(&b"2"[..]));
    assert_eq!(a.read_file("/a/b"), Err(libc::ENOTDIR));
}

#[test]
fn devices_and_pipes_are_not_there_and_hard_links_stay_inside() {
    let a = open(&tar(&[
        member(b"null", EntryType::Char, b"", 0, b""),
        member(b"disk", EntryType::Block, b"", 0, b""),
        member(b"pipe", EntryType::Fifo, b"", 0, b""),
        file("proc/stat", b"1"),
        member(b"other", EntryType::Link, b"proc/stat", 0, b""),
        member(b"gone", EntryType::Link, b"nowhere", 0, b""),
    ]))
    .unwrap();
    assert_eq!(a.entries("/").unwrap(), ["gone", "other", "proc"]);
    assert_eq!(a.read_file("/other"), Ok(&b"1"[..]));
    assert_eq!(a.read_file("/gone"), Err(libc::ENOENT));
    let climb = tar(&[member(b"x", EntryType::Link, b"../etc/shadow", 0, b"")]);
    assert!(refused(&climb).contains("unsafe hard link"));
    assert!(refused(&tar(&[member(b"x", EntryType::Link, b"x", 0, b"")])).contains("hard link"));
}

#[test]
fn a_size_that_is_a_lie_costs_nothing() {
    let lie = member(b"big", EntryType::Regular, b"", 200 << 20, b"only this");
    assert_eq!(refused(&lie), "it is truncated");
    let lie = member(b"big", EntryType::Regular, b"", 1 << 40, b"only this");
    assert!(refused(&lie).contains("a file of 1099511627776 bytes"));
    let skipped = member(b"dir", EntryType::Directory, b"", 1 << 50, b"");
    assert_eq!(refused(&skipped), "it is truncated");
    let mut negative = member(b"neg", EntryType::Regular, b"", 0, b"");
    negative[124..136].fill(0xff);
    let mut h = Header::from_byte_slice(&negative[..512]).clone();
    h.set_cksum();
    refused(h.as_bytes());
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let limits = Limits { total_bytes: 1 << 20, ..Limits::default() };
    let member = file("zeros", &vec![0; 600 << 10]);
    let two = zstd::encode_all(&tar(&[member.clone(), member])[..], 1).unwrap();
    assert!(two.len() < 2000, "that is the point of a bomb");
    let why = ArchiveRoot::read(&two[..], &limits).unwrap_err();
    assert_eq!(why, "unpacks to more than 1048576 bytes");
    // What is skipped counts too: here a folder with content.
    let limits = Limits { total_bytes: 1 << 20, entries: 10, ..Limits::default() };
    let fat = super::tests::member(b"d", EntryType::Directory, b"", 4 << 20, &vec![0; 4 << 20]);
    let why = ArchiveRoot::read(&tar(&[fat])[..], &limits).unwrap_err();
    assert_eq!(why, "it unpacks to more than is allowed");
}

#[test]
fn entries_and_paths_are_bounded() {
    let limits = Limits { entries: 3, ..Limits::default() };
    let why = ArchiveRoot::read(&tar(&[file("a/b/c/d", b"")])[..], &limits).unwrap_err();
    assert_eq!(why, "more than 3 entries");
    let limits = Limits { path_bytes: 10, ..Limits::default() };
    let why = ArchiveRoot::read(&tar(&[file("a/b/c/d", b"")])[..], &limits).unwrap_err();
    assert_eq!(why, "paths of more than 10 bytes");
}

fn long_name(name: &[u8], size: u64) -> Vec<u8> {
    member(b"././@LongLink", EntryType::GNULongName, b"", size, name)
}

fn pax(record: &[u8]) -> Vec<u8> {
    member(b"pax", EntryType::XHeader, b"", record.len() as u64, record)
}

#[test]
fn long_names_are_read_and_bounded() {
    let name = format!("deep/{}", "n".repeat(300));
    let a = open(&tar(&[long_name(name.as_bytes(), 305), file("short", b"1")])).unwrap();
    assert_eq!(a.read_file(&format!("/{name}")), Ok(&b"1"[..]));
    let a = open(&tar(&[pax(b"16 path=by/pax1\n"), file("short", b"1")])).unwrap();
    assert_eq!(a.read_file("/by/pax1"), Ok(&b"1"[..]));
    let a = open(&tar(&[pax(b"18 linkpath=/there\n"), link("l", "x"), file("z", b"")]));
    assert!(a.is_err(), "the length is wrong by one");
    let a = open(&tar(&[pax(b"19 linkpath=/there\n"), link("l", "x"), file("z", b"")])).unwrap();
    assert_eq!(a.link("/l"), Ok("/there".into()));

    assert!(
        refused(&tar(&[long_name(&[b'n'; 9000], 9000), file("s", b"")]))
            .contains("a name of 9000 bytes")
    );
    assert_eq!(refused(&tar(&[long_name(b"a", 1)])), "a long name without its member");
    let many = vec![long_name(b"a", 1); 9];
    assert_eq!(refused(&tar(&many)), "more headers than a member can have");
    for bad in [
        &b"99 path=x\n"[..],
        b"path=x\n",
        b"0 path=x\n",
        b"18446744073709551615 p=x\n",
        b"3 \n",
        b"-1 a=b\n",
    ] {
        assert!(refused(&tar(&[pax(bad), file("s", b"")])).contains("pax"), "{bad:?}");
    }
    assert!(refused(&tar(&[pax(b"20 size=99999999999\n"), file("s", b"")])).contains("8 GiB"));
    assert!(refused(&tar(&[pax(b"22 GNU.sparse.major=1\n"), file("s", b"")])).contains("sparse"));
    assert!(refused(&tar(&[member(b"s", EntryType::GNUSparse, b"", 0, b"")])).contains("sparse"));
    let mut climb = pax(b"15 path=../../x\n");
    climb.extend(file("s", b""));
    refused(&climb);
}

#[test]
fn a_manifest_that_makes_no_sense_is_refused() {
    assert!(
        refused(&tar(&[file("netwright/manifest.json", b"{}")]))
            .contains("its manifest is unreadable")
    );
    let deep = "[".repeat(100_000);
    refused(&tar(&[file("netwright/manifest.json", deep.as_bytes())]));
    assert!(manifest(&vec![b' '; (MAX_MANIFEST_BYTES + 1) as usize]).is_err());
}

#[test]
fn recorded_errors_are_of_one_way_of_asking() {
    let json = serde_json::json!({
        "schema_version": 1, "tool_version": "0", "taken_at_unix_s": 0, "redacted": false,
        "errors": {"/d/": libc::EACCES, "/f": libc::EINVAL, "/l@": libc::EIO},
        "listings": {"/all": ["x", "y"]}, "samples": []
    });
    let a = open(&tar(&[
        file("netwright/manifest.json", json.to_string().as_bytes()),
        file("d/x", b"1"),
        link("l", "d/x"),
    ]))
    .unwrap();
    assert_eq!(a.entries("/d"), Err(libc::EACCES));
    assert_eq!(a.read_file("/d/x"), Ok(&b"1"[..]));
    assert_eq!(a.read_file("/f"), Err(libc::EINVAL));
    assert_eq!(a.link("/l"), Err(libc::EIO));
    assert_eq!(a.read_file("/l"), Ok(&b"1"[..]));
    assert_eq!(a.entries("/all").unwrap(), ["x", "y"]);
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let why = ArchiveRoot::open(&pipe, &Limits::default()).unwrap_err().to_string();
    assert!(why.contains("neither a file nor a folder"), "{why}");
    let why = ArchiveRoot::open(&dir.path().join("none"), &Limits::default()).unwrap_err();
    assert!(why.to_string().contains("No such file"), "{why}");
}

proptest! {
    /// Whatever a valid archive is turned into, opening it ends, within the limits, without a
    /// panic, and asking it anything does too.
    #[test]
    fn a_mutated_archive_is_read_or_refused(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
        truncate in any::<bool>(),
        packed in any::<bool>(),
        fix in any::<bool>(),
    ) {
        let mut bytes = tar(&[
            long_name(b"proc/a/very/long/name", 21),
            file("x", b"1"),
            pax(b"16 path=by/pax1\n"),
            link("sys/l", "../by"),
            member(b"h", EntryType::Link, b"x", 0, b""),
            file("netwright/manifest.json", b"{\"schema_version\":1,\"tool_version\":\"0\",\"taken_at_unix_s\":0,\"redacted\":false,\"errors\":{},\"listings\":{},\"samples\":[]}"),
        ]);
        for (at, byte) in &edits {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        if fix {
            // Right checksums let the mutation through to what comes behind them.
            for block in bytes.chunks_exact_mut(512) {
                let mut h = Header::from_byte_slice(block).clone();
                if block[257..262] == *b"ustar" {
                    h.set_cksum();
                    block.copy_from_slice(h.as_bytes());
                }
            }
        }
        if packed {
            bytes = zstd::encode_all(&bytes[..], 1).unwrap();
            if let Some((at, byte)) = edits.first() {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
        }
        if truncate {
            bytes.truncate(cut.index(bytes.len()));
        }
        let limits = Limits { total_bytes: 1 << 20, file_bytes: 1 << 19, entries: 100, path_bytes: 4096 };
        match ArchiveRoot::read(&bytes[..], &limits) {
            Err(why) => prop_assert!(!why.contains('\n')),
            Ok(a) => {
                prop_assert!(a.entries.len() <= 100);
                let all: Vec<String> = a.entries.keys().cloned().collect();
                for path in all {
                    let _ = (a.read_file(&path), a.entries(&path), a.link(&path), a.resolve(&path));
                }
            }
        }
    }
}
