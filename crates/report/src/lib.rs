//! Facts and samples as plots and pages.
