//! Macros for the whole crate.

/// Defines constructors over the default backend. They are `const`, except under
/// `--cfg loom`, where a lock registers with the execution that explores it.
macro_rules! const_unless_loom {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis const fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty $body:block
    )*) => {$(
        $(#[$attribute])*
        #[cfg(not(loom))]
        $visibility const fn $name($($argument: $type),*) -> $result $body

        $(#[$attribute])*
        #[cfg(loom)]
        $visibility fn $name($($argument: $type),*) -> $result $body
    )*};
}
