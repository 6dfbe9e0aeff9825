//! Prepared statements of databases. A driver reads as many values as the statement has, each as the statement's text says
//! (`apr_dbd_prepare`), and believes what lies there. So the wall reads the text as APR does, and looks at each value.

use crate::apr;
use crate::call::mediate;
use crate::copied;
use crate::frame::Frame;
use crate::interface::Answer as Result_;
use crate::layout::read;
use crate::object::Kind;
use crate::queries::{Value, places};
use crate::states::by_row;
use crate::walled::{Answer, lock};
use std::collections::HashMap;
use std::sync::Mutex;

/// By their addresses. A statement goes with its pool.
static STATEMENTS: Mutex<Option<HashMap<u64, Vec<Value>>>> = Mutex::new(None);

extern "C" fn forget(statement: u64) -> i32 {
    lock(&STATEMENTS).get_or_insert_default().remove(&statement);
    0
}

pub(crate) extern "C" fn apr_dbd_prepare(
    driver: u64,
    pool: u64,
    handle: u64,
    query: u64,
    label: u64,
    to: u64,
) -> u64 {
    mediate(|frame| {
        let text = copied::text(frame, query);
        let mut text = text.map_err(|what| format!("apr_dbd_prepare: argument 3: {what}"))?;
        let places = places(&text);
        text.push(0);
        let arguments = [driver, pool, handle, text.as_ptr() as u64, label, to];
        let words = "V p H . \"? >Q";
        let status = by_row(frame, "apr_dbd_prepare", words, Result_::Plain, &arguments)?;
        // SAFETY: the row has seen that the module may write, and so read, there.
        let made = unsafe { read(to) };
        if status == 0 && frame.walled.knows(made, Kind::Statement) {
            let mut known = lock(&STATEMENTS);
            let is_new = known.get_or_insert_default().insert(made, places).is_none();
            drop(known);
            if is_new {
                let act = forget as *const () as usize;
                let none = apr::apr_pool_cleanup_null as *const () as usize;
                // SAFETY: the pool lives, and our function stays.
                unsafe { apr::apr_pool_cleanup_register(pool, made, act, none) };
            }
        }
        Ok(status)
    })
}

/// Values as the driver gets them, and what they point to that it must not read twice.
pub(crate) struct Values {
    words: Vec<u64>,
    _sizes: Vec<Box<[u8]>>,
}

/// So many words of a variadic call are passed on.
const PASSED: usize = 16;

impl Values {
    /// As the words of a variadic call.
    pub(crate) fn passed(&self) -> [u64; PASSED] {
        let mut all = [0; PASSED];
        all[..self.words.len()].copy_from_slice(&self.words);
        all
    }
}

/// Looks at the values that a driver reads for a statement. They are texts, or `is_binary`.
fn values(
    frame: &Frame,
    statement: u64,
    is_binary: bool,
    mut word: impl FnMut(usize) -> Answer<u64>,
) -> Answer<Values> {
    let known = lock(&STATEMENTS);
    let places = known
        .as_ref()
        .and_then(|known| known.get(&statement))
        .cloned();
    drop(known);
    let places = places.ok_or_else(|| format!("{statement:#x} is no statement"))?;
    let (mut words, mut sizes) = (Vec::new(), Vec::new());
    let is_text = |at: u64| match at {
        0 => Ok(()),
        at => frame.walled.length(at, u64::MAX).map(drop),
    };
    for (number, place) in places.into_iter().enumerate() {
        let named = |what: String| format!("value {number}: {what}");
        let first = word(words.len())?;
        match place {
            Value::Large => {
                let [size, table, column] = [1, 2, 3].map(|behind| word(words.len() + behind));
                let (size, table, column) = (size?, table?, column?);
                // Drivers do not agree how many words there are then.
                if first == 0 {
                    return Err(named("a large value that is null".to_owned()));
                }
                let (bytes, own): (u64, Box<[u8]>) = match is_binary {
                    true => {
                        let [bytes] = copied::words(frame, size).map_err(named)?;
                        (bytes, bytes.to_ne_bytes().into())
                    }
                    false => {
                        let mut text = copied::text(frame, size).map_err(named)?;
                        let digits = std::str::from_utf8(&text).ok();
                        let bytes = digits.and_then(|digits| digits.parse::<u32>().ok());
                        text.push(0);
                        let bytes = bytes.ok_or_else(|| named("no length".to_owned()))?;
                        (bytes.into(), text.into())
                    }
                };
                frame.walled.must_find(first, bytes).map_err(named)?;
                is_text(table)
                    .and_then(|()| is_text(column))
                    .map_err(named)?;
                words.extend([first, own.as_ptr() as u64, table, column]);
                sizes.push(own);
                continue;
            }
            Value::Number(bytes) if is_binary && first != 0 => {
                frame.walled.must_find(first, bytes).map_err(named)?;
            }
            Value::Nothing => {}
            Value::Text | Value::Number(_) => is_text(first).map_err(named)?,
        }
        words.push(first);
    }
    Ok(Values {
        words,
        _sizes: sizes,
    })
}

/// The values of a variadic call.
pub(crate) fn passed(
    frame: &Frame,
    statement: u64,
    is_binary: bool,
    words: &[u64],
) -> Answer<Values> {
    values(frame, statement, is_binary, |place| {
        let word = words.get(place).filter(|_| place < PASSED).copied();
        word.ok_or_else(|| "more values than the wall passes on".to_owned())
    })
}

/// Values that are a list in the module's memory. The call says how many there are, and drivers do not look at that.
pub(crate) fn listed(frame: &Frame, statement: u64, list: u64) -> Answer<Values> {
    values(frame, statement, false, |place| {
        let [word] = copied::words(frame, list.wrapping_add(8 * place as u64))?;
        Ok(word)
    })
}

impl Values {
    /// As a list.
    pub(crate) fn at(&self) -> u64 {
        self.words.as_ptr() as u64
    }
}
