//! What a relay does with TLS.

use crate::tls;
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Error, Result};
use evenkeel_server::options::{ConnectOptions, SslMode};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a relay treats TLS.
#[derive(Debug, Clone)]
pub enum Terms {
    /// It goes by unread.
    Pass,
    /// The relay is the end of it for clients, if it has a certificate; otherwise clients are not offered any.
    Own {
        /// What clients are offered.
        clients: Option<ForClients>,
        /// What the server is asked for.
        server: ForServer,
    },
}

/// TLS as clients are offered it.
#[derive(Debug, Clone)]
pub struct ForClients(Arc<ServerConfig>);

impl ForClients {
    /// Reads a certificate with those that vouch for it, and its key, all in PEM.
    ///
    /// # Errors
    ///
    /// `Usage` when a file cannot be read, has neither, or the two do not fit.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self> {
        let read = |what: &str, path: &Path| {
            std::fs::read(path).map_err(|error| unreadable(what, path, error))
        };
        let chain = read("certificate", certificate)?;
        let key_bytes = read("key", key)?;
        let unusable = |error: io::Error| {
            let (certificate, key) = (certificate.display(), key.display());
            Error::usage(format!(
                "{certificate} and {key} cannot be used as a certificate and its key"
            ))
            .because(error)
            .hint("give a certificate and the key that belongs to it, both in PEM")
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain).collect();
        let chain = chain.map_err(|e| unusable(io::Error::other(e)))?;
        let key = PrivateKeyDer::from_pem_slice(&key_bytes);
        let key = key.map_err(|e| unusable(io::Error::other(e)))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|e| unusable(io::Error::other(e)))?;
        Ok(Self(Arc::new(config)))
    }

    pub(super) fn begin(&self) -> io::Result<rustls::Connection> {
        let connection = ServerConnection::new(Arc::clone(&self.0)).map_err(tls::invalid)?;
        Ok(connection.into())
    }
}

/// TLS as the server is asked for it.
#[derive(Debug, Clone)]
pub struct ForServer {
    pub(super) mode: SslMode,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// The server has no TLS that we can speak.
    has_failed: Arc<AtomicBool>,
}

impl ForServer {
    /// Takes mode and files of certificates of these options, and the name of their host; by `Preferred`, the server is
    /// asked for TLS for clients that use it themselves.
    ///
    /// # Errors
    ///
    /// `Usage` when a file of certificates cannot be used.
    pub fn new(options: &ConnectOptions) -> Result<Self> {
        let failed = |error: io::Error| match &options.ssl_ca {
            Some(path) if error.raw_os_error().is_some() => {
                unreadable("certificate authority", path, error)
            }
            Some(path) => {
                let path = path.display();
                Error::usage(format!("{path} cannot be used as a certificate authority"))
                    .because(error)
            }
            None => Error::usage("TLS to the server cannot be set up").because(error),
        };
        let host = match options.means_socket() {
            true => "localhost".to_owned(),
            false => crate::stream::bare_host(options).to_owned(),
        };
        let name = ServerName::try_from(host).map_err(io::Error::other);
        let mode = match options.means_socket() {
            true if options.ssl_mode <= SslMode::Preferred => SslMode::Disabled,
            _ => options.ssl_mode,
        };
        Ok(Self {
            mode,
            config: Arc::new(tls::config(options).map_err(failed)?),
            name: name.map_err(failed)?,
            has_failed: Arc::default(),
        })
    }

    pub(super) fn begin(&self) -> io::Result<rustls::Connection> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        Ok(connection.map_err(tls::invalid)?.into())
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    pub(super) fn fails(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }
}
