//! The way to a store. While it cannot be reached, requests are repeated; this is reported, and a store that
//! never answered is given up earlier than one that went away.

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Where machines of Amazon, Google and Microsoft are asked for credentials when none were given.
pub(crate) const OF_THE_MACHINE: [&str; 4] = [
    "/latest/api/token",
    "/latest/meta-data",
    OF_GOOGLES,
    OF_MICROSOFTS,
];
/// Where Google's are.
pub(crate) const OF_GOOGLES: &str = "/computeMetadata/";
/// Where Microsoft's are.
pub(crate) const OF_MICROSOFTS: &str = "/metadata/identity/";

/// How often a machine is asked that never answered: most have nobody there.
const TRIES_OF_THE_MACHINE: u32 = 2;

/// What is called with a sentence.
type Say = dyn Fn(&str) + Send + Sync;

/// Whom to tell that a store cannot be reached for now. Tells nobody unless it is set.
#[derive(Clone, Default)]
pub struct Tell(Option<Arc<Say>>);

impl Tell {
    /// Tells by calling `say`.
    pub fn by(say: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(say)))
    }

    fn say(&self, text: &str) {
        if let Some(say) = &self.0 {
            say(text);
        }
    }
}

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

/// A request got no answer.
#[derive(Debug)]
pub(crate) struct Unreached {
    /// Where to.
    pub(crate) host: String,
    /// Whether the store has answered any request of this run.
    pub(crate) ever_reached: bool,
    cause: HttpError,
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl std::error::Error for Unreached {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

impl Unreached {
    /// Why, in the words of the operating system where it has some.
    pub(crate) fn reason(&self) -> String {
        let mut last: &dyn std::error::Error = &self.cause;
        while let Some(cause) = last.source() {
            last = cause;
        }
        let text = last.to_string();
        match text.find(" (os error") {
            Some(end) => text[..end].to_owned(),
            None => text,
        }
    }
}

/// Makes the clients of one store.
#[derive(Debug)]
pub(crate) struct Way(pub(crate) Tell);

impl HttpConnector for Way {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Reported {
            client: ReqwestConnector::default().connect(options)?,
            tell: self.0.clone(),
            ever_reached: AtomicBool::new(false),
            failures: AtomicU32::new(0),
        }))
    }
}

#[derive(Debug)]
struct Reported {
    client: HttpClient,
    tell: Tell,
    ever_reached: AtomicBool,
    /// Requests without an answer since the last that had one.
    failures: AtomicU32,
}

#[async_trait]
impl HttpService for Reported {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let host = request.uri().authority().map(ToString::to_string);
        let path = request.uri().path();
        let of_the_machine = OF_THE_MACHINE.iter().any(|one| path.starts_with(one));
        match self.client.execute(request).await {
            Ok(answer) => {
                self.ever_reached.store(true, Ordering::Relaxed);
                self.failures.store(0, Ordering::Relaxed);
                Ok(answer)
            }
            Err(error) if is_about_the_way(error.kind()) => {
                let kind = error.kind();
                let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
                let unreached = Unreached {
                    host: host.unwrap_or_default(),
                    ever_reached: self.ever_reached.load(Ordering::Relaxed),
                    cause: error,
                };
                if of_the_machine {
                    let is_nobody = !unreached.ever_reached && failures >= TRIES_OF_THE_MACHINE;
                    let kind = if is_nobody {
                        HttpErrorKind::Unknown
                    } else {
                        kind
                    };
                    return Err(HttpError::new(kind, unreached));
                }
                // Once, until it answers again.
                if kind == HttpErrorKind::Connect && failures == 1 {
                    self.tell.say(&format!(
                        "cannot reach the store at {} ({}): retrying",
                        unreached.host,
                        unreached.reason()
                    ));
                }
                Err(HttpError::new(kind, unreached))
            }
            Err(error) => Err(error),
        }
    }
}

fn is_about_the_way(kind: HttpErrorKind) -> bool {
    use HttpErrorKind::{Connect, Interrupted, Request, Timeout};
    matches!(kind, Connect | Timeout | Request | Interrupted)
}
