//! Functions of the program: ASTRA_TEST_FUNCTIONS is the path of ranked.uop's bundle.

use astra_rt::*;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{current, park, Thread};

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

/// Wakes the thread that `block_on` sleeps on, and counts.
struct Alarm(Thread, AtomicI64);
impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

/// The smallest executor; gives how often it was woken too.
fn block_on<F: Future + Unpin>(mut future: F) -> (F::Output, i64) {
    let alarm = Arc::new(Alarm(current(), AtomicI64::new(0)));
    let waker = Waker::from(alarm.clone());
    loop {
        if let Poll::Ready(value) = Pin::new(&mut future).poll(&mut Context::from_waker(&waker)) {
            return (value, alarm.1.load(Ordering::SeqCst));
        }
        park();
    }
}

#[test]
fn promises_are_awaited_called_back_and_cancelled() {
    let runtime = Runtime::new().unwrap();
    runtime.register("note", NOTE, nothing).unwrap();
    let device = Device::cpu(&runtime, 3).unwrap();
    let bundle = open(&runtime);
    let (opens, gate) = mpsc::channel::<()>();
    let (enters, entered) = mpsc::channel();
    let (gate, enters) = (Mutex::new(gate), Mutex::new(enters));
    runtime
        .register("rank", RANK, move |inputs, outputs| {
            enters.lock().unwrap().send(()).unwrap();
            gate.lock().unwrap().recv().unwrap();
            rank(inputs, outputs)
        })
        .unwrap();
    let held = bundle.load(&device).unwrap();
    let (stream, main) = (Stream::new(&device).unwrap(), bundle.entry("main").unwrap());
    let sessions: Vec<_> = (0..3).map(|_| Session::new(&held, &[]).unwrap()).collect();
    for is_number in [true, false] {
        let x = [3.0, if is_number { 1.0 } else { f32::NAN }];
        let mut y = vec![vec![-1.0f32; 2]; 3];
        let (says, said) = mpsc::channel();
        scope(|s| {
            let mut promises: Vec<Promise> = Vec::new();
            for (session, y) in sessions.iter().zip(&mut y) {
                let output = ViewMut::new(y, &[2]).unwrap().into();
                let after: Vec<_> = promises.first().cloned().into_iter().collect();
                let input = View::new(&x, &[2]).unwrap().into();
                promises.push(s.submit(session, &stream, &main, &[input], vec![output], &after).unwrap());
            }
            for (i, promise) in promises.iter().enumerate() {
                let says = says.clone();
                promise.on_ready(move |end| says.send((i, status_of(end).0)).unwrap()).unwrap();
            }
            entered.recv().unwrap(); // the first has begun
            assert_eq!(status_of(promises[0].cancel()).0, "ASTRA_BUSY");
            promises[2].cancel().unwrap();
            // A task that goes before the end is not waited for.
            let alarm = Arc::new(Alarm(current(), AtomicI64::new(0)));
            let waker = Waker::from(alarm);
            let mut left = promises[0].clone();
            assert!(Pin::new(&mut left).poll(&mut Context::from_waker(&waker)).is_pending());
            drop(left);
            assert!(said.try_recv().is_err());
            opens.send(()).unwrap();
            let (end, _) = block_on(promises[0].clone());
            if is_number {
                end.unwrap();
                entered.recv().unwrap();
                let opens = opens.clone();
                let task = std::thread::spawn(move || opens.send(()).unwrap());
                let (end, _) = block_on(promises[1].clone());
                end.unwrap();
                task.join().unwrap();
            } else {
                let (status, text) = status_of(end);
                assert_eq!(
                    (status, &*text),
                    ("ASTRA_FUNCTION_FAILED", "function 'rank' failed: element 1 is no number")
                );
                assert_eq!(status_of(block_on(promises[1].clone()).0).0, "ASTRA_DEPENDENCY");
            }
            let last = status_of(block_on(promises[2].clone()).0).0;
            let mut ends: Vec<_> = (0..3).map(|_| said.recv().unwrap()).collect();
            ends.sort();
            let (first, second) =
                if is_number { ("ASTRA_OK", "ASTRA_OK") } else { ("ASTRA_FUNCTION_FAILED", "ASTRA_DEPENDENCY") };
            assert_eq!(ends, [(0, first), (1, second), (2, last)]);
            assert_eq!(last, "ASTRA_CANCELLED");
            let (end, woken) = block_on(promises[0].clone()); // which has ended
            assert_eq!((end.is_ok(), woken), (is_number, 0));
            let (says, said) = mpsc::channel();
            promises[2].on_ready(move |end| says.send(status_of(end).0).unwrap()).unwrap();
            assert_eq!(said.try_recv().unwrap(), last, "called at once");
        });
        assert_eq!(y[2], [-1.0; 2], "what was cancelled has written nothing");
        if is_number {
            assert_eq!((y[0].clone(), y[1].clone()), (vec![4.0, 1.0], vec![4.0, 1.0]));
        }
    }
}
