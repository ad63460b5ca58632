//! The types of elements.

/// A complex number, as it lies in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    pub re: T,
    pub im: T,
}

/// An IEEE half, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// A bfloat16, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct BF16(pub u16);

/// A bool as a byte. Rust's `bool` must be 0 or 1, which nobody can promise of memory that others write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bool(pub u8);

mod sealed {
    pub trait Sealed {}
}

/// A type that an element in memory has.
///
/// # Safety
/// It is that of `DTYPE` in `astra.h`, and any bytes are legal. Sealed: this crate has all of them.
pub unsafe trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The number of `astra_dtype`.
    const DTYPE: i32;
    /// The conjugate of a complex number; others as they are.
    fn conjugate(self) -> Self {
        self
    }
}

macro_rules! elements {
    ($($type:ty: $dtype:expr,)*) => { $(
        impl sealed::Sealed for $type {}
        unsafe impl Element for $type {
            const DTYPE: i32 = $dtype;
        }
    )* };
}
elements! {
    Bool: 1, i8: 2, i16: 3, i32: 4, i64: 5, u8: 6, u16: 7, u32: 8, u64: 9, F16: 10, BF16: 11, f32: 12, f64: 13,
}
impl sealed::Sealed for Complex<f32> {}
unsafe impl Element for Complex<f32> {
    const DTYPE: i32 = 14;
    fn conjugate(self) -> Self {
        Complex { re: self.re, im: -self.im }
    }
}
impl sealed::Sealed for Complex<f64> {}
unsafe impl Element for Complex<f64> {
    const DTYPE: i32 = 15;
    fn conjugate(self) -> Self {
        Complex { re: self.re, im: -self.im }
    }
}
