//! What a refusal says.

use crate::sys;
use std::ffi::CStr;
use std::fmt;

/// A status that is not `ASTRA_OK`, with its sentence.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    status: i32,
    text: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The number of `astra.h`.
    pub fn status(&self) -> i32 {
        self.status
    }
    /// Its name, as `"ASTRA_WRONG_SHAPE"`.
    pub fn name(&self) -> &'static str {
        // A string of the library, which is never unloaded.
        unsafe { CStr::from_ptr(sys::astra_status_name(self.status)) }.to_str().unwrap_or("")
    }
    /// What was found, what was expected, what to do.
    pub fn text(&self) -> &str {
        &self.text
    }
    pub(crate) fn new(status: i32, text: impl Into<String>) -> Error {
        Error { status, text: text.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.text)
    }
}
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl std::error::Error for Error {}

/// Calls a function of the C API with a place for its sentence.
pub(crate) fn check(call: impl FnOnce(*mut sys::Diag) -> i32) -> Result<()> {
    let mut diag: sys::Diag = unsafe { sys::init() };
    match call(&mut diag) {
        sys::OK => Ok(()),
        status => {
            let text = unsafe { CStr::from_ptr(diag.text.as_ptr()) };
            Err(Error::new(status, text.to_string_lossy()))
        }
    }
}
