//! Calls and their promises.
//!
//! A call in flight uses memory that it does not own. As with `std::thread::scope`, a scope waits for its calls before it
//! returns, also by a panic, so that what they borrow outlives them whatever becomes of their promises.

use crate::error::{check, Result};
use crate::handles::{handle, Entry, Runtime, Session, Stream};
use crate::sys;
use crate::view::{described, Input, Output};
use std::ffi::c_void;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::{replace, take};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::process::abort;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

handle!(
    /// The end of a call. Dropping it leaves the call as it is.
    Promise, PromiseBox, sys::Promise, sys::astra_promise_free { runtime: Runtime, tasks: Arc<Mutex<Tasks>> }
);

/// The tasks that await a promise.
#[derive(Default)]
pub(crate) struct Tasks {
    wakers: Vec<Waker>,
    is_asked: bool, // the runtime wakes them
    has_ended: bool,
}

/// Calls what `on_ready` was given; nobody else has it any more.
unsafe extern "C" fn ended<F: FnOnce()>(this: *mut c_void, _: i32) {
    let f = Box::from_raw(this as *mut F);
    if catch_unwind(AssertUnwindSafe(f)).is_err() {
        abort(); // there is nobody whom it could reach, and it must not go through C
    }
}

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
    /// Takes back what has not begun: it does not run, and its promise ends with `ASTRA_CANCELLED` in its turn. Of what has
    /// begun or ended `ASTRA_BUSY`, and nothing changes.
    pub fn cancel(&self) -> Result<()> {
        check(|diag| unsafe { sys::astra_promise_cancel(self.0.raw, diag) })
    }
    /// Calls `f` once with how the call has ended: at once if it has, else on the thread that ends it. There it should be
    /// short, must not wait for calls, and must not be the last to hold a stream, session or device. It cannot be taken
    /// back, and its panic aborts the process.
    pub fn on_ready<F: FnOnce(Result<()>) + Send + 'static>(&self, f: F) -> Result<()> {
        let promise = self.clone();
        self.call_at_end(move || f(promise.is_ready().map(|_| ())))
    }
    fn call_at_end<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<()> {
        fn pointer<F: FnOnce()>(_: &F) -> unsafe extern "C" fn(*mut c_void, i32) {
            ended::<F>
        }
        let function = pointer(&f);
        let this = Box::into_raw(Box::new(f)) as *mut c_void;
        let asked = check(|diag| unsafe { sys::astra_promise_on_ready(self.0.raw, Some(function), this, diag) });
        if asked.is_err() {
            drop(unsafe { Box::from_raw(this as *mut F) }); // which is not called
        }
        asked
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

/// A promise can be awaited, by any executor and by several tasks. Dropping it before leaves the call as it is. (It is
/// the same as [`Promise::wait`], but that no thread waits.)
impl Future for Promise {
    type Output = Result<()>;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match self.is_ready() {
            Ok(false) => {}
            Ok(true) => return Poll::Ready(Ok(())),
            Err(error) => return Poll::Ready(Err(error)),
        }
        let mut tasks = self.0.tasks.lock().unwrap_or_else(|e| e.into_inner());
        if tasks.has_ended {
            drop(tasks);
            return Poll::Ready(self.is_ready().map(|_| ()));
        }
        if !tasks.wakers.iter().any(|w| w.will_wake(context.waker())) {
            tasks.wakers.push(context.waker().clone());
        }
        if replace(&mut tasks.is_asked, true) {
            return Poll::Pending;
        }
        drop(tasks); // the call may end now, and this be called at once
        let tasks = self.0.tasks.clone();
        let asked = self.call_at_end(move || {
            let mut tasks = tasks.lock().unwrap_or_else(|e| e.into_inner());
            tasks.has_ended = true;
            let wakers = take(&mut tasks.wakers);
            drop(tasks);
            wakers.into_iter().for_each(Waker::wake);
        });
        match asked {
            Ok(()) => Poll::Pending,
            Err(error) => {
                self.0.tasks.lock().unwrap_or_else(|e| e.into_inner()).is_asked = false;
                Poll::Ready(Err(error))
            }
        }
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
    /// Queues a call, which begins when those of `after` have ended. What is not row-major is copied, unless the bundle
    /// was compiled with `--strides=any`. A refusal has changed nothing.
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
        let promise = Promise(Arc::new(PromiseBox { raw, runtime, tasks: Default::default() }));
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
