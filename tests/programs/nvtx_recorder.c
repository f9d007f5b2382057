/* A profiler's library, as NVTX loads it: writes the ranges of each domain to the file RANGES, a
 * line each: domain, thread, category's name, payload, message. NVTX_REFUSES: it takes nothing.
 */
#define _GNU_SOURCE
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

struct domain {
  char name[32];
  char categories[8][32];
};
static struct domain domains[8];
static int domain_count;
static __thread int depth;
static __thread char open_range[8][160];

static nvtxDomainHandle_t create(const char* name) {
  struct domain* made = &domains[domain_count++];
  snprintf(made->name, sizeof made->name, "%s", name);
  return (nvtxDomainHandle_t)made;
}

static void name_category(nvtxDomainHandle_t handle, uint32_t category, const char* name) {
  struct domain* domain = (struct domain*)handle;
  snprintf(domain->categories[category], sizeof domain->categories[0], "%s", name);
}

static int push(nvtxDomainHandle_t handle, const nvtxEventAttributes_t* event) {
  const struct domain* domain = (const struct domain*)handle;
  char thread[16] = "";
  pthread_getname_np(pthread_self(), thread, sizeof thread);
  snprintf(open_range[depth], sizeof open_range[0], "%s\t%s\t%s\t%llu\t%s\n", domain->name, thread,
           domain->categories[event->category], (unsigned long long)event->payload.ullValue,
           event->message.ascii);
  return depth++;
}

static int pop(nvtxDomainHandle_t handle) {
  (void)handle;
  FILE* file = fopen(getenv("RANGES"), "a");
  fputs(open_range[--depth], file);
  fclose(file);
  return depth;
}

EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  if (getenv("NVTX_REFUSES")) {
    return 0;
  }
  const NvtxExportTableCallbacks* callbacks = get_table(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table;
  unsigned count;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &count)) {
    return 0;
  }
  *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
  *table[NVTX_CBID_CORE2_DomainNameCategoryA] = (NvtxFunctionPointer)name_category;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
  *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
  return 1;
}
