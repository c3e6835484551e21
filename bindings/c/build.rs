//! How the shared library is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // What has been loaded into a process stays there: threads of the pool may be in it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
