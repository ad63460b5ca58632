//! Runs bundles that Astra compiled ahead of time: the same bits on every machine, without a compiler in the process.
//!
//! ```no_run
//! use astra_rt::{Bundle, Device, Runtime, Session, Stream, View, ViewMut};
//!
//! # fn main() -> astra_rt::Result<()> {
//! let runtime = Runtime::new()?;
//! let device = Device::cpu(&runtime, 4)?;
//! let bundle = unsafe { Bundle::open(&runtime, "affine.astra")? }; // its code is run: open what you would run
//! let session = Session::new(&bundle.load(&device)?, &[])?;
//! let stream = Stream::new(&device)?;
//! let (x, mut y) = (vec![1.0f32; 16], vec![0.0f32; 32]);
//! session.run(&stream, &bundle.entry("main")?, &[View::new(&x, &[2, 8])?.into()],
//!             vec![ViewMut::new(&mut y, &[2, 16])?.into()])?;
//! # Ok(())
//! # }
//! ```
//!
//! A handle keeps what it was made of, so that nothing is freed too early. A call in flight borrows its tensors for a
//! [`scope`], which ends when its calls have: memory that a call reads or writes can neither go away nor be touched.
//!
//! ```compile_fail
//! # use astra_rt::{View, ViewMut};
//! let view = {
//!     let values = vec![1.0f32; 4];
//!     View::new(&values, &[2, 2]).unwrap()
//! };
//! view.to_vec(); // values are gone: does not compile
//! ```
//!
//! ```compile_fail
//! # use astra_rt::ViewMut;
//! let mut values = vec![1.0f32; 4];
//! let mut view = ViewMut::new(&mut values, &[2, 2]).unwrap();
//! values[0] = 2.0; // the view has them: does not compile
//! view.set(&[0, 0], 3.0).unwrap();
//! ```

mod call;
mod element;
mod error;
mod function;
mod handles;
#[cfg(feature = "ranks")]
mod ranks;
mod sys;
mod view;

pub use call::{scope, Promise, Scope};
pub use element::{Bool, Complex, Element, BF16, F16};
pub use error::{Error, Result};
pub use function::{Argument, ArgumentMut, Declared, Failure};
pub use handles::{version, Bundle, Device, Entry, Loaded, Runtime, Session, Stream, TensorInfo};
#[cfg(feature = "ranks")]
pub use ranks::{Mesh, Place, Ranks};
pub use view::{Input, Output, View, ViewMut};
