// The figures of a machine by name, once: deepum_machine and Machine have fields of these names.
#pragma once

#define DEEPUM_FIGURES(FIGURE)            \
  FIGURE(memory_bytes)                    \
  FIGURE(presented_major)                 \
  FIGURE(presented_minor)                 \
  FIGURE(multiprocessors)                 \
  FIGURE(clock_khz)                       \
  FIGURE(fp32_gflops)                     \
  FIGURE(tensor_gflops)                   \
  FIGURE(memory_gbps)                     \
  FIGURE(fp32_sustained)                  \
  FIGURE(tensor_sustained)                \
  FIGURE(memory_sustained)                \
  FIGURE(h2d_gbps)                        \
  FIGURE(d2h_gbps)                        \
  FIGURE(copy_latency_ns)                 \
  FIGURE(host_gbps)                       \
  FIGURE(fault_batch_ns)                  \
  FIGURE(fault_ns_per_byte)               \
  FIGURE(fault_ns_per_byte_no_prefetcher) \
  FIGURE(fault_batch_no_prefetcher_ns)    \
  FIGURE(faults_per_batch)                \
  FIGURE(eviction_ns_per_block)           \
  FIGURE(min_kernel_ns)                   \
  FIGURE(launch_ns)                       \
  FIGURE(launch_queue)                    \
  FIGURE(migration_call_ns)               \
  FIGURE(host_function_ns)                \
  FIGURE(value_wait_ns)                   \
  FIGURE(block_ns)                        \
  FIGURE(both_ways)                       \
  FIGURE(discards)                        \
  FIGURE(queued_prefetch_faults)          \
  FIGURE(blocking_calls)                  \
  FIGURE(decision_latency_ns)             \
  FIGURE(host_memory_bytes)               \
  FIGURE(disk_read_gbps)                  \
  FIGURE(disk_write_gbps)                 \
  FIGURE(disk_read_latency_ns)            \
  FIGURE(disk_write_latency_ns)           \
  FIGURE(disk_buffer_bytes)               \
  FIGURE(host_keeps)
