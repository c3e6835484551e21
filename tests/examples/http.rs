//! The web server: the table at the head of the example, row by row, over raw sockets; and what curl
//! makes of it.

use super::kit::{KINDS, Kind, Server, Stream, own_path, run};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

/// When all files were modified: `UNIX_EPOCH` and these seconds.
const MODIFIED: u64 = 1_000_000_000;
const LAST_MODIFIED: &str = "Sun, 09 Sep 2001 01:46:40 GMT";
const A_SECOND_EARLIER: &str = "Sun, 09 Sep 2001 01:46:39 GMT";
const TEXT: &[u8] = b"hello, world\n";
/// More than the kernel keeps for both ends of a connection.
const LARGE: usize = 16 << 20;

/// A directory that is gone afterwards, and its server.
struct Site {
    server: Server,
    directory: PathBuf,
}

impl Site {
    fn start(name: &str) -> Self {
        Self::start_at(Kind::Tcp, name)
    }

    fn start_at(kind: Kind, name: &str) -> Self {
        let directory = own_path(&format!("http-{name}"));
        fs::create_dir_all(directory.join("docs")).expect("a directory can be made");
        fs::create_dir_all(directory.join("api")).expect("a directory can be made");
        for (path, bytes) in [
            ("index.html", &b"<p>home"[..]),
            ("docs/index.html", b"<p>docs"),
            ("text.TXT", TEXT),
            ("a b", b"space"),
            ("empty", b""),
            (".secret", b"secret"),
            ("large.bin", &large()),
        ] {
            let path = directory.join(path);
            fs::write(&path, bytes).expect("a file can be written");
            let file = fs::File::options().append(true).open(&path).expect("it is there");
            let modified = UNIX_EPOCH + Duration::from_secs(MODIFIED);
            // Half a second is lost on the way, and not taken for a change.
            file.set_modified(modified + Duration::from_millis(500)).expect("it is ours");
        }
        symlink("text.TXT", directory.join("link")).expect("a link can be made");
        let pipe = Command::new("mkfifo").arg(directory.join("pipe")).status().expect("mkfifo");
        assert!(pipe.success());
        let path = directory.to_str().expect("a readable path");
        let flags = ["--threads", "2", "--directory", path];
        Self { server: Server::start(kind, "http", &flags), directory }
    }

    fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        Connection::to(&self.server).ask(method, target, headers)
    }

    fn get(&self, target: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask("GET", target, headers)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // What is left of it is in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn large() -> Vec<u8> {
    (0..LARGE as u32 / 4).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect()
}

struct Connection(BufReader<Stream>);

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Connection {
    fn to(server: &Server) -> Self {
        Self(BufReader::new(server.connect()))
    }

    fn ask(&mut self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(method, target, headers);
        self.answer(method)
    }

    fn send(&mut self, method: &str, target: &str, headers: &[(&str, &str)]) {
        let headers: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!("{method} {target} HTTP/1.1\r\nHost: here\r\n{headers}\r\n");
        self.0.get_mut().write_all(request.as_bytes()).expect("the server reads");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer comes");
        line.trim_end().to_owned()
    }

    fn answer(&mut self, method: &str) -> Answer {
        let status = self.line().split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut answer = Answer { status: status.expect("a status"), headers, body: Vec::new() };
        if method != "HEAD" && answer.status != 304 {
            let length = answer.header("Content-Length").expect("it has one").parse();
            answer.body = vec![0; length.expect("a number")];
            self.0.read_exact(&mut answer.body).expect("it is whole");
        }
        answer
    }
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        Some(&self.headers.iter().find(|(of, _)| of == name)?.1)
    }

    #[track_caller]
    fn is(&self, status: u16, body: impl AsRef<[u8]>) -> &Self {
        assert_eq!(self.status, status);
        assert!(self.body == body.as_ref(), "{}", String::from_utf8_lossy(&self.body));
        self
    }

    #[track_caller]
    fn has(&self, name: &str, value: &str) -> &Self {
        assert_eq!(self.header(name), Some(value), "{name}");
        self
    }
}

#[test]
fn files_are_served() {
    if super::is_missing() {
        return;
    }
    let site = Site::start("files");
    let text = site.get("/text.TXT", &[]);
    text.is(200, TEXT).has("Content-Type", "text/plain; charset=utf-8");
    text.has("Last-Modified", LAST_MODIFIED).has("Accept-Ranges", "bytes");
    site.get("/link", &[]).is(200, TEXT).has("Content-Type", "application/octet-stream");
    site.get("/a%20b?query", &[]).is(200, "space");
    site.get("/empty", &[]).is(200, "");
    site.get("/", &[]).is(200, "<p>home").has("Content-Type", "text/html; charset=utf-8");
    site.get("/docs/", &[]).is(200, "<p>docs");
    site.get("/docs", &[]).is(301, "").has("Location", "/docs/");
    site.get("/docs?a=b", &[]).is(301, "").has("Location", "/docs/?a=b");
    site.get("/large.bin", &[]).is(200, large());
    let head = site.ask("HEAD", "/large.bin", &[("Range", "bytes=0-1")]);
    head.is(200, "").has("Content-Length", &LARGE.to_string());
}

#[test]
fn what_is_not_to_be_seen_is_not_there() {
    if super::is_missing() {
        return;
    }
    let site = Site::start("hidden");
    fs::write(site.directory.with_extension("outside"), "outside").expect("it can be written");
    let outside = site.directory.with_extension("outside");
    let name = outside.file_name().and_then(|name| name.to_str()).expect("a readable name");
    for target in [
        "/nothing",
        "/.secret",
        "/%2esecret",
        "/pipe",
        "/docs/nothing",
        "/text.TXT/",
        "/api/",
        "/api/nothing",
        "//text.TXT",
        "/docs//index.html",
        "/./text.TXT",
        "/docs/../text.TXT",
        "/docs%2findex.html",
        &format!("/../{name}"),
        &format!("/%2e%2e/{name}"),
        &format!("/docs/%2e./../{name}"),
        &format!("/..%2f{name}"),
    ] {
        let answer = site.get(target, &[]);
        assert_eq!((answer.status, &answer.body[..]), (404, &b"not found\n"[..]), "{target}");
    }
    for target in ["/text.TXT%00", "/%FF", "/%zz"] {
        assert_eq!(site.get(target, &[]).status, 400, "{target}");
    }
    fs::remove_file(outside).expect("it is ours");
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(
            site.ask(method, "/text.TXT", &[("Content-Length", "0")]).status,
            405,
            "{method}"
        );
    }
}

#[test]
fn ranges_are_cut_out_or_left_alone() {
    if super::is_missing() {
        return;
    }
    let site = Site::start("ranges");
    for (range, status, body, content_range) in [
        ("bytes=0-4", 206, "hello", "bytes 0-4/13"),
        ("Bytes=7-", 206, "world\n", "bytes 7-12/13"),
        ("bytes=-3", 206, "ld\n", "bytes 10-12/13"),
        ("bytes=-100", 206, "hello, world\n", "bytes 0-12/13"),
        ("bytes=7-99999999999999999999999", 206, "world\n", "bytes 7-12/13"),
        ("bytes=12-12", 206, "\n", "bytes 12-12/13"),
        ("bytes=13-", 416, "", "bytes */13"),
        ("bytes=99999999999999999999999-", 416, "", "bytes */13"),
        ("bytes=-0", 416, "", "bytes */13"),
    ] {
        let answer = site.get("/text.TXT", &[("Range", range)]);
        assert_eq!((answer.status, &answer.body[..]), (status, body.as_bytes()), "{range}");
        assert_eq!(answer.header("Content-Range"), Some(content_range), "{range}");
    }
    for range in [
        "bytes=0-1,3-4",
        "lines=0-1",
        "bytes=4-2",
        "bytes=-",
        "bytes=",
        "bytes",
        "bytes=+1-2",
        "bytes=1-x",
    ] {
        let answer = site.get("/text.TXT", &[("Range", range)]);
        assert_eq!((answer.status, &answer.body[..]), (200, TEXT), "{range}");
    }
    let empty = site.get("/empty", &[("Range", "bytes=0-")]);
    empty.is(416, "").has("Content-Range", "bytes */0");
    let part = site.get("/large.bin", &[("Range", "bytes=1000-9999999")]);
    part.is(206, &large()[1000..10_000_000]);
}

#[test]
fn conditions_are_met() {
    if super::is_missing() {
        return;
    }
    let site = Site::start("conditions");
    let since = |date| site.get("/text.TXT", &[("If-Modified-Since", date)]);
    since(LAST_MODIFIED).is(304, "").has("Last-Modified", LAST_MODIFIED);
    since("Sun, 06 Nov 2044 08:49:37 GMT").is(304, "");
    since(A_SECOND_EARLIER).is(200, TEXT);
    since("yesterday").is(200, TEXT);
    let tag = ("If-None-Match", "\"a\"");
    site.get("/text.TXT", &[("If-Modified-Since", LAST_MODIFIED), tag]).is(200, TEXT);
    let (any, wrong) = (("If-None-Match", "*"), ("If-Match", "\"a\""));
    site.get("/text.TXT", &[any]).is(304, "").has("Last-Modified", LAST_MODIFIED);
    site.get("/text.TXT", &[("If-Modified-Since", A_SECOND_EARLIER), any]).is(304, "");
    site.get("/text.TXT", &[("If-Match", "*")]).is(200, TEXT);
    site.get("/text.TXT", &[wrong]).is(412, "");
    site.get("/text.TXT", &[wrong, any]).is(412, "");
    assert_eq!(site.ask("HEAD", "/text.TXT", &[wrong]).status, 412);
    site.get("/nothing", &[wrong]).is(404, "not found\n");
    let unless = |date| ("If-Unmodified-Since", date);
    site.get("/text.TXT", &[unless(LAST_MODIFIED)]).is(200, TEXT);
    site.get("/text.TXT", &[unless(A_SECOND_EARLIER)]).is(412, "");
    site.get("/text.TXT", &[unless(A_SECOND_EARLIER), ("If-Match", "*")]).is(200, TEXT);
    site.get("/text.TXT", &[unless(A_SECOND_EARLIER), any]).is(412, "");
    site.get("/text.TXT", &[unless("yesterday")]).is(200, TEXT);
    let range = ("Range", "bytes=0-4");
    site.get("/text.TXT", &[range, unless(A_SECOND_EARLIER)]).is(412, "");
    site.get("/text.TXT", &[range, ("If-Range", LAST_MODIFIED)]).is(206, "hello");
    site.get("/text.TXT", &[range, ("If-Range", A_SECOND_EARLIER)]).is(200, TEXT);
    site.get("/text.TXT", &[range, ("If-Range", "\"a\"")]).is(200, TEXT);
    site.get("/text.TXT", &[range, ("If-Modified-Since", LAST_MODIFIED)]).is(304, "");
}

#[test]
fn the_json_route_answers() {
    if super::is_missing() {
        return;
    }
    let site = Site::start("json");
    let hello = site.get("/api/hello/w%C3%B6rld%22%2F", &[]);
    hello.is(200, "{\"hello\":\"wörld\\\"/\"}").has("Content-Type", "application/json");
    site.get("/api/hello/%FF", &[]).is(400, "400 Bad Request\n");
}

#[test]
fn requests_in_a_pipeline_are_answered_in_order() {
    if super::is_missing() {
        return;
    }
    let mut site = Site::start("pipeline");
    let mut connection = Connection::to(&site.server);
    let targets = ["/text.TXT", "/large.bin", "/nothing", "/empty", "/api/hello/you", "/"];
    targets.iter().for_each(|target| connection.send("GET", target, &[]));
    let answers: Vec<_> = targets.iter().map(|_| connection.answer("GET")).collect();
    let sizes = answers.iter().map(|answer| (answer.status, answer.body.len()));
    let expected = [(200, 13), (200, LARGE), (404, 10), (200, 0), (200, 15), (200, 7)];
    assert!(sizes.eq(expected));
    drop(connection);
    let books = site.server.end("TERM");
    assert_eq!(books, "6 requests: 6 answered, 0 refused, 0 aborted\n");
}

/// Goal: a large file costs little memory while its reader is slow, and others do not wait.
#[test]
fn slow_readers_of_large_files_cost_little() {
    if super::is_missing() {
        return;
    }
    let site = Site::start("slow");
    site.get("/large.bin", &[]).is(200, large());
    let before = site.server.allocated();
    let mut slow: Vec<_> = (0..20).map(|_| Connection::to(&site.server)).collect();
    slow.iter_mut().for_each(|connection| connection.send("GET", "/large.bin", &[]));
    let begun = |connection: &Connection| connection.0.get_ref().peek().is_ok();
    assert!(slow.iter().all(begun), "all answers have begun");
    site.get("/text.TXT", &[]).is(200, TEXT);
    site.server.until_it_rests();
    let grown = site.server.allocated().saturating_sub(before);
    assert!(grown < 20 * LARGE / 8, "{grown} bytes for 20 responses");
    slow[7].answer("GET").is(200, large());
}

#[test]
fn a_file_that_shrinks_meanwhile_breaks_its_answer_off() {
    if super::is_missing() {
        return;
    }
    let site = Site::start("shrinks");
    let mut connection = Connection::to(&site.server);
    connection.send("GET", "/large.bin", &[]);
    connection.0.get_ref().peek().expect("the answer has begun");
    let path = site.directory.join("large.bin");
    let file = fs::File::options().write(true).open(path).expect("it is there");
    file.set_len(100).expect("it is ours");
    let error = connection.0.read_to_end(&mut Vec::new()).expect_err("it can never be whole");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn curl_gets_the_same() {
    if super::is_missing() {
        return;
    }
    if Command::new("curl").arg("--version").output().is_err() {
        return crate::skipped("curl is not installed");
    }
    for kind in KINDS {
        let site = Site::start_at(kind, "curl");
        let curl = |arguments: &[&str], target: &str| {
            let mut command = Command::new("curl");
            let host = match site.server.address.strip_prefix("unix:") {
                None => &site.server.address,
                Some(path) => {
                    command.args(["--unix-socket", path]);
                    "localhost"
                }
            };
            let url = format!("http://{host}{target}");
            let output = command.args(["-sS", "-m", "60"]).args(arguments).arg(url).output();
            let output = output.expect("curl starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        };
        assert!(curl(&[], "/large.bin") == large());
        assert_eq!(curl(&["-L"], "/docs"), b"<p>docs");
        assert_eq!(curl(&["-r", "7-11"], "/text.TXT"), b"world");
        assert_eq!(curl(&["-z", LAST_MODIFIED, "-w", "%{http_code}"], "/text.TXT"), b"304");
        assert_eq!(curl(&["--path-as-is"], "/docs/../text.TXT"), b"not found\n");
        assert_eq!(curl(&["-I", "-w", "%{http_code}", "-o", "/dev/null"], "/large.bin"), b"200");
    }
}

#[test]
fn a_directory_that_is_none_is_named() {
    if super::is_missing() {
        return;
    }
    let output = run("http", &["--listen", "127.0.0.1:0", "--directory", "/dev/null"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let expected = "http: --directory is \"/dev/null\", but must be a directory\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
}
