//! A real HTTP service on loopback for the real program: each request is answered by a function, all are kept, and those under way
//! at the same time are counted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a request waits for others that should be under way at the same time.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request as it arrived.
#[derive(Clone)]
pub(crate) struct Asked {
    /// Method, target and version.
    pub(crate) line: String,
    /// All header fields as they came.
    pub(crate) head: String,
    pub(crate) body: Value,
    /// Its number, from 0.
    pub(crate) number: usize,
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A prompt is longer than a screen.
        write!(f, "{}\n{}{} bytes", self.line, self.head, self.text().len())
    }
}

impl Asked {
    /// The model that was asked for.
    pub(crate) fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or("")
    }

    /// What the model was asked, whatever the API.
    pub(crate) fn text(&self) -> String {
        self.body.to_string()
    }
}

/// What is answered.
pub(crate) enum Reply {
    /// A status, header fields that end in CR LF, and a body.
    Whole(u16, String, String),
    /// Nothing, until the client is gone.
    Silence,
    /// The same as the inner one, once so many requests are under way.
    Together(usize, Box<Reply>),
}

/// An answer of Chat Completions with this text.
pub(crate) fn chat(text: &str) -> Reply {
    let body = json!({
        "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 50}
    });
    ok(&body)
}

/// A JSON body with status 200.
pub(crate) fn ok(body: &Value) -> Reply {
    Reply::Whole(200, "content-type: application/json\r\n".to_owned(), body.to_string())
}

/// A failure with an error message in the usual form.
pub(crate) fn failure(status: u16, fields: &str, message: &str) -> Reply {
    Reply::Whole(status, fields.to_owned(), json!({"error": {"message": message}}).to_string())
}

#[derive(Default)]
struct State {
    seen: Vec<Asked>,
    under_way: usize,
    most: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The service.
pub(crate) struct Service {
    /// Its address, without a slash at the end.
    pub(crate) url: String,
    shared: Arc<Shared>,
}

impl Service {
    pub(crate) fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let shared = Arc::new(Shared::default());
        let (answer, of_threads) = (Arc::new(answer), Arc::clone(&shared));
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (answer, shared) = (Arc::clone(&answer), Arc::clone(&of_threads));
                std::thread::spawn(move || serve(connection, &*answer, &shared));
            }
        });
        Service { url, shared }
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Asked> {
        self.shared.lock().seen.clone()
    }

    /// The most requests that were under way at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.shared.lock().most
    }

    /// Waits until so many requests have come.
    #[track_caller]
    pub(crate) fn wait_for(&self, n_requests: usize) {
        let few = |state: &mut State| state.seen.len() < n_requests;
        let waited = self.shared.changed.wait_timeout_while(self.shared.lock(), PATIENCE, few);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(state.seen.len() >= n_requests, "only {} requests came", state.seen.len());
    }
}

fn serve(mut connection: TcpStream, answer: &(dyn Fn(&Asked) -> Reply + Sync), shared: &Shared) {
    let mut reader = BufReader::new(connection.try_clone().expect("a second handle"));
    while let Some(mut asked) = read_request(&mut reader) {
        {
            let mut state = shared.lock();
            asked.number = state.seen.len();
            state.seen.push(asked.clone());
            state.under_way += 1;
            state.most = state.most.max(state.under_way);
        }
        shared.changed.notify_all();
        let mut reply = answer(&asked);
        while let Reply::Together(n, inner) = reply {
            let alone = |state: &mut State| state.most < n;
            drop(shared.changed.wait_timeout_while(shared.lock(), PATIENCE, alone));
            // One too many would come now.
            std::thread::sleep(Duration::from_millis(50));
            reply = *inner;
        }
        if let Reply::Whole(status, fields, body) = reply {
            shared.lock().under_way -= 1;
            let sent = write!(
                connection,
                "HTTP/1.1 {status} X\r\n{fields}content-length: {}\r\n\r\n{body}",
                body.len()
            );
            if sent.is_err() {
                return;
            }
        } else {
            let _ = reader.read(&mut [0]);
            shared.lock().under_way -= 1;
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = field.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&field);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Asked { line: line.trim_end().to_owned(), head, body, number: 0 })
}
