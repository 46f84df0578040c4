//! Stands between sesstool and the server and asks for answers in one piece: sesstool streams wherever it can, and must
//! understand a server that does not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use anyhow::{Context, Result};
use serde_json::Value;

/// A relay; it ends with the process.
pub(super) struct Relay {
    /// Where it listens.
    pub(super) port: u16,
}

impl Relay {
    /// Starts a relay to the server on this port of this machine.
    ///
    /// # Errors
    /// There is no port for it.
    pub(super) fn start(server: u16) -> Result<Relay> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Err(error) = pass(client, server) {
                    eprintln!("relay: {error:#}");
                }
            }
        });
        Ok(Relay { port })
    }
}

/// One request and its answer.
fn pass(mut client: TcpStream, server: u16) -> Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut head = String::new();
    reader.read_line(&mut head)?;
    let mut length = 0;
    loop {
        let mut field = String::new();
        reader.read_line(&mut field)?;
        let Some((name, value)) = field.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().context("a length")?,
            "connection" => {}
            _ => head.push_str(&field),
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut body: Value = serde_json::from_slice(&body).context("a request is JSON")?;
    let fields = body.as_object_mut().context("a request is an object")?;
    fields.insert("stream".to_owned(), Value::Bool(false));
    fields.remove("stream_options");
    let body = body.to_string();
    let mut server = TcpStream::connect(("127.0.0.1", server))?;
    write!(server, "{head}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())?;
    std::io::copy(&mut server, &mut client)?;
    Ok(())
}
