//! Trees of XML. The core parses the body of a request, and the module gets a copy of the tree in its own memory: modules write into
//! trees. Functions that follow a tree are part of the module (`inside/xml.c`).

use crate::apr;
use crate::call::mediate;
use crate::layout::{self, read};
use std::collections::HashMap;

/// Words of APR's structures, and where their fields are. The fields below are words, except for numbers of namespaces, which
/// are copied with the word that they lie in.
const DOCUMENT: usize = 2;
const ARRAY: usize = 4;
const TEXT: usize = 2;
const ATTRIBUTE: usize = 4;
const ELEMENT: usize = 14;
mod element {
    pub(super) const NAME: usize = 0;
    pub(super) const SPACE: usize = 1;
    pub(super) const LANGUAGE: usize = 2;
    pub(super) const TEXTS: [usize; 2] = [3, 5];
    pub(super) const PARENT: usize = 7;
    pub(super) const NEXT: usize = 8;
    pub(super) const FIRST_CHILD: usize = 9;
    pub(super) const ATTRIBUTES: usize = 10;
    pub(super) const LAST_CHILD: usize = 11;
}

/// A copy in words, before it is known where it will lie.
#[derive(Default)]
struct Copy {
    words: Vec<u64>,
    /// Words that are addresses, and the words that they lead to.
    leads: Vec<(usize, usize)>,
    /// Where strings are that several elements have: functions of APR compare their addresses.
    languages: HashMap<u64, usize>,
}

/// A word of the core's.
///
/// # Safety
/// There is a structure of APR's which has so many words.
unsafe fn word(at: u64, field: usize) -> u64 {
    // SAFETY: the caller has a structure of APR's with this word.
    unsafe { read(at + 8 * field as u64) }
}

impl Copy {
    fn place(&mut self, words: usize) -> usize {
        let at = self.words.len();
        self.words.resize(at + words, 0);
        at
    }

    /// A string with the zero behind it; null stays null.
    ///
    /// # Safety
    /// It is a string of the core's.
    unsafe fn string(&mut self, at: usize, from: u64) {
        if from == 0 {
            return;
        }
        // SAFETY: the core's strings end with a zero.
        let text = unsafe { apr::text(from) };
        let to = self.place(text.len() / 8 + 1);
        for (word, bytes) in self.words[to..].iter_mut().zip(text.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(whole);
        }
        self.leads.push((at, to));
    }

    /// A list of pieces of text, and its last one.
    ///
    /// # Safety
    /// It is a list of the core's.
    unsafe fn texts(&mut self, list: usize, first: u64) {
        let (mut link, mut from) = (list, first);
        while from != 0 {
            let to = self.place(TEXT);
            self.leads.push((link, to));
            // SAFETY: a piece of the core's list has its text and the next one.
            unsafe {
                self.string(to, word(from, 0));
                from = word(from, 1);
            }
            link = to + 1;
            if from == 0 {
                self.leads.push((list + 1, to));
            }
        }
    }

    /// # Safety
    /// It is an element of the core's, without what it is linked to.
    unsafe fn element(&mut self, from: u64) -> usize {
        let to = self.place(ELEMENT);
        // SAFETY: an element of the core's has all these words, and its lists end with null.
        unsafe {
            self.string(to + element::NAME, word(from, element::NAME));
            self.words[to + element::SPACE] = word(from, element::SPACE);
            let language = word(from, element::LANGUAGE);
            match self.languages.get(&language) {
                Some(known) => self.leads.push((to + element::LANGUAGE, *known)),
                None if language != 0 => {
                    self.languages.insert(language, self.words.len());
                    self.string(to + element::LANGUAGE, language);
                }
                None => {}
            }
            for list in element::TEXTS {
                self.texts(to + list, word(from, list));
            }
            let mut link = to + element::ATTRIBUTES;
            let mut attribute = word(from, element::ATTRIBUTES);
            while attribute != 0 {
                let own = self.place(ATTRIBUTE);
                self.leads.push((link, own));
                self.string(own, word(attribute, 0));
                self.words[own + 1] = word(attribute, 1);
                self.string(own + 2, word(attribute, 2));
                link = own + 3;
                attribute = word(attribute, 3);
            }
        }
        to
    }

    /// All elements of a tree, the way that they stand in the document. Documents nest as deep as their senders like.
    ///
    /// # Safety
    /// It is a tree of the core's.
    unsafe fn tree(&mut self, link: usize, root: u64) {
        const LINKS: [usize; 4] = [
            element::PARENT,
            element::NEXT,
            element::FIRST_CHILD,
            element::LAST_CHILD,
        ];
        let mut known = HashMap::new();
        let mut all = Vec::new();
        let mut next = root;
        while next != 0 {
            // SAFETY: by the caller; parents are elements of the tree, up to the root.
            unsafe {
                let to = self.element(next);
                known.insert(next, to);
                all.push((next, to));
                let child = word(next, element::FIRST_CHILD);
                if child != 0 {
                    next = child;
                    continue;
                }
                while next != root && word(next, element::NEXT) == 0 {
                    next = word(next, element::PARENT);
                }
                next = match next == root {
                    true => 0,
                    false => word(next, element::NEXT),
                };
            }
        }
        for (from, to) in all {
            for field in LINKS {
                // SAFETY: each known element is one of the core's tree, which stays as it is.
                if let Some(other) = known.get(&unsafe { word(from, field) }) {
                    self.leads.push((to + field, *other));
                }
            }
        }
        if let Some(root) = known.get(&root) {
            self.leads.push((link, *root));
        }
    }

    /// An array of strings, in the pool that the original is in.
    ///
    /// # Safety
    /// It is an array of the core's.
    unsafe fn strings(&mut self, link: usize, from: u64) {
        let to = self.place(ARRAY);
        self.leads.push((link, to));
        // SAFETY: the core's array has as many strings as it counts.
        unsafe {
            let count = (word(from, 1) >> 32) as u32 as usize;
            let elements = word(from, 3);
            self.words[to] = word(from, 0);
            // The size of an element and their number; and as many as there is room for.
            self.words[to + 1] = word(from, 1);
            self.words[to + 2] = count as u64;
            let own = self.place(count.max(1));
            self.leads.push((to + 3, own));
            for at in 0..count {
                self.string(own + at, word(elements, at));
            }
        }
    }
}

/// `ap_xml_parse_input(request_rec *, apr_xml_doc **)`.
pub(crate) extern "C" fn ap_xml_parse_input(r: u64, to: u64) -> u64 {
    const NAME: &str = "ap_xml_parse_input";
    mediate(|frame| {
        let walled = frame.walled;
        let Some(real) = walled.shadow(frame, r)? else {
            return Err(format!(
                "{NAME}: {r:#x} is no request that the module was given or has made"
            ));
        };
        let may = walled.must_write(to, 8);
        may.map_err(|what| format!("{NAME}: {what}"))?;
        let parse = apr::symbol(NAME).ok_or("the server does not have it")?;
        let mut document = 0_u64;
        // SAFETY: it is httpd's function, with a request and a place of ours.
        let status = unsafe {
            let parse: extern "C" fn(u64, *mut u64) -> i32 = std::mem::transmute(parse);
            parse(real, &raw mut document)
        };
        let mut own = 0;
        if document != 0 {
            let mut copy = Copy::default();
            let first = copy.place(DOCUMENT);
            // SAFETY: the core has made the tree for this request, and nobody else has it.
            let pool = unsafe {
                copy.tree(first, word(document, 0));
                copy.strings(first + 1, word(document, 1));
                read(real + layout::R_POOL)
            };
            own = walled.take(frame, pool, 8 * copy.words.len() as u64)?;
            for (word, leads) in copy.leads {
                copy.words[word] = own + 8 * leads as u64;
            }
            // SAFETY: it was just taken, and has room for so many words.
            unsafe {
                (own as *mut u64).copy_from_nonoverlapping(copy.words.as_ptr(), copy.words.len());
            }
        }
        // The module may have given its place away while the core waited for the body.
        walled.must_write(to, 8)?;
        // SAFETY: the module may write there.
        unsafe { (to as *mut u64).write_unaligned(own) };
        Ok(status as u32 as u64)
    })
}
