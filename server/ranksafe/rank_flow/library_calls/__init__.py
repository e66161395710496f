"""Calls of library functions: what they make of their arguments, as far as ranks are concerned.

`library_calls` asks the others in turn: `data` knows data sets, samplers and loaders, `iteration` what loops run over,
`builtin_functions` and `tensors` what their names say; `methods` has calls on a value.
"""
