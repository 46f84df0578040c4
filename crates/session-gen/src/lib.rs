//! Seeded session files: many shapes for tests and conformance, damaged ones, and large ones for benchmarks.
//!
//! The same seed always gives the same bytes. No session here comes from a person.
//!
//! ```
//! use session_gen::{Shape, damage, generate, large};
//!
//! let session = generate(7, &Shape::omp());
//! assert_eq!(session, generate(7, &Shape::omp()));
//! assert!(session.starts_with("{\"type\":\"session\""));
//! let damaged = damage(1, session.as_bytes());
//! assert_ne!(damaged, session.as_bytes());
//! assert!(large(1, 100_000).len() >= 100_000);
//! ```

mod damage;
mod entries;
mod json;
mod large;
mod messages;
mod random;
mod session;
mod shape;

pub use damage::damage;
pub use large::large;
pub use random::Random;
pub use session::generate;
pub use shape::{Dialect, Shape};
