"""From a unit's text to machine code, once.

Reading order: `includes` (one text), `nvrtc` (the library), `options` (its), `units` (compile, or
take from the cache), `diagnosis` (what went wrong, in the author's terms), `cubins` and `entries`
(the cache), `bundle` (kernels compiled ahead), and `caches` (what `trtpatch cache` does).
"""
