/* The model's C face, for Python (cffi reads this file) and tests. Times in nanoseconds, sizes in bytes. */
#ifndef DEEPUM_UM_MODEL_H
#define DEEPUM_UM_MODEL_H

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
  int32_t presented_major;
  int32_t presented_minor;
  int32_t multiprocessors;
  int32_t launch_queue;
  double fp32_gflops;
  double tensor_gflops;
  double memory_gbps;
  double h2d_gbps;
  double d2h_gbps;
  double fault_batch_ns;
  double fault_ns_per_byte;
  double fault_batch_no_prefetcher_ns;
  double fault_ns_per_byte_no_prefetcher;
  double eviction_ns_per_block;
  double launch_ns;
  double decision_latency_ns;
} deepum_machine;

size_t deepum_machine_count(void);
int deepum_machine_get(size_t index, deepum_machine *machine); /* 0; -1: no such index */

typedef struct deepum_model_access {
  uint64_t address;
  uint64_t bytes;
  int32_t read;
  int32_t write;
} deepum_model_access;

typedef struct deepum_model_counters {
  double gpu_time_ns;
  double compute_ns;
  double stall_ns;
  uint64_t kernels;
  uint64_t copies;
  uint64_t faults;
  uint64_t fault_batches;
  uint64_t bytes_h2d;
  uint64_t bytes_d2h;
  uint64_t bytes_demand;
  uint64_t bytes_prefetched;
  uint64_t bytes_prefetched_used;
  uint64_t bytes_driver_evicted;
  uint64_t bytes_prefetched_out;
  uint64_t bytes_discarded;
  uint64_t bytes_accessed;
  uint64_t bytes_missing;
  uint64_t resident_bytes;
  uint64_t peak_resident_bytes;
  uint64_t managed_bytes;
  uint64_t peak_managed_bytes;
  uint64_t discarded_uses;
} deepum_model_counters;

typedef struct deepum_model deepum_model;

/* NULL: unknown machine. memory_bytes 0: the machine's. random_eviction_seed 0: the driver evicts only for want of space. */
deepum_model *deepum_model_create(const char *machine, int devices, uint64_t memory_bytes, int density_prefetcher, uint64_t random_eviction_seed);
void deepum_model_destroy(deepum_model *model);
uint32_t deepum_model_add_helper(deepum_model *model);
double deepum_model_now(deepum_model *model, uint32_t host);
void deepum_model_program_call(deepum_model *model);
void deepum_model_map_managed(deepum_model *model, uint64_t address, uint64_t bytes, int device);
void deepum_model_map_device(deepum_model *model, uint64_t address, uint64_t bytes, int device);
void deepum_model_unmap(deepum_model *model, uint64_t address);
uint64_t deepum_model_free_bytes(deepum_model *model, int device);
int deepum_model_is_resident(deepum_model *model, int device, uint64_t address);
uint32_t deepum_model_add_stream(deepum_model *model, int device);
uint32_t deepum_model_add_event(deepum_model *model);
void deepum_model_launch(deepum_model *model, uint32_t host, uint32_t stream, const deepum_model_access *accesses, size_t count, double flops, int matrix_units);
/* kind: 1 host to device, 2 device to host, 3 inside the device */
void deepum_model_copy(deepum_model *model, uint32_t host, uint32_t stream, uint64_t destination, uint64_t source, uint64_t bytes, int kind);
void deepum_model_prefetch(deepum_model *model, uint32_t host, uint32_t stream, uint64_t address, uint64_t bytes, int location);
void deepum_model_discard(deepum_model *model, uint32_t host, uint32_t stream, uint64_t address, uint64_t bytes, int then_location, int then_prefetch);
/* advice: 1 read mostly, 2 unset, 3 preferred location, 4 unset, 5 accessed by, 6 unset (CUmem_advise) */
void deepum_model_advise(deepum_model *model, uint32_t host, uint64_t address, uint64_t bytes, int advice, int location);
void deepum_model_record(deepum_model *model, uint32_t host, uint32_t event, uint32_t stream);
void deepum_model_wait(deepum_model *model, uint32_t host, uint32_t stream, uint32_t event);
int deepum_model_query(deepum_model *model, uint32_t host, uint32_t event);
void deepum_model_synchronise_event(deepum_model *model, uint32_t host, uint32_t event);
void deepum_model_synchronise_stream(deepum_model *model, uint32_t host, uint32_t stream);
void deepum_model_synchronise_device(deepum_model *model, uint32_t host, int device);
double deepum_model_event_time(deepum_model *model, uint32_t event);
void deepum_model_get_counters(deepum_model *model, int device, deepum_model_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
