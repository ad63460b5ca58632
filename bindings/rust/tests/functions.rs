//! Functions of the program: ASTRA_TEST_FUNCTIONS is the path of ranked.uop's bundle.

use astra_rt::*;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

const RANK: Declared = Declared { deterministic: true, effects: false };
const NOTE: Declared = Declared { deterministic: false, effects: true };

fn rank(inputs: &[Argument], outputs: &mut [ArgumentMut]) -> std::result::Result<(), Failure> {
    let x = inputs[0].elements::<f32>()?;
    if let Some(i) = x.iter().position(|v| v.is_nan()) {
        return Err(format!("element {} is no number", i).into());
    }
    for (below, v) in outputs[0].elements::<i32>()?.iter_mut().zip(x) {
        *below = x.iter().filter(|other| *other < v).count() as i32;
    }
    Ok(())
}

fn nothing(_: &[Argument], _: &mut [ArgumentMut]) -> std::result::Result<(), Failure> {
    Ok(())
}

fn open(runtime: &Runtime) -> Bundle {
    let path = std::env::var("ASTRA_TEST_FUNCTIONS").expect("ASTRA_TEST_FUNCTIONS is the path of ranked.astra");
    unsafe { Bundle::open(runtime, path) }.unwrap()
}

fn load(runtime: &Runtime, threads: u32) -> Result<(Bundle, Loaded, Stream)> {
    let device = Device::cpu(runtime, threads)?;
    let bundle = open(runtime);
    Ok((bundle.clone(), bundle.load(&device)?, Stream::new(&device)?))
}

fn run(session: &Session, stream: &Stream, entry: &Entry, x: &[f32]) -> Result<Vec<f32>> {
    let mut y = vec![-1.0f32; x.len()];
    let shape = [x.len() as i64];
    session.run(stream, entry, &[View::new(x, &shape)?.into()], vec![ViewMut::new(&mut y, &shape)?.into()])?;
    Ok(y)
}

fn status_of<T>(result: Result<T>) -> (&'static str, String) {
    result.err().map_or(("ASTRA_OK", String::new()), |e| (e.name(), e.text().to_string()))
}

#[test]
fn a_bundle_calls_a_function_with_its_values() {
    let runtime = Runtime::new().unwrap();
    runtime.register("rank", RANK, rank).unwrap();
    let (count, seen) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let (counts, sees) = (count.clone(), seen.clone());
    runtime
        .register("note", NOTE, move |inputs, outputs| {
            assert_eq!((inputs.len(), outputs.len()), (1, 1));
            assert_eq!((inputs[0].dtype(), outputs[0].dtype(), outputs[0].shape()), ("f32", "i64", &[][..]));
            sees.store(inputs[0].shape()[0], Ordering::SeqCst);
            outputs[0].elements::<i64>()?[0] = counts.fetch_add(1, Ordering::SeqCst) + 1;
            Ok(())
        })
        .unwrap();
    for threads in [1, 3] {
        let (bundle, loaded, stream) = load(&runtime, threads).unwrap();
        let session = Session::new(&loaded, &[]).unwrap();
        let main = bundle.entry("main").unwrap();
        assert_eq!(run(&session, &stream, &main, &[30.0, 10.0, 20.0]).unwrap(), [32.0, 10.0, 21.0]);
        assert!(run(&session, &stream, &main, &[]).unwrap().is_empty());
        for calls in 1..4 {
            let (x, mut y, mut number) = ([1.0f32; 7], [0.0f32; 7], [0i64]);
            let outputs =
                vec![ViewMut::new(&mut y, &[7]).unwrap().into(), ViewMut::new(&mut number, &[]).unwrap().into()];
            let noted = bundle.entry("noted").unwrap();
            session.run(&stream, &noted, &[View::new(&x, &[7]).unwrap().into()], outputs).unwrap();
            assert_eq!((y, number[0]), ([-1.0; 7], calls + if threads == 1 { 0 } else { 3 }));
            assert_eq!(seen.load(Ordering::SeqCst), 7);
        }
    }
    assert_eq!(count.load(Ordering::SeqCst), 6);
}

#[test]
fn failures_and_panics_reach_who_calls() {
    let runtime = Runtime::new().unwrap();
    runtime.register("note", NOTE, nothing).unwrap();
    let mut cases: Vec<(&str, Box<dyn Fn(&Runtime)>)> = Vec::new();
    cases.push(("element 1 is no number", Box::new(|r| r.register("rank", RANK, rank).unwrap())));
    cases.push(("of no use", Box::new(|r| r.register("rank", RANK, |_, _| panic!("of no use")).unwrap())));
    cases.push((
        "a tensor of f32 is taken as i64",
        Box::new(|r| r.register("rank", RANK, |x, _| Ok(x[0].elements::<i64>().map(|_| ())?)).unwrap()),
    ));
    let long = "ä".repeat(400);
    let shown = "ä".repeat(200);
    let said = long.clone();
    cases.push((
        &shown,
        Box::new(move |r| {
            let said = said.clone();
            r.register("rank", RANK, move |_, _| Err(said.clone().into())).unwrap()
        }),
    ));
    for (sentence, register) in &cases {
        register(&runtime);
        let (bundle, loaded, stream) = load(&runtime, 1).unwrap();
        let session = Session::new(&loaded, &[]).unwrap();
        let main = bundle.entry("main").unwrap();
        let (status, text) = status_of(run(&session, &stream, &main, &[1.0, f32::NAN]));
        assert_eq!(status, "ASTRA_FUNCTION_FAILED");
        assert!(text.contains(sentence), "{}", text);
    }
}

#[test]
fn a_bundle_needs_its_functions_as_it_declares_them() {
    let runtime = Runtime::new().unwrap();
    assert_eq!(status_of(load(&runtime, 1)).0, "ASTRA_UNKNOWN_NAME");
    runtime.register("note", NOTE, nothing).unwrap();
    runtime.register("rank", Declared::default(), rank).unwrap();
    let (status, text) = status_of(load(&runtime, 1));
    assert_ne!(status, "ASTRA_OK");
    assert!(text.contains("rank"), "{}", text);
    runtime.register("rank", RANK, rank).unwrap();
    let (bundle, loaded, stream) = load(&runtime, 1).unwrap();
    // What is loaded keeps its function, whatever becomes of the name, also when all other handles are gone.
    runtime.register("rank", RANK, nothing).unwrap();
    runtime.unregister("rank").unwrap();
    let (status, text) = status_of(load(&runtime, 1));
    assert_eq!(status, "ASTRA_UNKNOWN_NAME");
    assert!(text.contains("rank"), "{}", text);
    let session = Session::new(&loaded, &[]).unwrap();
    let main = bundle.entry("main").unwrap();
    drop((runtime, bundle, loaded));
    assert_eq!(run(&session, &stream, &main, &[2.0, 1.0]).unwrap(), [3.0, 1.0]);
    assert_eq!(status_of(Runtime::new().unwrap().register("a\0b", RANK, rank)).0, "ASTRA_INVALID_ARGUMENT");
}
