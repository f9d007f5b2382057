/* Calls kernels_work() of static_kernels.c, with -DLINKED of the library that it is linked with,
 * else of each one named. */
#include <dlfcn.h>
#include <stdio.h>

static void claim(const char* text, int holds) { printf("%s: %s\n", text, holds ? "yes" : "no"); }

#ifdef LINKED
int kernels_work(void);
int main(void) { claim("the library's kernel ran", kernels_work()); }
#else
int main(int count, char** names) {
  for (int i = 1; i < count; ++i) {
    void* const library = dlopen(names[i], RTLD_NOW);
    int (*const work)(void) =
        library == NULL ? NULL : (int (*)(void))dlsym(library, "kernels_work");
    claim("the library's kernel ran", work != NULL && work());
    if (library != NULL) dlclose(library);
  }
}
#endif
