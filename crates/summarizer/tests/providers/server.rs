//! A real HTTP server on loopback that plays a script: what it was sent is kept, what it answers is given.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}

/// What the server does after it has read a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Bytes as they are, in one write.
    Send(Vec<u8>),
    /// Nothing more, until the client is gone.
    Hang,
    /// The connection is closed; without it the next request may come on the same one.
    Close,
}

pub(crate) type Play = Vec<Step>;

/// An answer in one piece.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Play {
    let mut bytes = head(status, headers);
    bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(body);
    vec![Step::Send(bytes)]
}

/// A JSON answer in one piece.
pub(crate) fn json(status: u16, body: &Value) -> Play {
    answer(status, &[("content-type", "application/json")], body.to_string().as_bytes())
}

/// A stream of events in these pieces, each written by itself, ended as it should be.
pub(crate) fn stream(pieces: &[&[u8]]) -> Play {
    let mut play = open_stream(pieces);
    play.push(Step::Send(b"0\r\n\r\n".to_vec()));
    play
}

/// A stream of events that is not ended.
pub(crate) fn open_stream(pieces: &[&[u8]]) -> Play {
    let mut start = head(200, &[("content-type", "text/event-stream")]);
    start.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
    let mut play = vec![Step::Send(start)];
    for piece in pieces {
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        play.push(Step::Send(chunk));
    }
    play
}

/// Events with these data, one a piece.
pub(crate) fn events(data: &[Value]) -> Play {
    let texts: Vec<String> = data.iter().map(|data| format!("data: {data}\n\n")).collect();
    stream(&texts.iter().map(String::as_bytes).collect::<Vec<_>>())
}

/// `play`, and then another step.
pub(crate) fn then(mut play: Play, step: Step) -> Play {
    play.push(step);
    play
}

pub(crate) fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} X\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.into_bytes()
}

/// The server. Each request takes the next play; when there is none left it is answered with 418.
pub(crate) struct Server {
    pub(crate) url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    plays: Mutex<std::collections::VecDeque<Play>>,
    seen: Mutex<Vec<Seen>>,
}

impl Server {
    pub(crate) fn start(plays: impl IntoIterator<Item = Play>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        shared.plays.lock().unwrap().extend(plays);
        let of_thread = Arc::clone(&shared);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = Arc::clone(&of_thread);
                std::thread::spawn(move || serve(connection, &shared));
            }
        });
        Self { url, shared }
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// The only request.
    #[track_caller]
    pub(crate) fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:#?}");
        seen.into_iter().next().unwrap()
    }
}

fn serve(mut connection: TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    while let Some(seen) = read_request(&mut reader) {
        shared.seen.lock().unwrap().push(seen);
        let play = shared.plays.lock().unwrap().pop_front();
        for step in play.unwrap_or_else(|| answer(418, &[], b"no play left")) {
            let done = match step {
                Step::Send(bytes) => connection.write_all(&bytes).is_err(),
                Step::Hang => {
                    // Until the client closes its end.
                    let _ = reader.read(&mut [0]);
                    true
                }
                Step::Close => true,
            };
            if done {
                return;
            }
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
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
    Some(Seen { line: line.trim_end().to_owned(), headers, body })
}
