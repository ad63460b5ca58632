//! Where libastra_rt is: in the folder that ASTRA_LIB_DIR names, or where the linker looks by itself.

fn main() {
    println!("cargo:rerun-if-env-changed=ASTRA_LIB_DIR");
    if let Ok(folder) = std::env::var("ASTRA_LIB_DIR") {
        println!("cargo:rustc-link-search=native={}", folder);
        // Tests and examples of this package find it there when they run, too.
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder);
    }
}
