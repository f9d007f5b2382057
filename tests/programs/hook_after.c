/* Comes after hook_next.c in its scope. */
const char* which_library(void) { return "after"; }
