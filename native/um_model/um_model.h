/* The model's C face, for Python (cffi) and tests. One engine is used by one thread at a time;
 * nothing here blocks in real time. Times in nanoseconds of virtual time, sizes in bytes, rates in
 * bytes/ns (GB/s) and FLOP/ns (GFLOP/s). Devices are numbered from 0; the CPU is -1. Hosts: 0 is
 * the program, others come from deepum_model_add_helper. Functions that return int: 0, or -1 for an
 * argument out of range or when memory ran out; nothing has happened then.
 */
#ifndef DEEPUM_UM_MODEL_UM_MODEL_H
#define DEEPUM_UM_MODEL_UM_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct deepum_machine {
  char name[32];
  char description[160];
  char gpu_name[64];
  uint64_t memory_bytes;
  int32_t presented_major, presented_minor;
  int32_t multiprocessors;
  int32_t clock_khz;
  double fp32_gflops, tensor_gflops;
  double memory_gbps;
  double fp32_sustained, tensor_sustained, memory_sustained;
  double h2d_gbps, d2h_gbps;
  double copy_latency_ns;
  double host_gbps;
  double fault_batch_ns;
  double fault_ns_per_byte;
  double fault_ns_per_byte_no_prefetcher;
  double fault_batch_no_prefetcher_ns;
  int32_t faults_per_batch;
  double eviction_ns_per_block;
  double min_kernel_ns;
  double launch_ns;
  int32_t launch_queue;
  double migration_call_ns;
  double host_function_ns;
  double value_wait_ns;
  double block_ns;
  double both_ways;
  int32_t discards;               /* enum Discards of machine.hpp */
  int32_t queued_prefetch_faults; /* 0 or 1 */
  int32_t blocking_calls;         /* enum Blocking of machine.hpp */
  double decision_latency_ns;
  uint64_t host_memory_bytes;             /* 0: as much as there is to hold */
  double disk_read_gbps, disk_write_gbps; /* both 0: no disk behind it */
  double disk_read_latency_ns, disk_write_latency_ns;
  uint64_t disk_buffer_bytes;
  int32_t host_keeps;
} deepum_machine;

typedef struct deepum_model_options {
  int32_t devices;
  uint64_t memory_bytes;         /* per device; 0: the machine's */
  int32_t density_prefetcher;    /* 0 or 1 */
  uint64_t random_eviction_seed; /* 0: none */
} deepum_model_options;

typedef struct deepum_model_range {
  uint64_t address;
  uint64_t bytes;
} deepum_model_range;

typedef struct deepum_model_access {
  uint64_t address;
  uint64_t bytes;
  int32_t read;
  int32_t write;
} deepum_model_access;

/* As Counters in engine.hpp. */
typedef struct deepum_model_counters {
  double gpu_time_ns;
  double compute_ns;
  double stall_ns;
  uint64_t kernels, copies;
  uint64_t faults, fault_batches;
  uint64_t bytes_h2d, bytes_d2h;
  uint64_t bytes_demand;
  uint64_t bytes_prefetched;
  uint64_t bytes_prefetched_used;
  uint64_t bytes_driver_evicted;
  uint64_t bytes_prefetched_out;
  uint64_t bytes_discarded;
  uint64_t bytes_accessed;
  uint64_t bytes_missing;
  uint64_t resident_bytes, peak_resident_bytes;
  uint64_t managed_bytes, peak_managed_bytes;
  uint64_t discarded_uses, discarded_uses_sure;
  uint64_t host_bytes, peak_host_bytes;
  uint64_t bytes_disk_read, bytes_disk_written;
} deepum_model_counters;

/* As Fault in engine.hpp. */
typedef struct deepum_model_fault {
  uint64_t address; /* of the UM block */
  uint32_t faults;
  int32_t device;
  int32_t write; /* 0 or 1 */
  int32_t reserved0;
  double start_ns, end_ns;
} deepum_model_fault;

/* As Content in engine.hpp. */
typedef struct deepum_model_content {
  int32_t device; /* that holds a chunk for it, or negative */
  uint32_t on_device, on_host, arriving, leaving, discarded;
  uint32_t in_host_memory, on_disk;
} deepum_model_content;

enum deepum_model_copy_kind {
  DEEPUM_MODEL_COPY_H2H = 0,
  DEEPUM_MODEL_COPY_H2D = 1,
  DEEPUM_MODEL_COPY_D2H = 2,
  DEEPUM_MODEL_COPY_D2D = 3
};

enum deepum_model_advice {
  DEEPUM_MODEL_READ_MOSTLY = 0,
  DEEPUM_MODEL_UNSET_READ_MOSTLY = 1,
  DEEPUM_MODEL_PREFERRED_LOCATION = 2,
  DEEPUM_MODEL_UNSET_PREFERRED_LOCATION = 3,
  DEEPUM_MODEL_ACCESSED_BY = 4,
  DEEPUM_MODEL_UNSET_ACCESSED_BY = 5
};

typedef struct deepum_model deepum_model;

size_t deepum_machine_count(void);
int deepum_machine_get(size_t index, deepum_machine* machine);
int deepum_machine_find(const char* name, deepum_machine* machine);

/* NULL for an unknown machine, options out of range (1 to 32 devices), or when out of memory.
 * options may be NULL. */
deepum_model* deepum_model_create(const char* machine, const deepum_model_options* options);
/* The same with figures of the caller's. */
deepum_model* deepum_model_create_with(const deepum_machine* machine,
                                       const deepum_model_options* options);
void deepum_model_destroy(deepum_model* engine);

uint32_t deepum_model_add_helper(deepum_model* engine);
double deepum_model_now(const deepum_model* engine, uint32_t host);
void deepum_model_spend(deepum_model* engine, uint32_t host, double ns);
void deepum_model_program_call(deepum_model* engine);

int deepum_model_map_managed(deepum_model* engine, uint64_t address, uint64_t bytes,
                             int32_t device);
int deepum_model_map_device(deepum_model* engine, uint64_t address, uint64_t bytes, int32_t device);
void deepum_model_unmap(deepum_model* engine, uint64_t address);
uint64_t deepum_model_free_bytes(const deepum_model* engine, int32_t device);
/* 0 or 1. */
int deepum_model_is_resident(const deepum_model* engine, int32_t device, uint64_t address);
/* Pinned host memory comes or goes; -1 where the host has not as much, or none of it is pinned. */
int deepum_model_pin(deepum_model* engine, uint64_t bytes);
int deepum_model_unpin(deepum_model* engine, uint64_t bytes);
/* Whether host and devices can hold that much more managed and pinned memory, as Engine::holds: 0
 * or 1. */
int deepum_model_holds(const deepum_model* engine, uint64_t managed, uint64_t pinned);
/* Where the content of the UM block at the address is, a bit for each of its regions; -1: never
 * mapped. */
int deepum_model_get_content(const deepum_model* engine, uint64_t address,
                             deepum_model_content* content);

int deepum_model_add_stream(deepum_model* engine, int32_t device); /* its number, or -1 */
void deepum_model_remove_stream(deepum_model* engine, uint32_t stream);
int deepum_model_add_event(deepum_model* engine); /* its number, or -1 */
void deepum_model_remove_event(deepum_model* engine, uint32_t event);

/* The rest as in Kernel of engine.hpp. peak_fraction: 0 to 1. */
int deepum_model_launch(deepum_model* engine, uint32_t host, uint32_t stream,
                        const deepum_model_access* accesses, size_t count, double flops,
                        int32_t matrix_units, uint64_t device_bytes, double peak_fraction,
                        uint64_t tiles);
int deepum_model_copy(deepum_model* engine, uint32_t host, uint32_t stream,
                      deepum_model_range destination, deepum_model_range source, int32_t kind);
int deepum_model_fill(deepum_model* engine, uint32_t host, uint32_t stream,
                      deepum_model_range destination);
int deepum_model_prefetch(deepum_model* engine, uint32_t host, uint32_t stream,
                          const deepum_model_range* ranges, size_t count, int32_t location);
/* then_prefetch 0: discard only. */
int deepum_model_discard(deepum_model* engine, uint32_t host, uint32_t stream,
                         const deepum_model_range* ranges, size_t count, int32_t then_location,
                         int32_t then_prefetch);
int deepum_model_advise(deepum_model* engine, uint32_t host, const deepum_model_range* ranges,
                        size_t count, int32_t advice, int32_t location);
/* In stream order: the server gives the advice while the stream stands still. */
int deepum_model_serve_advice(deepum_model* engine, uint32_t host, uint32_t stream,
                              const deepum_model_range* ranges, size_t count, int32_t advice,
                              int32_t location);
int deepum_model_record(deepum_model* engine, uint32_t host, uint32_t event, uint32_t stream);
int deepum_model_wait(deepum_model* engine, uint32_t host, uint32_t stream, uint32_t event);
int deepum_model_cpu_access(deepum_model* engine, uint32_t host, deepum_model_range range,
                            int32_t write);

/* 1: complete by the host's clock, else 0. */
int deepum_model_query(deepum_model* engine, uint32_t host, uint32_t event);
int deepum_model_query_stream(deepum_model* engine, uint32_t host, uint32_t stream);
int deepum_model_synchronise(deepum_model* engine, uint32_t host, uint32_t event);
int deepum_model_synchronise_stream(deepum_model* engine, uint32_t host, uint32_t stream);
int deepum_model_synchronise_device(deepum_model* engine, uint32_t host, int32_t device);
/* NaN while incomplete or never recorded. */
double deepum_model_event_time(const deepum_model* engine, uint32_t event);

/* -1: all devices. */
int deepum_model_get_counters(const deepum_model* engine, int32_t device,
                              deepum_model_counters* counters);
size_t deepum_model_violation_count(const deepum_model* engine);
/* Copies up to `most` faults observed since the last call and drops the rest; returns how many were
 * copied. */
size_t deepum_model_take_faults(deepum_model* engine, deepum_model_fault* faults, size_t most);
/* Records that came while 65,536 waited to be taken. */
uint64_t deepum_model_faults_dropped(const deepum_model* engine);

#ifdef __cplusplus
}
#endif

#endif
