"""What loops run over when the project's own code says it: generators, and objects with ``__iter__``.

`generators` runs them and finds objects' iterators; `steps` counts what they hand out, exactly or as far as ranks agree
on it.
"""
