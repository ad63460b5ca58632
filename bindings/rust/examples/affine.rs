//! Runs the layer of `examples/affine`, and writes its result into a column of a larger array.
//!
//!     astra-compile examples/affine/affine.uop -o affine.astra
//!     ASTRA_LIB_DIR=build/lib cargo run --example affine -- affine.astra

use astra_rt::{Bundle, Device, Runtime, Session, Stream, View, ViewMut};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: affine FILE.astra")?;
    let runtime = Runtime::new()?;
    let device = Device::cpu(&runtime, 2)?;
    // Its code is run: this is a file that we have made.
    let bundle = unsafe { Bundle::open(&runtime, path)? };
    let loaded = bundle.load(&device)?;
    let session = Session::new(&loaded, &[])?;
    let stream = Stream::new(&device)?;

    let x: Vec<f32> = (0..16).map(|i| i as f32).collect();
    let mut table = vec![0.0f32; 2 * 3 * 16];
    let column = ViewMut::new(&mut table, &[2, 3, 16])?.index(1, 2)?;
    session.run(&stream, &bundle.entry("main")?, &[View::new(&x, &[2, 8])?.into()], vec![column.into()])?;

    let table = View::new(&table, &[2, 3, 16])?;
    println!("{}: {} {}", loaded.target(), table.get(&[0, 2, 0])?, table.get(&[1, 2, 0])?);
    Ok(())
}
