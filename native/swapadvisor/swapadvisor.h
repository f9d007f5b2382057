/* SwapAdvisor (Huang, Jin and Li, ASPLOS 2020): from a dataflow graph, a schedule of its operators
 * and a memory pool of size classes to a swap plan (section 4.2), and the time that the plan takes
 * in a simulated dataflow engine of three streams: compute, swap-in and swap-out. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An operator's use of a tensor. reads: it needs the content; otherwise it overwrites all of it.
 * writes: it changes it. */
typedef struct deepum_swapadvisor_use {
  int32_t operation;
  int32_t tensor;
  uint8_t reads;
  uint8_t writes;
} deepum_swapadvisor_use;

/* starts: the content is there before the first operator, on the host. stays: it is needed after
 * the last one, wherever it is. A parameter does both. */
typedef struct deepum_swapadvisor_tensor {
  int64_t bytes;
  uint8_t starts;
  uint8_t stays;
} deepum_swapadvisor_tensor;

typedef struct deepum_swapadvisor_edge {
  int32_t before;
  int32_t after;
} deepum_swapadvisor_edge;

enum deepum_swapadvisor_kind {
  DEEPUM_SWAPADVISOR_IN = 0,
  DEEPUM_SWAPADVISOR_OUT = 1,
  DEEPUM_SWAPADVISOR_PLACE = 2, /* an output gets its object: takes no time */
  DEEPUM_SWAPADVISOR_HELD = 3   /* a parameter is there from the beginning: takes no time */
};

/* A node of the plan, in the order of planning. Positions are of the schedule; -1 is none. Nodes
 * that it waits for: the operator `after_operation`, and the moves whose numbers are in
 * `after_moves`. The operator at `position` waits for it (the number of operators: none does). */
typedef struct deepum_swapadvisor_move {
  int32_t kind; /* enum deepum_swapadvisor_kind */
  int32_t tensor;
  int32_t object; /* of the pool, all classes numbered through */
  int32_t position;
  int32_t after_operation;
  int32_t after_moves[2];
  int32_t order; /* in which the engine started it, operators included; -1: it takes no time */
  double start_ns;
  double end_ns;
} deepum_swapadvisor_move;

typedef struct deepum_swapadvisor_run {
  double start_ns;
  double end_ns;
  int32_t order;
} deepum_swapadvisor_run;

/* threshold: a victim was last used that many operators ago or more, where there is such a one.
 * passes: 2; with 1 no parameter is resident at the beginning. */
typedef struct deepum_swapadvisor_options {
  int32_t threshold;
  int32_t passes;
} deepum_swapadvisor_options;

/* ns: until the last node has ended. stuck: position of an operator that needs more objects of a
 * class than there are; -1: there is none; -2: the arguments are no schedule or no allocation. */
typedef struct deepum_swapadvisor_result {
  double ns;
  double in_bytes;
  double out_bytes;
  int32_t stuck;
  int32_t moves;
} deepum_swapadvisor_result;

typedef struct deepum_swapadvisor_graph deepum_swapadvisor_graph;

/* Uses are in the order of operators, each tensor once an operator. NULL where a number is out of
 * range, a rate is not positive, or memory is short. Rates are in bytes a ns. */
deepum_swapadvisor_graph* deepum_swapadvisor_create(
    const double* operation_ns, size_t operations, const deepum_swapadvisor_tensor* tensors,
    size_t tensor_count, const deepum_swapadvisor_use* uses, size_t use_count,
    const deepum_swapadvisor_edge* edges, size_t edge_count, double in_bytes_per_ns,
    double out_bytes_per_ns);
void deepum_swapadvisor_destroy(deepum_swapadvisor_graph* graph);

/* `class_of`, by tensor; `counts`, by class, the objects that it has. `runs`, by position, and
 * `moves`, the first `capacity` of them, may be NULL. */
deepum_swapadvisor_result deepum_swapadvisor_evaluate(
    const deepum_swapadvisor_graph* graph, const int32_t* schedule, const int32_t* class_of,
    const int64_t* counts, size_t classes, const deepum_swapadvisor_options* options,
    deepum_swapadvisor_run* runs, deepum_swapadvisor_move* moves, size_t capacity);

/* Schedule mutation (section 5.2): of what is ready, a random operator with that probability, else
 * the one that `schedule` has first. Writes `mutated`; the same seed makes the same. Returns 0, or
 * -1 where `schedule` is none. */
int deepum_swapadvisor_mutate(const deepum_swapadvisor_graph* graph, const int32_t* schedule,
                              double probability, uint64_t seed, int32_t* mutated);

#ifdef __cplusplus
}
#endif
