//! Where a store is, and how to get in.

use crate::store::{Manners, ObjectsStore};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig, path::Path,
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
pub struct Place {
    url: Url,
    options: BTreeMap<String, String>,
}

/// Options hold secrets.
impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Place({})", self.url)
    }
}

impl Place {
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
            .map_err(|error| wrong(format!("{word} is no URL ({error})")))?;
        if !SCHEMES.contains(&url.scheme()) {
            return Err(wrong(format!(
                "{word}: stores of the kind {}:// are not known",
                url.scheme()
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(format!(
                "{} carries credentials",
                url.host_str().unwrap_or_default()
            ))
            .hint("a URL ends up in process lists; give them in the environment"));
        }
        let options = options
            .into_iter()
            .map(|(key, value)| (key.to_ascii_lowercase(), value))
            .collect();
        Ok(Self { url, options })
    }

    /// Opens the store. Nothing is asked of it yet.
    pub fn open(&self, manners: Manners) -> Result<ObjectsStore> {
        choose_tls();
        let (store, prefix) = self.connect()?;
        ObjectsStore::new(store, prefix, self.url.to_string(), manners)
    }

    fn connect(&self) -> Result<(Arc<dyn ObjectStore>, Path)> {
        let (scheme, prefix) = ObjectStoreScheme::parse(&self.url)
            .context(|| format!("{} names no store", self.url))?;
        let prefix = Path::parse(prefix).context(|| format!("{} names no folder", self.url))?;
        let retry = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(10),
                base: 2.0,
            },
            max_retries: 8,
            retry_timeout: Duration::from_secs(120),
        };
        let client = ClientOptions::new()
            .with_connect_timeout(Duration::from_secs(10))
            .with_timeout(Duration::from_secs(60));
        let failed = || format!("{} cannot be used", self.url);
        let store: Arc<dyn ObjectStore> = match scheme {
            ObjectStoreScheme::AmazonS3 => {
                // One at a time, a removal that is not allowed is answered with 403: in the answer to
                // a request for many it would pass for trouble.
                let mut builder = AmazonS3Builder::new()
                    .with_url(self.url.as_str())
                    .with_disable_bulk_delete(true)
                    .with_retry(retry)
                    .with_client_options(client);
                for (key, value) in self.known::<AmazonS3ConfigKey>() {
                    builder = builder.with_config(key, value);
                }
                Arc::new(builder.build().context(failed)?)
            }
            ObjectStoreScheme::GoogleCloudStorage => {
                let mut builder = GoogleCloudStorageBuilder::new()
                    .with_url(self.url.as_str())
                    .with_retry(retry)
                    .with_client_options(client);
                for (key, value) in self.known::<GoogleConfigKey>() {
                    builder = builder.with_config(key, value);
                }
                Arc::new(builder.build().context(failed)?)
            }
            ObjectStoreScheme::MicrosoftAzure => {
                let mut builder = MicrosoftAzureBuilder::new()
                    .with_url(self.url.as_str())
                    .with_retry(retry)
                    .with_client_options(client);
                for (key, value) in self.known::<AzureConfigKey>() {
                    builder = builder.with_config(key, value);
                }
                Arc::new(builder.build().context(failed)?)
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
        let error = Place::parse(word, []).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        format!("{error} {:?}", error.hints())
    }

    #[test]
    fn urls_are_told_from_paths() {
        for url in ["s3://bucket/a", "gs://b", "https://x/y"] {
            assert!(Place::is_url(url), "{url}");
        }
        for path in ["/backup", "backup", "./s3:/x", "C:/x", "://x", "a b://c"] {
            assert!(!Place::is_url(path), "{path}");
        }
    }

    #[test]
    fn wrong_ones_say_what_to_write() {
        assert!(hints("ftp://host/x").contains("s3://BUCKET"));
        assert!(hints("s3://key:secret@bucket/x").contains("environment"));
    }

    #[test]
    fn secrets_are_not_shown() {
        let place = Place::parse(
            "s3://bucket/x",
            [("AWS_SECRET_ACCESS_KEY".to_owned(), "hush".to_owned())],
        );
        assert!(!format!("{place:?}").contains("hush"));
    }
}
