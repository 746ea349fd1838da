use super::*;
use crate::snapshot::CapturedRun;
use model::snapshot::{Manifest, SampleTime};
use proptest::prelude::*;

fn redactor() -> Redactor {
    Redactor::new(&"000102030405060708090a0b0c0d0e0f".parse().unwrap())
}

fn text(s: &str) -> String {
    String::from_utf8(redactor().text(s.as_bytes())).unwrap()
}

fn content(place: &str, s: &str) -> String {
    String::from_utf8(redactor().content(place, s.as_bytes().to_vec())).unwrap()
}

#[test]
fn addresses_are_found_in_any_format() {
    for (original, name) in [
        ("link/ether 02:fc:00:00:00:01 brd ff:ff:ff:ff:ff:ff", "02:fc:00:00:00:01"),
        ("{\"mac\":\"AA:bb:cc:dd:ee:ff\",\"x\":1}", "AA:bb"),
        ("inet 10.1.2.3/24 brd 10.1.2.255", "10.1.2"),
        ("{\"address\":\"192.168.7.9:5432\"}", "192.168.7.9"),
        ("server=[2001:470:1f0b::5]:80", "2001:470"),
        ("fe80::fc:ff:fe00:1%eth0", "fe00:1"),
        ("see 10.1.2.3.", "10.1.2.3"),
        ("2001:470:1f0b::/48,", "2001:470"),
        ("peer 2001:470:1f0b::7: up", "2001:470"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("bridge 8000.02fc00000001", "02fc00000001"),
        ("enx02fc00000001: up", "02fc00000001"),
        (
            "docker-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope",
            "0123456789abcdef",
        ),
        ("root=UUID=01234567-89ab-cdef-0123-456789abcdef ro", "01234567-89ab"),
        ("machine 0123456789abcdef0123456789abcdef", "0123456789abcdef"),
        ("/home/alice/bin/x", "alice"),
        ("00:11:22:33:44:55:66:77", "00:11:22"),
    ] {
        let new = text(original);
        assert!(!new.contains(name), "{original} became {new}");
        assert_eq!(text(original), new, "the same again");
    }
    // What stands around stays.
    assert!(text("inet 10.1.2.3/24 dev eth0").ends_with("/24 dev eth0"));
    assert!(text("see 10.1.2.3.").ends_with('.'));
    assert!(text("peer 2001:470:1f0b::7: up").ends_with(": up"));
    assert!(text("\"192.168.7.9:5432\"").ends_with(":5432\""));
    assert!(text("AA:BB:CC:DD:EE:0F").bytes().all(|b| !b.is_ascii_lowercase()));
    let (mac, plain) = (text("02:fc:00:00:00:01"), text("enx02fc00000001"));
    assert_eq!(mac.replace(':', ""), plain.trim_start_matches("enx"));
    assert_eq!(plain.len(), 15, "a name of an interface has at most 15 bytes");
}

#[test]
fn what_only_looks_like_a_name_stays() {
    let key: String = (0..40).map(|i| format!("{i:02x}")).collect::<Vec<_>>().join(":");
    for same in [
        "0000:00:03.0 pci0000:00/0000:00:1f.2",
        "127.0.0.1 ::1 0.0.0.0 :: 255.255.255.0 ff:ff:ff:ff:ff:ff 00:00:00:00:00:00",
        "cpu0 4968 0 1712 120266 58 0 7 1 0 0",
        "ffffffff,ffffffff,00000000",
        "CapEff:\t000001ffffffffff",
        "00000d5c 00000000 00000000",
        "5.14.0-427.13.1.1.el9_4.x86_64",
        "1.2.3.4.5 1.2.3.4rc1 v1.2.3.4",
        "0::/system.slice/x.service\n1:name=systemd:/",
        "0:0:0:0:0:0:0:1",
        "12:34:56 std::vec a::zebra",
        "net:[4026531840] socket:[77]",
        "ffffffffffffffffffffffffffffffff",
        key.as_str(),
        "eth0 1.5 8.8 /home/ home/x at /homes/y",
    ] {
        assert_eq!(text(same), same);
    }
}

#[test]
fn the_kernels_hex_is_the_same_address() {
    let tcp = "  sl  local_address rem_address   st\n   0: 0302010A:1538 0100007F:0000 0A 00000000:00000005 00:00000000 00000000     0        0 478 1 0 100 0 0 10 0\n";
    let new = content("/proc/12/net/tcp", tcp);
    let as_text = text("10.1.2.3");
    let o: Vec<u8> = as_text.split('.').map(|n| n.parse().unwrap()).collect();
    let hex = format!("{:02X}{:02X}{:02X}{:02X}", o[3], o[2], o[1], o[0]);
    assert!(new.contains(&format!(" {hex}:1538 ")), "{new} has not {hex}");
    assert!(new.contains(" 0100007F:0000 "), "loopback stays");
    assert!(new.contains(" 00000000:00000005 "), "queue lengths are no address");
    let read = parse::proc_net_tcp::parse(new.as_bytes());
    assert_eq!(read.sockets.len(), 1);
    assert_eq!(read.sockets[0].local.ip().to_string(), as_text);
    assert_eq!(new.len(), tcp.len());

    let six =
        "   0: 00000000000000000000000001000000:1F90 B80D0120000000000000000001000000:0050 0A\n";
    let new = content("/proc/12/net/tcp6", six);
    assert!(new.contains("00000000000000000000000001000000:1F90"), "loopback stays");
    assert!(!new.contains("B80D01200000000000000000"), "{new}");
    let inet6 = "fe8000000000000000fc00fffe000001 04 40 20 80 eth0\n";
    let new = content("/proc/12/net/if_inet6", inet6);
    assert!(new.starts_with("fe80000000000000") && !new.contains("fe000001"), "{new}");
    let route = "Iface\tDestination\tGateway\tFlags\neth0\t0002010A\t0102010A\t0003\n";
    let new = content("/proc/12/net/route", route);
    assert!(!new.contains("02010A") && new.contains("\t0003\n"), "{new}");
}

#[test]
fn command_lines_keep_the_program() {
    let new = content("/proc/7/cmdline", "/opt/acme/bin/serve\0--db\0secret\0\0--db\0");
    let parts: Vec<&str> = new.split('\0').collect();
    assert_eq!(parts.len(), 6);
    assert_eq!(parts[0], "serve");
    assert_eq!(parts[3], "");
    assert_eq!(parts[1], parts[4], "the same argument, the same pseudonym");
    assert!(!new.contains("secret") && !new.contains("acme"));
    let title = content("/proc/8/cmdline", "postgres: alice shop 10.1.2.3(5)\0\0\0");
    assert!(title.starts_with("postgres: arg-") && !title.contains("alice"), "{title}");
    let open = "/usr/sbin/irqbalance\0--foreground\0--banirq=24\0";
    assert_eq!(content("/proc/9/cmdline", open), open);
    let tuned = "/usr/bin/python3\0-Es\0/usr/sbin/tuned\0-l\0-P\0";
    assert_eq!(content("/proc/9/cmdline", tuned), tuned);
}

#[test]
fn the_kernel_cmdline_keeps_settings() {
    let kept = "BOOT_IMAGE=/boot/vmlinuz root=/dev/vda1 ro isolcpus=managed_irq,2-15 nohz_full=2-15 intel_idle.max_cstate=1 mitigations=auto,nosmt quiet";
    assert_eq!(content("/proc/cmdline", kept), kept);
    let new = content(
        "/proc/cmdline",
        "ip=10.1.2.3::10.1.2.1:255.255.255.0:web:eth0 ks=http://boot.acme/ks join.token=abc -- --auth hunter2\n",
    );
    for gone in ["10.1.2", "acme", "abc", "hunter2", "--auth"] {
        assert!(!new.contains(gone), "{gone} in {new}");
    }
    assert!(new.contains("255.255.255.0") && new.contains(" -- ") && new.ends_with('\n'), "{new}");
}

#[test]
fn configuration_keeps_settings_but_neither_stories_nor_secrets() {
    let new = content(
        "/etc/sysctl.d/90-acme.conf",
        "# Bob said so, ticket 4711\nnet.core.somaxconn = 4096\n  ; more\nnet.ipv4.tcp_fastopen_key = 1-2-3-4\npassword=x\n",
    );
    assert_eq!(
        new,
        "#\nnet.core.somaxconn = 4096\n#\nnet.ipv4.tcp_fastopen_key =redacted\npassword=redacted\n"
    );
}

#[test]
fn mounts_and_files_of_the_owner_are_nobodys_business() {
    let new = content(
        "/proc/1/mountinfo",
        "22 1 0:20 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n30 1 0:30 /export /srv/acme rw - nfs4 filer.acme:/export rw,addr=10.1.2.3\n",
    );
    assert!(new.contains("/sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"));
    assert!(!new.contains("acme") && !new.contains("10.1.2.3"), "{new}");
    assert_eq!(parse::mountinfo::parse(new.as_bytes()).len(), 2);
    let maps = content(
        "/proc/1/numa_maps",
        "7f00 default file=/srv/acme/db anon=1 N0=1 kernelpagesize_kB=4\n",
    );
    assert!(!maps.contains("acme") && maps.contains(" anon=1 N0=1 kernelpagesize_kB=4\n"));
    let mut r = redactor();
    assert_eq!(r.target("/proc/1/fd/3", "socket:[77]"), "socket:[77]");
    assert!(r.target("/proc/1/fd/4", "/srv/acme/db").starts_with("/redacted-"));
}

#[test]
fn versions_and_binaries_are_left_alone() {
    let json = r#"{"value":{"fw_version":"8.50.1.2","bus_info":"0000:00:03.0"}}"#;
    assert_eq!(content("/netwright/answers/ethtool/eth0/drvinfo.json", json), json);
    assert_eq!(content("/proc/sys/kernel/osrelease", "4.18.0.1\n"), "4.18.0.1\n");
    let binary = b"\x1f\x8b\x08\x0010.1.2.3\x00".to_vec();
    assert_eq!(redactor().content("/proc/config.gz", binary.clone()), binary);
}

fn taken(files: &[(&str, &str)]) -> CapturedRun {
    let mut taken = crate::snapshot::record(
        &crate::snapshot::Options::default(),
        &std::sync::atomic::AtomicBool::new(false),
        &mut |_| {},
    );
    taken.recording = crate::root::record::Recording::default();
    taken.manifest = Manifest {
        errors: [("/proc/1/cgroup/enx02fc00000001".to_owned(), 13)].into(),
        listings: [(
            "/sys/class/net".to_owned(),
            vec!["enx02fc00000001".to_owned(), "lo".to_owned()],
        )]
        .into(),
        samples: vec![SampleTime { start_ns: 1, end_ns: 2 }],
        ..taken.manifest
    };
    for (place, text) in files {
        taken.recording.files.insert((*place).to_owned(), text.as_bytes().to_vec());
    }
    taken
}

#[test]
fn paths_listings_and_contents_agree() {
    let mut t = taken(&[
        ("/proc/sys/kernel/hostname", "Web-01.shop.example\n"),
        ("/sys/class/net/enx02fc00000001/address", "02:fc:00:00:00:01\n"),
        ("/netwright/samples/0/sys/class/net/enx02fc00000001/ifindex", "2\n"),
        (
            "/netwright/answers/netlink/links.json",
            "{\"name\":\"enx02fc00000001\",\"alias\":\"WEB-01 uplink\",\"id\":\"02fc00000001\"}",
        ),
        ("/etc/x.conf", "via=web-01.shop.example mail.shop.example backup-web-01-a web-010"),
    ]);
    recording(&mut t, &"00000000000000000000000000000007".parse().unwrap());
    let files = &t.recording.files;
    let names = &t.manifest.listings["/sys/class/net"];
    let nic = names.iter().find(|n| n.starts_with("enx")).unwrap();
    assert_ne!(nic, "enx02fc00000001");
    assert!(files.contains_key(&format!("/sys/class/net/{nic}/address")));
    assert!(files.contains_key(&format!("/netwright/samples/0/sys/class/net/{nic}/ifindex")));
    assert!(t.manifest.errors.contains_key(&format!("/proc/1/cgroup/{nic}")));
    assert!(t.manifest.redacted);
    let all: String = files
        .iter()
        .flat_map(|(k, v)| [k.clone(), String::from_utf8_lossy(v).into_owned()])
        .collect();
    for gone in ["02fc00000001", "02:fc", "shop.example", "Web-01.", "WEB-01 ", "backup-web-01-"] {
        assert!(!all.contains(gone), "{gone} in {all}");
    }
    assert!(all.contains("web-010"), "another word");
}

#[test]
fn a_host_called_like_a_part_of_the_kernel_breaks_nothing() {
    let mut t = taken(&[
        ("/proc/sys/kernel/hostname", "vm\n"),
        ("/proc/sys/vm/swappiness", "60\n"),
        ("/etc/sysctl.d/a.conf", "vm.swappiness = 1\n"),
    ]);
    recording(&mut t, &Key::random().unwrap());
    let files = &t.recording.files;
    assert_eq!(files["/proc/sys/vm/swappiness"], b"60\n");
    assert_eq!(files["/etc/sysctl.d/a.conf"], b"vm.swappiness = 1\n");
    assert!(files["/proc/sys/kernel/hostname"].starts_with(b"host-"));
}

#[test]
fn a_host_called_like_a_value_or_a_number_breaks_nothing() {
    for host in ["up", "performance", "7"] {
        let mut t = taken(&[
            ("/proc/sys/kernel/hostname", host),
            ("/sys/class/net/eth0/operstate", "up\n"),
            ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("/proc/stat", "cpu0 7 7 7\n"),
            ("/proc/interrupts", " 7: 7 eth-7\n"),
        ]);
        let before = t.recording.files.clone();
        recording(&mut t, &Key::random().unwrap());
        for (place, bytes) in &t.recording.files {
            if place != "/proc/sys/kernel/hostname" {
                assert_eq!(bytes, &before[place], "{place} of a host called {host}");
            }
        }
        assert!(t.recording.files["/proc/sys/kernel/hostname"].starts_with(b"host-"));
    }
}

#[test]
fn a_key_is_32_hex_digits_and_never_printed() {
    let key: Key = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
    assert_eq!(format!("{key:?}"), "Key(…)");
    assert_ne!(Key::random().unwrap(), Key::random().unwrap());
    for bad in ["", "00", "zz0102030405060708090a0b0c0d0e0f", "+00102030405060708090a0b0c0d0e0f"] {
        assert!(bad.parse::<Key>().is_err(), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), s in "[0-9a-f:. /\\-=%\\[\\]\n]{0,80}") {
        let mut r = redactor();
        r.text(&bytes);
        r.text(s.as_bytes());
        for place in ["/proc/1/net/tcp6", "/proc/1/cmdline", "/proc/cmdline", "/proc/1/mountinfo", "/etc/x", "/proc/1/net/route"] {
            r.content(place, bytes.clone());
            r.content(place, s.clone().into_bytes());
        }
    }

    #[test]
    fn no_address_survives_in_any_surroundings(
        v4 in any::<[u8; 4]>(), v6 in any::<u128>(), mac in any::<[u8; 6]>(),
        before in "[a-z]{0,3}[ =/\"\\[(,]", after in "[ /\"\\]),;\n]",
    ) {
        let v4 = std::net::Ipv4Addr::from(v4);
        let v6 = std::net::Ipv6Addr::from(v6 >> 1); // none is multicast
        let mac = mac.map(|b| format!("{b:02x}")).join(":");
        let mut r = redactor();
        for name in [v4.to_string(), v6.to_string(), mac.clone()] {
            let out = String::from_utf8(r.text(format!("{before}{name}{after}").as_bytes())).unwrap();
            prop_assert!(out.starts_with(&before) && out.ends_with(&after), "{}", out);
            let kept = v4.is_loopback() || v4.is_multicast() || v4.octets()[0] == 0 || v4.octets()[0] == 255;
            if name != v4.to_string() || !kept {
                prop_assert!(!out.contains(&name), "{} in {}", name, out);
            }
        }
    }
}
