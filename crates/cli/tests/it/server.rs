//! `Server`: a real HTTP server on loopback whose answers a test writes as a function of the request; it counts and keeps what it is sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than anything here takes on a busy machine: a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// How many came before it.
    pub(crate) number: usize,
    pub(crate) method: String,
    /// As on the first line: a path, a whole address where the server is used as a proxy, a host for `CONNECT`.
    pub(crate) path: String,
    /// With names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    /// The body where it is JSON, else null.
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// The model of the body.
    pub(crate) fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// The whole body as text; what a test looks for can be in any of the places where the APIs have it.
    pub(crate) fn text(&self) -> String {
        self.body.to_string()
    }

    /// The text of the prompt, wherever the API has it.
    pub(crate) fn prompt(&self) -> &str {
        let body = &self.body;
        [
            &body["prompt"],
            &body["messages"][0]["content"],
            &body["messages"][0]["content"][0]["text"],
            &body["messages"][1]["content"],
            &body["input"],
            &body["input"][0]["content"],
            &body["input"][0]["content"][0]["text"],
            &body["contents"][0]["parts"][0]["text"],
        ]
        .into_iter()
        .filter_map(Value::as_str)
        .find(|text| text.contains("<conversation>"))
        .unwrap_or_default()
    }
}

/// What a request is answered with.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    bytes: Vec<u8>,
    held: bool,
    closes: bool,
    hangs: bool,
}

impl Answer {
    /// Bytes as they are.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Answer {
        Answer { bytes: bytes.into(), held: false, closes: false, hangs: false }
    }

    /// A whole answer.
    pub(crate) fn whole(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut text = format!("HTTP/1.1 {status} X\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        Answer::raw(text)
    }

    /// JSON.
    pub(crate) fn json(status: u16, body: &Value) -> Answer {
        Answer::whole(status, &[("content-type", "application/json")], &body.to_string())
    }

    /// A stream of events with these data.
    pub(crate) fn events(data: &[Value]) -> Answer {
        let body: String = data.iter().map(|data| format!("data: {data}\n\n")).collect();
        Answer::whole(200, &[("content-type", "text/event-stream")], &body)
    }

    /// The answer of a remote endpoint.
    pub(crate) fn summary(text: &str) -> Answer {
        Answer::json(200, &json!({"summary": text}))
    }

    /// A streamed answer of Chat Completions, which counts so many tokens.
    pub(crate) fn chat(text: &str, prompt_tokens: u64, output_tokens: u64) -> Answer {
        Answer::events(&[
            json!({"choices": [{"index": 0, "delta": {"content": text}}]}),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": output_tokens}}),
        ])
    }

    /// An error as most APIs write it.
    pub(crate) fn error(status: u16, message: &str) -> Answer {
        Answer::json(status, &json!({"error": {"message": message}}))
    }

    /// The connection is closed without an answer.
    pub(crate) fn cut() -> Answer {
        Answer { closes: true, ..Answer::raw("") }
    }

    /// No answer until the client is gone.
    pub(crate) fn hang() -> Answer {
        Answer { hangs: true, ..Answer::raw("") }
    }

    /// Sent when [`Server::release`] says so.
    pub(crate) fn held(self) -> Answer {
        Answer { held: true, ..self }
    }

    /// The connection is closed behind it, also where it is not whole.
    pub(crate) fn then_cut(self) -> Answer {
        Answer { closes: true, ..self }
    }
}

/// The server; it ends with the test's process.
pub(crate) struct Server {
    /// Its address, without a slash at its end.
    pub(crate) url: String,
    shared: Arc<Shared>,
}

struct Shared {
    answer: Box<dyn Fn(&Asked) -> Answer + Send + Sync>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    at_once: usize,
    most_at_once: usize,
    /// Requests whose client went away before they were answered.
    left: usize,
    /// How many held answers may still be sent.
    released: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while it holds the state")
    }
}

impl Server {
    /// Starts one that answers each request with what `answer` makes of it.
    pub(crate) fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let shared =
            Arc::new(Shared { answer: Box::new(answer), state: Mutex::default(), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = Arc::clone(&of_thread);
                std::thread::spawn(move || serve(connection, &shared));
            }
        });
        Server { url, shared }
    }

    /// Every request so far, in the order of arrival.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.lock().asked.clone()
    }

    /// How many requests there were.
    pub(crate) fn count(&self) -> usize {
        self.shared.lock().asked.len()
    }

    /// How many requests were at most waiting for their answer at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.shared.lock().most_at_once
    }

    /// How many requests are waiting for their answer now.
    pub(crate) fn at_once(&self) -> usize {
        self.shared.lock().at_once
    }

    /// Lets so many more held answers go.
    pub(crate) fn release(&self, n: usize) {
        let mut state = self.shared.lock();
        state.released = state.released.saturating_add(n);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Waits until this many requests have come.
    #[track_caller]
    pub(crate) fn wait_for(&self, n: usize) {
        self.wait_until(&format!("{n} requests"), |state| state.asked.len() >= n);
    }

    /// Waits until the clients of this many hanging or held requests have gone away.
    #[track_caller]
    pub(crate) fn wait_for_left(&self, n: usize) {
        self.wait_until(&format!("{n} clients gone"), |state| state.left >= n);
    }

    #[track_caller]
    fn wait_until(&self, what: &str, holds: impl Fn(&State) -> bool) {
        let (state, waited) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.lock(), PATIENCE, |state| !holds(state))
            .expect("no test panics while it holds the state");
        assert!(!waited.timed_out(), "no {what}: {} asked, {} left", state.asked.len(), state.left);
    }
}

fn serve(mut connection: TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(connection.try_clone().expect("a second handle"));
    while let Some(mut asked) = read_request(&mut reader) {
        {
            let mut state = shared.lock();
            asked.number = state.asked.len();
            state.asked.push(asked.clone());
            state.at_once += 1;
            state.most_at_once = state.most_at_once.max(state.at_once);
        }
        shared.changed.notify_all();
        let answer = (shared.answer)(&asked);
        let is_there = !answer.hangs && wait(&answer, &connection, shared);
        if !is_there {
            // Until the client closes its end.
            let _ = connection.set_read_timeout(None);
            let _ = reader.read(&mut [0]);
        }
        // Counted down before the answer is out: whoever reads it may send the next request at once.
        {
            let mut state = shared.lock();
            state.at_once -= 1;
            state.left += usize::from(!is_there);
        }
        shared.changed.notify_all();
        if !is_there || connection.write_all(&answer.bytes).is_err() || answer.closes {
            let _ = connection.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

/// Waits as the answer says; false if the client went away meanwhile.
fn wait(answer: &Answer, connection: &TcpStream, shared: &Shared) -> bool {
    if !answer.held {
        return true;
    }
    connection.set_read_timeout(Some(Duration::from_millis(1))).expect("a limit");
    let mut state = shared.lock();
    while state.released == 0 {
        let short = Duration::from_millis(20);
        state = shared.changed.wait_timeout(state, short).expect("no test panics with it").0;
        // A client that is there sends nothing before it is answered.
        if matches!(connection.peek(&mut [0]), Ok(0)) {
            return false;
        }
    }
    state.released -= 1;
    connection.set_read_timeout(None).expect("no limit");
    true
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = field.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, n)| n.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Asked { number: 0, method, path, headers, body })
}
