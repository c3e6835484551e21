//! A bridge as a file of settings says it.

use super::handle::{Bridge, BridgeBuilder};
use super::rules::{Export, Import};
use super::settings::NatsSettings;
use crate::admin::{BridgeSettings, ExportSettings, Growth, ImportSettings, Settings};
use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::time::{Backoff, Jitter, Retry};
use core::time::Duration;

impl BridgeBuilder {
    /// A bridge as the section `bridge` of these settings says, to which the program may add rules. None: it has no
    /// `servers`.
    ///
    /// ```
    /// use paceline::{Pool, admin::Settings, bridge::BridgeBuilder, hub::Hub};
    /// # fn main() -> paceline::Result<()> {
    /// let hub = Hub::new(&Pool::new()?)?;
    /// let settings = Settings::layers()
    ///     .set("bridge.servers", "nats://127.0.0.1:4222")
    ///     .set("bridge.exports", "orders.>,audit.>")
    ///     .environment()
    ///     .build()?;
    /// let bridge = BridgeBuilder::from_settings(&hub, &settings)?.map(|builder| builder.import("prices.*").open());
    /// # assert!(bridge.is_some());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for a rule without a pattern, an import with a stream and without a durable name, and a place to
    /// start at that is none: settings that come from files and the environment have none of these.
    pub fn from_settings(hub: &Hub, settings: &Settings) -> Result<Option<Self>> {
        let said = &settings.bridge;
        let Some(servers) = &said.servers else { return Ok(None) };
        let mut builder = Bridge::nats(hub, nats(&servers.join(","), said));
        builder = set(builder, &said.name, BridgeBuilder::name);
        builder = said.permit.iter().flatten().fold(builder, BridgeBuilder::permit);
        for rule in said.exports.iter().flatten() {
            builder = builder.export(export(rule)?);
        }
        for rule in said.imports.iter().flatten() {
            builder = builder.import(import(rule)?);
        }
        Ok(Some(match (said.window, said.window_count) {
            (None, None) => builder,
            (lasts, most) => builder.window(
                lasts.unwrap_or(Duration::from_secs(120)),
                most.unwrap_or(super::handle::WINDOW),
            ),
        }))
    }
}

/// Changed by what is set.
fn set<B, T: Clone>(builder: B, setting: &Option<T>, change: fn(B, T) -> B) -> B {
    match setting {
        Some(value) => change(builder, value.clone()),
        None => builder,
    }
}

fn nats(servers: &str, said: &BridgeSettings) -> NatsSettings {
    let mut nats = NatsSettings::new(servers);
    nats = set(nats, &said.name, NatsSettings::name);
    nats = match (&said.user, &said.password, &said.password_file) {
        (Some(user), Some(password), _) => nats.user(user, password),
        (Some(user), None, Some(path)) => nats.password_file(user, path),
        _ => nats,
    };
    nats = set(nats, &said.token, NatsSettings::token);
    nats = set(nats, &said.token_file, NatsSettings::token_file);
    nats = set(nats, &said.nkey_file, NatsSettings::nkey_file);
    nats = set(nats, &said.credentials_file, NatsSettings::credentials_file);
    nats = set(nats, &said.tls_roots, NatsSettings::root_certificates);
    if let (Some(certificate), Some(key)) = (&said.tls_certificate, &said.tls_key) {
        nats = nats.client_certificate(certificate, key);
    }
    if said.tls_required == Some(true) {
        nats = nats.require_tls();
    }
    nats = set(nats, &said.connect_timeout, NatsSettings::connect_timeout);
    nats = set(nats, &said.ping_interval, NatsSettings::ping_interval);
    if said.reconnect_delay.is_none() && said.reconnect_cap.is_none() {
        return nats;
    }
    let delay = said.reconnect_delay.unwrap_or(Duration::from_millis(50));
    let cap = said.reconnect_cap.unwrap_or(Duration::from_secs(10));
    nats.reconnect(Backoff::exponential(delay).cap(cap).jitter(Jitter::Equal))
}

fn pattern(said: &Option<String>) -> Result<&str> {
    said.as_deref().ok_or_else(|| Error::invalid("the pattern of a rule", "unset", "set"))
}

fn export(said: &ExportSettings) -> Result<Export> {
    let mut rule = Export::new(pattern(&said.pattern)?);
    rule = set(rule, &said.prefix, Export::prefix);
    rule = set(rule, &said.buffer, Export::buffer);
    rule = set(rule, &said.overflow, Export::overflow);
    rule = set(rule, &said.stream, Export::at_least_once);
    rule = set(rule, &said.in_flight, Export::in_flight);
    Ok(set(rule, &said.spool, Export::spool))
}

fn import(said: &ImportSettings) -> Result<Import> {
    let mut rule = Import::new(pattern(&said.pattern)?);
    rule = set(rule, &said.prefix, Import::prefix);
    rule = set(rule, &said.group, Import::group);
    rule = set(rule, &said.buffer, Import::buffer);
    rule = set(rule, &said.request_timeout, Import::request_timeout);
    let Some(stream) = &said.stream else { return Ok(rule) };
    let Some(durable) = &said.durable else {
        return Err(Error::invalid("durable", "unset", "set, as there is a stream"));
    };
    rule = rule.at_least_once(stream, durable);
    if let Some(start) = &said.start_at {
        rule = rule.start_at(start.parse()?);
    }
    if let Some(retry) = retry(said) {
        rule = rule.retry(retry);
    }
    rule = set(rule, &said.in_flight, Import::in_flight);
    rule = set(rule, &said.ack_wait, Import::ack_wait);
    Ok(set(rule, &said.handle_timeout, Import::handle_timeout))
}

/// None: nothing is said of retries.
fn retry(said: &ImportSettings) -> Option<Retry> {
    let is_said = said.retries.is_some()
        || said.retry_growth.is_some()
        || said.retry_delay.is_some()
        || said.retry_cap.is_some();
    let delay = said.retry_delay.unwrap_or(Duration::from_millis(500));
    let backoff = Growth::backoff(said.retry_growth, delay, said.retry_cap);
    is_said.then(|| Retry::new(said.retries.unwrap_or(9), backoff))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::StartAt;
    use crate::hub::Overflow;
    use std::time::SystemTime;

    fn settings(text: &str) -> BridgeSettings {
        let path = format!("paceline-rules-{}-{:p}.yaml", std::process::id(), text);
        let path = std::env::temp_dir().join(path);
        std::fs::write(&path, text).unwrap();
        let settings = Settings::layers().file(&path).build().unwrap();
        std::fs::remove_file(&path).unwrap();
        settings.bridge
    }

    /// Goal: each setting changes what its method does. Method: rules are compared by what `Debug` shows, which is all.
    #[test]
    fn all_that_is_said_of_rules_arrives() {
        let said = settings(
            "bridge: {exports: [plain, {pattern: a, prefix: eu., buffer: 7, overflow: conflate, stream: A, in_flight: 3, spool: s}], \
             imports: [plain, {pattern: b, prefix: eu., group: g, buffer: 8, request_timeout: 2s}, \
             {pattern: c, stream: C, durable: d, start_at: 7, retries: 2, retry_growth: fixed, retry_delay: 3s, \
             in_flight: 4, ack_wait: 5s, handle_timeout: 6s}]}",
        );
        let second = Duration::from_secs;
        let full = Export::new("a").prefix("eu.").buffer(7).overflow(Overflow::Conflate);
        let full = full.at_least_once("A").in_flight(3).spool("s");
        let exports: Result<Vec<_>> = said.exports.iter().flatten().map(export).collect();
        assert_eq!(
            format!("{:?}", exports.unwrap()),
            format!("{:?}", [Export::new("plain"), full])
        );
        let shared = Import::new("b").prefix("eu.").group("g").buffer(8).request_timeout(second(2));
        let taken = Import::new("c").at_least_once("C", "d").start_at(StartAt::Sequence(7));
        let taken = taken.retry(Retry::new(2, Backoff::fixed(second(3)))).in_flight(4);
        let taken = taken.ack_wait(second(5)).handle_timeout(second(6));
        let imports: Result<Vec<_>> = said.imports.iter().flatten().map(import).collect();
        let expected = [Import::new("plain"), shared, taken];
        assert_eq!(format!("{:?}", imports.unwrap()), format!("{expected:?}"));
    }

    #[test]
    fn a_place_to_start_at_is_read_from_text() {
        let second = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        for (text, start) in [
            ("first", StartAt::First),
            ("new", StartAt::New),
            ("18446744073709551615", StartAt::Sequence(u64::MAX)),
            ("1970-01-01T00:00:01Z", StartAt::Time(second)),
        ] {
            assert_eq!(text.parse::<StartAt>().unwrap(), start);
            let said = settings(&format!(
                "bridge: {{imports: [{{pattern: a, stream: A, durable: a, start_at: {text}}}]}}"
            ));
            assert!(said.imports.is_some(), "{text}");
        }
        for text in ["", "last", "0", "-1", "1970-01-01"] {
            assert!(text.parse::<StartAt>().is_err(), "{text}");
        }
    }

    /// Code may change settings that were in order.
    #[test]
    fn rules_that_lack_something_are_refused() {
        let mut said = settings("bridge: {imports: [{pattern: a, stream: A, durable: a}]}");
        let rule = &mut said.imports.as_mut().unwrap()[0];
        rule.durable = None;
        assert!(import(rule).unwrap_err().to_string().starts_with("durable is unset"));
        rule.pattern = None;
        assert!(
            import(rule).unwrap_err().to_string().starts_with("the pattern of a rule is unset")
        );
    }
}
