//! Calls and their promises.
//!
//! A call in flight uses memory that it does not own. As with `std::thread::scope`, a scope waits for its calls before it
//! returns, also by a panic, so that what they borrow outlives them whatever becomes of their promises.

use crate::error::{check, Result};
use crate::handles::{handle, Entry, Runtime, Session, Stream};
use crate::sys;
use crate::view::{described, Input, Output};
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex};

handle!(
    /// The end of a call. Dropping it leaves the call as it is.
    Promise, PromiseBox, sys::Promise, sys::astra_promise_free { runtime: Runtime }
);

impl Promise {
    /// Blocks until the call has ended, and gives its error.
    pub fn wait(&self) -> Result<()> {
        check(|diag| unsafe { sys::astra_promise_wait(self.0.raw, diag) })
    }
    /// Whether the call has ended; its error, if it has failed.
    pub fn is_ready(&self) -> Result<bool> {
        match check(|diag| unsafe { sys::astra_promise_poll(self.0.raw, diag) }) {
            Err(error) if error.status() == sys::NOT_READY => Ok(false),
            other => other.map(|()| true),
        }
    }
    /// After a successful end: the actual extents of an output.
    pub fn output_shape(&self, output: u32) -> Result<Vec<i64>> {
        let (mut shape, mut rank) = ([0; sys::MAX_RANK], 0);
        check(|diag| unsafe {
            sys::astra_promise_output_shape(self.0.raw, output, shape.as_mut_ptr(), &mut rank, diag)
        })?;
        Ok(shape[..rank as usize].to_vec())
    }
}

/// What is in flight: a session is not freed before its call has ended, nor is what it is made of.
type Pending = Arc<Mutex<Vec<(Promise, Session, Stream)>>>;

/// Where calls are submitted; see [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    pending: Pending,
    // Invariant in both, as those of std::thread::Scope.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Waits when the scope ends.
struct End(Pending);

impl Drop for End {
    fn drop(&mut self) {
        for (promise, _, _) in self.0.lock().unwrap_or_else(|e| e.into_inner()).drain(..) {
            let _ = promise.wait(); // its error is for who asks the promise
        }
    }
}

/// Calls that are submitted inside have ended when this returns.
///
/// ```no_run
/// # use astra_rt::*;
/// # fn run(sessions: &[Session], streams: &[Stream], entry: &Entry, x: &[f32]) -> Result<()> {
/// let mut array = vec![0.0f32; 16 * 64];
/// // Eight streams write eight columns of one array at once.
/// let columns = ViewMut::new(&mut array, &[16, 64])?.parts(1, 8)?;
/// scope(|s| -> Result<()> {
///     for ((session, stream), column) in sessions.iter().zip(streams).zip(columns) {
///         s.submit(session, stream, entry, &[View::new(x, &[16, 3])?.into()], vec![column.into()], &[])?;
///     }
///     Ok(())
/// })?;
/// println!("{}", array[0]);
/// # Ok(())
/// # }
/// ```
///
/// Memory of a call in flight cannot be touched:
///
/// ```compile_fail
/// # use astra_rt::*;
/// # fn run(session: &Session, stream: &Stream, entry: &Entry, x: &[f32]) -> Result<()> {
/// let mut y = vec![0.0f32; 8];
/// scope(|s| -> Result<()> {
///     s.submit(session, stream, entry, &[View::new(x, &[8])?.into()], vec![ViewMut::new(&mut y, &[8])?.into()], &[])?;
///     println!("{}", y[0]); // the call may be writing it
///     Ok(())
/// })
/// # }
/// ```
///
/// Nor can it end before the call:
///
/// ```compile_fail
/// # use astra_rt::*;
/// # fn run(session: &Session, stream: &Stream, entry: &Entry, x: &[f32]) -> Result<()> {
/// scope(|s| -> Result<()> {
///     let mut y = vec![0.0f32; 8];
///     s.submit(session, stream, entry, &[View::new(x, &[8])?.into()], vec![ViewMut::new(&mut y, &[8])?.into()], &[])?;
///     Ok(())
/// })
/// # }
/// ```
pub fn scope<'env, F, R>(f: F) -> R
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
{
    let pending = Pending::default();
    let _end = End(pending.clone());
    let scope = Scope { pending, scope: PhantomData, env: PhantomData };
    f(&scope)
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Queues a call, which begins when those of `after` have ended. What is not row-major is copied. A refusal has
    /// changed nothing.
    pub fn submit(
        &'scope self,
        session: &Session,
        stream: &Stream,
        entry: &Entry,
        inputs: &[Input<'scope>],
        outputs: Vec<Output<'scope>>,
        after: &[Promise],
    ) -> Result<Promise> {
        let inputs = inputs.iter().map(|i| described(&i.raw)).collect::<Result<Vec<_>>>()?;
        let outputs = outputs.iter().map(|o| described(&o.raw)).collect::<Result<Vec<_>>>()?;
        let after: Vec<_> = after.iter().map(|p| p.0.raw).collect();
        let mut call: sys::Call = unsafe { sys::init() };
        call.entry = entry.raw;
        call.inputs = inputs.as_ptr();
        call.num_inputs = inputs.len() as u32;
        call.outputs = outputs.as_ptr();
        call.num_outputs = outputs.len() as u32;
        call.after = after.as_ptr();
        call.num_after = after.len() as u32;
        call.flags = sys::CALL_ALLOW_COPY;
        let mut raw = null_mut();
        check(|diag| unsafe { sys::astra_session_submit(session.0.raw, stream.0.raw, &call, &mut raw, diag) })?;
        let runtime = session.0.loaded.0.bundle.0.runtime.clone();
        let promise = Promise(Arc::new(PromiseBox { raw, runtime }));
        let entry = (promise.clone(), session.clone(), stream.clone());
        self.pending.lock().unwrap_or_else(|e| e.into_inner()).push(entry);
        Ok(promise)
    }
}

impl Session {
    /// Submits a call and waits for its end.
    pub fn run(
        &self,
        stream: &Stream,
        entry: &Entry,
        inputs: &[Input<'_>],
        outputs: Vec<Output<'_>>,
    ) -> Result<Promise> {
        scope(|s| {
            let promise = s.submit(self, stream, entry, inputs, outputs, &[])?;
            promise.wait()?;
            Ok(promise)
        })
    }
    /// The largest shape that an output can have for these inputs: what to allocate.
    pub fn output_bound(&self, entry: &Entry, inputs: &[Input<'_>], output: u32) -> Result<Vec<i64>> {
        let inputs = inputs.iter().map(|i| described(&i.raw)).collect::<Result<Vec<_>>>()?;
        let (mut shape, mut rank) = ([0; sys::MAX_RANK], 0);
        check(|diag| unsafe {
            sys::astra_entry_output_bound(
                entry.raw,
                self.0.raw,
                inputs.as_ptr(),
                inputs.len() as u32,
                output,
                shape.as_mut_ptr(),
                &mut rank,
                null_mut(),
                diag,
            )
        })?;
        Ok(shape[..rank as usize].to_vec())
    }
}
