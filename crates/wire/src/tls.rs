//! TLS as `--ssl-mode` wants it.

use crate::stream::{Patient, Stream, bare_host};
use evenkeel_server::options::{ConnectOptions, SslMode};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, StreamOwned,
};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Puts TLS around a stream: after this, the handshake is done.
pub(crate) fn wrap(stream: Patient, options: &ConnectOptions) -> io::Result<Stream> {
    let config = config(options)?;
    let name = ServerName::try_from(bare_host(options).to_owned()).map_err(io::Error::other)?;
    let session = ClientConnection::new(Arc::new(config), name).map_err(invalid)?;
    let mut stream = StreamOwned::new(session, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    stream.flush()?;
    Ok(Stream::Tls(Box::new(stream)))
}

pub(crate) fn config(options: &ConnectOptions) -> io::Result<ClientConfig> {
    let roots = Arc::new(roots(options.ssl_ca.as_deref())?);
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .build()
        .map_err(io::Error::other)?;
    let lenient = Lenient {
        mode: options.ssl_mode,
        strict: verifier,
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(invalid)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(lenient));
    let Some(certificate) = &options.ssl_cert else {
        return Ok(builder.with_no_client_auth());
    };
    // As the MySQL clients do: a file may hold both.
    let key = options.ssl_key.as_deref().unwrap_or(certificate);
    let key = PrivateKeyDer::from_pem_slice(&std::fs::read(key)?).map_err(io::Error::other)?;
    builder
        .with_client_auth_cert(certificates(certificate)?, key)
        .map_err(invalid)
}

/// The authority that was named, and the world's.
fn roots(authority: Option<&Path>) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(path) = authority {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(invalid)?;
        }
    }
    Ok(roots)
}

/// Reads certificates in PEM, or one in DER.
fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let bytes = std::fs::read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(io::Error::other)?;
    Ok(if found.is_empty() {
        vec![CertificateDer::from(bytes)]
    } else {
        found
    })
}

pub(crate) fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Checks a certificate as far as the mode wants it checked.
#[derive(Debug)]
struct Lenient {
    mode: SslMode,
    strict: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.mode < SslMode::VerifyCa {
            return Ok(ServerCertVerified::assertion());
        }
        match self.strict.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        ) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.mode == SslMode::VerifyCa => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.mode < SslMode::VerifyCa {
            // Servers make themselves certificates of version 1, which webpki does not even read.
            return Ok(HandshakeSignatureValid::assertion());
        }
        self.strict.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.mode < SslMode::VerifyCa {
            return Ok(HandshakeSignatureValid::assertion());
        }
        self.strict.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.strict.supported_verify_schemes()
    }
}
