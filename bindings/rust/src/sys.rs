//! The part of `astra/astra.h` and `astra/tensor.h` that this crate uses, letter by letter. `test/abi/layout.c` has the
//! offsets in C, the test below those in Rust.

use std::os::raw::{c_char, c_void};

pub const MAX_RANK: usize = 16;
pub const OK: i32 = 0;
pub const NOT_READY: i32 = 40;
pub const FUNCTION_FAILED: i32 = 54;
pub const CALL_ALLOW_COPY: u32 = 1;
pub const VIEW_CONJUGATE: u32 = 1;

macro_rules! handles {
    ($($name:ident)*) => { $(
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )* };
}
handles!(Runtime Device Stream Buffer Bundle Loaded Session Promise Entry);

#[repr(C)]
pub struct Diag {
    pub size: usize,
    pub status: i32,
    pub text: [c_char; 500],
}

#[repr(C)]
pub struct DeviceOptions {
    pub size: usize,
    pub executor: *const c_void,
    pub num_threads: u32,
    pub level: *const c_char,
    pub emulator: *const c_void,
    pub driver: *const c_char,
    pub flags: u32,
    pub spin_ns: i64,
}

#[repr(C)]
pub struct Tensor {
    pub size: usize,
    pub buffer: *mut Buffer,
    pub data: *mut c_void,
    pub data_bytes: u64,
    pub byte_offset: u64,
    pub dtype: i32,
    pub ndim: i32,
    pub shape: *const i64,
    pub strides: *const i64,
    pub flags: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct View {
    pub size: usize,
    pub buffer: *mut Buffer,
    pub data: *mut c_void,
    pub data_bytes: u64,
    pub byte_offset: u64,
    pub dtype: i32,
    pub ndim: i32,
    pub flags: u32,
    pub reserved: u32,
    pub shape: [i64; MAX_RANK],
    pub strides: [i64; MAX_RANK],
}

#[repr(C)]
pub struct TensorInfo {
    pub size: usize,
    pub name: *const c_char,
    pub dtype: i32,
    pub ndim: i32,
    pub lower: *const i64,
    pub upper: *const i64,
    pub is_tap: i32,
}

#[repr(C)]
pub struct BundleInfo {
    pub size: usize,
    pub module: *const c_char,
    pub contract: *const c_char,
    pub numerics: *const c_char,
    pub num_entries: u32,
    pub num_params: u32,
    pub num_states: u32,
    pub num_dims: u32,
    pub num_targets: u32,
    pub num_kernels: u32,
}

#[repr(C)]
pub struct EntryInfo {
    pub size: usize,
    pub name: *const c_char,
    pub num_inputs: u32,
    pub num_outputs: u32,
    pub waits_on_host: i32,
}

#[repr(C)]
pub struct DimValue {
    pub name: *const c_char,
    pub value: i64,
}

#[repr(C)]
pub struct SessionOptions {
    pub size: usize,
    pub dims: *const DimValue,
    pub num_dims: u32,
}

#[repr(C)]
pub struct Call {
    pub size: usize,
    pub entry: *const Entry,
    pub inputs: *const Tensor,
    pub num_inputs: u32,
    pub outputs: *const Tensor,
    pub num_outputs: u32,
    pub after: *const *mut Promise,
    pub num_after: u32,
    pub flags: u32,
}

pub type FunctionFn = unsafe extern "C" fn(
    this: *mut c_void,
    inputs: *const Tensor,
    num_inputs: u32,
    outputs: *const Tensor,
    num_outputs: u32,
    diag: *mut Diag,
) -> i32;

/// A struct of all zeros but for its size.
///
/// # Safety
/// `T` is one of the structs above, for which zeros are legal.
pub unsafe fn init<T>() -> T {
    let mut value: T = std::mem::zeroed();
    *(&mut value as *mut T as *mut usize) = std::mem::size_of::<T>();
    value
}

#[link(name = "astra_rt")]
extern "C" {
    pub fn astra_version() -> u32;
    pub fn astra_status_name(status: i32) -> *const c_char;
    pub fn astra_dtype_name(dtype: i32) -> *const c_char;

    pub fn astra_runtime_init(out: *mut *mut Runtime, options: *const c_void, diag: *mut Diag) -> i32;
    pub fn astra_runtime_free(runtime: *mut *mut Runtime) -> i32;
    pub fn astra_runtime_register(
        runtime: *mut Runtime,
        name: *const c_char,
        function: Option<FunctionFn>,
        this: *mut c_void,
        flags: u32,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_device_init(
        out: *mut *mut Device,
        runtime: *mut Runtime,
        name: *const c_char,
        options: *const DeviceOptions,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_device_free(device: *mut *mut Device) -> i32;
    pub fn astra_stream_init(out: *mut *mut Stream, device: *mut Device, diag: *mut Diag) -> i32;
    pub fn astra_stream_free(stream: *mut *mut Stream) -> i32;

    pub fn astra_bundle_init_file(
        out: *mut *mut Bundle,
        runtime: *mut Runtime,
        path: *const c_char,
        options: *const c_void,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_bundle_init_memory(
        out: *mut *mut Bundle,
        runtime: *mut Runtime,
        data: *const c_void,
        bytes: usize,
        options: *const c_void,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_bundle_free(bundle: *mut *mut Bundle) -> i32;
    pub fn astra_bundle_get_info(bundle: *const Bundle, out: *mut BundleInfo) -> i32;
    pub fn astra_bundle_get_entry(bundle: *const Bundle, index: u32, out: *mut *const Entry) -> i32;
    pub fn astra_bundle_find_entry(
        bundle: *const Bundle,
        name: *const c_char,
        out: *mut *const Entry,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_entry_get_info(entry: *const Entry, out: *mut EntryInfo) -> i32;
    pub fn astra_entry_get_input(entry: *const Entry, index: u32, out: *mut TensorInfo) -> i32;
    pub fn astra_entry_get_output(entry: *const Entry, index: u32, out: *mut TensorInfo) -> i32;
    pub fn astra_entry_output_bound(
        entry: *const Entry,
        session: *mut Session,
        inputs: *const Tensor,
        num_inputs: u32,
        output: u32,
        shape: *mut i64,
        ndim: *mut i32,
        bytes: *mut u64,
        diag: *mut Diag,
    ) -> i32;

    pub fn astra_loaded_init(
        out: *mut *mut Loaded,
        bundle: *mut Bundle,
        devices: *const *mut Device,
        num_devices: u32,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_loaded_free(loaded: *mut *mut Loaded) -> i32;
    pub fn astra_loaded_target(loaded: *const Loaded) -> *const c_char;
    pub fn astra_session_init(
        out: *mut *mut Session,
        loaded: *mut Loaded,
        options: *const SessionOptions,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_session_free(session: *mut *mut Session) -> i32;
    pub fn astra_session_set_dim(session: *mut Session, name: *const c_char, value: i64, diag: *mut Diag) -> i32;
    pub fn astra_session_set_param(
        session: *mut Session,
        name: *const c_char,
        value: *const Tensor,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_session_set_state(
        session: *mut Session,
        name: *const c_char,
        value: *const Tensor,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_session_get_state(
        session: *mut Session,
        name: *const c_char,
        out: *const Tensor,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_session_reset(session: *mut Session, diag: *mut Diag) -> i32;
    pub fn astra_session_submit(
        session: *mut Session,
        stream: *mut Stream,
        call: *const Call,
        promise: *mut *mut Promise,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_promise_poll(promise: *mut Promise, diag: *mut Diag) -> i32;
    pub fn astra_promise_wait(promise: *mut Promise, diag: *mut Diag) -> i32;
    pub fn astra_promise_output_shape(
        promise: *mut Promise,
        output: u32,
        shape: *mut i64,
        ndim: *mut i32,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_promise_on_ready(
        promise: *mut Promise,
        f: Option<unsafe extern "C" fn(*mut c_void, i32)>,
        this: *mut c_void,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_promise_cancel(promise: *mut Promise, diag: *mut Diag) -> i32;
    pub fn astra_promise_free(promise: *mut *mut Promise) -> i32;

    pub fn astra_view_init(out: *mut View, tensor: *const Tensor, diag: *mut Diag) -> i32;
    pub fn astra_view_describe(view: *const View, out: *mut Tensor, diag: *mut Diag) -> i32;
    pub fn astra_view_permute(out: *mut View, view: *const View, axes: *const i32, diag: *mut Diag) -> i32;
    pub fn astra_view_slice(
        out: *mut View,
        view: *const View,
        axis: i32,
        start: i64,
        count: i64,
        step: i64,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_view_index(out: *mut View, view: *const View, axis: i32, index: i64, diag: *mut Diag) -> i32;
    pub fn astra_view_expand(out: *mut View, view: *const View, ndim: i32, shape: *const i64, diag: *mut Diag) -> i32;
    pub fn astra_view_diagonal(
        out: *mut View,
        view: *const View,
        axis_a: i32,
        axis_b: i32,
        offset: i64,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_view_reshape(out: *mut View, view: *const View, ndim: i32, shape: *const i64, diag: *mut Diag) -> i32;
    pub fn astra_view_conjugate(out: *mut View, view: *const View, diag: *mut Diag) -> i32;
    pub fn astra_view_is_row_major(view: *const View) -> i32;
    pub fn astra_view_address(view: *const View, index: *const i64, out: *mut *mut c_void, diag: *mut Diag) -> i32;
    pub fn astra_view_copy(to: *const View, from: *const View, diag: *mut Diag) -> i32;
    pub fn astra_view_part(
        out: *mut View,
        view: *const View,
        axis: i32,
        index: i64,
        parts: i64,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_view_interleaved(
        out: *mut View,
        view: *const View,
        axis: i32,
        index: i64,
        parts: i64,
        diag: *mut Diag,
    ) -> i32;
    pub fn astra_view_tile(
        out: *mut View,
        view: *const View,
        tile: *const i64,
        index: *const i64,
        diag: *mut Diag,
    ) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::size_of;

    macro_rules! at {
        ($type:ident, $field:ident, $offset:expr) => {
            let value = unsafe { init::<$type>() };
            let begin = &value as *const $type as usize;
            assert_eq!(&value.$field as *const _ as usize - begin, $offset, stringify!($type.$field));
        };
    }

    #[test]
    fn offsets_are_those_of_c() {
        assert_eq!(size_of::<Diag>(), 512);
        at!(Diag, text, 12);
        assert_eq!(size_of::<DeviceOptions>(), 64);
        at!(DeviceOptions, level, 24);
        at!(DeviceOptions, spin_ns, 56);
        assert_eq!(size_of::<Tensor>(), 72);
        at!(Tensor, byte_offset, 32);
        at!(Tensor, shape, 48);
        at!(Tensor, flags, 64);
        assert_eq!(size_of::<View>(), 312);
        at!(View, byte_offset, 32);
        at!(View, flags, 48);
        at!(View, shape, 56);
        at!(View, strides, 184);
        assert_eq!(size_of::<Call>(), 64);
        at!(Call, outputs, 32);
        at!(Call, after, 48);
        at!(Call, flags, 60);
        assert_eq!(size_of::<TensorInfo>(), 48);
        at!(TensorInfo, upper, 32);
        assert_eq!(size_of::<EntryInfo>(), 32);
        at!(EntryInfo, num_outputs, 20);
        assert_eq!(size_of::<BundleInfo>(), 56);
        at!(BundleInfo, num_entries, 32);
        assert_eq!(size_of::<SessionOptions>(), 24);
        assert_eq!(size_of::<DimValue>(), 16);
    }
}
