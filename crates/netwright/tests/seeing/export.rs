//! `export`: its counters beside the kernel's, its format before promtool and a real Prometheus, its
//! secret, and its memory.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    net::UdpSocket,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::support::{
    NETWRIGHT, Namespace,
    exporter::{Exporter, PATIENCE, Prometheus, value},
    output, run,
    serve::Serve,
};

/// Counts by row and column of a table of /proc whose first line names the columns.
fn table(path: &str) -> BTreeMap<String, Vec<u64>> {
    let text = fs::read_to_string(path).unwrap();
    let row = |l: &str| {
        let (name, rest) = l.split_once(':')?;
        let counts = rest.split_ascii_whitespace().map_while(|w| w.parse().ok()).collect();
        Some((name.trim().to_owned(), counts))
    };
    text.lines().skip(1).filter_map(row).collect()
}

/// A column of softnet_stat by CPU.
fn softnet(column: usize) -> Vec<u64> {
    let text = fs::read_to_string("/proc/net/softnet_stat").unwrap();
    let word = |l: &str| l.split_ascii_whitespace().nth(column).unwrap().to_owned();
    text.lines().map(|l| u64::from_str_radix(&word(l), 16).unwrap()).collect()
}

/// The kernel's counters by the series that has them.
fn kernel() -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let softirqs = table("/proc/softirqs");
    for (vector, label) in [("NET_RX", "net_rx"), ("NET_TX", "net_tx")] {
        for (cpu, n) in softirqs[vector].iter().enumerate() {
            all.insert(format!("netwright_softirqs_total{{cpu=\"{cpu}\",vector=\"{label}\"}}"), *n);
        }
    }
    for (column, name) in [(0, "processed_packets"), (1, "dropped_packets"), (2, "squeezes")] {
        for (cpu, n) in softnet(column).into_iter().enumerate() {
            all.insert(format!("netwright_softnet_{name}_total{{cpu=\"{cpu}\"}}"), n);
        }
    }
    for (way, direction) in [("rx", "receive"), ("tx", "transmit")] {
        let file = format!("/sys/class/net/lo/statistics/{way}_bytes");
        let bytes = fs::read_to_string(file).unwrap().trim().parse().unwrap();
        let labels = format!("nic=\"lo\",direction=\"{direction}\"");
        all.insert(format!("netwright_nic_bytes_total{{{labels}}}"), bytes);
    }
    all
}

/// Sends this many datagrams to a port of loopback that nobody has.
fn send_to_nobody(count: u32) {
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = nobody.local_addr().unwrap();
    drop(nobody);
    let from = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..count {
        from.send_to(b"x", to).unwrap();
    }
}

#[test]
fn counters_are_the_kernels_own_and_never_shrink() {
    let exporter = Exporter::start(&["--no-bpf", "--interval", "200ms"]);
    let mut last = BTreeMap::new();
    for _ in 0..3 {
        let before = kernel();
        let page = exporter.page();
        let after = kernel();
        assert_eq!(before.len(), after.len());
        for (series, low) in &before {
            let shown =
                value(&page, series).unwrap_or_else(|| panic!("no {series}: {page}")) as u64;
            assert!((*low..=after[series]).contains(&shown), "{series} {shown}: from {low}");
            assert!(last.insert(series.clone(), shown).is_none_or(|l| l <= shown), "{series}");
        }
        send_to_nobody(50);
        std::thread::sleep(Duration::from_millis(150));
    }
    assert_eq!(exporter.end(), Some(0));
}

#[test]
fn interrupts_of_a_nic_add_up_to_those_of_proc() {
    let nic_irqs = |facts: &serde_json::Value| {
        let all = facts["irqs"].as_array().unwrap().clone();
        all.into_iter().filter(|i| i["nic"].is_string()).collect::<Vec<_>>()
    };
    let facts = serde_json::from_str(&run(NETWRIGHT, &["inspect", "--json"])).unwrap();
    let irqs = nic_irqs(&facts);
    let sums = || {
        let rows = table("/proc/interrupts");
        let mut by_nic: BTreeMap<String, u64> = BTreeMap::new();
        for irq in &irqs {
            let row = rows.get(&irq["irq"].to_string());
            *by_nic.entry(irq["nic"].as_str().unwrap().to_owned()).or_default() +=
                row.map_or(0, |r| r.iter().sum());
        }
        by_nic
    };
    let before = sums();
    let page = run(NETWRIGHT, &["export", "--once", "--no-bpf", "--interval", "100ms", "-q"]);
    let after = sums();
    for family in ["netwright_queue_interrupts_total", "netwright_nic_interrupts_total"] {
        for (nic, low) in &before {
            let start = format!("{family}{{nic=\"{nic}\",");
            let lines = page.lines().filter(|l| l.starts_with(&start));
            let sum: u64 =
                lines.map(|l| l.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
            assert!((*low..=after[nic]).contains(&sum), "{family} of {nic}: {sum} from {low}");
        }
    }
}

#[test]
fn planted_drops_waits_and_a_drift_have_their_series() {
    let place = Namespace::new();
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().to_str().unwrap();
    let knob = "sysctl.net.core.somaxconn";
    let ip_exec = ["netns", "exec", &place.name, NETWRIGHT];
    let apply = ["tune", "apply", "--state-dir", folder, "-q", "sysctl.net.core.somaxconn=5555"];
    run("ip", &[&ip_exec[..], &apply].concat());
    let export = ["export", "--once", "--interval", "2s", "-q", "--state-dir", folder];
    let always = ["--drops", "always", "--waits", "always", "--softirq", "always"];
    let page = || {
        // The observed second has drops, and a reader that waits.
        let reader = UdpSocket::bind("127.0.0.1:0").unwrap();
        reader.set_read_timeout(Some(PATIENCE)).unwrap();
        let to = reader.local_addr().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let traffic = std::thread::spawn(move || {
            let from = UdpSocket::bind("127.0.0.1:0").unwrap();
            while !ended.load(Ordering::Relaxed) {
                from.send_to(b"x", to).unwrap();
                send_to_nobody(1);
                std::thread::sleep(Duration::from_millis(5));
            }
            from.send_to(b"end", to).unwrap();
        });
        let reading = std::thread::spawn(move || {
            let mut bytes = [0; 8];
            while reader.recv(&mut bytes).unwrap() != 3 {}
        });
        let all = [&ip_exec[..], &export, &always].concat();
        let out = output("ip", &all);
        over.store(true, Ordering::Relaxed);
        traffic.join().unwrap();
        reading.join().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let first = page();
    let drifted = format!("netwright_change_drifted{{change=\"1\",knob=\"{knob}\"}}");
    assert_eq!(value(&first, &drifted), Some(0.0), "{first}");
    assert_eq!(value(&first, "netwright_change_sets{state=\"in_force\"}"), Some(1.0), "{first}");
    let dropped = value(&first, "netwright_dropped_packets_total{reason=\"NO_SOCKET\"}");
    assert!(dropped.is_some_and(|n| n >= 20.0), "{dropped:?}: {first}");
    let waits = first.lines().filter(|l| l.starts_with("netwright_wait_seconds_count{process=\""));
    let waits: Vec<&str> = waits.filter(|l| l.contains("stage=\"runqueue\"")).collect();
    let counts = waits.iter().map(|l| l.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    assert!(counts.sum::<u64>() >= 20, "{waits:?}");
    place.run("sysctl", &["-qw", "net.core.somaxconn=4444"]);
    assert_eq!(value(&page(), &drifted), Some(1.0));
}

#[test]
fn promtool_has_no_complaint() {
    let page = run(NETWRIGHT, &["export", "--once", "--interval", "300ms", "-q"]);
    assert!(page.contains("netwright_softirq_seconds_total{cpu=\"0\""), "{page}");
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = promtool.stdout(Stdio::piped()).spawn().unwrap();
    promtool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let out = promtool.wait_with_output().unwrap();
    let said = [out.stdout, out.stderr].concat();
    assert!(out.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn a_real_prometheus_scrapes_it_with_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "a-secret-of-32-characters-or-so!\n").unwrap();
    let args = ["--interval", "300ms", "--secret-file", secret.to_str().unwrap(), "-v"];
    let exporter = Exporter::start(&args);
    let status =
        |headers: &str| exporter.get("/metrics", headers).0.lines().next().map(str::to_owned);
    assert_eq!(status("").as_deref(), Some("HTTP/1.1 403 Forbidden"));
    let wrong = status("Authorization: Bearer a-secret-of-33-characters-or-so!\r\n");
    assert_eq!(wrong.as_deref(), Some("HTTP/1.1 403 Forbidden"));
    let key = "Authorization: Bearer a-secret-of-32-characters-or-so!\r\n";
    assert_eq!(status(key).as_deref(), Some("HTTP/1.1 200 OK"));
    assert!(exporter.get("/", key).0.starts_with("HTTP/1.1 404 "));
    let more = format!("  authorization: {{credentials_file: '{}'}}\n", secret.display());
    let config = Prometheus::scraping(exporter.address, &more);
    let prometheus = Prometheus::start(&config, "groups: []\n");
    assert!(prometheus.number("up == 1") > 0.0);
    // All series of a page: as many as between one page before a scrape and one after it, as a process
    // that waits for its first packet adds more. And the unit, which only OpenMetrics has.
    let series = || {
        let page = exporter.get("/metrics", key).1;
        page.lines().filter(|l| !l.starts_with('#')).count() as f64
    };
    let before = series();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let begun = now();
    let samples = "scrape_samples_scraped{job=\"netwright\"}";
    // A scrape that a stall kept from ending has no sample.
    let scraped = prometheus.number(&format!("{samples} > 0 and timestamp({samples}) > {begun}"));
    let after = series();
    assert!(
        (before - 20.0..=after + 20.0).contains(&scraped),
        "{scraped} scraped, {before} to {after} on the page"
    );
    let about = prometheus.api("/api/v1/targets/metadata?metric=netwright_softirq_seconds");
    assert_eq!((&about[0]["type"], &about[0]["unit"]), (&"counter".into(), &"seconds".into()));
    let before = kernel();
    let one = "netwright_softirqs_total{cpu=\"0\",vector=\"net_rx\"}";
    let newer = prometheus.number(&format!("{one} and timestamp({one}) > {}", now() + 1.5));
    assert!(newer >= before[one] as f64, "an interval that began later");
    assert!(newer <= kernel()[one] as f64);
}

#[test]
fn memory_is_flat_and_many_scrapers_do_no_harm() {
    let exporter = Exporter::start(&["--no-bpf", "--interval", "100ms"]);
    let resident = || value(&exporter.page(), "process_resident_memory_bytes").unwrap();
    let scrape = |count: u32| {
        let some = || (0..count / 4).for_each(|_| drop(exporter.page()));
        std::thread::scope(|s| (0..4).for_each(|_| drop(s.spawn(some))));
    };
    // The allocator grows until as many pages were made at once as ever are, and then no more: a leak
    // is in most of the batches.
    scrape(200);
    let mut last = resident();
    let mut grown = [0.0; 5];
    for growth in &mut grown {
        scrape(400);
        let now = resident();
        *growth = now - std::mem::replace(&mut last, now);
    }
    let mut sorted = grown;
    sorted.sort_by(f64::total_cmp);
    assert!(sorted[2] < 400.0 * 2048.0, "2 KiB and more for each page: {grown:?} bytes");
    // 5 KiB for each page, with what the allocator grows by.
    let all: f64 = grown.iter().sum();
    assert!(all < f64::from(10 << 20), "{grown:?} bytes");
}

#[test]
fn wrong_usage_is_one_line() {
    for (args, code, said) in [
        (&["--once", "--listen", "0"][..], 2, "cannot be used with"),
        (&["--interval", "1ms"], 2, "an interval of"),
        (&["--listen", "localhost"], 2, "no address"),
        (&["--probe", "db1"], 2, "rtt://HOST"),
        (&["--probe", "rtt://db1", "--every", "1ms"], 2, "--every"),
        (&["--jitter"], 2, "--probe"),
        (&["--listen", "0.0.0.0:0", "--quiet"], 2, "needs a secret"),
        (&["--listen", "192.0.2.1:0"], 4, "192.0.2.1"),
        (&["--once", "-o", "/nowhere/x.prom"], 4, "/nowhere"),
    ] {
        let out = output(NETWRIGHT, &[&["export"][..], args].concat());
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(said), "{args:?}: {text}");
    }
}

#[test]
fn a_probe_measures_the_service_time_of_its_peer() {
    let service = Duration::from_millis(4);
    let serve = Serve::start(&["--service-time", "4ms"]);
    let target = format!("rtt://{}", serve.target());
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let closed = format!("rtt://{silent}");
    let probes = ["--probe", &target, "--probe", &closed, "--every", "1s", "--jitter"];
    let exporter = Exporter::start(&[&["--no-bpf", "--interval", "1s"][..], &probes].concat());
    let labels = format!("target=\"{target}\"");
    exporter.page_with(&format!("netwright_probe_success{{target=\"{closed}\"}} 0"));
    let page = exporter.page_with(&format!("netwright_probe_success{{{labels}}} 1"));
    let sum = value(&page, &format!("netwright_probe_rtt_seconds_sum{{{labels}}}")).unwrap();
    let count = value(&page, &format!("netwright_probe_rtt_seconds_count{{{labels}}}")).unwrap();
    let least = value(&page, &format!("netwright_probe_rtt_seconds{{{labels},quantile=\"0.0\"}}"));
    assert!(count >= 5.0 && sum / count >= service.as_secs_f64(), "{sum} s in {count}");
    // A factor of two, and what a busy machine adds.
    let least = least.unwrap();
    assert!((0.004..0.012).contains(&least), "{least}");
    let failed = format!("netwright_probes_total{{target=\"{closed}\",result=\"success\"}}");
    assert_eq!(value(&page, &failed), Some(0.0));
    assert_eq!(exporter.end(), Some(0), "Ctrl-C ends the schedule");
}
