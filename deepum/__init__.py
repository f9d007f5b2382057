"""deepum: run CUDA programs that need more memory than the GPU has, without changing them.

The words of the package's rooms: `settings` defines every setting once; `cli` is the command line,
`launch` starts programs under the shim; `daemon` serves their sessions; `core` is the face of the
decision core; `statistics` sums what sessions report.
"""

__version__ = "0.1.0"
