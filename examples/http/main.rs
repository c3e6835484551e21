//! A web server for a directory, and for one small JSON route.
//!
//! ```text
//! cargo run --release -p examples --example http -- --listen 127.0.0.1:8080 --directory .
//! curl -i http://127.0.0.1:8080/README.md
//! curl -i http://127.0.0.1:8080/api/hello/you
//! ```
//!
//! The same in every language:
//!
//! | request | answer |
//! |---|---|
//! | GET or HEAD of a file | 200; Content-Type by extension, Last-Modified, `Accept-Ranges: bytes` |
//! | of a path that ends in `/` | the directory's `index.html`, or 404 |
//! | of a directory without the `/` | 301 to the path with it; a query is kept |
//! | with If-Match that is not `*`, or, without that, modified after If-Unmodified-Since | 412; files have no entity tags |
//! | with `If-None-Match: *`, or, without that, not modified after If-Modified-Since | 304 |
//! | GET with `Range: bytes=` of one range: `2-5`, `2-`, `-5` | 206 with Content-Range, cut at the end of the file |
//! | … that begins at or beyond the end, or `-0` | 416 with `Content-Range: bytes */size` |
//! | … of several ranges, another unit, or nonsense | 200, the whole file |
//! | … with If-Range that is not exactly Last-Modified | 200, the whole file |
//! | what is not there, or no regular file | 404 |
//! | a segment that, decoded, is empty, begins with a dot, or has `/` in it | 404 |
//! | a path that, decoded, is not UTF-8, or has NUL in it | 400, by the library |
//! | GET `/api/hello/{name}` | 200, `application/json`: `{"hello":"name"}` |
//! | OPTIONS | 204 with `Allow`, by the library |
//! | another method | 405, by the library |
//!
//! No path leads out of the directory, but its symbolic links are followed: they are its owner's.

#[path = "../common/mod.rs"]
mod common;
mod files;

use common::{Failure, address, number, print_now, set};
use files::Files;
use lexopt::Arg::{Long, Short};
use paceline::http::{Http, Request, Response};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const HELP: &str = "\
A web server for a directory, and for one small JSON route.

Usage: http --listen ADDR [--directory PATH] [--threads N]

  --listen ADDR      where to listen: 127.0.0.1:8080, *:8080, unix:/run/http; port 0 takes a free one
  --directory PATH   what to serve; default: the current one
  --threads N        threads of the pool; default: one per CPU
  --help             this text";

const DRAIN: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    common::exit("http", run())
}

fn run() -> Result<(), Failure> {
    let (mut listen, mut directory, mut threads) = (None, None, None);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("listen") => set("listen", &mut listen, address, &mut parser)?,
            Long("directory") => set("directory", &mut directory, path, &mut parser)?,
            Long("threads") => set("threads", &mut threads, number, &mut parser)?,
            Long("help") | Short('h') => return Ok(print_now(HELP)?),
            other => return Err(other.unexpected().into()),
        }
    }
    let listen = listen.ok_or(lexopt::Error::from("--listen is missing"))?;
    let files = Arc::new(Files::of(directory.unwrap_or_else(|| ".".into())));
    common::raise_open_files()?;
    let pool = common::pool(threads).build()?;
    let get = move |request: &Request<'_>, response: Response| files.get(request, response);
    let server = Http::builder(&pool)
        .listen(listen)
        .route("GET", "/", get.clone())
        .route("GET", "/{*path}", get)
        .route("GET", "/api/hello/{name}", hello)
        .serve()?;
    common::serve_until_interrupted(&pool, server.addresses())?;
    let drained = server.drain(DRAIN);
    let books = server.stats();
    print_now(format_args!(
        "{} requests: {} answered, {} refused, {} aborted",
        books.begun,
        books.answered.total(),
        books.refused.total(),
        books.aborted.total(),
    ))?;
    if drained { Ok(()) } else { Err("not everybody was through".into()) }
}

fn path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_dir() { Ok(path) } else { Err("a directory".into()) }
}

fn hello(request: &Request<'_>, response: Response) -> paceline::Result<()> {
    let name = request.param("name").unwrap_or_default();
    let answer = json!({ "hello": name });
    response.header("Content-Type", "application/json").send(answer.to_string())
}
