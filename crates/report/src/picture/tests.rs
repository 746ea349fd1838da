use model::{Reading, reading::Known};

use super::*;
use crate::testing::{self, MachineShape};

fn big() -> Facts {
    let shape = MachineShape { packages: 2, nodes: 4, l3s: 4, cores: 4, threads: 2 };
    let mut f = testing::machine(shape);
    testing::add_nic(&mut f, "enp65s0f0np0", 2, 64, 100, &(32..96).collect::<Vec<_>>());
    testing::add_nic(&mut f, "eth1", 5, 16, 200, &(80..96).collect::<Vec<_>>());
    testing::add_process(&mut f, 900, "nginx", &[64, 65, 66, 67]);
    f
}

/// Every `name="number"` of the elements called `element`.
fn attributes(svg: &str, element: &str, name: &str) -> Vec<f64> {
    let of = |line: &str| {
        let rest = line.split(&format!(" {name}=\"")).nth(1)?;
        rest.split('"').next()?.parse().ok()
    };
    svg.lines().filter(|l| l.starts_with(&format!("<{element} "))).filter_map(of).collect()
}

/// Texts as boxes: left, top, right, bottom.
fn texts(svg: &str) -> Vec<(String, [f64; 4])> {
    let (xs, ys) = (attributes(svg, "text", "x"), attributes(svg, "text", "y"));
    let sizes = attributes(svg, "text", "font-size");
    let lines: Vec<&str> = svg.lines().filter(|l| l.starts_with("<text ")).collect();
    lines
        .iter()
        .zip(xs.iter().zip(ys).zip(sizes))
        .map(|(line, ((x, y), size))| {
            let text = line.split('>').nth(1).unwrap().split('<').next().unwrap();
            let text = text.replace("&#39;", "'").replace("&quot;", "\"").replace("&amp;", "&");
            let w = svg::text_width(&text, size);
            let left = if line.contains("\"middle\"") {
                x - w / 2.0
            } else if line.contains("\"end\"") {
                x - w
            } else {
                *x
            };
            (text, [left, y - size * 0.75, left + w, y + size * 0.2])
        })
        .collect()
}

/// Discs hide no text but their own letter.
fn discs_hide_nothing(svg: &str) {
    let (xs, ys) = (attributes(svg, "circle", "cx"), attributes(svg, "circle", "cy"));
    let rs = attributes(svg, "circle", "r");
    for ((x, y), r) in xs.iter().zip(ys).zip(rs) {
        for (text, [l, t, right, b]) in texts(svg) {
            let covered = l < x + r && right > x - r && t < y + r && b > y - r;
            let own = text.chars().count() == 1 && ((l + right) / 2.0 - x).abs() < 0.1;
            assert!(!covered || own, "a disc at {x},{y} covers {text:?}");
        }
    }
}

fn is_readable(svg: &str) {
    discs_hide_nothing(svg);
    let size = (attributes(svg, "svg", "width")[0], attributes(svg, "svg", "height")[0]);
    let smallest = attributes(svg, "text", "font-size").into_iter().fold(99.0, f64::min);
    assert!(smallest >= 8.0, "a text of {smallest} px");
    let all: Vec<_> = texts(svg).into_iter().filter(|(t, _)| !t.is_empty()).collect();
    for (i, (a, [l, t, r, b])) in all.iter().enumerate() {
        assert!(*l >= 0.0 && *t >= 0.0 && *r <= size.0 && *b <= size.1, "{a:?} leaves the page");
        for (other, [l2, t2, r2, b2]) in all.iter().skip(i + 1) {
            let apart = r <= l2 || r2 <= l || b <= t2 || b2 <= t;
            assert!(apart, "{a:?} overlaps {other:?}");
        }
    }
}

#[test]
fn readable_at_2_64_256_and_1024_cpus() {
    let mut two =
        testing::machine(MachineShape { packages: 1, nodes: 1, l3s: 1, cores: 2, threads: 1 });
    testing::add_nic(&mut two, "eth0", 0, 2, 24, &[0, 1]);
    testing::add_process(&mut two, 12, "postgres", &[0, 1, 1]);
    is_readable(&svg(&two));

    let shape = MachineShape { packages: 2, nodes: 2, l3s: 2, cores: 4, threads: 2 };
    let mut middle = testing::machine(shape);
    testing::add_nic(&mut middle, "eth0", 0, 32, 40, &(0..32).collect::<Vec<_>>());
    testing::add_nic(&mut middle, "eth1", 3, 8, 80, &[0, 0, 0, 0, 24, 25, 26, 27]);
    for name in ["nginx", "postgres", "ceph-osd"] {
        testing::add_process(&mut middle, 100, name, &[1, 2, 3]);
    }
    middle.cpus[63].online = Known(false);
    middle.cpus[7].isolated = Known(true);
    is_readable(&svg(&middle));

    is_readable(&svg(&big()));
    let shape = MachineShape { packages: 4, nodes: 2, l3s: 8, cores: 16, threads: 1 };
    let mut huge = testing::machine(shape);
    testing::add_process(&mut huge, 7, "iperf3", &[999, 1000, 1023]);
    is_readable(&svg(&huge));
}

#[test]
fn every_cpu_is_there_once_and_nics_are_at_their_node() {
    let out = svg(&big());
    for cpu in 0..256 {
        let n = out.matches(&format!("<title>CPU {cpu},")).count();
        assert_eq!(n, 1, "CPU {cpu}");
    }
    assert!(
        out.contains("IRQ 100 enp65s0f0np0 rx+tx 0 (the NIC is on another node)") || {
            out.contains("IRQ 100 enp65s0f0np0 rx+tx 0")
        }
    );
    assert!(out.contains("lands on another node than its NIC&#39;s"));
    assert!(out.contains("nginx: 1 thread last ran here"));
    assert!(!out.contains("node not known"));
}

#[test]
fn a_host_that_tells_nothing_still_gives_a_picture() {
    is_readable(&svg(&testing::nothing()));
    let mut f = testing::nothing();
    f.cpus = (0..6).map(testing::cpu).collect();
    testing::add_nic(&mut f, "eth0", 0, 1, 9, &[3]);
    f.nics[0].numa_node = Reading::absent("-1");
    f.host.name = Known("<script>alert(1)</script>".into());
    let out = svg(&f);
    is_readable(&out);
    assert!(!out.contains("<script"));
}

#[test]
fn an_interrupt_that_may_go_anywhere_is_listed_not_drawn() {
    let mut f = big();
    let mut irqs = f.irqs.get().unwrap();
    irqs[0].effective_affinity = Reading::absent("4.12");
    irqs[0].affinity = Known("0-255".parse().unwrap());
    f.irqs = Known(irqs);
    let out = svg(&f);
    assert!(!out.contains("IRQ 100 "));
    assert!(out.contains("1 interrupt of enp65s0f0np0 may go to more than 16 CPUs"));
}
