//! Functions of the program by their addresses, as the dynamic linker knows them.
#![allow(unsafe_code, reason = "dladdr(3)")]

use core::ffi::CStr;
use core::mem::MaybeUninit;
use std::borrow::Cow;

/// The symbol that begins at this address, or else the file that the address is in and how far behind its start, for
/// `addr2line -f -e`. None: it is in no file.
pub(crate) fn symbol_at(address: usize) -> Option<String> {
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the address is only looked up, and there is room for the answer.
    if unsafe { libc::dladdr(core::ptr::without_provenance(address), found.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: it was found, and written.
    let found = unsafe { found.assume_init() };
    if !found.dli_sname.is_null() && found.dli_saddr.addr() == address {
        // SAFETY: a symbol's name is a text of the file, which is loaded.
        return Some(text(unsafe { CStr::from_ptr(found.dli_sname) }).into_owned());
    }
    if found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: as above.
    let file = text(unsafe { CStr::from_ptr(found.dli_fname) });
    let file = file.rsplit('/').next().unwrap_or_default();
    Some(format!("{file}+{:#x}", address.wrapping_sub(found.dli_fbase.addr())))
}

fn text(text: &CStr) -> Cow<'_, str> {
    text.to_string_lossy()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_a_library_has_its_name_and_others_their_place() {
        assert_eq!(symbol_at(libc::atoi as *const () as usize).as_deref(), Some("atoi"));
        let own = symbol_at(text as *const () as usize).unwrap();
        assert!(own.contains("+0x") || own.contains("text"), "{own}");
        assert_eq!(symbol_at(1), None);
    }
}
