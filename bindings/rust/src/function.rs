//! Functions of the program that bundles call.

use crate::element::Element;
use crate::error::{check, Error, Result};
use crate::handles::{text, Runtime};
use crate::sys;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use std::slice;
use std::sync::Arc;

/// What a function that fails says: any error, or a sentence (`Err("element 1 is no number".into())`).
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How a function is declared. A bundle says for each of its functions whether it needs it so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Equal inputs give equal bits, whenever, wherever and by whomever it is called.
    pub deterministic: bool,
    /// It does more than write its outputs: it prints, counts, keeps something.
    pub effects: bool,
}

/// A tensor that a function reads: row-major, on the host.
pub struct Argument<'a> {
    raw: sys::Tensor,
    memory: PhantomData<&'a [u8]>,
}
/// A tensor that a function writes, every element of it.
pub struct ArgumentMut<'a> {
    raw: sys::Tensor,
    memory: PhantomData<&'a mut [u8]>,
}

macro_rules! common {
    () => {
        pub fn shape(&self) -> &[i64] {
            if self.raw.ndim == 0 {
                return &[];
            }
            unsafe { slice::from_raw_parts(self.raw.shape, self.raw.ndim as usize) }
        }
        /// As `"f32"`.
        pub fn dtype(&self) -> &'static str {
            // A string of the library, which is never unloaded; null for a type that it does not know.
            let name = unsafe { sys::astra_dtype_name(self.raw.dtype) };
            if name.is_null() {
                return "";
            }
            unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("")
        }
        /// How many elements there are.
        pub fn len(&self) -> usize {
            self.shape().iter().product::<i64>() as usize
        }
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }
        /// Where the elements begin; of none, anywhere.
        fn data<T: Element>(&self) -> Result<*mut T> {
            if self.raw.dtype != T::DTYPE {
                let wanted = unsafe { CStr::from_ptr(sys::astra_dtype_name(T::DTYPE)) }.to_string_lossy();
                return Err(Error::new(4, format!("a tensor of {} is taken as {}", self.dtype(), wanted)));
            }
            Ok(if self.is_empty() { std::ptr::NonNull::dangling().as_ptr() } else { self.raw.data as *mut T })
        }
    };
}

impl Argument<'_> {
    common!();
    /// The elements in row-major order; `ASTRA_WRONG_DTYPE` if they are of another type.
    pub fn elements<T: Element>(&self) -> Result<&[T]> {
        Ok(unsafe { slice::from_raw_parts(self.data()?, self.len()) })
    }
}

impl ArgumentMut<'_> {
    common!();
    /// The elements in row-major order, whatever they are before they are written; `ASTRA_WRONG_DTYPE` if they are of
    /// another type.
    pub fn elements<T: Element>(&mut self) -> Result<&mut [T]> {
        Ok(unsafe { slice::from_raw_parts_mut(self.data()?, self.len()) })
    }
}

/// Element i of an array of structs, whose size the first one says.
unsafe fn tensor(array: *const sys::Tensor, index: u32) -> sys::Tensor {
    let stride = *(array as *const usize);
    std::ptr::read((array as *const u8).add(stride * index as usize) as *const sys::Tensor)
}

/// A sentence into the runtime's place for one, cut off at the end of a character.
unsafe fn say(diag: *mut sys::Diag, sentence: &str) {
    let to = &mut (*diag).text;
    let mut end = sentence.len().min(to.len() - 1);
    while !sentence.is_char_boundary(end) {
        end -= 1;
    }
    for (to, &from) in to.iter_mut().zip(&sentence.as_bytes()[..end]) {
        *to = from as c_char;
    }
    to[end] = 0;
}

unsafe extern "C" fn call<F>(
    this: *mut c_void,
    inputs: *const sys::Tensor,
    num_inputs: u32,
    outputs: *const sys::Tensor,
    num_outputs: u32,
    diag: *mut sys::Diag,
) -> i32
where
    F: Fn(&[Argument<'_>], &mut [ArgumentMut<'_>]) -> std::result::Result<(), Failure> + Send + Sync,
{
    let function = &*(this as *const F);
    // What a panic leaves is seen by nobody but the function itself.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let of = |i| Argument { raw: unsafe { tensor(inputs, i) }, memory: PhantomData };
        let inputs: Vec<_> = (0..num_inputs).map(of).collect();
        let of = |i| ArgumentMut { raw: unsafe { tensor(outputs, i) }, memory: PhantomData };
        let mut outputs: Vec<_> = (0..num_outputs).map(of).collect();
        function(&inputs, &mut outputs)
    }));
    match outcome {
        Ok(Ok(())) => return sys::OK,
        Ok(Err(failure)) => say(diag, &failure.to_string()),
        Err(panic) => match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(text), _) => say(diag, text),
            (_, Some(text)) => say(diag, text),
            _ => say(diag, "a panic"),
        },
    }
    sys::FUNCTION_FAILED
}

impl Runtime {
    /// From now on bundles that call the function `name` are loaded with this one, in place of one that was registered
    /// before; those that are loaded keep theirs. It is called on the thread that runs the call, by several at once
    /// where several calls are in flight. It must not wait for calls. If it fails or panics, the call that it is part
    /// of ends with `ASTRA_FUNCTION_FAILED` and its sentence.
    pub fn register<F>(&self, name: &str, declared: Declared, function: F) -> Result<()>
    where
        F: Fn(&[Argument<'_>], &mut [ArgumentMut<'_>]) -> std::result::Result<(), Failure> + Send + Sync + 'static,
    {
        let (name, function) = (text(name)?, Arc::new(function));
        let this = &*function as *const F as *mut c_void;
        let flags = declared.deterministic as u32 | (declared.effects as u32) << 1;
        check(|diag| unsafe {
            sys::astra_runtime_register(self.0.raw, name.as_ptr(), Some(call::<F>), this, flags, diag)
        })?;
        self.0.keeps.add(function); // bundles that are loaded may call it as long as the runtime is there
        Ok(())
    }
    /// Bundles that call the function are refused again (`ASTRA_UNKNOWN_NAME`).
    pub fn unregister(&self, name: &str) -> Result<()> {
        let name = text(name)?;
        check(|diag| unsafe { sys::astra_runtime_register(self.0.raw, name.as_ptr(), None, null_mut(), 0, diag) })
    }
}
