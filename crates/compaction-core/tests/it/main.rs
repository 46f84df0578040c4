//! Preparations and entries over small sessions written in shorthand, and over many generated ones.

mod cases;
mod generated;
mod maintenance;
mod properties;
mod sketch;
