use model::{
    Reading, Samples,
    watch::{WatchRecord, test_data},
};

use super::*;
use crate::testing::golden;

fn record(cpus: u32, turn: u64) -> WatchRecord {
    WatchRecord { interval: test_data::interval(cpus, turn), findings: vec![] }
}

fn teller(cpus: u32) -> Teller {
    Teller::new(TextStyle { width: 160, ..TextStyle::default() }, test_data::host(cpus, 2))
}

#[test]
fn an_interval_tells_every_part_and_what_is_missing_once() {
    let mut teller = teller(4);
    let text = teller.tell(&record(4, 0));
    assert!(
        text.starts_with("14:13:20 UTC  1.00 s  RX, TX: not sampled\nsoftirq 36.1% of CPU 0, the ")
    );
    assert!(text.ends_with("\nwatching costs 0.43% of the host, 1 of 2 programs attached\n\n"));
    for part in
        ["interrupted tasks", "queues", "waits", "migrations", "messages", "counters that grew"]
    {
        assert!(text.contains(&format!("\n{part}")), "{part} is missing in {text}");
    }
    let line = text.lines().find(|l| l.trim_start().starts_with("0     0")).unwrap();
    // 200+80+30+1+50 ms and the small vectors, of a second.
    assert!(line.contains("36.1%") && line.contains("20.0%") && line.contains("11.0%"), "{line}");
    assert!(text.contains("ipi_exit: this kernel has no such tracepoint"), "{text}");
    assert!(text.contains("/proc si: this kernel charges whole ticks"), "{text}");
    let again = teller.tell(&record(4, 1));
    assert!(!again.contains("whole ticks"), "the reason is said once: {again}");
    assert!(!text.contains("SAMPLE %") && !text.contains("THREADED"), "the usual needs -v: {text}");
    assert!(!again.contains("not seen"), "what is missing is said when it changes: {again}");
}

#[test]
fn what_is_unusual_has_its_column() {
    let mut record = record(2, 0);
    if let Reading::Known(all) = &mut record.interval.napi {
        all[0].threaded = Reading::Known(true);
        all[1].observed_share = 0.5;
    }
    let text = teller(2).tell(&record);
    assert!(text.contains("THREADED  SAMPLE %") && text.contains("yes         100.0%"), "{text}");
    assert!(text.contains("no           50.0%"), "{text}");
}

#[test]
fn of_many_cpus_the_busiest_are_shown() {
    let text = teller(512).tell(&record(512, 0));
    assert!(text.contains("the busiest 16 of 512 CPUs"), "{text}");
    assert!(text.lines().count() < 120);
}

#[test]
fn a_finding_is_reported_when_it_appears() {
    let mut record = record(2, 0);
    let found = model::Finding {
        rule: "time_squeeze".into(),
        number: 5,
        title: "polling stopped".into(),
        severity: model::Severity::Warning,
        confidence: model::Confidence::High,
        rank: 1,
        subject: "cpu 0".into(),
        explanation: String::new(),
        expected_benefit: String::new(),
        evidence: vec![],
        changes: vec![],
        caused_by: vec![],
    };
    record.findings.push(found);
    let mut teller = teller(2);
    assert!(teller.tell(&record).contains("found warning  polling stopped  [time_squeeze 5]"));
    assert!(!teller.tell(&record).contains("polling stopped"));
}

#[test]
fn processes_sum_their_threads() {
    let list = interrupted_tasks::interrupted_tasks(&test_data::interval(2, 0), false);
    let first = &list.rows[0];
    assert_eq!((first[0].text.as_str(), first[1].text.as_str()), ("1000", "postgres"));
    // Threads 1000 and 1001: 20 + 10 ms by softirqs, 1 + 0.5 by interrupts.
    assert_eq!(first[2].number, Some(31_500_000.0));
    assert_eq!(list.rows.len(), 10);
}

#[test]
fn without_programs_the_bars_are_what_proc_stat_claims() {
    let mut interval = test_data::interval(2, 0);
    for cpu in &mut interval.cpus {
        cpu.softirq_ns = Reading::denied("CAP_BPF");
    }
    assert!(!contexts::measured(&interval));
    assert_eq!(contexts::scale(&interval), 1.0);
    let shares = contexts::shares(&interval.cpus[0], 1.0, false);
    let of = |c| shares.iter().find(|s| s.0 == c).unwrap().1;
    assert_eq!((of(contexts::Context::User), of(contexts::Context::Softirq)), (0.3, 0.11));
}

#[test]
fn a_name_with_control_characters_stays_text() {
    let mut record = record(2, 0);
    if let Reading::Known(all) = &mut record.interval.interrupted_tasks {
        for p in all {
            p.name = "\x1b[2Jevil".into();
        }
    }
    assert!(!teller(2).tell(&record).contains('\x1b'));
}

#[test]
fn a_connection_that_sent_again_leaves_room_for_its_figures_on_80_columns() {
    let list = super::counters::counters(&test_data::interval(2, 0));
    let row = list.rows.iter().find(|r| r[0].text == "retransmitted").unwrap();
    assert_eq!(row[1].text, "10.0.0.1:5432 > 10.0.0.2:40000");
    // For the longest IPv4 addresses, after the longest place, with two blanks between.
    let place = list.rows.iter().map(|r| r[0].text.len()).max().unwrap();
    let transitions = "255.255.255.255:65535 > 255.255.255.255:65535".len();
    assert!(
        place + 2 + transitions + 2 + "COUNT".len() + 2 + "PER S".len() <= 80,
        "{place} + {transitions}"
    );
}

#[test]
fn what_is_not_in_the_cost_and_who_ended_is_said() {
    let mut record = record(2, 0);
    let mut teller = teller(2);
    assert!(!teller.tell(&record).contains("not timed"));
    record.interval.observer.programs_untimed = 3;
    let gone = model::watch::EndedProcess { pid: 4711, name: "iperf3".into() };
    record.interval.ended_processes = vec![gone];
    let text = teller.tell(&record);
    assert!(text.contains("1 of 2 programs attached (3 not timed)\n"), "{text}");
    assert!(text.contains("process 4711 (iperf3) has ended"), "{text}");
}

#[test]
fn eleven_ticks_of_ten_are_no_more_than_the_whole() {
    let mut interval = test_data::interval(1, 0);
    interval.interval_s = 0.1;
    let stat = interval.cpus[0].proc_stat.clone().into_known().unwrap();
    let ms = |n: u64| Reading::Known(n * 1_000_000);
    let mut claims = |user, system, idle| {
        let claimed = model::watch::ProcStatNs {
            user: ms(user),
            system: ms(system),
            idle: ms(idle),
            softirq: ms(0),
            ..stat.clone()
        };
        interval.cpus[0].proc_stat = Reading::Known(claimed);
        let shares = contexts::shares(&interval.cpus[0], interval.interval_s, false);
        let list = panes::cpus(&interval, &test_data::host(1, 1));
        let of = |head| list.columns.iter().position(|c| c.head == head).unwrap();
        let both = ["us", "sy"].map(|head| list.rows[0][of(head)].number.unwrap());
        assert!((both[0] - shares[0].1).abs() < 1e-9 && (both[1] - shares[1].1).abs() < 1e-9);
        both
    };
    assert_eq!(claims(66, 44, 0).map(|s| (s * 1000.0).round()), [600.0, 400.0]);
    // A share below the whole is not scaled up: some CPUs' time is not counted.
    assert_eq!(claims(30, 20, 0).map(|s| (s * 1000.0).round()), [300.0, 200.0]);
}

/// What an idle host's counters do not show: bytes, losses and addresses of full length.
fn full(cpus: u32) -> WatchRecord {
    use model::samples::NicSample;
    let mut record = record(cpus, 0);
    let statistic = |(name, n): (&str, u64)| (name.to_owned(), Reading::Known(n));
    let nic = NicSample {
        name: "enp65s0f1np1".into(),
        statistics: Reading::Known(
            [
                ("rx_bytes", 1_176_250_000),
                ("rx_packets", 812_345),
                ("tx_bytes", 11_000_000),
                ("tx_packets", 98_765),
                ("rx_dropped", 1_234),
            ]
            .map(statistic)
            .into(),
        ),
        driver_stats: Reading::absent("no driver"),
        queues: Reading::absent("not read"),
        qdiscs: Reading::absent("not read"),
        carrier_changes: Reading::Known(0),
        fec: Reading::absent("no driver"),
    };
    let again = model::watch::Retransmits {
        local: "[2001:db8:1111:2222:3333:4444:5555:6666]:5432".into(),
        remote: "[2001:db8:1111:2222:3333:4444:5555:7777]:40000".into(),
        segments: 4_321,
    };
    let interval = &mut record.interval;
    interval.samples = Reading::Known(Samples { nics: vec![nic], ..test_data::samples() });
    interval.retransmits = Reading::Known(vec![again]);
    let ended = model::watch::EndedProcess { pid: 4_194_304, name: "postgres".into() };
    interval.ended_processes = vec![ended];
    interval.drops_observed_share = 0.97;
    record
}

#[test]
fn an_interval_fits_80_and_120_columns() {
    let print = |style, record| Teller::new(style, test_data::host(4, 2)).tell(&record);
    let answer = "enp65s0f1np1 RX 9.41 Gbit/s 812,345 pkt/s";
    golden!("interval", answer, |style| print(style, full(4)));
    let all = |style| print(TextStyle { verbose: true, ..style }, full(4));
    golden!("interval_v", answer, all);
    let without = |style| {
        let mut record = record(4, 0);
        record.interval.cpus.iter_mut().for_each(|c| c.softirq_ns = Reading::denied("CAP_BPF"));
        record.interval.interrupted_tasks = Reading::denied("CAP_BPF");
        print(style, record)
    };
    golden!("interval_no_bpf", "RX, TX: not sampled", without);
}
