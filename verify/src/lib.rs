//! The library of the verifier.
