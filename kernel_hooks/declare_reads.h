/* What a program's own code may tell the shim: memory that the kernels which a thread launches only
 * read. Nothing of it is exported; under the shim cuGetProcAddress answers the names below, for any
 * version and flags, and without it CUDA_ERROR_NOT_FOUND. docs/declared-reads.md.
 */
#ifndef DEEPUM_DECLARE_READS_H
#define DEEPUM_DECLARE_READS_H

#include <stdint.h>

/* Addresses of the device: of the first byte, and of the first behind it. */
typedef struct deepum_address_range {
  uint64_t begin;
  uint64_t end;
} deepum_address_range;

/* "deepumDeclareReads": kernels that the calling thread launches from now on only read these
 * ranges, which are sorted by their begins; what was declared before holds no longer. No range
 * (count 0): nothing is declared any more. Nothing is copied: the ranges stay as they are until the
 * thread declares others. Copies, memsets and graphs are told as ever; so is memory that is not in
 * these ranges. A wrong declaration costs time only. */
typedef void (*deepum_declare_reads)(const deepum_address_range* ranges, uint32_t count);

/* "deepumReadsWanted": 1 while declarations are of use to the daemon, 0 while not, without a daemon
 * and in a child of the process that had one. */
typedef int (*deepum_reads_wanted)(void);

#endif
