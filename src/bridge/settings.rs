//! How a broker is reached.

use crate::error::{Error, Result, without_login};
use crate::time::Backoff;
use async_nats::ConnectOptions;
use core::fmt;
use core::time::Duration;
use std::path::PathBuf;

/// How a NATS broker is reached: its addresses, how the bridge proves who it is, TLS, and how it comes back after the
/// connection was lost. An address as text is one, too.
///
/// Secrets are neither shown by `Debug` nor told by errors, statistics or logs.
///
/// ```
/// use paceline::bridge::NatsSettings;
/// let settings = NatsSettings::new("tls://a.example:4222,tls://b.example:4222")
///     .credentials_file("/etc/orders/broker.creds")
///     .name("orders");
/// assert!(!format!("{settings:?}").contains("broker.creds"));
/// ```
#[derive(Clone)]
pub struct NatsSettings {
    servers: String,
    name: Option<String>,
    login: Login,
    roots: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
    is_tls_required: bool,
    pub(super) reconnect: Backoff,
    connect_timeout: Duration,
    ping_interval: Duration,
}

/// How it proves who it is.
#[derive(Clone)]
enum Login {
    None,
    User(String, String),
    PasswordFile(String, PathBuf),
    Token(String),
    TokenFile(PathBuf),
    NkeyFile(PathBuf),
    CredentialsFile(PathBuf),
}

impl NatsSettings {
    /// A broker at these addresses, separated by commas: `nats://host:port`, or `tls://host:port`, each maybe with
    /// `user:password@` or `token@` before the host, with `%40` for `@` and so on. Of several servers, one cluster, any one
    /// is used, and those that it tells of; all are logged in to as the first says that has a login.
    pub fn new(servers: impl Into<String>) -> Self {
        Self {
            servers: servers.into(),
            name: None,
            login: Login::None,
            roots: None,
            identity: None,
            is_tls_required: false,
            reconnect: Backoff::exponential(Duration::from_millis(50))
                .cap(Duration::from_secs(10))
                .jitter(crate::time::Jitter::Equal),
            connect_timeout: Duration::from_secs(5),
            ping_interval: Duration::from_secs(10),
        }
    }

    /// What the broker's own tools call this connection. Default: "paceline".
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Logs in by name and password. Default: as the address says, or not at all.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.login = Login::User(user.into(), password.into());
        self
    }

    /// As [`user`](Self::user), with the password that is the text of this file. It is read at each connection.
    #[must_use]
    pub fn password_file(mut self, user: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        self.login = Login::PasswordFile(user.into(), path.into());
        self
    }

    /// Logs in by a token.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.login = Login::Token(token.into());
        self
    }

    /// Logs in by the token that is the text of this file. It is read at each connection.
    #[must_use]
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.login = Login::TokenFile(path.into());
        self
    }

    /// Logs in by the nkey whose seed is the text of this file. It is read at each connection.
    #[must_use]
    pub fn nkey_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.login = Login::NkeyFile(path.into());
        self
    }

    /// Logs in by the JWT and nkey in this file of the broker's tools (`.creds`). It is read at each connection.
    #[must_use]
    pub fn credentials_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.login = Login::CredentialsFile(path.into());
        self
    }

    /// Trusts the certificates in this PEM file. Default: those that the system trusts.
    #[must_use]
    pub fn root_certificates(mut self, path: impl Into<PathBuf>) -> Self {
        self.roots = Some(path.into());
        self
    }

    /// Shows the broker this certificate, PEM files of its chain and its key.
    #[must_use]
    pub fn client_certificate(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    /// Refuses a connection without TLS. Default: TLS where the address is `tls://` or the broker asks for it.
    #[must_use]
    pub fn require_tls(mut self) -> Self {
        self.is_tls_required = true;
        self
    }

    /// How long it waits before the next attempt to connect. Default: from 50 ms on, twice as long each time, up to 10
    /// seconds, and each time half of it by chance, so that not all who lost a broker come back at once.
    #[must_use]
    pub fn reconnect(mut self, backoff: Backoff) -> Self {
        self.reconnect = backoff;
        self
    }

    /// How long an attempt to connect may take. Default: 5 seconds.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// How often the broker is asked for a sign of life: a connection without one for twice as long is given up. Default:
    /// 10 seconds.
    #[must_use]
    pub fn ping_interval(mut self, interval: Duration) -> Self {
        self.ping_interval = interval;
        self
    }

    /// What can be found out without a broker.
    ///
    /// # Errors
    /// [`Error::Invalid`]
    pub(super) fn check(&self) -> Result<()> {
        self.addresses()?;
        self.reconnect.check()?;
        for (what, time) in
            [("connect_timeout", self.connect_timeout), ("ping_interval", self.ping_interval)]
        {
            if !(Duration::from_millis(10)..=Duration::from_secs(86_400)).contains(&time) {
                return Err(Error::invalid(what, format!("{time:?}"), "10 ms to 1 day"));
            }
        }
        Ok(())
    }

    pub(super) fn addresses(&self) -> Result<Vec<async_nats::ServerAddr>> {
        let parse = |address: &str| {
            let parsed = address.trim().parse::<async_nats::ServerAddr>().ok();
            parsed.filter(|parsed| !parsed.host().is_empty()).ok_or_else(|| {
                let allowed = "nats://host:port or tls://host:port";
                Error::invalid(
                    "the address of a broker",
                    format!("{:?}", without_login(address)),
                    allowed,
                )
            })
        };
        self.servers.split(',').map(parse).collect()
    }

    /// What stands before the host of the first address that has something there: the client does not use it.
    fn login_of_address(&self) -> Result<Login> {
        for address in self.addresses()? {
            match (address.username(), address.password()) {
                (Some(user), Some(password)) => {
                    return Ok(Login::User(decoded(user), decoded(password)));
                }
                (Some(token), None) => return Ok(Login::Token(decoded(token))),
                _ => {}
            }
        }
        Ok(Login::None)
    }

    /// The addresses without secrets.
    pub(super) fn shown(&self) -> String {
        self.servers
            .split(',')
            .map(|address| without_login(address.trim()))
            .collect::<Vec<_>>()
            .join(",")
    }

    /// For one connection, which never comes back by itself.
    pub(super) fn options(&self) -> Result<ConnectOptions> {
        let read = |path: &PathBuf, what| {
            std::fs::read_to_string(path)
                .map_err(|error| Error::os(format!("read {what} {path:?}"), error))
        };
        let mut options = ConnectOptions::new()
            .name(self.name.as_deref().unwrap_or("paceline"))
            .connection_timeout(self.connect_timeout)
            .ping_interval(self.ping_interval)
            .require_tls(self.is_tls_required);
        let login = match self.login {
            Login::None => self.login_of_address()?,
            _ => self.login.clone(),
        };
        options = match &login {
            Login::None => options,
            Login::User(user, password) => {
                options.user_and_password(user.clone(), password.clone())
            }
            Login::PasswordFile(user, path) => {
                options.user_and_password(user.clone(), line(read(path, "the password")?))
            }
            Login::Token(token) => options.token(token.clone()),
            Login::TokenFile(path) => options.token(line(read(path, "the token")?)),
            Login::NkeyFile(path) => options.nkey(read(path, "the nkey")?.trim().to_owned()),
            Login::CredentialsFile(path) => {
                let text = read(path, "the credentials")?;
                options.credentials(&text).map_err(|_| {
                    let allowed = "a JWT and a seed, as the broker's tools write them";
                    Error::invalid("the file of credentials", format!("{path:?}"), allowed)
                })?
            }
        };
        if let Some(roots) = &self.roots {
            options = options.add_root_certificates(roots.clone());
        }
        if let Some((certificate, key)) = &self.identity {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        Ok(options)
    }
}

/// With `%40` read as `@`, and so on.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|it| it.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&part.as_bytes()[2..]);
            }
            None => bytes.extend(format!("%{part}").bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The text of a file without the end of its line.
fn line(text: String) -> String {
    text.trim_end_matches(['\r', '\n']).to_owned()
}

impl From<&str> for NatsSettings {
    fn from(servers: &str) -> Self {
        Self::new(servers)
    }
}

impl From<String> for NatsSettings {
    fn from(servers: String) -> Self {
        Self::new(servers)
    }
}

impl fmt::Debug for NatsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsSettings").field("servers", &self.shown()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let settings = NatsSettings::new("nats://joe:secret@a:4222, tls://tok@b")
            .user("joe", "secret")
            .token("secret");
        let shown = format!("{settings:?}");
        assert!(!shown.contains("secret") && !shown.contains("joe") && !shown.contains("tok"));
        assert_eq!(settings.shown(), "nats://a:4222,tls://b");
        assert_eq!(decoded("a%40b%2Fc%%zz%e2%82%ac%4"), "a@b/c%%zz€%4");
        let error = NatsSettings::new("nats://joe:secret@:x:y").check().unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
        for address in ["", "nats://", "a,,b", "nats://joe@"] {
            assert!(NatsSettings::new(address).check().is_err(), "{address:?}");
        }
    }
}
