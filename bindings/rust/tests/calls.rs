//! Calls of the bundle that the runtime's own tests use: ASTRA_TEST_BUNDLE is its path.

use astra_rt::*;

struct Machine {
    device: Device,
    bundle: Bundle,
    session: Session,
    stream: Stream,
}

fn machine(threads: u32) -> Machine {
    let path = std::env::var("ASTRA_TEST_BUNDLE").expect("ASTRA_TEST_BUNDLE is the path of standard.astra");
    let runtime = Runtime::new().unwrap();
    let device = Device::cpu(&runtime, threads).unwrap();
    let bundle = unsafe { Bundle::open(&runtime, path) }.unwrap();
    let session = Session::new(&bundle.load(&device).unwrap(), &[("cap", 8)]).unwrap();
    let stream = Stream::new(&device).unwrap();
    Machine { device, bundle, session, stream }
}

fn name_of<T>(result: Result<T>) -> &'static str {
    result.err().map_or("ASTRA_OK", |e| e.name())
}

#[test]
fn a_bundle_says_what_is_in_it() {
    let m = machine(1);
    assert!(m.bundle.entries().contains(&"add".to_string()));
    let apply = m.bundle.entry("apply").unwrap();
    assert_eq!(apply.inputs(), [TensorInfo { name: "x".into(), dtype: "f32".into(), bounds: vec![(0, 5000), (3, 3)] }]);
    assert_eq!(apply.outputs()[0].name, "y");
    let error = m.bundle.entry("nothing").err().unwrap();
    assert_eq!((error.status(), error.name()), (3, "ASTRA_UNKNOWN_NAME"));
    assert!(error.text().contains("nothing"), "{}", error);
    assert!(m.bundle.load(&m.device).unwrap().target().starts_with("cpu:"));
    assert_eq!(version().0, 1);
    assert_eq!(name_of(m.bundle.entry("a\0b")), "ASTRA_INVALID_ARGUMENT");
}

#[test]
fn a_bundle_in_memory_lives_as_long_as_its_sessions() {
    let path = std::env::var("ASTRA_TEST_BUNDLE").unwrap();
    let (session, stream, add) = {
        let bytes = std::fs::read(path).unwrap();
        let runtime = Runtime::new().unwrap();
        let device = Device::cpu(&runtime, 1).unwrap();
        let bundle = unsafe { Bundle::from_bytes(&runtime, &bytes) }.unwrap();
        let session = Session::new(&bundle.load(&device).unwrap(), &[("cap", 8)]).unwrap();
        (session, Stream::new(&device).unwrap(), bundle.entry("add").unwrap())
    };
    let (x, mut z) = ([1.0f32, 2.0], [0.0f32; 2]);
    let input = View::new(&x, &[2]).unwrap().into();
    session.run(&stream, &add, &[input, input], vec![ViewMut::new(&mut z, &[2]).unwrap().into()]).unwrap();
    assert_eq!(z, [2.0, 4.0]);
}

#[test]
fn strided_tensors_go_in_and_out() {
    let m = machine(1);
    let add = m.bundle.entry("add").unwrap();
    let x: Vec<f32> = (0..25).map(|i| i as f32).collect();
    let all = View::new(&x, &[5, 5]).unwrap();
    let (column, row) = (all.index(1, 2).unwrap(), all.index(0, 1).unwrap().slice(0, 4, 5, -1).unwrap());
    let mut z = vec![-1.0f32; 15];
    let target = ViewMut::new(&mut z, &[5, 3]).unwrap().index(1, 1).unwrap();
    m.session.run(&m.stream, &add, &[column.into(), row.into()], vec![target.into()]).unwrap();
    for (i, &value) in z.iter().enumerate() {
        let k = i / 3;
        assert_eq!(value, if i % 3 == 1 { x[5 * k + 2] + x[9 - k] } else { -1.0 });
    }
}

#[test]
fn states_and_dims() {
    let m = machine(1);
    let accumulate = m.bundle.entry("accumulate").unwrap();
    let (two, mut y) = ([2.0f32], [0.0f32]);
    let input = View::new(&two, &[]).unwrap().into();
    m.session.run(&m.stream, &accumulate, &[input], vec![ViewMut::new(&mut y, &[]).unwrap().into()]).unwrap();
    assert_eq!(y, [12.0]);
    m.session.set_state("sum", View::new(&two, &[]).unwrap()).unwrap();
    m.session.get_state("sum", ViewMut::new(&mut y, &[]).unwrap()).unwrap();
    assert_eq!(y, [2.0]);
    m.session.reset().unwrap();
    m.session.set_dim("count", 3).unwrap();
    assert_eq!(name_of(m.session.set_dim("nothing", 3)), "ASTRA_UNKNOWN_NAME");
    let ones = [1.0f32; 24];
    m.session.set_param("w", View::new(&ones, &[8, 3]).unwrap()).unwrap();
    let (rows, mut out) = ([1.0f32, 2.0, 3.0], [0.0f32; 8]);
    let input = View::new(&rows, &[1, 3]).unwrap().into();
    let apply = m.bundle.entry("apply").unwrap();
    m.session.run(&m.stream, &apply, &[input], vec![ViewMut::new(&mut out, &[1, 8]).unwrap().into()]).unwrap();
    assert_eq!(out, [6.0; 8]);
}

#[test]
fn shapes_that_the_data_decides() {
    let m = machine(1);
    let compact = m.bundle.entry("compact").unwrap();
    let x = [1.0f32, -1.0, 2.0, -2.0];
    let inputs = [View::new(&x, &[4]).unwrap().into()];
    assert_eq!(m.session.output_bound(&compact, &inputs, 0).unwrap(), [4]);
    let (mut kept, mut total) = ([0.0f32; 4], [0.0f32]);
    let outputs = vec![ViewMut::new(&mut kept, &[4]).unwrap().into(), ViewMut::new(&mut total, &[]).unwrap().into()];
    let promise = m.session.run(&m.stream, &compact, &inputs, outputs).unwrap();
    let count = promise.output_shape(0).unwrap()[0] as usize;
    assert_eq!(kept[..count].iter().sum::<f32>(), total[0]);
    assert!(promise.is_ready().unwrap());
}

#[test]
fn streams_write_parts_of_one_array() {
    let m = machine(3);
    let apply = m.bundle.entry("apply").unwrap();
    let loaded = m.bundle.load(&m.device).unwrap();
    let workers: Vec<(Session, Stream)> =
        (0..8).map(|_| (Session::new(&loaded, &[("cap", 8)]).unwrap(), Stream::new(&m.device).unwrap())).collect();
    let x: Vec<f32> = (0..48).map(|i| i as f32).collect();
    let mut array = vec![0.0f32; 16 * 64];
    let mut expected = vec![0.0f32; 16 * 8];
    let input = View::new(&x, &[16, 3]).unwrap().into();
    let out = ViewMut::new(&mut expected, &[16, 8]).unwrap().into();
    m.session.run(&m.stream, &apply, &[input], vec![out]).unwrap();
    for round in 0..20 {
        let view = ViewMut::new(&mut array, &[16, 64]).unwrap();
        let parts = if round % 2 == 0 { view.parts(1, 8) } else { view.interleave(1, 8) }.unwrap();
        scope(|s| {
            for ((session, stream), part) in workers.iter().zip(parts) {
                s.submit(session, stream, &apply, &[input], vec![part.into()], &[]).unwrap();
            }
        });
        for (i, &value) in array.iter().enumerate() {
            let column = if round % 2 == 0 { i % 8 } else { i % 64 / 8 };
            assert_eq!(value, expected[i / 64 * 8 + column]);
        }
        array.iter_mut().for_each(|v| *v = 0.0);
    }
}

#[test]
fn calls_wait_for_others_and_outlive_their_handles() {
    let m = machine(3);
    let add = m.bundle.entry("add").unwrap();
    let loaded = m.bundle.load(&m.device).unwrap();
    let (mut a, mut b) = (vec![1.0f32; 1000], vec![0.0f32; 1000]);
    scope(|s| {
        // Session and stream go away while the call is in flight.
        let (session, stream) = (Session::new(&loaded, &[("cap", 8)]).unwrap(), Stream::new(&m.device).unwrap());
        let x: Input = View::new(&a, &[1000]).unwrap().into();
        let out = ViewMut::new(&mut b, &[1000]).unwrap().into();
        let first = s.submit(&session, &stream, &add, &[x, x], vec![out], &[]).unwrap();
        std::mem::forget(first);
    });
    assert_eq!(b[999], 2.0);
    let second = Stream::new(&m.device).unwrap();
    let other = Session::new(&loaded, &[("cap", 8)]).unwrap();
    let (mut u, mut v) = (vec![0.0f32; 1000], vec![0.0f32; 1000]);
    scope(|s| {
        let x: Input = View::new(&b, &[1000]).unwrap().into();
        let first =
            s.submit(&m.session, &m.stream, &add, &[x, x], vec![ViewMut::new(&mut u, &[1000]).unwrap().into()], &[]);
        let first = first.unwrap();
        let after = [first.clone()];
        let out = ViewMut::new(&mut v, &[1000]).unwrap().into();
        s.submit(&other, &second, &add, &[x, x], vec![out], &after).unwrap().wait().unwrap();
        assert!(first.is_ready().unwrap());
    });
    assert_eq!((u[0], v[999]), (4.0, 4.0));
    a[0] = 0.0;
}

#[test]
fn refusals_say_why() {
    let m = machine(1);
    let add = m.bundle.entry("add").unwrap();
    let (x, y, mut z) = ([0.0f32; 4], [0.0f64; 4], [0.0f32; 4]);
    let (x, y): (Input, Input) = (View::new(&x, &[4]).unwrap().into(), View::new(&y, &[4]).unwrap().into());
    let mut run = |inputs: &[Input], shape: &[i64]| {
        name_of(m.session.run(&m.stream, &add, inputs, vec![ViewMut::new(&mut z, shape).unwrap().into()]))
    };
    assert_eq!(run(&[x, y], &[4]), "ASTRA_WRONG_DTYPE");
    assert_eq!(run(&[x], &[4]), "ASTRA_INVALID_ARGUMENT");
    assert_eq!(run(&[x, x], &[2, 2]), "ASTRA_WRONG_RANK");
    assert_eq!(run(&[x, x], &[4]), "ASTRA_OK");
    let path = std::env::temp_dir().join("astra-no-such-file");
    assert_eq!(name_of(unsafe { Bundle::open(&Runtime::new().unwrap(), path) }), "ASTRA_IO");
    assert_eq!(name_of(unsafe { Bundle::from_bytes(&Runtime::new().unwrap(), b"no bundle") }), "ASTRA_NOT_A_BUNDLE");
}
