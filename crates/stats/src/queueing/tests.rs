//! Against closed forms, identities and an event simulation.

use super::{simulation::play, *};
use crate::student::two_sided_t;

fn network(stations: &[Station]) -> Network {
    Network::new(stations.to_vec()).unwrap()
}

fn close(a: f64, b: f64, share: f64) {
    assert!((a - b).abs() <= share * b.abs(), "{a} against {b}");
}

/// M/M/c//N: N machines that break after `z`, c repairmen who take `s`. The birth-death
/// solution (Gross and Harris, Fundamentals of Queueing Theory, 1998, section 2.8), in plain
/// arithmetic: throughput and mean number at the repairmen.
fn repairmen(n: u32, c: u32, z: f64, s: f64) -> (f64, f64) {
    let mut weight = vec![1.0f64];
    for k in 0..n {
        let (breaks, repairs) = (f64::from(n - k) / z, f64::from((k + 1).min(c)) / s);
        weight.push(weight.last().unwrap() * breaks / repairs);
    }
    let all: f64 = weight.iter().sum();
    let mean = |of: &dyn Fn(f64) -> f64| {
        (0..).zip(&weight).map(|(k, w)| of(f64::from(k)) * w).sum::<f64>() / all
    };
    (mean(&|k| k.min(c.into()) / s), mean(&|k| k))
}

#[test]
fn machines_and_repairmen_agree_with_the_birth_death_solution() {
    for (n, c, z, s) in [
        (1, 1, 50.0, 10.0),
        (8, 1, 50.0, 10.0),
        (64, 1, 500.0, 10.0),
        (8, 4, 50.0, 40.0),
        (64, 16, 900.0, 300.0),
        (100, 64, 20.0, 500.0),
        (5, 64, 20.0, 500.0),
    ] {
        let solved = network(&[Station::delay("up", z), Station::servers("repair", c, s)]);
        let solved = solved.solve(n).unwrap();
        let (throughput, queue) = repairmen(n, c, z, s);
        close(solved.per_s / 1e9, throughput, 1e-10);
        let repair = solved.station("repair").unwrap();
        close(repair.queue, queue, 1e-9);
        close(repair.residence_ns, queue / throughput, 1e-9);
        close(repair.utilization.unwrap(), throughput * s / f64::from(c), 1e-9);
        close(repair.waiting_ns + s, queue / throughput, 1e-9);
    }
}

/// Mean value analysis for single servers (Reiser and Lavenberg 1980): another way there.
fn mva(demands: &[f64], delay: f64, n: u32) -> (f64, Vec<f64>) {
    let (mut queues, mut x) = (vec![0.0; demands.len()], 0.0);
    for k in 1..=n {
        let times: Vec<f64> = demands.iter().zip(&queues).map(|(d, q)| d * (1.0 + q)).collect();
        x = f64::from(k) / (delay + times.iter().sum::<f64>());
        queues = times.iter().map(|t| t * x).collect();
    }
    (x, queues)
}

#[test]
fn single_servers_agree_with_mean_value_analysis_up_to_the_most_clients() {
    let demands = [7.0, 20.0, 19.5, 0.001];
    let mut stations: Vec<Station> =
        demands.iter().map(|d| Station::servers(format!("{d}"), 1, *d)).collect();
    stations.push(Station::delay("path", 800.0));
    let network = network(&stations);
    for n in [1, 2, 40, 500, MOST_CLIENTS] {
        let solved = network.solve(n).unwrap();
        let (x, queues) = mva(&demands, 800.0, n);
        close(solved.per_s / 1e9, x, 1e-8);
        for (station, queue) in solved.stations.iter().zip(queues) {
            close(station.queue, queue, 1e-6);
        }
    }
}

#[test]
fn many_clients_and_servers_keep_every_digit() {
    // Where mean value analysis with load-dependent stations breaks down.
    let stations = [
        Station::servers("cpu", 64, 1_000_000.0),
        Station::servers("client", 16, 300_000.0),
        Station::servers("disk", 1, 15_000.0),
        Station::delay("path", 80_000.0),
    ];
    let network = network(&stations);
    let mut before = 0.0;
    for (n, x) in network.per_s(MOST_CLIENTS).unwrap().into_iter().enumerate().skip(1) {
        assert!(x.is_finite() && x >= before * (1.0 - 1e-12), "{n}: {x} after {before}");
        before = x;
    }
    let solved = network.solve(MOST_CLIENTS).unwrap();
    let there: f64 = solved.stations.iter().map(|s| s.queue).sum();
    close(there, f64::from(MOST_CLIENTS), 1e-6);
    close(solved.per_s, 16.0 * 1e9 / 300_000.0, 1e-9);
}

#[test]
fn everybody_is_somewhere_and_the_utilization_law_holds() {
    let stations = [
        Station::servers("a", 3, 50.0),
        Station {
            name: "b".into(),
            kind: StationKind::Rates(vec![1.0, 1.9, 2.5]),
            demand_ns: 40.0,
        },
        Station::servers("c", 1, 9.0),
        Station::delay("d", 120.0),
        Station::delay("e", 7.0),
    ];
    let network = network(&stations);
    for n in 1..60 {
        let solved = network.solve(n).unwrap();
        close(solved.stations.iter().map(|s| s.queue).sum(), n.into(), 1e-9);
        close(solved.stations.iter().map(|s| s.residence_ns).sum(), solved.cycle_ns, 1e-9);
        let bounds = network.bounds(n);
        let (least, most) = (bounds.least_per_s * (1.0 - 1e-9), bounds.most_per_s * (1.0 + 1e-9));
        assert!((least..=most).contains(&solved.per_s), "{n}");
    }
    let one = network.solve(1).unwrap();
    close(one.cycle_ns, 226.0, 1e-12);
    assert_eq!(network.solve(0).unwrap().per_s, 0.0);
}

#[test]
fn rates_that_say_the_same_as_servers_give_the_same() {
    let rates = StationKind::Rates((1..=5).map(f64::from).collect());
    let same = |kind| {
        let station = Station { name: "cpu".into(), kind, demand_ns: 90.0 };
        network(&[station, Station::delay("path", 30.0), Station::servers("one", 1, 4.0)])
            .solve(200)
            .unwrap()
    };
    let (a, b) = (same(rates), same(StationKind::Servers(5)));
    close(a.per_s, b.per_s, 1e-9);
    close(a.stations[0].queue, b.stations[0].queue, 1e-9);
}

#[test]
fn the_event_simulation_agrees_within_its_error() {
    let stations = [
        Station::servers("client", 1, 5.0),
        Station::delay("there", 25.0),
        Station::servers("server", 4, 30.0),
        Station::delay("back", 25.0),
    ];
    for clients in [1, 6, 12, 30] {
        let rates = play(&stations, clients, 60_000, 42 + clients as u64);
        // The first batch begins with everybody in one place.
        let rates = &rates[1..];
        let n = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / n;
        let spread = rates.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = two_sided_t(0.999, rates.len() as u32 - 1) * (spread / n).sqrt();
        let ours = network(&stations).solve(clients as u32).unwrap().per_s;
        assert!((ours - mean).abs() < error, "{clients}: {ours}, played {mean} ± {error}");
        assert!(error < mean * 0.02, "{clients}: the simulation says too little");
    }
}

#[test]
fn balanced_jobs_are_tighter_than_the_asymptotes_and_hold() {
    let stations = [
        Station::servers("a", 1, 5.0),
        Station::servers("b", 1, 8.0),
        Station::servers("c", 1, 3.0),
        Station::delay("path", 40.0),
    ];
    let network = network(&stations);
    for n in [1, 2, 5, 7, 20, 300] {
        let (x, bounds) = (network.solve(n).unwrap().per_s, network.bounds(n));
        let (least, most) = bounds.balanced_per_s.unwrap();
        let room = 1.0 + 1e-9;
        assert!(least <= x * room && x <= most * room, "{n}: {least} {x} {most}");
        assert!(bounds.least_per_s <= least * room && most <= bounds.most_per_s * room, "{n}");
    }
    close(network.knee().unwrap(), 56.0 / 8.0, 1e-12);
    assert_eq!(network.limiting().unwrap().name, "b");
}

#[test]
fn more_cores_move_the_limit_and_no_network_leaves_the_rest() {
    let network = network(&[
        Station::servers("server", 2, 100.0),
        Station::servers("client", 1, 30.0),
        Station::delay("path", 400.0),
    ]);
    assert_eq!(network.limiting().unwrap().name, "server");
    let doubled = network.with_servers("server", 2).unwrap();
    assert_eq!(doubled.limiting().unwrap().name, "client");
    close(doubled.bounds(1000).most_per_s, 1e9 / 30.0, 1e-12);
    let local = network.without("path").unwrap();
    close(local.solve(1).unwrap().cycle_ns, 130.0, 1e-12);
    close(network.with_demand("path", 70.0).unwrap().solve(1).unwrap().cycle_ns, 200.0, 1e-12);
    let delays = Network::new(vec![Station::delay("path", 5.0)]).unwrap();
    assert_eq!((delays.knee(), delays.limiting()), (None, None));
    close(delays.solve(9).unwrap().per_s, 9e9 / 5.0, 1e-12);
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |s| Network::new(vec![s]).unwrap_err();
    assert_eq!(refused(Station::delay("a", -1.0)), NoNetwork::Demand("a".into()));
    assert_eq!(refused(Station::delay("a", f64::NAN)), NoNetwork::Demand("a".into()));
    assert_eq!(refused(Station::servers("a", 0, 1.0)), NoNetwork::Servers("a".into()));
    assert_eq!(refused(Station::delay("a", 0.0)), NoNetwork::Empty);
    let rates =
        Station { name: "a".into(), kind: StationKind::Rates(vec![1.0, 0.0]), demand_ns: 1.0 };
    assert_eq!(refused(rates), NoNetwork::Servers("a".into()));
    let fine = network(&[Station::delay("a", 1.0)]);
    assert_eq!(fine.solve(MOST_CLIENTS + 1), Err(NoNetwork::TooMany(MOST_CLIENTS + 1)));
}
