use super::*;

/// What a server would hold for one call with one argument.
struct Call {
    init: Init,
    kind: c_int,
    value: *mut c_char,
    length: c_ulong,
    count: c_uint,
    message: [c_char; 512],
}

type Begin = unsafe extern "C" fn(*mut Init, *mut Args, *mut c_char) -> u8;
type Answer = unsafe extern "C" fn(
    *mut Init,
    *mut Args,
    *mut c_char,
    *mut c_ulong,
    *mut u8,
    *mut u8,
) -> *const c_char;
type End = unsafe extern "C" fn(*mut Init);

impl Call {
    fn with(kind: c_int, value: Option<&'static [u8]>) -> Self {
        Self {
            init: Init {
                maybe_null: 0,
                decimals: 0,
                max_length: 0,
                ptr: std::ptr::null_mut(),
                const_item: 0,
                extension: std::ptr::null_mut(),
            },
            kind,
            value: value.map_or(std::ptr::null_mut(), |bytes| {
                bytes.as_ptr().cast_mut().cast()
            }),
            length: value.map_or(0, <[u8]>::len) as c_ulong,
            count: 1,
            message: [b'x' as c_char; 512],
        }
    }

    fn args(&mut self) -> Args {
        Args {
            count: self.count,
            types: &mut self.kind,
            values: &mut self.value,
            lengths: &mut self.length,
            maybe_null: std::ptr::null_mut(),
            attributes: std::ptr::null_mut(),
            attribute_lengths: std::ptr::null_mut(),
            extension: std::ptr::null_mut(),
        }
    }

    fn begin(&mut self, begin: Begin) -> Result<(), String> {
        let mut args = self.args();
        // SAFETY: all that a server hands over is there.
        match unsafe { begin(&mut self.init, &mut args, self.message.as_mut_ptr()) } {
            0 => Ok(()),
            _ => {
                // SAFETY: the buffer ends inside itself, or the test is to fail.
                let text = unsafe { std::ffi::CStr::from_ptr(self.message.as_ptr()) };
                Err(text.to_str().unwrap().to_owned())
            }
        }
    }

    fn answer(&mut self, answer: Answer) -> Option<Vec<u8>> {
        let mut args = self.args();
        let (mut length, mut is_null, mut error) = (77, 0, 0);
        let mut room = [0; 255];
        // SAFETY: all that a server hands over is there; what comes back has the length that it says.
        unsafe {
            let value = answer(
                &mut self.init,
                &mut args,
                room.as_mut_ptr(),
                &mut length,
                &mut is_null,
                &mut error,
            );
            assert_eq!(error, 0, "later rows would be NULL too");
            assert_eq!(is_null == 1, value.is_null());
            (is_null == 0)
                .then(|| std::slice::from_raw_parts(value.cast::<u8>(), length as usize).to_vec())
        }
    }

    fn end(&mut self, end: End) {
        // SAFETY: as above.
        unsafe { end(&mut self.init) }
        assert!(self.init.ptr.is_null());
    }
}

/// A value whose end fails.
struct Falls;

impl Drop for Falls {
    fn drop(&mut self) {
        panic!("at the end");
    }
}

static FALLS: Function<Falls> = Function {
    takes: Takes::Text,
    begin: || Ok(Falls),
    longest: |_| 1,
    answer: |_, text| match text {
        b"fall" => panic!("in between"),
        other => Some(other.to_vec()),
    },
};
exported!(test_falls, test_falls_init, test_falls_deinit, Falls, FALLS);

static NEVER: Function<()> = Function {
    takes: Takes::Bytes,
    begin: || panic!("at the beginning"),
    longest: |_| 1,
    answer: |(), _| None,
};
exported!(test_never, test_never_init, test_never_deinit, (), NEVER);

/// Without a guard, the process ends here, as a server would.
#[test]
fn panics_stay_inside() {
    let mut call = Call::with(STRING, Some(b"fall"));
    call.begin(test_falls_init).unwrap();
    assert_eq!(call.answer(test_falls), None);
    call.value = b"rise".as_ptr().cast_mut().cast();
    assert_eq!(call.answer(test_falls).as_deref(), Some(&b"rise"[..]));
    call.end(test_falls_deinit);

    let mut call = Call::with(STRING, Some(b"x"));
    let why = call.begin(test_never_init).unwrap_err();
    assert!(why.contains("error log"), "{why}");
    call.end(test_never_deinit);
}

static LONG: Function<()> = Function {
    takes: Takes::Nothing,
    begin: || Err("ä".repeat(500)),
    longest: |_| 1,
    answer: |(), _| None,
};
exported!(test_long, test_long_init, test_long_deinit, (), LONG);

#[test]
fn messages_fit() {
    let mut call = Call::with(STRING, None);
    call.count = 0;
    assert_eq!(call.begin(test_long_init).unwrap_err(), "ä".repeat(40));
    call.count = 1;
    let why = call.begin(test_long_init).unwrap_err();
    assert_eq!(why, "it takes no argument");
}

#[test]
fn numbers_are_text_and_codes_are_no_numbers() {
    for kind in [REAL, INT, DECIMAL] {
        let mut call = Call::with(kind, Some(b"1"));
        call.begin(test_falls_init).unwrap();
        assert_eq!(call.kind, STRING);
        call.end(test_falls_deinit);
        let why = Call::with(kind, Some(b"1")).begin(test_never_init);
        assert!(why.unwrap_err().contains("number"));
    }
    let mut call = Call::with(STRING, None);
    call.begin(test_falls_init).unwrap();
    assert_eq!(call.answer(test_falls), None, "NULL in, NULL out");
    call.end(test_falls_deinit);
    for count in [0, 2] {
        let mut call = Call::with(STRING, Some(b"x"));
        call.count = count;
        let why = call.begin(test_falls_init).unwrap_err();
        assert!(why.contains("one argument"), "{why}");
    }
}
