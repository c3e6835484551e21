//! Who logs in, how, and that no secret is seen anywhere.

use crate::broker::Broker;
use crate::client::{Events, get};
use crate::common::{hang_guard, skipped, until};
use nkeys::KeyPair;
use paceline::Pool;
use paceline::admin::Settings;
use paceline::bridge::{Bridge, BridgeBuilder};
use paceline::hub::{ErrorFilter, Hub, Mailbox};
use paceline::log::Log;
use paceline::ops::Ops;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A folder of its own, gone when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("paceline-login-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

type Pairs = Vec<(&'static str, String)>;

/// A process with a bridge as these variables say it, and all that is ever told of it.
struct Seen {
    settings: Settings,
    hub: Hub,
    notices: Mailbox,
    ops: Ops,
    log: Arc<Mutex<String>>,
    bridge: Bridge,
}

impl Seen {
    fn new(pairs: &Pairs) -> Self {
        let log = Arc::new(Mutex::new(String::new()));
        let lines = Arc::clone(&log);
        let told = Log::builder().facade(false).levels("trace".parse().unwrap());
        let told = told.callback(move |record| *lines.lock().unwrap() += &format!("{record:?}\n"));
        let pool = Pool::builder().threads(2).log(&told.build().unwrap()).build().unwrap();
        let hub = Hub::new(&pool).unwrap();
        let notices = hub.mailbox("$SYS.>", 1000).unwrap();
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let settings =
            Settings::layers().variables(pairs).set("bridge.exports", "a").build().unwrap();
        let ops = Ops::builder(&pool).settings(&settings).serve("127.0.0.1:0").unwrap();
        let builder = BridgeBuilder::from_settings(&hub, &settings).unwrap().unwrap();
        Self { settings, hub, notices, ops, log, bridge: builder.open().unwrap() }
    }

    /// Why it is not connected, as soon as that is told.
    fn refused(&self) -> String {
        until("a reason", || self.bridge.stats().reason.is_some());
        let stats = self.bridge.stats();
        assert!(!stats.connected, "{stats:?}");
        stats.reason.unwrap()
    }

    fn everything(&self) -> String {
        let at = &self.ops.addresses()[0];
        let paths = ["/stats.json", "/metrics", "/config", "/health/ready", "/errors.json", "/"];
        let mut all: String = paths.map(|path| get(at, path).body).concat();
        assert!(all.contains("bridge.servers") && all.contains("paceline_bridge_connected"));
        all += &Events::open(at, "/events").ok().unwrap().next().to_string();
        let stats = self.bridge.stats();
        all += &format!("{:?} {:?} {stats:?} {stats}", self.settings, self.bridge);
        all += &format!("{:?}", self.hub.errors(&ErrorFilter::all()));
        let mut notices = String::new();
        while let Some(notice) = self.notices.try_recv().unwrap() {
            notices += &format!("{notice:?} {}", String::from_utf8_lossy(notice.payload()));
        }
        assert!(notices.contains("$SYS.bridge."), "{notices}");
        let log = self.log.lock().unwrap().clone();
        assert!(log.contains("bridge."), "{log}");
        all + &notices + &log
    }
}

/// With the wrong secret it is not connected, and says why; with the right one it is; nothing that is told has either.
fn logs_in(name: &str, wrong: &Pairs, right: &Pairs, secrets: &[&str]) {
    let seen = Seen::new(wrong);
    let reason = seen.refused();
    assert!(reason.to_lowercase().contains("authorization"), "{name}: {reason}");
    let mut told = seen.everything();
    drop(seen);
    let seen = Seen::new(right);
    seen.bridge.wait_connected(Duration::from_secs(60)).unwrap();
    told += &seen.everything();
    for secret in secrets {
        assert!(!told.contains(secret), "{name} shows {secret} in {told}");
    }
}

const RIGHT: &str = "cOrrect-horse";
const WRONG: &str = "wrOng-battery";

#[test]
fn passwords_and_tokens_log_in_and_are_not_shown() {
    let _guard = hang_guard();
    let folder = Folder::new();
    let user = format!("authorization {{ user: joe, password: \"{RIGHT}\" }}");
    let Some(users) = Broker::start(&user) else { return };
    let Some(tokens) = Broker::start(&format!("authorization {{ token: \"{RIGHT}\" }}")) else {
        return;
    };
    let host = |broker: &Broker| broker.url().replace("nats://", "");
    let server = |url: String| ("PACELINE_BRIDGE_SERVERS", url);
    // Also where one letter is written in another way.
    let secrets = [&RIGHT[2..], &WRONG[3..]];
    let joe = ("PACELINE_BRIDGE_USER", "joe".to_owned());

    let pairs = |word: &str| {
        vec![server(users.url()), joe.clone(), ("PACELINE_BRIDGE_PASSWORD", word.to_owned())]
    };
    logs_in("a user", &pairs(WRONG), &pairs(RIGHT), &secrets);
    let pairs = |word: &str| {
        let file = folder.write(&format!("password-{}", word == RIGHT), &format!("{word}\n"));
        vec![server(users.url()), joe.clone(), ("PACELINE_BRIDGE_PASSWORD_FILE", file)]
    };
    logs_in("a password in a file", &pairs(WRONG), &pairs(RIGHT), &secrets);
    // Of several addresses the first says it for all.
    let pairs = |word: &str| {
        let word = word.replace('O', "%4F");
        vec![server(format!("nats://joe:{word}@127.0.0.1:1, {}", host(&users)))]
    };
    logs_in("a user in the address", &pairs(WRONG), &pairs(RIGHT), &secrets);

    let pairs = |word: &str| vec![server(tokens.url()), ("PACELINE_BRIDGE_TOKEN", word.to_owned())];
    logs_in("a token", &pairs(WRONG), &pairs(RIGHT), &secrets);
    let pairs = |word: &str| {
        let file = folder.write(&format!("token-{}", word == RIGHT), word);
        vec![server(tokens.url()), ("PACELINE_BRIDGE_TOKEN_FILE", file)]
    };
    logs_in("a token in a file", &pairs(WRONG), &pairs(RIGHT), &secrets);
    let pairs = |word: &str| vec![server(format!("nats://{word}@{}", host(&tokens)))];
    logs_in("a token in the address", &pairs(WRONG), &pairs(RIGHT), &secrets);
}

#[test]
fn an_nkey_logs_in_and_its_seed_is_not_shown() {
    let _guard = hang_guard();
    let folder = Folder::new();
    let (right, wrong) = (KeyPair::new_user(), KeyPair::new_user());
    let more = format!("authorization {{ users: [ {{ nkey: {} }} ] }}", right.public_key());
    let Some(broker) = Broker::start(&more) else { return };
    let pairs = |name: &str, key: &KeyPair| {
        let file = folder.write(name, &format!("{}\n", key.seed().unwrap()));
        vec![("PACELINE_BRIDGE_SERVERS", broker.url()), ("PACELINE_BRIDGE_NKEY_FILE", file)]
    };
    let secrets = [right.seed().unwrap(), wrong.seed().unwrap()];
    let secrets = secrets.each_ref().map(String::as_str);
    logs_in("an nkey", &pairs("wrong", &wrong), &pairs("right", &right), &secrets);
}

/// Text of URLs, without padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .enumerate()
            .fold(0, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for at in 0..=chunk.len() {
            text.push(char::from(LETTERS[(bits >> (18 - 6 * at)) as usize & 63]));
        }
    }
    text
}

/// What `issuer` says of `subject`, signed.
fn jwt(issuer: &KeyPair, subject: &KeyPair, nats: serde_json::Value) -> String {
    let (issued, of) = (issuer.public_key(), subject.public_key());
    let claims = serde_json::json!({
        "jti": "A", "iat": 1, "iss": issued, "sub": of, "name": "test", "nats": nats,
    });
    let head = base64(br#"{"typ":"JWT","alg":"ed25519-nkey"}"#);
    let text = format!("{head}.{}", base64(claims.to_string().as_bytes()));
    let signature = issuer.sign(text.as_bytes()).unwrap();
    format!("{text}.{}", base64(&signature))
}

fn account(operator: &KeyPair, account: &KeyPair) -> String {
    let limits = serde_json::json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
        "conn": -1, "leaf": -1,
    });
    jwt(operator, account, serde_json::json!({ "type": "account", "version": 2, "limits": limits }))
}

#[test]
fn credentials_of_the_broker_s_tools_log_in_and_are_not_shown() {
    let _guard = hang_guard();
    let folder = Folder::new();
    let operator = KeyPair::new_operator();
    let [system, known, unknown] = [(); 3].map(|()| KeyPair::new_account());
    let said = jwt(&operator, &operator, serde_json::json!({ "type": "operator", "version": 2 }));
    let [of_system, of_known] = [&system, &known].map(|it| account(&operator, it));
    let (system, account) = (system.public_key(), known.public_key());
    let more = format!(
        "operator: {said}\nsystem_account: {system}\nresolver: MEMORY\n\
         resolver_preload: {{ {system}: {of_system}, {account}: {of_known} }}"
    );
    let Some(broker) = Broker::start(&more) else { return };
    let mut secrets = Vec::new();
    let mut pairs = |name: &str, issuer: &KeyPair| {
        let user = KeyPair::new_user();
        let limits = serde_json::json!({
            "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {},
        });
        let (jwt, seed) = (jwt(issuer, &user, limits), user.seed().unwrap());
        let file = folder.write(
            name,
            &format!(
                "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
                 -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
            ),
        );
        secrets.extend([jwt, seed]);
        vec![("PACELINE_BRIDGE_SERVERS", broker.url()), ("PACELINE_BRIDGE_CREDENTIALS_FILE", file)]
    };
    let (wrong, right) = (pairs("wrong", &unknown), pairs("right", &known));
    let secrets: Vec<_> = secrets.iter().map(String::as_str).collect();
    logs_in("credentials", &wrong, &right, &secrets);
}

/// Files that are not there, or are none: the reason has their names, and never what is in them.
#[test]
fn what_is_wrong_with_a_file_is_told_without_its_text() {
    let _guard = hang_guard();
    let folder = Folder::new();
    let file = folder.write("file", "no-such-seed");
    for name in ["PASSWORD_FILE", "TOKEN_FILE", "NKEY_FILE", "CREDENTIALS_FILE"] {
        for (path, part) in [(folder.path("none"), "none"), (file.clone(), "")] {
            let variable: &'static str = format!("PACELINE_BRIDGE_{name}").leak();
            let mut pairs = vec![
                ("PACELINE_BRIDGE_SERVERS", "nats://127.0.0.1:1".to_owned()),
                (variable, path),
            ];
            if name == "PASSWORD_FILE" {
                pairs.push(("PACELINE_BRIDGE_USER", "joe".into()));
            }
            let seen = Seen::new(&pairs);
            let reason = seen.refused();
            assert!(reason.contains(part), "{name}: {reason}");
            assert!(!seen.everything().contains("no-such-seed"), "{name}");
        }
    }
}

/// A key, a request signed by the authority, and its certificate; the authority's own has no authority.
fn certificate(folder: &Folder, name: &str, authority: Option<&str>) {
    let [key, cert, request] =
        ["key", "pem", "csr"].map(|end| folder.path(&format!("{name}.{end}")));
    let run = |arguments: &[&str]| {
        let made = Command::new("openssl").args(arguments).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    let subject = format!("/CN={name}");
    let new = [
        "req",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        &subject,
        "-keyout",
        &key,
    ];
    match authority {
        None => run(&[&new[..], &["-x509", "-days", "2", "-out", &cert]].concat()),
        Some(authority) => {
            let names = folder.write("names", "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
            let [by, by_key] = ["pem", "key"].map(|end| folder.path(&format!("{authority}.{end}")));
            run(&[&new[..], &["-out", &request]].concat());
            run(&[
                "x509",
                "-req",
                "-in",
                &request,
                "-CA",
                &by,
                "-CAkey",
                &by_key,
                "-CAcreateserial",
                "-days",
                "2",
                "-extfile",
                &names,
                "-out",
                &cert,
            ]);
        }
    }
}

/// Goal: the broker is believed only with a certificate of a trusted authority, and the bridge with one of its own; what
/// is wrong is told, and no key.
#[test]
fn tls_is_verified_at_both_ends() {
    let _guard = hang_guard();
    if Command::new("openssl").arg("version").output().is_err() {
        return skipped("there is no openssl");
    }
    let folder = Folder::new();
    for (name, authority) in [
        ("trusted", None),
        ("other", None),
        ("server", Some("trusted")),
        ("client", Some("trusted")),
        ("stranger", Some("other")),
    ] {
        certificate(&folder, name, authority);
    }
    let pem = |name: &str| folder.path(&format!("{name}.pem"));
    let key = |name: &str| folder.path(&format!("{name}.key"));
    let more = format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true }}",
        pem("server"),
        key("server"),
        pem("trusted")
    );
    let Some(broker) = Broker::start(&more) else { return };
    let url = broker.url().replace("nats:", "tls:");
    let pairs = |roots: &str, client: Option<&str>| {
        let mut pairs = vec![
            ("PACELINE_BRIDGE_SERVERS", url.clone()),
            ("PACELINE_BRIDGE_TLS_REQUIRED", "true".into()),
            ("PACELINE_BRIDGE_TLS_ROOTS", pem(roots)),
        ];
        if let Some(client) = client {
            pairs.push(("PACELINE_BRIDGE_TLS_CERTIFICATE", pem(client)));
            pairs.push(("PACELINE_BRIDGE_TLS_KEY", key(client)));
        }
        pairs
    };
    let mut told = String::new();
    for wrong in
        [pairs("other", Some("client")), pairs("trusted", None), pairs("trusted", Some("stranger"))]
    {
        let seen = Seen::new(&wrong);
        assert!(!seen.refused().is_empty());
        told += &seen.everything();
    }
    let seen = Seen::new(&pairs("trusted", Some("client")));
    seen.bridge.wait_connected(Duration::from_secs(60)).unwrap();
    told += &seen.everything();
    let secret = |path: String| fs::read_to_string(Path::new(&path)).unwrap();
    for name in ["client", "stranger"] {
        let text = secret(key(name));
        let line = text.lines().nth(1).unwrap();
        assert!(line.len() > 20 && !told.contains(line), "{name}");
    }
}

#[test]
fn where_tls_is_required_a_broker_without_it_is_refused() {
    let _guard = hang_guard();
    let Some(broker) = Broker::start("") else { return };
    let pairs = vec![
        ("PACELINE_BRIDGE_SERVERS", broker.url()),
        ("PACELINE_BRIDGE_TLS_REQUIRED", "true".into()),
    ];
    let seen = Seen::new(&pairs);
    assert!(seen.refused().to_lowercase().contains("tls"), "{}", seen.refused());
}
