//! Which model is asked at which address: a key goes only where its provider was named (spec 5.3).

use crate::exit::CommandError;
use crate::settings::{Settings, Source};

/// The addresses that the user gave for models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrls {
    /// Provider and address.
    paired: Vec<(String, String)>,
    /// For the only provider that has none in `paired`.
    bare: Option<String>,
    /// What to call the setting.
    place: String,
    /// Whether the models were named nearer to the user than the address, which was in the settings file.
    is_from_elsewhere: bool,
}

impl BaseUrls {
    /// Takes `--base-url` apart: addresses with blanks between them, each `URL` or `NAME=URL`.
    ///
    /// An address without a name belongs to the models if they are of one provider. Of several it is not known whose it is, and
    /// one provider's key could go to another's address.
    ///
    /// # Errors
    /// More than one address without a name, or one for several providers; a flag's name of a provider that no model has.
    pub fn of(settings: &Settings, models: &[String]) -> Result<BaseUrls, CommandError> {
        let setting = settings.get("models.baseUrl");
        let place = match &setting.source {
            Source::File(path) => format!("{}: models.baseUrl", path.display()),
            other => other.to_string(),
        };
        let is_from_elsewhere = matches!(setting.source, Source::File(_))
            && settings.get("models.candidates").source > setting.source;
        let mut urls = BaseUrls { paired: Vec::new(), bare: None, place, is_from_elsewhere };
        let mut providers: Vec<&str> = models.iter().map(|model| provider(model)).collect();
        providers.sort_unstable();
        providers.dedup();
        for word in settings.base_url().unwrap_or_default().split_whitespace() {
            match word.split_once('=').filter(|(name, _)| !name.contains([':', '/', '?'])) {
                Some((name, _))
                    if !providers.contains(&name) && !matches!(setting.source, Source::File(_)) =>
                {
                    return Err(CommandError::usage(format!(
                        "{}: no model of {name:?} is asked",
                        urls.place
                    ))
                    .hint(format!("asked are models of {}", providers.join(", "))));
                }
                Some((name, url)) => urls.paired.push((name.to_owned(), url.to_owned())),
                None if urls.bare.is_none() => urls.bare = Some(word.to_owned()),
                None => {
                    return Err(CommandError::usage(format!("{}: two addresses without a name", urls.place))
                        .hint("write NAME=URL NAME=URL"));
                }
            }
        }
        let without: Vec<&str> = providers.into_iter().filter(|name| urls.paired(name).is_none()).collect();
        match (&urls.bare, &without[..]) {
            (Some(_), [first, _, ..]) => Err(CommandError::usage(format!(
                "{}: one address for models of {}",
                urls.place,
                without.join(", ")
            ))
            .hint(format!("say whose it is, for example --base-url {first}=URL"))),
            _ => Ok(urls),
        }
    }

    /// The address for models of a provider, if one was given; `has_key` says whether a key will go there.
    ///
    /// # Errors
    /// The address is in the settings file, was given there without a name, and the model was named elsewhere: it may be meant for
    /// other models, so a key does not go there.
    pub fn get(&self, provider: &str, has_key: bool) -> Result<Option<String>, CommandError> {
        if let Some(url) = self.paired(provider) {
            return Ok(Some(url.to_owned()));
        }
        if self.bare.is_some() && self.is_from_elsewhere && has_key {
            return Err(CommandError::usage(format!(
                "{}: the key of {provider} is not sent to an address that was not given for it",
                self.place
            ))
            .hint(format!("write {provider}=URL there, or give --base-url")));
        }
        Ok(self.bare.clone())
    }

    fn paired(&self, provider: &str) -> Option<&str> {
        self.paired.iter().find(|(name, _)| name == provider).map(|(_, url)| url.as_str())
    }
}

/// The provider of `NAME/ID`.
pub fn provider(model: &str) -> &str {
    model.split_once('/').map_or(model, |(provider, _)| provider)
}
