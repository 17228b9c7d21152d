// Nothing: its target owns the precompiled header of the libraries.
