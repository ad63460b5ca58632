//! Views of slices.

use astra_rt::*;

#[test]
fn views_are_what_their_names_say() {
    let values: Vec<i32> = (0..24).collect();
    let all = View::new(&values, &[2, 3, 4]).unwrap();
    assert_eq!(
        (all.shape(), all.strides(), all.len(), all.is_row_major()),
        (&[2, 3, 4][..], &[12, 4, 1][..], 24, true)
    );
    let turned = all.permute(&[2, 0, 1]).unwrap();
    assert_eq!(turned.get(&[3, 1, 2]).unwrap(), 23);
    assert!(!turned.is_row_major());
    assert_eq!(all.index(0, 1).unwrap().slice(1, 3, 2, -2).unwrap().to_vec(), [15, 13, 19, 17, 23, 21]);
    assert_eq!(all.diagonal(1, 2, 1).unwrap().to_vec(), [1, 6, 11, 13, 18, 23]);
    assert_eq!(all.reshape(&[4, 6]).unwrap().index(1, 5).unwrap().to_vec(), [5, 11, 17, 23]);
    assert_eq!(
        all.index(0, 0).unwrap().index(0, 1).unwrap().expand(&[2, 4]).unwrap().to_vec(),
        [4, 5, 6, 7, 4, 5, 6, 7]
    );
    assert_eq!(all.part(2, 1, 3).unwrap().shape(), [2, 3, 1]);
    assert_eq!(all.interleaved(2, 1, 3).unwrap().shape(), [2, 3, 1]);
    assert_eq!(all.tile(&[1, 2, 3], &[1, 1, 1]).unwrap().to_vec(), [23]);
    let none: [i32; 0] = [];
    assert!(View::new(&none, &[3, 0]).unwrap().permute(&[1, 0]).unwrap().to_vec().is_empty());
}

#[test]
fn conjugates_are_lazy() {
    let mut values = [Complex { re: 1.0f32, im: 2.0 }, Complex { re: 3.0, im: -4.0 }];
    let lazy = View::new(&values, &[2]).unwrap().conjugate().unwrap();
    assert_eq!(lazy.to_vec(), [Complex { re: 1.0, im: -2.0 }, Complex { re: 3.0, im: 4.0 }]);
    let mut view = ViewMut::new(&mut values, &[2]).unwrap().conjugate().unwrap();
    view.set(&[0], Complex { re: 5.0, im: 6.0 }).unwrap();
    assert_eq!(view.get(&[0]).unwrap(), Complex { re: 5.0, im: 6.0 });
    assert_eq!(values[0], Complex { re: 5.0, im: -6.0 });
}

#[test]
fn parts_are_all_elements_once() {
    let mut values = vec![0u8; 7 * 9];
    fn number(parts: Vec<ViewMut<u8>>) {
        for (i, mut part) in parts.into_iter().enumerate() {
            let ones = vec![i as u8 + 1; part.len()];
            let shape = part.shape().to_vec();
            part.copy_from(&View::new(&ones, &shape).unwrap()).unwrap();
        }
    }
    number(ViewMut::new(&mut values, &[7, 9]).unwrap().parts(1, 4).unwrap());
    assert_eq!(values[54..], [1, 1, 1, 2, 2, 3, 3, 4, 4]);
    number(ViewMut::new(&mut values, &[7, 9]).unwrap().interleave(0, 3).unwrap());
    assert_eq!(values.iter().step_by(9).copied().collect::<Vec<_>>(), [1, 2, 3, 1, 2, 3, 1]);
    values.iter_mut().for_each(|v| *v = 0);
    number(ViewMut::new(&mut values, &[7, 9]).unwrap().tiles(&[3, 4]).unwrap());
    assert_eq!(values[..9], [1, 1, 1, 1, 2, 2, 2, 2, 3]);
    assert_eq!(values[54..], [7, 7, 7, 7, 8, 8, 8, 8, 9]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let values = [0.0f64; 12];
    let view = View::new(&values, &[3, 4]).unwrap();
    let name = |r: Result<View<f64>>| r.err().map_or("ASTRA_OK", |e| e.name());
    assert_eq!(name(View::new(&values, &[3, 5])), "ASTRA_WRONG_SHAPE");
    assert_eq!(name(View::new(&values, &[i64::MAX, i64::MAX])), "ASTRA_WRONG_SHAPE");
    assert_eq!(name(View::new(&values, &[-3, -4])), "ASTRA_WRONG_SHAPE");
    assert_eq!(name(View::new(&values[..1], &[1; 17])), "ASTRA_WRONG_RANK");
    assert_eq!(name(view.permute(&[0])), "ASTRA_WRONG_RANK");
    assert_eq!(name(view.permute(&[0, 0])), "ASTRA_INVALID_ARGUMENT");
    assert_eq!(name(view.slice(1, 0, 5, 1)), "ASTRA_OUT_OF_BOUNDS");
    assert_eq!(name(view.permute(&[1, 0]).unwrap().reshape(&[12])), "ASTRA_WRONG_STRIDES");
    assert_eq!(name(view.expand(&[2, 4])), "ASTRA_WRONG_SHAPE");
    assert!(view.get(&[3, 0]).is_err() && view.get(&[0, -1]).is_err() && view.get(&[0]).is_err());
    let mut own = [0.0f64; 12];
    assert!(ViewMut::new(&mut own, &[12]).unwrap().slice(0, 0, 2, 0).is_err());
    assert!(ViewMut::new(&mut own, &[12]).unwrap().tiles(&[0]).is_err());
    assert!(ViewMut::new(&mut own, &[12]).unwrap().parts(1, 2).is_err());
    assert!(ViewMut::new(&mut own, &[3, 4]).unwrap().copy_from(&view.permute(&[1, 0]).unwrap()).is_err());
}
