//! `doctor --fleet` before a real Prometheus that scrapes made-up hosts, and before servers that are none.

mod cost;

use std::{
    fs,
    io::Write,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::support::{
    NETWRIGHT,
    exporter::{Exporter, PATIENCE, Prometheus},
    fleet::{Planted, Simulated, SimulatedFleet},
    http::{Request, Server},
    schema::ended,
    tls::Authority,
};

fn doctor(url: &str, args: &[&str]) -> Output {
    let mut command = Command::new(NETWRIGHT);
    ended(command.args(["doctor", "--fleet", url]).args(args))
}

fn text(out: &Output) -> String {
    String::from_utf8(out.stdout.clone()).unwrap()
}

fn json(url: &str, args: &[&str]) -> Value {
    let out = doctor(url, &[args, &["--json"]].concat());
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    serde_json::from_slice(&out.stdout).unwrap()
}

fn finding(
    rule: &'static str,
    severity: &'static str,
    change: Option<(&'static str, &str)>,
) -> Planted {
    let change = change.map(|(knob, value)| (knob, value.to_owned()));
    Planted { rule, subject: "eth0".into(), severity, change }
}

const KNOB: &str = "sysctl.net.core.somaxconn";

/// Eight hosts: h0 is well, h1 to h5 have a warning, h2 and h3 also a critical finding, h6 is down, h7 has
/// stalled.
fn eight() -> Vec<Simulated> {
    let warning = || finding("accept_queue_overflow", "warning", Some((KNOB, "8192")));
    let critical =
        || finding("udp_receive_drops", "critical", Some(("sysctl.net.core.rmem_max", "4194304")));
    let info = || finding("numa_balancing", "info", Some(("sysctl.kernel.numa_balancing", "0")));
    (0..8)
        .map(|n| {
            let mut findings = if n < 6 { vec![info()] } else { vec![] };
            if (1..6).contains(&n) {
                findings.push(warning());
            }
            if n == 2 || n == 3 {
                findings.push(critical());
            }
            Simulated {
                findings,
                is_down: n == 6,
                age_s: if n == 7 { 1000 } else { 0 },
                dc: if n < 4 { "ams" } else { "fra" },
                drifted: (n == 0).then_some(KNOB),
            }
        })
        .collect()
}

/// Waits until each target was scraped.
fn scraped(prometheus: &Prometheus, up: usize, down: usize) {
    let until = Instant::now() + 2 * PATIENCE;
    let count = |query: &str| {
        let result = prometheus.query(query);
        result.first().map_or(0, |r| r["value"][1].as_str().unwrap().parse::<usize>().unwrap())
    };
    while count("count(up == 1)") != up || count("count(up == 0)") != down {
        assert!(Instant::now() < until, "{}", prometheus.api("/api/v1/targets"));
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|v| v.as_str().or(v["name"].as_str()).unwrap()).collect()
}

#[test]
fn hosts_causes_and_the_change_for_most_are_those_that_were_planted() {
    let fleet = SimulatedFleet::start(eight());
    // A mesh in the same job is no host.
    let mesh = Exporter::of("mesh", &["--peers", "dns:127.0.0.1", "--every", "1h"]);
    let config = format!("{}  - {{targets: ['{}']}}\n", fleet.config("5s"), mesh.address);
    let prometheus = Prometheus::start(&config, "");
    scraped(&prometheus, 8, 1);
    let url = prometheus.url();

    let document = json(&url, &[]);
    let of = |n: usize, key: &str| document["hosts"][n][key].clone();
    assert_eq!(
        names(&document["hosts"]),
        ["h2:7473", "h3:7473", "h1:7473", "h4:7473", "h5:7473", "h6:7473", "h7:7473", "h0:7473"]
    );
    assert_eq!(
        (of(0, "critical"), of(0, "warning"), of(0, "info")),
        (1.into(), 1.into(), 1.into())
    );
    assert_eq!(
        (of(5, "state"), of(6, "state"), of(7, "state")),
        ("down".into(), "stalled".into(), "judged".into())
    );
    assert_eq!(of(7, "drifted")[0], KNOB);
    assert_eq!(of(0, "version"), env!("CARGO_PKG_VERSION"));
    let causes: Vec<(&str, usize)> = document["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["rule"].as_str().unwrap(), c["hosts"].as_array().unwrap().len()))
        .collect();
    assert_eq!(causes, [("accept_queue_overflow", 5), ("udp_receive_drops", 2)]);
    let change = &document["changes"][0];
    assert_eq!((change["knob"].as_str(), change["value"].as_str()), (Some(KNOB), Some("8192")));
    assert_eq!(names(&change["hosts"]), ["h2:7473", "h3:7473", "h1:7473", "h4:7473", "h5:7473"]);
    let command = change["command"].as_str().unwrap();
    assert!(command.contains(
        "--limit h2,h3,h1,h4,h5 -e '{\"settings\": {\"sysctl.net.core.somaxconn\": 8192}}'"
    ));

    let page = text(&doctor(&url, &["--top", "2"]));
    assert!(
        page.starts_with(
            "5 of 8 hosts have findings; the commonest cause is accept_queue_overflow, on 5"
        ),
        "{page}"
    );
    for line in ["1 host down: ", "h6:7473\n", "1 host stalled: ", "… and 4 more hosts", command]
    {
        assert!(page.contains(line), "{line} is not in {page}");
    }
    let all = text(&doctor(&url, &["-v"]));
    assert!(
        !all.contains("more hosts") && all.contains("drift of sysctl.net.core.somaxconn"),
        "{all}"
    );

    // Some hosts, some severities.
    let ams = json(&url, &["--match", "dc=\"ams\"", "--min-severity", "info"]);
    assert_eq!(names(&ams["hosts"]), ["h2:7473", "h3:7473", "h1:7473", "h0:7473"]);
    assert_eq!(ams["causes"][0]["rule"], "numa_balancing");
    let critical = json(&url, &["--min-severity", "critical"]);
    assert_eq!(names(&critical["causes"][0]["hosts"]), ["h2:7473", "h3:7473"]);
    assert_eq!(critical["hosts"].as_array().unwrap().len(), 8);

    // For a pipeline: a finding, and a host of which nobody knows.
    let code = |args: &[&str]| doctor(&url, args).status.code();
    assert_eq!(code(&["--fail-on", "critical", "--match", "dc=\"ams\""]), Some(1));
    assert_eq!(code(&["--fail-on", "critical", "--match", "instance=~\"h[01].*\""]), Some(0));
    assert_eq!(code(&["--fail-on", "critical", "--match", "instance=~\"h[06].*\""]), Some(1));

    refused(&doctor(&url, &["--match", "dc=~\"[\""]), 2, "it refuses the query");
    refused(
        &doctor(&url, &["--match", "dc=\"nowhere\""]),
        4,
        "no netwright_build_info with dc=\"nowhere\"",
    );
    refused(&doctor(&format!("{url}/elsewhere"), &[]), 4, "no Prometheus is there");

    // Nor is it one when it is down.
    assert_eq!(mesh.end(), Some(0));
    scraped(&prometheus, 7, 2);
    let after = json(&url, &[]);
    assert_eq!(names(&after["hosts"]), names(&document["hosts"]));
}

/// One line that says what happened, and the exit code.
fn refused(out: &Output, code: i32, says: &str) {
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{said}");
    assert!(said.contains(says), "{says:?} is not in {said:?}");
    assert!(said.starts_with("netwright: ") && said.lines().count() == 1, "{said:?}");
    assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{said:?}");
    assert!(said.chars().count() < 500 && out.stdout.is_empty(), "{said:?}");
}

#[test]
fn a_prometheus_with_tls_and_a_login_is_asked_with_both() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let address = Prometheus::free_address();
    Authority::new(folder.path()).signs("server", &format!("IP:{}", address.ip()), 2);
    // bcrypt of "correct-horse".
    let hash = "$2b$06$Jqq7mI4yZkQqQKeuHlxbNu4n6kPne7FWF2zsPSYyHXEh4b25ZXlyW";
    let web = format!(
        "tls_server_config: {{cert_file: {}, key_file: {}}}\nbasic_auth_users: {{team: '{hash}'}}\n",
        at("server.crt"),
        at("server.key")
    );
    fs::write(at("web.yml"), web).unwrap();
    let fleet = SimulatedFleet::start(vec![Simulated::default()]);
    let prometheus = Prometheus::start_tls(address, &fleet.config("1s"), Path::new(&at("web.yml")));
    fs::write(at("secret"), "team:correct-horse\n").unwrap();
    fs::write(at("wrong"), "team:other\n").unwrap();
    let url = prometheus.url().replace("http:", "https:");
    let (ca, secret, wrong) = (at("ca.crt"), at("secret"), at("wrong"));
    let login = ["--ca", &ca, "--fleet-secret-file", &secret];
    let until = Instant::now() + PATIENCE;
    loop {
        let out = doctor(&url, &login);
        if out.status.code() == Some(0) {
            assert!(text(&out).starts_with("No finding on 1 host\n"), "{}", text(&out));
            break;
        }
        // Until the first scrape.
        refused(&out, 4, "no netwright_build_info");
        assert!(Instant::now() < until, "{out:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    refused(&doctor(&url, &["--ca", &ca]), 3, "it wants another login (HTTP status 401)");
    refused(&doctor(&url, &["--ca", &ca, "--fleet-secret-file", &wrong]), 3, "HTTP status 401");
    refused(&doctor(&url, &["--fleet-secret-file", &secret]), 4, "is not trusted");
    let plain = url.replace("https", "http");
    refused(&doctor(&plain, &["--fleet-secret-file", &secret]), 4, "it fails with HTTP status 400");
    assert_eq!(
        doctor(&url, &["--insecure", "--fleet-secret-file", &secret]).status.code(),
        Some(0)
    );
}

/// Writes a response with this head line, headers and body.
fn respond(to: &mut TcpStream, head: &str, body: &str) -> bool {
    let _ = write!(to, "HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    false
}

fn vector(result: &str) -> String {
    format!(
        "{{\"status\":\"success\",\"data\":{{\"resultType\":\"vector\",\"result\":[{result}]}}}}"
    )
}

/// By the path before `/api`: a server that is hostile, broken or no Prometheus.
fn hostile(request: &Request, to: &mut TcpStream) -> bool {
    let path = request.head.split(' ').nth(1).unwrap_or_default();
    let ok = "200 OK";
    match path.split('/').nth(1).unwrap_or_default() {
        "html" => respond(to, ok, "<html>It works!</html>"),
        "empty" => respond(to, ok, ""),
        "matrix" => {
            respond(to, ok, r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#)
        }
        "types" => respond(to, ok, &vector(r#"{"metric":{"instance":7},"value":[1,"1"]}"#)),
        "value" => respond(to, ok, &vector(r#"{"metric":{"instance":"a"},"value":[1,"much"]}"#)),
        "deep" => respond(to, ok, &"[".repeat(1 << 20)),
        "escape" => respond(
            to,
            "503 Service Unavailable",
            &format!(
                "{{\"status\":\"error\",\"error\":\"\\u001b[31m\\u202e{}\"}}",
                "x".repeat(9000)
            ),
        ),
        "redirect" => respond(to, "302 Found\r\nLocation: http://127.0.0.1:1/", ""),
        "login" => respond(to, "401 Unauthorized", "no"),
        "fails" => respond(to, "500 Internal Server Error", "<html>"),
        "cut" => {
            let _ = to.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"status\"");
            false
        }
        "closes" => false,
        "ssh" => {
            let _ = to.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
            false
        }
        "huge" => {
            let _ = to.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            let part = vec![b' '; 1 << 20];
            while to.write_all(&part).is_ok() {}
            false
        }
        // Numbers that are none, labels that act, and hosts without a name.
        "labels" => {
            let name = "a\\u001b[31m\\u202e'; reboot; '";
            let labels = format!(
                "\"instance\":\"{name}\",\"version\":\"{name}\",\"rule\":\"{name}\",\"subject\":\"{}\",\
                 \"knob\":\"sysctl.{name}\",\"value\":\"{name}\",\"severity\":\"critical\"",
                "s".repeat(100_000)
            );
            let one = format!("{{\"metric\":{{{labels}}},\"value\":[1,\"1\"]}}");
            let nan = format!("{{\"metric\":{{{labels}}},\"value\":[1,\"NaN\"]}}");
            let huge = format!("{{\"metric\":{{{labels}}},\"value\":[1e308,\"+Inf\"]}}");
            let unnamed = "{\"metric\":{},\"value\":[-1,\"-Inf\"]}";
            respond(to, ok, &vector(&format!("{one},{nan},{unnamed},{huge}")))
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_hostile_or_foreign_server_gets_one_line_and_the_documented_exit_code() {
    let server = Server::start(hostile);
    for (path, code, says) in [
        ("html", 4, "its answer is not that of Prometheus' API"),
        ("empty", 4, "its answer is not that of Prometheus' API"),
        ("matrix", 4, "it answers with a matrix, not with a vector"),
        ("types", 4, "its answer is not that of Prometheus' API"),
        ("value", 4, "\"much\" is no value"),
        ("deep", 4, "its answer is not that of Prometheus' API"),
        ("escape", 4, "it refuses the query: \\x1b[31m"),
        ("redirect", 4, "it redirects (HTTP status 302)"),
        ("login", 3, "it wants another login (HTTP status 401)"),
        ("fails", 4, "it fails with HTTP status 500"),
        ("cut", 4, "the connection ended before the response did"),
        ("closes", 4, "the connection ended before the response did"),
        ("ssh", 4, "does it speak HTTP?"),
        ("huge", 4, "a response of more than 64 MiB"),
    ] {
        refused(&doctor(&server.url(&format!("/{path}")), &[]), code, says);
    }
    let url = server.url("/labels");
    for args in [&[][..], &["-v"]] {
        let out = doctor(&url, args);
        let page = text(&out);
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        assert!(!page.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{page:?}");
        assert!(!page.contains("ansible-playbook"), "{page}");
        assert!(page.len() < 10_000, "{} bytes", page.len());
    }
    let document = json(&url, &[]);
    assert_eq!(document["hosts"].as_array().unwrap().len(), 1, "{document:#}");
}

#[test]
fn wrong_usage_and_a_server_that_is_not_there_say_so() {
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let at = |address: SocketAddr| format!("http://{address}");
    refused(&doctor(&at(nobody), &[]), 4, &nobody.to_string());
    refused(&doctor("prometheus:9090", &[]), 2, "http://prometheus:9090");
    refused(&doctor("http://p/?query=up", &[]), 2, "no part of a Prometheus' address");
    refused(&doctor("http://p", &["--ca", "/etc/hosts"]), 2, "https://");
    refused(&doctor("http://p", &["--match", "{dc=\"a\"}"]), 2, "between the braces");
    refused(&doctor("http://p", &["--fleet-secret-file", "/nonexistent"]), 4, "/nonexistent");
    // Flags that judge a host.
    for other in [
        &["--root", "/tmp"][..],
        &["--peer", "ssh://a"],
        &["--window", "1s"],
        &["--for", "latency"],
        &["--no-bpf"],
        &["--name", "x"],
        &["--tag", "x"],
    ] {
        let out = doctor("http://p", other);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("cannot be used with"), "{said}");
    }
    for alone in [&["--min-severity", "info"][..], &["--top", "3"], &["--match", "a=\"b\""]] {
        let out = Command::new(NETWRIGHT).arg("doctor").args(alone).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{out:?}");
    }
}
