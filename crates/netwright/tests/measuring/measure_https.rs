//! Tests of HTTP over TLS with a real nginx: its log, the negotiated parameters, valid and invalid
//! certificates, and a relay that delays, cuts or changes the server's bytes.

use std::{path::Path, time::Duration};

use crate::support::{
    NETWRIGHT,
    http::Nginx,
    looks::in_most_looks,
    output, run,
    tls::{Authority, Does, relay, signs_itself},
};
use model::measure::{HttpDocument, HttpRun};

const BOTH: &str = "DNS:localhost,IP:127.0.0.1";

fn http(args: &[&str]) -> HttpDocument {
    let all = [&["measure", "http", "--json"], args].concat();
    serde_json::from_str(&run(NETWRIGHT, &all)).unwrap()
}

fn one(args: &[&str]) -> HttpRun {
    http(args).runs.remove(0)
}

/// An nginx with a certificate of the folder's authority, and the authority's file.
fn nginx(folder: &Path, server: &str) -> (Nginx, String) {
    let authority = Authority::new(folder);
    authority.signs("s", BOTH, 30);
    let known =
        if server.contains("ssl_protocols") { "" } else { "ssl_protocols TLSv1.2 TLSv1.3;" };
    (Nginx::start_tls(folder, "s", &format!("{known} {server}")), ca(folder, "ca"))
}

fn ca(folder: &Path, name: &str) -> String {
    folder.join(format!("{name}.crt")).to_str().unwrap().to_owned()
}

#[test]
fn nginx_logs_the_requests_and_the_tls_that_the_result_has() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page"), "x".repeat(100_000)).unwrap();
    let (mut nginx, ca) =
        nginx(folder.path(), "keepalive_requests 100; location = /hi { return 200 hi; }");
    let hi = nginx.url("/hi").replace("127.0.0.1", "localhost");
    let page = nginx.url("/page").replace("127.0.0.1", "localhost");
    let mut counted = 0;
    for args in [
        &[&hi[..], "--requests", "1000", "--flows", "4", "--threads", "2"][..],
        &[&hi, &page, "--requests", "300", "--flows", "3"],
        &[&hi, "--requests", "100", "--new-connections", "--flows", "5"],
        &[&hi, "--requests", "900", "--pipeline", "8", "--flows", "2"],
        &[&hi, "--requests", "200", "--rate", "1000", "--flows", "2"],
    ] {
        let run = one(&[args, &["--ca", &ca]].concat());
        let asked: u64 =
            args[args.iter().position(|a| *a == "--requests").unwrap() + 1].parse().unwrap();
        assert_eq!((run.transactions, run.failed, run.unfinished), (asked, 0, 0), "{args:?}");
        assert_eq!(run.statuses.keys().copied().collect::<Vec<_>>(), [200]);
        let (tls, took) = (run.tls.clone().unwrap(), run.tls_handshake_ns.clone().unwrap());
        assert_eq!((tls.version.as_str(), tls.verified, tls.resumed), ("TLS 1.3", true, 0));
        assert_eq!(tls.handshakes, took.count);
        // The run may end while a connection is replaced.
        let connects = run.connect_ns.count;
        assert!((took.count..=took.count + u64::from(run.clients)).contains(&connects), "{run:?}");
        if args.contains(&"--new-connections") {
            assert_eq!(tls.handshakes, asked, "a handshake for each request");
            assert!(took.p50 + run.connect_ns.p50 < run.latency_ns.p50, "both are in the latency");
        }
        if args.contains(&&page[..]) {
            assert!(run.response_bytes > 150 * 100_000, "the pages came whole");
        }
        counted += asked;
        assert_eq!(tls.cipher, "TLS_AES_256_GCM_SHA384", "as nginx logs it below");
    }
    nginx.stop();
    let log = nginx.log();
    assert_eq!(log.len() as u64, counted);
    for line in log {
        assert!(line.ends_with(" TLSv1.3 TLS_AES_256_GCM_SHA384 . localhost"), "{line}");
    }
}

#[test]
fn sessions_are_resumed_only_when_asked_as_often_as_nginx_logs() {
    let folder = tempfile::tempdir().unwrap();
    for protocol in ["TLSv1.2", "TLSv1.3"] {
        let (mut nginx, ca) = nginx(
            folder.path(),
            &format!("ssl_protocols {protocol}; location = /hi {{ return 200 hi; }}"),
        );
        let url = nginx.url("/hi");
        let args = [&url[..], "--ca", &ca, "--new-connections", "--requests", "60"];
        let whole = one(&args).tls.unwrap();
        let again = one(&[&args[..], &["--tls-resume"]].concat());
        // TLS 1.2 has two writes in a row there; with Nagle's algorithm the second would wait 40
        // ms.
        assert!(again.latency_ns.p50 < 30_000_000, "{protocol}: {:?}", again.latency_ns);
        let resumed = again.tls.unwrap();
        assert_eq!(whole.version, protocol.replace("TLSv", "TLS "));
        assert_eq!((whole.handshakes, whole.resumed, resumed.handshakes), (60, 0, 60));
        assert!(resumed.resumed >= 40, "{protocol}: {resumed:?}");
        nginx.stop();
        let logged = nginx.log().iter().filter(|l| l.contains(" r ")).count() as u64;
        assert_eq!(logged, resumed.resumed, "{protocol}");
        std::fs::remove_file(folder.path().join("access.log")).unwrap();
    }
}

#[test]
fn the_handshakes_time_stands_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (nginx, ca) = nginx(folder.path(), "location / { return 200 hi; }");
    let held = relay(nginx.address(), Does::Delays(Duration::from_millis(60)));
    let run = one(&[&format!("https://{held}/"), "--ca", &ca, "--requests", "300", "--flows", "2"]);
    let handshake = run.tls_handshake_ns.unwrap();
    assert_eq!((run.transactions, handshake.count), (300, 2));
    assert!(handshake.min >= 60_000_000, "{handshake:?}");
    assert!(run.connect_ns.min < 60_000_000, "the relay takes connections at once");
    assert!(run.latency_ns.min < 60_000_000, "{:?}", run.latency_ns);
}

#[test]
fn what_breaks_within_tls_fails_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let noise =
        (0..50_000u64).map(|n| format!("{:08x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32));
    std::fs::write(folder.path().join("page"), noise.collect::<String>()).unwrap();
    // Compressed responses have no length and last until the connection closes: only TLS shows a
    // premature end.
    let (nginx, ca) = nginx(folder.path(), "chunked_transfer_encoding off; gzip on; gzip_types *;");
    let (whole, peer) = (["--header", "Accept: */*"], nginx.address());
    let until_end = ["--header", "Accept-Encoding: gzip"];
    for (does, asks, why) in [
        (Does::Cuts(60_000), whole, "closed by the server within its response"),
        (Does::Cuts(60_000), until_end, "closed by the server within its response"),
        (Does::Turns(60_000), whole, "TLS: a record was tampered with"),
    ] {
        let url = format!("https://{}/page", relay(peer, does));
        let args = ["measure", "http", &url, "--ca", &ca, "--requests", "5"];
        let out = output(NETWRIGHT, &[&args[..], &asks].concat());
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(4), "{text}");
        assert!(text.contains(&format!("all 5 requests failed: {why}")), "{text}");
    }
    let args = ["--ca", &ca, "--requests", "5"];
    let run = one(&[&[&nginx.url("/page")[..]], &args[..], &until_end].concat());
    assert_eq!((run.transactions, run.failed, run.reconnects), (5, 0, 5), "{:?}", run.failures);
}

#[test]
fn a_wrong_certificate_is_one_line_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let authority = Authority::new(at);
    authority.signs("right", BOTH, 30);
    authority.signs("other", "DNS:elsewhere.example", 30);
    // Never valid.
    authority.signs("old", BOTH, 0);
    signs_itself(at, "self", BOTH);
    std::thread::sleep(Duration::from_millis(2100));
    let (own, none) = (ca(at, "ca"), ca(at, "none"));
    let hi = "location / { return 200 hi; }";
    let mut servers = vec![];
    for name in ["right", "other", "old", "self"] {
        let folder = at.join(format!("of-{name}"));
        std::fs::create_dir(&folder).unwrap();
        for end in ["crt", "key"] {
            let file = format!("{name}.{end}");
            std::fs::copy(at.join(&file), folder.join(&file)).unwrap();
        }
        servers.push(Nginx::start_tls(&folder, name, hi));
    }
    let urls: Vec<String> = servers.iter().map(|s| s.url("/")).collect();
    let [right, other, old, itself] = &urls[..] else { unreachable!() };
    let without = tempfile::tempdir().unwrap();
    let plain = Nginx::start(without.path(), hi);
    let plain_url = plain.url("/").replace("http", "https");
    let ended = format!("https://{}/", relay(servers[0].address(), Does::Cuts(0)));
    let (key, itself_ca) = (at.join("ca.key"), ca(at, "self"));
    for (args, code, says) in [
        (&[&right[..]][..], 4, "issuer of its certificate is not trusted; name the authority's"),
        (&[itself], 4, "self-signed; trust it by --ca FILE"),
        (&[itself, "--ca", &own], 4, "self-signed"),
        (&[right, "--ca", &itself_ca], 4, "certificate is not trusted"),
        (&[other, "--ca", &own], 4, "is for elsewhere.example; use such a name"),
        (&[old, "--ca", &own], 4, "has expired, 0 h ago; renew it"),
        (&[&plain_url], 4, "not TLS; is it a port without, for http://?"),
        (&[&ended, "--ca", &own], 4, "closed within the TLS handshake"),
        (&[right, "--ca", &none], 4, "cannot read"),
        (&[right, "--ca", key.to_str().unwrap()], 4, "holds no certificate in PEM"),
        (&[right, "--ca", &own, "--insecure"], 2, "cannot be used with"),
        (&["http://localhost/", "--insecure"], 2, "TLS needs an https:// URL"),
    ] {
        let out = output(NETWRIGHT, &[&["measure", "http", "--requests", "3"], args].concat());
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(says), "{args:?}: {text}");
        assert!(code == 2 || text.lines().count() == 1, "{args:?}: {text}");
    }
    // Valid ones: a chain, the certificate itself, and no check.
    for args in [&[&right[..], "--ca", &own][..], &[itself, "--ca", &itself_ca]] {
        let run = one(&[args, &["--requests", "3"]].concat());
        assert!(run.tls.unwrap().verified && run.transactions == 3);
    }
    for url in [other, old, itself] {
        let run = one(&[url, "--insecure", "--requests", "3"]);
        assert!(!run.tls.unwrap().verified && run.transactions == 3);
        assert!(
            run.warnings.iter().any(|w| w.to_string().contains("was not checked")),
            "{:?}",
            run.warnings
        );
    }
}

#[test]
fn it_reads_well() {
    let folder = tempfile::tempdir().unwrap();
    let (nginx, ca) = nginx(folder.path(), "location / { return 200 hi; }");
    let args = ["--ca", &ca, "--requests", "50", "--new-connections"];
    let text = run(NETWRIGHT, &[&["measure", "http", &nginx.url("/")], &args[..]].concat());
    for part in ["TLS HANDSHAKE P50", "TLS 1.3, TLS_AES_256_GCM_SHA384; no session was resumed."] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

/// The encryption time at this end: more bytes take more, and never more than the requests took.
#[test]
fn the_cipher_takes_longer_for_more_bytes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page"), "x".repeat(1_000_000)).unwrap();
    let (nginx, ca) = nginx(folder.path(), "location = /hi { return 200 hi; }");
    let cipher = |path: &str| {
        let run = one(&[&nginx.url(path), "--requests", "200", "--ca", &ca]);
        let ns = run.tls.unwrap().cipher_per_unit_ns.unwrap();
        assert!(ns > 0 && (ns as f64) < run.latency_ns.mean, "{ns} of {:?}", run.latency_ns);
        ns
    };
    let mut seen = vec![];
    let good = in_most_looks(|| {
        let (little, much) = (cipher("/hi"), cipher("/page"));
        seen.push((little, much));
        much > little * 5
    });
    assert!(good, "{seen:?}");
}
