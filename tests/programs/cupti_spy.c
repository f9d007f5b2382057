/* A libcupti.so.13 that writes the name of every function called to the file $CUPTI_SPY, and
 * refuses. */
#include <stdio.h>
#include <stdlib.h>

static int called(const char* name) {
  FILE* file = fopen(getenv("CUPTI_SPY"), "a");
  if (file != NULL) {
    fprintf(file, "%s\n", name);
    fclose(file);
  }
  return 35; /* CUPTI_ERROR_INSUFFICIENT_PRIVILEGES */
}

#define SPY(name) \
  int name(void) { return called(#name); }
SPY(cuptiSubscribe)
#ifndef LACKING
SPY(cuptiUnsubscribe)
SPY(cuptiActivityRegisterCallbacks)
SPY(cuptiActivityConfigureUnifiedMemoryCounter)
SPY(cuptiActivityEnable)
SPY(cuptiActivityDisable)
SPY(cuptiActivityFlushAll)
SPY(cuptiActivityGetNextRecord)
SPY(cuptiActivityGetNumDroppedRecords)
#endif
