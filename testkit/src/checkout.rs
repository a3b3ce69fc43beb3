//! Where the checkout is that cargo runs the tests in.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns the top of the checkout. Two clones may share what was built: the one that it was built from may be
/// gone, so it is not what the compiler saw that counts. Panics where no checkout is above.
pub fn checkout() -> &'static Path {
    static CHECKOUT: OnceLock<PathBuf> = OnceLock::new();
    CHECKOUT.get_or_init(|| {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let package = package.unwrap_or_else(|| std::env::current_dir().expect("a directory"));
        let above = package.ancestors();
        let mut tops = above.filter(|directory| directory.join("Cargo.lock").is_file());
        let none = "no Cargo.lock above: run it by cargo, or in the checkout";
        tops.next().expect(none).to_path_buf()
    })
}
