//! Which tool results may be blanked..
