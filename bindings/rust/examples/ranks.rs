//! Trains the layer of `examples/mesh` on every rank that a launcher has started; rank 0 prints the bits of the weights, which
//! do not depend on how many there are.
//!
//!     astra-compile examples/mesh/layer.uop -o layer.astra
//!     ASTRA_LIB_DIR=build/lib cargo build --features ranks --example ranks
//!     astra-launch -n 4 target/debug/examples/ranks layer.astra

use astra_rt::{Bundle, Device, Mesh, Place, Ranks, Runtime, Session, Stream, View, ViewMut};

const ROWS: i64 = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: ranks FILE.astra")?;
    let ranks = Ranks::init(None, 5000)?;
    let runtime = Runtime::new()?;
    let device = Device::cpu(&runtime, 1)?;
    // Its code is run: this is a file that we have made.
    let bundle = unsafe { Bundle::open(&runtime, path)? };
    let mesh = Mesh::new(&ranks, &runtime, &bundle)?; // before the bundle is loaded: it calls the mesh's collectives
    let session = Session::new(&bundle.load(&device)?, &[])?; // of a bundle that cuts states: ("shards", mesh.local_shards())
    let (stream, step) = (Stream::new(&device)?, bundle.entry("step")?);

    // Every rank has all rows and takes its own.
    let x: Vec<f32> = (0..ROWS * 4).map(|i| (i * 37 % 19) as f32 / 16.0).collect();
    let y: Vec<f32> = (0..ROWS).map(|i| (i * 11 % 7) as f32 / 4.0).collect();
    let x = mesh.take(Place::Input("step"), "x", &[ROWS, 4], &x)?;
    let y = mesh.take(Place::Input("step"), "y", &[ROWS, 1], &y)?;
    let (local, rows) = (mesh.local_shards(), ROWS / mesh.shards());
    let mut loss = [0.0f32];
    for _ in 0..20 {
        let inputs = [View::new(&x, &[local, rows, 4])?.into(), View::new(&y, &[local, rows, 1])?.into()];
        session.run(&stream, &step, &inputs, vec![ViewMut::new(&mut loss, &[])?.into()])?;
    }
    let mut w = vec![0.0f32; 4];
    session.get_state("w", ViewMut::new(&mut w, &[4, 1])?)?;
    if ranks.rank() == 0 {
        let bits: Vec<String> = w.iter().map(|v| format!("{:08x}", v.to_bits())).collect();
        println!("loss {}, w {}", loss[0], bits.join(" "));
    }
    ranks.barrier()?;
    Ok(())
}
