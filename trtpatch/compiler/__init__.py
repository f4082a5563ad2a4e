"""From a unit's text to machine code, once.

Reading order: `includes` (one text), `nvrtc` (the library), `units` (compile, or take from the
cache), `diagnosis` and `entries` (what went wrong, in the author's terms), `cubins` (the cache),
`bundle` (kernels compiled ahead), and `caches` (what `trtpatch cache` does).
"""
