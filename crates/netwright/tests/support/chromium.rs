//! A real Chromium, steered by its DevTools protocol over a pipe. It is ended when dropped.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// How long a page may take: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(90);

pub struct Chromium {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    next: u64,
    /// What happened, as the protocol names it.
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    /// Starts it with an empty page.
    pub fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let folder = format!("--user-data-dir={}", profile.path().display());
        // The protocol is spoken on descriptors 3 and 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec chromium \"$@\" 3<&0 4>&1 0</dev/null 1>&2", "sh"])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
            .args(["--disable-component-update", "--hide-scrollbars", "--remote-debugging-pipe"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium: make test-deps installs it");
        let to = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let (sender, from) = channel();
        thread::spawn(move || {
            let mut message = vec![];
            while lines.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                message.pop();
                let value = serde_json::from_slice(&message).unwrap_or_default();
                message.clear();
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let (session, events) = (None, vec![]);
        let mut this = Self { child, to, from, session, next: 0, events, _profile: profile };
        let target = this.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = this.call("Target.attachToTarget", target)["sessionId"].clone();
        this.session = Some(session.as_str().unwrap().to_owned());
        for part in ["Page", "Runtime", "Log", "Network"] {
            this.call(&format!("{part}.enable"), json!({}));
        }
        this
    }

    /// A call of the protocol; panics where Chromium refuses it.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.from.recv_timeout(PATIENCE).expect(method);
            if answer["id"] == json!(self.next) {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    pub fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
    }

    /// The value of an expression in the page.
    pub fn eval(&mut self, expression: &str) -> Value {
        let what = json!({ "expression": expression, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", what);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        while self.eval(expression) != json!(true) {
            if Instant::now() > end {
                let text = self.eval("document.body ? document.body.innerText : ''");
                panic!("never: {expression}\n{text}\n{:#?}", self.complaints());
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// The addresses that were requested, of every page so far.
    pub fn requests(&mut self) -> Vec<String> {
        self.of("Network.requestWillBeSent", "/params/request/url")
    }

    /// Errors and warnings of the console, exceptions, and dialogs.
    pub fn complaints(&mut self) -> Vec<String> {
        let mut all = self.of("Log.entryAdded", "/params/entry/text");
        all.extend(self.of("Runtime.exceptionThrown", "/params/exceptionDetails/text"));
        all.extend(self.of("Runtime.consoleAPICalled", "/params/type"));
        all.extend(self.of("Page.javascriptDialogOpening", "/params/message"));
        all
    }

    fn of(&mut self, method: &str, pointer: &str) -> Vec<String> {
        self.eval("0");
        let of = self.events.iter().filter(|e| e["method"] == json!(method));
        of.map(|e| e.pointer(pointer).and_then(Value::as_str).unwrap_or("?").to_owned()).collect()
    }

    /// The size of the window, and whether the reader wants dark colours.
    pub fn look(&mut self, width: u32, height: u32, dark: bool) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if dark { "dark" } else { "light" };
        let scheme = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": scheme }));
    }

    /// The PDF that printing the page makes.
    pub fn printed(&mut self) -> Vec<u8> {
        let pdf = self.call("Page.printToPDF", json!({}));
        base64(pdf["data"].as_str().unwrap())
    }

    /// Keeps a picture of the window as PNG.
    pub fn picture(&mut self, path: &Path) {
        let png = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        std::fs::write(path, base64(png["data"].as_str().unwrap())).unwrap();
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bytes of a base64 text.
fn base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = text.bytes().filter(|c| *c != b'=').map(value).collect();
    let group = |four: &[u8]| {
        let bits =
            four.iter().fold(0_u32, |all, v| all << 6 | u32::from(*v)) << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    };
    letters.chunks(4).flat_map(group).collect()
}
