/* A call of the driver's that has to succeed, or the program ends with 1. */
#pragma once

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                              \
  do {                                           \
    CUresult result_ = (call);                   \
    if (result_ != CUDA_SUCCESS) {               \
      const char* name_ = "?";                   \
      cuGetErrorName(result_, &name_);           \
      fprintf(stderr, "%s: %s\n", #call, name_); \
      exit(1);                                   \
    }                                            \
  } while (0)
