use super::*;

/// A truth of product form, looked at through what can be measured of it.
fn known(most: u32) -> (Network, Known) {
    let truth = Network::new(vec![
        Station::servers(CLIENT, 1, 6_000.0),
        Station::servers(SERVER, 4, 40_000.0),
        Station::delay(PATH, 20_000.0),
    ])
    .unwrap();
    let rates = truth.per_s(most).unwrap();
    let level = |n: u32| Level {
        clients: n,
        per_s: rates[n as usize],
        low_per_s: rates[n as usize],
        high_per_s: rates[n as usize],
        client_cpu_ns: Some(6_000.0),
        server_cpu_ns: Some(40_000.0),
        host_cpu_ns: None,
        ..Level::default()
    };
    let levels = (0..).map(|i| 1 << i).take_while(|n| *n <= most).map(level).collect();
    let known = Known {
        levels,
        network_ns: 25_000.0,
        service: reported(39_000.0),
        own_ns: 2_000.0,
        client_threads: 1,
        server_threads: Some(4),
        cpus: None,
    };
    (truth, known)
}

/// As if it had been measured without any spread.
fn reported(ns: f64) -> Centre {
    Centre { value: ns, low: ns, high: ns }
}

fn delay(ns: f64) -> Added {
    Added { ns, ..Added::default() }
}

/// Client, server and the path's carrier on the same two CPUs: a delay alone says far too much.
#[test]
fn a_path_that_takes_cpu_time_of_this_host_leaves_less_for_the_rest() {
    let of = |cpu: f64, wire: f64| {
        let cpus = Station::servers("CPUs", 2, cpu);
        Network::new(vec![cpus, Station::delay(PATH, wire)]).unwrap()
    };
    let (here, there) = (of(46_000.0, 20_000.0), of(86_000.0, 100_000.0));
    let (_, mut known) = known(64);
    for level in &mut known.levels {
        level.per_s = here.solve(level.clients).unwrap().per_s;
    }
    let added = Added { ns: 120_000.0, unseen_ns: 0.0, cpu_ns: 40_000.0 };
    let at = |known: &Known, n| Model::new(known.clone()).unwrap().predict("x", added, n);
    known.cpus = Some(2);
    for n in [1, 4, 16, 64] {
        let truth = there.solve(n).unwrap().per_s;
        let p = at(&known, n).unwrap();
        assert!((p.predicted_per_s / truth - 1.0).abs() < 0.06, "{n}: {truth} {p:?}");
    }
    let truth = there.solve(64).unwrap().per_s;
    known.cpus = None;
    assert!(at(&known, 64).unwrap().predicted_per_s > truth * 1.5, "nobody told of CPUs");
}

/// What a host with so many CPUs makes of this with each number of clients, as it is seen.
fn seen(cpus: u32, cpu: f64, rest: f64, clients: &[u32]) -> Vec<Level> {
    let stations = vec![Station::servers("CPUs", cpus, cpu), Station::delay(PATH, rest)];
    let truth = Network::new(stations).unwrap();
    let level = |n: &u32| {
        let per_s = truth.solve(*n).unwrap().per_s;
        let (client, server) = (Some(cpu * 0.4), Some(cpu * 0.6));
        Level {
            clients: *n,
            per_s,
            low_per_s: per_s,
            high_per_s: per_s,
            client_cpu_ns: client,
            server_cpu_ns: server,
            host_cpu_ns: Some(cpu),
            ..Level::default()
        }
    };
    clients.iter().map(level).collect()
}

/// What was seen elsewhere, with a path that adds so much.
fn of(added_ns: f64, level: &Level) -> MeasuredPath {
    MeasuredPath {
        clients: level.clients,
        added_ns,
        per_s: level.per_s,
        own_cpu_ns: None,
        host_cpu_ns: level.host_cpu_ns,
    }
}

/// A synthetic workload says what the path takes of the CPUs; the workload, which computes for longer, has
/// the same taken off it there.
#[test]
fn a_twins_fate_elsewhere_says_what_the_path_takes_and_what_becomes_of_the_workload() {
    let all = [1, 2, 4, 8, 16];
    let model = |levels| {
        let (_, known) = known(1);
        Model::new(Known { levels, cpus: Some(2), ..known }).unwrap()
    };
    for (path_cpu, path_delay) in [(20_000.0, 150_000.0), (5_000.0, 60_000.0)] {
        let added = path_cpu + path_delay;
        let synthetic = model(seen(2, 16_000.0, 12_000.0, &all));
        let there = seen(2, 16_000.0 + path_cpu, 12_000.0 + path_delay, &[16, 64]);
        let found = synthetic.path_cpu_ns(of(added, &there[0])).unwrap().unwrap();
        assert_eq!(found.ns, found.fitted_ns, "what explains it is bounded by nothing");
        let found = found.ns;
        // Full CPUs tell it; the curve is a straight line between what was measured.
        assert!((found / path_cpu - 1.0).abs() < 0.15, "{found} of {path_cpu}");
        for demand in [12_000.0, 19_000.0, 60_000.0] {
            let workload = model(seen(2, demand, 10_000.0, &all));
            let added = Added { ns: added, unseen_ns: 0.0, cpu_ns: found };
            let p = workload.predict("x", added, 16).unwrap();
            let truth = seen(2, demand + path_cpu, 10_000.0 + path_delay, &[16]);
            let off = p.predicted_per_s / truth[0].per_s - 1.0;
            assert!(off.abs() < 0.05, "{demand}: {off}");
        }
    }
}

#[test]
fn a_synthetic_workload_takes_no_less_than_nothing_and_no_more_than_the_path_adds() {
    let (_, unknown) = known(16);
    let levels = seen(2, 16_000.0, 12_000.0, &[1, 2, 4, 8, 16]);
    let synthetic = Model::new(Known { levels, cpus: Some(2), ..unknown.clone() }).unwrap();
    let there = |added_ns: f64, per_s: f64| MeasuredPath {
        clients: 16,
        added_ns,
        per_s,
        own_cpu_ns: None,
        host_cpu_ns: None,
    };
    let none = synthetic.path_cpu_ns(there(50_000.0, 1e9)).unwrap();
    assert_eq!(none, Some(PathCpu { ns: 0.0, fitted_ns: 0.0 }));
    let all = synthetic.path_cpu_ns(there(50_000.0, 1.0)).unwrap().unwrap();
    assert!((all.ns / 50_000.0 - 1.0).abs() < 1e-3, "{all:?}");
    assert!(all.fitted_ns > all.ns * 2.0, "not even all of it explains it: {all:?}");
    // Nobody tells of the CPUs.
    assert_eq!(Model::new(unknown).unwrap().path_cpu_ns(there(5e4, 1e4)).unwrap(), None);
    assert!(synthetic.path_cpu_ns(there(f64::NAN, 1e4)).is_err());
}

/// The synthetic workload stood still for a while there: a third as fast as the path makes it. What it would take to
/// explain that, the CPUs were never busy with.
#[test]
fn a_paths_cpu_time_is_no_more_than_this_host_was_busy_with() {
    let (_, unknown) = known(16);
    let all = [1, 2, 4, 8, 16];
    let levels = seen(2, 16_000.0, 12_000.0, &all);
    let synthetic = Model::new(Known { levels, cpus: Some(2), ..unknown.clone() }).unwrap();
    let (path_cpu, path_delay) = (20_000.0, 150_000.0);
    let added = path_cpu + path_delay;
    let truth = &seen(2, 16_000.0 + path_cpu, 12_000.0 + path_delay, &[16])[0];
    let stalled = Level { per_s: truth.per_s / 3.0, ..truth.clone() };
    let reported = MeasuredPath { own_cpu_ns: Some(16_000.0), ..of(added, &stalled) };
    let found = synthetic.path_cpu_ns(reported).unwrap().unwrap();
    assert!(found.fitted_ns > 4.0 * path_cpu, "{found:?}");
    assert!((path_cpu * 0.99..path_cpu * 1.5).contains(&found.ns), "{found:?}");
    // Where nobody tells what was busy: no more than all CPUs have between two transactions.
    let blind = MeasuredPath { host_cpu_ns: None, ..reported };
    let most = synthetic.path_cpu_ns(blind).unwrap().unwrap();
    assert!(most.ns <= 2e9 / stalled.per_s - 16_000.0 + 1e-6, "{most:?}");
    // The workload is predicted with it as it is, and was far off with what was fitted.
    let levels = seen(2, 19_000.0, 10_000.0, &all);
    let workload = Model::new(Known { levels, cpus: Some(2), ..unknown }).unwrap();
    let truth = &seen(2, 19_000.0 + path_cpu, 10_000.0 + path_delay, &[16])[0];
    let off = |cpu_ns: f64| {
        let added = Added { ns: added, unseen_ns: 0.0, cpu_ns };
        workload.predict("x", added, 16).unwrap().predicted_per_s / truth.per_s - 1.0
    };
    assert!(off(found.ns).abs() < 0.2, "{}", off(found.ns));
    assert!(off(found.fitted_ns) < -0.4, "{}", off(found.fitted_ns));
}

#[test]
fn another_path_comes_out_within_its_interval() {
    let (truth, known) = known(64);
    let model = Model::new(known).unwrap();
    for (rtt, added) in [(105_000.0, 80_000.0), (2_025_000.0, 2e6), (15_000.0, -10_000.0)] {
        let there = truth.with_demand(PATH, 20_000.0 + added).unwrap();
        for n in [1, 3, 8, 64] {
            let p = model.predict("x", delay(rtt - 25_000.0), n).unwrap();
            let truth = there.solve(n).unwrap().per_s;
            assert!((p.predicted_per_s / truth - 1.0).abs() < 0.08, "{n}: {truth} {p:?}");
            // Between measured levels the curve is a straight line.
            assert!(p.low_per_s < truth * 1.02 && truth * 0.98 < p.high_per_s, "{truth} {p:?}");
        }
    }
    let one = model.predict("x", delay(80_000.0), 1).unwrap();
    assert!((one.predicted_per_s / 1e9 * 146_000.0 - 1.0).abs() < 1e-6, "{one:?}");
    assert_eq!(one.limiting.as_deref(), Some(PATH));
    let simple = one.naive_per_s.unwrap();
    assert!((simple / 1e9 * 146_000.0 - 1.0).abs() < 1e-6, "the low-load limit: {simple}");
}

#[test]
fn the_knee_the_limit_and_the_changes_are_the_truths() {
    let (truth, known) = known(64);
    let model = Model::new(known).unwrap();
    assert_eq!(model.limiting().as_deref(), Some(SERVER));
    let knee = model.knee().unwrap();
    assert!((knee / truth.knee().unwrap() - 1.0).abs() < 0.01, "{knee}");
    let all = model.what_if(64, Some(5)).unwrap();
    let factor = |name: &str| all.iter().find(|w| w.change == name).unwrap().factor;
    // 100,000 a second by 4 servers; the client's one CPU stops at 166,667.
    assert!((factor("server CPUs doubled") - 1.667).abs() < 0.01);
    assert!((factor("5 server CPUs") - 1.25).abs() < 0.01);
    assert!((factor("client CPUs doubled") - 1.0).abs() < 0.01);
    let one = model.what_if(1, None).unwrap();
    assert!((one[0].factor - 66.0 / 41.0).abs() < 0.01, "{one:?}");
}

#[test]
fn an_unknown_number_of_servers_is_the_number_kept_busy() {
    let (_, mut known) = known(64);
    known.server_threads = None;
    assert_eq!(Model::new(known.clone()).unwrap().servers(), 4);
    known.levels.clear();
    assert!(Model::new(known).is_none());
}
