/* lapack.c: a program of somebody else that registers the functions of a LAPACK; it prints how many, or the sentence.
 */
#include <astra/lapack.h>
#include <stdio.h>

int main(void) {
  astra_diag diag = ASTRA_INIT(astra_diag);
  astra_runtime *runtime = NULL;
  uint32_t count = 0;
  if (astra_runtime_init(&runtime, NULL, &diag)) return 1;
  astra_lapack_functions(&count);
  if (astra_lapack_register(runtime, NULL, &diag))
    printf("%s\n", diag.text);
  else
    printf("%u\n", (unsigned)count);
  astra_runtime_free(&runtime);
  return 0;
}
