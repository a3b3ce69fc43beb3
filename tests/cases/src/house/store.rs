//! An object store in a house: SeaweedFS, with the ports that it has by itself.

use super::House;
use evenkeel_testkit::Seaweed;

impl House {
    /// Starts it, with these buckets. Its key and secret are [`Seaweed::KEY`] and [`Seaweed::SECRET`], its address is
    /// [`House::STORE`].
    pub fn start_store(&self, buckets: &[&str]) {
        let identities = format!(
            r#"{{"identities":[{{"name":"test","credentials":[{{"accessKey":"{}","secretKey":"{}"}}],
               "actions":["Admin","Read","Write","List","Tagging"]}}]}}"#,
            Seaweed::KEY,
            Seaweed::SECRET,
        );
        self.write("/srv/store/identities.json", &identities, "600");
        let program = Seaweed::program();
        self.run("mkdir /srv/store/data");
        self.start(
            "store",
            &format!(
                "{} -logtostderr server -dir=/srv/store/data -ip=127.0.0.1 -ip.bind=127.0.0.1 -filer -s3 \
                 -volume.max=20 -master.volumeSizeLimitMB=256 -master.telemetry=false \
                 -s3.port.iceberg=0 -s3.port.lance=0 -s3.config=/srv/store/identities.json",
                program.display()
            ),
        );
        self.until("exec 3<>/dev/tcp/127.0.0.1/8333");
        for bucket in buckets {
            self.until(&format!(
                "exec 3<>/dev/tcp/127.0.0.1/8888; \
                 printf 'POST /buckets/{bucket}/ HTTP/1.1\\r\\nHost: s3\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n' >&3; \
                 grep -q ' 201 ' <&3"
            ));
        }
    }

    /// Where the store is.
    pub const STORE: &str = "http://127.0.0.1:8333";
}
