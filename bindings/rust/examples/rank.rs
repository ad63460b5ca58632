//! A bundle that calls a function of this program: for each element how many are below it.
//!
//!     astra-compile bindings/rust/tests/ranked.uop -o ranked.astra
//!     ASTRA_LIB_DIR=build/lib cargo run --example rank -- ranked.astra

use astra_rt::{Argument, ArgumentMut, Bundle, Declared, Device, Failure, Runtime, Session, Stream, View, ViewMut};

fn rank(inputs: &[Argument], outputs: &mut [ArgumentMut]) -> Result<(), Failure> {
    let x = inputs[0].elements::<f32>()?;
    if let Some(i) = x.iter().position(|v| v.is_nan()) {
        return Err(format!("element {} is no number", i).into());
    }
    for (below, v) in outputs[0].elements::<i32>()?.iter_mut().zip(x) {
        *below = x.iter().filter(|other| *other < v).count() as i32;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: rank FILE.astra")?;
    let runtime = Runtime::new()?;
    runtime.register("rank", Declared { deterministic: true, effects: false }, rank)?;
    runtime.register("note", Declared { effects: true, ..Declared::default() }, |inputs, outputs| {
        eprintln!("{} elements", inputs[0].len());
        outputs[0].elements::<i64>()?[0] = inputs[0].len() as i64;
        Ok(())
    })?;
    let device = Device::cpu(&runtime, 1)?;
    // Its code is run: this is a file that we have made.
    let bundle = unsafe { Bundle::open(&runtime, path)? };
    let session = Session::new(&bundle.load(&device)?, &[])?;
    let stream = Stream::new(&device)?;
    let (x, mut y) = ([30.0f32, 10.0, 20.0], [0.0f32; 3]);
    session.run(
        &stream,
        &bundle.entry("main")?,
        &[View::new(&x, &[3])?.into()],
        vec![ViewMut::new(&mut y, &[3])?.into()],
    )?;
    println!("{:?}", y);
    let nan = [1.0, f32::NAN];
    let mut z = [0.0f32; 2];
    let failed = session.run(
        &stream,
        &bundle.entry("main")?,
        &[View::new(&nan, &[2])?.into()],
        vec![ViewMut::new(&mut z, &[2])?.into()],
    );
    println!("{}", failed.err().ok_or("a NaN has no rank")?);
    Ok(())
}
