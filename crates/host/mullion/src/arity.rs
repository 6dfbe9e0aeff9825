//! The numbers of arguments that functions may have.

/// Gives a macro the lists of arguments, each a name and its type, of all functions that can cross the wall.
macro_rules! for_each_arity {
    ($with:ident) => {
        $with! {
            ()
            (a: A)
            (a: A, b: B)
            (a: A, b: B, c: C)
            (a: A, b: B, c: C, d: D)
            (a: A, b: B, c: C, d: D, e: E)
            (a: A, b: B, c: C, d: D, e: E, f: F)
            (a: A, b: B, c: C, d: D, e: E, f: F, g: G)
            (a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H)
        }
    };
}
pub(crate) use for_each_arity;
