"""From a unit's text to machine code, once.

Reading order: `includes` (one text), `nvrtc` (the library), `options` (its), `compile` (the unit,
unless the cache has it), `diagnosis` (what went wrong, in the author's terms), `cubins` and
`trailer` (the cache), `bundle` (kernels compiled ahead), and `caches` (what `trtpatch cache` does).
"""
