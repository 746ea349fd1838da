//! `report`: pages of what the program itself printed, where they are written, what is refused; and
//! the page in a real Chromium.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::Path,
    process::{Command, Output},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::support::{NETWRIGHT, chromium::Chromium, serve::Serve};

fn report(folder: &Path, args: &[&str]) -> Output {
    Command::new(NETWRIGHT).arg("report").args(args).current_dir(folder).output().unwrap()
}

fn code(out: &Output) -> (i32, String) {
    (out.status.code().unwrap(), String::from_utf8(out.stderr.clone()).unwrap())
}

/// A folder with documents that this build printed.
fn documents() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let keep = |name: &str, args: &[&str]| {
        let out = Command::new(NETWRIGHT).args(args).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        assert!(text.starts_with('{'), "{args:?}: {text}");
        fs::write(folder.path().join(name), text).unwrap();
    };
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captured/queues.tar.zst");
    keep("doctor.json", &["doctor", "--root", archive, "--json"]);
    keep("inspect.json", &["inspect", "--root", archive, "--json"]);
    let server = Serve::start(&[]);
    let target = server.target().to_owned();
    keep("rtt.json", &["measure", "rtt", &target, "--duration", "500ms", "--json"]);
    keep("stream.json", &["measure", "stream", &target, "--duration", "2s", "--json"]);
    folder
}

#[test]
fn a_page_goes_where_it_is_sent_and_replaces_nothing_unasked() {
    let folder = documents();
    let at = |name: &str| folder.path().join(name);
    assert_eq!(code(&report(folder.path(), &["rtt.json", "-o", "page.html"])), (0, String::new()));
    let page = fs::read_to_string(at("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    let (exit, why) = code(&report(folder.path(), &["stream.json", "-o", "page.html"]));
    assert_eq!(
        (exit, why.as_str()),
        (4, "netwright: page.html: is there already; --force replaces it\n")
    );
    assert_eq!(fs::read_to_string(at("page.html")).unwrap(), page, "it was left alone");
    let forced = report(folder.path(), &["stream.json", "-o", "page.html", "--force"]);
    assert_eq!(code(&forced), (0, String::new()));
    assert_ne!(fs::read_to_string(at("page.html")).unwrap(), page);
    let out = report(folder.path(), &["rtt.json", "-o", "-"]);
    assert_eq!(String::from_utf8(out.stdout).unwrap(), page, "standard output has the same");
    assert_eq!(code(&report(folder.path(), &["rtt.json", "-o", "page.md"])).0, 0);
    let ticket = fs::read_to_string(at("page.md")).unwrap();
    assert!(ticket.starts_with("# Round trips to"), "{ticket}");
    let out = report(folder.path(), &["rtt.json", "--format", "markdown"]);
    assert_eq!(String::from_utf8(out.stdout).unwrap(), ticket);
}

#[test]
fn what_is_no_result_gets_one_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("text"), "no JSON").unwrap();
    fs::write(folder.path().join("other"), "{\"a\": 1}").unwrap();
    fs::write(folder.path().join("bytes"), [0xff, 0xfe, 0x00]).unwrap();
    for (name, exit, part) in [
        ("text", 2, "is not JSON"),
        ("other", 2, "no document that `netwright … --json` prints"),
        ("bytes", 4, "it holds no text (UTF-8)"),
        ("absent", 4, "no such file or folder"),
        (".", 4, ""),
    ] {
        let (got, why) = code(&report(folder.path(), &[name, "-o", "page.html"]));
        assert_eq!((got, why.lines().count()), (exit, 1), "{name}: {why}");
        assert!(why.contains(part) && why.contains(name), "{name}: {why}");
        assert!(!folder.path().join("page.html").exists(), "{name}: a page was written");
    }
    let twice = "netwright: standard input is named twice; it has one document\n".to_owned();
    assert_eq!(code(&report(folder.path(), &["-", "-"])), (2, twice));
}

/// Answers requests for one page, and names the path of each.
fn host(page: String) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut bytes = [0; 4096];
            let n = stream.read(&mut bytes).unwrap_or(0);
            let head = String::from_utf8_lossy(&bytes[..n]).into_owned();
            if let Some(path) = head.split(' ').nth(1) {
                let _ = sender.send(path.to_owned());
            }
            let length = page.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ =
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(page.as_bytes()));
        }
    });
    (address, requests)
}

/// A page as Chromium understands it, and what its console said.
fn in_chromium(address: &str) -> (String, Vec<String>) {
    let profile = tempfile::tempdir().unwrap();
    let profile = format!("--user-data-dir={}", profile.path().display());
    let out = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom"])
        .args([&profile, address])
        .output()
        .expect("chromium: make test-deps installs it");
    let log = String::from_utf8_lossy(&out.stderr).into_owned();
    let console = log.lines().filter(|l| l.contains(":CONSOLE")).map(str::to_owned).collect();
    (String::from_utf8(out.stdout).unwrap(), console)
}

#[test]
fn chromium_loads_nothing_else_and_reports_no_error() {
    let folder = documents();
    let all = ["doctor.json", "inspect.json", "rtt.json", "stream.json"];
    let out = report(folder.path(), &all);
    let page = String::from_utf8(out.stdout).unwrap();
    let (address, requests) = host(page);
    let (dom, console) = in_chromium(&address);
    assert!(console.is_empty(), "{console:#?}");
    thread::sleep(Duration::from_millis(200));
    let paths: BTreeSet<String> = requests.try_iter().collect();
    assert_eq!(paths, BTreeSet::from(["/".to_owned()]), "only the page was requested");
    for (part, least) in [("<svg", 6), ("<table", 8), ("<figcaption", 4), ("<h2", 5)] {
        assert!(dom.matches(part).count() >= least, "{part} in {dom}");
    }
    // The same console shows an error where there is one.
    let (address, requests) =
        host("<!DOCTYPE html><script>nothing.there()</script><img src=/x>".into());
    let (_, console) = in_chromium(&address);
    assert!(console.iter().any(|l| l.contains("nothing is not defined")), "{console:#?}");
    assert!(requests.try_iter().any(|path| path == "/x"));
}

#[test]
fn printing_shows_what_is_closed_and_a_phone_cuts_no_caption() {
    let folder = documents();
    let page = String::from_utf8(report(folder.path(), &["inspect.json", "rtt.json"]).stdout);
    let (address, _requests) = host(page.unwrap());
    let mut browser = Chromium::start();
    browser.look(360, 740, false);
    browser.open(&address);
    browser.until("document.querySelectorAll('details').length > 1");
    let seen = "[...document.querySelectorAll('details pre, details table')]\
                .filter(e => e.checkVisibility({ contentVisibilityProperty: true })).length";
    assert_eq!(browser.eval(seen), 0, "closed on the screen");
    let wide = "[...document.querySelectorAll('caption, figcaption')]\
                .filter(e => e.getBoundingClientRect().right > 360).map(e => e.textContent)";
    assert_eq!(browser.eval(wide), serde_json::json!([]), "captions beyond a phone's edge");
    assert_eq!(browser.eval("document.documentElement.scrollWidth <= 360"), true);
    browser.call("Emulation.setEmulatedMedia", serde_json::json!({ "media": "print" }));
    let all = browser.eval("document.querySelectorAll('details pre, details table').length");
    assert!(all.as_u64().unwrap() > 1);
    assert_eq!(browser.eval(seen), all, "printed");
}

#[test]
fn runs_of_the_history_are_reported_with_their_own_commands() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.sqlite");
    let netwright = |args: &[&str]| {
        let mut command = Command::new(NETWRIGHT);
        command.args(args).current_dir(folder.path()).env("NETWRIGHT_STORE", &store);
        command.output().unwrap()
    };
    let server = Serve::start(&[]);
    let target = server.target().to_owned();
    for flows in ["1", "2"] {
        let run = ["measure", "rtt", &target, "--flows", flows, "--duration", "500ms"];
        let out = netwright(&[run.as_slice(), &["--tag", "a"]].concat());
        assert!(out.status.success(), "{}", code(&out).1);
    }
    let line =
        |n: u32| format!("netwright measure rtt {target} --flows {n} --duration 500ms --tag a");
    let page = |run: &str| {
        let out = netwright(&["report", run, "--format", "markdown"]);
        assert_eq!(code(&out), (0, String::new()));
        String::from_utf8(out.stdout).unwrap()
    };
    let one = page("history:2");
    assert!(one.contains(&line(2)) && !one.contains(&line(1)), "{one}");
    assert!(one.contains("history:2"), "{one}");
    let both = page("tag:a");
    let at = |n| both.find(&line(n)).unwrap_or_else(|| panic!("{} is not in {both}", line(n)));
    assert!(at(1) < at(2), "the oldest comes first");
    for (run, part) in [("history:9", "there is no run 9"), ("tag:c", "no run has the tag c")] {
        let (exit, why) = code(&netwright(&["report", run]));
        assert_eq!((exit, why.lines().count()), (2, 1), "{why}");
        assert!(why.contains(part), "{why}");
    }
}
