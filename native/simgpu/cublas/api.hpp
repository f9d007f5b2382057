// The C boundary of the stand-in libraries: API(name) marks a function done by hand; stubs.py makes
// the others.
#pragma once

#define API(name) extern "C" __attribute__((visibility("default"))) int name

// Of the library that these objects are linked into; stubs.py defines them.
extern "C" const int deepum_sim_blas_version, deepum_sim_blas_cudart_version;
