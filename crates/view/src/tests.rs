//! Tests of pictures of generated hosts.

use model::{
    CpuId, Finding, Nanos, Reading, Severity,
    watch::{CpuNode, WatchHost, WatchRecord, test_data},
};
use proptest::prelude::*;
use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
};

use crate::{
    KeyAction, Screen, Seek, ViewState, draw,
    state::{Pane, ViewPosition},
};

fn state() -> ViewState {
    ViewState::new(Default::default(), None)
}

fn record(cpus: u32) -> WatchRecord {
    WatchRecord { interval: test_data::interval(cpus, 1), findings: vec![] }
}

fn finding() -> Finding {
    Finding {
        rule: "time_squeeze".into(),
        number: 5,
        title: "polling on CPU 0 stopped with packets left".into(),
        severity: Severity::Warning,
        confidence: model::Confidence::High,
        rank: 1,
        subject: "cpu 0".into(),
        explanation: String::new(),
        expected_benefit: String::new(),
        evidence: vec![model::Evidence {
            what: "time_squeeze".into(),
            value: "196".into(),
            source: "/proc/net/softnet_stat".into(),
        }],
        changes: vec![],
        caused_by: vec![],
    }
}

/// The lines of a picture, without trailing blanks.
fn picture(
    width: u16,
    height: u16,
    host: &WatchHost,
    record: Option<&WatchRecord>,
    state: &ViewState,
) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let screen = Screen { host, record, state, colour: true };
    terminal.draw(|f| draw(&screen, f.area(), f.buffer_mut())).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| row(y).trim_end().to_owned()).collect()
}

fn press(state: &mut ViewState, keys: &str) {
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\x1b' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        state.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

#[test]
fn two_cpus_on_a_small_terminal() {
    let seen = picture(80, 24, &test_data::host(2, 1), Some(&record(2)), &state());
    assert_eq!(
        seen[0],
        "netwright watch  generated 6.12.0  14:13:21 UTC  1.00 s                     LIVE"
    );
    assert_eq!(seen[1], "RX, TX: not sampled (table 7)");
    assert_eq!(seen[2], "watching costs 0.43% of the host, 1 of 2 programs attached");
    let legend = "softirq, full bar 50%:  S syscall T irq on task I idle K ksoftirqd N threaded";
    assert_eq!(seen[3], legend);
    // CPU 0 spends 20.1% in system calls, 8% upon tasks, 3.1% idle, 5% in ksoftirqd, and small
    // vectors: 36.2% in all.
    let bar = &seen[4];
    assert!(bar.starts_with("   0 SSSSSSSSSSSSSSSSSTTTTTTTIIKKKK."), "{bar}");
    assert!(bar.contains(" 36.2%  /proc si  11.0% sq 3"), "{bar}");
    assert!(seen[5].starts_with("   1 "), "{}", seen[5]);
    assert!(seen[6].contains("[3tasks]") && seen[6].contains("9found  0send"), "{}", seen[6]);
    assert!(seen[7].starts_with(" PID  NAME") && seen[7].contains("LOST TO IRQ▼"), "{}", seen[7]);
    assert!(seen[8].starts_with("1000  postgres       31.5 ms"), "{}", seen[8]);
    assert!(seen[23].starts_with("q quit"), "{}", seen[23]);
}

/// 105 ms hold ten or eleven ticks of 10 ms, so `/proc/stat` may report up to the whole.
#[test]
fn ticks_beyond_the_interval_are_shares_of_their_sum_as_in_the_table() {
    let mut record = record(2);
    record.interval.interval_s = 0.1;
    let Reading::Known(claimed) = &mut record.interval.cpus[0].proc_stat else { panic!("made up") };
    let ms = |n: u64| Reading::Known(n * 1_000_000);
    (claimed.softirq, claimed.system) = (ms(110), ms(0));
    for other in [&mut claimed.user, &mut claimed.irq, &mut claimed.idle, &mut claimed.steal] {
        *other = ms(0);
    }
    let mut state = state();
    press(&mut state, "1");
    let seen = picture(200, 60, &test_data::host(2, 1), Some(&record), &state);
    let line = seen.iter().find(|l| l.contains("/proc si")).unwrap();
    assert!(line.contains("/proc si 100.0%"), "{line}");
    let row = seen.iter().find(|l| l.trim_start().starts_with("0     0")).unwrap();
    assert!(row.contains("100.0%"), "{row}");
}

#[test]
fn a_long_name_is_cut_and_no_figure_is() {
    let mut record = record(2);
    let Reading::Known(tasks) = &mut record.interval.interrupted_tasks else { panic!("made up") };
    tasks[0].process = Reading::Known("kworker/u8:3-events_unbound_and_more_of_it".into());
    let seen = picture(80, 24, &test_data::host(2, 1), Some(&record), &state());
    let head = &seen[7];
    assert!(head.ends_with("SOFTIRQS") || head.ends_with("OWN SOFTIRQ"), "{head}");
    assert!(seen.iter().any(|l| l.contains("kworker/u8:3-ev… ")), "{seen:#?}");
    let row = &seen[8];
    assert!(row.chars().count() <= 80, "{row}");
}

#[test]
fn the_tenth_table_has_the_senders() {
    let mut state = state();
    press(&mut state, "0");
    let mut record = record(2);
    record.interval.samples = Reading::Known(test_data::samples());
    let seen = picture(80, 24, &test_data::host(2, 1), Some(&record), &state);
    assert!(seen[6].contains("[0send]"), "{}", seen[6]);
    assert!(seen[7].starts_with("PROCESS   LIMITED BY"), "{seen:#?}");
    assert!(seen[8].starts_with("postgres  the network"), "{seen:#?}");
}

#[test]
fn a_large_host_is_grouped_by_node_and_shrinks_to_letters() {
    let (host, record) = (test_data::host(512, 4), record(512));
    let small = picture(80, 24, &host, Some(&record), &state());
    let letters: Vec<&String> = small.iter().filter(|l| l.starts_with("node ")).collect();
    assert_eq!(letters.len(), 8, "64 letters on a line: {small:#?}");
    assert!(letters[0].starts_with("node 0      0 SSSS"), "{}", letters[0]);
    assert!(letters[7].starts_with("node 3    448 "), "{}", letters[7]);
    let of = |text: &str| letters.iter().map(|l| l[14..].matches(text).count()).sum::<usize>();
    assert_eq!(of("S"), 52, "a tenth of the CPUs is busy");
    let large = picture(200, 60, &host, Some(&record), &state());
    let pairs: Vec<&String> = large.iter().filter(|l| l.starts_with("node ")).collect();
    assert_eq!(pairs.len(), 12, "48 CPUs a line on 4 nodes of 128: {large:#?}");
    assert!(pairs[0].contains("S3 S3"), "a digit for the tens of percent: {}", pairs[0]);
    assert!(large.iter().any(|l| l.contains("[3Tasks]")), "{large:#?}");
}

#[test]
fn bars_of_sixty_four_cpus_on_two_nodes() {
    let seen = picture(200, 60, &test_data::host(64, 2), Some(&record(64)), &state());
    assert!(seen.iter().any(|l| l == "node 0  CPUs 0-31"), "{seen:#?}");
    assert!(seen.iter().any(|l| l == "node 1  CPUs 32-63"), "{seen:#?}");
    let row = seen.iter().find(|l| l.starts_with("   0 SSS")).unwrap();
    assert_eq!(row.matches('%').count(), 9, "nine CPUs on a line: {row}");
}

#[test]
fn cpus_with_holes_and_without_a_node_are_shown() {
    let mut record = record(3);
    for (cpu, id) in record.interval.cpus.iter_mut().zip([0, 7, 1023]) {
        cpu.id = CpuId(id);
    }
    let mut host = test_data::host(1, 1);
    host.cpus.push(CpuNode { id: CpuId(7), numa_node: Reading::absent("none") });
    let seen = picture(80, 24, &host, Some(&record), &state()).join("\n");
    for text in ["node ?  CPUs 7,1023", "node 0  CPUs 0", "\n1023 "] {
        assert!(seen.contains(text), "{text:?} is missing in\n{seen}");
    }
}

#[test]
fn every_table_can_be_reached_and_says_what_it_is_about() {
    let heads = [
        "SYSCALL",
        "PACKETS",
        "LOST TO IRQ",
        "STACK p50",
        "MIGRATIONS",
        "SENDS",
        "COUNTER",
        "GIVES",
        "found nothing",
        "LIMITED BY",
    ];
    let (host, record) = (test_data::host(2, 1), record(2));
    let mut state = state();
    for (key, head) in "1234567890".chars().zip(heads) {
        press(&mut state, &key.to_string());
        let seen = picture(200, 60, &host, Some(&record), &state).join("\n");
        assert!(seen.contains(head), "table {key} does not say {head}:\n{seen}");
    }
    press(&mut state, "\t");
    assert_eq!(state.pane, Pane::Cpus, "the last is followed by the first");
}

#[test]
fn a_missing_part_says_why_and_what_would_grant_it() {
    let mut record = record(2);
    let why = "it takes root, or the capabilities CAP_BPF and CAP_PERFMON";
    for cpu in &mut record.interval.cpus {
        cpu.softirq_ns = Reading::denied(why);
    }
    record.interval.interrupted_tasks = Reading::denied(why);
    let mut state = state();
    let host = test_data::host(2, 1);
    let seen = picture(80, 24, &host, Some(&record), &state).join("\n");
    assert!(seen.contains("not permitted: it takes root"), "{seen}");
    assert!(seen.contains("/proc/stat, full bar 100%:  u user s system"), "{seen}");
    assert!(seen.contains("   0 uuuuu"), "the bars are what /proc claims:\n{seen}");
    press(&mut state, "8");
    let seen = picture(80, 24, &host, Some(&record), &state).join("\n");
    assert!(seen.contains("softirq time, interrupted tasks: it takes root"), "{seen}");
}

#[test]
fn findings_appear_are_counted_and_stay() {
    let mut record = record(2);
    record.findings.push(finding());
    let mut state = state();
    state.observe(&record);
    let later = WatchRecord {
        interval: model::watch::WatchInterval {
            ended_unix_ns: Nanos(record.interval.ended_unix_ns.0 + 1_000_000_000),
            ..record.interval.clone()
        },
        findings: vec![],
    };
    state.observe(&later);
    press(&mut state, "9");
    let seen = picture(110, 24, &test_data::host(2, 1), Some(&later), &state).join("\n");
    assert!(seen.contains("[9Findings 1]"), "{seen}");
    let says = "warning   polling on CPU 0 stopped with packets left  [time_squeeze 5]";
    assert!(seen.contains(says.split("  ").last().unwrap()), "{seen}");
    assert!(seen.contains("since 14:13:21 UTC, no longer"), "{seen}");
    assert!(seen.contains("time_squeeze: 196"), "{seen}");
}

#[test]
fn sorting_and_filtering() {
    let (host, record) = (test_data::host(4, 1), record(4));
    let mut state = state();
    press(&mut state, "2s");
    let top = |state: &ViewState| {
        let seen = picture(120, 30, &host, Some(&record), state);
        let at = seen.iter().position(|l| l.starts_with("NIC")).unwrap();
        (seen[at].clone(), seen[at + 1].clone())
    };
    assert!(top(&state).1.starts_with("eth0"));
    press(&mut state, "sssss");
    assert!(top(&state).1.contains("rx-0"), "by polls, the most first: {:?}", top(&state));
    press(&mut state, "fcpu:2 ETH\n");
    let seen = picture(120, 30, &host, Some(&record), &state).join("\n");
    assert!(seen.contains("filter: cpu:2 ETH"), "{seen}");
    assert!(seen.contains("\n   2 ") && !seen.contains("\n   1 "), "{seen}");
    assert!(seen.contains("rx-2") && !seen.contains("rx-1"), "{seen}");
    press(&mut state, "\x1bfcpu:x\n");
    let seen = picture(120, 30, &host, Some(&record), &state).join("\n");
    assert!(seen.contains("write cpu:0-3,8"), "{seen}");
    press(&mut state, "\x1b");
    assert_eq!(state.row_filter.text, "");
    press(&mut state, "fhalf");
    assert_eq!(state.editing.as_deref(), Some("half"), "q, s and p are letters while one types");
    press(&mut state, "\x1b");
    assert_eq!((state.editing, state.row_filter.text.as_str()), (None, ""));
}

#[test]
fn the_order_is_marked_and_turned_round() {
    let (host, record) = (test_data::host(4, 1), record(4));
    let mut state = state();
    let top = |state: &ViewState| {
        let seen = picture(120, 30, &host, Some(&record), state);
        let at = seen.iter().position(|l| l.contains("LOST TO IRQ")).unwrap();
        (seen[at].clone(), seen[at + 1].clone())
    };
    let (head, most) = top(&state);
    assert!(head.contains("LOST TO IRQ▼") && most.starts_with("1000 "), "{head}\n{most}");
    press(&mut state, "r");
    let (head, least) = top(&state);
    assert!(head.contains("LOST TO IRQ▲") && !least.starts_with("1000 "), "{head}\n{least}");
    press(&mut state, "ss");
    let (head, _) = top(&state);
    assert!(head.contains("NAME▼") && !head.contains("IRQ▲"), "{head}");
}

#[test]
fn rows_that_a_table_leaves_empty_show_further_tables() {
    let (host, record) = (test_data::host(2, 1), record(2));
    let tall = picture(120, 60, &host, Some(&record), &state());
    let at = |text: &str| tall.iter().position(|l| l == text);
    let (queues, waits) = (at("2 Queues").unwrap(), at("4 Waits").unwrap());
    assert!(queues < waits && at("3 Tasks").is_none(), "the chosen one comes once: {tall:#?}");
    assert!(tall[queues - 1].is_empty() && tall[queues + 1].starts_with("NIC▲"), "{tall:#?}");
    assert!(tall[59].starts_with("q quit"), "{tall:#?}");
    let small = picture(80, 20, &host, Some(&record), &state());
    assert!(!small.iter().any(|l| l == "2 Queues"), "the tasks fill it: {small:#?}");
}

#[test]
fn a_replay_seeks_and_says_where_it_is() {
    let mut state = ViewState::new(Default::default(), Some(ViewPosition { at: 2, of: 10 }));
    let act = |state: &mut ViewState, code| state.key(KeyEvent::new(code, KeyModifiers::NONE));
    assert_eq!(act(&mut state, KeyCode::Left), KeyAction::Go(Seek::By(-1)));
    assert!(state.paused, "who seeks wants to look");
    assert_eq!(act(&mut state, KeyCode::End), KeyAction::Go(Seek::Last));
    assert_eq!(act(&mut state, KeyCode::Home), KeyAction::Go(Seek::First));
    let seen = picture(80, 24, &test_data::host(2, 1), Some(&record(2)), &state);
    assert!(seen[0].ends_with("REPLAY 3/10 PAUSED"), "{}", seen[0]);
    assert_eq!(act(&mut state, KeyCode::Char(' ')), KeyAction::Draw);
    assert!(!state.paused);
    assert_eq!(act(&mut state, KeyCode::Char('q')), KeyAction::Quit);
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    press(&mut state, "f");
    assert_eq!(state.key(ctrl_c), KeyAction::Quit, "also while one types");
}

#[test]
fn help_and_the_time_before_the_first_interval() {
    let mut state = state();
    let host = test_data::host(2, 1);
    let seen = picture(80, 24, &host, None, &state).join("\n");
    assert!(seen.contains("waiting for the first interval"), "{seen}");
    press(&mut state, "?");
    let seen = picture(80, 24, &host, Some(&record(2)), &state);
    assert!(seen[1].starts_with("COLUMNS of this table"), "{seen:#?}");
    assert!(seen.iter().any(|l| l.starts_with("  LOST TO IRQ        time that")), "{seen:#?}");
    press(&mut state, "?");
    let seen = picture(80, 24, &host, Some(&record(2)), &state);
    assert!(seen[1].starts_with("KEYS"), "{seen:#?}");
    press(&mut state, "?");
    assert!(state.help.is_none());
    for page in [super::state::Help::Columns, super::state::Help::Keys] {
        for pane in Pane::ALL {
            let lines = super::help::lines(page, pane);
            assert!(lines.len() <= 23, "it fits 24 lines: {pane:?}");
            let wide = lines.iter().find(|l| l.chars().count() > 80);
            assert!(wide.is_none(), "{wide:?}");
        }
    }
}

#[test]
fn without_colour_the_picture_says_the_same() {
    let (host, record, state) = (test_data::host(20, 2), record(20), state());
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let screen = Screen { host: &host, record: Some(&record), state: &state, colour: false };
    terminal.draw(|f| draw(&screen, f.area(), f.buffer_mut())).unwrap();
    let buffer = terminal.backend().buffer();
    let plain = buffer.content().iter().all(|c| c.fg == ratatui::style::Color::Reset);
    assert!(plain, "a colour in spite of NO_COLOR");
    let text: String = buffer.content().iter().map(|c| c.symbol()).collect();
    let inked = picture(80, 24, &host, Some(&record), &state).join("");
    let bare = |t: &str| t.replace(' ', "");
    assert_eq!(bare(&text), bare(&inked));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_size_and_no_keys_make_it_panic(
        width in 1u16..240,
        height in 1u16..80,
        cpus in prop_oneof![Just(0u32), Just(1), Just(2), 3u32..40, Just(512)],
        nodes in 1u32..9,
        keys in "[0-9srtf<>?p x:0-9]{0,12}",
        scroll in prop_oneof![Just(0usize), Just(5), Just(usize::MAX)],
    ) {
        let (host, mut record) = (test_data::host(cpus, nodes), record(cpus));
        record.findings.push(finding());
        let mut state = state();
        state.observe(&record);
        press(&mut state, &keys);
        state.scroll = scroll;
        prop_assert_eq!(
            picture(width, height, &host, Some(&record), &state).len(),
            usize::from(height)
        );
    }
}

#[test]
fn the_smallest_terminals() {
    for (width, height) in [(1, 1), (1, 50), (200, 1), (2, 2), (10, 3)] {
        picture(width, height, &test_data::host(512, 8), Some(&record(512)), &state());
    }
}

/// CPU time of this thread, so that other tests and a busy machine do not count.
fn cpu_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// `cargo test --release -p netwright --bin netwright cost_of_512 -- --nocapture` prints the figure.
#[test]
fn the_cost_of_512_cpus_at_an_interval_a_second() {
    const ROUNDS: u64 = 10;
    let host = test_data::host(512, 8);
    let feed: Vec<WatchRecord> = (0..ROUNDS)
        .map(|turn| WatchRecord { interval: test_data::interval(512, turn), findings: vec![] })
        .collect();
    let mut terminal = Terminal::new(TestBackend::new(200, 60)).unwrap();
    let mut state = state();
    press(&mut state, "1");
    let (mut bytes, begun) = (0, cpu_ns());
    for record in &feed {
        bytes += serde_json::to_vec(&record.interval).unwrap().len();
        state.observe(record);
        let screen = Screen { host: &host, record: Some(record), state: &state, colour: true };
        terminal.draw(|f| draw(&screen, f.area(), f.buffer_mut())).unwrap();
    }
    let each_ms = (cpu_ns() - begun) as f64 / 1e6 / ROUNDS as f64;
    let (share, kb) = (each_ms / 10.0, bytes as u64 / ROUNDS / 1000);
    println!("512 CPUs at 1 Hz, JSON ({kb} kB) and picture: {each_ms:.1} ms, {share:.2}% of a CPU");
    // Unoptimised code takes about ten times as long.
    let most = if cfg!(debug_assertions) { 50.0 } else { 5.0 };
    assert!(share < most, "{share:.1}% of a CPU");
}

#[test]
fn that_a_followed_process_ended_is_said_until_esc() {
    let (host, mut state, mut record) = (test_data::host(2, 1), state(), record(2));
    record.interval.ended_processes =
        vec![model::watch::EndedProcess { pid: 4711, name: "iperf3".into() }];
    state.observe(&record);
    let about = |state: &ViewState| picture(80, 24, &host, Some(&record), state)[2].clone();
    assert!(about(&state).starts_with("process 4711 (iperf3) has ended"), "{}", about(&state));
    assert!(about(&state).ends_with("(esc)"));
    state.key(KeyCode::Esc.into());
    assert!(about(&state).starts_with("watching costs"), "{}", about(&state));
}
