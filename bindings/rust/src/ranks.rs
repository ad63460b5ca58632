//! One bundle on several processes: this process among the ranks of a job, and how a bundle's tensors are cut among them
//! (`astra/ranks.h`, `docs/distributed.md`).

use crate::element::Element;
use crate::error::{check, Error, Result};
use crate::handles::{handle, owned, text, Bundle, Runtime};
use crate::sys;
use std::ffi::CString;
use std::os::raw::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// The part of `astra/ranks.h` that is used, letter by letter.
mod ffi {
    use super::*;

    #[repr(C)]
    pub struct RawRanks {
        _private: [u8; 0],
    }
    #[repr(C)]
    pub struct RawMesh {
        _private: [u8; 0],
    }
    #[repr(C)]
    pub struct RanksOptions {
        pub size: usize,
        pub engine: *const c_char,
        pub table: *const c_void,
        pub timeout: i32,
    }
    #[repr(C)]
    pub struct MeshCut {
        pub size: usize,
        pub is_whole: i32,
        pub ndim: i32,
        pub parts: [i64; sys::MAX_RANK],
    }

    #[link(name = "astra_ranks")]
    extern "C" {
        pub fn astra_ranks_init(
            out: *mut *mut RawRanks,
            options: *const RanksOptions,
            diag: *mut sys::Diag,
        ) -> i32;
        pub fn astra_ranks_free(ranks: *mut *mut RawRanks);
        pub fn astra_ranks_rank(ranks: *const RawRanks) -> i32;
        pub fn astra_ranks_size(ranks: *const RawRanks) -> i32;
        pub fn astra_ranks_engine(ranks: *const RawRanks) -> *const c_char;
        pub fn astra_ranks_gather(
            ranks: *mut RawRanks,
            data: *const c_void,
            bytes: u64,
            all: *mut c_void,
            diag: *mut sys::Diag,
        ) -> i32;
        pub fn astra_ranks_sum(
            ranks: *mut RawRanks,
            dtype: i32,
            count: u64,
            data: *const c_void,
            sum: *mut c_void,
            diag: *mut sys::Diag,
        ) -> i32;
        pub fn astra_ranks_barrier(ranks: *mut RawRanks, diag: *mut sys::Diag) -> i32;
        pub fn astra_mesh_init(
            out: *mut *mut RawMesh,
            ranks: *mut RawRanks,
            runtime: *mut sys::Runtime,
            bundle: *const sys::Bundle,
            diag: *mut sys::Diag,
        ) -> i32;
        pub fn astra_mesh_free(mesh: *mut *mut RawMesh);
        pub fn astra_mesh_shards(mesh: *const RawMesh) -> i64;
        pub fn astra_mesh_local_shards(mesh: *const RawMesh) -> i64;
        pub fn astra_mesh_axes(mesh: *const RawMesh) -> *const c_char;
        pub fn astra_mesh_get_cut(
            mesh: *const RawMesh,
            kind: i32,
            entry: *const c_char,
            name: *const c_char,
            out: *mut MeshCut,
        ) -> i32;
        pub fn astra_mesh_take(
            mesh: *const RawMesh,
            kind: i32,
            entry: *const c_char,
            name: *const c_char,
            element: u32,
            ndim: i32,
            shape: *const i64,
            logical: *const c_void,
            local: *mut c_void,
            local_bytes: u64,
            diag: *mut sys::Diag,
        ) -> i32;
        pub fn astra_mesh_join(
            mesh: *mut RawMesh,
            kind: i32,
            entry: *const c_char,
            name: *const c_char,
            element: u32,
            ndim: i32,
            shape: *const i64,
            local: *const c_void,
            logical: *mut c_void,
            logical_bytes: u64,
            diag: *mut sys::Diag,
        ) -> i32;
    }
}

// Collectives of several threads are refused by the library (ASTRA_BUSY); what does not change may be asked at any time.
handle!(
    /// This process among the ranks of a job, which it leaves when the last of these goes. What is collective is called by all ranks,
    /// in the same order.
    Ranks, RanksBox, ffi::RawRanks, ffi::astra_ranks_free {}
);

impl Ranks {
    /// Joins the job that a launcher has started; returns when all ranks have. A process that was started alone is the only rank.
    /// `engine`: `"shm"`, `"mpi"`, `"mpi:PATH"`; `None`: what fits the launcher. `timeout` in milliseconds.
    pub fn init(engine: Option<&str>, timeout: u32) -> Result<Ranks> {
        let engine = engine.map(text).transpose()?;
        let mut options: ffi::RanksOptions = unsafe { sys::init() };
        options.engine = engine.as_ref().map_or(null(), |e| e.as_ptr());
        options.timeout = timeout.min(i32::MAX as u32) as i32;
        let mut raw = null_mut();
        check(|diag| unsafe { ffi::astra_ranks_init(&mut raw, &options, diag) })?;
        Ok(Ranks(Arc::new(RanksBox { raw })))
    }
    /// The number of this process, from 0.
    pub fn rank(&self) -> usize {
        unsafe { ffi::astra_ranks_rank(self.0.raw) as usize }
    }
    /// How many ranks there are.
    pub fn size(&self) -> usize {
        unsafe { ffi::astra_ranks_size(self.0.raw) as usize }
    }
    /// As `"shm"`.
    pub fn engine(&self) -> String {
        owned(unsafe { ffi::astra_ranks_engine(self.0.raw) })
    }
    /// Returns when all ranks have called it.
    pub fn barrier(&self) -> Result<()> {
        check(|diag| unsafe { ffi::astra_ranks_barrier(self.0.raw, diag) })
    }
    /// Each rank gives as many elements and gets those of all, in the order of the ranks.
    pub fn gather<T: Element>(&self, data: &[T]) -> Result<Vec<T>> {
        let bytes = std::mem::size_of_val(data) as u64;
        filled(data.len().checked_mul(self.size()), |all, diag| unsafe {
            ffi::astra_ranks_gather(self.0.raw, data.as_ptr() as *const c_void, bytes, all, diag)
        })
    }
    /// The sum of all ranks' elements, on every rank, by a tree over the ranks.
    pub fn sum<T: Element>(&self, data: &[T]) -> Result<Vec<T>> {
        filled(Some(data.len()), |sum, diag| unsafe {
            ffi::astra_ranks_sum(self.0.raw, T::DTYPE, data.len() as u64, data.as_ptr() as *const c_void, sum, diag)
        })
    }
}

/// So many elements, which `fill` has written.
fn filled<T: Element>(
    count: Option<usize>,
    fill: impl FnOnce(*mut c_void, *mut sys::Diag) -> i32,
) -> Result<Vec<T>> {
    let count = count.ok_or_else(|| Error::new(12, "a tensor has too many elements"))?;
    let mut out: Vec<T> = vec![unsafe { std::mem::zeroed() }; count]; // any bytes are an element
    check(|diag| fill(out.as_mut_ptr() as *mut c_void, diag))?;
    Ok(out)
}

/// What a tensor of a bundle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// Of the entry of this name.
    Input(&'a str),
    /// Of the entry of this name.
    Output(&'a str),
    State,
}

handle!(
    /// A bundle's mesh, and how its tensors are cut. The runtime keeps it, since bundles that it loads from then on call it.
    Mesh, MeshBox, ffi::RawMesh, ffi::astra_mesh_free { ranks: Ranks }
);

impl Mesh {
    /// Registers the collectives of a bundle, so that it can be loaded. Collective: all ranks have the same bundle.
    pub fn new(ranks: &Ranks, runtime: &Runtime, bundle: &Bundle) -> Result<Mesh> {
        let mut raw = null_mut();
        check(|diag| unsafe {
            ffi::astra_mesh_init(&mut raw, ranks.0.raw, runtime.0.raw, bundle.0.raw as *const sys::Bundle, diag)
        })?;
        let mesh = Arc::new(MeshBox { raw, ranks: ranks.clone() });
        runtime.0.keeps.add(mesh.clone());
        Ok(Mesh(mesh))
    }
    /// Logical shards of the mesh.
    pub fn shards(&self) -> i64 {
        unsafe { ffi::astra_mesh_shards(self.0.raw) }
    }
    /// Those of this rank: the value of the bundle's dim `shards`.
    pub fn local_shards(&self) -> i64 {
        unsafe { ffi::astra_mesh_local_shards(self.0.raw) }
    }
    /// As `"data=8,model=2"`.
    pub fn axes(&self) -> String {
        owned(unsafe { ffi::astra_mesh_axes(self.0.raw) })
    }
    /// Into how many parts each axis is cut; `None` of a tensor that is whole.
    pub fn cut(&self, place: Place<'_>, name: &str) -> Result<Option<Vec<i64>>> {
        let key = Key::new(place, name)?;
        let mut cut: ffi::MeshCut = unsafe { sys::init() };
        check(|_| unsafe { ffi::astra_mesh_get_cut(self.0.raw, key.kind, key.entry(), key.name.as_ptr(), &mut cut) })?;
        Ok(if cut.is_whole != 0 { None } else { Some(cut.parts[..cut.ndim as usize].to_vec()) })
    }
    /// The part of this rank of a logical tensor: `[local shards, extents / parts ...]`, row-major. A tensor that is whole is copied.
    pub fn take<T: Element>(&self, place: Place<'_>, name: &str, shape: &[i64], logical: &[T]) -> Result<Vec<T>> {
        let key = Key::new(place, name)?;
        require(elements(shape), logical.len(), name)?;
        let local = self.local_elements(place, name, shape)?;
        let bytes = local.unwrap_or(0).saturating_mul(std::mem::size_of::<T>()) as u64;
        filled(local, |out, diag| unsafe {
            ffi::astra_mesh_take(
                self.0.raw,
                key.kind,
                key.entry(),
                key.name.as_ptr(),
                std::mem::size_of::<T>() as u32,
                shape.len() as i32,
                shape.as_ptr(),
                logical.as_ptr() as *const c_void,
                out,
                bytes,
                diag,
            )
        })
    }
    /// The logical tensor of all ranks' parts, on every rank. Collective. `shape` is the logical one.
    pub fn join<T: Element>(&self, place: Place<'_>, name: &str, shape: &[i64], local: &[T]) -> Result<Vec<T>> {
        let key = Key::new(place, name)?;
        require(self.local_elements(place, name, shape)?, local.len(), name)?;
        let whole = elements(shape);
        let bytes = whole.unwrap_or(0).saturating_mul(std::mem::size_of::<T>()) as u64;
        filled(whole, |out, diag| unsafe {
            ffi::astra_mesh_join(
                self.0.raw,
                key.kind,
                key.entry(),
                key.name.as_ptr(),
                std::mem::size_of::<T>() as u32,
                shape.len() as i32,
                shape.as_ptr(),
                local.as_ptr() as *const c_void,
                out,
                bytes,
                diag,
            )
        })
    }
    /// How many elements this rank's part has.
    fn local_elements(&self, place: Place<'_>, name: &str, shape: &[i64]) -> Result<Option<usize>> {
        Ok(match self.cut(place, name)? {
            None => elements(shape),
            Some(parts) => {
                let part: Vec<i64> = shape.iter().zip(&parts).map(|(n, p)| n / p).collect();
                elements(&part).and_then(|n| n.checked_mul(self.local_shards() as usize))
            }
        })
    }
}

fn elements(shape: &[i64]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &extent| n.checked_mul(usize::try_from(extent).ok()?))
}

fn require(wanted: Option<usize>, given: usize, name: &str) -> Result<()> {
    match wanted {
        Some(n) if n == given => Ok(()),
        _ => Err(Error::new(6, format!("'{}' has {} elements, which are not those of its shape", name, given))),
    }
}

/// What names a tensor in C.
struct Key {
    kind: i32,
    entry: Option<CString>,
    name: CString,
}

impl Key {
    fn new(place: Place<'_>, name: &str) -> Result<Key> {
        let (kind, entry) = match place {
            Place::Input(entry) => (0, Some(text(entry)?)),
            Place::Output(entry) => (1, Some(text(entry)?)),
            Place::State => (2, None),
        };
        Ok(Key { kind, entry, name: text(name)? })
    }
    fn entry(&self) -> *const c_char {
        self.entry.as_ref().map_or(null(), |e| e.as_ptr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_those_of_c() {
        assert_eq!(std::mem::size_of::<ffi::RanksOptions>(), 32);
        assert_eq!(std::mem::size_of::<ffi::MeshCut>(), 16 + 8 * sys::MAX_RANK);
    }
}
