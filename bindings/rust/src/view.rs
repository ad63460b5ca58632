//! Views of slices: `View` reads, `ViewMut` writes.
//!
//! Both borrow the slice they were made of, as slices of slices do. A `ViewMut` holds each of its elements once: it is never
//! broadcast, and what it is split into has no element in common.

use crate::element::Element;
use crate::error::{check, Error, Result};
use crate::sys;
use std::marker::PhantomData;
use std::os::raw::c_void;

/// Elements of a slice, by shape and strides. Copying a view copies no element.
#[derive(Clone, Copy)]
pub struct View<'a, T: Element> {
    raw: sys::View,
    memory: PhantomData<&'a [T]>,
}

/// The same, to write to.
pub struct ViewMut<'a, T: Element> {
    raw: sys::View,
    memory: PhantomData<&'a mut [T]>,
}

// As &[T] and &mut [T] are, of elements that are both.
unsafe impl<T: Element> Send for View<'_, T> {}
unsafe impl<T: Element> Sync for View<'_, T> {}
unsafe impl<T: Element> Send for ViewMut<'_, T> {}
unsafe impl<T: Element> Sync for ViewMut<'_, T> {}

fn rank_of(shape: &[i64]) -> Result<i32> {
    if shape.len() > sys::MAX_RANK {
        return Err(Error::new(5, format!("{} dims; 0 to {} are allowed", shape.len(), sys::MAX_RANK)));
    }
    Ok(shape.len() as i32)
}

/// A row-major view of all of some memory.
fn make<T: Element>(data: *const T, len: usize, shape: &[i64]) -> Result<sys::View> {
    let count = shape.iter().try_fold(1usize, |n, &e| n.checked_mul(usize::try_from(e).ok()?));
    if count != Some(len) {
        return Err(Error::new(6, format!("a slice of {} elements has not the shape {:?}", len, shape)));
    }
    let mut tensor: sys::Tensor = unsafe { sys::init() };
    tensor.data = data as *mut c_void;
    tensor.data_bytes = (len * std::mem::size_of::<T>()) as u64;
    tensor.dtype = T::DTYPE;
    tensor.ndim = rank_of(shape)?;
    tensor.shape = shape.as_ptr();
    made(|out, diag| unsafe { sys::astra_view_init(out, &tensor, diag) })
}

fn made(call: impl FnOnce(*mut sys::View, *mut sys::Diag) -> i32) -> Result<sys::View> {
    let mut out: sys::View = unsafe { sys::init() };
    check(|diag| call(&mut out, diag))?;
    Ok(out)
}

fn permuted(view: &sys::View, axes: &[i32]) -> Result<sys::View> {
    same_rank(view, axes.len())?;
    made(|out, diag| unsafe { sys::astra_view_permute(out, view, axes.as_ptr(), diag) })
}

fn same_rank(view: &sys::View, count: usize) -> Result<()> {
    if count == view.ndim as usize {
        return Ok(());
    }
    Err(Error::new(5, format!("{} numbers for a view of {} dims; give one for each", count, view.ndim)))
}

fn address(view: &sys::View, index: &[i64]) -> Result<*mut c_void> {
    same_rank(view, index.len())?;
    let mut out = std::ptr::null_mut();
    check(|diag| unsafe { sys::astra_view_address(view, index.as_ptr(), &mut out, diag) })?;
    Ok(out)
}

fn is_conjugated(view: &sys::View) -> bool {
    view.flags & sys::VIEW_CONJUGATE != 0
}

/// Methods that a `View` and a `ViewMut` share; those that make a view take `self`, so that of a `ViewMut` one is left.
macro_rules! common {
    ($view:ident) => {
        /// Axis i of the result is axis `axes[i]`.
        pub fn permute(self, axes: &[i32]) -> Result<Self> {
            Ok(self.with(permuted(&self.raw, axes)?))
        }
        /// One element of an axis, which goes away.
        pub fn index(self, axis: i32, index: i64) -> Result<Self> {
            Ok(self.with(made(|out, diag| unsafe { sys::astra_view_index(out, &self.raw, axis, index, diag) })?))
        }
        /// The elements `[i, i + offset]` of two axes, or `[i - offset, i]`; theirs is the last axis.
        pub fn diagonal(self, axis_a: i32, axis_b: i32, offset: i64) -> Result<Self> {
            Ok(self.with(made(|out, diag| unsafe {
                sys::astra_view_diagonal(out, &self.raw, axis_a, axis_b, offset, diag)
            })?))
        }
        /// The same elements under another shape, or `ASTRA_WRONG_STRIDES` where that takes a copy.
        pub fn reshape(self, shape: &[i64]) -> Result<Self> {
            let ndim = rank_of(shape)?;
            Ok(self.with(made(|out, diag| unsafe {
                sys::astra_view_reshape(out, &self.raw, ndim, shape.as_ptr(), diag)
            })?))
        }
        /// The conjugates of complex elements, without a copy.
        pub fn conjugate(self) -> Result<Self> {
            Ok(self.with(made(|out, diag| unsafe { sys::astra_view_conjugate(out, &self.raw, diag) })?))
        }
        /// The tile at `index` of a grid of tiles; those at the end are cut off.
        pub fn tile(self, extents: &[i64], index: &[i64]) -> Result<Self> {
            same_rank(&self.raw, extents.len())?;
            same_rank(&self.raw, index.len())?;
            Ok(self.with(made(|out, diag| unsafe {
                sys::astra_view_tile(out, &self.raw, extents.as_ptr(), index.as_ptr(), diag)
            })?))
        }
        pub fn shape(&self) -> &[i64] {
            &self.raw.shape[..self.raw.ndim as usize]
        }
        /// In elements.
        pub fn strides(&self) -> &[i64] {
            &self.raw.strides[..self.raw.ndim as usize]
        }
        /// How many elements there are.
        pub fn len(&self) -> usize {
            self.shape().iter().product::<i64>() as usize
        }
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }
        /// Whether calls use it where it is; others they copy, if they may.
        pub fn is_row_major(&self) -> bool {
            unsafe { sys::astra_view_is_row_major(&self.raw) == 1 }
        }
        /// One element.
        pub fn get(&self, index: &[i64]) -> Result<T> {
            let value = unsafe { *(address(&self.raw, index)? as *const T) };
            Ok(if is_conjugated(&self.raw) { value.conjugate() } else { value })
        }
        fn with(&self, raw: sys::View) -> Self {
            $view { raw, memory: PhantomData }
        }
    };
}

impl<'a, T: Element> View<'a, T> {
    /// A slice as a row-major tensor.
    pub fn new(slice: &'a [T], shape: &[i64]) -> Result<Self> {
        Ok(View { raw: make(slice.as_ptr(), slice.len(), shape)?, memory: PhantomData })
    }
    common!(View);

    /// The elements start, start + step, ... of an axis, `count` of them.
    pub fn slice(self, axis: i32, start: i64, count: i64, step: i64) -> Result<Self> {
        Ok(self
            .with(made(|out, diag| unsafe { sys::astra_view_slice(out, &self.raw, axis, start, count, step, diag) })?))
    }
    /// Broadcast, as NumPy does it.
    pub fn expand(self, shape: &[i64]) -> Result<Self> {
        let ndim = rank_of(shape)?;
        Ok(self.with(made(|out, diag| unsafe { sys::astra_view_expand(out, &self.raw, ndim, shape.as_ptr(), diag) })?))
    }
    /// Block `index` of `parts` blocks along an axis.
    pub fn part(self, axis: i32, index: i64, parts: i64) -> Result<Self> {
        Ok(self.with(made(|out, diag| unsafe { sys::astra_view_part(out, &self.raw, axis, index, parts, diag) })?))
    }
    /// The elements index, index + parts, ... of an axis.
    pub fn interleaved(self, axis: i32, index: i64, parts: i64) -> Result<Self> {
        Ok(self
            .with(made(|out, diag| unsafe { sys::astra_view_interleaved(out, &self.raw, axis, index, parts, diag) })?))
    }
    /// The elements, in row-major order.
    pub fn to_vec(&self) -> Vec<T> {
        let count = self.len();
        let mut values: Vec<T> = Vec::with_capacity(count);
        let mut to = self.raw;
        // A row-major view of the new memory. It has this many elements, and shares none with self.
        to.buffer = std::ptr::null_mut();
        to.data = values.as_mut_ptr() as *mut c_void;
        to.data_bytes = (count * std::mem::size_of::<T>()) as u64;
        to.byte_offset = 0;
        to.flags = 0;
        let mut stride = 1;
        for i in (0..to.ndim as usize).rev() {
            to.strides[i] = stride;
            stride *= to.shape[i].max(1);
        }
        check(|diag| unsafe { sys::astra_view_copy(&to, &self.raw, diag) }).expect("two views of one shape");
        // All of them were written.
        unsafe { values.set_len(count) };
        values
    }
}

impl<'a, T: Element> ViewMut<'a, T> {
    /// A slice as a row-major tensor.
    pub fn new(slice: &'a mut [T], shape: &[i64]) -> Result<Self> {
        Ok(ViewMut { raw: make(slice.as_mut_ptr(), slice.len(), shape)?, memory: PhantomData })
    }
    common!(ViewMut);

    /// The elements start, start + step, ... of an axis, `count` of them; no element twice, so that step is not 0.
    pub fn slice(self, axis: i32, start: i64, count: i64, step: i64) -> Result<Self> {
        if step == 0 && count > 1 {
            return Err(Error::new(10, "a slice with step 0 holds an element twice and cannot be written"));
        }
        Ok(self
            .with(made(|out, diag| unsafe { sys::astra_view_slice(out, &self.raw, axis, start, count, step, diag) })?))
    }
    /// The view for a while: what is made of this one ends before it is used again.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut { raw: self.raw, memory: PhantomData }
    }
    pub fn as_view(&self) -> View<'_, T> {
        View { raw: self.raw, memory: PhantomData }
    }
    /// The same view for as long as the slice was borrowed, to read only.
    pub fn into_view(self) -> View<'a, T> {
        View { raw: self.raw, memory: PhantomData }
    }
    pub fn set(&mut self, index: &[i64], value: T) -> Result<()> {
        let place = address(&self.raw, index)? as *mut T;
        let value = if is_conjugated(&self.raw) { value.conjugate() } else { value };
        unsafe { *place = value };
        Ok(())
    }
    /// The elements of a view of the same shape.
    pub fn copy_from(&mut self, from: &View<'_, T>) -> Result<()> {
        check(|diag| unsafe { sys::astra_view_copy(&self.raw, &from.raw, diag) })
    }
    /// Blocks along an axis: rows of axis 0, columns of axis 1. Together they are this view, and share nothing.
    pub fn parts(self, axis: i32, parts: i64) -> Result<Vec<ViewMut<'a, T>>> {
        (0..parts)
            .map(|i| {
                Ok(self.with(made(|out, diag| unsafe { sys::astra_view_part(out, &self.raw, axis, i, parts, diag) })?))
            })
            .collect()
    }
    /// The elements i, i + parts, ... of an axis, for each i.
    pub fn interleave(self, axis: i32, parts: i64) -> Result<Vec<ViewMut<'a, T>>> {
        (0..parts)
            .map(|i| {
                Ok(self.with(made(|out, diag| unsafe {
                    sys::astra_view_interleaved(out, &self.raw, axis, i, parts, diag)
                })?))
            })
            .collect()
    }
    /// All tiles of these extents, the last axis first to move; those at the end are cut off.
    pub fn tiles(self, extents: &[i64]) -> Result<Vec<ViewMut<'a, T>>> {
        same_rank(&self.raw, extents.len())?;
        if extents.iter().any(|&e| e < 1) {
            return Err(Error::new(7, format!("tiles of extents {:?}; one element is the least", extents)));
        }
        let grid: Vec<i64> = self.shape().iter().zip(extents).map(|(&n, &e)| (n - 1) / e + (n > 0) as i64).collect();
        let mut tiles = Vec::new();
        for number in 0..grid.iter().product::<i64>() {
            let mut rest = number;
            let mut place = vec![0; grid.len()];
            for i in (0..grid.len()).rev() {
                place[i] = rest % grid[i];
                rest /= grid[i];
            }
            tiles.push(self.with(made(|out, diag| unsafe {
                sys::astra_view_tile(out, &self.raw, extents.as_ptr(), place.as_ptr(), diag)
            })?));
        }
        Ok(tiles)
    }
}

/// A view of any type, as a call reads it.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub(crate) raw: sys::View,
    memory: PhantomData<&'a ()>,
}
/// A view of any type, as a call writes it.
pub struct Output<'a> {
    pub(crate) raw: sys::View,
    memory: PhantomData<&'a mut ()>,
}
unsafe impl Send for Input<'_> {}
unsafe impl Send for Output<'_> {}

impl<'a, T: Element> From<View<'a, T>> for Input<'a> {
    fn from(view: View<'a, T>) -> Self {
        Input { raw: view.raw, memory: PhantomData }
    }
}
impl<'a, T: Element> From<ViewMut<'a, T>> for Output<'a> {
    fn from(view: ViewMut<'a, T>) -> Self {
        Output { raw: view.raw, memory: PhantomData }
    }
}

/// What the C API takes: good as long as `view` is where it is.
pub(crate) fn described(view: &sys::View) -> Result<sys::Tensor> {
    let mut tensor: sys::Tensor = unsafe { sys::init() };
    check(|diag| unsafe { sys::astra_view_describe(view, &mut tensor, diag) })?;
    Ok(tensor)
}
