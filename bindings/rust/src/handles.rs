//! Runtime, device, stream, bundle, loaded, session. Each keeps what it was made of alive, so that the library frees
//! them in the reverse order of making.

use crate::element::Element;
use crate::error::{check, Error, Result};
use crate::sys;
use crate::view::{described, View, ViewMut};
use std::any::Any;
use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

/// `(major, minor)` of the library that is running.
pub fn version() -> (u32, u32) {
    let version = unsafe { sys::astra_version() };
    (version >> 16, version & 0xffff)
}

/// A string without a zero inside.
pub(crate) fn text(value: &str) -> Result<CString> {
    CString::new(value).map_err(|_| Error::new(1, format!("{:?} has a zero inside", value)))
}

/// A string of the library, copied.
pub(crate) fn owned(value: *const c_char) -> String {
    if value.is_null() {
        return String::new();
    }
    unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned()
}

/// `Name(NameBox)`: a handle of the C API, freed when the last one lets it go. The fields after it are what it needs: Rust drops them
/// behind it.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $inner:ident, $raw:ty, $free:path { $($field:ident: $type:ty),* }) => {
        pub(crate) struct $inner {
            pub(crate) raw: *mut $raw,
            $(#[allow(dead_code)] pub(crate) $field: $type,)*
        }
        // The C API takes it from any thread.
        unsafe impl Send for $inner {}
        unsafe impl Sync for $inner {}
        impl Drop for $inner {
            fn drop(&mut self) {
                unsafe { $free(&mut self.raw) };
            }
        }
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(pub(crate) Arc<$inner>);
    };
}

pub(crate) use handle;

handle!(
    /// The library's hooks. Everything else is made of one.
    Runtime, RuntimeBox, sys::Runtime, sys::astra_runtime_free { keeps: Keeps }
);
handle!(
    /// One CPU with its threads, or one GPU.
    Device, DeviceBox, sys::Device, sys::astra_device_free { runtime: Runtime }
);
handle!(
    /// A queue of calls on a device. Dropping it waits for them.
    Stream, StreamBox, sys::Stream, sys::astra_stream_free { device: Device }
);
handle!(
    /// A file that `astra-compile` made.
    Bundle, BundleBox, sys::Bundle, sys::astra_bundle_free { runtime: Runtime, memory: Memory }
);
handle!(
    /// A bundle on a device: code and weights.
    Loaded, LoadedBox, sys::Loaded, sys::astra_loaded_free { bundle: Bundle, device: Device }
);
handle!(
    /// State, memory and values of dims. One call is in flight at a time; another is refused with `ASTRA_BUSY`.
    Session, SessionBox, sys::Session, sys::astra_session_free { loaded: Loaded }
);

/// What functions that were registered with a runtime use: it goes behind the runtime.
#[derive(Default)]
pub(crate) struct Keeps(#[allow(dead_code)] Mutex<Vec<Arc<dyn Any + Send + Sync>>>);

impl Keeps {
    pub(crate) fn add(&self, what: Arc<dyn Any + Send + Sync>) {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).push(what);
    }
}

impl Runtime {
    pub fn new() -> Result<Runtime> {
        let mut raw = null_mut();
        check(|diag| unsafe { sys::astra_runtime_init(&mut raw, null(), diag) })?;
        Ok(Runtime(Arc::new(RuntimeBox { raw, keeps: Keeps::default() })))
    }
}

impl Device {
    /// This machine's CPU. With one thread calls run inside of submit; with more they run on a pool of threads.
    pub fn cpu(runtime: &Runtime, threads: u32) -> Result<Device> {
        Device::new(runtime, "cpu", threads, None)
    }
    /// `"cpu"`, `"cuda:0"`, `"hip:1"`. `level`: of a CPU, that one and no other, as `"x86-64-v3"`.
    pub fn new(runtime: &Runtime, name: &str, threads: u32, level: Option<&str>) -> Result<Device> {
        let (name, level) = (text(name)?, level.map(text).transpose()?);
        let mut options: sys::DeviceOptions = unsafe { sys::init() };
        options.num_threads = threads;
        options.level = level.as_ref().map_or(null(), |l| l.as_ptr());
        let mut raw = null_mut();
        check(|diag| unsafe { sys::astra_device_init(&mut raw, runtime.0.raw, name.as_ptr(), &options, diag) })?;
        Ok(Device(Arc::new(DeviceBox { raw, runtime: runtime.clone() })))
    }
}

impl Stream {
    pub fn new(device: &Device) -> Result<Stream> {
        let mut raw = null_mut();
        check(|diag| unsafe { sys::astra_stream_init(&mut raw, device.0.raw, diag) })?;
        Ok(Stream(Arc::new(StreamBox { raw, device: device.clone() })))
    }
}

/// Bytes that begin at a multiple of 64, as bundles in memory must.
pub(crate) struct Memory {
    blocks: Vec<Block>,
}
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Block([u8; 64]);

impl Memory {
    fn of(bytes: &[u8]) -> Memory {
        let mut blocks = vec![Block([0; 64]); (bytes.len() + 63) / 64];
        for (block, part) in blocks.iter_mut().zip(bytes.chunks(64)) {
            block.0[..part.len()].copy_from_slice(part);
        }
        Memory { blocks }
    }
}

impl Bundle {
    /// Maps a file and checks it.
    ///
    /// # Safety
    /// The file has machine code, which calls run: open only what you would run. It must not be changed while the bundle
    /// lives; replace it by rename.
    pub unsafe fn open(runtime: &Runtime, path: impl AsRef<Path>) -> Result<Bundle> {
        let path = path.as_ref().to_str().ok_or_else(|| Error::new(32, "the path is no UTF-8"))?;
        let path = text(path)?;
        let mut raw = null_mut();
        check(|diag| sys::astra_bundle_init_file(&mut raw, runtime.0.raw, path.as_ptr(), null(), diag))?;
        let memory = Memory::of(&[]);
        Ok(Bundle(Arc::new(BundleBox { raw, runtime: runtime.clone(), memory })))
    }
    /// The same from bytes, which are copied.
    ///
    /// # Safety
    /// As `open`: its code is run.
    pub unsafe fn from_bytes(runtime: &Runtime, bytes: &[u8]) -> Result<Bundle> {
        let memory = Memory::of(bytes);
        let mut raw = null_mut();
        check(|diag| {
            let data = memory.blocks.as_ptr() as *const c_void;
            sys::astra_bundle_init_memory(&mut raw, runtime.0.raw, data, bytes.len(), null(), diag)
        })?;
        Ok(Bundle(Arc::new(BundleBox { raw, runtime: runtime.clone(), memory })))
    }
    /// The names of its entries.
    pub fn entries(&self) -> Vec<String> {
        let mut info: sys::BundleInfo = unsafe { sys::init() };
        unsafe { sys::astra_bundle_get_info(self.0.raw, &mut info) };
        (0..info.num_entries)
            .map(|i| {
                let mut raw = null();
                unsafe { sys::astra_bundle_get_entry(self.0.raw, i, &mut raw) };
                Entry { raw, bundle: self.clone() }.name()
            })
            .collect()
    }
    pub fn entry(&self, name: &str) -> Result<Entry> {
        let name = text(name)?;
        let mut raw = null();
        check(|diag| unsafe { sys::astra_bundle_find_entry(self.0.raw, name.as_ptr(), &mut raw, diag) })?;
        Ok(Entry { raw, bundle: self.clone() })
    }
    /// Puts it on a device: chooses the code, maps it.
    pub fn load(&self, device: &Device) -> Result<Loaded> {
        let devices = [device.0.raw];
        let mut raw = null_mut();
        check(|diag| unsafe { sys::astra_loaded_init(&mut raw, self.0.raw, devices.as_ptr(), 1, diag) })?;
        Ok(Loaded(Arc::new(LoadedBox { raw, bundle: self.clone(), device: device.clone() })))
    }
}

impl Loaded {
    /// The target that was chosen, as `"cpu:x86-64-v4"`.
    pub fn target(&self) -> String {
        owned(unsafe { sys::astra_loaded_target(self.0.raw) })
    }
}

/// A function of a bundle.
#[derive(Clone)]
pub struct Entry {
    pub(crate) raw: *const sys::Entry, // lives as long as the bundle
    #[allow(dead_code)]
    bundle: Bundle,
}
unsafe impl Send for Entry {}
unsafe impl Sync for Entry {}

/// What an entry takes or gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    pub name: String,
    /// As `"f32"`.
    pub dtype: String,
    /// The least and the largest extent of each axis.
    pub bounds: Vec<(i64, i64)>,
}

impl Entry {
    fn info(&self) -> sys::EntryInfo {
        let mut info: sys::EntryInfo = unsafe { sys::init() };
        unsafe { sys::astra_entry_get_info(self.raw, &mut info) };
        info
    }
    pub fn name(&self) -> String {
        owned(self.info().name)
    }
    pub fn inputs(&self) -> Vec<TensorInfo> {
        (0..self.info().num_inputs).map(|i| self.tensor(i, sys::astra_entry_get_input)).collect()
    }
    pub fn outputs(&self) -> Vec<TensorInfo> {
        (0..self.info().num_outputs).map(|i| self.tensor(i, sys::astra_entry_get_output)).collect()
    }
    fn tensor(
        &self,
        index: u32,
        ask: unsafe extern "C" fn(*const sys::Entry, u32, *mut sys::TensorInfo) -> i32,
    ) -> TensorInfo {
        let mut info: sys::TensorInfo = unsafe { sys::init() };
        unsafe { ask(self.raw, index, &mut info) };
        let bounds = (0..info.ndim as usize).map(|i| unsafe { (*info.lower.add(i), *info.upper.add(i)) }).collect();
        TensorInfo { name: owned(info.name), dtype: owned(unsafe { sys::astra_dtype_name(info.dtype) }), bounds }
    }
}

impl Session {
    /// `dims`: the values of session dims, and first values of host dims.
    pub fn new(loaded: &Loaded, dims: &[(&str, i64)]) -> Result<Session> {
        let names = dims.iter().map(|(name, _)| text(name)).collect::<Result<Vec<_>>>()?;
        let values: Vec<sys::DimValue> = names
            .iter()
            .zip(dims)
            .map(|(name, (_, value))| sys::DimValue { name: name.as_ptr(), value: *value })
            .collect();
        let mut options: sys::SessionOptions = unsafe { sys::init() };
        options.dims = values.as_ptr();
        options.num_dims = values.len() as u32;
        let mut raw = null_mut();
        check(|diag| unsafe { sys::astra_session_init(&mut raw, loaded.0.raw, &options, diag) })?;
        Ok(Session(Arc::new(SessionBox { raw, loaded: loaded.clone() })))
    }
    /// Sets a host dim for the calls from now on.
    pub fn set_dim(&self, name: &str, value: i64) -> Result<()> {
        let name = text(name)?;
        check(|diag| unsafe { sys::astra_session_set_dim(self.0.raw, name.as_ptr(), value, diag) })
    }
    /// Replaces a param for this session alone.
    pub fn set_param<T: Element>(&self, name: &str, value: View<'_, T>) -> Result<()> {
        let (name, value) = (text(name)?, crate::Input::from(value));
        let tensor = described(&value.raw)?;
        check(|diag| unsafe { sys::astra_session_set_param(self.0.raw, name.as_ptr(), &tensor, diag) })
    }
    pub fn set_state<T: Element>(&self, name: &str, value: View<'_, T>) -> Result<()> {
        let (name, value) = (text(name)?, crate::Input::from(value));
        let tensor = described(&value.raw)?;
        check(|diag| unsafe { sys::astra_session_set_state(self.0.raw, name.as_ptr(), &tensor, diag) })
    }
    pub fn get_state<T: Element>(&self, name: &str, out: ViewMut<'_, T>) -> Result<()> {
        let (name, out) = (text(name)?, crate::Output::from(out));
        let tensor = described(&out.raw)?;
        check(|diag| unsafe { sys::astra_session_get_state(self.0.raw, name.as_ptr(), &tensor, diag) })
    }
    /// Every state gets its first value again.
    pub fn reset(&self) -> Result<()> {
        check(|diag| unsafe { sys::astra_session_reset(self.0.raw, diag) })
    }
}
