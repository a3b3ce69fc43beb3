//! Where a store is, and how to get in.

use crate::fault::innermost;
use crate::shared::StoreOptions;
use crate::store::ObjectsStore;
use crate::way::{Tell, Way};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig,
    path::Path,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Once};
use std::time::Duration;
use url::Url;

/// Schemes of the URLs that are understood.
const SCHEMES: [&str; 9] = [
    "s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl", "https",
];

/// A URL and the options to open it with.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreLocation {
    url: Url,
    options: BTreeMap<String, String>,
}

/// Options hold secrets.
impl std::fmt::Debug for StoreLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Place({})", self.url)
    }
}

impl StoreLocation {
    /// Whether a word is meant as a URL, not as a path: `s3://bucket/prefix`.
    #[must_use]
    pub fn is_url(word: &str) -> bool {
        word.split_once("://").is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric())
        })
    }

    /// Parses a URL. `options` are pairs by the names that each store's own tools use for them in
    /// the environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, `AZURE_STORAGE_ACCOUNT_NAME` …), in
    /// any case; those of no use for this store are left aside.
    pub fn parse(word: &str, options: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let wrong = |what: String| {
            Error::new(ErrorKind::Usage, what).hint(
                "write s3://BUCKET/FOLDER, gs://BUCKET/FOLDER or az://CONTAINER/FOLDER; a path of \
                 this host needs no scheme",
            )
        };
        let url: Url = word
            .parse()
            .map_err(|error| wrong(format!("{word} is not a URL ({error})")))?;
        if !SCHEMES.contains(&url.scheme()) {
            return Err(wrong(format!(
                "{word}: {}:// stores are not supported",
                url.scheme()
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::usage(format!(
                "the URL of {} contains a user name or a password",
                url.host_str().unwrap_or_default()
            ))
            .hint("remove it: every user on this host can see it in the process list")
            .hint(
                "give it in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or in a file \
                 of your own (~/.aws/credentials)",
            ));
        }
        let options = options
            .into_iter()
            .map(|(key, value)| (key.to_ascii_lowercase(), value))
            .collect();
        Ok(Self { url, options })
    }

    /// Opens the store. Nothing is asked of it yet.
    pub fn open(&self, options: StoreOptions) -> Result<ObjectsStore> {
        choose_tls();
        let (store, prefix) = self.connect(&options.tell)?;
        ObjectsStore::new(store, prefix, self.url.to_string(), options)
    }

    fn connect(&self, tell: &Tell) -> Result<(Arc<dyn ObjectStore>, Path)> {
        let (scheme, prefix) = ObjectStoreScheme::parse(&self.url)
            .context(|| format!("{} names no store", self.url))?;
        let prefix = Path::parse(prefix).context(|| format!("{} names no folder", self.url))?;
        let (retry, client) = (retries(), timeouts());
        let failed = || format!("{} cannot be used", self.url);
        let unusable = |error: object_store::Error| {
            Error::usage(format!("{}: {}", failed(), innermost(&error)))
                .hint("check the environment variables for the store")
        };
        let store: Arc<dyn ObjectStore> = match scheme {
            ObjectStoreScheme::AmazonS3 => {
                // One at a time, a removal that is not allowed is answered with 403: in the answer to
                // a request for many it would pass for trouble.
                let mut builder = AmazonS3Builder::new()
                    .with_url(self.url.as_str())
                    .with_disable_bulk_delete(true)
                    .with_http_connector(Way(tell.clone()))
                    .with_retry(retry)
                    .with_client_options(client);
                for (key, value) in self.known::<AmazonS3ConfigKey>() {
                    builder = builder.with_config(key, value);
                }
                refuse_half_a_key(
                    builder.get_config_value(&AmazonS3ConfigKey::AccessKeyId),
                    builder.get_config_value(&AmazonS3ConfigKey::SecretAccessKey),
                )?;
                refuse_plain(
                    builder.get_config_value(&AmazonS3ConfigKey::Endpoint),
                    builder
                        .get_config_value(&AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp)),
                    "AWS_ALLOW_HTTP",
                )?;
                Arc::new(builder.build().map_err(unusable)?)
            }
            ObjectStoreScheme::GoogleCloudStorage => {
                let mut builder = GoogleCloudStorageBuilder::new()
                    .with_url(self.url.as_str())
                    .with_http_connector(Way(tell.clone()))
                    .with_retry(retry)
                    .with_client_options(client);
                for (key, value) in self.known::<GoogleConfigKey>() {
                    builder = builder.with_config(key, value);
                }
                Arc::new(builder.build().map_err(unusable)?)
            }
            ObjectStoreScheme::MicrosoftAzure => {
                let mut builder = MicrosoftAzureBuilder::new()
                    .with_url(self.url.as_str())
                    .with_http_connector(Way(tell.clone()))
                    .with_retry(retry)
                    .with_client_options(client);
                for (key, value) in self.known::<AzureConfigKey>() {
                    builder = builder.with_config(key, value);
                }
                refuse_plain(
                    builder.get_config_value(&AzureConfigKey::Endpoint),
                    builder.get_config_value(&AzureConfigKey::Client(ClientConfigKey::AllowHttp)),
                    "AZURE_ALLOW_HTTP",
                )?;
                Arc::new(builder.build().map_err(unusable)?)
            }
            _ => {
                return Err(Error::new(ErrorKind::Usage, failed())
                    .hint("write s3://BUCKET/FOLDER and give the server as AWS_ENDPOINT_URL"));
            }
        };
        Ok((store, prefix))
    }

    /// The options that this kind of store knows.
    fn known<K: std::str::FromStr>(&self) -> impl Iterator<Item = (K, String)> {
        let each = self.options.iter();
        each.filter_map(|(key, value)| Some((key.parse().ok()?, value.clone())))
    }
}

/// How often the library repeats a request, and how long.
fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(10),
            base: 2.0,
        },
        max_retries: 8,
        retry_timeout: Duration::from_secs(120),
    }
}

/// How long one request may take.
fn timeouts() -> ClientOptions {
    ClientOptions::new()
        .with_connect_timeout(Duration::from_secs(10))
        .with_timeout(Duration::from_secs(60))
}

fn refuse_half_a_key(id: Option<String>, secret: Option<String>) -> Result<()> {
    let (there, missing) = match (id, secret) {
        (Some(_), None) => ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        (None, Some(_)) => ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
        _ => return Ok(()),
    };
    Err(
        Error::usage(format!("{there} is set, but {missing} is not")).hint(
            "set both; or set neither, and set AWS_PROFILE to a profile in ~/.aws/credentials",
        ),
    )
}

/// Refuses an address without encryption that was not allowed, with the name of the setting that allows it.
fn refuse_plain(endpoint: Option<String>, allowed: Option<String>, setting: &str) -> Result<()> {
    let Some(endpoint) = endpoint.filter(|one| one.starts_with("http://")) else {
        return Ok(());
    };
    let allowed = allowed.map(|word| word.to_ascii_lowercase());
    match allowed.as_deref() {
        Some("true" | "1" | "yes" | "y" | "on") => Ok(()),
        _ => Err(Error::usage(format!(
            "the store's address {endpoint} is plain HTTP: others on the network could read what \
             is sent"
        ))
        .hint(format!(
            "write https://, or set {setting}=true if the network to the store is safe"
        ))),
    }
}

/// One implementation of TLS for the whole program.
fn choose_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // One that was chosen earlier is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(word: &str) -> String {
        let error = StoreLocation::parse(word, []).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        format!("{error} {:?}", error.hints())
    }

    #[test]
    fn urls_are_told_from_paths() {
        for url in ["s3://bucket/a", "gs://b", "https://x/y"] {
            assert!(StoreLocation::is_url(url), "{url}");
        }
        for path in ["/backup", "backup", "./s3:/x", "C:/x", "://x", "a b://c"] {
            assert!(!StoreLocation::is_url(path), "{path}");
        }
    }

    #[test]
    fn wrong_ones_say_what_to_write() {
        assert!(hints("ftp://host/x").contains("s3://BUCKET"));
        assert!(hints("s3://key:secret@bucket/x").contains("environment"));
    }

    #[test]
    fn secrets_are_not_shown() {
        let place = StoreLocation::parse(
            "s3://bucket/x",
            [("AWS_SECRET_ACCESS_KEY".to_owned(), "hush".to_owned())],
        );
        assert!(!format!("{place:?}").contains("hush"));
    }
}
