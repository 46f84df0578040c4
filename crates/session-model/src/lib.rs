//! What a session file says..
