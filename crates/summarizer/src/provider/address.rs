//! `Address`: a base URL, what it is joined with, and whether a redirect may be followed.

use ureq::http::Uri;

use super::table::Wire;
use crate::error::SetupError;

/// A base URL that can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    uri: Uri,
}

impl Address {
    /// # Errors
    /// If it is not an `http` or `https` address with a host, or holds a name and password.
    pub(crate) fn parse(url: &str) -> Result<Self, SetupError> {
        let hint = "an address looks like http://127.0.0.1:8080/v1";
        let uri: Uri = url
            .trim()
            .parse()
            .map_err(|_| SetupError::new(format!("{} is not an address", shown(url)), hint))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
            return Err(SetupError::new(format!("{} is not an http or https address", shown(url)), hint));
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(SetupError::new(
                "an address with a password in it is not taken",
                "put the key into the provider's environment variable",
            ));
        }
        Ok(Self { uri })
    }

    /// The address with `path` behind it. `version` (e.g. `/v1`) goes between them when the address has no path
    /// of its own; an address that already ends in `path` stays; a query stays at the end.
    pub(crate) fn join(&self, version: &str, path: &str) -> String {
        let base = self.uri.path().trim_end_matches('/');
        let path = if base.ends_with(path) {
            base.to_owned()
        } else if base.is_empty() {
            format!("{version}{path}")
        } else {
            format!("{base}{path}")
        };
        self.with_path(&path, self.uri.query())
    }

    /// How the service is spoken to, where the address ends in the path of a call.
    pub(crate) fn wire(&self) -> Option<Wire> {
        let path = self.uri.path().trim_end_matches('/');
        [
            ("/messages", Wire::Messages),
            ("/responses", Wire::Responses),
            ("/chat/completions", Wire::ChatCompletions),
        ]
        .into_iter()
        .find_map(|(end, wire)| path.ends_with(end).then_some(wire))
    }

    /// The address as it is.
    pub(crate) fn whole(&self) -> String {
        self.with_path(self.uri.path(), self.uri.query())
    }

    fn with_path(&self, path: &str, query: Option<&str>) -> String {
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}://{}{path}{query}", self.scheme(), self.authority())
    }

    fn scheme(&self) -> &str {
        self.uri.scheme_str().expect("parse() takes only addresses with a scheme")
    }

    fn authority(&self) -> &str {
        self.uri.authority().expect("parse() takes only addresses with a host").as_str()
    }

    /// Host and port as written, for messages.
    pub(crate) fn host(&self) -> &str {
        self.authority()
    }

    fn bare_host(&self) -> &str {
        self.uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or(if self.scheme() == "https" { 443 } else { 80 })
    }

    /// Whether another address has the same host.
    pub(crate) fn same_host(&self, url: &str) -> bool {
        Self::parse(url).is_ok_and(|other| other.bare_host().eq_ignore_ascii_case(self.bare_host()))
    }

    /// Whether the host is this machine, where no proxy is wanted.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.bare_host();
        host.eq_ignore_ascii_case("localhost")
            || host.to_ascii_lowercase().ends_with(".localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Where a redirect leads: `None` if it may not be followed with a key and a conversation in the request.
    /// Only the same host is, on the same port, or from http to https.
    pub(crate) fn follow(&self, location: &str) -> Option<Self> {
        if location.starts_with('/') && !location.starts_with("//") {
            return Self::parse(&format!("{}://{}{location}", self.scheme(), self.authority())).ok();
        }
        let to = Self::parse(location).ok()?;
        let same_place = self.scheme() == to.scheme() && self.port() == to.port();
        let upgraded = (self.scheme(), self.port(), to.scheme(), to.port()) == ("http", 80, "https", 443);
        (to.bare_host().eq_ignore_ascii_case(self.bare_host()) && (same_place || upgraded)).then_some(to)
    }
}

/// An address for a message: what may be a password in it is left out.
fn shown(url: &str) -> String {
    let url = url.trim();
    match url.rsplit_once('@') {
        Some((_, rest)) => format!("{:?}", format!("…@{rest}")),
        None => format!("{url:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn joined(base: &str, version: &str, path: &str, expected: &str) {
        assert_eq!(Address::parse(base).unwrap().join(version, path), expected);
    }

    #[test]
    fn a_bare_host_gets_the_version() {
        joined(
            "http://127.0.0.1:8080",
            "/v1",
            "/chat/completions",
            "http://127.0.0.1:8080/v1/chat/completions",
        );
        joined("https://api.anthropic.com/", "/v1", "/messages", "https://api.anthropic.com/v1/messages");
    }

    #[test]
    fn a_path_is_kept_with_its_slash_or_without() {
        joined("http://h/api/v1/", "/v1", "/chat/completions", "http://h/api/v1/chat/completions");
        joined("http://h/openai", "/v1", "/chat/completions", "http://h/openai/chat/completions");
    }

    #[test]
    fn a_whole_address_and_a_query_are_kept() {
        joined(
            "https://h/v1/chat/completions?api-version=1",
            "/v1",
            "/chat/completions",
            "https://h/v1/chat/completions?api-version=1",
        );
    }

    #[test]
    fn an_address_of_a_call_says_how_it_is_spoken_to() {
        for (url, expected) in [
            ("http://h/v1/messages", Some(Wire::Messages)),
            ("http://h/v1/responses/", Some(Wire::Responses)),
            ("http://h/v1/chat/completions?x=1", Some(Wire::ChatCompletions)),
            ("http://h/v1", None),
        ] {
            assert_eq!(Address::parse(url).unwrap().wire(), expected, "{url}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for bad in
            ["", "localhost:8080", "ftp://h/", "http://", "nonsense", "http://user:geheim@h/", "x geheim@h"]
        {
            let error = Address::parse(bad).unwrap_err();
            assert!(!format!("{error:?}").contains("geheim"), "{error:?}");
        }
    }

    #[test]
    fn this_machine_is_known() {
        for (url, expected) in [
            ("http://localhost:1", true),
            ("http://x.localhost", true),
            ("http://127.9.9.9/", true),
            ("http://[::1]:80/", true),
            ("http://127.0.0.1.example.com", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(Address::parse(url).unwrap().is_loopback(), expected, "{url}");
        }
    }

    #[test]
    fn only_the_same_place_is_followed() {
        let from = Address::parse("http://h/v1").unwrap();
        for (location, expected) in [
            ("/v2/x", Some("http://h/v2/x")),
            ("https://H/v1", Some("https://H/v1")),
            ("http://h:80/v1", Some("http://h:80/v1")),
            ("http://h:8080/v1", None),
            ("http://evil/v1", None),
            ("//evil/v1", None),
            ("http://h@evil/v1", None),
            ("v1", None),
        ] {
            assert_eq!(from.follow(location).map(|to| to.whole()).as_deref(), expected, "{location}");
        }
        assert_eq!(Address::parse("https://h/").unwrap().follow("http://h/"), None);
    }
}
