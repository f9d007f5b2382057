// The C boundary of the stand-in libraries: API(name) marks a function done by hand; stubs.py makes the others.
#pragma once

#define API(name) extern "C" __attribute__((visibility("default"))) int name
